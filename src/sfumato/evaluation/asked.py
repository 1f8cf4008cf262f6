"""Guarantees that a user asks of a release, and which points of a comparison promise them."""

from __future__ import annotations

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

    @classmethod
    def parse(cls, text: str) -> AskedGuarantee:
        """Read NAME=VALUE."""
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if name not in _PROMISES or not 0 <= abs(number) < float("inf"):
            allowed = f"NAME=NUMBER with a name of {', '.join(_PROMISES)}"
            raise InvalidParameterError("--guarantee", f"got '{text}'", allowed=allowed)
        return cls(name, number)

    def __str__(self) -> str:
        return f"{self.name} {'>=' if _PROMISES[self.name].higher_is_safer else '<='} {self.value:g}"

    def is_promised_by(self, guarantees: Sequence[Mapping[str, Any]]) -> bool:
        """Whether one of a point's guarantees is of the kind and at least as safe."""
        level = self.level_of(guarantees)
        return level is not None and self._safety(level) >= self._safety(self.value)

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
