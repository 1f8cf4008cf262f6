"""Releases in buckets: how diverse and how large buckets are, and whether they hold what the original's rows hold.

A *slice* is a list of columns whose values stay together while they are moved within buckets. Its values must stand
where a public rule puts them, in an order that says nothing of the rows they came from: the bucket's values ascending
(as Arrow orders the original's; missing last), given to its rows in the order of the raw words of PCG64 with the
manifest's seed and the number of the slice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check, listed
from sfumato.audit.kinds import Around, Judging, judge
from sfumato.audit.reading.columns import AnyTable, Classes, Columns, Refinement, group_rows, joint_counts
from sfumato.audit.reading.values import matching_ids
from sfumato.guarantees import BucketDiversity, BucketSize
from sfumato.schema import Role

Ids = NDArray[np.int64]
Slices = Sequence[Sequence[str]]
MOST_SEED = 2**63
UNSTATED_SEED = 0
"""Seed of the order within buckets where the manifest states none: that order hides nothing, and so may be public."""


def measure_size(guarantee: BucketSize, released: AnyTable) -> float:
    """Rows of the smallest bucket; 0 for a table without rows."""
    return smallest_bucket(Columns(released), guarantee.bucket)


def measure_diversity(guarantee: BucketDiversity, released: AnyTable) -> float:
    """Rows of a bucket over those with its most frequent sensitive value, in the least diverse bucket.

    Of each bucket the rows that are equal on ``beside`` count by themselves. 0 for a table without rows.
    """
    columns = Columns(released)
    joint = joint_counts(columns, group_rows(columns, (guarantee.bucket, *guarantee.beside)), guarantee.sensitive)
    if not len(joint.sizes):
        return 0.0
    largest = np.zeros(len(joint.sizes), dtype=np.int64)
    np.maximum.at(largest, joint.class_ids, joint.counts)
    return float((joint.sizes / largest).min())


def smallest_bucket(columns: Columns, bucket: str) -> int:
    """Rows of the smallest bucket; 0 for a table without rows."""
    return int(group_rows(columns, (bucket,)).sizes.min(initial=columns.n_rows))


def largest_share(columns: Columns, bucket: str, sensitive: str) -> float:
    """Largest share of a bucket's rows that have one sensitive value; 0 for a table without rows."""
    joint = joint_counts(columns, group_rows(columns, (bucket,)), sensitive)
    return float((joint.counts / joint.sizes[joint.class_ids]).max(initial=0.0))


def check_bucket_promise(
    promise: BucketSize | BucketDiversity, bucket: str | None, slices: Slices, quasi_identifiers: Sequence[str]
) -> Check:
    """Whether a promise about buckets speaks of those within which values were moved, and of what stayed together.

    ``bucket`` is ``None`` for a release that is not stated to be in buckets: then nothing can be promised about them.
    """
    name = f"{promise.kind}: buckets"
    if bucket is None or promise.bucket != bucket:
        return Check(name, False, f"{promise.kind} speaks of another column than values were moved within")
    problem = _misplaced(promise, slices, quasi_identifiers) if isinstance(promise, BucketDiversity) else ""
    said = problem or "speaks of the buckets within which values were moved"
    return Check(name, not problem, f"{promise.kind} {said}")


def _check_stated(promise: BucketSize | BucketDiversity, around: Around) -> Iterator[Check]:
    stated = around.claims.perturbation
    bucket, slices = (stated.bucket, stated.slices) if stated is not None else (None, ())
    yield check_bucket_promise(promise, bucket, slices, around.claims.names(Role.QUASI_IDENTIFIER))


def _misplaced(promise: BucketDiversity, slices: Slices, quasi_identifiers: Sequence[str]) -> str:
    own = [names for names in slices if promise.sensitive in names]
    if len(own) != 1:
        return f"is about '{promise.sensitive}', whose values were not moved"
    beside = {name for name in own[0] if name in set(quasi_identifiers)}
    return "" if beside == set(promise.beside) else "does not count all quasi-identifiers that stayed with the values"


def check_buckets(
    released: Columns,
    original: Columns,
    bucket: str,
    slices: Slices,
    seed: object,
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
    wrong_values, wrong_places = [], []
    for i, names in enumerate(slices):
        expected, found = _tuples(released, original, names, rows)
        by_value = np.lexsort((expected, buckets.ids))
        if not np.array_equal(expected[by_value], found[np.lexsort((found, buckets.ids))]):
            wrong_values.append(i)
        elif not _stands_by_rule(found, expected[by_value], buckets, seed, i):
            wrong_places.append(i)
    first = slices[wrong_values[0]] if wrong_values else ()
    said = (
        f"differ from the original's in {len(wrong_values):,} slices, first: {listed(first)}" if first else "are kept"
    )
    yield Check("slices", not first, f"the values of {len(slices):,} slices in each bucket {said}")
    if first:
        return
    moved = slices[wrong_places[0]] if wrong_places else ()
    said = f"does not follow the public rule in {len(wrong_places):,} slices, first: {listed(moved)}"
    good = "follows the public rule, which does not know the rows that they came from"
    yield Check("order within buckets", not moved, f"the order of values within buckets {said if moved else good}")


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


def _stands_by_rule(found: Ids, ascending: Ids, buckets: Classes, seed: object, number: int) -> bool:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_SEED:
        return False
    words = np.random.PCG64(np.random.SeedSequence([seed, number])).random_raw(len(found))
    return bool(np.array_equal(found[np.lexsort((words, buckets.ids))], ascending))


_IN_BUCKETS = {"columns": ["text"], "bucket": "text"}

judge(
    BucketSize.kind,
    Judging(form={**_IN_BUCKETS, "k": "crowd"}, parameters=("k",), on_release=measure_size, further=_check_stated),
)
judge(
    BucketDiversity.kind,
    Judging(
        form={**_IN_BUCKETS, "l": "crowd", "sensitive": "text", "beside": ["text"]},
        parameters=("l",),
        on_release=measure_diversity,
        further=_check_stated,
    ),
)
