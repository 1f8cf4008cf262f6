r"""Shares of single sensitive values in classes: β-likeness, δ-disclosure privacy and (α,k)-anonymity.

With the share q of a value in a class and p in the whole released table: :math:`(q - p)/p` for β-likeness of [CK12]_,
:math:`|\ln(q/p)|` for δ-disclosure privacy of [BS08]_ and q itself for (α,k)-anonymity of [WLFW06]_. A table's level is
the largest, and **infinite** where no number would do: for a table without rows, a value that a class lacks (δ), more
than the :math:`-\ln p` that enhanced β-likeness allows whatever β is, and a class of fewer than k rows (α).

A missing value is a value. β and δ are taken between values, whatever their spelling, and between spellings; the larger
level counts, for a class that holds one spelling only says something. α counts values: one of two spellings is more
frequent than either.

References
----------
.. [CK12] Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee. PVLDB 5(11) (2012).
.. [BS08] Brickell, Shmatikov: The Cost of Privacy: Destruction of Data-Mining Utility in Anonymized Data Publishing.
   KDD (2008).
.. [WLFW06] Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving Data Publishing.
   KDD (2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from sfumato.audit.guarantee_forms import LEFT_OUT
from sfumato.audit.kinds import Judging, judge
from sfumato.audit.levels.persons import PersonValues, larger_of_spellings, largest_is_worst
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import AnyTable, Columns, Joint, group_rows, joint_counts, n_merged_spellings
from sfumato.guarantees import ROUNDING, AlphaKAnonymity, BetaLikeness, DeltaDisclosure


def likeness_level(joint: Joint, *, enhanced: bool = False) -> float:
    r"""Largest :math:`(q - p)/p`; infinite where one is above :math:`-\ln p` and that counts.

    Only values of a class can have q > p. The two sides of the second comparison have rounding errors, hence the slack
    that every level has.
    """
    if not len(joint.sizes):
        return math.inf
    before = joint.totals[joint.values] / joint.totals.sum()
    gains = joint.counts / joint.sizes[joint.class_ids] / before - 1.0
    if enhanced and bool((gains > -np.log(before) + ROUNDING).any()):
        return math.inf
    return max(float(gains.max()), 0.0)


def disclosure_level(joint: Joint) -> float:
    r"""Largest :math:`|\ln(q/p)|` over all values of the table; infinite where a class lacks one."""
    lacks_none = np.bincount(joint.class_ids, minlength=len(joint.sizes)) == len(joint.totals)
    if not len(joint.sizes) or not lacks_none.all():
        return math.inf
    before = joint.totals[joint.values] / joint.totals.sum()
    return float(np.abs(np.log(joint.counts / joint.sizes[joint.class_ids] / before)).max())


def largest_share(joint: Joint, k: int) -> float:
    """Largest share of a value in a class; infinite where a class has fewer than k rows."""
    if not len(joint.sizes) or int(joint.sizes.min()) < k:
        return math.inf
    return float((joint.counts / joint.sizes[joint.class_ids]).max())


def _by_values_and_spellings(
    guarantee: BetaLikeness | DeltaDisclosure, released: AnyTable, level: Callable[[Joint], float]
) -> float:
    columns = Columns(released)
    classes = group_rows(columns, guarantee.over)
    ways = (False, True) if n_merged_spellings(columns, guarantee.sensitive) else (False,)
    return max(level(joint_counts(columns, classes, guarantee.sensitive, spelled=spelled)) for spelled in ways)


def measure_likeness(guarantee: BetaLikeness, released: AnyTable) -> float:
    """Smallest β that holds, in the guarantee's variant."""
    level = partial(likeness_level, enhanced=guarantee.likeness == "enhanced")
    return _by_values_and_spellings(guarantee, released, level)


def measure_disclosure(guarantee: DeltaDisclosure, released: AnyTable) -> float:
    """Smallest δ that holds."""
    return _by_values_and_spellings(guarantee, released, disclosure_level)


def measure_share(guarantee: AlphaKAnonymity, released: AnyTable) -> float:
    """Smallest α that holds with the guarantee's k."""
    columns = Columns(released)
    joint = joint_counts(columns, group_rows(columns, guarantee.over), guarantee.sensitive)
    return largest_share(joint, guarantee.k)


def measure_likeness_by_persons(guarantee: BetaLikeness, pair: ReleaseVsOriginal) -> float:
    """Smallest β that holds by persons, in the guarantee's variant."""
    return larger_of_spellings(guarantee, pair, partial(likeness_level, enhanced=guarantee.likeness == "enhanced"))


def measure_disclosure_by_persons(guarantee: DeltaDisclosure, pair: ReleaseVsOriginal) -> float:
    """Smallest δ that holds by persons."""
    return larger_of_spellings(guarantee, pair, disclosure_level)


def measure_share_by_persons(guarantee: AlphaKAnonymity, pair: ReleaseVsOriginal) -> float:
    """Smallest α that holds by persons; infinite where a group is that of fewer than k persons."""
    with largest_is_worst():
        found = PersonValues.of(guarantee, pair)
    return math.inf if found.fewest_persons() < guarantee.k else largest_share(found.weights(), 0)


judge(
    BetaLikeness.kind,
    Judging(
        form={
            "beta": "above 0",
            "sensitive": "text",
            "columns": ["text"],
            "likeness": frozenset({"basic", "enhanced"}),
            **LEFT_OUT,
        },
        parameters=("beta", "likeness"),
        on_release=measure_likeness,
        by_persons=measure_likeness_by_persons,
        by_counts=True,
    ),
)
judge(
    DeltaDisclosure.kind,
    Judging(
        form={"delta": "above 0", "sensitive": "text", "columns": ["text"], **LEFT_OUT},
        parameters=("delta",),
        on_release=measure_disclosure,
        by_persons=measure_disclosure_by_persons,
        by_counts=True,
    ),
)
judge(
    AlphaKAnonymity.kind,
    Judging(
        form={"alpha": "proper share", "k": "crowd", "sensitive": "text", "columns": ["text"], **LEFT_OUT},
        parameters=("alpha", "k"),
        on_release=measure_share,
        by_persons=measure_share_by_persons,
        by_counts=True,
    ),
)
