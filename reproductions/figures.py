"""Printed figures beside ours, and the scoreboard over all papers.

A figure is *exact* if ours rounds to what is printed, *near* if it is within a tolerance that the reproduction states,
else *not* reproduced. What is not has a reason from the folder's ``reasons.toml``, which names its test, or is open.
"""

from __future__ import annotations

import csv
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
PAPERS = {
    "containment": "Zhang et al. 2017, k-anonymity by containment",
    "breach": "Jafer et al. 2017, privacy breach increase",
    "tree": "Yang et al. 2019, error-risk pruning",
    "gain": "Gachanga et al. 2019, information gain and slicing",
    "collaborate": "Sheikhalishahi and Martinelli 2017, parties",
}
REASONS = {
    "data": "the paper's data are not public, or a stand-in takes their place",
    "split": "the paper's random split or folds are not published",
    "settings": "classifier or encoding settings are not published; what was tried is in the results",
    "method": "the method is described in too few words; the reading taken is in the results",
    "paper": "the printed figure contradicts the paper's own text or data",
    "machine": "seconds, which depend on the machine and on what else it does",
    "open": "not explained",
}
"""Classes of reasons, and what they mean."""
_SLACK = 0.02
_FIELDS = ("where", "printed", "digits", "tolerance", "ours", "better", "best")
State = Literal["exact", "near", "not"]


@dataclass(frozen=True)
class Figure:
    """One printed number beside ours.

    Parameters
    ----------
    where : str
        Table, data and method in the paper's words, unique in the paper.
    printed, ours : float
    digits : int
        Decimals that are printed.
    tolerance : float
        Largest difference that counts as near.
    better : {"higher", "lower", ""}
        Which way is good; empty where neither is, as for counts.
    best : float or None
        The best of all our methods with the same guarantee or a stronger one.
    """

    where: str
    printed: float
    ours: float
    digits: int
    tolerance: float
    better: str = ""
    best: float | None = None

    @property
    def state(self) -> State:
        """How near ours is: exact, near or not."""
        # half a unit of the last digit, and what binary fractions add to it
        if abs(self.ours - self.printed) <= 0.5 * 10.0**-self.digits + 1e-9:
            return "exact"
        return "near" if abs(self.ours - self.printed) <= self.tolerance + 1e-9 else "not"

    @property
    def is_worse(self) -> bool:
        """Whether even the best of ours is behind the printed figure, by more than its last digit."""
        if not self.better:
            return False
        best = self.ours if self.best is None else self.best
        behind = self.printed - best if self.better == "higher" else best - self.printed
        return behind > 0.5 * 10.0**-self.digits + 1e-9


def below_effect(printed: float, others: Iterable[float], most: float) -> float:
    """Largest difference that counts as near: no more than half of any difference that the paper finds.

    With more, a figure could count as near although it says the opposite of the paper.

    Examples
    --------
    >>> round(below_effect(85.82, [85.15, 86.15], 1.0), 3)
    0.165
    """
    effects = [abs(printed - other) for other in others if other != printed]
    return min([most, *(round(effect / 2, 9) for effect in effects)])


@dataclass(frozen=True)
class Fitted:
    """A reading of the paper that was chosen among several because it comes nearest to printed figures.

    Parameters
    ----------
    figures : str
        Pattern of the places of figures that rest on it.
    why : str
        What was chosen, among what, by which figures.
    """

    figures: str
    why: str


@dataclass(frozen=True)
class Reason:
    """Why some figures differ.

    Parameters
    ----------
    figures : str
        Pattern of their places, as file names have it (``Table 4, Entity*``).
    kind : str
        One of :data:`REASONS`.
    why : str
    test : str
        Test that shows it, as pytest names it; empty for what is open.
    """

    figures: str
    kind: str
    why: str
    test: str = ""


def reasons_of(paper: str) -> list[Reason]:
    """Read the reasons of a paper, the most particular first."""
    return [Reason(e["figures"], e["kind"], e["why"], e.get("test", "")) for e in _entries(paper, "reason")]


def fitted_of(paper: str) -> list[Fitted]:
    """Read which readings of a paper were chosen because they come nearest."""
    return [Fitted(e["figures"], e["why"]) for e in _entries(paper, "fitted")]


def is_fitted(figure: Figure, readings: Iterable[Fitted]) -> bool:
    """Whether a figure rests on a reading that was chosen by printed figures."""
    return any(fnmatchcase(figure.where, one.figures) for one in readings)


def _entries(paper: str, kind: str) -> list[dict[str, str]]:
    path = HERE / paper / "reasons.toml"
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return list(found.get(kind, []))


def reason_for(figure: Figure, reasons: Iterable[Reason]) -> Reason:
    """Give the first reason whose pattern fits; open if none does."""
    open_one = Reason(figure.where, "open", "not explained")
    return next((one for one in reasons if fnmatchcase(figure.where, one.figures)), open_one)


