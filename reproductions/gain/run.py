"""Run the reproduction and write RESULTS.md: the paper's figures beside ours, and why they differ.

Run as ``sfumato reproduce gain`` in a checkout, or ``python -m reproductions.gain.run``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from reproductions.figures import Figure, below_effect
from reproductions.gain.scoring import (
    ARX,
    CLASSIFIERS,
    COLUMNS,
    METHODS,
    ORIGINAL,
    ORIGINAL_NUMERIC,
    PAPER,
    PAPER_CLASS,
    PLAIN,
    SENSITIVE,
    SLICED_BY_SEX,
    SOUND,
    TARGET,
    TEN,
    WEIGHTED,
    Job,
    K,
    L,
    Outcome,
    classifiers_of,
    jobs,
    measure,
    standard_error,
    table_of,
)
from reproductions.running import Reproduction, run
from sfumato.mechanisms.lattice.losses import information_gains

FOLDER = Path(__file__).parent
THRESHOLD = 0.02
CORRECTED = "corrected"
PRINTED: dict[str, Any] = tomllib.loads((FOLDER / "paper.toml").read_text())
TABLES = {"Table 3": PLAIN, "Table 4": SLICED_BY_SEX}
CLASSES = ("<=50K", ">=50K")
QUICK = {Job(PAPER, PLAIN)}
Outcomes = Mapping[Job, Outcome]
Gains = Mapping[str, Mapping[str, float]]


def reproduction() -> Reproduction[Job, Outcome]:
    """Say what is run; gains need no job."""
    return Reproduction(
        "gain",
        jobs(),
        measure,
        label=lambda job: f"{job.case}, {job.method}",
        is_quick=lambda job: job in QUICK,
        figures=figures,
        report=report,
        misses=misses,
    )


@cache
def all_gains() -> Gains:
    """Gains of all columns: for the paper's class, for the target, and corrected for many values."""
    gains = {about: gains_for(about) for about in (PAPER_CLASS, TARGET)}
    return {**gains, CORRECTED: gains_for(TARGET, "independence")}


def figures(outcomes: Outcomes) -> Iterator[Figure]:
    """Table 1, and Tables 3 to 5 read as areas under the curve (see reasons.md)."""
    by_sex = all_gains()[PAPER_CLASS]
    for name, printed in PRINTED["gains"].items():
        yield Figure(f"Table 1, gain of {name}", printed, by_sex[name], 3, 0.0006)
    for classifier in (name for name in CLASSIFIERS if name in PRINTED):
        yield from _areas(outcomes, classifier)
        yield from _losses(outcomes, classifier)


def _areas(outcomes: Outcomes, classifier: str) -> Iterator[Figure]:
    """Tables 3 and 4. The area under a curve of two classes is the same for either, and input data are input data."""
    printed = printed_areas(classifier)
    for (table, what), values in printed.items():
        method = ORIGINAL if what == "input" else TABLES[table]
        if Job(PAPER, method) not in outcomes:
            continue
        ours, best = 100 * outcomes[Job(PAPER, method)].auc(classifier), _best(outcomes, classifier, method)
        # two prints of the same input data differ, which is no effect of a method
        others = [other for (_, of), other in printed.items() if not of == what == "input"]
        for place, (name, value) in enumerate(zip(CLASSES, values, strict=True)):
            near = below_effect(value, [other[place] for other in others], 1.0)
            better = "" if method == ORIGINAL else "higher"
            yield Figure(f"{table}, {classifier}, {name}, {what} data", value, ours, 5, near, better, best)


def _losses(outcomes: Outcomes, classifier: str) -> Iterator[Figure]:
    """Table 5: what the areas lose."""
    printed = PRINTED[classifier]["Table 5"]
    for method, values in printed.items():
        if not {Job(PAPER, ORIGINAL), Job(PAPER, method)} <= set(outcomes):
            continue
        original = 100 * outcomes[Job(PAPER, ORIGINAL)].auc(classifier)
        ours, best = 100 * outcomes[Job(PAPER, method)].auc(classifier), _best(outcomes, classifier, method)
        least = None if best is None else original - best
        for place, (name, value) in enumerate(zip(CLASSES, values, strict=True)):
            near = below_effect(value, [other[place] for other in printed.values()], 1.0)
            yield Figure(f"Table 5, {classifier}, {name}, {method}", value, original - ours, 5, near, "lower", least)


def printed_areas(classifier: str) -> dict[tuple[str, str], list[float]]:
    """Figures of both classes by table and by data: those of Table 4 are of the same input data as those of Table 3."""
    return {(table, what): PRINTED[classifier][table][what] for table in TABLES for what in ("input", "output")}


def printed_for(classifier: str, method: str) -> float | None:
    """Look up the printed figure of a method, for the class <=50K."""
    tables = {ORIGINAL: ("Table 3", "input"), **{own: (table, "output") for table, own in TABLES.items()}}
    if classifier not in PRINTED or method not in tables:
        return None
    return printed_areas(classifier)[tables[method]][0]


