r"""The canonical form of released text files, checked byte by byte; ``docs/canonical-form.md`` specifies it.

A file in this form holds nothing but its cells: whoever knows header, cells and delimiter can write down every byte.
So a row number hidden in blanks, line ends, quotes or spellings of "missing" has no place to be. Rows are judged by one
regular expression, the grammar. Blocks without quotes, which are nearly all, are judged in bulk first, and go through
the grammar only where that is not enough.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.audit.reading.spelling import double_text

BLOCK_BYTES = 1 << 20
MOST_BYTES_OF_A_ROW = 64 << 20

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # deflate, no name, no time, best compression, no system
_GZIP_LEVEL = 9
_TRAILER_BYTES = 8

# Characters that readers trim from the ends of a cell: in ASCII, and in UTF-8 as two or three bytes.
_BLANK = rb"[\t-\r\x1c-\x20]"
_BLANKS = b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f "
_WIDE_BLANKS = (
    rb"\xc2[\x85\xa0]",
    rb"\xe1\x9a\x80",
    rb"\xe2\x80[\x80-\x8a\xa8\xa9\xaf]",
    rb"\xe2\x81\x9f",
    rb"\xe3\x80\x80",
)
_HEADS_OF_WIDE_BLANKS = (b"\xc2\x85", b"\xc2\xa0", b"\xe1\x9a\x80", b"\xe2\x80", b"\xe2\x81\x9f", b"\xe3\x80\x80")
_NOT_BEFORE_BLANK = b"(?!" + b"|".join((_BLANK, *_WIDE_BLANKS)) + b")"
_NOT_AFTER_BLANK = b"".join(b"(?<!" + blank + b")" for blank in (_BLANK, *_WIDE_BLANKS))


@dataclass(frozen=True)
class TextForm:
    """What is known of a delimited text before it is looked at.

    Parameters
    ----------
    names : tuple of str
        Columns in the order of the file.
    missing : tuple of tuples of str
        For each column the texts that mean "missing".
    delimiter : str
        Comma or tab.
    """

    names: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    delimiter: str

    @property
    def header(self) -> bytes:
        """First line: a name is in quotes also where it holds another delimiter, for readers that guess theirs."""
        cells = [self._written(name, also=",;\t|") for name in self.names]
        return (self.delimiter.join(cells) + "\n").encode()

    def _written(self, text: str, also: str = "") -> str:
        """Return a cell as it must be written: in quotes only where it needs them."""
        needs_quotes = any(character in text for character in f'"\r\n{self.delimiter}{also}')
        if needs_quotes or (not text and len(self.names) == 1):
            return '"' + text.replace('"', '""') + '"'
        return text

    @cached_property
    def _separator(self) -> bytes:
        return self.delimiter.encode()

    @cached_property
    def _cell(self) -> bytes:
        """Grammar of a cell; quotes must hold something that needs them, before the first of which nothing does."""
        plain = b'[^"\r\n' + self._separator + b"]"
        special = b'(?:""|[\r\n' + self._separator + b"])"
        quoted = (
            b'"' + _NOT_BEFORE_BLANK + b"(?=" + plain + b"*+" + special + b')(?:[^"]++|"")*+' + _NOT_AFTER_BLANK + b'"'
        )
        unquoted = _NOT_BEFORE_BLANK + plain + b"++" + _NOT_AFTER_BLANK
        empty = b'""' if len(self.names) == 1 else b""  # else a row of one empty cell would be a blank line
        return b"(?:" + quoted + b"|" + unquoted + b"|" + empty + b")"

    @cached_property
    def _rows(self) -> re.Pattern[bytes]:
        more = b"(?:" + self._separator + self._cell + b"){%d}" % (len(self.names) - 1)
        return re.compile(b"(?:" + self._cell + more + b"\n)*+")

    @cached_property
    def _one_cell(self) -> re.Pattern[bytes]:
        return re.compile(b"(" + self._cell + b")([" + self._separator + b"\n])")

    @cached_property
    def _wrong_tokens(self) -> dict[bytes, frozenset[int]]:
        """Spellings of "missing", as they would be written, with the columns in which they are not the right one."""
        found: dict[bytes, set[int]] = {}
        for column, tokens in enumerate(self.missing):
            right = missing_spelling(tokens)
            for token in tokens:
                if token != right:
                    found.setdefault(self._written(token).encode(), set()).add(column)
        return {token: frozenset(columns) for token, columns in found.items()}

    def problem(self, chunks: Iterable[bytes]) -> str:
        """Say in what way bytes are not the canonical text of some cells; empty if they are."""
        rest, n_rows = b"", 0
        is_header_read = not self.names
        for chunk in chunks:
            rest += chunk
            if not is_header_read:
                if len(rest) < len(self.header):
                    continue
                if not rest.startswith(self.header):
                    return "the header is not the canonical line of the stated column names"
                rest, is_header_read = rest[len(self.header) :], True
            end, found = self._judged(rest)
            n_rows += rest.count(b"\n", 0, end) if not found else 0
            if found:
                return found
            rest = rest[end:]
            if len(rest) > MOST_BYTES_OF_A_ROW:
                return f"a row after line {n_rows + 1:,} is longer than {MOST_BYTES_OF_A_ROW:,} bytes or is not a row"
        if not is_header_read:
            return "the header is not the canonical line of the stated column names"
        return f"{_fault(rest, self._separator, len(self.names))} (after line {n_rows + 1:,})" if rest else ""

    def _judged(self, block: bytes) -> tuple[int, str]:
        """Place up to which a block is rows, and what is wrong with these."""
        has_quotes = b'"' in block
        cut = block.rfind(b"\n") + 1
        if not has_quotes and self._is_plain(block[:cut]):
            end = cut
        else:
            found = self._rows.match(block)
            end = found.end() if found else 0
            # Within quotes the last line end of a block is no end of a row: only what cannot go on is a fault.
            if end < cut and not (has_quotes and _is_open(block[end:])):
                return end, _fault(block[end:], self._separator, len(self.names))
        rows = block[:end]
        if not rows.isascii():
            try:
                rows.decode()
            except UnicodeDecodeError:
                return end, "it is not UTF-8"
        if b"\0" in rows:
            return end, "it holds a NUL byte, so it is not text"
        return end, self._problem_of_missing(rows, has_quotes)

    def _is_plain(self, rows: bytes) -> bool:
        """Whether rows without quotes are surely canonical, found in bulk."""
        n_columns = len(self.names)
        if b"\r" in rows:
            return False
        cells = np.frombuffer(rows, dtype=np.uint8)
        ends = np.flatnonzero(cells == 10)
        if n_columns > 1:
            # Separators, so many for each row, must lie between the line ends before and after the row.
            places = np.flatnonzero(cells == self._separator[0])
            if len(places) != len(ends) * (n_columns - 1):
                return False
            if (places[n_columns - 2 :: n_columns - 1] > ends).any() or (
                places[n_columns - 1 :: n_columns - 1] < ends[:-1]
            ).any():
                return False
        elif self._separator in rows or rows.startswith(b"\n") or b"\n\n" in rows:
            return False
        edges = (self._separator, b"\n") if n_columns > 1 else (b"\n",)
        for blank in _BLANKS:
            own = bytes([blank])
            if (
                own not in edges
                and own in rows
                and (rows.startswith(own) or any(e + own in rows or own + e in rows for e in edges))
            ):
                return False
        return rows.isascii() or not any(head in rows for head in _HEADS_OF_WIDE_BLANKS)

    def _problem_of_missing(self, rows: bytes, has_quotes: bool) -> str:
        """Say in which column "missing" is spelled in another way than by the rule."""
        edges = (self._separator, b"\n")
        for token, columns in self._wrong_tokens.items():
            if token and token not in rows:
                continue
            framed = [before + token + after for before in edges for after in edges]
            if not any(frame in rows for frame in framed) and not rows.startswith(
                (token + b"\n", token + self._separator)
            ):
                continue
            wrong = next((c for c in self._columns_with(token, rows, has_quotes) if c in columns), None)
            if wrong is not None:
                return f"'{self.names[wrong]}' spells missing values in another way than the first of its tokens"
        return ""

    def _columns_with(self, token: bytes, rows: bytes, has_quotes: bool) -> Iterator[int]:
        """Columns in which a cell is spelled like a token, row by row."""
        n_columns = len(self.names)
        if has_quotes:
            for place, match in enumerate(self._one_cell.finditer(rows)):
                if match[1] == token:
                    yield place % n_columns
            return
        pattern = re.compile(
            b"(?:^|(?<=[\n" + self._separator + b"]))" + re.escape(token) + b"(?=[\n" + self._separator + b"])"
        )
        for match in pattern.finditer(rows):
            start = rows.rfind(b"\n", 0, match.start()) + 1
            yield rows.count(self._separator, start, match.start())


def missing_spelling(tokens: Sequence[str]) -> str:
    """Return the one text that a missing value is written as: nothing if that means missing, else the first token."""
    return "" if "" in tokens or not tokens else tokens[0]


def _is_open(rest: bytes) -> bool:
    """Whether a row that does not end in a block may end in the next one: all its line ends so far are in quotes."""
    n_quotes = 0
    for line in rest.split(b"\n")[:-1]:
        n_quotes += line.count(b'"')
        if n_quotes % 2 == 0:
            return False
    return True


def _fault(rest: bytes, separator: bytes, n_columns: int) -> str:
    """Name the first thing that keeps a row from being canonical; never a cell."""
    line, ending, _ = rest.partition(b"\n")
    if not ending:
        return "the last row does not end in a line feed"
    if not line:
        return "there is a blank line"
    if line.endswith(b"\r"):
        return "a line ends in more than a line feed"
    if b'"' not in line and line.count(separator) != n_columns - 1:
        return "a row has another number of cells than the header"
    if any(re.search(_BLANK + b"$|^" + _BLANK, cell) for cell in line.split(separator)):
        return "there are blanks around a cell"
    if b'"' in line:
        return "quotes are not exactly where a cell needs them"
    return "a row is not in canonical form"


class Gunzipped:
    """Content of a gzip file of one member, while everything around the content is checked.

    Attributes
    ----------
    problem : str
        What is not as it must be, once all was read; empty if nothing is.
    is_same_stream : bool
        Whether compressing the content here gives the very bytes of the file.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.problem = ""
        self.is_same_stream = True

    def __iter__(self) -> Iterator[bytes]:
        head = b""
        for chunk in self._chunks:
            head += chunk
            if len(head) >= len(_GZIP_HEADER):
                break
        if not head.startswith(_GZIP_HEADER):
            is_gzip = head.startswith(_GZIP_HEADER[:2])
            self.problem = "the gzip header holds more than it must" if is_gzip else "it is not compressed by gzip"
            return
        yield from self._content(head[len(_GZIP_HEADER) :])

    def _content(self, first: bytes) -> Iterator[bytes]:
        inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        again = _ComparedStream()
        checksum = n_bytes = 0
        try:
            stored: bytes | None = first
            while stored is not None and not inflating.eof:
                rest, pieces = stored, []
                while rest and not inflating.eof:
                    pieces.append(inflating.decompress(rest, BLOCK_BYTES))
                    rest = inflating.unconsumed_tail
                used = len(stored) - len(inflating.unused_data)
                again.take_stored(stored[:used])
                for piece in pieces:
                    checksum, n_bytes = zlib.crc32(piece, checksum), n_bytes + len(piece)
                    again.take_content(piece)
                    yield piece
                stored = None if inflating.eof else next(self._chunks, None)
        except zlib.error:
            self.problem = "it is a damaged gzip file"
            return
        after = inflating.unused_data + b"".join(self._chunks)
        trailer = checksum.to_bytes(4, "little") + (n_bytes % 2**32).to_bytes(4, "little")
        if not inflating.eof or after[:_TRAILER_BYTES] != trailer:
            self.problem = "it is a damaged gzip file"
        elif len(after) > _TRAILER_BYTES:
            self.problem = "bytes follow the first gzip member"
        self.is_same_stream = again.is_same()


