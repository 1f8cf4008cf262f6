"""The ledger: what a project has released, kept privately next to its project file.

One folder a release, with a copy of the released file and of its manifest, and whose row is in which class: a keyed
hash of each person, the number of the class, and keyed hashes of promised sensitive values. The hashes tell nothing
without the key of the project; with it they are personal data. Folders have mode 0700, files 0600, and a ``.gitignore``
keeps all of it out of repositories. An entry appears whole, by one rename, or not at all.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.atomic import alone_in, explained_writing
from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import Named, NamedRows, Promised, are_same
from sfumato.errors import InputError, ManifestError, OutputError
from sfumato.manifest import Manifest
from sfumato.manifest_schema import parsed_manifest
from sfumato.private_folders import remove_leftovers
from sfumato.project.keys import KEY_NAME, ProjectKey
from sfumato.schema import LEDGER_NAME

_VERSION = 1
_ABOUT, _MANIFEST, _ROWS = "entry.json", "manifest.json", "persons.parquet"
_ENTRY = re.compile(r"[0-9]{4,}", re.ASCII)
_PURPOSE = "ledger"
_README = """What this project has released, and whose row is in which class of each release (hashes under the key).
This is personal data: share it with nobody, and back it up together with the key.
sfumato release checks each new release together with these. See docs/guide/several-releases.md.
"""


@dataclass(frozen=True, eq=False)
class Entry:
    """One release in the ledger; ``rows`` is ``None`` where nobody could say whose rows it holds."""

    number: int
    output_name: str
    released_sha256: str
    mechanism: str
    person: str | None
    promised: Promised
    rows: NamedRows | None
    levels: Mapping[str, int] | None = None
    """Level of each quasi-identifier's hierarchy, where the release is a global recoding."""


