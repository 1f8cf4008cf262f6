"""Figures: every number that says how much risk a release leaves or how much use it keeps, declared here once.

A module declares figures of releases in a tuple ``FIGURES``, and scores of classifiers in a tuple ``SCORES``. Every
module of this folder is loaded, so that a new figure needs no line here.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from sfumato.attack.risk import Attacked
from sfumato.figures.base import Audience, Case, Direction, Figure, Unit, Value
from sfumato.figures.prediction import HeldOutFold

_SHOWN_FIRST = ("risk", "kept", "prediction")


def _declared(kind: str) -> tuple[Any, ...]:
    others = sorted({found.name for found in iter_modules(__path__)} - set(_SHOWN_FIRST))
    modules = [import_module(f"{__name__}.{name}") for name in (*_SHOWN_FIRST, *others)]
    return tuple(figure for module in modules for figure in getattr(module, kind, ()))


FIGURES: tuple[Figure[Attacked], ...] = _declared("FIGURES")
"""Of a release and its original, in the order in which they are shown."""
COMPARED: tuple[Figure[Attacked], ...] = tuple(figure for figure in FIGURES if figure.heading)
"""Those that every point of a comparison has."""
SCORES: tuple[Figure[HeldOutFold], ...] = _declared("SCORES")
"""Of a classifier on rows that it has not seen."""

__all__ = ["COMPARED", "FIGURES", "SCORES", "Attacked", "Audience", "Case", "Direction", "Figure", "HeldOutFold"]
__all__ += ["Unit", "Value"]
