"""What other libraries learn from a drop-in release, a file of plain values, beside ranges through our encoder.

    python -m benchmarks.drop_in --write                # all: some ten minutes of one core; writes DROP_IN.md
    python -m benchmarks.drop_in --tables pima --k 5    # some, printed only

Protocol: stratified three folds, two seeds; Adult has 6,000 rows drawn with seed 0 and eight quasi-identifiers. A
release is made of the training rows of a fold by ``mondrian`` (score split) and written as CSV. Everything is tested on
untouched test rows. *ranges*: cells are ranges and sets, and ``GeneralizedEncoder`` turns them into training rows
(decision 0030), on which **the same learner** is trained as on the files. *values*: ``--cells values``. *draws*:
``--cells draws``, with any number of copies. *dealt again*: the same file, whose values the code on
docs/guide/drop-in-releases.md deals out four more times; rows weigh a fifth each. *mdav*: microaggregation. Files are
read by pandas or R, and nothing of sfumato is used from there on. Learners: logistic regression (scaled numbers, a
column for each category; beside midpoints of ranges), the same with splines of numbers (beside our pieces), boosted
trees of scikit-learn, XGBoost, and rpart of R. With more than two classes the area under the ROC curve is the mean of
each class against the rest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from benchmarks.contest import ROOT
from reproductions.public_data import load_adult, load_cmc, load_ilpd, load_pima
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release, values_as_cells
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.microaggregation.mdav import MDAV
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table

RESULTS = ROOT / "benchmarks" / "DROP_IN.md"
GUIDE = ROOT / "docs" / "guide" / "drop-in-releases.md"
ADULT_8 = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
N_ADULT, N_FOLDS, N_SEEDS, KS, N_DEALT = 6_000, 3, 2, (5, 20), 5
BAR = 0.01
LINEAR, SPLINES, BOOSTED, XGBOOST, RPART = (
    *("logistic regression", "logistic regression, splines", "boosted trees", "XGBoost", "rpart (R)"),
)
FORMS = ("values", "mdav", "draws", "dealt again")
RPART_CODE = """
arguments <- commandArgs(TRUE)
train <- read.csv(arguments[1], stringsAsFactors = TRUE)
test <- read.csv(arguments[2], stringsAsFactors = TRUE)
target <- arguments[3]
weights <- train$weight__
train$weight__ <- NULL
train[[target]] <- factor(train[[target]])
for (name in setdiff(names(train), target)) if (is.factor(train[[name]]))
  test[[name]] <- factor(as.character(test[[name]]), levels = levels(train[[name]]))
fitted <- rpart::rpart(as.formula(paste0("`", target, "` ~ .")), data = train, weights = weights,
                       control = rpart::rpart.control(cp = 0.002, minbucket = as.integer(arguments[5])))
write.csv(predict(fitted, test, type = "prob"), arguments[4], row.names = FALSE)
"""
LEAST_LEAF = 10


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


def _trees() -> dict[str, Any]:
    import xgboost

    return {
        BOOSTED: HistGradientBoostingClassifier(max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=0),
        XGBOOST: xgboost.XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.1, n_jobs=1),
    }


def _linear() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def _bent(numeric: Sequence[str]) -> Any:
    splines = SplineTransformer(n_knots=6, degree=2, knots="quantile")
    columns = make_column_transformer((splines, list(numeric)), remainder="passthrough")
    return make_pipeline(columns, StandardScaler(), LogisticRegression(max_iter=2000))


def _fitted(learner: Any, matrix: Any, target: np.ndarray, weights: np.ndarray) -> Any:
    last = f"{learner.steps[-1][0]}__sample_weight" if hasattr(learner, "steps") else "sample_weight"
    return learner.fit(matrix, target, **{last: weights})


def _by_rpart(train: pd.DataFrame, test: pd.DataFrame, target: str, n_copies: int, folder: Path) -> np.ndarray:
    """Train R's rpart on a frame whose column ``weight__`` weighs its rows."""
    paths = [folder / name for name in ("rpart.R", "rpart-train.csv", "rpart-test.csv", "scores.csv")]
    script, of_train, of_test, scores = paths
    script.write_text(RPART_CODE, encoding="utf-8")
    train.to_csv(of_train, index=False)
    test.to_csv(of_test, index=False)
    command = ["Rscript", "--vanilla", *map(str, (script, of_train, of_test)), target, str(scores)]
    subprocess.run([*command, str(LEAST_LEAF * n_copies)], check=True, capture_output=True)
    return pd.read_csv(scores).to_numpy()


