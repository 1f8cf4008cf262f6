"""How the audit reads files that are larger than memory: counts by DuckDB, cells in blocks.

Rows of a sorted release are compared with the original's as a bag: DuckDB counts equal rows of both, with what does not
fit spilled. Rows whose order is the original's are compared one after the other.
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
from sfumato.audit.claims import ClaimedPersons, Claims
from sfumato.audit.levels.breach import determining_columns
from sfumato.audit.not_in_memory import RowReader, is_long
from sfumato.audit.original.bags_on_disk import check_bag_on_disk
from sfumato.audit.original.cell_rules import CellRule, Codes
from sfumato.audit.original.fidelity import check_order
from sfumato.audit.original.offered_rows import ranks_of_rule
from sfumato.audit.reading.block_counting import (
    Counts,
    GroupKeys,
    counted_rows,
    least_different_values,
    n_unique_rows,
    persons_of_groups,
    place_of_each,
)
from sfumato.audit.reading.row_order import RowOrder, are_all_numbers, is_sorted, keys_of, ranks_in_order, said_of
from sfumato.audit.reading.values import is_text, meanings_read_as
from sfumato.errors import InputError
from sfumato.progress import Progress
from sfumato.rows.out_of_core import LargeTable
from sfumato.schema import Kind
from sfumato.table.weighted import CountedTable, OpenColumn

_MISSING = secrets.randbits(62)
_SALT = secrets.token_hex(16)


@dataclass(frozen=True)
class BlockReader(RowReader[LargeTable]):
    """Files on this machine, read in blocks.

    Parameters
    ----------
    memory : int
        Bytes that may be kept at a time.
    progress : callable or None
        Hears how many rows were read.
    """

    memory: int
    progress: Progress | None = None
    where = "out of core"
    keeps_order = True

    def counted(self, table: LargeTable, names: Sequence[str]) -> CountedTable:
        """Count distinct rows by DuckDB, which spills what does not fit."""
        return counted_rows(table, names, self.memory, self.progress)

    def least_different_values(self, table: LargeTable, over: Sequence[str], name: str) -> int:
        """Have DuckDB count, so that combinations never leave it."""
        return least_different_values(table, over, name, self.memory, self.progress)

    def n_unique_rows(self, table: LargeTable) -> int | None:
        """Have DuckDB count; columns whose values are not listed have no codes to be compared by."""
        names = table.schema.names()
        if any(table.is_open(name) for name in names):
            return None
        try:
            return n_unique_rows(table, names, self.memory, self.progress)
        except InputError:  # too many for the memory given: nothing else that is checked needs them all
            return None

    def determining(self, original: LargeTable, names: Sequence[str], sensitive: str) -> list[str]:
        """Count pairs of values in one pass, of long columns by DuckDB."""
        return determining_columns(original, names, sensitive, self.memory, self.progress)

    def persons_of_groups(self, original: LargeTable, known: GroupKeys, person: str) -> tuple[Counts, Counts, Counts]:
        """Have DuckDB count pairs of a group and a person."""
        return persons_of_groups(original, known, person, self.memory // 2, self.progress)  # the groups take the rest

    def place_of_each_person(self, original: LargeTable, stated: ClaimedPersons) -> Counts:
        """Have DuckDB find them."""
        return place_of_each(
            original,
            stated.column,
            ranks_of_rule(original.n_rows, stated),
            is_last=stated.rule == "last",
            memory=self.memory,
            progress=self.progress,
        )

    def long_cells(self, table: LargeTable, name: str) -> Iterator[pa.Array]:
        """Distinct cells of each block."""
        return (pc.unique(block[name]) for block in table.blocks([name], as_cells={name}))

    def check_cells(
        self,
        released: LargeTable,
        counted: CountedTable,
        original: LargeTable,
        rules: Sequence[CellRule],
        claims: Claims,
    ) -> Iterator[Check | Unchecked]:
        """Compare rows as a bag, or row by row if they are in the order of the original."""
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
            return _codes(released, known, names, original, columns, self.progress)

        if is_sorted(claims):
            yield check_bag_on_disk(known, originals, found, self.memory)
        else:
            yield check_order(known, originals(), found(), claims.suppressed_rows)

    def check_row_order(self, released: LargeTable, claims: Claims) -> Check:
        """Compare each row with the one before."""
        kinds = {column.name: column.kind for column in claims.columns}
        names = [name for name in claims.names() if name in released.schema]
        listed = {n: ranks_in_order(released.outline[n].values, kinds[n]) for n in names if not released.is_open(n)}
        are_numbers = {n: is_open_number(released, n, kinds[n]) for n in names if n not in listed}
        order = RowOrder()
        for block in released.blocks(names):
            order.add(
                key
                for name, cells in block.items()
                for key in (
                    [listed[name][np.asarray(cells)]]
                    if name in listed
                    else keys_of(cells, are_numbers=are_numbers[name])
                )
            )
        return said_of(order)


def is_open_number(released: LargeTable, name: str, kind: Kind) -> bool:
    """Whether a column whose values are not listed is stated to be numeric, and holds only numbers."""
    column = released.outline[name]
    if not isinstance(column, OpenColumn) or kind is not Kind.NUMERIC or not is_text(column.values.type):
        return False
    return all(are_all_numbers(block[name]) for block in released.blocks([name], as_cells={name}))


@dataclass(frozen=True)
class _SameMeaning(CellRule):
    """Cells that agree when the numbers of their meanings are equal: for columns whose values are not listed."""

    def agree(self, original: Codes, released: Codes) -> NDArray[np.bool_]:
        """Whether the numbers are equal."""
        return np.asarray(original == released)


def _for_blocks(rule: CellRule, released: LargeTable, original: LargeTable, claims: Claims) -> CellRule | None:
    """Rule for columns of which values may not be listed; ``None`` where nothing can be said of a recoding then."""
    recoding = claims.recodings.get(rule.name)
    column = rule.column if recoding is None else recoding.column
    if not (is_long(released, rule.name) or is_long(original, column)):
        return rule
    if recoding is not None:
        return None
    return rule if rule.problem else _SameMeaning(rule.name, rule.column)


def _codes(
    table: LargeTable,
    rules: Sequence[CellRule],
    names: Sequence[str],
    other: LargeTable,
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
