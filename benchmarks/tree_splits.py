"""What a classifier keeps under trees with multiway and with binary splits, on public tables; writes TREE_SPLITS.md.

    python -m benchmarks.tree_splits                          # all: a few minutes of one core
    python -m benchmarks.tree_splits --tables mgm cmc --k 5   # some, printed only
    python -m benchmarks.tree_splits --done /tmp/done.jsonl   # keeps what was measured, and goes on there

The protocol is that of ``benchmarks.score_split``: stratified three folds, the tree grown on the training rows of a
fold, classifiers trained on the released training rows and tested on test rows in the release's form and on untouched
ones. A setting that releases the same cells as another in a fold is not trained on twice.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.contest import ROOT
from benchmarks.score_split import folds_of, held_out_folds
from sfumato.mechanisms.registry import build_mechanism

RESULTS = ROOT / "benchmarks" / "TREE_SPLITS.md"
MEASURED = ("mgm", "cmc", "ilpd", "pima", "adult")
N_SEEDS = 1
KS = (5, 25)
CELLS = ("uniform", "tiered")
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "multiway": {"splits": "multiway"},
    "binary": {"splits": "binary"},
    "binary, gain": {"splits": "binary", "criterion": "gain"},
}
FIGURES = ("AUC, in form", "AUC, untouched", "accuracy, in form", "accuracy, untouched")


def measured(name: str, seed: int, ks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Measure all settings in the folds of one seed."""
    for fold in folds_of(name, seed):
        (original,) = judged(fold.plain[0], [fold.plain[1]], fold.classes, fold.described)
        known: dict[bytes, list[list[float]]] = {}
        for k in ks:
            for cells in CELLS:
                for setting, parameters in SETTINGS.items():
                    tree = build_mechanism("error-risk-tree", {"k": k, "generalization": cells, **parameters})  # type: ignore[arg-type]
                    recoding = tree.recode(fold.train)
                    own, new = fold.cells(recoding)
                    key = b"".join(written(part, column) for part in (own, new) for column in fold.names)
                    if key not in known:
                        encodable = fold.described | recoding.encodable()
                        known[key] = judged(own, [new, fold.plain[1]], fold.classes, encodable)
                    in_form, untouched = known[key]
                    yield {
                        "table": name,
                        "seed": seed,
                        "fold": fold.number,
                        "k": k,
                        "cells": cells,
                        "setting": setting,
                        "losses": losses(original, in_form, untouched),
                        "penalty": recoding.certainty_penalty,
                        "groups": len(set(tree.group_of_leaf_.tolist()) - {-1}),
                    }


def written(part: Any, column: str) -> bytes:
    """Write the cells of a column, so that equal releases are known."""
    return repr(part[column].values.to_pylist()).encode() + part[column].codes.tobytes()


def judged(train: Any, tests: list[Any], classes: Any, described: Any) -> list[list[float]]:
    """Area and accuracy on each of some test tables: the means of both classifiers."""
    import numpy as np

    folds = held_out_folds(train, tests, classes, described)
    return [
        [float(np.mean([fold.area() for fold in of_test])), float(np.mean([fold.accuracy() for fold in of_test]))]
        for of_test in folds
    ]


def losses(original: list[float], in_form: list[float], untouched: list[float]) -> list[float]:
    """Losses in thousandths, in the order of FIGURES."""
    return [1000 * (original[figure] - tested[figure]) for figure in (0, 1) for tested in (in_form, untouched)]


