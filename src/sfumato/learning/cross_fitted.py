r"""What the columns say about a target, as a score of every row by models that were not trained on that row.

The label of a row is one draw; a partition that separates labels also separates chance. The score is what labels of
such rows are on average: the log-odds of each class, or the expected number. Cutting rows where the score differs keeps
what can be predicted, and rows of both classes with the same score stay together.

Who predicts: the mean of boosted trees and a linear model, each trained on four fifths of the rows and asked about the
last fifth, five times. The score is a function of the given columns only. A partition passes its quasi-identifiers:
columns that are released unchanged stay at hand anyway, and what they say must not hide what is about to be coarsened.

Notes
-----
**Order of rows.** Rows are first put into one order, by their values and target, and folds are dealt out along it by a
seeded generator, class by class. Rows that are equal in all columns get one score, the mean of theirs. So the scores
do not depend on the order in which the rows come. A fold number made from a row's values alone (a hash) would do the
same, but all rows with equal values would share a fold, and no model that is asked about them would have seen any.

**Large tables.** Of more than ``MOST_SCORED_ROWS`` rows a sample of so many is drawn by the same generator, and folds
are dealt out to it. A row that is not in the sample was seen by no model (other rows of its person may have been): it
is scored by one of the five. Each model is trained on at most ``MOST_TRAINING_ROWS`` rows of its four fifths, and on
the ``MOST_COLUMNS`` columns that say most about the target by themselves in these rows. All rows get a score.

References
----------
.. [CDD18] Chernozhukov, Chetverikov, Demirer, Duflo, Hansen, Newey, Robins: Double/Debiased Machine Learning for
   Treatment and Structural Parameters. The Econometrics Journal 21 (2018). Cross-fitting is its Definition 3.2.
.. [LDR08] LeFevre, DeWitt, Ramakrishnan: Workload-Aware Anonymization Techniques for Large-Scale Datasets.
   ACM TODS 33(3) (2008). Cuts by the label; the score takes its place here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.learning.c45.tree import MISSING, TreeColumn
from sfumato.learning.threads import one_thread

Codes = NDArray[np.integer]
Numbers = NDArray[np.float64]
Places = NDArray[np.intp]

N_FOLDS = 5
N_ROUNDS = 100
"""Rounds of boosting."""
LARGEST_SCORE = 5.0
"""Log-odds are cut off here: beyond, a class is as good as certain, and the exact odds are chance."""
MOST_SCORED_ROWS = 200_000
MOST_TRAINING_ROWS = 20_000
MOST_COLUMNS = 200
MOST_VALUES = 250
"""Values of a categorical column that models tell apart; rarer ones count as one. Boosted trees take up to 255."""
MOST_CLASSES = 20
"""Classes with a score of their own; rarer ones count as one."""
FEWEST_ROWS = 2 * N_FOLDS
"""Rows of a class that is learned: two in every fold."""
_N_INTERVALS = 16
SEED = 0
"""Of the sample, the folds and the rows that are trained on."""
_RUNS_AT_ONCE = 2**18
_LEAST_LIKELY = 1e-9
_LEAST_SPREAD = 1e-12


def class_scores(
    columns: Sequence[TreeColumn],
    classes: Codes,
    *,
    weights: NDArray[np.integer] | None = None,
    persons: Codes | None = None,
) -> Numbers:
    r"""Score every row by how likely each class of a target is, without having seen the row's own class.

    The score of class c is its centred log-odds :math:`\log p_c - \frac{1}{C} \sum_j \log p_j`, the mean of boosted
    trees and logistic regression, cut off at ±5. Of two classes only the second has a score: that of the first is its
    negative.

    Parameters
    ----------
    columns : sequence of TreeColumn
        What is learned from.
    classes : ndarray of int
        Class of each entry, from 0.
    weights : ndarray of int or None
        Rows that each entry stands for; ``None``: one each. The scores are those of the rows, entry by entry.
    persons : ndarray of int or None
        Person of each entry, where some have several rows: all rows of a person are then in one fold, so that no model
        is asked about a person whom it has seen.

    Returns
    -------
    ndarray of shape (n_entries, n_scores)
        All zeros where nothing can be learned: with one class, or fewer than 10 rows of all but one.

    Examples
    --------
    >>> sizes = np.repeat(np.arange(10), 20)
    >>> column = TreeColumn(sizes.astype(np.int32), 10, np.arange(10.0))
    >>> scores = class_scores([column], (sizes > 4).astype(np.int64))
    >>> bool((scores[sizes > 4] > 2).all() and (scores[sizes < 5] < -2).all())
    True
    """
    rows = _Rows.of(columns, classes, weights)
    learned = _learned_classes(classes[rows.entry])
    n_classes = int(learned.max(initial=MISSING)) + 1
    if n_classes < 2:
        return np.zeros((len(classes), 1))
    found = _held_out(rows, learned, learned, _class_answers, persons)
    own, others = (np.clip(each, -LARGEST_SCORE, LARGEST_SCORE) for each in found)
    return rows.mean_of_equal_rows(*((own[:, 1:], others[:, 1:]) if n_classes == 2 else (own, others)))


def quantity_scores(
    columns: Sequence[TreeColumn],
    numbers: Numbers,
    *,
    weights: NDArray[np.integer] | None = None,
    persons: Codes | None = None,
) -> Numbers:
    """Score every row by the number that is expected of it, without having seen the row's own number.

    The mean of boosted trees and ridge regression, in standard deviations from the mean, within the range of the
    numbers. Parameters are those of :func:`class_scores`; ``numbers`` are finite.

    Examples
    --------
    >>> sizes = np.repeat(np.arange(10), 20)
    >>> column = TreeColumn(sizes.astype(np.int32), 10, np.arange(10.0))
    >>> scores = quantity_scores([column], 1e300 * sizes)
    >>> scores.shape, bool(np.corrcoef(scores[:, 0], sizes)[0, 1] > 0.99)
    ((200, 1), True)
    """
    rows = _Rows.of(columns, numbers, weights)
    target = _standardized(numbers[rows.entry])
    if len(target) < 2 * FEWEST_ROWS or not target.any():
        return np.zeros((len(numbers), 1))
    strata = np.zeros(len(target), dtype=np.intp)
    found = _held_out(rows, target, strata, _quantity_answers, persons)
    return rows.mean_of_equal_rows(*(np.clip(each, target.min(), target.max()) for each in found))


def _standardized(numbers: Numbers) -> Numbers:
    """Deviations from the mean in standard deviations, of numbers of any size; zeros where all are equal."""
    exponent = int(np.frexp(np.abs(numbers).max(initial=0.0))[1])
    scaled = np.ldexp(numbers, -exponent)  # squares of very large or small numbers are no numbers
    centred = scaled - scaled.mean() if len(scaled) else scaled
    deviation = float(np.sqrt(np.mean(centred**2))) if len(centred) else 0.0
    is_spread = deviation > _LEAST_SPREAD * np.abs(scaled).max(initial=0.0)
    return np.asarray(centred / deviation) if is_spread else np.zeros(len(numbers))


def _learned_classes(classes: Codes) -> Codes:
    """Give numbers to the classes that are learned; rare ones count as one, and -1 is left out if these are too few."""
    counts = np.bincount(classes, minlength=1)
    by_frequency = np.argsort(-counts, kind="stable")
    is_kept = counts >= FEWEST_ROWS
    is_kept[by_frequency[MOST_CLASSES - 1 :]] &= np.count_nonzero(is_kept) <= MOST_CLASSES
    number = np.where(is_kept, np.cumsum(is_kept) - 1, is_kept.sum())
    if counts[~is_kept].sum() < FEWEST_ROWS:
        number[~is_kept] = MISSING
    return np.asarray(number[classes])


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """Rows in an order that depends on their values only, or a sample of them in that order.

    Parameters
    ----------
    columns : sequence of TreeColumn
        Codes are those of the entries.
    entry : ndarray of int
        Entry of each row.
    order : ndarray of int
        All entries in the order.
    runs : ndarray of int
        Number of the run of entries with equal values, of each entry in the order.
    run : ndarray of int
        The same of each row.
    sizes : ndarray of int
        Rows of each run, those too that are not in the sample.
    """

    columns: Sequence[TreeColumn]
    entry: Places
    order: Places
    runs: Places
    run: Places
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Sequence[TreeColumn], target: NDArray[Any], weights: NDArray[np.integer] | None) -> _Rows:
        order = np.lexsort([target, *(column.codes for column in columns)])
        begins = np.zeros(len(order), dtype=np.bool_)
        for column in columns:
            codes = column.codes[order]
            begins[1:] |= codes[1:] != codes[:-1]
        runs = np.cumsum(begins, dtype=np.intp)
        counts = np.ones(len(order), dtype=np.int64) if weights is None else weights[order]
        ends = np.cumsum(counts)
        n_rows = int(ends[-1]) if len(ends) else 0
        if n_rows <= MOST_SCORED_ROWS:
            place = np.repeat(np.arange(len(order)), counts)
        else:
            drawn = np.random.default_rng(SEED).choice(n_rows, MOST_SCORED_ROWS, replace=False, shuffle=False)
            place = np.searchsorted(ends, np.sort(drawn), side="right")
        sizes = np.bincount(runs, counts).astype(np.int64)
        return cls(columns, order[place], order, runs, runs[place], sizes)

    def __len__(self) -> int:
        return len(self.entry)

    @property
    def others(self) -> Places:
        """Runs with rows that are not in the sample."""
        return np.flatnonzero(np.bincount(self.run, minlength=len(self.sizes)) < self.sizes)

    def entry_of_runs(self, runs: Places) -> Places:
        """One entry of each of some runs."""
        return self.order[np.searchsorted(self.runs, runs)]

    def mean_of_equal_rows(self, scores: Numbers, others: Numbers) -> Numbers:
        """Give all rows with equal values the mean of their scores, entry by entry.

        ``others`` are the scores of rows that are not in the sample, run by run.
        """
        starts = np.flatnonzero(np.diff(self.run, prepend=-1))
        here, n_here = self.run[starts], np.diff(np.append(starts, len(self)))
        sums = np.zeros((len(self.sizes), scores.shape[1]))
        sums[here] = np.add.reduceat(scores, starts, axis=0)
        n_others = self.sizes.copy()
        n_others[here] -= n_here
        of_entry = np.zeros((len(self.order), scores.shape[1]))
        of_entry[self.order] = ((sums + n_others[:, None] * others) / self.sizes[:, None])[self.runs]
        return of_entry


Predict = Callable[[Places], Numbers]
"""Scores of entries."""
Train = Callable[["_Features", NDArray[Any], Places], Predict]
"""Trains on the target of some rows."""


def _held_out(
    rows: _Rows, target: NDArray[Any], strata: Codes, train: Train, persons: Codes | None
) -> tuple[Numbers, Numbers]:
    """Scores of all rows by models that were not trained on them; rows with the stratum -1 train none.

    The second are the scores of rows that are not in the sample, run by run; each run is asked of one model.
    """
    rng = np.random.default_rng(SEED)
    folds = _folds(strata, rng)
    if persons is not None:
        _, first, of_row = np.unique(persons[rows.entry], return_index=True, return_inverse=True)
        folds = folds[first][of_row]
    scores = np.zeros((len(rows), int(strata.max()) + 1))
    others, of_others = rows.others, np.zeros((len(rows.sizes), scores.shape[1]))
    for fold in range(N_FOLDS):
        trained = rng.permutation(np.flatnonzero((folds != fold) & (strata != MISSING)))[:MOST_TRAINING_ROWS]
        asked = np.flatnonzero(folds == fold)
        features = _Features.of(rows, trained, target[trained])
        has_strata = int(strata.max()) == 0 or len(np.unique(target[trained])) > 1  # persons may take a class along
        if features.columns and has_strata:
            with warnings.catch_warnings(), one_thread():
                warnings.simplefilter("ignore")  # that a linear model would like more steps, for instance
                predict = train(features, target, trained)
                scores[asked] = predict(rows.entry[asked])
                own = others[others % N_FOLDS == fold]
                for begin in range(0, len(own), _RUNS_AT_ONCE):
                    runs = own[begin : begin + _RUNS_AT_ONCE]
                    of_others[runs] = predict(rows.entry_of_runs(runs))
    return scores, of_others


def _folds(strata: Codes, rng: np.random.Generator) -> Places:
    """Deal rows out to folds by chance, every stratum evenly."""
    shuffled = rng.permutation(len(strata))
    by_stratum = shuffled[np.argsort(strata[shuffled], kind="stable")]
    folds = np.empty(len(strata), dtype=np.intp)
    folds[by_stratum] = np.arange(len(strata)) % N_FOLDS
    return folds


def _class_answers(features: _Features, target: NDArray[Any], trained: Places) -> Predict:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    boosted = HistGradientBoostingClassifier(
        max_iter=N_ROUNDS, early_stopping=False, categorical_features=features.is_categorical, random_state=0
    )
    boosted.fit(features.boosted(features.rows.entry[trained]), target[trained])
    linear = LogisticRegression(max_iter=200)
    linear.fit(features.linear(features.rows.entry[trained]), target[trained])
    n_classes = int(target.max()) + 1

    def predict(entry: Places) -> Numbers:
        likely = np.zeros((2, len(entry), n_classes))  # a class that was not trained on stays impossible
        likely[0][:, boosted.classes_] = boosted.predict_proba(features.boosted(entry))
        likely[1][:, linear.classes_] = linear.predict_proba(features.linear(entry))
        return np.asarray(sum(_centred_log_odds(each) for each in likely) / len(likely))

    return predict


def _centred_log_odds(likely: Numbers) -> Numbers:
    logs = np.log(np.maximum(likely, _LEAST_LIKELY))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _quantity_answers(features: _Features, target: NDArray[Any], trained: Places) -> Predict:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge

    boosted = HistGradientBoostingRegressor(
        max_iter=N_ROUNDS, early_stopping=False, categorical_features=features.is_categorical, random_state=0
    )
    boosted.fit(features.boosted(features.rows.entry[trained]), target[trained])
    linear = Ridge(solver="sparse_cg").fit(features.linear(features.rows.entry[trained]), target[trained])

    def predict(entry: Places) -> Numbers:
        both = boosted.predict(features.boosted(entry)), linear.predict(features.linear(entry))
        return np.asarray((both[0] + both[1])[:, None] / 2)

    return predict


@dataclass(frozen=True, eq=False, repr=False)
class _Features:
    """Columns as models read them; what is learned of them is learned from the rows that are trained on.

    Parameters
    ----------
    rows : _Rows
    columns : list of TreeColumn
        Those that are learned from.
    tables : list of ndarray
        What each code of a column becomes, a missing value as the last. Of a categorical column a number that frequent
        values have for themselves and rare ones share; of a numeric one its standardized place.
    """

    rows: _Rows
    columns: list[TreeColumn]
    tables: list[NDArray[Any]]

    @classmethod
    def of(cls, rows: _Rows, trained: Places, target: NDArray[Any]) -> _Features:
        entry = rows.entry[trained]
        columns = _telling(rows.columns, entry, target)
        places = [_places(c, c.codes[entry]) if c.is_numeric else _ranks(c, c.codes[entry]) for c in columns]
        return cls(rows, columns, places)

    @property
    def is_categorical(self) -> list[bool]:
        """Which columns boosted trees take as categories."""
        return [not column.is_numeric for column in self.columns]

    def boosted(self, entry: Places) -> Numbers:
        """One column each: of a numeric one the codes, whose order is all that trees use, and not-a-number."""
        matrix = np.empty((len(entry), len(self.columns)))
        for i, (column, table) in enumerate(zip(self.columns, self.tables, strict=True)):
            codes = column.codes[entry]
            matrix[:, i] = np.where(codes == MISSING, np.nan, codes) if column.is_numeric else table[codes]
        return matrix

    def linear(self, entry: Places) -> sp.csr_matrix:
        """Standardized numbers, a missing one as the mean and marked; one column for each categorical value."""
        blocks = []
        for column, table in zip(self.columns, self.tables, strict=True):
            codes = column.codes[entry]
            if column.is_numeric:
                blocks.append(sp.csr_matrix(np.column_stack([table[codes], codes == MISSING])))
            else:
                shape = len(entry), int(table.max()) + 1
                blocks.append(sp.csr_matrix((np.ones(len(entry)), table[codes], np.arange(len(entry) + 1)), shape))
        return sp.csr_matrix(sp.hstack(blocks))


def _ranks(column: TreeColumn, codes: Codes) -> NDArray[np.int64]:
    counts = np.bincount(np.where(codes == MISSING, column.n_values, codes), minlength=column.n_values + 1)
    ranks = np.empty(column.n_values + 1, dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(column.n_values + 1)
    return np.minimum(ranks, MOST_VALUES)


def _places(column: TreeColumn, codes: Codes) -> Numbers:
    numbers = np.zeros(0) if column.numbers is None else column.numbers
    known = codes[codes != MISSING]
    places = np.zeros(column.n_values + 1)
    if len(known):
        low, high = numbers[0] / 2, numbers[-1] / 2  # the whole width may be no number
        unit = (numbers / 2 - low) / (high - low) if high > low else np.zeros(len(numbers))
        spread = float(unit[known].std())
        places[:-1] = (unit - unit[known].mean()) / (spread if spread > _LEAST_SPREAD else 1.0)
    return places


def _telling(columns: Sequence[TreeColumn], entry: Places, target: NDArray[Any]) -> list[TreeColumn]:
    """Keep the columns that by themselves say most about the target, in their order; constant ones never.

    What a column says is the variance of the target between its most frequent values, or between sixteen intervals of
    its numbers, divided by what chance gives as many groups.
    """
    columns = [column for column in columns if len(np.unique(column.codes[entry])) > 1]
    if len(columns) <= MOST_COLUMNS:
        return columns
    indicators = np.eye(int(target.max()) + 1)[target] if target.dtype.kind in "iu" else target[:, None]
    indicators = indicators - indicators.mean(axis=0)
    said = np.array([_variance_between(_interval(column, column.codes[entry]), indicators) for column in columns])
    return [columns[i] for i in np.sort(np.argsort(-said, kind="stable")[:MOST_COLUMNS]).tolist()]


def _interval(column: TreeColumn, codes: Codes) -> Places:
    """Group of each row: its interval of numbers, or one of the most frequent values, missing with the rare ones."""
    counts = np.bincount(codes[codes != MISSING], minlength=column.n_values)
    if column.is_numeric:
        group_of = (np.cumsum(counts) - counts) * _N_INTERVALS // max(int(counts.sum()), 1)
    else:
        group_of = np.full(column.n_values, _N_INTERVALS)
        group_of[np.argsort(-counts, kind="stable")[:_N_INTERVALS]] = np.arange(min(_N_INTERVALS, column.n_values))
    return np.append(group_of, _N_INTERVALS)[codes]


def _variance_between(groups: Places, centred: Numbers) -> float:
    sizes = np.bincount(groups, minlength=_N_INTERVALS + 1)
    sums = np.stack([np.bincount(groups, each, minlength=_N_INTERVALS + 1) for each in centred.T])
    n_groups = np.count_nonzero(sizes)
    return float((sums**2 / np.maximum(sizes, 1)).sum() / max(n_groups - 1, 1)) if n_groups > 1 else 0.0
