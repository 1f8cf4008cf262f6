"""Binarizing: the plan, the automatic rules, and that every description gives its column back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.public_data import load_adult
from sfumato.audit.claims import ClaimedRecoding
from sfumato.audit.reading.values import evaluate as evaluate_in_audit
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, NotBinaryError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binarize import BinarizePlan, binarize, quantile_cuts, shortest_decimal
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table
from unit.table.call_counts import n_calls

TARGET = Column("ill", Role.TARGET)


def table_of(cells: dict[str, Any], **kinds: Kind) -> Table:
    """Make a table of quasi-identifiers, with ``ill`` as the target where it occurs."""
    arrow = pa.table(cells)
    columns = [TARGET if n == "ill" else Column(n, kind=kinds.get(n, Kind.CATEGORICAL)) for n in arrow.column_names]
    return Table.from_arrow(arrow, Schema.of(columns))


def plan_of(**columns: Any) -> BinarizePlan:
    return BinarizePlan.from_dict({"columns": columns})


def is_one_of(cell: Any, values: list[str]) -> bool:
    if isinstance(cell, bool):
        return ("true" if cell else "false") in values
    if isinstance(cell, int | float):
        return any(float(value) == cell for value in values)
    return cell in values


def evaluate(description: dict[str, Any], cell: Any) -> int:
    """Somebody else's reading of a feature's description, from its documentation only."""
    rule = description["rule"]
    if rule == "missing":
        return int(cell is None)
    if cell is None:
        return 0
    if rule == "as-is":
        return int(cell in (1, "1"))
    if rule == "one-of":
        return int(is_one_of(cell, description["values"]))
    over = "above" not in description or float(cell) > description["above"]
    return int(over and ("upto" not in description or float(cell) <= description["upto"]))


def assert_reversible(table: Table, binary: BinaryTable) -> None:
    dense = binary.matrix.toarray()
    for j, feature in enumerate(binary.features):
        cells = table[feature.column].cells().to_pylist()
        assert dense[:, j].tolist() == [evaluate(feature.to_dict(), cell) for cell in cells]


def features(binary: BinaryTable) -> dict[str, list[int]]:
    return dict(zip(binary.feature_names, binary.matrix.toarray().T.tolist(), strict=True))


def test_cuts_give_half_open_bands_named_without_commas() -> None:
    table = table_of({"age": ["25", "26", "35", "56", "55"], "ill": list("yynny")}, age=Kind.NUMERIC)

    binary = binarize(table, plan_of(age={"cuts": [25, 35, 55]}))

    assert features(binary) == {
        "age<=25": [1, 0, 0, 0, 0],
        "25<age<=35": [0, 1, 1, 0, 0],
        "35<age<=55": [0, 0, 0, 0, 1],
        "age>55": [0, 0, 0, 1, 0],
    }
    assert [f.to_dict() for f in binary.features][1] == {
        "name": "25<age<=35",
        "column": "age",
        "rule": "interval",
        "above": 25.0,
        "upto": 35.0,
    }
    assert binary.companions.schema.names() == ("ill",)


def test_cuts_apply_to_a_categorical_column_whose_values_are_numbers() -> None:
    binary = binarize(table_of({"age": ["9", "10"]}), plan_of(age={"cuts": [9.5]}))

    assert features(binary) == {"age<=9.5": [1, 0], "age>9.5": [0, 1]}


def test_one_of_is_a_single_feature_with_a_given_or_a_made_name() -> None:
    table = table_of({"race": ["White", "Black", "Other", None]})

    named = binarize(table, plan_of(race={"one_of": ["White"], "name": "white"}))
    unnamed = binarize(table, plan_of(race={"one_of": ["Black", "Other", "Elsewhere"]}))

    assert features(named) == {"white": [1, 0, 0, 0], "race missing": [0, 0, 0, 1]}
    assert features(unnamed)["race=Black|Other|Elsewhere"] == [0, 1, 1, 0]


def assert_audit_agrees(table: Table, binary: BinaryTable) -> None:
    """Let the audit evaluate the descriptions, with its own code."""
    dense = binary.matrix.toarray()
    for j, feature in enumerate(binary.features):
        claim = ClaimedRecoding(feature.name, feature.column, feature.rule, feature.values, feature.above, feature.upto)
        found = evaluate_in_audit(claim, table[feature.column].values)
        assert found is not None
        assert found[table[feature.column].codes].tolist() == dense[:, j].tolist()


@pytest.mark.parametrize(
    ("cells", "one_of", "ones"),
    [
        pytest.param(["1", "1.0", "2"], [1], [1, 0, 0], id="text by spelling"),
        pytest.param(["1", "1.0", "2"], ["1", "1.0"], [1, 1, 0], id="text in listed spellings"),
        pytest.param([1, 1, 2], ["1.0"], [1, 1, 0], id="integers"),
        pytest.param([2**53, 2**53 + 1], [2**53 + 1], [0, 1], id="large integers"),
        pytest.param([0.0, -0.0, 0.5], ["0.50", "0"], [1, 1, 1], id="floats"),
        pytest.param(pa.array([0.1, 0.2], pa.float32()), ["0.10"], [1, 0], id="single precision"),
        pytest.param([Decimal("1.50"), Decimal("2.00")], ["1.5", "x"], [1, 0], id="decimals"),
        pytest.param([True, False], ["TRUE"], [1, 0], id="truth values"),
        pytest.param([True, False], [1], [1, 0], id="truth values as numbers"),
    ],
)
def test_one_of_records_what_was_asked_for_and_means_what_the_audit_reads(
    cells: Any, one_of: list[Any], ones: list[int]
) -> None:
    table = table_of({"grade": cells}, grade=Kind.NUMERIC)
    plan = plan_of(grade={"one_of": one_of, "name": "first"})

    binary = binarize(table, plan)

    assert features(binary) == {"first": ones}
    assert list(binary.features[0].values) == plan.to_dict()["columns"]["grade"]["one_of"]
    assert_audit_agrees(table, binary)


def test_one_of_without_any_matching_value_is_refused_without_showing_a_cell() -> None:
    with pytest.raises(SchemaError, match="'race': holds none of the 1 values") as caught:
        binarize(table_of({"race": ["Canary"]}), plan_of(race={"one_of": ["white"]}))

    assert "Canary" not in str(caught.value)


def test_values_give_one_feature_for_each_value_that_occurs() -> None:
    binary = binarize(table_of({"race": ["White", "Black", "White", None]}), plan_of(race="values"))

    assert features(binary) == {"race=Black": [0, 1, 0, 0], "race=White": [1, 0, 1, 0], "race missing": [0, 0, 0, 1]}


def test_two_spellings_of_a_number_are_two_values() -> None:
    """Else a description would list the odd spelling of a single row."""
    table = table_of({"rooms": ["1", "2", "1.0"]}, rooms=Kind.NUMERIC)

    binary = binarize(table, plan_of(rooms="values"))

    assert features(binary) == {"rooms=1": [1, 0, 0], "rooms=1.0": [0, 0, 1], "rooms=2": [0, 1, 0]}
    assert all(len(feature.values) == 1 for feature in binary.features)
    assert_audit_agrees(table, binary)


def test_zero_has_no_sign() -> None:
    table = table_of({"change": [0.0, -0.0, 2.5]}, change=Kind.NUMERIC)

    binary = binarize(table, plan_of(change="values"))

    assert features(binary) == {"change=0": [1, 1, 0], "change=2.5": [0, 0, 1]}
    assert_audit_agrees(table, binary)


@pytest.mark.parametrize("odd", ["YeS", "nO", "01", "1.00"])
def test_another_spelling_makes_a_yes_no_column_categorical(odd: str) -> None:
    usual = ["yes", "no"] if odd.isalpha() else ["1", "0"]
    table = table_of({"flag": [*usual, odd]})

    binary = binarize(table)

    assert sorted(binary.feature_names) == sorted(f"flag={text}" for text in [*usual, odd])
    with pytest.raises(NotBinaryError):
        binarize(table, plan_of(flag="as-is"))


@pytest.mark.parametrize(
    ("cells", "rule", "values"),
    [
        pytest.param([1, 0, 1], "as-is", (), id="integers"),
        pytest.param([1.0, 0.0, 1.0], "as-is", (), id="floats"),
        pytest.param(["1", "0", "1"], "as-is", (), id="digits"),
        pytest.param(["yes", "no", "Yes"], "one-of", ("yes", "Yes", "YES"), id="yes-no"),
        pytest.param(["TRUE", "FALSE", "TRUE"], "one-of", ("true", "True", "TRUE"), id="true-false-text"),
        pytest.param([True, False, True], "one-of", ("true", "True", "TRUE"), id="truth-values"),
        pytest.param(["1.0", "0", "1.0"], "one-of", ("1", "1.0"), id="spelled-numbers"),
        pytest.param([Decimal("1.00"), Decimal("0.00"), Decimal("1.00")], "as-is", (), id="decimals"),
    ],
)
@pytest.mark.parametrize("plan", [None, plan_of(flag="as-is")], ids=["automatic", "as-is"])
def test_zero_one_columns_keep_their_name(cells: list[Any], rule: str, values: tuple[str, ...], plan: Any) -> None:
    table = table_of({"flag": cells})

    binary = binarize(table, plan)

    assert features(binary) == {"flag": [1, 0, 1]}
    assert (binary.features[0].rule, binary.features[0].values) == (rule, values)
    assert_reversible(table, binary)
    assert_audit_agrees(table, binary)


def test_a_column_with_only_no_is_a_feature_without_ones() -> None:
    table = table_of({"flag": ["no", "no", None]})

    binary = binarize(table)

    assert features(binary) == {"flag": [0, 0, 0], "flag missing": [0, 0, 1]}
    assert binary.features[0].values == ("yes", "Yes", "YES")


def test_as_is_refuses_other_values_without_showing_them() -> None:
    with pytest.raises(NotBinaryError, match=r"'flag'.*3 distinct values") as caught:
        binarize(table_of({"flag": ["0", "1", "canary"]}), plan_of(flag="as-is"))

    assert "canary" not in str(caught.value)


def test_many_distinct_numbers_become_quantile_bands_at_short_cut_points() -> None:
    ages = [str(18 + i % 73) for i in range(730)]
    table = table_of({"age": ages}, age=Kind.NUMERIC)

    binary = binarize(table)

    assert binary.feature_names == ("age<=36", "36<age<=54", "54<age<=72", "age>72")
    assert np.diff(binary.matrix.indptr).tolist() == [190, 180, 180, 180]
    assert len(binarize(table, BinarizePlan(bands=7)).features) == 7


def test_heavy_ties_merge_bands_and_leave_none_empty() -> None:
    table = table_of({"gain": [0] * 900 + list(range(1, 101)), "top": [99] * 900 + list(range(100))}, gain=Kind.NUMERIC)
    table = table.with_schema(Schema.of([Column("gain", kind=Kind.NUMERIC), Column("top", kind=Kind.NUMERIC)]))

    binary = binarize(table)

    assert binary.feature_names == ("gain<=0", "gain>0", "top<=98", "top>98")
    assert np.diff(binary.matrix.indptr).min() > 0


def test_few_distinct_numbers_and_texts_become_one_feature_a_value() -> None:
    table = table_of({"rooms": [1, 2, 3], "town": ["A", "B", "A"]}, rooms=Kind.NUMERIC)

    assert binarize(table).feature_names == ("rooms=1", "rooms=2", "rooms=3", "town=A", "town=B")


@pytest.mark.parametrize("missing", [[], [None]], ids=["complete", "missing"])
def test_dates_are_dropped_unless_a_rule_is_given(missing: list[None]) -> None:
    born = ["2001-01-31", "1999-05-05", *missing]
    table = table_of({"born": born, "sex": list("mfm")[: len(born)]}, born=Kind.DATE)

    assert binarize(table).feature_names == ("sex=f", "sex=m")
    assert len(binarize(table, plan_of(born="values", sex="drop")).features) == 2 + len(missing)


def test_only_quasi_identifiers_become_features() -> None:
    columns = [
        Column("id", Role.IDENTIFIER),
        Column("sex"),
        Column("illness", Role.SENSITIVE),
        Column("ward", Role.OTHER),
    ]
    cells = pa.table(
        {"id": ["a", "b"], "sex": ["m", "f"], "illness": ["x", "y"], "ward": ["1", "2"], "ill": ["y", "n"]}
    )
    table = Table.from_arrow(cells, Schema.of([*columns, TARGET]))

    binary = binarize(table)

    assert binary.feature_names == ("sex=f", "sex=m")
    assert binary.companions.schema.names() == ("illness", "ward", "ill")
    assert binary.target().values.to_pylist() == ["n", "y"]


def test_missing_features_and_unlisted_columns_can_be_switched_off() -> None:
    table = table_of({"race": ["White", None], "age": ["30", "40"]}, age=Kind.NUMERIC)
    spec = {"missing_features": False, "unlisted": "drop", "columns": {"race": "values"}}

    assert binarize(table, BinarizePlan.from_dict(spec)).feature_names == ("race=White",)
    assert binarize(table, plan_of(race="drop")).feature_names == ("age=30", "age=40")


@pytest.mark.parametrize(
    "cells", [pa.array([], pa.string()), pa.array([None, None], pa.string())], ids=["no rows", "missing"]
)
def test_a_column_without_values_has_at_most_a_missing_feature(cells: pa.Array) -> None:
    binary = binarize(table_of({"x": cells}))

    assert features(binary) == ({"x missing": [1, 1]} if len(cells) else {})
    assert binary.n_rows == len(cells)


def test_rules_for_unknown_or_other_columns_are_refused() -> None:
    table = table_of({"age": ["1"], "ill": ["y"]})

    with pytest.raises(ColumnNotFoundError, match="did you mean 'age'"):
        binarize(table, plan_of(agee="values"))
    with pytest.raises(SchemaError, match="'ill': has a binarization rule and the role target"):
        binarize(table, plan_of(ill="values"))


def test_cuts_on_text_are_refused_without_showing_it() -> None:
    with pytest.raises(SchemaError, match="'age': has a rule for numbers") as caught:
        binarize(table_of({"age": ["canary", "5"]}), plan_of(age={"cuts": [4]}))

    assert "canary" not in str(caught.value)


def test_colliding_feature_names_name_the_columns_only() -> None:
    with pytest.raises(SchemaError, match=r"'a=canary': .*same name as column 'a'") as caught:
        binarize(table_of({"a": ["canary=x", "b"], "a=canary": ["x", "y"]}))

    assert "canary=x" not in str(caught.value)

    with pytest.raises(SchemaError, match="same name as column 'ill'"):
        binarize(table_of({"a": ["b", "c"], "ill": ["y", "n"]}), plan_of(a={"one_of": ["b"], "name": "ill"}))


@pytest.mark.parametrize("role", list(Role))
def test_a_feature_with_the_name_of_another_column_is_refused_whatever_its_role(role: Role) -> None:
    schema = Schema.of([Column("sex"), Column("sex=m", role)])
    table = Table.from_arrow(pa.table({"sex": ["m", "f"], "sex=m": ["p", "q"]}), schema)

    with pytest.raises(SchemaError, match=r"'sex': .*same name as column 'sex=m'.*Hint: rename column 'sex=m'"):
        binarize(table)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"band": 4}, "got also 'band'.*did you mean 'bands'"),
        ({"bands": 1}, "bands must be a whole number from 2"),
        ({"bands": True}, "bands must be a whole number from 2"),
        ({"missing_features": "yes"}, "missing_features must be true or false"),
        ({"unlisted": "keep"}, "unlisted must be 'automatic' or 'drop'"),
        ({"recipe": "adult19"}, "recipe must be one of 'adult-19', got 'adult19'.*did you mean 'adult-19'"),
        ({"recipe": "adult-19", "bands": 3}, "a recipe alone"),
        ({"columns": ["age"]}, "binarize.columns must be a table"),
        ({"columns": {"age": "value"}}, "binarize.columns.age must be .*did you mean 'values'"),
        ({"columns": {"age": 3}}, "exactly one of cuts, one_of and bands, got 3"),
        ({"columns": {"age": {}}}, "got a table with no keys"),
        ({"columns": {"age": {"cuts": [1], "bands": 2}}}, "exactly one of"),
        ({"columns": {"age": {"cuts": [1], "name": "x"}}}, "got also 'name'"),
        ({"columns": {"age": {"cuts": []}}}, "age.cuts must be a list of one or more different finite numbers"),
        ({"columns": {"age": {"cuts": [2, 1]}}}, "from small to large"),
        ({"columns": {"age": {"cuts": [1, 1]}}}, "different"),
        ({"columns": {"age": {"cuts": [1, float("inf")]}}}, "finite"),
        ({"columns": {"age": {"cuts": ["1"]}}}, "numbers"),
        ({"columns": {"age": {"bands": 2.5}}}, "age.bands must be a whole number"),
        ({"columns": {"age": {"one_of": "White"}}}, "age.one_of must be a list"),
        ({"columns": {"age": {"one_of": []}}}, "age.one_of must be a list"),
        ({"columns": {"age": {"one_of": ["a"], "name": ""}}}, "age.name must be a text"),
        ([], "binarize must be a table of settings"),
    ],
)
def test_mistakes_in_a_plan_are_named(spec: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        BinarizePlan.from_dict(spec)


def test_a_plan_survives_its_own_dict() -> None:
    spec = {
        "bands": 5,
        "missing_features": False,
        "unlisted": "drop",
        "columns": {
            "age": {"cuts": [25, 35.5]},
            "pay": {"bands": 3},
            "race": {"one_of": ["White", "3"], "name": "white"},
            "town": {"one_of": ["A"]},
            "sex": "values",
            "flag": "as-is",
            "note": "drop",
        },
    }

    plan = BinarizePlan.from_dict(spec)

    assert plan.to_dict() == spec
    assert BinarizePlan.from_dict(plan.to_dict()) == plan


def test_one_of_takes_numbers_and_truth_values_as_cells_write_them() -> None:
    plan = BinarizePlan.from_dict({"columns": {"x": {"one_of": [1.0, 2, 2.5, True, "a", 1]}}})

    assert plan.to_dict()["columns"]["x"]["one_of"] == ["1", "2", "2.5", "true", "a"]


def test_the_adult_recipe_is_a_plan_of_eight_columns() -> None:
    plan = BinarizePlan.from_dict({"recipe": "adult-19"})

    assert len(plan.columns) == 8
    assert BinarizePlan.from_dict(plan.to_dict()) == plan


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_the_adult_recipe_gives_the_papers_19_features_and_density() -> None:
    """[kAC17] prints 27.9 % for 32,561 rows."""
    table = load_adult()

    binary = binarize(table, BinarizePlan.from_dict({"recipe": "adult-19"}))

    assert binary.matrix.shape == (32_561, 19)
    assert binary.feature_names[:5] == ("age<=25", "25<age<=35", "35<age<=45", "45<age<=55", "age>55")
    assert round(100 * binary.matrix.nnz / (32_561 * 19), 1) == 27.9
    assert binary.target().counts.tolist() == [24_720, 7_841]
    assert_reversible(table.take(np.arange(500)), binarize(table.take(np.arange(500)), None))


@pytest.mark.slow
def test_work_grows_with_the_zero_one_columns_and_not_with_their_square() -> None:
    """A release of 25,000 columns within a second is a goal of the benchmark ``growth_columns``."""
    calls = {}
    for n_columns in (500, 2_000):
        rng = np.random.default_rng(0)
        cells = {f"t{i}": rng.random(200) < 0.01 for i in range(n_columns)}
        arrow = pa.table({name: flags.astype(np.int8) for name, flags in cells.items()})
        table = Table.from_arrow(arrow, Schema.of(Column(name) for name in cells))

        binary = binarize(table)
        calls[n_columns] = n_calls(lambda table=table: binarize(table))

        assert binary.matrix.nnz == sum(int(flags.sum()) for flags in cells.values())
    assert calls[2_000] <= 4.2 * calls[500]


numeric_cells = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.3f}"),
    st.sampled_from(["0", "1", "0.0", "-0", "1e3", "01"]),
)
SORTS = [  # Arrow type, kind, cells
    (pa.string(), Kind.NUMERIC, numeric_cells),
    (pa.int64(), Kind.NUMERIC, st.integers(-3, 30)),
    (pa.float64(), Kind.NUMERIC, st.floats(allow_nan=False)),
    (pa.string(), Kind.CATEGORICAL, st.text("ab,=|é ", min_size=1, max_size=3)),
    (pa.bool_(), Kind.CATEGORICAL, st.booleans()),
    (pa.string(), Kind.CATEGORICAL, st.sampled_from(["yes", "NO", "no", "Yes"])),
    (pa.string(), Kind.ORDERED, st.sampled_from(["0", "1"])),
]


@st.composite
def tables_with_plans(draw: st.DrawFn) -> tuple[Table, BinarizePlan]:
    n_rows = draw(st.integers(0, 40))
    cells, schema, rules = {}, [], {}
    for name in [f"c{i}" for i in range(draw(st.integers(1, 4)))]:
        arrow_type, kind, strategy = draw(st.sampled_from(SORTS))
        cells[name] = pa.array(draw(st.lists(st.none() | strategy, min_size=n_rows, max_size=n_rows)), arrow_type)
        schema.append(Column(name, kind=kind))
        numeric_rules = [{"cuts": [-1, 0.5, 20]}, {"bands": 3}] if kind is Kind.NUMERIC else []
        rule = draw(st.sampled_from([None, "values", "drop", *numeric_rules]))
        if rule is not None:
            rules[name] = rule
    plan = {"columns": rules, "bands": draw(st.integers(2, 6)), "missing_features": draw(st.booleans())}
    return Table.from_arrow(pa.table(cells), Schema.of(schema)), BinarizePlan.from_dict(plan)


@pytest.mark.slow
@given(tables_with_plans())
def test_every_description_evaluated_on_the_cells_gives_the_matrix(case: tuple[Table, BinarizePlan]) -> None:
    table, plan = case

    binary = binarize(table, plan)

    assert_reversible(table, binary)
    assert_audit_agrees(table, binary)
    assert binary.matrix.has_sorted_indices
    assert binary.matrix.data.dtype == np.uint8
    assert set(binary.matrix.data.tolist()) <= {1}


@pytest.mark.parametrize(
    ("low", "middle", "high", "expected"),
    [
        (23.0, 25.0, 28.0, 25.0),
        (36.2, 37.0, 41.0, 40.0),
        (0.1234, 0.1236, 0.1251, 0.124),
        (117_000.0, 117_827.0, 121_000.0, 120_000.0),
        (-0.4, -0.2, 0.3, 0.0),
        (5.0, 5.0, 6.0, 5.0),
        (1e308, 1.2e308, 1.5e308, 1.2e308),
    ],
)
def test_a_cut_point_is_the_shortest_decimal_in_its_range(
    low: float, middle: float, high: float, expected: float
) -> None:
    assert shortest_decimal(low, middle, high) == expected


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 20), min_size=1, max_size=60),
    st.integers(2, 8),
)
def test_quantile_cuts_leave_no_band_empty_and_never_exceed_the_bands(cells: list[float], bands: int) -> None:
    numbers, counts = np.unique(np.array(cells, dtype=np.float64), return_counts=True)

    cuts = quantile_cuts(numbers, counts, bands)

    filled = {int(np.searchsorted(np.array(cuts), number, side="left")) for number in numbers}
    assert list(cuts) == sorted(set(cuts))
    assert len(cuts) <= bands - 1
    assert filled == set(range(len(cuts) + 1))
    assert cuts or len(numbers) == 1


@pytest.mark.slow
@given(st.lists(st.integers(0, 10**6), min_size=100, max_size=200, unique=True), st.integers(2, 6))
def test_bands_of_distinct_numbers_are_about_equal(cells: list[int], bands: int) -> None:
    numbers = np.array(sorted(cells), dtype=np.float64)

    cuts = quantile_cuts(numbers, np.ones(len(numbers), dtype=np.int64), bands)

    shares = np.bincount(np.searchsorted(np.array(cuts), numbers, side="left")) / len(numbers)
    assert len(shares) == bands
    assert np.abs(shares - 1 / bands).max() < 0.06
