"""Error-risk pruning with tiered generalization: Adult, and generated rows with a number that is nearly unique."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

K = 10
FILES = (DATA / "adult" / "adult.data", DATA / "adult" / "adult.test")
N_GENERATED = 100_000
TARGET = "target"
N_VALUES = {"work": 7, "education": 16, "marital": 7, "occupation": 14, "race": 5, "sex": 2, "country": 41}


def load_adult(folder: Path) -> Any:
    """Read the 45,222 complete rows; all columns but the target are quasi-identifiers."""
    from dataclasses import replace

    from reproductions.public_data import load_adult as load
    from sfumato.schema import Role

    table = load("all", complete=True)
    roles = {c.name: Role.TARGET if c.role is Role.TARGET else Role.QUASI_IDENTIFIER for c in table.schema}
    columns = {c.name: replace(c, role=roles[c.name]) for c in table.schema}
    return table.with_schema(replace(table.schema, columns=columns))


def make_rows(n_rows: int, folder: Path) -> Any:
    """Draw rows like Adult's: four numbers, of which one is nearly unique, seven categories, two classes with noise."""
    import numpy as np
    import pyarrow as pa

    from sfumato.schema import Column, Kind, Role, Schema
    from sfumato.table.coding import Table

    rng = np.random.default_rng(23)
    skill = rng.normal(size=n_rows)
    codes = {name: rng.zipf(1.3, n_rows) % n for name, n in N_VALUES.items()}
    codes["education"] = np.clip(8 + 2.5 * skill + rng.normal(size=n_rows), 0, 15).astype(int)
    codes["occupation"] = (codes["education"] + rng.geometric(0.3, n_rows)) % N_VALUES["occupation"]
    numbers = {
        "age": np.clip(rng.gamma(8.0, 3.0, n_rows) + 17, 17, 90).astype(int),
        "weight": np.round(np.exp(rng.normal(12.0, 0.5, n_rows))),
        "hours": np.where(rng.random(n_rows) < 0.47, 40, np.clip(rng.normal(40 + skill, 15), 1, 99)).astype(int),
        "gain": np.where(rng.random(n_rows) < 0.08, 100 * rng.geometric(0.02, n_rows), 0),
    }
    is_positive = score(codes, numbers) + rng.logistic(0, 1, n_rows) > 1
    texts = {name: np.array([f"{name} {value}" for value in range(n)])[codes[name]] for name, n in N_VALUES.items()}
    kinds = dict.fromkeys(numbers, Kind.NUMERIC) | dict.fromkeys(texts, Kind.CATEGORICAL)
    columns = [Column(name, Role.QUASI_IDENTIFIER, kind) for name, kind in kinds.items()]
    cells = pa.table({**numbers, **texts, TARGET: np.where(is_positive, "yes", "no")})
    return Table.from_arrow(cells, Schema.of([*columns, Column(TARGET, Role.TARGET)]))


def score(codes: dict[str, Any], numbers: dict[str, Any]) -> Any:
    """Sum what speaks for the positive class; occupation and sex act together, age has its best years."""
    import numpy as np

    return (
        0.9 * (codes["education"] - 9)
        + np.array([2.0, -1.5, -1.0, -0.5, 0.5, -2.0, 0.0])[codes["marital"]]
        + np.sin(codes["occupation"]) * (1 + codes["sex"])
        - ((numbers["age"] - 48) / 14.0) ** 2
        + 0.05 * (numbers["hours"] - 40)
        + 0.001 * numbers["gain"]
    )


def release(is_refined: bool, table: Any) -> Any:
    """Grow, prune, borrow, and write the released cells."""
    from sfumato.mechanisms.tree.mechanism import ErrorRiskTree

    mechanism = ErrorRiskTree(k=K, refine=is_refined)
    recoding = mechanism.recode(table)
    return mechanism.tree_, recoding, recoding.recoded(table)


def assess(table: Any, result: Any) -> Outcome:
    """Say what the release loses and how large the tree was before pruning."""
    tree, recoding, released = result
    leaves = int((tree.n_children == 0).sum())
    return Outcome(
        None,
        {
            "GCP": recoding.certainty_penalty,
            "leaves before pruning": leaves,
            "classes of cells": int(recoding.cover.parts.shape[0]),
            "rows": released.n_rows,
        },
    )


BENCHMARK = Benchmark(
    title=f"ErrorRiskTree, tiered, k = {K}, from a coded table to released cells: Adult (14 quasi-identifiers) and "
    "generated rows (11, one of them a number that is nearly unique). Its growth to a million rows: see growth_rows",
    goal="Adult at most 3 s (the paper: 54–75 s). Other programs' Mondrians: see mondrian",
    needs=FILES,
    is_forked=True,
    contenders=(
        Contender("Adult", partial(release, True), load_adult, ("sfumato", "numpy"), assess=assess),
        Contender("Adult, refine=False", partial(release, False), load_adult, ("sfumato",), assess=assess),
        Contender(
            f"{N_GENERATED:,} generated rows",
            partial(release, True),
            partial(make_rows, N_GENERATED),
            ("sfumato",),
            repeats=2,
            assess=assess,
        ),
    ),
)
