"""Scores of attackers that were trained once, for every release of the same original.

Most of the time of an attack goes into the learners that know the original, and these are the same for every release of
the same people. A score is found again by the cells, classes and folds that it was made of, so that it cannot be taken
for another's.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.tree import TreeColumn

Codes = NDArray[np.intp]
Scores = NDArray[np.float64]
Best = tuple[Scores, str]
"""Score of each fold, and the attacker that is the best."""


class KeptScores(Protocol):
    """Where scores are kept, as plain data by their key."""

    def load(self, key: str) -> Any:
        """Read what was kept, or ``None``."""

    def save(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry, fit for JSON."""


class ScoresInMemory:
    """Scores of this process.

    Examples
    --------
    >>> kept = ScoresInMemory()
    >>> kept.save("key", {"attacker": "c45", "scores": [0.5]})
    >>> kept.load("key")
    {'attacker': 'c45', 'scores': [0.5]}
    """

    def __init__(self) -> None:
        self._entries: dict[str, Mapping[str, Any]] = {}

    def load(self, key: str) -> Any:
        """Read what was kept, or ``None``."""
        return self._entries.get(key)

    def save(self, key: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry."""
        self._entries[key] = entry


def measured_once(
    kept: KeptScores,
    attackers: Sequence[str],
    columns: Sequence[TreeColumn],
    target: Codes,
    folds: Codes,
    measure: Callable[[Sequence[TreeColumn], Codes, Codes], Best],
) -> Best:
    """Take the scores that were kept, or measure and keep them."""
    key = key_of(attackers, columns, target, folds)
    known = best_in(kept.load(key), attackers, int(folds.max()) + 1)
    if known is not None:
        return known
    best, attacker = measure(columns, target, folds)
    kept.save(key, {"attacker": attacker, "scores": best.tolist()})
    return best, attacker


def key_of(attackers: Sequence[str], columns: Sequence[TreeColumn], target: Codes, folds: Codes) -> str:
    """SHA-256 over all that the scores depend on."""
    digest = hashlib.sha256("\n".join(attackers).encode())
    for codes in (target, folds):
        _add(digest, codes.astype("<i8"))
    for column in columns:
        digest.update(f"\n{column.n_values} {column.is_numeric}\n".encode())
        _add(digest, column.codes.astype("<i4"))
        _add(digest, (np.zeros(0) if column.numbers is None else column.numbers).astype("<f8"))
    return digest.hexdigest()


def _add(digest: Any, numbers: NDArray[Any]) -> None:
    digest.update(f"{len(numbers)}:".encode() + numbers.tobytes())


def best_in(entry: Any, attackers: Sequence[str], n_folds: int) -> Best | None:
    """Read scores; ``None`` where there are none, or what was kept is not what was asked for."""
    if not isinstance(entry, Mapping) or entry.get("attacker") not in attackers:
        return None
    scores = entry.get("scores")
    if not isinstance(scores, list) or len(scores) != n_folds or not all(map(_is_share, scores)):
        return None
    return np.array(scores, dtype=np.float64), str(entry["attacker"])


def _is_share(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and 0.0 <= value <= 1.0
