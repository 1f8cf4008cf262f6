"""The mechanism breach-aware as people type it: bad input in one line, workers, and an interruption."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sfumato.cli.main import run
from waiting import HANGS, until

N_ROWS = 120
CANARY = "CANARY-7f3a"
MECHANISM = ["release", "people.csv", "-m", "breach-aware", "-o", "out.csv"]
RELEASE = [*MECHANISM, "--quasi-identifiers", "useful,telling,noise"]
ROLES = ["--target", "y", "--sensitive", "secret"]


def people(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    y, secret = rng.integers(2, size=n_rows), rng.integers(3, size=n_rows)
    return {
        "useful": np.round(y + rng.normal(size=n_rows) / 3, 2),
        "telling": np.round(secret + rng.normal(size=n_rows) / 3, 2),
        "noise": rng.choice(list("abc"), size=n_rows),
        "secret": np.array([CANARY, "flu", "none"])[secret],
        "y": np.array(["no", "yes"])[y],
    }


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(list(columns))
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a table of people."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "people.csv", people())
    return tmp_path


def refused(arguments, capsys):
    """Run what must fail: the exit code and the only line that is said."""
    code = run(arguments)
    printed = capsys.readouterr()
    lines = printed.err.strip().splitlines()
    assert len(lines) == 1, lines
    assert printed.out == ""
    assert sorted(os.listdir()) == ["people.csv"]
    assert CANARY not in lines[0]
    return code, lines[0]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (["weights.performance=-1", "weights.privacy=2"], "weights must be numbers from 0"),
        (["weights.performance=0"], "all are 0"),
        (["weights.speed=1"], "got the names speed"),
        (["weights=1"], "-p weights.NAME=VALUE"),
        (["max_breach_increase=2"], "set allow_increase to permit it"),
        (["max_breach_increase=much"], "max_breach_increase must be a number"),
        (["max_performance_loss=-5"], "max_performance_loss must be a percentage from 0 to 100"),
        (["attacker=oracle"], "attacker must be one of naive-bayes, "),
        (["attacker=naive-bayes+oracle"], "attacker must be one of naive-bayes, "),
        (["attacker=c45+c45"], "got one twice"),
        (["learner=strongest"], "learner must be one of naive-bayes, "),
        (["metric=f1"], "metric must be one of accuracy, "),
        (["search=sideways"], "search must be one of lists, forward, backward"),
        (["n_random_orders=-1"], "n_random_orders must be a whole number of at least 0"),
        (["n_folds=1"], "n_folds must be a whole number of at least 2 and at most 120, the number of rows"),
        (["n_folds=121"], "n_folds must be a whole number of at least 2 and at most 120, the number of rows"),
        (["n_workers=0"], "n_workers must be a whole number of at least 1"),
        (["sensitive=nobody"], "nobody"),
    ],
)
def test_wrong_parameters_are_refused_in_one_line(folder, capsys, parameters, said):
    flags = [flag for parameter in parameters for flag in ("-p", parameter)]

    code, line = refused([*RELEASE, *ROLES, *flags], capsys)

    assert code == (3 if "sensitive=nobody" in parameters else 2)
    assert said in line


def test_the_search_and_random_orders_are_asked_for_by_name(folder, capsys):
    assert run([*RELEASE, *ROLES, "-p", "search=backward", "-p", "n_random_orders=3"]) == 0

    manifest = json.loads((folder / "out.csv.manifest.json").read_text())
    assert manifest["mechanism"]["parameters"]["search"] == "backward"
    assert manifest["evidence"]["stability"]["n_random_orders"] == 3
    assert "telling" not in [column["name"] for column in manifest["output"]["columns"]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"secret": [CANARY] * N_ROWS}, "nothing to predict"),
        ({"y": ["yes"] * N_ROWS}, "the target has one class only"),
        ({"noise": people()["secret"]}, "column 'noise'"),
        ({"y": people()["secret"]}, "column 'y'"),
    ],
)
def test_tables_with_nothing_to_predict_or_to_protect_are_refused_in_one_line(folder, capsys, changes, said):
    write(folder / "people.csv", people() | changes)

    code, line = refused([*RELEASE, *ROLES], capsys)

    assert code == 3
    assert said in line


@pytest.mark.parametrize(
    ("roles", "code", "said"),
    [
        (["--target", "y", "--sensitive", "y"], 2, "the role of 'y' must be given once, got two"),
        (["--sensitive", "secret", "--other", "y"], 3, "no target"),
        (["--target", "y", "--other", "secret"], 2, "sensitive must be the name of a sensitive column"),
    ],
)
def test_roles_that_are_missing_or_given_twice_are_refused_in_one_line(folder, capsys, roles, code, said):
    found, line = refused([*RELEASE, *roles], capsys)

    assert found == code
    assert said in line


def test_without_quasi_identifiers_there_is_nothing_to_choose(folder, capsys):
    code, line = refused([*MECHANISM, "--other", "useful,telling,noise", *ROLES], capsys)

    assert code == 3
    assert "no quasi-identifying column" in line


def test_weights_that_do_not_sum_to_one_are_divided_and_the_note_is_shown(folder, capsys):
    flags = ["-p", "weights.performance=2", "-p", "weights.privacy=1", "-p", "weights.size=1"]

    assert run([*RELEASE, *ROLES, *flags]) == 0

    assert "the weights summed to 4 and were divided by it" in capsys.readouterr().err
    choice = json.loads((folder / "out.csv.manifest.json").read_text())["evidence"]["choice"]
    assert choice["weights"] == {"performance": 0.5, "privacy": 0.25, "size": 0.25}


@pytest.mark.slow
def test_a_class_with_fewer_rows_than_folds_is_released(folder, capsys):
    columns = people()
    columns["y"][:3], columns["secret"][:4] = "perhaps", "rare"
    write(folder / "people.csv", columns)

    assert run([*RELEASE, *ROLES, "-p", "attacker=naive-bayes+c45+logistic-regression"]) == 0
    assert "promised and audited: estimated, not proven" in capsys.readouterr().err


def test_the_target_may_be_sensitive(folder, capsys):
    assert run([*RELEASE, "--other", "secret", "--target", "y", "-p", "sensitive=y"]) == 0
    assert "the target, which is released" in capsys.readouterr().err


@pytest.mark.slow
def test_the_number_of_workers_changes_no_byte(folder):
    common = [*RELEASE, *ROLES, "-p", "attacker=c45", "-p", "n_folds=3", "--force"]
    written = []
    for flags in ([], ["-p", "n_workers=1"], ["-p", "n_workers=2"]):
        assert run([*common, *flags]) == 0
        written.append([(folder / name).read_bytes() for name in ("out.csv", "out.csv.manifest.json")])

    assert written[0] == written[1] == written[2]


def processes_of(session):
    """Ids of the processes of a session that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_process = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_process) == session and state != "Z":
            found.append(int(folder.name))
    return found


