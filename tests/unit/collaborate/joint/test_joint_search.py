"""The search for a joint k: the choices of a search over all rows in one place, and nothing else is opened."""

from __future__ import annotations

from collections import defaultdict
from threading import get_ident

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.joint.generalization import generalized_columns
from sfumato.collaborate.joint.search import PENALTY_BITS, JointTask, divide_pooled, divide_together
from sfumato.collaborate.shared_arithmetic import SharedArithmetic
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.errors import CollaborationError, InvalidParameterError, PrivacyNotAchievableError
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sizes import examples
from unit.collaborate.memory_channel import LocalNetwork

NAMES = ("anna", "bert", "cleo", "dora", "emil")
JOBS = Hierarchy.from_rows([("a", "v", "*"), ("e", "v", "*"), ("b", "w", "*"), ("c", "w", "*")])


def trees():
    features = {"n": ["1", "2", "3"], "job": list("aebc"), "sex": ["f", "m", None]}
    schema = SharedSchema.of_values(features, {"ill": ["n", "y"]})
    return generalized_columns(schema, {"job": JOBS})


def outcomes(places, holder, k, n_parties=3, max_rows=None):
    """Every party's classes, or its error."""
    names = NAMES[:n_parties]
    task = JointTask(trees(), k, max_rows or max(1, len(holder)))

    def take_part(name, channel):
        own = holder == names.index(name)
        return divide_together(channel, name, names, task, [p[own] for p in places], timeout=20.0)

    return list(LocalNetwork(names).run(take_part).values())


def brute_force(columns, rows, k):
    """Classes by plain loops, and recursion in place of a list of classes that wait: labels to rows."""

    def best_division(nodes, members):
        best = (0, None)
        for f, node in enumerate(nodes):
            sizes = [sum(rows[r][f] in child.places for r in members) for child in node.children]
            if not node.children or any(0 < size < k for size in sizes):
                continue
            n_values = columns[f].column.n_values
            cost = lambda n, n_values=n_values: 0.0 if n == 1 else n / n_values  # noqa: E731
            gain = sum(
                size * round((cost(len(node.places)) - cost(len(child.places))) * 2**PENALTY_BITS)
                for size, child in zip(sizes, node.children, strict=True)
            )
            if gain > best[0]:
                best = (gain, f)
        return best[1]

    def divided(nodes, members):
        f = best_division(nodes, members)
        if f is None:
            return {tuple(node.label for node in nodes): sorted(members)}
        found = {}
        for child in nodes[f].children:
            inside = [r for r in members if rows[r][f] in child.places]
            if inside:
                found |= divided([*nodes[:f], child, *nodes[f + 1 :]], inside)
        return found

    return divided([column.root for column in columns], list(range(len(rows))))


def as_labels(classes):
    return {tuple(node.label for node in one.nodes): sorted(one.rows.tolist()) for one in classes}


def random_rows(seed, n_rows):
    rng = np.random.default_rng(seed)
    return [np.minimum(rng.geometric(0.5, n_rows) - 1, size - 1) for size in (3, 4, 3)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(2, 8))
def test_the_search_in_one_place_is_that_of_plain_loops(seed, n_rows, k):
    places = random_rows(seed, n_rows)

    found = as_labels(divide_pooled(trees(), places, k))

    assert found == brute_force(trees(), list(zip(*map(np.ndarray.tolist, places), strict=True)), k)
    assert sorted(r for rows in found.values() for r in rows) == list(range(n_rows))
    assert n_rows < k or all(len(rows) >= k for rows in found.values())


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(6, 40), st.integers(2, 6), st.integers(3, 5))
@examples(8)
def test_parties_come_to_what_all_rows_in_one_place_give(seed, n_rows, k, n_parties):
    places = random_rows(seed, n_rows)
    holder = np.random.default_rng(seed).integers(0, n_parties, n_rows)

    found = outcomes(places, holder, k, n_parties)

    pooled = divide_pooled(trees(), places, k)
    for place, classes in enumerate(found):
        own = np.flatnonzero(holder == place)
        assert [one.nodes for one in classes] == [one.nodes for one in pooled]
        for one, whole in zip(classes, pooled, strict=True):
            assert own[one.rows].tolist() == [r for r in whole.rows.tolist() if holder[r] == place]


@pytest.fixture
def opened(monkeypatch):
    """Everything that is opened as a number of the computation, by the thread of the party that sees it."""
    seen = defaultdict(list)
    original = SharedArithmetic.opened

    async def recording(self, values):
        found = await original(self, values)
        seen[get_ident()].append(found)
        return found

    monkeypatch.setattr(SharedArithmetic, "opened", recording)
    return seen


@pytest.mark.slow
def test_nothing_is_opened_but_which_feature_is_divided_and_which_parts_are_empty(opened):
    """Every opened number follows from the classes that are left, and from the choices."""
    places = random_rows(5, 40)
    holder = np.arange(40) % 3

    classes = outcomes(places, holder, k=6)[0]

    seen, *others = opened.values()
    assert others == [seen, seen]
    left = [one.nodes for one in classes]
    waiting = [tuple(column.root for column in trees())]
    steps = iter(seen)
    assert next(steps) == [0, 0]  # not too many rows, not too few
    while waiting:
        choices = next(steps)
        assert len(choices) == len(waiting)
        emptiness = iter(next(steps)) if any(choices) else iter(())
        divided = []
        for nodes, choice in zip(waiting, choices, strict=True):
            if not choice:
                assert nodes in left
                continue
            for child in nodes[choice - 1].children:
                part = (*nodes[: choice - 1], child, *nodes[choice:])
                is_empty = next(emptiness)
                assert is_empty == (not any(_is_below(one, part) for one in left))
                divided += [] if is_empty else [part]
        waiting = divided
    assert not list(steps)


def _is_below(nodes, part):
    return all(set(node.places) <= set(whole.places) for node, whole in zip(nodes, part, strict=True))


@pytest.mark.slow
def test_what_is_opened_does_not_depend_on_who_has_which_rows(opened):
    places = random_rows(7, 30)
    outcomes(places, np.arange(30) % 3, k=5)
    one_way = next(iter(opened.values()))
    opened.clear()

    outcomes(places, np.arange(30) // 20, k=5)  # and a party without rows

    assert list(opened.values()) == [one_way] * 3


def test_too_few_and_too_many_rows_end_it_and_nothing_else_is_opened(opened):
    places = random_rows(1, 5)

    few = outcomes(places, np.arange(5) % 3, k=6)
    assert all(isinstance(error, PrivacyNotAchievableError) and error.best_level is None for error in few)
    many = outcomes(places, np.arange(5) % 3, k=2, max_rows=4)
    assert all(isinstance(error, InvalidParameterError) and error.name == "max_rows" for error in many)
    assert sorted(step for seen in opened.values() for step in seen) == [[0, 1]] * 3 + [[1, 0]] * 3


def test_a_party_with_another_k_is_named():
    places = random_rows(1, 9)

    def take_part(name, channel):
        task = JointTask(trees(), 3 if name == "bert" else 2, 9)
        return divide_together(channel, name, NAMES[:3], task, [p[:3] for p in places], timeout=5.0)

    found = LocalNetwork(NAMES[:3]).run(take_part)

    assert all(isinstance(error, CollaborationError) for error in found.values())
    assert found["anna"].party == found["cleo"].party == "bert"


@pytest.mark.parametrize(("k", "max_rows"), [(1, 9), (True, 9), (2.5, 9), (2, 0)])
def test_parameters_out_of_range_are_refused(k, max_rows):
    with pytest.raises(InvalidParameterError):
        JointTask(trees(), k, max_rows)
