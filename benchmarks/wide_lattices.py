"""Search of wide lattices at three limits of suppressed rows, in three seconds: the loss beside ARX's heuristics.

The tables are those of ARX's own benchmark (creditcard with 24 columns, mach2019 with 16) and Adult's 15 columns. ARX's
figures (3.9.2, Java 17, best of its heuristics, about three CPU seconds each) were measured once on the same
hierarchies at 1.5 % and 100 %. At 20 % ARX was not run: the figure is that of a plain greedy descent from the top,
which gives ARX's own figures for creditcard and mach2019 at 1.5 %, and for mach2019 and Adult at 100 %.
"""

from __future__ import annotations

import csv
import gzip
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome
from benchmarks.global_recoding import FIFTEEN, UCI, load_uci, search_for

WIDE = DATA / "arx-wide"
SECONDS = 3.0
OF_ARX = {
    ("creditcard", 0.015): 0.705,
    ("creditcard", 0.2): 0.664,
    ("creditcard", 1.0): 0.620,
    ("mach2019", 0.015): 0.587,
    ("mach2019", 0.2): 0.507,
    ("mach2019", 1.0): 0.507,
    ("adult", 0.015): 0.534,
    ("adult", 0.2): 0.400,
    ("adult", 1.0): 0.400,
}


def load(name: str, limit: float, folder: Path) -> Any:
    """Count the cells of a table with its hierarchies."""
    from dataclasses import replace

    problem = load_uci(FIFTEEN, folder) if name == "adult" else load_wide(name)
    return replace(problem, max_suppressed_fraction=limit)


def load_wide(name: str) -> Any:
    """Count the cells of a table of ARX's benchmark."""
    import numpy as np

    from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
    from sfumato.mechanisms.lattice.lattice import LatticeProblem

    with gzip.open(WIDE / f"{name}.csv.gz", "rt") as lines:
        header, *rows = csv.reader(lines, delimiter=";")
    hierarchies = []
    for column in header:
        with gzip.open(WIDE / "hierarchies" / f"{name}.{column}.csv.gz", "rt") as lines:
            hierarchies.append(Hierarchy.from_rows(list(csv.reader(lines, delimiter=";"))))
    numbers = [{value: i for i, value in enumerate(h.values)} for h in hierarchies]
    coded = [[number[cell] for number, cell in zip(numbers, row, strict=True)] for row in rows]
    cells, counts = np.unique(np.array(coded, dtype=np.int32), axis=0, return_counts=True)
    maps = tuple(tuple(h.codes) for h in hierarchies)
    shares = tuple(tuple(h.shares(level) for level in range(h.n_levels)) for h in hierarchies)
    return LatticeProblem(cells, counts, maps, shares, k=5)


def assess(name: str, limit: float, problem: Any, result: Any) -> Outcome:
    """Set the loss beside ARX's."""
    figures = {"loss": result.loss, "loss / ARX": result.loss / OF_ARX[name, limit], "checked": result.n_checked}
    return Outcome(None, figures | {"suppressed": result.n_suppressed})


def _contender(name: str, limit: float) -> Contender:
    run, load_table = partial(search_for, SECONDS), partial(load, name, limit)
    title = f"{name}, at most {limit:.1%} suppressed"
    return Contender(title, run, load_table, packages=("sfumato",), repeats=1, assess=partial(assess, name, limit))


BENCHMARK = Benchmark(
    title=f"Wide lattices, k = 5, {SECONDS:g} s",
    goal="loss at or below ARX's best heuristic at every limit; a looser limit never gives a worse answer",
    contenders=tuple(_contender(name, limit) for name, limit in OF_ARX),
    needs=(WIDE / "creditcard.csv.gz", UCI),
)
