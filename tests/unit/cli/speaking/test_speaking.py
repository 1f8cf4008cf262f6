"""What commands say on stderr: warnings only with --quiet, and lines of progress in a log."""

import sys
import warnings
from itertools import pairwise
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import run
from sfumato.cli.options.tables import progress_bar
from sfumato.cli.speaking.on_stderr import LogLines, quiet_option, warn
from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table

QUIET = ("release", "audit", "compare", "report", "attack", "apply", "init", "plot")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with a table and a release of it."""
    monkeypatch.chdir(tmp_path)
    table = admissions(n_rows=80).keep(["name", "age", "sex", "insurance", "readmitted"])
    with Path("data.csv").open("wb") as file:
        write_table(table, file, "csv")
    given_roles = ["--target", "readmitted", "--identifiers", "name"]
    assert run(["release", "data.csv", *given_roles, "-m", "mondrian", "-o", "release.csv"]) == 0
    return given_roles


@pytest.mark.parametrize("name", QUIET)
def test_the_option_is_offered(capsys, name):
    assert run([name, "--help"]) == 0
    assert "--quiet" in capsys.readouterr().out


COMMANDS = {
    "release": ["release", "data.csv", "-m", "global-recoding", "-o", "second.csv"],
    "init": ["init", "data.csv"],
    "attack": ["attack", "data.csv", "release.csv"],
    "report": ["report", "release.csv", "--original", "data.csv", "--quick", "-o", "report.html"],
    "audit": ["audit", "release.csv", "--manifest", "release.csv.manifest.json", "--original", "data.csv"],
    "compare": ["compare", "data.csv", "-m", "mondrian", "--dry-run"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_only_warnings_are_left_and_stdout_is_as_it_was(folder, capsys, name):
    options = [*COMMANDS[name], *folder]
    capsys.readouterr()
    code = run(options)
    loud = capsys.readouterr()
    again = [*options, "--force"] if name in ("release", "init", "report") else options
    assert run([*again, "--quiet"]) == code
    quiet = capsys.readouterr()

    assert quiet.out == loud.out
    assert all(line.startswith("WARNING: ") for line in quiet.err.splitlines())
    assert [line for line in loud.err.splitlines() if line.startswith("WARNING: ")] == quiet.err.splitlines()


def test_errors_are_said_all_the_same(folder, capsys):
    capsys.readouterr()
    assert run(["release", "data.csv", "--quiet", "-m", "mondrian", "-o", "release.csv"]) == 3
    assert "release.csv" in capsys.readouterr().err
    assert run(["release", "data.csv", "--quiet", "-k", "many"]) == 2
    assert "'-k'" in capsys.readouterr().err


@click.command()
@quiet_option
def speaking():
    """Say all that can be said."""
    click.echo("a note", err=True)
    sys.stderr.write("another\n")
    warn("WARNING: first")
    warnings.warn("second", stacklevel=1)
    click.echo("data")


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_warnings_of_python_and_our_own_pass(capsys, options):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _shown
        speaking.main(options, standalone_mode=False)
    said = capsys.readouterr()

    assert said.out == "data\n"
    expected = ["WARNING: first", "second"]
    assert said.err.splitlines() == (expected if options else ["a note", "another", *expected])
    sys.stderr.write("heard again")
    assert capsys.readouterr().err == "heard again"


def _shown(message, category, filename, lineno, file=None, line=None):
    (file or sys.stderr).write(f"{message}\n")


def test_a_log_gets_lines_without_carriage_returns(capsys):
    """Stderr is no terminal here."""
    bar, progress = progress_bar("work")
    with bar:
        progress(1, 2, "counting")

    assert isinstance(progress, LogLines)
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@given(
    steps=st.lists(st.tuples(st.floats(0, 40), st.integers(0, 20)), max_size=60),
    total=st.sampled_from([0, 20]),
)
def test_lines_are_ten_seconds_apart_and_never_more_than_a_minute_late(steps, total):
    """By the definition: a line ten seconds after the last at the earliest, and a minute after it at the latest."""
    now, said, calls = [0.0], [], []
    lines = LogLines(clock=lambda: now[0], say=lambda text: said.append((now[0], text)))
    for wait, done in steps:
        now[0] += wait
        before = len(said)
        lines(done, total, "work\r\nmore")
        calls.append((now[0], len(said) > before))
    times = [0.0, *(when for when, _ in said)]

    assert all(later - earlier >= 10 for earlier, later in pairwise(times))
    last = 0.0
    for when, was_said in calls:
        assert was_said or when - last < 60
        last = when if was_said else last
    assert not any("\r" in text or "\n" in text for _, text in said)


def test_a_line_says_how_long_what_and_how_far():
    now, said = [0.0], []
    lines = LogLines(clock=lambda: now[0], say=said.append)
    for at, done, total, what in (
        (5, 1, 10, "counting"),
        (65, 2, 10, "counting"),
        (80, 2, 10, "counting"),
        (81, 3, 10, "counting"),
        (95, 0, 0, "searching"),
    ):
        now[0] = float(at)
        lines(done, total, what)

    assert said == ["[1:05] counting: 20 %", "[1:21] counting: 30 %", "[1:35] searching"]
