"""What a cluster will refuse is refused before Java starts, by what the files say of themselves."""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.main import run
from sfumato.cli.options import homes as cluster
from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table

COLUMNS = ["patient_id", "age", "sex", "insurance", "dialysis", "readmitted"]
ROLES = ["--identifiers=patient_id", "--quasi-identifiers=age,sex,insurance", "--sensitive=dialysis"]
RECODING = ["-m", "global-recoding"]
ENGINE = ["--engine", "spark://127.0.0.1:7077"]
OUT = ["-o", "out.parquet"]


class JavaStartedError(Exception):
    """Somebody has asked for a session."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Path("stays.parquet").open("wb") as file:
        write_table(admissions(n_rows=60).keep(COLUMNS), file, "parquet")

    def start(*_, **__):
        raise JavaStartedError

    monkeypatch.setattr("sfumato.engines.spark.session.spark_session", start)


def parts(name, *tables):
    Path(name).mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, f"{name}/part-{number}.parquet")


def make_inputs():
    """Write what no cluster takes."""
    Path("empty").mkdir()
    Path("texts").mkdir()
    Path("texts/part-0.csv").write_text("age,sex\n1,f\n")
    parts("two", pa.table({"age": [1]}), pa.table({"sex": ["f"]}))
    Path("nested").mkdir()
    parts("nested/deep", pa.table({"age": [1]}))
    parts("none", pa.table({"age": pa.array([], pa.int64())}))
    parts("times", pa.table({"age": [1], "at": pa.array([1], pa.time64("us"))}))
    parts("lists", pa.table({"age": [1], "of": [[1, 2]]}))
    pq.write_table(pa.table({"age": [1]}), "there.parquet")
    Path("cut.parquet").write_bytes(Path("stays.parquet").read_bytes()[:-20])
    Path("packed.parquet.gz").write_bytes(gzip.compress(Path("stays.parquet").read_bytes()))
    zeros = pa.table({"age": np.zeros(10**6, dtype=np.int64)})
    pq.write_table(zeros, "bomb.parquet")
    metadata = pq.read_metadata("bomb.parquet")
    for _ in range(12):
        metadata.write_metadata_file("bomb.parquet")
        metadata.append_row_groups(pq.read_metadata("bomb.parquet"))
    metadata.write_metadata_file("bomb.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["stays.parquet", *ROLES, *RECODING, "-o", "there.parquet"], 3, "exists already"),
        (["stays.parquet", *ROLES, *RECODING, "-o", "stays.parquet", "--force"], 3, "is the input"),
        (["stays.parquet", *ROLES, *RECODING, "-o", "nowhere/out.parquet"], 3, "folder does not exist"),
        (["stays.parquet", *ROLES, *RECODING, "-o", "out.csv"], 2, ".parquet"),
        (["stays.parquet", *ROLES, *RECODING], 2, "output"),
        (["nowhere.parquet", *RECODING, *OUT], 3, "does not exist"),
        (["stay.parquet", *RECODING, *OUT], 3, "did you mean 'stays.parquet'"),
        (["empty", *RECODING, *OUT], 3, "without Parquet files"),
        (["texts", *RECODING, *OUT], 3, "Parquet"),
        (["two", *RECODING, *OUT], 3, "same columns"),
        (["nested", *RECODING, *OUT], 3, "holds a folder"),
        (["none", *RECODING, *OUT], 3, "no data rows"),
        (["times", *RECODING, *OUT], 3, "column 'at'"),
        (["lists", *RECODING, *OUT], 3, "column 'of'"),
        (["cut.parquet", *RECODING, *OUT], 3, "Parquet"),
        (["packed.parquet.gz", *RECODING, *OUT], 2, "Parquet"),
        (["bomb.parquet", *RECODING, *OUT], 3, "unpacks to more than"),
        (["stays.parquet", *RECODING, "--sensitive=illness", *OUT], 3, "illness"),
        (["stays.parquet", *RECODING, "--quasi-identifiers=age,sexx", *OUT], 3, "sexx"),
        (["stays.parquet", *ROLES, *RECODING, "--drop-incomplete", *OUT], 2, "--drop-incomplete"),
        (["stays.parquet", *RECODING, f"--other={','.join(COLUMNS)}", *OUT], 3, "no quasi-identifier"),
        (["stays.parquet", *ROLES, *RECODING, "--memory", "much", *OUT], 2, "--memory"),
    ],
)
def test_a_release_that_will_be_refused_starts_no_java(capsys, arguments, code, words):
    make_inputs()
    before = sorted(path.name for path in Path().iterdir())

    assert run(["release", *arguments, *ENGINE]) == code

    assert words in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_mechanism_whose_rows_do_not_fit_starts_no_java(capsys, monkeypatch):
    monkeypatch.setattr("sfumato.engines.protocol.cells_in_memory", lambda memory: 100)

    assert run(["release", "stays.parquet", *ROLES, "-m", "slicing", *OUT, *ENGINE]) == 3

    assert "slicing needs the whole table in memory, and 60 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda text: text.replace('"age"', '"years"'), 3, "years"),
        (lambda text: "\n".join(line for line in text.splitlines() if not line.startswith('"age"')), 3, "age"),
        (lambda text: text.replace('"quasi-identifier"', '"other"'), 3, "no quasi-identifier"),
    ],
    ids=["unknown column", "column not described", "no quasi-identifier"],
)
def test_a_project_that_does_not_fit_starts_no_java(capsys, change, code, words):
    assert run(["init", "stays.parquet"]) == 0
    Path("sfumato.toml").write_text(change(Path("sfumato.toml").read_text()))
    capsys.readouterr()

    assert run(["release", *RECODING, *ENGINE, *OUT]) == code
    assert words in capsys.readouterr().err


def test_data_that_the_project_does_not_describe_start_no_java(capsys):
    assert run(["init", "stays.parquet"]) == 0
    pq.write_table(pq.read_table("stays.parquet").slice(1), "stays.parquet")
    capsys.readouterr()

    assert run(["release", *RECODING, *ENGINE, *OUT]) == 3
    assert "SHA-256" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("released", "manifest", "more", "words"),
    [
        ("nowhere.parquet", "good.json", [], "does not exist"),
        ("stays.parquet", "bad.json", [], "bad.json"),
        ("stays.parquet", "nowhere.json", [], "nowhere.json"),
        ("stays.parquet", "good.json", ["--original", "nowhere.parquet"], "nowhere.parquet"),
        ("stays.parquet", "good.json", ["--original", "stays.parquet", "--sensitive", "illness"], "illness"),
    ],
)
def test_an_audit_that_will_be_refused_starts_no_java(capsys, released, manifest, more, words):
    assert run(["release", "stays.parquet", *ROLES, *RECODING, "-k", "2", "-o", "r.parquet"]) == 0
    Path("good.json").write_text(Path("r.parquet.manifest.json").read_text())
    Path("bad.json").write_text(json.dumps({"sfumato_manifest": 99}))
    capsys.readouterr()

    assert run(["audit", released, "--manifest", manifest, *more, *ENGINE]) in (2, 3, 5)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("few", [61, 60], ids=["fewer", "not fewer"])
def test_a_table_of_few_rows_is_told_to_be_faster_without(capsys, monkeypatch, few):
    """By the rows that the files say they hold; then the session is asked for."""
    monkeypatch.setattr(cluster, "FEW_ROWS", few)

    assert run(["release", "stays.parquet", *ROLES, *RECODING, *ENGINE, *OUT]) == 1

    said = capsys.readouterr().err
    assert "JavaStartedError" in said
    assert ("the table has 60 rows. Below 61 rows --memory without --engine is faster" in said) == (few == 61)


def test_the_bound_is_some_millions_of_rows():
    assert 10**6 < cluster.FEW_ROWS < 10**7
