"""Parquet files are written again from their cells, and the bytes compared.

Where the writer is another one (a version of Arrow that is not at hand, a cluster), the same content has to be found by
what pyarrow itself says of the file: columns, metadata, row groups, statistics and dictionaries, without a gap.
"""

from __future__ import annotations

import io
import json
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow.parquet import ColumnChunkMetaData, FileMetaData, ParquetFile

from sfumato.audit.bytes.compared import Compared, NotAccountedError, require
from sfumato.audit.reading.values import is_text
from sfumato.schema import Schema
from sfumato.table.io.parquet import open_parquet
from sfumato.table.io.write import BlockWriter

BLOCK_ROWS = 1 << 16

_ARROW = r"parquet-cpp-arrow version \d{1,3}(\.\d{1,3}){2}"
_HADOOP = r"parquet-mr version \d{1,3}(\.\d{1,3}){2} \(build [0-9a-f]{40}\)"
_MAGIC = b"PAR1"
_END_BYTES = 8  # length of the footer, magic
_SPARK_VERSION, _SPARK_SCHEMA = b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"
_TRUTH_VALUES, _INT32, _INT64, _BYTES, _LIST, _STRUCT = (1, 2), 5, 6, 8, 9, 12  # of Thrift
# What pyarrow 18 does not know of these shows as bytes that belong to nothing.
_OF_NO_RELEASE = ("metadata", "file_path", "bloom_filter_offset", "geo_statistics")
_ODD_PLACES = "there are bytes that belong to no page, index or footer"
_ODD_STATISTICS = "it states other statistics than those of its values"


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (NotAccountedError, MemoryError):
        raise
    except Exception:  # many kinds of errors, whose messages may quote cells
        problem = "it cannot be read as Parquet"
        raise NotAccountedError(problem) from None


def written_again(path: Path, tokens: Mapping[str, Sequence[str]]) -> tuple[bool, str]:
    """Whether the canonical writer makes the very file of its cells, and the SHA-256 of the file.

    Raises
    ------
    NotAccountedError
        If it is no table, or holds cells that readers take for others: padded texts, texts that mean missing, -0.0,
        not-a-number.
    """
    with path.open("rb") as stored, _explained(), _opened(path) as file:
        sink = Compared(stored)
        columns = {name: pa.array([], _plain(file, name)) for name in file.schema_arrow.names}
        with BlockWriter(cast("BinaryIO", sink), "parquet", Schema.of([]), columns) as writer:
            for batch in file.iter_batches(BLOCK_ROWS):
                for name, cells in zip(columns, batch.columns, strict=True):
                    distinct = cells.dictionary if isinstance(cells, pa.DictionaryArray) else cells.unique()
                    problem = _problem_of_values(distinct, tokens.get(name, ()))
                    require(not problem, f"'{name}' {problem}")
                if sink.is_same:
                    writer.write(dict(zip(columns, batch.columns, strict=True)))
        sha256 = sink.finish()
        return sink.is_same, sha256


def _opened(path: Path) -> ParquetFile:
    """Open a file whose texts come with their dictionaries, not all of it at once."""
    texts = [field.name for field in pyarrow.parquet.read_schema(path) if is_text(field.type)]
    return ParquetFile(
        path, page_checksum_verification=True, read_dictionary=texts, pre_buffer=False, buffer_size=1 << 18
    )


def _plain(file: ParquetFile, name: str) -> pa.DataType:
    found = file.schema_arrow.field(name).type
    return found.value_type if pa.types.is_dictionary(found) else found


def _problem_of_values(values: pa.Array, tokens: Sequence[str]) -> str:
    """Say what is wrong with distinct typed values, of which each must be written as itself; empty if nothing is."""
    known = values.drop_null()
    if is_text(known.type):
        if not pc.all(pc.equal(pc.utf8_trim_whitespace(known), known), min_count=0).as_py():
            return "has blanks around texts"
    elif pa.types.is_floating(known.type):
        numbers = np.asarray(known.cast(pa.float64()).to_numpy(zero_copy_only=False))
        if np.isnan(numbers).any() or (np.signbit(numbers) & (numbers == 0)).any():
            return "has numbers that are read as others (-0.0, not-a-number)"
    wanted = pa.array(tokens, pa.string())
    if tokens and pc.any(pc.is_in(pc.cast(known, pa.string()), value_set=wanted), min_count=0).as_py():
        return "spells missing values in more than one way"
    return ""


