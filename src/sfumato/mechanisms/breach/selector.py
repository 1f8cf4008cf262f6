"""Columns chosen by E(S): as much performance, as little breach, as few columns as the weights say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees.estimated import BREACH_ATTACKERS, BreachMetric
from sfumato.learning.c45.tree import refuse_repeated_names
from sfumato.learning.fold_scores import FoldTest
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Needs, ParameterSpec, Release
from sfumato.mechanisms.breach.drafting import breach_promise, checked_table, kept_columns
from sfumato.mechanisms.breach.evidence import (
    CONFIDENCE,
    choice_evidence,
    estimate_breach,
    performance_evidence,
    risk_evidence,
)
from sfumato.mechanisms.breach.problem import (
    BreachProblem,
    leaking_columns,
    pairs_give_away,
    problem_of_frame,
    problem_of_table,
    sensitive_name,
    target_name,
)
from sfumato.mechanisms.breach.search import (
    AcceptanceRule,
    ColumnSearch,
    OrderStability,
    Search,
    choices_from_random_orders,
    stability_evidence,
)
from sfumato.mechanisms.breach.subset_evaluation import (
    Learner,
    LearnerScores,
    RankedList,
    SubsetJudge,
    attacker_by_name,
    checked_attackers,
    checked_learner,
    needs_training,
)
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, evaluation_scores
from sfumato.mechanisms.containment.base import ChosenColumns, check_choices
from sfumato.progress import Progress
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table

# Parameters of the breach-aware selection: what is allowed, and how the command line offers them.


LISTS: Mapping[str, tuple[RankedList, ...]] = {
    "both": ("performance", "privacy"),
    "performance": ("performance",),
    "privacy": ("privacy",),
}

BREACH_PARAMETERS: Mapping[str, ParameterSpec] = {
    "max_breach_increase": ParameterSpec(
        "percent by which the attacker may do better than before; distp: as mere guessing; baseline: 0"
    ),
    "allow_increase": ParameterSpec("must be true for a max_breach_increase above 0"),
    "weights": ParameterSpec("weights of performance, privacy and size in E(S)"),
    "learner": ParameterSpec("what the recipient trains", tuple(BREACH_ATTACKERS)),
    "attacker": ParameterSpec("what the attacker trains: as for learner; A+B: the stronger of both; strongest"),
    "metric": ParameterSpec("performance of both"),
    "search": ParameterSpec("along ranked lists; or by E(S), adding or dropping columns"),
    "lists": ParameterSpec("ranked lists along which columns are dropped", tuple(LISTS)),
    "test": ParameterSpec("t-test for a loss of performance"),
    "max_performance_loss": ParameterSpec("largest loss of performance in percent; 100: only the test"),
    "n_random_orders": ParameterSpec(
        "random orders of the columns, to see if they lead to the same choice", at_least=0
    ),
    "n_folds": ParameterSpec("folds of the cross-validation"),
    "random_state": ParameterSpec("seed of the folds", at_least=0),
    "sensitive": ParameterSpec("which sensitive column, or the target's name"),
    "n_workers": ParameterSpec("processes to train in; default: all cores for a large table"),
}


AlphaName = Literal["distp", "baseline"]
"""α by name: the PBI of guessing the most frequent sensitive value (the paper's own choice), or that of all columns."""


def checked_rule(selector: Any) -> AcceptanceRule:
    """Check a selector's parameters that are no learners, and return when a set of columns is a candidate.

    Of an α by name that must be measured, the rule is that of 0; see :func:`rule_by_name`.
    """
    check_choices(selector, "metric", "search", "lists", "test")
    selector.check_parameters("random_state", "n_random_orders")
    alpha, loss = selector.max_breach_increase, selector.max_performance_loss
    if isinstance(alpha, str) and alpha in get_args(AlphaName):
        alpha = 0.0
    if not _is_number(alpha):
        allowed = f"a number of percent, or {' or '.join(get_args(AlphaName))}"
        raise InvalidParameterError("max_breach_increase", f"got {alpha!r}", allowed=allowed)
    if loss is not None and not _is_number(loss):
        raise InvalidParameterError("max_performance_loss", f"got {loss!r}", allowed="a percentage or None")
    return AcceptanceRule(float(alpha), selector.allow_increase, bound_path=alpha >= 0, max_performance_loss=loss)


def rule_by_name(rule: AcceptanceRule, given: float | AlphaName, judge: SubsetJudge) -> AcceptanceRule:
    """Put the measured number in the place of α by name.

    Without any column an attacker says the most frequent value; the paper's DistP is his share of right answers.
    """
    if given != "distp":
        return rule
    alpha = judge.breach_increase(())
    if alpha > 0 and not rule.allow_increase:
        problem = "got distp, and with all columns the attacker does worse than by mere guessing"
        hint = "name another attacker, take baseline, or set allow_increase"
        raise InvalidParameterError("max_breach_increase", problem, allowed="at most 0", hint=hint)
    return replace(rule, max_breach_increase=alpha, bound_path=alpha >= 0)


def three_weights(given: Sequence[float] | Mapping[str, float]) -> EvaluationWeights:
    """Weights by name or in order, refused before any training where E(S) would refuse them."""
    allowed = "three numbers, for performance, privacy and size"
    if isinstance(given, Mapping):
        if not set(given) <= set(EvaluationWeights._fields):
            raise InvalidParameterError("weights", f"got the names {', '.join(map(str, given))}", allowed=allowed)
        given = [given.get(name, 0.0) for name in EvaluationWeights._fields]
    if isinstance(given, str) or np.ndim(given) != 1 or len(given) != 3 or not all(map(_is_number, given)):
        raise InvalidParameterError("weights", f"got {given!r}", allowed=allowed)
    weights = EvaluationWeights(*map(float, given))
    evaluation_scores([1.0], [0.0], [1], weights)
    return weights


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


# How far a search is, counted in trainings, so that a bar can tell the time left.


class TrainingCount:
    """Counts trainings done of those that a search still needs at most.

    Sets that were scored before, or need no attacker because they lose performance, come off the total.

    Parameters
    ----------
    progress : callable
        Called as ``progress(done, total, "models trained")``; ``total`` may shrink.
    per_set : int
        Trainings for one set of columns: folds times learners that are trained.
    n_columns, n_lists : int
        The baseline, the sets without one column, and a walk along each list are expected.

    Examples
    --------
    >>> calls = []
    >>> count = TrainingCount(lambda *call: calls.append(call), per_set=10, n_columns=3, n_lists=1)
    >>> count.trained(1, 10, "trees")
    >>> count.tried(2, 3, "columns tried")
    >>> calls
    [(1, 60, 'models trained'), (1, 11, 'models trained')]
    """

    def __init__(self, progress: Progress, per_set: int, n_columns: int, n_lists: int) -> None:
        self._progress = progress
        self._per_set = per_set
        self._done = 0
        self._total = per_set * (1 + n_columns + n_lists * (n_columns - 1))  # a walk's first set is known

    def trained(self, done: int, total: int, what: str) -> None:
        """Count one training; the numbers given are those of one set and are not used."""
        self._done += 1
        self._report(max(self._total, self._done))

    def tried(self, done: int, total: int, what: str) -> None:
        """Expect trainings for the columns that are still to be tried."""
        self._report(min(self._total, self._done + self._per_set * (total - done)))

    def _report(self, total: int) -> None:
        self._total = total
        self._progress(self._done, total, "models trained")


# Columns chosen on a sample of a file's rows: what is known of all rows besides, and how the manifest says so.


Counts = NDArray[np.int64]


class WholeFile(Protocol):
    """What is known of all rows, of which a sample is at hand."""

    @property
    def outline(self) -> Table:
        """Every column by itself, with its values and their counts."""
        ...

    @property
    def pairs(self) -> Mapping[str, Counts]:
        """Rows that hold each value of a column with each of the attacked one; columns with too many are not there."""
        ...

    def anonymity_level(self, names: Sequence[str]) -> int | None:
        """Count the rows of the rarest combination, if that is possible."""
        ...


def paired_columns(schema: Schema, sensitive: str | None) -> tuple[tuple[str, ...], str]:
    """Columns that are released or offered, and the one that an attacker wants, with which they are to be counted."""
    wanted = sensitive_name(schema, target_name(schema), sensitive)
    roles = (Role.QUASI_IDENTIFIER, Role.TARGET, Role.OTHER)
    return tuple(name for name in schema.names(*roles) if name != wanted), wanted


def judged_on_all_rows(problem: BreachProblem, target: str, whole: WholeFile, n_sampled: int) -> BreachProblem:
    """Look for columns that give the sensitive one away on all rows, where their values are not too many.

    Raises
    ------
    SchemaError
        If the sample holds one value only of a column that has several.
    """
    for name, codes in ((target, problem.target), (problem.sensitive_name, problem.sensitive)):
        if codes.min() == codes.max() and whole.outline[name].n_distinct > 1:
            text = f"has one value only in the sample of {n_sampled:,} rows, and others are too rare to be learned"
            raise SchemaError(text, column=name, hint="group its values in the file first, or choose another column")
    columns = problem.released_or_offered
    unknown = {name: codes for name, codes in columns.items() if name not in whole.pairs}
    in_sample = leaking_columns(unknown, problem.sensitive)
    leaks = tuple(name for name in columns if name in in_sample or (name in whole.pairs and _leaks(whole.pairs[name])))
    return replace(problem, leaks=leaks)


def _leaks(pairs: Counts) -> bool:
    values, wanted = np.nonzero(pairs)
    return pairs_give_away(values, wanted, pairs[values, wanted])


def risk_on_sample(risk: Mapping[str, Any], problem: BreachProblem, whole: WholeFile, n_sampled: int) -> dict[str, Any]:
    """Say which of the figures of a risk come from a sample, and put those of all rows in where they are known."""
    n_rows, counts = whole.outline.n_rows, whole.outline[problem.sensitive_name].counts
    is_counted = risk["anonymity_level"] is not None
    left_out = {} if is_counted else {"anonymity_level_left_out": "the combinations are too many to be counted"}
    share = {"share_of_the_most_frequent_value": float(counts.max() / n_rows)} if len(counts) else {}
    return {
        **{name: value for name, value in risk.items() if name != "anonymity_level" or is_counted},
        **share,
        **left_out,
        "estimated_on_rows": n_sampled,
        "of_rows": n_rows,
        "what_this_is": f"{risk['what_this_is']}; they rest on a sample of {n_sampled:,} of {n_rows:,} rows; columns "
        "that give the sensitive one away are looked for in all rows before anything is published",
    }


class BreachAwareSelector(ChosenColumns, Mechanism, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Keep the columns with the highest E(S) among those with a privacy breach increase (PBI) of at most α.

    Candidates come from backward elimination along columns ranked for performance and for privacy, as in [PBI17]_. The
    bound is an estimate by cross-validation for one kind of attacker, not a proof. With α below 0 the elimination goes
    on through sets above it, as in the paper's example (see ``AcceptanceRule.bound_path``).

    Parameters
    ----------
    max_breach_increase : float, "distp" or "baseline", default=0
        α in percent: by how much better than with all columns an attacker may predict the sensitive column. "distp" is
        the PBI of guessing the most frequent value, the paper's own choice: no set with which an attacker does better
        than that; "baseline" is that of all columns, 0.
    allow_increase : bool, default=False
        Must be true for an α above 0.
    weights : sequence of 3 float or mapping, default=(1/3, 1/3, 1/3)
        Of performance, privacy and size in E(S), or by these names, where one that is not named counts 0. Divided by
        their sum, which the evidence then notes.
    learner : str or classifier
        Of the recipient, for the target: "naive-bayes" (normal distributions of numbers), "naive-bayes-discretized",
        "c45", "logistic-regression", "random-forest", "gradient-boosting", or any scikit-learn classifier.
    attacker : str, classifier or list of these
        For the sensitive column, as learner. Of several, in a list or joined by "+", the strongest counts for every
        set of columns; "strongest" is "naive-bayes+c45". ``release`` takes names only, as the audit trains its own.
    metric : {"accuracy", "balanced_accuracy", "auc"}
        Performance of both.
    search : {"lists", "forward", "backward"}
        Along ranked lists, as in the paper; or by E(S) on the fly, adding or dropping one column at a time (see
        :func:`sfumato.mechanisms.breach.search.search_by_score`), where ``lists``, ``test`` and
        ``max_performance_loss`` do not count: performance is what the weights make of it.
    lists : {"both", "performance", "privacy"}
        Ranked lists along which columns are dropped.
    test : {"corrected", "paired"}
        Whether a loss of performance is significant: Nadeau and Bengio's corrected t-test, or the paper's.
    max_performance_loss : float or None, default=5
        Largest loss of performance in percent of that with all columns, significant or not. None, and on the command
        line 100, leaves it to the test, as the paper does.
    n_random_orders : int, default=0
        Random orders along which the columns are dropped as well, for the evidence only: how many lead to the choice.
    n_folds : int, default=10
    random_state : int, default=0
        Of the folds, which depend on the values of the rows and not on their order, of learners that draw numbers, and
        of random orders.
    sensitive : str or None
        Which sensitive column, if the table has several; the target's name if that is what an attacker wants (C = SA).
    n_workers : int or None
        Processes to train in; the result does not depend on it. None is every core for a large table, else 1.

    Attributes
    ----------
    selected_columns_ : ndarray of int
        Places of the chosen columns.
    offered_columns_ : ndarray of int
        Places of the columns that could be chosen: all but the sensitive one.
    search_ : CandidateSearch
        All candidates; its column numbers are places in ``offered_columns_``.
    chosen_ : Candidate
    max_breach_increase_ : float
        α as a number.
    breach_ : BreachEstimate
        PBI of the choice with its interval.
    stability_ : OrderStability or None
        Choices in random orders.

    Notes
    -----
    ``release`` drops every column with the role sensitive, as an attacker wants it; a target that is named as sensitive
    is released, and the bound is then about predicting it for people whose value is not in the release. A column that
    equals or determines the sensitive one is refused, also where it would be dropped: compared with it, every release
    looks safe. Attackers train on quasi-identifiers only, not on the target and other columns, which are released too.

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
    counts_persons: ClassVar[bool] = True  # nothing is counted; its folds keep the rows of a person together
    needs: ClassVar[Needs] = Needs.SAMPLE
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = BREACH_PARAMETERS

    def __init__(
        self,
        max_breach_increase: float | AlphaName = 0.0,
        allow_increase: bool = False,
        weights: Sequence[float] | Mapping[str, float] = (1 / 3, 1 / 3, 1 / 3),
        learner: str | Learner = "naive-bayes",
        attacker: str | Learner | Sequence[Learner] = "naive-bayes",
        metric: BreachMetric = "accuracy",
        search: Search = "lists",
        lists: str = "both",
        test: FoldTest = "corrected",
        max_performance_loss: float | None = 5.0,
        n_random_orders: int = 0,
        n_folds: int = 10,
        random_state: int = 0,
        sensitive: str | None = None,
        n_workers: int | None = None,
    ) -> None:
        self.max_breach_increase = max_breach_increase
        self.allow_increase = allow_increase
        self.weights = weights
        self.learner = learner
        self.attacker = attacker
        self.metric = metric
        self.search = search
        self.lists = lists
        self.test = test
        self.max_performance_loss = max_performance_loss
        self.n_random_orders = n_random_orders
        self.n_folds = n_folds
        self.random_state = random_state
        self.sensitive = sensitive
        self.n_workers = n_workers

    def fit(self, X: Any, y: Any, sensitive: Any = None) -> Self:
        """Choose columns of a data frame or an array.

        Parameters
        ----------
        sensitive : array_like or None
            What an attacker wants of every row. None takes the column of ``X`` that the parameter ``sensitive`` names,
            which is never chosen, or without such a name the target (C = SA).
        """
        refuse_repeated_names(X)
        try:
            validate_data(self, X, skip_check_array=True)
        except TypeError:
            allowed = "a table of rows and columns, whose names are all text or all numbers"
            raise InvalidParameterError("X", "it is not", allowed=allowed) from None
        problem = problem_of_frame(X, y, sensitive, self.sensitive)
        self._fit(problem, None)
        self.offered_columns_ = np.array(problem.places, dtype=np.intp)
        self.selected_columns_ = self.offered_columns_[list(self.chosen_.columns)]
        return self

    def _fit(self, problem: BreachProblem, progress: Progress | None) -> None:
        rule = checked_rule(self)
        learner, attackers = checked_learner("learner", self.learner), checked_attackers(self.attacker)
        weights, lists = three_weights(self.weights), LISTS[self.lists]
        problem.check()
        is_same = problem.is_target_sensitive and attackers == (learner,)
        trained = [one for one in (learner, *(() if is_same else attackers)) if needs_training(one)]
        count = None
        if progress is not None and trained and self.search == "lists":
            count = TrainingCount(progress, self.n_folds * len(trained), len(problem.columns), len(lists))
        tried, trained_one = (progress, None) if count is None else (count.tried, count.trained)
        ordered = problem.in_order_of_values()
        seed = int(self.random_state)
        with LearnerScores(ordered, self.metric, self.n_folds, seed, self.n_workers, trained_one) as made:
            performance = made.of([learner], ordered.target)
            attack = None if is_same else made.of(attackers, ordered.sensitive)
            judge = SubsetJudge(performance, attack, test=self.test)
            rule = rule_by_name(rule, self.max_breach_increase, judge)
            self.max_breach_increase_ = rule.max_breach_increase
            search = ColumnSearch(self.search, lists, rule, weights)
            self.search_, self.chosen_ = search.run(judge, progress if count is None else None, tried)
            self.stability_ = self._stability(judge, search, progress if count is None else None)
            scores = (attack or performance).scores
            everything = range(len(problem.columns))
            self.breach_ = estimate_breach(scores(self.chosen_.columns), scores(everything), CONFIDENCE)

    def _stability(self, judge: SubsetJudge, search: ColumnSearch, progress: Progress | None) -> OrderStability | None:
        if not self.n_random_orders:
            return None
        n_orders, seed = int(self.n_random_orders), int(self.random_state)
        return choices_from_random_orders(
            judge, search.weights, search.rule, n_orders=n_orders, random_state=seed, progress=progress
        )

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
            If roles are missing, the sensitive column has one value only, or a column equals or determines it.
        """
        return self._release(checked_table(table), None, progress)

    def sampled_pairs(self, schema: Schema) -> tuple[tuple[str, ...], str]:
        """Columns to count on all rows with another one, and that one, where columns are chosen on a sample."""
        return paired_columns(schema, self.sensitive)

    def release_sample(self, sample: Table, whole: WholeFile, *, progress: Progress | None = None) -> Release:
        """Choose columns on a sample of rows; the table of the release describes them by themselves, on all rows."""
        return self._release(sample, whole, progress)

    def _release(self, rows: Table, whole: WholeFile | None, progress: Progress | None) -> Release:
        original = rows if whole is None else whole.outline
        problem, attacker = problem_of_table(rows, self.sensitive), attacker_by_name(self.attacker)
        is_sample = whole is not None and rows.n_rows < original.n_rows
        if whole is not None and is_sample:
            problem = judged_on_all_rows(problem, target_name(rows.schema), whole, rows.n_rows)
        self._fit(problem, progress)
        names = problem.names
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        self.offered_columns_ = np.arange(len(names), dtype=np.intp)
        self.selected_columns_ = np.array(self.chosen_.columns, dtype=np.intp)
        chosen = tuple(names[place] for place in self.chosen_.columns)
        evidence = self._evidence(problem, rows, chosen)
        if whole is not None and is_sample:
            risk = {**evidence["risk"], "anonymity_level": whole.anonymity_level(chosen)}
            evidence["risk"] = risk_on_sample(risk, problem, whole, rows.n_rows)
        return self._drafted(original, problem, chosen, attacker, evidence)

    def _drafted(
        self, original: Table, problem: BreachProblem, chosen: tuple[str, ...], attacker: str, evidence: dict[str, Any]
    ) -> Release:
        released = kept_columns(original, chosen)
        promise = breach_promise(problem, original.schema, chosen, self.max_breach_increase_, attacker, self.metric)
        manifest = draft_manifest(
            original,
            released,
            mechanism=self.mechanism_name,
            parameters=self._parameters(),
            guarantees=[promise],
            evidence=evidence,
            seed=int(self.random_state),
        )
        return Release(released, manifest)

    def _parameters(self) -> dict[str, Any]:
        """Parameters that matter to the result, as plain data; the number of workers does not."""
        given = self.get_params(deep=False) | {
            "max_breach_increase": self.max_breach_increase_,
            "weights": list(three_weights(self.weights)),
            "attacker": attacker_by_name(self.attacker),
            "learner": self.learner if isinstance(self.learner, str) else type(self.learner).__name__,
        }
        del given["n_workers"]
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}

    def _evidence(self, problem: BreachProblem, rows: Table, chosen: Sequence[str]) -> dict[str, Any]:
        found = self.stability_
        stability = {} if found is None else {"stability": stability_evidence(found, self.chosen_, problem.names)}
        _, class_sizes = np.unique(rows.codes(chosen), axis=0, return_counts=True)
        return {
            "utility": {
                "n_columns_offered": len(problem.columns),
                "n_columns_released": len(chosen),
                **performance_evidence(self.chosen_, self.search_.baseline),
                "test": self.test,
            },
            "risk": risk_evidence(self.breach_, problem, anonymity_level(class_sizes)),
            "choice": choice_evidence(self.search_, three_weights(self.weights), self.chosen_, problem.names)
            | ({"alpha": self.max_breach_increase} if isinstance(self.max_breach_increase, str) else {}),
            **stability,
        }


DECLARATION = MechanismInfo(
    BreachAwareSelector,
    why="keeps columns that predict the target without helping to predict the sensitive column",
    promises="a bound on how much better an attacker predicts the sensitive column: an estimate, not a proof",
    compared=Compared(({"n_workers": 1},), for_each_sensitive="sensitive", most_columns=100),
    guarantee="breach-bound",
    needs_target=True,
    cost=60.0,
)
