"""Files larger than memory: what their columns hold, found in one pass, and their rows in blocks as often as asked.

Cells are understood exactly as :func:`sfumato.table.read.read_table` does: the same blanks, missing tokens, kinds and
order of values, so that a block's codes are those that the whole table would have.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.bytes import STANDARD_INPUT, StoredBytes, open_stored, with_head
from sfumato.table.cells import CellRules, ColumnCoder, check_names
from sfumato.table.coding import Source, Table
from sfumato.table.delimited import layout_of
from sfumato.table.delimited_blocks import DelimitedBlocks
from sfumato.table.distinct import DistinctValues, coded_block, open_cells
from sfumato.table.formats import format_of
from sfumato.table.parquet import ParquetBlocks
from sfumato.table.read import DEFAULT_OPTIONS, ReadOptions, check_covers
from sfumato.table.text import check_text
from sfumato.table.weighted import OpenColumn

FORMATS = ("csv", "tsv", "parquet")
"""Formats of files that can be read in blocks."""
_PARQUET_MAGIC = b"PAR1"
_BYTES_A_VALUE = 4000
_SHARE_OF_VALUES = 16

Block = Mapping[str, NDArray[np.int32] | pa.Array]
Told = Callable[[int], None]
"""Called with the number of rows that were read so far."""


class RawBlocks(Protocol):
    """Cells of a file as they are stored."""

    @property
    def names(self) -> list[str]:
        """Names of the columns as they are stored."""
        ...

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        ...


@dataclass(frozen=True, repr=False)
class LargeTable:
    """A file whose rows are read in blocks.

    Parameters
    ----------
    outline : Table
        Every column by itself: its entries are the distinct values as they are stored, with their counts. A column
        with too many of them is an :class:`OpenColumn`.
    source : Source
        Name, hash and format of the file.
    """

    outline: Table
    source: Source
    _stored: Mapping[str, pa.Array]
    _blocks: RawBlocks
    _hashed: StoredBytes

    def __repr__(self) -> str:
        return f"LargeTable({self.n_rows:,} rows, {len(self.schema):,} columns)"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.outline.n_rows

    @property
    def schema(self) -> Schema:
        """Description of the columns."""
        return self.outline.schema

    def is_open(self, name: str) -> bool:
        """Whether a column has too many distinct values to be listed."""
        return isinstance(self.outline[name], OpenColumn)

    def with_schema(self, schema: Schema) -> LargeTable:
        """Describe the same columns anew.

        Raises
        ------
        InputError
            If a column is declared numeric and some of its values are no numbers.
        """
        for column in schema:
            coded = self.outline[column.name]
            if isinstance(coded, OpenColumn) and column.kind is Kind.NUMERIC and coded.kind is not Kind.NUMERIC:
                problem = "is declared numeric, but some of its values are not numbers"
                raise InputError(problem, path=self.source.name, column=column.name)
        return replace(self, outline=self.outline.with_schema(schema))

    def blocks(
        self, names: Sequence[str], *, as_cells: Collection[str] = (), told: Told | None = None
    ) -> Iterator[Block]:
        """Rows of some columns, block by block: codes, or cells of open columns and of those in ``as_cells``."""
        places = {name: i for i, name in enumerate(self.schema.names())}
        for name in names:
            if name not in places:
                raise ColumnNotFoundError(name, places)
        n_read = 0
        for raw in self._blocks([places[name] for name in names]):
            block = {name: self._read(name, cells, name in as_cells) for name, cells in zip(names, raw, strict=True)}
            yield block
            n_read += len(raw[0]) if raw else 0
            if told is not None:
                told(n_read)

    def _read(self, name: str, raw: pa.Array, as_cells: bool) -> NDArray[np.int32] | pa.Array:
        codes, values = coded_block(raw, name, self.source.name)
        column = self.outline[name]
        if isinstance(column, OpenColumn):
            return open_cells(codes, values, column, self.schema.missing_tokens(name))
        places = pc.index_in(values, value_set=self._stored[name])
        occurs = np.bincount(codes, minlength=len(values)) > 0
        known = places.is_valid().to_numpy(zero_copy_only=False)
        if (occurs & ~known).any():
            raise _changed(self.source.name)
        read = column.codes[pc.fill_null(places, 0).to_numpy(zero_copy_only=False)][codes]
        return column.values.take(pa.array(read)) if as_cells else read

    def ensure_unchanged(self) -> None:
        """Refuse a file whose bytes are others than when it was opened."""
        self._hashed.ensure_unchanged()


def open_large(
    path: str | os.PathLike[str],
    *,
    memory: int,
    schema: Schema | None = None,
    options: ReadOptions = DEFAULT_OPTIONS,
    told: Told | None = None,
) -> LargeTable:
    """Pass over a file once, and find out what its columns hold.

    Parameters
    ----------
    path : path
        Of a CSV (TSV) file, also gzipped, or a Parquet file.
    memory : int
        Bytes that may be used; a column whose distinct values take more than a share of it is not listed.
    schema, options
        See :func:`sfumato.table.read.read_table`.

    Raises
    ------
    InputError, SchemaError
        As reading the whole file does.
    InvalidParameterError
        If the file is of another format, or incomplete rows are to be left out.
    """
    name = _checked_format(path, options)
    with open_stored(path, most_held=0) as stored:
        blocks = _raw_blocks(stored, Path(path), name, options)
        names = check_names(blocks.names, place=stored.name)
        rules = CellRules(schema, options.missing, options.mixed_as_text)
        found = _distinct(blocks, names, rules, stored.name, memory, told)
        stored.ensure_unchanged()
    source = Source(stored.name, stored.sha256, name)
    outline = Table(
        Schema.of(
            (Column(n, Role.QUASI_IDENTIFIER, kind) for n, (_, _, kind) in found.items()),
            options.missing if schema is None else schema.missing,
        ),
        {n: column for n, (_, column, _) in found.items()},
        next(iter(found.values()))[1].n_rows,
        source,
    )
    large = LargeTable(outline, source, {n: own for n, (own, _, _) in found.items()}, blocks, stored)
    if schema is None:
        return large
    check_covers(schema, tuple(names), tuple(names), where=source.name)
    return large.with_schema(schema.keep(names))


def _distinct(
    blocks: RawBlocks, names: list[str], rules: CellRules, place: str, memory: int, told: Told | None
) -> dict[str, tuple[pa.Array, Any, Kind]]:
    most, most_bytes = memory // _BYTES_A_VALUE, memory // _SHARE_OF_VALUES
    found = {name: DistinctValues(rules.tokens(name), most, most_bytes) for name in names}
    n_read = 0
    for raw in blocks(range(len(names))):
        for name, cells in zip(names, raw, strict=True):
            found[name].take(*coded_block(cells, name, place))
        n_read += len(raw[0])
        if told is not None:
            told(n_read)
    coder = ColumnCoder(rules, place)
    return {name: values.finished(name, coder) for name, values in found.items()}


def _checked_format(path: str | os.PathLike[str], options: ReadOptions) -> str:
    allowed = "a CSV or Parquet file that can be read several times"
    if str(path) == STANDARD_INPUT:
        raise InvalidParameterError("DATA read in blocks", "got standard input", allowed=allowed)
    name = options.format or format_of(path).removesuffix(".gz")
    if name not in FORMATS:
        hint = "leave --memory out, or convert the file"
        raise InvalidParameterError("DATA read in blocks", "got another format", allowed=allowed, hint=hint)
    if options.complete_rows_only:
        hint = "leave --memory out, or leave incomplete rows out of the file beforehand"
        raise InvalidParameterError("--drop-incomplete", "got --memory too", allowed="used without --memory", hint=hint)
    return name


def _raw_blocks(stored: StoredBytes, path: Path, name: str, options: ReadOptions) -> RawBlocks:
    """Read the bytes once, for their hash and, in text, for what cannot be text."""
    if name != "parquet":
        text = check_text(stored, options.encoding)
        delimiter = "\t" if name == "tsv" and options.delimiter is None else options.delimiter
        return DelimitedBlocks(text, layout_of(text, delimiter=delimiter, header=options.header))
    head, chunks = with_head(stored.first_pass(), len(_PARQUET_MAGIC))
    deque(chunks, maxlen=0)
    if head != _PARQUET_MAGIC:
        problem = "is empty" if not head else "is not a Parquet file"
        raise InputError(problem, path=stored.name, hint="name its format with --format" if head else "")
    return ParquetBlocks.of(path, stored.name)


def _changed(place: str) -> InputError:
    return InputError("changed while it was being read", path=place, hint="read it again when nobody writes to it")