def check_content(path: Path) -> None:
    """Check what pyarrow says of a file of another writer: there must be nothing in it but the cells.

    How a writer cuts values into pages and runs, and compresses them, is not looked at.

    Raises
    ------
    NotAccountedError
        If there is something else.
    """
    with (
        path.open("rb") as stored,
        _explained(),
        mmap.mmap(stored.fileno(), 0, access=mmap.ACCESS_READ) as content,
        _opened(path) as file,
    ):
        about = file.metadata
        is_of_arrow = re.fullmatch(_ARROW, about.created_by) is not None
        require(is_of_arrow or re.fullmatch(_HADOOP, about.created_by) is not None, "it names no writer that is known")
        _check_columns(file, is_of_arrow=is_of_arrow)
        _check_metadata(file, is_of_arrow=is_of_arrow)
        _check_places(content, about, is_of_arrow=is_of_arrow)
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        require(about.num_rows == sum(group.num_rows for group in groups), "it states another number of rows")
        for i, group in enumerate(groups):
            require(not group.sorting_columns, "it says that its rows are sorted")
            for position, name in enumerate(file.schema_arrow.names):
                cells = file.read_row_group(i, columns=[name]).column(0)
                _check_chunk(group.column(position), cells)


def _check_columns(file: ParquetFile, *, is_of_arrow: bool) -> None:
    found = file.schema_arrow
    if is_of_arrow:  # names, types, numbers and repetition of columns, as the canonical writer would write them
        made = io.BytesIO()
        with open_parquet(made, pa.schema([(name, _plain(file, name)) for name in found.names])):
            pass
        is_same = _shown(file) == _shown(ParquetFile(made))
        require(is_same, "it describes its columns in another way than a release does")
        return
    leaves = [file.schema.column(i) for i in range(len(found.names))]
    is_flat = all(leaf.path == leaf.name and not leaf.max_repetition_level for leaf in leaves)
    is_named = _shown(file)[0] == "required group field_id=-1 spark_schema {"
    require(is_flat and is_named, "its columns are not a flat list, or the list has a name of its own")
    require(not any(field.metadata for field in found), "its columns have numbers")


def _shown(file: ParquetFile) -> list[str]:
    """Lines in which the library describes the columns, after one with an address in memory."""
    return str(file.schema).split("\n")[1:]


def _check_metadata(file: ParquetFile, *, is_of_arrow: bool) -> None:
    """Metadata is free text: only what the writer must write for these columns may be there."""
    found: dict[bytes, bytes] = file.metadata.metadata or {}
    expected: dict[bytes, bytes] = {}
    if not is_of_arrow:
        fields = []
        for i, name in enumerate(file.schema_arrow.names):
            is_optional = file.schema.column(i).max_definition_level == 1
            own = _spark_type(_plain(file, name))
            fields.append({"name": name, "type": own, "nullable": is_optional, "metadata": {}})
        described = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)
        expected = {_SPARK_VERSION: found.get(_SPARK_VERSION, b""), _SPARK_SCHEMA: described.encode()}
    is_version = re.fullmatch(rb"\d{1,2}\.\d{1,2}\.\d{1,2}", found.get(_SPARK_VERSION, b"0.0.0")) is not None
    require(found == expected and is_version, "it holds metadata that its columns do not need")


_SPARK_TYPES = {
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}


def _spark_type(data_type: pa.DataType) -> str:
    """Name a type as Spark does in the metadata that it writes; empty for one that no release has."""
    kinds = pa.types
    if kinds.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if kinds.is_timestamp(data_type):
        # The 96 bits that Spark writes by default have no time zone in Arrow.
        return "timestamp" if data_type.tz is not None or data_type.unit == "ns" else "timestamp_ntz"
    return _SPARK_TYPES.get(data_type, "")


