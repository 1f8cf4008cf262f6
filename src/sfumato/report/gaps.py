"""What the guarantees of one release leave open, in sentences for the command line, the page and the report.

All is taken from the released table and its manifest, so that whoever has the release may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sfumato.contract import Release
from sfumato.errors import on_one_line
from sfumato.manifest import Manifest
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import Table

MOST_NAMED = 20
"""Columns under no guarantee that are named, those with most unique values first."""


def not_promised(release: Release) -> list[str]:
    """Say in plain words what the guarantees of a release leave open, and which columns stand under none.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=50).keep(["age", "discharge_diagnosis", "readmitted"])
    >>> not_promised(release(table, Mondrian(k=5)))[-1].partition(" (")[0]
    "released as it is, under no guarantee: 'discharge_diagnosis'"
    """
    manifest = release.manifest
    said = [*_about_patterns(manifest), *_about_classes(manifest), *_about_noise(manifest), *_uncovered(release)]
    return [on_one_line(sentence) for sentence in said]


def _risk(manifest: Manifest) -> Mapping[str, Any]:
    found = manifest.evidence.get("risk") if isinstance(manifest.evidence, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _about_patterns(manifest: Manifest) -> Iterator[str]:
    unique, k = _risk(manifest).get("unique_pattern_fraction"), _risk(manifest).get("anonymity_level")
    if not isinstance(unique, int | float) or not isinstance(k, int):
        return
    zeros = any(g["kind"] == "containment" and not g.get("reveals") for g in manifest.guarantees)
    yield (
        f"not promised: {'anything about zeros. ' if zeros else ''}{unique:.2%} of the rows have a 0/1 pattern "
        f"that no other row has; the ordinary k is {k}"
    )


def _about_classes(manifest: Manifest) -> Iterator[str]:
    kinds = {entry["kind"] for entry in manifest.guarantees}
    k = _risk(manifest).get("anonymity_level")
    smallest = f"the smallest class of equal released rows has {k:,}" if isinstance(k, int) else ""
    if "kk-anonymity" in kinds:
        yield _joined("not promised: k-anonymity", "; ", smallest)
    if {"kk-anonymity", "k-anonymity"} & kinds and any(r.get("rule") == "generalized" for r in manifest.recodings):
        yield (
            "not promised: that other columns stay unknown where all rows of a group agree on them; "
            "an attack on the release counts of whom they are learned"
        )
    if "breach-bound" in kinds:
        attackers = (
            "not promised: k-anonymity, or safety from attackers of another kind or who also use the released target "
            "and other columns (the attacker is given quasi-identifiers only)"
        )
        yield _joined(attackers, "; ", smallest)
    if "privacy-gain" in kinds:
        dropping = "not promised: k-anonymity; dropping columns hides what stood in them and nothing else"
        yield _joined(dropping, ". ", smallest[:1].upper() + smallest[1:])
    if {"bucket-size", "bucket-diversity"} & kinds:
        yield (
            "not promised: k-anonymity, or that somebody's being in the table stays unknown: quasi-identifiers are "
            "released as they are, only what belongs with what is hidden within each bucket"
        )


def _about_noise(manifest: Manifest) -> Iterator[str]:
    """Say what differential privacy takes as known, and what was made of cells without a rule."""
    if not manifest.is_differentially_private:
        return
    yield (
        "not promised: anything about the number of rows, the class of each, and the names of the columns, which are "
        "taken as known; nor about a second release of the same rows, which costs its epsilon again"
    )
    plan = manifest.mechanism["parameters"].get("binarize")
    rules = plan.get("columns") if isinstance(plan, Mapping) else None
    taken = [name for name, rule in rules.items() if rule == "as-is"] if isinstance(rules, Mapping) else []
    if taken:
        more = f" and {len(taken) - MOST_NAMED:,} more" if len(taken) > MOST_NAMED else ""
        named = ", ".join(f"'{name}'" for name in taken[:MOST_NAMED]) + more
        yield f"taken as 0/1 without a look at the rows: {named} (1, yes and true are 1, every other cell is 0)"


def _joined(sentence: str, between: str, more: str) -> str:
    return f"{sentence}{between}{more}" if more else sentence


def _uncovered(release: Release) -> Iterator[str]:
    """Name released columns that no guarantee is about, the most telling ones first."""
    done = release.manifest.perturbation or {}
    covered = {done.get("bucket"), *(name for names in done.get("slices", ()) for name in names)}
    covered |= {entry.get("sensitive") for entry in release.manifest.guarantees}
    beside = release.table.companions if isinstance(release.table, BinaryTable) else release.table
    names = [name for name in beside.schema.names(Role.SENSITIVE, Role.OTHER) if name not in covered]
    shares = {name: _unique_share(beside, name) for name in names}
    for name in sorted(names, key=lambda one: -shares[one])[:MOST_NAMED]:
        unique = f"its value is unique in {shares[name]:.1%} of the rows"
        yield f"released as it is, under no guarantee: '{name}' ({unique})"
    if len(names) > MOST_NAMED:
        yield f"released as they are, under no guarantee: {len(names) - MOST_NAMED:,} further columns"


def _unique_share(table: Table, name: str) -> float:
    return float(np.count_nonzero(table[name].counts == 1) / max(table.n_rows, 1))
