"""Conditions on the plain numbers of displays, each refused with the name of what does not hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized

from sfumato.errors import InvalidParameterError

LARGEST_NUMBER = 1e9


def check_one_length(what: str, *lists: Sized) -> None:
    """Refuse lists that are empty or of different lengths."""
    lengths = {len(entries) for entries in lists}
    if len(lengths) > 1 or 0 in lengths:
        shown = ", ".join(str(length) for length in sorted(lengths))
        raise InvalidParameterError(what, f"got {shown}", allowed="of one length, and not empty")


def check_range(
    what: str, numbers: Iterable[float], low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER
) -> None:
    """Refuse numbers that are not finite or not in a range; they are not shown."""
    if not all(math.isfinite(number) and low <= number <= high for number in numbers):
        raise InvalidParameterError(what, "some are not", allowed=f"finite and from {low:g} to {high:g}")


def check_place(what: str, place: int | None, n_places: int) -> None:
    """Refuse a place that is not one of a list."""
    if place is not None and not 0 <= place < n_places:
        raise InvalidParameterError(what, f"got {place}", allowed="a place in the lists")
