"""Misuse and odd corners of the commands: each refused in one line, with nothing of the user's lost."""

import csv
import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from manifest_texts import text_of
from sfumato.cli.main import run
from sfumato.manifest import manifest_digest

ROWS = [(f"p{i}", 20 + i % 40, "mf"[i % 2], "abc"[i % 3], i % 2, "yn"[i // 2 % 2]) for i in range(80)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table of 80 people."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "good.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["pid", "age", "sex", "city", "flag", "y"])
        writer.writerows(ROWS)
    return tmp_path


GREEDY = ["-m", "greedy-containment", "-p", "on_infeasible=skip"]
RELEASE = ["release", "good.csv", *GREEDY, "--target", "y", "--identifiers", "pid", "-k", "3"]


def only_line(capsys):
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def with_the_identifier_added(folder):
    """Tamper with care: the identifier joins the table and the manifest calls it other, hashes and digest fit."""
    manifest = json.loads((folder / "rel.csv.manifest.json").read_text())
    rows = (folder / "rel.csv").read_text().splitlines()
    ids = ["pid", *(row[0] for row in ROWS)]
    content = "".join(f"{row},{pid}\n" for row, pid in zip(rows, ids, strict=True)).encode()
    (folder / "tampered.csv").write_bytes(content)
    manifest["dropped_columns"].remove("pid")
    manifest["output"]["columns"].append({"name": "pid", "role": "other", "kind": "categorical"})
    manifest["output"]["sha256"] = hashlib.sha256(content).hexdigest()
    manifest["evidence"]["risk"]["unique_row_fraction"] = 1.0
    manifest["digest"] = manifest_digest(manifest)
    (folder / "tampered.json").write_text(text_of(manifest), encoding="utf-8")


@pytest.mark.slow
def test_audit_knows_identifiers_only_where_roles_are_given_and_says_so(folder, capsys):
    assert run(["init", "good.csv", "--identifiers", "pid", "--target", "y"]) == 0
    assert run([*RELEASE, "-o", "rel.csv", "--keep-order"]) == 0
    with_the_identifier_added(folder)
    common = ["audit", "tampered.csv", "--manifest", "tampered.json"]
    capsys.readouterr()

    assert run([*common, "--original", "good.csv", "--identifiers", "pid"]) == 5
    assert run([*common, "--project", "sfumato.toml"]) == 5
    capsys.readouterr()
    assert run([*common, "--original", "good.csv"]) == 8
    printed = capsys.readouterr().out
    assert "no guarantee covers 'y' (target), 'pid' (other)" in printed
    assert printed.splitlines()[-1].startswith("confirmed except: ")


def test_init_never_writes_to_the_data(folder, capsys):
    before = (folder / "good.csv").read_bytes()

    assert run(["init", "good.csv", "-o", "good.csv", "--force"]) == 3
    assert "is the input" in only_line(capsys)
    assert (folder / "good.csv").read_bytes() == before


def test_the_manifest_does_not_tell_values_that_were_not_released(folder):
    text = (folder / "good.csv").read_text().replace("p7,27,f,b", "p7,27,f,Huntington")
    (folder / "good.csv").write_text(text)
    assert run(["init", "good.csv", "--identifiers", "pid", "--target", "y"]) == 0
    project = (folder / "sfumato.toml").read_text()
    plan = '[binarize.columns]\ncity = { one_of = ["Huntington"], name = "hd" }\n'
    (folder / "sfumato.toml").write_text(project.replace("k = 5", "k = 3") + plan)

    assert run(["release", *GREEDY]) == 0
    assert "Huntington" not in (folder / "release.csv.manifest.json").read_text()


def test_a_data_file_is_released_by_a_project_file_that_is_there(folder, capsys):
    assert run(["release", "good.csv", "--project", "other.toml", "-o", "x.csv"]) == 3
    assert "other.toml" in only_line(capsys)


@pytest.mark.parametrize("kind", [stat.S_IFIFO, None], ids=["pipe", "broken link"])
def test_what_is_not_a_file_is_never_replaced(folder, kind):
    if kind:
        os.mkfifo(folder / "out.csv")
    else:
        (folder / "out.csv").symlink_to("nowhere")

    assert run([*RELEASE, "-o", "out.csv", "--force"]) == 3
    assert not (folder / "out.csv").is_file()


@pytest.mark.parametrize("output", ["-", ".", "out.json", "out.xls", "out", "missing/out.csv", "out.parquet.gz"])
def test_outputs_that_cannot_be_are_refused_before_any_work(folder, capsys, output):
    assert run([*RELEASE, "-o", output]) in (2, 3)
    only_line(capsys)
    assert os.listdir(folder) == ["good.csv"]


@pytest.mark.slow
def test_missing_tokens_of_a_column_hold_for_release_and_audit(folder):
    text = (folder / "good.csv").read_text().replace(",39,", ",999,")
    (folder / "good.csv").write_text(text)
    assert run(["init", "good.csv", "--identifiers", "pid", "--target", "y", "--other", "city"]) == 0
    project = (folder / "sfumato.toml").read_text()
    project = project.replace(
        '"age" = { role = "quasi-identifier", ', '"age" = { role = "quasi-identifier", missing = ["999"], '
    )
    project = project.replace('"city" = { role = "other", ', '"city" = { role = "other", missing = ["a"], ')
    (folder / "sfumato.toml").write_text(project.replace("k = 5", "k = 3"))

    assert run(["release", *GREEDY]) == 0
    common = ["audit", "release.csv", "--manifest", "release.csv.manifest.json"]
    assert run([*common, "--original", "good.csv"]) == 5  # what means missing in a column only the project says
    assert run([*common, "--project", "sfumato.toml", "--accept", "figures"]) == 0


def test_a_list_of_quasi_identifiers_is_taken_as_complete(folder, capsys):
    assert run(["audit", "good.csv", "--quasi-identifiers", "sex", "--json"]) == 0

    profile = json.loads(capsys.readouterr().out)
    assert profile["quasi_identifiers"] == ["sex"]
    assert profile["k"] == 40


def test_demo_spares_files_that_are_not_its_own(folder, capsys):
    (folder / "sfumato.toml").write_text("mine")

    assert run(["demo", "-o", "."]) == 3
    assert (folder / "sfumato.toml").read_text() == "mine"
    assert run(["demo", "-o", "good.csv"]) == 3
    assert "is a file, not a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_trouble_with_standard_output_is_not_called_a_bug(folder):
    code = "import sys; from sfumato.__main__ import main; main(sys.argv[1:])"
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, *RELEASE, "-o", "out.csv", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 3
    assert b"bug" not in done.stderr
    assert {"out.csv", "out.csv.manifest.json"} <= set(os.listdir(folder))


def test_a_binary_table_can_be_written_as_libsvm_with_its_names_in_the_manifest(folder):
    rows = "".join(f"{i % 2},{i // 2 % 2},{1 if i % 3 else -1}\n" for i in range(48))
    (folder / "bits.csv").write_text("fever,cough,label\n" + rows)

    assert run(["release", "bits.csv", *GREEDY, "--target", "label", "-k", "3", "-o", "out.svm"]) == 0
    assert run(["audit", "out.svm", "--manifest", "out.svm.manifest.json", "--original", "bits.csv"]) == 8


def test_identifiers_of_a_sparse_table_are_dropped(folder):
    (folder / "mail.svm").write_text("".join(f"{1 if i % 2 else -1} 1:1 {2 + i % 2}:1 9:1\n" for i in range(20)))
    (folder / "sfumato.toml").write_text(
        '[data]\npath = "mail.svm"\ndefault_role = "quasi-identifier"\n[columns]\ntarget = {role = "target"}\n'
        'f9 = {role = "identifier"}\n[release]\nmechanism = "greedy-containment"\n[release.parameters]\nk = 2\n'
    )

    assert run(["release", "-o", "out.csv"]) == 0
    assert "f9" not in (folder / "out.csv").read_text().splitlines()[0].split(",")


def test_a_search_that_stops_at_once_names_the_other_way(folder, capsys):
    rows = "".join(f"{int(i > 0)},{int(i % 40 == 39)},{i % 2}\n" for i in range(80))
    (folder / "stop.csv").write_text("common,rare,y\n" + rows)

    greedy = ["-m", "greedy-containment", "-p", "criterion=class_contrast"]
    code = run(["release", "stop.csv", *greedy, "--target", "y", "-k", "60", "-o", "x.csv"])
    assert code == 4
    assert "on_infeasible=skip" in only_line(capsys)


def test_columns_that_mix_numbers_with_a_few_texts_are_taken_and_explained_by_flags_as_by_init(folder, capsys):
    text = (folder / "good.csv").read_text().replace("p7,27,", "p7,young,")
    (folder / "good.csv").write_text(text)

    assert run([*RELEASE, "-o", "x.csv"]) == 0
    err = capsys.readouterr().err
    assert "guessed 'age' = quasi-identifier" in err
    assert "rows are numbers, kind categorical because of the others" in err
    assert "young" not in err
    assert run(["init", "good.csv"]) == 0
    assert "rows are numbers" in (folder / "sfumato.toml").read_text()


def test_one_class_is_named_with_file_and_column(folder, capsys):
    (folder / "one.csv").write_text("a,y\n" + "1,same\n0,same\n" * 4)

    assert run(["release", "one.csv", *GREEDY, "--target", "y", "-o", "x.csv", "-k", "2"]) == 3
    line = only_line(capsys)
    assert "'y'" in line
    assert "one.csv" in line


def test_mistakes_in_a_project_name_the_project_file(folder, capsys):
    run(["init", "good.csv"])
    text = (folder / "sfumato.toml").read_text()
    (folder / "sfumato.toml").write_text(text.replace('"age"', '"agge"'))
    capsys.readouterr()

    assert run(["release"]) == 3
    line = only_line(capsys)
    assert "sfumato.toml" in line
    assert "did you mean 'age'" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["output"]["columns"][0].update(name=5),
        lambda m: m["output"].update(format="x"),
        lambda m: m["evidence"]["risk"].update(containment_level=10**400),
        lambda m: m.update(missing={"tokens": 3}),
    ],
    ids=["name", "format", "huge number", "tokens"],
)
def test_malformed_manifests_are_refused(folder, capsys, change):
    run([*RELEASE, "-o", "rel.csv"])
    manifest = json.loads((folder / "rel.csv.manifest.json").read_text())
    change(manifest)
    (folder / "m.json").write_text(text_of(manifest), encoding="utf-8")
    capsys.readouterr()

    assert run(["audit", "rel.csv", "--manifest", "m.json"]) == 5
    assert "bug" not in capsys.readouterr().err


def test_names_with_commas_can_be_given_in_quotes(folder, capsys):
    (folder / "odd.csv").write_text('"a,b",c,y\n' + "1,0,p\n0,1,q\n1,1,q\n0,0,p\n" * 3)

    assert run(["audit", "odd.csv", "--quasi-identifiers", '"a,b",c', "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quasi_identifiers"] == ["a,b", "c"]


@pytest.mark.slow
def test_audit_reads_a_release_from_standard_input(folder, monkeypatch):
    import io

    run([*RELEASE, "-o", "rel.csv"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "rel.csv").read_bytes())))

    assert run(["audit", "-", "--manifest", "rel.csv.manifest.json"]) == 8
