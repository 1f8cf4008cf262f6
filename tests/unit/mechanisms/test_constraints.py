"""Promises about a sensitive column as constraints on parts: spellings, several at once, and audited releases."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.counting.counts import DenseCounts
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import LDiversity, TCloseness
from sfumato.mechanisms.constraints import Promised, limits_of
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

QUASI = ("age",)


def table_of(illness, role=Role.SENSITIVE):
    """Count rows up, beside an illness."""
    cells = pa.table({"age": list(range(len(illness))), "illness": illness})
    columns = [Column("age", kind=Kind.NUMERIC), Column("illness", role)]
    return Table.from_arrow(cells, Schema.of(columns))


def test_l_counts_values_and_t_values_and_spellings():
    """Two spellings of one illness are one value for l; for t they must be spread evenly as well."""
    table = table_of(["flu", "Flu", "cold", "cold"])
    (diverse,) = limits_of(table, [LDiversity(2, "illness", QUASI)])
    (close,) = limits_of(table, [LDiversity(2, "illness", QUASI), TCloseness(0.2, "illness", QUASI)])
    codes, spelled = diverse.codes, close.codes
    one_spelling = np.bincount(spelled[[0, 2]], minlength=3)[None]

    assert codes.tolist() == [0, 0, 1, 1]
    assert diverse.constraint.describe() == "distinct 2-diversity"
    assert not diverse.keeps(np.bincount(codes[:2], minlength=2)[None])[0]
    assert len(set(spelled.tolist())) == 3
    assert close.constraint.describe() == "distinct 2-diversity and 0.2-closeness (equal distance)"
    assert close.keeps(np.bincount(spelled)[None])[0]
    assert not close.keeps(one_spelling)[0]
    assert close.constraint.levels(DenseCounts.alone(one_spelling)).tolist() == pytest.approx([0.25])


def test_nothing_promised_is_no_constraint():
    """So that nothing is counted for it."""
    assert limits_of(table_of(["flu", "cold"]), []) == []


def test_one_value_is_close_to_itself_and_parts_without_rows_too():
    """There is nothing to be far from."""
    equal, ordered = (TCloseness(0.0, "illness", QUASI, distance) for distance in ("equal", "ordered"))

    assert Promised(equal, np.array([4])).are_kept_by(DenseCounts.alone(np.array([[2], [0]]))).tolist() == [True, True]
    assert Promised(ordered, np.array([2, 2])).are_kept_by(DenseCounts.alone(np.array([[0, 0]]))).tolist() == [True]


@pytest.mark.parametrize("distance", ["equal", "ordered"])
@pytest.mark.parametrize("split", ["penalty", "median"])
def test_a_close_release_is_audited(distance, split):
    """The audit measures t on the released rows by code of its own."""
    rng = np.random.default_rng(1)
    table = table_of([f"i{value}" for value in rng.integers(0, 4, 80)])
    release = make_release(
        table, build_mechanism("mondrian", {"k": 3, "t": 0.3, "l": 2, "distance": distance, "split": split})
    )
    parameters = release.manifest.mechanism["parameters"]

    assert [guarantee.kind for guarantee in release.manifest.promised()] == [
        "k-anonymity",
        "l-diversity",
        "t-closeness",
    ]
    assert (parameters["t"], parameters["distance"]) == (0.3, distance)
    assert 1 < len(set(release.table["age"].cells().to_pylist())) < 80 / 3


def test_spellings_are_kept_close_in_a_release():
    """A partition that is close by values alone would be refused by the audit."""
    illness = ["flu", "Flu", "cold", "FLU"] * 10
    release = make_release(table_of(illness), Mondrian(k=2, privacy=[TCloseness(0.45)]))

    assert 1 < len(set(release.table["age"].cells().to_pylist())) <= 20


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"distance": "ordered"}, "distance"),
        ({"t": -0.1}, "t"),
        ({"t": 1}, "t"),
        ({"t": float("nan")}, "t"),
        ({"t": "near"}, "t"),
        ({"sensitive": "illness"}, "sensitive"),
    ],
    ids=["a distance alone", "below none", "any", "none", "no number", "a column alone"],
)
def test_what_makes_no_sense_is_refused_by_name(options, name):
    """Before anything is computed."""
    with pytest.raises(InvalidParameterError) as raised:
        build_mechanism("mondrian", {"k": 2, **options}).release(table_of(["flu", "cold"] * 4))

    assert raised.value.name == name


def test_closeness_needs_a_sensitive_column():
    """Named or by its role."""
    with pytest.raises(SchemaError, match="t-closeness is about sensitive columns, and the table has none"):
        Mondrian(k=2, privacy=[TCloseness(0.2)]).release(table_of(["flu", "cold"] * 4, Role.OTHER))


def test_other_promises_say_nothing_of_closeness():
    """So that their manifests stay as they were."""
    release = Mondrian(k=2, privacy=[LDiversity(2)]).release(table_of(["flu", "cold"] * 4))

    assert not {"t", "distance"} & set(release.manifest.mechanism["parameters"])
