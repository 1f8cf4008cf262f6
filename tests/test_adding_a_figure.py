"""A new figure is one declaration: in a file of ``figures/`` it is enough for every command, page and report."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

TESTS = Path(__file__).parent
PACKAGE = Path(sfumato.__file__).parent
DECLARED = '''
"""Figures of a test."""

from sfumato.figures.base import Direction, Figure, Unit


def _in_small_classes(attacked):
    sizes = attacked.tables.classes.sizes
    return float(sizes[sizes < 8].sum() / sizes.sum())


FIGURES = (
    Figure(
        name="small_class_share",
        words="share of {known} in groups of fewer than 8",
        unit=Unit.SHARE,
        compute=_in_small_classes,
        group="Small groups",
        heading="in small groups",
    ),
)
SCORES = (
    Figure(
        name="error_rate",
        words="Share predicted wrong",
        unit=Unit.NUMBER,
        compute=lambda fold: 1 - fold.accuracy(),
        direction=Direction.LOWER,
        heading="error rate",
    ),
)
'''
WORDS = "share of people in groups of fewer than 8"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Collect what every front shows with a copy of the package that has one more file."""
    folder = tmp_path_factory.mktemp("copy")
    copy = folder / "sfumato"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    (copy / "figures" / "of_a_test.py").write_text(DECLARED, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(TESTS / "new_figures_release.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_comparison_has_a_figure_that_was_declared(found):
    head, *lines = found["table"].splitlines()
    point = found["compared"]["points"][0]
    share = point["small_class_share"]

    assert 0 < share <= 1
    assert point["headline"]["small_class_share"] == share
    assert "in small groups" in head
    assert any(f"{share:.1%}" in line for line in lines if line.startswith(">"))
    assert "In small groups" in found["explore"]


def test_attack_report_and_page_have_a_figure_that_was_declared(found):
    (row,) = (row for row in found["attacked"] if row["name"] == "small_class_share")

    assert row["before"] == 1
    assert row["what"] == WORDS
    for front in ("attack", "report", "risk"):
        assert "Small groups" in found[front]
        assert WORDS in found[front]


def test_comparison_report_and_page_have_a_score_that_was_declared(found):
    (scores,) = found["compared"]["points"][0]["utility"]["classifiers"].values()

    assert scores["error_rate"]["mean"] == pytest.approx(1 - scores["accuracy"]["mean"])
    assert "Share predicted wrong" in found["report"]
    assert "Error rate" in found["utility"]
