"""Levels by persons, written from their definitions and in fractions; slow on purpose.

A class is a list of pairs (person, value), one for each row.
"""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations


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


# Rows that fit: edges[i][j] says whether released row j fits original row i; row i of either table is of persons[i].


def kk_level(edges, persons):
    """Fewest different persons whose rows of one table fit a row of the other."""
    each = range(len(persons))
    of_originals = [len({persons[j] for j in each if edges[i][j]}) for i in each]
    of_released = [len({persons[i] for i in each if edges[i][j]}) for j in each]
    return min(of_originals + of_released, default=0)


def global_level(edges, persons):
    """Fewest different persons whose released rows an original row has in some assignment of all rows."""
    each = range(len(persons))
    found = [p for p in permutations(each) if all(edges[i][p[i]] for i in each)]
    return min((len({persons[p[i]] for p in found}) for i in each), default=0)


def global_level_by_matchings(edges, persons):
    """Find the same for more rows: a pair is in an assignment of all rows if the others can be assigned without it."""
    n = len(persons)
    own = {}  # original of each released row, in one assignment of all rows

    def assign(i, without, tried):
        for j in range(n):
            if edges[i][j] and j != without and j not in tried:
                tried.add(j)
                if j not in own or assign(own[j], without, tried):
                    own[j] = i
                    return True
        return False

    if not all(assign(i, None, set()) for i in range(n)):
        return 0
    released_of = {i: j for j, i in own.items()}
    possible = []
    for i in range(n):
        persons_of = set()
        for j in range(n):
            if not edges[i][j]:
                continue
            if released_of[i] == j:
                persons_of.add(persons[j])
                continue
            saved, loser = dict(own), own[j]
            del own[released_of[i]]
            own[j] = i
            if assign(loser, j, {j}):
                persons_of.add(persons[j])
            own.clear()
            own.update(saved)
        possible.append(len(persons_of))
    return min(possible, default=0)


def meanings(text, values):
    """Values among some that a released cell stands for; nothing is missing, and no value has a special sign."""
    if text == "*":
        return set(values)
    if text.startswith("["):
        low, high = (float(end) for end in text[1:-1].split(","))
        return {value for value in values if low <= value <= high}
    members = text[1:-1].split("|") if text.startswith("{") else [text]
    return {value for value in values if str(value) in members}


def stands_for(cell, value):
    """Whether a released cell, written as a range, a set, a star or a value, stands for an original value."""
    cell = str(cell)
    if cell in ("*", str(value)):
        return True
    if cell.startswith("{"):
        return str(value) in cell.strip("{}").split("|")
    if cell.startswith("["):
        low, high = (float(number) for number in cell.strip("[])").split(","))
        return low <= value <= high if cell.endswith("]") else low <= value < high
    return False


def edges_of(original, released, columns):
    """Say which released row fits which original row."""
    before, after = (table.to_arrow().select(columns).to_pydict() for table in (original, released))
    n_rows = len(before[columns[0]])
    found = [[True] * n_rows for _ in range(n_rows)]
    for name in columns:
        stands_for = {text: meanings(text, set(before[name])) for text in set(after[name])}
        for i in range(n_rows):
            for j in range(n_rows):
                found[i][j] = found[i][j] and before[name][i] in stands_for[after[name][j]]
    return found


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
    of_persons = [max(Fraction(1, len(behind[i])) for i in rows_of[person]) for person in people]
    return {
        "prosecutor": of_persons,
        "journalist": [max(Fraction(1, len(fitting[i])) for i in rows_of[person]) for person in people],
        "marketer": sum(of_persons, Fraction(0)) / max(len(set(persons)), 1),
        "any_row": named,
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
