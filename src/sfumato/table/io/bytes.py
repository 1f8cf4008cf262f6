"""The stored bytes of a file: hashed while they are read, unzipped, and shown to be the same when they were parsed.

Up to ``MAX_BYTES_IN_MEMORY`` the bytes are held, so what is parsed is what was hashed. A larger file is read from its
path again, and hashed again afterwards.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from sfumato.errors import InputError, InvalidParameterError

# How much a packed file may unpack to, so that a small one cannot take all memory, or hours, before it is refused.
#
# Two rules, for gzip, workbooks and Parquet alike. Read at once, a file must not unpack to more than half of the
# memory that is free. However it is read, one that unpacks to more than ``COMFORTABLE_BYTES`` (or a quarter of the
# free memory) must not unpack to more than ``LARGEST_RATIO`` times its stored size. Up to there no ratio is refused: a
# column of zeros shrinks a thousandfold. ``LEAST_BYTES`` are always allowed. What is given in the environment as
# ``SFUMATO_MAX_UNPACKED`` replaces both rules.


COMFORTABLE_BYTES = 1 << 30
LEAST_BYTES = 64 << 20
"""As much is always allowed."""
LARGEST_RATIO = 200
SETTING = "SFUMATO_MAX_UNPACKED"

_WITHOUT_ANSWER = 4 << 30
_CONTROL_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
_NO_LIMIT = 1 << 60  # a control group without a limit says a number of this size


@dataclass(frozen=True)
class UnpackingLimit:
    """Bytes that a file may unpack to.

    Parameters
    ----------
    most : int
        More is refused.
    comfortable : int
        Up to here the ratio does not matter.
    n_stored : int
        Bytes of the packed file, as far as they are known beforehand.
    """

    most: int
    comfortable: int
    n_stored: int = 0

    @classmethod
    def of(cls, n_stored: int = 0, *, in_blocks: bool = False) -> UnpackingLimit:
        """Find the limit for a file that is read at once, or in blocks."""
        given = os.environ.get(SETTING)
        if given is not None:
            if not (given.isascii() and given.isdecimal()):
                raise InvalidParameterError(SETTING, f"got {given!r}", allowed="a number of bytes")
            return cls(int(given), int(given), n_stored)
        free = available_memory()
        comfortable = max(LEAST_BYTES, min(COMFORTABLE_BYTES, free // 4))
        return cls(sys.maxsize if in_blocks else max(LEAST_BYTES, free // 2), comfortable, n_stored)

    def check(self, n_unpacked: int, name: str, n_read: int = 0, *, hint: str = "") -> None:
        """Refuse a file that unpacks to so many bytes; of its stored bytes at least ``n_read`` are known to be there.

        Raises
        ------
        InputError
            If that is too much.
        """
        if n_unpacked <= self.comfortable:
            return
        most = min(self.most, max(self.comfortable, LARGEST_RATIO * max(self.n_stored, n_read)))
        if n_unpacked <= most:
            return
        is_ratio = most < self.most
        why = f"more than {LARGEST_RATIO} times its own size" if is_ratio else "more than may be read at once"
        remedy = f"if this is right, set {SETTING} to the number of bytes that it may take"
        raise InputError(
            f"unpacks to more than {most:,} bytes, {why}",
            path=name,
            hint=f"{hint or 'give the unpacked file'}; {remedy}",
        )

    def counted(self, chunks: Iterable[bytes], name: str, stored: Tally) -> Iterator[bytes]:
        """Pass chunks of an unpacked file on until they are too much."""
        n_unpacked = 0
        for chunk in chunks:
            n_unpacked += len(chunk)
            self.check(n_unpacked, name, stored.n_bytes)
            yield chunk


class Tally:
    """Counts the bytes of chunks that are passed on."""

    def __init__(self) -> None:
        self.n_bytes = 0

    def of(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass chunks on."""
        for chunk in chunks:
            self.n_bytes += len(chunk)
            yield chunk


def available_memory() -> int:
    """Bytes of memory that are free for this process: of the machine, of its control group, of its address space."""
    return min(_of_machine(), _of_control_group(), _of_address_space())


