"""Text files as UTF-8: encoding, NUL bytes and the length of lines are checked in one pass over the stored bytes."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.io.bytes import StoredBytes, unzipped, with_head
from sfumato.table.io.foreign import HEAD_BYTES, refuse_foreign_bytes

MAX_LINE_BYTES = 64 << 20

_BYTE_ORDER_MARKS = (  # the longer ones first: UTF-32's starts like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FORMATS = (
    (b"PAR1", "a Parquet file", "parquet"),
    (b"PK\x03\x04", "an Excel workbook or another zip archive", "excel"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook", "excel"),
)
_MARK_BYTES = 8

_NAME_ENCODING = "name its encoding, for instance latin-1, cp1252 or utf-16"


@dataclass(frozen=True, repr=False)
class Text:
    """A text file that was checked once and can be read as UTF-8 as often as needed.

    ``skipped_lines`` are the first ones, which are a title and no part of the table.
    """

    stored: StoredBytes
    encoding: str
    n_bytes: int
    has_quotes: bool
    skipped_lines: int = 0

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.stored.name

    def chunks(self) -> Iterator[bytes]:
        """UTF-8 bytes, unzipped, without a byte order mark."""
        return _utf8(unzipped(self.stored.again(), self.stored), self.encoding, self.name)

    def read(self, *, skip_bytes: int = 0, append: bytes = b"") -> bytes:
        """All UTF-8 bytes, without the first ones and with some more at the end."""
        return b"".join(chain(_without_first(self.chunks(), skip_bytes), [append]))

    def open(self) -> BinaryIO:
        """Open the UTF-8 bytes as a file."""
        return io.BufferedReader(_ChunkFile(self.chunks()))

    def lines(self) -> Iterator[str]:
        """Physical lines with their ends: line feed, carriage return, or both; those that are skipped are empty."""
        for number, line in enumerate(self.physical_lines(), start=1):
            yield line if number > self.skipped_lines else "\n"

    def physical_lines(self) -> Iterator[str]:
        """Lines as in the file, with their ends."""
        return iter(io.TextIOWrapper(self.open(), encoding="utf-8", newline=""))


def check_text(
    stored: StoredBytes,
    encoding: str | None,
    *,
    hint: str = _NAME_ENCODING,
    remedy: tuple[str, ...] = ("encoding",),
    is_declared: bool = False,
    skipped_lines: int = 0,
) -> Text:
    """Pass over the stored bytes once and refuse what is no text.

    Parameters
    ----------
    encoding : str or None
        ``None`` takes what a byte order mark says, else UTF-8; nothing is ever guessed.
    hint, remedy
        What to do about a text in another encoding, see :class:`sfumato.errors.SfumatoError`.
    is_declared : bool
        Whether somebody named the format, so that a text that looks like another kind of text is believed to be it.
    skipped_lines : int
        Lines at the beginning that are no part of the table.
    """
    head, chunks = with_head(unzipped(stored.first_pass(), stored), HEAD_BYTES)
    _refuse_other_formats(head, stored.name)
    refuse_foreign_bytes(head, stored.name, is_declared=is_declared)
    chosen = known_encoding(encoding) if encoding is not None else _encoding_by_mark(head)
    checks = _TextChecks(stored.name)
    for chunk in _utf8(chunks, chosen, stored.name, hint, remedy):
        checks.take(chunk)
    if checks.n_bytes == 0:
        problem = "is empty"
        raise InputError(problem, path=stored.name)
    return Text(stored, chosen, checks.n_bytes, checks.has_quotes, skipped_lines)


def known_encoding(encoding: str) -> str:
    """Refuse what is not the name of a text encoding."""
    try:
        codecs.getincrementaldecoder(encoding)
        if "a,1\n".encode(encoding).decode(encoding) == "a,1\n":
            return encoding
    except (LookupError, ValueError):
        pass
    allowed = "the name of a text encoding, for instance utf-8, latin-1 or utf-16"
    problem = "got a name that Python does not know as one"
    raise InvalidParameterError(name="encoding", problem=problem, allowed=allowed)


def _encoding_by_mark(head: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if head.startswith(mark)), "utf-8")


def _refuse_other_formats(head: bytes, name: str) -> None:
    for magic, what, format_name in _OTHER_FORMATS:
        if head.startswith(magic):
            problem = f"is {what}, not text"
            raise InputError(problem, path=name, hint=f"read it as {format_name}", remedy=("format",))


def _utf8(
    chunks: Iterable[bytes], encoding: str, name: str, hint: str = _NAME_ENCODING, remedy: tuple[str, ...] = ()
) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    counter = LineCounter()
    mark = codecs.BOM_UTF8
    for chunk in chain(with_head(chunks, _MARK_BYTES)[1], [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk)
            piece = chunk if is_utf8 else text.encode()
        except UnicodeError as error:
            line = _line_of(error, counter)
            raise InputError(f"is not {encoding} text", path=name, line=line, hint=hint, remedy=remedy) from None
        piece = piece.removeprefix(mark)
        mark = mark if not piece else b""
        counter.take(piece)
        yield piece


def _line_of(error: UnicodeError, counter: LineCounter) -> int:
    """Find the line on which a text cannot be decoded, after those that were counted."""
    if isinstance(error, UnicodeDecodeError):
        with suppress(UnicodeError, LookupError):
            counter.take(error.object[: error.start].decode(error.encoding, errors="ignore").encode())
    return counter.n_breaks + 1


class LineCounter:
    """Counts line ends (line feed, carriage return, or both) over chunks."""

    def __init__(self) -> None:
        self.n_breaks = 0
        self._after_return = False

    def take(self, chunk: bytes) -> None:
        """Count on."""
        if not chunk:
            return
        self.n_breaks += chunk.count(b"\n")
        if b"\r" in chunk:
            self.n_breaks += chunk.count(b"\r") - chunk.count(b"\r\n")
        if self._after_return and chunk.startswith(b"\n"):
            self.n_breaks -= 1
        self._after_return = chunk.endswith(b"\r")


class _TextChecks:
    """What has to be known of a text before it is parsed; raises at the first line that cannot be text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_bytes = 0
        self.has_quotes = False
        self._lines = LineCounter()
        self._line_bytes = 0

    def take(self, chunk: bytes) -> None:
        """Check the next chunk."""
        self.n_bytes += len(chunk)
        self.has_quotes = self.has_quotes or b'"' in chunk
        for start in range(0, len(chunk), MAX_LINE_BYTES):
            self._take_piece(chunk[start : start + MAX_LINE_BYTES])

    def _take_piece(self, piece: bytes) -> None:
        nul = piece.find(b"\0")
        if nul >= 0:
            self._lines.take(piece[:nul])
            problem = "holds a NUL byte, so it is not text"
            hint = "if it is UTF-16, say so: name the encoding utf-16"
            raise InputError(problem, path=self.name, line=self._lines.n_breaks + 1, hint=hint, remedy=("encoding",))
        breaks = [at for at in (piece.find(b"\n"), piece.find(b"\r")) if at >= 0]
        self._line_bytes += min(breaks, default=len(piece))
        if self._line_bytes > MAX_LINE_BYTES:
            problem = f"holds a line longer than {MAX_LINE_BYTES:,} bytes"
            hint = "is it a table? A line is one row"
            raise InputError(problem, path=self.name, line=self._lines.n_breaks + 1, hint=hint)
        if breaks:
            self._line_bytes = len(piece) - 1 - max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._lines.take(piece)


def _without_first(chunks: Iterator[bytes], n_bytes: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[n_bytes:]
        n_bytes = max(0, n_bytes - len(chunk))


class _ChunkFile(io.RawIOBase):
    """Chunks as a file that can only be read forward."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as the current chunk goes."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        n_bytes = min(len(buffer), len(self._rest))
        buffer[:n_bytes] = self._rest[:n_bytes]
        self._rest = self._rest[n_bytes:]
        return n_bytes
