"""The canonical form of released JSON lines: one object a line, all columns in order, one spelling for each cell."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sfumato.audit.bytes.text import MOST_BYTES_OF_A_ROW

_EXACT = 2.0**53


class _NotCanonicalError(Exception):
    """Internal: what is wrong with a line."""


@dataclass
class JsonLinesForm:
    """What is known of JSON lines before they are looked at: columns in their order, and texts that mean "missing"."""

    names: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    _types: dict[int, type] = field(default_factory=dict)

    def problem(self, chunks: Iterable[bytes]) -> str:
        """Say in what way bytes are not the canonical lines of some cells; empty if they are."""
        n_right = 0
        try:
            for line in _lines(chunks):
                self._check(line)
                n_right += 1
        except _NotCanonicalError as error:
            return f"{error} (line {n_right + 1:,})"
        return ""

    def _check(self, line: bytes) -> None:
        try:
            pairs = json.loads(line.decode(), object_pairs_hook=lambda pairs: pairs, parse_constant=_refused)
        except (ValueError, RecursionError):
            raise _NotCanonicalError("it is not JSON in UTF-8") from None
        if not isinstance(pairs, list) or any(not isinstance(pair, tuple) for pair in pairs):
            raise _NotCanonicalError("it is not an object")
        if tuple(key for key, _ in pairs) != self.names:
            raise _NotCanonicalError("its keys are not the stated columns in their order")
        for column, (_, value) in enumerate(pairs):
            self._check_cell(column, value)
        written = ",".join(f"{_text(key)}:{_spelled(value)}" for key, value in pairs)
        if line != ("{" + written + "}\n").encode():
            raise _NotCanonicalError("it is not the canonical line of its cells")

    def _check_cell(self, column: int, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, str | bool | int | float):
            raise _NotCanonicalError("a cell is neither a text, a number nor a truth value")
        own = float if isinstance(value, int) and not isinstance(value, bool) else type(value)
        if self._types.setdefault(column, own) is not own:
            raise _NotCanonicalError("a column mixes texts, numbers and truth values")
        if isinstance(value, str) and (value != value.strip() or value in self.missing[column] or not value):
            raise _NotCanonicalError("there are blanks around a text, or it spells a missing value")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(rest) > MOST_BYTES_OF_A_ROW:
            raise _NotCanonicalError("a line is too long")
    if rest:
        raise _NotCanonicalError("the last line has no end")


def _refused(word: str) -> None:
    raise ValueError


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _spelled(value: object) -> str:
    """Spell a cell: whole numbers without a point, other numbers in their shortest digits."""
    if isinstance(value, float):
        if not math.isfinite(value) or (value == 0 and math.copysign(1.0, value) < 0):
            raise _NotCanonicalError("a number is -0 or too large")
        return str(int(value)) if value.is_integer() and abs(value) <= _EXACT else repr(value)
    return json.dumps(value, ensure_ascii=False)