SHORTER_THAN_IDLE_WORKERS_LIVE = 200.0


NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them"
)
COMMAND = [sys.executable, "-c", "from sfumato.__main__ import main; main()"]


@pytest.mark.slow
@NEEDS_PROC
def test_worker_processes_end_with_the_command(folder):
    """Left to themselves, workers would wait for five minutes, and the command for them."""
    flags = ["-p", "attacker=c45", "-p", "n_folds=3", "-p", "n_workers=2"]
    process = subprocess.Popen(
        [*COMMAND, *RELEASE, *ROLES, *flags], stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    process.communicate(timeout=HANGS)

    assert process.returncode == 0
    until(lambda: not processes_of(process.pid), SHORTER_THAN_IDLE_WORKERS_LIVE)


@pytest.mark.slow
@NEEDS_PROC
def test_ctrl_c_leaves_no_file_and_no_process(tmp_path, hears_ctrl_c):
    """SIGINT goes to the whole group, as a terminal sends it, while worker processes train trees."""
    shared, work = tmp_path / "shared", tmp_path / "work"
    for each in (shared, work):
        each.mkdir()
    write(work / "people.csv", people(n_rows=100_000))
    flags = ["-p", "attacker=c45", "-p", "learner=c45", "-p", "n_workers=2"]
    process = subprocess.Popen(
        [*COMMAND, *RELEASE, *ROLES, *flags],
        cwd=work,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "JOBLIB_TEMP_FOLDER": str(shared), "TMPDIR": str(shared)},
        start_new_session=True,
    )
    until(lambda: len(processes_of(process.pid)) >= 4 and any(shared.rglob("*.pkl")))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=HANGS)

    assert process.returncode == 130, said
    assert said.decode().strip() == "sfumato: interrupted"
    until(lambda: not processes_of(process.pid) and not any(shared.rglob("*")), SHORTER_THAN_IDLE_WORKERS_LIVE)
    assert os.listdir(work) == ["people.csv"]


@pytest.mark.slow
def test_a_coarsened_choice_is_made_and_judged_in_memory_only(folder, capsys):
    """Out of core the release is refused, and the audit says of the bound that it was not measured."""
    coarsened = [*RELEASE, *ROLES, "-p", "then=mondrian", "-k", "5", "--quick"]
    assert run([*coarsened, "--memory", "1GB"]) == 2
    assert "needs the whole table in memory" in capsys.readouterr().err
    assert not (folder / "out.csv").exists()

    assert run(coarsened) == 0
    audit = ["audit", "out.csv", "--manifest", "out.csv.manifest.json", "--original", "people.csv"]
    capsys.readouterr()
    assert run([*audit, *ROLES, "--quasi-identifiers", "useful,telling,noise", "--memory", "1GB"]) == 8
    printed = capsys.readouterr().out
    assert "FAIL" not in printed
    assert "breach-bound was not measured: coarsened cells are judged on rows in memory only" in printed


@pytest.mark.parametrize("weights", ["0.5,0.25,0.25", "(0.5, 0.25, 0.25)"])
def test_weights_and_alpha_as_they_are_listed(folder, capsys, weights):
    given = ["-p", f"weights={weights}", "-p", "max_breach_increase=distp", "-p", "factors.anonymity=0.5"]
    assert run([*RELEASE, *ROLES, *given, "--quick"]) == 0
    manifest = json.loads((folder / "out.csv.manifest.json").read_text())

    assert manifest["mechanism"]["parameters"]["weights"] == [0.5, 0.25, 0.25]
    assert manifest["mechanism"]["parameters"]["factors"] == {"anonymity": 0.5}
    assert manifest["evidence"]["choice"]["alpha"] == "distp"
    assert manifest["guarantees"][0]["max_breach_increase"] < 0
    assert set(manifest["evidence"]["choice"]["first_by"]) == {"topsis", "lexicographic"}
