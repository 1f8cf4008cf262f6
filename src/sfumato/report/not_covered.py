"""What the guarantees of one release leave open, in sentences for the command line, the page and the report.

All is taken from the released table and its manifest, so that whoever has the release may read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import on_one_line
from sfumato.guarantees import Guarantee, KAnonymity
from sfumato.guarantees.base import ReleaseFacts
from sfumato.manifest import Manifest
from sfumato.report.guarantee_texts import share_in_words
from sfumato.report.prepared_columns import not_protected_by, pseudonyms_in
from sfumato.table.coding import Table

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Release

MOST_NAMED = 20
"""Columns under no guarantee that are named, those with most unique values first."""


def not_promised(release: Release) -> list[str]:
    """Say in plain words what the guarantees of a release leave open, and which columns none of them covers.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=50).keep(["age", "discharge_diagnosis", "readmitted"])
    >>> not_promised(release(table, Mondrian(k=5)))[-1].partition(" (")[0]
    "published unchanged; no guarantee covers it: 'discharge_diagnosis'"
    """
    manifest = release.manifest
    promised = manifest.promised()
    said = [*_about_patterns(manifest, promised), *_left_open(manifest, promised), *_about_typical(manifest)]
    return [
        on_one_line(sentence)
        for sentence in (*said, *_taken_as_binary(manifest), *_uncovered(release), *not_protected_by(manifest))
    ]


def _risk(manifest: Manifest) -> Mapping[str, Any]:
    return manifest.evidence.get("risk", {})  # type: ignore[no-any-return]


def _about_patterns(manifest: Manifest, promised: Sequence[Guarantee]) -> Iterator[str]:
    unique, k = _risk(manifest).get("unique_pattern_fraction"), _risk(manifest).get("anonymity_level")
    if not isinstance(unique, int | float) or not isinstance(k, int):
        return
    values = next((guarantee.open_values for guarantee in promised if guarantee.open_values), "")
    yield (
        f"not promised: {f'anything about {values}. ' if values else ''}{unique:.2%} of rows have a 0/1 pattern that "
        f"no other row has; ordinary k-anonymity holds with k = {k}"
    )


def _left_open(manifest: Manifest, promised: Sequence[Guarantee]) -> Iterator[str]:
    """Say what each guarantee leaves open; two of a family may say the same, which is said once."""
    k, rules = _risk(manifest).get("anonymity_level"), {recoding.get("rule") for recoding in manifest.recodings}
    facts = ReleaseFacts(
        smallest_class=k if isinstance(k, int) else None,
        has_generalized_cells=not rules.isdisjoint(("generalized", "typical")),
        promises_anonymity=any(isinstance(guarantee, KAnonymity) for guarantee in promised),
    )
    yield from dict.fromkeys(sentence for guarantee in promised for sentence in guarantee.left_open(facts))


def _about_typical(manifest: Manifest) -> Iterator[str]:
    """Say that values in place of ranges are not true of every person."""
    if any(recoding.get("rule") == "typical" for recoding in manifest.recodings):
        yield (
            "cells of quasi-identifiers are typical of a class (median or most frequent value): for many persons "
            "in it they are not true, and spreads and correlations are smaller than the original's or distorted"
        )


def _taken_as_binary(manifest: Manifest) -> Iterator[str]:
    """Say what was made of cells without a rule, where no look at the rows was allowed."""
    if not manifest.is_differentially_private:
        return
    plan = manifest.mechanism["parameters"].get("binarize")
    rules = plan.get("columns") if isinstance(plan, Mapping) else None
    taken = [name for name, rule in rules.items() if rule == "as-is"] if isinstance(rules, Mapping) else []
    if taken:
        more = f" and {len(taken) - MOST_NAMED:,} more" if len(taken) > MOST_NAMED else ""
        named = ", ".join(f"'{name}'" for name in taken[:MOST_NAMED]) + more
        yield f"read as 0/1 without looking at the rows: {named} (1, yes and true become 1, every other cell 0)"


def _uncovered(release: Release) -> Iterator[str]:
    """Name released columns that no guarantee is about, the most telling ones first."""
    done = release.manifest.perturbation or {}
    covered = {done.get("bucket"), *(name for names in done.get("slices", ()) for name in names)}
    covered |= {entry.get("sensitive") for entry in release.manifest.guarantees} | pseudonyms_in(release.manifest)
    beside = release.table.coded_part
    shown = [name for name in beside.schema.published_unchanged() if name != beside.schema.target]
    names = [name for name in shown if name not in covered]
    shares = {name: _unique_share(beside, name) for name in names}
    for name in sorted(names, key=lambda one: -shares[one])[:MOST_NAMED]:
        share = share_in_words(shares[name])
        unique = f"in {share} of rows its value occurs only once" if shares[name] else "no value occurs only once"
        yield f"published unchanged; no guarantee covers it: '{name}' ({unique})"
    if len(names) > MOST_NAMED:
        yield f"published unchanged; no guarantee covers them: {len(names) - MOST_NAMED:,} further columns"


def _unique_share(table: Table, name: str) -> float:
    return float(np.count_nonzero(table[name].counts == 1) / max(table.n_rows, 1))
