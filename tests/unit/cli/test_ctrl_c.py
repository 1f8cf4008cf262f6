"""Ctrl-C is one line and exit code 130, whatever the command is doing, and leaves nothing half written."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import SfumatoError
from sfumato.table.io.write import write_table

START = "from sfumato.__main__ import main; main()"
SAID = "sfumato: interrupted"
# Runs the command, and comes to rest where a function is called for the n-th time, until it is interrupted. It hears
# Ctrl-C also where whoever started it ignores that, as in the background.
RESTING = """
import importlib, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
where, name, n_calls = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
module, _, inside = where.partition(":")
place = importlib.import_module(module)
place = getattr(place, inside) if inside else place
called = getattr(place, name)
n_called = 0

def resting(*given, **named):
    global n_called
    n_called += 1
    if n_called == n_calls:
        os.write(1, b"resting\\n")
        while True:  # and not in a wait that a signal just before it would not end
            pass
    return called(*given, **named)

setattr(place, name, resting)
"""


@pytest.fixture(autouse=True)
def _heard(hears_ctrl_c):
    """Let the processes that are started here hear Ctrl-C."""


@pytest.fixture
def folder(tmp_path):
    with (tmp_path / "data.csv").open("wb") as file:
        write_table(admissions(n_rows=300), file, "csv")
    return tmp_path


RELEASE = ["release", "data.csv", "--target", "readmitted", "-m", "mondrian", "-k", "5", "-o", "second.csv"]
PLACES = {
    "imports": ("sfumato.cli.limited_memory", "go_on_in_a_child", 1),
    "search": ("sfumato.mechanisms.mondrian.mechanism:Mondrian", "release", 1),
    "audit": ("sfumato.publishing.proposals.in_memory", "audit_release", 1),
    "first name": ("sfumato.atomic:PendingFile", "appear", 1),
    "second name": ("sfumato.atomic:PendingFile", "appear", 2),  # the manifest has its name, the table not yet
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_an_interrupted_release_is_one_line_and_leaves_no_file(folder, place):
    """Also where whoever starts the release ignores Ctrl-C, as under nohup."""
    where, name, n_calls = PLACES[place]
    temporary = folder / "temporary"
    temporary.mkdir()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(
        [sys.executable, "-c", RESTING + START, where, name, str(n_calls), *RELEASE],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)

    assert process.stdout.readline() == "resting\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)

    assert process.returncode == 130, said
    assert [line for line in said.splitlines() if line.startswith("sfumato: ")] == [SAID]
    assert "Traceback" not in said
    assert sorted(os.listdir(folder)) == ["data.csv", "temporary"]
    assert os.listdir(temporary) == []


def test_an_interruption_that_a_library_turns_into_its_own_error_is_one(monkeypatch, capsys):
    """As DuckDB does, whose error has no other before it."""

    def work(arguments, **_):
        try:
            raise RuntimeError("Query interrupted")
        except RuntimeError:
            raise ValueError("the rows cannot be counted") from None

    monkeypatch.setattr("sfumato.cli.main.sfumato.main", work)

    assert run([]) == 130
    assert capsys.readouterr().err.strip() == SAID


# Stops at the module that the process which others are forked from imports first, until the test lets it go on.
HOLDING = """
import os, socket, sys

class Holding:
    def find_spec(self, name, path=None, target=None):
        if name == "sfumato.evaluation.compare" and "forkserver" in " ".join(sys.orig_argv):
            socket.create_connection(("127.0.0.1", int(os.environ["HELD_AT"]))).recv(1)
        return None

sys.meta_path.insert(0, Holding())
"""


COMPARE = ["compare", "data.csv", "--target", "readmitted", "--run-folder", "points", "--workers", "1"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes are forked and interrupted in groups on Unix only")
def test_compare_is_interrupted_while_its_processes_start(folder, tmp_path):
    """The keyboard's signal goes to the whole group: to the process that others are forked from as well."""
    (tmp_path / "sitecustomize.py").write_text(HOLDING, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        waiting.settimeout(300)
        process = subprocess.Popen(
            [sys.executable, "-c", START, *COMPARE],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path, "HELD_AT": str(waiting.getsockname()[1])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with waiting.accept()[0]:
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)

    assert process.returncode == 130
    assert said.strip().splitlines()[-1].startswith("sfumato: interrupted; finished points are kept in points")
    assert "Traceback" not in said


PAPER = """
import socket, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import socket, sys; socket.create_connection(('127.0.0.1', {port})).recv(1)"])
socket.create_connection(("127.0.0.1", {port})).recv(1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes are interrupted in groups on Unix only")
def test_a_reproduction_is_interrupted_with_all_its_processes(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        waiting.settimeout(300)
        script = tmp_path / "reproductions" / "paper" / "run.py"
        script.parent.mkdir(parents=True)
        script.write_text(PAPER.format(port=waiting.getsockname()[1]), encoding="utf-8")
        start = (
            f"import pathlib, sfumato.cli.making.reproduce as r; r.CHECKOUT = pathlib.Path({str(tmp_path)!r}); {START}"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", start, "reproduce", "paper"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with waiting.accept()[0] as one, waiting.accept()[0] as other:
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=300)
            for connection in (one, other):
                connection.settimeout(300)
                assert connection.recv(1) == b"", "its process has ended"

    assert (process.returncode, said.strip()) == (130, SAID)


def test_errors_behind_each_other_in_a_circle_are_said_and_not_followed_forever(monkeypatch, capsys):
    one, other = SfumatoError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one

    def broken(*_, **__):
        raise one

    monkeypatch.setattr("sfumato.cli.main.sfumato.main", broken)

    assert run([]) != 130
    assert "one" in capsys.readouterr().err