def _check_places(content: bytes | mmap.mmap, about: FileMetaData, *, is_of_arrow: bool) -> None:
    """Check that columns, indexes of pages and the footer follow each other without a gap."""
    length = int.from_bytes(content[-_END_BYTES : -len(_MAGIC)], "little")
    footer = len(content) - _END_BYTES - length
    again = io.BytesIO()
    about.write_metadata_file(again)  # fields that the format does not know are lost
    is_plain = again.getvalue() == _MAGIC + content[footer:]
    require(is_plain and content[: len(_MAGIC)] == _MAGIC, "its footer holds more than the format has, or it has none")
    at, n_indexes = len(_MAGIC), 0
    for i in range(about.num_row_groups):
        group = about.row_group(i)
        for chunk in map(group.column, range(group.num_columns)):
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            require(start == at and chunk.total_compressed_size > 0, _ODD_PLACES)
            at += chunk.total_compressed_size
            n_indexes += chunk.has_column_index + chunk.has_offset_index
    # No release of our own has an index of pages; Hadoop writes one, which pyarrow does not read.
    for _ in range(0 if is_of_arrow else n_indexes):
        at = _after(content, at)
    require(at == footer, _ODD_PLACES)


def _after(content: bytes | mmap.mmap, at: int, kind: int = _STRUCT) -> int:
    """Place after a value of Thrift's compact protocol, whatever it holds."""
    if kind == _STRUCT:
        while header := content[at]:
            require(header > 15, _ODD_PLACES)  # the number of a field is written in the short way
            is_truth = header & 15 in _TRUTH_VALUES  # which have no bytes of their own
            at = at + 1 if is_truth else _after(content, at + 1, header & 15)
        return at + 1
    if kind == _LIST:
        kind, size, at = content[at] & 15, content[at] >> 4, at + 1
        size, at = (size, at) if size < 15 else _number(content, at)
        require(size <= len(content), _ODD_PLACES)
        for _ in range(size):
            at = at + 1 if kind in _TRUTH_VALUES else _after(content, at, kind)
        return at
    require(kind in (_INT32, _INT64, _BYTES), _ODD_PLACES)
    number, at = _number(content, at)
    return at + number if kind == _BYTES else at


def _number(content: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    found = shift = 0
    while content[at] & 128:
        found, shift, at = found | (content[at] & 127) << shift, shift + 7, at + 1
    return found | content[at] << shift, at + 1


def _check_chunk(chunk: ColumnChunkMetaData, cells: pa.ChunkedArray) -> None:
    """Check what is stated of the cells of a column in a row group."""
    has_more = any(getattr(chunk, name, None) for name in _OF_NO_RELEASE)
    require(not has_more, "a column has metadata or a filter of its own")
    require(chunk.compression in ("UNCOMPRESSED", "SNAPPY"), "it is compressed in another way than a release")
    values = cells.combine_chunks()
    if pa.types.is_dictionary(cells.type):
        values = _used_dictionary(cells.unify_dictionaries())
    require(chunk.num_values == len(cells), _ODD_STATISTICS)
    stated = chunk.statistics
    if stated is None:
        return
    is_right = not stated.has_null_count or stated.null_count == cells.null_count
    require(is_right and not stated.has_distinct_count, _ODD_STATISTICS)
    if stated.has_min_max:
        limits = pc.min_max(values).as_py()
        require((stated.min, stated.max) == (limits["min"], limits["max"]), _ODD_STATISTICS)


def _used_dictionary(cells: pa.ChunkedArray) -> pa.Array:
    """Texts of a dictionary, each of which must be used, for the first time in their order."""
    texts = cells.chunk(0).dictionary if cells.num_chunks else pa.array([], pa.string())
    codes = np.concatenate([np.zeros(0, np.int32), *(chunk.indices.drop_null().to_numpy() for chunk in cells.chunks)])
    used, first = np.unique(codes, return_index=True)
    is_exact = len(used) == len(texts) and bool((np.diff(first) > 0).all())
    require(is_exact, "a dictionary has values that no row has, or another order than that of first use")
    return texts
