"""Uploads, streamed from the browser straight into a private file; no more than a megabyte is held in memory."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect, Request

from sfumato.atomic import explained_writing
from sfumato.errors import InputError

LONGEST_NAME = 100
FIELDS_LIMIT = 64 * 1024
_LONGEST_NAME_BYTES = 200
_LONGEST_SUFFIX = 20
_MOST_FIELDS = 100
_PIECE = 1 << 20
_SLACK = FIELDS_LIMIT + (64 << 10)  # what a form adds to its file: fields, boundaries and headers
_DRAIN_SECONDS, _IDLE_SECONDS = 10.0, 0.5


class UploadTooLarge(InputError):  # noqa: N818 # named after HTTP's status
    """An upload is larger than the server takes; nothing of it is kept."""

    def __init__(self, limit: int) -> None:
        hint = "start the page with a higher limit for uploads, or open the file by its path"
        super().__init__(f"the file is larger than this server takes ({limit:,} bytes)", hint=hint)


@dataclass(frozen=True)
class Uploaded:
    """A file that has arrived whole.

    Attributes
    ----------
    path : Path
        Where it stands; only this user can read it.
    name : str
        Its own name as the user's machine gave it, made safe.
    fields : dict of str to str
        Other fields of the form.
    """

    path: Path
    name: str
    fields: dict[str, str] = field(default_factory=dict)


async def receive_upload(request: Request, folder: Path, limit: int) -> Uploaded:
    """Stream the one file of a multipart form into a new file of ``folder``.

    Whatever goes wrong (too large, broken form, browser gone), the partial file is removed.

    Parameters
    ----------
    request : Request
        POST of ``multipart/form-data`` whose body was not read yet.
    folder : Path
        Private folder; made with mode 0700 where it is absent.
    limit : int
        Largest file, in bytes.

    Raises
    ------
    UploadTooLarge
        By the announced length at once, otherwise as soon as the bytes that came are too many.
    InputError
        For a form without a file, with two, with an empty one, or one that cannot be read.
    """
    boundary = _boundary(request)
    if (_announced(request) or 0) > limit + _SLACK:
        await _drain(request, 0)
        raise UploadTooLarge(limit)
    with explained_writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    form = _Form(folder, limit)
    try:
        await _feed(request, boundary, form)
        return form.finished()
    except InputError:
        form.discard()
        await _drain(request, form.body_bytes)
        raise
    except BaseException:
        form.discard()
        raise
    finally:
        form.close()


def safe_name(name: str) -> str:
    r"""Reduce a file name from elsewhere to a harmless base name, with its suffix.

    Examples
    --------
    >>> safe_name("../../etc/passwd"), safe_name("C:\\data\\my table.csv.gz"), safe_name(".bashrc"), safe_name("..")
    ('passwd', 'my table.csv.gz', 'bashrc', 'upload')
    """
    base = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    shown = "".join(c for c in base if unicodedata.category(c)[0] not in "CZ" or c == " ")
    clean = shown.strip(" .-~")
    suffixes = ("".join(Path(clean).suffixes[-n:]) for n in (2, 1))
    suffix = next((found for found in suffixes if len(found.encode()) <= _LONGEST_SUFFIX), "")
    stem = clean.removesuffix(suffix)[: LONGEST_NAME - len(suffix)]
    while len((stem + suffix).encode()) > _LONGEST_NAME_BYTES:
        stem = stem[:-1]
    return (stem.rstrip(" .") or "upload") + suffix


class _Form:
    """Parts of a form as the parser calls them out; file data is collected and written in pieces."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._file: FileIO | None = None
        self._path: Path | None = None
        self._name = ""
        self._n_bytes = 0
        self._pending = bytearray()
        self.body_bytes = 0
        self._fields: dict[str, str] = {}
        self._fields_bytes = 0
        self._header_name = self._header_value = b""
        self._disposition: dict[bytes, bytes] = {}
        self._value = bytearray()
        self._is_file = self._is_ended = False

    def on_part_begin(self) -> None:
        self._disposition = {}
        self._value.clear()

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = parse_options_header(self._header_value)[1]
        self._header_name = self._header_value = b""

    def on_headers_finished(self) -> None:
        if b"name" not in self._disposition:
            raise _broken()
        given = self._disposition.get(b"filename", b"")
        self._is_file = bool(given)  # a browser sends an empty name where no file was chosen
        if self._is_file and self._file is not None:
            raise InputError("the form holds more than one file", hint="upload one file at a time")
        if self._is_file:
            self._open(safe_name(_text(given)))

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._n_bytes += end - start
            if self._n_bytes > self._limit:
                raise UploadTooLarge(self._limit)
            self._pending += memoryview(data)[start:end]
            return
        self._count_field(end - start)
        self._value += data[start:end]

    def on_part_end(self) -> None:
        if b"filename" in self._disposition:
            return
        if len(self._fields) >= _MOST_FIELDS:
            raise InputError(f"the form has more than {_MOST_FIELDS} fields")
        name = self._disposition[b"name"]
        self._count_field(len(name))
        self._fields[_text(name)] = _text(bytes(self._value))

    def on_end(self) -> None:
        self._is_ended = True

    def count(self, n_bytes: int) -> None:
        """Keep the whole body within bounds, whatever stands around its file."""
        self.body_bytes += n_bytes
        if self.body_bytes > self._limit + _SLACK:
            raise UploadTooLarge(self._limit)

    @property
    def has_piece(self) -> bool:
        """Whether enough has come to be worth a write."""
        return len(self._pending) >= _PIECE

    def write(self) -> None:
        """Write what has come; runs in a thread, while nothing else touches the form."""
        if self._file is not None and self._path is not None:
            with explained_writing(self._path):
                rest = bytes(self._pending)
                while rest:
                    rest = rest[self._file.write(rest) :]
            self._pending.clear()

    def finished(self) -> Uploaded:
        """Return the file once all has come, or say what is missing."""
        if not self._is_ended:
            raise _broken()
        if self._path is None:
            raise InputError("no file was chosen", hint="choose a file first")
        if not self._n_bytes:
            raise InputError("the file is empty", hint="choose a file with a table in it")
        return Uploaded(self._path, self._name, self._fields)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Remove what was written."""
        self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _count_field(self, n_bytes: int) -> None:
        self._fields_bytes += n_bytes
        if self._fields_bytes > FIELDS_LIMIT:
            raise InputError(f"the other fields of the form hold more than {FIELDS_LIMIT:,} bytes")

    def _open(self, name: str) -> None:
        self._name = name
        suffix = "".join(Path(name).suffixes)
        stem = name.removesuffix(suffix)
        with explained_writing(self._folder):
            for number in range(1, 10_000):
                path = self._folder / (name if number == 1 else f"{stem}-{number}{suffix}")
                try:
                    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                except FileExistsError:
                    continue
                self._file, self._path = FileIO(descriptor, "wb"), path
                return
        raise InputError("too many uploads have the same name")


async def _feed(request: Request, boundary: bytes, form: _Form) -> None:
    names = ("part_begin", "header_field", "header_value", "header_end", "headers_finished", "part_data", "part_end")
    callbacks = {f"on_{name}": getattr(form, f"on_{name}") for name in (*names, "end")}
    try:
        parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
        async for chunk in request.stream():
            form.count(len(chunk))
            parser.write(chunk)
            if form.has_piece:
                await asyncio.to_thread(form.write)
        await asyncio.to_thread(form.write)
    except FormParserError:
        raise _broken() from None


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data":
        raise InputError("the request is not a form with a file", hint="use the page's own form")
    if not options.get(b"boundary"):
        raise _broken()
    return options[b"boundary"]


def _announced(request: Request) -> int | None:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else None


async def _drain(request: Request, n_read: int) -> None:
    """Let the browser finish for a while: one that is cut off in the middle shows no answer, only a lost connection."""
    if n_read == _announced(request) or "expect" in request.headers:  # who expects an answer first has sent nothing
        return
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            is_more = True
            while is_more:
                message = await asyncio.wait_for(request.receive(), _IDLE_SECONDS)
                is_more = message["type"] == "http.request" and message.get("more_body", False)
    except (TimeoutError, ClientDisconnect):
        return


def _broken() -> InputError:
    problem = "the upload cannot be read: the form is broken or ended early"
    return InputError(problem, hint="try once more")


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
