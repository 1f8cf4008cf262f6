"""Scores as a criterion of partitions: of classes, a number, or several targets at once."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.learning import cross_fitted
from sfumato.learning.c45.criteria import Several, Variance
from sfumato.learning.cross_fitted import class_scores
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.score_guide import ScoreGuide
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

N_ROWS = 150


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    """Boost for fewer rounds, which is enough for what is tested."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 10)


def table_of(**roles):
    """Age and sex, of which a class of three and a cost depend on age alone."""
    rng = np.random.default_rng(2)
    age = rng.integers(20, 60, N_ROWS)
    cells = {
        "age": age,
        "sex": rng.choice(["f", "m"], N_ROWS),
        "grade": np.digitize(age + rng.normal(0, 4, N_ROWS), [33, 46]).astype(str),
        "cost": (age * 1.5 + rng.normal(0, 4, N_ROWS)).round(2),
    }
    kinds = {"age": Kind.NUMERIC, "cost": Kind.NUMERIC}
    columns = [Column(name, roles.get(name, Role.OTHER), kinds.get(name, Kind.CATEGORICAL)) for name in cells]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


QUASI = {"age": Role.QUASI_IDENTIFIER, "sex": Role.QUASI_IDENTIFIER}


def guide_of(table, **options):
    return ScoreGuide.of(table, axes_of(table, ("age", "sex")), **options)


@pytest.mark.slow
def test_classes_are_judged_by_the_summed_variance_of_their_scores():
    """Not by their labels; and rows vary most along one direction, which orders categories."""
    table = table_of(**QUASI, grade=Role.TARGET)
    guide = guide_of(table)
    columns = [axis.as_tree_column() for axis in axes_of(table, ("age", "sex"))]
    scores = class_scores(columns, table["grade"].codes)

    assert guide.criterion == Variance(3)
    assert float(guide.criterion.impurity(guide.statistics.sum(axis=0))) == pytest.approx(
        scores.var(axis=0).sum() * N_ROWS
    )
    assert guide.along.var() == pytest.approx(np.linalg.eigvalsh(np.cov(scores.T, bias=True))[-1])


@pytest.mark.slow
def test_a_quantity_and_several_targets_at_once():
    """Each as a share of its whole, as labels are."""
    table = table_of(**QUASI, cost=Role.TARGET)
    one, both = guide_of(table), guide_of(table, names="grade, cost")

    assert one.criterion == Variance()
    assert isinstance(both.criterion, Several)
    assert float(both.criterion.impurity(both.statistics.sum(axis=0))) == pytest.approx(2)
    assert abs(np.corrcoef(both.along, one.along)[0, 1]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("target", ["grade", "cost"])
def test_a_release_by_score_is_audited_and_keeps_the_true_target(target):
    """Strict k-anonymity; and the column that says nothing is not cut before the one that does."""
    table = table_of(**QUASI, **{target: Role.TARGET})
    release = make_release(table, Mondrian(k=10, split="score"))
    parameters = release.manifest.mechanism["parameters"]

    assert release.table[target].cells().equals(table[target].cells())
    assert release.manifest.evidence["risk"]["anonymity_level"] >= 10
    assert parameters["split"] == "score"
    assert "penalty_weight" in parameters
    assert len(set(release.table["age"].cells().to_pylist())) > 5


@pytest.mark.slow
def test_the_partition_does_not_depend_on_the_order_of_rows():
    """Nor do its cells."""
    table = table_of(**QUASI, grade=Role.TARGET)
    order = np.random.default_rng(0).permutation(N_ROWS)
    plain, shuffled = (Mondrian(k=5, split="score").release(rows).table for rows in (table, table.take(order)))

    assert shuffled.to_arrow().equals(plain.take(order).to_arrow())


def test_without_a_target_there_is_no_score():
    """Said before anything is computed."""
    with pytest.raises(SchemaError, match="no target"):
        Mondrian(split="score").release(table_of(**QUASI))


@pytest.mark.parametrize("penalty_weight", [-1, float("nan"), "much", True])
def test_a_weight_that_is_none_is_refused(penalty_weight):
    """By its name."""
    with pytest.raises(Exception, match="penalty_weight"):
        Mondrian(split="score", penalty_weight=penalty_weight).release(table_of(**QUASI, grade=Role.TARGET))


def test_other_splits_say_nothing_of_the_weight():
    """So that their manifests stay as they were."""
    release = Mondrian(k=5).release(table_of(**QUASI, grade=Role.TARGET))

    assert "penalty_weight" not in release.manifest.mechanism["parameters"]
