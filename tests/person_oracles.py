"""Levels by persons, written from their definitions and in fractions; slow on purpose.

A class is a list of pairs (person, value), one for each row.
"""

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


def shares(rows):
    """Share of each value among the weights."""
    found = weights(rows)
    return {value: weight / sum(found.values()) for value, weight in found.items()}


def likeness(rows, table, kind="basic"):
    """Smallest β of a class; infinite where enhanced likeness allows none."""
    here, there = shares(rows), shares(table)
    gains = {value: q / there[value] - 1 for value, q in here.items()}
    if kind == "enhanced" and any(gain > -math.log(there[value]) + 1e-9 for value, gain in gains.items()):
        return math.inf
    return float(max(0, *gains.values()))


def disclosure(rows, table):
    """Smallest δ of a class; infinite where it lacks a value of the table."""
    here, there = shares(rows), shares(table)
    return max(abs(math.log(here[v] / p)) if v in here else math.inf for v, p in there.items())


def largest_share(rows):
    """Largest share of a value."""
    return float(max(shares(rows).values()))


def classes_of(original, released, person, sensitive, columns):
    """Rows (person, value) of each class of equal released rows, where every row is released in its order."""
    found = defaultdict(list)
    cells = released.to_arrow().select(columns).to_pylist()
    own = original.to_arrow()
    for row, who, value in zip(cells, own.column(person).to_pylist(), own.column(sensitive).to_pylist(), strict=True):
        found[tuple(row.values())].append((who, value))
    return list(found.values())


def level(classes, settings, table=None):
    """Level of a release by persons, of what settings of a mechanism ask for; some classes may be left out."""
    table = [row for rows in classes for row in rows] if table is None else table
    if "t" in settings:
        return max(distance(rows, table, settings.get("distance", "equal")) for rows in classes)
    if "beta" in settings:
        return max(likeness(rows, table, settings.get("likeness", "basic")) for rows in classes)
    if "delta" in settings:
        return max(disclosure(rows, table) for rows in classes)
    if "alpha" in settings:
        return max(map(largest_share, classes))
    variant = settings.get("variant", "distinct")
    if variant == "recursive":
        return min(recursive_level(rows, settings["c"]) for rows in classes)
    return min((entropy_level if variant == "entropy" else matched_level)(rows) for rows in classes)
