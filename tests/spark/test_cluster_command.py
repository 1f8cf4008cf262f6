"""``release`` and ``audit`` with ``--engine``, as a user types them, on the real cluster."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.publishing.ledger import Ledger
from sfumato.table.io.write import write_table

RECODING = ["-m", "global-recoding", "-p", "max_suppressed_fraction=0.05"]
COLUMNS = ["patient_id", "age", "sex", "insurance", "dialysis", "readmitted"]
ROLES = [
    "--identifiers=patient_id",
    "--quasi-identifiers=age,sex,insurance",
    "--sensitive=dialysis",
    "--target=readmitted",
]


@pytest.fixture
def engine(spark, cluster, tmp_path, monkeypatch):
    """Make a working folder that holds the data; the options that name the cluster, where one session serves all."""
    monkeypatch.chdir(tmp_path)
    with Path("stays.parquet").open("wb") as file:
        write_table(admissions(n_rows=600).keep(COLUMNS), file, "parquet")

    @contextlib.contextmanager
    def shared(master, *, memory):
        assert (master, memory) == (cluster.url, 600 * 10**6)
        yield spark

    monkeypatch.setattr("sfumato.engines.spark.session.spark_session", shared)
    return ["--engine", cluster.url, "--memory", "600MB"]


def sorted_rows(table):
    return sorted(map(repr, table.to_pylist()))


def test_a_release_by_the_cluster_has_the_rows_of_one_in_memory(engine, capsys):
    """With the same promises; its audit confirms it, and one after a change does not."""
    assert run(["release", "stays.parquet", *RECODING, *ROLES, "-o", "memory.parquet"]) == 0
    assert run(["release", "stays.parquet", *RECODING, *ROLES, *engine, "-o", "cluster.parquet"]) == 0
    assert "wrote cluster.parquet and cluster.parquet.manifest.json" in capsys.readouterr().err
    expected, found = pq.read_table("memory.parquet"), ds.dataset("cluster.parquet").to_table()
    assert found.schema.remove_metadata() == expected.schema.remove_metadata()
    assert sorted_rows(found) == sorted_rows(expected)
    manifests = [json.loads(Path(f"{name}.parquet.manifest.json").read_text()) for name in ("memory", "cluster")]
    assert manifests[0]["guarantees"] == manifests[1]["guarantees"]

    audit = ["audit", "cluster.parquet", "--manifest", "cluster.parquet.manifest.json", *engine]
    assert run([*audit, "--original", "stays.parquet", *ROLES, "--json"]) == 8
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "confirmed except"
    assert "row-order" not in {one["name"] for one in report["unchecked"]}
    assert "row order" in {one["name"] for one in report["checks"]}
    part = next(Path("cluster.parquet").glob("*.parquet"))
    pq.write_table(pq.read_table(part).slice(1), part)
    assert run(audit) == 5
    assert "FAIL" in capsys.readouterr().out


def test_a_project_is_released_and_audited_by_the_cluster(engine, capsys):
    assert run(["init", "stays.parquet"]) == 0
    assert run(["release", *RECODING, "-k", "2", *engine, "-o", "cluster.parquet"]) == 0

    audit = ["audit", "cluster.parquet", "--manifest", "cluster.parquet.manifest.json", "--project", "sfumato.toml"]
    capsys.readouterr()
    accepted = ["--accept", "figures,writer,compression,spelling,bytes"]
    assert run([*audit, *engine, "--json", *accepted]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "confirmed except"
    assert "original's roles" in {check["name"] for check in report["checks"]}


def test_a_dry_run_writes_nothing_and_says_what_would_be(engine, capsys):
    shutil.copytree(".", "folder.parquet")
    before = sorted(os.listdir())
    assert run(["release", "folder.parquet", *RECODING, "--dry-run", "--json", "-k", "2", *engine]) == 0

    shown = capsys.readouterr()
    assert json.loads(shown.out)["guarantees"]
    assert "guessed" in shown.err
    assert "dry run: nothing was written" in shown.err
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-m", "laplace-dp"], 2, "got laplace-dp"),
        ([*RECODING, "--drop-incomplete"], 2, "--drop-incomplete"),
        ([*RECODING, "-k", "100000"], 4, "cannot be met"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(engine, arguments, code, words, capsys):
    before = sorted(os.listdir())
    assert run(["release", "stays.parquet", *ROLES, *arguments, *engine, "-o", "out.parquet"]) == code

    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown
    assert sorted(os.listdir()) == before


def test_what_needs_all_rows_is_released_as_by_one_machine(engine, capsys):
    """The driver takes the rows, and writes one file."""
    order = ["release", "stays.parquet", *ROLES, "-m", "mdav", "-k", "4"]
    assert run([*order, "-o", "here.parquet"]) == 0
    assert run([*order, *engine, "-o", "there.parquet"]) == 0
    assert Path("there.parquet").read_bytes() == Path("here.parquet").read_bytes()


def test_a_project_s_release_by_the_cluster_is_kept_in_its_ledger_and_checked(engine, capsys):
    """Who is in which class is what a release in memory says, so that either is checked with the other."""
    recoding = ["-m", "global-recoding", "-k", "5", "-p", "max_suppressed_fraction=0.05", "-p", "loss=loss"]
    assert run(["init", "stays.parquet", "--person", "patient_id", *ROLES[1:]]) == 0
    assert run(["release", *recoding, *engine, "-o", "cluster.parquet"]) == 0
    ledger = Ledger(".sfumato-ledger")
    assert (ledger.folder / "0001" / "released.parquet").is_dir()
    (entry,) = ledger.entries()
    assert run(["release", *recoding, "-o", "memory.parquet"]) == 0  # the same classes: nobody falls below
    other = next(one for one in ledger.entries() if one.number != 1) if len(ledger) > 1 else entry
    assert crowds(entry.rows) == crowds(other.rows)
    capsys.readouterr()
    assert run(["release", "-m", "mondrian", "-k", "5", "-o", "mondrian.parquet"]) == 4
    assert run(["release", *recoding[:2], "-k", "30", *engine, "-o", "coarse.parquet"]) == 4
    assert "persons fall below what was promised" in capsys.readouterr().err
    assert not Path("coarse.parquet").exists()


def crowds(rows):
    """Persons of each class, by their names in the ledger."""
    found = {}
    for person, own in zip(rows.persons.codes.tolist(), rows.classes.tolist(), strict=True):
        found.setdefault(own, set()).add(rows.persons.names[person])
    return sorted(map(sorted, found.values()))
