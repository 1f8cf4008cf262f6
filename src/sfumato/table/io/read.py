"""The door: whatever holds a table becomes a ``Table`` or ``BinaryTable``, or one clear line says why not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.schema import DEFAULT_MISSING_TOKENS, Column, Kind, Reading, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import CellRules, ColumnCoder
from sfumato.table.coding import Source, Table
from sfumato.table.io.arff import parse_arff
from sfumato.table.io.bytes import StoredBytes, open_stored
from sfumato.table.io.csv import layout_of, line_of_record, parse_delimited
from sfumato.table.io.databases.address import FILES, Database, database_of, is_database
from sfumato.table.io.databases.rows import parse_rows
from sfumato.table.io.excel import parse_spreadsheet
from sfumato.table.io.foreign import refuse_address, refuse_foreign_suffix
from sfumato.table.io.formats import READABLE, STATISTICS, WITH_ROWS_ABOVE, Parsed, check_format, format_of
from sfumato.table.io.frames import binary_from_sparse, native_frame, parse_frame, source_name, with_content_hash
from sfumato.table.io.json_lines import parse_json_lines
from sfumato.table.io.libsvm import parse_libsvm
from sfumato.table.io.parquet import StoredParquet, is_folder, parse_folder, parse_parquet
from sfumato.table.io.statistics.read import parse_statistics
from sfumato.table.io.text import Text, check_text
from sfumato.table.orders.recognise import with_recognised_order
from sfumato.table.persons import PersonRule, one_row_per_person

__all__ = ["DEFAULT_OPTIONS", "ReadOptions", "format_of", "read_table"]


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read; every ``None`` is found out.

    Parameters
    ----------
    format : str or None
        One of "csv", "tsv", "parquet", "excel", "arff", "libsvm", "jsonl", "sav", "zsav", "dta", "sas7bdat", "xpt",
        "postgresql", "sqlite" and "duckdb".
        ``None``: by the suffix, looking through a trailing ``.gz``; an unknown suffix is CSV.
    delimiter : str or None
        Of CSV files; ``None``: comma, semicolon, tab or bar, whichever fits.
    encoding : str or None
        Of text files; ``None``: what a byte order mark says, else UTF-8. Nothing else is guessed. Of files of
        statistics packages; ``None``: what the file says.
    header : bool
        Whether the first line (row) holds the names; else they are ``c1``, ``c2``, ….
    sheet : str or None
        Of workbooks; ``None``: the only one that holds something. Of several one must be named.
    skip_rows : int
        Lines of a text file, or rows of a sheet, that stand above the header (above the data without one) and are no
        part of the table, such as a title.
    missing : tuple of str
        Texts that mean "missing", when no schema says.
    complete_rows_only : bool
        Leave out the rows in which a value is missing, and count them.
    one_row_per_person : {"first", "last", "random"} or None
        Keep one row of each person, whom the schema's column with the role person tells apart, and count the others.
    formats : tuple of (str, str)
        By column the format of its texts, such as ``("birth", "DD/MM/YYYY")``, see :mod:`sfumato.table.reading`.
    guess_formats : bool
        Look for the format of texts where none is declared: dates and numbers as the world writes them.
    mixed_as_text : bool
        Take a column of a typed source (a workbook, Python objects) that mixes numbers, dates and text as text;
        otherwise it is refused unless the schema says that it is categorical.
    query : str or None
        SELECT statement whose result is the table; of databases only.
    table : str or None
        Table of a database, also after its schema's name and a dot; ``None`` without a query: the only one.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    sheet: str | None = None
    skip_rows: int = 0
    missing: tuple[str, ...] = DEFAULT_MISSING_TOKENS
    complete_rows_only: bool = False
    one_row_per_person: PersonRule | None = None
    mixed_as_text: bool = False
    formats: tuple[tuple[str, str], ...] = ()
    guess_formats: bool = True
    stated_formats: tuple[tuple[str, str], ...] = ()
    query: str | None = field(default=None, repr=False)  # which may hold values
    table: str | None = None

    def rules(self, schema: Schema | None) -> CellRules:
        """Say what the door has to know of cells."""
        formats = dict(self.stated_formats) | dict(self.formats)
        return CellRules(schema, self.missing, self.mixed_as_text, formats, self.guess_formats)

    def readings_of(self, coder: ColumnCoder) -> dict[str, Reading]:
        """Say how the texts of columns were read, and of which a manifest alone says so."""
        stated = dict(self.stated_formats).keys() - dict(self.formats).keys()
        return {name: replace(own, is_stated=name in stated) for name, own in coder.readings.items()}

    def of_files(self) -> ReadOptions:
        """Give the same options for another source, which no query and no table of a database is about."""
        return replace(self, query=None, table=None)

    def of_source(self, source: str | os.PathLike[str]) -> ReadOptions:
        """Give the same options for another source: without query and table if that is a file that has no tables.

        The format of a database is left out too, unless the file is one.
        """
        if is_database(source, self.format):
            return self
        return replace(self.of_files(), format=None if self.format in FILES else self.format)


DEFAULT_OPTIONS = ReadOptions()


def read_table(
    source: Any, *, schema: Schema | None = None, options: ReadOptions = DEFAULT_OPTIONS
) -> Table | BinaryTable:
    """Read a table from a path (``-`` is standard input), a database or an object in memory.

    Text files are coded as text, typed sources keep their types; blanks around text are dropped, and missing tokens,
    nulls and not-a-number are one missing value. Without a schema every column is a quasi-identifier of a guessed kind.

    Parameters
    ----------
    source : path, "-", address, frame, 2-D numpy array, scipy.sparse matrix, Table, BinaryTable
        A frame is one of pandas, polars (also lazy), PySpark or Narwhals, a DuckDB relation, an Ibis table, a pyarrow
        table or dataset, or any object with ``__arrow_c_stream__``. A libsvm file or sparse matrix gives a
        ``BinaryTable``, everything else a ``Table``. An address is ``postgresql://host/database``,
        ``sqlite:///file.db`` or ``duckdb:///file.duckdb``, without credentials.
    schema : Schema or None
        Has to describe every column (of a binary table: every column that is no feature), in any order.

    Raises
    ------
    InputError
        If the source cannot be read as a table; names the file, and the line and column where there is one.
    SchemaError
        If schema and table differ.
    """
    if isinstance(source, Table | BinaryTable):
        table = _described(source, schema) if schema is not None else source
    elif isinstance(source, str | os.PathLike):
        table = _read_file(source, schema, options)
    else:
        table = _read_memory(source, schema, options)
    table = _complete(table) if options.complete_rows_only else table
    if options.one_row_per_person is None or schema is None:
        return table
    return one_row_per_person(table, options.one_row_per_person)


def _read_file(path: str | os.PathLike[str], schema: Schema | None, options: ReadOptions) -> Table | BinaryTable:
    coder = ColumnCoder(options.rules(schema))
    if (database := named_database(path, options)) is not None:
        coder.place = database.place
        rows, sha256 = parse_rows(database, coder)
        return _table(rows, source_of(database, sha256), schema, options, coder)
    name = format_to_read(path, options)
    if name == "parquet" and is_folder(path):
        folder = StoredParquet.of(path)
        coder.place = str(path)
        return _table(parse_folder(folder, coder), Source(str(path), folder.sha256, name), schema, options, coder)
    with open_stored(path) as stored:
        coder.place = stored.name
        if name == "libsvm":
            text = check_text(stored, options.encoding, is_declared=options.format is not None)
            binary = parse_libsvm(text, coder, Source(stored.name, stored.sha256, name))
            stored.ensure_unchanged()
            return _described(binary, schema) if schema is not None else binary
        parsed = _parse(stored, coder, name, options)
        stored.ensure_unchanged()
        source = Source(stored.name, stored.sha256, name, parsed.labels)
        return _table(parsed, source, schema, options, coder)


def named_database(path: str | os.PathLike[str], options: ReadOptions) -> Database | None:
    """Find the database that is meant; ``None`` for a file of rows.

    Raises
    ------
    InputError, InvalidParameterError
        See :func:`sfumato.table.io.databases.address.database_of`.
    """
    found = database_of(path, format=options.format, query=options.query, table=options.table)
    if found is not None and options.skip_rows:
        raise InvalidParameterError("skip_rows", f"got {options.skip_rows:,}", allowed="0 for a database")
    return found


def source_of(database: Database, sha256: str) -> Source:
    """Say where rows of a database came from."""
    return Source(database.place, sha256, database.kind, label=database.label)


def format_to_read(path: str | os.PathLike[str], options: ReadOptions) -> str:
    """Name the format in which a file is read, without ``.gz``; refuses those that cannot be, and addresses.

    Raises
    ------
    InputError
        If the path is an address, or its suffix stands for a format that cannot be read.
    InvalidParameterError
        If rows are to be skipped in a format that has no lines.
    """
    refuse_address(path)
    if options.format is None:
        refuse_foreign_suffix(path)
        name = format_of(path).removesuffix(".gz")
    else:
        name = check_format(options.format, READABLE)
    if isinstance(options.skip_rows, bool) or not isinstance(options.skip_rows, int) or options.skip_rows < 0:
        raise InvalidParameterError("skip_rows", f"got {options.skip_rows!r}", allowed="a whole number from 0")
    if options.skip_rows and name not in WITH_ROWS_ABOVE:
        allowed = f"0 in a format other than {', '.join(WITH_ROWS_ABOVE)}"
        raise InvalidParameterError("skip_rows", f"got {options.skip_rows:,}", allowed=allowed)
    return name


def checked_text(stored: StoredBytes, options: ReadOptions) -> Text:
    """Check a text as the options say that it is read."""
    is_declared = options.format is not None
    return check_text(stored, options.encoding, is_declared=is_declared, skipped_lines=options.skip_rows)


def _parse(stored: StoredBytes, coder: ColumnCoder, name: str, options: ReadOptions) -> Parsed:
    if name == "parquet":
        return parse_parquet(stored, coder)
    if name == "excel":
        return parse_spreadsheet(stored, coder, sheet=options.sheet, header=options.header, skip_rows=options.skip_rows)
    if name in STATISTICS:
        return parse_statistics(stored, coder, name, options.encoding)
    if name == "jsonl":
        return parse_json_lines(check_text(stored, options.encoding, is_declared=True), coder)
    text = checked_text(stored, options)
    if name == "arff":
        return parse_arff(text, coder)
    delimiter = "\t" if name == "tsv" and options.delimiter is None else options.delimiter
    return parse_delimited(text, coder, delimiter=delimiter, header=options.header)


def line_of_data_row(path: str | os.PathLike[str], options: ReadOptions, row: int) -> int | None:
    """Find the line of a delimited text on which a data row (from 0) begins; ``None`` in formats without lines."""
    name = format_to_read(path, options)
    if name not in ("csv", "tsv"):
        return None
    with open_stored(path) as stored:
        text = checked_text(stored, options)
        delimiter = "\t" if name == "tsv" and options.delimiter is None else options.delimiter
        layout = layout_of(text, delimiter=delimiter, header=options.header)
        return line_of_record(text, layout.delimiter, row + (1 if options.header else 0))


def _read_memory(source: Any, schema: Schema | None, options: ReadOptions) -> Table | BinaryTable:
    rules = options.rules(schema)
    source = native_frame(source)
    name = source_name(source)
    table: Table | BinaryTable
    if sp.issparse(source):
        binary = binary_from_sparse(source, rules)
        table = _described(binary, schema) if schema is not None else binary
    else:
        coder = ColumnCoder(rules, name)
        table = _table(parse_frame(source, coder), Source(name, ""), schema, options, coder)
    return with_content_hash(table, name)


def _table(parsed: Parsed, source: Source, schema: Schema | None, options: ReadOptions, coder: ColumnCoder) -> Table:
    readings = options.readings_of(coder)
    found = [Column(name, kind=kind, reading=readings.get(name)) for name, kind in parsed.kinds.items()]
    found = [in_order_of(column, parsed.domains) for column in found]
    if schema is None:
        found = [with_recognised_order(column, parsed.columns[column.name].values) for column in found]
    guessed = Schema.of(
        found,
        options.missing if schema is None else schema.missing,
    )
    table = Table(guessed, parsed.columns, parsed.n_rows, source)
    if schema is None:
        return table
    check_covers(schema, guessed.names(), guessed.names(), where=source.name)
    described = with_domains(schema, parsed.domains).keep(guessed.names())
    return table.with_schema(as_read(described, readings), line_of=parsed.line_of)


def as_read(schema: Schema, readings: Mapping[str, Reading]) -> Schema:
    """Say in a schema how the texts of its columns were read."""
    if not readings:
        return schema
    return Schema.of((replace(c, reading=readings.get(c.name, c.reading)) for c in schema), schema.missing)


def check_formats(options: ReadOptions, names: Sequence[str], where: str) -> None:
    """Refuse a format that is declared for a column that does not exist."""
    for name, _ in options.formats:
        if name not in names:
            raise ColumnNotFoundError(name, names, where=where)


def with_domains(schema: Schema, domains: Mapping[str, tuple[str, ...]]) -> Schema:
    """Take the order of ordered columns that the schema does not state from the data file."""
    return Schema.of((in_order_of(c, domains) if c.kind is Kind.ORDERED else c for c in schema), schema.missing)


def in_order_of(column: Column, domains: Mapping[str, tuple[str, ...]]) -> Column:
    """Describe a column as ordered by its data file, unless an order is declared.

    It counts as recognised: what is listed in a codebook and has no row is not for a manifest.
    """
    if column.domain is not None or column.name not in domains:
        return column
    return replace(column, kind=Kind.ORDERED, domain=domains[column.name], is_order_recognised=True)


def _described(table: Table | BinaryTable, schema: Schema) -> Table | BinaryTable:
    """Describe a table anew; a feature of a binary table that gets another role joins the columns beside it."""
    if isinstance(table, Table):
        names = table.schema.names()
        check_covers(schema, names, names)
        coder = ColumnCoder(CellRules(schema))
        coded = {n: coder.code_distinct(n, table[n].codes, table[n].values, table.schema[n].kind)[0] for n in names}
        return replace(table, columns=coded).with_schema(schema.keep(names))
    beside = table.companions.schema.names()
    check_covers(schema, beside, table.feature_names + beside)
    moved = [n for n in table.feature_names if n in schema and schema[n].role is not Role.QUASI_IDENTIFIER]
    positions = {name: i for i, name in enumerate(table.feature_names)}
    as_columns = table.select([positions[name] for name in moved]).to_table()
    companions = as_columns.with_schema(schema.keep([*moved, *beside]))
    kept = [i for name, i in positions.items() if name not in set(moved)]
    return replace(table.select(kept), companions=companions)


def check_covers(
    schema: Schema, to_describe: tuple[str, ...], available: tuple[str, ...], where: str = "the table"
) -> None:
    known = set(available)
    for name in schema.names():
        if name not in known:
            raise ColumnNotFoundError(name, available, where=where)
    for name in to_describe:
        if name not in schema:
            problem = f"is in {where}, but the schema does not describe it"
            hint = "describe it too, or set default_role in the project file"
            raise SchemaError(problem, column=name, hint=hint, remedy=("describe",))


def _complete(table: Table | BinaryTable) -> Table | BinaryTable:
    if isinstance(table, Table):
        return table.without_incomplete_rows()
    complete = np.ones(table.n_rows, dtype=np.bool_)
    for column in table.companions.columns.values():
        if column.missing_code is not None:
            complete &= column.codes != column.missing_code
    return replace(table, matrix=table.matrix[complete], companions=table.companions.without_incomplete_rows())