class _ComparedStream:
    """Compresses content once more and compares with what is stored, both as they come."""

    def __init__(self) -> None:
        self._deflating = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._stored = self._made = b""
        self._differs = False

    def take_stored(self, stored: bytes) -> None:
        self._stored += stored
        self._compare()

    def take_content(self, content: bytes) -> None:
        if not self._differs:
            self._made += self._deflating.compress(content)
            self._compare()

    def _compare(self) -> None:
        n = min(len(self._stored), len(self._made))
        self._differs = self._differs or self._stored[:n] != self._made[:n]
        self._stored, self._made = (b"", b"") if self._differs else (self._stored[n:], self._made[n:])

    def is_same(self) -> bool:
        """Whether all of both was the same; after the last content."""
        return not self._differs and self._made + self._deflating.flush() == self._stored


_LIBSVM_ROW = re.compile(rb"([^ :#\r\n]+)((?: (?:0|[1-9][0-9]{0,9}):[01])*)")


def problem_in_libsvm(chunks: Iterable[bytes], features: Sequence[str]) -> str:
    """Say in what way bytes are not the canonical libsvm text of 0/1 features with these names."""
    numbered = [re.fullmatch(r"f(0|[1-9]\d{0,8})", name) for name in features]
    own = [int(match[1]) for match in numbered if match]
    expected = set(own if len(own) == len(features) else range(1, len(features) + 1))
    with_ones: set[int] = set()
    stated_zero: set[int] = set()
    for number, line in enumerate(_lines(chunks), start=1):
        row = _LIBSVM_ROW.fullmatch(line[:-1])
        if not line.endswith(b"\n") or row is None or row[1].decode("ascii", "replace") != _label_spelling(row[1]):
            return f"line {number:,} is not a label and INDEX:1 pairs in canonical form"
        pairs = [pair.split(b":") for pair in row[2].split()]
        indices = [int(index) for index, _ in pairs]
        zeros = {int(index) for index, value in pairs if value == b"0"}
        if sorted(set(indices)) != indices or (zeros and number > 1):
            return f"line {number:,} has indices that do not ascend, or a zero that needs not be written"
        stated_zero |= zeros
        with_ones.update(set(indices) - zeros)
    if stated_zero != expected - with_ones or not with_ones <= expected:
        return "its indices are not those of the stated features, or it writes zeros of others than empty features"
    return ""


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _label_spelling(label: bytes) -> str | None:
    try:
        number = float(label)
    except ValueError:
        return None
    if not np.isfinite(number):
        return None
    return str(int(number)) if number == int(number) and abs(number) < 2.0**53 else double_text(number)
