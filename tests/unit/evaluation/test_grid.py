"""Grids: mechanisms propose their own points, say why they have none, and are checked before anything runs."""

import importlib.util
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation import points as grid_module
from sfumato.evaluation.points import MOST_POINTS, Point, grid_for, n_levels, quick_classifiers, usual_guarantees
from sfumato.evaluation.promises import other_kinds, sought_kind
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.mechanisms import base as contract
from sfumato.mechanisms.auto import Automatic
from sfumato.mechanisms.base import Compared, MechanismInfo, combinations
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.schema import Column, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table


def sparse_table(n_rows=40, n_features=6):
    rng = np.random.default_rng(0)
    target = Table.from_arrow(
        pa.table({"y": [str(i % 2) for i in range(n_rows)]}), Schema.of([Column("y", Role.TARGET)])
    )
    matrix = sp.csc_matrix(rng.integers(0, 2, (n_rows, n_features)).astype(np.uint8))
    return BinaryTable(matrix, tuple(Feature(f"f{i}", f"f{i}") for i in range(n_features)), target)


def names_of(grid):
    return {point.mechanism for point in grid.points}


def test_a_mixed_table_gets_points_of_all_mechanisms_but_noise_when_all_kinds_are_asked_for():
    grid = grid_for(admissions(n_rows=60), also=["all"])

    assert names_of(grid) | set(grid.left_out) == set(registered_mechanisms())
    assert set(grid.left_out) == {"laplace-dp", "exponential-dp", "mdav"}  # mdav promises no l
    for name in ("mondrian", "greedy-containment", "error-risk-tree"):
        assert {5, 10, 20} <= {point.parameters["k"] for point in grid.points if point.mechanism == name}


def test_without_a_wish_every_point_seeks_strict_k_anonymity_and_l_where_a_column_is_sensitive():
    with_sensitive = grid_for(admissions(n_rows=60))
    without = grid_for(admissions(n_rows=60).keep(["age", "sex", "emergency", "readmitted"]))

    for grid, has_l in ((with_sensitive, True), (without, False)):
        assert {sought_kind(point.mechanism, point.parameters) for point in grid.points} == {"k-anonymity"}
        assert all(point.parameters["k"] >= 5 for point in grid.points)
        assert {point.parameters.get("l") for point in grid.points} == ({2} if has_l else {None})
        assert names_of(grid) | set(grid.left_out) == set(registered_mechanisms())
    assert with_sensitive.left_out["greedy-containment"] == "it cannot promise l >= 2"
    assert "greedy-containment" in names_of(without)
    for name in ("random-flipping", "maximal-containment"):
        assert without.left_out[name].endswith("which is tried on request")


@pytest.mark.parametrize("kind", [kind for kind in other_kinds() if kind != "differential-privacy"])
def test_a_kind_that_is_asked_for_is_tried_beside_the_strict_one(kind):
    grid = grid_for(admissions(n_rows=60), also=[kind])

    assert {sought_kind(point.mechanism, point.parameters) for point in grid.points} == {"k-anonymity", kind}


def test_a_guarantee_of_another_kind_asks_for_that_kind_alone():
    grid = grid_for(admissions(n_rows=60), asked=[AskedGuarantee("containment", 7)])

    assert {sought_kind(point.mechanism, point.parameters) for point in grid.points} == {"containment"}
    assert all(point.parameters["k"] >= 7 for point in grid.points)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InvalidParameterError, match=r"also must be one of kk-anonymity, containment.*got 'k'"):
        grid_for(admissions(n_rows=20), also=["k"])


