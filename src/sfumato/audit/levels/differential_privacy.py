"""Promises that hold by construction of a mechanism: whether what the manifest says of its noise adds up.

Differential privacy is about all the releases that might have come out; the one that did cannot show it. What can be
checked is checked: that the stated noise is what the promised ε needs, fits the released table, and that the manifest
says nothing beside the released rows and public parameters: every entry stands on a list, and every figure among them
is computed again. A figure that could be anything could tell anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.checks import GIVE_ORIGINAL, Check, Unchecked, listed
from sfumato.audit.claims import COUNTS, SELECTION, SYNTHETIC, ClaimedRecoding, Claims, Promise, Spending, is_number
from sfumato.audit.kinds import Judging, judge
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.values import INTERVAL, ONE_OF, evaluate, matching_ids, zero_one
from sfumato.errors import NotBinaryError
from sfumato.guarantees import ROUNDING, DifferentialPrivacy
from sfumato.schema import Role

CHANGES = 2
"""One changed row can raise one score while it lowers another, and moves 1 from one count to another."""
EPSILON = "epsilon"
"""Name of what no audit of the output can confirm."""

_GEOMETRIC, _EXPONENTIAL = "two-sided geometric", "exponential mechanism"
_NOISE_OF_SELECTION = {"laplace-dp": _GEOMETRIC, "exponential-dp": _EXPONENTIAL}
_WARNING = "noise as the paper prints it: not differentially private at the epsilon that was asked for"
_TRUE = ("1", "1.0", "yes", "Yes", "YES", "true", "True", "TRUE")

_Form = Callable[[Any], bool] | Mapping[str, Any] | list[Any]


def _anything(_: Any) -> bool:
    return True


def _nothing(entry: Any) -> bool:
    return entry is None


def _zero(entry: Any) -> bool:
    return type(entry) is int and entry == 0


def _is_plan(entry: Any) -> bool:
    """Whether features come from rules that look at one cell at a time."""
    if entry is None:
        return True
    if not isinstance(entry, Mapping) or set(entry) != {"bands", "missing_features", "unlisted", "columns"}:
        return False
    is_closed = entry["missing_features"] is False and entry["unlisted"] == "drop"
    return is_closed and isinstance(entry["columns"], Mapping) and all(map(_is_fixed, entry["columns"].values()))


def _is_fixed(rule: Any) -> bool:
    if isinstance(rule, str):
        return rule in ("as-is", "drop")
    if not isinstance(rule, Mapping) or set(rule) not in ({"cuts"}, {"one_of"}, {"one_of", "name"}):
        return False
    return isinstance(rule.get("cuts", rule.get("one_of")), list)


def _each(*names: str) -> dict[str, _Form]:
    return dict.fromkeys(names, _anything)


_ALLOWED: dict[str, _Form] = {
    **_each("sfumato_manifest", "digest", "dropped_columns"),
    "input": _nothing,
    "suppressed_rows": _zero,
    "output": {
        **_each("name", "sha256", "format", "rows", "order", "escaped_formulas"),
        "columns": [_each("name", "role", "kind", "domain", "missing", "confirmed")],
    },
    "mechanism": {
        **_each("name"),
        "parameters": {**_each("epsilon", "n_features", "calibration", "max_false_fraction"), "binarize": _is_plan},
        "seed": _nothing,
    },
    "missing": _each("tokens", "columns"),
    "recodings": [_each("name", "column", "rule", "values", "above", "upto")],
    "guarantees": [{**_each("kind", "unit", "epsilon", "columns", "neighbours", "statement"), "audited": _nothing}],
    "evidence": {
        "utility": _each("n_features_offered", "n_features_released", "hamming_separation_of_synthetic_rows"),
        "calibration": _each("asked_epsilon", "proven_epsilon", "warning"),
    },
    "versions": _anything,
    "perturbation": {
        **_each("kind", "threshold"),
        "budget": [_each("step", "noise", "n_choices", "sensitivity", "scale", "epsilon")],
    },
}
"""All that may be said of a differentially private release: released rows and public parameters, nothing else."""


def check_construction(
    promise: Promise, released: Columns, claims: Claims, manifest: Mapping[str, Any]
) -> Iterator[Check]:
    """Check everything about a differential privacy promise that can be checked."""
    kind, promised = promise.guarantee.kind, float(getattr(promise.guarantee, "epsilon", 0))
    yield from _check_budget(kind, promised, released, claims, manifest)
    yield _check_asked(kind, promised, claims)
    yield _check_silence(kind, claims, manifest)
    yield _check_columns(kind, claims)
    binary = _check_binary(kind, released, claims)
    yield binary
    if binary.passed:
        yield _check_figures(kind, promised, released, claims, manifest)


def unconfirmed(promise: Promise) -> Unchecked:
    """Say that the promise itself was not checked: it is about releases that did not come out."""
    promised = float(getattr(promise.guarantee, "epsilon", 0))
    message = (
        f"{promise.guarantee.kind}: epsilon = {promised:g} holds by construction of the mechanism if it did what the "
        "manifest says; no audit of the output can confirm it"
    )
    return Unchecked(EPSILON, message)


def _check_budget(
    kind: str, promised: float, released: Columns, claims: Claims, manifest: Mapping[str, Any]
) -> Iterator[Check]:
    stated = claims.perturbation
    steps = [spent.step for spent in stated.budget] if stated and stated.kind == SYNTHETIC else []
    if not stated or steps != [SELECTION, COUNTS]:
        yield Check(f"{kind}: budget", False, f"{kind}: the manifest does not say how the budget was spent")
        return
    total = sum(spent.epsilon for spent in stated.budget)
    passed = total == promised
    yield Check(f"{kind}: budget", passed, f"{kind}: the parts of the budget add up to {total:g}", promised, total)
    name = manifest["mechanism"].get("name")
    for spent in stated.budget:
        noise = _GEOMETRIC if spent.step == COUNTS else _NOISE_OF_SELECTION.get(name if isinstance(name, str) else "")
        yield _check_noise(kind, spent, noise, released, claims)


def _check_noise(kind: str, spent: Spending, noise: str | None, released: Columns, claims: Claims) -> Check:
    """Whether the noise of a step is what its part of the budget needs, given what one row can change."""
    if spent.step == SELECTION:
        n_choices = len(claims.names(Role.QUASI_IDENTIFIER))
        sensitivity = _rows_outside_smallest_class(released, claims)
        change = CHANGES * n_choices * sensitivity
    else:
        n_choices, sensitivity = 1, CHANGES
        change = sensitivity
    needed = change / spent.scale if spent.scale else math.inf
    as_stated = (spent.n_choices, spent.sensitivity, spent.noise) == (n_choices, sensitivity, noise)
    passed = as_stated and spent.epsilon > 0 and spent.scale == _scale(change, spent.epsilon)
    fits = "" if as_stated else ", and kind, sensitivity or number of choices are not those of the release"
    message = f"{kind}: the noise for {spent.step} costs {needed:.6g}, stated are {spent.epsilon:.6g}{fits}"
    return Check(f"{kind}: noise for {spent.step}", passed, message, spent.epsilon, needed)


def _scale(change: int, epsilon: float) -> float:
    """Smallest number that is a scale for a change at this cost: another one would only carry something else."""
    exact = change / Fraction(epsilon)
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _rows_outside_smallest_class(released: Columns, claims: Claims) -> int:
    """Most pairs of rows of different classes that one row is in: what it can change of a feature's separated pairs."""
    sizes = _class_sizes(released, claims)
    return int(sizes.sum() - sizes.min(initial=released.n_rows))


