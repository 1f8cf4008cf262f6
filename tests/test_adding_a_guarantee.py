"""A new guarantee is two files: those of ``docs/adding-a-guarantee.md``, put into a copy of the package, are enough."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato
from sfumato.errors import ManifestRefusedError

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "adding-a-guarantee.md"
PACKAGE = Path(sfumato.__file__).parent
NAMES = ("columns", "parameter m", "statement", "level", "audited level")


@pytest.fixture(scope="module")
def files():
    """Files of the page by their paths in the package."""
    page = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^## .*?`src/sfumato/(\S+\.py)`\n+```python\n(.*?)```", page, flags=re.M | re.S))


@pytest.fixture
def package(tmp_path, files):
    """Copy the package and add both files."""
    copy = tmp_path / "sfumato"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for path, text in files.items():
        assert not (copy / path).exists()
        (copy / path).write_text(text, encoding="utf-8")
    return copy


def run(package):
    """Run the script with a copy of the package."""
    env = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(TESTS / "group_mean_release.py")]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def test_the_page_has_one_file_in_each_of_two_folders(files):
    assert [path.split("/")[0] for path in files] == ["guarantees", "audit"]


def test_a_guarantee_of_two_files_goes_from_release_to_report(package):
    done = run(package)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["reader"] is found["audit's reader"] is True
    assert found["problems"] == []
    assert found["form"] == {"type": "number", "minimum": 1}
    assert found["audited"] == found["mean"] >= 5
    assert found["passed"] is True
    assert found["checks"] == [f"group-mean: {what}" for what in NAMES]
    assert found["too much"] == ["group-mean: parameter m", "group-mean: level"]
    assert found["other words"] == ["group-mean: statement"]
    assert found["other level"] == ["group-mean: audited level"]
    assert found["title"] == "large groups on average"
    assert found["found"] == f"Found: groups have {found['mean']:.4g} rows on average. Promised: at least 5."
    assert found["in report"] is True
    assert any(
        line.startswith("not promised: k-anonymity; the smallest equivalence class") for line in found["left open"]
    )
    assert found["asked"] == ["m >= 6", 5.0, False, True]
    assert found["short"] == "group-mean m=5"
    assert "group-mean" in found["fields"]


def test_what_the_audit_cannot_judge_is_not_released(package):
    (package / "audit" / "levels" / "group_mean.py").unlink()

    done = run(package)

    assert done.returncode != 0
    assert ManifestRefusedError.__name__ in done.stderr.splitlines()[-1]