def _on_ranges(table: Table, made: Release, test: np.ndarray, target: str, folder: Path) -> dict[str, float]:
    """Train every learner on a release of ranges as our encoder reads it, and test on original rows."""
    cells, columns = cells_of_release(made.manifest.to_dict(), made.table)
    del columns[target]
    y, truth = made.table[target].codes, table[target].codes[test]
    new = values_as_cells(table.take(test).keep(list(columns)), list(columns))
    found = {}
    for form, name in (("pieces", SPLINES), ("midpoint", LINEAR)):
        encoder = GeneralizedEncoder(ranges=form).fit(cells, columns)
        matrix, classes, given = encoder.training_rows(cells, y)
        weights = np.ones(len(classes)) if given is None else given
        beside = encoder.transform(new)
        fitted = _fitted(_linear(), np.nan_to_num(matrix), classes, weights)
        found[name] = _auc(truth, fitted.predict_proba(np.nan_to_num(beside)))
    for name, learner in _trees().items():
        found[name] = _auc(truth, _fitted(learner, matrix, classes, weights).predict_proba(beside))
    names = [f"x{i}" for i in range(matrix.shape[1])]
    train = pd.DataFrame(matrix, columns=names).assign(target__=classes, weight__=weights)
    shown = pd.DataFrame(beside, columns=names).assign(target__=truth)
    n_copies = max(round(len(classes) / max(len(y), 1)), 1)
    found[RPART] = _auc(truth, _by_rpart(train, shown, "target__", n_copies, folder))
    return found


def _on_file(
    train: pd.DataFrame, n_copies: int, test: pd.DataFrame, target: str, numeric: Sequence[str], folder: Path
) -> dict[str, float]:
    """Train as anybody would who has a file of plain values and no sfumato."""
    classes = sorted(train[target].astype(str).unique())
    y, truth = (frame[target].astype(str).map(classes.index).to_numpy() for frame in (train, test))
    both = pd.concat([train, test]).drop(columns=target)
    wide = pd.get_dummies(both, columns=[c for c in both.columns if c not in numeric], dtype=float).astype(float)
    wide = wide.fillna(wide.median())
    matrix, beside = wide.iloc[: len(train)], wide.iloc[len(train) :]
    weights = np.full(len(train), 1 / n_copies)
    learners = {LINEAR: _linear(), SPLINES: _bent(numeric), **_trees()}
    found = {
        name: _auc(truth, _fitted(learner, matrix, y, weights).predict_proba(beside))
        for name, learner in learners.items()
    }
    scores = _by_rpart(train.assign(weight__=weights), test, target, n_copies, folder)
    return {**found, RPART: _auc(truth, scores)}


def _dealt_again(table: pd.DataFrame, quasi: Sequence[str]) -> pd.DataFrame:
    """Deal the values of a file out again, by the code on the guide's page."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    dealt: pd.DataFrame = names["dealt_again"](table, list(quasi), times=N_DEALT)
    return dealt


def _through_csv(rows: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Give rows the types that a release has once it is read."""
    rows.to_csv(folder / "plain.csv", index=False)
    return pd.read_csv(folder / "plain.csv")


