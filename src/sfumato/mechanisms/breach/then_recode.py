"""Columns chosen by E(S), then coarsened to k-anonymity: what is promised of both is judged on the coarsened cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import KAnonymity
from sfumato.learning.c45.tree import TreeColumn, numeric_column
from sfumato.learning.fold_scores import compare_folds
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.breach.drafting import kept_columns
from sfumato.mechanisms.breach.evidence import CONFIDENCE, BreachEstimate, estimate_breach
from sfumato.mechanisms.breach.problem import BreachProblem, tree_column
from sfumato.mechanisms.breach.search import AcceptanceRule
from sfumato.mechanisms.breach.subset_evaluation import Candidate, Learner, LearnerScores
from sfumato.progress import Progress
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn, Table

ThenRecode = Literal["mondrian", "global-recoding", "gain-recoding", "local-recoding"]
USUAL_RECODER: ThenRecode = "mondrian"
USUAL_K = 5
LEAVES_OUT = "max_suppressed_fraction"


@dataclass(frozen=True, eq=False, repr=False)
class CoarsenedChoice:
    """A set of columns with its coarsened release.

    Parameters
    ----------
    chosen : Candidate
        Of the columns as they were.
    made : Release
        Of the chosen columns, by the recoding mechanism.
    released, baseline : Candidate
        Performance with the coarsened columns, and with all columns as they were, on the same rows and folds.
    breach : BreachEstimate
        Of the coarsened columns against all columns as they were.
    """

    chosen: Candidate
    made: Release
    released: Candidate
    baseline: Candidate
    breach: BreachEstimate


def recoder_of(then: str | None, k: int | None, settings: Mapping[str, Any] | None) -> Mechanism | None:
    """Build the mechanism that coarsens what was chosen; ``None`` where neither it nor a k is asked for.

    No row may be left out: of rows that were, nobody could check whose coarsened cells an attacker is given.
    """
    from sfumato.mechanisms.registry import build_mechanism, mechanism_info

    given = dict(settings or {})
    if then is None and k is None:
        if given:
            problem = "got settings, but neither then nor k"
            raise InvalidParameterError("then_settings", problem, allowed="given with then or k")
        return None
    if "k" in given:
        raise InvalidParameterError("then_settings", "got k", allowed="other settings: k is a parameter of its own")
    name = then or USUAL_RECODER
    may_leave_out = LEAVES_OUT in {parameter.name for parameter in mechanism_info(name).parameters}
    if may_leave_out and given.setdefault(LEAVES_OUT, 0.0) != 0:
        problem = f"got a {LEAVES_OUT} above 0"
        raise InvalidParameterError("then_settings", problem, allowed="settings with which no row is left out")
    return build_mechanism(name, {**given, "k": int(k or USUAL_K)})


def coarsened_choice(
    candidates: Iterable[Candidate],
    rows: Table,
    problem: BreachProblem,
    recoder: Mechanism,
    rule: AcceptanceRule,
    judging: CellJudging,
    progress: Progress | None,
) -> CoarsenedChoice:
    """Coarsen one set of columns after the other until an attacker gains no more than α by the coarsened cells.

    Coarsened cells are functions of all chosen columns of a row together, so a simple attacker may do better with them
    than with the values; that is why they are judged again.

    Raises
    ------
    PrivacyNotAchievableError
        If no set reaches both k and α.
    InvalidParameterError
        If the recoding mechanism promises k-anonymity of some of the columns only, or not at all.
    """
    least: float | None = None
    refused: PrivacyNotAchievableError | None = None
    for candidate in candidates:
        names = tuple(problem.names[column] for column in candidate.columns)
        try:
            made = recoder.release(kept_columns(rows, names, Role.PERSON), progress=progress)
        except PrivacyNotAchievableError as exc:
            refused = exc
            continue
        _check_strict(made, names)
        found = judging.judge(candidate, names, rows, problem, made)
        if rule.is_safe(found.breach.increase):
            return found
        least = found.breach.increase if least is None else min(least, found.breach.increase)
    if least is None and refused is not None:
        raise refused
    promise = f"a breach increase of at most {rule.max_breach_increase:g}% with the coarsened columns"
    hint = "raise max_breach_increase or k, or use another attacker or recoding"
    raise PrivacyNotAchievableError(promise, best_level=least, hint=hint)


def _check_strict(made: Release, names: tuple[str, ...]) -> None:
    is_strict = any(
        isinstance(promise, KAnonymity) and set(promise.columns) == set(names) and not promise.protected
        for promise in made.manifest.promised()
    )
    if not is_strict:
        problem = "with these k-anonymity is not promised of all chosen columns"
        raise InvalidParameterError("then_settings", problem, allowed="those of strict k-anonymity")


@dataclass(frozen=True)
class CellJudging:
    """Who is judged on coarsened cells, and in which folds."""

    learner: Learner
    attackers: Sequence[Learner]
    metric: Any
    n_folds: int
    seed: int
    n_workers: int | None

    def judge(
        self, candidate: Candidate, names: tuple[str, ...], rows: Table, problem: BreachProblem, made: Release
    ) -> CoarsenedChoice:
        """Train on the released cells and, for comparison, on all columns of the same rows as they were."""
        released = made.table.coded_part
        kept = np.arange(rows.n_rows) if made.kept_rows is None else made.kept_rows
        cells = [_cells(rows[name].take(kept), released[name], rows.schema[name].kind) for name in names]
        columns = [replace(column, codes=column.codes[kept]) for column in problem.columns]
        joint = replace(
            problem,
            columns=(*columns, *cells),
            target=problem.target[kept],
            sensitive=problem.sensitive[kept],
            persons=None if problem.persons is None else problem.persons[kept],
        ).in_order_of_values()
        before = tuple(range(len(columns)))
        after = tuple(range(len(columns), len(columns) + len(cells)))
        with LearnerScores(joint, self.metric, self.n_folds, self.seed, self.n_workers) as scores:
            performance = scores.of([self.learner], joint.target)
            attack = scores.of(self.attackers, joint.sensitive)
            breach = estimate_breach(attack.scores(after), attack.scores(before), CONFIDENCE)
            with_cells, with_all = performance.scores(after), performance.scores(before)
        return CoarsenedChoice(
            candidate,
            made,
            _judged(candidate.columns, with_cells, with_all, breach.increase),
            _judged(before, with_all, with_all, 0.0),
            breach,
        )


def _judged(
    columns: tuple[int, ...], folds: NDArray[np.float64], of_all: NDArray[np.float64], increase: float
) -> Candidate:
    p_value = compare_folds(folds, of_all).p_value
    return Candidate(columns, tuple(folds.tolist()), float(folds.mean()), p_value, increase, ("released cells",))


def _cells(original: CodedColumn, released: CodedColumn, kind: Kind) -> TreeColumn:
    """Take released cells as categories; a coarsened number as the mean of the values that it stands for.

    An attacker need not know these means, but may from other sources.
    """
    if kind is not Kind.NUMERIC:
        return tree_column(released, Kind.CATEGORICAL)
    return numeric_column(cell_means(original.numbers()[original.codes], released.codes)[released.codes])


def cell_means(numbers: NDArray[np.float64], cells: NDArray[np.integer]) -> NDArray[np.float64]:
    """Mean of the numbers of each cell, missing ones left out; NaN where all are.

    Examples
    --------
    >>> cell_means(np.array([1.0, 3.0, np.nan, np.nan]), np.array([0, 0, 0, 1])).tolist()
    [2.0, nan]
    """
    is_there = ~np.isnan(numbers)
    n_cells = int(cells.max(initial=-1)) + 1
    counts = np.bincount(cells[is_there], minlength=n_cells)
    sums = np.bincount(cells[is_there], weights=numbers[is_there], minlength=n_cells)
    return np.asarray(np.divide(sums, counts, out=np.full(n_cells, np.nan), where=counts > 0))
