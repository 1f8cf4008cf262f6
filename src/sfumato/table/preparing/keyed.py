"""What rests on a secret: pseudonyms, and the number of days by which the dates of a person are shifted.

Both are HMAC-SHA-256 (RFC 2104) under a key that is made of the key of the release or, with the scope "project", of the
key of the project. What is hashed is a list of texts, each after its length in eight bytes, as everywhere in
:mod:`sfumato.project.keys`. Without the key a pseudonym looks random, and so does a shift.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from sfumato.table.preparing.declared import Scope

N_DIGITS = 24
"""Hexadecimal digits of a pseudonym: 96 bits, so that two of a hundred million do not meet."""
PREFIX = "p"
"""First character of a pseudonym, so that no program takes it for a number."""


@dataclass(frozen=True)
class PreparationKeys:
    """The secrets that a preparation may need. Their representation does not show them.

    Parameters
    ----------
    release : bytes
        Key of the release; an auditor has it who is given it.
    project : bytes or None
        Key for what is the same in all releases of a project; ``None`` where there is no project.
    """

    release: bytes = field(repr=False)
    project: bytes | None = field(default=None, repr=False)

    @classmethod
    def ephemeral(cls, project: bytes | None = None) -> PreparationKeys:
        """Draw the key of a release that nobody keeps."""
        return cls(secrets.token_bytes(32), project)

    @classmethod
    def of_comparison(cls, *, has_project: bool = True) -> PreparationKeys:
        """Give keys for a table of which no cell is published; always the same, so that finished points are found."""
        fixed = hashlib.sha256(b"sfumato comparison").digest()
        return cls(fixed, fixed if has_project else None)

    def of(self, scope: Scope) -> bytes | None:
        """Key of everything that is prepared within a scope; ``None`` where there is none."""
        return keyed(self.release, "preparation") if scope == "release" else self.project


def pseudonym_of(key: bytes, column: str, text: str) -> str:
    """Replace a text: the same text in the same column has the same pseudonym under the same key.

    Examples
    --------
    >>> one = pseudonym_of(bytes(32), "patient", "1047")
    >>> len(one), one == pseudonym_of(bytes(32), "patient", "1047"), one == pseudonym_of(bytes(32), "mother", "1047")
    (25, True, False)
    """
    return PREFIX + keyed(key, "pseudonym", column, text).hex()[:N_DIGITS]


def days_of(key: bytes, most: int, *whose: str) -> int:
    """By how many days the dates of somebody are shifted, from ``-most`` to ``most``, each as likely.

    Examples
    --------
    >>> -30 <= days_of(bytes(32), 30, "person", "1047") <= 30
    True
    """
    return int.from_bytes(keyed(key, "shift", *whose), "big") % (2 * most + 1) - most


def keyed(key: bytes, *texts: str) -> bytes:
    """HMAC-SHA-256 of texts, each after its length."""
    parts = [text.encode() for text in ("sfumato", *texts)]
    return hmac.digest(key, b"".join(len(part).to_bytes(8, "big") + part for part in parts), hashlib.sha256)
