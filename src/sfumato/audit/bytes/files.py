"""Every byte of a released file is accounted for: nothing in it but the cells and what its format needs to hold them.

What a reader skips (blanks, line ends, quotes, header fields, metadata, unused entries) could carry row numbers or raw
values past all other checks. So the audit parses the file, writes what it parsed with the canonical writer, and
compares all bytes. Where the bytes depend on a library, and the manifest names other versions than those at hand, the
same content must be found by the library's own means, and that the bytes were not made again is an exception.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from sfumato.audit.bytes.compared import NotAccountedError, require
from sfumato.audit.bytes.statistics_files import FORMATS as STATISTICS_FORMATS
from sfumato.audit.bytes.text import Tokens, gzip_framing, problem_of_text
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.errors import InputError
from sfumato.manifest_schema import VERSION
from sfumato.schema import Role
from sfumato.table.io.statistics.read import require_pyreadstat

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
    judge = {"parquet": _in_parquet, "excel": _in_workbook, **dict.fromkeys(STATISTICS_FORMATS, _in_statistics_file)}
    try:
        yield from judge.get(form, _in_text)(Path(path), claims, tokens, sha256)
    except NotAccountedError as exc:
        yield _judged(str(exc))
    except OSError as exc:
        if isinstance(exc, InputError):
            raise
        problem = f"cannot be read ({exc.strerror})"
        raise InputError(problem, path=path) from None


def _in_text(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    form = claims.output_format
    problem, found = problem_of_text(path, form, tokens, claims.names(Role.QUASI_IDENTIFIER))
    if not form.endswith(".gz"):
        _ensure_same(path, sha256, found)
        yield _judged(problem)
        return
    framing, is_same_stream, found = gzip_framing(path)
    _ensure_same(path, sha256, found)
    problem = framing or problem
    if not problem and not is_same_stream and _are_recorded(claims, "zlib"):
        problem = "the compressed stream is not the one that the recorded zlib makes of its content"
    yield _judged(problem, by_content=not is_same_stream)
    if not problem and not is_same_stream:
        message = "whether the compressed stream carries more than its content: another version of zlib wrote it"
        yield Unchecked("compression", message, "audit it with the zlib version that the manifest names")


def _in_parquet(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    from sfumato.audit.bytes import parquet

    is_folder = path.is_dir()
    parts = _parts(path) if is_folder else [path]
    again = [parquet.written_again(part, tokens) for part in parts]
    hashes = [found for _, found in again]
    listing = "".join(f"{found}  {part.name}\n" for part, found in zip(parts, hashes, strict=True))
    _ensure_same(path, sha256, hashlib.sha256(listing.encode()).hexdigest() if is_folder else hashes[0])
    is_same = not is_folder and all(same for same, _ in again)
    _refuse_at_hand(is_same or is_folder, claims, "sfumato", "pyarrow")
    for part in parts if not is_same else ():
        parquet.check_content(part)
    yield from _confirmed(is_same, "" if is_folder else "sfumato and pyarrow")


def _in_workbook(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    from sfumato.audit.bytes import workbook

    content = path.read_bytes()
    _ensure_same(path, sha256, hashlib.sha256(content).hexdigest())
    made = workbook.written_again(content, tokens)
    _refuse_at_hand(made == content, claims, "sfumato", "xlsxwriter", "zlib")
    if made != content:
        workbook.check_content(content, made)
    yield from _confirmed(made == content, "sfumato, xlsxwriter and zlib")


def _in_statistics_file(path: Path, claims: Claims, tokens: Tokens, sha256: str | None) -> Found:
    from sfumato.audit.bytes import statistics_files

    require_pyreadstat("its audit", str(path))
    _ensure_same(path, sha256, _file_sha256(path))
    made = statistics_files.written_again(path, claims, tokens)
    is_same = made == path.read_bytes()
    _refuse_at_hand(is_same, claims, "sfumato", "pyreadstat")
    if not is_same:
        statistics_files.check_content(path, made, claims.output_format)
    yield from _confirmed(is_same, "sfumato and pyreadstat")


def _refuse_at_hand(is_same: bool, claims: Claims, *writers: str) -> None:
    """Refuse other bytes than those of the writer if the manifest names the very versions that are installed."""
    is_other = is_same or not _are_recorded(claims, *writers)
    require(is_other, f"the recorded versions of {', '.join(writers)} make other bytes of its cells")


def _confirmed(is_same: bool, writers: str) -> Found:
    yield _judged("", by_content=not is_same)
    if not is_same:
        message = (
            "whether the writer's choices (pages, runs, compression) carry more than the cells: the same content was "
            "found in the file, but its writer is not at hand to make it again"
        )
        yield Unchecked("writer", message, f"audit it with the versions of {writers} that it names" if writers else "")


def _are_recorded(claims: Claims, *writers: str) -> bool:
    """Whether the manifest names the very versions that are installed."""
    installed = {name: zlib.ZLIB_RUNTIME_VERSION if name == "zlib" else version(name) for name in writers}
    numbers = {name: re.match(VERSION["pattern"].removesuffix("$"), found) for name, found in installed.items()}
    return all(found is not None and claims.versions.get(name) == found[0] for name, found in numbers.items())


def _judged(problem: str, *, by_content: bool = False) -> Check:
    how = "by its content" if by_content else "byte for byte"
    said = f"holds more than its cells: {problem}" if problem else f"holds its cells and nothing else, {how}"
    return Check(NAME, not problem, f"the released file {said}")


def _parts(folder: Path) -> list[Path]:
    """List the part files of a folder, in which nothing else may be but what Hadoop adds.

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
    """Content of the file of checksums that Hadoop adds to a file."""
    yield _HADOOP_CHECKSUMS
    with path.open("rb") as file:
        while piece := file.read(_HADOOP_BYTES):
            yield zlib.crc32(piece).to_bytes(4, "big")


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _ensure_same(path: Path, sha256: str | None, found: str) -> None:
    """Refuse a file that is another one than when its table was read."""
    if sha256 is not None and sha256 != found:
        problem = "changed while it was being audited"
        raise InputError(problem, path=path, hint="audit it again when no program is writing to it")
