"""Whether choosing a mechanism for each table beats always taking the score-guided partition; writes CHOOSER.md.

    python -m benchmarks.chooser --done /tmp/chooser.jsonl      # all; keeps what was measured, and goes on there
    python -m benchmarks.chooser --tables pima mgm --seeds 2    # some, printed only

``auto`` is the score-guided partition (decision 0027). The question behind it, table by table and seed by seed: three
outer folds. In each, candidates that promise strict k-anonymity are fitted on the training rows and judged on the test
rows: the mean AUC of logistic regression and boosted trees, on test rows in the release's form and untouched ones
together. The chooser sees the training rows only: at most 4,000 of them, three inner folds, k scaled to their number,
judged in the same way. It takes the candidate that is ahead inside, and leaves the score only for a lead above .01.
Regret is what the best candidate of the outer folds has more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.contest import ROOT
from benchmarks.score_split import N_FOLDS, TABLES, areas

RESULTS = ROOT / "benchmarks" / "CHOOSER.md"
K = 5
LEAD = 0.01
MOST_INNER_ROWS = 4_000
PRIOR = "score"
SEEDS = 5
_TARGET = {"loss": "target_information", "max_suppressed_fraction": 0.5, "max_seconds": 5.0}
CANDIDATES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    PRIOR: ("mondrian", {"split": "score"}),
    "label": ("mondrian", {"split": "gain"}),
    "least penalty": ("mondrian", {}),
    "tree": ("error-risk-tree", {"generalization": "uniform"}),
    "target information": ("global-recoding", _TARGET),
}
"""Strict k-anonymity alone, with the settings that keep most of a target."""


def judged(train: Any, test: Any, k: int) -> dict[str, float]:
    """Mean AUC of each candidate that was fitted on training rows; nothing for one that cannot keep k."""
    import numpy as np

    from sfumato.errors import SfumatoError
    from sfumato.evaluation.encoding import values_as_cells
    from sfumato.evaluation.treatment import learned_from, treated
    from sfumato.mechanisms.registry import build_mechanism

    names, found = learned_from(train.schema), {}
    plain = values_as_cells(test.keep(names), names)
    classes = train[train.schema.target].codes, test[test.schema.target].codes
    for label, (mechanism, settings) in CANDIDATES.items():
        try:
            part = treated(build_mechanism(mechanism, {**settings, "k": k}), train, test)
            rows = np.arange(train.n_rows) if part.rows is None else part.rows
            own = classes[0][rows], classes[1]
            found[label] = float(np.mean(areas(part.train, [part.test, plain], own, part.columns)))
        except (SfumatoError, ValueError):  # k out of reach, or one class left: no candidate here
            continue
    return found


def measured(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Judge the candidates inside and outside, in the folds of one seed."""
    import numpy as np

    from sfumato.evaluation.treatment import stratified_folds

    table = TABLES[name]()
    target = table[table.schema.target].codes
    for fold, (train_rows, test_rows) in enumerate(stratified_folds(target, N_FOLDS, seed)):
        outside = judged(table.take(train_rows), table.take(test_rows), K)
        drawn = np.sort(np.random.default_rng(seed).permutation(train_rows)[:MOST_INNER_ROWS])
        seen: dict[str, list[float]] = {}
        for own, held_out in stratified_folds(target[drawn], N_FOLDS, seed):
            scaled = max(2, round(K * len(own) / len(train_rows)))
            for label, area in judged(table.take(drawn[own]), table.take(drawn[held_out]), scaled).items():
                seen.setdefault(label, []).append(area)
        inside = {label: float(np.mean(found)) for label, found in seen.items() if len(found) == N_FOLDS}
        yield {"table": name, "seed": seed, "fold": fold, "outside": outside, "inside": inside}


def chosen(inside: Mapping[str, float], lead: float) -> str:
    """Take the candidate that is ahead inside, and leave the score only for a clear lead."""
    if not inside or PRIOR not in inside:
        return PRIOR
    best = max(inside, key=inside.__getitem__)
    return best if inside[best] > inside[PRIOR] + lead else PRIOR


def described(rows: list[dict[str, Any]]) -> str:
    """Write regrets in thousandths as Markdown; the last line compares the two over tables."""
    import numpy as np
    from scipy import stats

    lines = [
        "| table | seeds | always the score | chooser | chooser without a lead | best outside, share of folds |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    means = []
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        regrets, firsts = [], []
        for row in own:
            outside = row["outside"]
            best = max(outside, key=outside.__getitem__)
            takes = (PRIOR, chosen(row["inside"], LEAD), chosen(row["inside"], 0.0))
            regrets.append([1000 * (outside[best] - outside.get(label, 0.5)) for label in takes])
            firsts.append(best)
        means.append(np.mean(regrets, axis=0))
        shares = ", ".join(f"{label} {firsts.count(label) / len(firsts):.0%}" for label in dict.fromkeys(firsts))
        always, led, free = means[-1]
        lines.append(
            f"| {name} | {len({row['seed'] for row in own})} | {always:.1f} | {led:.1f} | {free:.1f} | {shares} |"
        )
    always, led, free = np.mean(means, axis=0)
    lines.append(f"| **mean over tables** | | **{always:.1f}** | **{led:.1f}** | {free:.1f} | |")
    gain = np.array(means)[:, 0] - np.array(means)[:, 1]
    if len(gain) > 1 and gain.any():
        half = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(f"\nThe chooser has {gain.mean():+.1f} ± {half:.1f} less regret (95 % interval over tables).")
    return "\n".join(lines) + "\n"


HEADER = """# Choosing a mechanism, or always taking the score-guided partition

Written by `python -m benchmarks.chooser`, which says the protocol. Regret in thousandths of AUC, k = 5: what the best
candidate of the outer test rows has more than the one that was taken.

"""


def main() -> None:
    """Measure what is asked for and not done yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--done", type=Path, help="file of lines that keeps what was measured")
    asked = parser.parse_args()
    has_file = asked.done is not None and asked.done.exists()
    known = [json.loads(line) for line in asked.done.read_text().splitlines()] if has_file else []
    for seed in range(asked.seeds):
        for name in asked.tables:
            if any((row["table"], row["seed"]) == (name, seed) for row in known):
                continue
            rows = list(measured(name, seed))
            known += rows
            if asked.done:
                with asked.done.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
            print(f"{name}, seed {seed}", flush=True)
    order = list(TABLES)
    table = described(
        sorted((row for row in known if row["table"] in asked.tables), key=lambda r: order.index(r["table"]))
    )
    print(table)
    if set(asked.tables) == set(TABLES):
        RESULTS.write_text(HEADER + table, encoding="utf-8")


if __name__ == "__main__":
    main()
