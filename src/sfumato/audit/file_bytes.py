"""Every byte of a released file is accounted for: nothing in it but the cells and what its format needs to hold them.

What a reader skips (blanks, line ends, quotes, header fields, metadata, unused entries) could carry row numbers or raw
values past all other checks. So the audit opens the file itself, with code of its own, and judges its very bytes:

- delimited and libsvm text: by its canonical form, see :mod:`sfumato.audit.canonical_text`;
- gzip: fixed header, one member, nothing after it, the compressed stream made again and compared;
- Parquet and workbooks: every part must be one that the format needs, and the file is made again and compared.

What depends on a writer that is not at hand is an exception of the audit's end, not a silence.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from sfumato.audit.canonical_text import BLOCK_BYTES, Gunzipped, TextForm, problem_in_libsvm
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.parquet_bytes import NotAccountedError, account_for, check_cells, is_made_again
from sfumato.audit.workbook_bytes import account_for_workbook
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
        message = "whether the released file holds nothing but its cells, for standard input can be read only once"
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
        form = TextForm(claims.names(), tuple(tokens.values()), delimiter)
        if claims.output_format.endswith(".gz"):
            yield from _in_gzip(chunks, form, claims)
        else:
            yield _judged(form.problem(chunks))
    chunks.finish(sha256)


def _in_gzip(chunks: _HashedChunks, form: TextForm, claims: Claims) -> Found:
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
        message = "whether the compressed stream carries more than its content: another zlib than this one wrote it"
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
    return all(claims.versions.get(name) == found for name, found in installed.items())


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
        raise InputError(problem, path=path, hint="audit it again when nobody writes to it")
