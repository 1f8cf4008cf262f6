"""The release job: the same bytes as command line and Python, and both tables beside each other without a lie."""

import csv
import hashlib
import json
import os
import shutil
import stat
import tomllib
import zipfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, OutputError, PrivacyNotAchievableError
from sfumato.mechanisms.registry import build_mechanism
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import load_project
from sfumato.publishing.propose import make_release
from sfumato.report import measured
from sfumato.table.io.formats import writable_format_of
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from sfumato.web.column_store import STORE_NAME, ColumnStore
from sfumato.web.tasks import columns, goal, hierarchies, opening
from sfumato.web.tasks import release as tasks
from sfumato.web.tasks.release import column_records, rows_beside, tables_beside
from shell_lines import run_line, run_script
from web.release_pages import NAMES, is_same, make, write_project
from web.standing_in import Told

MECHANISMS = {
    "mondrian": "k = 5",
    "greedy-containment": "k = 5",
    "slicing": "k = 4",
    "random-flipping": "",
}
FILES = ("table", "manifest", "report")
AGE = "age;band;any\n" + "".join(f"{age};{age // 10 * 10}s;*\n" for age in range(130))


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module", params=MECHANISMS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    project = write_project(folder, request.param, MECHANISMS[request.param])
    return project, folder / "job", make(project, folder / "job")


def test_files_are_listed_with_their_size_and_hash(made):
    _, folder, result = made
    assert set(result["files"]) == {*FILES, "project"}
    for file in result["files"].values():
        content = (folder / file["name"]).read_bytes()
        assert file["size"] == len(content)
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
    manifest = json.loads((folder / result["files"]["manifest"]["name"]).read_text())
    assert manifest["output"]["sha256"] == result["files"]["table"]["sha256"]
    assert result["files"]["project"]["sha256"] not in json.dumps(manifest)