def _class_sizes(released: Columns, claims: Claims) -> Any:
    for name in claims.names(Role.TARGET):
        if name in released:
            column = released.coded(name)
            return np.bincount(column.codes, minlength=len(column.values))
    return np.array([0, released.n_rows])


def _check_asked(kind: str, promised: float, claims: Claims) -> Check:
    """Whether the mechanism was asked for the promised ε; the paper's noise gives a larger one, which must be said."""
    asked, calibration = claims.parameters.get("epsilon"), claims.parameters.get("calibration")
    name = f"{kind}: parameter epsilon"
    if not is_number(asked) or asked is None:
        return Check(name, False, f"{kind}: the mechanism's epsilon is not a number", promised)
    parts = [spent.epsilon for spent in claims.perturbation.budget] if claims.perturbation else []
    if calibration == "paper":
        passed = parts in ([asked, asked], [asked / 2, asked])
    else:
        passed = calibration == "proven" and asked == promised and parts == [asked / 2, asked / 2]
    message = f"{kind}: epsilon = {promised:g} is promised, the mechanism's epsilon is {asked:g}"
    if calibration == "paper" and promised > asked:
        message += " with the paper's noise, which is too little for it"
    return Check(name, passed, message, promised, asked)


def _check_silence(kind: str, claims: Claims, manifest: Mapping[str, Any]) -> Check:
    """Whether the manifest says nothing that would tell more than the noisy result."""
    disallowed = list(dict.fromkeys(_further(manifest, _ALLOWED, "")))
    disallowed += ["guarantees (more than one)"] if len(claims.promises) > 1 else []
    if disallowed:
        said = f"may say nothing that is not on the list for differential privacy, but has: {', '.join(disallowed[:5])}"
    else:
        said = "says nothing but the released rows and public parameters"
    return Check(f"{kind}: silence", not disallowed, f"{kind}: the manifest {said}")


