"""How every registered mechanism grows over columns: to 25,000 for 0/1 features, to 1,000 for others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.generated import kept_census, kept_sparse
from benchmarks.growth import Curve, Growth
from benchmarks.growth_rows import SEARCH_SECONDS, ZERO_ONE, assess, mechanism_names, release

N_ROWS, WARM_ROWS = 5_000, 500
SPARSE_COLUMNS, CENSUS_COLUMNS = (10, 100, 1_000, 25_000), (10, 100, 300, 1_000)
WARM_SPARSE_COLUMNS, WARM_CENSUS_COLUMNS = 11, 6
MOST_SECONDS = 8.0
OWN_SECONDS = {"gain-recoding": 5.0, "global-recoding": 5.0}
"""Limits of curves whose search stops by itself, and whose other work then takes far longer than the limit of all."""


def load(name: str, n_columns: int, folder: Path) -> Any:
    """Make the table for a mechanism."""
    n_rows = WARM_ROWS if n_columns in (WARM_SPARSE_COLUMNS, WARM_CENSUS_COLUMNS) else N_ROWS
    return name, (kept_sparse if name in ZERO_ONE else kept_census)(n_rows, n_columns, folder)


def curve(name: str) -> Curve:
    """Make the curve of one mechanism."""
    return Curve(
        name,
        partial(load, name),
        release,
        assess,
        SPARSE_COLUMNS if name in ZERO_ONE else CENSUS_COLUMNS,
        warm_size=WARM_SPARSE_COLUMNS if name in ZERO_ONE else WARM_CENSUS_COLUMNS,
        most_seconds=OWN_SECONDS.get(name),
    )


BENCHMARK = Growth(
    title=f"Release by every mechanism: {N_ROWS:,} rows; sparse columns with up to 16 ones a row for the mechanisms of "
    "0/1 features, quasi-identifiers of a census for the others. Searches that stop at their own limit "
    f"({SEARCH_SECONDS:g} s; gain- and global-recoding, exact-, maximal- and optimal-containment) then give the best "
    "found and a bound. Releases of up to 100 columns are audited, those of 0/1 features all",
    goal="greedy-containment to 25,000 columns within a second",
    axis="columns",
    curves=tuple(curve(name) for name in mechanism_names()),
    most_seconds=MOST_SECONDS,
)
