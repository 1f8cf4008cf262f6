"""Training of C4.5 trees: Adult with all columns, and generated rows of the same kind up to a million."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

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


def load_instances(folder: Path) -> Any:
    """Start Java in this process, and let Weka read the same rows from a file of its own format."""
    import jpype
    import weka

    X, y = load_adult(folder)
    file = folder / "adult.arff"
    lines = ["@relation adult"]
    for name, cells in [*X.items(), ("class", y)]:
        is_number = cells.dtype.kind in "if"
        values = ",".join(sorted(map(quoted, set(cells))))
        lines.append(f"@attribute c{name} " + ("numeric" if is_number else f"{{{values}}}"))
    lines += ["@data", *(",".join(map(quoted, row)) for row in zip(*(X[name] for name in X), y, strict=True))]
    file.write_text("\n".join(lines), encoding="ascii")
    options = ("-Xmx4g", "--add-opens=java.base/java.lang=ALL-UNNAMED")
    jpype.startJVM(*options, classpath=[str(Path(weka.__file__).parent / "lib" / "weka.jar")])
    instances = jpype.JClass("weka.core.Instances")(jpype.JClass("java.io.FileReader")(str(file)))
    instances.setClassIndex(instances.numAttributes() - 1)
    return instances


def quoted(value: Any) -> str:
    """Write a cell for Weka."""
    return f"'{value}'" if isinstance(value, str) else str(value)


def train_j48(is_pruned: bool, is_binary: bool, instances: Any) -> Any:
    """Train Weka's C4.5 on rows that it has read and coded already."""
    import jpype

    tree = jpype.JClass("weka.classifiers.trees.J48")()
    tree.setUnpruned(not is_pruned)
    tree.setBinarySplits(is_binary)
    tree.buildClassifier(instances)
    return tree


def assess_j48(is_asked: bool, instances: Any, tree: Any) -> Outcome:
    """Count leaves and nodes."""
    import jpype

    counts = [int(tree.measureNumLeaves()), int(tree.measureTreeSize())]
    version = str(jpype.JClass("weka.core.Version").VERSION)
    return Outcome(counts if is_asked else None, {"leaves": counts[0], "nodes": counts[1], "Weka": version})


def train(is_pruned: bool, is_binary: bool, rows: Any) -> Any:
    """Train on a DataFrame, coding included."""
    from sfumato.learning.c45.estimators import C45Classifier

    return C45Classifier(pruned=is_pruned, splits="binary" if is_binary else "multiway").fit(*rows)


def assess(is_asked: bool, rows: Any, classifier: Any) -> Outcome:
    """Count leaves and nodes; J48 must have as many."""
    counts = [int(classifier.get_n_leaves()), int(classifier.tree_.n_nodes)]
    return Outcome(counts if is_asked else None, {"leaves": counts[0], "nodes": counts[1]})


def train_binary_tree(rows: Any) -> Any:
    """Train scikit-learn's tree, which knows neither multiway splits nor gain ratios nor this kind of pruning."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0).fit(*rows)


def assess_binary_tree(rows: Any, classifier: Any) -> Outcome:
    """Count leaves and nodes."""
    return Outcome(None, {"leaves": int(classifier.get_n_leaves()), "nodes": int(classifier.tree_.node_count)})


def ours(name: str, is_pruned: bool, load: Any = load_adult, repeats: int = 5, *, is_binary: bool = False) -> Contender:
    """Make a contender; the pruned multiway tree on Adult is what the others are compared with."""
    judge, run = partial(assess, is_pruned and not is_binary), partial(train, is_pruned, is_binary)
    return Contender(name, run, load, ("sfumato", "numpy"), repeats=repeats, assess=judge)


def j48(name: str, is_pruned: bool, *, is_binary: bool = False) -> Contender:
    """Make a contender of Weka."""
    judge = partial(assess_j48, is_pruned and not is_binary)
    packages = ("python-weka-wrapper3", "jpype1")
    run = partial(train_j48, is_pruned, is_binary)
    return Contender(name, run, load_instances, packages, repeats=5, peer=True, assess=judge)


BENCHMARK = Benchmark(
    title="C4.5 on Adult (45,222 rows, 14 columns) and on generated rows of its kind. Weka's rows are read and coded "
    "before the clock starts, sfumato's are a DataFrame of texts and numbers; Java compiles during the first runs",
    goal="Adult at least 5 × faster than Weka's J48 and the same tree, a million rows unpruned under 30 s and 3 GB",
    needs=FILES,
    contenders=(
        ours("C45Classifier", True),
        j48("Weka J48", True),
        ours("C45Classifier, unpruned", False),
        j48("Weka J48, unpruned", False),
        ours("C45Classifier, binary splits", True, is_binary=True),
        j48("Weka J48, binary splits", True, is_binary=True),
        ours("C45Classifier, binary splits, unpruned", False, is_binary=True),
        Contender(
            "scikit-learn's binary tree, one-hot",
            train_binary_tree,
            load_coded,
            ("scikit-learn",),
            repeats=3,
            assess=assess_binary_tree,
        ),
        *(ours(f"{n_rows:,} rows, unpruned", False, partial(make_rows, n_rows), 1) for n_rows in SIZES),
    ),
)
