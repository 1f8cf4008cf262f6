"""Tables larger than memory: what their columns hold, found in one pass, and their rows in blocks as often as asked.

Cells are understood exactly as :func:`sfumato.table.io.read.read_table` does: the same blanks, missing tokens, kinds
and order of values, so that a block's codes are those that the whole table would have.
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

from sfumato.engines.blocks.database import batches_in_database
from sfumato.engines.blocks.query import SpooledRows
from sfumato.engines.counting import RowFinder, count_blocks, pairs_counted
from sfumato.engines.limits import FORMATS_IN_BLOCKS, INCOMPLETE_ROWS
from sfumato.engines.limits import STANDARD_INPUT as NO_STANDARD_INPUT
from sfumato.engines.memory_limit import cells_at_once, listed_values, text_at_once
from sfumato.engines.persons import one_row_each
from sfumato.engines.protocol import Pairs, Persons, Rows
from sfumato.errors import ColumnNotFoundError, InputError
from sfumato.progress import Progress
from sfumato.schema import Column, Kind, Schema
from sfumato.table.cells import (
    ColumnCoder,
    are_midnights,
    check_names,
    clean_values,
    is_read,
    plain_array,
    read_values,
    refuse_unread,
    without_tokens,
)
from sfumato.table.coding import CodedColumn, Codes, PersonRows, Source, Table, parse_numbers
from sfumato.table.io.bytes import STANDARD_INPUT, StoredBytes, open_stored, with_head
from sfumato.table.io.csv import DelimitedBlocks, layout_of
from sfumato.table.io.databases.address import Database
from sfumato.table.io.formats import STATISTICS
from sfumato.table.io.frames import ContentDigest, FrameBlocks, native_frame, source_name
from sfumato.table.io.json_lines import kept_json_lines
from sfumato.table.io.parquet import FolderBlocks, ParquetBlocks, StoredParquet, is_folder
from sfumato.table.io.read import (
    DEFAULT_OPTIONS,
    ReadOptions,
    as_read,
    check_covers,
    checked_text,
    format_to_read,
    in_order_of,
    named_database,
    source_of,
    with_domains,
)
from sfumato.table.io.statistics.read import PORTABLE, StatisticsBlocks
from sfumato.table.io.text import check_text
from sfumato.table.io.write import BlockWriter
from sfumato.table.kinds import guess_kind
from sfumato.table.orders.recognise import with_recognised_order
from sfumato.table.reading.columns import Candidates, Format, Wanted, format_named
from sfumato.table.weighted import Block, CountedTable, Counts, OpenColumn, Places, WeightedColumn, kept_column

# Distinct values of a column that comes block by block, with how often each occurs, as long as they are not too many.
#
# Of a column with too many only what can be said of the blocks one by one is kept: type, kind and missing values.


_FEWEST_PENDING = 1 << 16


def coded_block(cells: pa.Array, name: str, place: str) -> tuple[Codes, pa.Array]:
    """Codes of a block of cells, and the plain values that they represent, of which some may not occur."""
    if not pa.types.is_dictionary(cells.type):
        encoded = plain_array(cells, name, place).dictionary_encode(null_encoding="encode")
        return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
    values, indices = plain_array(cells.dictionary, name, place), cells.indices
    if indices.null_count:
        indices = pc.fill_null(indices, len(values))
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return indices.to_numpy(zero_copy_only=False), values


class DistinctValues:
    """Distinct values of one column so far.

    Parameters
    ----------
    tokens : sequence of str
        Texts that mean "missing".
    most : int
        Number of values from which they are no longer listed.
    most_bytes : int
        The same for their size.
    wanted : Wanted
        How texts are to be read.
    """

    def __init__(self, tokens: Sequence[str], most: int, most_bytes: int, wanted: Wanted) -> None:
        self._tokens, self._most, self._most_bytes, self._wanted = tokens, most, most_bytes, wanted
        self._declared = None if wanted.format is None else format_named(wanted.format)
        self._candidates, self._n_unread = Candidates(), 0
        self._values: list[pa.Array] = []
        self._counts: list[Counts] = []
        self._n_known = self._n_pending = 0
        self.is_open = False
        self._kinds: set[Kind] = set()
        self._are_numbers = True
        self._are_midnights: set[bool] = set()
        self._n_rows = self._n_missing = 0

    def take(self, codes: Codes, values: pa.Array) -> None:
        """Count a block."""
        counts = np.bincount(codes, minlength=len(values))
        occurs = counts > 0
        self._n_rows += len(codes)
        self._values.append(values.filter(pa.array(occurs)))
        self._counts.append(counts[occurs])
        self._n_pending += len(self._values[-1])
        if self.is_open:
            self._say_less()
        elif self._n_pending > max(self._n_known, _FEWEST_PENDING):
            self._merge()
            self.is_open = self._n_known > self._most or self._values[0].nbytes > self._most_bytes
            if self.is_open:
                self._say_less()

    def _merge(self) -> None:
        encoded = pa.concat_arrays(self._values).dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        summed = np.bincount(codes, weights=np.concatenate(self._counts), minlength=len(encoded.dictionary))
        self._values, self._counts = [encoded.dictionary], [summed.astype(np.int64)]
        self._n_known, self._n_pending = len(encoded.dictionary), 0

    def _say_less(self) -> None:
        """Keep of the values that wait only what can be said of all of them."""
        for values, counts in zip(self._values, self._counts, strict=True):
            cleaned = clean_values(values, self._tokens)
            self._n_missing += int(counts[cleaned.is_null().to_numpy(zero_copy_only=False)].sum())
            if cleaned.null_count < len(cleaned):
                kind = guess_kind(cleaned)
                self._kinds.add(kind)
                if self._wanted.guess and pa.types.is_string(cleaned.type):
                    self._candidates.take(cleaned, kind)
                if self._declared is not None and not is_read(cleaned.type, self._declared):
                    read = read_values(cleaned, self._declared)
                    unread = pc.and_(read.is_null(), cleaned.is_valid()).to_numpy(zero_copy_only=False)
                    self._n_unread += int(counts[unread].sum())
                self._are_numbers &= kind is Kind.NUMERIC or _are_numbers(cleaned)
            if values.null_count < len(values):
                self._are_midnights.add(are_midnights(values))
        self._values, self._counts = [self._values[0].slice(0, 0)], [np.zeros(0, dtype=np.int64)]

    def finished(
        self, name: str, coder: ColumnCoder, kind: Kind | None = None
    ) -> tuple[pa.Array, WeightedColumn | OpenColumn, Kind]:
        """Values as they are stored, the column that they make, and its kind, which is guessed unless given.

        The entries of the column are the stored values in their order, so its codes say what each is read as.
        """
        if self.is_open:
            kind = next(iter(self._kinds)) if len(self._kinds) == 1 else Kind.CATEGORICAL
            schema = coder.rules.schema
            if self._are_numbers and schema is not None and name in schema and schema[name].kind is Kind.NUMERIC:
                kind = Kind.NUMERIC  # declared so, and not guessed: an infinite number, or one with leading zeros
            stored = self._values[0]
            read = pc.cast(stored, pa.date32()) if self._are_midnights == {True} else stored
            used = self._taken(name, coder, kind)
            if used is not None and not is_read(read.type, used):
                read, kind = pa.array([], pa.string()), used.kind
            own = None if used is None else used.name
            return stored, OpenColumn(np.zeros(0, dtype=np.int32), read, self._n_rows, self._n_missing, kind, own), kind
        self._merge()
        (stored,), (counts,) = self._values, self._counts
        coded, found = coder.code_distinct(name, np.arange(len(stored), dtype=np.int32), stored, kind)
        return stored, WeightedColumn(coded.codes, coded.values, counts), found

    def _taken(self, name: str, coder: ColumnCoder, plain: Kind) -> Format | None:
        """Decide on the format of the texts, as for a column whose values are listed."""
        used, reading = self._wanted.taken(*self._candidates.decided(plain))
        if reading is not None:
            coder.readings[name] = reading
        if used is not None and self._n_unread:
            raise refuse_unread(used, f"{self._n_unread:,} rows", place=coder.place, column=name)
        return used


def _are_numbers(values: pa.Array) -> bool:
    try:
        parse_numbers(values)
    except ValueError:
        return False
    return True


def open_cells(codes: Codes, values: pa.Array, column: OpenColumn, tokens: Sequence[str]) -> pa.Array:
    """Cells of a block of an open column as they are read: trimmed, dates where all are, null where missing."""
    if pa.types.is_date(column.values.type) and pa.types.is_timestamp(values.type):
        cleaned = without_tokens(pc.cast(values, pa.date32()), tokens)
    elif pa.types.is_timestamp(values.type):
        cleaned = without_tokens(values, tokens)
    else:
        cleaned = clean_values(values, tokens)
    used = None if column.format is None else format_named(column.format)
    if used is not None and not is_read(cleaned.type, used):
        cleaned = read_values(cleaned, used)
    if pa.types.is_floating(cleaned.type):
        cleaned = pc.add(cleaned, pa.scalar(0.0, cleaned.type))  # -0.0 becomes 0.0, as in a coded column
    return cleaned.take(pa.array(codes))


FORMATS = ("csv", "tsv", "parquet", "jsonl", *(name for name in STATISTICS if name != PORTABLE))
"""Formats of files that can be read in blocks."""
_PARQUET_MAGIC = b"PAR1"
_HINT_FOR_FRAMES = "it must give the same rows in the same order every time: sort the query, or write it to a file"

Found = dict[str, tuple[pa.Array, Any, Kind]]
"""Of each column the values as they are stored, the column that they make, and its kind."""


class RawBlocks(Protocol):
    """Cells of a file or frame as they are stored."""

    @property
    def names(self) -> list[str]:
        """Names of the columns as they are stored."""
        ...

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        ...


@dataclass(frozen=True, repr=False)
class KeptBlocks:
    """Some rows of stored cells, by their places, ascending; the others are read past."""

    _every: RawBlocks
    _rows: Places

    @property
    def names(self) -> list[str]:
        """Names of the columns as they are stored."""
        return self._every.names

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        n_read = 0
        for raw in self._every(positions):
            n_rows = len(raw[0]) if raw else 0
            first, last = np.searchsorted(self._rows, [n_read, n_read + n_rows])
            places = pa.array(self._rows[first:last] - n_read)
            n_read += n_rows
            yield [cells.take(places) for cells in raw]


@dataclass(frozen=True, repr=False)
class LargeTable(Rows):
    """A file or frame whose rows are read in blocks.

    Parameters
    ----------
    outline : Table
        See :class:`~sfumato.engines.protocol.Rows`.
    source : Source
        Name, hash and format of the file; of a frame, library and hash of its content.
    """

    is_on_cluster = False
    source: Source
    _stored: Mapping[str, pa.Array]
    _blocks: RawBlocks
    _refuse_if_changed: Callable[[], None]

    @property
    def place(self) -> str:
        """What messages call it."""
        return self.source.name

    def blocks(
        self, names: Sequence[str], *, as_cells: Collection[str] = (), progress: Progress | None = None
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
            _say_read(progress, n_read)

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

    def distinct(
        self,
        names: Sequence[str],
        *,
        beside: Sequence[str] = (),
        persons: Persons | None = None,
        most_cells: int,
        progress: Progress | None = None,
    ) -> CountedTable:
        """Count the distinct rows in one pass over the blocks."""
        return count_blocks(self, names, beside=beside, persons=persons, most_cells=most_cells, progress=progress)

    def fewest_persons(
        self, person: str, cells: CountedTable, classes: Counts, memory: int, progress: Progress | None = None
    ) -> int:
        """Have DuckDB count them in a pass over the blocks; it spills what does not fit."""
        counted, finder, stored = cells.together, RowFinder.of(cells), self.stored_type(person)

        def in_classes() -> Iterator[pa.RecordBatch]:
            for block in self.blocks([*counted, person], progress=progress):
                own = classes[finder.find([np.asarray(block[name]) for name in counted])]
                kept = own >= 0
                persons = pa.array(block[person], stored).filter(pa.array(kept))
                yield pa.record_batch([persons, pa.array(own[kept], pa.int64())], names=["person", "class"])

        schema = pa.schema([("person", stored), ("class", pa.int64())])
        with batches_in_database(schema, in_classes(), memory, self.place) as (_, every):
            in_each = every.unique("class, person").aggregate("count(*) AS n", "class")
            found = in_each.aggregate("min(n) AS n").to_arrow_table()
        return int(found.column("n")[0].as_py())

    def taken(
        self, names: Sequence[str], places: Places, *, pairs: Pairs | None = None, progress: Progress | None = None
    ) -> dict[str, CodedColumn]:
        """Take some columns of some rows, given by their places, ascending, in one pass over the blocks."""
        parts: dict[str, list[NDArray[np.int32] | pa.Array]] = {name: [] for name in names}
        n_read = 0
        for block in pairs_counted(self.blocks(names, progress=progress), pairs or {}):
            n_rows = len(block[names[0]])
            first, last = np.searchsorted(places, [n_read, n_read + n_rows])
            own = places[first:last] - n_read
            n_read += n_rows
            for name, cells in block.items():
                parts[name].append(cells.take(pa.array(own)) if isinstance(cells, pa.Array) else cells[own])
        return {name: self.coded(name, parts[name]) for name in names}

    def stored_type(self, name: str) -> pa.DataType:
        """Give the type of a column in the blocks: codes, or its own where values are not listed."""
        return self.outline[name].values.type if self.is_open(name) else pa.int32()

    def n_open_values(self, name: str, memory: int) -> int:
        """Have DuckDB count, which spills what does not fit."""
        schema = pa.schema([("value", self.stored_type(name))])
        batches = (pa.record_batch([pa.array(block[name])], schema=schema) for block in self.blocks([name]))
        with batches_in_database(schema, batches, memory, self.place) as (_, cells):
            found = cells.unique("value").aggregate("count(*) AS n").to_arrow_table()
        return int(found.column("n")[0].as_py())

    def place_of_each(self, name: str, memory: int, *, ranks: Places | None = None, is_last: bool = False) -> Places:
        """Have DuckDB find them, which spills what does not fit."""
        schema = pa.schema([("value", self.stored_type(name)), ("place", pa.int64())])

        def batches() -> Iterator[pa.RecordBatch]:
            n_read = 0
            for block in self.blocks([name]):
                stop = n_read + len(block[name])
                places = np.arange(n_read, stop) if ranks is None else ranks[n_read:stop]
                yield pa.record_batch([pa.array(block[name]), pa.array(places, pa.int64())], schema=schema)
                n_read = stop

        which = "max" if is_last else "min"
        with batches_in_database(schema, batches(), memory, self.place) as (_, cells):
            found = cells.aggregate(f"{which}(place) AS place", "value").to_arrow_table()
        return np.asarray(found.column("place").to_numpy(), dtype=np.int64)

    def only(self, places: Places, stated: PersonRows) -> LargeTable:
        """Give the table of some rows alone; their values are counted in a pass."""
        names, columns = self.schema.names(), self.outline.columns
        kept = replace(self, _blocks=KeptBlocks(self._blocks, places))
        counts = {name: np.zeros(len(columns[name].values), dtype=np.int64) for name in names}
        missing = dict.fromkeys(names, 0)
        for block in kept.blocks(names):
            for name, cells in block.items():
                if isinstance(cells, pa.Array):
                    missing[name] += cells.null_count
                else:
                    counts[name] += np.bincount(cells, minlength=len(counts[name]))
        stored = {
            name: own if self.is_open(name) else own.filter(pa.array(counts[name][columns[name].codes] > 0))
            for name, own in self._stored.items()
        }
        described = {
            c.name: kept_column(columns[c.name], counts[c.name], len(places), missing[c.name], c.kind)
            for c in self.schema
        }
        outline = replace(self.outline, columns=described, n_rows=len(places), person_rows=stated)
        return replace(kept, outline=outline, _stored=stored)

    def ensure_unchanged(self) -> None:
        """Refuse a file whose bytes, or a frame whose content, are others than when it was opened."""
        self._refuse_if_changed()


def open_large(
    source: Any,
    *,
    memory: int,
    schema: Schema | None = None,
    options: ReadOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
) -> LargeTable:
    """Pass over a file or frame once, and find out what its columns hold.

    Parameters
    ----------
    source : path, address or frame
        A CSV (TSV) file or JSON lines, also gzipped, a Parquet file, or one of SPSS, Stata or SAS; a database. Rows of
        JSON lines, statistics packages and databases are kept in a private temporary file as long as the table is used.
        Or a DuckDB relation, an Ibis table, a lazy polars frame,
        a pyarrow dataset, or any frame that is in memory already.
    memory : int
        Bytes that may be used; a column whose distinct values take more than a share of it is not listed.
    schema, options
        See :func:`sfumato.table.io.read.read_table`.

    Raises
    ------
    InputError, SchemaError
        As reading the whole table does.
    InvalidParameterError
        If the file is of another format, or incomplete rows are to be left out.
    """
    if isinstance(source, str | os.PathLike):
        opened = _open_file(source, memory, schema, options, progress)
    else:
        opened = _open_frame(native_frame(source), memory, schema, options, progress)
    if options.one_row_per_person is None or schema is None:
        return opened
    return one_row_each(opened, options.one_row_per_person, memory)


def _open_file(
    path: str | os.PathLike[str], memory: int, schema: Schema | None, options: ReadOptions, progress: Progress | None
) -> LargeTable:
    if (database := named_database(path, options)) is not None:
        return _open_database(database, memory, schema, options, progress)
    name = _checked_format(path, options)
    if name == "parquet" and is_folder(path):
        folder = StoredParquet.of(path)
        parts = FolderBlocks.of(folder, cells_at_once(memory))
        coder = _coder(str(path), schema, options)
        found = _distinct(parts, coder, memory, progress)
        folder.ensure_unchanged()
        source = Source(str(path), folder.sha256, name)
        return _described(found, source, parts, folder.ensure_unchanged, coder, options)
    with open_stored(path, most_held=0, in_blocks=True) as stored:
        coder = _coder(stored.name, schema, options)
        if name == "jsonl":
            text = check_text(stored, options.encoding, is_declared=True)
            lines = kept_json_lines(text, coder, cells_at_once(memory), text_at_once(memory))
            source = Source(stored.name, stored.sha256, name)
            found = _distinct(lines, coder, memory, progress)
            stored.ensure_unchanged()
            return _described(found, source, lines, stored.ensure_unchanged, coder, options)
        if name in STATISTICS:
            tokens = coder.rules.tokens
            book = StatisticsBlocks.of(stored, Path(path), name, options.encoding, cells_at_once(memory), tokens)
            source = Source(stored.name, stored.sha256, name, book.labels)
            found = _distinct(book, coder, memory, progress, book.domains)
            stored.ensure_unchanged()
            return _described(found, source, book, stored.ensure_unchanged, coder, options, book.domains)
        blocks = _raw_blocks(stored, Path(path), name, options, memory)
        found = _distinct(blocks, coder, memory, progress)
        stored.ensure_unchanged()
    source = Source(stored.name, stored.sha256, name)
    return _described(found, source, blocks, stored.ensure_unchanged, coder, options)


def _open_database(
    database: Database, memory: int, schema: Schema | None, options: ReadOptions, progress: Progress | None
) -> LargeTable:
    """Run a query once, and keep its rows in a private file as long as the table is used."""
    _refuse_dropping(options)
    coder = _coder(database.place, schema, options)
    spooled = SpooledRows.of(database, coder, memory, lambda n_rows: _say_read(progress, n_rows))
    found = _distinct(spooled, coder, memory, progress)
    return _described(found, source_of(database, spooled.sha256), spooled, spooled.ensure_unchanged, coder, options)


def _open_frame(
    frame: Any, memory: int, schema: Schema | None, options: ReadOptions, progress: Progress | None
) -> LargeTable:
    """Open a frame, whose hash is that of the table written as CSV, as when it is read at once."""
    _refuse_dropping(options)
    coder = _coder(source_name(frame), schema, options)
    blocks = FrameBlocks.of(frame, coder)
    found = _distinct(blocks, coder, memory, progress, blocks.domains)

    def refuse_if_changed() -> None:
        if _content_hash(opened) != sha256:
            raise _changed(opened.source.name, _HINT_FOR_FRAMES)

    opened = _described(found, Source(blocks.place, ""), blocks, refuse_if_changed, coder, options, blocks.domains)
    sha256 = _content_hash(opened, progress)
    source = replace(opened.source, sha256=sha256)
    return replace(opened, source=source, outline=replace(opened.outline, source=source))


def _content_hash(large: LargeTable, progress: Progress | None = None) -> str:
    """SHA-256 of a table written as CSV, by a pass over its rows, which must be those that were counted."""
    digest = ContentDigest()
    columns = large.outline.columns
    counts = {name: np.zeros(len(column.values), dtype=np.int64) for name, column in columns.items()}
    n_rows = 0
    values = {name: column.values for name, column in columns.items()}
    with BlockWriter(digest, "csv", large.schema, values) as writer:  # type: ignore[arg-type]
        for block in large.blocks(tuple(columns), progress=progress):
            writer.write(block)
            n_rows += len(block[next(iter(columns))])
            for name, codes in block.items():
                if not large.is_open(name):
                    counts[name] += np.bincount(codes, minlength=len(counts[name]))
    is_same = all(large.is_open(name) or np.array_equal(counts[name], columns[name].counts) for name in columns)
    if n_rows != large.n_rows or not is_same:
        raise _changed(large.source.name, _HINT_FOR_FRAMES)
    return digest.hexdigest()


def _coder(place: str, schema: Schema | None, options: ReadOptions) -> ColumnCoder:
    return ColumnCoder(options.rules(schema), place, codes_are_rows=False)


def _say_read(progress: Progress | None, n_read: int) -> None:
    if progress is not None:
        progress(n_read, 0, f"{n_read:,} rows read")


def _distinct(
    blocks: RawBlocks, coder: ColumnCoder, memory: int, progress: Progress | None, ordered: Collection[str] = ()
) -> Found:
    most, most_bytes = listed_values(memory)
    place = str(coder.place)
    names = check_names(blocks.names, place=place)
    rules = coder.rules
    found = {name: DistinctValues(rules.tokens(name), most, most_bytes, rules.wanted(name)) for name in names}
    n_read = 0
    for raw in blocks(range(len(names))):
        for name, cells in zip(names, raw, strict=True):
            found[name].take(*coded_block(cells, name, place))
        n_read += len(raw[0])
        _say_read(progress, n_read)
    kinds = dict.fromkeys(ordered, Kind.ORDERED)
    return {name: values.finished(name, coder, kinds.get(name)) for name, values in found.items()}


def _described(
    found: Found,
    source: Source,
    blocks: RawBlocks,
    refuse_if_changed: Callable[[], None],
    coder: ColumnCoder,
    options: ReadOptions,
    domains: Mapping[str, tuple[str, ...]] | None = None,
) -> LargeTable:
    """Put the columns that were found together, and describe them as the schema does; ``domains`` are ordered."""
    names, schema, readings, ordered = tuple(found), coder.rules.schema, options.readings_of(coder), domains or {}
    outline = Table(
        Schema.of(
            (
                with_recognised_order(
                    in_order_of(Column(n, kind=kind, reading=readings.get(n)), ordered), column.values
                )
                for n, (_, column, kind) in found.items()
            ),
            options.missing if schema is None else schema.missing,
        ),
        {n: column for n, (_, column, _) in found.items()},
        found[names[0]][1].n_rows,
        source,
    )
    large = LargeTable(outline, source, {n: own for n, (own, _, _) in found.items()}, blocks, refuse_if_changed)
    if schema is None:
        return large
    check_covers(schema, names, names, where=source.name)
    return large.with_schema(as_read(with_domains(schema, ordered).keep(names), readings))


def _checked_format(path: str | os.PathLike[str], options: ReadOptions) -> str:
    if str(path) == STANDARD_INPUT:
        raise NO_STANDARD_INPUT.refusal("DATA read in blocks", "got standard input")
    name = format_to_read(path, options)
    if name not in FORMATS:
        raise FORMATS_IN_BLOCKS.refusal("DATA read in blocks", f"got {name}")
    _refuse_dropping(options)
    return name


def _refuse_dropping(options: ReadOptions) -> None:
    if options.complete_rows_only:
        raise INCOMPLETE_ROWS.refusal("complete_rows_only", "got it")


def _raw_blocks(stored: StoredBytes, path: Path, name: str, options: ReadOptions, memory: int) -> RawBlocks:
    """Read the bytes once, for their hash and, in text, for what cannot be text."""
    if name != "parquet":
        text = checked_text(stored, options)
        delimiter = "\t" if name == "tsv" and options.delimiter is None else options.delimiter
        return DelimitedBlocks(text, layout_of(text, delimiter=delimiter, header=options.header), text_at_once(memory))
    head, chunks = with_head(stored.first_pass(), len(_PARQUET_MAGIC))
    deque(chunks, maxlen=0)
    if head != _PARQUET_MAGIC:
        problem = "is empty" if not head else "is not a Parquet file"
        raise InputError(problem, path=stored.name, hint="name its format" if head else "", remedy=("format",))
    return ParquetBlocks.of(path, stored.name, cells_at_once(memory))


def _changed(place: str, hint: str = "read it again when no program is writing to it") -> InputError:
    return InputError("changed while it was being read", path=place, hint=hint)
