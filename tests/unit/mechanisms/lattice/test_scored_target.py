"""Levels that keep information on a score of the target, in the place of its labels."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.counting.cells import cell_table
from sfumato.errors import InvalidParameterError
from sfumato.learning import cross_fitted
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.lattice.recoder import N_SCORE_INTERVALS, GlobalRecoder
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.score_guide import ScoreGuide
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    """Boost for fewer rounds, which is enough for what is tested."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 5)


@pytest.fixture(scope="module")
def table():
    """Ages, which a target follows, and a number that says nothing."""
    rng = np.random.default_rng(3)
    age = rng.integers(20, 60, 200)
    cells = {
        "age": age,
        "nothing": rng.integers(0, 40, 200),
        "target": np.where(age + rng.normal(0, 8, 200) > 40, "y", "n"),
    }
    numeric = [Column(name, kind=Kind.NUMERIC) for name in ("age", "nothing")]
    return Table.from_arrow(pa.table(cells), Schema.of([*numeric, Column("target", Role.TARGET)]))


def test_a_release_by_scores_is_audited_and_keeps_what_tells(table):
    """The column that says nothing is coarsened first."""
    mechanism = GlobalRecoder(k=5, loss="target_information", guide="score", max_suppressed_fraction=0.1)
    release = make_release(table, mechanism)

    assert release.manifest.mechanism["parameters"]["guide"] == "score"
    assert mechanism.levels_["age"] < mechanism.levels_["nothing"]
    assert 0 <= release.manifest.evidence["utility"]["target_information"] <= 1


def test_the_loss_is_that_of_the_definition_on_intervals_of_the_score(table):
    """1 - I(class; interval) / I(distinct row; interval), written out by hand for the levels that were found."""
    mechanism = GlobalRecoder(k=5, loss="target_information", guide="score", max_suppressed_fraction=0.0)
    recoding = mechanism.recode(table)
    intervals = ScoreGuide.of(table, axes_of(table, ("age", "nothing"))).intervals(N_SCORE_INTERVALS)
    recoded = recoding.recoded(table)
    classes, rows = (
        cell_table(one, ["age", "nothing"]).find(one.codes(["age", "nothing"])) for one in (recoded, table)
    )

    assert recoding.n_suppressed == 0
    assert mechanism.loss_ == pytest.approx(1 - information(classes, intervals) / information(rows, intervals))


def information(groups, values):
    """Mutual information in bits, pair by pair."""
    pairs = np.zeros((max(groups) + 1, max(values) + 1))
    np.add.at(pairs, (groups, values), 1 / len(groups))
    apart = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=0)
    return float((pairs[pairs > 0] * np.log2(pairs[pairs > 0] / apart[pairs > 0])).sum())


def test_intervals_hold_as_many_rows_each_and_equal_scores_together(table):
    """Whatever is counted: single rows or distinct ones."""
    guide = ScoreGuide.of(table, axes_of(table, ("age", "nothing")))
    intervals = guide.intervals(4)
    order = np.argsort(guide.along)

    assert (np.diff(intervals[order]) >= 0).all()
    assert np.bincount(intervals).tolist() == pytest.approx([50] * 4, abs=5)
    assert all(len(set(intervals[guide.along == place])) == 1 for place in set(guide.along))


@pytest.mark.parametrize("options", [{"guide": "score"}, {"guide": "feeling", "loss": "target_information"}], ids=str)
def test_scores_without_a_loss_of_the_target_are_refused(table, options):
    """By the parameter's name."""
    with pytest.raises(InvalidParameterError) as raised:
        build_mechanism("global-recoding", {**options}).release(table)

    assert raised.value.name == "guide"
