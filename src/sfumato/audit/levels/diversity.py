r"""l-diversity: how well the values of a sensitive column are represented in every class.

Distinct, entropy and recursive (c, l)-diversity of [MKGV07]_. A missing value is a value, and spellings of the same
value are one. A table without rows has level 0, which keeps no promise.

References
----------
.. [MKGV07] Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam: l-Diversity: Privacy Beyond k-Anonymity.
   ACM TKDD 1 (2007).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.audit.guarantee_forms import LEFT_OUT
from sfumato.audit.kinds import Judging, judge
from sfumato.audit.levels.persons import PersonValues, larger_of_spellings
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import (
    AnyTable,
    Classes,
    Columns,
    Joint,
    group_rows,
    joint_counts,
    n_merged_spellings,
)
from sfumato.guarantees import ROUNDING, ClosenessDistance, LDiversity, TCloseness


def distinct_level(joint: Joint) -> int:
    """Smallest number of different values in a class."""
    if not len(joint.sizes):
        return 0
    return int(np.bincount(joint.class_ids, minlength=len(joint.sizes)).min())


def entropy_level(joint: Joint) -> float:
    """Smallest exponential of a class's entropy: the number of equally frequent values that would be as diverse."""
    if not len(joint.sizes):
        return 0.0
    shares = joint.counts / joint.sizes[joint.class_ids]
    entropies = np.bincount(joint.class_ids, weights=-shares * np.log(shares), minlength=len(joint.sizes))
    return math.exp(max(float(entropies.min()), 0.0))


def recursive_level(joint: Joint, c: float) -> int:
    r"""Largest l for which every class is recursively (c, l)-diverse; 0 when there is none.

    With a class's counts :math:`r_1 \ge r_2 \ge \dots \ge r_m`, (c, l)-diversity is
    :math:`r_1 < c\,(r_l + \dots + r_m)`; an empty sum is 0.

    Notes
    -----
    The sum for l - 1 has one more term, which is not negative, so a class that satisfies l satisfies l - 1. The l of a
    class therefore run from 1 to a largest one, and the smallest of these is the level of the table. ``c`` is taken
    as the decimal number that it is written as, and the comparison is made in whole numbers: no rounding.
    """
    if not len(joint.sizes):
        return 0
    order = np.lexsort((-joint.counts, joint.class_ids))
    class_ids, counts = joint.class_ids[order], joint.counts[order]
    starts = np.searchsorted(class_ids, np.arange(len(joint.sizes)))
    before = np.concatenate([[0], np.cumsum(counts)])[:-1]
    tails = joint.sizes[class_ids] - (before - before[starts][class_ids])
    ratio = Fraction(str(c))
    largest = int(joint.sizes.max()) * max(ratio.numerator, ratio.denominator)
    exact = np.int64 if largest < 2**62 else np.object_  # Python's whole numbers have no limit
    first = counts[starts][class_ids].astype(exact) * ratio.denominator
    holds = (first < tails.astype(exact) * ratio.numerator).astype(np.bool_)
    return int(np.bincount(class_ids[holds], minlength=len(joint.sizes)).min())


def measure(guarantee: LDiversity, released: AnyTable) -> float:
    """Largest l that holds, in the guarantee's variant."""
    columns = Columns(released)
    joint = joint_counts(columns, group_rows(columns, guarantee.over), guarantee.sensitive)
    if guarantee.variant == "recursive":
        return recursive_level(joint, guarantee.c or 0.0)
    return entropy_level(joint) if guarantee.variant == "entropy" else distinct_level(joint)


def recursive_level_of_weights(joint: Joint, c: float) -> int:
    r"""Largest l for which :math:`r_1 < c\,(r_l + \dots + r_m)` in every group, of descending weights r; 0 if none.

    Weights are sums of fractions with rounding errors: what is not below by more than those does not count as below.
    """
    if not len(joint.sizes):
        return 0
    order = np.lexsort((-joint.counts, joint.class_ids))
    groups, weights = joint.class_ids[order], joint.counts[order]
    least = None
    for group in np.split(weights, np.flatnonzero(np.diff(groups)) + 1):
        tails = np.cumsum(group[::-1])[::-1]
        level = int(np.count_nonzero(group[0] + ROUNDING * tails[0] < c * tails))
        least = level if least is None else min(least, level)
    return least or 0


def measure_by_persons(guarantee: LDiversity, pair: ReleaseVsOriginal) -> float:
    """Largest l that holds by persons, in the guarantee's variant; 0 for a table without rows."""
    found = PersonValues.of(guarantee, pair)
    if guarantee.variant == "distinct":
        return found.matched_level()
    if guarantee.variant == "recursive":
        return recursive_level_of_weights(found.weights(), guarantee.c or 0.0)
    return entropy_level(found.weights())