def test_command_and_python_give_the_same_bytes(made, tmp_path):
    project, folder, result = made
    for way, run in (("command", run_line), ("python", run_script)):
        copy = tmp_path / way
        shutil.copytree(project.parent, copy, ignore=shutil.ignore_patterns("job"))
        run(result[way], copy)
        for what in ("table", "manifest"):
            name = result["files"][what]["name"]
            assert is_same((copy / name).read_bytes(), (folder / name).read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(("quick", "output"), [(False, "release.csv"), (True, "-x.csv"), (True, "out/kept.csv")])
def test_report_command_gives_the_same_bytes(tmp_path, quick, output):
    (tmp_path / "project" / "out").mkdir(parents=True)
    project = write_project(tmp_path / "project", "mondrian", "k = 5", n_rows=80, output=output)
    result = make(project, tmp_path / "job", quick=quick)
    assert ("not_measured" in result["summary"]["utility"]) == quick
    for line in (result["command"], result["report_command"]):
        run_line(line, project.parent)
    beside = (project.parent / output).parent
    for what in FILES:
        name = result["files"][what]["name"]
        assert is_same((beside / name).read_bytes(), (tmp_path / "job" / name).read_bytes())


def test_audited_files_are_there_before_risk_is_measured_and_both_before_utility(tmp_path, monkeypatch):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    folder, seen = tmp_path / "job", []

    class Looking(Told):
        def first_result(self):
            seen.append(json.loads((folder / "first-result.json").read_text()))
            assert_listed(folder, seen[-1])

    def utility(*_, **__):
        assert len(seen) == 2, "utility is measured last"
        raise InvalidParameterError("n_folds", "got 5", allowed="less")

    attack = measured.Attacked

    def risk(*given, **more):
        assert len(seen) == 1, "the audited files come before risk"
        return attack(*given, **more)

    monkeypatch.setattr(measured, "evaluate", utility)
    monkeypatch.setattr(measured, "Attacked", risk)
    folder.mkdir()
    last = tasks.make(folder, Looking(), project=str(project))
    audited, first = seen
    for result in (audited, first, last):  # also afterwards: it is what stays of a job that is stopped
        assert_listed(folder, result)
        assert result["files"]["table"] == last["files"]["table"]
    assert [result["to_come"] for result in (audited, first, last)] == [["risk", "utility"], ["utility"], []]
    assert "not_measured" in audited["summary"]["risk"]
    assert first["summary"]["risk"] == last["summary"]["risk"]
    said = [result["summary"]["verdict"]["headed"]["Re-identified"] for result in (audited, first, last)]
    assert said[0] != said[1] == said[2]
    assert "--quick" in first["report_command"]
    assert "--quick" not in last["report_command"]


def assert_listed(folder, result):
    for file in result["files"].values():
        assert file["sha256"] == hashlib.sha256((folder / file["name"]).read_bytes()).hexdigest()
    assert all((folder / f"{picture['name']}.svg").is_file() for picture in result["pictures"])


def test_every_picture_is_a_file_with_words(made):
    _, folder, result = made
    assert {picture["group"] for picture in result["pictures"]} <= {"utility", "risk", "done"}
    assert "class-sizes" in [picture["name"] for picture in result["pictures"]]
    for picture in result["pictures"]:
        assert picture["title"]
        assert picture["alt"]
        assert b"<svg" in (folder / f"{picture['name']}.svg").read_bytes()


def test_counts_before_and_after_are_those_of_the_files(made):
    project, folder, _ = made
    original, released = rows_of(project.parent / "stays.csv"), rows_of(folder / "release.csv")
    store = ColumnStore(folder / STORE_NAME)
    seen = set()
    for name in NAMES:
        record = store.named(name)
        if len({row[name] for row in original}) <= 12:
            assert bars(record["before"]) == Counter(row[name] for row in original)
        for side in record["after"]:
            seen.add(side["name"])
            if len({row[side["name"]] for row in released}) <= 12:
                assert bars(side) == Counter(row[side["name"]] for row in released)
    added = [store.numbered([number])[0] for number in range(len(NAMES) + 1, len(store) + 1)]
    seen |= {side["name"] for record in added for side in record["after"]}
    assert seen == set(released[0])
    assert all(record["before"] is None for record in added)


def bars(side):
    found = Counter(dict(zip(side["labels"], side["counts"], strict=True)))
    return +(found + Counter({"": side["n_missing"]}))


def test_rows_beside_each_other_are_those_of_the_files(made):
    project, folder, result = made
    original, released = rows_of(project.parent / "stays.csv"), rows_of(folder / "release.csv")
    store, shown = ColumnStore(folder / STORE_NAME), {}
    for name in NAMES:
        record = store.named(name)
        assert [cell or "" for cell in record["before"]["cells"]] == [row[name] for row in original]
        for side in record["after"]:
            there = [cell for row, cell in enumerate(side["cells"]) if row not in result["rows"]["suppressed"]]
            shown[side["name"]] = [cell or "" for cell in there]
    names = [name for name in released[0] if name in shown]  # a number of buckets is no original column
    rows = zip(*(shown[name] for name in names), strict=True)  # each beside an original that it fits: files are sorted
    assert sorted(rows) == sorted(tuple(row[name] for name in names) for row in released)


def test_moved_values_are_not_shown_as_the_rows_own(tmp_path):
    project = write_project(tmp_path, "slicing", "k = 4", n_rows=60)
    rows = make(project, tmp_path / "job")["rows"]
    assert not rows["is_matched"]
    assert "moved" in rows["note"]
    assert rows["suppressed"] == []


def test_rows_that_were_drawn_anew_belong_to_nobody(tmp_path):
    pytest.importorskip("opendp")
    binarize = '[binarize]\nunlisted = "drop"\n[binarize.columns]\nsmoker = "as-is"\ndiabetes = "as-is"'
    project = write_project(tmp_path, "laplace-dp", f"n_features = 2\nepsilon = 2.0\n{binarize}")
    result = make(project, tmp_path / "job")
    assert not result["rows"]["is_matched"]
    assert "drawn at random" in result["rows"]["note"]
    assert any("draws new noise" in note for note in result["notes"])


def test_suppressed_rows_are_those_that_the_release_lacks(tmp_path):
    (tmp_path / "age.csv").write_text(AGE, encoding="utf-8")
    more = 'k = 4\nmax_suppressed_fraction = 0.3\n[release.parameters.hierarchies]\nage = "age.csv"'
    project = write_project(tmp_path, "global-recoding", more)
    result = make(project, tmp_path / "job")
    released, suppressed = rows_of(tmp_path / "job" / "release.csv"), result["rows"]["suppressed"]
    assert suppressed
    manifest = json.loads((tmp_path / "job" / "release.csv.manifest.json").read_text())
    is_proven = next(iter(manifest["evidence"].values()))["is_proven_optimal"]
    assert bool(result["notes"]) == (not is_proven)
    assert result["rows"]["n_original"] - len(suppressed) == len(released)
    sexes = ColumnStore(tmp_path / "job" / STORE_NAME).named("readmitted")
    kept = [cell for row, cell in enumerate(sexes["before"]["cells"]) if row not in suppressed]
    assert sorted(kept) == sorted(row["readmitted"] for row in released)
    assert all(sexes["after"][0]["cells"][row] is None for row in suppressed)


def test_project_comes_with_its_hierarchies_and_runs_elsewhere(tmp_path):
    (tmp_path / "here" / "hierarchies").mkdir(parents=True)
    (tmp_path / "here" / "hierarchies" / "age.csv").write_text(AGE, encoding="utf-8")
    more = 'k = 4\nmax_suppressed_fraction = 0.3\n[release.parameters.hierarchies]\nage = "hierarchies/age.csv"'
    project = write_project(tmp_path / "here", "global-recoding", more)
    result = make(project, tmp_path / "job")
    assert [entry["what"] for entry in result["inputs"]] == ["project file", "data", "hierarchy"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(tmp_path / "job" / result["files"]["project"]["name"]) as archive:
        assert sorted(archive.namelist()) == ["hierarchies/age.csv", "sfumato.toml"]
        archive.extractall(elsewhere)
    shutil.copy(tmp_path / "here" / "stays.csv", elsewhere)
    assert make(elsewhere / "sfumato.toml", tmp_path / "again")["files"]["table"] == result["files"]["table"]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("stays.csv", "is the input"),
        ("link.csv", "is the input"),
        ("a/b.csv", "does not exist"),
        ("x", "suffix"),
    ],
)
def test_an_output_that_cannot_be_is_refused_before_the_run(tmp_path, output, words):
    (tmp_path / "job").mkdir()
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=40, output=output)
    (tmp_path / "link.csv").symlink_to(tmp_path / "stays.csv")
    tell = Told()
    with pytest.raises((OutputError, InvalidParameterError), match=words):
        tasks.make(tmp_path / "job", tell, project=str(project), quick=True)
    assert not tell.steps
    assert not list((tmp_path / "job").iterdir())


