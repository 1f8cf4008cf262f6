"""What is measured: data sets, methods, and the scores of each combination."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from reproductions.containment import dp, settings
from reproductions.containment.data import LEVELS, DataSet, adult, adult_again, email
from reproductions.containment.methods import OUR_METHODS, PAPER_METHODS, RUNS, everything
from reproductions.containment.scoring import DOCUMENT_TOPICS, SVM, TOPICS, Score, score
from reproductions.containment.standin import entity

BY_DOCUMENT = "Full-Feature-Set, topics of the row"
"""All features of the Entity data, scored by our earlier reading of Equation 5: topics of the row as a whole."""
TRIAL = "classifier settings"
METHODS = PAPER_METHODS | OUR_METHODS
SETS = {"Adult": adult, "Adult, second recipe": adult_again, "Email": email, "Entity stand-in": entity}


@dataclass(frozen=True)
class Job:
    """One line of a table: a method on a data set, or a kind of noise."""

    data: str
    method: str

    @property
    def is_private(self) -> bool:
        """Whether it is a line of Figure 1."""
        return self.method in dp.KINDS

    @property
    def is_trial(self) -> bool:
        """Whether it tries classifier settings."""
        return self.method == TRIAL


@dataclass(frozen=True)
class Outcome:
    """Scores of one method on one data set, a level each."""

    data: str
    method: str
    scores: list[Score]
    seconds: float


def jobs() -> list[Job]:
    """List all jobs, those of a data set together; the noise of Figure 1 on the first recipe of Adult only."""
    found = []
    for data in SETS:
        further = () if data == "Adult, second recipe" else dp.KINDS
        found += [Job(data, name) for name in (*METHODS, *further)]
    trials = [Job(data, TRIAL) for data in ("Adult, second recipe", "Email")]
    return [*found, Job("Entity stand-in", BY_DOCUMENT), *trials]


@cache
def data_set(name: str) -> DataSet:
    """Read or build a data set."""
    return SETS[name]()


def run_method(data: DataSet, name: str) -> Outcome:
    """Score one method at all levels: by the SVM, or by the topic classifier of the Entity data."""
    begun = time.perf_counter()
    method = everything if name == BY_DOCUMENT else METHODS[name]
    classifier = TOPICS if data.name.startswith("Entity") else SVM
    scores: list[Score] = []
    for k in LEVELS:
        if method is everything and scores:
            scores.append(scores[0])
        else:
            used = DOCUMENT_TOPICS if name == BY_DOCUMENT else classifier
            scores.append(score(data, RUNS.get(name, [method]), k, used))
    return Outcome(data.name, name, scores, time.perf_counter() - begun)


def measure(job: Job) -> Outcome | dp.Private | settings.Tried:
    """Do one job."""
    data = data_set(job.data)
    if job.is_trial:
        return settings.run(data)
    return dp.run(data, job.method) if job.is_private else run_method(data, job.method)
