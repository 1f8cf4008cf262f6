"""Utility of a release for classification: cross-validated, honestly or as the papers did, for several classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_curve
from sklearn.pipeline import Pipeline
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.classifiers import CLASSIFIERS, DEFAULT_CLASSIFIERS, Encoded, checked_classifiers
from sfumato.evaluation.encoding import GeneralizedEncoder, Matrix, TrainingRows
from sfumato.evaluation.treatment import (
    Codes,
    RecodingMechanism,
    Rows,
    Treated,
    class_column,
    stratified_folds,
    treated,
)
from sfumato.figures import SCORES, HeldOutFold
from sfumato.learning.fold_scores import compare_folds
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Mechanism
from sfumato.progress import Progress
from sfumato.schema import Column
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import person_codes

# What a classifier says about held-out rows, and how right it is: by fold, by class, and over all thresholds.


Numbers = NDArray[np.float64]
CONFIDENCE = 0.95
MOST_POINTS = 100


def held_out_fold(
    classifier: Any, train: TrainingRows | tuple[Matrix, Codes], test: tuple[Matrix, Codes], n_classes: int
) -> HeldOutFold:
    """Train a classifier on encoded rows with their classes (and weights) and ask it about others.

    Where all training rows are of one class, that class is predicted. Evidence is a probability or, where there is
    none, the value of the decision function; a class that the training rows do not have has less than any other.
    """
    rows, target = test
    has_classes = len(np.unique(train[1])) > 1
    model = classifier if has_classes else DummyClassifier(strategy="prior")
    with warnings.catch_warnings(), _threads().limit(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # sized for speed
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # classes, even if many
        _train(model, *train)
        evidence = np.full((len(rows), n_classes), -np.inf)
        evidence[:, model.classes_] = _evidence(model, rows)
        return HeldOutFold(target, np.asarray(model.predict(rows), dtype=np.int32), evidence)


def _train(model: Any, numbers: Matrix, target: Codes, weights: Numbers | None = None) -> None:
    """Train a classifier, of which only the last step of several takes weights."""
    step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    model.fit(numbers, target, **({} if weights is None else {f"{step}sample_weight": weights}))


@cache
def _threads() -> Any:
    """Thread pools of this process; more than one thread is slow on a busy machine, and may round otherwise."""
    return ThreadpoolController()


def _evidence(model: Any, test: Matrix) -> Numbers:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(test), dtype=np.float64)
    found = np.asarray(model.decision_function(test), dtype=np.float64)
    return found if found.ndim == 2 else np.column_stack([-found, found])


@dataclass(frozen=True)
class Estimate:
    """Mean over folds and its 95 % interval, cut at 0 and 1; ``folds`` holds one number a fold, or None."""

    mean: float
    low: float
    high: float
    folds: tuple[float | None, ...]

    def to_dict(self) -> dict[str, float]:
        """Plain data."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def estimate(of_folds: list[float]) -> Estimate | None:
    """Average over the folds in which there is a number; ``None`` if there is none.

    The interval is that of the corrected resampled t-test, see :func:`sfumato.learning.fold_scores.compare_folds`:
    training parts overlap, so the folds vary less than independent samples would. One fold alone tells nothing of the
    spread, and its interval is from 0 to 1.

    Examples
    --------
    >>> found = estimate([0.8, 0.7, 0.9, 0.8])
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.8, 0.602, 0.998)
    """
    known = np.array([number for number in of_folds if not np.isnan(number)])
    if not len(known):
        return None
    mean, low, high = float(known.mean()), 0.0, 1.0
    if len(known) > 1:
        compared = compare_folds(known, np.zeros(len(known)), test_train_ratio=1 / (len(of_folds) - 1))
        margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(known) - 1)) * compared.standard_error
        low, high = max(mean - margin, 0.0), min(mean + margin, 1.0)
    return Estimate(mean, low, high, tuple(None if np.isnan(number) else number for number in of_folds))


@dataclass(frozen=True)
class RocCurve:
    """Points of the ROC curve of all held-out rows together, from (0, 0) to (1, 1)."""

    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]

    def to_dict(self) -> dict[str, list[float]]:
        """Plain data."""
        return {"false_positive": list(self.false_positive), "true_positive": list(self.true_positive)}


