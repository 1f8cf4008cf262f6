r"""Weights of columns in a loss: equal, given, or by what a column tells about the target.

The information gain counted value by value grows with the number of values: a column in which every row has a value of
its own "tells" everything. Gains are freed of that in two steps. **Numbers and dates** are cut into intervals first,
where description length allows (:mod:`sfumato.learning.discretization`, as Weka's InfoGainAttributeEval does): noise
gets no cut and no gain. **From every gain** that is subtracted which columns with the same counts have on average when
they tell nothing (:func:`sfumato.measures.information.expected_information_bits`); below 0 is 0. For why it is this
correction see decision 0021.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.learning.discretization import description_length_cuts
from sfumato.measures.information import expected_information_bits, mutual_information_bits
from sfumato.recoding.axes import positions_of
from sfumato.recoding.hierarchy_automatic import counts_by_class
from sfumato.schema import Kind
from sfumato.table.coding import Table

Weighting = Literal["equal", "gain"] | Mapping[str, float]

LEAST_SHARE = 0.01
"""Smallest weight, as a share of the largest: no column is free to be coarsened."""


CORRECTIONS = ("independence", "none")
"""What is subtracted from a gain: its mean where column and target are independent, or nothing (as in the paper)."""


def information_gains(
    table: Table, names: Sequence[str], target: str, correction: str = "independence"
) -> dict[str, float]:
    """Information gain of each column for a target, in bits: H(C) - H(C|X), free of a bias towards many values.

    Parameters
    ----------
    correction : {"independence", "none"}
        Subtract the mean gain of independent columns with the same counts, or nothing. Numbers and dates are cut by
        description length either way.

    Notes
    -----
    A missing value is a value of its own. A target of more than 50 values counts as 16 classes of neighbouring values.
    """
    if correction not in CORRECTIONS:
        raise InvalidParameterError(
            "gain_correction", f"got {correction!r}", allowed=f"one of {', '.join(CORRECTIONS)}"
        )
    gains = {}
    for name in names:
        counts = _in_intervals(table, name, counts_by_class(table, name, target))
        by_chance = expected_information_bits(counts) if correction == "independence" else 0.0
        gains[name] = max(0.0, mutual_information_bits(counts) - by_chance)
    return gains


def _in_intervals(table: Table, name: str, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each interval and class of a column of numbers or dates; those of each value of another."""
    described, known = table.schema[name], table[name].values.drop_null()
    if described.kind not in (Kind.NUMERIC, Kind.DATE):
        return counts
    try:
        numbers = positions_of(described, known)
    except SchemaError:  # values that no interval holds are taken as categories, as for hierarchies
        return counts
    if numbers is None:
        return counts
    distinct, place = np.unique(numbers, return_inverse=True)
    by_number = np.zeros((len(distinct), counts.shape[1]), dtype=np.int64)
    np.add.at(by_number, place.reshape(-1), counts[: len(known)])
    interval = np.searchsorted(description_length_cuts(distinct, by_number.astype(np.float64)), distinct)
    in_interval = np.zeros((int(interval.max(initial=-1)) + 1, counts.shape[1]), dtype=np.int64)
    np.add.at(in_interval, interval, by_number)
    return np.vstack([in_interval, counts[len(known) :]])  # missing is the last value


def column_weights(weighting: Weighting, table: Table, names: Sequence[str]) -> list[float] | None:
    """Weight of each column; ``None`` for equal ones."""
    if weighting == "equal":
        return None
    if isinstance(weighting, Mapping):
        return _given(weighting, names)
    if weighting != "gain":
        raise InvalidParameterError("weights", f"got {weighting!r}", allowed="equal, gain, or weights by column")
    if table.schema.target is None:
        problem = "weights by information gain need a target"
        raise SchemaError(problem, hint="give one column the role target, or use weights = equal")
    return weights_by_gain(list(information_gains(table, names, table.schema.target).values()))


def weights_by_gain(gains: Sequence[float]) -> list[float] | None:
    """Weights in proportion to gains, none below a share of the largest; ``None`` where no column tells anything."""
    least = LEAST_SHARE * max(gains, default=0.0)
    return [max(gain, least) for gain in gains] if least > 0 else None


def _given(weighting: Mapping[str, float], names: Sequence[str]) -> list[float]:
    for name, weight in weighting.items():
        if name not in names:
            raise ColumnNotFoundError(name, names, where="the quasi-identifiers, to which weights are given")
        if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= weight < float("inf"):
            raise InvalidParameterError("weights", f"got {weight!r} for '{name}'", allowed="0 or more")
    weights = [float(weighting.get(name, 1.0)) for name in names]
    if not any(weights):
        raise InvalidParameterError("weights", "all are 0", allowed="above 0 for some column")
    return weights
