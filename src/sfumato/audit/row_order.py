"""Whether released rows are rows of the original in its order, with some left out; both may come in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.cell_rules import CellRule

Codes = NDArray[np.integer]
_FEWEST_ROWS, _MOST_ROWS = 64, 65_536  # compared at once


class _Waiting:
    """Rows that were not compared yet: codes, column by column."""

    def __init__(self, blocks: Iterator[Sequence[Codes]]) -> None:
        self._blocks = blocks
        self._block: Sequence[Codes] = ()
        self._at = self.n = 0

    def has_some(self) -> bool:
        while self.n == 0:
            block = next(self._blocks, None)
            if block is None:
                return False
            self._block, self._at, self.n = block, 0, len(block[0])
        return True

    def first(self, n: int) -> list[Codes]:
        return [codes[self._at : self._at + n] for codes in self._block]

    def leave(self, n: int) -> None:
        self._at += n
        self.n -= n


def are_in_order(
    rules: Sequence[CellRule],
    original: Iterator[Sequence[Codes]],
    released: Iterator[Sequence[Codes]],
    most_left_out: int,
) -> bool:
    """Whether the released rows follow from the original's, in their order, with at most so many left out.

    Each released row is given the first row of the original that agrees and comes after those given before; if there is
    any way, this is one.

    Parameters
    ----------
    rules : sequence of CellRule
        At least one.
    original, released : iterator over blocks
        Codes of the rules' columns, in the order of the rules.
    """
    before, after = _Waiting(original), _Waiting(released)
    n_left_out, at_once = 0, _FEWEST_ROWS
    while after.has_some():
        if not before.has_some() or n_left_out > most_left_out:
            return False
        n = min(at_once, before.n, after.n)
        agree = np.ones(n, dtype=np.bool_)
        for rule, originals, found in zip(rules, before.first(n), after.first(n), strict=True):
            agree &= rule.agree(originals, found)
        n_agreeing = n if agree.all() else int(np.argmin(agree))
        is_left_out = n_agreeing < n
        before.leave(n_agreeing + is_left_out)
        after.leave(n_agreeing)
        n_left_out += is_left_out
        at_once = _FEWEST_ROWS if is_left_out else min(2 * at_once, _MOST_ROWS)
    return n_left_out <= most_left_out
