"""The key of a project, which stays with its publisher, and the key of one release, which an auditor may be given.

Nothing that is published may be a plain function of the input: whoever can list the possible inputs tries them until it
fits. Commitments, and choices that hide something, are therefore functions of the input and of a key:

- the project's key: 32 random bytes in the file ``sfumato.key`` beside the project file, which only its owner may read;
- the number of a release: a keyed hash of everything that determines the release. The same input, settings and key give
  the same release, to the byte; anything else gives another number, so that equal inputs do not give equal commitments;
- the key of a release, made of the project's key and that number. It serves the release's commitment and its hidden
  choices, each through a key of its own. An auditor gets this one only: it says nothing about other releases.

All keys are derived by HMAC-SHA256 (RFC 2104), with the purpose in front of what is hashed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import InputError, OutputError

KEY_NAME = "sfumato.key"
SCHEME = "hmac-sha256"
_FIRST_WORD = "sfumato-release-key"
_N_BYTES = 32
_PRIVATE = 0o600
_LONGEST = 1_000
_KEEP_SAFE = "restore it from a backup: earlier releases can be checked with that key only"


@dataclass(frozen=True)
class ProjectKey:
    """The secret of a project. Its representation does not show it.

    Examples
    --------
    >>> key = ProjectKey(bytes(32))
    >>> key
    ProjectKey()
    >>> one = key.release_number(b"an input", b"settings")
    >>> one == key.release_number(b"an input", b"settings"), one == key.release_number(b"another", b"settings")
    (True, False)
    """

    secret: bytes = field(repr=False)

    @classmethod
    def load(cls, folder: str | Path) -> ProjectKey | None:
        """Read the key of the project in a folder; ``None`` where there is none.

        Raises
        ------
        InputError
            If the file cannot be read, others may read it, or it holds no key.
        """
        path = Path(folder) / KEY_NAME
        if not os.path.lexists(path):
            return None
        text = _private_text(path)
        if re.fullmatch(rf"[0-9a-f]{{{2 * _N_BYTES}}}\n?", text) is None:
            problem = "does not hold the key of a project"
            raise InputError(problem, path=path, hint=_KEEP_SAFE)
        return cls(bytes.fromhex(text.strip()))

    @classmethod
    def load_or_create(cls, folder: str | Path) -> ProjectKey:
        """Read the key of the project in a folder, or make one that only this user can read and git ignores."""
        found = cls.load(folder)
        if found is not None:
            return found
        new = cls.ephemeral()
        try:
            new.keep(folder)
        except OutputError:  # another process may have made it in the meantime, which is the project's key then
            found = cls.load(folder)
            if found is None:
                raise
            return found
        return new

    def keep(self, folder: str | Path) -> None:
        """Make it the key of the project in a folder, in a file that only this user can read and git ignores.

        Raises
        ------
        OutputError
            If the project has a key, or the folder cannot be written.
        """
        ignore_in_git(Path(folder), KEY_NAME)
        write_atomically(Path(folder) / KEY_NAME, f"{self.secret.hex()}\n".encode(), mode=_PRIVATE)

    @classmethod
    def ephemeral(cls) -> ProjectKey:
        """Draw a key that is not kept yet."""
        return cls(secrets.token_bytes(_N_BYTES))

    def derive(self, purpose: str, *parts: bytes) -> bytes:
        """Make 32 bytes for a purpose out of the key and some parts; without the key they look random."""
        return _derived(self.secret, purpose, *parts)

    def release_number(self, *determining: bytes) -> str:
        """Give the number of a release: 32 hexadecimal digits that follow from the key and what determines it."""
        return self.derive("number of a release", *determining)[:16].hex()

    @property
    def preparation(self) -> bytes:
        """Secret of pseudonyms and shifted dates that are the same in all releases of the project."""
        return self.derive("preparation of all releases")

    def subkey(self, release: str) -> ReleaseKey:
        """Give the key of the release with this number."""
        return ReleaseKey(release, self.derive("key of a release", release.encode()))


@dataclass(frozen=True)
class ReleaseKey:
    """The secret of one release: enough to check its commitment, and nothing about any other release."""

    release: str
    secret: bytes = field(repr=False)

    def commitment(self, input_sha256: str) -> dict[str, str]:
        """Commit to an input by its SHA-256, as a manifest states it."""
        value = _derived(_derived(self.secret, "commitment"), "input", input_sha256.encode())
        return {"scheme": SCHEME, "release": self.release, "value": value.hex()}

    def commitment_to_population(self, sha256: str) -> str:
        """Commit to a table of the population by its SHA-256, as a promise about it states it."""
        return _derived(_derived(self.secret, "commitment"), "population", sha256.encode()).hex()

    @property
    def choices(self) -> bytes:
        """Secret of the random choices that hide something."""
        return _derived(self.secret, "choices")

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write it into a file that only this user can read, for the auditor of this release."""
        text = f"{_FIRST_WORD} {self.release} {self.secret.hex()}\n"
        write_atomically(Path(path), text.encode(), force=force, mode=_PRIVATE)

    @classmethod
    def load(cls, path: str | Path) -> ReleaseKey:
        """Read a file that :meth:`save` wrote.

        Raises
        ------
        InputError
            If it cannot be read or is no such file; a project's key is refused, which no auditor should have.
        """
        path = Path(path)
        text = _private_text(path)
        found = re.fullmatch(rf"{_FIRST_WORD} ([0-9a-f]{{32}}) ([0-9a-f]{{{2 * _N_BYTES}}})\n?", text)
        if found is None:
            is_projects = re.fullmatch(rf"[0-9a-f]{{{2 * _N_BYTES}}}\n?", text) is not None
            problem = "is the key of a project, which stays with it" if is_projects else "is not the key of a release"
            hint = "give the key of this release, which its publisher makes from the project's"
            raise InputError(problem, path=path, hint=hint, remedy=("audit_key",))
        return cls(found[1], bytes.fromhex(found[2]))


