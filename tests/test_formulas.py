"""Cells that a spreadsheet program would run: counted, escaped where asked for, read back by publisher and audit."""

import csv
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from manifest_texts import text_of
from sfumato.audit.reading.formulas import _escaped, _plain
from sfumato.cli.main import run
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.manifest import manifest_digest
from sfumato.publishing.reaudit import audit_published, read_manifest, read_released
from sfumato.table.io.formulas import escaped, n_formulas, unescaped

RUN = ("=", "+", "-", "@", "\t", "\r")
JOBS = ["=1+1", "cook", "-5", "@home", "'=x", "-baker", "'n", "+4e3"]


@given(st.lists(st.text("='+-@1.e5 ax\t", max_size=6), min_size=1, max_size=10))
def test_escapes_can_be_taken_away_and_both_agree(texts):
    made = escaped(pa.array(texts)).to_pylist()
    assert unescaped(pa.array(made)).to_pylist() == texts
    assert made == [_escaped(text) for text in texts]
    assert [_plain(text) for text in made] == texts
    for text in made:
        if text.startswith(RUN):
            float(text)  # only numbers begin so


@pytest.fixture
def people(tmp_path):
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sex", "job", "ill"])
        writer.writerows(["fm"[i % 2], JOBS[i % 8], "yn"[i % 3 == 0]] for i in range(80))
    return tmp_path


ROLES = ["--quasi-identifiers", "sex", "--other", "job", "--target", "ill"]
CONFIRMED = [*ROLES, "--confirm", "job"]  # one of the jobs looks like the name of a user
AUDIT = ["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--original", "people.csv", *ROLES]


def cells(path):
    with path.open(newline="") as file:
        return [row["job"] for row in csv.DictReader(file)]


def test_counted_and_warned_about(people, monkeypatch, capsys):
    monkeypatch.chdir(people)
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "-o", "one.csv"]) == 0
    said = capsys.readouterr().err
    assert "30 cells begin with =, +, - or @" in said
    assert "baker" not in said
    assert "escaped_formulas" not in (people / "one.csv.manifest.json").read_text()
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "-o", "one.xlsx"]) == 0
    assert "cells begin with" not in capsys.readouterr().err


def test_escaped_stated_and_confirmed(people, monkeypatch, capsys):
    monkeypatch.chdir(people)
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "--escape-formulas", "-o", "one.csv"]) == 0
    assert "cells begin with" not in capsys.readouterr().err
    assert json.loads((people / "one.csv.manifest.json").read_text())["output"]["escaped_formulas"] is True
    assert set(cells(people / "one.csv")) == {"'=1+1", "cook", "-5", "'@home", "''=x", "'-baker", "'n", "+4e3"}
    assert run(AUDIT) == 0
    manifest, _ = read_manifest(people / "one.csv.manifest.json")
    assert set(read_released(people / "one.csv", manifest)["job"].values.to_pylist()) == set(JOBS)
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "--escape-formulas", "-o", "one.parquet"]) == 2
    away = ["release", "people.csv", "-m", "mondrian", *CONFIRMED, "--memory", "600MB", "--escape-formulas"]
    assert run([*away, "-o", "two.csv"]) == 0
    assert (people / "two.csv").read_bytes() == (people / "one.csv").read_bytes()


@pytest.mark.parametrize(
    ("was", "becomes"), [("'=1+1", "=1+1"), ("+4e3", "'+4e3"), ("'@home", "''@home"), ("'-baker", "-baker")]
)
def test_another_way_to_write_a_cell_is_refused(was, becomes, people, monkeypatch):
    monkeypatch.chdir(people)
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "--escape-formulas", "-o", "one.csv"]) == 0
    path, where = people / "one.csv", people / "one.csv.manifest.json"
    text = path.read_text().replace(f",{was},", f",{becomes},", 1)
    path.write_text(text)
    entries = json.loads(where.read_text())
    entries["output"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    entries["digest"] = manifest_digest(entries)
    where.write_text(text_of(entries))
    assert run(AUDIT) == 5


def test_a_manifest_that_does_not_say_it_is_refused(people, monkeypatch):
    monkeypatch.chdir(people)
    assert run(["release", "people.csv", "-m", "mondrian", *CONFIRMED, "--escape-formulas", "-o", "one.csv"]) == 0
    where = people / "one.csv.manifest.json"
    entries = json.loads(where.read_text())
    del entries["output"]["escaped_formulas"]
    entries["digest"] = manifest_digest(entries)
    where.write_text(text_of(entries))
    assert run(AUDIT) == 5


def test_a_project_says_it_too(people, monkeypatch):
    monkeypatch.chdir(people)
    lines = [
        '[data]\npath = "people.csv"\n[columns]',
        'sex = { role = "quasi-identifier" }',
        'job = { role = "other", confirmed = true }',
    ]
    lines += ['ill = { role = "target" }', '[release]\nmechanism = "mondrian"\nescape_formulas = true\n']
    Path("sfumato.toml").write_text("\n".join(lines))
    assert run(["release", "-o", "one.csv"]) == 0
    assert "'-baker" in cells(people / "one.csv")
    assert run(["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--project", "sfumato.toml"]) == 0


def test_python(tmp_path):
    frame = pa.table({"sex": list("fm") * 20, "job": JOBS * 5, "ill": list("ynnn") * 10})
    made = sfumato.release(frame, target="ill", k=5, roles={"job": "other"}, confirmed=["job"], escape_formulas=True)
    assert n_formulas(made.table) == 15
    published = sfumato.publish(made, tmp_path / "one.csv", original=frame)
    assert published.audit.verdict == "confirmed"
    assert audit_published(published.table_path, published.manifest_path).passed
    with pytest.raises(InvalidParameterError, match="CSV and TSV"):
        sfumato.publish(made, tmp_path / "one.parquet", original=frame)


def test_names_of_columns_are_never_altered(tmp_path):
    frame = pa.table({"sex": list("fm") * 20, "=job": list("ab") * 20, "ill": list("ynnn") * 10})
    made = sfumato.release(frame, target="ill", k=5, escape_formulas=True)
    with pytest.raises(SchemaError, match="rename"):
        sfumato.publish(made, tmp_path / "one.csv", original=frame)