def test_cheap_points_at_the_asked_level_come_first():
    points = grid_for(admissions(n_rows=60).keep(["age", "sex", "emergency", "readmitted"])).points

    at_level = [point.parameters["k"] == 5 for point in points]
    assert at_level == sorted(at_level, reverse=True)
    at_five = [point for point in points if point.parameters["k"] == 5]
    costs = [registered_mechanisms()[point.mechanism].cost_of(point.parameters) for point in at_five]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("mechanism", "own"),
    [
        ("mondrian", {"split": "median"}),
        ("mondrian", {"split": "gain"}),
        ("error-risk-tree", {"generalization": "tiered", "rule": "literal", "refine": False}),
        ("error-risk-tree", {"generalization": "uniform", "rule": "literal", "refine": False}),
        ("gain-recoding", {"slicing": True, "gain_correction": "none"}),
        ("greedy-containment", {"criterion": "hamming_separation"}),
        ("greedy-containment", {"criterion": "distinguished_pairs"}),
        ("greedy-containment", {"criterion": "distinguished_pairs", "reveals": "both"}),
        ("maximal-containment", {}),
        ("breach-aware", {}),
        ("anatomy", {}),
    ],
)
def test_the_settings_of_the_papers_are_among_the_points(mechanism, own):
    grid = grid_for(admissions(n_rows=60), also=["all"], mechanisms=[mechanism])

    not_of_the_paper = {"k", "l", "max_seconds", "time_budget", "n_workers", "sensitive"}
    settings = [
        {name: value for name, value in point.parameters.items() if name not in not_of_the_paper}
        for point in grid.points
    ]
    assert own in settings


def test_without_a_sensitive_column_mechanisms_that_need_one_are_left_out_with_the_reason():
    grid = grid_for(admissions(n_rows=60).keep(["age", "sex", "readmitted"]))

    assert {name for name, why in grid.left_out.items() if why == "no column is sensitive"} == {
        "anatomy",
        "best-first-wrapper",
        "breach-aware",
        "slicing",
    }
    assert not names_of(grid) & set(grid.left_out)


def test_several_sensitive_columns_are_taken_in_turn_or_are_a_reason():
    described = {"a": Role.QUASI_IDENTIFIER, "s": Role.SENSITIVE, "u": Role.SENSITIVE, "y": Role.TARGET}
    schema = Schema.of([Column(name, role) for name, role in described.items()])
    table = Table.from_arrow(pa.table({name: ["p", "q"] for name in described}), schema)

    grid = grid_for(table, mechanisms=["anatomy", "slicing", "breach-aware"])
    assert [point.parameters["sensitive"] for point in grid.points] == ["s", "u"]
    assert set(grid.left_out.values()) == {"2 columns are sensitive, and it protects one"}
    assert list(grid.left_out) == ["anatomy", "slicing"]


def test_l_is_asked_of_every_sensitive_column():
    table = admissions(n_rows=60)
    several = table.with_schema(table.schema.with_roles({"diabetes": Role.SENSITIVE}))

    assert [str(asked) for asked in usual_guarantees(several)] == ["k >= 5", "l >= 2"]
    assert {point.parameters["l"] for point in grid_for(several).points} == {2}
    assert [str(asked) for asked in usual_guarantees(table.keep(["age", "readmitted"]))] == ["k >= 5"]


@pytest.mark.parametrize("asked", ["beta=2", "delta=2", "alpha=0.9"])
def test_shares_of_sensitive_values_can_be_asked_for(asked):
    """Of every mechanism that promises them; the tree does of one column."""
    wanted, table = AskedGuarantee.parse(asked), admissions(n_rows=60)
    several = table.with_schema(table.schema.with_roles({"diabetes": Role.SENSITIVE}))
    recodings = {"mondrian", "global-recoding", "gain-recoding", "local-recoding"}

    assert names_of(grid_for(table, asked=[wanted])) == {*recodings, "error-risk-tree"}
    assert names_of(grid_for(several, asked=[wanted])) == recodings
    assert {point.parameters[wanted.name] for point in grid_for(table, asked=[wanted]).points} == {wanted.value}


def test_a_mechanism_whose_l_is_about_one_column_is_left_out_where_several_are_sensitive():
    """Else its points would be tried, and fail one by one for the same reason."""
    table = admissions(n_rows=60)
    several = table.with_schema(table.schema.with_roles({"diabetes": Role.SENSITIVE}))
    grid = grid_for(several)

    assert "error-risk-tree" in names_of(grid_for(table))
    assert "error-risk-tree" not in names_of(grid)
    assert grid.left_out["error-risk-tree"] == "2 columns are sensitive, and it protects one"

    with_others = grid_for(several, also=["kk-anonymity"]).points
    own = [point.parameters for point in with_others if point.mechanism == "error-risk-tree"]
    assert own
    assert not any("l" in parameters or parameters.get("generalization") == "uniform" for parameters in own)
    for_k = grid_for(several, asked=[AskedGuarantee("k", 5)])
    assert "error-risk-tree" in names_of(for_k)


