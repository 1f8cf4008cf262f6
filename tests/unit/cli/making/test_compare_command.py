"""``sfumato compare`` as a user types it."""

import csv
import json
import os
import signal
import subprocess
import sys

import pytest

from sfumato.cli.main import run
from sfumato.cli.making import compare as command_module
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.compare import table_fingerprint
from sfumato.table.io.write import write_table
from waiting import until

NAMES = ["age", "sex", "insurance", "discharge_diagnosis", "readmitted"]
PROJECT = """
[data]
path = "stays.csv"
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier", kind = "categorical" }
insurance = { role = "quasi-identifier", kind = "categorical" }
discharge_diagnosis = { role = "sensitive", kind = "categorical" }
readmitted = { role = "target", kind = "categorical" }
[compare]
weights = [0.5, 0.3, 0.2]
classifiers = ["naive-bayes"]
[compare.grid.mondrian]
k = [3, 6]
[compare.grid.anatomy]
l = 2
"""
QUICK = ["--folds", "2", "--workers", "2"]
COMPARE = ["compare", *QUICK]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a small table and its description."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(NAMES), file, "csv")
    (tmp_path / "sfumato.toml").write_text(PROJECT)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Run the project's comparison once; tests that only look at it take its points from here."""
    folder = tmp_path_factory.mktemp("finished")
    with (folder / "stays.csv").open("wb") as file:
        write_table(admissions(n_rows=200).keep(NAMES), file, "csv")
    (folder / "sfumato.toml").write_text(PROJECT)
    assert run([*COMPARE, "--project", str(folder / "sfumato.toml"), "--run-folder", str(folder / "runs")]) == 0
    return folder


