"""Whether cells that are stated to be typical of their class are: the middle value, or the most frequent one.

A class has the released rows with equal cells on all quasi-identifiers. Where it is known which row of the original
each released row is, the audit finds the typical values by itself. Where rows are sorted nothing says whose they are. A
typical value may then be of any row. What can be shown is whether the original's values could be shared out among the
classes so that each has its cell in the middle: that many values are at or below it, and that many at or above.

The middle value of a column with an order is the lower median of the known values, and missing where most rows have no
value. On another column it is the most frequent value, the first by its text among several; missing comes last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import ClaimedRecoding, Claims
from sfumato.audit.reading.cells import contained
from sfumato.audit.reading.columns import Columns, group_rows
from sfumato.audit.reading.values import TYPICAL, matching_ids, texts_of
from sfumato.schema import Kind, Role

Ids = NDArray[np.int64]

NAME = "typical values"


def check_typical(
    released: Columns, original: Columns, claims: Claims, offered: NDArray[np.intp], own_rows: NDArray[np.intp] | None
) -> Iterator[Check | Unchecked]:
    """Compare typical values with those of the rows of their classes, or with all rows where the classes are not known.

    Parameters
    ----------
    offered : array
        Rows of the original that may be released.
    own_rows : array or None
        Row of the original of each released row, if that is known.
    """
    stated = [r for r in claims.recodings.values() if r.rule == TYPICAL]
    known = set(claims.names(Role.QUASI_IDENTIFIER))
    foreign = [r.name for r in stated if r.name not in known or r.name != r.column]
    if foreign:
        said = f"cannot be typical of a class, as they are of no quasi-identifier: {listed(foreign)}"
        yield Check(NAME, False, f"cells {said}")
        return
    stated = [r for r in stated if r.name in released and r.column in original]
    if not stated:
        return
    names = [name for name in claims.names(Role.QUASI_IDENTIFIER) if name in released]
    classes = group_rows(released, names)
    ids, sizes = np.asarray(classes.ids, dtype=np.int64), np.asarray(classes.sizes, dtype=np.int64)
    first_row = np.zeros(len(sizes), dtype=np.intp)
    first_row[ids[::-1]] = np.arange(len(ids))[::-1]
    wrong: list[str] = []
    unknown = [r.name for r in stated if _order_of(r, original) is None]
    stated = [r for r in stated if r.name not in unknown]
    for recoding in stated:
        values = _Values(released, original, recoding)
        cells = values.of_cells[released.coded(recoding.name).codes[first_row]]
        if own_rows is None:
            is_right = values.can_be_shared_out(cells, sizes, original.coded(recoding.column).codes[offered])
        else:
            found = values.typical(original.coded(recoding.column).codes[own_rows], ids, len(sizes))
            is_right = bool(np.array_equal(found, cells))
        wrong += [] if is_right else [recoding.name]
    if unknown:
        said = f"whether cells of {listed(unknown)} are the middle value of a class: the order was not declared"
        yield Unchecked("order", said, "describe the original in a project")
    if not stated:
        return
    shown = listed([recoding.name for recoding in stated])
    if own_rows is not None:
        good = f"every cell of {shown} is the middle or most frequent value of its class, row by row"
        said = f"cells are not the middle or most frequent value of their class, in: {listed(wrong)}"
        yield Check(NAME, not wrong, said if wrong else good)
        return
    good = f"the original has values enough for cells of {shown} to be the middle or most frequent of such classes"
    said = f"cells cannot be the middle or most frequent value of any classes of these sizes, in: {listed(wrong)}"
    yield Check(NAME, not wrong, said if wrong else good)
    if not wrong:
        open_question = f"whether each cell of {shown} is the middle or most frequent value of its own class"
        why = "rows are sorted, so that nobody can tell which original rows a class has"
        yield Unchecked("cells", f"{open_question}: {why}. Promises about the cells as written were checked")


def _order_of(recoding: ClaimedRecoding, original: Columns) -> tuple[str, ...] | None:
    """Levels of a column from lowest to highest, () where it has none; ``None`` where nobody has stated them all.

    A manifest lists the levels that are released. All are known where the original was described.
    """
    if recoding.kind is not Kind.ORDERED:
        return ()
    own = original.describe(recoding.column)
    if own.kind is Kind.ORDERED and own.domain:
        return own.domain
    levels = recoding.domain or ()
    values = texts_of(original.coded(recoding.column).values).drop_null().to_pylist()
    return levels if set(values) <= set(levels) else None


class _Values:
    """Values of a column as numbers in their order; -1 is missing and -2 what the original does not have."""

    def __init__(self, released: Columns, original: Columns, recoding: ClaimedRecoding) -> None:
        values, shown = original.coded(recoding.column).values, released.coded(recoding.name).values
        self._has_order = recoding.kind is not Kind.CATEGORICAL
        is_missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        if self._has_order:
            places = contained(pa.array([], pa.string()), values, recoding.kind, _order_of(recoding, original)).places
        else:
            texts = texts_of(values).to_pylist()
            by_text = sorted(range(len(texts)), key=lambda i: (texts[i] is None, texts[i] or ""))
            places = np.empty(len(texts), dtype=np.int64)
            places[by_text] = np.arange(len(texts))
        self._of_values = np.where(is_missing, -1, places).astype(np.int64)
        before, after = matching_ids(values, shown)
        place_of = dict(zip(before.tolist(), self._of_values.tolist(), strict=True))
        self.of_cells = np.array([place_of.get(number, -2) for number in after.tolist()], dtype=np.int64)

    def typical(self, codes: NDArray[np.integer], classes: Ids, n_classes: int) -> Ids:
        """Find the typical value of each class, given the value and the class of each row."""
        places = self._of_values[codes]
        found = np.empty(n_classes, dtype=np.int64)
        order = np.argsort(classes, kind="stable")
        for number, own in enumerate(
            np.split(places[order], np.cumsum(np.bincount(classes, minlength=n_classes))[:-1])
        ):
            found[number] = _middle(own) if self._has_order else _most_frequent(own)
        return found

    def can_be_shared_out(self, cells: Ids, sizes: Ids, codes: NDArray[np.integer]) -> bool:
        """Whether values can be dealt to classes of these sizes so that each has this cell as its typical value.

        A necessary condition. With an order it is Hall's: a class of n rows takes its cell, as many values at or below
        it as come before the middle, and the others at or above it. Of M missing values a class has at most M, and no
        more than half of its rows, if its cell is known.
        """
        places = self._of_values[codes]
        if (cells == -2).any():
            return False
        known, n_cells = places[places >= 0], cells[cells >= 0]
        n_values = max(int(self._of_values.max(initial=0)) + 1, 1)
        there = np.bincount(known, minlength=n_values)
        if not self._has_order:
            n_distinct = max(len(np.unique(places)), 1)
            needed = np.bincount(n_cells, -(-sizes[cells >= 0] // n_distinct), minlength=n_values)
            return bool((needed <= there).all())
        of_known = sizes[cells >= 0]
        held = np.maximum(-(-of_known // 2), of_known - (len(places) - len(known)))
        below, above = (held - 1) // 2, held // 2
        at_or_below = np.cumsum(np.bincount(n_cells, below + 1, minlength=n_values))
        at_or_above = np.cumsum(np.bincount(n_cells, above + 1, minlength=n_values)[::-1])
        fits = (np.bincount(n_cells, minlength=n_values) <= there).all()
        fits = fits and (at_or_below <= np.cumsum(there)).all()
        return bool(fits and (at_or_above <= np.cumsum(there[::-1])).all())


def _middle(places: Ids) -> int:
    known = np.sort(places[places >= 0])
    return -1 if 2 * len(known) < len(places) or not len(known) else int(known[(len(known) - 1) // 2])


def _most_frequent(places: Ids) -> int:
    known, counts = np.unique(places[places >= 0], return_counts=True)
    if not len(known) or len(places) - int(counts.sum()) > int(counts.max()):
        return -1
    return int(known[np.argmax(counts)])
