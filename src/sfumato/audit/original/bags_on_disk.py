"""Whether released rows are rows of the original, as a bag, where neither fits in memory: DuckDB counts equal rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import IN_MEMORY, Check, Unchecked
from sfumato.audit.original.assignment import BothBags, TooManyPairsError, exact_ids, together
from sfumato.audit.original.boxes import NO_BOX, Boxes
from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule
from sfumato.audit.original.fidelity import said_of_cells
from sfumato.audit.original.matching import ImpossibleError, TooManyLayersError, UnmatchedError, matched_rows
from sfumato.audit.reading.cells import Containing
from sfumato.audit.reading.packing import Packing
from sfumato.engines.blocks.database import spilling_connection
from sfumato.errors import InputError

Ids = NDArray[np.int64]
Rows = Callable[[], Iterator[Sequence[Codes]]]
"""Starts a pass over rows, in blocks of codes."""
_LARGEST_KEY = 2**62
_MOST_PARTS = 64
_UNEVEN = 2  # how much larger than others a part may be
_PROGRAM_BYTES = 400 * 10**6  # of Python and its libraries, with what allocators keep
_BYTES_OF_A_BOX = 100  # a column
_BYTES_A_CELL = 300  # of a distinct row, with the pairs that it is in and what the flow needs


@dataclass(frozen=True, eq=False)
class _Compared:
    """How a column is compared by numbers: those of each code on both sides, or the numbers that come as they are."""

    before: Ids | None = None
    after: Ids | None = None
    read: Containing | None = None

    @property
    def size(self) -> int | None:
        """How many numbers there may be; ``None``: any."""
        if self.before is None or self.after is None:
            return None
        return 1 + int(max(self.before.max(initial=-1), self.after.max(initial=-1)))


def check_bag_on_disk(rules: Sequence[CellRule], originals: Rows, released: Rows, memory: int) -> Check | Unchecked:
    """Whether every released row can be given an original row of its own; codes of both come in blocks of rows.

    Where each original cell becomes one released cell, or each row fits one released class, counts of equal rows
    decide. Where classes overlap, what equal rows became is found by the counts of all coarsened columns, and whole
    rows are compared under that answer; if they are not the same, distinct whole rows are matched in memory, a part of
    them at a time.

    Values that the same released cells may mean count as one. Where groups that are too small are joined at coarser and
    coarser levels, rows that agree so became the same: of two that did not, the cell that took the first alone means
    the value of the first alone.
    """
    problems = [f"'{rule.name}' {rule.problem}" for rule in rules if rule.problem]
    if problems or not rules:
        return said_of_cells(problems, rules)
    columns = [_compared(rule) for rule in rules]
    # what a row became depends on all its coarsened cells, also on those that do not overlap
    coarsened = [_coarsened(rule) if isinstance(rule, FittingRule) else _compared(rule) for rule in rules]
    most = _most_rows(memory, len(rules))
    try:
        are_same = _are_same(columns, coarsened, originals, released, memory, most)
    except _TooManyError:
        said = f"whether cells follow from the original: cells overlap, and more than {most:,} distinct rows do not fit"
        return Unchecked("cells", said, IN_MEMORY)
    except TooManyPairsError:
        said = "whether cells follow from the original: original and released rows fit in too many ways"
        return Unchecked("cells", said)
    if not are_same:
        problems.append("released rows are not rows of the original, each of its own")
    return said_of_cells(problems, rules)


class _TooManyError(Exception):
    """There are more distinct rows than fit."""


def _most_rows(memory: int, n_columns: int) -> int:
    """Distinct rows of so many columns that are matched in memory."""
    return max((memory - _PROGRAM_BYTES) // (_BYTES_A_CELL * (n_columns + 2)), 10_000)


def _compared(rule: CellRule) -> _Compared:
    if not len(rule.expected) and not isinstance(rule, FittingRule):
        return _Compared()  # numbers of meanings
    exact = exact_ids(rule)
    if exact is None:
        return _coarsened(rule)
    before, after, _ = together(*exact)
    return _Compared(before, after)


def _coarsened(rule: CellRule) -> _Compared:
    """Distinguish values by the cells that may mean them: far fewer distinct rows, which fit the same released rows."""
    if not isinstance(rule, FittingRule) or rule.read is None:
        raise AssertionError
    read = rule.read.separated()
    return _Compared(read.places, np.arange(read.n_cells), read)


def _are_same(
    columns: Sequence[_Compared],
    coarsened: Sequence[_Compared],
    originals: Rows,
    released: Rows,
    memory: int,
    most: int,
) -> bool:
    if not any(column.read for column in columns):
        return _are_in([(columns, originals), (columns, released)], memory)
    among = [i for i, column in enumerate(coarsened) if column.read is not None]
    most_boxes = max((memory - _PROGRAM_BYTES) // (_BYTES_OF_A_BOX * len(among)), 10_000)
    found = _grouped(coarsened, released, memory, most_boxes, 1, among)
    boxes = None if found is None else _Boxed.of_released(coarsened, among, found)
    if boxes is not None:
        return _are_in([(boxes, originals), (boxes, released)], memory)
    most_groups = _most_rows(memory, len(among))
    places, cells = (
        _grouped(coarsened, rows, memory, most_groups, of, among) for of, rows in enumerate((originals, released))
    )
    if places is not None and cells is not None and _radix(coarsened, among) <= _LARGEST_KEY:
        try:
            matched = _matched(coarsened, among, places, cells)
        except ImpossibleError:
            return False
        except (UnmatchedError, TooManyLayersError):
            matched = None
        if matched is not None:
            numbered = [_Numbered(coarsened, among, *found) for found in matched]
            sides = [(numbered[0], originals), (numbered[1], released)]
            if _are_in(sides, memory):
                return True
    return _are_assigned_in_parts(columns, originals, released, memory, most)


def _are_assigned_in_parts(
    columns: Sequence[_Compared], originals: Rows, released: Rows, memory: int, most: int
) -> bool:
    """Match distinct whole rows, those that agree in all exact columns with each other, a part of them at a time."""
    # exact columns in as few numbers as they fit in, by which parts are distinguished, then those that overlap
    is_exact = [column.read is None for column in columns]
    order = [[i for i in range(len(columns)) if is_exact[i] is which] for which in (True, False)]
    packings = [Packing.of([columns[i].size for i in places]) for places in order]
    n_exact, width = len(packings[0].groups), sum(len(packing.groups) for packing in packings)
    keys = ", ".join(f"c{i}" for i in range(width))
    exact = ", ".join(f"c{i}" for i in range(n_exact))

    def numbers(rows: Rows, is_released: bool) -> Iterator[list[Codes]]:
        for block in rows():
            numbered = _numbered_columns(columns, block, is_released)
            parts = zip(packings, order, strict=True)
            yield [own for packing, places in parts for own in packing.packed([numbered[i] for i in places])]

    def unpacked(side: pa.Table) -> pa.Table:
        own = [side.column(f"c{i}").to_numpy() for i in range(width)]
        parts = zip(packings, order, (own[:n_exact], own[n_exact:]), strict=True)
        found = {
            i: cells for packing, places, part in parts for i, cells in zip(places, packing.unpacked(part), strict=True)
        }
        return pa.table({f"c{i}": found[i] for i in range(len(columns))} | {"n": side.column("n")})

    with spilling_connection(memory) as connection:
        for is_released, (name, rows) in enumerate((("before", originals), ("after", released))):
            with _reading(numbers(rows, bool(is_released)), width) as reader:
                connection.from_arrow(reader).aggregate(f"{keys}, count(*) AS n", keys).create(name)
        n_rows = max(_n_rows(connection, name) for name in ("before", "after"))
        n_parts = -(-n_rows // most)
        if n_parts > (_MOST_PARTS if exact else 1):
            raise _TooManyError
        for part in range(n_parts):
            where = f"WHERE hash({exact}) % {n_parts} = {part}" if n_parts > 1 else ""
            queries = [f"SELECT * FROM {name} {where}" for name in ("before", "after")]
            sides = [connection.sql(query).to_arrow_table() for query in queries]
            if max(side.num_rows for side in sides) > _UNEVEN * most:
                raise _TooManyError
            if sides[1].num_rows and not _can_be_assigned(columns, *map(unpacked, sides)):
                return False
    return True


def _n_rows(connection: Any, name: str) -> int:
    return int(connection.table(name).aggregate("count(*) AS n").to_arrow_table().column("n")[0].as_py())


def _radix(columns: Sequence[_Compared], among: Sequence[int]) -> int:
    sizes = [column.read.n_places + column.read.n_cells for i in among if (column := columns[i]).read is not None]
    return math.prod(sizes)


def _matched(
    columns: Sequence[_Compared], overlapping: Sequence[int], places: pa.Table, cells: pa.Table
) -> list[tuple[Ids, Ids]]:
    """For both sides the distinct rows of the overlapping columns, as keys, and the released row that each became."""
    reads = [read for i in overlapping if (read := columns[i].read) is not None]
    before = [places.column(f"c{i}").to_numpy() for i in overlapping]
    after = [cells.column(f"c{i}").to_numpy() for i in overlapping]
    n_before, n_after = (side.column("n").to_numpy().astype(np.int64) for side in (places, cells))
    became = matched_rows(reads, before, n_before, after, n_after).became
    return [(_keys(reads, before), became), (_keys(reads, after), np.arange(len(n_after)))]


def _keys(reads: Sequence[Containing], numbers: Sequence[Codes]) -> Ids:
    key = np.zeros(len(numbers[0]), dtype=np.int64)
    for read, own in zip(reads, numbers, strict=True):
        key = key * (read.n_places + read.n_cells) + own
    return key


class _Numbered:
    """Tells rows by the released row that their overlapping columns became, and by their other columns."""

    def __init__(self, columns: Sequence[_Compared], overlapping: Sequence[int], keys: Ids, numbers: Ids) -> None:
        self._columns, self._overlapping = columns, overlapping
        self._order = np.argsort(keys)
        self._keys, self._numbers = keys[self._order], numbers[self._order]
        self._reads = [read for i in overlapping if (read := columns[i].read) is not None]

    @property
    def sizes(self) -> list[int | None]:
        """How many numbers there may be of each."""
        others = (column.size for i, column in enumerate(self._columns) if i not in self._overlapping)
        return [1 + int(self._numbers.max(initial=-1)), *others]

    def of(self, block: Sequence[Codes], is_released: bool) -> list[Codes]:
        """Numbers of the rows of a block."""
        numbered = _numbered_columns(self._columns, block, is_released)
        key = _keys(self._reads, [numbered[i] for i in self._overlapping])
        number = self._numbers[np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)]
        return [number, *(own for i, own in enumerate(numbered) if i not in self._overlapping)]


@dataclass(frozen=True, eq=False)
class _Boxed:
    """Tells rows by the one released class that can hold them, and by their other columns."""

    columns: Sequence[_Compared]
    among: Sequence[int]
    boxes: Boxes

    @classmethod
    def of_released(cls, columns: Sequence[_Compared], among: Sequence[int], released: pa.Table) -> _Boxed | None:
        """Index the classes; ``None`` where two of them may hold the same row."""
        reads = [read for i in among if (read := columns[i].read) is not None]
        boxes = Boxes.of(reads, [released.column(f"c{i}").to_numpy() for i in among])
        return None if boxes is None else cls(columns, among, boxes)

    @property
    def sizes(self) -> list[int | None]:
        """How many numbers there may be of each."""
        others = (column.size for i, column in enumerate(self.columns) if i not in self.among)
        return [self.boxes.n_boxes + 2, *others]

    def of(self, block: Sequence[Codes], is_released: bool) -> list[Codes]:
        """Numbers of the rows of a block; rows without a class have another one on either side."""
        numbered = _numbered_columns(self.columns, block, is_released)
        own = [np.asarray(numbered[i], dtype=np.int64) for i in self.among]
        found = self.boxes.of_cells(own) if is_released else self.boxes.of_rows(own)
        number = np.where(found == NO_BOX, self.boxes.n_boxes + is_released, found)
        return [number, *(each for i, each in enumerate(numbered) if i not in self.among)]


def _numbered_columns(columns: Sequence[_Compared], block: Sequence[Codes], is_released: bool) -> list[Codes]:
    """Numbers by which the rows of a block are distinguished, column by column."""
    found = []
    for column, codes in zip(columns, block, strict=True):
        numbers = column.after if is_released else column.before
        found.append(codes if numbers is None else numbers[codes])
    return found


def _are_in(sides: Sequence[tuple[_Boxed | _Numbered | Sequence[_Compared], Rows]], memory: int) -> bool:
    """Whether no row of the second side occurs more often there than on the first."""

    def numbers() -> Iterator[list[Codes]]:
        for is_released, (how, rows) in enumerate(sides):
            for block in rows():
                numbered = (
                    how.of(block, bool(is_released))
                    if isinstance(how, _Boxed | _Numbered)
                    else _numbered_columns(how, block, bool(is_released))
                )
                yield [*packing.packed(numbered), np.full(len(numbered[0]), 1 if is_released else -1, dtype=np.int64)]

    sizes = [how.sizes if isinstance(how, _Boxed | _Numbered) else [column.size for column in how] for how, _ in sides]
    packing = Packing.of([None if None in both else max(both) for both in zip(*sizes, strict=True)])
    width = len(packing.groups)
    keys = ", ".join(f"c{i}" for i in range(width))
    counted = _counted(numbers(), width + 1, f"{keys}, sum(c{width}) AS more", keys, memory, "more > 0", 1)
    return bool(counted.num_rows == 0)


def _grouped(
    columns: Sequence[_Compared], rows: Rows, memory: int, most: int, is_released: int, among: Sequence[int] = ()
) -> pa.Table | None:
    """Distinct rows of some columns with how many there are of each; ``None`` if there are too many."""
    chosen = list(among) or list(range(len(columns)))

    def numbers() -> Iterator[list[Codes]]:
        for block in rows():
            numbered = _numbered_columns(columns, block, bool(is_released))
            yield [numbered[i] for i in chosen]

    keys = ", ".join(f"c{i}" for i in range(len(chosen)))
    found = _counted(numbers(), len(chosen), f"{keys}, count(*) AS n", keys, memory, "true", most + 1)
    if found.num_rows > most:
        return None
    return found.rename_columns([*(f"c{i}" for i in chosen), "n"])


def _counted(
    numbers: Iterator[list[Codes]], width: int, wanted: str, by: str, memory: int, where: str, most: int
) -> pa.Table:
    with spilling_connection(memory) as connection, _reading(numbers, width) as reader:
        return connection.from_arrow(reader).aggregate(wanted, by).filter(where).limit(most).to_arrow_table()


@contextmanager
def _reading(numbers: Iterator[list[Codes]], width: int) -> Iterator[pa.RecordBatchReader]:
    """Give numbers of rows to the engine, and its failures the words of those of the rows."""
    import duckdb

    failures: list[BaseException] = []
    names = [f"c{i}" for i in range(width)]

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for numbered in numbers:
                yield pa.record_batch([pa.array(own, pa.int64()) for own in numbered], names=names)
        except BaseException as exc:  # kept, for the engine hides it; an interruption too
            failures.append(exc)
            raise

    try:
        yield pa.RecordBatchReader.from_batches(pa.schema([(name, pa.int64()) for name in names]), batches())
    except (duckdb.Error, pa.ArrowException):
        if failures:
            raise failures[0] from None
        problem = "the rows of release and original cannot be counted in the given memory"
        hint = "give more memory, or free disk space for spilling"
        raise InputError(problem, hint=hint, remedy=("memory",)) from None


def _can_be_assigned(columns: Sequence[_Compared], before: pa.Table, after: pa.Table) -> bool:
    """Match distinct rows of both sides, with how many rows each represents."""
    rules: list[CellRule] = []
    originals: list[Codes] = []
    released: list[Codes] = []
    for i, column in enumerate(columns):
        own, found = before.column(f"c{i}").to_numpy(), after.column(f"c{i}").to_numpy()
        if column.read is not None:
            read = replace(column.read, places=np.arange(column.read.n_places))
            rules.append(FittingRule("", "", read=read))
        else:
            own, found, n_values = together(own, found)
            rules.append(CellRule("", "", np.arange(n_values), np.arange(n_values)))
        originals.append(own)
        released.append(found)
    bags = BothBags.of(rules, originals, released)
    n_before, n_after = (side.column("n").to_numpy().astype(np.int64) for side in (before, after))
    counted = BothBags(bags.originals, bags.released, bags.n_numbers, bags.overlapping, n_before, n_after)
    return counted.can_be_assigned()
