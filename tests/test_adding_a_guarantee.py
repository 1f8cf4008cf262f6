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

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "adding-a-guarantee.md"
PACKAGE = Path(sfumato.__file__).parent
NAMES = ("columns", "parameter chance", "statement", "level", "audited level")
CHANCE = 0.45


@pytest.fixture(scope="module")
def files():
    """Files of the page by their paths in the package."""
    page = PAGE.read_text(encoding="utf-8")
    return dict(re.findall(r"^## .*?`src/sfumato/(\S+\.py)`\n+```python\n(.*?)```", page, flags=re.M | re.S))


@pytest.fixture
def package(tmp_path, files):
    """Copy the package, add both files, and write what follows from the declarations."""
    copy = tmp_path / "sfumato"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for path, text in files.items():
        assert not (copy / path).exists()
        (copy / path).write_text(text, encoding="utf-8")
    assert run(copy, "-m", "sfumato.mechanisms.stated_parameters").returncode == 0
    return copy


def run(package, *command):
    """Run Python with a copy of the package."""
    env = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=env, check=False, cwd=package.parent
    )


def test_the_page_has_one_file_in_each_of_two_folders(files):
    assert [path.split("/")[0] for path in files] == ["guarantees", "audit"]


def test_mechanisms_make_a_guarantee_of_two_files_and_everything_knows_it(package):
    """Command line, manifest, audit, report, page and comparison; without being asked none of the makers keeps it."""
    done = run(package, str(TESTS / "match_chance_release.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    for name, (asked, plain) in found["makers"].items():
        assert (asked["code"], asked["parameter"]) == (0, CHANCE), (name, asked)
        assert asked["audit"] in (0, 8), name  # 8: the levels of a recoding are figures that nobody computes again
        assert asked["promised"] == pytest.approx(asked["chance"])
        assert asked["chance"] <= CHANCE < plain["chance"]
        assert plain["promised"] is plain["parameter"] is None
    assert found["persons"]["audit"] == 0
    assert 0 < found["persons"]["by persons"] <= CHANCE
    assert found["out of reach"]["code"] == 4
    assert "match chance of 0.01" in found["out of reach"]["said"]
    assert "mechanisms with this parameter: error-risk-tree, gain-recoding, global-recoding" in found["refused"]
    assert "chance that two rows of a group have the same sensitive value" in " ".join(found["help"].split())
    assert found["reader"] is found["audit's reader"] is True
    assert found["problems"] == []
    assert found["form"] == {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    assert found["audited"] <= CHANCE
    assert found["passed"] is True
    assert found["checks"] == [f"match-chance: {what}" for what in NAMES]
    assert found["too little"] == ["match-chance: parameter chance", "match-chance: level"]
    assert found["other words"] == ["match-chance: statement"]
    assert found["other level"] == ["match-chance: audited level"]
    assert found["not promised"] == ["promises"]
    assert found["title"] == "match chance"
    assert found["found"].startswith("Found: in the worst group the chance is 0.")
    assert found["in report"] is True
    assert found["asked"] == ["chance <= 0.3", CHANCE, False, True]
    assert found["short"] == f"match-chance chance={CHANCE}"
    assert "match-chance" in found["fields"]


def test_what_the_audit_cannot_judge_is_not_released(package):
    (package / "audit" / "levels" / "match_chance.py").unlink()

    done = run(package, str(TESTS / "match_chance_release.py"))

    assert done.returncode != 0
    assert "AuditFailedError" in done.stderr.splitlines()[-1]
    assert "match-chance cannot be measured" in done.stderr.splitlines()[-1]
