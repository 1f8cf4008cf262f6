"""Whether released rows are rows of the original, as a bag, where neither fits in memory: DuckDB counts equal rows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import IN_MEMORY, Check, Unchecked
from sfumato.audit.original.assignment import BothBags, Pairs, TooManyPairsError, exact_ids, together
from sfumato.audit.original.boxes import NO_BOX, Boxes
from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule
from sfumato.audit.original.fidelity import said_of_cells
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
        return _are_in(columns, originals, released, memory)
    among = [i for i, column in enumerate(coarsened) if column.read is not None]
    reads = [read for i in among if (read := coarsened[i].read) is not None]
    most_boxes = max((memory - _PROGRAM_BYTES) // (_BYTES_OF_A_BOX * len(among)), 10_000)
    cells = _distinct(coarsened, among, released, memory, most_boxes, is_released=True)
    boxes = None if cells is None else Boxes.of(reads, [cells.column(i).to_numpy() for i in range(len(among))])
    if boxes is not None:
        return _are_in(coarsened, originals, released, memory, _Classes(among, boxes.n_boxes + 2, _by_boxes(boxes)))
    most_groups = _most_rows(memory, len(among))
    places = _distinct(coarsened, among, originals, memory, most_groups, is_released=False)
    if places is not None and cells is not None and cells.num_rows <= most_groups:
        with contextlib.suppress(TooManyPairsError):
            pairs = Pairs.of(_bags([coarsened[i] for i in among], places, cells))
            became = pairs.whole()
            if became is None and not pairs.can_be_filled():
                return False
            class_of = None if became is None else _by_distinct_rows(reads, places, cells, pairs, became)
            n_classes = len(pairs.classes.sizes)
            if class_of and _are_in(coarsened, originals, released, memory, _Classes(among, n_classes, class_of)):
                return True
    return _are_assigned_in_parts(columns, originals, released, memory, most)


@dataclass(frozen=True, eq=False)
class _Classes:
    """Released classes as numbers in the place of the columns that make them.

    Parameters
    ----------
    among : sequence of int
        Places of these columns.
    size : int
        How many numbers there may be.
    class_of : callable
        Gives the classes of rows, by their numbers in these columns and whether they are released.
    """

    among: Sequence[int]
    size: int
    class_of: Callable[[Sequence[Ids], bool], Ids]


def _by_boxes(boxes: Boxes) -> Callable[[Sequence[Ids], bool], Ids]:
    """Tell rows by the one released class that can hold them; rows without one have another number on either side."""

    def class_of(numbers: Sequence[Ids], is_released: bool) -> Ids:
        found = boxes.of_cells(numbers) if is_released else boxes.of_rows(numbers)
        return np.where(found == NO_BOX, boxes.n_boxes + is_released, found)

    return class_of


def _by_distinct_rows(
    reads: Sequence[Containing], places: pa.Table, cells: pa.Table, pairs: Pairs, became: Ids
) -> Callable[[Sequence[Ids], bool], Ids] | None:
    """Tell rows by what all with the same values became; ``None`` where combinations have no number of 64 bits."""
    sizes = [read.n_places + read.n_cells for read in reads]
    if math.prod(sizes) > _LARGEST_KEY:
        return None

    def keys(numbers: Sequence[Ids]) -> Ids:
        key = np.zeros(len(numbers[0]), dtype=np.int64)
        for size, own in zip(sizes, numbers, strict=True):
            key = key * size + own
        return key

    known = []
    for side, found in ((places, became[pairs.originals.ids]), (cells, pairs.classes.ids)):
        own = keys([side.column(i).to_numpy() for i in range(len(reads))])
        order = np.argsort(own)
        known.append((own[order], found[order]))

    def class_of(numbers: Sequence[Ids], is_released: bool) -> Ids:
        own, found = known[is_released]
        return np.asarray(found[np.searchsorted(own, keys(numbers))])

    return class_of


def _are_assigned_in_parts(
    columns: Sequence[_Compared], originals: Rows, released: Rows, memory: int, most: int
) -> bool:
    """Match distinct whole rows, a part of them at a time, which is told by the columns that are compared exactly."""
    keys = ", ".join(f"c{i}" for i in range(len(columns)))
    exact = ", ".join(f"c{i}" for i, column in enumerate(columns) if column.read is None)
    with spilling_connection(memory) as connection:
        for is_released, (name, rows) in enumerate((("before", originals), ("after", released))):
            numbered = (_numbered_columns(columns, block, bool(is_released)) for block in rows())
            with _reading(numbered, len(columns)) as reader:
                connection.from_arrow(reader).aggregate(f"{keys}, count(*) AS n", keys).create(name)
        n_rows = max(_n_rows(connection, name) for name in ("before", "after"))
        n_parts = -(-n_rows // most)
        if n_parts > (_MOST_PARTS if exact else 1):
            raise _TooManyError
        for part in range(n_parts):
            where = f"WHERE hash({exact}) % {n_parts} = {part}" if n_parts > 1 else ""
            before, after = (
                connection.sql(f"SELECT * FROM {name} {where}").to_arrow_table() for name in ("before", "after")
            )
            if max(before.num_rows, after.num_rows) > _UNEVEN * most:
                raise _TooManyError
            if after.num_rows and not _bags(columns, before, after).can_be_assigned():
                return False
    return True


def _n_rows(connection: Any, name: str) -> int:
    return int(connection.table(name).aggregate("count(*) AS n").to_arrow_table().column("n")[0].as_py())


def _numbered_columns(columns: Sequence[_Compared], block: Sequence[Codes], is_released: bool) -> list[Codes]:
    """Numbers by which the rows of a block are distinguished, column by column."""
    found = []
    for column, codes in zip(columns, block, strict=True):
        numbers = column.after if is_released else column.before
        found.append(codes if numbers is None else numbers[codes])
    return found


def _are_in(
    columns: Sequence[_Compared], originals: Rows, released: Rows, memory: int, classes: _Classes | None = None
) -> bool:
    """Whether no row of the release occurs more often there than in the original."""
    among = [] if classes is None else classes.among
    packing = Packing.of(
        [*([classes.size] if classes else []), *(c.size for i, c in enumerate(columns) if i not in among)]
    )

    def numbers() -> Iterator[list[Codes]]:
        for is_released, rows in ((False, originals), (True, released)):
            for block in rows():
                numbered = _numbered_columns(columns, block, is_released)
                own = [codes for i, codes in enumerate(numbered) if i not in among]
                if classes is not None:
                    overlapping = [np.asarray(numbered[i], dtype=np.int64) for i in among]
                    own = [classes.class_of(overlapping, is_released), *own]
                yield [*packing.packed(own), np.full(len(block[0]), 1 if is_released else -1, dtype=np.int64)]

    width = len(packing.groups)
    keys = ", ".join(f"c{i}" for i in range(width))
    counted = _counted(numbers(), width + 1, f"{keys}, sum(c{width}) AS more", keys, memory, "more > 0", 1)
    return bool(counted.num_rows == 0)


def _distinct(
    columns: Sequence[_Compared], among: Sequence[int], rows: Rows, memory: int, most: int, *, is_released: bool
) -> pa.Table | None:
    """Distinct rows of some columns with how many there are of each; ``None`` if there are too many."""

    def numbers() -> Iterator[list[Codes]]:
        for block in rows():
            numbered = _numbered_columns(columns, block, is_released)
            yield [numbered[i] for i in among]

    keys = ", ".join(f"c{i}" for i in range(len(among)))
    found = _counted(numbers(), len(among), f"{keys}, count(*) AS n", keys, memory, "true", most + 1)
    return None if found.num_rows > most else found


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


def _bags(columns: Sequence[_Compared], before: pa.Table, after: pa.Table) -> BothBags:
    """Distinct rows of some columns on both sides, with how many rows each represents."""
    rules: list[CellRule] = []
    originals: list[Codes] = []
    released: list[Codes] = []
    for i, column in enumerate(columns):
        own, found = before.column(i).to_numpy(), after.column(i).to_numpy()
        if column.read is not None:
            read = replace(column.read, places=np.arange(column.read.n_places))
            rules.append(FittingRule("", "", read=read))
        else:
            own, found, n_values = together(own, found)
            rules.append(CellRule("", "", np.arange(n_values), np.arange(n_values)))
        originals.append(own)
        released.append(found)
    n_before, n_after = (side.column("n").to_numpy().astype(np.int64) for side in (before, after))
    return BothBags.of(rules, originals, released, n_before, n_after)
