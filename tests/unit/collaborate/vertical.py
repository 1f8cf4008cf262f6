"""What two parties with the same people and different columns come to, computed from both tables in one process.

The oracle of a protocol for columns that lie with different parties, which is not written yet;
``docs/papers/collaborate.md`` says what such a protocol needs and what its releases do not promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.collaborate.scores import (
    EVEN,
    FeatureScore,
    TradeoffWeights,
    check_weights,
    gains_of_removal,
    removal_order,
    score_features,
)
from sfumato.collaborate.session.agreement import check_threshold, most_removed
from sfumato.collaborate.shared_schema import Counts, SharedSchema
from sfumato.errors import PrivacyNotAchievableError, SchemaError
from sfumato.table.cells import as_text
from sfumato.table.coding import Table

Places = NDArray[np.intp]


@dataclass(frozen=True)
class VerticalAgreement:
    """What the two parties come to.

    Parameters
    ----------
    removed, kept : tuple of str
        Features of both; the removed ones in order, the others as they stand, the first party's first.
    scores : tuple of FeatureScore
    gains : tuple of pairs of float
        Gain of each party, over its own columns, after each removal.
    n_common_rows : int
        Rows that both hold; all else is left out.
    """

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    scores: tuple[FeatureScore, ...]
    gains: tuple[tuple[float, float], ...]
    n_common_rows: int


def agree_on_columns(
    first: Table,
    second: Table,
    *,
    key: str,
    min_privacy_gain: tuple[float, float],
    weights: TradeoffWeights = EVEN,
) -> VerticalAgreement:
    """Choose features of two tables that describe the same people.

    Parameters
    ----------
    first, second : Table
        With the same target, which both hold, and different quasi-identifiers.
    key : str
        Column by which rows belong together; unique in each table and no feature.
    min_privacy_gain : pair of float
        Thresholds of the two.

    Raises
    ------
    SchemaError
        If the tables do not fit together.
    PrivacyNotAchievableError
        If removing half of all features is not enough for both.
    """
    for threshold in min_privacy_gain:
        check_threshold(threshold)
    ours, theirs = _common_rows(first, second, key)
    one, two = _counts(first.take(ours), key), _counts(second.take(theirs), key)
    _check_pair(first.take(ours), second.take(theirs), one, two)
    scores = score_features({**one, **two}, weights=check_weights(weights))
    order = removal_order(scores)[: most_removed(len(scores))]
    gains = tuple(zip(_own_gains(order, one), _own_gains(order, two), strict=True))
    for n_removed, pair in enumerate(gains, start=1):
        if all(gain >= threshold for gain, threshold in zip(pair, min_privacy_gain, strict=True)):
            kept = tuple(score.name for score in scores if score.name not in order[:n_removed])
            return VerticalAgreement(order[:n_removed], kept, scores, gains[:n_removed], len(ours))
    promise = f"the privacy gain that both parties ask for by removing at most {len(order)} of {len(scores)} features"
    best = min(gains[-1]) if gains else 0.0
    hint = "the order may take nearly all from one party: weigh utility and privacy differently, or ask for less"
    raise PrivacyNotAchievableError(promise, best_level=best, hint=hint)


def _common_rows(first: Table, second: Table, key: str) -> tuple[Places, Places]:
    """Places of the rows that have the same key in both, in the order of the keys."""
    row_of = [_rows_by_key(table, key) for table in (first, second)]
    common = sorted(row_of[0].keys() & row_of[1].keys())
    ours, theirs = (np.array([rows[name] for name in common], dtype=np.intp) for rows in row_of)
    return ours, theirs


def _rows_by_key(table: Table, key: str) -> dict[str, int]:
    if table[key].n_missing or table[key].n_distinct < table.n_rows:
        problem = "must identify rows, but some rows have no value or share one"
        raise SchemaError(problem, column=key)
    return {name: row for row, name in enumerate(as_text(table[key].cells()).to_pylist())}


def _counts(table: Table, key: str) -> Mapping[str, Counts]:
    """Count the values of a party's own columns by class."""
    schema = SharedSchema.of_table(table)
    if key in schema.names:
        raise SchemaError("joins the rows, so it cannot be a feature", column=key, hint="give it the role identifier")
    return dict(zip(schema.names, schema.matrices(schema.counts(table)), strict=True))


def _check_pair(first: Table, second: Table, one: Mapping[str, Counts], two: Mapping[str, Counts]) -> None:
    target = first.schema.target
    if target is None or target != second.schema.target:
        problem = "is the target of one table only"
        raise SchemaError(problem, column=target or second.schema.target)
    classes = [as_text(table[target].cells()) for table in (first, second)]
    n_different = sum(a != b for a, b in zip(*(side.to_pylist() for side in classes), strict=True))
    if n_different:
        problem = f"differs between the two tables in {n_different:,} of {first.n_rows:,} common rows"
        raise SchemaError(problem, column=target)
    shared = sorted(set(one) & set(two))
    if shared:
        raise SchemaError("is a feature of both tables", column=shared[0])


def _own_gains(order: tuple[str, ...], own: Mapping[str, Counts]) -> tuple[float, ...]:
    """Gain of one party after each removal, whosever column goes."""
    gains = gains_of_removal([name for name in order if name in own], own)
    n_own = np.cumsum([name in own for name in order], dtype=np.intp)
    return tuple((0.0, *gains)[n] for n in n_own)
