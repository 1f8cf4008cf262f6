"""What an audit is given besides a release and its manifest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.reading.columns import AnyTable, Declared

Original = TypeVar("Original", covariant=True)


@dataclass(frozen=True)
class AuditorHas(Generic[Original]):
    """What the auditor has besides the release; without some of it some checks are exceptions.

    Parameters
    ----------
    original : Table, BinaryTable or rows elsewhere, or None
        The table that the release was made of. Of a release of several parties' rows together it is one party's: each
        of its rows must have a released row of its own. Nobody has all of them, so that the rest is an exception.
    original_sha256 : str or None
        Hash of the original's file, for the commitment in the manifest.
    roles : bool or collection of str
        Columns of the original whose roles its holder declared, or whether all were: they must be released under them.
        The roles of other columns are the manifest's word, which is an exception.
    key : bytes or None
        Key of the release, by which the commitment is checked, and pseudonyms and shifted dates are computed again.
    project_key : bytes or None
        The same for those that all releases of a project share.
    register : Table or BinaryTable or None
        Table of the population, one row a person, which k-map and δ-presence are promised about.
    """

    original: Original | None = None
    original_sha256: str | None = None
    roles: Declared = False
    key: bytes | None = field(default=None, repr=False)
    project_key: bytes | None = field(default=None, repr=False)
    register: AnyTable | None = None


@dataclass(frozen=True)
class PublisherKnows:
    """What only the publisher of a release knows.

    Parameters
    ----------
    places : array or None
        At which place of the release each of its rows is when they are taken in the original's order. Then each row is
        compared with its own original; without it sorted rows are compared as a bag.
    own_rows : array or None
        With ``places``: row of the original of each released row, in the original's order. Where rows were left out and
        cells overlap, nothing else shows which they are.
    levels_are_stated : bool
        Whether the manifest states the levels found as audited already; else they are not compared.
    """

    places: NDArray[np.intp] | None = None
    own_rows: NDArray[np.intp] | None = None
    levels_are_stated: bool = True
