"""Parquet files, through pyarrow."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import InputError
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.coding import Table
from sfumato.table.io.bytes import StoredBytes, UnpackingLimit, unzipped, with_head
from sfumato.table.io.formats import Parsed

_MAGIC = b"PAR1"
_LEAST_WIDTH = 4  # a code, the offset of a text, or the value
_WIDTHS = {"INT64": 8, "DOUBLE": 8, "INT96": 12}
BLOCK_ROWS = 1 << 18
ROWS_OF_A_GROUP = 1 << 20
"""Most rows of a row group."""
_CELLS_OF_A_GROUP = 1 << 21
_FEWEST_ROWS_OF_A_GROUP = 1 << 14
_BUFFER_BYTES = 1 << 18


def rows_of_a_group(n_columns: int) -> int:
    """Rows that are written into one row group: half as many for twice the columns, since a group is held in memory.

    Examples
    --------
    >>> rows_of_a_group(2), rows_of_a_group(20), rows_of_a_group(10_000)
    (1048576, 65536, 16384)
    """
    fitting = _CELLS_OF_A_GROUP // max(n_columns, 1)
    return min(ROWS_OF_A_GROUP, max(_FEWEST_ROWS_OF_A_GROUP, 1 << max(fitting.bit_length() - 1, 0)))


def parse_parquet(stored: StoredBytes, coder: ColumnCoder) -> Parsed:
    """Parse a Parquet file; columns keep their types."""
    head, chunks = with_head(unzipped(stored.first_pass(), stored), len(_MAGIC))
    if head != _MAGIC:
        problem = "is empty" if not head else "is not a Parquet file"
        raise InputError(problem, path=stored.name, hint="name its format" if head else "", remedy=("format",))
    deque(chunks, maxlen=0)  # to the end, for the hash
    cells = _load(stored)
    stored.ensure_unchanged()
    if cells.num_rows == 0 or cells.num_columns == 0:
        problem = "holds no data rows"
        raise InputError(problem, path=stored.name)
    names = check_names(cells.column_names, place=stored.name)
    columns, kinds = {}, {}
    for name, column in zip(names, cells.columns, strict=True):
        columns[name], kinds[name] = coder.code(name, column)
    return Parsed(columns, kinds, cells.num_rows)


def _load(stored: StoredBytes) -> pa.Table:
    with explained_parquet(stored.name):
        if stored.path_when_large is not None:
            data = pa.OSFile(str(stored.path_when_large))
        else:
            data = pa.BufferReader(b"".join(unzipped(stored.again(), stored)))
        file = pyarrow.parquet.ParquetFile(data, page_checksum_verification=True)
        check_unpacking([file.metadata], stored.name, replace(stored.limit, n_stored=data.size()))
        cells = file.read()
        cells.validate(full=True)
    return cells


def check_unpacking(files: Iterable[pyarrow.parquet.FileMetaData], name: str, limit: UnpackingLimit) -> None:
    """Refuse files that say of themselves that their columns take too much memory.

    They are read by what they say: a row that is not announced is not read, and one that is, takes its place, though
    a million of them may be stored in a few bytes.

    Raises
    ------
    InputError
        If it is too much.
    """
    limit.check(sum(map(_unpacked_bytes, files)), name, hint="read it in blocks, if it is as large as that")


def _unpacked_bytes(metadata: pyarrow.parquet.FileMetaData) -> int:
    total = 0
    widths = [_WIDTHS.get(metadata.schema.column(i).physical_type, _LEAST_WIDTH) for i in range(metadata.num_columns)]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stored = (group.column(i).total_uncompressed_size for i in range(group.num_columns))
        total += sum(max(size, width * group.num_rows) for size, width in zip(stored, widths, strict=True))
    return total


@dataclass(frozen=True, repr=False)
class ParquetBlocks:
    """Rows of a Parquet file, block by block, as often as asked; texts come coded."""

    path: Path
    names: list[str]
    cells_at_once: int | None = None

    @classmethod
    def of(cls, path: Path, place: str, cells_at_once: int | None = None) -> ParquetBlocks:
        """Look at the columns of a file, of which so many cells are read at once."""
        limit = UnpackingLimit.of(path.stat().st_size, in_blocks=True)
        with explained_parquet(place), pyarrow.parquet.ParquetFile(path) as file:
            n_rows, own_names = file.metadata.num_rows, file.schema_arrow.names
            check_unpacking([file.metadata], place, limit)
        if n_rows == 0 or not own_names:
            problem = "holds no data rows"
            raise InputError(problem, path=place)
        check_names(own_names, place=place)
        return cls(path, own_names, cells_at_once)

    @property
    def _rows_at_once(self) -> int:
        """Rows of a block, by all columns, so that blocks of some columns and of others have the same rows."""
        if self.cells_at_once is None:
            return BLOCK_ROWS
        return max(1, min(BLOCK_ROWS, self.cells_at_once // len(self.names)))

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        wanted = [self.names[i] for i in positions]
        with explained_parquet(str(self.path)), pyarrow.parquet.ParquetFile(self.path) as file:
            texts = [f.name for f in file.schema_arrow if f.name in wanted and pa.types.is_string(f.type)]
        with explained_parquet(str(self.path)):
            opened = pyarrow.parquet.ParquetFile(
                self.path,
                page_checksum_verification=True,
                read_dictionary=texts,
                pre_buffer=False,  # else all that was read stays in memory
                buffer_size=_BUFFER_BYTES,  # else a column of a whole row group is read at once
            )
        with opened:
            batches = opened.iter_batches(batch_size=self._rows_at_once, columns=wanted)
            while True:
                with explained_parquet(str(self.path)):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    batch.validate(full=True)
                yield [batch.column(name) for name in wanted]


@contextmanager
def explained_parquet(place: str) -> Iterator[None]:
    """Say in one line, without a cell, that a file is damaged."""
    try:
        yield
    except (MemoryError, InputError):
        raise
    except Exception:  # many kinds of errors, whose messages may quote cells
        problem = "cannot be read as a Parquet file"
        raise InputError(problem, path=place, hint="is it complete?") from None


def write_parquet(table: Table, file: BinaryIO) -> None:
    """Write a table column by column, with checksums and without any metadata of other libraries."""
    cells = table.to_arrow()
    with open_parquet(file, cells.schema) as writer:
        writer.write_table(cells, rows_of_a_group(cells.num_columns))


def open_parquet(file: BinaryIO, schema: pa.Schema) -> pyarrow.parquet.ParquetWriter:
    """Open a file for tables of a schema; :func:`rows_of_a_group` at a time give the bytes of all at once.

    Arrow's own copy of the schema is left out: it is metadata that the columns do not need.
    """
    return pyarrow.parquet.ParquetWriter(file, schema, write_page_checksum=True, store_schema=False)


# Folders of Parquet files that are one table together, as clusters write them.


_HIDDEN = ("_", ".")
_IN_COPY = "._COPYING_"
_CRC_HEADER, _CRC_BYTES, _CRC_BLOCK = 8, 4, 512


@dataclass(frozen=True)
class StoredParquet:
    """A Parquet file, or a folder of such, with the hash that it had when it was opened.

    Parameters
    ----------
    path : Path
    sha256 : str
        Of a file its SHA-256; of a folder see :func:`folder_sha256`.
    """

    path: Path
    sha256: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> StoredParquet:
        """Hash what is at a path.

        Raises
        ------
        InputError
            If nothing is there, or it cannot be read.
        """
        return cls(Path(path), _sha256(Path(path)))

    def ensure_unchanged(self) -> None:
        """Refuse bytes that are others than when it was opened."""
        if _sha256(self.path) != self.sha256:
            problem = "changed while it was being read"
            raise InputError(problem, path=self.path, hint="read it again when no program is writing to it")

    @property
    def files(self) -> list[Path]:
        """Files that hold the rows."""
        return part_files(self.path) if self.path.is_dir() else [self.path]

    def rows_of_files(self) -> list[tuple[Path, int]]:
        """Files with the number of rows that each says of itself, in the order in which they are read."""
        return [(file, _n_rows(file)) for file in self.files]

    def n_rows(self) -> int:
        """Count rows by what the files say of themselves."""
        return sum(n_rows for _, n_rows in self.rows_of_files())

    def check_unpacking(self, *, in_blocks: bool) -> None:
        """Refuse files that unpack to too much, see :mod:`sfumato.table.io.bytes`."""
        files = self.files
        limit = UnpackingLimit.of(sum(path.stat().st_size for path in files), in_blocks=in_blocks)
        check_unpacking(map(_metadata, files), str(self.path), limit)

    def check_columns(self) -> pa.Schema:
        """Return the columns, and refuse files whose columns are not all the same.

        A cluster would take those that lack for missing cells.
        """
        files = self.files
        first = _arrow_schema(files[0])
        check_names(first.names, place=str(self.path))
        for file in files[1:]:
            if not _arrow_schema(file).equals(first):
                problem = "its files do not have the same columns, in the same order and of the same types"
                raise InputError(problem, path=self.path, hint="write them again as one table")
        return first


@dataclass(frozen=True, repr=False)
class FolderBlocks:
    """Rows of the files of a folder, one file after the other, block by block, as often as asked."""

    files: tuple[ParquetBlocks, ...]

    @classmethod
    def of(cls, stored: StoredParquet, cells_at_once: int | None = None) -> FolderBlocks:
        """Look at the columns of a folder's files, of which so many cells are read at once.

        Raises
        ------
        InputError
            If there are no rows, or the files have different columns.
        """
        stored.check_columns()
        files = [path for path in part_files(stored.path) if _n_rows(path)]
        if not files:
            problem = "holds no data rows"
            raise InputError(problem, path=stored.path)
        return cls(tuple(ParquetBlocks.of(path, str(path), cells_at_once) for path in files))

    @property
    def names(self) -> list[str]:
        """Names of the columns as they are stored."""
        return self.files[0].names

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        for file in self.files:
            yield from file(positions)


def parse_folder(stored: StoredParquet, coder: ColumnCoder) -> Parsed:
    """Parse all files of a folder as one table; columns keep their types."""
    blocks = FolderBlocks.of(stored)
    stored.check_unpacking(in_blocks=False)
    names = check_names(blocks.names, place=str(stored.path))
    cells = zip(*blocks(range(len(names))), strict=True)
    columns, kinds = {}, {}
    for name, chunks in zip(names, cells, strict=True):
        columns[name], kinds[name] = coder.code(name, pa.chunked_array([_plain(chunk) for chunk in chunks]))
    stored.ensure_unchanged()
    return Parsed(columns, kinds, columns[names[0]].n_rows)


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether there is a folder at a path; no for what is no path."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def part_files(folder: Path) -> list[Path]:
    """Files of a folder that hold rows, sorted by their names; those that begin with ``_`` or ``.`` do not.

    Raises
    ------
    InputError
        If there is none, the folder cannot be read, or it holds folders: their names would be read as columns by some.
    """
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith(_HIDDEN))
        are_files = all(path.is_file() for path in found)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise InputError(problem, path=folder) from None
    if not found:
        problem = "is a folder without Parquet files"
        raise InputError(problem, path=folder)
    if not are_files:
        problem = "holds a folder, or something else that is not a file"
        hint = "put the Parquet files of the table side by side in one folder, with all columns in the files"
        raise InputError(problem, path=folder, hint=hint)
    if any(path.name.endswith(_IN_COPY) for path in found):
        problem = f"holds a file whose name ends in {_IN_COPY}, as those that are still being copied"
        raise InputError(problem, path=folder, hint="wait until it is copied, or remove it")
    return found


def refuse_more_than_parts(path: str | os.PathLike[str]) -> None:
    """Refuse a released folder with more than its part files in it: nobody would look at what else is given away.

    An empty ``_SUCCESS`` may stand there, and the checksums that Hadoop puts beside files (``.NAME.crc``), if they are
    no longer than such are. Nothing is said of what is no folder.

    Raises
    ------
    InputError
        If there is more.
    """
    folder = Path(path)
    if not is_folder(folder):
        return
    sizes = {file.name: file.stat().st_size for file in part_files(folder)}
    success = folder / "_SUCCESS"
    if success.is_file() and not success.stat().st_size:
        sizes[success.name] = 0
    allowed = {f".{name}.crc": _CRC_HEADER + _CRC_BYTES * -(-size // _CRC_BLOCK) for name, size in sizes.items()}
    for entry in folder.iterdir():
        is_checksum = entry.name in allowed and entry.is_file() and entry.stat().st_size <= allowed[entry.name]
        if entry.name not in sizes and not is_checksum:
            problem = "is a released folder that holds more than its part files"
            hint = "look for names that begin with _ or . (ls -A), and remove what is not to be given away"
            raise InputError(problem, path=folder, hint=hint)


def folder_sha256(folder: Path) -> str:
    """SHA-256 over one line for each file: its own SHA-256, two blanks, its name; sorted by name.

    It is what ``sha256sum * | sha256sum`` gives in the folder.
    """
    digest = hashlib.sha256()
    for path in part_files(folder):
        digest.update(f"{_file_sha256(path)}  {path.name}\n".encode())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    return folder_sha256(path) if path.is_dir() else _file_sha256(path)


def _file_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        problem = "does not exist"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = f"cannot be read ({error.strerror if isinstance(error, OSError) else 'not a path'})"
    raise InputError(problem, path=path)


def _plain(chunk: pa.Array) -> pa.Array:
    return chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


def _n_rows(path: Path) -> int:
    return int(_metadata(path).num_rows)


def _metadata(path: Path) -> pyarrow.parquet.FileMetaData:
    with explained_parquet(str(path)):
        return pyarrow.parquet.read_metadata(path)


def _arrow_schema(path: Path) -> pa.Schema:
    with explained_parquet(str(path)):
        return pyarrow.parquet.read_schema(path).remove_metadata()
