"""Levels that the Goal step lets people promise, each under its own name; light, for the server and its tasks alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from sfumato.guarantees import GUARANTEES
from sfumato.guarantees.base import FormField

_OF_A_COLUMN = "sensitive"
"""Field of guarantees that are about a sensitive column."""


@dataclass(frozen=True)
class GoalGuarantee(FormField):
    """A level that can be promised.

    Parameters
    ----------
    kind : str
        Kind of guarantee, which names its field and its place on the page of definitions. A k of one kind is not a k
        of another, so that every kind has a field of its own.
    name : str
        Name of the kind for people.
    parameter : str
        Parameter of the mechanisms that take it; several kinds may share one.
    asked : str or None
        Name by which a comparison is asked for it; ``None`` where it cannot be.
    needs_sensitive : bool
        Whether it is about a sensitive column.
    """

    kind: str
    name: str
    parameter: str
    asked: str | None
    needs_sensitive: bool


def goal_guarantees() -> tuple[GoalGuarantee, ...]:
    """Give what guarantees declare as their fields: first k, l and t, which many know, then the Greek letters."""
    found = [
        GoalGuarantee(
            **asdict(one.form_field),
            kind=one.kind,
            name=one.words.title,
            parameter=one.level.name,
            asked=next(iter(one.asked_as), None),
            needs_sensitive=_OF_A_COLUMN in {field.name for field in fields(cast("Any", one))},
        )
        for one in GUARANTEES.values()
        if one.form_field is not None
    ]
    return tuple(sorted(found, key=lambda one: not one.symbol.isascii()))


def level_names() -> frozenset[str]:
    """Parameters that are levels of guarantees."""
    return frozenset(one.parameter for one in goal_guarantees())
