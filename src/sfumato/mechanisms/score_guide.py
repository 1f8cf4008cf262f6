"""A score of every row to cut a partition by in the place of its label: what can be predicted, without the chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.criteria import Criterion, Several, Variance
from sfumato.learning.cross_fitted import MOST_SCORED_ROWS, class_scores, quantity_scores
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.tree.targets import CriterionChoice, Targets
from sfumato.table.coding import Table
from sfumato.table.persons import person_codes
from sfumato.table.weighted import CountedTable

Numbers = NDArray[np.float64]


def stated_sample(n_rows: int) -> dict[str, int]:
    """Say for the manifest on how many of the rows scores were learned, where these are a sample."""
    return {"scored_on_rows": MOST_SCORED_ROWS, "of_rows": n_rows} if n_rows > MOST_SCORED_ROWS else {}


PENALTY_WEIGHT = 0.1
"""Weight of the certainty penalty beside the score. Measured on seven tables (``benchmarks/score_split.py``): narrower
cells than with 0, and classifiers lose no more; from 0.3 they lose more."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreGuide:
    """Cross-fitted scores of a table's targets, as a criterion of partitions; see :mod:`sfumato.learning.cross_fitted`.

    The scores are learned from the quasi-identifiers, which are the columns that a partition coarsens. They are no part
    of a release: the target is released unchanged.

    Parameters
    ----------
    criterion : Criterion
        Variance of the scores, summed over classes; of several targets each as a share of its whole.
    statistics : ndarray of float64, shape (n_rows, n_statistics)
        Of each row, or of each distinct row times its count.
    along : ndarray of float64, shape (n_rows,)
        The direction in which the scores vary most: their first principal component.
    """

    criterion: Criterion
    statistics: Numbers
    along: Numbers

    @classmethod
    def of(
        cls, table: Table, axes: Sequence[Axis], choice: CriterionChoice = "auto", names: str | None = None
    ) -> ScoreGuide:
        """Score the rows of a table; targets and errors are those of :class:`Targets`."""
        targets = Targets.of(table, choice, names)
        scores = [_scores(targets, name, table, axes) for name in targets.names]
        criteria = tuple(Variance(own.shape[1]) for own in scores)
        weights = table.row_counts if isinstance(table, CountedTable) else None
        each = [criterion.statistics(own, weights) for criterion, own in zip(criteria, scores, strict=True)]
        if weights is not None:
            each = [statistics * weights[:, None] for statistics in each]
        if len(scores) == 1:
            return cls(criteria[0], each[0], _main_direction(scores[0], weights))
        several = Several.of_totals(criteria, [statistics.sum(axis=0) for statistics in each])
        spreads = [np.sqrt(impurity) if impurity > 0 else 1.0 for impurity in several.impurities]
        alike = np.hstack([own / spread for own, spread in zip(scores, spreads, strict=True)])
        return cls(several, np.hstack(each), _main_direction(alike, weights))

    def intervals(self, n_intervals: int) -> NDArray[np.int64]:
        """Interval of each row along the main direction; intervals hold about as many rows each, by their counts.

        Rows with one score share an interval.
        """
        counts = self.criterion.weight(self.statistics)
        places, of_row = np.unique(self.along, return_inverse=True)
        rows = np.bincount(of_row, counts, len(places))
        middle = np.cumsum(rows) - rows / 2
        return np.asarray((middle * n_intervals / rows.sum()).astype(np.int64)[of_row])

    def of_rows(self, entry_of_row: NDArray[np.intp], row_counts: NDArray[np.int64]) -> ScoreGuide:
        """Guide of single rows, given the distinct row that each is and how often these occur."""
        single = self.statistics / row_counts[:, None]
        return ScoreGuide(self.criterion, single[entry_of_row], self.along[entry_of_row])


def _scores(targets: Targets, name: str, table: Table, axes: Sequence[Axis]) -> Numbers:
    columns, weights = [axis.as_tree_column() for axis in axes], axes[0].weights
    codes = table[name].codes
    persons = None if isinstance(table, CountedTable) else person_codes(table)
    if targets.is_quantity(name):
        return quantity_scores(columns, table[name].numbers()[codes], weights=weights, persons=persons)
    return class_scores(columns, codes, weights=weights, persons=persons)


def _main_direction(scores: Numbers, weights: NDArray[np.int64] | None) -> Numbers:
    """Give every row its place along the first principal component of the scores."""
    centred = scores - np.average(scores, axis=0, weights=weights)
    weighted = centred if weights is None else centred * weights[:, None]
    direction = np.linalg.eigh(weighted.T @ centred)[1][:, -1]
    direction *= np.sign(direction[np.abs(direction).argmax()])  # which of the two signs is chance
    return np.asarray(centred @ direction)