def pooled_curve(folds: list[HeldOutFold], positive: int) -> RocCurve | None:
    """Draw the curve of one class against the other, at most 100 of its points; ``None`` if there is but one.

    Points are taken at equal steps along the curve. Evidence of all folds is put together as if of one classifier.
    """
    is_positive = np.concatenate([fold.target == positive for fold in folds])
    if is_positive.all() or not is_positive.any():
        return None
    evidence = np.concatenate([fold.evidence[:, positive] for fold in folds])
    lowest = evidence[np.isfinite(evidence)].min(initial=0.0) - 1
    false_positive, true_positive, _ = roc_curve(is_positive, np.where(np.isfinite(evidence), evidence, lowest))
    along = (false_positive + true_positive) / 2
    taken = np.unique(np.searchsorted(along, np.linspace(0, 1, MOST_POINTS)).clip(max=len(along) - 1))
    return RocCurve(tuple(false_positive[taken].tolist()), tuple(true_positive[taken].tolist()))


MOST_VALUES = 32
"""Columns of shares that a column without order gets, see :class:`sfumato.evaluation.encoding.GeneralizedEncoder`."""

FittedOn = Literal["training fold", "all rows"]
AnyMechanism = Mechanism | RecodingMechanism | None
Folds = list[tuple[Rows, Rows]]
MOST_SEED = 2**32
LARGEST = 1e30
"""Larger numbers are taken as this one: squares of some classifiers and single precision of others end there."""


@dataclass(frozen=True)
class ClassRecall:
    """Share of a class predicted right; classes are numbered from 1, the most frequent first."""

    number: int
    share: float
    recall: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        found = {"mean": None, "low": None, "high": None} if self.recall is None else self.recall.to_dict()
        return {"class": self.number, "share": self.share, **found}


@dataclass(frozen=True)
class ClassifierScores:
    """How one classifier did: the declared scores by name, where ``None`` says that no fold has one.

    ``auc`` is ``None`` where no fold holds two classes, ``roc`` for more than two.
    """

    scores: Mapping[str, Estimate | None]
    recall: tuple[ClassRecall, ...]
    roc: RocCurve | None = None

    @property
    def accuracy(self) -> Estimate:
        """Share of rows predicted right."""
        return _certain(self.scores["accuracy"])

    @property
    def balanced_accuracy(self) -> Estimate:
        """Mean recall of the classes."""
        return _certain(self.scores["balanced_accuracy"])

    @property
    def auc(self) -> Estimate | None:
        """Area under the ROC curve."""
        return self.scores["auc"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **{name: found.to_dict() if found else None for name, found in self.scores.items()},
            "recall": [recall.to_dict() for recall in self.recall],
            "roc": self.roc.to_dict() if self.roc else None,
        }


