"""Folds that Weka deals out for a seed, so that figures of Weka can be re-made row by row.

As in ``Instances.randomize``, ``stratify`` and ``testCV`` of Weka 3, with the generator of ``java.util.Random``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """Whole numbers of ``java.util.Random``."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def below(self, bound: int) -> int:
        """Draw the next number from 0 to ``bound - 1`` (``nextInt``)."""
        if bound & (bound - 1) == 0:
            return bound * self._bits() >> 31
        while True:
            bits = self._bits()
            number = bits % bound
            if bits - number + bound - 1 < 1 << 31:
                return number

    def _bits(self) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> 17


def weka_folds(target: Places, n_folds: int = 10, seed: int = 1) -> Places:
    """Fold of every row in a stratified cross-validation of Weka."""
    return repeated_weka_folds(target, n_folds, 1, seed)[0]


def repeated_weka_folds(target: Places, n_folds: int, n_times: int, seed: int = 1) -> list[Places]:
    """Folds of cross-validations that go on with one generator: Weka also shuffles the training rows of every fold."""
    draw = JavaRandom(seed)
    found = []
    for _ in range(n_times):
        found.append(_dealt(target, n_folds, draw))
        for size in np.bincount(found[-1]).tolist():
            for last in range(len(target) - size - 1, 0, -1):
                draw.below(last + 1)
    return found


def _dealt(target: Places, n_folds: int, draw: JavaRandom) -> Places:
    n_rows = len(target)
    rows = list(range(n_rows))
    for last in range(n_rows - 1, 0, -1):
        other = draw.below(last + 1)
        rows[last], rows[other] = rows[other], rows[last]
    _gather_classes(rows, target.tolist())
    dealt = [rows[place] for start in range(n_folds) for place in range(start, n_rows, n_folds)]
    sizes = [n_rows // n_folds + (fold < n_rows % n_folds) for fold in range(n_folds)]
    fold_of_row = np.empty(n_rows, dtype=np.intp)
    fold_of_row[dealt] = np.repeat(np.arange(n_folds), sizes)
    return fold_of_row


def _gather_classes(rows: list[int], classes: list[int]) -> None:
    """Bring rows of the same class together by swaps, as Weka does."""
    index = 1
    while index < len(rows):
        wanted = classes[rows[index - 1]]
        for place in range(index, len(rows)):
            if classes[rows[place]] == wanted:
                rows[index], rows[place] = rows[place], rows[index]
                index += 1
        index += 1
