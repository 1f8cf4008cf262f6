"""The definitions, written as plain loops: slow, exact where that is possible, and sharing no code with ``sfumato``.

Rows are sequences of values (or of 0 and 1); labels and sensitive values are sequences beside them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

Row = Sequence[Hashable]
Bits = Sequence[int]
Item = TypeVar("Item")


# Rows that are equal: k-anonymity and what it costs ---------------------------------------------------------------


def equivalence_classes(rows: Sequence[Row]) -> dict[tuple[Hashable, ...], list[int]]:
    """Positions of the rows that are equal to each other, by their values."""
    classes: dict[tuple[Hashable, ...], list[int]] = {}
    for position, row in enumerate(rows):
        classes.setdefault(tuple(row), []).append(position)
    return classes


def anonymity_level(rows: Sequence[Row]) -> int:
    """Fewest rows that any row is equal to, itself included; 0 without rows."""
    return min((sum(tuple(a) == tuple(b) for b in rows) for a in rows), default=0)


def at_risk_fraction(rows: Sequence[Row], k: int) -> Fraction:
    """Share of rows that are equal to fewer than k rows."""
    if not rows:
        return Fraction(0)
    return Fraction(sum(sum(tuple(a) == tuple(b) for b in rows) < k for a in rows), len(rows))


def discernibility(rows: Sequence[Row], n_suppressed: int = 0) -> int:
    """Every row pays the rows it is equal to; a suppressed one pays all rows of the original."""
    penalty = 0
    for a in rows:
        for b in rows:
            penalty += tuple(a) == tuple(b)
    return penalty + n_suppressed * (len(rows) + n_suppressed)


def average_class_size(rows: Sequence[Row], k: int) -> Fraction:
    """Rows per class, in multiples of k."""
    return Fraction(len(rows), len(equivalence_classes(rows)) * k) if rows else Fraction(0)


# A sensitive column within the classes: l-diversity and t-closeness -----------------------------------------------


def sensitive_by_class(rows: Sequence[Row], sensitive: Sequence[Item]) -> list[list[Item]]:
    """Sensitive values of every class of equal rows."""
    return [[sensitive[i] for i in members] for members in equivalence_classes(rows).values()]


def distinct_diversity_level(rows: Sequence[Row], sensitive: Sequence[Hashable]) -> int:
    """Fewest different sensitive values in a class."""
    return min((len(set(values)) for values in sensitive_by_class(rows, sensitive)), default=0)


def entropy_diversity_level(rows: Sequence[Row], sensitive: Sequence[Hashable]) -> float:
    """Two to the power of the least entropy of a class."""
    return min((2 ** entropy_bits(values) for values in sensitive_by_class(rows, sensitive)), default=0.0)


def recursive_diversity_level(rows: Sequence[Row], sensitive: Sequence[Hashable], c: Fraction) -> int:
    """Largest l with r1 < c (r_l + … + r_m) in every class, 0 if none."""
    classes = sensitive_by_class(rows, sensitive)
    level = 0
    for l in range(1, len(set(sensitive)) + 1):  # noqa: E741  # the field's own name
        satisfied = True
        for values in classes:
            r = sorted((values.count(v) for v in set(values)), reverse=True)
            if not r[0] < c * sum(r[l - 1 :]):
                satisfied = False
        if satisfied:
            level = l
    return level


def equal_t_closeness(rows: Sequence[Row], sensitive: Sequence[Hashable]) -> Fraction:
    """Largest half sum of the differences between a class's shares and the table's."""
    farthest = Fraction(0)
    for values in sensitive_by_class(rows, sensitive):
        gaps = [abs(_share(values, v) - _share(sensitive, v)) for v in set(sensitive)]
        farthest = max(farthest, sum(gaps, Fraction(0)) / 2)
    return farthest


def ordered_t_closeness(rows: Sequence[Row], sensitive: Sequence[Item], order: Sequence[Item]) -> Fraction:
    """Largest sum of the cumulative differences over (m - 1), the m values taken in the order given."""
    farthest = Fraction(0)
    if len(order) < 2:
        return farthest
    for values in sensitive_by_class(rows, sensitive):
        work = Fraction(0)
        for i in range(1, len(order)):
            carried = [_share(values, v) - _share(sensitive, v) for v in order[:i]]
            work += abs(sum(carried, Fraction(0)))
        farthest = max(farthest, work / (len(order) - 1))
    return farthest


def in_rank_order(spellings: Sequence[str], levels: Sequence[str] = ()) -> list[str]:
    """Put distinct spellings in the order of docs/guarantees.md: levels, numbers by size, other texts by first text."""
    declared = [same_value(level) for level in levels]
    by_value: dict[str | Fraction, list[str]] = {}
    for text in sorted(set(spellings)):
        by_value.setdefault(same_value(text), []).append(text)
    first = [value for value in dict.fromkeys(declared) if value in by_value]
    rest = [value for value in by_value if value not in declared]
    numbers = sorted(value for value in rest if isinstance(value, Fraction))
    texts = sorted((value for value in rest if isinstance(value, str)), key=lambda value: by_value[value][0])
    return [text for value in (*first, *numbers) for text in by_value[value]] + sorted(
        text for value in texts for text in by_value[value]
    )


def _share(values: Sequence[Item], value: Item) -> Fraction:
    return Fraction(list(values).count(value), len(values))


def same_value(text: str) -> str | Fraction:
    """Give what a sensitive text is the same as: an exact number, or its letters, whatever their case, width and form.

    Numbers are read digit by digit; an exponent is for tests small enough to be multiplied out.
    """
    shown = "".join(c for c in text if ord(c) not in IGNORED)
    shown = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    words: list[str] = []
    for piece in shown.split():
        words.append(piece)
    shown = " ".join(words)
    number = _number(shown)
    return shown if number is None else number


IGNORED = {0xAD, 0x34F, 0x200B, 0x200D, 0x2060, 0xFEFF, 0xFE0F}
"""Some code points that nobody sees: those that the tests use."""


def _number(shown: str) -> Fraction | None:
    body, sign = (shown[1:], -1 if shown[0] == "-" else 1) if shown[:1] in ("+", "-") else (shown, 1)
    mantissa, has_power, power = body.partition("e")
    whole, _, part = mantissa.partition(".")
    unsigned = power[1:] if power[:1] in ("+", "-") else power
    if not _are_digits(whole + part) or (has_power and not _are_digits(unsigned)):
        return None
    value = Fraction(0)
    for digit in whole + part:
        value = value * 10 + int(digit)
    return sign * value * Fraction(10) ** ((int(power) if has_power else 0) - len(part))


def _are_digits(text: str) -> bool:
    return bool(text) and all(c in "0123456789" for c in text)


# Information ------------------------------------------------------------------------------------------------------


def entropy_bits(values: Sequence[Hashable]) -> float:
    """Minus the sum of p log2 p."""
    return math.fsum(-(p := _share(values, v)) * math.log2(p) for v in set(values))


def conditional_entropy_bits(values: Sequence[Hashable], classes: Sequence[Hashable]) -> float:
    """Mean entropy of the classes among rows of the same value."""
    total = 0.0
    for value in set(values):
        among = [c for v, c in zip(values, classes, strict=True) if v == value]
        total += len(among) / len(values) * entropy_bits(among)
    return total


def mutual_information_bits(values: Sequence[Hashable], classes: Sequence[Hashable]) -> float:
    """Sum of p(a, c) log2 (p(a, c) / p(a) p(c))."""
    pairs = list(zip(values, classes, strict=True))
    terms = []
    for a, c in set(pairs):
        together = _share(pairs, (a, c))
        terms.append(float(together) * math.log2(together / (_share(values, a) * _share(classes, c))))
    return math.fsum(terms)


# Coarsening -------------------------------------------------------------------------------------------------------


def certainty_penalty_of_range(low: int, high: int, column: Sequence[int]) -> Fraction:
    """Width of a range over the width of the column, 0 for a single number."""
    return Fraction(0) if low == high else Fraction(high - low, max(column) - min(column))


def certainty_penalty_of_set(group: Sequence[Hashable], column: Sequence[Hashable]) -> Fraction:
    """Count the values in a set over that in the column, 0 for a single value."""
    return Fraction(0) if len(set(group)) == 1 else Fraction(len(set(group)), len(set(column)))


def generalized_certainty_penalty(penalties: Sequence[Sequence[Fraction]]) -> Fraction:
    """Mean of the penalties of all cells."""
    cells = [penalty for row in penalties for penalty in row]
    return sum(cells, Fraction(0)) / len(cells) if cells else Fraction(0)


# Binary rows: containment -----------------------------------------------------------------------------------------


def ones(row: Bits) -> frozenset[int]:
    """Columns in which a row has a one."""
    return frozenset(j for j, bit in enumerate(row) if bit)


def projected(rows: Sequence[Bits], columns: Sequence[int] | frozenset[int]) -> list[tuple[int, ...]]:
    """Take the rows on some columns, in ascending order of the columns."""
    return [tuple(row[j] for j in sorted(columns)) for row in rows]


def containment_counts(rows: Sequence[Bits]) -> list[int]:
    """AC(e): for every row, the number of rows whose set of ones includes its own."""
    return [sum(ones(e) <= ones(other) for other in rows) for e in rows]


def containment_level(rows: Sequence[Bits]) -> int:
    """AC(D): the smallest AC(e); 0 without rows."""
    return min(containment_counts(rows), default=0)


def is_feasible(rows: Sequence[Bits], columns: Sequence[int] | frozenset[int], k: int) -> bool:
    """Whether every row is k-anonymous by containment on these columns (always, when there are no rows)."""
    return all(count >= k for count in containment_counts(projected(rows, columns)))


def column_sets(n_columns: int) -> list[frozenset[int]]:
    """All sets of columns, the empty one included, small ones first."""
    return [frozenset(s) for size in range(n_columns + 1) for s in combinations(range(n_columns), size)]


def rare_itemsets(rows: Sequence[Bits], k: int) -> set[frozenset[int]]:
    """Itemsets, the empty one included, that some row and fewer than k rows contain."""
    n_columns = len(rows[0]) if rows else 0
    return {y for y in column_sets(n_columns) if 1 <= sum(y <= ones(row) for row in rows) <= k - 1}


def feasible_sets(rows: Sequence[Bits], k: int) -> set[frozenset[int]]:
    """All sets of columns, the empty one included, on which every row is k-anonymous by containment."""
    n_columns = len(rows[0]) if rows else 0
    return {s for s in column_sets(n_columns) if is_feasible(rows, s, k)}


def maximal_sets(sets: set[frozenset[int]]) -> set[frozenset[int]]:
    """Those that are in no other."""
    return {s for s in sets if not any(s < other for other in sets)}


# Binary rows: how well they separate the classes ------------------------------------------------------------------


def pairs_of_different_classes(labels: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Positions of every two rows whose labels differ."""
    return [(i, j) for i, j in combinations(range(len(labels)), 2) if labels[i] != labels[j]]


