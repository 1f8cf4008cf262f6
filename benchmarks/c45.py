"""Training of C4.5 trees: Adult with all columns, and generated rows of the same kind up to a million."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender

SAMPLING_WEIGHT, TARGET = 2, 14
FILES = (DATA / "adult" / "adult.data", DATA / "adult" / "adult.test")
SIZES = (10_000, 100_000, 1_000_000)


def load_adult(folder: Path) -> Any:
    """Read the 45,222 complete rows of both files."""
    import pandas as pd

    parts = [
        pd.read_csv(file, header=None, skiprows=skip, skipinitialspace=True, na_values="?")
        for file, skip in zip(FILES, (0, 1), strict=True)
    ]
    rows = pd.concat(parts, ignore_index=True).dropna()
    return rows.drop(columns=TARGET).rename(columns=str), rows[TARGET].str.rstrip(".")


def make_rows(n_rows: int, folder: Path) -> Any:
    """Draw Adult's rows with a fifth of the cells taken from other rows, and the sampling weight blurred."""
    import numpy as np

    X, y = load_adult(folder)
    rng = np.random.default_rng(20)
    base = rng.integers(len(X), size=n_rows)
    drawn = {}
    for name in X:
        elsewhere = np.where(rng.random(n_rows) < 0.2, rng.integers(len(X), size=n_rows), base)
        drawn[name] = X[name].to_numpy()[elsewhere]
    blurred = drawn[str(SAMPLING_WEIGHT)] * np.exp(rng.normal(0, 0.05, n_rows))
    drawn[str(SAMPLING_WEIGHT)] = np.round(blurred)
    return type(X)(drawn), y.to_numpy()[base]


def load_coded(folder: Path) -> Any:
    """Read Adult with a column for each category."""
    import pandas as pd

    X, y = load_adult(folder)
    return pd.get_dummies(X), y


def train(pruned: bool, rows: Any) -> Any:
    """Train on a DataFrame, coding included; the answer says that the tree explains the training rows."""
    from sfumato.learning.c45 import C45Classifier
    from sfumato.learning.criteria import Entropy

    tree = C45Classifier(pruned=pruned).fit(*rows).tree_
    errors = Entropy(tree.statistics.shape[1]).error(tree.statistics[tree.attribute == -1])
    return bool(errors.sum() < 0.2 * tree.weights[0])


def train_binary_tree(rows: Any) -> Any:
    """Train scikit-learn's tree, which knows neither multiway splits nor this kind of pruning."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0).fit(*rows)
    return bool(tree.score(*rows) > 0.8)


BENCHMARK = Benchmark(
    title="C4.5 on Adult (45,222 rows, 14 columns) and on generated rows of its kind",
    goal="Adult at least 5 × faster than Weka's J48 (measured elsewhere), a million rows unpruned under 30 s and 3 GB",
    needs=FILES,
    contenders=(
        Contender("C45Classifier", partial(train, True), load_adult, ("sfumato", "numpy")),
        Contender("C45Classifier, unpruned", partial(train, False), load_adult, ("sfumato",)),
        Contender("scikit-learn's binary tree, one-hot", train_binary_tree, load_coded, ("scikit-learn",), repeats=3),
        *(
            Contender(f"{n_rows:,} rows, unpruned", partial(train, False), partial(make_rows, n_rows), repeats=1)
            for n_rows in SIZES
        ),
    ),
)
