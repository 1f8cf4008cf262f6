"""Run the reproduction and write RESULTS.md: the paper's figures beside ours, and why they differ.

Run as ``sfumato reproduce containment`` in a checkout, or ``python -m reproductions.containment.run``.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from reproductions.containment import dp
from reproductions.containment.data import DataSet, adult, email, entity
from reproductions.containment.methods import OUR_METHODS, PAPER_METHODS
from reproductions.containment.scoring import Score, score, topic_score

FOLDER = Path(__file__).parent
LEVELS = (5, 8, 11)
METHODS = PAPER_METHODS | OUR_METHODS


@dataclass(frozen=True)
class Outcome:
    """Scores of one method on one data set, a level each."""

    data: str
    method: str
    scores: list[Score]
    seconds: float


def run_method(data: DataSet, name: str) -> Outcome:
    """Score one method at all levels: by the SVM, or by the topic classifier of the Entity data."""
    begun = time.perf_counter()
    method = METHODS[name]
    scores = []
    for k in LEVELS:
        if name == "Full-Feature-Set" and scores:
            scores.append(scores[0])
        else:
            scores.append((topic_score if data.name.startswith("Entity") else score)(data, method, k))
    return Outcome(data.name, name, scores, time.perf_counter() - begun)


def main() -> int:
    """Run everything, write RESULTS.md and say what misses its expectation."""
    sets = [adult(), email(), entity()]
    jobs = [(data, name) for data in sets for name in METHODS]
    outcomes = Parallel(n_jobs=2, verbose=5)(delayed(run_method)(data, name) for data, name in jobs)
    private = Parallel(n_jobs=2, verbose=5)(delayed(dp.run)(data, kind) for data in sets for kind in dp.KINDS)
    paper = tomllib.loads((FOLDER / "paper.toml").read_text())
    (FOLDER / "RESULTS.md").write_text("\n".join(report(sets, outcomes, private, paper)) + "\n")
    missed = list(misses(outcomes, tomllib.loads((FOLDER / "expected.toml").read_text())))
    for line in missed:
        sys.stderr.write(f"missed: {line}\n")
    sys.stderr.write(f"wrote {FOLDER / 'RESULTS.md'}\n")
    return 1 if missed else 0


def misses(outcomes: list[Outcome], expected: dict[str, Any]) -> Iterator[str]:
    """Compare with expected.toml."""
    found = {(o.data, o.method): o.scores for o in outcomes}
    for data, parts in expected.items():
        for method, counts in parts.get("kept", {}).items():
            ours = [s.n_columns for s in found[data, method]]
            if ours != counts:
                yield f"{data}, {method}: kept {ours}, expected {counts}"
        for method, least in parts.get("least_auc", {}).items():
            ours_auc = [s.honest for s in found[data, method]]
            if min(ours_auc) < least:
                yield f"{data}, {method}: AUC {min(ours_auc):.3f}, expected at least {least}"


def report(
    sets: list[DataSet], outcomes: list[Outcome], private: list[dp.Private], paper: dict[str, Any]
) -> Iterator[str]:
    """Lines of RESULTS.md."""
    yield (FOLDER / "preface.md").read_text().rstrip()
    for data in sets:
        yield f"\n## {data.name}: {data.matrix.shape[0]:,} × {data.matrix.shape[1]:,}, density {data.density:.1%}\n"
        yield "| method | paper, AUC (kept) | ours, selected in the fold | ours, on all rows | kept | s |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for outcome in (o for o in outcomes if o.data == data.name):
            yield _line(outcome, paper[data.name].get(outcome.method))
    yield from dp.report(private)
    yield "\n" + (FOLDER / "reasons.md").read_text().rstrip()


def _line(outcome: Outcome, paper: dict[str, Any] | None) -> str:
    printed = "—"
    if paper:
        printed = " / ".join(f"{auc:.2f} ({kept:g})" for auc, kept in zip(paper["auc"], paper["kept"], strict=True))
    honest = " / ".join(f"{s.honest:.3f}" for s in outcome.scores)
    loose = " / ".join(f"{s.as_in_paper:.3f}" for s in outcome.scores)
    kept = " / ".join(
        f"{s.n_columns:,}" if s.flipped_fraction is None else f"{s.flipped_fraction:.2%} flipped"
        for s in outcome.scores
    )
    return f"| {outcome.method} | {printed} | {honest} | {loose} | {kept} | {outcome.seconds:.0f} |"


if __name__ == "__main__":
    sys.exit(main())
