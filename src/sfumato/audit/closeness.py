r"""t-closeness: how far the values of a sensitive column in a class are from those in the whole table.

The two distances of [LLV07]_ between the distribution P of a class and Q of the table, both from 0 to 1. A missing
value is a value, ordered last. A table without rows has level 1, the worst. The distance is taken between values,
whatever their spelling, and between spellings; the larger one counts.

References
----------
.. [LLV07] Li, Li, Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and l-Diversity. ICDE 2007.
"""

from __future__ import annotations

import numpy as np

from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.counting import Classes, Joint, group_rows, joint_counts, n_merged_spellings
from sfumato.audit.kinds import LEFT_OUT, Judging, judge
from sfumato.guarantees import ClosenessDistance, TCloseness


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


def measure(guarantee: TCloseness, released: AnyTable) -> float:
    """Smallest t that holds, in the guarantee's distance."""
    columns = Columns(released)
    return closeness_level(columns, group_rows(columns, guarantee.over), guarantee.sensitive, guarantee.distance)


def closeness_level(columns: Columns, classes: Classes, name: str, distance: ClosenessDistance) -> float:
    """Smallest t of a column, by its values and by their spellings: merging values can hide a distance."""
    level = ordered_distance_level if distance == "ordered" else equal_distance_level
    ways = (False, True) if n_merged_spellings(columns, name) else (False,)
    return max(level(joint_counts(columns, classes, name, spelled=spelled)) for spelled in ways)


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
        on_release=measure,
        by_counts=True,
    ),
)