def _best(outcomes: Outcomes, classifier: str, method: str) -> float | None:
    """Largest area of all methods that promise as much."""
    if method == ORIGINAL:
        return None
    alike = SOUND if method in SOUND else (*SOUND, method)
    done = [outcomes[Job(PAPER, one)] for one in alike if Job(PAPER, one) in outcomes]
    return max((100 * one.auc(classifier) for one in done), default=None)


def gains_for(about: str, correction: str = "none") -> dict[str, float]:
    """Information gain in bits of every column of the two lists in the paper, the largest first."""
    table = table_of(PAPER)
    names = {*COLUMNS[PAPER], *COLUMNS[TEN], SENSITIVE, TARGET} - {about}
    gains = information_gains(table, sorted(names), about, correction)
    return dict(sorted(gains.items(), key=lambda item: -item[1]))


def misses(outcomes: Outcomes) -> Iterator[str]:
    """Compare with expected.toml: gains and figures within a tolerance; then what must hold among them."""
    gains, expected = all_gains(), tomllib.loads((FOLDER / "expected.toml").read_text())
    for about, values in expected["gains"].items():
        for name, value in values.items():
            if abs(gains[about][name] - value) > expected["tolerance"]["gain"]:
                yield f"gain of {name} for {about}: {gains[about][name]:.4f}, expected {value}"
    for case, methods in expected["figures"].items():
        for method, figures in methods.items():
            for classifier, (accuracy, auc) in figures.items():
                done = outcomes[Job(case, method)]
                for name, ours, value in (
                    ("accuracy", done.accuracy(classifier), accuracy),
                    ("auc", done.auc(classifier), auc),
                ):
                    if abs(ours - value) > expected["tolerance"][name]:
                        yield f"{case}, {method}, {classifier}: {name} {ours:.4f}, expected {value}"
    yield from _broken_claims(outcomes)


def _broken_claims(outcomes: Outcomes) -> Iterator[str]:
    weighted, plain = outcomes[Job(PAPER, WEIGHTED)], outcomes[Job(PAPER, PLAIN)]
    for classifier in CLASSIFIERS:
        if weighted.accuracy(classifier) <= plain.accuracy(classifier):
            yield f"{classifier}: {WEIGHTED} is not above {PLAIN}"
    for method in SOUND:
        held = outcomes[Job(PAPER, method)].held
        if held.k < K or held.l < L:
            yield f"{method}: k = {K} and l = {L} do not hold over all quasi-identifiers"


def report(outcomes: Outcomes) -> Iterator[str]:
    """Lines of RESULTS.md."""
    gains, paper = all_gains(), PRINTED
    yield (FOLDER / "preface.md").read_text().rstrip()
    yield from _gains(gains, paper["gains"])
    yield from _slices(gains)
    for classifier in CLASSIFIERS:
        yield from _performance(outcomes, classifier)
    yield from _beside_plain(outcomes)
    yield from _attributes(outcomes)
    yield from _protection(outcomes)
    yield from _bar(outcomes, paper[ARX])
    yield "\n" + (FOLDER / "reasons.md").read_text().rstrip()


def _gains(gains: Gains, printed: Mapping[str, float]) -> Iterator[str]:
    yield "\n## Table 1: information gain in bits\n"
    yield "| column | paper | ours, class sex | Equation 3, class sex | ours, class salary | corrected, class salary |"
    yield "| --- | --- | --- | --- | --- | --- |"
    by_sex, by_salary, corrected = gains[PAPER_CLASS], gains[TARGET], gains[CORRECTED]
    for name in (*by_sex, PAPER_CLASS):
        paper = f"{printed[name]:.3f}" if name in printed else "—"
        ours = (f"{by_sex[name]:.3f}", f"{2 * by_sex[name]:.3f}") if name in by_sex else ("—", "—")
        for_salary = (f"{gains[name]:.3f}" if name in gains else "—" for gains in (by_salary, corrected))
        yield f"| {name} | {paper} | {' | '.join(ours)} | {' | '.join(for_salary)} |"


def _slices(gains: Gains) -> Iterator[str]:
    yield f"\n## Table 2: slices at a threshold of {THRESHOLD} bits\n"
    yield "| gain for | high: left as it is | low: coarsened |"
    yield "| --- | --- | --- |"
    yield "| sex, paper | relationship, marital-status, salary | workclass, age, race, education, native-country |"
    for about, names in ((PAPER_CLASS, (*COLUMNS[PAPER], TARGET)), (TARGET, COLUMNS[PAPER])):
        found = {name: gain for name, gain in gains[about].items() if name in names}
        high = ", ".join(name for name, gain in found.items() if gain >= THRESHOLD)
        low = ", ".join(name for name, gain in found.items() if gain < THRESHOLD)
        yield f"| {about}, ours | {high} | {low} |"