def table(figures: Iterable[Figure], reasons: Sequence[Reason] = ()) -> Iterator[str]:
    """Lines of a table of figures."""
    yield "| figure | printed | ours | |"
    yield "| --- | --- | --- | --- |"
    for one in figures:
        why = f", {reason_for(one, reasons).kind}" if one.state == "not" else ""
        yield f"| {one.where} | {one.printed:.{one.digits}f} | {one.ours:.{one.digits + 1}f} | {one.state}{why} |"


def write_figures(paper: str, figures: Iterable[Figure]) -> Path:
    """Keep the figures of a paper in its folder, for the scoreboard and for quick runs."""
    path = HERE / paper / "figures.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_FIELDS)
        for one in figures:
            best = "" if one.best is None else f"{one.best:.6g}"
            writer.writerow([one.where, one.printed, one.digits, one.tolerance, f"{one.ours:.6g}", one.better, best])
    return path


def kept_figures(paper: str) -> list[Figure]:
    """Read the figures of a paper's last whole run; none if it was never run."""
    path = HERE / paper / "figures.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Figure(
                row["where"],
                float(row["printed"]),
                float(row["ours"]),
                int(row["digits"]),
                float(row["tolerance"]),
                row["better"],
                float(row["best"]) if row["best"] else None,
            )
            for row in csv.DictReader(file)
        ]


def moved(figures: Iterable[Figure], kept: Iterable[Figure]) -> Iterator[str]:
    """Say which figures differ from what a whole run gave, by more than other versions of a library may do.

    Seconds differ on every run. Near to the paper is another matter: that can be less.
    """
    before = {one.where: one for one in kept if not one.where.endswith(", seconds")}
    for one in figures:
        old = before.get(one.where)
        if old is not None and abs(one.ours - old.ours) > max(one.tolerance, _SLACK * abs(old.ours)) + 1e-9:
            yield f"{one.where}: {one.ours:.6g}, and {old.ours:.6g} in the last whole run"


def scoreboard() -> Iterator[str]:
    """Lines of ``reproductions/README.md``."""
    yield "# Scoreboard: every printed figure beside ours"
    yield ""
    yield "Written by `sfumato reproduce PAPER --update`; do not edit. *Exact*: ours rounds to the printed figure."
    yield "*Near*: within the tolerance in the paper's `figures.csv`, at most half of what the paper finds between the"
    yield "methods it compares. *Fitted*: exact or near by a reading that was chosen because it comes nearest, which is"
    yield "no evidence; listed per paper. *Not*: by reason. A comparison (AUC, accuracy, error, loss) is *ahead or"
    yield "equal* where the best of our methods with the same guarantee is at least as good."
    yield ""
    yield "| paper | figures | exact | near | of these fitted | not | why not | compared | ahead or equal |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    worse: dict[str, list[Figure]] = {}
    for paper, title in PAPERS.items():
        figures, reasons = kept_figures(paper), reasons_of(paper)
        if not figures:
            yield f"| [{paper}]({paper}/RESULTS.md): {title} | not counted yet | | | | | | | |"
            continue
        states = Counter(one.state for one in figures)
        why = Counter(reason_for(one, reasons).kind for one in figures if one.state == "not")
        named = ", ".join(f"{kind} {n}" for kind, n in why.most_common())
        compared = [one for one in figures if one.better]
        worse[paper] = [one for one in compared if one.is_worse]
        readings = fitted_of(paper)
        n_fitted = sum(one.state != "not" and is_fitted(one, readings) for one in figures)
        counts = (len(figures), states["exact"], states["near"], n_fitted, states["not"], named or "—")
        ahead = f"{len(compared)} | {len(compared) - len(worse[paper])}"
        yield f"| [{paper}]({paper}/RESULTS.md): {title} | {' | '.join(map(str, counts))} | {ahead} |"
    yield ""
    yield "## Reasons"
    yield ""
    for kind, meaning in REASONS.items():
        yield f"- **{kind}**: {meaning}."
    for paper in PAPERS:
        yield from _explained(paper, worse.get(paper, []))


def _explained(paper: str, worse: Sequence[Figure]) -> Iterator[str]:
    figures, reasons = kept_figures(paper), reasons_of(paper)
    differing = [one for one in figures if one.state == "not"]
    if not differing:
        return
    yield ""
    yield f"## {paper}"
    yield ""
    given = Counter(reason_for(one, reasons) for one in differing)
    listed = {one.figures: one for one in given if one in reasons}
    for reason in listed.values():
        shown = f" Tested by `{reason.test}`." if reason.test else ""
        yield f"- {reason.figures} ({given[reason]}; {reason.kind}): {reason.why}{shown}"
    unexplained = [one.where for one in differing if reason_for(one, reasons) not in reasons]
    for one in fitted_of(paper):
        yield f"- Fitted ({one.figures}): {one.why}"
    if unexplained:
        yield f"- Not explained ({len(unexplained)}): {'; '.join(unexplained)}."
    if worse:
        yield f"- **Ours is behind** ({len(worse)}): {'; '.join(one.where for one in worse)}."


def write_scoreboard() -> Path:
    """Write ``reproductions/README.md``."""
    path = HERE / "README.md"
    path.write_text("\n".join(scoreboard()) + "\n", encoding="utf-8")
    return path