def described(rows: list[dict[str, Any]]) -> str:
    """Write all that was measured as Markdown."""
    heads = ["table", "k", "cells", *SETTINGS]
    lines = [f"| {' | '.join(heads)} |", "| --- | ---: | --- |" + " ---: |" * len(SETTINGS)]
    for name in dict.fromkeys(row["table"] for row in rows):
        for k in sorted({row["k"] for row in rows}):
            for cells in CELLS:
                here = [row for row in rows if (row["table"], row["k"], row["cells"]) == (name, k, cells)]
                lines.append(f"| {name} | {k} | {cells} | {' | '.join(entry(here, setting) for setting in SETTINGS)} |")
    for cells in CELLS:
        here = [row for row in rows if row["cells"] == cells]
        lines.append(f"| **mean** | | {cells} | {' | '.join(entry(here, setting) for setting in SETTINGS)} |")
    lines += ["", f"| less lost than by multiway | cells | {' | '.join(FIGURES)} |", "| --- |" + " --- |" * 5]
    for setting in list(SETTINGS)[1:]:
        for cells in CELLS:
            pair = (by_fold(rows, cells, one) for one in ("multiway", setting))
            lines.append(f"| {setting} | {cells} | {' | '.join(less_lost(*pair))} |")
    return "\n".join(lines) + "\n"


def entry(rows: list[dict[str, Any]], setting: str) -> str:
    """Write losses of area in form and untouched, GCP and groups of one setting; each table and k counts the same."""
    import numpy as np

    cells: dict[Any, list[list[float]]] = {}
    for row in rows:
        if row["setting"] == setting:
            figures = [row["losses"][0], row["losses"][1], row["penalty"], row["groups"]]
            cells.setdefault((row["table"], row["k"]), []).append(figures)
    in_form, untouched, penalty, groups = np.mean([np.mean(own, axis=0) for own in cells.values()], axis=0)
    return f"{in_form:.1f} / {untouched:.1f}; {penalty:.3f}; {groups:.0f}"


def by_fold(rows: list[dict[str, Any]], cells: str, setting: str) -> dict[Any, list[float]]:
    """Losses of one setting in each fold of each table and k."""
    chosen = (row for row in rows if (row["cells"], row["setting"]) == (cells, setting))
    return {(row["table"], row["k"], row["seed"], row["fold"]): row["losses"] for row in chosen}


def less_lost(before: dict[Any, list[float]], after: dict[Any, list[float]]) -> Iterator[str]:
    """Write the mean difference of each figure over the folds in which releases differ, and in how many it is more."""
    import numpy as np

    differences = np.array([np.subtract(before[fold], after[fold]) for fold in before if before[fold] != after[fold]])
    for own in differences.T:
        yield f"{own.mean():+.1f}, in {(own > 0).sum()} of {len(own)} folds"


HEADER = """# Trees with multiway and with binary splits

Written by `python -m benchmarks.tree_splits`, which says the protocol. Each cell: loss of AUC in thousandths on test
rows *in form* of the release / *untouched*, mean of logistic regression and boosted trees, against the same classifiers
on the original training rows; then the certainty penalty (GCP); then the groups that pruning leaves (1: no split of the
tree is left). *binary, gain* is `criterion=gain`. One seed, three folds; Adult has 10,000 rows. Pima has no categorical
column and ILPD one of two values: there both ways to split are the same tree. Below, thousandths of AUC or accuracy
over the folds in which the releases differ.

"""


def main() -> None:
    """Measure what is asked for and not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--k", nargs="*", type=int, default=list(KS))
    parser.add_argument("--done", type=Path, help="file of lines that keeps what was measured")
    asked = parser.parse_args()
    is_kept = asked.done is not None and asked.done.exists()
    known = [json.loads(line) for line in asked.done.read_text().splitlines()] if is_kept else []
    for name in asked.tables:
        for seed in range(N_SEEDS):
            done = {row["k"] for row in known if (row["table"], row["seed"]) == (name, seed)}
            todo = tuple(k for k in asked.k if k not in done)
            rows = list(measured(name, seed, todo)) if todo else []
            known += rows
            if asked.done and rows:
                with asked.done.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            print(f"{name}, seed {seed}: {len(rows)} measured", flush=True)
    chosen = [row for row in known if row["table"] in asked.tables and row["k"] in asked.k]
    table = described(sorted(chosen, key=lambda row: MEASURED.index(row["table"])))
    print(table)
    if set(asked.tables) == set(MEASURED) and set(asked.k) == set(KS):
        RESULTS.write_text(HEADER + table, encoding="utf-8")


if __name__ == "__main__":
    main()