def _performance(outcomes: Outcomes, classifier: str) -> Iterator[str]:
    yield f"\n## Tables 3 to 5, {classifier}: percent\n"
    yield "| method | paper | AUC, ours | accuracy, ours | loss, paper | Table 5 | AUC lost | accuracy lost |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    original = outcomes[Job(PAPER, ORIGINAL)]
    for method in METHODS[PAPER]:
        done = outcomes[Job(PAPER, method)]
        accuracy, auc = done.accuracy(classifier), done.auc(classifier)
        value, input_value = printed_for(classifier, method), printed_for(classifier, ORIGINAL)
        lost = None if method == ORIGINAL or value is None or input_value is None else input_value - value
        cells = [
            "—" if value is None else f"{value:.2f}",
            f"{100 * auc:.2f}",
            f"{100 * accuracy:.2f} ± {100 * standard_error(done.accuracies(classifier)):.2f}",
            "—" if lost is None else f"{lost:.2f}",
            "—" if lost is None else f"{PRINTED[classifier]['Table 5'][method][0]:.2f}",
            f"{100 * (original.auc(classifier) - auc):.2f}",
            f"{100 * (original.accuracy(classifier) - accuracy):.2f}",
        ]
        yield f"| {method} | {' | '.join(cells)} |"


def _beside_plain(outcomes: Outcomes) -> Iterator[str]:
    methods = [method for method in METHODS[PAPER] if method in SOUND and method != PLAIN]
    yield "\n## Accuracy above plain recoding, same folds: points, and folds of ten in which it is higher\n"
    yield f"| classifier | {' | '.join(methods)} |"
    yield f"| --- |{' --- |' * len(methods)}"
    for classifier in CLASSIFIERS:
        plain, cells = outcomes[Job(PAPER, PLAIN)].accuracies(classifier), []
        for method in methods:
            more = outcomes[Job(PAPER, method)].accuracies(classifier) - plain
            cells.append(f"{100 * more.mean():+.2f} ± {100 * standard_error(more):.2f}, {(more > 0).sum()}")
        yield f"| {classifier} | {' | '.join(cells)} |"


def _attributes(outcomes: Outcomes) -> Iterator[str]:
    yield "\n## Original rows: which columns, and is it accuracy?\n"
    yield "| classifier | paper | Table 1's columns: accuracy / AUC | the text's ten attributes: accuracy / AUC |"
    yield "| --- | --- | --- | --- |"
    for classifier in CLASSIFIERS:
        ours = (_accuracy_and_auc(outcomes[Job(case, ORIGINAL)], classifier) for case in (PAPER, TEN))
        value = printed_for(classifier, ORIGINAL)
        printed = "—" if value is None else f"{value / 100:.4f}"
        yield f"| {classifier} | {printed} | {' | '.join(ours)} |"


def _protection(outcomes: Outcomes) -> Iterator[str]:
    yield "\n## What holds, by the audit of a release of all rows\n"
    yield "*Height*: generalization steps a cell (Equation 4 by rows × columns); suppressed rows at the top.\n"
    yield "| method | levels | height | suppressed | k, l of the coarsened | k, l of all | unique rows | rows below k |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for job in [Job(case, method) for case in (PAPER, TEN) for method in METHODS[case]]:
        if job.method == ORIGINAL_NUMERIC:
            continue
        held = outcomes[job].held
        cells = [
            ", ".join(f"{name} {level}" for name, level in held.levels.items()),
            "—" if held.height is None else f"{held.height:.3f}",
            f"{held.n_suppressed}",
            f"{held.k_of_slice}, {held.l_of_slice}",
            f"{held.k}, {held.l}",
            f"{held.unique_fraction:.1%}",
            f"{held.fraction_below_k:.1%}",
        ]
        yield f"| {job.method}{', ten attributes' * (job.case == TEN)} | {' | '.join(cells)} |"


def _bar(outcomes: Outcomes, printed: Mapping[str, Any]) -> Iterator[str]:
    names = classifiers_of(ARX)
    yield f"\n## The bar: ARX with salary as response variable, k = {K}: accuracy / AUC\n"
    yield f"| method | {' | '.join(names)} | k of all rows | rows suppressed | levels |"
    yield f"| --- |{' --- |' * len(names)} --- | --- | --- |"
    for method, figures in printed.items():
        shown = method if method.startswith("ARX") else f"ARX, {method}"
        known = (" / ".join(f"{figure:.4f}" for figure in figures.get(name, ())) or "—" for name in names)
        yield f"| *{shown}* | {' | '.join(known)} | | | |"
    for method in METHODS[ARX]:
        done = outcomes[Job(ARX, method)]
        held = done.held
        cells = [_accuracy_and_auc(done, name) for name in names]
        levels = ", ".join(str(held.levels[name]) for name in COLUMNS[ARX] if held.levels)
        cells += [str(held.k), str(held.n_suppressed), levels]
        yield f"| {method} | {' | '.join(cells)} |"


def _accuracy_and_auc(outcome: Outcome, classifier: str) -> str:
    return f"{outcome.accuracy(classifier):.4f} / {outcome.auc(classifier):.4f}"


if __name__ == "__main__":
    sys.exit(run(reproduction()))