def _further(entry: Any, allowed: _Form, place: str) -> Iterator[str]:
    """Name the places where something stands that is not on the list; an unknown key is not repeated."""
    if isinstance(allowed, Mapping):
        if not isinstance(entry, Mapping):
            yield place or "the manifest"
            return
        for key, value in entry.items():
            inside = f"{place}.{key}" if place else str(key)
            if key not in allowed:
                known_otherwise = key in ("rows", "n_dropped", "n_cells", "n_cells_kept", "risk")
                yield inside if known_otherwise else f"another entry in {place or 'the manifest'}"
            else:
                yield from _further(value, allowed[key], inside)
    elif isinstance(allowed, list):
        if not isinstance(entry, list | tuple):
            yield place
            return
        for item in entry:
            yield from _further(item, allowed[0], place)
    elif not allowed(entry):
        yield place


def _check_columns(kind: str, claims: Claims) -> Check:
    """Whether nothing but features and the class is released: no noise would cover another column."""
    others = [c.name for c in claims.columns if c.role not in (Role.QUASI_IDENTIFIER, Role.TARGET)]
    said = (
        f"other columns are released: {listed(others)}" if others else "nothing but features and the target is released"
    )
    return Check(f"{kind}: released columns", not others, f"{kind}: {said}")


def _check_binary(kind: str, released: Columns, claims: Claims) -> Check:
    name = f"{kind}: values"
    try:
        for column in claims.names(Role.QUASI_IDENTIFIER):
            if column in released:
                released.rows_with_one(column)
    except NotBinaryError as exc:
        return Check(name, False, f"{kind}: a released feature is not 0/1: {exc}")
    return Check(name, True, f"{kind}: every released feature holds only 0 and 1")


def _check_figures(kind: str, promised: float, released: Columns, claims: Claims, manifest: Mapping[str, Any]) -> Check:
    """Whether every figure is what the released rows and the parameters make it."""
    parameters, evidence = claims.parameters, manifest["evidence"]
    features = claims.names(Role.QUASI_IDENTIFIER)
    plan = parameters.get("binarize")
    wrong = [] if parameters.get("n_features") == len(features) else ["n_features"]
    wrong += [] if _is_threshold(released, claims) else ["threshold"]
    found = _separation(released, claims)
    stated = claims.stated_utility
    wrong += [] if stated.get("hamming_separation_of_synthetic_rows") == found else ["hamming separation"]
    offered: Any = stated.get("n_features_offered")
    expected = _n_offered(plan)
    is_offered = offered == expected if expected is not None else _is_count(offered) and offered >= len(features)
    wrong += [] if is_offered and stated.get("n_features_released") == len(features) else ["numbers of features"]
    asked = parameters.get("epsilon")
    warning = {"asked_epsilon": asked, "proven_epsilon": promised, "warning": _WARNING}
    is_warned = evidence.get("calibration") == (warning if promised != asked else None)
    wrong += [] if is_warned else ["calibration"]
    wrong += [] if all(_follows(r, plan) for r in claims.recodings.values()) else ["recodings"]
    said = f"are not what rows and parameters make them: {', '.join(wrong)}" if wrong else "follow from it"
    return Check(f"{kind}: figures", not wrong, f"{kind}: further figures of the manifest {said}")


def _is_count(entry: Any) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)


