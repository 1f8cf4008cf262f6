"""Risk that is left in a release, by every attack that applies, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from sfumato.attack.containment_matching import CROWDS, containment_attack, containment_matching
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.attack.inference import attribute_inference
from sfumato.attack.kept_scores import KeptScores
from sfumato.attack.reidentification import (
    candidates_per_person,
    class_size_distribution,
    n_found,
    reidentification_risk,
)
from sfumato.attack.uniques import LARGEST_SET, minimal_uniques
from sfumato.contract import Progress
from sfumato.manifest import AnyTable, Manifest
from sfumato.table.coding import Table

N_BACKGROUND = (1, 2, 3)
NOT_APPLICABLE = "not_applicable"

_MOST_SETS_ROWS = 20_000_000
_MOST_COLUMNS = 50
_TIMES_SLOWER = 10  # matching with the nearest rows
_SYNTHETIC = "the released rows were drawn anew and are nobody's"
_IN_PIECES = "values were moved within buckets, so that the ones of a row are not those of a person"
_NOT_BINARY = "the released quasi-identifiers are not all 0/1"
_NO_COLUMNS = "no released quasi-identifier comes from a column of the original"
_NO_SENSITIVE = "the original has no sensitive column"


def risk_of(
    original: AnyTable,
    released: AnyTable,
    manifest: Manifest | None = None,
    *,
    sample_fraction: float | None = None,
    include_target: bool = False,
    seed: int = 0,
    kept: KeptScores | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Attack a release in every way that applies.

    Parameters
    ----------
    original, released : Table or BinaryTable
        The original's roles say which columns are sensitive, the release's which are quasi-identifiers.
    manifest : Manifest or None
        Tells how columns were recoded; ``None`` takes all released cells as values. The risk before anything is done
        is ``risk_of(original, original)``.
    sample_fraction : float or None
        Share of the population that was released, see :func:`sfumato.attack.reidentification.risks_of_classes`.
    include_target : bool
        Whether to infer the target too.
    seed : int
        Of everything that is drawn.
    kept : KeptScores or None
        What attackers score with the original, from attacks on other releases of it: this is then not measured again.
        See :class:`sfumato.attack.kept_scores.ScoresInMemory`.

    Returns
    -------
    dict
        ``headline`` (``marketer``: expected share of people named by one who knows all quasi-identifiers;
        ``highest_prosecutor``; both ``None`` where no row is anybody's), ``reidentification``, ``class_sizes``,
        ``uniques``, ``inference``, ``linkage`` and ``containment``. Where an attack does not apply, its entry is
        ``{"not_applicable": reason}``. Fit for JSON; no cell value is in it: a feature such as ``sex=f`` is named by
        its column and a number.

    Raises
    ------
    SchemaError
        If released cells cannot be read beside the original's.
    ManifestError
        If the manifest cannot be read.
    InvalidParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Column, Schema
    >>> from sfumato.table.coding import Table
    >>> people = Table.from_arrow(pa.table({"job": ["a", "a", "b"]}), Schema.of([Column("job")]))
    >>> risk_of(people, people)["headline"]
    {'marketer': 0.666666666667, 'highest_prosecutor': 1.0}
    """
    tables = Correspondence(original, released, manifest)
    steps: Mapping[str, Callable[[], Any]] = {
        "reidentification": lambda: _reidentification(tables, sample_fraction),
        "class_sizes": lambda: _class_sizes(tables),
        "uniques": lambda: _uniques(tables),
        "inference": lambda: _inference(tables, include_target, seed, kept),
        "linkage": lambda: _linkage(tables),
        "containment": lambda: _containment(tables, manifest, seed),
    }
    found: dict[str, Any] = {}
    for number, (name, step) in enumerate(steps.items()):
        if progress is not None:
            progress(number, len(steps), name.replace("_", " "))
        found[name] = step()
    if progress is not None:
        progress(len(steps), len(steps), "risk")
    return {"headline": _headline(found["reidentification"])} | found


def attacked_rows(original: AnyTable, manifest: Manifest | None) -> AnyTable:
    """Take the rows of the original that a release was made of: the complete ones where the others were dropped.

    Who was left out beforehand cannot be found, and would make the risk of the others look smaller.
    """
    is_dropped = manifest is not None and manifest.missing.get("rows") == "dropped"
    return original.without_incomplete_rows() if is_dropped and isinstance(original, Table) else original


