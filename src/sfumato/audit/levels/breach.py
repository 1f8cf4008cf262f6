"""Whether an attacker gains by the choice of columns, estimated anew from the original with own folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # comes with scikit-learn

from sfumato.audit.checks import DECLARE, Check, Unchecked, listed
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import Around, Judging, judge
from sfumato.audit.original.release_vs_original import Beside
from sfumato.audit.reading.block_counting import spilling_connection
from sfumato.audit.reading.columns import Columns
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.guarantees import BreachBound
from sfumato.guarantees.estimated import attackers_in
from sfumato.rows.out_of_core import LargeTable, Told
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn

Numbers = NDArray[np.float64]
Telling = Callable[[Sequence[str], str], list[str]]


SAMPLE_ROWS = 200_000
"""Rows on which the audit estimates, in memory and out of core, whatever a manifest says of its own estimates."""
_SAMPLE_CELLS = 20 * 10**6
_SAMPLE_SEED = 20_190_711


def measure(guarantee: BreachBound, beside: Beside) -> float:
    """Lower end of the interval around the privacy breach increase, in percent.

    Both sets of columns are taken from the original; that the release has the same cells is checked elsewhere. Of more
    rows than :func:`sample_size` the audit draws its own sample, so that every audit of a release finds one level.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with: no released column, or an attacker who is never right.
    """
    columns = {name: beside.original.coded(name) for name in (*guarantee.baseline, guarantee.sensitive)}
    if not sample_words(guarantee, len(beside.rows)):
        return estimate(guarantee, columns, beside.rows)
    rows = beside.rows[sampled_rows(len(beside.rows), len(columns))]
    return estimate(guarantee, {name: column.take(rows) for name, column in columns.items()}, np.arange(len(rows)))


def sample_words(guarantee: object, n_rows: int) -> str:
    """Words on the sample on which a promise is judged; empty where all rows are."""
    if not isinstance(guarantee, BreachBound):
        return ""
    size = sample_size(len({*guarantee.baseline, guarantee.sensitive}))
    return f"sample of {size:,} of {n_rows:,} rows" if n_rows > size else ""


def sample_size(n_columns: int) -> int:
    """Rows of a sample: of very many columns fewer rows fit."""
    return min(SAMPLE_ROWS, max(_SAMPLE_CELLS // n_columns, 1))


def sampled_rows(n_rows: int, n_columns: int) -> NDArray[np.int64]:
    """Rows of the audit's own sample, ascending, each set of rows as likely as any other; all where they are few."""
    size = sample_size(n_columns)
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SAMPLE_SEED).choice(n_rows, size, replace=False, shuffle=False))


def estimate(guarantee: BreachBound, columns: Mapping[str, CodedColumn], rows: NDArray[np.intp]) -> float:
    """As :func:`measure`, from some rows of the columns that are compared and of the sensitive one."""
    if not guarantee.columns:
        raise InvalidParameterError("columns", "got none", allowed="at least one")
    is_numeric = [name in guarantee.numeric for name in guarantee.baseline]
    values, sensitive = np.unique(columns[guarantee.sensitive].codes[rows], return_inverse=True)
    if len(values) < 2:
        problem = "has fewer than two values, so there is nothing to predict"
        raise SchemaError(problem, column=guarantee.sensitive)
    if _is_nearly_unique(len(values), len(sensitive)):
        problem = "has a value of its own in (almost) every row, so there is nothing to learn"
        raise SchemaError(problem, column=guarantee.sensitive)
    compared = [columns[name] for name in guarantee.baseline]
    try:
        attack = Attack(compared, is_numeric, rows, sensitive.astype(np.int64), guarantee.metric)
    except ValueError:
        raise InvalidParameterError("numeric", "some are not", allowed="columns that hold numbers") from None
    released = [guarantee.baseline.index(name) for name in guarantee.columns]
    ours = attack.scores(released, guarantee.attacker)
    everything = attack.scores(range(len(compared)), guarantee.attacker)
    return lower_end(ours, everything, guarantee.confidence)