def hamming_separation(rows: Sequence[Row], labels: Sequence[Hashable]) -> Fraction:
    """Mean Hamming distance of two rows of different classes; 0 when there are no such pairs."""
    pairs = pairs_of_different_classes(labels)
    distance = sum(a != b for i, j in pairs for a, b in zip(rows[i], rows[j], strict=True))
    return Fraction(distance, len(pairs)) if pairs else Fraction(0)


def distinguished_pairs(rows: Sequence[Row], labels: Sequence[Hashable]) -> Fraction:
    """Share of the pairs of rows of different classes that differ somewhere; 0 when there are no such pairs."""
    pairs = pairs_of_different_classes(labels)
    return Fraction(sum(tuple(rows[i]) != tuple(rows[j]) for i, j in pairs), len(pairs)) if pairs else Fraction(0)


def greedy_containment(
    rows: Sequence[Bits], labels: Sequence[Hashable], k: int, criterion: str, on_infeasible: str
) -> list[int]:
    """Columns in the order in which the greedy selection takes them.

    ``hamming_separation``: by descending separation; the first column that breaks k ends it ("stop") or is passed over
    ("skip"). ``distinguished_pairs``: always the column that gains most; "stop" ends when it breaks k or gains nothing,
    "skip" discards a column that breaks k for good and still takes those that gain nothing. Ties: the lower column.
    """
    chosen: list[int] = []
    left = list(range(len(rows[0]) if rows else 0))
    while left:
        if criterion == "hamming_separation":
            gains = {j: hamming_separation(projected(rows, [j]), labels) for j in left}
        else:
            before = distinguished_pairs(projected(rows, chosen), labels)
            gains = {j: distinguished_pairs(projected(rows, [*chosen, j]), labels) - before for j in left}
        best = max(left, key=lambda j: (gains[j], -j))
        if criterion == "distinguished_pairs" and on_infeasible == "stop" and gains[best] == 0:
            break
        left.remove(best)
        if is_feasible(rows, [*chosen, best], k):
            chosen.append(best)
        elif on_infeasible == "stop":
            break
    return chosen


