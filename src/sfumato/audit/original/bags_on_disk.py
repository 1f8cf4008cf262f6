"""Whether released rows are rows of the original, as a bag, where neither fits in memory: DuckDB counts equal rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import IN_MEMORY, Check, Unchecked
from sfumato.audit.original.assignment import BothBags, TooManyPairsError, exact_ids, together
from sfumato.audit.original.cell_rules import CellRule, Codes, FittingRule
from sfumato.audit.original.fidelity import said_of_cells
from sfumato.audit.reading.cells import Containing
from sfumato.errors import InputError
from sfumato.rows.database import spilling_connection

Ids = NDArray[np.int64]
Blocks = Iterator[Sequence[Codes]]
_BYTES_A_CELL = 64  # of a distinct row: its numbers, as they come and while they are sorted


@dataclass(frozen=True, eq=False)
class _Compared:
    """How a column is told by numbers: those of each code on both sides, or the numbers that come as they are."""

    before: Ids | None = None
    after: Ids | None = None
    read: Containing | None = None


def check_bag_on_disk(rules: Sequence[CellRule], originals: Blocks, released: Blocks, memory: int) -> Check | Unchecked:
    """Whether every released row can be given an original row of its own; codes of both come in blocks of rows.

    Where each original cell becomes one released cell, counts of equal rows decide. Where cells overlap, distinct rows
    are matched in memory, if they fit.
    """
    problems = [f"'{rule.name}' {rule.problem}" for rule in rules if rule.problem]
    if problems or not rules:
        return said_of_cells(problems, len(rules))
    columns = [_compared(rule) for rule in rules]
    most = max(memory // (_BYTES_A_CELL * (len(rules) + 2)), 10_000)
    try:
        are_same = _are_same(columns, originals, released, memory, most)
    except _TooManyError:
        said = f"whether cells follow from the original: cells overlap, and more than {most:,} distinct rows do not fit"
        return Unchecked("cells", said, IN_MEMORY)
    except TooManyPairsError:
        said = "whether cells follow from the original: original and released rows fit in too many ways"
        return Unchecked("cells", said)
    if not are_same:
        problems.append("released rows are not rows of the original, each of its own")
    return said_of_cells(problems, len(rules))


class _TooManyError(Exception):
    """There are more distinct rows than fit."""


def _compared(rule: CellRule) -> _Compared:
    if not len(rule.expected) and not isinstance(rule, FittingRule):
        return _Compared()  # numbers of meanings
    exact = exact_ids(rule)
    if exact is not None:
        before, after, _ = together(*exact)
        return _Compared(before, after)
    if not isinstance(rule, FittingRule) or rule.read is None:
        raise AssertionError
    return _Compared(rule.read.places, np.arange(rule.read.n_cells), rule.read)


def _are_same(columns: Sequence[_Compared], originals: Blocks, released: Blocks, memory: int, most: int) -> bool:
    import duckdb

    keys = [f"c{i}" for i in range(len(columns))]
    listed = ", ".join(keys)
    failures: list[BaseException] = []
    with spilling_connection(memory) as connection:
        try:
            if not any(column.read for column in columns):
                rows = pa.RecordBatchReader.from_batches(_schema(keys), _signed(columns, originals, released, failures))
                counted = connection.from_arrow(rows).aggregate(f"{listed}, sum(sign) AS more", listed)
                wrong = counted.aggregate("count(*) FILTER (more > 0) AS n").to_arrow_table()
                return int(wrong.column("n")[0].as_py()) == 0
            sides = []
            for is_released, blocks in ((False, originals), (True, released)):
                numbers = _numbers(columns, blocks, is_released, failures)
                rows = pa.RecordBatchReader.from_batches(_schema(keys), numbers)
                counted = connection.from_arrow(rows).aggregate(f"{listed}, count(*) AS n", listed)
                sides.append(counted.limit(most + 1).to_arrow_table())
        except (duckdb.Error, pa.ArrowException):
            if failures:
                raise failures[0] from None
            problem = "the rows of release and original cannot be counted in the given memory"
            hint = "give more memory, or free disk space for spilling"
            raise InputError(problem, hint=hint, remedy=("memory",)) from None
    if max(side.num_rows for side in sides) > most:
        raise _TooManyError
    return _can_be_assigned(columns, *sides)


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


def _schema(keys: Sequence[str]) -> pa.Schema:
    return pa.schema([*((key, pa.int64()) for key in keys), ("sign", pa.int64())])


def _signed(
    columns: Sequence[_Compared], originals: Blocks, released: Blocks, failures: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    yield from _numbers(columns, originals, False, failures)
    yield from _numbers(columns, released, True, failures)


def _numbers(
    columns: Sequence[_Compared], blocks: Blocks, is_released: bool, failures: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """Numbers of the rows in batches, released ones with a sign of 1 and others of -1; an error is kept."""
    names = [*(f"c{i}" for i in range(len(columns))), "sign"]
    try:
        for block in blocks:
            arrays = []
            for column, codes in zip(columns, block, strict=True):
                numbers = column.after if is_released else column.before
                arrays.append(pa.array(codes if numbers is None else numbers[codes], pa.int64()))
            sign = np.full(len(block[0]), 1 if is_released else -1, dtype=np.int64)
            yield pa.record_batch([*arrays, pa.array(sign)], names=names)
    except BaseException as exc:  # an interruption too
        failures.append(exc)
        raise
