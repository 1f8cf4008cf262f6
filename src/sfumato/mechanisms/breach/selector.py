"""Columns chosen by E(S): as much performance, as little breach, as few columns as the weights say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees.estimated import BreachMetric
from sfumato.guarantees.forms import USUAL_DIGITS
from sfumato.learning.fold_scores import FoldTest
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Needs, Release
from sfumato.mechanisms.breach.drafting import BreachMechanism, breach_promise, checked_table, kept_columns
from sfumato.mechanisms.breach.evidence import (
    CONFIDENCE,
    choice_evidence,
    estimate_breach,
    performance_evidence,
    risk_evidence,
)
from sfumato.mechanisms.breach.factors import FurtherFactors, checked_factors
from sfumato.mechanisms.breach.parameters import (
    BREACH_PARAMETERS,
    LISTS,
    AlphaName,
    TrainingCount,
    checked_rule,
    rule_by_name,
    three_weights,
)
from sfumato.mechanisms.breach.problem import (
    BreachProblem,
    leaking_columns,
    pairs_give_away,
    problem_of_table,
    sensitive_name,
    target_name,
)
from sfumato.mechanisms.breach.search import (
    ColumnSearch,
    OrderStability,
    Search,
    choices_from_random_orders,
    stability_evidence,
)
from sfumato.mechanisms.breach.subset_evaluation import (
    Learner,
    LearnerScores,
    SubsetJudge,
    attacker_by_name,
    checked_attackers,
    checked_learner,
    needs_training,
)
from sfumato.mechanisms.breach.then_recode import (
    USUAL_K,
    CellJudging,
    CoarsenedChoice,
    ThenRecode,
    coarsened_choice,
    recoder_of,
)
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table

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

    def gives_away(pairs: Counts) -> bool:
        values, wanted = np.nonzero(pairs)
        return pairs_give_away(values, wanted, pairs[values, wanted])

    in_all = {name for name in columns if name in whole.pairs and gives_away(whole.pairs[name])}
    return replace(problem, leaks=tuple(name for name in columns if name in in_sample or name in in_all))


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


class BreachAwareSelector(BreachMechanism):
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
    factors : mapping of str to float or None
        Weights of further factors of E(S), by name: see :data:`sfumato.mechanisms.breach.factors.FURTHER_FACTORS`.
    k : int or None
        ``release`` coarsens the chosen columns to k-anonymity, and promises both: the breach is estimated on the
        coarsened cells, and where it is above α there, the next set by E(S) is coarsened. With ``then`` the default
        is 5. ``fit`` chooses columns only.
    then : {"mondrian", "global-recoding", "gain-recoding", "local-recoding"} or None
        Mechanism that coarsens them; with ``k`` the default is mondrian.
    then_settings : mapping or None
        Its settings other than k.

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
    coarsened_ : CoarsenedChoice or None
        What ``release`` made of the choice, where a k is asked for.

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
        factors: Mapping[str, float] | None = None,
        k: int | None = None,
        then: ThenRecode | None = None,
        then_settings: Mapping[str, Any] | None = None,
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
        self.factors = factors
        self.k = k
        self.then = then
        self.then_settings = then_settings

    def fit(self, X: Any, y: Any, sensitive: Any = None) -> Self:
        """Choose columns of a data frame or an array.

        Parameters
        ----------
        sensitive : array_like or None
            What an attacker wants of every row. None takes the column of ``X`` that the parameter ``sensitive`` names,
            which is never chosen, or without such a name the target (C = SA).
        """
        problem = self.frame_problem(X, y, sensitive)
        self._fit(problem, None)
        self.offered_columns_ = np.array(problem.places, dtype=np.intp)
        self.selected_columns_ = self.offered_columns_[list(self.chosen_.columns)]
        return self

    def check_parameters(self, *names: str) -> None:
        """Refuse what the declarations do not allow, and weights and factors by which no search could choose."""
        super().check_parameters(*names)
        if not names or "weights" in names:
            three_weights(self.weights)
        if not names or "factors" in names:
            checked_factors(self.factors)

    def _fit(self, problem: BreachProblem, progress: Progress | None) -> None:
        rule = checked_rule(self)
        learner, attackers = checked_learner("learner", self.learner), checked_attackers(self.attacker)
        weights, lists = three_weights(self.weights), LISTS[self.lists]
        further = checked_factors(self.factors)
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
            self.factors_ = FurtherFactors(further, [column.codes for column in problem.columns]) if further else None
            search = ColumnSearch(self.search, lists, rule, weights, self.factors_)
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
            judge,
            search.weights,
            search.rule,
            n_orders=n_orders,
            random_state=seed,
            factors=search.factors,
            progress=progress,
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
        wanted = sensitive_name(schema, target_name(schema), self.sensitive)
        roles = (Role.QUASI_IDENTIFIER, Role.TARGET, Role.OTHER)
        return tuple(name for name in schema.names(*roles) if name != wanted), wanted

    def release_sample(self, sample: Table, whole: WholeFile, *, progress: Progress | None = None) -> Release:
        """Choose columns on a sample of rows; the table of the release describes them by themselves, on all rows."""
        return self._release(sample, whole, progress)

    def _release(self, rows: Table, whole: WholeFile | None, progress: Progress | None) -> Release:
        original = rows if whole is None else whole.outline
        problem, attacker = problem_of_table(rows, self.sensitive), attacker_by_name(self.attacker)
        is_sample = whole is not None and rows.n_rows < original.n_rows
        if whole is not None and is_sample:
            problem = judged_on_all_rows(problem, target_name(rows.schema), whole, rows.n_rows)
        recoder = self._recoder()
        if recoder is not None and whole is not None:
            problem_of_k = "coarsening the chosen columns needs the whole table in memory"
            raise InvalidParameterError("k", problem_of_k, allowed="left out here, and then as well")
        self._fit(problem, progress)
        self.coarsened_ = None if recoder is None else self._coarsened(recoder, rows, problem, progress)
        chosen = self.choose_from_table(problem, self.chosen_.columns)
        self.offered_columns_ = np.arange(len(problem.names), dtype=np.intp)
        evidence = self._evidence(problem, rows, chosen)
        if whole is not None and is_sample:
            risk = {**evidence["risk"], "anonymity_level": whole.anonymity_level(chosen)}
            evidence["risk"] = risk_on_sample(risk, problem, whole, rows.n_rows)
        return self._drafted(original, problem, chosen, attacker, evidence)

    def _recoder(self) -> Mechanism | None:
        self.check_parameters("k", "then")
        return recoder_of(self.then, self.k, self.then_settings)

    def why_rows_count(self) -> str:
        """Say what is done by rows, which depends on what coarsens the chosen columns."""
        recoder = self._recoder()
        return "" if recoder is None else recoder.why_rows_count()

    def _coarsened(
        self, recoder: Mechanism, rows: Table, problem: BreachProblem, progress: Progress | None
    ) -> CoarsenedChoice:
        """Coarsen the chosen columns or, if that makes the breach too high, the next set; that is then the choice."""
        in_order = self.search_.safe_in_order(three_weights(self.weights), factors=self.factors_)
        others = [candidate for candidate in in_order if candidate != self.chosen_]
        learner, attackers = checked_learner("learner", self.learner), checked_attackers(self.attacker)
        judging = CellJudging(learner, attackers, self.metric, self.n_folds, int(self.random_state), self.n_workers)
        found = coarsened_choice([self.chosen_, *others], rows, problem, recoder, self.search_.rule, judging, progress)
        self.chosen_, self.breach_ = found.chosen, found.breach
        return found

    def _drafted(
        self, original: Table, problem: BreachProblem, chosen: tuple[str, ...], attacker: str, evidence: dict[str, Any]
    ) -> Release:
        made = None if self.coarsened_ is None else self.coarsened_.made
        released = kept_columns(original, chosen) if made is None else made.table
        bound = breach_promise(problem, original.schema, chosen, self._stated_increase, attacker, self.metric)
        manifest = draft_manifest(
            original,
            released,
            mechanism=self.mechanism_name,
            parameters=self._parameters(),
            guarantees=[*(() if made is None else made.manifest.promised()), bound],
            evidence=evidence,
            seed=int(self.random_state),
            suppressed_rows=0 if made is None else made.manifest.suppressed_rows,
            recodings=() if made is None else made.manifest.recodings,
        )
        return Release(released, manifest, kept_rows=None if made is None else made.kept_rows)

    @property
    def _stated_increase(self) -> float:
        """Bound that is stated: the one that was given or, of one by name, what was measured, rounded up."""
        found = self.max_breach_increase_
        return math.ceil(100 * found) / 100 if isinstance(self.max_breach_increase, str) else found

    def _parameters(self) -> dict[str, Any]:
        """Parameters that matter to the result, as plain data; newer ones where they are given, so not the workers."""
        given: dict[str, Any] = {
            "max_breach_increase": self._stated_increase,
            "weights": [float(f"{weight:.{USUAL_DIGITS}g}") for weight in three_weights(self.weights)],
        }
        recoder = self._recoder()
        if recoder is not None:
            stated = vars(recoder)  # numbers that were given as texts are numbers there
            settings = {name: stated[name] for name in self.then_settings or () if name in stated}
            given |= {"k": int(self.k or USUAL_K), "then": recoder.mechanism_name, "then_settings": settings}
        newer = ("factors", "k", "then", "then_settings")
        return self.plain_parameters(given, [n for n in newer if not given.get(n, getattr(self, n))])

    def _evidence(self, problem: BreachProblem, rows: Table, chosen: Sequence[str]) -> dict[str, Any]:
        found, coarse = self.stability_, self.coarsened_
        stability = {} if found is None else {"stability": stability_evidence(found, self.chosen_, problem.names)}
        name_of_alpha = {"alpha": self.max_breach_increase} if isinstance(self.max_breach_increase, str) else {}
        released, compared, by_recoder = rows, (self.chosen_, self.search_.baseline), {}
        if coarse is not None:
            released, compared = coarse.made.table.coded_part, (coarse.released, coarse.baseline)
            by_recoder = dict(coarse.made.manifest.evidence)
            # the limit is a setting of the recoder, which is not stated here
            by_recoder["utility"] = {
                name: figure for name, figure in by_recoder["utility"].items() if name != "suppression_limit_counts"
            }
        _, class_sizes = np.unique(released.codes(chosen), axis=0, return_counts=True)
        level = anonymity_level(class_sizes)
        return {
            **by_recoder,
            "utility": {
                **by_recoder.get("utility", {}),
                "n_columns_offered": len(problem.columns),
                "n_columns_released": len(chosen),
                **performance_evidence(*compared),
                "test": self.test,
            },
            "risk": {**by_recoder.get("risk", {}), **risk_evidence(self.breach_, problem, level)},
            "choice": choice_evidence(
                self.search_, three_weights(self.weights), self.chosen_, problem.names, self.factors_
            )
            | name_of_alpha,
            **stability,
        }


DECLARATION = MechanismInfo(
    BreachAwareSelector,
    why="keeps columns that predict the target without helping to predict the sensitive column",
    promises="a bound on how much better an attacker predicts the sensitive column: an estimate, not a proof; with k "
    "also k-anonymity",
    compared=Compared(({"n_workers": 1},), for_each_sensitive="sensitive", most_columns=100),
    guarantee="breach-bound",
    kind_of=lambda parameters: "k-anonymity" if parameters.get("k") or parameters.get("then") else "breach-bound",
    needs_target=True,
    cost=60.0,
)
