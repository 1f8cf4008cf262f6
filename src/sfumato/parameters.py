"""What is declared of a parameter: help, limits and type, once, for constructor, command line, project file and page.

Mechanisms declare those of their constructors, guarantees those by which people ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from sfumato.errors import InvalidParameterError


@dataclass(frozen=True)
class ParameterSpec:
    """What a mechanism says about a parameter of its constructor: help and limits.

    Name, type and default are those of the constructor's signature and are not written again.

    Parameters
    ----------
    help : str
        A few words for the command line and the page.
    choices : tuple of str
        Allowed words, where the annotation is not a ``Literal`` that holds them.
    at_least, above, at_most, below : float or None
        Limits of a number.
    allowed : str
        What a refusal says the value must be; by default it is made of type and limits.
    only_with : mapping
        Settings of other parameters without which it has no effect or cannot be kept: it is then not offered, and
        refused.
    digits : int or None
        Most significant digits of a number; ``None``: three, and any for a whole level of a guarantee.
    stated : mapping or None
        Form in which a manifest states it, as JSON Schema, where that is not the value itself.
    is_stated : bool
        Whether a manifest states it at all.
    """

    help: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    allowed: str = ""
    only_with: Mapping[str, Any] = field(default_factory=dict)
    digits: int | None = None
    stated: Mapping[str, Any] | None = None
    is_stated: bool = True


@dataclass(frozen=True, kw_only=True)
class Parameter(ParameterSpec):
    """One parameter of a mechanism, as the command line, the project file and the page offer it.

    ``is_optional`` says whether ``None`` is allowed.
    """

    name: str
    type: type | tuple[type, ...]
    default: Any
    is_optional: bool = False

    def check(self, given: object) -> None:
        """Refuse a value that is not allowed.

        Texts and tables of settings are not looked at: only the mechanism can tell what they may hold.
        """
        if not (given is None and self.is_optional) and not self._allows(given):
            raise InvalidParameterError(self.name, f"got {given!r}", allowed=self.allowed or self._allowed_by_type())

    def has_effect(self, settings: Mapping[str, Any]) -> bool:
        """Whether it can change anything where other parameters have these settings; what is not set is open."""
        return all(settings.get(name, wanted) == wanted for name, wanted in self.only_with.items())

    def check_effect(self, given: object, settings: Mapping[str, Any]) -> None:
        """Refuse a value other than the default where it would change nothing."""
        if given == self.default or self.has_effect(settings):
            return
        needed = " and ".join(f"{name}={str(wanted).lower()}" for name, wanted in self.only_with.items())
        raise InvalidParameterError(
            self.name,
            f"got {given!r}",
            allowed=f"left out unless {needed}",
            hint=f"choose {needed}",
            remedy=("parameters",),
        )

    def _allows(self, given: object) -> bool:
        if self.choices:
            return isinstance(given, str) and given in self.choices
        if self.type is bool:
            return type(given).__name__ in ("bool", "bool_")  # NumPy's too, which is not loaded for it
        if self.type not in (int, float):
            return True
        is_number = isinstance(given, Integral if self.type is int else Real)
        return is_number and not isinstance(given, bool) and self._is_within(given)

    def _is_within(self, given: Any) -> bool:
        # "not <" would let NaN pass, which is neither above nor below anything
        return bool(
            (self.at_least is None or given >= self.at_least)
            and (self.above is None or given > self.above)
            and (self.at_most is None or given <= self.at_most)
            and (self.below is None or given < self.below)
        )

    def _allowed_by_type(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.type is bool:
            return "true or false"
        named = {"of at least": self.at_least, "above": self.above, "at most": self.at_most, "below": self.below}
        limits = " and ".join(f"{word} {limit:g}" for word, limit in named.items() if limit is not None)
        return f"{'a whole number' if self.type is int else 'a number'} {limits}".rstrip()


def parameter_of(name: str, hint: Any, default: Any, spec: ParameterSpec) -> Parameter:
    """Put together what a signature says of a parameter (type and default) and what is declared of it.

    Raises
    ------
    TypeError
        If no value of this type can be written in a file, so that nobody could give it.
    """
    parts = _alternatives(hint)
    literals = [part for part in parts if get_origin(part) is Literal]
    types = tuple(dict.fromkeys(kind for part in parts if (kind := _plain_type(part)) is not None))
    if not types:
        problem = f"no value of '{name}' can be written in a file, so that nobody can give it"
        raise TypeError(problem)
    stated = {**vars(spec)}
    if not spec.choices and types == (str,) and len(literals) == 1:
        stated["choices"] = get_args(literals[0])
    own = types[0] if len(types) == 1 else types
    return Parameter(**stated, name=name, type=own, default=default, is_optional=NoneType in parts)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _plain_type(hint: Any) -> type | None:
    """Type of a value in a project file or on the command line; ``None`` of objects that only Python code can give."""
    if hint in (bool, int, float, str):
        return hint  # type: ignore[no-any-return]
    origin = get_origin(hint) or hint
    if origin is Literal:
        return str
    if origin is Sequence and get_args(hint) == (float,):
        return tuple
    return dict if isinstance(origin, type) and issubclass(origin, Mapping) else None
