"""Mondrian on 4,000 rows of Adult: seconds from the table to the generalized cells, and what these lose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

FILE = DATA / "adult" / "adult.data"
COLUMNS = {
    "age": 0,
    "workclass": 1,
    "education-num": 4,
    "marital-status": 5,
    "occupation": 6,
    "race": 8,
    "sex": 9,
    "native-country": 13,
}
NUMERIC = ("age", "education-num")
SENSITIVE = "salary-class"
N_ROWS, K = 4_000, 5


def read() -> tuple[dict[str, list[Any]], list[str]]:
    """First complete rows, on the quasi-identifiers of the public reference (qiyuangong/Mondrian), and their class."""
    lines = (line.replace(" ", "").split(",") for line in FILE.read_text(encoding="ascii").splitlines() if line)
    rows = [row for row in lines if "?" not in row][:N_ROWS]
    columns = {
        name: [int(row[place]) if name in NUMERIC else row[place] for row in rows] for name, place in COLUMNS.items()
    }
    return columns, [row[-1] for row in rows]


def certainty_penalty(columns: dict[str, list[Any]], groups: list[list[int]]) -> float:
    """Mean over all cells (GCP): of a range its width over the column's; of a set its share of the values, 0 for one.

    The same plain function for all contenders, which see only groups of row numbers.
    """
    total = 0.0
    for name, cells in columns.items():
        domain = max(cells) - min(cells) if name in NUMERIC else len(set(cells))
        for group in groups:
            held = {cells[row] for row in group}
            if len(held) > 1:
                total += len(group) * (max(held) - min(held) if name in NUMERIC else len(held)) / domain
    return total / (N_ROWS * len(columns))


def assess(loaded: Any, groups: list[Any]) -> Outcome:
    """Say whether all rows are in groups of k, and whether the first contender, ours, loses no more.

    Its penalty is written into the folder of the run for the others.
    """
    _, columns, folder = loaded
    groups = [[int(row) for row in group] for group in groups]
    penalty = certainty_penalty(columns, groups)
    file = folder / "penalty.json"
    if not file.exists():
        file.write_text(json.dumps(penalty), encoding="ascii")
    is_ours_no_higher = json.loads(file.read_text(encoding="ascii")) <= penalty
    answer = [sum(map(len, groups)), min(map(len, groups)) >= K, is_ours_no_higher]
    return Outcome(answer, {"GCP": penalty, "groups": len(groups)})


def load_table(folder: Path) -> Any:
    """Make a coded table."""
    import pyarrow as pa

    from sfumato.schema import Column, Kind, Schema
    from sfumato.table.coding import Table

    columns, _ = read()
    kinds = {name: Kind.NUMERIC if name in NUMERIC else Kind.CATEGORICAL for name in columns}
    table = Table.from_arrow(pa.table(columns), Schema.of(Column(name, kind=kind) for name, kind in kinds.items()))
    return table, columns, folder


def divide_by_penalty(loaded: Any) -> Any:
    """Divide by our own rule and write the generalized cells."""
    return _divide(loaded, "penalty")


def divide_at_median(loaded: Any) -> Any:
    """Divide by the rule of LeFevre et al. (2006) and write the generalized cells."""
    return _divide(loaded, "median")


def _divide(loaded: Any, split: Any) -> Any:
    import numpy as np

    from sfumato.mechanisms.axes import axes_of
    from sfumato.mechanisms.mondrian.division import mondrian_partition
    from sfumato.mechanisms.recoder import Cover, generalize

    axes = axes_of(loaded[0], tuple(COLUMNS))
    partition = mondrian_partition(axes, K, split=split)
    cover = Cover.of_groups(partition.of_row)
    for generalized in generalize(axes, cover):
        generalized.column(cover.of_row)
    order = np.argsort(partition.of_row, kind="stable")
    starts = np.searchsorted(partition.of_row[order], np.arange(1, partition.n_groups))
    return np.split(order, starts)


def load_frame(folder: Path) -> Any:
    """Make a frame with categories."""
    import pandas as pd

    columns, classes = read()
    frame = pd.DataFrame(columns | {SENSITIVE: classes})
    return frame.astype({name: "category" for name in frame if name not in NUMERIC}), columns, folder


def divide_with_anonypy(loaded: Any) -> Any:
    """Anonymize with anonypy."""
    from anonypy import Preserver
    from anonypy.mondrian import Mondrian

    parts = kept_parts(Mondrian)
    Preserver(loaded[0], list(COLUMNS), SENSITIVE).anonymize_k_anonymity(K)
    return parts


def divide_with_anonypyx(loaded: Any) -> Any:
    """Anonymize with anonypyx."""
    from anonypyx import Anonymiser
    from anonypyx.mondrian import Mondrian

    parts = kept_parts(Mondrian)
    Anonymiser(loaded[0], feature_columns=list(COLUMNS), sensitive_column=SENSITIVE, k=K).anonymise()
    return parts


def kept_parts(mondrian: Any) -> list[Any]:
    """List that a peer's partitions are put into as it makes them; it releases cells only."""
    kept: list[Any] = []
    partition = mondrian.partition

    def keeping(*arguments: Any, **options: Any) -> Any:
        parts = partition(*arguments, **options)
        kept.extend(parts)
        return parts

    mondrian.partition = keeping
    return kept


BENCHMARK = Benchmark(
    title=f"Mondrian, {N_ROWS:,} rows of Adult, 8 quasi-identifiers, k = {K}; the answer: all rows, groups of at least "
    "k, and a certainty penalty (GCP) not below ours",
    goal="at least 100 × faster than anonypy and anonypyx at equal or lower GCP",
    needs=(FILE,),
    contenders=(
        Contender("sfumato by penalty", divide_by_penalty, load_table, ("sfumato", "numpy"), repeats=15, assess=assess),
        Contender(
            "sfumato at the median", divide_at_median, load_table, ("sfumato", "numpy"), repeats=15, assess=assess
        ),
        Contender(
            "anonypy", divide_with_anonypy, load_frame, ("anonypy", "pandas"), repeats=1, peer=True, assess=assess
        ),
        Contender(
            "anonypyx", divide_with_anonypyx, load_frame, ("anonypyx", "pandas"), repeats=1, peer=True, assess=assess
        ),
    ),
)
