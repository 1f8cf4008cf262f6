"""Checks that every registered mechanism must pass; a new one is covered by existing."""

import json
from contextlib import suppress

import numpy as np
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published

NAMES = list(registered_mechanisms())
SEEDED = [name for name in NAMES if "dp" not in name]  # differentially private noise takes no seed


@pytest.fixture(scope="module")
def flags_csv(tmp_path_factory):
    """Write 240 rows of eight correlated 0/1 columns with a sensitive column and a target."""
    rng = np.random.default_rng(8)
    base = rng.random((240, 1))
    bits = (0.5 * rng.random((240, 8)) + 0.5 * base < np.linspace(0.3, 0.7, 8)).astype(int)
    target = (bits[:, 2] + bits[:, 5] + rng.random(240) > 1.6).astype(int)
    lines = ["id,a,b,c,d,e,f,g,h,illness,y"]
    for i, (row, y) in enumerate(zip(bits, target, strict=True)):
        lines.append(",".join([f"p{i}", *map(str, row), "uvw"[i % 3], "ny"[y]]))
    path = tmp_path_factory.mktemp("flags") / "flags.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def flags(flags_csv):
    table = sfumato.read_table(flags_csv)
    roles = {"id": sfumato.Role.IDENTIFIER, "illness": sfumato.Role.SENSITIVE, "y": sfumato.Role.TARGET}
    return table.with_schema(table.schema.with_roles(roles))


def small(name):
    """Build a mechanism with its defaults, a small one where they are too large for this table."""
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    return build_mechanism(name, {"n_features": 4} if "n_features" in parameters else {})


@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_published_and_audited(tmp_path, flags, name):
    release = sfumato.release(flags, small(name))
    done = publish(release, tmp_path / "out.csv", original=flags)

    report = audit_published(done.table_path, done.manifest_path, original=flags, check_roles=True)
    assert report.passed, report.failures
    manifest = json.loads(done.manifest_path.read_text())
    assert manifest["mechanism"]["name"] == ("mondrian" if name == "auto" else name)  # auto names what it chose
    assert "id" not in {c["name"] for c in manifest["output"]["columns"]}


@pytest.mark.parametrize("name", SEEDED)
def test_same_input_same_bytes(tmp_path, flags, name):
    contents = []
    for run_number in range(2):
        path = tmp_path / f"{run_number}" / "out.csv"
        path.parent.mkdir()
        mechanism = small(name).keyed(b"a secret") if small(name).hides_choices else small(name)
        done = publish(sfumato.release(flags, mechanism), path, original=flags)
        contents.append((done.table_path.read_bytes(), done.manifest_path.read_bytes()))

    assert contents[0] == contents[1]


@pytest.mark.parametrize("name", SEEDED)
def test_row_order_does_not_change_which_columns_are_kept(flags, name):
    order = np.random.default_rng(1).permutation(flags.n_rows)

    def kept(table):
        return [c["name"] for c in sfumato.release(table, small(name)).manifest.output["columns"]]

    assert kept(flags) == kept(flags.take(order))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_makes_it(tmp_path, flags_csv, name, capsys):
    parameters = {p.name for p in registered_mechanisms()[name].parameters}
    extra = ["-p", "n_features=4"] if "dp" in name else ["-k", "4"] if "k" in parameters else []
    output = str(tmp_path / "out.csv")
    roles = ["--identifiers", "id", "--sensitive", "illness", "--target", "y"]
    roles += ["--quasi-identifiers", "a,b,c,d,e,f,g,h"] if "dp" in name else []  # nothing is guessed of the rows

    assert run(["release", str(flags_csv), "-m", name, *extra, *roles, "--quick", "-o", output]) == 0
    capsys.readouterr()
    audit = ["audit", output, "--manifest", output + ".manifest.json", "--original", str(flags_csv)]
    assert run(audit) == 8
    printed = capsys.readouterr().out
    assert "FAIL" not in printed
    assert printed.splitlines()[-1].startswith("confirmed except: ")
    known = "figures,epsilon,noise"
    if name in ("anatomy", "mdav", "random-flipping"):  # sorted rows do not tell whose cells are whose
        assert run([*audit, "--accept", f"roles,{known}"]) == 8
        known += ",cells"
    assert run([*audit, "--accept", f"roles,{known}"]) == 0
    every = [*roles, "--quasi-identifiers", "a,b,c,d,e,f,g,h"]
    assert run([*audit, *every, "--accept", known]) == 0


@pytest.mark.parametrize("name", [n for n in NAMES if "k" in {p.name for p in registered_mechanisms()[n].parameters}])
@pytest.mark.parametrize(("k", "error"), [(0, ValueError), (241, PrivacyNotAchievableError)])
def test_levels_out_of_reach_are_refused(flags, name, k, error):
    with pytest.raises(error):
        sfumato.release(flags, build_mechanism(name, {"k": k}))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_without_a_target_is_refused_just_where_the_declaration_says_so(flags, name):
    info, without = registered_mechanisms()[name], flags.with_schema(flags.schema.with_roles({"y": sfumato.Role.OTHER}))
    named = {
        "targets": "y",
        "gain_target": "a",
        "loss": "target_information",
        "weights": "gain",
        "attacker_knows": "ones",
    }
    own = [{p.name: named[p.name]} for p in info.parameters if p.name in named and name != "breach-aware"]
    proposed = [dict(settings) for settings in info.compared(flags)] if info.compared else []
    fewer = {"n_features": 4} if "n_features" in {p.name for p in info.parameters} else {}
    for settings in ({}, *own, *proposed):
        if name == "auto" and settings.get("attacker_knows") == "ones":
            settings["l"] = 1  # which a selection of columns does not promise
        mechanism, is_needed = build_mechanism(name, {**settings, **fewer}), info.needs_target_for(settings)
        with pytest.raises(SchemaError, match="target") if is_needed else suppress(PrivacyNotAchievableError):
            mechanism.release(without)
