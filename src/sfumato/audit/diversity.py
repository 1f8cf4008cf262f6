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

from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.counting import Joint, group_rows, joint_counts
from sfumato.audit.kinds import LEFT_OUT, Judging, judge
from sfumato.guarantees import LDiversity


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
        by_counts=True,
        above_zero=("c",),
    ),
)
