"""Every byte of a released file is accounted for: nothing in it but the cells and what its format needs to hold them.

What a reader skips (blanks, line ends, quotes, header fields, metadata, unused entries) could carry row numbers or raw
values past all other checks. So the audit opens the file itself, with code of its own, and judges its very bytes:

- delimited and libsvm text: by its canonical form, see :mod:`sfumato.audit.canonical_text`;
- gzip: fixed header, one member, nothing after it, the compressed stream made again and compared;
- Parquet and workbooks: every part must be one that the format needs, and the file is made again and compared.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

from sfumato.audit.canonical_text import BLOCK_BYTES, Gunzipped, TextForm, problem_in_libsvm
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.errors import InputError
from sfumato.schema import Role

NAME = "bytes"
_SUFFIXES = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "csv.gz": (".csv.gz",),
    "tsv.gz": (".tsv.gz",),
    "parquet": (".parquet", ".pq"),
    "excel": (".xlsx",),
    "libsvm": (".svm", ".libsvm", ".svmlight"),
}
_STANDARD_INPUT = "-"

Found = Iterator[Check | Unchecked]


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
        message = "whether the released file holds nothing but its cells, for standard input can be read only once"
        yield Unchecked(NAME, message, "name the file")
        return
    name, form = (claims.output_name or "").lower(), claims.output_format
    if not name.endswith(_SUFFIXES.get(form, ())):
        yield _judged("its name does not fit the stated format")
        return
    try:
        yield from _found_in(Path(path), form, claims, sha256)
    except OSError as exc:
        if isinstance(exc, InputError):
            raise
        problem = f"cannot be read ({exc.strerror})"
        raise InputError(problem, path=path) from None


def _found_in(path: Path, form: str, claims: Claims, sha256: str | None) -> Found:
    if form == "libsvm":
        chunks = _HashedChunks(path)
        yield _judged(problem_in_libsvm(chunks, claims.names(Role.QUASI_IDENTIFIER)))
        chunks.finish(sha256)
    else:
        yield from _in_delimited(path, claims, sha256)


def _in_delimited(path: Path, claims: Claims, sha256: str | None) -> Found:
    form = TextForm(
        claims.names(),
        tuple(claims.missing_tokens if c.missing is None else c.missing for c in claims.columns),
        "\t" if claims.output_format.startswith("tsv") else ",",
    )
    chunks = _HashedChunks(path)
    if not claims.output_format.endswith(".gz"):
        yield _judged(form.problem(chunks))
        chunks.finish(sha256)
        return
    content = Gunzipped(chunks)
    unzipped = iter(content)
    problem = form.problem(unzipped)
    for _ in unzipped:  # to the end also where the rows were refused: the first problem is the file's own
        pass
    problem = content.problem or problem
    is_same_writer = claims.versions.get("zlib") == zlib.ZLIB_RUNTIME_VERSION
    if not problem and not content.is_same_stream and is_same_writer:
        problem = "the compressed stream is not the one that the recorded zlib makes of its content"
    yield _judged(problem)
    if not problem and not content.is_same_stream:
        message = "whether the compressed stream carries more than its content, for another zlib wrote it"
        yield Unchecked(
            "compression", message, f"audit it with zlib {claims.versions.get('zlib', 'as the writer had')}"
        )
    chunks.finish(sha256)


def _judged(problem: str) -> Check:
    said = f"holds more than its cells: {problem}" if problem else "holds its cells and nothing else, byte for byte"
    return Check(NAME, not problem, f"the released file {said}")


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
        raise InputError(problem, path=path, hint="audit it again when nobody writes to it")
