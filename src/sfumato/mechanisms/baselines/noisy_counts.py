"""Differentially private releases: features chosen under noise, then synthetic rows from their noisy counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.counting.bitsets import ones_by_class
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import DifferentialPrivacy
from sfumato.manifest import AnyTable, synthetic_manifest
from sfumato.manifest_schema import PLAN_OR_NOTHING
from sfumato.measures.separation import hamming_separation, pairs_separated_by_each
from sfumato.mechanisms.base import Compared, Mechanism, MechanismInfo, Release, combinations
from sfumato.mechanisms.baselines.features import public_descriptions, public_features
from sfumato.mechanisms.baselines.noise import (
    Counts,
    add_two_sided_geometric,
    exponential_choices,
    geometric,
    noise_scale,
    noisy_top,
    opendp,
)
from sfumato.mechanisms.estimator import Estimator
from sfumato.parameters import ParameterSpec
from sfumato.progress import Progress
from sfumato.schema import Column, Role, Schema
from sfumato.table.binarize import BinarizePlan
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn, Table

# A contingency table with noise in every cell, the 2^N empty ones included, without listing them.


MOST_CELLS = 2**60
_DIGITS = 60  # significant decimal digits of the rate at which empty cells come out above the threshold
_SPARE_DRAWS = 8


@dataclass(frozen=True)
class Cells:
    """Some cells of a table of patterns × classes: their keys, ascending, and counts.

    A key is ``pattern * n_classes + class``; a pattern's highest bit is the first feature.
    """

    keys: Counts
    counts: Counts
    n_features: int
    n_classes: int

    @property
    def n_cells(self) -> int:
        """Number of all cells, those not listed included."""
        return self.n_classes << self.n_features


def occupied_cells(matrix: sp.csc_matrix, classes: NDArray[np.int32], n_classes: int) -> Cells:
    """Count the rows of each pattern and class; only cells with a row are listed."""
    n_features = matrix.shape[1]
    places = np.int64(1) << np.arange(n_features - 1, -1, -1, dtype=np.int64)
    patterns = np.asarray(sp.csr_matrix(matrix, dtype=np.int64) @ places, dtype=np.int64)
    keys, counts = np.unique(patterns * n_classes + classes, return_counts=True)
    return Cells(keys, counts.astype(np.int64), n_features, n_classes)


def noise_threshold(n_cells: int, scale: float, most_false_rows: float) -> int:
    r"""Smallest t ≥ 1 so that empty cells with noise of at least t hold at most ``most_false_rows`` rows on average.

    With :math:`\alpha = e^{-1/scale}` they hold :math:`n_{cells} \, \alpha^t (t + \alpha/(1-\alpha)) / (1+\alpha)`
    rows. It depends on nothing but its arguments: a cell's count has no part in it.

    Examples
    --------
    >>> noise_threshold(2**10, 4.0, 30_000), noise_threshold(2**28, 4.0, 30_000)
    (1, 51)
    """
    alpha = math.exp(-1 / scale)
    mean_excess = 1 / math.expm1(1 / scale)

    def is_enough(t: int) -> bool:
        rows = math.log(n_cells) - t / scale - math.log1p(alpha) + math.log(t + mean_excess)
        return rows <= math.log(most_false_rows)

    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def noisy_cells(cells: Cells, scale: float, threshold: int) -> Cells:
    """Add two-sided geometric noise to every cell and list those that reach a threshold of at least 1.

    Equal in distribution to drawing noise for all ``n_cells``: the cells that hold rows get theirs directly. Among the
    others, those whose noise reaches the threshold are found by drawing the distances from one to the next, so their
    number is binomial and their places are uniform; their noise beyond the threshold is geometric.

    Notes
    -----
    Everything is drawn in whole numbers from OpenDP. The only number that is rounded is the rate p at which empty cells
    come out, upward by less than one part in 10^15. This keeps the privacy of the counts exactly: as long as p lies
    between the true rates for cells with no row and with one, everything that can come out of an empty cell is at most
    exp(1/scale) times as likely as from a cell with one row, and the other way round.

    Time is proportional to the number of cells that hold rows and of those that come out.
    """
    noisy = add_two_sided_geometric(cells.counts, scale)
    reaches = noisy >= threshold
    fresh = _empty_cells_that_reach(cells, scale, threshold)
    keys = np.concatenate([cells.keys[reaches], fresh])
    counts = np.concatenate([noisy[reaches], threshold + geometric(len(fresh), scale)])
    order = np.argsort(keys)
    return Cells(keys[order], counts[order], cells.n_features, cells.n_classes)


def _empty_cells_that_reach(cells: Cells, scale: float, threshold: int) -> Counts:
    """Keys of the empty cells whose noise reaches the threshold, ascending.

    Distances are drawn over all cells; those that end on a cell with rows are left out again, which leaves every empty
    cell its own independent chance.
    """
    rate, distance_scale = _rate_and_distance_scale(scale, threshold)
    found: list[int] = []
    place = -1
    while place < cells.n_cells:
        expected = rate * (cells.n_cells - place)
        for distance in geometric(int(expected + 4 * math.sqrt(expected)) + _SPARE_DRAWS, distance_scale).tolist():
            place += distance + 1
            if place >= cells.n_cells:
                break
            found.append(place)
    keys = np.array(found, dtype=np.int64)
    return keys[~np.isin(keys, cells.keys, assume_unique=True)]


def _rate_and_distance_scale(scale: float, threshold: int) -> tuple[float, float]:
    r"""Probability p that noise reaches the threshold, and the scale of the geometric distance to the next such cell.

    :math:`p = \alpha^t / (1 + \alpha)`, and distances with :math:`P(J \ge j) = (1-p)^j = e^{-j/s}` have
    :math:`s = -1/\ln(1-p)`. s is rounded down and p thereby up: never below the true rate.
    """
    with localcontext() as context:
        context.prec = _DIGITS + math.ceil(threshold / scale / math.log(10))  # 1 - rate must tell the rate from 0
        step = 1 / Decimal(scale)
        rate = (-threshold * step).exp() / (1 + (-step).exp())
        distance_scale = -1 / (1 - rate).ln()
        return float(rate), math.nextafter(float(distance_scale), 0)


def scaled_to(cells: Cells, class_sizes: Counts) -> Cells:
    """Change the counts to as many rows a class as given, in proportion, without randomness.

    The rows of a class stand in line by key; equally spaced ones are taken, so a cell's rows differ from its due share
    by less than one. A class in which no cell is listed takes equally spaced patterns: nothing is known of it.
    """
    keys: list[Counts] = []
    for c, size in enumerate(class_sizes.tolist()):
        mine = cells.keys % cells.n_classes == c
        if mine.any():
            ends = np.cumsum(cells.counts[mine])
            keys.append(cells.keys[mine][np.searchsorted(ends, _spaced(int(ends[-1]), size), side="right")])
        else:
            keys.append(_spaced(1 << cells.n_features, size) * cells.n_classes + c)
    chosen, counts = np.unique(np.concatenate(keys), return_counts=True)
    return Cells(chosen, counts.astype(np.int64), cells.n_features, cells.n_classes)


def _spaced(length: int, n: int) -> Counts:
    """Return n equally spaced places in a line, half a step from its ends."""
    return np.array([length * (2 * i + 1) // (2 * n) for i in range(n)], dtype=np.int64)


def rows_of(cells: Cells) -> tuple[sp.csc_matrix, NDArray[np.int32]]:
    """Write the cells out as rows, sorted by pattern and then by class: the 0/1 matrix and the class of each row."""
    keys = np.repeat(cells.keys, cells.counts)
    patterns, classes = keys // cells.n_classes, (keys % cells.n_classes).astype(np.int32)
    places = np.arange(cells.n_features - 1, -1, -1, dtype=np.int64)
    bits = ((patterns[:, None] >> places) & 1).astype(np.uint8)
    return sp.csc_matrix(bits), classes


def synthetic_table(original: BinaryTable, chosen: NDArray[np.intp], cells: Cells) -> BinaryTable:
    """Make a table of the cells' rows, with the chosen features and the target; no other column goes along."""
    matrix, classes = rows_of(cells)
    name = original.companions.schema.target or ""
    column = CodedColumn(classes, original.companions[name].values)
    companions = Table(original.companions.schema.keep([name]), {name: column}, len(classes))
    return BinaryTable(matrix, tuple(original.features[i] for i in chosen), companions)


