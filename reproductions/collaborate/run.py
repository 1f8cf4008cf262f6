"""Run the reproduction and write RESULTS.md: the paper's three tables beside ours, and why they differ.

Run as ``sfumato reproduce collaborate`` in a checkout, or ``python -m reproductions.collaborate.run``.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproductions.breach.intervals import half_width
from reproductions.collaborate.measuring import (
    FITS,
    FITTED_SEEDS,
    N_FITTED,
    N_REMOVED,
    N_SEEDS,
    N_SPLITS,
    PAPER,
    SESSION,
    SIZES,
    Job,
    Outcome,
    Seed,
    all_jobs,
    label,
    measure,
)
from reproductions.collaborate.rise import Fit
from reproductions.collaborate.scoring import ALL_ROWS, FOREST, LEARNERS, Rates, Split, Tumors
from reproductions.figures import Figure, below_effect
from reproductions.running import Reproduction, run
from sfumato.collaborate.scores import feature_entropy_bits, gains_of_removal, most_entropy_bits
from sfumato.collaborate.simulate.simulation import SimulationResult

FOLDER = Path(__file__).parent
Splits = Mapping[str, Sequence[Split]]


@dataclass(frozen=True)
class Findings:
    """All that was measured.

    Parameters
    ----------
    whole_gains : tuple of float
        Gains of all 339 rows, as far as half of the features.
    splits : mapping
        By the sizes of the parties, one a seed.
    rates : mapping
        By learner, number of features removed, and seed of the folds (None: Weka's).
    fits : sequence of mapping
        Of each seed, how well two forms of the gain agree with Table II.
    """

    session: SimulationResult
    order: tuple[str, ...]
    whole_gains: tuple[float, ...]
    most_bits: float
    splits: Splits
    rates: Mapping[tuple[str, int, Seed], Rates]
    n_with_bone_marrow: int
    fits: Sequence[Mapping[str, Fit]] = ()


NEAR_RATES = {"true positive": 0.003, "false positive": 0.001}
"""Half of the least effect of removing three features that Table III shows."""


def reproduction() -> Reproduction[Job, Outcome]:
    """Say what is run."""
    return Reproduction(
        "collaborate",
        all_jobs(),
        measure,
        label=label,
        is_quick=lambda job: job.what == SESSION or (job.seed is None and job.n_removed < N_REMOVED[-1]),
        figures=figures,
        report=lambda outcomes: report(findings(outcomes)),
        misses=lambda outcomes: misses(findings(outcomes), tomllib.loads((FOLDER / "expected.toml").read_text())),
    )


def findings(outcomes: Mapping[Job, Any]) -> Findings:
    """Put the outcomes of all jobs together."""
    tumors = Tumors()
    counts = tumors.counts(np.arange(tumors.table.n_rows))
    splits = {sizes: outcomes[Job(sizes)] for sizes in SIZES}
    (order,) = {split.order for split in splits[_sizes(ALL_ROWS)]}
    return Findings(
        outcomes[Job(SESSION)],
        order,
        gains_of_removal(order, counts),
        most_entropy_bits(tumors.schema.n_values.values()),
        splits,
        {(job.what, job.n_removed, job.seed): found for job, found in outcomes.items() if job.what in LEARNERS},
        int(counts["bone-marrow"].sum(axis=1).min()),
        [outcomes[Job(FITS, seed=seed)] for seed in FITTED_SEEDS],
    )


def figures(outcomes: Mapping[Job, Any]) -> Iterator[Figure]:
    """Table I from the session, Table II by the text's ρ (means over the splits), Table III on Weka's folds."""
    session = outcomes.get(Job(SESSION))
    for score in session.scores if session else ():
        ours = (score["utility"], score["privacy_pooled"], score["tradeoff"])
        for what, printed, value in zip(
            ("utility", "privacy", "τ"), PAPER["table_1"][score["name"]], ours, strict=True
        ):
            yield Figure(f"Table I, {score['name']}, {what}", printed, value, 4, 2e-4)
    splits = outcomes.get(Job(_sizes(PAPER["sizes"])), ())
    for name, printed in PAPER["table_2"].items() if splits else ():
        for place, value in enumerate(printed):
            ours = float(np.mean([split.gains[name][place] for split in splits]))
            yield Figure(f"Table II, {name}, {place + 1} removed", value, ours, 4, 0.005)
    for learner, rows in PAPER["table_3"].items():
        for n, printed in zip(N_REMOVED, rows[:2], strict=False):
            if rates := outcomes.get(Job(learner, n, None)):
                for place, (what, most) in enumerate(NEAR_RATES.items()):
                    near = below_effect(printed[place], [row[place] for row in rows[:2]], most)
                    yield Figure(f"Table III, {learner}, without {n}, {what}", printed[place], rates[place], 3, near)


def misses(found: Findings, expected: Mapping[str, Any]) -> Iterator[str]:
    """Compare with the paper's Table I and with expected.toml."""
    tolerance = expected["tolerance"]
    for score in found.session.scores:
        name, privacy = score["name"], score["privacy_pooled"]
        printed_utility, printed_privacy, _ = PAPER["table_1"][name]
        if abs(score["utility"] - printed_utility) > tolerance["utility"]:
            yield f"utility of {name}: {score['utility']:.5f}, the paper has {printed_utility}"
        if name != "age" and abs(privacy - printed_privacy) > tolerance["printed_privacy"]:
            yield f"privacy of {name}: {privacy:.5f}, the paper has {printed_privacy}"
        if abs(privacy - expected["privacy"].get(name, privacy)) > tolerance["recomputed_privacy"]:
            yield f"privacy of {name}: {privacy:.5f}, expected {expected['privacy'][name]}"
    removal = expected["removal"]
    if list(found.session.removed) != removal["order"]:
        yield f"removed: {', '.join(found.session.removed)}"
    if not np.allclose(found.session.whole_table_gains, removal["gains"], rtol=0, atol=tolerance["gain"]):
        yield f"gains of the whole table: {_joined(found.session.whole_table_gains)}"
    if abs(found.most_bits - removal["most_entropy_bits"]) > 5e-3:
        yield f"M_D is {found.most_bits:.4f} bits"
    first = found.splits[_sizes(ALL_ROWS)][0]
    for name, gains in found.session.gains.items():
        if not np.allclose(gains, first.gains[name][: len(gains)], rtol=0, atol=1e-12):
            yield f"{name}: gains in the session are not those of its rows"
    yield from _missed_rates(found, expected["rates"], tolerance["rate"])
    yield from _missed_of_weka(found)


def _missed_rates(found: Findings, expected: Mapping[str, Sequence[float]], tolerance: float) -> Iterator[str]:
    for learner, values in expected.items():
        for n, value in zip(N_REMOVED, values, strict=True):
            ours = float(np.mean([rates.true_positive for rates in _of_seeds(found, learner, n)]))
            if abs(ours - value) > tolerance:
                yield f"{learner} without {n} features: true positive rate {ours:.4f}, expected {value}"


def _missed_of_weka(found: Findings) -> Iterator[str]:
    """Compare the twelve figures of Table III that do not depend on a random forest, digit for digit."""
    for learner, printed in PAPER["table_3"].items():
        for n, figures in zip(N_REMOVED[:2], printed, strict=False):
            ours = found.rates.get((learner, n, None)) if learner != FOREST else None
            if ours is not None and [f"{rate:.3f}" for rate in ours] != [f"{figure:.3f}" for figure in figures]:
                yield f"{learner} on Weka's folds without {n} features: {ours}, the paper has {figures}"


def report(found: Findings) -> Iterator[str]:
    """Lines of RESULTS.md."""
    yield (FOLDER / "preface.md").read_text().rstrip()
    yield from _table_1(found)
    yield from _whole_gains(found)
    yield from _table_2(found)
    yield from _largest_gains(found)
    yield from _fitted(found)
    yield from _table_3(found)
    yield "\n" + (FOLDER / "reasons.md").read_text().rstrip()


def _table_1(found: Findings) -> Iterator[str]:
    yield "\n## Table I: scores of the features\n"
    yield "| feature | utility: paper | ours | privacy: paper | ours | trade-off: paper | ours | removed as |"
    yield f"| --- |{' --- |' * 7}"
    places = {name: place for place, name in enumerate(found.session.removed, start=1)}
    for score in found.session.scores:
        ours = (score["utility"], score["privacy_pooled"], score["tradeoff"])
        pairs = " | ".join(
            f"{paper:.4f} | {value:.4f}" for paper, value in zip(PAPER["table_1"][score["name"]], ours, strict=True)
        )
        yield f"| {score['name']} | {pairs} | {places.get(score['name'], '')} |"


def _whole_gains(found: Findings) -> Iterator[str]:
    yield f"\n## Gain of the whole table by the text's ρ, M_D = {found.most_bits:.2f} bits\n"
    yield "| removals | feature | gain |"
    yield "| --- | --- | --- |"
    for n, (name, gain) in enumerate(zip(found.order, found.whole_gains, strict=True), start=1):
        yield f"| {n} | {name} | {gain:.4f} |"


def _table_2(found: Findings) -> Iterator[str]:
    threshold = PAPER["threshold"]
    yield "\n## Table II: gain of each party after 1, 2, 3, … removals\n"
    yield f"| party | paper | {' | '.join(f'{sizes}, seed 0 | {sizes}, {N_SPLITS} seeds' for sizes in found.splits)} |"
    yield f"| --- | --- |{' --- |' * 2 * len(found.splits)}"
    n_shown = max(N_REMOVED)
    for name, printed in PAPER["table_2"].items():
        cells = [_joined(printed)]
        for splits in found.splits.values():
            all_gains = np.array([split.gains[name][:n_shown] for split in splits])
            low, high = np.quantile(all_gains, [0.025, 0.975], axis=0)
            cells.append(_joined(all_gains[0]))
            cells.append(", ".join(f"{a:.3f} to {b:.3f}" for a, b in zip(low, high, strict=True)))
        yield f"| {name} | {' | '.join(cells)} |"
    yield f"\nRemovals until every party gains {threshold:g} (the paper: 3), and the orders of the first six:\n"
    yield "| parties | removals: splits | orders: splits |"
    yield "| --- | --- | --- |"
    for sizes, splits in found.splits.items():
        needed = Counter(split.n_needed(threshold) for split in splits)
        orders = Counter(split.order[:n_shown] for split in splits).most_common(3)
        said = "; ".join(f"{', '.join(order)}: {times}" for order, times in orders)
        yield f"| {sizes} | {', '.join(f'{n}: {times}' for n, times in sorted(needed.items()))} | {said} |"


def _largest_gains(found: Findings) -> Iterator[str]:
    n_yes = found.n_with_bone_marrow
    yield f"\n## First removal: largest gain that any split can give, all {n_yes} rows with bone marrow in one party\n"
    yield "| party | rows | paper | largest by the text's ρ |"
    yield "| --- | --- | --- | --- |"
    for (name, printed), n_rows in zip(PAPER["table_2"].items(), PAPER["sizes"], strict=True):
        most = feature_entropy_bits(np.array([[n_yes], [n_rows - n_yes]])) / found.most_bits
        yield f"| {name} | {n_rows} | {printed[0]:.4f} | {most:.4f} |"


def _fitted(found: Findings) -> Iterator[str]:
    sizes = _sizes(PAPER["sizes"])
    yield f"\n## Which ρ Table II may be: nine printed steps against {N_FITTED:,} random splits of {sizes}\n"
    said = "it rises when a column of little entropy goes, and falls when a revealing one does."
    yield f"**No measure of privacy**: {said}\n"
    yield "| seed | form | χ², 9 degrees of freedom | χ² with covariances | three removals suffice |"
    yield "| --- | --- | --- | --- | --- |"
    forms = {"rise": "relative rise of what remains", "text": "the text's"}
    for seed, fits in zip(FITTED_SEEDS, found.fits, strict=False):
        for name, words in forms.items():
            own = fits[name]
            figures = f"{own.chi_squared:.1f} | {own.chi_squared_together:.1f} | {own.share_content:.0%}"
            yield f"| {seed} | {words} | {figures} |"


def _table_3(found: Findings) -> Iterator[str]:
    yield "\n## Table III: weighted true and false positive rate, five folds\n"
    yield (
        f"| classifier | features | paper | on Weka's folds | ours, {N_SEEDS} seeds: true positive | false positive "
        "| true positive less than with all, same folds |"
    )
    yield f"|{' --- |' * 7}"
    for learner in PAPER["table_3"]:
        for n, printed in zip(N_REMOVED, (*PAPER["table_3"][learner][:2], None), strict=True):
            features = f"without {n}" if n else "all 17"
            paper = f"{printed[0]:.3f} / {printed[1]:.3f}" if printed else "—"
            if learner not in LEARNERS:
                if printed:
                    yield f"| {learner} | {features} | {paper} | — | — | — | — |"
                continue
            weka, ours = found.rates[learner, n, None], _of_seeds(found, learner, n)
            lost = [
                before.true_positive - after.true_positive
                for before, after in zip(_of_seeds(found, learner, 0), ours, strict=True)
            ]
            yield (
                f"| {learner} | {features} | {paper} | {weka.true_positive:.3f} / {weka.false_positive:.3f} "
                f"| {_interval([rates.true_positive for rates in ours])} "
                f"| {_interval([rates.false_positive for rates in ours])} | {_interval(lost) if n else '—'} |"
            )


def _of_seeds(found: Findings, learner: str, n_removed: int) -> list[Rates]:
    return [found.rates[learner, n_removed, seed] for seed in range(N_SEEDS)]


def _interval(values: Sequence[float]) -> str:
    return f"{np.mean(values):.4f} ± {half_width(values):.4f}"


def _joined(gains: Sequence[float]) -> str:
    return ", ".join(f"{gain:.4f}" for gain in gains)


def _sizes(sizes: Sequence[int]) -> str:
    return "/".join(map(str, sizes))


if __name__ == "__main__":
    sys.exit(run(reproduction()))
