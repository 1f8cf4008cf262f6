"""Utility of a release for classification: cross-validated, honestly or as the papers did, for several classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from sfumato.contract import Mechanism, Progress
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.classifiers import CLASSIFIERS, DEFAULT_CLASSIFIERS, Flags, checked_classifiers
from sfumato.evaluation.encoding import GeneralizedEncoder, Matrix
from sfumato.evaluation.folds import Codes, Rows, class_column, rows_of, stratified_folds
from sfumato.evaluation.held_out import Estimate, HeldOutFold, RocCurve, estimate, held_out_fold, pooled_curve
from sfumato.evaluation.rare_values import without_rare_values
from sfumato.evaluation.treatment import RecodingMechanism, Treated, treated
from sfumato.manifest import AnyTable
from sfumato.schema import Column
from sfumato.table.coding import CodedColumn, Table

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
    """How one classifier did; ``auc`` is ``None`` where no fold holds two classes, ``roc`` for more than two."""

    accuracy: Estimate
    balanced_accuracy: Estimate
    auc: Estimate | None
    recall: tuple[ClassRecall, ...]
    roc: RocCurve | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "accuracy": self.accuracy.to_dict(),
            "balanced_accuracy": self.balanced_accuracy.to_dict(),
            "auc": self.auc.to_dict() if self.auc else None,
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
    majority_accuracy : float
        Accuracy of always naming the most frequent class.
    classifiers : mapping of str to ClassifierScores
    """

    fitted_on: FittedOn
    n_folds: int
    seed: int
    n_rows: int
    n_rows_of_table: int
    majority_accuracy: float
    classifiers: Mapping[str, ClassifierScores]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; holds no label of a class."""
        return {
            "fitted_on": self.fitted_on,
            "n_folds": self.n_folds,
            "seed": self.seed,
            "n_rows": self.n_rows,
            "n_rows_of_table": self.n_rows_of_table,
            "majority_accuracy": self.majority_accuracy,
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
        Of folds, sample and classifiers.
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
    The result is the same for the same arguments, except of mechanisms whose noise takes no seed. Of a column without
    order the 64 most frequent values are learned from (:mod:`sfumato.evaluation.rare_values`).

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
        problem = "the target has one class only, so that there is nothing to predict"
        raise SchemaError(problem, hint="choose another target column, or more rows")
    folds = stratified_folds(target.codes, n_folds, seed)
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
        float(target.counts.max() / used.n_rows),
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
    return rows_of(table, np.sort(rows))


@dataclass(frozen=True, eq=False)
class _Part:
    train: Matrix
    train_target: Codes
    test: Matrix
    test_target: Codes

    is_share: Flags

    def held_out(self, name: str, seed: int, n_classes: int) -> HeldOutFold:
        classifier = CLASSIFIERS[name].build(seed, self.is_share)
        return held_out_fold(classifier, (self.train, self.train_target), (self.test, self.test_target), n_classes)


def _honest_folds(
    table: AnyTable, mechanism: AnyMechanism, target: CodedColumn, folds: Folds, seed: int
) -> Iterator[_Part]:
    for train_rows, test_rows in folds:
        part = treated(mechanism, rows_of(table, train_rows), rows_of(table, test_rows))
        yield _encoded(part.columns, (part.train, _class_codes(part, target)), (part.test, target.codes[test_rows]))


def _folds_of_release(
    table: AnyTable, mechanism: AnyMechanism, target: CodedColumn, folds: Folds, seed: int
) -> Iterator[_Part]:
    part = treated(mechanism, table, table)
    released = _class_codes(part, target)
    for train_rows, test_rows in _folds_of_released_rows(part, released, folds, seed):
        train, test = ((part.train.take(rows), released[rows]) for rows in (train_rows, test_rows))
        yield _encoded(part.columns, train, test)


def _folds_of_released_rows(part: Treated, released: Codes, folds: Folds, seed: int) -> Folds:
    """Folds of the rows that released ones stand for or, if they stand for none, folds of their own."""
    if part.rows is None:
        return stratified_folds(released, len(folds), seed)
    is_test = [np.isin(part.rows, test_rows) for _, test_rows in folds]
    return [(np.flatnonzero(~is_one), np.flatnonzero(is_one)) for is_one in is_test if is_one.any()]


def _encoded(columns: Mapping[str, Column], train: tuple[Table, Codes], test: tuple[Table, Codes]) -> _Part:
    encoder = GeneralizedEncoder().fit(without_rare_values(train[0], columns), columns)
    is_share = np.array([name not in columns for name in encoder.feature_names_], dtype=np.bool_)
    own, new = (encoder.transform(cells).clip(-LARGEST, LARGEST) for cells in (train[0], test[0]))
    return _Part(own, train[1], new, test[1], is_share)


def _class_codes(part: Treated, target: CodedColumn) -> Codes:
    """Classes of released rows, numbered as those of the whole table."""
    if part.target is None:
        problem = "the mechanism does not release the target, so that nothing can be learned from the release"
        raise SchemaError(problem)
    number_of = {value: number for number, value in enumerate(target.values.to_pylist())}
    numbers = np.array([number_of[value] for value in part.target.values.to_pylist()], dtype=np.int32)
    return numbers[part.target.codes]


def _scores(folds: list[HeldOutFold], target: CodedColumn) -> ClassifierScores:
    by_frequency = np.argsort(-target.counts, kind="stable").tolist()
    recalls = np.array([fold.recalls() for fold in folds])
    shares = target.counts / target.counts.sum()
    return ClassifierScores(
        _certain(estimate([fold.accuracy() for fold in folds])),
        _certain(estimate([fold.balanced_accuracy() for fold in folds])),
        estimate([fold.area() for fold in folds]),
        tuple(
            ClassRecall(number, float(shares[place]), estimate(recalls[:, place].tolist()))
            for number, place in enumerate(by_frequency, start=1)
        ),
        pooled_curve(folds, by_frequency[1]) if len(by_frequency) == 2 else None,
    )


def _certain(found: Estimate | None) -> Estimate:
    if found is None:
        problem = "no row was left to test on"
        raise SchemaError(problem, hint="take fewer folds or more rows")
    return found
