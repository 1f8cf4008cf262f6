"""Levels that the Goal step lets people promise, in words; light, for the server and its tasks alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GoalGuarantee:
    """A level that can be promised.

    Parameters
    ----------
    name : str
        Parameter of the mechanisms that take it.
    symbol : str
        Letter that the literature uses.
    suggested : str
        Value to take where nothing speaks for another, and when.
    definition : str
        Kind of guarantee, which is its place on the page of definitions.
    asked : str or None
        Name by which a comparison is asked for it; ``None`` where it cannot be.
    """

    name: str
    symbol: str
    title: str
    why: str
    suggested: str
    definition: str
    asked: str | None


GUARANTEES = (
    GoalGuarantee(
        name="k",
        symbol="k",
        title="People who look alike",
        why="Every person looks like at least k − 1 others.",
        suggested="5; 10 or more for a release to the public",
        definition="k-anonymity",
        asked="k",
    ),
    GoalGuarantee(
        name="l",
        symbol="l",
        title="Different sensitive values in a group",
        why="Who finds a person's group still does not know the sensitive value.",
        suggested="2 or 3 where a column is sensitive, else empty",
        definition="l-diversity",
        asked="l",
    ),
    GoalGuarantee(
        name="t",
        symbol="t",
        title="Distance from the whole table",
        why="The sensitive values of a group are spread nearly as in the whole table.",
        suggested="empty; 0.2 where even a likely value would do harm",
        definition="t-closeness",
        asked="t",
    ),
    GoalGuarantee(
        name="max_unique_fraction",
        symbol="θ",
        title="Largest share of unique rows",
        why="Few rows have a pattern of zeros and ones that no other row has.",
        suggested="empty; 0.05 where the zeros of a person may be known too",
        definition="unique-patterns",
        asked=None,
    ),
    GoalGuarantee(
        name="max_breach_increase",
        symbol="α",
        title="Gain of an attacker, in per cent",
        why="The released columns do not make the sensitive one easier to predict.",
        suggested="0",
        definition="breach-bound",
        asked="breach-bound",
    ),
    GoalGuarantee(
        name="epsilon",
        symbol="ε",
        title="Privacy budget",
        why="Holds whatever an attacker knows. Smaller is safer and noisier.",
        suggested="1; more than 10 protects little",
        definition="differential-privacy",
        asked="epsilon",
    ),
)