def _of_machine() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return _WITHOUT_ANSWER


def _of_control_group() -> int:
    for folder, limit, used in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # no such group, or "max"
            most = int((folder / limit).read_text())
            if most >= _NO_LIMIT:
                return most
            return most - int((folder / used).read_text()) + _cached_files(folder)
    return _NO_LIMIT


def _cached_files(folder: Path) -> int:
    """Bytes that a group uses for copies of files, which are given back when memory is needed."""
    with suppress(OSError, ValueError):
        for line in (folder / "memory.stat").read_text().splitlines():
            name, _, amount = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(amount)
    return 0


def _of_address_space() -> int:
    with suppress(ImportError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return _NO_LIMIT if soft == resource.RLIM_INFINITY else soft
    return _NO_LIMIT


MAX_BYTES_IN_MEMORY = 1 << 30
CHUNK_BYTES = 1 << 20
STANDARD_INPUT = "-"

_GZIP_MAGIC = b"\x1f\x8b"
_ZLIB_WITH_GZIP_HEADER = 31
_NOT_UNICODE = re.compile("[\ud800-\udfff]")


class StoredBytes:
    """Bytes of one file, pipe or standard input.

    Parameters
    ----------
    name : str
        What messages call it.
    file : BinaryIO
        Open at its start; read once, by the first pass.
    path : Path or None
        Where it can be read again, or ``None`` when it cannot and has to be held whatever its size.
    most_held : int or None
        Bytes up to which a file that can be read again is held; ``None`` takes ``MAX_BYTES_IN_MEMORY``.
    limit : UnpackingLimit or None
        What it may unpack to if it is packed; ``None`` takes that of files that are read at once.
    """

    def __init__(
        self,
        name: str,
        file: BinaryIO,
        path: Path | None = None,
        most_held: int | None = None,
        limit: UnpackingLimit | None = None,
    ) -> None:
        self.name = name
        self.limit = limit or UnpackingLimit.of()
        self.sha256 = ""
        self._file = file
        self._path = path
        self._most_held = MAX_BYTES_IN_MEMORY if most_held is None else most_held
        self._held: list[bytes] | None = []

    def __repr__(self) -> str:
        return f"StoredBytes({self.name})"

    def first_pass(self) -> Iterator[bytes]:
        """Chunks as they are stored; when they are exhausted, ``sha256`` is known."""
        digest = hashlib.sha256()
        n_bytes = 0
        for chunk in _chunks(self._file, self.name):
            digest.update(chunk)
            n_bytes += len(chunk)
            if self._path is not None and n_bytes > self._most_held:
                self._held = None
            if self._held is not None:
                self._held.append(chunk)
            yield chunk
        self.sha256 = digest.hexdigest()

    def again(self) -> Iterator[bytes]:
        """Chunks as they are stored, from memory or from the path once more."""
        if self._held is not None:
            yield from self._held
        elif self._path is not None:
            with _opened(self._path) as file:
                yield from _chunks(file, self.name)

    @property
    def path_when_large(self) -> Path | None:
        """Where a file that is too large to hold can be read; ``None`` when it is held."""
        return self._path if self._held is None else None

    def ensure_unchanged(self) -> None:
        """Hash a file that was not held once more and refuse it when it is another one now."""
        if self._held is not None:
            return
        digest = hashlib.sha256()
        for chunk in self.again():
            digest.update(chunk)
        if digest.hexdigest() != self.sha256:
            problem = "changed while it was being read"
            raise InputError(problem, path=self.name, hint="read it again when no program is writing to it")


@contextmanager
def open_stored(
    source: str | os.PathLike[str], *, most_held: int | None = None, in_blocks: bool = False
) -> Iterator[StoredBytes]:
    """Open a path, or standard input for ``-``, with every failure said in one line.

    With ``in_blocks`` a file may unpack to more than fits into memory.
    """
    if source == STANDARD_INPUT:
        file = getattr(sys.stdin, "buffer", None)
        if file is None:
            problem = "cannot be read: it is closed, or no stream of bytes"
            raise InputError(problem, path="<stdin>")
        yield StoredBytes("<stdin>", file)
        return
    path = _named_in_unicode(source)
    with _opened(path) as file:
        found = os.fstat(file.fileno())
        mode = found.st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            problem = "is neither a file nor a pipe"
            raise InputError(problem, path=path)
        limit = UnpackingLimit.of(found.st_size, in_blocks=in_blocks)
        yield StoredBytes(str(path), file, path if stat.S_ISREG(mode) else None, most_held, limit)


def shown_path(path: str | os.PathLike[str]) -> str:
    """Write a path for people: with the replacement character for each byte that is no valid Unicode."""
    return _NOT_UNICODE.sub("\N{REPLACEMENT CHARACTER}", os.fspath(path))


def require_something_at(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which there is nothing, as opening it does; whatever else is wrong shows when it is opened.

    Standard input is taken to be there.

    Raises
    ------
    InputError
        If nothing is there, or the name is not valid Unicode.
    """
    if path == STANDARD_INPUT:
        return
    where = _named_in_unicode(path)
    try:
        where.stat()
    except FileNotFoundError:
        raise _not_there(where) from None
    except (OSError, ValueError):
        return


def _named_in_unicode(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    if _NOT_UNICODE.search(str(path)):
        problem = "its name is not valid Unicode"
        raise InputError(problem, path=shown_path(path), hint="rename the file")
    return path


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise _not_there(path) from None
    except IsADirectoryError:
        problem = "is a folder, not a file"
    except PermissionError:
        problem = "may not be read: permission denied"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = f"cannot be opened ({error.strerror if isinstance(error, OSError) else 'not a path'})"
    raise InputError(problem, path=path)


def _not_there(path: Path) -> InputError:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return InputError("does not exist, nor can its folder be read", path=path)
    nearest = difflib.get_close_matches(path.name, names, n=1)
    return InputError("does not exist", path=path, hint=f"did you mean '{shown_path(nearest[0])}'?" if nearest else "")


def _chunks(file: BinaryIO, name: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = file.read(CHUNK_BYTES)
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
            raise InputError(problem, path=name) from None
        if not chunk:
            return
        yield chunk


def with_head(chunks: Iterable[bytes], n_bytes: int) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes (fewer at the end of the file) and all chunks, those bytes included."""
    iterator = iter(chunks)
    head = b""
    for chunk in iterator:
        head += chunk
        if len(head) >= n_bytes:
            break
    return head[:n_bytes], chain([head] if head else [], iterator)


def unzipped(chunks: Iterable[bytes], stored: StoredBytes) -> Iterator[bytes]:
    """Gunzip chunks that start like a gzip file and pass on all others, refusing a ``.gz`` that is none.

    Raises
    ------
    InputError
        If they unpack to more than the file may.
    """
    name, tally = stored.name, Tally()
    head, chunks = with_head(chunks, len(_GZIP_MAGIC))
    if head == _GZIP_MAGIC:
        return stored.limit.counted(_gunzipped(tally.of(chunks), name), name, tally)
    if head and name.lower().endswith(".gz"):
        problem = "is not a gzip file although its name ends in .gz"
        raise InputError(problem, path=name)
    return iter(chunks)


def _gunzipped(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    engine = zlib.decompressobj(_ZLIB_WITH_GZIP_HEADER)
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if engine.eof:  # another member, or the zeros that pad a tape
                    rest = rest.lstrip(b"\0")
                    if not rest:
                        break
                    engine = zlib.decompressobj(_ZLIB_WITH_GZIP_HEADER)
                yield from _inflated(engine, rest)
                rest = engine.unused_data
    except zlib.error:
        problem = "is a damaged gzip file"
        raise InputError(problem, path=name) from None
    if not engine.eof:
        problem = "is a truncated gzip file"
        raise InputError(problem, path=name, hint="fetch or compress it again")


def _inflated(engine: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    while True:
        piece = engine.decompress(data, CHUNK_BYTES)
        if piece:
            yield piece
        data = engine.unconsumed_tail
        if engine.eof or (not data and len(piece) < CHUNK_BYTES):
            return
