"""The registry: finds every mechanism that declares itself, and builds one from a name and parameters.

A mechanism joins by standing in the tuple ``MECHANISMS`` of a module of one of ``FAMILIES``; nothing else is edited.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from sfumato.contract import Mechanism, MechanismInfo, Parameter
from sfumato.errors import InvalidParameterError

FAMILIES = ("sfumato.selection", "sfumato.recoding", "sfumato.perturbation")

_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", dict: "a table of settings"}


@cache
def registered_mechanisms() -> Mapping[str, MechanismInfo]:
    """All mechanisms by name, in alphabetical order."""
    found: dict[str, MechanismInfo] = {}
    for family in FAMILIES:
        package = importlib.import_module(family)
        for module in pkgutil.iter_modules(package.__path__, family + "."):
            for info in getattr(importlib.import_module(module.name), "MECHANISMS", ()):
                found[info.name] = info
    return dict(sorted(found.items()))


def mechanism_info(name: str) -> MechanismInfo:
    """Look a mechanism up by name, suggesting the nearest one when there is none."""
    known = registered_mechanisms()
    if name not in known:
        raise InvalidParameterError(
            "mechanism", f"got '{name}'", allowed=f"one of {', '.join(known)}", hint=_did_you_mean(name, list(known))
        )
    return known[name]


def is_differentially_private(mechanism: Mechanism) -> bool:
    """Whether a mechanism promises differential privacy, so that nothing may be guessed from the rows for it."""
    return bool(getattr(mechanism, "is_differentially_private", False))


def build_mechanism(name: str, parameters: Mapping[str, Any]) -> Mechanism:
    """Build a mechanism; parameters given as text are converted, unknown ones refused.

    Examples
    --------
    >>> build_mechanism("greedy-containment", {"k": "3"})
    GreedyContainmentSelector(k=3)
    """
    info = mechanism_info(name)
    known = {parameter.name: parameter for parameter in info.parameters}
    converted: dict[str, Any] = {}
    for key, value in parameters.items():
        if key not in known:
            allowed = f"one of {', '.join(known)}"
            hint = _who_takes(key) or _did_you_mean(key, list(known))
            raise InvalidParameterError(
                f"a parameter of {name}", f"got '{key}'", allowed=allowed, hint=hint, remedy=("mechanism",)
            )
        converted[key] = _convert(known[key], value)
    return info.build(**converted)


def foreign_parameters(name: str, other: str, parameters: Mapping[str, Any]) -> list[str]:
    """Names among some parameters that were meant for another mechanism: it takes the value and this one does not.

    Examples
    --------
    >>> foreign_parameters("anatomy", "mondrian", {"k": 5, "l": 2, "typo": 1})
    ['k']
    """
    return [key for key, value in parameters.items() if _takes(other, key, value) and not _takes(name, key, value)]


def _takes(name: str, key: str, value: Any) -> bool:
    known = {parameter.name: parameter for parameter in mechanism_info(name).parameters}
    if key not in known:
        return False
    try:
        _convert(known[key], value)
    except InvalidParameterError:
        return False
    return True


def _who_takes(parameter: str) -> str:
    takers = [name for name, info in registered_mechanisms().items() if parameter in {p.name for p in info.parameters}]
    return f"mechanisms with this parameter: {', '.join(takers)}" if takers else ""


def _did_you_mean(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{nearest[0]}'?" if nearest else ""


def _convert(parameter: Parameter, value: Any) -> Any:
    if parameter.choices and value not in parameter.choices:
        raise InvalidParameterError(parameter.name, f"got {value!r}", allowed=f"one of {', '.join(parameter.choices)}")
    wanted = parameter.type
    is_bool_for_int = wanted is int and isinstance(value, bool)
    if value is None or (isinstance(value, wanted) and not is_bool_for_int):
        return value
    try:
        if wanted is int and isinstance(value, str):
            return int(value)
        if wanted is float and isinstance(value, str | int) and not isinstance(value, bool):
            return float(value)
        if wanted is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
    except (ValueError, KeyError):
        pass
    types = wanted if isinstance(wanted, tuple) else (wanted,)
    allowed = " or ".join(_WORDS[t] for t in types)
    hint = f"give it entry by entry, as {parameter.name}.NAME=VALUE" if dict in types else ""
    raise InvalidParameterError(parameter.name, f"got {value!r}", allowed=allowed, hint=hint, remedy=("entries",))