# How ε is divided between choosing features and counting cells, and how much noise each part then needs.


Calibration = Literal["proven", "paper"]

_CHANGES = 2
"""A changed row may raise one score and lower another, and takes 1 from one count and adds 1 to another."""


@dataclass(frozen=True)
class Spending:
    """One part of the budget: the noise that was added and the ε that it is proven to cost."""

    step: str
    noise: str
    n_choices: int
    sensitivity: int
    scale: float
    epsilon: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return dict(vars(self))


@dataclass(frozen=True)
class Budget:
    r"""What the two steps cost, for tables that differ in the feature values of one row.

    *Choosing N features* by scores of which each changes by at most Δ costs :math:`2N\Delta/scale`, with two-sided
    geometric noise on all scores as well as with N runs of the exponential mechanism. Scores are HamDist in pairs of
    rows, :math:`p_1(n_2-p_2)+(n_1-p_1)p_2`: a row of one class is in as many pairs as the other classes have rows, so
    Δ is the number of rows outside the smallest class (:math:`\Delta H = 1/\min(n_1, n_2)` of [kAC17]_, times the
    :math:`n_1 n_2` pairs). *Counting* costs :math:`2/scale`: one count falls by 1 and one rises by 1.

    ``"proven"`` gives each step ε/2. ``"paper"`` takes the scales as printed in [kAC17]_, section 5.2, which count only
    one of the two changes: :math:`N\Delta H/(ε/2)` for Laplace noise on the scores and :math:`1/(ε/2)` on the counts.
    They cost twice the ε/2 each was given.
    """

    selection: Spending
    counts: Spending

    @property
    def epsilon(self) -> float:
        """What both steps cost together."""
        return self.selection.epsilon + self.counts.epsilon

    def to_list(self) -> list[dict[str, Any]]:
        """Plain data for the manifest."""
        return [self.selection.to_dict(), self.counts.to_dict()]


