"""Private folders go away with their process, or with the next one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato
from sfumato.private_folders import PrivateFolder, remove_leftovers

# It hears SIGHUP also where whoever started the tests ignores that, as under nohup.
HOLD = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from sfumato.private_folders import PrivateFolder
print(PrivateFolder("count").path, flush=True)
sys.stdin.read()
"""
FORK = """
import os
from sfumato.private_folders import PrivateFolder
folder = PrivateFolder("count")
child = os.fork()
if child == 0:
    folder.remove()
    os._exit(0)
os.waitpid(child, 0)
print(folder.path.is_dir())
folder.remove()
print(folder.path.is_dir())
"""
COUNT = """
import pyarrow as pa
from sfumato.engines.blocks.database import spilling_connection
import os, signal
with spilling_connection(10**9) as connection:
    connection.execute("select 1")
    os.kill(os.getpid(), signal.SIGKILL)
"""

AUDIT = """
import os, signal, sys
import duckdb
from sfumato.cli.main import run
connect = duckdb.connect
def told_to_end(*arguments, **settings):
    connection = connect(*arguments, **settings)
    print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return connection
duckdb.connect = told_to_end
run(["audit", *sys.argv[1:], "--memory", "1GB"])
"""


@pytest.fixture
def parent(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holder(parent):
    environment = os.environ | {"TMPDIR": str(parent)}
    return subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.slow
def test_a_folder_of_a_killed_process_is_removed_by_the_next(parent):
    with holder(parent) as process:
        left = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert os.listdir(parent) == [Path(left).name]

    folder = PrivateFolder("count")

    assert os.listdir(parent) == [folder.path.name]
    folder.remove()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_told_to_end_leaves_no_folder(parent, number):
    """And it ends by that signal, as whoever sent it expects."""
    with holder(parent) as process:
        assert Path(process.stdout.readline().strip()).is_dir()
        process.send_signal(number)

    assert process.returncode == -number
    assert os.listdir(parent) == []


@pytest.mark.slow
def test_an_audit_out_of_core_that_is_told_to_end_leaves_no_folder(parent, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    people = pa.table({"sex": ["f", "m"] * 10, "ill": ["yes", "no", "no", "yes"] * 5})
    made = sfumato.release(people, sfumato.Mondrian(k=2), target="ill")
    sfumato.publish(made, folder / "release.csv", original=people)

    done = subprocess.run(
        [sys.executable, "-c", AUDIT, folder / "release.csv"],
        env=os.environ | {"TMPDIR": str(parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert int(done.stdout) > 0, done.stderr  # there was one
    assert done.returncode == -signal.SIGTERM
    assert os.listdir(parent) == []


def test_who_hears_the_order_to_end_already_goes_on_to_hear_it(parent):
    """A server tidies up by itself; afterwards everything is as before."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("own"))
    try:
        folder = PrivateFolder("count")
        signal.raise_signal(signal.SIGTERM)
        assert folder.path.is_dir()
        folder.remove()
    finally:
        signal.signal(signal.SIGTERM, before)

    PrivateFolder("count").remove()

    assert heard == ["own"]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_a_folder_in_use_stays(parent):
    with holder(parent) as process:
        used = process.stdout.readline().strip()

        remove_leftovers(parent, "count")

        assert Path(used).is_dir()


def test_folders_of_other_purposes_and_files_stay(parent):
    dead = 2**22 + 1  # above what Linux gives to processes
    (parent / f"sfumato-page-{dead}-abc").mkdir()
    (parent / f"sfumato-count-{dead}-abc").mkdir()
    (parent / f"sfumato-count-{dead}-file").write_text("")

    remove_leftovers(parent, "count")

    assert sorted(os.listdir(parent)) == [f"sfumato-count-{dead}-file", f"sfumato-page-{dead}-abc"]


@pytest.mark.slow
def test_a_forked_child_does_not_remove_it(parent):
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env=os.environ | {"TMPDIR": str(parent)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["True", "False"]


@pytest.mark.slow
def test_counting_leaves_no_folder_for_long_when_it_is_killed(parent):
    environment = os.environ | {"TMPDIR": str(parent)}
    done = subprocess.run([sys.executable, "-c", COUNT], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL

    PrivateFolder("audit").remove()

    assert os.listdir(parent) == []
