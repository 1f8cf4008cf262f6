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


# Containment by persons: rows are tuples of 0 and 1, and each has a person.


def known_values(row, columns, reveals=None):
    """Pairs of a column and a value that an attacker may know of a row."""
    shown = {"ones": (1,), "zeros": (0,), "both": (0, 1)}
    return {(c, row[c]) for c in columns if row[c] in shown[reveals[c] if reveals else "ones"]}


def contained_level(rows, persons, columns, reveals=None):
    """Fewest persons with a row that has all revealing values of a row; 0 without rows."""
    known = [known_values(row, columns, reveals) for row in rows]
    return min((len({p for other, p in zip(known, persons, strict=True) if own <= other}) for own in known), default=0)


def feasible_sets(rows, persons, k, reveals=None):
    """All sets of columns on which the level is at least k."""
    n_columns = len(rows[0])
    every = (frozenset(c for c in range(n_columns) if mask >> c & 1) for mask in range(1 << n_columns))
    return {columns for columns in every if contained_level(rows, persons, columns, reveals) >= k}


def maximal_of(sets):
    """Those of some sets that none of the others includes."""
    return {one for one in sets if not any(one < other for other in sets)}


def frequent_sets(rows, persons, k):
    """List the sets of columns all of which are one in a row of at least k persons."""
    n_columns = len(rows[0])
    every = (frozenset(c for c in range(n_columns) if mask >> c & 1) for mask in range(1, 1 << n_columns))
    return {
        columns
        for columns in every
        if len({p for row, p in zip(rows, persons, strict=True) if all(row[c] for c in columns)}) >= k
    }