def _is_threshold(released: Columns, claims: Claims) -> bool:
    r"""Whether the threshold is the smallest at which empty cells hold few enough rows on average.

    At t they hold :math:`n_{cells}\,\alpha^t (t + \alpha/(1-\alpha)) / (1+\alpha)` with :math:`\alpha = e^{-1/scale}`.
    """
    stated, fraction = claims.perturbation, claims.parameters.get("max_false_fraction")
    if stated is None or stated.threshold < 1 or not is_number(fraction):
        return False
    scale = next((spent.scale for spent in stated.budget if spent.step == COUNTS), 0.0)
    n_classes = int(np.count_nonzero(_class_sizes(released, claims)))
    if not scale > 0 or not fraction or not fraction > 0 or not n_classes or not released.n_rows:
        return False
    log_cells = math.log(n_classes) + len(claims.names(Role.QUASI_IDENTIFIER)) * math.log(2)
    beyond = 1 / math.expm1(min(1 / scale, 700))

    def excess(t: int) -> float:
        rows = log_cells - t / scale - math.log1p(math.exp(-1 / scale)) + math.log(t + beyond)
        return rows - math.log(fraction * released.n_rows)

    t = stated.threshold
    return excess(t) <= ROUNDING and (t == 1 or excess(t - 1) > -ROUNDING)


def _separation(released: Columns, claims: Claims) -> float:
    """Mean number of features in which two rows of different classes differ, in whole numbers up to the division."""
    target = next((name for name in claims.names(Role.TARGET) if name in released), None)
    if target is None:
        return 0.0
    codes = released.coded(target).codes
    sizes = np.bincount(codes).astype(object)
    apart = 0
    for name in claims.names(Role.QUASI_IDENTIFIER):
        if name in released:
            ones = np.bincount(codes[released.rows_with_one(name)], minlength=len(sizes)).astype(object)
            apart += ones.sum() * (sizes - ones).sum() - (ones * (sizes - ones)).sum()
    pairs = (sizes.sum() ** 2 - (sizes * sizes).sum()) // 2
    return int(apart) / int(pairs) if pairs else 0.0


def _n_offered(plan: Any) -> int | None:
    """Count the features that a plan makes, whatever the rows are; ``None`` without a plan."""
    if not _is_plan(plan) or plan is None:
        return None
    n = 0
    for rule in plan["columns"].values():
        n += len(rule["cuts"]) + 1 if isinstance(rule, Mapping) and "cuts" in rule else rule != "drop"
    return n


def _follows(recoding: ClaimedRecoding, plan: Any) -> bool:
    """Whether a feature is described as the plan makes it; without a plan, features were there before."""
    if plan is None or not _is_plan(plan):
        return plan is None
    rule = plan["columns"].get(recoding.column)
    if rule == "as-is":
        return (recoding.rule, recoding.name, recoding.values) == (ONE_OF, recoding.column, _TRUE)
    if isinstance(rule, Mapping) and "one_of" in rule:
        return recoding.rule == ONE_OF and list(recoding.values) == list(rule["one_of"])
    if isinstance(rule, Mapping) and "cuts" in rule:
        edges = [None, *rule["cuts"], None]
        return recoding.rule == INTERVAL and (recoding.above, recoding.upto) in pairwise(edges)
    return False


judge(DifferentialPrivacy.kind, Judging())


# Whether released counts are too exact for the noise that they are said to have.
#
# Nobody can see in one release that noise was drawn, but rows that were released as they are, or with far less noise,
# can be distinguished from noisy ones where the original is at hand: noise would hardly ever have come out so small.
#
# **What is computed.** In the cells of one class (patterns of 0/1 features), let :math:`c_i` be the original's counts
# and :math:`r_i` the released ones, both with the sum n. An honest release adds to every :math:`c_i` noise Z of its
# own with :math:`P(Z=z) = w\,\alpha^{|z|}`, :math:`\alpha = e^{-1/scale}`, :math:`w = (1-\alpha)/(1+\alpha)`, drops
# what is below the threshold t, and gives n rows to the kept counts :math:`m_i` in proportion: with M their sum, row j
# goes to the cell whose share of the line from 0 to M holds :math:`p_j = \lfloor M(2j+1)/2n \rfloor`. The end of a
# cell's share is hence one of the :math:`p_J - p_{J-1}` whole numbers from which on J rows have been given, J being
# the released rows up to there: at most one number where :math:`M \le n`, at most :math:`\lceil M/n \rceil` in
# general. For every M there are so many vectors m that give r, and each has the probability
# :math:`w^K\alpha^{\sum|m_i-c_i|}` in its K kept cells, where :math:`\sum|m_i-c_i| \ge |M - \sum c_i|` and :math:`\ge
# \sum\max(0, t-c_i)`; times the probability that the other cells fall below t. Sums beyond t n, where a kept count may
# get no row, are bounded by Chernoff's inequality as a whole. The sum over all M is an upper bound of :math:`P(r)`,
# the probability of this very release.
#
# **How it is judged.** Let Q be any other distribution over tables r, fixed by the original alone. :math:`E =
# Q(r)/P(r)` has a mean of at most 1 over honest releases, so :math:`E \ge 1/p` comes about with a probability of at
# most p (Markov's inequality). Q is the mean of four: no noise at all, and noise of an eighth, a quarter and half of
# the stated scale; of rows in cells that the original has not, u come with probability :math:`2^{-u-1}`, each in any
# cell alike. ``LEAST_PROBABILITY`` is p: so seldom is an honest release refused.