def lower_end(scores: Numbers, baseline: Numbers, confidence: float) -> float:
    """Lower end of a two-sided interval of the percentage by which scores are above a baseline's.

    The interval is that of the corrected resampled t-test (Nadeau and Bengio, Machine Learning 52, 2003) for the
    difference, over the mean of the baseline.

    Examples
    --------
    >>> round(lower_end(np.array([0.8, 0.7, 0.9]), np.array([0.8, 0.8, 0.8]), 0.95), 1)
    -49.1
    """
    from scipy import stats

    if baseline.mean() <= 0:
        problem = "is right in no row"
        raise InvalidParameterError("the attacker with all columns", problem, allowed="right now and then")
    differences, n_folds = scores - baseline, len(scores)
    error = float(np.sqrt((1 / n_folds + 1 / (n_folds - 1)) * differences.var(ddof=1)))
    lowest = float(differences.mean()) - float(stats.t.ppf((1 + confidence) / 2, n_folds - 1)) * error
    return 100 * lowest / float(baseline.mean())


def check_breach_promise(
    guarantee: BreachBound, around: Around, telling: Telling | None = None
) -> Iterator[Check | Unchecked]:
    """Whether a bound compares with what it should, and what it protects is not simply released.

    ``telling`` finds the columns among some that determine another one; without it they are looked up in the rows.
    """
    claims, original, check_roles = around.claims, around.original, around.has_roles
    yield _check_baseline(guarantee, claims, original if check_roles else None)
    yield _check_sensitive(guarantee, claims, original, check_roles)
    if original is not None and check_roles:
        yield _check_numeric(guarantee, original)
    else:
        said = "whether the columns compared with are all quasi-identifiers of the original, with their kinds"
        yield Unchecked("roles", f"{guarantee.kind}: {said}", DECLARE)
    if original is not None and guarantee.sensitive in original:
        yield _check_given_away(guarantee, claims, original, telling)


def _check_baseline(guarantee: BreachBound, claims: Claims, original: Columns | None) -> Check:
    """With more columns to compare with, and stronger ones, any release would look safe."""
    expected = {*claims.names(Role.QUASI_IDENTIFIER), *claims.dropped_columns}
    wrong = [name for name in guarantee.baseline if name not in expected]
    if original is not None:
        quasi = set(original.with_role(Role.QUASI_IDENTIFIER))
        wrong = sorted(quasi ^ set(guarantee.baseline))
    said = f"are not the original's quasi-identifiers: {listed(wrong)}"
    if not wrong:
        said = "were released or dropped" if original is None else "are the original's quasi-identifiers"
    return Check(f"{guarantee.kind}: compared with", not wrong, f"{guarantee.kind}: the columns compared with {said}")


def _check_numeric(guarantee: BreachBound, original: Columns) -> Check:
    """Compare with the declared kinds: who takes categories for numbers, or numbers for categories, is weak."""
    kinds = {column: original.describe(column).kind for column in guarantee.baseline if column in original}
    wrong = [column for column, kind in kinds.items() if (kind is Kind.NUMERIC) != (column in guarantee.numeric)]
    said = f"are not the original's: {listed(wrong)}" if wrong else "are the original's"
    return Check(f"{guarantee.kind}: numbers", not wrong, f"{guarantee.kind}: the columns taken as numbers {said}")


def _check_sensitive(guarantee: BreachBound, claims: Claims, original: Columns | None, check_roles: bool) -> Check:
    """Only the original's target may be both released and what the bound is about: recipients are to predict it."""
    name = guarantee.sensitive
    released = _released_sources(claims)
    is_target = name in claims.names(Role.TARGET)
    if original is not None and check_roles:
        is_target = is_target and name in original.with_role(Role.TARGET)
    wrong = {name} & released if not is_target else set()
    wrong |= released & set(original.with_role(Role.SENSITIVE) if original is not None else ())
    if wrong:
        said = f"columns to be protected are released: {listed(sorted(wrong))}"
    elif original is None or not check_roles:
        said = "the column to be protected is released as the target" if name in released else "it is not released"
    elif name in released:
        said = "the column to be protected is the original's target, which recipients predict"
    else:
        said = "no sensitive column of the original is released"
    return Check(f"{guarantee.kind}: sensitive", not wrong, f"{guarantee.kind}: {said}")


