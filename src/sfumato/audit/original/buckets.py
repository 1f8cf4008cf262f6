"""Whether the slices of a release in buckets hold what the rows of the original hold, bucket by bucket."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.original.assignment import Pairs
from sfumato.audit.reading.columns import Classes, Columns, Refinement, group_rows, places_of_runs
from sfumato.audit.reading.values import matching_ids

Ids = NDArray[np.int64]
Slices = Sequence[Sequence[str]]


def check_buckets(
    released: Columns,
    original: Columns,
    bucket: str,
    slices: Slices,
    rows: NDArray[np.intp],
    recoded: Collection[str] = (),
) -> Iterator[Check]:
    """Compare the slices of a release with the rows of the original in the same buckets.

    Row i of the release is in the bucket of row i of those original ``rows`` that may be released. ``recoded`` are the
    columns that are stated to be computed from others, which no column of a slice may be.
    """
    problem = _impossible(released, original, bucket, slices, len(rows)) or _restated(bucket, slices, recoded)
    if problem:
        yield Check("slices", False, f"slices cannot be compared with the original: {problem}")
        return
    buckets = group_rows(released, (bucket,))
    wrong = []
    for names in slices:
        expected, found = _tuples(released, original, names, rows)
        by_value = np.lexsort((expected, buckets.ids))
        if not np.array_equal(expected[by_value], found[np.lexsort((found, buckets.ids))]):
            wrong.append(names)
    said = f"differ from the original's in {len(wrong):,} slices, first: {listed(wrong[0])}" if wrong else "are kept"
    yield Check("slices", not wrong, f"the values of {len(slices):,} slices in each bucket {said}")


def check_sorted_buckets(
    released: Columns,
    original: Columns,
    bucket: str,
    slices: Slices,
    rows: NDArray[np.intp],
    recoded: Collection[str] = (),
) -> Iterator[Check | Unchecked]:
    """Compare the slices of a sorted release with the original: bucket by bucket as far as rows tell their bucket.

    Every original row must fit a bucket that holds its values, and for each piece by itself the rows must be able to
    fill the buckets. Where each row fits one bucket only this is all there is to compare; else the rest is an
    exception. The places of values are judged with the file alone.
    """
    problem = _impossible(released, original, bucket, slices, len(rows)) or _restated(bucket, slices, recoded)
    if problem:
        yield Check("slices", False, f"slices cannot be compared with the original: {problem}")
        return
    named = {name for names in slices for name in names} | {bucket}
    rest = tuple(n for n in released.names if n not in named and n in original and n not in recoded)
    buckets = group_rows(released, (bucket,))
    pieces = [_tuples(released, original, names, rows) for names in (rest, *slices) if names]
    n_buckets = len(buckets.sizes)
    cells = [after * n_buckets + buckets.ids for _, after in pieces]
    fitting, at = _buckets_that_fit([before for before, _ in pieces], cells, n_buckets)
    is_unique = np.bincount(fitting, minlength=len(rows)).max(initial=0) <= 1
    is_filled = True
    for (before, _), own in zip(pieces, cells, strict=True):
        known, cell = np.unique(own, return_inverse=True)
        wanted = Classes(cell.reshape(-1), np.bincount(cell.reshape(-1), minlength=len(known)))
        each = Classes(np.arange(len(rows)), np.ones(len(rows), dtype=np.int64))
        place = np.searchsorted(known, before[fitting] * n_buckets + at)
        is_filled &= Pairs(each, wanted, fitting, place).can_be_filled()
    said = "are kept" if is_filled else "differ from the original's"
    yield Check("slices", is_filled, f"the values of {len(slices):,} slices in each bucket {said}")
    if is_filled and not is_unique:
        said = "whether the values of all slices of a bucket come from the same rows: some rows fit several buckets"
        yield Unchecked("cells", said)


def _buckets_that_fit(values: Sequence[Ids], cells: Sequence[Ids], n_buckets: int) -> tuple[Ids, Ids]:
    """Pairs of an original row and a bucket that holds its values of every piece."""
    known = [np.unique(own) for own in cells]
    spread = [len(own) / max(len(np.unique(own // n_buckets)), 1) for own in known]
    first = int(np.argmin(spread))
    value, bucket = known[first] // n_buckets, known[first] % n_buckets
    low, high = np.searchsorted(value, values[first]), np.searchsorted(value, values[first], side="right")
    rows = np.repeat(np.arange(len(low)), high - low)
    at = bucket[places_of_runs(low, high)]
    for own, of_row in zip(known, values, strict=True):
        wanted = of_row[rows] * n_buckets + at
        place = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        is_held = own[place] == wanted
        rows, at = rows[is_held], at[is_held]
    return rows, at


def _impossible(released: Columns, original: Columns, bucket: str, slices: Slices, n_rows: int) -> str:
    named = [name for names in slices for name in names]
    lacking = [name for name in named if name not in released or name not in original or original.feature(name)]
    if n_rows != released.n_rows:
        return "rows are left out"
    if bucket not in released or bucket in original or released.coded(bucket).values.null_count:
        return f"'{bucket}' is not a new column that names the bucket of every row"
    if lacking:
        return f"not columns of both tables: {listed(lacking)}"
    if len(set(named)) != len(named) or not all(slices):
        return "a column is in two slices, or a slice is empty"
    return ""


def _restated(bucket: str, slices: Slices, recoded: Collection[str]) -> str:
    both = [name for names in (*slices, (bucket,)) for name in names if name in recoded]
    return f"stated as moved and as recoded: {listed(both)}" if both else ""


def _tuples(released: Columns, original: Columns, names: Sequence[str], rows: NDArray[np.intp]) -> tuple[Ids, Ids]:
    """Numbers for the values of a slice in each row of both tables, ascending as the values do."""
    refinement = Refinement(2 * len(rows))
    for name in names:
        before, after = original.coded(name), released.coded(name)
        of_before, of_after = matching_ids(before.values, after.values)
        rank = np.empty(len(of_before), dtype=np.int64)
        rank[pc.sort_indices(before.values).to_numpy()] = np.arange(len(rank))
        rank_of = dict(zip(of_before.tolist(), rank.tolist(), strict=True))
        ranked = np.array([rank_of.get(i, len(rank)) for i in of_after.tolist()], dtype=np.int64)
        refinement.add(np.concatenate([rank[before.codes[rows]], ranked[after.codes]]), len(rank) + 1)
    return refinement.ids[: len(rows)], refinement.ids[len(rows) :]
