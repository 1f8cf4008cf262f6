r"""l-diversity and t-closeness: the values of a sensitive column in every class.

Distinct, entropy and recursive (c, l)-diversity of [MKGV07]_, and t-closeness in the two distances of [LLV07]_. A
missing value is a value, ordered last.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE 2007.
"""

from __future__ import annotations

from fractions import Fraction

from sfumato.audit.kinds import Judging, judge
from sfumato.audit.levels.persons import PersonValues, level_in_classes_of_persons
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.equivalence import EquivalenceClasses
from sfumato.guarantees import ROUNDING, LDiversity, TCloseness

# l-diversity. Spellings of the same value are one. A table without rows has level 0, which keeps no promise.


DISTINCT = "SELECT coalesce(min(l), 0) FROM (SELECT count(*) AS l FROM pairs GROUP BY class)"
"""Smallest number of different values in a class."""
ENTROPY = """
SELECT CASE WHEN count(*) = 0 THEN 0 ELSE exp(greatest(min(entropy), 0)) END
FROM (SELECT -sum(n / size * ln(n / size) ORDER BY n) AS entropy FROM pairs GROUP BY class)
"""
"""Smallest exponential of a class's entropy: the number of equally frequent values that would be as diverse.

Summed in a fixed order, so that the last digit does not depend on that of the rows.
"""
RECURSIVE = """
SELECT coalesce(min(l), 0) FROM (
    SELECT count(*) FILTER ({is_below}) AS l
    FROM (
        SELECT class, size, max(n) OVER (PARTITION BY class) AS most,
            sum(n) OVER (PARTITION BY class ORDER BY n, value) AS rest
        FROM pairs
    )
    GROUP BY class
)
"""
r"""Largest l for which every class is recursively (c, l)-diverse; 0 when there is none.

With a class's counts :math:`r_1 \ge r_2 \ge \dots \ge r_m`, (c, l)-diversity is :math:`r_1 < c\,(r_l + \dots + r_m)`.
The sum for l - 1 has one more term, so a class that satisfies l satisfies l - 1: its l run from 1 to a largest one.
"""


def recursive_level(classes: EquivalenceClasses, c: float) -> int:
    """Largest l for which every class is recursively (c, l)-diverse.

    By rows ``c`` is taken as the decimal number that it is written as, and whole numbers are compared. Counts are no
    larger than the number of rows, so that of all fractions the nearest one that is no larger either decides as c does.
    Weights of persons have rounding errors: what is not below by more than those does not count as below.
    """
    if classes.by_persons:
        return int(classes.ask(RECURSIVE.format(is_below="most + $slack * size < $c * rest"), slack=ROUNDING, c=c))
    n_rows = int(classes.ask("SELECT coalesce(sum(size), 1) FROM classes"))
    exact = min(Fraction(str(c)), Fraction(n_rows + 1))
    near = exact.limit_denominator(n_rows)
    is_below = "most * $below < $above * rest" if near >= exact else "most * $below <= $above * rest"
    return int(classes.ask(RECURSIVE.format(is_below=is_below), above=near.numerator, below=near.denominator))


def measure(guarantee: LDiversity, classes: EquivalenceClasses) -> float:
    """Largest l that holds, in the guarantee's variant."""
    if guarantee.variant == "recursive":
        return recursive_level(classes, guarantee.c or 0.0)
    return classes.ask(ENTROPY if guarantee.variant == "entropy" else DISTINCT)


def measure_by_persons(guarantee: LDiversity, pair: ReleaseVsOriginal) -> float:
    """Largest l that holds by persons: different values count as far as different persons carry them."""
    if guarantee.variant == "distinct":
        return PersonValues.of(guarantee, pair).matched_level()
    return level_in_classes_of_persons(guarantee, pair)


judge(LDiversity.kind, Judging(parameters=("l", "c", "variant"), in_classes=measure, by_persons=measure_by_persons))


# t-closeness: how far the distribution P of a class's values is from that of the table, Q; from 0 to 1. A table without
# rows has level 1, the worst. Merging values can hide a distance, hence between spellings, too.


EQUAL = """
SELECT coalesce(max(distance), 1) FROM (
    SELECT sum(greatest(pairs.n * n_rows - totals.n * size, 0)) / (any_value(size) * any_value(n_rows)) AS distance
    FROM pairs JOIN totals USING (value), (SELECT sum(n) AS n_rows FROM totals)
    GROUP BY class
)
"""
r"""Largest :math:`\tfrac12\sum_v |P(v) - Q(v)|` of a class.

Both sum to 1, so this is the sum of P - Q over the values with P > Q, all of which occur in the class.
"""
ORDERED = """
WITH sums AS (
    SELECT *, sum(upto) OVER (ORDER BY place) - upto AS sum_before
    FROM (
        SELECT value, row_number() OVER in_order - 1 AS place, sum(n) OVER in_order AS upto
        FROM totals WINDOW in_order AS (ORDER BY value)
    )
), whole AS (
    SELECT count(*) AS n_values, max(upto) AS n_rows, sum(upto) AS sum_of_all FROM sums
), stretches AS (
    SELECT class, size, n_rows, n_values, sum(n) OVER in_class AS reached,
        place AS start, lead(place, 1, n_values) OVER in_class AS stop,
        sum_before AS sum_start, lead(sum_before, 1, sum_of_all) OVER in_class AS sum_stop
    FROM pairs JOIN sums USING (value), whole
    WINDOW in_class AS (PARTITION BY class ORDER BY place)
), turns AS (
    SELECT stretches.*, greatest(start, least(stop, place)) AS turn,
        greatest(sum_start, least(sum_stop, sum_before)) AS sum_turn
    FROM stretches ASOF LEFT JOIN sums ON reached * n_rows / size <= upto
)
SELECT coalesce(max(distance), 1) FROM (
    SELECT (
            sum(reached * n_rows * (2 * turn - start - stop) + size * (sum_start + sum_stop - 2 * sum_turn))
            + any_value(size) * min(sum_start)
        ) / (any_value(size) * any_value(n_rows)) / greatest(any_value(n_values) - 1, 1) AS distance
    FROM turns GROUP BY class
)
"""
r"""Largest :math:`\frac{1}{m-1}\sum_{i=1}^m |\sum_{j \le i} P(v_j) - Q(v_j)|` over the m values in the table.

The cumulative P of a class is constant from one of its values to the next and the cumulative Q only grows, so each such
stretch has one place before which P is ahead and after which Q is: sums of Q give the stretch's share at once. What
comes before the class's first value has P = 0. The cost grows with the pairs of class and value that occur.
"""


def closeness(classes: EquivalenceClasses, distance: str) -> float:
    """Smallest t that holds, in one of the distances."""
    return classes.ask(ORDERED if distance == "ordered" else EQUAL)


judge(
    TCloseness.kind,
    Judging(
        parameters=("t", "distance"),
        in_classes=lambda guarantee, classes: closeness(classes, guarantee.distance),
        between_spellings=True,
    ),
)