def test_an_output_that_exists_is_no_hindrance(tmp_path):
    (tmp_path / "release.csv").write_text("mine")
    make(write_project(tmp_path, "mondrian", "k = 5", n_rows=40), tmp_path / "job")
    assert (tmp_path / "release.csv").read_text() == "mine"


@pytest.mark.parametrize("has_hierarchy", [False, True])
def test_project_to_download_is_the_one_that_was_loaded(tmp_path, monkeypatch, has_hierarchy):
    (tmp_path / "age.csv").write_text(AGE, encoding="utf-8")
    more = 'k = 2\n[release.parameters.hierarchies]\nage = "age.csv"' if has_hierarchy else "k = 5"
    project = write_project(tmp_path, "gain-recoding" if has_hierarchy else "mondrian", more, n_rows=40)
    loaded = project.read_bytes()
    read = tasks.project_bytes

    def read_and_edited(path):
        raw = read(path)
        path.write_bytes(raw + b"# later\n")
        return raw

    monkeypatch.setattr(tasks, "project_bytes", read_and_edited)
    result = make(project, tmp_path / "job")
    kept = tmp_path / "job" / result["files"]["project"]["name"]
    found = zipfile.ZipFile(kept).read("sfumato.toml") if has_hierarchy else kept.read_bytes()
    assert found == loaded
    assert has_hierarchy or result["files"]["project"]["sha256"] == hashlib.sha256(loaded).hexdigest()


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_phase_is_told_and_the_audit_is_logged(tmp_path, quick):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    (tmp_path / "job").mkdir()
    tell = Told()
    result = tasks.make(tmp_path / "job", tell, project=str(project), quick=quick)
    assert f"The audit ends in: {result['summary']['audit']['last_line']}." in tell.lines
    phases = [what for done, total, what in tell.steps if (done, total) == (0, 0)]
    assert phases == [
        "releasing by mondrian",
        "writing and auditing the files",
        "reading the files back as a recipient would",
        "drawing pictures and comparing both tables",
        "measuring risk",
        *([] if quick else ["measuring utility"]),
    ]
    begun = [tell.steps.index((0, 0, phase)) for phase in phases[4:]]
    for first, last in pairwise([*begun, len(tell.steps)]):
        measuring = tell.steps[first:last]
        assert any(total > 0 for _, total, _ in measuring), "the progress of the measuring is not passed on"


