"""Every byte of a released file is accounted for: nothing in it but the cells and what its format needs to hold them.

What a reader skips (blanks, line ends, quotes, header fields, metadata, unused entries) could carry row numbers or raw
values past all other checks. So the audit opens the file itself, with code of its own, and judges its very bytes:

- delimited and libsvm text: by its canonical form, see :mod:`sfumato.audit.bytes.text`;
- gzip: fixed header, one member, nothing after it, the compressed stream made again and compared;
- JSON lines: by their canonical form, see :mod:`sfumato.audit.bytes.json_lines`;
- Parquet and workbooks: every part must be one that the format needs, and the file is made again and compared;
- SPSS, Stata and SAS transport: the file is made again from its cells and the stated labels, and compared.

What depends on a writer that is not at hand is an exception of the audit's end, not a silence.
"""

from __future__ import annotations

import hashlib
import html
import io
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from sfumato.audit.bytes.json_lines import JsonLinesForm
from sfumato.audit.bytes.parquet import NotAccountedError, account_for, check_cells, is_made_again
from sfumato.audit.bytes.statistics_files import FORMATS as STATISTICS_FORMATS
from sfumato.audit.bytes.statistics_files import account_for_statistics
from sfumato.audit.bytes.text import BLOCK_BYTES, Gunzipped, TextForm, problem_in_libsvm
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.reading.spelling import double_text
from sfumato.errors import InputError
from sfumato.manifest_schema import VERSION
from sfumato.schema import Role

# Every byte of an Excel workbook is accounted for: one sheet of cells, and the fixed parts that every workbook has.
#
# The cells are read from the sheet's own XML by a strict grammar, and a workbook is made of them by our own calls of
# the library that writes such files. If that is the very file, it holds nothing but its cells. Else, with another
# version of the library, its archive and its parts are looked at one by one.


_SHEET, _STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
_MEMBERS = (
    "[Content_Types].xml",
    "_rels/.rels",
    "xl/_rels/workbook.xml.rels",
    _SHEET,
    "xl/workbook.xml",
    _STRINGS,
    "xl/styles.xml",
    "xl/theme/theme1.xml",
    "docProps/core.xml",
    "docProps/app.xml",
)
_MOST_BYTES = 4 << 30
_OWNER_ONLY = 0o600 << 16
_FIRST_DAY = 0x21  # 1980-01-01 in an archive
_FIXED_DATE = datetime(2000, 1, 1)
_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}

_ROW = re.compile(r'<row r="([1-9]\d*)" spans="1?\d+:\d+">((?:<c [^>]*><v>[^<]*</v></c>)+)</row>')
_CELL = re.compile(r'<c r="([A-Z]{1,3})([1-9]\d*)"( s="1")?(?: t="(s|b)")?><v>([^<]*)</v></c>')
_STRING = re.compile(r'<si><t(?: xml:space="preserve")?>([^<]*)</t></si>')
_ESCAPED = re.compile(r"_x([0-9A-F]{4})_")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(E[+-]\d+)?")

Value = str | float | bool


@dataclass(frozen=True)
class Cell:
    """A cell: its place from 0, what it holds, and whether a number is shown as a date."""

    row: int
    column: int
    value: Value
    is_date: bool = False


def account_for_workbook(content: bytes, tokens: Sequence[Sequence[str]]) -> bool:
    """Account for every byte of a workbook, and say whether its cells make the very file here.

    ``tokens`` are for each column the texts that mean "missing".

    Raises
    ------
    NotAccountedError
        If the archive or one of its parts holds more than the cells and what every workbook has.
    """
    try:
        _check_archive(content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in _MEMBERS}
        cells = list(_cells(parts))
        _check_columns(cells, tokens)
        if _made(cells) == content:
            return True
        _check_fixed_parts(parts)
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, IndexError, struct.error, RuntimeError):
        problem = "it is not an archive of a workbook"
        raise NotAccountedError(problem) from None
    return False


