r"""Labels of hierarchies, read by the audit's own code: which values of the original a label stands for.

========================  =================================================================================
``*``                     any value, missing included
listed in the manifest    the values listed there
``[17, 25[``, ``[17, 25]``  numbers (dates, levels) from 17 up to 25, the second bracket closed with 25
``0213*``, ``02***``      values of the same length that begin so; a star for each character left out
``2024-03``, ``2024``     dates that begin so
(an empty cell)           missing
anything else             that value
========================  =================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.cells import Containing
from sfumato.audit.values import is_text, meanings_beside, numbers_in
from sfumato.schema import Kind

Flags = NDArray[np.bool_]

_ANY = "*"
_INTERVAL = re.compile(r"\[([^\[\],]+), ([^\[\],]+)([\[\]])")
_MASK = re.compile(r"([^*]*)(\*+)")
_DATE_PREFIX = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def contained_in_labels(
    released: pa.Array,
    original: pa.Array,
    kind: Kind,
    listed: Mapping[str, Sequence[str]],
    domain: tuple[str, ...] | None = None,
) -> Containing:
    """Read the distinct labels of a column against the distinct values of its original.

    Parameters
    ----------
    listed : mapping of str to sequence of str
        Values of the labels whose meaning their text does not tell.

    Examples
    --------
    >>> found = contained_in_labels(pa.array(["[17, 25[", "young", "*"]), pa.array(["17", "25", None]), Kind.NUMERIC,
    ...     {"young": ["17", "18"]})
    >>> [found.holds(np.arange(3), np.full(3, label)).astype(int).tolist() for label in range(3)]
    [[1, 0, 0], [1, 0, 0], [1, 1, 1]]
    """
    labels = (released if is_text(released.type) else pc.cast(released, pa.string())).to_pylist()
    values = _Values(original, kind, domain)
    rows = [values.standing_for(label, listed) for label in labels]
    runs = [(i, *run) for i, row in enumerate(rows) if row is not None for run in _runs(row)]
    cells, starts, stops = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    n_unreadable = sum(row is None for row in rows)
    places = np.arange(len(original), dtype=np.int64)
    return Containing(places, len(original), cells, starts, stops, len(labels), n_unreadable)


def _runs(row: Flags) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


class _Values:
    """Distinct values of the original column, with every way in which a label may speak of them."""

    def __init__(self, original: pa.Array, kind: Kind, domain: tuple[str, ...] | None) -> None:
        self._kind, self._type = kind, original.type
        self._is_missing: Flags = np.asarray(original.is_null().to_numpy(zero_copy_only=False))
        self._texts = [None if text is None else text.strip() for text in pc.cast(original, pa.string()).to_pylist()]
        self._meanings = self._read(original)
        self._positions = self._placed(original, domain)
        self._domain = domain

    def standing_for(self, label: str | None, listed: Mapping[str, Sequence[str]]) -> Flags | None:
        """Which values a label stands for; ``None`` where its text cannot be read."""
        if label is None:
            return self._is_missing
        if label == _ANY:
            return np.ones(len(self._texts), dtype=np.bool_)
        if label in listed:
            return self._one_of(listed[label])
        interval = _INTERVAL.fullmatch(label)
        if interval and self._positions is not None:
            return self._between(interval[1], interval[2], closed=interval[3] == "]")
        mask = _MASK.fullmatch(label)
        if mask:
            begins, length = mask[1], len(label)
            return np.array([t is not None and len(t) == length and t.startswith(begins) for t in self._texts])
        if self._kind is Kind.DATE and _DATE_PREFIX.fullmatch(label):
            return np.array([t is not None and t.startswith(label) for t in self._texts])
        return self._one_of([label])

    def _one_of(self, values: Sequence[str]) -> Flags:
        wanted = set(self._read(pa.array(list(values), pa.string())))
        return np.array([m is not None and m in wanted for m in self._meanings], dtype=np.bool_)

    def _between(self, low: str, high: str, *, closed: bool) -> Flags | None:
        ends = self._placed(pa.array([low, high]), self._domain)
        if ends is None or np.isnan(ends).any() or self._positions is None:
            return None
        with np.errstate(invalid="ignore"):
            below = self._positions <= ends[1] if closed else self._positions < ends[1]
            return np.asarray((self._positions >= ends[0]) & below)

    def _read(self, values: pa.Array) -> list[Any]:
        if is_text(values.type):
            values = pc.utf8_trim_whitespace(values)
            return meanings_beside(values, pa.float64() if self._kind is Kind.NUMERIC else self._type)
        return meanings_beside(values, pa.string())

    def _placed(self, values: pa.Array, domain: tuple[str, ...] | None) -> NDArray[np.float64] | None:
        if self._kind is Kind.NUMERIC:
            numbers, wrong = numbers_in(values)
            return None if wrong.any() else numbers
        if self._kind is Kind.DATE:
            try:
                moments = pc.cast(pc.cast(values, pa.timestamp("us")), pa.int64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return None
            cells = pc.cast(moments, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            return np.asarray(cells, dtype=np.float64)
        if self._kind is Kind.ORDERED and domain:
            level = {text: float(i) for i, text in enumerate(domain)}
            texts = pc.cast(values, pa.string()).to_pylist()
            return np.array([np.nan if text is None else level.get(text.strip(), np.nan) for text in texts])
        return None
