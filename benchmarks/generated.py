"""Tables of any size for growth curves, made as codes at once: a census of numbers and categories, and sparse 0/1."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

SENSITIVE, TARGET = "illness", "target"
DOMAIN_SIZES = (73, 2, 16, 7, 5, 99, 14, 8, 41, 21)
"""Values of the first ten quasi-identifiers, of which those with more than 20 but not 41 are numbers; then again."""
ONES_A_ROW = 16


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """Read what a process of this run has made before, or make it and keep it for the others."""
    if path.exists():
        with path.open("rb") as file:
            return pickle.load(file)
    made = make()
    with path.open("wb") as file:
        pickle.dump(made, file, protocol=5)
    return made


def kept_census(n_rows: int, n_columns: int, folder: Path) -> Any:
    """Get the census, made once a run; ``folder`` is that of one benchmark."""
    path = folder.parent / f"census-{n_rows}-{n_columns}.pickle"
    return kept(path, lambda: make_census(n_rows, n_columns))


def kept_sparse(n_rows: int, n_columns: int, folder: Path) -> Any:
    """Get the 0/1 table, made once a run; ``folder`` is that of one benchmark."""
    path = folder.parent / f"sparse-{n_rows}-{n_columns}.pickle"
    return kept(path, lambda: make_sparse(n_rows, n_columns))


def make_census(n_rows: int, n_columns: int = len(DOMAIN_SIZES)) -> Any:
    """Draw people with quasi-identifiers, some of which hang together, a sensitive column and a target with noise."""
    import numpy as np

    from sfumato.schema import Column, Kind, Role, Schema
    from sfumato.table.coding import Source, Table

    rng = np.random.default_rng(29)
    skill = rng.random(n_rows, dtype=np.float32)
    described, columns = [], {}
    for place in range(n_columns):
        n_values = DOMAIN_SIZES[place % len(DOMAIN_SIZES)]
        is_number = n_values > 20 and n_values != 41
        name = f"{'number' if is_number else 'group'}_{place}"
        described.append(Column(name, Role.QUASI_IDENTIFIER, Kind.NUMERIC if is_number else Kind.CATEGORICAL))
        drawn = _drawn(rng, n_values, n_rows) if place % 3 else _beside(rng, skill, n_values)
        columns[name] = _column(drawn, name, is_number)
    score = skill + 0.2 * rng.standard_normal(n_rows, dtype=np.float32)
    columns[SENSITIVE] = _column((_drawn(rng, 12, n_rows) + 4 * (score > 0.7)) % 12, SENSITIVE, False)
    columns[TARGET] = _column((score > 0.6).astype(np.int32), TARGET, False)
    schema = Schema.of([*described, Column(SENSITIVE, Role.SENSITIVE), Column(TARGET, Role.TARGET)])
    return Table(schema, columns, n_rows, Source("generated", "0" * 64))


def make_sparse(n_rows: int, n_columns: int) -> Any:
    """Draw 0/1 columns that are as unevenly frequent as words, every fifth more often in one of two classes.

    A row has 16 ones in the mean, of few columns a third.
    """
    import numpy as np
    import scipy.sparse as sp

    from sfumato.schema import Column, Role, Schema
    from sfumato.table.binary import BinaryTable, Feature
    from sfumato.table.coding import Source, Table

    rng = np.random.default_rng(31)
    classes = (rng.random(n_rows, dtype=np.float32) < 0.3).astype(np.int32)
    weights = 1 / np.arange(2, n_columns + 2)
    shares = (weights * min(ONES_A_ROW, n_columns / 3) / weights.sum()).clip(0, 0.9)
    ones = []
    for place, share in enumerate(shares):
        rows = _drawn_rows(rng, n_rows, share)
        ones.append(rows[(classes[rows] == 1) | (rng.random(len(rows)) < 0.6)] if place % 5 == 1 else rows)
    starts = np.cumsum([0, *map(len, ones)])
    cells = np.ones(starts[-1], dtype=np.uint8)
    matrix = sp.csc_matrix((cells, np.concatenate(ones), starts), shape=(n_rows, n_columns))
    described = Schema.of([Column(TARGET, Role.TARGET)])
    target = Table(described, {TARGET: _column(classes, TARGET, False)}, n_rows, Source("generated", "0" * 64))
    return BinaryTable(matrix, tuple(Feature(f"w{i}", f"w{i}") for i in range(n_columns)), target)


def n_bytes(table: Any) -> int:
    """Bytes of a table in memory: four a coded cell, and the index of every one of a sparse table."""
    from sfumato.table.binary import BinaryTable

    if isinstance(table, BinaryTable):
        return int(table.matrix.indices.nbytes) + n_bytes(table.companions)
    return sum(column.codes.nbytes for column in table.columns.values())


def _drawn(rng: Any, n_values: int, n_rows: int) -> Any:
    """Draw values as unevenly frequent as those of a census."""
    import numpy as np

    weights = np.cumsum(1 / np.arange(1, n_values + 1) ** 1.2)
    share = (weights / weights[-1]).astype(np.float32)
    return np.searchsorted(share, rng.random(n_rows, dtype=np.float32)).clip(0, n_values - 1)


def _drawn_rows(rng: Any, n_rows: int, share: float) -> Any:
    """Draw about a share of the rows, ascending."""
    import numpy as np

    if share > 0.02:
        return np.flatnonzero(rng.random(n_rows, dtype=np.float32) < share).astype(np.int32)
    return np.unique(rng.integers(n_rows, size=max(1, round(n_rows * share)), dtype=np.int32))


def _beside(rng: Any, skill: Any, n_values: int) -> Any:
    """Draw values that go up and down with a person's skill."""
    import numpy as np

    noise = rng.standard_normal(len(skill), dtype=np.float32)
    return ((skill + 0.15 * noise) * n_values).clip(0, n_values - 1).astype(np.int32)


def _column(values: Any, name: str, is_number: bool) -> Any:
    """Code small whole numbers; only those that occur are values."""
    import numpy as np
    import pyarrow as pa

    from sfumato.table.coding import CodedColumn

    present = np.flatnonzero(np.bincount(values))
    codes = np.zeros(present[-1] + 1 if len(present) else 0, dtype=np.int32)
    codes[present] = np.arange(len(present))
    texts = present.astype(np.int64) if is_number else [f"{name} {value:02}" for value in present]
    return CodedColumn(codes[values], pa.array(texts))
