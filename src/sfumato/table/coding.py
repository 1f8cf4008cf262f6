"""Dictionary-coded columns and tables: what every reader produces and everything else consumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InputError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.labels import ColumnLabels
from sfumato.table.orders.recognise import with_recognised_order
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.keyed import PreparationKeys

Codes = NDArray[np.int32]
RowMask = NDArray[np.bool_]


@dataclass(frozen=True)
class Source:
    """Where a table came from: a name for people, a SHA-256 for machines, its format, labels of its codebook.

    ``label`` is what a manifest calls it, where that is not the last part of its name.
    """

    name: str
    sha256: str
    format: str = "memory"
    labels: Mapping[str, ColumnLabels] = field(default_factory=dict, repr=False, compare=False)
    label: str | None = None

    @property
    def public_name(self) -> str:
        """Name that is published: no folder, no host."""
        return self.label or Path(self.name).name


@dataclass(frozen=True, repr=False, eq=False)
class CodedColumn:
    """A column as codes into its sorted distinct values; a missing value is the last one, null.

    Two columns with the same cells in the same order have equal ``codes`` and ``values`` whatever reader made them.
    """

    codes: Codes
    values: pa.Array

    def __repr__(self) -> str:
        return f"CodedColumn({len(self.codes):,} rows, {len(self.values):,} distinct)"

    @classmethod
    def encode(cls, cells: pa.Array | pa.ChunkedArray, kind: Kind = Kind.CATEGORICAL) -> CodedColumn:
        """Code the cells of one column; only values that occur are kept, in the order of their kind."""
        if isinstance(cells, pa.ChunkedArray):
            cells = cells.unify_dictionaries().combine_chunks() if pa.types.is_dictionary(cells.type) else cells
            cells = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode(null_encoding="encode")
        indices = cells.indices
        if indices.null_count:
            cells = cells.cast(cells.type.value_type).dictionary_encode(null_encoding="encode")
            indices = cells.indices
        return cls._from_codes(indices.to_numpy(zero_copy_only=False).astype(np.int32), cells.dictionary, kind)

    @classmethod
    def _from_codes(cls, codes: Codes, values: pa.Array, kind: Kind) -> CodedColumn:
        if pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0, which it equals
        present = np.flatnonzero(np.bincount(codes, minlength=len(values)))
        order = present[_sorting_order(values.take(pa.array(present)), kind)]
        ordered = values.take(pa.array(order))
        merged, first = _merge_equal_neighbours(ordered)
        recode = np.zeros(len(values), dtype=np.int32)
        recode[order] = merged
        return cls(recode[codes], ordered.take(pa.array(first)))

    def recode(self, values: pa.Array, kind: Kind = Kind.CATEGORICAL) -> CodedColumn:
        """Replace the distinct values one for one (equal results are merged) and sort again."""
        return self._from_codes(self.codes, values, kind)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def is_by_row(self) -> bool:
        """Whether there is one code a row, in the order of the rows."""
        return True

    @property
    def n_distinct(self) -> int:
        """Number of distinct values, a missing value counted as one."""
        return len(self.values)

    @property
    def missing_code(self) -> int | None:
        """Code of the missing value, if it occurs."""
        return len(self.values) - 1 if self.values.null_count else None

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often each value occurs."""
        return np.bincount(self.codes, minlength=len(self.values))

    @property
    def n_missing(self) -> int:
        """Number of rows whose value is missing."""
        return 0 if self.missing_code is None else int(self.counts[self.missing_code])

    def cells(self) -> pa.Array:
        """Decode: one value a row."""
        return self.values.take(pa.array(self.codes))

    def numbers(self) -> NDArray[np.float64]:
        """Parse the distinct values as numbers, not-a-number where missing; ``ValueError`` for text that is none."""
        return parse_numbers(self.values)

    def take(self, rows: NDArray[np.intp] | RowMask, kind: Kind = Kind.CATEGORICAL) -> CodedColumn:
        """Keep these rows; values that no longer occur are dropped."""
        return self._from_codes(self.codes[rows], self.values, kind)