def _headline(found: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_APPLICABLE in found:
        return {"marketer": None, "highest_prosecutor": None, NOT_APPLICABLE: found[NOT_APPLICABLE]}
    return {"marketer": found["marketer"], "highest_prosecutor": found["prosecutor"]["highest"]}


def _reidentification(tables: Correspondence, sample_fraction: float | None) -> dict[str, Any]:
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    return reidentification_risk(tables, sample_fraction=sample_fraction)


def _class_sizes(tables: Correspondence) -> Any:
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    return class_size_distribution(tables.classes.sizes)


def _uniques(tables: Correspondence) -> dict[str, Any]:
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    found = minimal_uniques(tables.released, tables.quasi_identifiers, largest=LARGEST_SET, within=tables.pieces)
    return found.summary(_shown_names(tables, tables.quasi_identifiers))


def _shown_names(tables: Correspondence, names: Sequence[str]) -> dict[str, str]:
    """Name features by their column and a number, because their own names hold cells, as ``sex=f`` does.

    The number is the feature's place in the original if that has it, so that it is the same before and after.
    """
    places = {name: number for number, name in enumerate(names, start=1)}
    places |= {name: number for number, name in enumerate(tables.original.names, start=1) if name in places}
    shown: dict[str, str] = {}
    for name in names:
        feature, recoding = tables.original.feature(name) or tables.released.feature(name), tables.recodings.get(name)
        column = feature.column if feature is not None else name
        if column == name and recoding is not None:
            column = recoding.column
        shown[name] = name if column == name else f"{column} (feature {places[name]})"
    return shown


def _inference(tables: Correspondence, include_target: bool, seed: int, kept: KeptScores | None) -> Any:
    found = attribute_inference(tables, include_target=include_target, seed=seed, kept=kept)
    return found or {NOT_APPLICABLE: _NO_SENSITIVE}


def _containment(tables: Correspondence, manifest: Manifest | None, seed: int) -> Any:
    if tables.is_synthetic or tables.is_in_pieces:
        return {NOT_APPLICABLE: _SYNTHETIC if tables.is_synthetic else _IN_PIECES}
    attack = containment_attack(tables)
    if attack is None:
        return {NOT_APPLICABLE: _NOT_BINARY}
    promised = [entry.get("k") for entry in manifest.guarantees] if manifest is not None else []
    crowds = sorted({*CROWDS, *(k for k in promised if isinstance(k, int) and k > 1)})
    return containment_matching(attack, crowds=crowds, seed=seed)


def _linkage(tables: Correspondence) -> Any:
    """Find the set of 1, 2 and 3 columns by which most people are found, then most expected.

    All sets are tried while sets × rows are up to 20 million (2 million where cells were changed, and the nearest rows
    are sought); else the worst set before is grown by each column that is left, of the 50 that tell most alone.
    """
    if tables.is_synthetic:
        return {NOT_APPLICABLE: _SYNTHETIC}
    names = list(tables.sources)
    if not names:
        return {NOT_APPLICABLE: _NO_COLUMNS}
    worst: list[dict[str, Any]] = []
    n_rows = tables.original.n_rows * (_TIMES_SLOWER if tables.is_flipped else 1)
    single = {name: _linked(tables, (name,)) for name in names}
    likely = sorted(names, key=lambda name: _order(single[name]))[:_MOST_COLUMNS]
    for size in N_BACKGROUND:
        if size > len(names):
            break
        tries_all = size == 1 or comb(len(names), size) * n_rows <= _MOST_SETS_ROWS
        sets: Iterable[Sequence[str]] = combinations(names, size)
        if not tries_all:
            sets = ((*worst[-1]["columns"], name) for name in likely if name not in worst[-1]["columns"])
        found = list(single.values()) if size == 1 else [_linked(tables, tuple(chosen)) for chosen in sets]
        best = min(found, key=_order)
        worst.append(best | {"n_sets_tried": len(found), "tried_all_sets": tries_all})
    shown = _shown_names(tables, names)
    return [entry | {"columns": [shown[name] for name in entry["columns"]]} for entry in worst]


def _order(found: Mapping[str, Any]) -> tuple[int, float]:
    return -found["n_reidentified"], -found["expected"]


def _linked(tables: Correspondence, background: tuple[str, ...]) -> dict[str, Any]:
    names = tuple(name for source in background for name in tables.sources[source])
    per_person, own = candidates_per_person(tables, names)
    confidence = np.where(per_person > 0, 1 / np.maximum(per_person, 1), 0.0)
    if own is not None and (own == ABSENT).any():
        confidence = confidence[own != ABSENT]
    return {
        "n_background": len(background),
        "columns": list(background),
        "n_reidentified": n_found(per_person, own),
        "expected": round(float(confidence.sum()), 9),
    }
