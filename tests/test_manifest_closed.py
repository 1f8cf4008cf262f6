"""A manifest is closed: what can be told in it beside the table and the original, field by field and in bits."""

import copy
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import sfumato
from manifest_mutants import form_of, word_by
from sfumato.audit.auditor import AuditorHas
from sfumato.audit.evidence import with_names_of_files
from sfumato.audit.verify import audit_release
from sfumato.cli.main import run
from sfumato.errors import InvalidParameterError, ManifestRefusedError, SfumatoError
from sfumato.guarantees import guarantee_from_dict
from sfumato.manifest import manifest_digest
from sfumato.manifest_schema import _HASH, _WORD, VERSION, canonical_text, parsed_manifest, schema
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import key_of_release, read_as_written

MOST_BITS = 64
MORE_BITS = {"best-first-wrapper": 92, "breach-aware": 150, "breach-aware, then": 157, "gain-recoding": 77}
"""Mechanisms with more numbers among their settings: a seed of 32 bits, weights, limits of times and shares.

Of recodings over hierarchies the kind of each column counts, which nothing is measured by (two bits a column).
"""
LONG, FINE = "x" * 100, 0.123456789012345
SETTINGS = {
    "mondrian, scores": ("mondrian", {"split": "score", "l": 2}),
    "mondrian, t and α": ("mondrian", {"t": 0.4, "alpha": 0.9}),
    "breach-aware, then": ("breach-aware", {"k": 4, "then": "mondrian", "then_settings": {"strict": False}}),
    "error-risk-tree, uniform": ("error-risk-tree", {"generalization": "uniform", "l": 2}),
}
RELEASES = {name: (name, {}) for name in registered_mechanisms()} | SETTINGS


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Read 240 rows of eight correlated 0/1 columns with a sensitive column and a target."""
    rng = np.random.default_rng(8)
    bits = (0.5 * rng.random((240, 8)) + 0.5 * rng.random((240, 1)) < np.linspace(0.3, 0.7, 8)).astype(int)
    target = (bits[:, 2] + bits[:, 5] + rng.random(240) > 1.6).astype(int)
    lines = ["id,a,b,c,d,e,f,g,h,illness,y"]
    for i, (row, y) in enumerate(zip(bits, target, strict=True)):
        lines.append(",".join([f"p{i}", *map(str, row), "uvw"[i % 3], "ny"[y]]))
    path = tmp_path_factory.mktemp("flags") / "flags.csv"
    path.write_text("\n".join(lines) + "\n")
    table = sfumato.read_table(path)
    roles = {"id": sfumato.Role.IDENTIFIER, "illness": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}
    return table.with_schema(table.schema.with_roles(roles))


class Audited:
    """A published release, and what an audit with the original says of its manifest when that is changed."""

    def __init__(self, folder, flags, setting):
        name, parameters = RELEASES[setting]
        declared = {p.name for p in registered_mechanisms()[name].parameters}
        mechanism = build_mechanism(name, {**parameters, **({"n_features": 4} if "n_features" in declared else {})})
        self.original = flags
        self.done = publish(sfumato.release(flags, mechanism), folder / "out.csv", original=flags)
        self.manifest = json.loads(self.done.manifest_path.read_text(encoding="utf-8"))
        self.released = read_as_written(self.done.table_path, self.done.release.manifest)
        self.honest = self.end_of(self.manifest)
        assert self.honest is not None

    def end_of(self, manifest):
        """Exceptions of the audit; ``None`` where it refuses the manifest."""
        text = canonical_text({**manifest, "digest": manifest_digest(manifest)})
        try:
            entries = parsed_manifest(text)
            report = audit_release(
                self.released,
                entries,
                AuditorHas(original=self.original, original_sha256=self.original.source.sha256, roles=True),
                released_sha256=self.released.source.sha256,
                file=self.done.table_path,
            )
            report = with_names_of_files(report, entries, self.done.table_path, self.original.source)
        except SfumatoError:
            return None
        return sorted(one.message for one in report.unchecked) if report.passed else None

    def accepts(self, place, value):
        """Whether a manifest with another entry ends as the honest one does."""
        changed = copy.deepcopy(self.manifest)
        at(changed, place[:-1])[place[-1]] = value
        return self.end_of(changed) == self.honest


@pytest.fixture(scope="module")
def audited(tmp_path_factory, flags):
    made = {}

    def of(setting):
        if setting not in made:
            made[setting] = Audited(tmp_path_factory.mktemp("out"), flags, setting)
        return made[setting]

    return of


def at(data, place):
    for key in place:
        data = data[key]
    return data


def leaves(found, form, place=()):
    """Places of single entries, with the form of each; of a word that distinguishes records, all such words."""
    chosen = form_of(found, form)
    if "items" in chosen:
        for i, item in enumerate(found):
            yield from leaves(item, chosen["items"], (*place, i))
    elif "properties" in chosen:
        by = word_by(chosen)
        for key, item in found.items():
            others = [one["properties"][by]["const"] for one in form.get("oneOf", ()) if word_by(one) == by is not None]
            own = {"enum": others, "type": "string"} if key == by and others else chosen["properties"][key]
            yield from leaves(item, own, (*place, key))
    elif "additionalProperties" in chosen:
        for key, item in found.items():
            yield from leaves(item, chosen["additionalProperties"], (*place, key))
    else:
        yield place, form


DIGITS = 900 * 10  # three significant digits, in the ten powers of ten that figures have


OF_ANY_TEXT = (None, _HASH["pattern"], _WORD["pattern"], r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")


def values_of(form, found):
    """How many values a form allows, and some of them that are not the one found."""
    if "oneOf" in form:
        parts = [values_of(one, found) for one in form["oneOf"]]
        return sum(n for n, _ in parts), [value for _, values in parts for value in values]
    if "const" in form or form["type"] in ("object", "array"):
        return 1, []  # of a record every entry is tried by itself
    if "enum" in form:
        return len(form["enum"]), [word for word in sorted(form["enum"]) if word != found][:8]
    if not isinstance(form["type"], str):
        n, others = values_of({**form, "type": form["type"][0]}, found)
        return n + 1, others + ([None] if found is not None else [])
    if form["type"] == "null":
        return 1, [None] if found is not None else []
    if form["type"] == "boolean":
        return 2, [not found]
    if form["type"] == "string":
        return values_of_text(form, found)
    if "digits" in form or form.get("maximum", math.inf) < 2**62:
        return values_of_limited(form, found)
    near = found if isinstance(found, int | float) and not isinstance(found, bool) else 1
    coarse = float(f"{near * 1.07 + 0.01:.3g}")
    return DIGITS * 2, [near + 1, max(near - 1, 0), coarse, float(f"{near * 0.93:.3g}"), 7, 0.5]


def values_of_text(form, found):
    if "names" in form:
        return 11, ["a", "illness", "y"]  # the original's columns, of which one or none is named
    if form.get("pattern") == VERSION["pattern"]:
        own = [int(n) for n in found.split(".")]  # of versions up to the audit's own there are few
        return own[0] * 10**4 + own[1] * 100 + own[-1] + 1, ["9.9.9", "9.9", "0.0.7"]
    if form.get("pattern") not in OF_ANY_TEXT:
        return 100, ["3.12", "3.9", "c45", "strongest"]
    return 2.0 ** (8 * 100), [LONG, "forged", f"{found}x"]


def values_of_limited(form, found):
    least = form.get("minimum", form.get("exclusiveMinimum", 0))
    most = form.get("maximum", form.get("exclusiveMaximum", 10**9))
    near = found if isinstance(found, int | float) else least
    if form["type"] == "integer" and "digits" not in form:
        return most - least + 1, [near + 1, max(near - 1, least), least, most - 1]
    powers = math.log10(max(abs(most), 1)) + (9 if form["type"] == "number" else 0)
    n = 900 * powers if form["type"] == "number" else min(900 * powers, most - least + 1)
    return n, [near + 1, float(f"{near * 1.07 + 0.01:.3g}"), 0.5, float(f"{most / 2:.2g}")]


def is_set_apart(place):
    """Digests, the commitment and the version of the form."""
    return place[0] in ("digest", "sfumato_manifest") or place[-1] == "sha256" or "commitment" in place


def free_bits(one):
    """Bits of every entry that can be another one without that the audit says so; figures that it names apart."""
    free, named = {}, {}
    for place, form in leaves(one.manifest, schema()):
        if is_set_apart(place):
            continue
        found = at(one.manifest, place)
        n, others = values_of(form, found)
        if any(one.accepts(place, value) for value in others if value != found):
            is_figure = place[0] == "evidence" or (place[0] == "recodings" and "levels" in place)
            n = 2 if place == ("mechanism", "seed") else n  # null, or the random_state among the settings, as below
            (named if is_figure else free)[".".join(map(str, place))] = math.log2(max(n, 2))
    for place, n, changed in joint_changes(one.manifest):
        if one.end_of(changed) == one.honest:
            free[place] = math.log2(n)
    return free, named


def joint_changes(manifest):
    """Change entries that must agree: a seed that is stated twice, and a promise with its setting and sentence."""
    settings = manifest["mechanism"]["parameters"]
    if manifest["mechanism"]["seed"] is not None:
        changed = copy.deepcopy(manifest)
        changed["mechanism"]["seed"] = changed["mechanism"]["parameters"]["random_state"] = 4711
        yield "mechanism.seed with random_state", 2**32, changed
    for i, promise in enumerate(manifest["guarantees"]):
        level = guarantee_from_dict({k: v for k, v in promise.items() if k not in ("statement", "audited")}).level.name
        is_whole = isinstance(promise[level], int)
        for value in (promise[level] - 1, promise[level] + 1) if is_whole else (promise[level] + 0.01,):
            changed = copy.deepcopy(manifest)
            entry = changed["guarantees"][i] | {level: value}
            said = {k: v for k, v in entry.items() if k not in ("statement", "audited")}
            try:
                changed["guarantees"][i] = entry | {"statement": guarantee_from_dict(said).describe()}
            except InvalidParameterError:
                continue
            if level in settings:
                changed["mechanism"]["parameters"][level] = value
            n_whole = max(promise["audited"] or 0, promise[level]) if is_whole else 0
            yield f"guarantees.{i}.{level} with setting and sentence", max(n_whole, 2) if is_whole else 900 * 6, changed


EVERY = [setting if setting == "mondrian" else pytest.param(setting, marks=pytest.mark.slow) for setting in RELEASES]


@pytest.mark.parametrize("setting", EVERY)
def test_no_entry_takes_a_hundred_characters_or_fifteen_digits(audited, setting):
    """Every entry of a real manifest, tried with a long text and with fine numbers, is refused or named."""
    one = audited(setting)
    taken = []
    for place, _ in leaves(one.manifest, schema()):
        if is_set_apart(place):
            continue
        taken += [place for value in (LONG, FINE, 123456789012345) if one.accepts(place, value)]

    assert taken == []


@pytest.mark.parametrize("setting", EVERY)
def test_what_an_accepted_manifest_can_carry_is_counted(audited, setting, capsys):
    """Beside table, original, digests and commitment: at most 64 bits that the audit does not name as unchecked."""
    one = audited(setting)
    free, named = free_bits(one)
    total = sum(free.values())
    with capsys.disabled():
        lines = [f"{setting}: {total:.0f} bits; {sum(named.values()):.0f} more in {len(named)} figures that it names"]
        lines += [f"    {bits:5.1f}  {place}" for place, bits in sorted(free.items(), key=lambda item: -item[1])]
        sys.stdout.write("\n" + "\n".join(lines) + "\n")

    assert total <= MORE_BITS.get(setting, MOST_BITS)
    assert not named or any("no check recomputes" in said for said in one.honest)


HASH = "ab" * 32
FORGED = {
    "mechanism.parameters.split": "Anna Berg: HIV",
    "mechanism.parameters.criterion": "Anna Berg: HIV",
    "mechanism.parameters.learner": "Anna Berg: HIV",
    "mechanism.parameters.sensitive": "Anna Berg: HIV",
    "mechanism.parameters.then_settings": {"note": "Anna Berg: HIV"},
    "mechanism.parameters.shared_schema_sha256": HASH,
    "mechanism.parameters.agreed": {"generalization_sha256": HASH},
    "mechanism.parameters.binarize": "Anna Berg: HIV",
    "mechanism.parameters.c": 12345678901234,
    "mechanism.parameters.l": 12345678901234,
    "mechanism.parameters.penalty_weight": 0.12345678901234,
    "mechanism.seed": 12345678901234,
    "mechanism.name": "anna-berg-hiv",
    "input.name": "Anna Berg: HIV",
    "input.format": "anna-berg-hiv",
    "input.read_as": {"a": "Anna Berg: HIV"},
    "output.name": "Anna Berg HIV.csv",
    "versions.python": "Anna-Berg-HIV",
    "versions.sfumato": "12345678901234",
    "versions.numpy": "Anna-Berg-HIV",
    "evidence.utility.tree": "Anna Berg: HIV",
    "evidence.search": {"method": "Anna Berg: HIV"},
    "evidence.disclosure": {"groups_are": "Anna Berg: HIV"},
}


@pytest.mark.parametrize("place", FORGED)
def test_a_manifest_with_a_name_or_a_hash_in_it_is_not_confirmed(audited, place):
    one = audited("mondrian")
    assert one.honest == []

    assert not one.accepts(place.split("."), FORGED[place])


def test_a_manifest_that_does_not_state_unique_rows_is_not_confirmed(audited):
    one = audited("mondrian")
    manifest = copy.deepcopy(one.manifest)
    del manifest["evidence"]["risk"]["unique_row_fraction"]

    (said,) = one.end_of(manifest)
    assert "unique on all released columns together, which the manifest does not state" in said


@pytest.fixture
def project(tmp_path, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)
    Path("flags.csv").write_bytes(Path(flags.source.name).read_bytes())
    roles = ["--identifiers", "id", "--sensitive", "illness", "--target", "y"]
    assert run(["init", "flags.csv", *roles, "-o", "project.toml"]) == 0
    assert run(["release", "--project", "project.toml", "-o", "out.csv"]) == 0
    return Path("out.csv.manifest.json")


def test_a_project_whose_releases_commit_accepts_none_without_a_commitment(project, capsys):
    audit = ["audit", "out.csv", "--manifest", str(project), "--project", "project.toml"]
    assert run(audit) == 0
    manifest = json.loads(project.read_text(encoding="utf-8"))
    assert manifest["input"]["commitment"] is not None
    manifest["input"]["commitment"] = None
    project.write_text(canonical_text(manifest | {"digest": manifest_digest(manifest)}), encoding="utf-8")

    with pytest.raises(ManifestRefusedError, match="commits to no original"):
        key_of_release(project, project="project.toml")
    assert run(audit) == 5


def test_a_setting_of_many_digits_is_refused_before_anything_is_done(flags):
    """Its promise would carry them into the manifest."""
    with pytest.raises(InvalidParameterError, match=r"t must be .* 3 significant digits, got 0.333.*write 0.333"):
        sfumato.release(flags, build_mechanism("mondrian", {"k": 5, "t": 1 / 3}))
