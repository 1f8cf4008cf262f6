"""What a mechanism is asked to promise: a list of guarantees, or the shorthand by which people type it.

A guarantee in such a list says its level and, if it is about a sensitive column, which one; over which columns and by
which unit it is promised follows from the table. Command line, project files and manifests write it in the parameters
that each guarantee declares (``l=2``, ``t=0.2``), which are read and written here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.anonymity import KAnonymity
from sfumato.guarantees.base import EVERY_SENSITIVE, GUARANTEES, Guarantee, SearchedBy
from sfumato.guarantees.value_shares import AlphaKAnonymity
from sfumato.parameters import Parameter, ParameterSpec, parameter_of

SENSITIVE = "sensitive"
USUAL_K = 5
"""What a mechanism's parameter k is if nobody says."""


def requested_kinds(searched: Iterable[SearchedBy]) -> list[type[Guarantee]]:
    """Kinds that a mechanism with these searches can be asked for, in the order in which they are shown."""
    ways = list(searched)
    found = [one for one in GUARANTEES.values() if one.searched_by in ways and one.shorthand]
    return sorted(found, key=lambda one: ways.index(one.searched_by) if one.searched_by is not None else 0)


def shorthand_parameters(searched: Iterable[SearchedBy]) -> tuple[Parameter, ...]:
    """Parameters by which people ask a mechanism with these searches for guarantees.

    Examples
    --------
    >>> [own.name for own in shorthand_parameters([SearchedBy.PEOPLE])]
    ['k_map', 'delta_max', 'delta_min']
    """
    kinds = requested_kinds(searched)
    found = [own for kind in kinds for own in kind.asked_by]
    about = [kind.level.name for kind in kinds if _is_about_values(kind)]
    if about:
        help = f"columns that {', '.join(about)} are about, by commas (default: those with the role sensitive)"
        found.append(parameter_of(SENSITIVE, str | None, None, ParameterSpec(help)))
    return tuple(found)


def privacy_of(parameters: Mapping[str, Any], searched: Iterable[SearchedBy]) -> tuple[Guarantee, ...]:
    """Read the shorthand.

    Raises
    ------
    InvalidParameterError
        If a level is none, or something says more about a guarantee that is not asked for.

    Examples
    --------
    >>> [own.kind for own in privacy_of({"l": 2, "t": 0.2}, [SearchedBy.VALUES])]
    ['l-diversity', 't-closeness']
    """
    kinds = requested_kinds(searched)
    columns = parameters.get(SENSITIVE)
    if columns is not None and not isinstance(columns, str):
        allowed = "names of columns by commas, or None"
        raise InvalidParameterError(SENSITIVE, f"got {columns!r}", allowed=allowed)
    found: list[Guarantee] = []
    for kind in kinds:
        own = {one.name: parameters[one.name] for one in kind.asked_by if one.name in parameters}
        if own.get(kind.level.name) is None:
            _check_says_nothing(kind, own)
            continue
        if columns is not None and _is_about_values(kind):
            own[SENSITIVE] = columns
        found.append(kind(**own))
    if columns is not None and not any(_is_about_values(type(own)) for own in found):
        about = ", ".join(kind.level.name for kind in kinds if _is_about_values(kind))
        raise InvalidParameterError(SENSITIVE, f"got {columns!r}", allowed=f"given together with {about}")
    return tuple(found)


def shorthand(privacy: Sequence[Guarantee]) -> dict[str, Any]:
    """Write guarantees in the parameters by which people ask for them; those of nothing are left out.

    Raises
    ------
    InvalidParameterError
        If the shorthand cannot say it: two guarantees of one kind, or about different columns.

    Examples
    --------
    >>> shorthand(privacy_of({"l": 3, "c": 2.0, "variant": "recursive"}, [SearchedBy.VALUES]))
    {'l': 3, 'variant': 'recursive', 'c': 2.0}
    """
    found: dict[str, Any] = {}
    about = {getattr(own, SENSITIVE) for own in privacy if _is_about_values(type(own))}
    kinds = [own.kind for own in privacy]
    if len(about) > 1 or len(set(kinds)) < len(kinds):
        problem = "names several columns" if len(about) > 1 else "asks for one kind twice"
        allowed = "one guarantee of each kind, all about the same columns"
        raise InvalidParameterError("privacy", problem, allowed=allowed, hint="name the columns in one text, by commas")
    for own in privacy:
        found |= {one.name: getattr(own, one.name) for one in own.asked_by}
    found[SENSITIVE] = next(iter(about - {EVERY_SENSITIVE}), None)
    return {name: value for name, value in found.items() if value is not None}


def k_of(k: int, privacy: Sequence[Guarantee]) -> int:
    """Give the k that is asked for, of which a mechanism's parameter k is a shorthand: the largest one.

    A :class:`KAnonymity` among the guarantees takes the place of the default.

    Raises
    ------
    InvalidParameterError
        If the parameter was given, and is another k.

    Examples
    --------
    >>> k_of(5, [KAnonymity(10)]), k_of(7, [])
    (10, 7)
    """
    named = {own.k for own in privacy if isinstance(own, KAnonymity)}
    if named and (len(named) > 1 or (k != USUAL_K and named != {k})):
        raise InvalidParameterError("privacy", "asks for another k as well", allowed="one k, here or by k")
    return max([*(named or {k}), *(own.k for own in privacy if isinstance(own, AlphaKAnonymity))])


def check_request(privacy: object, searched: Iterable[SearchedBy], mechanism: str) -> None:
    """Refuse what is no list of guarantees, or not of kinds that a mechanism can be asked for.

    Raises
    ------
    InvalidParameterError
        Names the kinds that can be asked for.
    """
    able: list[type[Guarantee]] = [KAnonymity, *requested_kinds(searched)]
    allowed = f"a list of guarantees for {mechanism}: {', '.join(kind.__name__ for kind in able)}"
    if not isinstance(privacy, list | tuple):
        raise InvalidParameterError("privacy", f"got a {type(privacy).__name__}", allowed=allowed)
    for own in privacy:
        if type(own) not in able:
            raise InvalidParameterError("privacy", f"got a {type(own).__name__}", allowed=allowed)
        if own.columns or own.by_persons:
            problem = f"got a {type(own).__name__} with columns or a unit"
            hint = "leave both out: it is promised over all quasi-identifiers, and by persons where these repeat"
            raise InvalidParameterError("privacy", problem, allowed=allowed, hint=hint)
    shorthand(privacy)  # refuses what it cannot say


def _is_about_values(kind: type[Guarantee]) -> bool:
    return SENSITIVE in {one.name for one in fields(kind)}


def _check_says_nothing(kind: type[Guarantee], given: Mapping[str, Any]) -> None:
    """Refuse what says more about a level that is not asked for."""
    needed = kind.level.name
    for own in kind.asked_by:
        if own.name != needed and own.name in given and given[own.name] != own.default:
            allowed = f"{own.default!r} where {needed} is not given"
            raise InvalidParameterError(
                own.name, f"got {given[own.name]!r}", allowed=allowed, hint=f"give {needed} as well"
            )
