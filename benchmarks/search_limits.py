"""Whether searches over hierarchies keep their limit in seconds, at 30, 100 and 300 columns.

Seconds are those of the whole recoding of a table in memory: hierarchies, gains, counting, search and regrouping.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender, Outcome
from benchmarks.generated import kept_census

N_ROWS = 10_000
COLUMNS = (30, 100, 300)
LIMIT = 2.0


def load(n_columns: int, folder: Path) -> Any:
    """Get the census with so many quasi-identifiers."""
    return kept_census(N_ROWS, n_columns, folder)


def recode(name: str, table: Any) -> Any:
    """Recode with the limit; gives the recoder and the seconds that it took, by the wall and of the processor."""
    from sfumato.mechanisms.registry import build_mechanism

    recoder: Any = build_mechanism(name, {"k": 5, "max_seconds": LIMIT})
    began, cpu = time.perf_counter(), time.process_time()
    recoder.recode(table)
    return recoder, time.perf_counter() - began, time.process_time() - cpu


def assess(table: Any, result: Any) -> Outcome:
    """Set the time beside the limit, and show what was found."""
    recoder, seconds, cpu_seconds = result
    figures = {"time / limit": seconds / LIMIT, "CPU / limit": cpu_seconds / LIMIT, "loss": recoder.loss_}
    return Outcome(None, figures | {"checked": recoder.search_.n_checked, "suppressed": recoder.n_suppressed_})


def _contender(name: str, n_columns: int) -> Contender:
    run, load_table = partial(recode, name), partial(load, n_columns)
    title = f"{name}, {n_columns} columns"
    return Contender(title, run, load_table, packages=("sfumato",), repeats=1, assess=assess)


BENCHMARK = Benchmark(
    title=f"Recoding of a census of {N_ROWS:,} rows with a limit of {LIMIT:g} s",
    goal="within 1 s or 20 % of the limit, whichever is more: time / limit at most 1.5",
    contenders=tuple(_contender(name, n) for name in ("gain-recoding", "global-recoding") for n in COLUMNS),
)
