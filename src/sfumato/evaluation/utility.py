"""How well a classifier does that was trained on a recoded table, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from sfumato.errors import InvalidParameterError
from sfumato.evaluation.encoding import GeneralizedEncoder, values_as_cells
from sfumato.evaluation.treatment import RecodingMechanism, class_column, learned_from, recoded_cells, stratified_folds
from sfumato.learning.c45.estimators import C45Classifier
from sfumato.progress import Progress
from sfumato.schema import Column
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes


class Classifier(Protocol):
    """What is needed of a scikit-learn classifier."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from encoded rows."""
        ...

    def predict(self, X: Any) -> Any:
        """Predict the classes of encoded rows."""
        ...


@dataclass(frozen=True)
class FoldUtility:
    """One fold: share of test rows predicted wrongly, certainty penalty of the training part, seconds of recoding.

    ``auc`` is the area under the ROC curve, for two classes and a classifier that gives probabilities.
    """

    error: float
    certainty_penalty: float
    seconds: float
    auc: float | None = None


@dataclass(frozen=True)
class CrossValidatedUtility:
    """Utility of a recoder over all folds."""

    folds: tuple[FoldUtility, ...]

    @property
    def error(self) -> float:
        """Mean share of wrong predictions."""
        return float(np.mean([fold.error for fold in self.folds]))

    @property
    def certainty_penalty(self) -> float:
        """Mean global certainty penalty (GCP) of the training parts."""
        return float(np.mean([fold.certainty_penalty for fold in self.folds]))

    @property
    def auc(self) -> float | None:
        """Mean area under the ROC curve, where there is one."""
        found = [fold.auc for fold in self.folds if fold.auc is not None]
        return float(np.mean(found)) if len(found) == len(self.folds) else None

    @property
    def seconds(self) -> float:
        """Mean seconds that recoding a training part took."""
        return float(np.mean([fold.seconds for fold in self.folds]))


def cross_validated_utility(
    table: Table,
    recoder: RecodingMechanism | None,
    *,
    classifier: Classifier | None = None,
    encoder: Callable[[], GeneralizedEncoder] = GeneralizedEncoder,
    n_folds: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> CrossValidatedUtility:
    """Train on the recoded nine tenths, test on the last tenth generalized through the same groups; ten times.

    The scheme of LeFevre et al. (2008) that [ERP19]_ follows: in every fold the training part is recoded as if it
    were to be released, the rows of the test part find their group by the same tree and get its cells, and a classifier
    trained on the first is tested on the second.

    Parameters
    ----------
    recoder : mechanism with ``recode``, or None
        ``None`` leaves the rows as they are: the error on the original table.
    classifier : scikit-learn classifier or None
        Trained anew in each fold; ``None`` takes C4.5 as [ERP19]_ does. Missing cells reach it as not-a-number.
    encoder : callable
        Makes the encoder of ranges and sets; called without arguments.
    n_folds : int, default=10
        At most the rows of the most frequent class. A class with fewer rows than folds is in some of them only.
    seed : int
        Of the stratified folds.

    Raises
    ------
    SchemaError
        If there is no target, or it is a quantity: numeric, with more than 20 values.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    _check_classifier(classifier)
    target = class_column(table).codes
    features = learned_from(table.schema)
    folds = []
    for number, (train_rows, test_rows) in enumerate(stratified_folds(target, n_folds, seed, person_codes(table))):
        if progress:
            progress(number, n_folds, "fold")
        part = _recoded(table.take(train_rows), table.take(test_rows), recoder, features)
        encoding = encoder().fit(part.train, part.columns)
        is_used = np.full(len(encoding.feature_names_), True) if classifier is not None else ~encoding.is_piece_
        model = _fresh(classifier, encoding.is_categorical_[is_used])
        model.fit(encoding.transform(part.train)[:, is_used], target[train_rows])
        test = encoding.transform(part.test)[:, is_used]
        wrong = model.predict(test) != target[test_rows]
        auc = _auc(model, test, target[test_rows])
        folds.append(FoldUtility(float(wrong.mean()), part.certainty_penalty, part.seconds, auc))
    return CrossValidatedUtility(tuple(folds))


def _check_classifier(classifier: object) -> None:
    if classifier is not None and not all(hasattr(classifier, name) for name in ("fit", "predict", "get_params")):
        problem = f"got an object of type {type(classifier).__name__}"
        raise InvalidParameterError("classifier", problem, allowed="a scikit-learn classifier, or None")


def _fresh(classifier: Classifier | None, is_categorical: NDArray[np.bool_]) -> Any:
    return C45Classifier(categorical_features=is_categorical) if classifier is None else clone(classifier)


def _auc(model: Any, test: Any, target: Any) -> float | None:
    if not hasattr(model, "predict_proba") or len(model.classes_) != 2:
        return None
    if not np.array_equal(np.unique(target), model.classes_):
        return None
    return float(roc_auc_score(target == model.classes_[1], model.predict_proba(test)[:, 1]))


@dataclass(frozen=True, eq=False)
class _Part:
    train: Table
    test: Table
    columns: dict[str, Column]
    certainty_penalty: float = 0.0
    seconds: float = 0.0


def _recoded(train: Table, test: Table, recoder: RecodingMechanism | None, features: Sequence[str]) -> _Part:
    columns = {name: train.schema[name] for name in features}
    if recoder is None:
        return _Part(values_as_cells(train, features), values_as_cells(test, features), columns)
    started = time.perf_counter()
    recoding = recoder.recode(train)
    released = recoding.recoded(train)
    seconds = time.perf_counter() - started
    own, new = (recoded_cells(recoding, part, features) for part in (released, recoding.generalized(test)))
    return _Part(own, new, columns | recoding.encodable(), recoding.certainty_penalty, seconds)