def divide_budget(
    epsilon: float,
    n_features: int,
    class_sizes: Counts,
    *,
    noise: str,
    calibration: Calibration = "proven",
    paper_changes: int = _CHANGES,
) -> Budget:
    """Divide ε in two halves; ``paper_changes`` of the two changes enter the paper's scale for the selection.

    Examples
    --------
    >>> import numpy as np
    >>> sizes = np.array([40, 60])
    >>> halves = divide_budget(1.0, 5, sizes, noise="two-sided geometric")
    >>> halves.selection.scale, halves.counts.scale, halves.epsilon
    (1200.0, 4.0, 1.0)
    >>> divide_budget(1.0, 5, sizes, noise="exponential mechanism", calibration="paper").epsilon
    1.5
    """
    half = epsilon / 2
    most_changed_pairs = int(class_sizes.sum() - class_sizes.min())
    is_paper = calibration == "paper"
    for_scores, for_counts = (paper_changes, 1) if is_paper else (_CHANGES, _CHANGES)
    return Budget(
        Spending(
            "feature selection",
            noise,
            n_features,
            most_changed_pairs,
            noise_scale(for_scores * n_features * most_changed_pairs, half),
            half * _CHANGES / for_scores,
        ),
        Spending("counts", "two-sided geometric", 1, 2, noise_scale(for_counts, half), half * _CHANGES / for_counts),
    )


SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 100.0
_N_FEATURES = 10


class NoisyCountsReleaser(Mechanism, Estimator):
    """Base of the two differentially private baselines; a subclass says how the features are chosen."""

    is_differentially_private: ClassVar[bool] = True
    parameter_specs: ClassVar[Mapping[str, ParameterSpec]] = {
        "epsilon": ParameterSpec(
            "privacy budget: smaller is safer and noisier",
            at_least=SMALLEST_EPSILON,
            at_most=LARGEST_EPSILON,
            allowed=f"a number from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g}",
        ),
        "n_features": ParameterSpec("how many features are chosen", at_least=1),
        "calibration": ParameterSpec("noise that epsilon needs, or as printed", allowed="'proven' or 'paper'"),
        "max_false_fraction": ParameterSpec(
            "most rows that are pure noise, before scaling", above=0, at_most=1, allowed="above 0 and at most 1"
        ),
        "binarize": ParameterSpec("fixed rules that turn mixed columns into binary features", stated=PLAN_OR_NOTHING),
    }
    selection_noise: ClassVar[str]
    paper_changes: ClassVar[int]

    def __init__(
        self,
        epsilon: float = 1.0,
        n_features: int = _N_FEATURES,
        calibration: Calibration = "proven",
        max_false_fraction: float = 0.03,
        binarize: BinarizePlan | Mapping[str, Any] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.n_features = n_features
        self.calibration = calibration
        self.max_false_fraction = max_false_fraction
        self.binarize = binarize

    @abstractmethod
    def _choose(self, scores: Counts, n: int, scale: float) -> NDArray[np.intp]:
        """Choose n positions under noise of this scale."""

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Make synthetic rows from noisy counts and describe them.

        Raises
        ------
        InvalidParameterError
            If a parameter is out of range, OpenDP is not installed, a rule of ``binarize`` looks at the rows, or rows
            were left out because a value is missing.
        SchemaError
            If there is no target, or it has one class only.
        """
        self.check_parameters("epsilon", "n_features", "max_false_fraction", "calibration")
        binary, plan = public_features(table, self.binarize)
        target = binary.target()
        self._check_fits(binary, target)
        opendp()
        sizes = target.counts.astype(np.int64)
        budget = self._budget(sizes)
        scores = pairs_separated_by_each(ones_by_class(binary.matrix, target.codes, target.n_distinct), sizes)
        chosen = np.sort(self._choose(scores, int(self.n_features), budget.selection.scale))
        if progress:
            progress(1, 2, "features chosen")
        cells = occupied_cells(binary.matrix[:, chosen], target.codes, target.n_distinct)
        threshold = noise_threshold(cells.n_cells, budget.counts.scale, self.max_false_fraction * binary.n_rows)
        noisy = noisy_cells(cells, budget.counts.scale, threshold)
        released = synthetic_table(binary, chosen, scaled_to(noisy, sizes))
        manifest = synthetic_manifest(
            released,
            _columns(table),
            mechanism=self.mechanism_name,
            parameters=self._parameters(plan),
            promise=DifferentialPrivacy(budget.epsilon, released.feature_names),
            recodings=public_descriptions(released.features, plan),
            perturbation={"kind": "synthetic", "threshold": threshold, "budget": budget.to_list()},
            evidence={"utility": _utility(released, len(binary.features))} | _warning(float(self.epsilon), budget),
        )
        return Release(released, manifest)

    def _budget(self, class_sizes: Counts) -> Budget:
        return divide_budget(
            float(self.epsilon),
            int(self.n_features),
            class_sizes,
            noise=self.selection_noise,
            calibration=self.calibration,
            paper_changes=self.paper_changes,
        )

    def _check_fits(self, binary: BinaryTable, target: CodedColumn) -> None:
        if target.n_distinct < 2:
            problem = "the target has one class only; a release for classification needs at least two"
            raise SchemaError(problem, hint="choose another target column")
        offered, countable = len(binary.features), int(math.log2(MOST_CELLS // target.n_distinct))
        most = min(offered, countable)
        if self.n_features > most:
            allowed = f"at most {most:,}"
            counted = f"the table has {offered:,} feature{'' if offered == 1 else 's'}"
            hint = f"{counted}, and no more than {countable} can be counted together: choose {most:,} or fewer"
            problem = f"got {self.n_features:,}"
            raise InvalidParameterError("n_features", problem, allowed=allowed, hint=hint, remedy=("value",))

    def _parameters(self, plan: BinarizePlan | None) -> dict[str, Any]:
        return {
            "epsilon": float(self.epsilon),
            "n_features": int(self.n_features),
            "calibration": self.calibration,
            "max_false_fraction": float(self.max_false_fraction),
            "binarize": plan.to_dict() if plan else None,
        }


class LaplaceReleaser(NoisyCountsReleaser):
    """Choose features by their noisy class separation and release synthetic rows from their noisy counts.

    Laplace-DP of [kAC17]_, section 5.2, after [JMS14]_ and [D08]_. Half of ε pays for the features: two-sided
    geometric ("discrete Laplace") noise is added to the HamDist of every feature, and the ``n_features`` largest are
    taken. The other half pays for the counts: the table of patterns of these features × classes gets noise in every
    cell. Cells that are not clearly above the noise are dropped, the others scaled to the class sizes of the original
    and written out as rows, sorted. A released row stands for a part of a noisy count, not for a person.

    Parameters
    ----------
    epsilon : float, default=1.0
        The whole budget. Changing the feature values of one row changes the probability of any release by a factor of
        at most exp(epsilon). Class sizes and the list of features are taken as known.
    n_features : int, default=10
        How many features are chosen. The more, the more the rows spread over cells of which each gets its noise.
    calibration : {"proven", "paper"}, default="proven"
        ``"proven"`` adds the noise that ``epsilon`` needs. ``"paper"`` adds what the paper prints, which is too little;
        the release then promises the ε that this noise is proven to give, twice ``epsilon`` here.
    max_false_fraction : float, default=0.03
        How cells are told from noise: rows in cells that hold nobody may be at most this fraction of all rows, on
        average, before scaling. It sets a threshold that does not depend on the rows and costs no ε.
    binarize : BinarizePlan, mapping or None
        How a mixed table becomes binary features. Only rules that do not look at the rows: ``as-is``, ``drop``,
        ``cuts``, ``one_of``. A column without a rule is taken as 0/1: a cell that is 1, yes or true is 1, every other
        one 0, also a missing one. There are no "missing" features.

    Notes
    -----
    Noise comes from OpenDP (extra ``[dp]``), whose secure generator takes no seed: two runs differ, and the manifest's
    seed is null. Running again and choosing the nicer result spends ε again.

    The 2^N · classes cells are not listed; see :func:`noisy_cells`.

    **Deviations.** The noise is on whole numbers instead of real ones that are rounded. The paper's noise on the scores
    covers one changed score, while one row changes all of them, and its noise on the counts covers an added row, while
    the class sizes it uses make that a changed one: see ``calibration``. The paper says nothing of the cells that noise
    fills; at N = 27 they would be a hundred million rows.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.
    .. [JMS14] Jafer, Matwin, Sokolova: Using Feature Selection to Improve the Utility of Differentially Private Data
       Publishing. Procedia Computer Science 37 (2014) 511-516.
    .. [D08] Dwork: Differential Privacy: A Survey of Results. TAMC 2008.
    """

    mechanism_name: ClassVar[str] = "laplace-dp"
    selection_noise: ClassVar[str] = "two-sided geometric"
    paper_changes: ClassVar[int] = 1

    def _choose(self, scores: Counts, n: int, scale: float) -> NDArray[np.intp]:
        return noisy_top(scores, n, scale)


class ExponentialReleaser(NoisyCountsReleaser):
    """Choose features by the exponential mechanism and release synthetic rows from their noisy counts.

    Exponential-DP of [kAC17]_, section 5.2. Half of ε pays for the features: ``n_features`` times one of those left is
    drawn with a probability proportional to exp(ε′ HamDist / (2 ΔH)), ε′ being the share of one draw. The rest is as in
    :class:`LaplaceReleaser`, which also says what the parameters mean and where it differs from the paper; the paper's
    noise on the scores is right here, that on the counts is not, so ``calibration="paper"`` promises 1.5 ``epsilon``.

    Parameters
    ----------
    epsilon : float, default=1.0
        The whole budget.
    n_features : int, default=10
        How many features are chosen.
    calibration : {"proven", "paper"}, default="proven"
        Noise that ``epsilon`` needs, or as the paper prints it.
    max_false_fraction : float, default=0.03
        How cells are told from noise.
    binarize : BinarizePlan, mapping or None
        How a mixed table becomes binary features, by rules that do not look at the rows.

    References
    ----------
    .. [kAC17] Zhang, Mohammed, Dave, Al Hasan: Feature Selection for Classification under Anonymity Constraint.
       Transactions on Data Privacy 10 (2017) 1-25.
    """

    mechanism_name: ClassVar[str] = "exponential-dp"
    selection_noise: ClassVar[str] = "exponential mechanism"
    paper_changes: ClassVar[int] = 2

    def _choose(self, scores: Counts, n: int, scale: float) -> NDArray[np.intp]:
        return exponential_choices(scores, n, scale)


def _columns(table: AnyTable) -> Schema:
    """Describe the original's columns, which are public; a computed feature counts as the column it came from."""
    if not isinstance(table, BinaryTable):
        return table.schema
    beside = table.companions.schema
    sources = dict.fromkeys(feature.column for feature in table.features)
    return Schema.of([*(Column(name) for name in sources), *beside], beside.missing)


def _utility(released: BinaryTable, n_offered: int) -> dict[str, Any]:
    """Describe the synthetic rows; nothing is computed from the original ones."""
    target = released.target()
    ones = ones_by_class(released.matrix, target.codes, target.n_distinct)
    return {
        "n_features_offered": n_offered,
        "n_features_released": len(released.features),
        "hamming_separation_of_synthetic_rows": hamming_separation(ones, target.counts.astype(np.int64)),
    }


def _warning(asked: float, budget: Budget) -> dict[str, Any]:
    if budget.epsilon <= asked:
        return {}
    return {
        "calibration": {
            "asked_epsilon": asked,
            "proven_epsilon": budget.epsilon,
            "warning": "noise as the paper prints it: not differentially private at the epsilon that was asked for",
        }
    }


def _compared(table: AnyTable) -> Sequence[Mapping[str, Any]]:
    """Propose settings with no more features than the table has."""
    names = table.feature_names if isinstance(table, BinaryTable) else table.schema.names(Role.QUASI_IDENTIFIER)
    if not names:
        problem = "no column is a quasi-identifier"
        raise SchemaError(problem)
    settings = combinations({"epsilon": [1.0, 2.0], "n_features": [min(_N_FEATURES, len(names))]})
    return Compared(settings, needs_binary=True, package="opendp")(table)


_WHY = "synthetic rows; their protection does not depend on what an attacker knows; features chosen by"
_PROMISES = "differential privacy (by construction; no audit can confirm it)"
LAPLACE_DECLARATION = MechanismInfo(
    LaplaceReleaser, f"{_WHY} noisy scores", _PROMISES, _compared, guarantee="differential-privacy", needs_target=True
)
EXPONENTIAL_DECLARATION = MechanismInfo(
    ExponentialReleaser,
    f"{_WHY} the exponential mechanism",
    _PROMISES,
    _compared,
    guarantee="differential-privacy",
    needs_target=True,
)
