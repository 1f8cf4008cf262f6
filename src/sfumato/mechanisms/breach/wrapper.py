"""The wrapper that breach-aware selection is compared with: columns chosen for performance alone, best first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.errors import PrivacyNotAchievableError
from sfumato.guarantees.estimated import BreachMetric
from sfumato.learning.fold_scores import SubsetScores
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.base import Compared, MechanismInfo, Release
from sfumato.mechanisms.breach.best_first import (
    N_STALE,
    BestFirst,
    Subset,
    WrapperDirection,
    best_first_search,
    repeated_score,
)
from sfumato.mechanisms.breach.drafting import BreachMechanism, breach_promise, checked_table, kept_columns
from sfumato.mechanisms.breach.evidence import CONFIDENCE, estimate_breach, performance_evidence, risk_evidence
from sfumato.mechanisms.breach.parameters import ATTACKER_BY_NAME, LEARNER, N_WORKERS, SEED_OF_FOLDS
from sfumato.mechanisms.breach.problem import BreachProblem, problem_of_table
from sfumato.mechanisms.breach.subset_evaluation import (
    Learner,
    LearnerScores,
    SubsetJudge,
    attacker_by_name,
    checked_attackers,
    checked_learner,
)
from sfumato.mechanisms.containment.base import check_choices
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress

FOLDS_OF_ESTIMATES = 10
"""Folds in which what was chosen is judged; they are not those of the search."""


class BestFirstWrapper(BreachMechanism):
    """Choose the columns with which a classifier predicts the target best, whatever they tell about people.

    The baseline of [PBI17]_ (Section 4.3): the wrapper of [KJ97]_ with Weka's settings, see
    :func:`sfumato.mechanisms.breach.best_first.best_first_search`. **The choice does not look at the sensitive column
    and protects nobody**: it is there to be compared with. What an attacker gains by it is measured afterwards, on
    other folds, and stated as an estimate.

    Parameters
    ----------
    learner : str or classifier
        Of the recipient, for the target; see :class:`sfumato.mechanisms.breach.selector.BreachAwareSelector`.
    direction : {"forward", "backward"}
        From no column upwards, or from all downwards.
    n_stale : int, default=5
        The search ends after so many expansions in a row without a better set.
    n_folds : int, default=5
        Folds of the search.
    n_repeats : int, default=5
        Cross-validations of a set at most: another one is made while the deviation of the error is above 1 % of it.
    metric : {"accuracy", "balanced_accuracy", "auc"}
    attacker, sensitive
        Whose gain is stated; as in :class:`sfumato.mechanisms.breach.selector.BreachAwareSelector`.
    allow_increase : bool, default=True
        Whether to release columns with which the attacker does better than with all columns, which is what the baseline
        is there to show; if not, they are refused.
    random_state : int, default=0
        Of the folds.
    n_workers : int or None
        Processes to train in; the result does not depend on it.

    Attributes
    ----------
    selected_columns_ : ndarray of int
        Places of the chosen columns.
    found_ : BestFirst

    Notes
    -----
    **Deviations.** A set without columns is no release: where nothing is better than guessing, the best single column
    is taken.

    References
    ----------
    .. [KJ97] Kohavi, John: Wrappers for Feature Subset Selection. Artificial Intelligence 97 (1997) 273-324.
    .. [PBI17] Jafer, Matwin, Sokolova: A Multi-dimensional Privacy-aware Evaluation Function in Automatic Feature
       Selection. Transactions on Data Privacy 10 (2017).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=200)
    >>> X = np.column_stack([y + rng.normal(size=200) / 4, rng.normal(size=200)])
    >>> BestFirstWrapper().fit(X, y).get_support().tolist()
    [True, False]
    """

    mechanism_name: ClassVar[str] = "best-first-wrapper"
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "learner": LEARNER,
        "direction": ParameterSpec("add columns to none, or drop them from all"),
        "n_stale": ParameterSpec(
            "expansions in a row without a better set after which the search ends", at_least=1, at_most=99
        ),
        "n_folds": ParameterSpec("folds of the search", at_most=999),
        "n_repeats": ParameterSpec(
            "cross-validations of a set at most, until its error is known", at_least=1, at_most=99
        ),
        "metric": ParameterSpec("performance of recipient and attacker"),
        "attacker": ParameterSpec(
            "whose gain is stated: as for learner; A+B: the stronger of both; strongest", stated=ATTACKER_BY_NAME
        ),
        "sensitive": ParameterSpec("which sensitive column the attacker wants, or the target's name"),
        "allow_increase": ParameterSpec(
            "release columns with which the attacker does better than with all; false: refuse"
        ),
        "random_state": SEED_OF_FOLDS,
        "n_workers": N_WORKERS,
    }

    def __init__(
        self,
        learner: str | Learner = "naive-bayes",
        direction: WrapperDirection = "forward",
        n_stale: int = N_STALE,
        n_folds: int = 5,
        n_repeats: int = 5,
        metric: BreachMetric = "accuracy",
        attacker: str | Learner = "naive-bayes",
        sensitive: str | None = None,
        allow_increase: bool = True,
        random_state: int = 0,
        n_workers: int | None = None,
    ) -> None:
        self.learner = learner
        self.direction = direction
        self.n_stale = n_stale
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.metric = metric
        self.attacker = attacker
        self.sensitive = sensitive
        self.allow_increase = allow_increase
        self.random_state = random_state
        self.n_workers = n_workers

    def fit(self, X: Any, y: Any) -> Self:
        """Choose columns of a data frame or an array; the sensitive column, if it is one of them, is never chosen."""
        problem = self.frame_problem(X, y, None)
        self._choose(problem.in_order_of_values(), None)
        self.selected_columns_ = np.array(problem.places, dtype=np.intp)[list(self.found_.columns)]
        return self

    def _choose(self, ordered: BreachProblem, progress: Progress | None) -> None:
        check_choices(self, "metric", "direction")
        self.check_parameters("n_stale", "n_repeats", "allow_increase", "random_state")
        learner, columns = checked_learner("learner", self.learner), range(len(ordered.columns))
        times: list[SubsetScores] = []
        with self._scores(ordered, self.n_folds, 0) as first:
            times = [first.of([learner], ordered.target)]
            times += [
                self._scores(ordered, self.n_folds, time).of([learner], ordered.target)
                for time in range(1, int(self.n_repeats))
            ]
            score = partial(repeated_score, times)
            found = best_first_search(
                score, len(columns), direction=self.direction, n_stale=int(self.n_stale), progress=progress
            )
            if not found.columns:
                best = max(columns, key=lambda column: score((column,)))  # known already: nothing is trained again
                found = BestFirst((best,), score((best,)), found.n_scored, found.n_expanded)
        self.found_ = found

    def _scores(self, ordered: BreachProblem, n_folds: int, time: int) -> LearnerScores:
        return LearnerScores(ordered, self.metric, n_folds, int(self.random_state) + time, self.n_workers)

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Choose quasi-identifiers of a table and release them with the target and columns of the role other.

        Raises
        ------
        PrivacyNotAchievableError
            If the attacker does better with the choice than with all columns, and that is not allowed.
        SchemaError
            If roles are missing, the sensitive column has one value only, or a column equals or determines it.
        """
        rows = checked_table(table)
        problem, attacker = problem_of_table(rows, self.sensitive), attacker_by_name(self.attacker)
        problem.check()
        ordered = problem.in_order_of_values()
        self._choose(ordered, progress)
        chosen = self.choose_from_table(problem, self.found_.columns)
        evidence = self._evidence(ordered, self.found_.columns)
        _, sizes = np.unique(rows.codes(chosen), axis=0, return_counts=True)
        evidence["risk"] |= {"anonymity_level": anonymity_level(sizes)}
        alpha = self._stated_bound(evidence["risk"]["breach_increase_percent"])
        released = kept_columns(rows, chosen)
        manifest = draft_manifest(
            rows,
            released,
            mechanism=self.mechanism_name,
            parameters=self.plain_parameters({}, ()),
            guarantees=[breach_promise(problem, rows.schema, chosen, alpha, attacker, self.metric)],
            evidence=evidence,
            seed=int(self.random_state),
        )
        return Release(released, manifest)

    def _stated_bound(self, increase: float) -> float:
        """Give the bound that is stated: what was measured, rounded up, and never less than no increase."""
        if increase > 0 and not self.allow_increase:
            promise = "no breach increase: the wrapper chooses for performance alone and cannot lower it"
            hint = "use breach-aware, or allow_increase to release it as a baseline"
            raise PrivacyNotAchievableError(promise, best_level=increase, hint=hint)
        return max(0.0, math.ceil(100 * increase) / 100)

    def _evidence(self, ordered: BreachProblem, chosen: Subset) -> dict[str, Any]:
        """Judge the choice on other folds than those of the search, which would flatter it."""
        learner, attackers = checked_learner("learner", self.learner), checked_attackers(self.attacker)
        n_folds = min(FOLDS_OF_ESTIMATES, len(ordered.target))
        with self._scores(ordered, n_folds, int(self.n_repeats)) as made:
            judge = SubsetJudge(made.of([learner], ordered.target))
            attack = made.of(attackers, ordered.sensitive)
            breach = estimate_breach(attack.scores(chosen), attack.scores(judge.baseline.columns), CONFIDENCE)
            judged = judge.judge(chosen, "wrapper")
        return {
            "utility": {
                "n_columns_offered": len(ordered.columns),
                "n_columns_released": len(chosen),
                **performance_evidence(judged, judge.baseline),
            },
            "risk": risk_evidence(breach, ordered, 0),
            "search": {
                "method": "best-first wrapper",
                "search": self.direction,
                "chosen_by": "performance alone; what the columns tell about the sensitive one had no part in it",
                "n_candidates": self.found_.n_scored,
            },
        }


DECLARATION = MechanismInfo(
    BestFirstWrapper,
    why="a baseline to compare with: keeps the columns that predict the target best and protects nobody",
    promises="nothing about privacy: it states how much better an attacker predicts the sensitive column, an estimate",
    compared=Compared(({"n_workers": 1},), for_each_sensitive="sensitive", most_columns=100),
    guarantee="breach-bound",
    needs_target=True,
    cost=60.0,
)
