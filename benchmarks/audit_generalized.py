"""Levels of a tiered release beside its original, from k to global (1,k), and the same with an n × n matrix."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Benchmark, Contender, Outcome
from benchmarks.generated import n_bytes
from benchmarks.tree_release import FILES, N_GENERATED, load_adult, make_rows

SAMPLE_STEP = 15


def load_released(load: Any, k: int, step: int, folder: Path) -> Any:
    """Release every step-th row of a table."""
    import numpy as np

    from sfumato.mechanisms.tree.mechanism import ErrorRiskTree

    table = load(folder)
    table = table.take(np.arange(0, table.n_rows, step))
    return ErrorRiskTree(k=k).recode(table).recoded(table), table


def measure_levels(loaded: Any) -> Any:
    """Read the cells and count with sfumato's audit."""
    from sfumato.audit.original.consistency import consistency
    from sfumato.audit.reading.columns import Columns
    from sfumato.schema import Role

    released, table = loaded
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    kinds = {name: table.schema[name] for name in names}
    found = consistency(Columns(released), Columns(table), names, generalized=kinds)
    of_original, of_class = found.originals.ids, found.classes.ids
    return [
        found.anonymity_level,
        found.level_1k,
        found.level_k1,
        found.level_kk,
        found.level_global,
        int(found.released_per_original[of_original].sum()),
        int(found.originals_per_released[of_class].sum()),
        int(found.assignable_per_original[of_original].sum()),
    ]


def measure_plainly(loaded: Any) -> Any:
    """Do the same with a matrix of all pairs of rows; each row is matched with its own to begin with."""
    import numpy as np
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    from sfumato.schema import Kind, Role

    released, table = loaded
    names = table.schema.names(Role.QUASI_IDENTIFIER)
    fits = np.ones((table.n_rows, table.n_rows), dtype=bool)
    for name in names:
        cells, values = released[name], table[name]
        texts, known = cells.values.to_pylist(), values.values.to_numpy(zero_copy_only=False)
        known = known.astype(float) if table.schema[name].kind is Kind.NUMERIC else known
        holds = np.column_stack([stands_for(text, known) for text in texts])
        fits &= holds[np.ix_(values.codes, cells.codes)]
    if not fits.diagonal().all():
        message = "a released row does not stand for its original"
        raise AssertionError(message)
    _, component = connected_components(sp.csr_array(fits), directed=True, connection="strong")
    assignable = fits & (component[:, None] == component[None, :])
    alike = np.unique(np.column_stack([released[name].codes for name in names]), axis=0, return_counts=True)[1]
    level_1k, level_k1 = int(fits.sum(axis=1).min()), int(fits.sum(axis=0).min())
    n_pairs = int(fits.sum())
    levels = [int(alike.min()), level_1k, level_k1, min(level_1k, level_k1), int(assignable.sum(axis=1).min())]
    return [*levels, n_pairs, n_pairs, int(assignable.sum())]


def stands_for(cell: str, values: Any) -> Any:
    """Which values a cell may stand for; Adult has no signs that would need a backslash, and nothing missing."""
    import numpy as np

    if bounds := re.fullmatch(r"\[(.*), (.*)\]", cell):
        return (float(bounds[1]) <= values) & (values <= float(bounds[2]))
    members = cell.strip("{}").split("|")
    return np.isin(values, members if values.dtype == object else np.array(members, dtype=float)) | (cell == "*")


def assess(is_asked: bool, loaded: Any, result: Any) -> Outcome:
    """Put the levels beside the seconds."""
    names = ("k", "(1,k)", "(k,1)", "(k,k)", "global (1,k)", "consistent pairs")
    read = n_bytes(loaded[0]) + n_bytes(loaded[1])
    return Outcome(result if is_asked else None, {**dict(zip(names, result, strict=False)), "bytes": read})


def contender(name: str, load: Any, k: int, run: Any = measure_levels, step: int = 1, repeats: int = 2) -> Contender:
    """Make a contender; those on the sample are asked the same."""
    return Contender(
        name,
        run,
        partial(load_released, load, k, step),
        ("sfumato", "numpy", "scipy"),
        repeats=repeats,
        assess=partial(assess, step > 1),
    )


BENCHMARK = Benchmark(
    title="Anonymity levels of a tiered release beside its original, reading the cells included: Adult (14 "
    "quasi-identifiers) and generated rows (11). Growth: see growth_operations",
    goal="Adult under 20 s without an n × n matrix, and the values of the plain matrix on every 15th row",
    needs=FILES,
    is_forked=True,
    contenders=(
        contender("every 15th row of Adult, k = 10", load_adult, 10, step=SAMPLE_STEP),
        contender("… plain n × n matrix", load_adult, 10, measure_plainly, step=SAMPLE_STEP),
        contender("Adult, k = 10", load_adult, 10),
        contender("Adult, k = 30", load_adult, 30),
        contender(f"{N_GENERATED:,} generated rows, k = 10", partial(make_rows, N_GENERATED), 10, repeats=1),
    ),
)
