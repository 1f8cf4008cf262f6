"""How every registered mechanism grows over columns: to 25,000 for 0/1 features, to 1,000 for others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.generated import make_census, make_sparse
from benchmarks.growth import Curve, Growth
from benchmarks.growth_rows import AUDITED_ROWS, SEARCH_SECONDS, ZERO_ONE, assess, mechanism_names, release

N_ROWS = 5_000
SPARSE_COLUMNS, CENSUS_COLUMNS = (10, 100, 1_000, 25_000), (10, 100, 1_000)
MOST_SECONDS = 8.0


def load(name: str, n_columns: int, folder: Path) -> Any:
    """Make the table for a mechanism."""
    return name, make_sparse(N_ROWS, n_columns) if name in ZERO_ONE else make_census(N_ROWS, n_columns)


def curve(name: str) -> Curve:
    """Make the curve of one mechanism."""
    return Curve(
        name,
        partial(load, name),
        release,
        assess,
        SPARSE_COLUMNS if name in ZERO_ONE else CENSUS_COLUMNS,
        warm_size=10,
    )


BENCHMARK = Growth(
    title=f"Release by every mechanism: {N_ROWS:,} rows; sparse columns with up to 16 ones a row for the mechanisms of "
    "0/1 features, quasi-identifiers of a census for the others. Searches that stop at their own limit "
    f"({SEARCH_SECONDS:g} s; gain- and global-recoding, exact-, maximal- and optimal-containment) then give the best "
    f"found and a bound. All releases of up to {AUDITED_ROWS:,} rows are audited",
    goal="greedy-containment to 25,000 columns within a second",
    axis="columns",
    curves=tuple(curve(name) for name in mechanism_names()),
    most_seconds=MOST_SECONDS,
)
