"""Promises that hold by construction of a mechanism: whether what the manifest says of its noise adds up.

Differential privacy is about all the releases that might have come out; the one that did cannot show it. What can be
checked is checked: that the stated noise is what the promised ε needs, fits the released table, and that the manifest
says nothing beside the released rows and public parameters: every entry stands on a list, and every figure among them
is computed again. A figure that could be anything could tell anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.audit.checks import Check, Unchecked, listed
from sfumato.audit.claims import COUNTS, SELECTION, SYNTHETIC, ClaimedRecoding, Claims, Promise, Spending, is_number
from sfumato.audit.columns import Columns
from sfumato.audit.kinds import Judging, judge
from sfumato.audit.rules import INTERVAL, ONE_OF
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
_PACKAGES = (
    *("python", "zlib", "sfumato", "numpy", "scipy", "scikit-learn", "pyarrow", "xlsxwriter", "duckdb", "narwhals"),
    "opendp",
)

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
    **dict.fromkeys(("input", "project_sha256"), _nothing),
    "suppressed_rows": _zero,
    "output": {
        **_each("name", "sha256", "format", "rows"),
        "columns": [_each("name", "role", "kind", "domain", "missing")],
    },
    "mechanism": {
        **_each("name"),
        "parameters": {**_each("epsilon", "n_features", "calibration", "max_false_fraction"), "binarize": _is_plan},
        "seed": _nothing,
    },
    "missing": _each("tokens", "columns"),
    "recodings": [_each("name", "column", "rule", "values", "above", "upto")],
    "guarantees": [{**_each("kind", "epsilon", "columns", "neighbours", "statement"), "audited": _nothing}],
    "evidence": {
        "utility": _each("n_features_offered", "n_features_released", "hamming_separation_of_synthetic_rows"),
        "calibration": _each("asked_epsilon", "proven_epsilon", "warning"),
    },
    "versions": _each(*_PACKAGES),
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
    told = list(dict.fromkeys(_further(manifest, _ALLOWED, "")))
    told += ["guarantees (more than one)"] if len(claims.promises) > 1 else []
    if told:
        said = f"may say nothing that is not on the list for differential privacy, but has: {', '.join(told[:5])}"
    else:
        said = "says nothing but the released rows and public parameters"
    return Check(f"{kind}: silence", not told, f"{kind}: the manifest {said}")


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
    return Check(f"{kind}: figures", not wrong, f"{kind}: figures that the manifest gives beside the release {said}")


def _is_count(entry: Any) -> bool:
    return isinstance(entry, int) and not isinstance(entry, bool)


def _is_threshold(released: Columns, claims: Claims) -> bool:
    r"""Whether the threshold is the smallest at which empty cells hold few enough rows on average.

    At t they hold :math:`n_{cells}\,\alpha^t (t + \alpha/(1-\alpha)) / (1+\alpha)` with :math:`\alpha = e^{-1/scale}`.
    """
    stated, fraction = claims.perturbation, claims.parameters.get("max_false_fraction")
    if stated is None or stated.threshold is None or stated.threshold < 1 or not is_number(fraction):
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


judge(DifferentialPrivacy.kind, Judging(form={"epsilon": "number", "columns": ["text"], "neighbours": "text"}))