class Ledger:
    """Releases of a project, read from and written to a private folder.

    Parameters
    ----------
    folder : path
        Need not be there yet: the first entry makes it, and the key of the project (:mod:`sfumato.project.keys`) in the
        folder above where there is none.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    @classmethod
    def of_project(cls, project_path: str | Path) -> Ledger:
        """Give the ledger next to a project file."""
        return cls(Path(project_path).absolute().parent / LEDGER_NAME)

    @property
    def exists(self) -> bool:
        """Whether there is a ledger, with or without entries."""
        return self.folder.is_dir()

    def __len__(self) -> int:
        return len(self._folders())

    def _folders(self) -> list[Path]:
        if not self.exists:
            return []
        return sorted((f for f in self.folder.iterdir() if _ENTRY.fullmatch(f.name)), key=lambda f: int(f.name))

    # The key.

    def _key(self, *, may_make: bool = False) -> bytes:
        folder = self.folder.parent
        key = ProjectKey.load_or_create(folder) if may_make and not self._folders() else ProjectKey.load(folder)
        if key is None:
            raise self._lost_key("is not there")
        return key.derive("ledger")

    def check_key(self) -> None:
        """Refuse to go on without the key that entries were made with, before anybody makes another.

        Raises
        ------
        InputError
            If there are entries and the project has no key.
        """
        if self._folders():
            self._key()

    def _lost_key(self, problem: str) -> InputError:
        path = self.folder.parent / KEY_NAME
        hint = (
            "restore it from a backup; without it nobody can say who is in the earlier releases. If it is lost for "
            f"good, move {LEDGER_NAME} away: new releases are then checked with none of them"
        )
        return InputError(f"the project's key {problem}", path=path, hint=hint)

    def named(self, rows: NamedRows) -> NamedRows:
        """Give persons and values the names that they have in this ledger: keyed hashes.

        Before the first entry this makes the key of the project where there is none.
        """
        key = self._key(may_make=True)
        values = {column: _hashed(own, key, f"value {column}") for column, own in rows.values.items()}
        return replace(rows, persons=_hashed(rows.persons, key, "person"), values=values)

    # Reading.

    def entries(self) -> list[Entry]:
        """Read all entries, in the order in which they were made.

        Raises
        ------
        InputError
            If an entry is damaged, or was made with another key.
        """
        folders = self._folders()
        key = self._key() if folders else b""
        return [self._entry(folder, key) for folder in folders]

    def _entry(self, folder: Path, key: bytes) -> Entry:
        try:
            about = json.loads((folder / _ABOUT).read_bytes())
            if about["sfumato_ledger"] != _VERSION:
                problem = "is of another version of the ledger"
                raise InputError(problem, path=folder, hint="use the sfumato that wrote it, or a newer one")
            manifest = parsed_manifest((folder / _MANIFEST).read_text(encoding="utf-8"))
            promised = Promised.of(read_claims(manifest))
            rows = _read_rows(folder / _ROWS, promised) if about["has_persons"] else None
            entry = Entry(
                int(folder.name),
                str(about["output_name"]),
                str(about["released_sha256"]),
                str(about["mechanism"]),
                about["person"],
                promised,
                rows,
                levels_of(manifest),
            )
            known = str(about["key_check"])
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError, ManifestError, pa.ArrowException):
            problem = "this entry of the ledger is damaged"
            hint = "restore it from a backup; to forget the release, say so explicitly"
            raise InputError(problem, path=folder, hint=hint, remedy=("forget",)) from None
        if not hmac.compare_digest(known, _key_check(key)):
            raise self._lost_key("is not the one that the ledger was made with")
        return entry

    def table_path(self, number: int) -> Path:
        """Path of the copy of a released file."""
        folder = self.folder / f"{number:04d}"
        name = json.loads((folder / _ABOUT).read_bytes())["copy"]
        return folder / str(name)

    def manifest_path(self, number: int) -> Path:
        """Path of the copy of a manifest."""
        return self.folder / f"{number:04d}" / _MANIFEST

    # Writing.

    def _prepare(self) -> None:
        with explained_writing(self.folder):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)  # a umask may have taken more
            for name, content in ((".gitignore", b"*\n"), ("README", _README.encode())):
                if not (self.folder / name).exists():
                    _write_private(self.folder / name, content)

    @contextlib.contextmanager
    def recorded(
        self,
        table: Path,
        manifest: Manifest,
        rows: NamedRows | None,
        person: str | None,
        *,
        checked: Sequence[int] | None = None,
    ) -> Iterator[int | None]:
        """Keep a release while it gets its name: if that fails, the entry is taken back.

        A kill in between leaves an entry of a release that did not appear: one too many, never one too few. A release
        that is in the ledger already, to the byte and with the same rows, gets no second entry.

        Parameters
        ----------
        table : path
            Where the released bytes can be read.
        rows : NamedRows or None
            As :meth:`named` gives them.
        checked : sequence of int or None
            Numbers of the entries that it was checked with: others must not be there.
        """
        self._prepare()
        if any(self._is_same(entry, manifest, rows) for entry in self.entries()):
            yield None
            return
        key = self._key(may_make=True)
        remove_leftovers(self.folder, _PURPOSE)
        hidden = self.folder / f"sfumato-{_PURPOSE}-{os.getpid()}-{secrets.token_hex(6)}"
        try:
            with explained_writing(self.folder):
                hidden.mkdir(mode=0o700)
                self._write(hidden, table, manifest, rows, person, key)
            with alone_in(self.folder), explained_writing(self.folder):
                numbers = [int(folder.name) for folder in self._folders()]
                if checked is not None and numbers != list(checked):
                    problem = "another release was put into the ledger in the meantime"
                    raise OutputError(problem, path=self.folder, hint="release once more")
                number = max(numbers, default=0) + 1
                entry = self.folder / f"{number:04d}"
                hidden.rename(entry)
                _sync(self.folder)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        try:
            yield number
        except BaseException:
            self._remove(entry)
            raise

    def _is_same(self, entry: Entry, manifest: Manifest, rows: NamedRows | None) -> bool:
        if entry.released_sha256 != manifest.output["sha256"] or (entry.rows is None) != (rows is None):
            return False
        return entry.rows is None or rows is None or are_same(entry.rows, rows)

    def _write(
        self, folder: Path, table: Path, manifest: Manifest, rows: NamedRows | None, person: str | None, key: bytes
    ) -> None:
        copy = f"released{''.join(Path(manifest.output['name']).suffixes)[-20:]}"
        about: dict[str, Any] = {
            "sfumato_ledger": _VERSION,
            "output_name": manifest.output["name"],
            "released_sha256": manifest.output["sha256"],
            "mechanism": manifest.mechanism["name"],
            "copy": copy,
            "person": person,
            "has_persons": rows is not None,
            "key_check": _key_check(key),
        }
        if table.is_dir():  # the part files of a cluster
            (folder / copy).mkdir(mode=0o700)
            pairs = [(part, folder / copy / part.name) for part in sorted(table.iterdir()) if part.is_file()]
        else:
            pairs = [(table, folder / copy)]
        for path, own in pairs:
            with path.open("rb") as source, _private(own) as target:
                shutil.copyfileobj(source, target)
        _write_private(folder / _MANIFEST, manifest.to_json().encode())
        if rows is not None:
            sink = pa.BufferOutputStream()
            pq.write_table(_as_arrow(rows), sink)
            _write_private(folder / _ROWS, sink.getvalue().to_pybytes())
        _write_private(folder / _ABOUT, (json.dumps(about, indent=2) + "\n").encode())
        _sync(folder)

    def forget(self, number: int) -> None:
        """Remove an entry: for a release that nobody was ever given.

        Raises
        ------
        InputError
            If there is no such entry.
        """
        folder = self.folder / f"{number:04d}"
        if folder not in self._folders():
            problem = f"the ledger has no entry {number}"
            raise InputError(problem, path=self.folder, hint=f"it has {len(self):,}")
        self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Take an entry away by one rename, then its files."""
        hidden = self.folder / f"sfumato-{_PURPOSE}-{os.getpid()}-{secrets.token_hex(6)}"
        with explained_writing(self.folder):
            folder.rename(hidden)
            _sync(self.folder)
        shutil.rmtree(hidden, ignore_errors=True)


