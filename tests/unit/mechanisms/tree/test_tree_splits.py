"""Trees that split one value off: what nodes disclose, releases, new rows, pictures, and what is said of no tree."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.displays.tree import TreeDisplay
from sfumato.errors import InvalidParameterError
from sfumato.learning import cross_fitted
from sfumato.learning.c45.criteria import Entropy, PlainGain
from sfumato.learning.c45.grow import grow
from sfumato.learning.c45.tree import LEAF, TreeColumn, route
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.tree import mechanism as tree_mechanism
from sfumato.mechanisms.tree.error_risk import domain_granularity, error_risk
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.mechanisms.tree.targets import Targets
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

TOWNS = ["Ahlen", "Bern", "Celle", "Delft", "Essen", "Fulda"]
N_ROWS = 240


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    """Boost for fewer rounds, which is enough for what is tested."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 5)


def made(seed=4, missing=0.0, n_rows=N_ROWS):
    """Towns of which the last is rare, ages, an illness and a target that hangs on all."""
    rng = np.random.default_rng(seed)
    town = rng.choice(TOWNS, n_rows, p=[0.3, 0.25, 0.2, 0.14, 0.1, 0.01])
    age, job = rng.integers(20, 60, n_rows), rng.choice(["clerk", "cook", "nurse"], n_rows)
    score = 3 * np.isin(town, ["Bern", "Delft"]) + (age > 40) + (job == "cook") + rng.normal(0, 0.7, n_rows)
    cells = {
        "town": pa.array([None if rng.random() < missing else value for value in town.tolist()]),
        "age": pa.array([None if rng.random() < missing else value for value in age.tolist()]),
        "job": pa.array(job),
        "illness": pa.array(rng.choice(["flu", "cold", "cough"], n_rows)),
        "target": pa.array(np.where(score > 2, "yes", "no")),
    }
    columns = [
        Column("town"),
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("illness", Role.SENSITIVE),
        Column("target", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.fixture(scope="module")
def table():
    return made()


def categorical(codes, n_values):
    return TreeColumn(np.array(codes, dtype=np.int32), n_values)


def test_a_node_discloses_by_the_values_that_the_splits_above_it_leave():
    """Four values, split off one after the other: 1 and 3, then 1 and 2, then 1 and 1 of 4 are left."""
    codes = np.repeat(np.arange(4), 8)
    tree = grow([categorical(codes, 4)], Entropy(4).statistics(codes), Entropy(4), splits="binary")

    shares = 2 ** -domain_granularity(tree, [categorical(codes, 4)])
    assert (shares * 4).tolist() == pytest.approx([4, 1, 3, 1, 2, 1, 1])


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60),
    st.sampled_from([Entropy(3), PlainGain(3)]),
)
def test_granularity_is_that_of_the_values_that_can_reach_a_node_and_lemma_3_holds(rows, criterion):
    """Every combination of values is sent down; the leaves fill the domain, so R(t) is at least R(B_t)."""
    first, second, labels = (np.array(part) for part in zip(*rows, strict=True))
    columns = [categorical(first, 5), categorical(second, 3)]
    tree = grow(columns, criterion.statistics(labels), criterion, splits="binary")
    every = np.array(list(itertools.product(range(5), range(3))))
    leaf_of = route(tree, [categorical(every[:, 0], 5), categorical(every[:, 1], 3)])
    found = error_risk(tree, columns, criterion)

    for leaf in np.flatnonzero(tree.attribute == LEAF).tolist():
        reaching = every[leaf_of == leaf]
        share = len(set(reaching[:, 0])) / 5 * len(set(reaching[:, 1])) / 3
        assert found.granularity[leaf] == pytest.approx(-math.log2(share), abs=1e-9)
    assert (found.information >= found.branch_information - 1e-9).all()
    assert not (found.ratio < -1e-9).any()


