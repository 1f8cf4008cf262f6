"""Guarantees that a user asks of a release, and which points of a comparison promise them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sfumato.errors import InvalidParameterError
from sfumato.evaluation.promises import kind_of_guarantee
from sfumato.guarantees import GUARANTEES, Guarantee
from sfumato.guarantees.base import Level


class _Promise(NamedTuple):
    """Kinds of guarantees that may keep a promise, and the level that they have in common."""

    kinds: tuple[str, ...]
    level: Level


def _promises() -> Mapping[str, _Promise]:
    """Give what can be asked for by name: first what several kinds may keep, then the kinds by their levels."""
    return _promises_of(tuple(GUARANTEES.values()))


@lru_cache(maxsize=4)
def _promises_of(guarantees: tuple[type[Guarantee], ...]) -> Mapping[str, _Promise]:
    names = [name for one in guarantees for name in one.asked_as if name != one.kind]
    by_level = sorted(guarantees, key=lambda one: _levels(guarantees).index(one.level.name))
    names += [one.kind for one in by_level if one.kind in one.asked_as]
    keeping = {name: [one for one in guarantees if name in one.asked_as] for name in names}
    return {name: _Promise(tuple(one.kind for one in kept), kept[0].level) for name, kept in keeping.items()}


def _levels(guarantees: Iterable[type[Guarantee]]) -> list[str]:
    return list(dict.fromkeys(one.level.name for one in guarantees))


def _entries() -> frozenset[str]:
    """Entries of guarantees that can be asked for."""
    return frozenset(promise.level.name for promise in _promises().values())


@dataclass(frozen=True)
class AskedGuarantee:
    """A guarantee by name, with the value that is wanted.

    ``k`` is kept by strict k-anonymity alone and ``l`` by l-diversity. What else is counted by a k or an l has its own
    name: ``kk-anonymity``, ``global-anonymity``, ``containment``, ``bucket-size``, ``bucket-diversity``. Promises over
    some of the quasi-identifiers keep nothing.

    Examples
    --------
    >>> asked = AskedGuarantee.parse("k=5")
    >>> str(asked), asked.is_promised_by([{"kind": "k-anonymity", "k": 10, "is_partial": False}])
    ('k >= 5', True)
    """

    name: str
    value: float

    def __post_init__(self) -> None:
        if self.name not in _promises() or not math.isfinite(self.value):
            allowed = f"NAME=NUMBER with a name of {', '.join(_promises())}"
            raise InvalidParameterError("guarantee", f"got '{self.name}={self.value}'", allowed=allowed)
        if not self._level.makes_sense(self.value):
            name = f"guarantee {self.name}"
            raise InvalidParameterError(name, f"got {self.value:g}", allowed=self._level.allowed)

    @classmethod
    def parse(cls, text: str) -> AskedGuarantee:
        """Read NAME=VALUE."""
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if name not in _promises() or not math.isfinite(number):
            allowed = f"NAME=NUMBER with a name of {', '.join(_promises())}"
            raise InvalidParameterError("guarantee", f"got '{text}'", allowed=allowed)
        return cls(name, number)

    def __str__(self) -> str:
        return f"{self.name} {'>=' if self._level.higher_is_safer else '<='} {self.value:g}"

    @property
    def _level(self) -> Level:
        return _promises()[self.name].level

    @property
    def kind(self) -> str:
        """Kind of promise that keeps it, see :mod:`sfumato.evaluation.promises`."""
        return kind_of_guarantee(_promises()[self.name].kinds[0])

    @property
    def parameter(self) -> str:
        """Name of the mechanisms' parameter, and of the guarantees' entry, that the value is of."""
        return self._level.name

    def is_about(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a mechanism with these parameters seeks a level of this name, and none of another."""
        return {name for name in _entries() if parameters.get(name) is not None} == {self.parameter}

    def raised_in(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters with the asked value in place of a less safe one; as they are where there is none.

        Examples
        --------
        >>> AskedGuarantee("k", 25).raised_in({"k": 20, "strict": True})
        {'k': 25, 'strict': True}
        """
        value = parameters.get(self.parameter)
        if value is None or self.allows(value):
            return dict(parameters)
        return {**parameters, self.parameter: math.ceil(self.value) if isinstance(value, int) else self.value}

    def allows(self, level: float) -> bool:
        """Whether a value is at least as safe as the asked one."""
        return self._safety(level) >= self._safety(self.value)

    def is_promised_by(self, guarantees: Sequence[Mapping[str, Any]]) -> bool:
        """Whether one of a point's guarantees is of the kind and at least as safe."""
        level = self.level_of(guarantees)
        return level is not None and self.allows(level)

    def level_of(self, guarantees: Sequence[Mapping[str, Any]]) -> float | None:
        """Safest value that is promised; ``None`` where nothing of the kind is."""
        promise = _promises()[self.name]
        levels = [
            float(entry[promise.level.name])
            for entry in guarantees
            if entry["kind"] in promise.kinds and not entry["is_partial"]
        ]
        return self.safest(levels)

    def safest(self, levels: Sequence[float]) -> float | None:
        """Safest of some values; ``None`` of none."""
        return max(levels, key=self._safety, default=None)

    def _safety(self, level: float) -> float:
        return level if self._level.higher_is_safer else -level


def is_readable(guarantee: Mapping[str, Any]) -> bool:
    """Whether every level in a guarantee's plain data is a number, and the one that its kind is asked by is there.

    Examples
    --------
    >>> is_readable({"kind": "k-anonymity", "k": 5}), is_readable({"kind": "k-anonymity", "k": "five"})
    (True, False)
    """
    kind, levels = guarantee["kind"], {name: guarantee[name] for name in _entries() if name in guarantee}
    needed = {promise.level.name for promise in _promises().values() if kind in promise.kinds}
    are_numbers = all(isinstance(level, int | float) and math.isfinite(level) for level in levels.values())
    return are_numbers and needed <= set(levels)