def _check_archive(content: bytes) -> None:
    """Lay the archive out anew from its compressed parts, and compare."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if tuple(entry.filename for entry in entries) != _MEMBERS or sum(e.file_size for e in entries) > _MOST_BYTES:
            problem = "it has other parts than a workbook of one sheet"
            raise NotAccountedError(problem)
        laid_out, listing = io.BytesIO(), io.BytesIO()
        for entry in entries:
            start = entry.header_offset + 30 + len(entry.filename)
            stored = content[start : start + entry.compress_size]
            plain = archive.read(entry)
            name = entry.filename.encode()
            sizes = struct.pack(
                "<HHHHIIIHH", 0, 8, 0, _FIRST_DAY, zlib.crc32(plain), len(stored), len(plain), len(name), 0
            )
            listing.write(b"PK\x01\x02" + struct.pack("<BBH", 20, 3, 20) + sizes)
            listing.write(struct.pack("<HHHII", 0, 0, 0, _OWNER_ONLY, laid_out.tell()) + name)
            laid_out.write(b"PK\x03\x04" + struct.pack("<H", 20) + sizes + name + stored)
    n, at, size = len(_MEMBERS), laid_out.tell(), listing.tell()
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, size, at, 0)
    if laid_out.getvalue() + listing.getvalue() + end != content:
        problem = "its archive holds more than its parts"
        raise NotAccountedError(problem)


def _cells(parts: Mapping[str, bytes]) -> Iterator[Cell]:
    strings = _strings(parts[_STRINGS].decode())
    sheet = parts[_SHEET].decode()
    start, end = sheet.index("<sheetData>") + len("<sheetData>"), sheet.index("</sheetData>")
    odd = "its sheet is not a plain list of cells"
    at, n_used, last_row = start, 0, 0
    for row in _ROW.finditer(sheet, start, end):
        if row.start() != at or int(row[1]) != last_row + 1:  # readers pass over blank rows
            raise NotAccountedError(odd)
        at, last_row = row.end(), int(row[1])
        within, last_column = row.start(2), -1
        for cell in _CELL.finditer(sheet, row.start(2), row.end(2)):
            column = _column(cell[1])
            if cell.start() != within or int(cell[2]) != last_row or column <= last_column:
                raise NotAccountedError(odd)
            within, last_column = cell.end(), column
            value: Value
            if cell[4] == "s":
                if int(cell[5]) > n_used:
                    problem = "its texts are not listed in the order of first use"
                    raise NotAccountedError(problem)
                n_used = max(n_used, int(cell[5]) + 1)
                value = strings[int(cell[5])]
            elif cell[4] == "b":
                value = {"0": False, "1": True}[cell[5]]
            elif _NUMBER.fullmatch(cell[5]) and math.isfinite(float(cell[5])):
                value = float(cell[5])
            else:
                raise NotAccountedError(odd)
            yield Cell(last_row - 1, column, value, cell[3] is not None)
        if within != row.end(2):
            raise NotAccountedError(odd)
    if at != end:
        raise NotAccountedError(odd)
    if n_used != len(strings):
        problem = "it lists texts that no cell has"
        raise NotAccountedError(problem)


def _strings(part: str) -> list[str]:
    start = part.index(">", part.index("<sst ")) + 1
    found, at = [], start
    for match in _STRING.finditer(part, start):
        if match.start() != at:
            break
        at = match.end()
        found.append(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(match[1])))
    if part[at:] != "</sst>" or len(set(found)) != len(found):
        problem = "its texts are not a plain list"
        raise NotAccountedError(problem)
    return found


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number - 1


def _check_columns(cells: Sequence[Cell], tokens: Sequence[Sequence[str]]) -> None:
    """Refuse what readers take for the same: tokens beside missing cells, padded texts, numbers beside their texts.

    A missing value is no cell, but a row without any value has a token in its first one.
    """
    n_cells = Counter(cell.row for cell in cells)
    types: dict[int, tuple[type, bool]] = {}
    for cell in cells:
        problem = ""
        own = tokens[cell.column] if cell.row and cell.column < len(tokens) else ()
        is_mark = cell.column == 0 and n_cells[cell.row] == 1 and cell.value == next((t for t in own if t), "")
        stored = (type(cell.value), cell.is_date)
        if isinstance(cell.value, str) and cell.value != cell.value.strip():
            problem = "there are blanks around a text"
        elif is_mark and cell.row:
            continue
        elif not isinstance(cell.value, bool) and _text(cell.value) in own:
            problem = "it spells missing values in more than one way"
        elif stored != (types.setdefault(cell.column, stored) if cell.row else (str, False)):
            problem = "a column mixes texts, numbers, dates and truth values, or its name is not a text"
        if problem:
            raise NotAccountedError(problem)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else double_text(float(value))


def _made(cells: Sequence[Cell]) -> bytes:
    """Write a workbook of cells, with the settings that every released one has."""
    import xlsxwriter

    content = io.BytesIO()
    workbook = xlsxwriter.Workbook(content, _OPTIONS)
    workbook.set_properties({"created": _FIXED_DATE})
    sheet = workbook.add_worksheet("table")
    as_date = workbook.add_format({"num_format": "yyyy-mm-dd"})
    for cell in cells:
        if isinstance(cell.value, str):
            sheet.write_string(cell.row, cell.column, cell.value)
        elif isinstance(cell.value, bool):
            sheet.write_boolean(cell.row, cell.column, cell.value)
        else:
            sheet.write_number(cell.row, cell.column, cell.value, as_date if cell.is_date else None)
    workbook.close()
    return content.getvalue()


def _check_fixed_parts(parts: Mapping[str, bytes]) -> None:
    """Look, in parts that another version of the library wrote, for what no release has."""
    book = parts["xl/workbook.xml"]
    has_more = book.count(b"<sheet ") != 1 or b"definedName" in book or b" state=" in book
    if has_more or any(b"<!--" in part or part.count(b"<?") != 1 for part in parts.values()):
        problem = "it has hidden sheets, names or comments"
        raise NotAccountedError(problem)


NAME = "bytes"
_SUFFIXES = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "csv.gz": (".csv.gz",),
    "tsv.gz": (".tsv.gz",),
    "parquet": (".parquet", ".pq"),
    "excel": (".xlsx",),
    "libsvm": (".svm", ".libsvm", ".svmlight"),
    "jsonl": (".jsonl", ".ndjson"),
    "jsonl.gz": (".jsonl.gz", ".ndjson.gz"),
    **{form: (f".{form}",) for form in STATISTICS_FORMATS},
}
_STANDARD_INPUT = "-"
_HADOOP_BYTES = 512
_HADOOP_CHECKSUMS = b"crc\0" + _HADOOP_BYTES.to_bytes(4, "big")

Found = Iterator[Check | Unchecked]
Tokens = Mapping[str, tuple[str, ...]]
"""For each column the texts that mean "missing"."""


def check_file(path: str | Path, claims: Claims, sha256: str | None) -> Found:
    """Account for every byte of a released file or folder.

    Parameters
    ----------
    sha256 : str or None
        Hash of the bytes that were read as the table: these and no others must be judged here.

    Raises
    ------
    InputError
        If the file cannot be read, or changed since it was read as a table.
    """
    if str(path) == _STANDARD_INPUT:
        message = "whether the released file holds nothing but its cells: standard input can be read only once"
        yield Unchecked(NAME, message, "name the file")
        return
    name, form = (claims.output_name or "").lower(), claims.output_format
    if not name.endswith(_SUFFIXES.get(form, ())):
        yield _judged("its name does not fit the stated format")
        return
    tokens = {c.name: claims.missing_tokens if c.missing is None else c.missing for c in claims.columns}
    try:
        if form == "parquet":
            yield from _in_parquet(Path(path), claims, tokens, sha256)
        elif form == "excel":
            yield from _in_workbook(Path(path), claims, tokens, sha256)
        elif form in STATISTICS_FORMATS:
            yield from _in_statistics_file(Path(path), claims, tokens, sha256)
        else:
            yield from _in_text(Path(path), claims, tokens, sha256)
    except OSError as exc:
        if isinstance(exc, InputError):
            raise
        problem = f"cannot be read ({exc.strerror})"
        raise InputError(problem, path=path) from None


def _in_text(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    chunks = _HashedChunks(path)
    if claims.output_format == "libsvm":
        yield _judged(problem_in_libsvm(chunks, claims.names(Role.QUASI_IDENTIFIER)))
    else:
        delimiter = "\t" if claims.output_format.startswith("tsv") else ","
        form: TextForm | JsonLinesForm = TextForm(claims.names(), tuple(tokens.values()), delimiter)
        if claims.output_format.startswith("jsonl"):
            form = JsonLinesForm(claims.names(), tuple(tokens.values()))
        if claims.output_format.endswith(".gz"):
            yield from _in_gzip(chunks, form, claims)
        else:
            yield _judged(form.problem(chunks))
    chunks.finish(sha256)


def _in_gzip(chunks: _HashedChunks, form: TextForm | JsonLinesForm, claims: Claims) -> Found:
    content = Gunzipped(chunks)
    unzipped = iter(content)
    problem = form.problem(unzipped)
    for _ in unzipped:  # to the end also where rows were refused: a damaged archive is said first
        pass
    problem = content.problem or problem
    if not problem and not content.is_same_stream and _is_recorded(claims, zlib=zlib.ZLIB_RUNTIME_VERSION):
        problem = "the compressed stream is not the one that the recorded zlib makes of its content"
    yield _judged(problem, by_structure=not content.is_same_stream)
    if not problem and not content.is_same_stream:
        message = "whether the compressed stream carries more than its content: another version of zlib wrote it"
        yield Unchecked("compression", message, "audit it with the zlib version that the manifest names")


def _in_parquet(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    is_folder = path.is_dir()
    parts = [path]
    try:
        if is_folder:
            parts = _parts(path)
        for part in parts:
            check_cells(part, tokens)
        is_same = not is_folder and is_made_again(path)
        for part in parts if not is_same else ():
            account_for(part)
    except NotAccountedError as exc:
        yield _judged(str(exc))
        return
    is_known = not is_folder and _is_recorded(claims, sfumato=version("sfumato"), pyarrow=version("pyarrow"))
    yield from _made_again(is_same, is_known, "" if is_folder else "sfumato and pyarrow")
    ensure_same(path, sha256, _folder_sha256(parts) if is_folder else _file_sha256(path))


def _in_workbook(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    content = path.read_bytes()
    try:
        is_same = account_for_workbook(content, tuple(tokens.values()))
    except NotAccountedError as exc:
        yield _judged(str(exc))
    else:
        installed = {name: version(name) for name in ("sfumato", "xlsxwriter")}
        is_known = _is_recorded(claims, zlib=zlib.ZLIB_RUNTIME_VERSION, **installed)
        yield from _made_again(is_same, is_known, "sfumato, xlsxwriter and zlib")
    ensure_same(path, sha256, hashlib.sha256(content).hexdigest())


def _in_statistics_file(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    try:
        account_for_statistics(path, claims, tokens)
    except NotAccountedError as exc:
        yield _judged(str(exc))
    else:
        yield _judged("")
    ensure_same(path, sha256, _file_sha256(path))


def _made_again(is_same: bool, is_known: bool, writers: str) -> Found:
    """Judge a file whose structure is accounted for by whether its writer, if at hand, makes the same bytes."""
    if not is_same and is_known:
        yield _judged(f"the recorded versions of {writers} make other bytes of its cells")
        return
    yield _judged("", by_structure=not is_same)
    if not is_same:
        message = (
            "whether the writer's choices (pages, runs, compression) carry more than the cells: every structure of the "
            "file is accounted for, but its writer is not at hand to make it again"
        )
        yield Unchecked("writer", message, f"audit it with the versions of {writers} that it names" if writers else "")


def _is_recorded(claims: Claims, **installed: str) -> bool:
    """Whether the manifest names the very versions that are installed."""
    return all(claims.versions.get(name) == _numbers(found) for name, found in installed.items())


def _numbers(installed: str) -> str | None:
    found = re.match(VERSION["pattern"].removesuffix("$"), installed)
    return None if found is None else found[0]


def _judged(problem: str, *, by_structure: bool = False) -> Check:
    how = "in every structure" if by_structure else "byte for byte"
    said = f"holds more than its cells: {problem}" if problem else f"holds its cells and nothing else, {how}"
    return Check(NAME, not problem, f"the released file {said}")


def _parts(folder: Path) -> list[Path]:
    """List the part files of a folder, in which nothing else may be but what Hadoop puts beside them.

    Part files must be named by their numbers, a checksum file must hold the right checksums, ``_SUCCESS`` nothing.
    """
    entries = sorted(folder.iterdir())
    parts = [entry for entry in entries if not entry.name.startswith(("_", "."))]
    numbered = [f"part-{i:05d}.parquet" for i in range(len(parts))]
    if [part.name for part in parts] != numbered or not all(part.is_file() and not part.is_symlink() for part in parts):
        problem = "its part files are not named by their numbers"
        raise NotAccountedError(problem)
    known = {f".{part.name}.crc": part for part in parts}
    for entry in entries:
        if entry in parts or (entry.is_file() and _is_of_hadoop(entry, known)):
            continue
        problem = "its folder holds more than part files"
        raise NotAccountedError(problem)
    return parts


def _is_of_hadoop(entry: Path, checksums: Mapping[str, Path]) -> bool:
    if entry.name == "_SUCCESS":
        return not entry.stat().st_size
    if entry.name == "._SUCCESS.crc":
        return entry.read_bytes() == _HADOOP_CHECKSUMS
    part = checksums.get(entry.name)
    return part is not None and entry.read_bytes() == b"".join(_checksums(part))


def _checksums(path: Path) -> Iterator[bytes]:
    """Content of the file that Hadoop puts beside a file."""
    yield _HADOOP_CHECKSUMS
    with path.open("rb") as file:
        while piece := file.read(_HADOOP_BYTES):
            yield zlib.crc32(piece).to_bytes(4, "big")


def _folder_sha256(parts: list[Path]) -> str:
    """SHA-256 of a list of files with theirs, as ``sha256sum * | sha256sum`` makes it."""
    listing = "".join(f"{_file_sha256(part)}  {part.name}\n" for part in parts)
    return hashlib.sha256(listing.encode()).hexdigest()


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _HashedChunks:
    """Chunks of a file, which are hashed on the way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = hashlib.sha256()
        self._left = self._opened()

    def _opened(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while chunk := file.read(BLOCK_BYTES):
                self._digest.update(chunk)
                yield chunk

    def __iter__(self) -> Iterator[bytes]:
        return self._left

    def finish(self, sha256: str | None) -> None:
        """Read to the end, and refuse bytes that are not those that were read as a table."""
        for _ in self._left:
            pass
        ensure_same(self._path, sha256, self._digest.hexdigest())


def ensure_same(path: Path, sha256: str | None, found: str) -> None:
    """Refuse a file that is another one than when its table was read."""
    if sha256 is not None and sha256 != found:
        problem = "changed while it was being audited"
        raise InputError(problem, path=path, hint="audit it again when no program is writing to it")