def levels_of(manifest: Mapping[str, Any]) -> Mapping[str, int] | None:
    """Level of each quasi-identifier that a manifest states of a global recoding; ``None`` of all else."""
    evidence = manifest.get("evidence")
    utility = evidence.get("utility") if isinstance(evidence, Mapping) else None
    levels = utility.get("levels") if isinstance(utility, Mapping) else None
    if not isinstance(levels, Mapping) or not all(isinstance(level, int) for level in levels.values()):
        return None
    return {str(name): int(level) for name, level in levels.items()}


def _hashed(named: Named, key: bytes, purpose: str) -> Named:
    start = purpose.encode() + b"\0"
    hashes = [hmac.digest(key, start + name, "sha256").hex().encode() for name in named.names]
    place = {own: i for i, own in enumerate(sorted(hashes))}  # by hash, so that the order says nothing about the names
    codes = np.array([place[own] for own in hashes], dtype=np.int64)
    return Named(codes[named.codes] if len(codes) else named.codes, tuple(place))


def _key_check(key: bytes) -> str:
    return hmac.digest(key, b"sfumato ledger key check", "sha256").hex()


def _as_arrow(rows: NamedRows) -> pa.Table:
    columns = {"person": _dictionary(rows.persons), "class": pa.array(rows.classes, pa.int64())}
    columns |= {f"value {name}": _dictionary(own) for name, own in rows.values.items()}
    table = pa.table(columns)
    return table.take(pa.array(np.argsort(rows.persons.codes, kind="stable")))  # not in the order of the input


def _dictionary(named: Named) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(named.codes, pa.int32()), pa.array(named.names, pa.binary()))


def _read_rows(path: Path, promised: Promised) -> NamedRows:
    table = pq.read_table(path)
    classes = np.asarray(table.column("class").combine_chunks().to_numpy(zero_copy_only=False), dtype=np.int64)
    # entries made before l by persons was judged lack the values: k is judged with them, and l is said not to be
    kept = {name: level for name, level in promised.diversity.items() if f"value {name}" in table.column_names}
    if len(kept) < len(promised.diversity):
        promised = replace(promised, diversity=kept, others=(*promised.others, "l-diversity by persons"))
    values = {name: _named(table.column(f"value {name}")) for name in kept}
    return NamedRows(_named(table.column("person")), classes, values, promised)


def _named(column: pa.ChunkedArray) -> Named:
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return Named(np.asarray(codes, dtype=np.int64), tuple(encoded.dictionary.to_pylist()))


def _private(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write_private(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read."""
    with _private(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
