"""The entries of each kind of guarantee in a manifest, as the audit has them.

:func:`sfumato.audit.kinds.judge` adds each kind, together with how it is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CROWD: Mapping[str, Any] = {"k": "crowd", "columns": ["text"]}
"""Entries of a guarantee of at least k rows."""
LEFT_OUT: Mapping[str, Any] = {"protected?": ["text"]}
"""Entry of a guarantee that may be over some of the quasi-identifiers only."""


@dataclass(frozen=True)
class GuaranteeForm:
    """What a manifest says of a kind of guarantee.

    Parameters
    ----------
    form : mapping
        Its own entries in a manifest and their types, in the words of :mod:`sfumato.audit.manifest_form`.
    parameters : tuple of str
        Entries that a mechanism may have as parameters of the same name: they must be the same. The first is the level.
    """

    form: Mapping[str, Any]
    parameters: tuple[str, ...] = ()


FORMS: dict[str, GuaranteeForm] = {}
"""Every kind that a manifest may promise."""