def test_what_auto_makes_is_there_once_and_by_its_name():
    table = admissions(n_rows=60)
    points = grid_for(table).points

    chosen = Automatic(k=5).for_table(table)
    assert (chosen.mechanism_name, chosen.split) == ("mondrian", "score")
    assert [point.label for point in points if point.mechanism == "auto"] == ["auto k=5 l=2"]
    scored = [point.parameters["k"] for point in points if point.parameters.get("split") == "score"]
    assert scored == [10, 20]


def test_sparse_tables_get_the_containment_family_on_request():
    strict = grid_for(sparse_table())
    assert {point.parameters.get("reveals") for point in strict.points if point.mechanism != "auto"} == {"both"}
    assert [point.parameters for point in strict.points if point.mechanism == "auto"] == [{"k": 5}]
    grid = grid_for(sparse_table(), also=["containment"])

    assert {"greedy-containment", "maximal-containment", "exact-containment", "optimal-containment"} <= names_of(grid)
    assert "sparse" in grid.left_out["mondrian"]
    assert not {"error-risk-tree", "global-recoding", "gain-recoding"} & names_of(grid)


def test_a_missing_package_is_a_reason(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(contract, "find_spec", lambda name: None if name == "opendp" else real(name))

    assert grid_for(sparse_table()).left_out["laplace-dp"] == "the package opendp is not installed"


def test_very_many_columns_are_a_reason():
    columns = {f"c{i}": ["a", "b"] for i in range(5)} | {"y": ["0", "1"]}
    schema = Schema.of([Column(name, Role.TARGET if name == "y" else Role.QUASI_IDENTIFIER) for name in columns])
    table = Table.from_arrow(pa.table(columns), schema)

    assert Compared(({"k": 5},), most_columns=5)(table) == ({"k": 5},)
    with pytest.raises(SchemaError, match="5 quasi-identifiers are more than 4"):
        Compared(({"k": 5},), most_columns=4)(table)


@pytest.mark.parametrize(("values", "is_binary"), [(["0", "1"], True), (["0", "2"], False), (["0", None], False)])
def test_binary_columns_are_told_by_their_values(values, is_binary):
    columns = {"a": values, "y": ["0", "1"]}
    schema = Schema.of([Column("a"), Column("y", Role.TARGET)])
    table = Table.from_arrow(pa.table(columns), schema)
    compared = Compared(({},), needs_binary=True)

    if is_binary:
        assert compared(table) == ({},)
    else:
        with pytest.raises(SchemaError, match="not all quasi-identifiers are 0/1"):
            compared(table)


@pytest.mark.parametrize(("n_rows", "seconds"), [(10, 1.0), (15_000, 3.0), (400_000, 10.0)])
def test_time_limits_grow_with_the_rows(n_rows, seconds):
    table = Table.from_arrow(pa.table({"a": ["x"] * n_rows}), Schema.of([Column("a")]))

    assert Compared(({"k": 5},), time_limit="max_seconds")(table) == [{"k": 5, "max_seconds": seconds}]


def test_a_new_mechanism_is_compared_by_registering_itself(monkeypatch):
    plain = MechanismInfo(Mondrian, "why", "promises")
    known = {"new": plain, "own": replace(plain, compared=lambda table: [{"k": table.n_rows}])}
    monkeypatch.setattr(grid_module, "registered_mechanisms", lambda: known)
    monkeypatch.setattr(grid_module, "build_mechanism", lambda name, parameters: known[name].build(**parameters))

    table = admissions(n_rows=7).keep(["age", "sex", "readmitted"])
    assert grid_for(table).points == (Point("new"), Point("own", {"k": 7}))


@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=3, unique=True),
    st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
)
def test_chosen_lists_are_combined(ks, stricts):
    grid = grid_for(sparse_table(), {"mondrian": {"k": ks, "strict": stricts, "split": "median"}})

    expected = [{"k": k, "strict": strict, "split": "median"} for k, strict in product(ks, stricts)]
    assert [point.parameters for point in grid.points] == expected
    assert list(combinations({"k": ks, "strict": stricts, "split": ["median"]})) == expected


def asked_points(*wishes, mechanism):
    grid = grid_for(admissions(n_rows=60), mechanisms=[mechanism], asked=[AskedGuarantee.parse(one) for one in wishes])
    return [point.parameters for point in grid.points]


