"""Generalized columns of a release against their originals, each read once however many checks ask for it."""

from __future__ import annotations

from sfumato.audit.reading.cells import Containing, contained
from sfumato.audit.reading.columns import Columns
from sfumato.schema import Kind

MOST_KEPT = 1 << 24
"""Numbers that are kept, 128 MiB: columns beyond them are read again."""

_Asked = tuple[str, str, Kind, tuple[str, ...] | None]


class GeneralizedColumns:
    """Which original values the cells of released columns may mean, see :func:`sfumato.audit.reading.cells`.

    Parameters
    ----------
    released, original : Columns
        Neither may change meanwhile.
    """

    def __init__(self, released: Columns, original: Columns) -> None:
        self._released, self._original = released, original
        self._read: dict[_Asked, Containing] = {}
        self._n_left = MOST_KEPT

    def read(self, name: str, column: str, kind: Kind, domain: tuple[str, ...] | None) -> Containing:
        """Read a released column next to a column of the original, whose values have this kind and domain.

        Raises
        ------
        ColumnNotFoundError
            If there is no such column.
        """
        asked = (name, column, kind, domain)
        if asked in self._read:
            return self._read[asked]
        released, original = self._released.coded(name), self._original.coded(column)
        found = contained(released.values, original.values, kind, domain)
        size = len(found.places) + len(found.cells) + len(found.starts) + len(found.stops)
        if size <= self._n_left:
            self._n_left -= size
            self._read[asked] = found
        return found
