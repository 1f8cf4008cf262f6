"""Levels by persons, written from their definitions and in fractions; slow on purpose.

A class is a list of pairs (person, value), one for each row.
"""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction


def matched_level(rows):
    """Most values that as many different persons carry: every way to give values to persons is tried."""
    carried = [frozenset(v for p, v in rows if p == person) for person in {p for p, _ in rows}]

    def best(place, taken):
        if place == len(carried):
            return len(taken)
        without = best(place + 1, taken)
        return max([without, *(best(place + 1, taken | {v}) for v in carried[place] - taken)])

    return best(0, frozenset())


def weights(rows):
    """Weight of each value: a person weighs 1, shared over the person's rows."""
    n_rows = Counter(person for person, _ in rows)
    found = defaultdict(Fraction)
    for person, value in rows:
        found[value] += Fraction(1, n_rows[person])
    return dict(found)


def entropy_level(rows):
    """Exponential of the entropy of the weights."""
    found = weights(rows)
    total = sum(found.values())
    return math.exp(-sum(float(w / total) * math.log(w / total) for w in found.values()))


def recursive_level(rows, c):
    """Largest l for which the largest weight is below c times the sum of those from the l-th on; 0 if none."""
    found = sorted(weights(rows).values(), reverse=True)
    return max([0, *(i + 1 for i in range(len(found)) if found[0] < Fraction(str(c)) * sum(found[i:]))])


def distance(rows, table, kind="equal"):
    """Distance of a class from the table; values are ordered as they sort."""
    here, there = weights(rows), weights(table)
    values = sorted(there)
    shares = [(here.get(v, Fraction(0)) / sum(here.values())) - there[v] / sum(there.values()) for v in values]
    if len(values) < 2:
        return 0.0
    if kind == "equal":
        return float(sum(map(abs, shares)) / 2)
    return float(sum(abs(sum(shares[: i + 1])) for i in range(len(values))) / (len(values) - 1))


def classes_of(original, released, person, sensitive, columns):
    """Rows (person, value) of each class of equal released rows, where every row is released in its order."""
    found = defaultdict(list)
    cells = released.to_arrow().select(columns).to_pylist()
    own = original.to_arrow()
    for row, who, value in zip(cells, own.column(person).to_pylist(), own.column(sensitive).to_pylist(), strict=True):
        found[tuple(row.values())].append((who, value))
    return list(found.values())


def level(classes, settings):
    """Level of a release by persons, of what settings of a mechanism ask for."""
    table = [row for rows in classes for row in rows]
    if "t" in settings:
        return max(distance(rows, table, settings.get("distance", "equal")) for rows in classes)
    variant = settings.get("variant", "distinct")
    if variant == "recursive":
        return min(recursive_level(rows, settings["c"]) for rows in classes)
    return min((entropy_level if variant == "entropy" else matched_level)(rows) for rows in classes)


def risks(persons, fits, own, cells):
    """Risks of persons: of original rows, whether released row r fits row i, each one's released row (None: left out).

    ``cells`` are those of the released rows: equal ones are a group, in which an attacker names one person.
    """
    there = [i for i, row in enumerate(own) if row is not None]
    owner = {own[i]: persons[i] for i in there}
    behind = {i: {owner[row] for row in owner if fits(i, row)} for i in there}
    fitting = {i: {persons[j] for j in range(len(persons)) if fits(j, own[i])} for i in there}
    people = sorted({persons[i] for i in there})
    rows_of = {person: [i for i in there if persons[i] == person] for person in people}
    named = []
    for person in people:
        groups = {cells[own[i]] for i in rows_of[person]}
        crowds = [min((behind[i] for i in rows_of[person] if cells[own[i]] == group), key=len) for group in groups]
        guesses = list(itertools.product(*crowds))
        named.append(Fraction(sum(person in guess for guess in guesses), len(guesses)))
    return {
        "prosecutor": [max(Fraction(1, len(behind[i])) for i in rows_of[person]) for person in people],
        "journalist": [max(Fraction(1, len(fitting[i])) for i in rows_of[person]) for person in people],
        "marketer": sum(named, Fraction(0)) / max(len(set(persons)), 1),
        "n_found": sum(any(len(behind[i]) == 1 for i in rows_of[person]) for person in people),
        "largest_share": max(
            [
                Fraction(sum(owner[row] == person for row in group), len(group))
                for group in _alike(cells)
                for person in people
            ],
            default=0,
        ),
    }


def _alike(cells):
    found = defaultdict(list)
    for row, cell in enumerate(cells):
        found[cell].append(row)
    return list(found.values())
