"""What is measured: data sets, methods, and the scores of each combination."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from reproductions.containment import dp
from reproductions.containment.data import DataSet, adult, email, entity
from reproductions.containment.methods import OUR_METHODS, PAPER_METHODS
from reproductions.containment.scoring import Score, score, topic_score

LEVELS = (5, 8, 11)
METHODS = PAPER_METHODS | OUR_METHODS
SETS = {"Adult": adult, "Email": email, "Entity stand-in": entity}


@dataclass(frozen=True)
class Job:
    """One line of a table: a method on a data set, or a kind of noise."""

    data: str
    method: str

    @property
    def is_private(self) -> bool:
        """Whether it is a line of Figure 1."""
        return self.method in dp.KINDS


@dataclass(frozen=True)
class Outcome:
    """Scores of one method on one data set, a level each."""

    data: str
    method: str
    scores: list[Score]
    seconds: float


@cache
def data_set(name: str) -> DataSet:
    """Read or build a data set."""
    return SETS[name]()


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


def measure(job: Job) -> Outcome | dp.Private:
    """Do one job."""
    data = data_set(job.data)
    return dp.run(data, job.method) if job.is_private else run_method(data, job.method)
