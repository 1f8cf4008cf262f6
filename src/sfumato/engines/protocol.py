"""The verbs of a table, wherever its rows are: what every engine offers, and all that is above them may ask for.

Rows are in memory, in a file that is read in blocks, or on a Spark cluster. Mechanisms, publishing and the audit ask
for counts, samples or blocks, and do not ask where rows are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.memory_limit import bytes_in_memory, cells_in_memory
from sfumato.errors import InputError
from sfumato.progress import Progress
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import CodedColumn, PersonRows, Source, Table
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.prepared import prepared
from sfumato.table.weighted import Block, CountedTable, Counts, OpenColumn, Places

Pairs = Mapping[tuple[str, str], Counts]
"""For two columns, how often each value of one occurs with each of the other."""
Persons = tuple[str, int]
"""Column that tells persons apart, and as many of them as are a crowd (:mod:`sfumato.counting.crowds`)."""


class TooLargeError(InputError):
    """A table does not fit in the memory given, and what is asked for needs all of its rows there."""


def check_fits_in_memory(n_rows: int, n_columns: int, memory: int, why: str, instead: str, place: str) -> None:
    """Refuse to hold a table whole that does not fit, see :meth:`Rows.in_memory`."""
    if n_rows * n_columns <= cells_in_memory(memory):
        return
    problem = f"{why} the whole table in memory, and {n_rows:,} rows × {n_columns:,} columns"
    problem += f" do not fit in {memory / 1e9:.1f}GB"
    hint = f"give {bytes_in_memory(n_rows * n_columns) / 1e9:.1f}GB of memory, or {instead}"
    raise TooLargeError(problem, path=place, hint=hint, remedy=("memory", "mechanism"))


@dataclass(frozen=True, repr=False)
class Rows(ABC):
    """A table, wherever its rows are.

    Parameters
    ----------
    outline : Table
        Every column by itself: its entries are the distinct values as they are stored, with their counts. A column
        with too many of them is an :class:`OpenColumn`. Of rows in memory it is the table itself.
    source : Source or None
        Name, hash and format of the file or folder; of a frame, its library and the hash of its content, if known.
    n_persons : int or None
        How many persons there are, where some are known to have several rows: then persons are counted, not rows alone.
    """

    is_on_cluster: ClassVar[bool]
    """Whether rows are counted and written where they are, and a pass over them is to be avoided."""
    outline: Table
    source: Source | None
    n_persons: int | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows:,} rows, {len(self.schema):,} columns)"

    @property
    @abstractmethod
    def place(self) -> str:
        """What messages call it."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.outline.n_rows

    @property
    def schema(self) -> Schema:
        """Description of the columns."""
        return self.outline.schema

    def is_open(self, name: str) -> bool:
        """Whether there is such a column, and it has too many distinct values to be listed."""
        return isinstance(self.outline.columns.get(name), OpenColumn)

    @abstractmethod
    def blocks(
        self, names: Sequence[str], *, as_cells: Collection[str] = (), progress: Progress | None = None
    ) -> Iterator[Block]:
        """Rows of some columns, block by block: codes, or cells of open columns and of those in ``as_cells``."""

    @abstractmethod
    def distinct(
        self,
        names: Sequence[str],
        *,
        beside: Sequence[str] = (),
        persons: Persons | None = None,
        most_cells: int,
        progress: Progress | None = None,
    ) -> CountedTable:
        """Count the distinct rows of some columns.

        Parameters
        ----------
        names : sequence of str
            At least one column, none of which is open.
        beside : sequence of str
            Columns that are counted with each of the others by itself: their values two by two.
        persons : str and int, or None
            Count persons too, in distinct rows that have fewer than so many, see :mod:`sfumato.counting.crowds`.
        most_cells : int
            Number of distinct rows that fit in memory.
        progress : callable or None
            Called as ``progress(done, total, what)`` while rows are read; a cluster says no more than that it begins.

        Raises
        ------
        SchemaError
            If a column has too many distinct values.
        TooManyCellsError
            If there are more distinct rows than fit.
        """

    @abstractmethod
    def fewest_persons(
        self, person: str, cells: CountedTable, classes: Counts, memory: int, progress: Progress | None = None
    ) -> int:
        """Count the persons of every class of rows, and give the fewest.

        Parameters
        ----------
        cells : CountedTable
            Distinct rows, without persons.
        classes : int64 array
            Class of each distinct row, -1 for those of none; some row has one.
        """

    @abstractmethod
    def taken(
        self, names: Sequence[str], places: Places, *, pairs: Pairs | None = None, progress: Progress | None = None
    ) -> dict[str, CodedColumn]:
        """Take some columns of some rows, given by their places, ascending; ``progress`` hears how many were read.

        ``pairs``, of columns among these, get the counts of all rows added.
        """

    def in_memory(self, memory: int, why: str, instead: str, progress: Progress | None = None) -> Table:
        """Take all rows.

        Parameters
        ----------
        memory : int
            Bytes that may be used.
        why, instead : str
            For the message: what needs all rows (a name and a verb), and what could be chosen instead.

        Raises
        ------
        TooLargeError
            If they do not fit, with what it would take.
        """
        check_fits_in_memory(self.n_rows, len(self.schema), memory, why, instead, self.place)
        done, rows = self.outline.prepared, self
        if done is not None:  # what was there before is kept with the rows, for the audit
            rows = replace(self, outline=self.outline.as_read)
        table = replace(
            rows.outline, columns=rows.taken(rows.schema.names(), np.arange(self.n_rows), progress=progress)
        )
        whole = table if done is None else prepared(table, done.preparations)
        if not isinstance(whole, Table):
            raise AssertionError
        return whole

    def coded(self, name: str, parts: Sequence[NDArray[np.int32] | pa.Array | pa.ChunkedArray]) -> CodedColumn:
        """Put parts of a column together: codes, or cells where its values are not listed."""
        kind, values = self.schema[name].kind, self.outline[name].values
        if self.is_open(name):
            chunks = [
                chunk for part in parts for chunk in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])
            ]
            return CodedColumn.encode(pa.chunked_array(chunks, values.type), kind)
        codes = np.concatenate([np.zeros(0, dtype=np.int32), *(np.asarray(part, dtype=np.int32) for part in parts)])
        return CodedColumn(codes, values).take(np.arange(len(codes)), kind)

    @abstractmethod
    def n_open_values(self, name: str, memory: int) -> int:
        """Count the different values of a column that are not listed, a missing one included."""

    @abstractmethod
    def place_of_each(self, name: str, memory: int, *, ranks: Places | None = None, is_last: bool = False) -> Places:
        """Give the first place of each value of a column, or the last one; with ranks the least rank of its places.

        Raises
        ------
        InputError
            If rows have no fixed places, or what there is to hold does not fit.
        """

    @abstractmethod
    def only(self, places: Places, stated: PersonRows) -> Self:
        """Give the table of some rows alone, given by their places, ascending, and state why the others are left out.

        Values that do not occur in them are none of its values; columns whose values are not listed stay so.
        """

    @abstractmethod
    def ensure_unchanged(self) -> None:
        """Refuse a table that is another one than when it was opened, as far as that can be known."""

    def prepared(self, preparations: Sequence[Preparation]) -> Self:
        """Prepare the columns, by what becomes of the distinct values of each.

        Raises
        ------
        SchemaError
            If an operation is none of single cells, or a column has too many distinct values to be listed.
        """
        outline = prepared(self.outline, preparations)
        if not isinstance(outline, Table):
            raise AssertionError
        return replace(self, outline=outline)

    def with_schema(self, schema: Schema | Mapping[str, Role | str]) -> Self:
        """Describe the same columns anew, by a schema or by roles alone (see :meth:`Table.with_schema`).

        Raises
        ------
        InputError
            If a column is declared numeric and some of its values are no numbers.
        """
        if not isinstance(schema, Schema):
            schema = self.schema.with_roles(schema)
        for column in schema:
            coded = self.outline[column.name]
            if isinstance(coded, OpenColumn) and column.kind is Kind.NUMERIC and coded.kind is not Kind.NUMERIC:
                problem = "is declared numeric, but some of its values are not numbers"
                raise InputError(problem, path=self.place, column=column.name)
        return replace(self, outline=self.outline.with_schema(schema))
