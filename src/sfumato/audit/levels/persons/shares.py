"""Shares of single sensitive values by persons: β-likeness, δ-disclosure privacy and (α,k)-anonymity of weights.

The levels are those of :mod:`sfumato.audit.levels.value_shares`, of the weights that persons give to values
(:mod:`sfumato.audit.levels.persons.groups`) in place of counts of rows. k of (α,k) counts persons. As there, β and δ
are taken between values and between spellings, and α counts values.
"""

from __future__ import annotations

import math
from functools import partial

from sfumato.audit.kinds import Judging, judge
from sfumato.audit.levels.persons.groups import (
    PersonValues,
    check_person_promise,
    larger_of_spellings,
    largest_is_worst,
)
from sfumato.audit.levels.value_shares import disclosure_level, largest_share, likeness_level
from sfumato.audit.original.release_vs_original import Beside
from sfumato.guarantees.person_shares import PersonDisclosure, PersonLikeness, PersonShare


def measure_likeness(guarantee: PersonLikeness, beside: Beside) -> float:
    """Smallest β that holds by persons, in the guarantee's variant."""
    return larger_of_spellings(guarantee, beside, partial(likeness_level, enhanced=guarantee.likeness == "enhanced"))


def measure_disclosure(guarantee: PersonDisclosure, beside: Beside) -> float:
    """Smallest δ that holds by persons."""
    return larger_of_spellings(guarantee, beside, disclosure_level)


def measure_share(guarantee: PersonShare, beside: Beside) -> float:
    """Smallest α that holds by persons; infinite where a group is that of fewer than k persons."""
    with largest_is_worst():
        found = PersonValues.of(guarantee, beside)
    return math.inf if found.fewest_persons() < guarantee.k else largest_share(found.weights(), 0)


judge(
    PersonLikeness.kind,
    Judging(
        form={
            "beta": "above 0",
            "sensitive": "text",
            "columns": ["text"],
            "likeness": frozenset({"basic", "enhanced"}),
            "person": "text",
        },
        parameters=("beta", "likeness"),
        beside_original=measure_likeness,
        further=check_person_promise,
    ),
)
judge(
    PersonDisclosure.kind,
    Judging(
        form={"delta": "above 0", "sensitive": "text", "columns": ["text"], "person": "text"},
        parameters=("delta",),
        beside_original=measure_disclosure,
        further=check_person_promise,
    ),
)
judge(
    PersonShare.kind,
    Judging(
        form={"alpha": "proper share", "k": "crowd", "sensitive": "text", "columns": ["text"], "person": "text"},
        parameters=("alpha", "k"),
        beside_original=measure_share,
        further=check_person_promise,
    ),
)