# A population: people whom released rows fit ------------------------------------------------------------------------


def fits_box(person: Row, rows: Sequence[Row], is_ordered: Sequence[bool]) -> bool:
    """Whether a person's values lie within the least ranges (of ordered columns) and sets of some rows."""
    for place, value in enumerate(person):
        held = [row[place] for row in rows]
        known = [one for one in held if one is not None]
        if value is None or not is_ordered[place]:
            if value not in held:
                return False
        elif not known or not min(known) <= value <= max(known):  # type: ignore[type-var, operator]
            return False
    return True


def people_in_box(people: Sequence[Row], rows: Sequence[Row], is_ordered: Sequence[bool]) -> int:
    """How many people fit the least ranges and sets of some rows."""
    return sum(fits_box(person, rows, is_ordered) for person in people)


# Error-risk pruning of a classification tree [ERP19] ---------------------------------------------------------------


@dataclass(frozen=True)
class TreeNode:
    """A node: its rows by class, the product of P_j(t) over the columns that were split, and its children."""

    counts: tuple[int, ...]
    domain_share: Fraction
    children: tuple[TreeNode, ...] = ()


Place = tuple[int, ...]


def tree_leaves(node: TreeNode) -> list[TreeNode]:
    """Leaves of the branch B_t."""
    return [leaf for child in node.children for leaf in tree_leaves(child)] if node.children else [node]