def _released_sources(claims: Claims) -> set[str]:
    """Columns of the original that stand in the release, as they are or recoded."""
    recoded = {recoding.column for recoding in claims.recodings.values()}
    return recoded | {name for name in claims.names() if name not in claims.recodings}


def _check_given_away(guarantee: BreachBound, claims: Claims, original: Columns, telling: Telling | None) -> Check:
    """Look for columns that determine the protected one: released they tell it, and beside them all looks safe."""
    names = _released_sources(claims).union(guarantee.baseline) - {guarantee.sensitive}
    known = [name for name in sorted(names) if name in original]
    find = telling or (lambda names, sensitive: _tellers(claims, original, names, sensitive))
    wrong = find(known, guarantee.sensitive)
    said = f"is given away by {listed(wrong)}" if wrong else "is determined by no column released or compared with"
    name = f"{guarantee.kind}: given away"
    return Check(name, not wrong, f"{guarantee.kind}: the column to be protected {said}")


def _tellers(claims: Claims, original: Columns, names: Sequence[str], sensitive: str) -> list[str]:
    rows = np.arange(original.n_rows)
    if claims.drops_incomplete_rows:
        rows = np.flatnonzero(~original.incomplete_rows())
    wanted = original.coded(sensitive).codes[rows]
    return [name for name in names if tells(original.coded(name).codes[rows], wanted)]


def tells(column: NDArray[np.int32], wanted: NDArray[np.int32]) -> bool:
    """Whether a column equals another under any labels, or determines it but for a hundredth of the rows.

    To determine it, its values must stand in three rows each on average and be wrong for at most a tenth of the rows
    without the most frequent wanted value; a value in one row only is no evidence.

    Examples
    --------
    >>> tells(np.array([0, 1, 2] * 4), np.array([0, 0, 1] * 4)), tells(np.array([0, 1] * 6), np.array([0, 0, 1] * 4))
    (True, False)
    """
    if not len(column):
        return False
    return counts_tell(sp.coo_array((np.ones(len(column), dtype=np.int64), (column, wanted))).tocsr())


def counts_tell(table: sp.csr_array) -> bool:
    """As :func:`tells`, from the numbers of rows with each value (line) and each wanted one (column)."""
    by_value, by_wanted = (np.asarray(table.sum(axis=axis)).ravel() for axis in (1, 0))
    common = int(by_wanted.argmax())
    known = np.asarray(table.max(axis=1).todense()).ravel()
    guessed = np.asarray(table[:, [common]].todense()).ravel()
    return figures_tell(
        n_rows=int(by_value.sum()),
        n_values=int(np.count_nonzero(by_value)),
        n_wanted=int(np.count_nonzero(by_wanted)),
        n_pairs=int(table.count_nonzero()),
        n_right=int(np.where(by_value > 1, known, guessed).sum()),
        n_common=int(by_wanted[common]),
    )


def figures_tell(*, n_rows: int, n_values: int, n_wanted: int, n_pairs: int, n_right: int, n_common: int) -> bool:
    """As :func:`tells`, from the distinct values and pairs, rows told rightly, and rows with the commonest value."""
    if n_pairs == n_values == n_wanted and not _is_nearly_unique(n_wanted, n_rows):
        return True
    if n_rows < 3 * n_values:
        return False
    n_wrong = n_rows - n_right
    return 100 * n_wrong <= n_rows and 10 * n_wrong <= n_rows - n_common


def _is_nearly_unique(n_values: int, n_rows: int) -> bool:
    return 10 * n_values > 9 * n_rows


