"""Local recoding over hierarchies: the share of values left open beside that of ARX's local recoding.

The share (GCP) is the mean over all cells of (values left open - 1) / (values - 1). ARX's figures (3.9.2, Java 17,
``optimizeIterativeFast`` with a suppression limit of 100 %, gsFactor 0, at least 1 % of the rows a round) were measured
once on the same hierarchies; a row that it suppresses counts 1.
"""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome
from benchmarks.global_recoding import ARX, EIGHT

CMC = DATA / "cmc"
OF_ARX = {("adult", 5): 0.0569, ("adult", 50): 0.1503, ("cmc", 5): 0.1923, ("cmc", 50): 0.4062}


def load(table: str, k: int, folder: Path | None = None) -> Any:
    """Count the cells of Adult's eight or CMC's nine quasi-identifiers, with their hierarchies."""
    import numpy as np

    from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
    from sfumato.mechanisms.lattice.lattice import LatticeProblem

    if table == "adult":
        rows = _read(ARX / "adult.csv", ";")
        files = {name: ARX / f"adult_hierarchy_{name}.csv" for name in EIGHT}
    else:
        rows = _read(CMC / "cmc.named.csv", ",")
        files = {name: CMC / "hierarchies" / f"{name.replace('%3F', '')}.csv" for name in list(rows[0])[:-1]}
    hierarchies, coded = [], []
    for name, path in files.items():
        with path.open(encoding="ascii") as lines:
            hierarchies.append(Hierarchy.from_rows(list(csv.reader(lines, delimiter=";"))).with_root())
        number = {value: i for i, value in enumerate(hierarchies[-1].values)}
        coded.append([number[row[name]] for row in rows])
    cells, counts = np.unique(np.array(coded, dtype=np.int32).T, axis=0, return_counts=True)
    return LatticeProblem(
        codes=cells,
        counts=counts,
        level_maps=tuple(tuple(h.codes) for h in hierarchies),
        shares=tuple(tuple(h.shares(level) for level in range(h.n_levels)) for h in hierarchies),
        k=k,
        loss="certainty_penalty",
    )


def _read(path: Path, delimiter: str) -> list[dict[str, str]]:
    with path.open(encoding="ascii") as lines:
        return list(csv.DictReader(lines, delimiter=delimiter))


def recode(problem: Any, fraction: float = 0.01) -> Any:
    """Recode in rounds."""
    from sfumato.mechanisms.lattice.rounds import recode_in_rounds

    return problem, recode_in_rounds(problem, fraction)


def open_share(recoded: Any) -> float:
    """Share of the values left open, counted from the cells of every round."""
    import numpy as np

    problem, found = recoded
    levels = np.array(found.levels)[found.rounds]
    total = 0.0
    for column, maps in enumerate(problem.level_maps):
        n_values = len(maps[0])
        for level, labels in enumerate(maps):
            here = levels[:, column] == level
            n_open = np.bincount(labels)[labels[problem.codes[here, column]]]
            total += float(((n_open - 1) / max(n_values - 1, 1)) @ problem.counts[here])
    return total / (problem.n_rows * problem.n_columns)


def assess(table: str, k: int, problem: Any, result: Any) -> Outcome:
    """Set the share beside ARX's."""
    _, found = result
    share = open_share(result)
    figures = {"open": share, "open / ARX": share / OF_ARX[table, k], "rounds": len(found.levels)}
    return Outcome(None, figures | {"checked": found.n_checked, "proven": float(found.proven)})


def _contender(table: str, k: int, fraction: float) -> Contender:
    name = f"{table}, k = {k}" + ("" if fraction == 0.01 else f", {fraction:.1%} of the rows a round")
    run, load_table, compare = partial(recode, fraction=fraction), partial(load, table, k), partial(assess, table, k)
    return Contender(name, run, load_table, packages=("sfumato",), repeats=1, assess=compare)


BENCHMARK = Benchmark(
    title="Local recoding of Adult (8 quasi-identifiers) and CMC (9)",
    goal="values left open at or below ARX local: Adult .0569 (k = 5), .1503 (50); CMC .1923, .4062; no row left out",
    contenders=tuple(_contender(table, k, f) for f in (0.01, 0.002) for table, k in OF_ARX),
    needs=(ARX / "adult.csv", CMC / "cmc.named.csv"),
)
