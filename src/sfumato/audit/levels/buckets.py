"""Releases in buckets: how diverse and how large buckets are, and whether a public rule placed their values.

A *slice* is a list of columns whose values stay together while they are moved within buckets. Its values must stand
where a public rule puts them, which knows no order of rows and needs no original. A *piece* is a slice, or before
them the columns of no slice. Values go by their texts, missing first. Buckets are numbered from 1 by how many rows they
hold, then by the values of the first piece, ascending, then of the next. Rows are counted through: bucket by bucket,
within it by the first piece. The values of slice s of a bucket, ascending, go to its rows in the order of the raw words
of PCG64 with the manifest's seed and s; row i of the count has word i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import Check
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import Evidence, Judging, judge
from sfumato.audit.levels.anonymity import SMALLEST_CLASS
from sfumato.audit.reading.columns import Columns, Refinement
from sfumato.audit.reading.row_order import dense_ranks
from sfumato.audit.reading.values import texts_of
from sfumato.guarantees import BucketDiversity, BucketSize
from sfumato.schema import Role

Ids = NDArray[np.int64]
Slices = Sequence[Sequence[str]]
MOST_SEED = 2**63
UNSTATED_SEED = 0
"""Seed of the order within buckets where the manifest states none: that order hides nothing, and so may be public."""


LEAST_RATIO = "SELECT coalesce(min(size / n), 0) FROM pairs"
"""Rows of a bucket over those with its most frequent sensitive value, in the least diverse bucket.

Of each bucket the rows that are equal on ``beside`` count by themselves. 0 for a table without rows.
"""
LARGEST_SHARE = "SELECT coalesce(max(n / size), 0) FROM pairs"


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


def _check_stated(promise: BucketSize | BucketDiversity, evidence: Evidence) -> Iterator[Check]:
    stated = evidence.claims.perturbation
    bucket, slices = (stated.bucket, stated.slices) if stated is not None else (None, ())
    yield check_bucket_promise(promise, bucket, slices, evidence.claims.names(Role.QUASI_IDENTIFIER))


def _misplaced(promise: BucketDiversity, slices: Slices, quasi_identifiers: Sequence[str]) -> str:
    own = [names for names in slices if promise.sensitive in names]
    if len(own) != 1:
        return f"is about '{promise.sensitive}', whose values were not moved"
    beside = {name for name in own[0] if name in set(quasi_identifiers)}
    return "" if beside == set(promise.beside) else "does not count all quasi-identifiers that stayed with the values"


def check_bucket_numbers(released: Columns, bucket: str, slices: Slices, claims: Claims) -> Iterator[Check]:
    """Whether the numbers of buckets and the places of values within them follow the public rule, by the file alone."""
    named = {name for names in slices for name in names} | {bucket}
    if bucket not in released or any(name not in released for name in named) or not all(slices):
        yield Check("buckets", False, "the columns that the manifest names are not there")
        return
    numbers = _numbers_in(released.coded(bucket).values)
    if numbers is None:
        yield Check("bucket numbers", False, f"'{bucket}' does not number buckets from 1")
        return
    of_row = numbers[released.coded(bucket).codes]
    rest = tuple(name for name in claims.names() if name not in named)
    pieces = [_piece_ranks(released, names) for names in (rest, *slices)]
    number, place = _numbered_buckets(of_row, pieces)
    is_numbered = bool(np.array_equal(number, of_row))
    said = "are in canonical order" if is_numbered else "are not in canonical order, which could tell more"
    yield Check("bucket numbers", is_numbered, f"the numbers of buckets {said}")
    if is_numbered:
        seed = UNSTATED_SEED if claims.seed is None else claims.seed
        follows = _stand_by_rule(of_row, place, pieces, seed)
        said = "follow the public rule, which does not know the rows that they came from"
        said = said if follows else "do not follow the public rule"
        yield Check("order within buckets", follows, f"the places of values within buckets {said}")


def _numbers_in(values: pa.Array) -> Ids | None:
    """Read the numbers of buckets, 1, 2, … in their one spelling; ``None`` if something else is there."""
    texts = texts_of(values).to_pylist()
    if any(text is None or not text.isascii() or not text.isdigit() or text.startswith("0") for text in texts):
        return None
    found = [int(text) for text in texts]
    return np.array(found, dtype=np.int64) if sorted(found) == list(range(1, len(found) + 1)) else None


def _piece_ranks(released: Columns, names: Sequence[str]) -> Ids:
    """Rank of each row by some columns, whose values go by their texts, missing first."""
    refinement = Refinement(released.n_rows)
    for name in names:
        column = released.coded(name)
        texts = pc.cast(texts_of(column.values), pa.binary())
        rank = dense_ranks(texts)
        refinement.add(rank[column.codes], int(rank.max(initial=0)) + 1)
    return refinement.classes().ids


def _numbered_buckets(of_row: Ids, pieces: Sequence[Ids]) -> tuple[Ids, Ids]:
    """Find the number of each row's bucket by what it holds, and the row's place when they are counted through."""
    sizes = np.bincount(of_row)[1:]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ascending = [piece[np.lexsort((piece, of_row))] for piece in pieces]
    held = [
        (int(size), *(tuple(piece[start : start + size].tolist()) for piece in ascending))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=False)
    ]
    number = np.empty(len(held) + 1, dtype=np.int64)
    number[1 + np.array(sorted(range(len(held)), key=held.__getitem__), dtype=np.int64)] = np.arange(1, len(held) + 1)
    found = number[of_row]
    place = np.empty(len(of_row), dtype=np.int64)
    place[np.lexsort((pieces[0], found))] = np.arange(len(of_row))
    return found, place


def _stand_by_rule(of_row: Ids, place: Ids, pieces: Sequence[Ids], seed: object) -> bool:
    """Whether rows are, as a bag, those that the rule makes of the values of each bucket."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_SEED:
        return False
    wanted, found = Refinement(len(of_row)), Refinement(len(of_row))
    for i, piece in enumerate(pieces):
        given = piece.copy()
        if i:
            words = np.random.PCG64(np.random.SeedSequence([seed, i - 1])).random_raw(len(of_row))[place]
            given[np.lexsort((words, of_row))] = piece[np.lexsort((piece, of_row))]
        n_values = int(piece.max(initial=0)) + 1
        wanted.add(given, n_values)
        found.add(piece, n_values)
    return _are_same_bags(of_row, wanted, found)


def _are_same_bags(of_row: Ids, wanted: Refinement, found: Refinement) -> bool:
    both = np.unique(np.concatenate([wanted.ids, found.ids]), return_inverse=True)[1].reshape(-1)
    first, second = both[: len(of_row)], both[len(of_row) :]
    order, other = np.lexsort((first, of_row)), np.lexsort((second, of_row))
    return bool(np.array_equal(first[order], second[other]))


judge(
    BucketSize.kind,
    Judging(
        parameters=("k",),
        in_classes=lambda _, buckets: buckets.ask(SMALLEST_CLASS),
        over=lambda guarantee: (guarantee.bucket,),
        further=_check_stated,
    ),
)
judge(
    BucketDiversity.kind,
    Judging(
        parameters=("l",),
        in_classes=lambda _, buckets: buckets.ask(LEAST_RATIO),
        over=lambda guarantee: (guarantee.bucket, *guarantee.beside),
        further=_check_stated,
    ),
)