judge(
    LDiversity.kind,
    Judging(
        form={
            "l": "above 1",
            "sensitive": "text",
            "columns": ["text"],
            "variant": frozenset({"distinct", "entropy", "recursive"}),
            "c": "number?",
            **LEFT_OUT,
        },
        parameters=("l", "c", "variant"),
        on_release=measure,
        by_persons=measure_by_persons,
        by_counts=True,
    ),
)


# t-closeness: how far the values of a sensitive column in a class are from those in the whole table.
#
# The two distances of [LLV07]_ between the distribution P of a class and Q of the table, both from 0 to 1. A missing
# value is a value, ordered last. A table without rows has level 1, the worst. The distance is taken between values,
# whatever their spelling, and between spellings; the larger one counts.
#
# References ---------- .. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity.
# ICDE 2007.


def equal_distance_level(joint: Joint) -> float:
    r"""Largest :math:`\tfrac12\sum_v |P(v) - Q(v)|` of a class.

    Both sum to 1, so this is the sum of P - Q over the values with P > Q, all of which occur in the class.
    """
    if not len(joint.sizes):
        return 1.0
    surplus = joint.counts / joint.sizes[joint.class_ids] - joint.totals[joint.values] / joint.totals.sum()
    distances = np.bincount(joint.class_ids, weights=np.maximum(surplus, 0.0), minlength=len(joint.sizes))
    return float(distances.max())


def ordered_distance_level(joint: Joint) -> float:
    r"""Largest :math:`\frac{1}{m-1}\sum_{i=1}^m |\sum_{j \le i} P(v_j) - Q(v_j)|` over the m values in the table.

    Notes
    -----
    The cumulative P of a class is constant from one of its values to the next and the cumulative Q only grows, so each
    such stretch has one point before which P is ahead and after which Q is: sums of Q give the stretch's share at once.
    The cost grows with the pairs of class and value that occur, not with classes × values.
    """
    if not len(joint.sizes):
        return 1.0
    n_values, n_classes = len(joint.totals), len(joint.sizes)
    if n_values == 1:
        return 0.0
    last = np.append(joint.class_ids[1:] != joint.class_ids[:-1], True)
    # Stretches from a class's value to its next (or to the end); what comes before its first value has P = 0.
    starts = joint.values
    ends = np.where(last, n_values, np.append(joint.values[1:], n_values))
    running = np.cumsum(joint.counts)
    before_class = np.concatenate([[0], np.cumsum(joint.sizes)])[:-1]
    reached = (running - before_class[joint.class_ids]) / joint.sizes[joint.class_ids]
    cumulative = np.cumsum(joint.totals) / joint.totals.sum()
    summed = np.concatenate([[0.0], np.cumsum(cumulative)])
    turn = np.clip(np.searchsorted(cumulative, reached), starts, ends)
    ahead = reached * (turn - starts) - (summed[turn] - summed[starts])
    behind = (summed[ends] - summed[turn]) - reached * (ends - turn)
    first = np.flatnonzero(np.append(True, last[:-1]))
    distances = np.bincount(joint.class_ids, weights=ahead + behind, minlength=n_classes) + summed[joint.values[first]]
    return float(distances.max()) / (n_values - 1)


def measure_closeness(guarantee: TCloseness, released: AnyTable) -> float:
    """Smallest t that holds, in the guarantee's distance."""
    columns = Columns(released)
    return closeness_level(columns, group_rows(columns, guarantee.over), guarantee.sensitive, guarantee.distance)


def closeness_level(columns: Columns, classes: Classes, name: str, distance: ClosenessDistance) -> float:
    """Smallest t of a column, by its values and by their spellings: merging values can hide a distance."""
    level = ordered_distance_level if distance == "ordered" else equal_distance_level
    ways = (False, True) if n_merged_spellings(columns, name) else (False,)
    return max(level(joint_counts(columns, classes, name, spelled=spelled)) for spelled in ways)


def measure_closeness_by_persons(guarantee: TCloseness, pair: ReleaseVsOriginal) -> float:
    """Smallest t that holds by persons, by the values and by their spellings: merging values can hide a distance."""
    return larger_of_spellings(
        guarantee, pair, ordered_distance_level if guarantee.distance == "ordered" else equal_distance_level
    )


judge(
    TCloseness.kind,
    Judging(
        form={
            "t": "share",
            "sensitive": "text",
            "columns": ["text"],
            "distance": frozenset({"equal", "ordered"}),
            **LEFT_OUT,
        },
        parameters=("t", "distance"),
        on_release=measure_closeness,
        by_persons=measure_closeness_by_persons,
        by_counts=True,
    ),
)
