"""Trees with l-diversity and t-closeness of their groups, and trees that are guided by scores."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import LDiversity, TCloseness
from sfumato.learning import cross_fitted
from sfumato.learning.c45.tree import LEAF, route
from sfumato.mechanisms.axes import axes_of
from sfumato.mechanisms.constraints import limits_of
from sfumato.mechanisms.registry import build_mechanism
from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
from sfumato.publishing.propose import make_release
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

N_ROWS = 160


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    """Boost for fewer rounds, which is enough for what is tested."""
    monkeypatch.setattr(cross_fitted, "N_ROUNDS", 5)


@pytest.fixture(scope="module")
def table():
    """Ages, jobs and an illness that go together, and a target."""
    rng = np.random.default_rng(9)
    age, job = rng.integers(20, 40, N_ROWS), rng.choice(["a", "b", "c"], N_ROWS)
    cells = {
        "age": age,
        "job": job,
        "illness": np.where(rng.random(N_ROWS) < 0.3, "flu", np.where(age > 30, "cold", "cough")),
        "target": np.where(age + 6 * (job == "a") + rng.normal(0, 3, N_ROWS) > 32, "yes", "no"),
    }
    columns = [
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("illness", Role.SENSITIVE),
        Column("target", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def counts_by_class(released, name):
    """How often each value of a column occurs among rows with equal cells."""
    cells = list(zip(*(released[one].cells().to_pylist() for one in ("age", "job")), strict=True))
    values = released[name].cells().to_pylist()
    held = {cell: [value for own, value in zip(cells, values, strict=True) if own == cell] for cell in set(cells)}
    return [[own.count(value) for value in sorted(set(values))] for own in held.values()]


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["lowest", "literal"])
@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize(
    "promise", [{"l": 2}, {"l": 1.5, "variant": "entropy"}, {"t": 0.4}, {"l": 2, "t": 0.45}], ids=str
)
def test_groups_keep_what_is_promised_of_the_sensitive_column(table, rule, refine, promise):
    """The audit confirms it, and so does a count by hand."""
    mechanism = build_mechanism(
        "error-risk-tree", {"k": 4, "generalization": "uniform", "rule": rule, "refine": refine, **promise}
    )
    release = make_release(table, mechanism)
    counts = counts_by_class(release.table, "illness")
    overall = np.sum(counts, axis=0) / N_ROWS

    assert len(release.manifest.promised()) == 1 + ("l" in promise) + ("t" in promise)
    assert min(map(sum, counts)) >= 4
    if promise.get("l") == 2:
        assert min(np.count_nonzero(count) for count in counts) >= 2
    if "t" in promise:
        assert max(np.abs(np.array(count) / sum(count) - overall).sum() / 2 for count in counts) <= promise["t"] + 1e-9


def test_pruning_by_the_lowest_rule_is_a_naive_recursion(table):
    """From the leaves up: a branch goes when what is left below it is a group that may not be one."""
    promised = [LDiversity(2, "illness", ("age", "job")), TCloseness(0.5, "illness", ("age", "job"))]
    (limit,) = limits_of(table, promised)
    mechanism = ErrorRiskTree(k=3, generalization="uniform", refine=False, privacy=[LDiversity(2), TCloseness(0.5)])
    mechanism.recode(table)
    tree = mechanism.tree_
    counts = [np.bincount(limit.codes[rows], minlength=3) for rows in rows_below(tree, node_of_rows(tree, table))]
    is_allowed = limit.keeps(np.array(counts)) & (tree.weights >= 3)

    def groups_below(node):
        if tree.attribute[node] == LEAF:
            return [node]
        below = [groups_below(child) for child in tree.children(node) if tree.weights[child]]
        is_cut = any(not is_allowed[left[0]] for left in below)
        return [node] if is_cut else [group for left in below for group in left]

    found = {group for group in mechanism.group_of_leaf_.tolist() if group != LEAF and tree.weights[group]}
    assert found == set(groups_below(0))
    assert 1 < len(found) < np.count_nonzero(tree.attribute == LEAF)


def node_of_rows(tree, table):
    return route(tree, [axis.as_tree_column() for axis in axes_of(table, ("age", "job"))])


def rows_below(tree, leaf_of_row):
    """Rows of every node, as flags."""
    found = np.zeros((tree.n_nodes, len(leaf_of_row)), dtype=bool)
    for row, node in enumerate(leaf_of_row.tolist()):
        while node >= 0:
            found[node, row] = True
            node = int(tree.parent[node])
    return found


def test_what_not_even_the_whole_table_has_is_refused(table):
    """With the level that it has."""
    with pytest.raises(PrivacyNotAchievableError, match="distinct 4-diversity of the sensitive column") as raised:
        ErrorRiskTree(generalization="uniform", privacy=[LDiversity(4)]).release(table)

    assert raised.value.best_level == 3


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"l": 2}, "generalization"),
        ({"t": 0.2}, "generalization"),
        ({"generalization": "uniform", "c": 2}, "c"),
        ({"generalization": "uniform", "distance": "ordered"}, "distance"),
        ({"guide": "feeling"}, "guide"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(table, options, name):
    """Tiered cells are shared between groups, so that their values are not those of one group."""
    with pytest.raises(InvalidParameterError) as raised:
        build_mechanism("error-risk-tree", {**options}).release(table)

    assert raised.value.name == name


@pytest.mark.slow
@pytest.mark.parametrize("generalization", ["uniform", "tiered"])
def test_a_tree_by_scores_is_audited_and_does_not_depend_on_the_order_of_rows(table, generalization):
    """Grown and refined by what is predicted; the true target is released."""
    order = np.random.default_rng(0).permutation(N_ROWS)
    mechanism = ErrorRiskTree(k=5, generalization=generalization, guide="score")
    release = make_release(table, mechanism)

    assert release.manifest.mechanism["parameters"]["guide"] == "score"
    assert release.table["target"].cells().equals(table["target"].cells())
    if generalization == "uniform":
        shuffled = mechanism.release(table.take(order)).table
        assert shuffled.to_arrow().equals(release.table.take(order).to_arrow())


def test_other_trees_say_nothing_of_what_they_do_not_use(table):
    """So that their manifests stay as they were."""
    parameters = ErrorRiskTree(k=5).release(table).manifest.mechanism["parameters"]

    assert not {"guide", "l", "t", "c", "variant", "distance", "sensitive"} & set(parameters)