LEAST_PROBABILITY = 1e-9
"""Probability at most that a release with the stated noise is refused as too exact."""
NOISE = "noise"
"""Name of what one release cannot show."""

_SMALLEST_SCALE, _LARGEST_SCALE, _LARGEST_THRESHOLD = 0.01, 1e8, 10**11
_SMALLER = (0.0, 1 / 8, 1 / 4, 1 / 2)
_MOST_FEATURES = 60
_MOST_COUNTED = 1 << 25
_FIRST_MULTIPLES = 1_000
_GROWTH = 1.01

Counts = NDArray[np.int64]
Logs = NDArray[np.float64]


@dataclass(frozen=True)
class ClassCells:
    """Cells of one class that hold rows before or after, in the order of their patterns.

    ``is_evenly_spaced`` says whether the released rows are those of a class of which no cell was kept.
    """

    original: Counts
    released: Counts
    is_evenly_spaced: bool = False


def check_exactness(released: Columns, original: Columns | None, claims: Claims) -> Check | Unchecked:
    """Refuse counts that are too exact for the stated noise; otherwise say that this cannot be decided."""
    if original is None:
        said = "whether the released counts are too exact for the stated noise, which needs the original"
        return Unchecked(NOISE, said, GIVE_ORIGINAL)
    stated = claims.perturbation
    scale = next((spent.scale for spent in stated.budget if spent.step == COUNTS), 0.0) if stated else 0.0
    threshold = stated.threshold if stated else 0
    if not 1 <= threshold <= _LARGEST_THRESHOLD or not 0 < scale <= _LARGEST_SCALE:
        return Check(NOISE, False, "the manifest does not say how much noise the counts have")
    if scale < _SMALLEST_SCALE:
        return Unchecked(NOISE, f"that noise was added to the counts: at the scale {scale:g} most of it is 0 anyway")
    found = _cells(released, original, claims)
    if isinstance(found, str):
        return Check(NOISE, False, f"the released counts cannot be compared with the original's: {found}")
    probability = math.exp(log_probability(found, len(claims.names(Role.QUASI_IDENTIFIER)), scale, threshold))
    if probability < LEAST_PROBABILITY:
        message = (
            f"the released counts are too exact for noise of the scale {scale:g}: it would come out so small with a "
            f"probability of at most {probability:.1e}"
        )
        return Check(NOISE, False, message, LEAST_PROBABILITY, probability)
    message = (
        f"that noise of the scale {scale:g} was added to the counts; they are not so exact that it can be ruled out "
        f"(it is refused below a probability of {LEAST_PROBABILITY:g}, found at most {probability:.2g})"
    )
    return Unchecked(NOISE, message)


def log_probability(classes: Iterable[ClassCells], n_features: int, scale: float, threshold: int) -> float:
    """Logarithm of a bound on the probability that honest noise makes the evidence against it this strong."""
    noise = _Noise(scale)
    n_cells = float(2**n_features)
    by_chance, for_less = 0.0, np.zeros(len(_SMALLER))
    for cells in classes:
        by_chance += noise.of_release(cells, n_cells, threshold)
        for_less += [_under_less(cells, n_cells, share * scale) for share in _SMALLER]
    evidence = _log_sum(for_less) - math.log(len(_SMALLER)) - by_chance
    return 0.0 if math.isnan(evidence) else min(0.0, -evidence)


