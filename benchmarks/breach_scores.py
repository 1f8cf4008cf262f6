"""Ranker and candidate lists of the breach system: naive Bayes on Diabetes 130, C4.5 on Adult."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

DIABETES = DATA / "diabetes130" / "diabetic_data.csv.gz"
ADULT = (DATA / "adult" / "adult.data", DATA / "adult" / "adult.test")
N_FOLDS = 10
N_WORKERS = 2
ROWS_APART = 4
SAMPLE_SIZES = (46, 46, 30, 15, 5)
"""Columns in each set that scikit-learn trains on."""


def load_diabetes(folder: Path) -> Any:
    """Code the 47 columns (every value, a missing one included, is a category) and deal out the folds."""
    import numpy as np
    import pandas as pd

    from sfumato.learning.fold_scores import folds

    rows = pd.read_csv(DIABETES, dtype=str, keep_default_na=False).drop(columns=["encounter_id", "patient_nbr"])
    target = pd.factorize(rows["readmitted"], sort=True)[0]
    X = np.column_stack([pd.factorize(rows[name], sort=True)[0] for name in rows.drop(columns="readmitted")])
    return X, target, folds(target, N_FOLDS)


def load_adult(folder: Path) -> Any:
    """Code the 14 columns of every fourth of the 45,222 complete rows."""
    import numpy as np

    from reproductions.public_data import load_adult as load
    from sfumato.learning.fold_scores import folds
    from sfumato.mechanisms.breach.problem import problem_of_table
    from sfumato.schema import Role

    table = load("all", complete=True)
    table = table.take(np.arange(0, table.n_rows, ROWS_APART))
    roles = {name: Role.QUASI_IDENTIFIER for name in table.schema.names() if name != "salary"}
    problem = problem_of_table(table.with_schema(table.schema.with_roles(roles)), "salary")
    return problem.columns, problem.target, folds(problem.target, N_FOLDS)


def search(scores: Any) -> Any:
    """Rank the columns and walk along both lists by the paper's rule, the sensitive column being the target."""
    from sfumato.mechanisms.breach.search import AcceptanceRule, candidate_subsets, rank_columns
    from sfumato.mechanisms.breach.subset_evaluation import SubsetJudge

    judge = SubsetJudge(scores, test="paired")
    rule = AcceptanceRule(1e6, allow_increase=True, max_performance_loss=None)
    return candidate_subsets(judge, rank_columns(judge), rule)


def bayes_scores(data: Any) -> Any:
    """Count what naive Bayes needs."""
    import numpy as np

    from sfumato.learning.c45.tree import TreeColumn
    from sfumato.learning.naive_bayes import NaiveBayesScores

    X, target, fold_of_row = data
    columns = [TreeColumn(codes, int(codes.max()) + 1) for codes in np.ascontiguousarray(X.T, dtype=np.int32)]
    return NaiveBayesScores(columns, target, fold_of_row)


def search_with_bayes(data: Any) -> Any:
    """Search, counting included."""
    scores = bayes_scores(data)
    return scores, search(scores)


def search_with_trees(data: Any) -> Any:
    """Search with C4.5 in two processes."""
    from sfumato.learning.trained_scores import TreeScores

    columns, target, fold_of_row = data
    scores = TreeScores(columns, target, fold_of_row, n_workers=N_WORKERS)
    return scores, search(scores)


def sample_sets() -> list[list[int]]:
    """Spread sets of the sizes of the sample over all 47 columns."""
    return [[(start + 7 * step) % 47 for step in range(size)] for start, size in enumerate(SAMPLE_SIZES)]


def train_again(data: Any) -> Any:
    """Cross-validate scikit-learn's naive Bayes on a sample of sets, and take the CPU time of each."""
    from sklearn.model_selection import PredefinedSplit, cross_val_score
    from sklearn.naive_bayes import CategoricalNB

    X, target, fold_of_row = data
    found, seconds = [], []
    for chosen in sample_sets():
        start = time.process_time()
        model = CategoricalNB(min_categories=X[:, chosen].max(axis=0) + 1)
        found.append(cross_val_score(model, X[:, chosen], target, cv=PredefinedSplit(fold_of_row)).mean())
        seconds.append(time.process_time() - start)
    return found, seconds


def set_sizes(n_columns: int, found: Any) -> list[int]:
    """Columns in every set that a search scores, ranker first, whose sets the lists begin with."""
    sizes = [n_columns, *[n_columns - 1] * n_columns]
    kept: dict[str, int] = {}
    for step in found.steps:
        size = kept.setdefault(step.ranked_list, n_columns) - 1
        if size < n_columns - 1:
            sizes.append(size)
        if step.outcome == "accepted":
            kept[step.ranked_list] = size
    return sizes


def described(n_columns: int, found: Any) -> dict[str, float | int | str]:
    """Figures of a search."""
    return {"sets": len(set_sizes(n_columns, found)), "candidates": len(found.candidates)}


def assess_bayes(data: Any, result: Any) -> Outcome:
    """Return the accuracies of the sample; they must be scikit-learn's (whose prior of the classes has no +1)."""
    scores, found = result
    accuracies = [round(float(scores.scores(chosen).mean()), 3) for chosen in sample_sets()]
    return Outcome(accuracies, described(scores.n_columns, found))


def assess_trees(data: Any, result: Any) -> Outcome:
    """Describe the search; nothing else was asked the same."""
    scores, found = result
    return Outcome(None, described(scores.n_columns, found))


def assess_sample(data: Any, result: Any) -> Outcome:
    """Extrapolate to the sets of our search by a line through the seconds of the sample, by number of columns."""
    import numpy as np

    accuracies, seconds = result
    per_column, of_set = np.polyfit(SAMPLE_SIZES, seconds, 1)
    begun = time.process_time()
    scores, found = search_with_bayes(data)
    ours = time.process_time() - begun
    sizes = set_sizes(scores.n_columns, found)
    needed = float(per_column * sum(sizes) + of_set * len(sizes))
    figures: dict[str, float | int | str] = {
        "sets": len(SAMPLE_SIZES),
        "CPU s for all sets, extrapolated": needed,
        "× our CPU s, extrapolated": needed / ours,
    }
    return Outcome([round(float(accuracy), 3) for accuracy in accuracies], figures)


BENCHMARK = Benchmark(
    title="Ranker and both candidate lists in 10-fold cross-validation, C = SA. Naive Bayes on Diabetes 130 (101,766 "
    "rows, 47 columns, coded as categories before the clock starts): scikit-learn trains on a sample of sets only, so "
    "the ratio to it is extrapolated. C4.5 on every fourth of the complete rows of Adult (11,306 × 14); CPU seconds "
    "leave out workers",
    goal="naive Bayes at least 50 × faster than cross_val_score for every set; C4.5 under 30 s with two workers",
    needs=(DIABETES, *ADULT),
    contenders=(
        Contender("naive Bayes", search_with_bayes, load_diabetes, ("sfumato", "numpy"), 3, assess=assess_bayes),
        Contender(
            f"cross_val_score, {len(SAMPLE_SIZES)} sets",
            train_again,
            load_diabetes,
            ("scikit-learn",),
            repeats=1,
            assess=assess_sample,
        ),
        Contender(
            f"C4.5 on Adult, {N_WORKERS} workers",
            search_with_trees,
            load_adult,
            ("sfumato", "numpy"),
            repeats=1,
            assess=assess_trees,
        ),
    ),
)
