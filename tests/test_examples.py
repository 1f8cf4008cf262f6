"""Every example runs as it stands, in a folder of its own, and shows something."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
FIRST = EXAMPLES[0]


def test_there_are_eight_examples():
    assert [path.name[:2] for path in EXAMPLES] == ["01", "02", "03", "04", "05", "06", "07", "08"]


def test_the_first_example_runs_in_a_python_of_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FIRST)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", EXAMPLES[1:], ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    """In this process, where the libraries are loaded already; warnings are errors here too."""
    monkeypatch.chdir(tmp_path)

    runpy.run_path(str(path), run_name="__main__")

    assert capsys.readouterr().out.strip()
    assert os.listdir(tmp_path) == []
