"""How greedy selection grows: 10,000, 100,000 and 1,000,000 rows × 2,000 columns with 16 draws of a one a row."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender

SIZES = (100_000, 10_000, 1_000_000)
N_COLUMNS, DRAWS = 2_000, 16


def make_rows(n_rows: int, folder: Path) -> Any:
    """Draw rows in which columns are as unevenly frequent as words."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(20)
    weights = 1 / np.arange(1, N_COLUMNS + 1)
    columns = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(n_rows * DRAWS))
    rows = np.repeat(np.arange(n_rows), DRAWS)
    ones = np.ones(len(columns), dtype=np.uint8)
    matrix = sp.csc_matrix((ones, (rows, np.minimum(columns, N_COLUMNS - 1))), shape=(n_rows, N_COLUMNS))
    matrix.data[:] = 1
    return matrix, (rng.random(n_rows) < 0.3).astype(int)


def select(table: Any) -> Any:
    """Select with skip at k = 5; the answer says that the level holds."""
    from sfumato import GreedyContainmentSelector

    return GreedyContainmentSelector(5, on_infeasible="skip").fit(*table).containment_level_ >= 5


BENCHMARK = Benchmark(
    title="Growth of greedy HamDist with skip over rows (2,000 columns, up to 16 ones a row)",
    goal="time and memory near-linear in the number of ones",
    contenders=tuple(
        Contender(f"{n_rows:,} rows", select, partial(make_rows, n_rows), packages=("sfumato",), repeats=2)
        for n_rows in SIZES
    ),
)
