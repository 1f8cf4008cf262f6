"""Levels that the Goal step lets people promise, in words; light, for the server and its tasks alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sfumato.guarantees import GUARANTEES
from sfumato.guarantees.base import FormField


@dataclass(frozen=True)
class GoalGuarantee(FormField):
    """A level that can be promised.

    Parameters
    ----------
    name : str
        Parameter of the mechanisms that take it.
    definition : str
        Kind of guarantee, which is its place on the page of definitions.
    asked : str or None
        Name by which a comparison is asked for it; ``None`` where it cannot be.
    """

    name: str
    definition: str
    asked: str | None


def goal_guarantees() -> tuple[GoalGuarantee, ...]:
    """Give what guarantees declare as their fields: first k, l and t, which many know, then the Greek letters."""
    found = [
        GoalGuarantee(
            **asdict(one.form_field), name=one.level.name, definition=one.kind, asked=next(iter(one.asked_as), None)
        )
        for one in GUARANTEES.values()
        if one.form_field is not None
    ]
    return tuple(sorted(found, key=lambda one: not one.symbol.isascii()))


def level_names() -> frozenset[str]:
    """Parameters that are levels of guarantees."""
    return frozenset(one.name for one in goal_guarantees())
