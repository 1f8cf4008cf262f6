"""The registry: finds mechanisms by name, this package's and those of others, and builds one from parameters.

Names are known without importing a mechanism, and asking for one imports its own modules only. A mechanism of this
package joins by a line in ``_OWN``, one of another package by an entry point of the group ``sfumato.mechanisms``; both
name a :class:`sfumato.mechanisms.base.MechanismInfo`. See ``docs/adding-a-mechanism.md``. Names such as
``paper:hamdist`` are those of :mod:`sfumato.mechanisms.presets`: a mechanism with a paper's settings.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sfumato.errors import InvalidParameterError
from sfumato.guarantees.request import privacy_of
from sfumato.mechanisms.base import Mechanism, MechanismInfo
from sfumato.mechanisms.presets import PRESETS, find_preset, is_preset, with_preset
from sfumato.parameters import Parameter

ENTRY_POINTS = "sfumato.mechanisms"
"""Group of the entry points by which other packages add mechanisms."""
_OWN = {
    "auto": "sfumato.mechanisms.auto:DECLARATION",
    "greedy-containment": "sfumato.mechanisms.containment.greedy:DECLARATION",
    "maximal-containment": "sfumato.mechanisms.containment.maximal:DECLARATION",
    "exact-containment": "sfumato.mechanisms.containment.exact:DECLARATION",
    "optimal-containment": "sfumato.mechanisms.containment.optimal:DECLARATION",
    "best-first-wrapper": "sfumato.mechanisms.breach.wrapper:DECLARATION",
    "breach-aware": "sfumato.mechanisms.breach.selector:DECLARATION",
    "global-recoding": "sfumato.mechanisms.lattice.recoder:DECLARATION",
    "gain-recoding": "sfumato.mechanisms.lattice.gain:DECLARATION",
    "local-recoding": "sfumato.mechanisms.lattice.local:DECLARATION",
    "error-risk-tree": "sfumato.mechanisms.tree.mechanism:DECLARATION",
    "mondrian": "sfumato.mechanisms.mondrian.mechanism:DECLARATION",
    "mdav": "sfumato.mechanisms.microaggregation.mdav:DECLARATION",
    "anatomy": "sfumato.mechanisms.buckets.anatomy:DECLARATION",
    "slicing": "sfumato.mechanisms.buckets.slicing:DECLARATION",
    "random-flipping": "sfumato.mechanisms.baselines.flipping:DECLARATION",
    "laplace-dp": "sfumato.mechanisms.baselines.noisy_counts:LAPLACE_DECLARATION",
    "exponential-dp": "sfumato.mechanisms.baselines.noisy_counts:EXPONENTIAL_DECLARATION",
}

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    tuple: "numbers, joined by commas",
    dict: "a table of settings",
}


@cache
def _declared() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Where each name is declared: at one place, if there is no clash. This package's names come first."""
    found = {name: (EntryPoint(name, value, ENTRY_POINTS),) for name, value in _OWN.items()}
    for other in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)):
        found[other.name] = (*found.get(other.name, ()), other)
    return found


def own_mechanism_names() -> list[str]:
    """Names of the mechanisms of this package."""
    return list(_OWN)


def mechanism_names() -> list[str]:
    """Names of all mechanisms, in alphabetical order; none of them is imported for it."""
    return sorted(_declared())


@cache
def registered_mechanisms() -> Mapping[str, MechanismInfo]:
    """All mechanisms by name, in alphabetical order; what another package broke is left out with a warning."""
    found: dict[str, MechanismInfo] = {}
    for name in mechanism_names():
        try:
            found[name] = _loaded(name)
        except InvalidParameterError as exc:
            warnings.warn(f"left out: {exc}", RuntimeWarning, stacklevel=2)
    return found


def find_mechanism(name: str) -> MechanismInfo | None:
    """Look a mechanism up by its name or that of a preset; ``None`` if there is none that can be used."""
    try:
        name = find_preset(name).mechanism if is_preset(name) else name
        return _loaded(name) if name in _declared() else None
    except InvalidParameterError:
        return None


def mechanism_info(name: str) -> MechanismInfo:
    """Look a mechanism up by its name or that of a preset, suggesting the nearest one when there is none."""
    known = mechanism_names()
    if name in PRESETS:
        name = find_preset(name).mechanism
    if name not in known:
        hint = _did_you_mean(name, [*known, *PRESETS])
        raise InvalidParameterError("mechanism", f"got '{name}'", allowed=f"one of {', '.join(known)}", hint=hint)
    return _loaded(name)


