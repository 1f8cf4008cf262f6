"""Private folders go away with their process, or with the next one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sfumato.private_folders import PrivateFolder, remove_leftovers

HOLD = """
import sys
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
from sfumato.counting.engine import Engine
import os, signal
engine = Engine(threads=1)
engine.n_rows(pa.table({"a": [1]}))
os.kill(os.getpid(), signal.SIGKILL)
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

    PrivateFolder("count").remove()

    assert os.listdir(parent) == []
