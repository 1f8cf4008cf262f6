"""Kinds of promises: what a release is compared under, by one name each, and which kinds are tried unasked.

A k of one kind is not a k of another: containment says nothing about zeros, in (k,k)-anonymity fewer than k rows may be
equal, and a perturbed table has wrong cells. So releases are compared with those that promise the same, and kinds
other than strict k-anonymity are tried only on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.base import MechanismInfo
from sfumato.mechanisms.registry import find_mechanism, registered_mechanisms

STRICT = "k-anonymity"
"""The kind that is tried where nobody asks for another: every row equals k - 1 others, and no cell is wrong."""
PERTURBED = "perturbation"
PARTIAL = "partial"
ALL_KINDS = "all"

_JOINED = {
    "l-diversity": STRICT,
    "t-closeness": STRICT,
    "beta-likeness": STRICT,
    "delta-disclosure": STRICT,
    "alpha-k-anonymity": STRICT,
    "global-anonymity": "kk-anonymity",
    "bucket-size": "buckets",
    "bucket-diversity": "buckets",
}
"""Kinds of guarantees that come with another one, or under one name with it; every other kind has its own name."""
_TITLES = {
    STRICT: "k-anonymity",
    "kk-anonymity": "(k,k)-anonymity",
    "containment": "k-anonymity by containment",
    "buckets": "buckets",
    "differential-privacy": "differential privacy",
    "breach-bound": "bound on what an attacker learns",
    PERTURBED: "k-anonymity by wrong cells",
    PARTIAL: "k-anonymity of some columns only",
}
_MEANINGS = {
    STRICT: "every row equals at least k − 1 others in all quasi-identifiers",
    "kk-anonymity": "every person fits at least k rows; fewer than k rows may be equal",
    "containment": "against attackers who know only 1-values (items bought, conditions); rows may be unique",
    "buckets": "hides who has which sensitive value, not who is in the table",
    "differential-privacy": "rows are drawn from noisy counts",
    "breach-bound": "an estimate of what can be inferred; rows may be unique",
    PERTURBED: "some released cells are false, and the release does not say which",
    PARTIAL: "the other quasi-identifiers are published unprotected",
}
_ORDER = tuple(_TITLES)
_SAID_BY_TITLE = frozenset({STRICT, "global-anonymity", "bucket-size", "bucket-diversity"})


def kind_of_guarantee(guarantee: str) -> str:
    """Kind of promise that a kind of guarantee belongs to.

    Examples
    --------
    >>> kind_of_guarantee("l-diversity"), kind_of_guarantee("bucket-size"), kind_of_guarantee("containment")
    ('k-anonymity', 'buckets', 'containment')
    """
    return _JOINED.get(guarantee, guarantee)


def sought_kind(mechanism: str, parameters: Mapping[str, Any]) -> str:
    """Kind of promise that a mechanism with these parameters makes, as it declares.

    Examples
    --------
    >>> sought_kind("error-risk-tree", {}), sought_kind("error-risk-tree", {"generalization": "uniform"})
    ('kk-anonymity', 'k-anonymity')
    """
    info = find_mechanism(mechanism)
    return STRICT if info is None else declared_kind(info, parameters)


def declared_kind(info: MechanismInfo, parameters: Mapping[str, Any]) -> str:
    """Kind of promise that a mechanism declares for these parameters."""
    return kind_of_guarantee(info.guarantee if info.kind_of is None else info.kind_of(parameters))


def promised_kind(guarantees: Sequence[Mapping[str, Any]], perturbation: str | None = None) -> str | None:
    """Kind of promise of a release, from its audited guarantees; ``None`` where it promises nothing.

    Parameters
    ----------
    guarantees : sequence of mapping
        Each with its ``kind``, and ``is_partial`` where it is not over all quasi-identifiers.
    perturbation : str or None
        How cells were changed, as a manifest names it.

    Examples
    --------
    >>> strict = {"kind": "k-anonymity", "k": 5, "is_partial": False}
    >>> promised_kind([strict]), promised_kind([strict], "flipped"), promised_kind([strict | {"is_partial": True}])
    ('k-anonymity', 'perturbation', 'partial')
    """
    kinds = [kind_of_guarantee(entry["kind"]) for entry in guarantees]
    if not kinds:
        return None
    if perturbation == "flipped":
        return PERTURBED
    if STRICT in kinds:
        is_partial = any(entry.get("is_partial") for entry in guarantees if kind_of_guarantee(entry["kind"]) == STRICT)
        return PARTIAL if is_partial else STRICT
    return min(kinds, key=_place)


def group_title(kind: str | None, guarantees: Sequence[Mapping[str, Any]] = ()) -> str:
    """Name of a group of releases: its kind, and what they promise further.

    Examples
    --------
    >>> group_title("k-anonymity", [{"kind": "k-anonymity"}, {"kind": "l-diversity"}])
    'k-anonymity with l-diversity'
    """
    if kind is None:
        return "no promise"
    main = _TITLES.get(kind) or _words(kind)
    more = [entry["kind"] for entry in guarantees if entry["kind"] not in (kind, *_SAID_BY_TITLE)]
    return " with ".join([main, " and ".join(map(_words, dict.fromkeys(more)))]) if more else main


def kind_meaning(kind: str) -> str:
    """Say what a kind promises, or does not, in half a sentence."""
    return _MEANINGS.get(kind, "")


def kind_title(kind: str) -> str:
    """Name of a kind for people."""
    return _TITLES.get(kind) or _words(kind)


def other_kinds() -> tuple[str, ...]:
    """Kinds that a comparison tries on request only: those of all mechanisms and their settings, and no others."""
    own = {kind_of_guarantee(info.guarantee) for info in registered_mechanisms().values()}
    found = own | (set(_ORDER) & {PERTURBED, PARTIAL})
    return tuple(sorted(found - {STRICT}, key=_place))


def checked_kinds(also: Iterable[str]) -> tuple[str, ...]:
    """Kinds that are asked for by name, ``all`` for all of them.

    Raises
    ------
    InvalidParameterError
        If there is no such kind.
    """
    known = other_kinds()
    named = list(dict.fromkeys(also))
    for name in named:
        if name not in (*known, STRICT, ALL_KINDS):
            allowed = f"one of {', '.join([*known, ALL_KINDS])}"
            raise InvalidParameterError("also", f"got '{name}'", allowed=allowed)
    return known if ALL_KINDS in named else tuple(named)


def _place(kind: str) -> tuple[int, str]:
    return (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), kind)


def _words(kind: str) -> str:
    return GUARANTEES[kind].words.title if kind in GUARANTEES else kind
