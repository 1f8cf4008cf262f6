"""Persons of distinct rows, as far as a search must know them: compared with sets of persons, row by row."""

from collections import defaultdict
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.counting.crowds import fewest_in_classes, first_of_each, keys_of_digests, person_keys, without_persons
from sfumato.engines.blocks.rows import open_large
from sfumato.engines.counting import count_blocks, count_merged
from sfumato.schema import Role
from unit.publishing.proposals.blockwise import made_open, small_blocks

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.sampled_from(["p1", "p2", "p3", "p4", "p5", "p6", None])),
    min_size=1,
    max_size=60,
)


TYPES = pa.schema([("age", pa.int64()), ("town", pa.string()), ("who", pa.string())])


def opened(rows, *, are_open):
    """Open rows of two columns and a person; the persons are listed or not."""
    cells = pa.table({name: [row[i] for row in rows] for i, name in enumerate(TYPES.names)}, TYPES)
    large = open_large(cells, memory=10**8).with_schema({"who": Role.PERSON})
    return made_open(large, "who") if are_open else large


def persons_by(rows, cell_of):
    found = defaultdict(set)
    for row in rows:
        found[cell_of(row)].add(row[2])
    return found


def capped(counted, k, class_of):
    """Persons of classes, at most k, from distinct rows and crowds."""
    found = defaultdict(set)
    are_crowds = set()
    for entry in range(len(counted.row_counts)):
        cell = tuple(counted[name].values[int(counted[name].codes[entry])].as_py() for name in ("age", "town"))
        code = int(counted["who"].codes[entry])
        found[class_of(cell)].add(code)
        if code == counted.crowd:
            are_crowds.add(class_of(cell))
    return {own: k if own in are_crowds else min(k, len(persons)) for own, persons in found.items()}


@given(ROWS, st.integers(1, 5), st.booleans(), st.integers(0, 2))
def test_every_class_has_as_many_persons_as_its_rows(rows, k, are_open, level):
    """At most k of them, for any class that is made of whole cells; and as few distinct rows as can be."""
    with small_blocks():
        counted = count_blocks(opened(rows, are_open=are_open), ["age", "town"], persons=("who", k), most_cells=1000)

    def class_of(cell):
        return (cell, (cell[0] // 2, cell[1]), cell[0])[level]

    expected = persons_by(rows, lambda row: class_of(row[:2]))
    assert capped(counted, k, class_of) == {own: min(k, len(persons)) for own, persons in expected.items()}
    assert int(counted.row_counts.sum()) == len(rows)
    in_cells = persons_by(rows, lambda row: row[:2]).values()
    assert len(counted.row_counts) == sum(1 if len(persons) >= k else len(persons) for persons in in_cells)


@given(ROWS, st.integers(1, 5), st.integers(0, 1))
def test_the_fewest_persons_of_a_class_are_told_or_not_known(rows, k, left_out):
    """Classes are ages; cells of one age may be in no class."""
    with small_blocks():
        counted = count_blocks(opened(rows, are_open=False), ["age", "town"], persons=("who", k), most_cells=1000)
    ages = counted["age"].values.to_pylist()
    classes = np.array([ages[code] for code in counted["age"].codes.tolist()], dtype=np.int64)
    classes[classes == left_out] = -1

    found = fewest_in_classes(counted, "who", classes, k)
    expected = min((len(own) for age, own in persons_by(rows, lambda r: r[0]).items() if age != left_out), default=0)
    assert found == expected or (found is None and expected >= k)
    without = without_persons(counted, "who", first_of_each(counted, "who"))
    assert len(without.row_counts) == len({row[:2] for row in rows})
    assert int(without.row_counts.sum()) == len(rows)


@given(ROWS, st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_distinct_rows_are_rolled_up_until_they_fit(rows, k, most, in_blocks):
    """The step is the first that fits, counted by brute force; in blocks it may be a later one."""
    large = opened(rows, are_open=False)
    known = large.outline["age"].values.to_pylist()
    halves = np.array([known.index(next(a for a in known if a // 2 == age // 2)) for age in known], dtype=np.int32)
    top = {name: np.zeros(len(large.outline[name].values), np.int32) for name in ("age", "town")}
    steps = [{}, {"age": halves}, {"age": top["age"]}, top]
    sizes = []
    for cell_of in (lambda r: r[:2], lambda r: (r[0] // 2, r[1]), lambda r: r[1], lambda _: 0):
        sizes.append(sum(1 if len(own) >= k else len(own) for own in persons_by(rows, cell_of).values()))
    with small_blocks() if in_blocks else nullcontext():
        counted, found = count_merged(large, ["age", "town"], steps, pairs={}, persons=("who", k), most_cells=most)

    fitting = [i for i, size in enumerate(sizes) if size <= most] or [len(steps) - 1]
    assert found >= fitting[0] if in_blocks else found == fitting[0]
    assert len(counted.row_counts) == sizes[found]
    assert int(counted.row_counts.sum()) == len(rows)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(["a", None, "b", "a", ""]),
        pa.array([2**62, None, -5, 2**62, 0]),
        pa.array([2**63, None, 5, 2**63, 0], pa.uint64()),
        pa.array([1.5, None, -0.5, 1.5, 2.0]),
    ],
)
def test_keys_tell_persons_apart_and_nothing_else(cells):
    keys = list(zip(*(own.tolist() for own in person_keys(cells)), strict=True))

    assert keys[0] == keys[3]
    assert len(set(keys)) == 4


def test_digests_of_a_cluster_tell_crowds_and_missing_persons_apart():
    keys = list(zip(*(own.tolist() for own in keys_of_digests(pa.array(["0" * 32, None, "", "0" * 32]))), strict=True))

    assert keys[0] == keys[3]
    assert len(set(keys)) == 3
