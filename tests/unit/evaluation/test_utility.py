"""Cross-validated utility: the folds are honest, and what can be learned is learned."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.encoding import GeneralizedEncoder
from sfumato.evaluation.utility import cross_validated_utility
from sfumato.recoding.mondrian_mechanism import Mondrian
from sfumato.recoding.tree import ErrorRiskTree
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


@pytest.mark.parametrize(
    "recoder", [None, ErrorRiskTree(k=5), ErrorRiskTree(k=5, generalization="uniform"), Mondrian(5)]
)
@pytest.mark.parametrize("sets", ["shares", "label"])
def test_what_can_be_learned_is_learned(recoder, sets):
    found = cross_validated_utility(learnable(), recoder, encoder=lambda: GeneralizedEncoder(sets=sets), n_folds=5)

    assert found.error < 0.15
    assert len(found.folds) == 5
    assert (found.certainty_penalty == 0) == (recoder is None)


def test_nothing_is_learned_from_noise():
    found = cross_validated_utility(learnable(noise=0.5), ErrorRiskTree(k=5), n_folds=5)

    assert 0.35 < found.error < 0.65


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
    with pytest.raises(InvalidParameterError, match="n_folds must be between 2 and 20 rows"):
        cross_validated_utility(table, None, n_folds=21)
