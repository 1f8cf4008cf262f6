"""What several releases say together, from the definitions, in plain loops over rows; no code of the package."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

Row = tuple[int, int, int]
"""Person, class, sensitive value."""
Rows = Sequence[Row]
ABSENT = -1


def combinations_of(person: int, releases: Sequence[Rows]) -> set[tuple[int, ...]]:
    held = [{c for p, c, _ in rows if p == person} or {ABSENT} for rows in releases]
    return set(product(*held))


def everybody(releases: Sequence[Rows]) -> set[int]:
    return {p for rows in releases for p, _, _ in rows}


def joint_classes(releases: Sequence[Rows]) -> dict[tuple[int, ...], set[int]]:
    found: dict[tuple[int, ...], set[int]] = {}
    for person in everybody(releases):
        for combination in combinations_of(person, releases):
            found.setdefault(combination, set()).add(person)
    return found


def values_in(rows: Rows, of_class: int, persons: set[int] | None = None) -> set[int]:
    return {v for p, c, v in rows if c == of_class and (persons is None or p in persons)}


def carried(rows: Rows, of_class: int, persons: set[int]) -> int:
    """Most values of which each is some other person's, by trying all: the largest matching."""
    pairs = {(p, v) for p, c, v in rows if c == of_class and p in persons}

    def most(values: list[int], free: frozenset[int]) -> int:
        if not values:
            return 0
        taken = [1 + most(values[1:], free - {p}) for p, v in pairs if v == values[0] and p in free]
        return max([most(values[1:], free), *taken])

    return most(sorted({v for _, v in pairs}), frozenset(p for p, _ in pairs))


def remaining(releases: Sequence[Rows], combination: tuple[int, ...]) -> int:
    sets = [values_in(rows, c) for rows, c in zip(releases, combination, strict=True) if c != ABSENT]
    return len(set.intersection(*sets)) if sets else 0


def possible_values(releases: Sequence[Rows]) -> dict[int, set[int]]:
    """Values that each person may have by all that was published, if values are stable and everybody has one row.

    Tries all assignments of values to persons and keeps those under which every class holds the published values.
    """
    persons = sorted(everybody(releases))
    values = sorted({v for rows in releases for _, _, v in rows})
    published = [sorted((c, v) for _, c, v in rows) for rows in releases]
    possible: dict[int, set[int]] = {p: set() for p in persons}
    for world in product(values, repeat=len(persons)):
        value_of = dict(zip(persons, world, strict=True))
        if all(
            sorted((c, value_of[p]) for p, c, _ in rows) == seen for rows, seen in zip(releases, published, strict=True)
        ):
            for p in persons:
                possible[p].add(value_of[p])
    return possible