@dataclass(frozen=True)
class Utility:
    """Utility of a table for classification, before or after a mechanism.

    Parameters
    ----------
    fitted_on : {"training fold", "all rows"}
        What the mechanism saw. On all rows it saw those that are tested on, and the scores are too good.
    n_folds, seed : int
    n_rows : int
        Rows that were used.
    n_rows_of_table : int
        Rows of the table, more where a sample was drawn.
    guessing : mapping of str to float
        Scores of always naming the most frequent class.
    classifiers : mapping of str to ClassifierScores
    """

    fitted_on: FittedOn
    n_folds: int
    seed: int
    n_rows: int
    n_rows_of_table: int
    guessing: Mapping[str, float]
    classifiers: Mapping[str, ClassifierScores]

    @property
    def majority_accuracy(self) -> float:
        """Accuracy of always naming the most frequent class."""
        return self.guessing["accuracy"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; holds no label of a class."""
        return {
            "fitted_on": self.fitted_on,
            "n_folds": self.n_folds,
            "seed": self.seed,
            "n_rows": self.n_rows,
            "n_rows_of_table": self.n_rows_of_table,
            "majority_accuracy": self.majority_accuracy,
            "guessing": dict(self.guessing),
            "classifiers": {name: scores.to_dict() for name, scores in self.classifiers.items()},
        }


def evaluate(
    table: AnyTable,
    mechanism: AnyMechanism = None,
    *,
    classifiers: Sequence[str] = DEFAULT_CLASSIFIERS,
    n_folds: int = 5,
    seed: int = 0,
    fitted_on: FittedOn = "training fold",
    max_rows: int | None = None,
    progress: Progress | None = None,
) -> Utility:
    """Cross-validate classifiers on a table as a mechanism releases it.

    Folds depend on the table, ``n_folds``, ``seed`` and ``max_rows`` only, so that results before and after a mechanism
    are about the same rows.

    Parameters
    ----------
    mechanism : Mechanism or None
        ``None`` leaves the rows as they are.
    classifiers : sequence of str
        Names in :data:`sfumato.evaluation.classifiers.CLASSIFIERS`.
    n_folds : int, default=5
        At most the rows of the most frequent class. A class with fewer rows than folds is in some of them only.
    seed : int
        Of folds, sample, draws and classifiers.
    fitted_on : {"training fold", "all rows"}
        In every fold the mechanism is fitted on the training part and the test part is brought into the same form (see
        :func:`sfumato.evaluation.treatment.treated`), with its true classes. Or, as the papers did, it is fitted once
        on all rows and the released rows are divided into folds.
    max_rows : int or None
        Draw so many rows at random where there are more. The same k is harder to reach on fewer rows.

    Raises
    ------
    SchemaError
        If there is no target, or it has one class, or is a quantity. Errors of the mechanism pass through.

    Notes
    -----
    The result is the same for the same arguments, except of mechanisms whose noise takes no seed. Cells are
    encoded as :class:`sfumato.evaluation.encoding.GeneralizedEncoder` says, the same for every mechanism; of a column
    without order the 32 most frequent values are learned from. Classifiers are trained on the means of cells and on
    values drawn from them, and asked about means.

    Intervals are those of Nadeau and Bengio's corrected resampled t-test over the folds.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=300).keep(["age", "sex", "diabetes", "readmitted"])
    >>> found = evaluate(table, classifiers=["naive-bayes"], n_folds=3)
    >>> found.classifiers["naive-bayes"].auc.low < found.classifiers["naive-bayes"].auc.mean
    True
    """
    names = checked_classifiers(classifiers)
    _check(seed, fitted_on, max_rows)
    used = _sampled(table, max_rows, seed)
    target = class_column(used)
    if target.n_distinct < 2:
        problem = "the target has one class only, so there is nothing to predict"
        raise SchemaError(problem, hint="choose another target column, or more rows")
    folds = stratified_folds(target.codes, n_folds, seed, person_codes(used))
    parts = _honest_folds if fitted_on == "training fold" else _folds_of_release
    found: dict[str, list[HeldOutFold]] = {name: [] for name in names}
    for number, part in enumerate(parts(used, mechanism, target, folds, seed)):
        for place, name in enumerate(names):
            if progress:
                progress(number * len(names) + place, len(folds) * len(names), name)
            found[name].append(part.held_out(name, seed, target.n_distinct))
    return Utility(
        fitted_on,
        len(folds),
        seed,
        used.n_rows,
        table.n_rows,
        _guessing(target),
        {name: _scores(of_folds, target) for name, of_folds in found.items()},
    )


def _check(seed: object, fitted_on: object, max_rows: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_SEED:
        raise InvalidParameterError("seed", f"got {seed!r}", allowed="a whole number from 0 and below 2^32")
    if fitted_on not in get_args(FittedOn):
        allowed = " or ".join(f"'{choice}'" for choice in get_args(FittedOn))
        raise InvalidParameterError("fitted_on", f"got {fitted_on!r}", allowed=allowed)
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 2):
        raise InvalidParameterError("max_rows", f"got {max_rows!r}", allowed="a whole number of at least 2, or None")


def _sampled(table: AnyTable, max_rows: int | None, seed: int) -> AnyTable:
    if max_rows is None or table.n_rows <= max_rows:
        return table
    rows = np.random.default_rng(seed).choice(table.n_rows, max_rows, replace=False)
    return table.take(np.sort(rows))


@dataclass(frozen=True, eq=False)
class _Part:
    train: TrainingRows
    test: Matrix
    test_target: Codes
    encoded: Encoded

    def held_out(self, name: str, seed: int, n_classes: int) -> HeldOutFold:
        classifier = CLASSIFIERS[name].build(seed, self.encoded)
        return held_out_fold(classifier, self.train, (self.test, self.test_target), n_classes)


def _honest_folds(
    table: AnyTable, mechanism: AnyMechanism, target: CodedColumn, folds: Folds, seed: int
) -> Iterator[_Part]:
    for train_rows, test_rows in folds:
        part = treated(mechanism, table.take(train_rows), table.take(test_rows))
        train = part.train, _class_codes(part, target)
        yield _encoded(part.columns, train, (part.test, target.codes[test_rows]), seed)


def _folds_of_release(
    table: AnyTable, mechanism: AnyMechanism, target: CodedColumn, folds: Folds, seed: int
) -> Iterator[_Part]:
    part = treated(mechanism, table, table)
    released = _class_codes(part, target)
    for train_rows, test_rows in _folds_of_released_rows(part, released, folds, seed):
        train, test = ((part.train.take(rows), released[rows]) for rows in (train_rows, test_rows))
        yield _encoded(part.columns, train, test, seed)


def _folds_of_released_rows(part: Treated, released: Codes, folds: Folds, seed: int) -> Folds:
    """Folds of the rows that released ones stand for or, if they stand for none, folds of their own."""
    if part.rows is None:
        return stratified_folds(released, len(folds), seed)
    is_test = [np.isin(part.rows, test_rows) for _, test_rows in folds]
    return [(np.flatnonzero(~is_one), np.flatnonzero(is_one)) for is_one in is_test if is_one.any()]


def _encoded(columns: Mapping[str, Column], train: tuple[Table, Codes], test: tuple[Table, Codes], seed: int) -> _Part:
    encoder = GeneralizedEncoder(max_values=MOST_VALUES).fit(train[0], columns)
    own = encoder.training_rows(*train, seed)
    own = own._replace(numbers=own.numbers.clip(-LARGEST, LARGEST))
    new = encoder.transform(test[0]).clip(-LARGEST, LARGEST)
    return _Part(own, new, test[1], Encoded(encoder.is_share_, encoder.is_piece_))


def _class_codes(part: Treated, target: CodedColumn) -> Codes:
    """Classes of released rows, numbered as those of the whole table."""
    if part.target is None:
        problem = "the mechanism does not release the target, so nothing can be learned from the release"
        raise SchemaError(problem)
    number_of = {value: number for number, value in enumerate(target.values.to_pylist())}
    numbers = np.array([number_of[value] for value in part.target.values.to_pylist()], dtype=np.int32)
    return numbers[part.target.codes]


def _scores(folds: list[HeldOutFold], target: CodedColumn) -> ClassifierScores:
    by_frequency = np.argsort(-target.counts, kind="stable").tolist()
    recalls = np.array([fold.recalls() for fold in folds])
    shares = target.counts / target.counts.sum()
    scores = {score.name: estimate([score.value(fold) for fold in folds]) for score in SCORES}
    _certain(scores["accuracy"])
    return ClassifierScores(
        scores,
        tuple(
            ClassRecall(number, float(shares[place]), estimate(recalls[:, place].tolist()))
            for number, place in enumerate(by_frequency, start=1)
        ),
        pooled_curve(folds, by_frequency[1]) if len(by_frequency) == 2 else None,
    )


def _guessing(target: CodedColumn) -> dict[str, float]:
    """Scores of somebody who looks at no column: always the most frequent class, with equal evidence for all."""
    most = np.full(len(target.codes), int(np.argmax(target.counts)), dtype=np.int32)
    fold = HeldOutFold(target.codes, most, np.zeros((len(most), target.n_distinct)))
    return {score.name: score.value(fold) for score in SCORES}


def _certain(found: Estimate | None) -> Estimate:
    if found is None:
        problem = "no row was left to test on"
        raise SchemaError(problem, hint="take fewer folds or more rows")
    return found
