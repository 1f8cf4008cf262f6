"""Every byte of a Parquet file is accounted for: magic, pages, index structures, footer, and nothing else.

The footer and the page headers are read by a Thrift reader of our own (compact protocol), which takes no number that
could be written shorter and no field that is not known. What they say is then held against what the pages hold: sizes,
places, checksums, statistics, dictionaries. A dictionary must hold the values that its pages use, each once, in the
order of first use. What is left to a writer is how it cuts values into pages and runs and how its compressor works;
that is settled by making the file again, where the writer is at hand (:func:`is_made_again`).
"""

from __future__ import annotations

import itertools
import json
import mmap
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.audit.reading.values import is_text

ROWS_OF_A_GROUP = 1 << 20
"""Most rows of a row group."""
_GROUP_CELLS, _LEAST_GROUP = 1 << 21, 1 << 14

_MAGIC = b"PAR1"
_ARROW = re.compile(rb"parquet-cpp-arrow version \d{1,3}\.\d{1,3}\.\d{1,3}")
_HADOOP = re.compile(rb"parquet-mr version \d{1,3}\.\d{1,3}\.\d{1,3} \(build [0-9a-f]{40}\)")
_SPARK_VERSION, _SPARK_SCHEMA = b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"

_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = range(8)
_WIDTHS = {_INT32: 4, _INT64: 8, _INT96: 12, _FLOAT: 4, _DOUBLE: 8}
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY = 0, 2, 3, 4, 8
_CODED = (_PLAIN_DICTIONARY, _RLE_DICTIONARY)
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_UNCOMPRESSED, _SNAPPY = 0, 1
_INDEX_BYTES = 64
"""Longest text of a column index; longer ones are cut."""

Struct = dict[int, Any]


class NotAccountedError(Exception):
    """Says, without any cell, what of a file is not accounted for."""


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotAccountedError(otherwise)


# ---- Thrift, compact protocol -------------------------------------------------------------------------------------

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
_BOOL = _TRUE
_LONGEST_VARINT = 10

# Fields of each structure with their types: a number for a plain one, a name for a structure, a list for a list.
_Spec = Mapping[int, Any]
_EMPTY: _Spec = {}
_STATISTICS: _Spec = {1: _BINARY, 2: _BINARY, 3: _I64, 5: _BINARY, 6: _BINARY, 7: _BOOL, 8: _BOOL}
_UNIT: _Spec = {1: _EMPTY, 2: _EMPTY, 3: _EMPTY}
_MOMENT: _Spec = {1: _BOOL, 2: _UNIT}
_LOGICAL_TYPE: _Spec = {
    1: _EMPTY,
    5: {1: _I32, 2: _I32},
    6: _EMPTY,
    7: _MOMENT,
    8: _MOMENT,
    10: {1: _I8, 2: _BOOL},
}
_SCHEMA_ELEMENT: _Spec = {
    1: _I32,
    2: _I32,
    3: _I32,
    4: _BINARY,
    5: _I32,
    6: _I32,
    7: _I32,
    8: _I32,
    10: _LOGICAL_TYPE,
}
_COLUMN: _Spec = {
    1: _I32,
    2: [_I32],
    3: [_BINARY],
    4: _I32,
    5: _I64,
    6: _I64,
    7: _I64,
    9: _I64,
    11: _I64,
    12: _STATISTICS,
    13: [{1: _I32, 2: _I32, 3: _I32}],
    16: {1: _I64, 2: [_I64], 3: [_I64]},
}
_CHUNK: _Spec = {2: _I64, 3: _COLUMN, 4: _I64, 5: _I32, 6: _I64, 7: _I32}
_FOOTER: _Spec = {
    1: _I32,
    2: [_SCHEMA_ELEMENT],
    3: _I64,
    4: [{1: [_CHUNK], 2: _I64, 3: _I64, 5: _I64, 6: _I64, 7: _I16}],
    5: [{1: _BINARY, 2: _BINARY}],
    6: _BINARY,
    7: [{1: _EMPTY}],
}
_PAGE: _Spec = {
    1: _I32,
    2: _I32,
    3: _I32,
    4: _I32,
    5: {1: _I32, 2: _I32, 3: _I32, 4: _I32, 5: _STATISTICS},
    7: {1: _I32, 2: _I32, 3: _BOOL},
}
_OFFSET_INDEX: _Spec = {1: [{1: _I64, 2: _I32, 3: _I64}], 2: [_I64]}
_COLUMN_INDEX: _Spec = {1: [_BOOL], 2: [_BINARY], 3: [_BINARY], 4: _I32, 5: [_I64], 6: [_I64], 7: [_I64]}