def measure(name: str, k: int, seed: int, folder: Path) -> dict[tuple[str, str], list[float]]:
    """Measure one table at one k, over the folds of one seed: scores by form and learner, and shares of copies."""
    table = TABLES[name]()
    target, quasi = str(table.schema.target), table.schema.names(Role.QUASI_IDENTIFIER)
    y, frame = table[target].codes, table.to_arrow().to_pandas()
    numeric = [c.name for c in table.schema if c.kind is Kind.NUMERIC and c.name != target]
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    mondrian = Mondrian(k=k, split="score")
    for train, test in folds.split(np.zeros(len(y)), y):
        own, shown = table.take(train), _through_csv(frame.iloc[test], folder)
        made = {"original": _through_csv(frame.iloc[train], folder)}
        for form, mechanism in (
            ("values", mondrian.with_cells("values")),
            ("draws", mondrian.with_cells("draws", 1.0)),
            ("mdav", MDAV(k=k)),
        ):
            done = publish(propose_release(own, mechanism), folder / f"{form}.csv", original=own, force=True)
            found[form, "copies"].append(done.release.manifest.evidence["risk"]["copied_row_fraction"])
            made[form] = pd.read_csv(done.table_path)
        made["dealt again"] = _dealt_again(made["draws"], quasi)
        for learner, score in _on_ranges(table, propose_release(own, mondrian), test, target, folder).items():
            found["ranges", learner].append(score)
        for form, rows in made.items():
            n_copies = N_DEALT if form == "dealt again" else 1
            file = rows.drop(columns="bucket", errors="ignore")
            for learner, score in _on_file(file, n_copies, shown, target, numeric, folder).items():
                found[form, learner].append(score)
    return found


def main() -> None:
    """Measure, print, and write the table of all where that was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--k", nargs="+", type=int, default=list(KS))
    parser.add_argument("--write", action="store_true", help="write DROP_IN.md")
    given = parser.parse_args()
    lines = [f"| table | k | learner | original | ranges, our encoder | {' | '.join(FORMS)} |", "| --- " * 9 + "|"]
    copies = []
    n_within, n_compared, behind = dict.fromkeys(FORMS, 0), 0, defaultdict(list)
    for name in given.tables:
        for k in given.k:
            together: dict[tuple[str, str], list[float]] = defaultdict(list)
            for seed in range(N_SEEDS):
                with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of learners that do not converge on some fold
                    for key, scores in measure(name, k, seed, Path(folder)).items():
                        together[key] += scores
            mean = {key: float(np.mean(scores)) for key, scores in together.items()}
            shares = [f"{form} {mean[form, 'copies']:.0%}" for form in ("values", "mdav", "draws")]
            copies.append(f"- {name}, k = {k}: {', '.join(shares)}")
            for learner in (LINEAR, SPLINES, BOOSTED, XGBOOST, RPART):
                bar = mean["ranges", learner]
                cells, n_compared = [f"{mean['original', learner]:.3f}", f"{bar:.3f}"], n_compared + 1
                for form in FORMS:
                    is_within = mean[form, learner] >= bar - BAR
                    n_within[form] += is_within
                    behind[form].append(bar - mean[form, learner])
                    cells.append(f"**{mean[form, learner]:.3f}**" if is_within else f"{mean[form, learner]:.3f}")
                lines.append(f"| {name} | {k} | {learner} | " + " | ".join(cells) + " |")
                print(lines[-1], flush=True)
    lines += ["", f"Bold: within {BAR} of the same learner on ranges, or ahead of it. Of {n_compared} cases:", ""]
    lines += [
        f"- {form}: {n_within[form]} within; on average {np.mean(behind[form]):+.4f} behind, at most "
        f"{np.max(behind[form]):+.4f}"
        for form in FORMS
    ]
    lines += [
        "",
        "Released rows that equal, on all quasi-identifiers, an original row that is the only one of its kind:",
    ]
    lines += ["", *copies]
    print("\n".join(lines[-(len(copies) + len(FORMS) + 6) :]))
    if given.write:
        about = (__doc__ or "").partition("Protocol: ")[2].replace("``", "`")
        title = (
            "# Drop-in releases: what other libraries keep\n\nMade by `python -m benchmarks.drop_in --write`. AUC.\n"
        )
        RESULTS.write_text("\n".join([title, about, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
