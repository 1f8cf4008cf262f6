"""Levels on the Goal step: as which kind a mechanism promises each of its levels, and what was typed for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.evaluation.promises import kind_of_guarantee
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.base import MechanismInfo
from sfumato.mechanisms.registry import check_value
from sfumato.parameters import Parameter
from sfumato.web.goal_guarantees import goal_guarantees

_NO_SENSITIVE = "No column is sensitive, so there is nothing to promise. Leave it empty, or give a column that role."
Levels = dict[str, str]
"""Parameters of a mechanism by the kind of guarantee that they are the level of."""


def levels_of(info: MechanismInfo, settings: Mapping[str, Any]) -> Levels:
    """Say as which kind of guarantee a mechanism with these settings promises each of its levels.

    Examples
    --------
    >>> from sfumato.mechanisms.registry import mechanism_info
    >>> levels_of(mechanism_info("error-risk-tree"), {"generalization": "uniform"})
    {'k-anonymity': 'k', 'l-diversity': 'l', 't-closeness': 't'}
    >>> levels_of(mechanism_info("slicing"), {})
    {'bucket-size': 'k', 'bucket-diversity': 'l'}
    """
    declared = info.guarantee if info.kind_of is None else info.kind_of(settings)
    main = declared if declared in GUARANTEES else info.guarantee
    kinds: dict[str, list[str]] = {}
    for one in goal_guarantees():
        kinds.setdefault(one.parameter, []).append(one.kind)
    taken = {parameter.name for parameter in info.parameters}
    return {_nearest(of_level, main): name for name, of_level in kinds.items() if name in taken}


def _nearest(kinds: Sequence[str], main: str) -> str:
    """Choose, of kinds with the same level, that which a mechanism promises, or one that comes with it."""
    if main in kinds:
        return main
    return next((kind for kind in kinds if kind_of_guarantee(kind) == kind_of_guarantee(main)), kinds[0])


def levels_by_setting(
    info: MechanismInfo, proposed: Iterable[Mapping[str, Any]], usual: Levels
) -> dict[str, dict[str, Levels]]:
    """Give the levels where one setting makes other kinds of them than usual, by its name and value as it is shown."""
    tried: list[tuple[str, str | bool]] = [(one.name, choice) for one in info.parameters for choice in one.choices]
    tried += [(one.name, value) for one in info.parameters if one.type is bool for value in (True, False)]
    tried += [entry for settings in proposed for entry in settings.items() if isinstance(entry[1], str)]
    found: dict[str, dict[str, Levels]] = {}
    for name, value in tried:
        levels = levels_of(info, {name: value})
        if levels != usual:
            found.setdefault(name, {})[str(value).lower() if isinstance(value, bool) else value] = levels
    return found


def is_required(parameter: Parameter, kind: str) -> bool:
    """Whether a level must be said: left empty, the mechanism would promise its own."""
    return parameter.default is not None and _not_asked_for(parameter, kind) is None


def _not_asked_for(parameter: Parameter, kind: str) -> float | None:
    """Value that a mechanism takes to promise nothing of a kind, such as l = 1: the least one, where it is no level."""
    least = parameter.at_least
    return None if least is None or GUARANTEES[kind].level.makes_sense(least) else least


def checked_levels(
    info: MechanismInfo, settings: Mapping[str, Any], given: Mapping[str, str], *, has_sensitive: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read levels as typed, by kind.

    Parameters
    ----------
    given : mapping of str to str
        Those that are not empty.

    Returns
    -------
    tuple of dict
        Parameters to write; and problems by kind: a level that the mechanism does not promise with these settings,
        one that is wrong, and an empty one of which the mechanism would promise its own.
    """
    taken, known = levels_of(info, settings), {parameter.name: parameter for parameter in info.parameters}
    problems = {kind: _not_promised(info, taken) for kind in given if kind not in taken}
    found: dict[str, Any] = {}
    for guarantee in (one for one in goal_guarantees() if one.kind in taken):
        parameter, text = known[guarantee.parameter], given.get(guarantee.kind, "")
        if guarantee.needs_sensitive and not has_sensitive:
            problems |= {guarantee.kind: _NO_SENSITIVE} if text else {}
        elif text:
            try:
                found[parameter.name] = _checked(info, parameter, guarantee.kind, text)
            except InvalidParameterError as exc:
                problems[guarantee.kind] = str(exc)
        elif is_required(parameter, guarantee.kind):
            always = f"{info.name} always promises {guarantee.name}"
            problems[guarantee.kind] = f"Give a number: {always}, and an empty field does not say how much."
        elif parameter.default is not None:
            found[parameter.name] = _not_asked_for(parameter, guarantee.kind)
    return found, problems


def _checked(info: MechanismInfo, parameter: Parameter, kind: str, text: str) -> Any:
    value = number_or_text(text)
    taken, level = check_value(info, parameter, value), GUARANTEES[kind].level
    if taken != _not_asked_for(parameter, kind) and not level.makes_sense(float(taken)):
        raise InvalidParameterError(parameter.name, f"got {taken:g}", allowed=level.allowed)
    return taken if isinstance(taken, int) else value


def _not_promised(info: MechanismInfo, taken: Levels) -> str:
    names = " and ".join(GUARANTEES[kind].words.title for kind in taken)
    return f"{info.name} does not promise this with these settings, but {names}. Leave it empty."


def asked_levels(given: Mapping[str, str], *, has_sensitive: bool) -> tuple[list[str], dict[str, str]]:
    """Read levels as typed, as a comparison is asked for them; gives them, and problems by kind."""
    problems, asked = {}, []
    for guarantee in (one for one in goal_guarantees() if one.kind in given):
        text = given[guarantee.kind]
        try:
            if guarantee.asked is None:
                problems[guarantee.kind] = "A comparison cannot ask for this. Leave it empty, or make a release."
            elif guarantee.needs_sensitive and not has_sensitive:
                problems[guarantee.kind] = _NO_SENSITIVE
            else:
                AskedGuarantee(guarantee.asked, float(text))
                asked.append(f"{guarantee.asked}={text}")
        except InvalidParameterError as exc:
            problems[guarantee.kind] = str(exc)
        except ValueError:
            problems[guarantee.kind] = f"{guarantee.symbol} must be a number."
    return asked, problems


def number_or_text(text: str) -> int | float | str:
    """Turn a text into a number where that is possible."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
