"""Cross-validated utility: the folds are honest, and what can be learned is learned."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.encoding import GeneralizedEncoder
from sfumato.evaluation.utility import cross_validated_utility
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table


def learnable(n_rows=300, noise=0.0):
    """Make a class that age and job decide, and a column that says nothing."""
    rng = np.random.default_rng(0)
    age, job = rng.integers(18, 80, n_rows), rng.integers(0, 3, n_rows)
    ill = ((age > 45) ^ (job == 1)) ^ (rng.random(n_rows) < noise)
    cells = {
        "age": [str(a) for a in age],
        "job": ["{x}|y"[j : j + 3] for j in job],  # values that look like syntax
        "note": [str(i % 7) for i in range(n_rows)],
        "ill": np.where(ill, "yes", "no").tolist(),
    }
    columns = [
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("note", Role.OTHER),
        Column("ill", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.mark.slow
@pytest.mark.parametrize(
    "recoder", [None, ErrorRiskTree(k=5), ErrorRiskTree(k=5, generalization="uniform"), Mondrian(5)]
)
@pytest.mark.parametrize("sets", ["shares", "label"])
def test_what_can_be_learned_is_learned(recoder, sets):
    found = cross_validated_utility(learnable(), recoder, encoder=lambda: GeneralizedEncoder(sets=sets), n_folds=5)

    assert found.error < 0.15
    assert len(found.folds) == 5
    assert (found.certainty_penalty == 0) == (recoder is None)


@pytest.mark.slow
def test_nothing_is_learned_from_noise():
    found = cross_validated_utility(learnable(noise=0.5), ErrorRiskTree(k=5), n_folds=5)

    assert 0.35 < found.error < 0.65


@pytest.mark.slow
def test_any_classifier_and_the_same_seed_the_same_result():
    calls = []
    arguments = {"classifier": LogisticRegression(max_iter=2000), "n_folds": 3, "seed": 7}
    first = cross_validated_utility(learnable(), Mondrian(5), **arguments, progress=lambda *told: calls.append(told))
    again = cross_validated_utility(learnable(), Mondrian(5), **arguments)

    assert [fold.error for fold in first.folds] == [fold.error for fold in again.folds]
    assert calls == [(0, 3, "fold"), (1, 3, "fold"), (2, 3, "fold")]
    assert first.seconds > 0


def test_a_table_without_target_and_too_many_folds_are_refused():
    table = learnable(20)

    with pytest.raises(SchemaError, match="no target to predict"):
        cross_validated_utility(table.keep(["age", "job"]), None)
    with pytest.raises(InvalidParameterError, match="n_folds must be a whole number of at least 2 and at most"):
        cross_validated_utility(table, None, n_folds=21)


@pytest.mark.parametrize("n_folds", [1, 0, True, 2.5, "3", None])
def test_a_number_of_folds_that_is_none_is_refused(n_folds):
    with pytest.raises(InvalidParameterError, match="n_folds must be a whole number of at least 2"):
        cross_validated_utility(learnable(30), None, n_folds=n_folds)


def targeted(classes, kind=Kind.CATEGORICAL, **more):
    cells = {"age": [str(i % 30) for i in range(len(classes))], **more, "class": classes}
    columns = [Column("age", kind=Kind.NUMERIC), *(Column(n) for n in more), Column("class", Role.TARGET, kind)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def test_classes_that_are_rarer_than_folds():
    rare = targeted(["a"] * 20 + ["b"] * 18 + ["c"] * 2)

    found = cross_validated_utility(rare, Mondrian(5), n_folds=5)
    assert len(found.folds) == 5
    with pytest.raises(InvalidParameterError, match=r"at most 20 \(rows of the most frequent class\), got 21"):
        cross_validated_utility(rare, None, n_folds=21)


def test_a_class_that_only_the_test_part_has_leaves_no_curve():
    """One of the folds tests on the only row of a third class, and trains on the other two."""
    found = cross_validated_utility(targeted(["a"] * 6 + ["b"] * 2 + ["c"]), None, n_folds=4)

    assert found.auc is None
    assert [fold.auc is None for fold in found.folds] == [True] * 4


def test_a_quantity_is_no_class():
    numbers = [str(i / 2) for i in range(63)]

    with pytest.raises(SchemaError, match="'class': has 21 different numbers, but only classes can be predicted"):
        cross_validated_utility(targeted(numbers[:21] * 3, Kind.NUMERIC), None, n_folds=3)
    assert len(cross_validated_utility(targeted(numbers[:20] * 3, Kind.NUMERIC), None, n_folds=3).folds) == 3


@pytest.mark.parametrize("recoder", [Mondrian(30), ErrorRiskTree(30, generalization="uniform")])
def test_columns_that_say_nothing_leave_the_most_frequent_class(recoder):
    classes = ["no"] * 40 + ["yes"] * 20
    cells = {"job": [f"j{i}" for i in range(60)], "nothing": pa.nulls(60, pa.string()), "class": classes}
    columns = [Column("job"), Column("nothing"), Column("class", Role.TARGET)]
    table = Table.from_arrow(pa.table(cells), Schema.of(columns))

    assert cross_validated_utility(table, recoder, n_folds=2).error == pytest.approx(1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("recoder", [None, Mondrian(3)])
@pytest.mark.parametrize("role", [Role.OTHER, Role.QUASI_IDENTIFIER])
@pytest.mark.parametrize(
    ("kind", "domain", "known"),
    [(Kind.DATE, None, ["2020-01-01", "2020-01-02"]), (Kind.ORDERED, ("low", "high"), ["low", "high"])],
)
def test_a_value_without_a_place_in_one_fold_only(recoder, role, kind, domain, known):
    cells = {"when": [*known * 20, "canary"], "class": ["a", "b"] * 20 + ["a"]}
    columns = [Column("when", role, kind, domain=domain), Column("job"), Column("class", Role.TARGET)]
    table = Table.from_arrow(pa.table({**cells, "job": list("xyz" * 13 + "xy")}), Schema.of(columns))

    assert cross_validated_utility(table, recoder, n_folds=4).error < 0.3


def test_truth_values_declared_numeric_are_learned_from():
    flags = [None if i % 7 == 6 else i % 2 == 0 for i in range(60)]
    cells = {"flag": pa.array(flags), "class": ["a", "b"] * 30}
    columns = [Column("flag", kind=Kind.NUMERIC), Column("class", Role.TARGET)]
    table = Table.from_arrow(pa.table(cells), Schema.of(columns))

    assert cross_validated_utility(table, None, n_folds=3).error < 0.2
    assert cross_validated_utility(table, Mondrian(3), n_folds=3).error < 0.2


def test_what_is_no_classifier_is_refused():
    with pytest.raises(
        InvalidParameterError, match="classifier must be a scikit-learn classifier, or None, got an obj"
    ):
        cross_validated_utility(learnable(30), None, classifier=3)
