"""What a figure is: a number that says how much risk a release leaves or how much use it keeps, declared once.

Commands, page, report and JSON show every declared figure by its words and its unit; none of them names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

Measured = TypeVar("Measured")
Value = float | int | tuple[str, ...] | None
Case = tuple[str | int | float, ...]


class Unit(StrEnum):
    """How a value is written."""

    SHARE = "share"
    COUNT = "count"
    NUMBER = "number"
    NAMES = "names"


class Direction(StrEnum):
    """Which values are better."""

    LOWER = "lower"
    HIGHER = "higher"


class Audience(StrEnum):
    """Who is shown a figure: everybody, the data holder (page, report, command), or whoever runs the attacks alone."""

    EVERYBODY = "everybody"
    HOLDER = "holder"
    ATTACKER = "attacker"


@dataclass(frozen=True)
class Figure(Generic[Measured]):
    """A figure of risk or of utility.

    Parameters
    ----------
    name : str
        Key in JSON.
    words : str
        What it is. ``{0}`` and so on are the parts of a case; ``{counted}`` (people or rows), ``{one}`` and ``{whose}``
        follow what re-identification counts, ``{known}`` what the other attacks do.
    unit : Unit
    compute : callable
        Gives the value of what was measured, ``None`` where there is none, or a mapping with a value for each case
        (such as each sensitive column).
    direction : Direction
    group : str
        Heading that it is shown under.
    audience : Audience
    heading : str
        A word or two for a column of a table. A figure of releases that has one (and no cases) is a column of every
        comparison.
    baseline : callable or None
        Gives the value before, of what was measured of the *release*; ``None``: the value of the original.
    """

    name: str
    words: str
    unit: Unit
    compute: Callable[[Measured], Value | Mapping[Case, Value]]
    _: KW_ONLY
    direction: Direction = Direction.LOWER
    group: str = ""
    audience: Audience = Audience.EVERYBODY
    heading: str = ""
    baseline: Callable[[Measured], Mapping[Case, Value]] | None = None

    def value(self, measured: Measured) -> Any:
        """Give the value of a figure without cases."""
        return self.values(measured).get(())

    def values(self, measured: Measured) -> Mapping[Case, Value]:
        """Give the value of every case; a figure without cases has one case, which is empty."""
        return _by_case(self.compute(measured))

    def values_before(self, original: Measured, release: Measured) -> Mapping[Case, Value]:
        """Give the values that those of a release are compared with."""
        return self.values(original) if self.baseline is None else self.baseline(release)


def _by_case(found: Value | Mapping[Case, Value]) -> Mapping[Case, Value]:
    if isinstance(found, Mapping):
        return found
    return {} if found is None else {(): found}
