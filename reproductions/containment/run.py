"""Run the reproduction and write RESULTS.md: the paper's figures beside ours, and why they differ.

Run as ``sfumato reproduce containment`` in a checkout, or ``python -m reproductions.containment.run``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.containment import dp, settings
from reproductions.containment.data import LEVELS
from reproductions.containment.measuring import SETS, Job, Outcome, data_set, jobs, measure
from reproductions.containment.scoring import Score
from reproductions.figures import Figure, below_effect
from reproductions.running import Reproduction, run

FOLDER = Path(__file__).parent
TABLES = {"Entity stand-in": "Table 4", "Adult, second recipe": "Table 5", "Email": "Table 6"}
"""Tables of the paper by the data set whose figures count; the first recipe of Adult is beside."""
PROPOSED = ("Maximal", "HamDist", "DistCnt")
Outcomes = Mapping[Job, Outcome | dp.Private | settings.Tried]
QUICK = {Job("Adult, second recipe", name) for name in ("HamDist", "DistCnt", "CM Greedy")} | {Job("Email", "HamDist")}
PRINTED: dict[str, Any] = tomllib.loads((FOLDER / "paper.toml").read_text())


def reproduction() -> Reproduction[Job, Outcome | dp.Private | settings.Tried]:
    """Say what is run."""
    return Reproduction(
        "containment",
        jobs(),
        measure,
        label=lambda job: f"{job.data}, {job.method}",
        is_quick=lambda job: job in QUICK,
        figures=figures,
        report=report,
        misses=misses,
    )


def printed_for(data: str) -> dict[str, Any]:
    """Look up the printed figures of a data set, by method; both recipes of Adult have the same."""
    found: dict[str, Any] = PRINTED[data.removesuffix(", second recipe")]
    return found


def scored(outcomes: Outcomes) -> dict[tuple[str, str], list[Score]]:
    """Scores by data set and method."""
    return {(o.data, o.method): o.scores for o in outcomes.values() if isinstance(o, Outcome)}


def figures(outcomes: Outcomes) -> Iterator[Figure]:
    """Table 3; Tables 4 to 6: AUC as the paper takes it, on features selected from all rows, and how many are kept."""
    found = scored(outcomes)
    for data in TABLES:
        if any(of == data for of, _ in found):
            yield from statistics(data)
    for (data, method), scores in found.items():
        printed = printed_for(data).get(method) if data in TABLES else None
        for place, k in enumerate(LEVELS) if printed else ():
            where = f"{TABLES[data]}, {data}, {method}, k = {k}"
            own = scores[place]
            alike = [s[place].as_in_paper for (d, m), s in found.items() if d == data and _promises_as_much(m, method)]
            near = near_area(data, method, place)
            yield Figure(f"{where}, AUC", printed["auc"][place], own.as_in_paper, 2, near, "higher", max(alike))
            if own.deviation is not None:
                yield Figure(f"{where}, AUC ±", printed["deviation"][place], own.deviation, 2, 0.005)
            if own.flipped_fraction is None:
                yield Figure(f"{where}, kept", printed["kept"][place], own.n_columns, 0, 1)
            else:
                share, near = 100 * own.flipped_fraction, below_effect(printed["kept"][place], printed["kept"], 0.3)
                yield Figure(f"{where}, flipped %", printed["kept"][place], share, 2, near)


def statistics(data: str) -> Iterator[Figure]:
    """Table 3: rows, features, rows of each class and density."""
    own, printed = data_set(data), PRINTED["Table 3"][data]
    rows_of_class = np.bincount(own.classes)
    ours = (*own.matrix.shape, *rows_of_class, 100 * own.density)
    names = ("entities", "features", "positive", "negative", "density %")
    for name, value, found in zip(names, printed, ours, strict=True):
        yield Figure(f"Table 3, {data}, {name}", value, float(found), 1 if name == "density %" else 0, 0.0)


def near_area(data: str, method: str, place: int) -> float:
    """Give what counts as near: no more than half of what the paper finds between its methods and those of others."""
    printed = printed_for(data)
    others = [row["auc"][place] for name, row in printed.items() if (name in PROPOSED) != (method in PROPOSED)]
    return below_effect(printed[method]["auc"][place], others, 0.02)


def _promises_as_much(other: str, method: str) -> bool:
    """Whether another method promises as much: strict k-anonymity, containment, k-anonymity by wrong cells, nothing."""
    if method in ("RF", "Full-Feature-Set"):
        return other == method
    if method.startswith("k-anonymity"):
        return other.startswith("k-anonymity")
    return not other.startswith(("RF", "Full-Feature-Set"))


def misses(outcomes: Outcomes) -> Iterator[str]:
    """Compare with expected.toml."""
    found = scored(outcomes)
    for data, parts in tomllib.loads((FOLDER / "expected.toml").read_text()).items():
        for method, counts in parts.get("kept", {}).items():
            ours = [s.n_columns for s in found[data, method]]
            if ours != counts:
                yield f"{data}, {method}: kept {ours}, expected {counts}"
        for method, least in parts.get("least_auc", {}).items():
            ours_auc = [s.honest for s in found[data, method]]
            if min(ours_auc) < least:
                yield f"{data}, {method}: AUC {min(ours_auc):.3f}, expected at least {least}"


def report(outcomes: Outcomes) -> Iterator[str]:
    """Lines of RESULTS.md."""
    yield (FOLDER / "preface.md").read_text().rstrip()
    for name in SETS:
        data = data_set(name)
        yield f"\n## {data.name}: {data.matrix.shape[0]:,} × {data.matrix.shape[1]:,}, density {data.density:.1%}\n"
        yield "| method | paper, AUC (kept) | ours, selected in the fold | ours, as the paper did | kept | s |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for outcome in outcomes.values():
            if isinstance(outcome, Outcome) and outcome.data == name:
                yield _line(outcome, printed_for(name).get(outcome.method))
    yield from dp.report([o for o in outcomes.values() if isinstance(o, dp.Private)])
    at_first = {(data, name): row["auc"][0] for data in TABLES for name, row in printed_for(data).items()}
    yield from settings.report([o for o in outcomes.values() if isinstance(o, settings.Tried)], at_first)
    yield "\n" + (FOLDER / "reasons.md").read_text().rstrip()


def _line(outcome: Outcome, paper: dict[str, Any] | None) -> str:
    printed = "—"
    if paper:
        printed = " / ".join(f"{auc:.2f} ({kept:g})" for auc, kept in zip(paper["auc"], paper["kept"], strict=True))
    honest = " / ".join(f"{s.honest:.3f}" for s in outcome.scores)
    loose = " / ".join(
        f"{s.as_in_paper:.3f}" if s.deviation is None else f"{s.as_in_paper:.3f} ± {s.deviation:.3f}"
        for s in outcome.scores
    )
    kept = " / ".join(
        f"{s.n_columns:,}" if s.flipped_fraction is None else f"{s.flipped_fraction:.2%} flipped"
        for s in outcome.scores
    )
    return f"| {outcome.method} | {printed} | {honest} | {loose} | {kept} | {outcome.seconds:.0f} |"


if __name__ == "__main__":
    sys.exit(run(reproduction()))
