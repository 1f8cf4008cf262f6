"""``release`` and ``audit`` with ``--memory``, as a user types them."""

import json
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.engines.blocks import rows as distinct
from sfumato.mechanisms.base import Needs
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.table.io.write import write_table

MEMORY = ["--memory", "600MB"]
RECODING = ["-m", "global-recoding", "-p", "max_suppressed_fraction=0.05"]
COLUMNS = ["patient_id", "age", "sex", "insurance", "dialysis", "readmitted"]
ROLES = [
    "--identifiers=patient_id",
    "--quasi-identifiers=age,sex,insurance",
    "--sensitive=dialysis",
    "--target=readmitted",
]


@pytest.fixture(params=["csv", "parquet"])
def name(request, tmp_path, monkeypatch):
    """Make a working folder that holds the data; the name of the file."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / f"stays.{request.param}").open("wb") as file:
        write_table(admissions(n_rows=600).keep(COLUMNS), file, request.param)
    return f"stays.{request.param}"


@pytest.mark.slow
def test_a_release_out_of_core_has_the_bytes_of_one_in_memory(name, capsys):
    """And its audit out of core and in memory confirm it."""
    assert run(["release", name, *RECODING, *ROLES, "-o", "memory.csv"]) == 0
    assert run(["release", name, *RECODING, *ROLES, *MEMORY, "-o", "large.csv"]) == 0
    shown = capsys.readouterr().err
    assert "audit: confirmed except: figures" in shown
    assert "promised and audited" in shown
    assert Path("memory.csv").read_bytes() == Path("large.csv").read_bytes()

    audit = ["audit", "large.csv", "--manifest", "large.csv.manifest.json", "--original", name, *ROLES]
    assert run(audit) == 8
    in_memory = capsys.readouterr().out
    assert run([*audit, *MEMORY]) == 8
    out_of_core = capsys.readouterr().out
    assert set(in_memory.splitlines()[:-1]) <= set(out_of_core.splitlines())
    assert "confirmed" in out_of_core


@pytest.mark.slow
def test_the_shortest_command_makes_the_same_release_on_every_size(name, capsys):
    """No mechanism is named."""
    assert run(["release", name, *ROLES, "--quick", "-o", "memory.csv"]) == 0
    assert run(["release", name, *ROLES, *MEMORY, "-o", "large.csv"]) == 0
    assert "audit: confirmed: all" in capsys.readouterr().err
    assert Path("memory.csv").read_bytes() == Path("large.csv").read_bytes()


@pytest.mark.slow
def test_guessed_roles_are_the_same(name, capsys):
    """From names and from how often values occur."""
    run(["release", name, *RECODING, "--dry-run", "-k", "2"])
    expected = [line for line in capsys.readouterr().err.splitlines() if line.startswith("guessed")]
    run(["release", name, *RECODING, "--dry-run", "-k", "2", *MEMORY])
    found = [line for line in capsys.readouterr().err.splitlines() if line.startswith("guessed")]

    assert expected
    assert found == expected


@pytest.mark.slow
def test_a_project_is_released_out_of_core(name, capsys):
    """With the same bytes, and audited with the roles that it declares."""
    assert run(["init", name]) == 0
    assert run(["release", *RECODING, "-o", "memory.parquet"]) == 0
    assert run(["release", *RECODING, *MEMORY, "-o", "large.parquet"]) == 0
    assert Path("memory.parquet").read_bytes() == Path("large.parquet").read_bytes()
    expected, found = (json.loads(Path(f"{n}.parquet.manifest.json").read_text()) for n in ("memory", "large"))
    assert found["guarantees"] == expected["guarantees"]

    audit = ["audit", "large.parquet", "--manifest", "large.parquet.manifest.json", "--project", "sfumato.toml"]
    capsys.readouterr()
    assert run([*audit, *MEMORY, "--json", "--accept", "figures"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["accepted"]) == ("confirmed except", ["figures"])
    assert [one["name"] for one in report["unchecked"]] == ["figures"]
    assert {"original's roles", "cells"} <= {check["name"] for check in report["checks"]}


@pytest.mark.slow
def test_the_profile_is_that_of_the_table_in_memory(name, capsys):
    """But for containment."""
    assert run(["audit", name, *ROLES, "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert run(["audit", name, *ROLES, "--json", *MEMORY]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*RECODING, "--memory", "100MB"], 2, "at least 600MB"),
        ([*RECODING, "--memory", "much"], 2, "such as 800MB"),
        (["-m", "laplace-dp", *MEMORY], 2, "got laplace-dp"),
        ([*RECODING, *MEMORY, "--drop-incomplete"], 2, "--drop-incomplete"),
        ([*RECODING, *MEMORY, "-k", "100000"], 4, "cannot be met"),
    ],
)
def test_what_cannot_be_done_is_refused(name, arguments, code, words, capsys):
    """In one line, and nothing is written."""
    before = sorted(os.listdir())
    assert run(["release", name, *ROLES, "-o", "out.csv", *arguments]) == code

    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("away", [MEMORY, ["--engine", "spark://127.0.0.1:1"]], ids=["memory", "engine"])
@pytest.mark.parametrize(
    "mechanism", [name for name, info in registered_mechanisms().items() if info.is_differentially_private]
)
def test_differential_privacy_is_refused_before_anything_is_read(tmp_path, capsys, mechanism, away):
    """The file is none that could be read, and no cluster is there: neither is found out."""
    (tmp_path / "stays.parquet").write_bytes(b"no table")
    order = ["release", str(tmp_path / "stays.parquet"), "-m", mechanism, "-o", str(tmp_path / "out.parquet"), *away]

    assert run(order) == 2
    assert f"got {mechanism}" in capsys.readouterr().err
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        name
        for name, info in registered_mechanisms().items()
        if info.needs is Needs.ALL_ROWS and not info.is_differentially_private
    ],
)
def test_what_needs_all_rows_has_the_bytes_of_a_table_in_memory(tmp_path, monkeypatch, capsys, mechanism):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=300).keep(COLUMNS), file, "csv")
    order = ["release", "stays.csv", "-m", mechanism, *ROLES]
    code = run([*order, "-o", "here.csv"])

    assert run([*order, *MEMORY, "-o", "there.csv"]) == code
    if code == 0:
        here, there = (json.loads(Path(f"{name}.csv.manifest.json").read_text()) for name in ("here", "there"))
        assert there["guarantees"] == here["guarantees"]
        if not registered_mechanisms()[mechanism].build.hides_choices:  # which are drawn anew
            assert Path("there.csv").read_bytes() == Path("here.csv").read_bytes()


def test_a_column_with_too_many_values_needs_a_role(name, capsys):
    """Its role is not guessed from a part of its values."""
    with patch.object(distinct, "_FEWEST_PENDING", 100), patch("sfumato.engines.memory_limit._BYTES_A_VALUE", 10**6):
        assert run(["release", name, *RECODING, *MEMORY, "-o", "out.csv"]) == 3

    assert "'patient_id': has too many distinct values" in capsys.readouterr().err


@pytest.mark.slow
def test_an_audit_fails_when_the_release_was_changed(name, capsys):
    """With the exit code of an audit that does not confirm."""
    assert run(["release", name, *RECODING, *ROLES, *MEMORY, "-o", "large.csv"]) == 0
    released = Path("large.csv")
    released.write_bytes(released.read_bytes() + released.read_bytes().splitlines(keepends=True)[-1])
    audit = ["audit", "large.csv", "--manifest", "large.csv.manifest.json", "--original", name, *ROLES, *MEMORY]
    capsys.readouterr()

    assert run(audit) == 5
    assert "FAIL" in capsys.readouterr().out