judge(
    BreachBound.kind,
    Judging(
        form={
            "max_breach_increase": "number",
            "sensitive": "text",
            "columns": ["text"],
            "baseline": ["text"],
            "attacker": "text",
            "metric": "text",
            "confidence": "number",
            "numeric": ["text"],
        },
        parameters=("max_breach_increase", "attacker", "metric"),
        beside_original=measure,
        further=check_breach_promise,
    ),
)


# Attackers of the audit's own, made with scikit-learn: how well columns predict another one, fold by fold.


Places = NDArray[np.int64]

N_FOLDS = 10
_SEED = 20_170_402
_LEAST_VARIANCE = 0.01  # of a column's own: without it, a rare value with equal numbers is predicted for everybody
_LEAVES = 100
_INTERVALS = 16
_STEPS = 1000


def codes_of_values(column: CodedColumn) -> Places:
    """Code the cells in an order that depends on the values only, by number where all are numbers; missing ones are 0.

    The kind that somebody declared is not asked, because an original may be audited without its description.
    """
    places = np.zeros(len(column.values), dtype=np.int64)
    is_there = column.values.is_valid().to_numpy(zero_copy_only=False)
    try:
        known: NDArray[Any] = column.numbers()[is_there]
    except ValueError:
        known = np.array([str(value) for value in column.values.to_pylist() if value is not None])
    places[is_there] = np.unique(known, return_inverse=True)[1] + 1
    return places[column.codes]


def numbers_of(column: CodedColumn) -> Numbers:
    """Read cells as numbers with mean 0 and variance 1, missing ones as the median.

    Raises
    ------
    ValueError
        If a value is no number.
    """
    cells = column.numbers()[column.codes]
    is_there = ~np.isnan(cells)
    if not is_there.any():
        return np.zeros(len(cells))
    cells = np.where(is_there, cells, np.median(cells[is_there]))
    spread = float(cells.std())
    return np.asarray((cells - cells.mean()) / (spread if spread > 0 else 1.0))


class Attack:
    """What attackers train on, and the folds.

    Parameters
    ----------
    columns : sequence of CodedColumn
    is_numeric : sequence of bool
        Which of them are taken as numbers, normally distributed for naive Bayes.
    rows : array of int
        Rows of the columns that count.
    sensitive : array of int
        Class of each of these rows, from 0.
    metric : {"accuracy", "balanced_accuracy", "auc"}
    """

    def __init__(
        self,
        columns: Sequence[CodedColumn],
        is_numeric: Sequence[bool],
        rows: NDArray[np.intp],
        sensitive: Places,
        metric: str,
    ) -> None:
        cells = [
            numbers_of(column) if flag else codes_of_values(column).astype(np.float64)
            for column, flag in zip(columns, is_numeric, strict=True)
        ]
        self._cells = np.column_stack(cells)[rows]
        self._is_numeric = np.array(is_numeric, dtype=np.bool_)
        self._sensitive = sensitive
        self._metric = metric
        self._n_classes = int(sensitive.max()) + 1
        self._fold_of_row = _folds(sensitive)

    def scores(self, places: Sequence[int], attacker: str) -> Numbers:
        """Measure fold by fold the performance of an attacker who knows some of the columns."""
        found = [self._scores(list(places), kind) for kind in attackers_in(attacker)]
        return max(found, key=lambda scores: float(scores.mean()))

    def _scores(self, places: list[int], kind: str) -> Numbers:
        n_folds = int(self._fold_of_row.max()) + 1
        return np.array([self._score(places, kind, self._fold_of_row == fold) for fold in range(n_folds)])

    def _score(self, places: list[int], kind: str, is_held_out: NDArray[np.bool_]) -> float:
        cells, is_numeric = self._cells[:, places], self._is_numeric[places]
        target = self._sensitive[~is_held_out]
        classes, found = _ATTACKERS[kind](cells, is_numeric, target, is_held_out)
        if self._metric == "auc" and kind in _SAY_JOINT_PROBABILITIES:
            found = log_odds(found)
        unlikely = float(found.min()) - 1  # for a value that is not in the training rows
        evidence = np.full((int(is_held_out.sum()), self._n_classes), unlikely)
        evidence[:, classes] = found
        return _performance(self._metric, self._sensitive[is_held_out], evidence)


