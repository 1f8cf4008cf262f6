"""Promises that hold by construction of a mechanism: whether what the manifest says of its noise adds up.

Differential privacy is about all the releases that might have come out; the one that did cannot show it. What can be
checked is checked: that the stated noise is enough for the promised ε, fits the released table, and that nothing beside
the noisy result is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import COUNTS, SELECTION, SYNTHETIC, Claims, Promise, Spending, is_number
from sfumato.audit.columns import Columns
from sfumato.errors import NotBinaryError
from sfumato.guarantees import ROUNDING
from sfumato.schema import Role

CHANGES = 2
"""One changed row can raise one score while it lowers another, and moves 1 from one count to another."""


def check_construction(promise: Promise, released: Columns, claims: Claims) -> Iterator[Check]:
    """Check everything about a differential privacy promise that can be checked, and say that it is not the promise."""
    kind, promised = promise.guarantee.kind, float(getattr(promise.guarantee, "epsilon", 0))
    yield from _check_budget(kind, promised, released, claims)
    yield _check_asked(kind, promised, claims)
    yield _check_silence(kind, promise, claims)
    yield _check_columns(kind, claims)
    yield _check_binary(kind, released, claims)
    message = (
        f"{kind}: epsilon = {promised:g} holds by construction of the mechanism if it did what the manifest says; "
        "no audit of the output can confirm it"
    )
    yield Check(f"{kind}: by construction", True, message, promised)


def _check_budget(kind: str, promised: float, released: Columns, claims: Claims) -> Iterator[Check]:
    stated = claims.perturbation
    steps = sorted(spent.step for spent in stated.budget) if stated and stated.kind == SYNTHETIC else []
    if not stated or steps != sorted((SELECTION, COUNTS)):
        yield Check(f"{kind}: budget", False, f"{kind}: the manifest does not say how the budget was spent")
        return
    total = sum(spent.epsilon for spent in stated.budget)
    passed = abs(total - promised) <= ROUNDING * max(1.0, promised)
    yield Check(f"{kind}: budget", passed, f"{kind}: the parts of the budget add up to {total:g}", promised, total)
    for spent in stated.budget:
        yield _check_noise(kind, spent, released, claims)


def _check_noise(kind: str, spent: Spending, released: Columns, claims: Claims) -> Check:
    """Whether the noise of a step is enough for its part of the budget, given what one row can change."""
    if spent.step == SELECTION:
        n_choices, sensitivity = (
            len(claims.names(Role.QUASI_IDENTIFIER)),
            _rows_outside_smallest_class(released, claims),
        )
        needed = CHANGES * n_choices * sensitivity / spent.scale if spent.scale else float("inf")
    else:
        n_choices, sensitivity = 1, CHANGES
        needed = sensitivity / spent.scale if spent.scale else float("inf")
    as_stated = (spent.n_choices, spent.sensitivity) == (n_choices, sensitivity)
    passed = as_stated and needed <= spent.epsilon * (1 + ROUNDING)
    fits = "" if as_stated else ", and sensitivity or number of choices are not those of the release"
    message = f"{kind}: the noise for {spent.step} costs {needed:.6g}, stated are {spent.epsilon:.6g}{fits}"
    return Check(f"{kind}: noise for {spent.step}", passed, message, spent.epsilon, needed)


def _rows_outside_smallest_class(released: Columns, claims: Claims) -> int:
    """Most pairs of rows of different classes that one row is in: what it can change of a feature's separated pairs."""
    for name in claims.names(Role.TARGET):
        if name in released:
            column = released.coded(name)
            sizes = np.bincount(column.codes, minlength=len(column.values))
            return int(sizes.sum() - sizes.min(initial=released.n_rows))
    return released.n_rows


def _check_asked(kind: str, promised: float, claims: Claims) -> Check:
    """Whether the mechanism was asked for the promised ε; the paper's noise gives a larger one, which must be said."""
    asked, calibration = claims.parameters.get("epsilon"), claims.parameters.get("calibration")
    name = f"{kind}: parameter epsilon"
    if not is_number(asked) or asked is None:
        return Check(name, False, f"{kind}: the mechanism's epsilon is not a number", promised)
    passed = asked == promised or (calibration == "paper" and promised > asked)
    message = f"{kind}: epsilon = {promised:g} is promised, the mechanism's epsilon is {asked:g}"
    if calibration == "paper" and promised > asked:
        message += " with the paper's noise, which is too little for it"
    return Check(name, passed, message, promised, asked)


def _check_silence(kind: str, promise: Promise, claims: Claims) -> Check:
    """Whether the manifest keeps to itself what would tell more than the noisy result."""
    told = ["the original's SHA-256, by which guesses can be tried"] if claims.input_sha256 is not None else []
    told += ["a seed of the noise"] if claims.seed is not None else []
    told += ["an audited level, which does not exist"] if promise.audited is not None else []
    said = f"gives away {', '.join(told)}" if told else "names no hash of the original, no seed and no audited level"
    return Check(f"{kind}: silence", not told, f"{kind}: the manifest {said}")


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
