"""Weights of columns in a loss: equal, given, or by what a column tells about the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Literal

from sfumato.counting.contingency import contingency
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.measures.information import mutual_information_bits
from sfumato.table.coding import Table

Weighting = Literal["equal", "gain"] | Mapping[str, float]

LEAST_SHARE = 0.01
"""Smallest weight, as a share of the largest: no column is free to be coarsened."""


def information_gains(table: Table, names: Sequence[str], target: str) -> dict[str, float]:
    """Information gain of each column for a target, in bits: H(C) - H(C|X)."""
    return {name: mutual_information_bits(contingency(table, name, target)) for name in names}


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