def test_proposals_take_the_asked_value_in_place_of_less_safe_ones():
    assert asked_points("k=25", mechanism="gain-recoding")[0]["k"] == 25
    assert {one["k"] for one in asked_points("k=25", mechanism="mondrian")} == {25}
    assert {one["k"] for one in asked_points("k=10", mechanism="mondrian")} == {10, 20}
    assert {one["k"] for one in asked_points("k=2", mechanism="mondrian")} == {3, 5, 10, 20}
    assert {one["l"] for one in asked_points("k=5", "l=3", mechanism="mondrian")} == {3}
    assert asked_points("k=5", "l=2", mechanism="mondrian") == asked_points(mechanism="mondrian")
    assert asked_points("k=25", mechanism="anatomy") == [{"l": 2}, {"l": 3}]
    assert asked_points("l=2.5", mechanism="anatomy") == [{"l": 3}]
    assert asked_points("k=7", "l=4", mechanism="slicing") == [{"k": 7, "l": 4}, {"k": 10, "l": 4}]
    assert all(type(settings["k"]) is int for settings in asked_points("k=25", mechanism="mondrian"))


def test_a_smaller_epsilon_is_the_safe_one():
    assert AskedGuarantee("epsilon", 0.5).raised_in({"epsilon": 1.0}) == {"epsilon": 0.5}
    assert AskedGuarantee("epsilon", 1.5).raised_in({"epsilon": 1.0}) == {"epsilon": 1.0}


def test_chosen_values_are_taken_as_they_are():
    grid = grid_for(admissions(n_rows=60), {"mondrian": {"k": [3]}}, asked=[AskedGuarantee("k", 25)])

    assert [point.parameters for point in grid.points] == [{"k": 3}]


def test_only_the_named_mechanisms_are_taken():
    grid = grid_for(admissions(n_rows=60), mechanisms=["mondrian", "laplace-dp"])

    assert names_of(grid) == {"mondrian"}
    assert list(grid.left_out) == ["laplace-dp"]


def test_a_plan_for_features_goes_to_those_who_take_one_and_have_none():
    chosen = {"mondrian": {}, "greedy-containment": {"binarize": [{"recipe": "adult-19"}]}, "random-flipping": {}}
    plan = {"columns": {"age": {"cuts": [40]}}}

    points = {point.mechanism: point.parameters for point in grid_for(sparse_table(), chosen, binarize=plan).points}
    assert points == {
        "mondrian": {},
        "greedy-containment": {"binarize": {"recipe": "adult-19"}},
        "random-flipping": {"binarize": plan},
    }


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"mondrain": {}}, "did you mean 'mondrian'"),
        ({"mondrian": {"q": [1]}}, "a parameter of mondrian"),
        ({"mondrian": {"k": ["many"]}}, "a whole number"),
        ({"mondrian": {"k": []}}, "an empty list"),
        ({"mondrian": {"k": list(range(2, MOST_POINTS + 3))}}, "at most 10,000 points"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(chosen, problem):
    with pytest.raises(InvalidParameterError, match=problem):
        grid_for(admissions(n_rows=20), chosen)


def test_labels_show_what_differs_and_no_limits_of_time():
    point = Point("gain-recoding", {"k": 5, "max_seconds": 2.0, "slicing": True, "threshold": 0.5, "hierarchies": {}})

    assert point.label == "gain-recoding k=5 slicing=true threshold=0.5 hierarchies=none"
    assert Point("anatomy").label == "anatomy"


def test_boosting_is_left_out_where_columns_have_many_values_in_all(monkeypatch):
    table = admissions(n_rows=60).keep(["age", "sex", "readmitted"])
    levels = table["age"].n_distinct + table["sex"].n_distinct
    assert n_levels(table) == levels

    monkeypatch.setattr(grid_module, "MOST_LEVELS_BOOSTED", levels)
    assert "gradient-boosting" in quick_classifiers(table)
    monkeypatch.setattr(grid_module, "MOST_LEVELS_BOOSTED", levels - 1)
    assert quick_classifiers(table) == ("logistic-regression", "naive-bayes")


def test_a_feature_has_two_values_and_a_quantity_counts_as_many_as_boosting_tells_apart():
    assert n_levels(sparse_table(n_features=6)) == 12
    ids = pa.table({"x": list(range(300)), "y": [str(i % 2) for i in range(300)]})
    assert n_levels(Table.from_arrow(ids, Schema.of([Column("x"), Column("y", Role.TARGET)]))) == 255
