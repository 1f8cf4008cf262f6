"""What is measured: a session of three processes, random splits of the rows, and classifiers before and after."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reproductions.collaborate.rise import Fit
from reproductions.collaborate.scoring import ALL_ROWS, LEARNERS, Rates, Split, Tumors
from sfumato.collaborate.simulate.simulation import SimulationResult

PAPER: dict[str, Any] = tomllib.loads((Path(__file__).parent / "paper.toml").read_text())
N_SPLITS, N_SEEDS = 200, 20
N_FITTED, FITTED_SEEDS = 1500, (0, 1, 2)
N_REMOVED = (0, 3, 6)
SESSION, FITS = "session", "fits"
SIZES = {"/".join(map(str, sizes)): sizes for sizes in (PAPER["sizes"], ALL_ROWS)}
"""Rows of the parties: those of the paper, and all."""
Seed = int | None
Outcome = SimulationResult | Sequence[Split] | Mapping[str, Fit] | Rates


@dataclass(frozen=True)
class Job:
    """The session, the splits of one list of sizes, how forms of the gain fit, or one classifier on some folds.

    Parameters
    ----------
    what : str
        ``session``, ``fits``, sizes as a text, or a classifier.
    n_removed : int
        Features that a classifier does without.
    seed : int or None
        Of folds or splits; of folds ``None`` means Weka's.
    """

    what: str
    n_removed: int = 0
    seed: Seed = 0


def all_jobs() -> list[Job]:
    """All that is measured, the long ones first."""
    seeds: list[Seed] = [None, *range(N_SEEDS)]
    return [
        *(Job(FITS, seed=seed) for seed in FITTED_SEEDS),
        *(Job(sizes) for sizes in SIZES),
        Job(SESSION),
        *(Job(learner, n, seed) for seed in seeds for learner in LEARNERS for n in N_REMOVED),
    ]


def label(job: Job) -> str:
    """Name a job for people."""
    if job.what == SESSION:
        return "session of three processes"
    if job.what == FITS:
        return f"forms of the gain beside Table II, seed {job.seed}"
    if job.what in SIZES:
        return f"{N_SPLITS} splits of {job.what}"
    folds = "Weka's folds" if job.seed is None else f"folds of seed {job.seed}"
    return f"{job.what} without {job.n_removed} features, {folds}"


def measure(job: Job) -> Outcome:
    """Do one job."""
    tumors = _tumors()
    if job.what == SESSION:
        return tumors.session(PAPER["threshold"])
    if job.what == FITS:
        steps = list(PAPER["table_2"].values())
        assert job.seed is not None
        return tumors.fits(PAPER["sizes"], PAPER["removed"], steps, PAPER["threshold"], N_FITTED, job.seed)
    if job.what in SIZES:
        return list(tumors.splits(SIZES[job.what], N_SPLITS))
    kept = [name for name in tumors.schema.names if name not in removal_order()[: job.n_removed]]
    return tumors.rates(job.what, kept, job.seed)


@cache
def _tumors() -> Tumors:
    return Tumors()


@cache
def removal_order() -> tuple[str, ...]:
    """Order in which features go; with all rows it is the same however they are dealt out."""
    return next(iter(_tumors().splits(ALL_ROWS, 1))).order
