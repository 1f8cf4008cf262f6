"""From valid releases, hundreds of seeded tamperings: the audit catches every one.

Each tampering is tried twice: *naive*, where hashes and digest are left as they were, and *repaired*, where whoever
tampered recomputed the output's hash and the manifest's digest, so that only the content can give it away.
A naive one is given away by a hash, whatever was changed, so one seed of it will do. ``make soak`` takes twelve seeds
of the repaired ones: 8 releases × 12 × 24 kinds = 2,304 of them, 24 with ranges, 60 with levels, 12 with buckets and 48
with gains. Besides: tamperings that demote a quasi-identifier, and texts of manifests that say something twice or hide
it in blanks.
"""

import csv
import hashlib
import io
import json
import math
import random

import pyarrow as pa
import pytest

import sfumato
from manifest_texts import text_of
from sfumato.cli.main import run
from sfumato.collaborate.session.party import ProjectionReleaser, SessionRecord
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.datasets.admissions import admissions
from sfumato.errors import SfumatoError
from sfumato.guarantees import KAnonymity, LDiversity, TCloseness, guarantee_from_dict
from sfumato.manifest import draft_manifest, in_three_digits, manifest_digest
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.lattice.local import LocalRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sizes import IS_FULL

SEEDS = range(12 if IS_FULL else 1)
RELEASES = ["containment", "k, l and t", "tiered", "groups", "slices", "levels", "rounds", "collaboration"]


class DropColumn:
    """A mechanism for this test: drops one column and promises the k, l and t that remain."""

    def release(self, table, *, progress=None):
        kept = table.keep(["region", "band", "illness", "y"])
        quasi = ("region", "band")
        guarantees = [
            KAnonymity(4, quasi),
            LDiversity(2, "illness", quasi),
            TCloseness(0.6, "illness", quasi),
        ]
        manifest = draft_manifest(
            table, kept, mechanism="drop-column", parameters={"k": 4}, guarantees=guarantees, evidence={}
        )
        return Release(kept, manifest)


