"""Ctrl-C is one line and exit code 130, whatever the command is doing, from its first import on."""

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sfumato import atomic
from sfumato.cli import start
from sfumato.cli.main import COMMANDS, run
from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table

REPOSITORY = Path(__file__).parents[3]
START = "from sfumato.cli.main import main; main()"
NO_RELEASE = "sfumato: interrupted; no release was written"
ENTRY = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]["sfumato"]
# Starts the command as the installed script does, and interrupts it when it asks for the n-th module, counted from the
# first one beyond the package itself and its start. A native module that is being loaded prints KeyboardInterrupt and
# raises ImportError, as numpy's import_array does: the hook can do the same.
PROGRAM = """
import os, signal, sys
n_left, hidden = int(sys.argv.pop(1)), sys.argv.pop(1) == "natively"

class Interrupting:
    n_asked = 0

    def find_spec(self, name, path=None, target=None):
        Interrupting.n_asked += Interrupting.n_asked > 0 or name in ("sfumato.cli.limited_memory", "click")
        if Interrupting.n_asked == n_left:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(10):
                    pass
            except KeyboardInterrupt:
                if not hidden:
                    raise
                sys.excepthook(*sys.exc_info())
                raise ImportError("multiarray failed to import") from None
        return None

sys.meta_path.insert(0, Interrupting())
"""
PROGRAM += f"from {ENTRY.partition(':')[0]} import {ENTRY.partition(':')[2]} as main\nmain()\n"


@pytest.fixture(autouse=True)
def _heard(hears_ctrl_c):
    """Let the processes that are started here hear Ctrl-C."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command")
    with (folder / "data.csv").open("wb") as file:
        write_table(admissions(n_rows=300), file, "csv")
    greedy = ["-m", "greedy-containment", "-k", "2", "-p", "on_infeasible=skip"]
    release = ["release", "data.csv", "--target", "readmitted", *greedy, "-o", "r.csv"]
    done = subprocess.run(
        [sys.executable, "-c", START, *release],
        cwd=folder,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


ARGUMENTS = {
    "apply": ["apply", "r.csv.manifest.json", "data.csv", "--original", "data.csv", "-o", "applied.csv"],
    "attack": ["attack", "data.csv", "r.csv"],
    "audit": ["audit", "r.csv", "--manifest", "r.csv.manifest.json"],
    "audit-key": ["audit-key", "r.csv.manifest.json", "-o", "release.key"],
    "collaborate": ["collaborate", "simulate", "data.csv", "--target", "readmitted"],
    "compare": ["compare", "data.csv", "--target", "readmitted", "--run-folder", "points"],
    "demo": ["demo", "-o", "demo"],
    "hierarchy": ["hierarchy", "show", "data.csv"],
    "init": ["init", "data.csv", "--target", "readmitted", "-o", "new.toml"],
    "ledger": ["ledger", "list"],
    "mechanisms": ["mechanisms"],
    "metadata": ["metadata", "r.csv"],
    "plot": ["plot", "r.csv.manifest.json", "-o", "plot.svg"],
    "release": ["release", "data.csv", "--target", "readmitted", "-o", "second.csv"],
    "report": ["report", "r.csv", "-o", "report.html"],
    "reproduce": ["reproduce", "--help"],
    "serve": ["serve", "--no-browser"],
    "sign": ["sign", "r.csv.manifest.json", "--key", "private.pem"],
}


def interrupted(folder, n_imports, command, way="plainly"):
    environment = os.environ | {"TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(n_imports), way, *ARGUMENTS[command]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_every_command_is_interrupted_here():
    assert set(ARGUMENTS) == set(COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "way", "n_imports"),
    [
        ("release", "plainly", 1),  # before it is known which command it is
        *((command, "natively", n_imports) for command in COMMANDS for n_imports in (30, 80)),
    ],
)
def test_an_interruption_while_modules_are_imported_is_one_line(folder, command, way, n_imports):
    before = set(os.listdir(folder))
    if command == "reproduce" and n_imports > 30:
        pytest.skip("it imports little: the script of the paper runs in a process of its own")

    done = interrupted(folder, n_imports, command, way)

    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().splitlines()[-1] == NO_RELEASE
    assert not {"Traceback", "ImportError", "Exception ignored"} & set(re.findall(r"\w+(?: ignored)?", done.stderr))
    assert set(os.listdir(folder)) == before


@pytest.mark.slow
@pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
def test_an_interruption_that_nobody_could_take_comes_again(folder, is_busy):
    """As one in a finalizer, of which Python only says that it was ignored; also if it comes again while it says so."""
    busy = (  # the first timer is over before its start is
        "later, starts = start._interrupt_later, []\n"
        "def slowly():\n"
        "    starts.append(later())\n"
        "    while len(starts) == 1 and not start.interruptions.came_meanwhile: time.sleep(0.01)\n"
        "start._interrupt_later = slowly\n"
    )
    code = (
        "import os, signal, sys, time\n"
        "from sfumato.cli import main as commands, start\n"
        f"{busy if is_busy else ''}"
        "class Finalized:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        sum(range(1000))\n"
        "def work(arguments, **_):\n"
        "    Finalized()\n"
        "    time.sleep(100)\n"  # to be interrupted
        "commands.sfumato.main = work\n"
        "start.main([])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stderr.strip()) == (130, NO_RELEASE)


def test_an_interruption_that_a_library_turns_into_its_own_error_is_one(monkeypatch, capsys):
    """As DuckDB does, whose error is a RuntimeError."""

    def work(arguments, **_):
        start.interruptions.did_happen = True
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("sfumato.cli.main.sfumato.main", work)
    monkeypatch.setattr(start.interruptions, "did_happen", False)

    assert run([]) == 130
    assert capsys.readouterr().err.strip() == NO_RELEASE


def test_files_that_were_written_before_the_interruption_are_named(monkeypatch, capsys):
    def work(arguments, **_):
        atomic.NAMED.update({Path("out.csv"), Path("out.csv.manifest.json")})
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.cli.main.sfumato.main", work)
    atomic.NAMED.add(Path("of an earlier command"))

    assert run([]) == 130
    assert capsys.readouterr().err == ("sfumato: interrupted; written before that: out.csv, out.csv.manifest.json\n")


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="processes are forked and interrupted in groups on Unix only")
def test_compare_is_interrupted_while_its_processes_start(folder, tmp_path):
    """The keyboard's signal goes to the whole group: to the process that others are forked from as well."""
    (tmp_path / "sitecustomize.py").write_text(HOLDING, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with socket.create_server(("127.0.0.1", 0)) as waiting:
        waiting.settimeout(300)
        process = subprocess.Popen(
            [sys.executable, "-c", START, *ARGUMENTS["compare"], "--workers", "1"],
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

    assert (process.returncode, said.strip()) == (130, NO_RELEASE)
