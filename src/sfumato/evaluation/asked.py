"""Guarantees that a user asks of a release, and which points of a comparison promise them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfumato.errors import InvalidParameterError


class _Promise(NamedTuple):
    """Kinds of guarantees that may keep a promise, where its value stands, and whether a high one is the safe one."""

    kinds: tuple[str, ...]
    entry: str
    higher_is_safer: bool = True


_CROWDS = ("k-anonymity", "kk-anonymity", "global-anonymity", "containment")
_PROMISES: Mapping[str, _Promise] = {
    "k": _Promise(_CROWDS, "k"),
    "l": _Promise(("l-diversity", "bucket-diversity"), "l"),
    "t": _Promise(("t-closeness",), "t", higher_is_safer=False),
    "epsilon": _Promise(("differential-privacy",), "epsilon", higher_is_safer=False),
    **{kind: _Promise((kind,), "k") for kind in (*_CROWDS, "bucket-size")},
    **{kind: _Promise((kind,), "l") for kind in ("l-diversity", "bucket-diversity")},
    "breach-bound": _Promise(("breach-bound",), "max_breach_increase", higher_is_safer=False),
}
_ENTRIES = frozenset(promise.entry for promise in _PROMISES.values())
_OF_ANY_KIND = frozenset({*_ENTRIES, "breach-bound"})
_MOST = 1_000_000_000
_RANGES = {
    "k": f"a whole number from 2 to {_MOST:,}",
    "l": f"a number from 1 to {_MOST:,}",
    "t": "a number from 0 to 1",
    "epsilon": "a number above 0",
    "max_breach_increase": "a number of percent",
}


@dataclass(frozen=True)
class AskedGuarantee:
    """A guarantee by name, with the value that is wanted.

    ``k`` is kept by k-anonymity, (k,k)-anonymity, global (1,k)-anonymity and k-anonymity by containment, each in its
    own sense; ``l`` by l-diversity and by buckets. The name of a kind, such as ``k-anonymity``, is kept by that kind
    alone. Promises over some of the quasi-identifiers keep nothing.

    Examples
    --------
    >>> asked = AskedGuarantee.parse("k=5")
    >>> str(asked), asked.is_promised_by([{"kind": "k-anonymity", "k": 10, "is_partial": False}])
    ('k >= 5', True)
    """

    name: str
    value: float

    def __post_init__(self) -> None:
        if self.name not in _PROMISES or not math.isfinite(self.value):
            allowed = f"NAME=NUMBER with a name of {', '.join(_PROMISES)}"
            raise InvalidParameterError("guarantee", f"got '{self.name}={self.value}'", allowed=allowed)
        if not _makes_sense(self.parameter, self.value):
            name = f"guarantee {self.name}"
            raise InvalidParameterError(name, f"got {self.value:g}", allowed=_RANGES[self.parameter])

    @classmethod
    def parse(cls, text: str) -> AskedGuarantee:
        """Read NAME=VALUE."""
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if name not in _PROMISES or not math.isfinite(number):
            allowed = f"NAME=NUMBER with a name of {', '.join(_PROMISES)}"
            raise InvalidParameterError("guarantee", f"got '{text}'", allowed=allowed)
        return cls(name, number)

    def __str__(self) -> str:
        return f"{self.name} {'>=' if _PROMISES[self.name].higher_is_safer else '<='} {self.value:g}"

    @property
    def parameter(self) -> str:
        """Name of the mechanisms' parameter, and of the guarantees' entry, that the value is of."""
        return _PROMISES[self.name].entry

    def is_about(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a mechanism with these parameters seeks this guarantee, of whatever kind, and no other."""
        sought = {name for name in _ENTRIES if parameters.get(name) is not None}
        return self.name in _OF_ANY_KIND and sought == {self.parameter}

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
        promise = _PROMISES[self.name]
        levels = [
            float(entry[promise.entry])
            for entry in guarantees
            if entry["kind"] in promise.kinds and not entry["is_partial"]
        ]
        return self.safest(levels)

    def safest(self, levels: Sequence[float]) -> float | None:
        """Safest of some values; ``None`` of none."""
        return max(levels, key=self._safety, default=None)

    def _safety(self, level: float) -> float:
        return level if _PROMISES[self.name].higher_is_safer else -level


def _makes_sense(parameter: str, value: float) -> bool:
    match parameter:
        case "k":
            return 2 <= value <= _MOST and value == int(value)
        case "l":
            return 1 < value <= _MOST
        case "t":
            return 0 <= value < 1
        case "epsilon":
            return value > 0
        case _:
            return True


def is_readable(guarantee: Mapping[str, Any]) -> bool:
    """Whether every level in a guarantee's plain data is a number, and the one that its kind is asked by is there.

    Examples
    --------
    >>> is_readable({"kind": "k-anonymity", "k": 5}), is_readable({"kind": "k-anonymity", "k": "five"})
    (True, False)
    """
    kind, levels = guarantee["kind"], {name: guarantee[name] for name in _ENTRIES if name in guarantee}
    needed = {promise.entry for promise in _PROMISES.values() if kind in promise.kinds}
    are_numbers = all(isinstance(level, int | float) and math.isfinite(level) for level in levels.values())
    return are_numbers and needed <= set(levels)
