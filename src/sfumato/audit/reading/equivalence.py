"""Equivalence classes of a release, counted by a database: levels are queries over them.

A query sees three tables. ``classes`` has the size of each class, ``pairs`` how often each value of a column occurs in
each class where it does, ``totals`` how often in the whole release. Counted by rows all of these are whole numbers, so
that a query is exact up to its last division. Counted by persons, each person weighs 1 in a class, shared equally over
the person's rows there, and 1 in the release, shared over all of the person's rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.reading.columns import Columns, distinct_patterns
from sfumato.audit.reading.packing import Packing
from sfumato.audit.reading.values import ranks, spelled_ranks

if TYPE_CHECKING:
    import duckdb

Ids = NDArray[np.int64]

_BY_ROWS = """
CREATE TEMP TABLE keys AS SELECT row_number() OVER () AS class, * FROM (SELECT DISTINCT {keys} FROM entries);
CREATE TEMP TABLE counts AS
    SELECT class, value, sum(n) AS n FROM entries JOIN keys USING ({keys}) GROUP BY class, value;
CREATE TEMP TABLE classes AS SELECT class, sum(n) AS size FROM counts GROUP BY class;
CREATE TEMP TABLE totals AS SELECT value, sum(n) AS n FROM counts GROUP BY value;
"""
_BY_PERSONS = """
CREATE TEMP TABLE weighed AS
    SELECT class, value,
        1 / count(*) OVER (PARTITION BY class, person) AS of_class,
        1 / count(*) OVER (PARTITION BY person) AS of_all
    FROM entries;
CREATE TEMP TABLE counts AS
    SELECT class, value, sum(of_class ORDER BY of_class) AS n FROM weighed GROUP BY class, value;
CREATE TEMP TABLE classes AS SELECT class, count(DISTINCT person) AS size FROM entries GROUP BY class;
CREATE TEMP TABLE totals AS SELECT value, sum(of_all ORDER BY of_all) AS n FROM weighed GROUP BY value;
"""
_PAIRS = "CREATE TEMP VIEW pairs AS SELECT class, size, value, n FROM counts JOIN classes USING (class);"


class EquivalenceClasses:
    """Classes of equal released rows in a database, with the values of a column in them.

    Tables
    ------
    classes : class, size
        Rows of each class, or its persons.
    pairs : class, size, value, n
        How often each value occurs in each class where it does. Values are numbered in their order, missing last.
    totals : value, n
        How often each value occurs in the release.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, *, by_persons: bool) -> None:
        self._cursor = cursor
        self.by_persons = by_persons

    def ask(self, query: str, **parameters: Any) -> float:
        """Give the one number that a query finds; what it names as ``$name`` is a parameter."""
        (found,) = self._cursor.execute(query, parameters or None).fetchone() or (0,)
        return found if isinstance(found, int) else float(found)


@contextmanager
def classes_of_rows(
    columns: Columns, over: Sequence[str], value: str | None = None, *, spelled: bool = False
) -> Iterator[EquivalenceClasses]:
    """Count rows, or distinct rows with their counts, that are equal on some columns; no columns: one class of all.

    Missing equals missing, and is a value. A value is one however it is spelled or, where ``spelled``, each spelling is
    one.
    """
    columns.check_counted(over if value is None else [*over, value])
    features, coded = columns.split(over)
    codes: list[NDArray[np.integer]] = [np.zeros(columns.n_entries, dtype=np.int64)]
    n_values = [1]
    if features:
        of_row, first_rows = distinct_patterns(columns.ones(features))
        codes.append(of_row)
        n_values.append(len(first_rows))
    for column in coded:
        codes.append(column.codes)
        n_values.append(len(column.values))
    keys = Packing.of(n_values).packed(codes)
    entries: dict[str, NDArray[np.integer]] = {f"key{i}": own for i, own in enumerate(keys)}
    counts = columns.row_counts
    entries |= {
        "value": np.zeros(columns.n_entries, dtype=np.int64) if value is None else value_ranks(columns, value, spelled),
        "n": np.ones(columns.n_entries, dtype=np.int64) if counts is None else counts,
    }
    with _counted(entries, _BY_ROWS.format(keys=", ".join(f"key{i}" for i in range(len(keys))))) as cursor:
        yield EquivalenceClasses(cursor, by_persons=False)


@contextmanager
def classes_of_persons(
    classes: NDArray[np.integer], persons: NDArray[np.integer], values: NDArray[np.integer]
) -> Iterator[EquivalenceClasses]:
    """Count persons by the class, the person and the value of each released row."""
    with _counted({"class": classes, "person": persons, "value": values}, _BY_PERSONS) as cursor:
        yield EquivalenceClasses(cursor, by_persons=True)


def value_ranks(columns: Columns, name: str, spelled: bool) -> NDArray[np.int64]:
    """Rank of the value of each row, or of its spelling, in the order of the values."""
    column, described = columns.coded(name), columns.describe(name)
    rank = (spelled_ranks if spelled else ranks)(column.values, described.kind, described.domain)
    return rank[column.codes]


def n_merged_spellings(columns: Columns, name: str) -> int:
    """Count the spellings of a column that are counted as a value which another spelling has, too."""
    codes = np.unique(columns.coded(name).codes)
    return len(codes) - len(np.unique(value_ranks(columns, name, spelled=False)))


def largest_matchings(classes: Ids, entries: Ids, values: Ids, n_classes: int) -> Ids:
    """Size of the largest matching of values and entries in each class.

    Parameters
    ----------
    classes : ndarray of int64
        Class of each entry.
    entries, values : ndarray of int64
        Entry and value of each row.
    """
    width = int(values.max(initial=0)) + 1
    edges = np.unique(entries * width + values)
    entries, values = edges // width, edges % width
    of_class, number = np.unique(classes[entries] * width + values, return_inverse=True)
    has_partner = np.ones(len(of_class), dtype=np.bool_)
    if len(np.unique(entries)) < len(entries):  # somebody carries several values
        import scipy.sparse as sp
        from scipy.sparse.csgraph import maximum_bipartite_matching

        places = number.reshape(-1), entries
        graph = sp.csr_matrix((np.ones(len(entries), dtype=np.int8), places), shape=(len(of_class), len(classes)))
        has_partner = maximum_bipartite_matching(graph, perm_type="column") >= 0
    return np.bincount((of_class // width)[has_partner], minlength=n_classes).astype(np.int64)


@contextmanager
def _counted(entries: dict[str, NDArray[np.integer]], tables: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with _database(os.getpid()).cursor() as cursor:
        cursor.register("entries", pa.table(entries))
        cursor.execute(tables + _PAIRS)
        yield cursor


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Database in memory of a process, which writes nothing to any disk; a forked process needs one of its own.

    One thread, so that sums of fractions are the same every time.
    """
    import duckdb

    config: dict[str, Any] = {
        "threads": 1,
        "temp_directory": "",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET enable_progress_bar = false")
    return connection