def regional_table():
    rows = [
        {
            "person": f"p{i}",
            "region": "NSE"[i % 3],
            "band": str(i // 3 % 2),
            "illness": "abcd"[i * 7 % 4],
            "y": "nj"[i % 2],
        }
        for i in range(72)
    ]
    columns = [
        Column("person", Role.IDENTIFIER),
        Column("region", Role.QUASI_IDENTIFIER),
        Column("band", Role.QUASI_IDENTIFIER, Kind.NUMERIC),
        Column("illness", Role.SENSITIVE),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(pa.Table.from_pylist(rows), Schema.of(columns))


def working_table():
    """Jobs of which one is too rare to be released."""
    jobs = ["cook", "baker", "nurse", "doctor"] * 20 + ["diver"] * 4
    cells = {"job": jobs, "illness": ["abcd"[i * 7 % 4] for i in range(84)], "y": ["nj"[i % 2] for i in range(84)]}
    columns = [Column("job"), Column("illness", Role.SENSITIVE), Column("y", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def recoder_with_limit():
    groups = {"cook": "kitchen", "baker": "kitchen", "nurse": "health", "doctor": "health", "diver": "sea"}
    given = {"job": Hierarchy.from_rows([(job, group, "*") for job, group in groups.items()])}
    return GlobalRecoder(k=25, max_suppressed_fraction=0.05, hierarchies=given, privacy=[LDiversity(2)])


def group_table():
    """Four quasi-identifiers of which two go."""
    rows = range(90)
    cells = {
        "person": [f"p{i}" for i in rows],
        "region": ["NSEW"[i % 4] for i in rows],
        "band": ["abc"[i // 7 % 3] for i in rows],
        "flag": ["01"[i % 11 == 0] for i in rows],
        "sex": ["mf"[i // 2 % 2] for i in rows],
        "y": ["nj"[i // 3 % 2] for i in rows],
    }
    roles = {"person": Role.IDENTIFIER, "y": Role.TARGET}
    columns = [Column(name, roles.get(name, Role.QUASI_IDENTIFIER)) for name in cells]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def projection_of_a_group(table):
    session = SessionRecord("s-1", "seeds", {"a": "11" * 32, "b": "22" * 32, "c": "33" * 32})
    return ProjectionReleaser(SharedSchema.of_table(table), ("flag", "sex"), 0.2, session)


class Published:
    """A release on disk as text that can be tampered with."""

    def __init__(self, folder, original, mechanism):
        self.original = original
        done = publish(sfumato.release(original, mechanism), folder / "out.csv", original=original)
        self.folder = folder
        self.rows = list(csv.reader(io.StringIO(done.table_path.read_text())))
        self.manifest = json.loads(done.manifest_path.read_text())

    def copy(self):
        return [list(row) for row in self.rows], json.loads(json.dumps(self.manifest))

    def is_caught(self, rows, manifest, repaired):
        self.write(rows, manifest, repaired)
        try:
            return not self.audited().passed
        except SfumatoError:
            return True

    def audited(self, check_roles=False):
        return audit_published(
            self.folder / "t.csv", self.folder / "t.json", original=self.original, check_roles=check_roles
        )

    def write(self, rows, manifest, repaired):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        content = text.getvalue().encode()
        if repaired:
            manifest["output"]["sha256"] = hashlib.sha256(content).hexdigest()
            manifest["digest"] = manifest_digest(manifest)
        (self.folder / "t.csv").write_bytes(content)
        (self.folder / "t.json").write_text(text_of(manifest), encoding="utf-8")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    contained = GreedyContainmentSelector(k=4, on_infeasible="skip")
    return {
        "containment": Published(tmp_path_factory.mktemp("containment"), admissions(n_rows=150), contained),
        "k, l and t": Published(tmp_path_factory.mktemp("classes"), regional_table(), DropColumn()),
        "tiered": Published(tmp_path_factory.mktemp("tiered"), admissions(n_rows=150), ErrorRiskTree(k=4)),
        "groups": Published(
            tmp_path_factory.mktemp("groups"), admissions(n_rows=150), Mondrian(k=4, privacy=[LDiversity(2)])
        ),
        "levels": Published(
            tmp_path_factory.mktemp("levels"), regional_table(), GlobalRecoder(k=13, privacy=[LDiversity(2)])
        ),
        "rounds": Published(
            tmp_path_factory.mktemp("rounds"), regional_table(), LocalRecoder(k=4, privacy=[LDiversity(2)])
        ),
        "groups of jobs": Published(tmp_path_factory.mktemp("jobs"), working_table(), recoder_with_limit()),
        "slices": Published(tmp_path_factory.mktemp("slices"), admissions(n_rows=150), Slicer(k=4, l=2)),
        "collaboration": Published(
            tmp_path_factory.mktemp("group"), group_table(), projection_of_a_group(group_table())
        ),
    }


def change_a_cell(release, rows, manifest, chooser):
    row, column = chooser.randrange(1, len(rows)), chooser.randrange(len(rows[0]))
    others = sorted({r[column] for r in rows[1:]} - {rows[row][column]}) or ["7"]
    rows[row][column] = chooser.choice(others)


def show_the_original_value(release, rows, manifest, chooser):
    """Un-generalise: put the raw value where a band stood, or a made-up finer one."""
    row = chooser.randrange(1, len(rows))
    column = chooser.randrange(len(rows[0]) - 1)
    rows[row][column] = rows[row][column] + ".5"


def split_a_class(release, rows, manifest, chooser):
    """Give one row a quasi-identifier value that nobody has."""
    quasi = [i for i, c in enumerate(manifest["output"]["columns"]) if c["role"] == "quasi-identifier"]
    rows[chooser.randrange(1, len(rows))][chooser.choice(quasi)] = "9"


def duplicate_a_row(release, rows, manifest, chooser):
    rows.insert(chooser.randrange(1, len(rows)), list(chooser.choice(rows[1:])))


def remove_a_row(release, rows, manifest, chooser):
    del rows[chooser.randrange(1, len(rows))]


def replace_a_row_by_another(release, rows, manifest, chooser):
    row = chooser.randrange(1, len(rows))
    rows[row] = chooser.choice([other for other in rows[1:] if other != rows[row]])


def restore_a_column(release, rows, manifest, chooser):
    name = chooser.choice(manifest["dropped_columns"])
    for row, value in zip(rows, [name, *release.original[name].cells().to_pylist()], strict=True):
        row.append("" if value is None else str(value))


def restore_a_column_and_say_so(release, rows, manifest, chooser):
    """List the column in the manifest as a released quasi-identifier, outside the guarantee."""
    name = chooser.choice(manifest["dropped_columns"])
    for row, value in zip(rows, [name, *release.original[name].cells().to_pylist()], strict=True):
        row.append("" if value is None else str(value))
    manifest["dropped_columns"].remove(name)
    manifest["output"]["columns"].append({"name": name, "role": "quasi-identifier", "kind": "categorical"})


def rename_a_column(release, rows, manifest, chooser):
    rows[0][chooser.randrange(len(rows[0]))] = "renamed"


def name_the_input_by_a_plain_hash(release, rows, manifest, chooser):
    manifest["input"]["sha256"] = f"{chooser.randrange(2**256):064x}"


def level_above(entry, chooser):
    """Name of the parameter of a promise, and a value of it that the release does not keep."""
    if "k" in entry:
        return "k", int(entry["audited"]) + chooser.randrange(1, 50)
    return "min_privacy_gain", chooser.uniform(entry["audited"] + 0.01, 1)


def raise_the_promised_level(release, rows, manifest, chooser):
    entry = manifest["guarantees"][0]
    name, level = level_above(entry, chooser)
    entry[name] = level


def raise_the_level_everywhere(release, rows, manifest, chooser):
    """Promise, parameter, statement and audited level all tell the same lie."""
    entry = manifest["guarantees"][0]
    name, level = level_above(entry, chooser)
    entry |= {name: level, "audited": level}
    entry["statement"] = statement_of(entry)
    manifest["mechanism"]["parameters"][name] = level


def statement_of(entry):
    """Sentence that fits a promise, whatever it now says."""
    fields = {key: value for key, value in entry.items() if key not in ("statement", "audited")}
    return guarantee_from_dict(fields).describe()


def raise_the_parameter_alone(release, rows, manifest, chooser):
    name, level = level_above(manifest["guarantees"][0], chooser)
    manifest["mechanism"]["parameters"][name] = level


def change_the_audited_level(release, rows, manifest, chooser):
    manifest["guarantees"][0]["audited"] += chooser.randrange(1, 9)


def change_the_row_count(release, rows, manifest, chooser):
    manifest["output"]["rows"] += chooser.choice([-1, 1, 10])


def claim_suppressed_rows(release, rows, manifest, chooser):
    manifest["suppressed_rows"] += chooser.randrange(1, 5)


def forget_a_dropped_column(release, rows, manifest, chooser):
    del manifest["dropped_columns"][chooser.randrange(len(manifest["dropped_columns"]))]


def promise_fewer_columns(release, rows, manifest, chooser):
    columns = manifest["guarantees"][0]["columns"]
    del columns[chooser.randrange(len(columns))]


def understate_the_risk(release, rows, manifest, chooser):
    manifest["evidence"]["risk"] = {"anonymity_level": chooser.randrange(30, 99)}


def claim_another_rule(release, rows, manifest, chooser):
    """Say of a recoded or an unchanged column that it was made in another way."""
    columns = [c["name"] for c in manifest["output"]["columns"] if c["role"] == "quasi-identifier"]
    name = chooser.choice(columns)
    others = [entry for entry in manifest["recodings"] if entry["name"] != name]
    manifest["recodings"] = [*others, {"name": name, "column": name, "rule": "missing"}]


def name_somebody_in_a_cell(release, rows, manifest, chooser):
    """Put the row's own value into a cell that stands for it anyway, as one more member of a set."""
    quasi = [i for i, c in enumerate(manifest["output"]["columns"]) if c["role"] == "quasi-identifier"]
    wide = [(r, i) for r in range(1, len(rows)) for i in quasi if rows[r][i][:1] in ("[", "{")]
    row, column = chooser.choice(wide or [(1, quasi[0])])
    own = release.original[rows[0][column]].cells()[row - 1].as_py() if wide else "7"
    rows[row][column] = "{" + rows[row][column].strip("{}") + f"|{own}" + "}"


def change_the_kind_of_a_recoding(release, rows, manifest, chooser):
    """Let values be levels in an order of one's own, so that a narrow range could stand for everything."""
    chooser.choice(manifest["recodings"]).update(kind="ordered", domain=["1", "Patient 7"])


def understate_the_rows_left_out(release, rows, manifest, chooser):
    manifest["evidence"]["utility"]["suppressed_fraction"] += chooser.choice([-0.01, 0.001, 0.3])


def tighten_the_limit_of_rows_left_out(release, rows, manifest, chooser):
    """Claim a limit that was not kept, or none that could be."""
    tighter = chooser.uniform(0, 0.04)
    manifest["mechanism"]["parameters"]["max_suppressed_fraction"] = chooser.choice([tighter, "abc", 1.01, -1, None])


def claim_another_variant(release, rows, manifest, chooser):
    manifest["mechanism"]["parameters"]["variant"] = chooser.choice(["entropy", "recursive", "strong", 3])


def list_a_label_that_is_not_released(release, rows, manifest, chooser):
    """Tell in the manifest of somebody who was left out."""
    chooser.choice(manifest["recodings"])["labels"][f"group {chooser.random()}"] = ["Patient 7"]


def list_fewer_values_of_a_label(release, rows, manifest, chooser):
    """Make a label narrower than the rows that have it."""
    labels = [entry["labels"] for entry in manifest["recodings"] if entry["labels"]]
    values = chooser.choice(sorted(chooser.choice(labels).items()))[1]
    del values[chooser.randrange(len(values))]


def overstate_the_smallest_bucket(release, rows, manifest, chooser):
    manifest["evidence"]["risk"]["smallest_bucket"] += chooser.choice([-1, 1, 9999])


def understate_the_values_of_a_column(release, rows, manifest, chooser):
    """With fewer values the largest entropy is smaller, and the same columns gain more."""
    entry = manifest["guarantees"][0]
    name = chooser.choice(sorted(entry["n_values"]))
    restate_the_gain(entry, {**entry["n_values"], name: chooser.randrange(1, entry["n_values"][name])}, {})


def count_fewer_columns(release, rows, manifest, chooser):
    entry = manifest["guarantees"][0]
    name = chooser.choice(entry["columns"])
    entry["columns"].remove(name)
    restate_the_gain(entry, {key: n for key, n in entry["n_values"].items() if key != name}, {})


def count_a_released_column_as_removed(release, rows, manifest, chooser):
    entry = manifest["guarantees"][0]
    name = chooser.choice(entry["columns"])
    entry["columns"].remove(name)
    entry["removed"].append(name)
    restate_the_gain(entry, entry["n_values"], {})


def cut_texts_into_intervals(release, rows, manifest, chooser):
    """As if a column of texts were numbers that lie in two intervals."""
    entry = manifest["guarantees"][0]
    name = chooser.choice(["region", "band", "sex"])
    restate_the_gain(entry, {**entry["n_values"], name: 2}, {name: [chooser.uniform(0, 9)]})


def restate_the_gain(entry, n_values, cuts):
    """Let promise, statement and audited level tell the same lie."""
    before, after = (sum(math.log2(n) for n in counted.values()) for counted in (entry["n_values"], n_values))
    entry |= {"n_values": n_values, "cuts": cuts, "audited": entry["audited"] * before / after}
    entry["statement"] = statement_of(entry)


def make_a_column_an_identifier(release, rows, manifest, chooser):
    chooser.choice(manifest["output"]["columns"])["role"] = "identifier"


def demote_a_quasi_identifier(manifest, chooser, role):
    """Give a quasi-identifier another role and let every promise and statement be silent about it; gives its name."""
    named = [c for c in manifest["output"]["columns"] if c["role"] == "quasi-identifier"]
    column = chooser.choice(named)
    column["role"] = role
    for entry in manifest["guarantees"]:
        entry["columns"] = [name for name in entry["columns"] if name != column["name"]]
        if "n_values" in entry:
            n_values = {name: n for name, n in entry["n_values"].items() if name != column["name"]}
            restate_the_gain(entry, n_values, {n: c for n, c in entry["cuts"].items() if n in n_values})
        entry["statement"] = statement_of(entry)
    return column["name"]


def restate_what_was_found(release, rows, manifest):
    """Let a liar copy the levels and figures that the audit itself finds."""
    release.write(rows, manifest, repaired=True)
    report = release.audited()
    for entry, level in zip(manifest["guarantees"], report.levels, strict=True):
        if level is not None:
            entry["audited"] = in_three_digits(level) if "min_privacy_gain" in entry else level
    for check in report.checks:
        part, _, figure = check.name.partition(": ")
        if not check.passed and part in ("risk", "utility"):
            found = float(check.message.rpartition("found ")[2])
            manifest["evidence"][part][figure.replace(" ", "_")] = (
                int(found) if found.is_integer() else in_three_digits(found)
            )


def change_anything_in_the_manifest(release, rows, manifest, chooser):
    """Only for the naive case: with the digest recomputed a new name is a new manifest."""
    manifest["mechanism"]["name"] = f"magic-{chooser.random()}"


def list_values_as_missing(release, rows, manifest, chooser):
    """Call the values of all quasi-identifiers missing, everywhere or column by column: rows then look equal."""
    quasi = [i for i, c in enumerate(manifest["output"]["columns"]) if c["role"] == "quasi-identifier"]
    names = [manifest["output"]["columns"][i]["name"] for i in quasi]
    values = {name: sorted({row[i] for row in rows[1:]}) for name, i in zip(names, quasi, strict=True)}
    if chooser.random() < 0.5:
        manifest["missing"]["tokens"] = sorted(set().union(*values.values()) | {""})
    else:
        manifest["missing"]["columns"] = values
        for i in quasi:
            manifest["output"]["columns"][i]["missing"] = values[manifest["output"]["columns"][i]["name"]]


def promise_nothing(release, rows, manifest, chooser):
    """Promise a level that every table has."""
    entry = manifest["guarantees"][0]
    name = next(name for name in ("k", "l", "t", "min_privacy_gain") if name in entry)
    entry[name] = {"k": 1, "l": 1, "t": 1.0, "min_privacy_gain": 0.0}[name]
    if name in manifest["mechanism"]["parameters"]:
        manifest["mechanism"]["parameters"][name] = entry[name]


def add_an_unknown_key(release, rows, manifest, chooser):
    """Say something that nothing checks, at any depth."""
    records = [manifest, manifest["input"], manifest["output"], manifest["mechanism"], manifest["missing"]]
    records += [manifest["evidence"], manifest["versions"], manifest["mechanism"]["parameters"]]
    records += [*manifest["guarantees"], *manifest["output"]["columns"], *manifest["recodings"]]
    chooser.choice(records)["certified_k"] = chooser.randrange(100, 1000)


CONTENT = [
    list_values_as_missing,
    promise_nothing,
    add_an_unknown_key,
    change_a_cell,
    show_the_original_value,
    split_a_class,
    duplicate_a_row,
    remove_a_row,
    replace_a_row_by_another,
    restore_a_column,
    restore_a_column_and_say_so,
    rename_a_column,
    raise_the_promised_level,
    raise_the_level_everywhere,
    raise_the_parameter_alone,
    change_the_audited_level,
    change_the_row_count,
    claim_suppressed_rows,
    forget_a_dropped_column,
    promise_fewer_columns,
    understate_the_risk,
    claim_another_rule,
    name_somebody_in_a_cell,
    make_a_column_an_identifier,
    name_the_input_by_a_plain_hash,
]
ONLY_GENERALIZED = [change_the_kind_of_a_recoding]
ONLY_LEVELS = [
    understate_the_rows_left_out,
    tighten_the_limit_of_rows_left_out,
    claim_another_variant,
    list_a_label_that_is_not_released,
    list_fewer_values_of_a_label,
]
ONLY_BUCKETS = [overstate_the_smallest_bucket]
ONLY_GAINS = [
    understate_the_values_of_a_column,
    count_fewer_columns,
    count_a_released_column_as_removed,
    cut_texts_into_intervals,
]
ONLY_NAIVE = [change_anything_in_the_manifest]


@pytest.mark.parametrize("kind", [*RELEASES, "groups of jobs"])
def test_an_untouched_release_passes(releases, kind):
    """The other half of the claim: the audit does not simply refuse everything."""
    release = releases[kind]
    rows, manifest = release.copy()

    assert not release.is_caught(rows, manifest, repaired=False)
    assert not release.is_caught(rows, manifest, repaired=True)


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("tamper", CONTENT + ONLY_NAIVE, ids=lambda tamper: tamper.__name__)
def test_every_tampering_is_caught(releases, kind, tamper):
    catches_every_seed(releases[kind], tamper, may_be_repaired=tamper in CONTENT)


def catches_every_seed(release, tamper, *, may_be_repaired=True):
    tried = [*((seed, True) for seed in SEEDS), (0, False)] if may_be_repaired else [(seed, False) for seed in SEEDS]
    for seed, repaired in tried:
        rows, manifest = release.copy()
        tamper(release, rows, manifest, random.Random(f"{tamper.__name__}{seed}"))

        assert release.is_caught(rows, manifest, repaired), (seed, repaired)


SOME = [
    *((kind, tamper) for kind in ("tiered", "groups") for tamper in ONLY_GENERALIZED),
    *(("groups of jobs", tamper) for tamper in ONLY_LEVELS),
    *(("slices", tamper) for tamper in ONLY_BUCKETS),
    *(("collaboration", tamper) for tamper in ONLY_GAINS),
]


@pytest.mark.parametrize(("kind", "tamper"), SOME, ids=lambda part: getattr(part, "__name__", part))
def test_every_tampering_with_what_only_some_releases_have_is_caught(releases, kind, tamper):
    catches_every_seed(releases[kind], tamper)


@pytest.mark.parametrize("kind", [*RELEASES, "groups of jobs"])
@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_a_demoted_quasi_identifier_is_refused_or_named(releases, kind, role):
    """With its role declared it is refused; without, it is at least named as one whose role nobody vouches for."""
    release = releases[kind]
    n_consistent = 0
    for seed in range(4):
        rows, manifest = release.copy()
        name = demote_a_quasi_identifier(manifest, random.Random(f"demote{seed}"), role)
        restate_what_was_found(release, rows, manifest)
        release.write(rows, manifest, repaired=True)
        sources = {entry["name"]: entry["column"] for entry in manifest["recodings"]}
        for declared in (True, [sources.get(name, name)]):
            report = release.audited(declared)
            assert report.verdict == "refused"
            assert "original's roles" in [check.name for check in report.checks if not check.passed]
        trusting = release.audited()
        alone = audit_published(release.folder / "t.csv", release.folder / "t.json")
        n_consistent += trusting.passed
        for report in (trusting, alone):
            assert report.verdict != "confirmed"
            of_roles = [one.message for one in report.unchecked if one.name == "roles"]
            assert any(f"'{name}' ({role})" in said for said in of_roles)
    assert n_consistent, "something else than the roles gives every one of these away"


HIDDEN = {
    "a key twice": lambda text: text.replace('"suppressed_rows":', '"suppressed_rows": 0,\n  "suppressed_rows":'),
    "no number": lambda text: text.replace('"suppressed_rows": 0', '"suppressed_rows": NaN'),
    "a blank": lambda text: text.replace('"input":', '"input": ', 1),
    "a line more": lambda text: text + "\n",
    "an escape": lambda text: text.replace('"input":', '"\\u0069nput":', 1),
}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("how", HIDDEN)
def test_nothing_hides_in_the_text_of_a_manifest(releases, kind, how):
    release = releases[kind]
    rows, manifest = release.copy()
    assert not release.is_caught(rows, manifest, repaired=True)
    text = HIDDEN[how]((release.folder / "t.json").read_text(encoding="utf-8"))
    (release.folder / "t.json").write_text(text, encoding="utf-8")

    with pytest.raises(SfumatoError):
        audit_published(release.folder / "t.csv", release.folder / "t.json", original=release.original)


def unique_rows(tmp_path, per_column):
    """Forge a release of 40 unique rows whose values the manifest calls missing, with hashes and digest that fit."""
    lines = ["age,city,y", *(f"{20 + i},c{i},{'ny'[i % 2]}" for i in range(40))]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    table = sfumato.read_table(tmp_path / "in.csv")
    table = table.with_schema(table.schema.with_roles({"y": Role.TARGET}))
    quasi = ("age", "city")
    tokens = {"age": [str(20 + i) for i in range(40)], "city": [f"c{i}" for i in range(40)]}
    entries = draft_manifest(
        table, table, mechanism="mondrian", parameters={"k": 40}, guarantees=[KAnonymity(40, quasi)], evidence={}
    ).to_dict()
    entries = json.loads(json.dumps(entries))
    if per_column:
        entries["missing"]["columns"] = tokens
        for column in entries["output"]["columns"][:2]:
            column["missing"] = tokens[column["name"]]
    else:
        entries["missing"]["tokens"] = ["", *tokens["age"], *tokens["city"]]
    content = (tmp_path / "in.csv").read_bytes()
    entries["guarantees"][0]["audited"] = 40
    entries["output"] |= {"name": "out.csv", "format": "csv", "sha256": hashlib.sha256(content).hexdigest()}
    entries["digest"] = manifest_digest(entries)
    (tmp_path / "out.csv").write_bytes(content)
    (tmp_path / "out.csv.manifest.json").write_text(text_of(entries), encoding="utf-8")


@pytest.mark.parametrize("per_column", [False, True], ids=["everywhere", "by column"])
@pytest.mark.parametrize("memory", [(), ("--memory", "1GB")], ids=["in memory", "out of core"])
@pytest.mark.parametrize(
    "original",
    [(), ("--original", "in.csv"), ("--original", "in.csv", "--target", "y", "--quasi-identifiers", "age,city")],
)
def test_unique_rows_are_not_anonymous_because_their_values_are_called_missing(
    tmp_path, monkeypatch, capsys, per_column, memory, original
):
    monkeypatch.chdir(tmp_path)
    unique_rows(tmp_path, per_column)

    assert run(["audit", "out.csv", "--manifest", "out.csv.manifest.json", *original, *memory]) == 5

    printed = capsys.readouterr().out
    assert "k-anonymity does not hold: promised k = 40, found 1" in printed
    assert printed.splitlines()[-1].startswith("refused: ")
    assert run(["report", "out.csv", "--quick", "-o", "r.html"]) == 5
    assert not (tmp_path / "r.html").exists()