def test_what_cannot_be_promised_raises_and_writes_no_table(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5000")
    (tmp_path / "job").mkdir()
    with pytest.raises(PrivacyNotAchievableError):
        tasks.make(tmp_path / "job", Told(), project=str(project))
    assert not list((tmp_path / "job").glob("release.csv*"))


def test_nothing_told_holds_a_cell(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=40)
    tell = Told()
    (tmp_path / "job").mkdir()
    tasks.make(tmp_path / "job", tell, project=str(project), quick=True)
    told = " ".join(tell.lines) + " ".join(what for _, _, what in tell.steps)
    assert tell.lines
    assert tell.steps
    assert not any(row["name"] in told for row in rows_of(tmp_path / "stays.csv"))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("save")
    project = write_project(folder, "mondrian", "k = 5", n_rows=60)
    return folder / "job", make(project, folder / "job")


class TestSave:
    def save(self, job, target, **more):
        folder, result = job
        names = {what: result["files"][what]["name"] for what in FILES}
        data = next(entry["path"] for entry in result["inputs"] if entry["what"] == "data")
        return tasks.save(folder, Told(), made_in=str(folder), files=names, target=str(target), data=data, **more)

    def test_writes_the_same_bytes_where_the_project_says(self, job, tmp_path):
        saved = self.save(job, tmp_path / "release.csv")
        assert saved == {"folder": str(tmp_path), "names": ["release.csv.manifest.json", "report.html", "release.csv"]}
        for what in FILES:
            name = job[1]["files"][what]["name"]
            assert is_same((tmp_path / name).read_bytes(), (job[0] / name).read_bytes())

    @pytest.mark.parametrize("name", ["release.csv", "report.html"])
    def test_replaces_nothing_unasked(self, job, tmp_path, name):
        (tmp_path / name).write_text("mine")
        with pytest.raises(OutputError, match="Replace files that exist"):
            self.save(job, tmp_path / "release.csv")
        assert (tmp_path / name).read_text() == "mine"
        assert os.listdir(tmp_path) == [name]
        self.save(job, tmp_path / "release.csv", replace=True)
        assert is_same((tmp_path / name).read_bytes(), (job[0] / name).read_bytes())

    def test_never_writes_over_the_data(self, job):
        data = job[0].parent / "stays.csv"
        content = data.read_bytes()
        with pytest.raises(OutputError, match="is the input"):
            self.save(job, data, replace=True)
        assert is_same(data.read_bytes(), content)

    def test_a_folder_that_is_not_there_is_said_in_words(self, job, tmp_path):
        with pytest.raises(OutputError, match="its folder does not exist"):
            self.save(job, tmp_path / "nowhere" / "release.csv")


def test_set_output_changes_the_project_file_alone(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5")
    before = load_project(project)
    tasks.set_output(tmp_path, Told(), project=str(project), output="release.parquet")
    after = load_project(project)
    assert after.output == tmp_path / "release.parquet"
    assert (after.mechanism, dict(after.parameters), after.columns) == (
        before.mechanism,
        dict(before.parameters),
        before.columns,
    )
    assert "# why" in project.read_text(encoding="utf-8")


def test_set_output_refuses_a_format_that_needs_no_escapes(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5")
    edit_project(project, ProjectChanges(escape_formulas=True))
    before = project.read_bytes()
    with pytest.raises(InvalidParameterError, match="used with CSV and TSV files"):
        tasks.set_output(tmp_path, Told(), project=str(project), output="release.parquet")
    assert project.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "mechanism", "cells"),
    [
        ("release.csv", "global-recoding", "values"),
        ("release.jsonl", "global-recoding", "ranges"),
        ("release.tsv", "mondrian", "draws"),
    ],
)
def test_all_settings_of_the_page_are_in_the_project_file_and_a_command_makes_the_same(
    tmp_path, output, mechanism, cells
):
    """Formats, preparations, a ready hierarchy, typical values and escapes, set by the tasks of the page."""
    work, job = tmp_path / "work", tmp_path / "job"
    work.mkdir()
    rows = (
        f"=c{i},{1950 + i % 40}-0{1 + i % 9}-1{i % 9},0{1 + i % 9}/0{1 + i % 7}/2021,"
        f'"{1 + i % 8}.{100 + i},50",{("FR", "DE", "BR", "JP")[i % 4]},{"yes" if i % 3 else "no"}\n'
        for i in range(1, 121)
    )
    (work / "visits.csv").write_text("case,born,visit,paid,country,ill\n" + "".join(rows), encoding="utf-8")
    project = {"project": str(work / "sfumato.toml")}
    opening.open_path(job, Told(), **project, data=str(work / "visits.csv"))
    roles = {"case": "other", "born": "quasi-identifier", "visit": "quasi-identifier", "paid": "sensitive"}
    for name, role in roles.items():
        columns.set_roles(job, Told(), **project, names=[name], role=role, kinds={})
    columns.confirm(job, Told(), **project, name="case", kind="categorical", confirmed=True)
    columns.set_format(job, Told(), **project, name="visit", format="MM/DD/YYYY")
    prepare = {
        "paid": {"top": "5000", "round": "500"},
        "born": {"age_at": "2026-01-01", "top": "70"},
        "visit": {"shift_days": "9"},
    }
    for name, written in prepare.items():
        columns.set_preparation(job, Told(), **project, name=name, kind="", written=written)
    ready = {"ready": "country", "unknown": "refuse"}
    hierarchies.build(job, Told(), **project, name="country", method="ready", settings=ready, use=True)
    is_text = not output.endswith(".jsonl")
    file = {"cells": cells, "escape_formulas": is_text, "output": output}
    goal.choose(job, Told(), **project, mechanism=mechanism, parameters={"k": 5}, **file)
    if cells == "draws":  # how many rows come out as they were depends on the key, which is drawn; it is not asked here
        text = (work / "sfumato.toml").read_text(encoding="utf-8")
        limited = text.replace('cells = "draws"', 'cells = "draws"\nmax_copies = 1.0')
        (work / "sfumato.toml").write_text(limited, encoding="utf-8")

    result = make(work / "sfumato.toml", tmp_path / "made")

    described = tomllib.loads((work / "sfumato.toml").read_text(encoding="utf-8"))
    assert described["columns"]["visit"]["date_format"] == "MM/DD/YYYY"
    assert described["columns"]["paid"]["prepare"] == {"top": 5000, "round": 500}
    assert described["release"]["cells"] == cells
    manifest = json.loads((tmp_path / "made" / f"{output}.manifest.json").read_text())
    assert [one["operation"] for one in manifest["input"]["prepared"]] == ["age", "top", "shift", "top", "round"]
    assert manifest["output"].get("escaped_formulas", False) == is_text
    elsewhere = tmp_path / "elsewhere"
    with zipfile.ZipFile(tmp_path / "made" / result["files"]["project"]["name"]) as kept:
        kept.extractall(elsewhere)
    for name in ("visits.csv", "sfumato.key"):
        shutil.copy(work / name, elsewhere / name)
    run_line(result["command"], elsewhere)
    for what in ("table", "manifest"):
        name = result["files"][what]["name"]
        assert is_same((elsewhere / name).read_bytes(), (tmp_path / "made" / name).read_bytes())


ODD = ["release.sav", "release.dta", "release.xpt", "release.jsonl", "release.jsonl.gz", "release.zsav"]


@pytest.mark.parametrize("name", ["stays.sav", "stays.dta", "stays.jsonl", "stays.xlsx"])
def test_what_is_uploaded_can_be_released_in_its_own_format_or_as_csv(tmp_path, name):
    with (tmp_path / name).open("w+b") as file:
        write_table(admissions(n_rows=80).keep(NAMES[1:]), file, writable_format_of(name))
    project = str(tmp_path / "sfumato.toml")
    opened = opening.open_path(tmp_path, Told(), project=project, data=str(tmp_path / name))
    assert (opened["n_rows"], opened["n_columns"]) == (80, len(NAMES) - 1)
    tables = {}
    for output in (f"release{Path(name).suffix}", "release.csv"):
        goal.choose(tmp_path, Told(), project=project, mechanism="mondrian", parameters={"k": 5}, output=output)
        result = make(tmp_path / "sfumato.toml", tmp_path / f"job-{output}")
        assert result["files"]["table"]["name"] == output
        tables[output] = read_table(tmp_path / f"job-{output}" / output).to_arrow()
    one, other = tables.values()
    assert one.column_names == other.column_names
    assert one.num_rows == other.num_rows == 80


@pytest.mark.parametrize("output", ["release.parquet", "release.xlsx", "release.csv.gz", "out/kept.tsv", *ODD])
def test_other_formats_and_folders(tmp_path, output):
    (tmp_path / output).parent.mkdir(exist_ok=True)
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=40, output=output)
    result = make(project, tmp_path / "job")
    assert result["files"]["table"]["name"] == Path(output).name
    assert result["output"] == output
    assert result["target"] == str(tmp_path / output)


