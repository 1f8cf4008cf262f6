"""Whether what a manifest says of the groups of a decision tree can be: BIG, ICR and TIDI in bits (Yang et al. 2019).

BIG needs the splits of the tree, which no release shows: it is the publisher's word, and so is what was pruned. The
released cells do show how many rows are in a group, hence ICR.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.audit.checks import Check, agrees_in_three_digits
from sfumato.audit.claims import Claims, is_number
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.equivalence import classes_of_rows
from sfumato.schema import Role

FLOOR = "min_disclosure_bits"
_HALF_UNIT = 0.005
"""Largest error of a figure in three digits, as a share of it."""


def check_disclosure(columns: Columns, claims: Claims) -> Iterator[Check]:
    """Compare the stated figures with each other, with the sizes of released groups and with the floor asked for."""
    stated, floor = claims.stated_disclosure, claims.parameters.get(FLOOR)
    if not stated and floor is None:
        return
    if not stated:
        said = "the manifest says nothing of the information for disclosing an individual"
        yield Check("disclosure: figures", False, said)
        return
    wrong = [of for of in ("leaves", "groups") if not _fit_together(stated, of)]
    said = f"do not fit together, of: {', '.join(wrong)}" if wrong else "fit together (TIDI = BIG + ICR)"
    yield Check("disclosure: figures", not wrong, f"BIG, ICR and TIDI in the manifest {said}")
    yield from _check_sizes(columns, claims)
    if floor is not None:
        least = float(stated["least_tidi_bits_of_groups"])
        passed = is_number(floor) and least >= floor * (1 - _HALF_UNIT) and _releases_groups(claims)
        shown = f"{floor:.6g}" if is_number(floor) else "no number"
        said = f"the least TIDI of a group is stated as {least:.6g} bits, the floor is {shown}"
        yield Check("disclosure: floor", passed, said, floor if is_number(floor) else None, least)


def _fit_together(stated: Mapping[str, Any], of: str) -> bool:
    """Whether the mean TIDI is the sum of the other means, no least exceeds its mean, nor the sum of leasts TIDI's."""
    least, mean = (
        {name: float(stated[f"{which}_{name}_bits_of_{of}"]) for name in ("big", "icr", "tidi")}
        for which in ("least", "mean")
    )
    slack = 3 * _HALF_UNIT * max(abs(mean["tidi"]), abs(least["tidi"]), 1e-9)
    adds_up = abs(mean["big"] + mean["icr"] - mean["tidi"]) <= slack
    is_ordered = all(least[name] <= mean[name] + slack for name in mean) and min(least.values()) >= 0
    return adds_up and is_ordered and least["big"] + least["icr"] <= least["tidi"] + slack


def _releases_groups(claims: Claims) -> bool:
    """Whether the groups of the tree are the classes of equal cells: two of them differ in a column that was split."""
    return claims.parameters.get("generalization") == "uniform" and claims.parameters.get("refine") is False


def _check_sizes(columns: Columns, claims: Claims) -> Iterator[Check]:
    """Count the rows of released groups again; divided ones are no larger than those of the tree."""
    if claims.parameters.get("generalization") != "uniform":
        return
    stated = claims.stated_disclosure
    if not columns.n_rows:
        return
    with classes_of_rows(columns, columns.with_role(Role.QUASI_IDENTIFIER)) as classes:
        n_groups = int(classes.ask("SELECT count(*) FROM classes"))
        least = classes.ask("SELECT log2(min(size)) FROM classes")
        mean = classes.ask("SELECT sum(size * log2(size)) / sum(size) FROM classes")
    of_least, of_mean = (float(stated[f"{which}_icr_bits_of_groups"]) for which in ("least", "mean"))
    if _releases_groups(claims):
        passed = stated["n_groups"] == n_groups and all(map(agrees_in_three_digits, (of_least, of_mean), (least, mean)))
        said = f"are stated as {of_least:.6g} and {of_mean:.6g} bits, found {least:.6g} and {mean:.6g}"
    else:
        fits = of_least >= least * (1 - _HALF_UNIT) and of_mean >= mean * (1 - _HALF_UNIT)
        passed = fits and stated["n_groups"] <= n_groups
        said = f"are stated as {of_least:.6g} and {of_mean:.6g} bits, at least {least:.6g} and {mean:.6g} by the cells"
    label = f"the least and mean ICR of {int(stated['n_groups']):,} groups"
    within = of_mean <= math.log2(max(columns.n_rows, 1)) * (1 + _HALF_UNIT)
    yield Check("disclosure: ICR", passed and within, f"{label} {said}", of_least, least)
