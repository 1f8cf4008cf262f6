"""What other libraries learn from a drop-in release, a file of plain values, beside ranges through our encoder.

    python -m benchmarks.drop_in                        # all: a few minutes of one core; writes DROP_IN.md
    python -m benchmarks.drop_in --tables pima --k 5    # some, printed only

Protocol: stratified three folds, one seed; Adult has 6,000 rows drawn with seed 0 and eight quasi-identifiers. A
release is made of the training rows of a fold and written as CSV. Everything is tested on untouched test rows.
*ranges*: the release has ranges and sets, and ``GeneralizedEncoder`` turns them into training rows (decision 0030).
*values*: the same mechanism with ``cells="values"``; pandas reads the file, and nothing of sfumato is used from there
on. *mdav*: the same with MDAV. *drawn*: no feature of sfumato, measured to decide whether it should be one (decision
0065): each cell is drawn from its class's own values of the column, the classes those of *values*. Learners: logistic
regression and boosted trees of scikit-learn, XGBoost where it is installed, rpart of R where Rscript is. XGBoost and
rpart get no ranges: their bar is boosted trees or logistic regression on ranges, whichever is better, and their own
result on the original is given beside it. With more than two classes the area under the ROC curve is the mean of each
class against the rest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.contest import ROOT
from sfumato.datasets.public import load_adult, load_cmc, load_ilpd, load_pima
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release, values_as_cells
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.microaggregation.mdav import MDAV
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.typical import in_values
from sfumato.publishing.publish import propose_release, publish
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table

RESULTS = ROOT / "benchmarks" / "DROP_IN.md"
ADULT_8 = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
N_ADULT, N_FOLDS, N_SEEDS, KS = 6_000, 3, 1, (5, 20)
BAR = 0.01
RPART = """
arguments <- commandArgs(TRUE)
train <- read.csv(arguments[1], stringsAsFactors = TRUE)
test <- read.csv(arguments[2], stringsAsFactors = TRUE)
target <- arguments[3]
train[[target]] <- factor(train[[target]])
for (name in setdiff(names(train), target)) if (is.factor(train[[name]]))
  test[[name]] <- factor(as.character(test[[name]]), levels = levels(train[[name]]))
fitted <- rpart::rpart(as.formula(paste0("`", target, "` ~ .")), data = train,
                       control = rpart::rpart.control(cp = 0.002, minbucket = 10))
