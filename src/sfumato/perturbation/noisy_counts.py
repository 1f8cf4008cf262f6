"""Differentially private releases: features chosen under noise, then synthetic rows from their noisy counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sfumato.contract import Compared, Mechanism, MechanismInfo, ParameterSpec, Progress, Release, combinations
from sfumato.counting.bitsets import ones_by_class
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import DifferentialPrivacy
from sfumato.manifest import AnyTable, synthetic_manifest
from sfumato.measures.separation import hamming_separation, pairs_separated_by_each
from sfumato.perturbation.budget import Budget, Calibration, divide_budget
from sfumato.perturbation.features import public_descriptions, public_features
from sfumato.perturbation.noise import Counts, exponential_choices, noisy_top, opendp
from sfumato.perturbation.noisy_table import (
    MOST_CELLS,
    noise_threshold,
    noisy_cells,
    occupied_cells,
    scaled_to,
    synthetic_table,
)
from sfumato.schema import Column, Role, Schema
from sfumato.table.binarize import BinarizePlan
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-6, 100.0
_N_FEATURES = 10


class NoisyCountsReleaser(Mechanism, BaseEstimator):  # type: ignore[misc]  # no types upstream
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
        "binarize": ParameterSpec("how mixed columns become binary features, by fixed rules"),
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
        if self.n_features > min(offered, countable):
            allowed = f"at most {min(offered, countable):,}"
            hint = f"the table has {offered:,} features; no more than {countable} can be counted together"
            raise InvalidParameterError("n_features", f"got {self.n_features:,}", allowed=allowed, hint=hint)

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

    The 2^N · classes cells are not listed; see :func:`sfumato.perturbation.noisy_table.noisy_cells`.

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


_WHY = "synthetic rows whose protection does not depend on what an attacker knows; features chosen by"
_PROMISES = "differential privacy (by construction; no audit can confirm it)"
LAPLACE_DECLARATION = MechanismInfo(
    LaplaceReleaser, f"{_WHY} noisy scores", _PROMISES, _compared, guarantee="differential-privacy"
)
EXPONENTIAL_DECLARATION = MechanismInfo(
    ExponentialReleaser, f"{_WHY} the exponential mechanism", _PROMISES, _compared, guarantee="differential-privacy"
)