def test_wide_sparse_tables_show_fewer_rows_and_the_same_cells(tmp_path):
    shared = [set(range(1 + row % 2, 31, 1 + row % 2)) for row in range(120)]
    ones = [shared[row] | set(range(31 + 183 * row, 31 + 183 * (row + 1))) for row in range(120)]
    n_columns = 30 + 183 * 120
    lines = [f"{1 if row % 3 else -1} " + " ".join(f"{f}:1" for f in sorted(ones[row])) for row in range(120)]
    (tmp_path / "wide.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(tmp_path / "wide.svm")
    release = make_release(table, build_mechanism("greedy-containment", {"k": 3}))
    tables = tables_beside(table, release)
    rows = rows_beside(tables)
    records = list(column_records(tables, rows, {}))
    assert 50 <= rows.n_original < 120
    assert rows.n_original == 2_000_000 // (n_columns + 1 + len(tables.released.names))
    released = set(tables.released.names)
    for record in records[:n_columns:997]:
        number = int(record["name"].removeprefix("f"))
        has_one = [number in of_row for of_row in ones]
        assert record["before"]["counts"] == [has_one.count(False), has_one.count(True)]
        assert record["before"]["cells"] == ["1" if one else "0" for one in has_one[: rows.n_original]]
        assert record["is_released"] == (record["name"] in released)
    assert {record["name"] for record in records if record["is_released"]} == released
    for record in (record for record in records if record["is_released"]):
        assert record["after"][0]["cells"] == record["before"]["cells"]


def test_files_of_a_job_are_not_made_readable_for_others(tmp_path):
    """The job's folder is private; the task itself changes no mode."""
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=40)
    old = os.umask(0o077)
    try:
        make(project, tmp_path / "job")
    finally:
        os.umask(old)
    made = list((tmp_path / "job").rglob("*"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made if path.is_dir()} == {0o700}
