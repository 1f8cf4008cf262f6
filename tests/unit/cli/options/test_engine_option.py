"""``--engine`` is refused in one line where a cluster cannot help, before any is asked."""

import os
import sys
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.engines.spark.master import Master
from sfumato.errors import InvalidParameterError
from sfumato.table.io.write import write_table

URL = "spark://127.0.0.1:1"
RECODING = ["-m", "global-recoding", "--identifiers=patient_id"]


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Make a working folder that holds the data in two formats."""
    monkeypatch.chdir(tmp_path)
    for name in ("csv", "parquet"):
        with Path(f"stays.{name}").open("wb") as file:
            write_table(admissions(n_rows=30), file, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["release", "stays.parquet", *RECODING, "--engine", "node1:7077", "-o", "o.parquet"], 2, "spark://host:port"),
        (["release", "stays.parquet", *RECODING, "--engine", "duckdb", "-o", "o.parquet"], 2, "spark://host:port"),
        (
            ["release", "stays.csv", *RECODING, "--engine", URL, "-o", "o.parquet"],
            2,
            "a Parquet file, or a folder of Parquet files",
        ),
        (
            ["release", "-", *RECODING, "--engine", URL, "-o", "o.parquet"],
            2,
            "a Parquet file, or a folder of Parquet files",
        ),
        (["release", "stays.parquet", *RECODING, "--engine", URL], 2, "--dry-run"),
        (["release", "stays.parquet", *RECODING, "--engine", URL, "-o", "o.csv"], 2, "parquet"),
        (["release", "stays.parquet", *RECODING, "--engine", URL, "-o", "stays.parquet"], 3, "stays.parquet"),
        (["release", "stays.parquet", *RECODING, "--engine", URL, "--memory", "1", "-o", "o.parquet"], 2, "800MB"),
        (["release", "stays.parquet", "-m", "laplace-dp", "--engine", URL, "-o", "o.parquet"], 2, "laplace-dp"),
        (["audit", "stays.csv", "--engine", URL], 2, "a Parquet file, or a folder of Parquet files"),
        (
            ["audit", "stays.csv", "--manifest", "m.json", "--engine", URL],
            2,
            "a Parquet file, or a folder of Parquet files",
        ),
        (["audit", ".", "--manifest", "m.json", "--original", "stays.csv", "--engine", URL], 2, "a Parquet file"),
    ],
)
def test_wrong_usage_is_told_before_a_cluster_is_asked(arguments, code, words, capsys):
    before = sorted(os.listdir())
    assert run(arguments) == code

    shown = capsys.readouterr()
    assert words in shown.err
    assert "Traceback" not in shown.err
    assert sorted(os.listdir()) == before


def test_a_missing_pyspark_is_told(monkeypatch, capsys):
    """With what installs it, and the exit code of a cluster that cannot be used."""
    monkeypatch.setitem(sys.modules, "pyspark", None)

    assert run(["release", "stays.parquet", *RECODING, "--engine", URL, "-o", "o.parquet"]) == 7
    assert "PySpark is not installed. Hint: pip install 'sfumato[spark]'" in capsys.readouterr().err
    assert not Path("o.parquet").exists()


@pytest.mark.parametrize("url", ["spark://a:1", "spark://a.b-c:7077,[::1]:7078", "local", "local[4]", "local[*]"])
def test_addresses_of_masters_are_read(url):
    assert Master.of(url).is_local == url.startswith("local")
    assert len(Master.of(url).addresses) == (0 if url.startswith("local") else url.count(",") + 1)


@pytest.mark.parametrize(
    "url", ["", "spark://", "spark://a", "spark://a:0", "spark://a:70000", "spark://a:1,", "local[]", "yarn", "a:1 "]
)
def test_other_addresses_are_refused(url):
    with pytest.raises(InvalidParameterError, match="spark://host:port"):
        Master.of(url)


def test_a_cluster_on_loopback_is_known_as_such():
    assert Master.of("spark://127.0.0.1:7077").is_on_loopback
    assert not Master.of("spark://127.0.0.1:7077,192.0.2.1:7077").is_on_loopback