WAYS = [
    *itertools.product(
        ["binary", "multiway"], ["uniform", "tiered"], ["lowest", "literal"], [True, False], ["entropy"]
    ),
    ("binary", "uniform", "lowest", True, "gain"),
    ("binary", "tiered", "literal", False, "gain"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("splits", "generalization", "rule", "refine", "criterion"), WAYS)
def test_every_way_to_grow_and_cover_passes_the_audit_with_missing_values_too(
    splits, generalization, rule, refine, criterion
):
    table = made(missing=0.05)
    mechanism = ErrorRiskTree(6, generalization, rule, refine, criterion=criterion, splits=splits)
    release = make_release(table, mechanism)

    assert release.manifest.mechanism["parameters"]["splits"] == splits
    assert release.table.n_rows == table.n_rows
    if generalization == "uniform":
        assert release.manifest.evidence["risk"]["anonymity_level"] >= 6


@pytest.mark.slow
@pytest.mark.parametrize("splits", ["binary", "multiway"])
@pytest.mark.parametrize("more", [{"l": 2}, {"t": 0.4}, {"guide": "score"}, {"targets": "target,illness"}], ids=str)
def test_promises_scores_and_several_targets_go_with_both_ways_to_split(table, splits, more):
    release = make_release(
        table, build_mechanism("error-risk-tree", {"k": 5, "generalization": "uniform", "splits": splits, **more})
    )

    assert release.manifest.evidence["risk"]["anonymity_level"] >= 5


@pytest.mark.parametrize("generalization", ["uniform", "tiered"])
@pytest.mark.parametrize("refine", [True, False])
def test_rows_that_the_tree_has_seen_get_the_cells_of_their_part_and_new_values_some(table, generalization, refine):
    """Unknown towns count as missing and go to the heavier side; every new row gets cells of the release's parts."""
    recoding = ErrorRiskTree(6, generalization, refine=refine).recode(table)
    again = recoding.generalized(table.keep(["town", "age", "job"]))
    if generalization == "uniform":
        for name in ("town", "age", "job"):
            assert again[name].cells().equals(recoding.recoded(table)[name].cells())
    new = pa.table({"town": ["Gouda", None, "Bern"], "age": pa.array([70, 30, None]), "job": ["pilot", "cook", "cook"]})
    cells = recoding.generalized(Table.from_arrow(new, table.schema.keep(["town", "age", "job"])))
    known = {
        tuple(row.values()) for row in recoding.generalized(table.keep(["town", "age", "job"])).to_arrow().to_pylist()
    }

    assert {tuple(row.values()) for row in cells.to_arrow().to_pylist()} <= known


def test_one_rare_value_takes_a_whole_multiway_split_away_and_no_binary_one(table):
    """Town tells most of the target, and one town has fewer than k rows."""
    sizes = {}
    for splits in ("multiway", "binary"):
        mechanism = ErrorRiskTree(10, "uniform", refine=False, splits=splits)
        recoding = mechanism.recode(table)
        sizes[splits] = len(recoding.rows_alike), recoding.certainty_penalty

    assert sizes["binary"][0] > sizes["multiway"][0]
    assert sizes["binary"][1] < sizes["multiway"][1]


def test_of_more_values_than_can_be_split_off_one_by_one_all_are_split_at_once(table, monkeypatch):
    monkeypatch.setattr(tree_mechanism, "MOST_SPLIT_OFF", len(TOWNS) - 1)
    mechanism = ErrorRiskTree(5)
    mechanism.recode(table)
    town = np.flatnonzero(mechanism.tree_.attribute == 0)

    assert len(town)
    assert (mechanism.tree_.n_children[town] == len(TOWNS)).all()
    job = np.flatnonzero(mechanism.tree_.attribute == 2)
    assert (mechanism.tree_.n_children[job] == 2).all()


def test_by_plain_gain_the_tree_makes_other_choices_and_counts_the_same_errors(table):
    of_entropy, of_gain = (Targets.of(table, choice).criterion for choice in ("entropy", "gain"))
    sums = np.array([[30.0, 10.0], [0.0, 5.0]])

    assert of_entropy.error(sums).tolist() == of_gain.error(sums).tolist() == [10, 0]
    trees = []
    for criterion in ("entropy", "gain"):
        mechanism = ErrorRiskTree(5, criterion=criterion)
        mechanism.recode(table)
        trees.append(mechanism.tree_.attribute.tolist())
    assert trees[0] != trees[1]


def test_the_picture_names_the_value_that_is_split_off_and_the_rest(table):
    mechanism = ErrorRiskTree(10, "uniform", refine=False)
    mechanism.recode(table)
    display = TreeDisplay.from_recoder(mechanism, table, show_values=True)
    axes = axes_of(table, ("town", "age", "job"))
    at = int(np.flatnonzero(mechanism.tree_.attribute == 0)[0])
    value = axes[0].labels[int(mechanism.tree_.threshold[at])]

    assert [display.branches[child] for child in mechanism.tree_.children(at)] == [f"= {value}", f"≠ {value}"]
    assert display.n_empty == 0


@pytest.fixture(scope="module")
def unrelated():
    """Make a target that nothing tells, of which no split survives."""
    rng = np.random.default_rng(1)
    cells = {"town": rng.choice(TOWNS, 60), "age": rng.integers(20, 60, 60), "target": rng.choice(["no", "yes"], 60)}
    columns = [Column("town"), Column("age", kind=Kind.NUMERIC), Column("target", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "rows were divided by the penalty alone, whatever the target, as mondrian does"),
        ({"refine": False}, "all rows are one group"),
        ({"guide": "score"}, "rows were divided by the scores alone, as mondrian does"),
    ],
    ids=str,
)
def test_a_tree_that_is_pruned_to_its_root_says_so(unrelated, more, said):
    release = make_release(
        unrelated, build_mechanism("error-risk-tree", {"k": 20, "generalization": "uniform", **more})
    )

    assert release.manifest.evidence["utility"]["tree"] == f"no split of the tree is left at this k: {said}"


@pytest.mark.slow
def test_a_tree_of_which_splits_are_left_says_nothing_of_it(table):
    for generalization in ("uniform", "tiered"):
        assert "tree" not in make_release(table, ErrorRiskTree(5, generalization)).manifest.evidence["utility"]


def test_other_ways_to_split_are_refused_by_name(table):
    with pytest.raises(InvalidParameterError) as raised:
        ErrorRiskTree(splits="ternary").release(table)

    assert raised.value.name == "splits"


def test_numbers_that_no_code_can_be_are_cut_beside_values_that_are_split_off():
    """Thresholds of numeric columns are no codes, however large."""
    codes, numbers = np.repeat([0, 1, 2], 10), np.tile([-1e300, 1e300], 15)
    columns = [categorical(codes, 3), TreeColumn((numbers > 0).astype(np.int32), 2, np.array([-1e300, 1e300]))]
    labels = 2 * (codes == 1) + (numbers > 0)
    tree = grow(columns, Entropy(4).statistics(labels), Entropy(4), splits="binary")

    assert set(tree.attribute.tolist()) == {-1, 0, 1}
    assert (2 ** -domain_granularity(tree, columns)[tree.attribute == LEAF]).sum() == pytest.approx(1)
