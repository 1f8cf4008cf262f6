"""Drop-in releases: every cell is drawn from the values of its class, without putting any back.

A class has the rows that a mechanism made equal on all quasi-identifiers. Its values of each quasi-identifier are dealt
out to its rows anew, every column by itself; what is no quasi-identifier stays together. So each class keeps the
distribution of every column, and loses which values belong to one row. A column names the class ("bucket") of each row:
by it the guarantee is counted on the file alone, and whoever has the file can deal out the values again, as often as a
learner likes (docs/guide/reading-a-release.md).

Rows of a class are no longer equal, so that this is not k-anonymity. It is a release in buckets, as those of slicing
[LLZM12]_ with one column a slice: :mod:`sfumato.mechanisms.buckets.buckets` says by which public rule values are dealt.

References
----------
.. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
   IEEE TKDE 24(3) (2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import AlphaKAnonymity, BucketDiversity, BucketSize, Guarantee, KAnonymity, LDiversity
from sfumato.manifest import AnyTable, in_three_digits
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.buckets.buckets import bucketed_release, free_name, sensitive_codes
from sfumato.mechanisms.buckets.slicing import BUCKET
from sfumato.mechanisms.drop_in.classes import class_of_row, with_classes
from sfumato.mechanisms.drop_in.copies import COPIED_ROWS, n_copied_rows
from sfumato.schema import WITHHELD, Role
from sfumato.table.coding import Table

Ids = NDArray[np.int32]

_ABLE = "draws where k-anonymity is promised over all quasi-identifiers, by rows, and l or alpha with it"


def with_drawn_values(table: AnyTable, release: Release, max_copies: float) -> Release:
    """Deal the original's values out to the rows of each class anew, instead of ranges, sets or labels.

    Parameters
    ----------
    table : Table
        The original; the release has all its rows in its order.
    release : Release
        A proposal that promises k-anonymity, perhaps with shares of sensitive values.
    max_copies : float
        Largest share of released rows that may equal, on all quasi-identifiers, an original row that is the only one
        of its kind.

    Raises
    ------
    InvalidParameterError
        If something else is promised, or rows are left out.
    SchemaError
        If a quasi-identifier is sensitive as well.
    PrivacyNotAchievableError
        If a sensitive value is too frequent in a class, or more rows than ``max_copies`` come out as original ones.
    """
    table, released = with_classes(table, release, "draws", "values moved within a class are still there to be found")
    promised = _checked_promises(table, release)
    quasi = table.schema.names(Role.QUASI_IDENTIFIER)
    classes = class_of_row(released)
    bucket = free_name(BUCKET, table)
    others = tuple(c.name for c in table.schema if c.role not in WITHHELD and c.name not in quasi)
    slices = [*((name,) for name in quasi), *([others] if others else [])]
    sizes = np.bincount(classes)
    asked = release.manifest.mechanism["parameters"]
    made = bucketed_release(
        table,
        classes,
        slices,
        bucket=bucket,
        seed=None,
        mechanism=str(release.manifest.mechanism["name"]),
        parameters={name: value for name, value in asked.items() if name != "l" or value is not None},
        guarantees=[_of_buckets(promise, table, classes, bucket) for promise in promised],
        evidence={
            "utility": {"n_slices": len(slices), "n_buckets": len(sizes)},
            "risk": {"smallest_bucket": int(sizes.min(initial=table.n_rows))},
        },
    )
    return _limited(table, made, quasi, max_copies, release)


def _checked_promises(table: Table, release: Release) -> tuple[Guarantee, ...]:
    """Give back what is promised, and refuse what would not hold of drawn cells."""
    mechanism, promised = str(release.manifest.mechanism["name"]), release.manifest.promised()
    if release.manifest.suppressed_rows:
        problem = f"got draws with a release that leaves {release.manifest.suppressed_rows:,} rows out"
        hint = "set max_suppressed_fraction to 0, or use mondrian"
        raise InvalidParameterError("cells", problem, allowed="draws where all rows are released", hint=hint)
    quasi = set(table.schema.names(Role.QUASI_IDENTIFIER))
    is_able = all(
        isinstance(promise, KAnonymity | LDiversity | AlphaKAnonymity)
        and not promise.by_persons
        and set(promise.over) == quasi
        for promise in promised
    )
    if not promised or not is_able or not any(isinstance(promise, KAnonymity) for promise in promised):
        kinds = ", ".join(promise.name for promise in promised) or "nothing"
        problem = f"got draws with a release by {mechanism}, which promises {kinds}"
        raise InvalidParameterError("cells", problem, allowed=_ABLE, hint="release typical values or ranges")
    return promised


def _of_buckets(promise: Guarantee, table: Table, classes: Ids, bucket: str) -> BucketSize | BucketDiversity:
    """Turn a promise about classes of equal cells into the one that holds of drawn cells."""
    quasi = table.schema.names(Role.QUASI_IDENTIFIER)
    if isinstance(promise, KAnonymity):
        return BucketSize(quasi, bucket, promise.k)
    if not isinstance(promise, LDiversity | AlphaKAnonymity):
        raise AssertionError
    least = _least_quotient(sensitive_codes(table, promise.sensitive), classes)
    asked = promise.l if isinstance(promise, LDiversity) else 1 / promise.alpha
    wanted = int(np.floor(asked + 1e-9))
    if least < wanted or wanted < 2:
        guarantee = f"no value of '{promise.sensitive}' in more than 1/{max(wanted, 2)} of a class, for drawn cells"
        hint = "different values (l) are not enough here: limit the share of each, as mondrian does with alpha = 0.5"
        raise PrivacyNotAchievableError(guarantee, best_level=float(in_three_digits(float(least))), hint=hint)
    return BucketDiversity(quasi, bucket, wanted, promise.sensitive)


def _least_quotient(sensitive: Ids, classes: Ids) -> float:
    """Rows of a class over those with its most frequent value, in the class where this is least."""
    width = int(sensitive.max(initial=0)) + 1
    pairs, counts = np.unique(classes.astype(np.int64) * width + sensitive, return_counts=True)
    largest = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(largest, pairs // width, counts)
    return float((np.bincount(classes) / largest).min(initial=np.inf))


def _limited(table: Table, made: Release, quasi: Sequence[str], max_copies: float, release: Release) -> Release:
    """State how many rows come out as an original one, and refuse too many."""
    if not isinstance(made.table, Table):
        raise AssertionError
    n_copied, n_rows = n_copied_rows(table, made.table, quasi), made.table.n_rows
    if n_copied > max_copies * n_rows:
        guarantee = f"at most {max_copies:.3g} of the rows may equal an original row that is the only one of its kind"
        share = float(in_three_digits(n_copied / n_rows))
        hint = "raise k, leave columns out, release typical values (cells = values), or allow more copies"
        raise PrivacyNotAchievableError(guarantee, best_level=share, hint=hint, remedy=("max_copies",))
    stated: dict[str, Any] = {**made.manifest.evidence}
    stated["risk"] = {**stated["risk"], COPIED_ROWS: in_three_digits(n_copied / max(n_rows, 1))}
    perturbation = {**(made.manifest.perturbation or {}), "max_copied_fraction": float(max_copies)}
    own = made.with_manifest(evidence=stated, perturbation=perturbation)
    return replace(release, table=own.table, manifest=own.manifest, kept_rows=None)