@cache
def _loaded(name: str) -> MechanismInfo:
    """Import the declaration of a mechanism, and refuse one that cannot be relied on.

    Raises
    ------
    InvalidParameterError
        If two packages declare the name, or the one that does cannot be imported or declares something else.
    """
    places = _declared()[name]
    if len(places) > 1:
        problem = f"got '{name}', which {' and '.join(map(_package, places))} declare"
        hint = "uninstall all of these packages but one"
        raise InvalidParameterError("mechanism", problem, allowed="a name that one package declares", hint=hint)
    (place,) = places
    try:
        info: MechanismInfo = place.load()
        problem = _what_is_wrong(info, name)
    except Exception as exc:
        if name in _OWN:
            raise
        # another package's module may raise anything when it is imported, and must not take the others with it
        problem = f"{type(exc).__name__}: {exc}"
    if problem:
        got = f"got '{name}' of {_package(place)}, and that failed ({problem})"
        hint = "update or uninstall that package"
        raise InvalidParameterError("mechanism", got, allowed="one that can be loaded", hint=hint)
    return info


def _what_is_wrong(info: object, name: str) -> str:
    if not isinstance(info, MechanismInfo):
        return f"it names an object of type {type(info).__name__} instead of a MechanismInfo"
    if not (isinstance(info.build, type) and issubclass(info.build, Mechanism)):
        return "its class is not a subclass of sfumato.mechanisms.base.Mechanism"
    if info.name != name:
        return f"its mechanism_name is '{info.name}'"
    try:
        _ = info.parameters
    except (TypeError, NameError, KeyError) as exc:
        return f"its parameters cannot be read: {exc}"
    return ""


def _package(place: EntryPoint) -> str:
    return "sfumato" if place.dist is None else f"the package {place.dist.name}"


def is_differentially_private(mechanism: Mechanism) -> bool:
    """Whether a mechanism promises differential privacy, so that nothing may be guessed from the rows for it."""
    return bool(getattr(mechanism, "is_differentially_private", False))


def build_mechanism(name: str, parameters: Mapping[str, Any]) -> Mechanism:
    """Build a mechanism; parameters given as text are converted, unknown ones refused.

    Examples
    --------
    >>> build_mechanism("greedy-containment", {"k": "3"})
    GreedyContainmentSelector(k=3)
    >>> build_mechanism("paper:distcnt", {"k": "3"})
    GreedyContainmentSelector(criterion='distinguished_pairs', k=3)
    """
    info = mechanism_info(name)
    if is_preset(name):
        name, parameters = with_preset(name, parameters)
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
    asked = {one.name for one in info.asked_parameters}
    if asked & converted.keys():
        wanted = {key: value for key, value in converted.items() if key in asked}
        converted = {key: value for key, value in converted.items() if key not in asked}
        converted["privacy"] = privacy_of(wanted, info.build.searches)
    return info.build(**converted)


def check_value(info: MechanismInfo, parameter: Parameter, value: Any) -> Any:
    """Refuse a value that a parameter of a mechanism cannot have, whatever the others are; gives it as it is taken.

    Raises
    ------
    InvalidParameterError
        If it is of another type, or out of range.
    """
    if parameter.name in {one.name for one in info.asked_parameters}:
        taken = _convert(parameter, value)
        parameter.check(taken)
        return taken
    mechanism = build_mechanism(info.name, {parameter.name: value})
    mechanism.check_parameters(parameter.name)
    return getattr(mechanism, parameter.name)


def foreign_parameters(name: str, other: str, parameters: Mapping[str, Any]) -> list[str]:
    """Names among some parameters that were meant for another mechanism: it takes the value and this one does not.

    Examples
    --------
    >>> foreign_parameters("anatomy", "mondrian", {"k": 5, "l": 2, "typo": 1})
    ['k']
    """
    return [
        key
        for key, value in parameters.items()
        if _takes(other, key, value) and (not _takes(name, key, value) or _adds_by(name, key))
    ]


def _adds_by(name: str, key: str) -> bool:
    """Whether a k makes a mechanism do more than it does without: then it is to be asked for, not taken over."""
    return key == "k" and any(p.name == key and p.is_optional for p in mechanism_info(name).parameters)


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


def _number_or_numbers(wanted: tuple[type, ...], value: str | list[Any] | int) -> Any:
    """Read a number, or several in a list or between commas, where these are wanted; anything else stays as it is."""
    parts = value.strip().removeprefix("(").removesuffix(")").split(",") if isinstance(value, str) else value
    try:
        if tuple in wanted and isinstance(parts, list) and len(parts) > 1:
            return value if any(isinstance(part, bool) for part in parts) else tuple(float(part) for part in parts)
        return value if float not in wanted or isinstance(value, list) else float(value)
    except (TypeError, ValueError):
        return value


def _convert(parameter: Parameter, value: Any) -> Any:
    if parameter.choices and value not in parameter.choices:
        raise InvalidParameterError(parameter.name, f"got {value!r}", allowed=f"one of {', '.join(parameter.choices)}")
    wanted = parameter.type
    if isinstance(wanted, tuple) and isinstance(value, str | list | int) and not isinstance(value, bool):
        value = _number_or_numbers(wanted, value)
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
