"""Sizes of the equivalence classes of ten million rows, counted from a Parquet file within a memory limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender, Outcome

N_ROWS = 10_000_000
DOMAIN_SIZES = (2, 60, 5, 7, 16, 41, 8, 14)
COLUMNS = tuple(f"q{i}" for i in range(len(DOMAIN_SIZES)))
MEMORY_LIMIT = "700MB"


def make_table(folder: Path) -> None:
    """Write rows whose values are as unevenly frequent as those of a census."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(20)
    columns = {}
    for name, size in zip(COLUMNS, DOMAIN_SIZES, strict=True):
        weights = 1 / np.arange(1, size + 1) ** 1.2
        columns[name] = rng.choice(size, size=N_ROWS, p=weights / weights.sum()).astype(np.int16)
    pq.write_table(pa.table(columns), folder / "rows.parquet")


def count_with_sfumato(folder: Path) -> Any:
    """Count the distinct rows in blocks."""
    import numpy as np

    from sfumato.engines.blocks.rows import open_large
    from sfumato.engines.memory_limit import Memory

    memory = Memory.of(MEMORY_LIMIT)
    rows = open_large(folder / "rows.parquet", memory=memory.n_bytes)
    sizes = rows.distinct(COLUMNS, most_cells=N_ROWS).row_counts
    return [[int(size), int(n)] for size, n in zip(*np.unique(sizes, return_counts=True), strict=True)]


def count_with_duckdb(folder: Path) -> Any:
    """Run the SQL by hand under the same limit."""
    import duckdb

    config: dict[str, Any] = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(folder / "spill")}
    with duckdb.connect(":memory:", config=config) as connection:
        query = (
            f"SELECT size, count(*) FROM (SELECT count(*) AS size FROM read_parquet(?) GROUP BY {', '.join(COLUMNS)}) "
            "GROUP BY size ORDER BY size"
        )
        return connection.execute(query, [str(folder / "rows.parquet")]).fetchall()


def count_with_pandas(folder: Path) -> Any:
    """Read everything and group."""
    import pandas as pd

    rows = pd.read_parquet(folder / "rows.parquet")
    counted = rows.groupby(list(COLUMNS), dropna=False, sort=False).size().value_counts().sort_index()
    return list(counted.items())


def assess(folder: Path, answer: Any) -> Outcome:
    """Answer, with the bytes of the file."""
    return Outcome(answer, {"file bytes": (folder / "rows.parquet").stat().st_size})


BENCHMARK = Benchmark(
    title=f"Equivalence class sizes of {N_ROWS // 1_000_000} million rows × {len(COLUMNS)} columns (Parquet)",
    goal="at most 1.3 × the time of plain DuckDB SQL, peak memory at most 1 GB",
    prepare=make_table,
    contenders=(
        Contender("sfumato", count_with_sfumato, packages=("sfumato",), repeats=3, assess=assess),
        Contender("DuckDB SQL", count_with_duckdb, packages=("duckdb",), repeats=3, assess=assess),
        Contender("pandas groupby", count_with_pandas, packages=("pandas",), repeats=2, assess=assess),
    ),
)
