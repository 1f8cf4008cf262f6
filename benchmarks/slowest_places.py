"""Which work is farthest from the limit of the machine at 100,000 rows, and which functions take its time."""

from __future__ import annotations

from benchmarks import growth_operations, growth_rows
from benchmarks.ranking import Ranking

SIZE = 100_000

BENCHMARK = Ranking(
    title=f"Every mechanism and operation on {SIZE:,} rows, the farthest from the limit first (the limit: reading the "
    "table's bytes once)",
    goal="the first three become faster with every release",
    modules=("growth_rows", "growth_operations"),
    size=SIZE,
    most_seconds=15.0,
    curves=tuple(
        curve
        for growth in (growth_rows.BENCHMARK, growth_operations.BENCHMARK)
        for curve in growth.curves
        if "sfumato" in curve.packages
    ),
)