write.csv(predict(fitted, test, type = "prob"), arguments[4], row.names = FALSE)
"""


def _all_quasi(table: Table) -> Table:
    return table.with_schema({c.name: Role.QUASI_IDENTIFIER for c in table.schema if c.role is not Role.TARGET})


def _adult() -> Table:
    table = load_adult("train", complete=True).keep([*ADULT_8, "salary"])
    rows = np.random.default_rng(0).permutation(table.n_rows)[:N_ADULT]
    return _all_quasi(table.take(np.sort(rows)))


TABLES: Mapping[str, Callable[[], Table]] = {
    "adult": _adult,
    "cmc": lambda: _all_quasi(load_cmc()),
    "ilpd": lambda: _all_quasi(load_ilpd(complete=True)),
    "pima": lambda: _all_quasi(load_pima()),
}


def _auc(truth: Sequence[Any], scores: np.ndarray) -> float:
    if scores.shape[1] == 2:
        return float(roc_auc_score(truth, scores[:, 1]))
    return float(np.mean([roc_auc_score(np.asarray(truth) == c, scores[:, c]) for c in range(scores.shape[1])]))


def _own_learners(n_rows: int) -> dict[str, Any]:
    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "boosted trees": HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=0
        ),
    }


def _on_ranges(table: Table, made: Release, test: np.ndarray, target: str) -> dict[str, float]:
    """Train on a release of ranges as our encoder reads it, and test on original rows."""
    cells, columns = cells_of_release(made.manifest.to_dict(), made.table)
    del columns[target]
    encoder = GeneralizedEncoder().fit(cells, columns)
    y = made.table[target].codes
    rows = encoder.training_rows(cells, y)
    matrix, classes, weights = rows
    new = values_as_cells(table.take(test).keep(list(columns)), list(columns))
    beside = encoder.transform(new)
    truth = table[target].codes[test]
    found = {}
    for name, learner in _own_learners(len(classes)).items():
        if name == "logistic regression":
            pipe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            pipe.fit(np.nan_to_num(matrix), classes, logisticregression__sample_weight=weights)
            found[name] = _auc(truth, pipe.predict_proba(np.nan_to_num(beside)))
        else:
            learner.fit(matrix, classes, sample_weight=weights)
            found[name] = _auc(truth, learner.predict_proba(beside))
    return found


def _on_file(path: Path, test: pd.DataFrame, target: str, numeric: Sequence[str], folder: Path) -> dict[str, float]:
    """Train on a file as anybody would who has pandas and no sfumato."""
    test.to_csv(shown := folder / "test.csv", index=False)
    train, test = pd.read_csv(path), pd.read_csv(shown)
    classes = sorted(train[target].astype(str).unique())
    y, truth = (frame[target].astype(str).map(classes.index).to_numpy() for frame in (train, test))
    both = pd.concat([train, test]).drop(columns=target)
    wide = pd.get_dummies(both, columns=[c for c in both.columns if c not in numeric], dtype=float).astype(float)
    wide = wide.fillna(wide.median())
    matrix, beside = wide.to_numpy()[: len(train)], wide.to_numpy()[len(train) :]
    learners = _own_learners(len(y))
    if find_spec("xgboost"):
        import xgboost

        learners["XGBoost"] = xgboost.XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1)
    found = {name: _auc(truth, one.fit(matrix, y).predict_proba(beside)) for name, one in learners.items()}
    if shutil.which("Rscript"):
        script, scores = folder / "rpart.R", folder / "scores.csv"
        script.write_text(RPART, encoding="utf-8")
        command = ["Rscript", "--vanilla", str(script), str(path), str(shown), target, str(scores)]
        subprocess.run(command, check=True, capture_output=True)
        found["rpart (R)"] = _auc(truth, pd.read_csv(scores).to_numpy())
    return found


def _drawn(ranges: pd.DataFrame, original: pd.DataFrame, quasi: Sequence[str], seed: int) -> pd.DataFrame:
    """Draw each cell from its class's own values, columns independently of each other."""
    rng = np.random.default_rng(seed)
    made, classes = original.copy(), ranges.groupby(list(quasi), dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    starts, of_row = np.repeat(np.cumsum(sizes) - sizes, sizes), np.repeat(sizes, sizes)
    for name in quasi:
        drawn = np.empty(len(order), dtype=np.intp)
        drawn[order] = order[starts + rng.integers(0, of_row)]
        made[name] = original[name].to_numpy()[drawn]
    return made


def measure(name: str, k: int, seed: int, folder: Path) -> dict[tuple[str, str], list[float]]:
    """Measure one table at one k, over the folds of one seed: scores by form and learner."""
    table = TABLES[name]()
    target = str(table.schema.target)
    quasi = table.schema.names(Role.QUASI_IDENTIFIER)
    numeric = [c.name for c in table.schema if c.kind is Kind.NUMERIC and c.name != target]
    y = table[target].codes
    frame = table.to_arrow().to_pandas()
    for column in numeric:
        frame[column] = pd.to_numeric(frame[column])
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(np.zeros(len(y)), y):
        shown, own = frame.iloc[test], table.take(train)
        split = propose_release(own, Mondrian(k=k, split="score"))
        made: dict[str, Path] = {}
        for form, release in (("values", in_values(own, split)), ("mdav", propose_release(own, MDAV(k=k)))):
            made[form] = folder / f"{form}.csv"
            publish(release, made[form], original=own, force=True)
        ranges = split.table.to_arrow().to_pandas()
        for form, rows in (
            ("original", frame.iloc[train]),
            ("drawn", _drawn(ranges, frame.iloc[train].reset_index(drop=True), quasi, seed)),
        ):
            made[form] = folder / f"{form}.csv"
            rows.to_csv(made[form], index=False)
        mine, theirs = (pd.read_csv(made[form])[list(quasi)].astype(str) for form in ("drawn", "original"))
        known = set(map(tuple, theirs.to_numpy()))
        found["drawn", "exact copies"].append(float(np.mean([tuple(row) in known for row in mine.to_numpy()])))
        for learner, score in _on_ranges(table, split, test, target).items():
            found["ranges", learner].append(score)
        for form, path in made.items():
            for learner, score in _on_file(path, shown, target, numeric, folder).items():
                found[form, learner].append(score)
    return found


def main() -> None:
    """Measure, print, and write the table of all where all were measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--write", action="store_true", help="write DROP_IN.md")
    given = parser.parse_args()
    lines = ["| table | k | learner | original | ranges, our encoder | values | mdav | drawn |", "| --- " * 8 + "|"]
    copies = []
    n_within = n_compared = 0
    for name in given.tables:
        for k in given.k:
            together: dict[tuple[str, str], list[float]] = defaultdict(list)
            for seed in range(N_SEEDS):
                with tempfile.TemporaryDirectory() as folder:
                    for key, scores in measure(name, k, seed, Path(folder)).items():
                        together[key] += scores
            mean = {key: float(np.mean(scores)) for key, scores in together.items()}
            best = max(score for (form, _), score in mean.items() if form == "ranges")
            copies.append(f"{name} k = {k}: {mean['drawn', 'exact copies']:.0%}")
            for learner in dict.fromkeys(own for form, own in mean if form == "values"):
                bar = mean.get(("ranges", learner), best)
                is_within = mean["values", learner] >= bar - BAR
                n_compared, n_within = n_compared + 1, n_within + is_within
                shown = [mean["original", learner], bar, mean["values", learner], mean["mdav", learner]]
                cells = [f"{score:.3f}" for score in (*shown, mean["drawn", learner])]
                cells[1] += "" if ("ranges", learner) in mean else " (best of ours)"
                cells[2] = f"**{cells[2]}**" if is_within else cells[2]
                lines.append(f"| {name} | {k} | {learner} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    lines += ["", f"Values within {BAR} of ranges (bold): {n_within} of {n_compared}."]
    lines += ["", "Drawn rows that equal an original row on all quasi-identifiers: " + "; ".join(copies) + "."]
    print("\n".join(lines[-3:]))
    if given.write:
        about = (__doc__ or "").partition("Protocol: ")[2]
        title = (
            "# Drop-in releases: what other libraries keep\n\nMade by `python -m benchmarks.drop_in --write`. AUC.\n"
        )
        RESULTS.write_text("\n".join([title, about, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
