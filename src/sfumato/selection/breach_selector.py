"""Columns chosen by E(S): as much performance, as little breach, as few columns as the weights say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sfumato.contract import MechanismInfo, Parameter, Progress, Release
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.estimated_guarantees import BreachAttacker, BreachBound, BreachMetric
from sfumato.learning.fold_scores import StrongestScores, SubsetScores, folds
from sfumato.learning.naive_bayes import NaiveBayesScores
from sfumato.learning.tree_scores import TreeScores
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.schema import Kind, Role
from sfumato.selection.base import check_choice
from sfumato.selection.breach import AcceptanceRule, CandidateSearch, candidate_subsets, rank_columns
from sfumato.selection.breach_evidence import choice_evidence, estimate_breach
from sfumato.selection.breach_problem import BreachProblem, problem_of_frame, problem_of_table
from sfumato.selection.judging import RankedList, SubsetJudge
from sfumato.selection.significance import FOLD_TESTS, FoldTest
from sfumato.selection.support import ChosenColumns
from sfumato.selection.tradeoff import EvaluationWeights
from sfumato.table.coding import Table

LEARNERS = ("naive-bayes", "c45")
LISTS: Mapping[str, tuple[RankedList, ...]] = {
    "both": ("performance", "privacy"),
    "performance": ("performance",),
    "privacy": ("privacy",),
}
CONFIDENCE = 0.95
EVEN = (1 / 3, 1 / 3, 1 / 3)


class BreachAwareSelector(ChosenColumns, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Keep the columns with the highest E(S) among those with a privacy breach increase (PBI) of at most α.

    Candidates come from backward elimination along columns ranked for performance and for privacy, as in [PBI17]_. The
    bound is an estimate by cross-validation for one kind of attacker, not a proof. With α below 0 the elimination goes
    on through sets above it, as in the paper's example (see ``AcceptanceRule.bound_path``).

    Parameters
    ----------
    max_breach_increase : float, default=0
        α in percent: by how much better than with all columns an attacker may predict the sensitive column.
    allow_increase : bool, default=False
        Must be true for an α above 0.
    weights : sequence of 3 float or mapping, default=(1/3, 1/3, 1/3)
        Of performance, privacy and size in E(S), or by these names, where one that is not named counts 0. Divided by
        their sum, which the evidence then notes.
    learner : {"naive-bayes", "c45"}
        Of the recipient, for the target.
    attacker : {"naive-bayes", "c45", "strongest"}
        For the sensitive column; the strongest is the better of the two for every set of columns.
    metric : {"accuracy", "balanced_accuracy", "auc"}
        Performance of both.
    lists : {"both", "performance", "privacy"}
        Ranked lists along which columns are dropped.
    test : {"corrected", "paired"}
        Whether a loss of performance is significant: Nadeau and Bengio's corrected t-test, or the paper's.
    n_folds : int, default=10
    random_state : int, default=0
        Of the folds, which depend on the values of the rows and not on their order.
    sensitive : str or None
        Which sensitive column, if the table has several; the target's name if that is what an attacker wants (C = SA).

    Attributes
    ----------
    selected_columns_ : ndarray of int
        Places of the chosen columns.
    search_ : CandidateSearch
        All candidates; its column numbers leave the sensitive column out.
    chosen_ : Candidate
    breach_ : BreachEstimate
        PBI of the choice with its interval.

    Notes
    -----
    ``release`` drops every column with the role sensitive, as an attacker wants it; a target that is named as sensitive
    is released, and the bound is then about predicting it for people whose value is not in the release. A column that
    equals the sensitive one is refused, also where it would be dropped: compared with it, every release looks safe.
    Attackers train on quasi-identifiers only, not on the target and other columns that are released as well.

    References
    ----------
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, secret = rng.integers(2, size=200), rng.integers(2, size=200)
    >>> X = np.column_stack([y + rng.normal(size=200) / 4, secret + rng.normal(size=200) / 4])
    >>> BreachAwareSelector().fit(X, y, secret).get_support().tolist()
    [True, False]
    """

    mechanism_name: ClassVar[str] = "breach-aware"

    def __init__(
        self,
        max_breach_increase: float = 0.0,
        allow_increase: bool = False,
        weights: Sequence[float] | Mapping[str, float] = EVEN,
        learner: str = "naive-bayes",
        attacker: BreachAttacker = "naive-bayes",
        metric: BreachMetric = "accuracy",
        lists: str = "both",
        test: FoldTest = "corrected",
        n_folds: int = 10,
        random_state: int = 0,
        sensitive: str | None = None,
    ) -> None:
        self.max_breach_increase = max_breach_increase
        self.allow_increase = allow_increase
        self.weights = weights
        self.learner = learner
        self.attacker = attacker
        self.metric = metric
        self.lists = lists
        self.test = test
        self.n_folds = n_folds
        self.random_state = random_state
        self.sensitive = sensitive

    def fit(self, X: Any, y: Any, sensitive: Any = None) -> Self:
        """Choose columns of a data frame or an array.

        Parameters
        ----------
        sensitive : array_like or None
            What an attacker wants of every row. None takes the column of ``X`` that the parameter ``sensitive`` names,
            which is never chosen, or without such a name the target (C = SA).
        """
        validate_data(self, X, skip_check_array=True)
        problem = problem_of_frame(X, y, sensitive, self.sensitive)
        self._fit(problem, None)
        offered = list(getattr(self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)]))
        chosen = [offered.index(problem.names[place]) for place in self.chosen_.columns]
        self.selected_columns_ = np.array(sorted(chosen), dtype=np.intp)
        return self

    def _fit(self, problem: BreachProblem, progress: Progress | None) -> None:
        rule = self._checked_rule()
        problem.check()
        weights = _three_weights(self.weights)
        performance, attacker = self._scores(problem.in_order_of_values())
        is_same = problem.is_target_sensitive and self.attacker == self.learner
        judge = SubsetJudge(performance, None if is_same else attacker, test=self.test)
        ranking = rank_columns(judge, progress=progress)
        self.search_ = candidate_subsets(judge, ranking, rule, lists=LISTS[self.lists], progress=progress)
        found = self.search_.best(weights)
        if found is None:
            anything = AcceptanceRule(np.finfo(np.float64).max, allow_increase=True)
            raise _out_of_reach(rule, candidate_subsets(judge, ranking, anything, lists=LISTS[self.lists]))
        self.chosen_ = found
        everything = range(len(problem.columns))
        scores = (performance if is_same else attacker).scores
        self.breach_ = estimate_breach(scores(self.chosen_.columns), scores(everything), CONFIDENCE)

    def _checked_rule(self) -> AcceptanceRule:
        check_choice("learner", self.learner, LEARNERS)
        check_choice("attacker", self.attacker, get_args(BreachAttacker))
        check_choice("metric", self.metric, get_args(BreachMetric))
        check_choice("lists", self.lists, tuple(LISTS))
        check_choice("test", self.test, FOLD_TESTS)
        seed, alpha = self.random_state, self.max_breach_increase
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidParameterError("random_state", f"got {seed!r}", allowed="a whole number from 0")
        if not _is_number(alpha):
            raise InvalidParameterError("max_breach_increase", f"got {alpha!r}", allowed="a number of percent")
        return AcceptanceRule(float(alpha), bool(self.allow_increase), bound_path=alpha >= 0)

    def _scores(self, problem: BreachProblem) -> tuple[SubsetScores, SubsetScores]:
        """Scores of the recipient's learner and of the attacker's, each on folds of its own target."""
        n_folds, seed = self.n_folds, int(self.random_state)
        of_target, of_sensitive = folds(problem.target, n_folds, seed), folds(problem.sensitive, n_folds, seed)
        performance = _learner(self.learner, problem, problem.target, of_target, self.metric)
        if self.attacker != "strongest":
            return performance, _learner(self.attacker, problem, problem.sensitive, of_sensitive, self.metric)
        attackers = [_learner(kind, problem, problem.sensitive, of_sensitive, self.metric) for kind in LEARNERS]
        return performance, StrongestScores(attackers)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Choose quasi-identifiers of a table and release them with the target and columns of the role other.

        Raises
        ------
        PrivacyNotAchievableError
            If no set of columns that was found has a breach of at most α.
        SchemaError
            If roles are missing, the sensitive column has one value only, or a column equals it.
        """
        if not isinstance(table, Table):
            problem = "is a sparse 0/1 table, whose columns have no roles for an attacker to learn from"
            raise SchemaError(problem, hint="use a mechanism that selects features: see 'sfumato mechanisms'")
        problem_found = problem_of_table(table, self.sensitive)
        self._fit(problem_found, progress)
        names = problem_found.names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.selected_columns_ = np.array(self.chosen_.columns, dtype=np.intp)
        chosen = tuple(names[place] for place in self.chosen_.columns)
        travelling = table.schema.names(Role.TARGET, Role.OTHER)
        released = table.keep(name for name in table.schema.names() if name in chosen or name in travelling)
        promise = BreachBound(
            float(self.max_breach_increase),
            problem_found.sensitive_name,
            chosen,
            names,
            self.attacker,
            self.metric,
            CONFIDENCE,
            tuple(name for name in names if table.schema[name].kind is Kind.NUMERIC),
        )
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters=self._parameters(),
            guarantees=[promise],
            evidence=self._evidence(problem_found, released, chosen),
            seed=int(self.random_state),
        )
        return Release(released, manifest)

    def _parameters(self) -> dict[str, Any]:
        given = self.get_params(deep=False) | {"weights": list(_three_weights(self.weights))}
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    def _evidence(self, problem: BreachProblem, released: Table, chosen: Sequence[str]) -> dict[str, Any]:
        breach, baseline = self.breach_, self.search_.baseline
        _, class_sizes = np.unique(released.codes(chosen), axis=0, return_counts=True)
        is_target = "the target, which is released: the bound is about people whose value is not in the release"
        return {
            "utility": {
                "n_columns_offered": len(problem.columns),
                "n_columns_released": len(chosen),
                "performance": self.chosen_.performance,
                "performance_of_all_columns": baseline.performance,
                "p_value_of_the_difference": self.chosen_.p_value,
                "test": self.test,
            },
            "risk": {
                "breach_increase_percent": breach.increase,
                "breach_increase_interval": [round(breach.low, 6), round(breach.high, 6)],
                "confidence_of_the_interval": CONFIDENCE,
                "attacker_performance": breach.attack,
                "attacker_performance_with_all_columns": breach.attack_with_all,
                "share_of_the_most_frequent_value": problem.majority_fraction,
                "anonymity_level": anonymity_level(class_sizes),
                "sensitive_column": is_target if problem.is_target_sensitive else "not released",
                "what_this_is": "estimates by cross-validation for one kind of attacker; nothing is proven",
            },
            "choice": choice_evidence(self.search_, _three_weights(self.weights), self.chosen_),
        }


def _learner(
    kind: str, problem: BreachProblem, target: NDArray[np.intp], fold_of_row: NDArray[np.intp], metric: BreachMetric
) -> SubsetScores:
    if kind == "c45":
        return TreeScores(problem.columns, target, fold_of_row, metric)
    return NaiveBayesScores(problem.columns, target, fold_of_row, metric)


def _out_of_reach(rule: AcceptanceRule, without_bound: CandidateSearch) -> PrivacyNotAchievableError:
    """Say which breach the sets that keep the performance do reach."""
    least = min(candidate.breach_increase for candidate in without_bound.compared)
    promise = f"a breach increase of at most {rule.max_breach_increase:g}% by dropping columns"
    hint = "raise max_breach_increase, or use another attacker or list"
    return PrivacyNotAchievableError(promise, best_level=least, hint=hint)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _three_weights(given: Sequence[float] | Mapping[str, float]) -> EvaluationWeights:
    """Weights by name or in order; which sums are allowed is for E(S) to say."""
    allowed = "three numbers, for performance, privacy and size"
    if isinstance(given, Mapping):
        if not set(given) <= set(EvaluationWeights._fields):
            raise InvalidParameterError("weights", "got other names", allowed=allowed)
        given = [given.get(name, 0.0) for name in EvaluationWeights._fields]
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != 3 or not all(map(_is_number, given)):
        raise InvalidParameterError("weights", "got something else", allowed=allowed)
    return EvaluationWeights(*map(float, given))


MECHANISMS = (
    MechanismInfo(
        name=BreachAwareSelector.mechanism_name,
        build=BreachAwareSelector,
        why="keeps the columns that predict the target and do not help to predict the sensitive column",
        promises="a bound on how much better an attacker predicts the sensitive column: an estimate, not a proof",
        parameters=(
            Parameter("max_breach_increase", float, 0.0, "percent by which an attacker may do better than before"),
            Parameter("allow_increase", bool, False, "must be true for a max_breach_increase above 0"),
            Parameter("weights", dict, EVEN, "of performance, privacy and size in E(S)"),
            Parameter("learner", str, "naive-bayes", "what the recipient trains", LEARNERS),
            Parameter("attacker", str, "naive-bayes", "what the attacker trains", get_args(BreachAttacker)),
            Parameter("metric", str, "accuracy", "performance of both", get_args(BreachMetric)),
            Parameter("lists", str, "both", "ranked lists along which columns are dropped", tuple(LISTS)),
            Parameter("test", str, "corrected", "t-test for a loss of performance", FOLD_TESTS),
            Parameter("n_folds", int, 10, "folds of the cross-validation"),
            Parameter("random_state", int, 0, "seed of the folds"),
            Parameter("sensitive", str, None, "which sensitive column, or the target's name"),
        ),
    ),
)
