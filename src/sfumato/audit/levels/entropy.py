"""Whether dropped columns took away as much entropy as is promised, computed again from the original."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from sfumato.audit.checks import DECLARE, Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import Evidence, Judging, check_quasi_identifiers, judge
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.values import numbers_in
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import PrivacyGain
from sfumato.table.coding import CodedColumn
from sfumato.table.weighted import OpenColumn, WeightedColumn


def measure(guarantee: PrivacyGain, pair: ReleaseVsOriginal) -> float:
    """Entropy of the removed columns in the original, over the largest that all columns could have together.

    Raises
    ------
    SchemaError
        If a column is not in the original, or holds other values than numbers though it is cut.
    InvalidParameterError
        If no column has more than one value.
    """
    most = math.fsum(math.log2(n) for n in guarantee.n_values.values())
    if not most > 0:
        raise InvalidParameterError("n_values", "got 1 for each column", allowed="above 1 for some column")
    taken = math.fsum(_entropy(list(_counts(guarantee, name, pair).values())) for name in guarantee.removed)
    return taken / most


def _entropy(counts: list[int]) -> float:
    """Bits of entropy: the logarithm of the number of rows less the mean logarithm of the value's count."""
    n_rows = sum(counts)
    return math.log2(n_rows) - math.fsum(c * math.log2(c) for c in counts) / n_rows if n_rows else 0.0


def _counts(guarantee: PrivacyGain, name: str, pair: ReleaseVsOriginal) -> dict[int, int]:
    """Rows by value, or by interval where the column is cut; a missing value is one of its own."""
    coded = pair.original.coded(name)
    by_value = _counts_by_code(coded, pair)
    if name not in guarantee.cuts:
        return by_value
    numbers, wrong = numbers_in(coded.values)
    if any(wrong[code] for code in by_value):
        raise SchemaError("is cut into intervals, but not all its values are numbers", column=name)
    by_interval: dict[int, int] = {}
    for code, count in by_value.items():
        number = float(numbers[code])
        interval = -1 if math.isnan(number) else bisect_left(guarantee.cuts[name], number)
        by_interval[interval] = by_interval.get(interval, 0) + count
    return by_interval


def _counts_by_code(coded: CodedColumn, pair: ReleaseVsOriginal) -> dict[int, int]:
    if isinstance(coded, OpenColumn):
        raise SchemaError("a column that is counted has too many distinct values to be listed")
    if isinstance(coded, WeightedColumn):  # of a file larger than memory, where no row is left out
        return dict(enumerate(coded.counts.tolist()))
    codes, counts = np.unique(coded.codes[pair.rows], return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def _n_values(guarantee: PrivacyGain, name: str, pair: ReleaseVsOriginal) -> int:
    """Values that a column has; of one that is cut and released, those in the release: plain numbers count all."""
    n_original, released = len(_counts(guarantee, name, pair)), pair.released
    if name in guarantee.cuts and name in guarantee.columns and name in released:
        return max(n_original, released.coded(name).n_distinct)
    return n_original


def check_gain_promise(guarantee: PrivacyGain, evidence: Evidence) -> Iterator[Check | Unchecked]:
    """Whether a gain counts only columns that are gone, and all columns that should be counted, with all values."""
    claims, pair, check_roles = evidence.claims, evidence.release_vs_original, evidence.has_roles
    yield _check_removed(guarantee, claims)
    counted = pair.original if pair is not None and check_roles else None  # with fewer columns the gain looks larger
    yield check_quasi_identifiers(guarantee.kind, "counted", list(guarantee.n_values), claims, counted)
    if pair is None or not check_roles:
        said = "whether the columns counted are all quasi-identifiers of the original"
        yield Unchecked("roles", f"{guarantee.kind}: {said}", DECLARE)
    if pair is not None:
        yield _check_values(guarantee, pair)


def _check_removed(guarantee: PrivacyGain, claims: Claims) -> Check:
    released = {*claims.names(), *(recoding.column for recoding in claims.recodings.values())}
    wrong = [name for name in guarantee.removed if name in released or name not in claims.dropped_columns]
    said = f"are released or not stated as dropped: {listed(wrong)}" if wrong else "are not released"
    return Check(f"{guarantee.kind}: removed", not wrong, f"{guarantee.kind}: the columns counted as removed {said}")


def _check_values(guarantee: PrivacyGain, pair: ReleaseVsOriginal) -> Check:
    """With fewer values than a column has, the largest entropy is smaller and the gain looks larger."""
    name = f"{guarantee.kind}: values"
    try:
        found = {column: _n_values(guarantee, column, pair) for column in guarantee.n_values}
    except SchemaError as exc:
        return Check(name, False, f"{guarantee.kind}: values cannot be counted: {exc}")
    wrong = [column for column, n in found.items() if n > guarantee.n_values[column]]
    said = f"have more values than stated: {listed(wrong)}" if wrong else "have no more values than stated"
    return Check(name, not wrong, f"{guarantee.kind}: columns {said}")


judge(
    PrivacyGain.kind,
    Judging(
        parameters=("min_privacy_gain",),
        with_original=measure,
        further=check_gain_promise,
    ),
)