def disclosure_information(node: TreeNode) -> float:
    """R(t), Equation 5."""
    return -math.log2(node.domain_share) + math.log2(sum(node.counts))


def error_risk_ratio(node: TreeNode) -> float | None:
    """ω_t, Equation 10; infinite where pruning costs no error, and nothing where it gains no information either."""
    leaves = tree_leaves(node)
    gained = disclosure_information(node) - min(map(disclosure_information, leaves))
    error = sum(node.counts) - max(node.counts)
    added = error - sum(sum(leaf.counts) - max(leaf.counts) for leaf in leaves)
    if added:
        return gained / added
    return math.inf if gained > 1e-12 else None


def inner_nodes(node: TreeNode, place: Place = ()) -> list[tuple[Place, TreeNode]]:
    """List the internal nodes, each with the way to it: which child is taken at every level."""
    below = [found for i, child in enumerate(node.children) for found in inner_nodes(child, (*place, i))]
    return [(place, node), *below] if node.children else []


def pruned_at(node: TreeNode, place: Place) -> TreeNode:
    """Make a leaf of the branch at a place."""
    if not place:
        return TreeNode(node.counts, node.domain_share)
    children = list(node.children)
    children[place[0]] = pruned_at(children[place[0]], place[1:])
    return TreeNode(node.counts, node.domain_share, tuple(children))


def error_risk_pruning(tree: TreeNode, k: int) -> TreeNode | None:
    """Figure 2, step by step; ``None`` where two branches that could be pruned have the same ω."""
    if all(sum(leaf.counts) >= k for leaf in tree_leaves(tree)):
        return tree
    candidates = [
        (error_risk_ratio(node), place)
        for place, node in inner_nodes(tree)
        if min(sum(leaf.counts) for leaf in tree_leaves(node)) < k
    ]
    ratios = [ratio for ratio, _ in candidates if ratio is not None]
    if len(ratios) < len(candidates):
        return None
    largest = max(ratios)
    chosen = [place for ratio, place in candidates if ratio == largest or math.isclose(ratio or 0, largest)]
    return error_risk_pruning(pruned_at(tree, chosen[0]), k) if len(chosen) == 1 else None