def _under_less(cells: ClassCells, n_cells: float, scale: float) -> float:
    """Logarithm of Q: the cells of the original under noise of a smaller scale, and rows in other cells."""
    occupied = cells.original > 0
    n_strays = int(cells.released[~occupied].sum())
    strays = -(n_strays + 1) * math.log(2) - n_strays * math.log(n_cells)
    apart = np.abs(cells.released - cells.original)[occupied]
    if scale == 0:
        return -math.inf if apart.any() else strays
    return float(strays + len(apart) * _Noise(scale).log_most - apart.sum() / scale)


class _Noise:
    """Two-sided geometric noise of a scale."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.alpha = math.exp(-1 / scale)
        self.log_most = math.log(math.tanh(1 / (2 * scale)))
        """Logarithm of the probability of the most probable value, 0."""

    def log_at_most(self, counts: Counts, most: int) -> Logs:
        """Logarithms of the probabilities that counts with noise are at most this."""
        room = (most - counts).astype(np.float64)
        above = np.log1p(-np.exp(-(np.maximum(room, 0) + 1) / self.scale) / (1 + self.alpha))
        below = np.minimum(room, 0) / self.scale - math.log1p(self.alpha)
        return np.where(room >= 0, above, below)

    def of_release(self, cells: ClassCells, n_cells: float, threshold: int) -> float:
        """Logarithm of a bound on the probability of the released counts of a class."""
        n = int(cells.released.sum())
        if n == 0:
            return 0.0
        kept = cells.released > 0
        n_empty = n_cells - len(kept)
        dropped, is_cell = cells.original[~kept], cells.original[kept]

        def others_at_most(most: int) -> float:
            empty = float(self.log_at_most(np.zeros(1, dtype=np.int64), most)[0])
            return float(self.log_at_most(dropped, most).sum()) + n_empty * empty

        before, least = int(is_cell.sum()), int(np.maximum(threshold - is_cell, 0).sum())
        ends = np.cumsum(cells.released[kept])[:-1]
        far = max(threshold, 2)
        near = [
            _log_sum(self._apart(np.arange(1, n + 1), before, least)) + others_at_most(threshold - 1),
            _log_sum(self._up_to_twice(n, ends, threshold, before, least)) + others_at_most(max(threshold - 1, 1)),
            _log_sum(self._further(n, len(ends), far, before, least)) + others_at_most(threshold - 1),
        ]
        parts = [
            float(kept.sum()) * self.log_most + _log_sum(np.array(near)),
            self._sum_above(far * n, cells.original, n_empty, threshold),
        ]
        if cells.is_evenly_spaced:  # what a class gets of which no cell was kept
            parts.append(others_at_most(threshold - 1) + float(self.log_at_most(is_cell, threshold - 1).sum()))
        return min(_log_sum(np.array(parts)), 0.0)

    def _apart(self, sums: Counts, before: int, least: int) -> Logs:
        """Logarithm of alpha to the power of what all noise together must at least have been."""
        return np.asarray(-np.maximum(np.abs(sums - before), least) / self.scale)

    def _up_to_twice(self, n: int, ends: Counts, threshold: int, before: int, least: int) -> Logs:
        """Terms of the sums M from n + 1 to 2 n, where an end has one or two places."""
        sums = np.arange(n + 1, 2 * n + 1)
        if n * (len(ends) + 1) <= _MOST_COUNTED:
            two = np.zeros(n, dtype=np.int64)
            for end in ends.tolist():
                two += sums * (2 * end + 1) // (2 * n) - sums * (2 * end - 1) // (2 * n) - 1
        else:
            two = np.minimum(sums - n, len(ends))
        if threshold > 1:
            return self._apart(sums, before, least) + two * math.log(2)
        # A kept count of 1 may get no row: it then lies between the two places of an end and adds 1 to the sum.
        one_more = math.exp(1 / self.scale)
        return self._apart(sums, before, least) + two * math.log(2 + one_more) + 2 * math.log(1 + one_more)

    def _further(self, n: int, n_ends: int, far: int, before: int, least: int) -> Logs:
        """Terms of the sums M from 2 n to ``far`` n, where every kept count gets a row: some multiples at a time."""
        starts = np.arange(2, min(far, _FIRST_MULTIPLES))
        if far > _FIRST_MULTIPLES:
            n_steps = math.ceil(math.log(far / _FIRST_MULTIPLES) / math.log(_GROWTH))
            grown = np.ceil(_FIRST_MULTIPLES * _GROWTH ** np.arange(n_steps + 1)).astype(np.int64)
            starts = np.unique(np.concatenate([starts, grown[grown < far]]))
        stops = np.append(starts[1:], far)[: len(starts)]
        each = math.log(min(n, 1 / -math.expm1(-1 / self.scale)))
        terms = self._apart(starts * n + 1, before, least) + n_ends * np.log(stops) + np.log(stops - starts) + each
        return np.asarray(terms)

    def _sum_above(self, least_sum: int, counts: Counts, n_empty: float, threshold: int) -> float:
        """Logarithm of Chernoff's bound on the probability that all kept counts together are more."""
        tilt = 1 / (2 * self.scale)
        upward, downward = -math.expm1(-tilt), -math.expm1(-3 * tilt)
        occurring, times = np.unique(np.append(counts, 0), return_counts=True)
        times = times + np.where(occurring == 0, n_empty - 1, 0)
        at_least = np.maximum(occurring, threshold)
        log_mass = self.log_most + tilt * at_least - (at_least - occurring) / self.scale
        log_mass += np.where(occurring >= threshold, math.log(1 / upward + 1 / downward - 1), -math.log(upward))
        mean = float((times * np.logaddexp(0.0, log_mass)).sum())
        return min(0.0, mean - tilt * least_sum)