def key_of_manifest(folder: str | Path, manifest: Mapping[str, Any]) -> ReleaseKey | None:
    """Make the key of a published release from the key of the project in a folder.

    Parameters
    ----------
    manifest : mapping
        Its entries. ``None`` comes back if it has no commitment, or the project no key.
    """
    source = manifest.get("input")
    commitment = source.get("commitment") if isinstance(source, Mapping) else None
    key = ProjectKey.load(folder) if isinstance(commitment, Mapping) else None
    return key.subkey(str(commitment["release"])) if key is not None and isinstance(commitment, Mapping) else None


def ignore_in_git(folder: Path, name: str) -> None:
    """List a file in the ``.gitignore`` of its folder, unless it is listed there."""
    path = folder / ".gitignore"
    with explained_writing(path):
        listed = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        if name in listed.splitlines():
            return
        start = "\n" if listed and not listed.endswith("\n") else ""
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(f"{start}{name}\n")


def _derived(secret: bytes, purpose: str, *parts: bytes) -> bytes:
    """HMAC-SHA256 of a purpose and parts, each with its length, so that no two lists of them are the same bytes."""
    listed = (b"sfumato", purpose.encode(), *parts)
    message = b"".join(len(part).to_bytes(8, "big") + part for part in listed)
    return hmac.digest(secret, message, hashlib.sha256)


def _private_text(path: Path) -> str:
    """Read a small file that nobody else may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
                problem = "others on this machine may read or change it"
                raise InputError(problem, path=path, hint=f"run chmod 600 {path}")
            content = file.read(_LONGEST)
    except OSError as exc:
        problem = f"cannot be read ({exc.strerror})"
        raise InputError(problem, path=path, hint="let its owner run this, or make it readable for you only") from None
    with suppress(UnicodeDecodeError):
        return content.decode("ascii")
    return ""
