"""Whether the cells of a release follow from its original, where the rows of both come in blocks.

They are compared as a bag: DuckDB counts equal rows of both, with what does not fit spilled.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.checks import IN_MEMORY, Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.original.bags_on_disk import check_bag_on_disk
from sfumato.audit.original.cell_rules import CellRule, Codes
from sfumato.audit.reading.values import is_text, meanings_read_as
from sfumato.engines.protocol import Rows
from sfumato.progress import Progress

_MISSING = secrets.randbits(62)
_SALT = secrets.token_hex(16)


def check_cells(
    released: Rows,
    original: Rows,
    rules: Sequence[CellRule],
    claims: Claims,
    memory: int,
    progress: Progress | None = None,
) -> Iterator[Check | Unchecked]:
    """Compare rows as a bag."""
    every = [_for_blocks(rule, released, original, claims) for rule in rules]
    known = [rule for rule in every if rule is not None]
    long = [name for name, rule in zip(claims.names(), every, strict=True) if rule is None]
    if long:
        said = f"whether cells of {listed(long)} follow from the original: they have too many distinct values"
        yield Unchecked("cells", f"{said} out of core", IN_MEMORY)
    if not known and long:
        return
    names, columns = [rule.name for rule in known], [rule.column for rule in known]

    def originals() -> Iterator[list[Codes]]:
        return _codes(original, known, columns, released, names, None)

    def found() -> Iterator[list[Codes]]:
        return _codes(released, known, names, original, columns, progress)

    yield check_bag_on_disk(known, originals, found, memory)


@dataclass(frozen=True)
class _SameMeaning(CellRule):
    """Cells that agree when the numbers of their meanings are equal: for columns whose values are not listed."""

    def agree(self, original: Codes, released: Codes) -> NDArray[np.bool_]:
        """Whether the numbers are equal."""
        return np.asarray(original == released)


def _for_blocks(rule: CellRule, released: Rows, original: Rows, claims: Claims) -> CellRule | None:
    """Rule for columns of which values may not be listed; ``None`` where nothing can be said of a recoding then."""
    recoding = claims.recodings.get(rule.name)
    column = rule.column if recoding is None else recoding.column
    if not (released.is_open(rule.name) or original.is_open(column)):
        return rule
    if recoding is not None:
        return None
    return rule if rule.problem else _SameMeaning(rule.name, rule.column)


def _codes(
    table: Rows,
    rules: Sequence[CellRule],
    names: Sequence[str],
    other: Rows,
    other_names: Sequence[str],
    progress: Progress | None,
) -> Iterator[list[Codes]]:
    """Codes of the rules' columns, block by block; of values that are not listed the numbers of their meanings."""
    if any(rule.problem for rule in rules):
        return
    by_meaning = {name for name, rule in zip(names, rules, strict=True) if isinstance(rule, _SameMeaning)}
    other_type = {name: other.outline[second].values.type for name, second in zip(names, other_names, strict=True)}
    for block in table.blocks(list(dict.fromkeys(names)), as_cells=by_meaning, progress=progress):
        read = {n: meaning_numbers(c, other_type[n]) if n in by_meaning else np.asarray(c) for n, c in block.items()}
        yield [read[name] for name in names]


def meaning_numbers(cells: pa.Array, other_type: pa.DataType) -> NDArray[np.int64]:
    """Numbers of 64 bits that are equal for cells that mean the same, and, but for a rare chance, for no others.

    Examples
    --------
    >>> first = meaning_numbers(pa.array([1, -1, None]), pa.string())
    >>> first.tolist() == meaning_numbers(pa.array(["1.0", "-1", None]), pa.int64()).tolist()
    True
    """
    if (
        cells.type == other_type
        and not is_text(other_type)
        and not pa.types.is_decimal(other_type)
        and other_type.bit_width == 64
    ):
        numbers = pc.fill_null(cells.view(pa.int64()), _MISSING)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)
    found = (
        _MISSING if meaning is None else hash(_SALT + _as_text(meaning))
        for meaning in meanings_read_as(cells, other_type)
    )
    return np.fromiter(found, dtype=np.int64, count=len(cells))


def _as_text(meaning: Hashable) -> str:
    """Write a meaning so that equal ones have equal texts; Python's hash of a number itself can be foreseen."""
    if isinstance(meaning, str):
        return f"text {meaning}"
    if isinstance(meaning, int | float | Decimal) and math.isfinite(meaning):
        top, bottom = meaning.as_integer_ratio()
        return f"number {top}/{bottom}"
    return f"other {float(meaning) if isinstance(meaning, Decimal) else meaning}"