class _Thrift:
    """Reads structures of known fields, each written in the one shortest way."""

    def __init__(self, data: mmap.mmap | bytes, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    def struct(self, spec: _Spec) -> Struct:
        """Read a structure."""
        found: Struct = {}
        last = 0
        while header := self._byte():
            step, kind = header >> 4, header & 15
            _require(step > 0 and last + step in spec, "a header or the footer has a field that is not known")
            last += step
            wanted = spec[last]
            if wanted == _BOOL:
                _require(kind in (_TRUE, _FALSE), _MISTYPED)
                found[last] = kind == _TRUE
            else:
                _require(kind == _code_of(wanted), _MISTYPED)
                found[last] = self._value(wanted)
        return found

    def _value(self, wanted: Any) -> Any:
        if isinstance(wanted, Mapping):
            return self.struct(wanted)
        if isinstance(wanted, list):
            return self._list(wanted[0])
        if wanted == _BINARY:
            n_bytes = self._varint()
            _require(n_bytes <= self._end - self.at, _CUT)
            self.at += n_bytes
            return bytes(self._data[self.at - n_bytes : self.at])
        if wanted == _I8:
            return self._byte()
        if wanted == _BOOL:
            byte = self._byte()
            _require(byte in (_TRUE, _FALSE), _MISTYPED)
            return byte == _TRUE
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _list(self, wanted: Any) -> list[Any]:
        header = self._byte()
        size, kind = header >> 4, header & 15
        if size == 15:
            size = self._varint()
            _require(size >= 15, _LONG)
        _require(kind == _code_of(wanted) or (kind in (_TRUE, _FALSE) and wanted == _BOOL) or size == 0, _MISTYPED)
        _require(size <= self._end - self.at or wanted == _EMPTY, _CUT)
        return [self._value(wanted) for _ in range(size)]

    def _varint(self) -> int:
        number = shift = 0
        for _ in range(_LONGEST_VARINT):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                _require(byte > 0 or shift == 0, _LONG)
                return number
            shift += 7
        raise NotAccountedError(_LONG)

    def _byte(self) -> int:
        _require(self.at < self._end, _CUT)
        self.at += 1
        return self._data[self.at - 1]


_MISTYPED = "a field of a header or the footer has another type than it must"
_CUT = "a header or the footer is cut off"
_LONG = "a number in a header or the footer is not written in the shortest way"


def _code_of(wanted: Any) -> int:
    if isinstance(wanted, Mapping):
        return _STRUCT
    return _LIST if isinstance(wanted, list) else int(wanted)


# ---- The file -----------------------------------------------------------------------------------------------------


def is_made_again(path: Path) -> bool:
    """Whether Arrow, given the cells of a file, makes the very file: then it holds nothing else."""
    with path.open("rb") as stored, _explained(), pyarrow.parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        size = _group_size(len(file.schema_arrow))
        if any(n != size for n in groups[:-1]) or not all(0 < n <= size for n in groups):
            return False
        sink = _Compared(stored)
        plain = _plain_schema(file.schema_arrow)
        with pyarrow.parquet.ParquetWriter(
            pa.PythonFile(sink, "w"), plain, write_page_checksum=True, store_schema=False
        ) as writer:
            for i in range(len(groups)):
                cells = file.read_row_group(i).cast(plain).combine_chunks()
                writer.write_table(cells, size)
                if sink.differs:
                    break
        return not sink.differs and not stored.read(1)


def _group_size(n_columns: int) -> int:
    """Rows of every row group but the last: the power of two with at most 2**21 cells."""
    size = ROWS_OF_A_GROUP
    while size * n_columns > _GROUP_CELLS and size > _LEAST_GROUP:
        size //= 2
    return size


class _Compared:
    """A file to write to that compares what comes with what is stored."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        self.differs = self.closed = False
        self._n_bytes = 0

    def write(self, data: bytes) -> int:
        self.differs = self.differs or self._stored.read(len(data)) != bytes(data)
        self._n_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (NotAccountedError, MemoryError):
        raise
    except Exception:  # many kinds of errors, whose messages may quote cells
        problem = "it cannot be read as Parquet"
        raise NotAccountedError(problem) from None


def check_cells(path: Path, tokens: Mapping[str, Sequence[str]]) -> None:
    """Refuse cells that readers take for others: padded texts, texts that mean missing, -0.0, not-a-number."""
    with _explained(), pyarrow.parquet.ParquetFile(path) as file:
        for i in range(file.num_row_groups):
            for name in file.schema_arrow.names:
                values = file.read_row_group(i, columns=[name]).column(0).unique()
                problem = problem_of_values(values, tokens.get(name, ()))
                _require(not problem, f"'{name}' {problem}")


def problem_of_values(values: pa.Array, tokens: Sequence[str]) -> str:
    """Say what is wrong with distinct typed values, of which each must be written as itself; empty if nothing is."""
    known = values.drop_null()
    if is_text(known.type):
        texts = pc.cast(known, pa.large_string())
        if not pc.all(pc.equal(pc.utf8_trim_whitespace(texts), texts), min_count=0).as_py():
            return "has blanks around texts"
    elif pa.types.is_floating(known.type):
        numbers = np.asarray(known.cast(pa.float64()).to_numpy(zero_copy_only=False))
        if np.isnan(numbers).any() or (np.signbit(numbers) & (numbers == 0)).any():
            return "has numbers that are read as others (-0.0, not-a-number)"
    if (
        tokens
        and pc.any(pc.is_in(pc.cast(known, pa.string()), value_set=pa.array(tokens, pa.string())), min_count=0).as_py()
    ):
        return "spells missing values in more than one way"
    return ""


def account_for(path: Path) -> None:
    """Account for every byte of a file by its structure.

    Raises
    ------
    NotAccountedError
        If a byte belongs to nothing, or a structure says anything that the cells do not.
    """
    with (
        _explained(),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as parsed,
    ):
        _Accounting(data, parsed).account()


class _Accounting:
    """One file that is being accounted for."""

    def __init__(self, data: mmap.mmap, parsed: pyarrow.parquet.ParquetFile) -> None:
        self._data, self._parsed = data, parsed

    def account(self) -> None:
        data, size = self._data, len(self._data)
        _require(size >= 12 and data[:4] == _MAGIC == data[-4:], "it does not begin and end as Parquet does")
        (length,) = struct.unpack("<I", data[-8:-4])
        start = size - 8 - length
        _require(start >= 4, _CUT)
        reader = _Thrift(data, start, size - 8)
        footer = reader.struct(_FOOTER)
        _require(reader.at == size - 8, "bytes follow the footer's last field")
        self._check_footer(footer)
        at = 4
        indexes: list[tuple[int, int]] = []
        for i, group in enumerate(footer[4]):
            at = self._check_group(i, group, at, indexes)
        for place, n_bytes in sorted(indexes):
            _require(place == at, "there is a gap between pages, indexes and footer")
            at += n_bytes
        _require(at == start, "there is a gap between pages, indexes and footer")

    def _check_footer(self, footer: Struct) -> None:
        written_by = footer.get(6, b"")
        self._is_of_arrow = _ARROW.fullmatch(written_by) is not None
        _require(self._is_of_arrow or _HADOOP.fullmatch(written_by) is not None, "it names no writer that is known")
        root, *self._leaves = footer[2]
        _require(
            root
            == (
                {3: 0, 4: b"schema", 5: len(self._leaves)}
                if self._is_of_arrow
                else {4: b"spark_schema", 5: len(self._leaves)}
            )
            and all(1 in leaf and leaf.get(3) in (0, 1) and 5 not in leaf for leaf in self._leaves),
            "its columns are not a flat list, or the list has a name of its own",
        )
        _require(
            not self._is_of_arrow or all(leaf[3] == 1 for leaf in self._leaves),
            "a column states that it misses no value, which no release does",
        )
        _require(footer[1] == (2 if self._is_of_arrow else 1), "it states another version than its writer does")
        _require(
            footer.get(7) == [{1: {}}] * len(self._leaves), "it states another order of values than its writer does"
        )
        _require(footer[3] == sum(group[3] for group in footer[4]), "it states another number of rows than it has")
        self._check_metadata(footer.get(5, []))

    def _check_metadata(self, entries: list[Struct]) -> None:
        """Metadata is free text: only what the writer must write for these columns may be there."""
        free = "it holds metadata besides its columns"
        found = {entry[1]: entry.get(2, b"") for entry in entries}
        _require(len(found) == len(entries), free)
        if self._is_of_arrow:
            _require(not found, free)
            return
        _require(list(found) == [_SPARK_VERSION, _SPARK_SCHEMA], free)
        _require(re.fullmatch(rb"\d{1,2}\.\d{1,2}\.\d{1,2}", found[_SPARK_VERSION]) is not None, free)
        types = [
            (f.name, _spark_type(f.type), leaf[3] == 1)
            for f, leaf in zip(self._parsed.schema_arrow, self._leaves, strict=True)
        ]
        fields = [{"name": n, "type": t, "nullable": o, "metadata": {}} for n, t, o in types]
        expected_json = json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)
        _require(found[_SPARK_SCHEMA] == expected_json.encode(), free)

    def _check_group(self, i: int, group: Struct, at: int, indexes: list[tuple[int, int]]) -> int:
        odd = "a row group states other sizes or places than it has"
        chunks = group[1]
        _require(len(chunks) == len(self._leaves), odd)
        _require(group.get(5, at) == at and group.get(7, i) == i, odd)
        _require(group[2] == sum(chunk[3][6] for chunk in chunks), odd)
        _require(group.get(6) == sum(chunk[3][7] for chunk in chunks), odd)
        for chunk, leaf in zip(chunks, self._leaves, strict=True):
            values = self._parsed.read_row_group(i, columns=[leaf[4].decode()]).column(0).combine_chunks()
            _require(len(values) == group[3], odd)
            column = _Column(self._data, chunk, leaf, values, self._is_of_arrow)
            at = column.account(at, indexes)
        return at


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Names and types of the columns, all of which may miss values, without metadata, which fields can have too."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _spark_type(data_type: pa.DataType) -> str:
    """Name a type as Spark does in the metadata that it writes; empty for one that no release has."""
    kinds = pa.types
    if kinds.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if kinds.is_timestamp(data_type):
        # The 96 bits that Spark writes by default have no time zone in Arrow.
        return "timestamp" if data_type.tz is not None or data_type.unit == "ns" else "timestamp_ntz"
    names = {
        pa.int8(): "byte",
        pa.int16(): "short",
        pa.int32(): "integer",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.string(): "string",
    }
    return names.get(data_type, "")


@dataclass
class _Page:
    """A data page: where it is, its rows, and what it holds."""

    place: int
    n_bytes: int
    first_row: int
    values: pa.Array


class _Column:
    """One column of a row group, whose pages are walked from its first byte to its last."""

    def __init__(self, data: mmap.mmap, chunk: Struct, leaf: Struct, values: pa.Array, is_of_arrow: bool) -> None:
        self._data, self._chunk, self._leaf, self._values = data, chunk, leaf, values
        self._stated = chunk[3]
        self._is_of_arrow = is_of_arrow
        self._name = leaf[4].decode()
        self._pages: list[_Page] = []
        self._n_used = 0
        self._n_entries: int | None = None

    def _require(self, holds: bool, otherwise: str) -> None:
        _require(holds, f"'{self._name}' {otherwise}")

    def account(self, start: int, indexes: list[tuple[int, int]]) -> int:
        """Check all of it; gives where the next column begins, and adds where its indexes are."""
        stated = self._stated
        end = start + stated[7]
        self._require(end <= len(self._data), "ends after the file")
        self._require(self._chunk[2] == 0 and stated[3] == [self._leaf[4]] and stated[1] == self._leaf[1], _NOT_OWN)
        self._require(stated[4] in (_UNCOMPRESSED, _SNAPPY), "is compressed in a way that is not accounted for")
        at, n_rows, n_plain = start, 0, 0
        kinds: dict[tuple[int, int], int] = {}
        while at < end:
            header, payload, after, n_raw = self._page(at, end)
            n_plain += n_raw
            if header[1] == _DICTIONARY_PAGE:
                self._require(at == start and stated.get(11) == start, "has a dictionary where none must be")
                self._check_dictionary(header, payload)
                kind = (_DICTIONARY_PAGE, header[7][2])
            else:
                own = header[5]
                rows = self._values.slice(n_rows, own[1])
                self._require(len(rows) == own[1] > 0, _NOT_OWN)
                self._pages.append(_Page(at, after - at, n_rows, rows))
                self._check_data_page(own, payload, rows)
                n_rows += own[1]
                kind = (_DATA_PAGE, own[2])
            kinds[kind] = kinds.get(kind, 0) + 1
            at = after
        self._require(at == end and n_rows == len(self._values) == stated[5], _NOT_OWN)
        self._require(n_plain == stated[6], _NOT_OWN)
        self._require(stated[9] == self._pages[0].place, _NOT_OWN)
        self._require((11 in stated) == (self._n_entries is not None), _NOT_OWN)
        self._require(self._n_entries in (None, self._n_used), "has a dictionary with values that no row has")
        self._check_kinds(kinds)
        self._check_statistics(stated.get(12), self._values)
        self._check_sizes()
        self._check_indexes(indexes)
        return int(end)

    def _page(self, at: int, end: int) -> tuple[Struct, bytes, int, int]:
        """Read one page: header, content, where it ends, and its size before compression with the header."""
        reader = _Thrift(self._data, at, end)
        header = reader.struct(_PAGE)
        n_header = reader.at - at
        after = reader.at + header[3]
        self._require(header[3] >= 0 and after <= end, _NOT_OWN)
        self._require(
            sorted(header) == [1, 2, 3, 4, 7 if header[1] == _DICTIONARY_PAGE else 5],
            "has a page of a kind that is not known",
        )
        stored = bytes(self._data[reader.at : after])
        self._require(header[4] & 0xFFFFFFFF == zlib.crc32(stored), "has a page with a wrong checksum")
        if self._stated[4] == _UNCOMPRESSED:
            payload = stored
        else:
            payload = pa.Codec("snappy").decompress(stored, header[2], asbytes=True)
        self._require(len(payload) == header[2], _NOT_OWN)
        return header, payload, after, n_header + header[2]

    def _check_dictionary(self, header: Struct, payload: bytes) -> None:
        own = header[7]
        self._require(own[2] in (_PLAIN, _PLAIN_DICTIONARY) and not own.get(3, False), _NOT_OWN)
        entries = list(self._plain_values(payload))
        self._require(len(entries) == own[1], _NOT_OWN)
        self._require(len(set(entries)) == len(entries), "has a dictionary with a value twice")
        self._n_entries = len(entries)

    def _plain_values(self, payload: bytes) -> Iterator[bytes]:
        if self._leaf[1] != _BYTE_ARRAY:
            width = self._leaf[2] if self._leaf[1] == _FIXED else _WIDTHS.get(self._leaf[1], 0)
            self._require(width > 0 and len(payload) % width == 0, _NOT_OWN)
            yield from (payload[i : i + width] for i in range(0, len(payload), width))
            return
        at = 0
        while at < len(payload):
            self._require(at + 4 <= len(payload), _NOT_OWN)
            (n_bytes,) = struct.unpack_from("<I", payload, at)
            at += 4 + n_bytes
            self._require(at <= len(payload), _NOT_OWN)
            yield payload[at - n_bytes : at]

    def _check_data_page(self, own: Struct, payload: bytes, rows: pa.Array) -> None:
        self._require(own[3] == _RLE and own[4] == (_RLE if self._is_of_arrow else _BIT_PACKED), _NOT_OWN)
        self._check_statistics(own.get(5), rows)
        at = 0
        if self._leaf[3] == 1:
            (n_bytes,) = struct.unpack_from("<I", payload)
            at = 4 + n_bytes
            self._require(at <= len(payload), _NOT_OWN)
            levels = self._runs(payload, 4, at, 1, len(rows))
            self._require(np.array_equal(levels, np.asarray(rows.is_valid()).astype(np.uint32)), _NOT_OWN)
        n_values = len(rows) - rows.null_count
        if own[2] in _CODED:
            self._check_codes(payload, at, n_values)
        elif own[2] == _RLE and self._leaf[1] == _BOOLEAN:
            n_bytes = int(struct.unpack_from("<I", payload, at)[0])
            self._require(at + 4 + n_bytes == len(payload), _SPARE)
            self._runs(payload, at + 4, len(payload), 1, n_values)
        else:
            self._require(own[2] == _PLAIN, "has a page in an encoding that is not accounted for")
            self._check_plain(payload, at, rows.drop_null())

    def _check_plain(self, payload: bytes, at: int, known: pa.Array) -> None:
        n_bytes = len(payload) - at
        if self._leaf[1] == _BOOLEAN:
            self._require(n_bytes == -(-len(known) // 8), _SPARE)
            spare = -len(known) % 8
            self._require(not spare or payload[-1] >> (8 - spare) == 0, _SPARE)
        elif self._leaf[1] == _BYTE_ARRAY:
            self._require(n_bytes == 4 * len(known) + (pc.sum(pc.binary_length(known)).as_py() or 0), _SPARE)
        else:
            width = self._leaf[2] if self._leaf[1] == _FIXED else _WIDTHS[self._leaf[1]]
            self._require(n_bytes == width * len(known), _SPARE)

    def _check_codes(self, payload: bytes, at: int, n_values: int) -> None:
        """Check codes into the dictionary: entries must be used, for the first time in their own order."""
        self._require(self._n_entries is not None and at < len(payload), _NOT_OWN)
        width = payload[at]
        self._require(width <= 32, _NOT_OWN)
        codes = self._runs(payload, at + 1, len(payload), width, n_values)
        if len(codes):
            found, first = np.unique(codes, return_index=True)
            new = found >= self._n_used
            expected = np.arange(self._n_used, self._n_used + np.count_nonzero(new))
            in_order = np.array_equal(found[new], expected) and bool((np.diff(first[new]) > 0).all())
            self._require(
                in_order, "has a dictionary in another order than that of first use, or values that no row has"
            )
            self._n_used += int(np.count_nonzero(new))
        shortest = max(0, self._n_used - 1).bit_length()
        self._require(
            width in ({shortest, 1} if self._n_used == 1 else {shortest}), "has codes that are wider than they must be"
        )

    def _runs(self, payload: bytes, at: int, end: int, width: int, n_values: int) -> NDArray[np.uint32]:
        """Decode the hybrid of repeated and packed runs, which must end with the last byte."""
        found: list[NDArray[np.uint32]] = []
        n_left = n_values
        while n_left > 0:
            header = shift = 0
            while True:
                self._require(at < end and shift < 35, _NOT_OWN)
                header |= (payload[at] & 127) << shift
                at, shift = at + 1, shift + 7
                if payload[at - 1] < 128:
                    break
            self._require(header > 1 and (shift == 7 or payload[at - 1] > 0), _SPARE)
            n_bytes = (header >> 1) * width if header & 1 else -(-width // 8)
            self._require(at + n_bytes <= end, _NOT_OWN)
            if header & 1:
                bits = np.unpackbits(np.frombuffer(payload, np.uint8, n_bytes, at), bitorder="little")
                weights = np.uint32(1) << np.arange(width, dtype=np.uint32)
                run = (
                    bits.reshape(-1, width).astype(np.uint32) @ weights
                    if width
                    else np.zeros((header >> 1) * 8, np.uint32)
                )
                self._require(len(run) - n_left < 8 and not run[n_left:].any(), _SPARE)
            else:
                self._require(header >> 1 <= n_left, _SPARE)
                run = np.full(header >> 1, int.from_bytes(payload[at : at + n_bytes], "little"), dtype=np.uint32)
            found.append(run[:n_left])
            n_left -= len(found[-1])
            at += n_bytes
        self._require(at == end, _SPARE)
        return np.concatenate(found) if found else np.zeros(0, dtype=np.uint32)

    def _check_kinds(self, kinds: Mapping[tuple[int, int], int]) -> None:
        stated = self._stated
        pages = {(entry[1], entry[2]): entry[3] for entry in stated.get(13, [])}
        self._require(13 not in stated or (pages == kinds and len(stated[13]) == len(kinds)), _NOT_OWN)
        expected = {encoding for _, encoding in kinds} | {_RLE} | (set() if self._is_of_arrow else {_BIT_PACKED})
        self._require(sorted(stated[2]) == sorted(expected), _NOT_OWN)

    def _check_sizes(self) -> None:
        sizes = self._stated.get(16)
        if sizes is None:
            return
        n_missing = self._values.null_count
        levels = [n_missing, len(self._values) - n_missing] if self._leaf[3] == 1 else []
        self._require(sizes.get(2, []) == [] and sizes.get(3, levels) == levels, _NOT_OWN)
        if 1 in sizes:
            is_text = self._leaf[1] == _BYTE_ARRAY
            self._require(is_text and sizes[1] == (pc.sum(pc.binary_length(self._values)).as_py() or 0), _NOT_OWN)

    def _check_statistics(self, stated: Struct | None, rows: pa.Array) -> None:
        if stated is None:
            return
        odd = "has statistics that are not those of its values"
        self._require(stated.get(3, rows.null_count) == rows.null_count, odd)
        self._require(stated.get(7, True) and stated.get(8, True), odd)
        limits = [key for key in (1, 2, 5, 6) if key in stated]
        if not limits:
            self._require(7 not in stated and 8 not in stated, odd)
            return
        self._require({5, 6} <= set(limits) and len(limits) in (2, 4), odd)
        least, largest = self._limits(rows)
        for key, allowed in ((1, largest), (2, least), (5, largest), (6, least)):
            self._require(key not in stated or stated[key] in allowed, odd)

    def _limits(self, rows: pa.Array) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """Smallest and largest value as the file may write them; nothing where there is none or they have no order."""
        least, largest = self._extremes(rows)
        return self._written(least), self._written(largest)

    def _extremes(self, rows: pa.Array) -> tuple[Any, Any]:
        known = rows.drop_null()
        if not len(known) or self._leaf[1] == _INT96:
            return None, None
        if pa.types.is_floating(known.type):
            known = known.filter(pc.invert(pc.is_nan(known)))
        if pa.types.is_temporal(known.type):
            known = known.view(pa.int32() if known.type.bit_width == 32 else pa.int64())
        found = pc.min_max(known)
        return found["min"].as_py(), found["max"].as_py()

    def _written(self, value: Any) -> tuple[bytes, ...]:
        if value is None:
            return ()
        if isinstance(value, str):
            return (value.encode(),)
        if isinstance(value, bool):
            return (bytes([value]),)
        if isinstance(value, float):
            form = "<f" if self._leaf[1] == _FLOAT else "<d"
            return (struct.pack(form, 0.0), struct.pack(form, -0.0)) if value == 0 else (struct.pack(form, value),)
        if isinstance(value, Decimal):
            value = int(value.scaleb(self._leaf.get(7, 0)))
            if self._leaf[1] == _FIXED:
                return (value.to_bytes(self._leaf[2], "big", signed=True),)
        width = _WIDTHS[self._leaf[1]]
        return ((value % (1 << 8 * width)).to_bytes(width, "little"),)

    def _check_indexes(self, indexes: list[tuple[int, int]]) -> None:
        """Check the index of pages and that of their values, which Hadoop's library writes behind all pages."""
        odd = "has an index that is not that of its pages"
        for place, length, spec in ((6, 7, _COLUMN_INDEX), (4, 5, _OFFSET_INDEX)):
            self._require((place in self._chunk) == (length in self._chunk), odd)
            if place not in self._chunk:
                continue
            at, n_bytes = self._chunk[place], self._chunk[length]
            self._require(at >= 4 and 0 < n_bytes <= len(self._data) - at, odd)
            reader = _Thrift(self._data, at, at + n_bytes)
            found = reader.struct(spec)
            self._require(reader.at == at + n_bytes, odd)
            indexes.append((at, n_bytes))
            if spec is _OFFSET_INDEX:
                self._check_places(found, odd)
            else:
                self._check_limits_of_pages(found, odd)

    def _check_places(self, found: Struct, odd: str) -> None:
        places = [{1: page.place, 2: page.n_bytes, 3: page.first_row} for page in self._pages]
        self._require(found[1] == places, odd)
        if 2 in found:
            self._require(self._leaf[1] == _BYTE_ARRAY, odd)
            sizes = [pc.sum(pc.binary_length(page.values)).as_py() or 0 for page in self._pages]
            self._require(found[2] == sizes, odd)

    def _check_limits_of_pages(self, found: Struct, odd: str) -> None:
        pages = [page.values for page in self._pages]
        is_empty = [rows.null_count == len(rows) for rows in pages]
        self._require(found[1] == is_empty and len(found[2]) == len(found[3]) == len(pages), odd)
        self._require(found.get(5, [rows.null_count for rows in pages]) == [rows.null_count for rows in pages], odd)
        self._require(6 not in found and 7 not in found, odd)
        for rows, least, largest, empty in zip(pages, found[2], found[3], is_empty, strict=True):
            if empty:
                self._require(least == largest == b"", odd)
                continue
            smallest, biggest = self._limits(rows)
            self._require(least in smallest or least in map(_cut_text, smallest), odd)
            self._require(largest in biggest or largest in map(_raised_text, biggest), odd)
        self._require(found[4] == _order_of([self._extremes(rows) for rows in pages]), odd)


_NOT_OWN = "has a page or an entry in the footer that does not fit its values"
_SPARE = "has a page that is longer than its values"


def _order_of(limits: Sequence[tuple[Any, Any]]) -> int:
    """Say whether smallest and largest values of pages ascend (1), descend (2) or neither (0)."""
    known = [pair for pair in limits if pair[0] is not None]
    pairs = list(itertools.pairwise(known))
    if all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairs):
        return 1
    return 2 if all(a[0] >= b[0] and a[1] >= b[1] for a, b in pairs) else 0


def _cut_text(text: bytes) -> bytes:
    """Cut a text at the last whole character of the bytes that an index holds."""
    return text[:_INDEX_BYTES].decode(errors="ignore").encode()


def _raised_text(text: bytes) -> bytes:
    """Cut a text and raise its last character that can be, so that it is not below the whole text."""
    if len(text) <= _INDEX_BYTES:
        return text
    shown = _cut_text(text).decode()
    for i in range(len(shown) - 1, -1, -1):
        code = ord(shown[i]) + 1
        if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF and len(chr(code).encode()) == len(shown[i].encode()):
            return (shown[:i] + chr(code)).encode()
    return text
