"""Levels of small generalized tables against the definitions: all pairs of rows, all ways to match them."""

from itertools import permutations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.original import consistency as components
from sfumato.audit.original import consistency as module
from sfumato.audit.original.consistency import consistency
from sfumato.audit.reading import cells as bit_rows
from sfumato.audit.reading.columns import Columns
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table

VALUES = {
    Kind.NUMERIC: [1, 2, 5, 10],
    Kind.CATEGORICAL: ["a", "b|", "{c}", "*"],
    Kind.ORDERED: ["low", "mid", "high", "top"],
    Kind.DATE: ["2024-01-31", "2024-02-01", "2024-12-24", "2025-01-01"],
}
DOMAIN = tuple(VALUES[Kind.ORDERED])


def escaped(value):
    return "".join("\\" + c if c in "\\|{}[],*" else c for c in str(value))


def in_set(members):
    return members[0] if len(members) == 1 else "{" + "|".join(members) + "}"


@st.composite
def generalized_cells(draw, kind, known, own):
    """Draw a cell as text and as the set of values that it stands for; ``own`` must be one of them unless it is ()."""
    values = [v for v in VALUES[kind] if v in known]
    chosen = draw(st.sets(st.sampled_from(sorted(known, key=str)), min_size=0 if own else 1)) | set(own)
    missing = [r"\N"] if None in chosen else []
    present = [v for v in values if v in chosen]
    form = draw(st.sampled_from(["any", "set", "range"]))
    if form == "any":
        return "*", set(known)
    if not present:
        return None, {None}
    if form == "range" and kind is not Kind.CATEGORICAL:
        between = values[values.index(present[0]) : values.index(present[-1]) + 1]
        text = f"[{escaped(present[0])}, {escaped(present[-1])}]"
        return (in_set([text, *missing]), set(between) | (chosen & {None}))
    return in_set([*map(escaped, draw(st.permutations(present))), *missing]), set(present) | (chosen & {None})


@st.composite
def releases(draw, is_true=True):
    """Draw original rows, released texts and the sets that these stand for, with kinds of the columns.

    In a true release each cell stands for its row's own value. Rows and cells come from small pools, so that equal ones
    are frequent.
    """
    kinds = draw(st.lists(st.sampled_from(Kind), max_size=3))
    row = st.tuples(*(st.sampled_from([*VALUES[kind], None]) for kind in kinds))
    pool = draw(st.lists(row, min_size=1, max_size=4))
    rows = draw(st.lists(st.sampled_from(pool), max_size=6))
    texts, meanings = [], []
    for original in rows:
        known = [{other[j] for other in rows} for j in range(len(kinds))]
        cells = [
            draw(generalized_cells(kind, known[j], (original[j],) if is_true else ())) for j, kind in enumerate(kinds)
        ]
        texts.append([text for text, _ in cells])
        meanings.append([meaning for _, meaning in cells])
    return kinds, rows, texts, meanings


def measured(kinds, rows, texts):
    names = [f"c{j}" for j in range(len(kinds))]
    columns = [
        Column(name, kind=kind, domain=DOMAIN if kind is Kind.ORDERED else None)
        for name, kind in zip(names, kinds, strict=True)
    ]
    types = [pa.int64() if kind is Kind.NUMERIC else pa.string() for kind in kinds]
    original = {name: pa.array([row[j] for row in rows], types[j]) for j, name in enumerate(names)}
    released = {name: pa.array([row[j] for row in texts], pa.string()) for j, name in enumerate(names)}
    before = coded(original, Schema.of(columns), len(rows))
    after = coded(released, Schema.of(Column(name) for name in names), len(rows))
    return consistency(Columns(after), Columns(before), names, generalized={c.name: c for c in columns})


def coded(cells, schema, n_rows):
    return Table.from_arrow(pa.table(cells), schema) if cells else Table(schema, {}, n_rows)


def is_consistent(original, meaning):
    return all(value in cell for value, cell in zip(original, meaning, strict=True))


def check_against_definitions(kinds, rows, texts, meanings):
    n = len(rows)
    edges = [[is_consistent(row, meaning) for meaning in meanings] for row in rows]
    matchings = [p for p in permutations(range(n)) if all(edges[i][p[i]] for i in range(n))]
    possible = [len({p[i] for p in matchings}) for i in range(n)]

    found = measured(kinds, rows, texts)

    assert found.released_per_original[found.originals.ids].tolist() == [sum(row) for row in edges]
    assert found.originals_per_released[found.classes.ids].tolist() == [sum(row[j] for row in edges) for j in range(n)]
    assert found.assignable_per_original[found.originals.ids].tolist() == possible
    assert found.level_1k == min((sum(row) for row in edges), default=0)
    assert found.level_k1 == min((sum(row[j] for row in edges) for j in range(n)), default=0)
    assert found.level_kk == min(found.level_1k, found.level_k1)
    assert found.level_global == min(possible, default=0)
    assert found.anonymity_level == min((texts.count(row) for row in texts), default=0)
    return found


@pytest.mark.slow
@given(releases())
def test_levels_of_a_release_that_stands_for_its_original(release):
    found = check_against_definitions(*release)

    assert found.is_row_by_row
    assert found.anonymity_level <= found.level_global <= found.level_1k


@pytest.mark.slow
@given(releases(is_true=False))
def test_levels_of_a_release_that_may_be_false(release):
    check_against_definitions(*release)


@pytest.mark.slow
@given(release=releases())
def test_levels_do_not_depend_on_the_sizes_of_the_pieces(release):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bit_rows, "CHUNK_WORDS", 1)
        patch.setattr(bit_rows, "_WHOLE_WORDS", 0)
        patch.setattr(components, "_EDGES_AT_ONCE", 1)
        patch.setattr(components, "_LARGE_SHARE", 0)
        patch.setattr(module, "_MANY_PAIRS", 0)
        check_against_definitions(*release)


@pytest.mark.slow
@given(releases(), st.randoms(use_true_random=False))
def test_levels_do_not_depend_on_the_order_of_the_released_rows(release, random):
    kinds, rows, texts, _ = release
    shuffled = random.sample(texts, len(texts))

    straight, crossed = measured(kinds, rows, texts), measured(kinds, rows, shuffled)

    assert crossed.level_global == straight.level_global
    assert crossed.assignable_per_original.tolist() == straight.assignable_per_original.tolist()
    assert (crossed.level_1k, crossed.level_k1) == (straight.level_1k, straight.level_k1)
