"""Columns before and after a release, one record each, in a file of which a page reads only what it shows.

The records hold cell values. The file stands in a job's private folder and is offered for download nowhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Record = dict[str, Any]
"""``number`` (from 1), ``name`` and ``is_released``; what else it holds is for the writer and the page to agree on."""

STORE_NAME = "columns.sqlite"

_TABLE = "CREATE TABLE columns (number INTEGER PRIMARY KEY, name TEXT UNIQUE, is_released INTEGER, record TEXT)"
_LONGEST_PATTERN = 1_000  # characters; SQLite refuses patterns of some ten thousand
_ESCAPES = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


def write_columns(path: Path, records: Iterable[Record]) -> None:
    """Write records into a new file."""
    with closing(sqlite3.connect(path)) as store, store:
        store.execute(_TABLE)
        rows = ((entry["number"], entry["name"], entry["is_released"], json.dumps(entry)) for entry in records)
        store.executemany("INSERT INTO columns VALUES (?, ?, ?, ?)", rows)


class ColumnStore:
    """Reads records by name, by number and by what a name contains.

    Parameters
    ----------
    path : Path
        File that :func:`write_columns` wrote.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / STORE_NAME
    >>> write_columns(path, [{"number": 1, "name": "age", "is_released": True}])
    >>> ColumnStore(path).names("AG")
    ['age']
    """

    def __init__(self, path: Path) -> None:
        self._address = f"{path.absolute().as_uri()}?mode=ro"

    def _select(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._address, uri=True)) as store:
            return store.execute(sql, values).fetchall()

    def __len__(self) -> int:
        return int(self._select("SELECT count(*) FROM columns")[0][0])

    def named(self, name: str) -> Record | None:
        """Record of a column."""
        found = self._select("SELECT record FROM columns WHERE name = ?", name)
        return json.loads(found[0][0]) if found else None

    def numbered(self, numbers: Sequence[int]) -> list[Record]:
        """Give records of some columns, in the order asked; numbers that no column has are passed over."""
        found: list[Record] = []
        for number in numbers:
            rows = self._select("SELECT record FROM columns WHERE number = ?", number)
            found += [json.loads(record) for (record,) in rows]
        return found

    def first_numbers(self, n: int) -> list[int]:
        """Numbers of the first columns, those that are released before the others."""
        chosen = self._select("SELECT number FROM columns ORDER BY is_released DESC, number LIMIT ?", n)
        return sorted(number for (number,) in chosen)

    def names(self, containing: str = "", n: int = 50) -> list[str]:
        """Names that contain a text, in any letter case of ASCII; released columns come first, then shorter names."""
        pattern = f"%{containing[:_LONGEST_PATTERN].translate(_ESCAPES)}%"
        order = "ORDER BY is_released DESC, length(name), number"
        found = self._select(rf"SELECT name FROM columns WHERE name LIKE ? ESCAPE '\' {order} LIMIT ?", pattern, n)
        return [name for (name,) in found]
