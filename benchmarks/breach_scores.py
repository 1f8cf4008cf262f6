"""Scores of sets of columns with naive Bayes: the ranker of the breach system on Diabetes 130."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

FILE = DATA / "diabetes130" / "diabetic_data.csv.gz"
IDENTIFIERS = ["encounter_id", "patient_nbr"]
TARGET = "readmitted"
N_FOLDS = 10
SAMPLE = (3, 16, 40)
"""Columns to leave out in the sample of the ranker's sets that scikit-learn trains on."""


def load(folder: Path) -> Any:
    """Code the 47 columns (every value, a missing one included, is a category) and deal out the folds."""
    import numpy as np
    import pandas as pd

    from sfumato.learning.fold_scores import folds

    rows = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    target = pd.factorize(rows[TARGET], sort=True)[0]
    X = np.column_stack([pd.factorize(rows[name], sort=True)[0] for name in rows.drop(columns=[*IDENTIFIERS, TARGET])])
    return X, target, folds(target, N_FOLDS)


def rank(data: Any) -> Any:
    """Score all columns, and all without each: 48 sets, with everything that is counted for them."""
    import numpy as np

    from sfumato.learning.naive_bayes import NaiveBayesScores
    from sfumato.learning.tree import TreeColumn

    X, target, fold_of_row = data
    columns = [TreeColumn(codes, int(codes.max()) + 1) for codes in np.ascontiguousarray(X.T, dtype=np.int32)]
    bayes = NaiveBayesScores(columns, target, fold_of_row)
    everything = list(range(len(columns)))
    return bayes, bayes.scores(everything), bayes.without_each(everything)


def rank_and_walk(data: Any) -> Any:
    """Score the sets of :func:`rank`, then leave out column after column in both directions: 140 sets."""
    bayes, whole, without = rank(data)
    order = without.mean(axis=1).argsort(kind="stable").tolist()
    for walk in (order, order[::-1]):
        for n_kept in range(len(walk) - 1, 0, -1):
            bayes.scores(walk[:n_kept])
    return bayes, whole, without


def train_again(data: Any) -> Any:
    """Cross-validate scikit-learn's naive Bayes on a sample of the ranker's sets, and take the time."""
    from sklearn.model_selection import PredefinedSplit, cross_val_score
    from sklearn.naive_bayes import CategoricalNB

    X, target, fold_of_row = data
    start = time.perf_counter()
    found = []
    for left_out in SAMPLE:
        kept = [column for column in range(X.shape[1]) if column != left_out]
        model = CategoricalNB(min_categories=X[:, kept].max(axis=0) + 1)
        found.append(cross_val_score(model, X[:, kept], target, cv=PredefinedSplit(fold_of_row)).mean())
    return found, time.perf_counter() - start


def assess(n_sets: int, result: Any) -> Outcome:
    """Return the accuracies of the sample; they must be scikit-learn's (whose prior of the classes has no +1)."""
    _, _, without = result
    return Outcome([round(float(without[column].mean()), 3) for column in SAMPLE], {"sets": n_sets})


def assess_ranker(data: Any, result: Any) -> Outcome:
    """Judge :func:`rank`."""
    return assess(1 + data[0].shape[1], result)


def assess_walks(data: Any, result: Any) -> Outcome:
    """Judge :func:`rank_and_walk`."""
    n_columns = data[0].shape[1]
    return assess(1 + n_columns + 2 * (n_columns - 1), result)


def assess_sample(data: Any, result: Any) -> Outcome:
    """Extrapolate to all sets: those of the ranker alike, those of the lists by their number of columns.

    What a set costs whatever its columns is spread over the columns, which favours scikit-learn in small sets.
    """
    found, seconds = result
    n_columns = data[0].shape[1]
    of_column = seconds / len(SAMPLE) / (n_columns - 1)
    ranker = n_columns + n_columns * (n_columns - 1)
    lists = n_columns * (n_columns - 1)
    figures: dict[str, float | int | str] = {
        "sets": len(SAMPLE),
        "seconds for the ranker (extrapolated)": round(of_column * ranker, 1),
        "seconds for ranker and both lists (extrapolated)": round(of_column * (ranker + lists), 1),
    }
    return Outcome([round(float(accuracy), 3) for accuracy in found], figures)


BENCHMARK = Benchmark(
    title="Naive Bayes in 10-fold cross-validation on sets of the 47 columns of Diabetes 130 (101,766 rows), all "
    "coded as categories before the clock starts. scikit-learn trains on a sample of the sets, so compare the seconds "
    "extrapolated, not the ratio",
    goal="ranker and both lists at least 50 × faster than cross_val_score for every set",
    needs=(FILE,),
    contenders=(
        Contender("ranker", rank, load, ("sfumato", "numpy"), repeats=3, assess=assess_ranker),
        Contender("ranker and both lists", rank_and_walk, load, ("sfumato",), repeats=3, assess=assess_walks),
        Contender(
            f"cross_val_score, {len(SAMPLE)} of the sets",
            train_again,
            load,
            ("scikit-learn",),
            repeats=1,
            assess=assess_sample,
        ),
    ),
)