def _naive_bayes(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Log of the joint probability of each class and the cells: sums over categories and numbers, the prior once."""
    classes, counts = np.unique(target, return_counts=True)
    log_prior = np.log(counts / len(target))
    joint = np.tile(log_prior, (int(is_held_out.sum()), 1))
    varies = np.ptp(cells[~is_held_out], axis=0) > 0  # a number that does not has no density
    numbers, categories = cells[:, is_numeric & varies], cells[:, ~is_numeric].astype(np.int64)
    if numbers.shape[1]:
        normal = GaussianNB(var_smoothing=_LEAST_VARIANCE).fit(numbers[~is_held_out], target)
        joint += normal.predict_joint_log_proba(numbers[is_held_out]) - log_prior
    if categories.shape[1]:
        counting = CategoricalNB(min_categories=categories.max(axis=0) + 1).fit(categories[~is_held_out], target)
        joint += counting.predict_joint_log_proba(categories[is_held_out]) - log_prior
    return classes, joint


def log_odds(joint: Numbers) -> Numbers:
    """Log odds of every class against all others, from logs of joint probabilities: comparable from row to row.

    Of the likeliest class the others are summed up without it; 1 less its probability would be rounded to nothing.

    Examples
    --------
    >>> log_odds(np.log([[0.3, 0.1, 0.1]])).round(3).tolist()
    [[0.405, -1.386, -1.386]]
    """
    if joint.shape[1] == 1:
        return joint
    likeliest = np.arange(len(joint)), joint.argmax(axis=1)
    others = joint.copy()
    others[likeliest] = -np.inf
    log_shares = joint - logsumexp(joint, axis=1, keepdims=True)
    shares = np.exp(log_shares)
    shares[likeliest] = 0
    odds = log_shares - np.log1p(-shares)
    odds[likeliest] = joint[likeliest] - logsumexp(others, axis=1)
    return np.asarray(odds)


def _naive_bayes_of_intervals(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Naive Bayes with numbers in intervals, the leaves of a small tree for each column."""
    divided = cells.copy()
    for place in np.flatnonzero(is_numeric).tolist():
        column = cells[:, [place]]
        cuts = _small_tree(len(target), max_leaf_nodes=_INTERVALS).fit(column[~is_held_out], target)
        divided[:, place] = cuts.apply(column)
    return _naive_bayes(divided, np.zeros_like(is_numeric), target, is_held_out)


def _tree(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Probability of every class; categories are split in their order, which more splits make up for."""
    return _trained(_small_tree(len(target)), cells, target, is_held_out)


def _small_tree(n_rows: int, **limits: int) -> Any:
    fewest = max(5, n_rows // _LEAVES)
    return DecisionTreeClassifier(criterion="entropy", min_samples_leaf=fewest, random_state=0, **limits)


def _forest(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    return _trained(RandomForestClassifier(random_state=0), cells, target, is_held_out)


def _boosting(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    return _trained(HistGradientBoostingClassifier(early_stopping=False, random_state=0), cells, target, is_held_out)


def _logistic(
    cells: Numbers, is_numeric: NDArray[np.bool_], target: Places, is_held_out: NDArray[np.bool_]
) -> tuple[Places, Numbers]:
    """Linear in the numbers and in a 0/1 feature for every category."""
    features = sp.csr_array(cells[:, is_numeric])
    if not is_numeric.all():
        categories = OneHotEncoder().fit_transform(cells[:, ~is_numeric])
        features = sp.hstack([features, categories], format="csr")
    return _trained(LogisticRegression(max_iter=_STEPS), features, target, is_held_out)


def _trained(model: Any, features: Any, target: Places, is_held_out: NDArray[np.bool_]) -> tuple[Places, Numbers]:
    if target.min() == target.max():
        return target[:1], np.zeros((int(is_held_out.sum()), 1))
    with warnings.catch_warnings(), _threads().limit(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the attacker is then as good as so many steps make it
        model.fit(features[~is_held_out], target)
        return model.classes_, model.predict_proba(features[is_held_out])


@cache
def _threads() -> Any:
    """Thread pools of this process; more than one thread is slow on a busy machine, and may round otherwise."""
    return ThreadpoolController()


_ATTACKERS = {
    "naive-bayes": _naive_bayes,
    "naive-bayes-discretized": _naive_bayes_of_intervals,
    "c45": _tree,
    "logistic-regression": _logistic,
    "random-forest": _forest,
    "gradient-boosting": _boosting,
}
_SAY_JOINT_PROBABILITIES = ("naive-bayes", "naive-bayes-discretized")


def _folds(sensitive: Places) -> Places:
    """Deal the rows out to folds, value by value of the sensitive column."""
    shuffled = np.random.default_rng(_SEED).permutation(len(sensitive))
    dealt = shuffled[np.argsort(sensitive[shuffled], kind="stable")]
    fold_of_row = np.empty(len(sensitive), dtype=np.int64)
    fold_of_row[dealt] = np.arange(len(sensitive)) % min(N_FOLDS, len(sensitive))
    return fold_of_row


def _performance(metric: str, truth: Places, evidence: Numbers) -> float:
    there, counts = np.unique(truth, return_counts=True)
    if metric == "auc":
        if len(there) < 2:
            return 0.5
        areas = [roc_auc_score(truth == value, evidence[:, value]) for value in there]
        return float(np.average(areas, weights=counts))
    is_right = evidence.argmax(axis=1) == truth
    if metric == "balanced_accuracy":
        n_right = np.bincount(truth, weights=is_right)[there]
        return float(np.mean(n_right / counts))
    return float(is_right.mean())


# Whether an attacker gains by the choice of columns of a file that is larger than memory.
#
# The bound is estimated anew on a sample of the original's rows that the audit draws itself. Columns that give the
# protected one away are looked for in all rows.


_SHARE_OF_PAIRS = 16
_BYTES_A_PAIR = 8
_NAMES = ("n_rows", "n_values", "n_wanted", "n_pairs", "n_right", "n_common")
_PAIRS = "CREATE TEMP TABLE pairs AS SELECT c, w, count(*) AS n FROM cells GROUP BY c, w"
_FIGURES = """
WITH wanted AS (SELECT w, sum(n) AS n FROM pairs GROUP BY w),
common AS (SELECT w, n FROM wanted ORDER BY n DESC, w LIMIT 1),
by_value AS (
    SELECT count(*) AS n_pairs, sum(n) AS n, max(n) AS known,
        sum(CASE WHEN w IS NOT DISTINCT FROM common_w THEN n ELSE 0 END) AS guessed
    FROM pairs, (SELECT w AS common_w FROM common) GROUP BY c
)
SELECT sum(n)::BIGINT, count(*), (SELECT count(*) FROM wanted), sum(n_pairs)::BIGINT,
    sum(CASE WHEN n > 1 THEN known ELSE guessed END)::BIGINT, (SELECT n::BIGINT FROM common)
FROM by_value
"""


def check_large_breach(
    claims: Claims, original: LargeTable, has_roles: bool, memory: int, told: Told | None
) -> Iterator[Check | Unchecked]:
    """Check what a bound compares with and what it protects, with columns that give it away looked for in all rows."""

    def telling(names: Sequence[str], sensitive: str) -> list[str]:
        return telling_columns(original, names, sensitive, memory, told)

    around = Around(claims, Columns(original.outline), None, has_roles)
    for promise in claims.promises:
        if isinstance(promise.guarantee, BreachBound):
            yield from check_breach_promise(promise.guarantee, around, telling)


def measure_large(guarantee: BreachBound, original: LargeTable, told: Told | None = None) -> float:
    """Lower end of the interval around the privacy breach increase in percent, on the audit's own sample of rows.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with.
    """
    names = list(dict.fromkeys([*guarantee.baseline, guarantee.sensitive]))
    drawn = sampled_rows(original.n_rows, len(names))
    parts: dict[str, list[NDArray[np.int32] | pa.Array]] = {name: [] for name in names}
    n_read = 0
    for block in original.blocks(names, told=told):
        n_rows = len(block[names[0]])
        own = drawn[np.searchsorted(drawn, n_read) : np.searchsorted(drawn, n_read + n_rows)] - n_read
        n_read += n_rows
        for name, cells in block.items():
            parts[name].append(cells.take(pa.array(own)) if isinstance(cells, pa.Array) else cells[own])
    columns = {name: _column(original, name, parts[name]) for name in names}
    return estimate(guarantee, columns, np.arange(len(drawn)))


def _column(original: LargeTable, name: str, parts: Sequence[NDArray[np.int32] | pa.Array]) -> CodedColumn:
    values, kind = original.outline[name].values, original.schema[name].kind
    if original.is_open(name):
        return CodedColumn.encode(pa.chunked_array(parts, values.type), kind)
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
    return CodedColumn(codes, values).take(np.arange(len(codes)), kind)


def telling_columns(
    original: LargeTable, names: Sequence[str], sensitive: str, memory: int, told: Told | None = None
) -> list[str]:
    """Columns that equal or determine another one in all rows: counted in one pass, long ones by DuckDB.

    Raises
    ------
    InputError
        If a file changed while it was being read, or values cannot be counted in the memory given.
    """
    if not original.n_rows:
        return []
    few = _with_few_pairs(original, names, sensitive, memory)
    n_wanted = original.outline[sensitive].n_distinct
    counts = {name: np.zeros(original.outline[name].n_distinct * n_wanted, dtype=np.int64) for name in few}
    for block in original.blocks([*few, sensitive], told=told) if few else ():
        for name, counted in counts.items():
            counted += np.bincount(np.asarray(block[name]) * np.int64(n_wanted) + block[sensitive], None, len(counted))
    found = {name for name, counted in counts.items() if counts_tell(sp.csr_array(counted.reshape(-1, n_wanted)))}
    found |= {name for name in names if name not in counts and _tells(original, name, sensitive, memory)}
    return [name for name in names if name in found]


def _with_few_pairs(original: LargeTable, names: Sequence[str], sensitive: str, memory: int) -> list[str]:
    """Columns whose pairs of values take a small share of the memory together; long ones are not listed."""
    if original.is_open(sensitive):
        return []
    n_pairs = {n: original.outline[n].n_distinct * original.outline[sensitive].n_distinct for n in names}
    found, left = [], memory // _SHARE_OF_PAIRS // _BYTES_A_PAIR
    for name in sorted(names, key=n_pairs.__getitem__):
        if not original.is_open(name) and n_pairs[name] <= left:
            found.append(name)
            left -= n_pairs[name]
    return found


def _tells(original: LargeTable, name: str, sensitive: str, memory: int) -> bool:
    """Count pairs of one column by DuckDB, which spills them."""
    failures: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for block in original.blocks([name, sensitive]):
                yield pa.record_batch([pa.array(block[name]), pa.array(block[sensitive])], names=["c", "w"])
        except Exception as exc:  # kept, for the engine hides it
            failures.append(exc)
            raise

    types = [_stored_type(original, column) for column in (name, sensitive)]
    reader = pa.RecordBatchReader.from_batches(pa.schema(list(zip("cw", types, strict=True))), batches())
    try:
        with spilling_connection(memory) as connection:
            connection.register("cells", reader)
            connection.execute(_PAIRS)
            (figures,) = connection.execute(_FIGURES).fetchall()
    except (duckdb.Error, pa.ArrowException):
        if failures:
            raise failures[0] from None
        problem = "its values cannot be counted in the memory given"
        hint = "give more memory, or free space for spilling"
        raise InputError(problem, path=original.source.name, column=name, hint=hint, remedy=("memory",)) from None
    return figures_tell(**dict(zip(_NAMES, figures, strict=True)))


def _stored_type(original: LargeTable, name: str) -> pa.DataType:
    return original.outline[name].values.type if original.is_open(name) else pa.int32()