def parse_numbers(values: pa.Array) -> NDArray[np.float64]:
    """Parse values as decimal numbers; null becomes not-a-number. Raises ``ValueError`` for any other text."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        try:
            values = pc.cast(pc.utf8_trim_whitespace(values), pa.float64())
        except pa.ArrowInvalid:
            message = "not all values are numbers"
            raise ValueError(message) from None
    elif not is_number_type(values.type):
        message = "not a numeric column"
        raise ValueError(message)
    return np.asarray(pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def is_number_type(data_type: pa.DataType) -> bool:
    """Whether an Arrow type holds numbers (truth values count as numbers 0 and 1)."""
    kinds = pa.types
    return bool(
        kinds.is_integer(data_type)
        or kinds.is_floating(data_type)
        or kinds.is_decimal(data_type)
        or kinds.is_boolean(data_type)
    )


def plain_type(data_type: pa.DataType) -> pa.DataType | None:
    """Type in which a column is kept: text, numbers, truth values, dates or times; ``None`` for anything else."""
    kinds = pa.types
    if kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_null(data_type):
        return pa.string()
    if getattr(kinds, "is_string_view", kinds.is_string)(data_type):
        return pa.string()
    if kinds.is_float16(data_type):
        return pa.float32()
    if kinds.is_date(data_type):
        return pa.date32()
    if is_number_type(data_type) or kinds.is_timestamp(data_type) or kinds.is_time(data_type):
        return data_type
    return None


def _sorting_order(values: pa.Array, kind: Kind) -> NDArray[np.int64]:
    """Order of distinct values: numbers by size and then by spelling, all else by value; null last."""
    keys = {"value": values}
    sort_keys = [("value", "ascending")]
    if kind is Kind.NUMERIC and pa.types.is_string(values.type):
        try:
            keys["number"] = pa.array(parse_numbers(values), from_pandas=True)
            sort_keys.insert(0, ("number", "ascending"))
        except ValueError:
            pass  # said with file and line when the schema is applied
    order = pc.sort_indices(pa.table(keys), sort_keys=sort_keys)  # nulls at the end
    return np.asarray(order.to_numpy(), dtype=np.int64)


def _merge_equal_neighbours(ordered: pa.Array) -> tuple[Codes, NDArray[np.intp]]:
    """Code of each entry of a sorted array when equal entries share one, and where each code first stands."""
    if len(ordered) == 0:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.intp)
    runs = ordered.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    starts = np.concatenate([[True], runs[1:] != runs[:-1]])
    return (np.cumsum(starts) - 1).astype(np.int32), np.flatnonzero(starts)


@dataclass(frozen=True)
class PersonRows:
    """Which row of each person was kept at the door, by which column, and how many rows were left out."""

    column: str
    rule: str
    n_dropped: int


@dataclass(frozen=True, repr=False, eq=False)
class Prepared:
    """What was done to columns right after they were read, and how they were before, for the audit."""

    preparations: tuple[Preparation, ...]
    before: Mapping[str, tuple[Column, CodedColumn]]
    keys: PreparationKeys | None = None
    """Secrets of what rests on some; they are never written."""

    def take(self, rows: NDArray[np.intp] | RowMask) -> Prepared:
        """Keep these rows of the columns as they were."""
        return replace(self, before={n: (c, coded.take(rows, c.kind)) for n, (c, coded) in self.before.items()})


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Coded columns with their schema.

    Parameters
    ----------
    schema : Schema
        One entry per column, in the same order.
    columns : mapping of str to CodedColumn
    n_rows : int
    source : Source or None
        What the table was read from.
    n_incomplete_dropped : int
        Rows left out at the door because a value was missing.
    only_complete_rows : bool
        Whether such rows were to be left out, also where there was none.
    person_rows : PersonRows or None
        Which rows were kept where each person was to have one; ``None``: all.
    prepared : Prepared or None
        What was done to columns after they were read; ``None``: nothing.
    """

    schema: Schema
    columns: Mapping[str, CodedColumn]
    n_rows: int
    source: Source | None = None
    n_incomplete_dropped: int = 0
    only_complete_rows: bool = False
    person_rows: PersonRows | None = None
    prepared: Prepared | None = None

    def __post_init__(self) -> None:
        if tuple(self.columns) != self.schema.names():
            problem = "columns and schema differ"
            raise SchemaError(problem)

    def __repr__(self) -> str:
        roles: dict[str, int] = {}
        for column in self.schema:
            roles[column.role] = roles.get(column.role, 0) + 1
        listed = ", ".join(f"{n} {role}" for role, n in roles.items())
        return f"Table({self.n_rows:,} rows, {len(self.columns):,} columns: {listed})"

    def __getitem__(self, name: str) -> CodedColumn:
        try:
            return self.columns[name]
        except KeyError:
            raise ColumnNotFoundError(name, self.columns) from None

    @classmethod
    def from_arrow(cls, cells: pa.Table, schema: Schema, source: Source | None = None) -> Table:
        """Code an Arrow table under a schema that describes exactly its columns, in any order.

        Raises
        ------
        InputError
            If a column holds something else than text, numbers, truth values, dates or times.
        """
        names = cells.column_names  # a list that Arrow builds anew at every use
        present = set(names)
        for name in schema.names():
            if name not in present:
                raise ColumnNotFoundError(name, names)
        ordered = schema.keep(names)
        columns = {c.name: CodedColumn.encode(_checked(cells.column(i), c.name), c.kind) for i, c in enumerate(ordered)}
        return cls(ordered, columns, cells.num_rows, source)

    def to_arrow(self) -> pa.Table:
        """Decode into an Arrow table."""
        return pa.table({name: column.cells() for name, column in self.columns.items()})

    def codes(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Codes of some columns side by side, one row a row."""
        if not names:
            return np.zeros((self.n_rows, 0), dtype=np.int32)
        return np.column_stack([self[name].codes for name in names])

    def keep(self, names: Iterable[str]) -> Table:
        """Restrict to these columns, in the order given."""
        kept = list(names)
        return replace(self, schema=self.schema.keep(kept), columns={name: self[name] for name in kept})

    @property
    def coded_part(self) -> Table:
        """The columns that are held as codes: here all. Of a binary table, all but its features."""
        return self

    def with_coded_part(self, coded: Table) -> Table:
        """Give another table in place of :attr:`coded_part`, which is all of this one."""
        return coded

    @property
    def as_read(self) -> Table:
        """The table before any column was prepared: what an audit compares a release with."""
        if self.prepared is None:
            return self
        before = {name: own for name, own in self.prepared.before.items() if name in self.columns}
        described = {**self.schema.columns, **{name: column for name, (column, _) in before.items()}}
        columns = {**self.columns, **{name: coded for name, (_, coded) in before.items()}}
        return replace(self, schema=Schema.of(described.values(), self.schema.missing), columns=columns, prepared=None)

    def take(self, rows: NDArray[np.intp] | RowMask) -> Table:
        """Restrict to these rows."""
        columns = {c.name: self[c.name].take(rows, c.kind) for c in self.schema}
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        prepared = None if self.prepared is None else self.prepared.take(rows)
        return replace(self, columns=columns, n_rows=n_rows, prepared=prepared)

    def with_schema(
        self, schema: Schema | Mapping[str, Role | str], *, line_of: Callable[[int], int | None] | None = None
    ) -> Table:
        """Describe the same columns again, sorting the values of a column whose kind changed.

        Instead of a schema, roles by column may be given, such as ``{"age": "quasi-identifier"}``; all else then stays.
        ``line_of`` gives the line of the file on which a data row (from 0) stands, for the message.

        Raises
        ------
        ColumnNotFoundError
            If a column is described that does not exist.
        InputError
            If a column is declared numeric and some of its values are no numbers.
        """
        if not isinstance(schema, Schema):
            schema = self.schema.with_roles(schema)
        columns = {}
        for column in schema:
            coded = self[column.name]
            if column.kind is Kind.NUMERIC:
                self._check_numbers(column, line_of)
            if column.kind is Kind.NUMERIC and pa.types.is_boolean(coded.values.type):
                coded = coded.recode(pc.cast(coded.values, pa.int8()), column.kind)  # the numbers 0 and 1
            elif column.kind is not self.schema[column.name].kind:
                coded = coded.recode(coded.values, column.kind)
            columns[column.name] = coded
        described = (with_recognised_order(c, columns[c.name].values) if c.kind is Kind.ORDERED else c for c in schema)
        return replace(self, schema=Schema.of(described, schema.missing), columns=columns)

    def _check_numbers(self, column: Column, line_of: Callable[[int], int | None] | None) -> None:
        coded = self[column.name]
        try:
            coded.numbers()
        except ValueError:
            wrong = np.array([not reads_as_number(v) for v in coded.values.to_pylist()])
            line, first = _first_row(wrong[coded.codes], line_of) if coded.is_by_row else (None, "")
            n_wrong = int(coded.counts[wrong].sum())
            problem = f"is declared numeric, but {n_wrong:,} of {self.n_rows:,} rows are not numbers{first}"
            raise InputError(
                problem,
                path=self.source.name if self.source else None,
                line=line,
                column=column.name,
                hint='add the texts that mean "missing" to the column\'s missing tokens, or make its kind categorical',
            ) from None

    def without_incomplete_rows(self) -> Table:
        """Drop the rows in which any column is missing, and count them."""
        incomplete = np.zeros(self.n_rows, dtype=np.bool_)
        for column in self.columns.values():
            if column.missing_code is not None:
                incomplete |= column.codes == column.missing_code
        dropped = int(incomplete.sum())
        n_dropped = self.n_incomplete_dropped + dropped
        return replace(self.take(~incomplete), n_incomplete_dropped=n_dropped, only_complete_rows=True)


def _first_row(wrong: RowMask, line_of: Callable[[int], int | None] | None) -> tuple[int | None, str]:
    """Line of the first row that is wrong, if it is known, and words on it."""
    row = int(np.argmax(wrong))
    line = line_of(row) if line_of is not None else None
    return line, f" (first: data row {row + 1:,})" if line is None else " (first: this line)"


def reads_as_number(value: object) -> bool:
    """Whether a cell is missing or can be read as a number."""
    if value is None or isinstance(value, int | float):
        return True
    try:
        parse_numbers(pa.array([str(value)]))
    except ValueError:
        return False
    return True


def _checked(cells: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Refuse cells of a type that no file may hold either; Arrow cannot code half-precision numbers."""
    data_type = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    if plain_type(data_type) is None:
        problem = "holds values that are neither text, numbers, truth values, dates nor times"
        raise InputError(problem, column=name, hint="leave the column out or turn it into text or numbers first")
    return cells.cast(pa.float32()) if pa.types.is_float16(data_type) else cells