def _log_sum(logs: Logs) -> float:
    most = float(logs.max(initial=-math.inf))
    return most if math.isinf(most) else most + math.log(float(np.exp(logs - most).sum()))


def _cells(released: Columns, original: Columns, claims: Claims) -> list[ClassCells] | str:
    """Count the cells of both tables, class by class; or say why they cannot be counted."""
    names, targets = claims.names(Role.QUASI_IDENTIFIER), claims.names(Role.TARGET)
    if len(names) > _MOST_FEATURES:
        return f"{len(names):,} features are too many"
    if len(targets) != 1 or any(targets[0] not in table for table in (released, original)):
        return "the target is not a column of both tables"
    before, after = np.zeros(original.n_rows, dtype=np.int64), np.zeros(released.n_rows, dtype=np.int64)
    for name in names:
        try:
            ones = _ones(original, name, claims.recodings.get(name))
            after = 2 * after + _indicator(released.rows_with_one(name), released.n_rows)
        except NotBinaryError as exc:
            return str(exc).removesuffix(".")
        if ones is None:
            return f"'{name}' cannot be computed from it"
        before = 2 * before + ones
    old, new = original.coded(targets[0]), released.coded(targets[0])
    of_old, of_new = matching_ids(old.values, new.values)
    classes_before, classes_after = of_old[old.codes], of_new[new.codes]
    found = []
    for label in np.unique(np.concatenate([classes_before, classes_after])).tolist():
        found.append(_of_class(before[classes_before == label], after[classes_after == label], len(names)))
    return found


def _of_class(before: Counts, after: Counts, n_features: int) -> ClassCells:
    patterns = np.unique(np.concatenate([before, after]))
    counts = [np.bincount(np.searchsorted(patterns, own), minlength=len(patterns)) for own in (before, after)]
    n = len(after)
    spaced = [(2 * i + 1) * 2**n_features // (2 * n) for i in range(n)]
    return ClassCells(counts[0], counts[1], bool(np.array_equal(np.sort(after), np.array(spaced, dtype=np.int64))))


def _ones(original: Columns, name: str, recoding: ClaimedRecoding | None) -> NDArray[np.int64] | None:
    """Compute a feature of the original's rows; a cell that does not fit its rule is 0."""
    source = recoding.column if recoding is not None else name
    for feature in (name, source):
        if original.feature(feature) is not None:
            return _indicator(original.rows_with_one(feature), original.n_rows)
    if source not in original:
        return None
    column = original.coded(source)
    of_value: NDArray[Any] | None
    of_value = evaluate(recoding, column.values, clamp=True) if recoding is not None else zero_one(column.values)
    return None if of_value is None else (of_value[column.codes] == 1).astype(np.int64)


def _indicator(rows: NDArray[np.int64], n_rows: int) -> NDArray[np.int64]:
    ones = np.zeros(n_rows, dtype=np.int64)
    ones[rows] = 1
    return ones
