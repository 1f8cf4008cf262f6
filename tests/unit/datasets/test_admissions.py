"""The demo table: fixed for ever, shaped as documented, and worth learning from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.schema import Kind, Role
from sfumato.table.binarize import binarize
from sfumato.table.coding import Table

# The table is documented and shown in guides: a change of this digest is a change of the demo.
DIGEST = "95cacc7e814641d985c6cd6b1ed81bfdb33f8d2ab9608b09a1f6ece5adc40fb3"


@pytest.fixture(scope="module")
def table() -> Table:
    return admissions()


def digest(table: Table) -> str:
    lines = zip(*(column.cells().to_pylist() for column in table.columns.values()), strict=True)
    return hashlib.sha256("\n".join(",".join(map(str, line)) for line in lines).encode()).hexdigest()


def share(table: Table, name: str, value: Any) -> float:
    coded = table[name]
    return float(coded.counts[coded.values.to_pylist().index(value)] / table.n_rows)


def test_the_same_table_in_every_run_and_on_every_machine(table: Table) -> None:
    assert digest(table) == DIGEST
    assert digest(admissions(200, seed=21)) != digest(admissions(200))


def test_a_longer_table_begins_with_the_shorter_one(table: Table) -> None:
    assert digest(table.take(np.arange(300))) == digest(admissions(300))


def test_roles_and_kinds_are_set(table: Table) -> None:
    assert table.n_rows == 5000
    assert table.schema.names(Role.IDENTIFIER) == ("patient_id", "name")
    assert table.schema.names(Role.SENSITIVE) == ("discharge_diagnosis",)
    assert table.schema.target == "readmitted"
    assert len(table.schema.names(Role.QUASI_IDENTIFIER)) == 36
    assert table.schema["age"].kind is Kind.NUMERIC
    assert table.schema["admission_month"].kind is Kind.ORDERED
    assert table["patient_id"].n_distinct == 5000


@pytest.mark.slow
def test_flags_are_zero_or_one_and_between_one_and_45_percent_common() -> None:
    big = admissions(50_000)
    flags = [n for n in big.schema.names(Role.QUASI_IDENTIFIER) if big[n].values.to_pylist() == [0, 1]]

    shares = [share(big, name, 1) for name in flags]

    assert len(flags) == 30
    assert min(shares) > 0.01
    assert max(shares) < 0.46


def test_columns_depend_on_each_other(table: Table) -> None:
    def ones(name: str) -> Any:
        return table[name].codes == 1

    assert ones("insulin")[ones("diabetes")].mean() > 5 * ones("insulin")[~ones("diabetes")].mean()
    assert ones("copd")[ones("smoker")].mean() > 2 * ones("copd")[~ones("smoker")].mean()
    ages = table["age"].numbers()[table["age"].codes]
    assert ages[ones("dementia")].mean() > ages.mean() + 10


def test_the_diagnosis_has_common_and_rare_values(table: Table) -> None:
    counts = table["discharge_diagnosis"].counts

    assert len(counts) == 13
    assert counts.max() > 900
    assert counts.min() < 60


def test_marital_status_is_missing_now_and_then(table: Table) -> None:
    missing = {name: column.n_missing for name, column in table.columns.items() if column.n_missing}

    assert list(missing) == ["marital_status"]
    assert 50 < missing["marital_status"] < 150


@pytest.mark.slow
def test_a_linear_model_predicts_readmission_with_an_auc_of_about_three_quarters(table: Table) -> None:
    binary = binarize(table)
    model = LogisticRegression(C=0.1, max_iter=2000)

    auc = cross_val_score(
        model, binary.matrix.astype(float).tocsr(), binary.target().codes, cv=5, scoring="roc_auc"
    ).mean()

    assert 0.23 < share(table, "readmitted", "yes") < 0.27
    assert 0.73 < auc < 0.77


@pytest.mark.parametrize(
    "arguments", [{"n_rows": -1}, {"n_rows": 1_000_001}, {"n_rows": 2.5}, {"seed": -1}, {"seed": True}]
)
def test_impossible_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidParameterError, match="a whole number from 0"):
        admissions(**arguments)


def test_no_rows_give_an_empty_table() -> None:
    assert admissions(0).n_rows == 0