def compared(finished, capsys, *arguments):
    capsys.readouterr()
    given = ["--project", str(finished / "sfumato.toml"), "--run-folder", str(finished / "runs")]
    code = run([*COMPARE, *given, *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.slow
def test_the_table_shows_every_point_and_recommends_one(finished, capsys):
    code, out, _ = compared(finished, capsys)

    lines = out.splitlines()
    assert code == 0
    assert lines[0].split()[:3] == ["mechanism", "settings", "promises"]
    assert lines[1].startswith("k-anonymity: every row equals at least")
    assert [line.split()[0] for line in lines[2:4] if "mondrian" in line].count(">") == 1
    assert lines[4].startswith("buckets: ")
    assert "anatomy" in lines[5]
    assert lines[6].split()[0] == "(original)"
    assert lines[-1].startswith("Recommended: mondrian k=6. It is the only finished release that promises k >= 5: AUC")
    assert "fitted on the training rows of each fold alone" in out
    text = (finished / "stays.csv").read_text()
    cells = {cell for row in csv.reader(text.splitlines()) for cell in row if not cell.isdigit()}
    assert not (cells - set(NAMES)) & set(out.split())


@pytest.mark.slow
def test_json_holds_everything(finished, capsys):
    code, out, _ = compared(finished, capsys, "--json")

    found = json.loads(out)
    assert code == 0
    assert found["weights"] == {"performance": 0.5, "privacy": 0.3, "size": 0.2}
    assert found["measuring"]["classifiers"] == ["naive-bayes"]
    assert {(p["mechanism"], p["status"]) for p in found["points"]} == {("mondrian", "done"), ("anatomy", "done")}
    assert all(p["risk"]["headline"] and p["utility"]["classifiers"] for p in found["points"])
    assert found["recommended"]["parameters"] == {"k": 6}
    assert found["original"]["mechanism"] == "original"


@pytest.mark.slow
def test_files_are_written_and_not_replaced_unasked(finished, folder, capsys):
    assert compared(finished, capsys, "-o", "c.csv", "--plot", "f.svg")[0] == 0
    assert compared(finished, capsys, "-o", "c.json")[0] == 0

    rows = list(csv.DictReader((folder / "c.csv").read_text().splitlines()))
    assert [row["mechanism"] for row in rows].count("mondrian") == 2
    assert "<svg" in (folder / "f.svg").read_text()[:2000]
    assert len(json.loads((folder / "c.json").read_text())["points"]) == 3
    before = (folder / "c.csv").read_bytes()
    for again in (["-o", "c.csv"], ["--plot", "f.svg"]):
        code, out, err = compared(finished, capsys, *again)
        assert (code, out) == (3, "")
        assert "exists already" in err
    assert compared(finished, capsys, "-o", "c.csv", "--force")[0] == 0
    assert (folder / "c.csv").read_bytes() == before


@pytest.mark.slow
def test_a_guarantee_filters_and_one_that_nothing_meets_ends_with_four(finished, capsys):
    code, out, _ = compared(finished, capsys, "--guarantee", "bucket-diversity=2")
    assert code == 0
    assert "Recommended: anatomy l=2" in out

    code, out, err = compared(finished, capsys, "--guarantee", "k=50")
    assert code == 4
    assert "No release is recommended" in out
    assert "k >= 50; the best level reached is 6" in err
    assert "mondrian k=6 reaches 6" in err


@pytest.mark.slow
def test_weights_change_the_ranking(finished, capsys):
    _, by_utility, _ = compared(finished, capsys, "--weights", "1,0,0", "--json")
    _, by_privacy, _ = compared(finished, capsys, "--weights", "0,1,0", "--json")

    utility, risk = ([p["headline"] for p in json.loads(text)["points"]] for text in (by_utility, by_privacy))
    assert [p["utility"] for p in utility] == sorted((p["utility"] for p in utility), reverse=True)
    assert [p["risk"] for p in risk] == sorted(p["risk"] for p in risk)


def test_a_dry_run_lists_the_points_and_makes_nothing(folder, capsys):
    assert run(["compare", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["mondrian k=3", "mondrian k=6", "anatomy l=2", "3 points"]

    assert run(["compare", "stays.csv", "--target", "readmitted", "--dry-run", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert all(point["parameters"]["k"] >= 5 for point in listed["points"])
    assert "laplace-dp" in listed["left_out"]
    dry = ["compare", "stays.csv", "--target", "readmitted", "--dry-run"]
    assert run([*dry, "-m", "gain-recoding", "--guarantee", "k=25"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "gain-recoding k=25"
    assert run([*dry, "--sensitive", "discharge_diagnosis"]) == 0
    with_l = capsys.readouterr().out
    assert "mondrian k=5 split=gain l=2" in with_l.splitlines()
    assert "on request: --also KIND, which is one of kk-anonymity, containment" in with_l
    assert run([*dry, "--sensitive", "discharge_diagnosis", "--no-l", "--also", "buckets"]) == 0
    without_l = capsys.readouterr().out.splitlines()
    assert {"mondrian k=5 split=gain", "anatomy l=2"} <= set(without_l)
    assert not (folder / "sfumato-compare").exists()


@pytest.mark.slow
def test_infeasible_and_slow_points_are_marked_rows(folder, capsys):
    grid = PROJECT.replace("k = [3, 6]", "k = [3, 1000]").replace("[compare.grid.anatomy]\nl = 2\n", "")
    (folder / "sfumato.toml").write_text(grid)
    assert run([*COMPARE, "--guarantee", "k=3"]) == 0
    out = capsys.readouterr().out
    assert "infeasible: mondrian k=1000: cannot be met" in out
    assert "Recommended: mondrian k=3" in out

    assert run([*COMPARE, "--timeout", "0.001", "--fresh"]) == 4
    assert "timed out: mondrian k=3: took longer than 0.001 seconds" in capsys.readouterr().out


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(folder):
    many = PROJECT.replace("k = [3, 6]", "k = [3, 4, 5, 6, 7, 8]")
    (folder / "sfumato.toml").write_text(many)
    entry = "from sfumato.__main__ import main; main()"
    command = [sys.executable, "-c", entry, "compare", "--folds", "2", "--workers", "1"]
    first = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        runs = folder / "sfumato-compare"
        until(lambda: (runs.is_dir() and len(list(runs.glob("*.json"))) >= 2) or first.poll() is not None)
        assert first.poll() is None
        first.send_signal(signal.SIGKILL)
    finally:
        first.kill()
        first.wait()
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}

    assert 2 <= len(kept) < 8
    assert subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300).returncode == 0
    assert len(list(runs.glob("*.json"))) == 8
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals")
def test_an_order_to_end_shows_and_writes_what_is_finished(folder):
    """As a scheduler or the command ``timeout`` ends a run."""
    many = PROJECT.replace("k = [3, 6]", "k = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]")
    (folder / "sfumato.toml").write_text(many)
    entry = "from sfumato.__main__ import main; main()"
    command = [sys.executable, "-c", entry, "compare", "--folds", "2", "--workers", "1", "-o", "c.csv"]
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        seen = next(line for line in started.stderr if line.startswith("mondrian k=3: AUC"))
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=120)
    finally:
        started.kill()
        started.wait()

    assert started.returncode == 130, err
    assert " s\n" in seen
    assert "not run (the comparison was interrupted): " in out
    assert "finished points are kept in sfumato-compare" in err
    status = {row["parameters"]: row["status"] for row in csv.DictReader((folder / "c.csv").read_text().splitlines())}
    assert status['{"k": 3}'] == "done"
    assert status['{"k": 14}'] == "not run"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals")
def test_an_interrupt_says_that_points_are_kept(folder, monkeypatch, capsys):
    def interrupted(point):
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.evaluation.compare.measure_in_processes", lambda *_, finished, **__: interrupted(None))
    assert run([*COMPARE, "-o", "c.csv"]) == 130
    shown = capsys.readouterr()
    assert "finished points are kept in sfumato-compare" in shown.err
    assert "nothing was left behind" not in shown.err
    assert "not run (the comparison was interrupted): mondrian k=3; mondrian k=6; anatomy l=2" in shown.out
    rows = list(csv.DictReader((folder / "c.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["not run"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["stays.csv", "--project", "sfumato.toml"], 2, "one at a time"),
        (["--weights", "1,2"], 2, "three numbers"),
        (["--weights", "1,two,3"], 2, "three numbers"),
        (["--weights", "-1,1,1"], 2, "weights must be"),
        (["--guarantee", "k"], 2, "NAME=NUMBER"),
        (["--guarantee", "k=0"], 2, "a whole number from 2"),
        (["--classifiers", "oracle"], 2, "classifiers must be"),
        (["--folds", "1"], 2, "n_folds must be"),
        (["--folds", "1000"], 2, "n_folds must be"),
        (["--max-rows", "0"], 2, "max_rows must be"),
        (["--workers", "0"], 2, "workers must be"),
        (["--timeout", "-1"], 2, "timeout must be"),
        (["-m", "mondrain"], 2, "did you mean 'mondrian'"),
        (["-o", "c.txt"], 2, ".csv or .json"),
        (["--plot", "f.txt"], 2, ".svg"),
        (["--run-folder", "stays.csv"], 3, "is a file, not a folder"),
        (["stays.csv", "--identifiers", "readmitted"], 3, "no target"),
        (["--target", "readmitted"], 2, "used with DATA only"),
        (["--prepare", "age=top:80"], 2, "write prepare = { … } at the column"),
        (["stays.csv", "--target", "readmitted", "--prepare", "age"], 2, "COLUMN=OPERATION"),
        (["stays.csv", "--target", "readmitted", "--prepare", "sex=top:80"], 3, "is of the kind categorical"),
        (["stays.csv", "--target", "readmitted", "--prepare", "height=top:80"], 3, "not found in the table"),
        (["--project", "nowhere.toml"], 3, "no such project file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(folder, capsys, arguments, code, said):
    assert run(["compare", *arguments]) == code

    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert not (folder / "sfumato-compare").exists()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[compare]\nweights = [1, 2]", "three numbers"),
        ("[compare]\nweights = 1", "three numbers"),
        ('[compare]\nclassifiers = "c45"', "'classifiers' in [compare]"),
        ("[compare]\nwieghts = [1, 1, 1]", "did you mean 'weights'"),
        ("[compare]\ngrid = 5", "'grid' in [compare]"),
        ("[compare.grid]\nmondrian = [5]", "[compare.grid.mondrian] must be a table"),
        ("[compare.grid.mondrian]\nq = [5]", "a parameter of mondrian"),
    ],
)
def test_a_wrong_section_is_refused_in_one_line(folder, capsys, written, said):
    described = PROJECT.partition("[compare]")[0]
    (folder / "sfumato.toml").write_text(described + written)

    assert run(["compare", "--dry-run"]) in (2, 3)
    assert said in capsys.readouterr().err


def test_the_bar_counts_points():
    bar, move = command_module._points_bar()
    move(3, 8, "mondrian k=3")

    assert (bar.tasks[0].completed, bar.tasks[0].total) == (3, 8)


@pytest.mark.parametrize("way", ["options", "project"])
def test_a_comparison_is_one_of_the_prepared_table(folder, capsys, monkeypatch, way):
    seen = []
    monkeypatch.setattr(command_module, "_compared", lambda order, *_: seen.append(order.table) or stop())
    if way == "options":
        arguments = ["stays.csv", "--target", "readmitted", "--prepare", "age=top:60,round:20", "--prepare", "sex=drop"]
    else:
        text = PROJECT.replace('kind = "numeric" }', 'kind = "numeric", prepare = { top = 60, round = 20 } }')
        (folder / "sfumato.toml").write_text(text.replace("sex = { ", "sex = { prepare = { drop = true }, "))
        arguments = []

    with pytest.raises(Stopped):
        run([*COMPARE, *arguments])

    (table,) = seen
    assert set(table["age"].values.to_pylist()) <= {"0", "20", "40", "60", None}
    assert table.schema["sex"].role == "identifier"
    assert "note: prepared: 'age' is coded as 60 where it is more" in capsys.readouterr().err


class Stopped(BaseException):
    """Ends a command before it compares."""


def stop():
    raise Stopped


def test_secrets_of_a_comparison_are_the_same_again_so_that_finished_points_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"p{i},2021-0{1 + i % 9}-11,{'yn'[i % 2]}\n" for i in range(40))
    (tmp_path / "visits.csv").write_text("case,seen,ill\n" + rows)
    seen = []
    monkeypatch.setattr(command_module, "_compared", lambda order, *_: seen.append(order.table) or stop())
    secrets = ["--prepare", "case=pseudonym", "--prepare", "seen=shift_days:30"]
    given = ["visits.csv", "--target", "ill", "--identifiers", "case", "--quasi-identifiers", "seen", *secrets]

    for _ in range(2):
        with pytest.raises(Stopped):
            run([*COMPARE, *given])

    first, again = seen
    assert table_fingerprint(first) == table_fingerprint(again)
    assert not set(first["case"].values.to_pylist()) & {f"p{i}" for i in range(40)}
    assert run([*COMPARE, *given[:-4], "--prepare", "case=pseudonym,scope:project"]) == 3
