"""What the Explore step shows: a comparison of mechanisms as ``sfumato compare`` makes it, ranked by any weights."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.atomic import write_atomically
from sfumato.errors import InvalidParameterError
from sfumato.evaluation.compare import compare as compare_mechanisms
from sfumato.evaluation.compare import table_fingerprint
from sfumato.evaluation.comparison import Comparison, RankedPoint
from sfumato.evaluation.points import Measuring, Point, grid_for, quick_classifiers
from sfumato.evaluation.promises import kind_meaning
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.figures import COMPARED
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights
from sfumato.progress import Progress
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import DEFAULT_MECHANISM, load_project
from sfumato.schema import COMPARISON_NAME
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.web.inputs import DATA, DESCRIPTION, HIERARCHY, noted
from sfumato.web.project_files import run_folder_of

if TYPE_CHECKING:
    from sfumato.web.jobs.jobs import Tell

STORED_NAME = "comparison.json"
"""File in the job's folder with everything that another ranking needs."""


def compare(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    asked: Sequence[str] = (),
    also: Sequence[str] = (),
    mechanisms: Sequence[str] | None = None,
    fresh: bool = False,
) -> dict[str, Any]:
    """Compare mechanisms on the table of a project, with the run folder and the settings of ``sfumato compare``.

    Parameters
    ----------
    asked : sequence of str
        What a recommended release must promise, such as ``k=5``.
    also : sequence of str
        Kinds of promises to try beside those; empty for what the project file says.
    mechanisms : sequence of str or None
        Only these; ``None`` for all.
    fresh : bool
        Measure all points again, whatever the run folder holds.

    Returns
    -------
    dict
        :meth:`sfumato.evaluation.comparison.Comparison.to_dict`, and ``frontier``, ``rows``, ``why`` and ``inputs``
        (what it was made from, to notice changes).
    """
    inputs = noted(project, DESCRIPTION, DATA, HIERARCHY)
    described = load_project(project)
    run_folder = run_folder_of(described.path)
    with contextlib.suppress(OSError):
        (run_folder / COMPARISON_NAME).unlink()  # an earlier one, of another table perhaps, is not shown as this one's
    guarantees = [AskedGuarantee.parse(text) for text in asked]
    tell.log("Reading the table.")
    table = described.read(PreparationKeys.of_comparison())
    grid = grid_for(
        table,
        described.compare.get("grid"),
        mechanisms=mechanisms or (),
        binarize=described.binarize,
        asked=guarantees,
        also=also or described.compare.get("also", ()),
    )
    tell.log(f"{len(grid.points):,} releases to compare; finished ones are taken from the run folder.")
    found = compare_mechanisms(
        table,
        grid,
        measuring=Measuring(tuple(described.compare.get("classifiers") or quick_classifiers(table))),
        weights=described.compare.get("weights", EvaluationWeights()),
        asked=guarantees,
        run_folder=run_folder,
        fresh=fresh,
        progress=_with_log(tell),
    )
    write_atomically(folder / STORED_NAME, json.dumps(found.to_kept(), allow_nan=False).encode())
    told = {"frontier": found.frontier(), "rows": found.rows(), "why": found.why()}
    return {**found.to_dict(), **told, "inputs": inputs}


def rank(
    folder: Path,
    tell: Tell,
    *,
    made_in: str,
    project: str,
    weights: Sequence[float] | None = None,
    asked: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Rank a stored comparison by other weights; nothing is measured again.

    Parameters
    ----------
    made_in : str
        Folder of the job that compared, or run folder of a comparison that is not finished or was made earlier.
    project : str
        Path of the project file, for what it says of the release now.
    weights : sequence of 3 float or None
        Of utility, privacy and size; ``None`` for those of the comparison.
    asked : sequence of str or None
        What a recommended release must promise; ``None`` for what the comparison was asked.

    Returns
    -------
    dict
        ``releases`` (best E(S) first), ``groups`` of their keys by what they promise, ``not_measured``, ``left_out``,
        ``frontier``, ``figures`` (which all have), ``why``, ``notes``, ``weights``, ``utility_name``, ``counted``
        (what risks are shares of, people or rows), ``original``, ``recommended`` and ``candidate`` (keys of releases,
        or ``None``) and ``planned`` (the project's release in a line).
    """
    kept = json.loads(_stored(Path(made_in)).read_bytes())
    described = load_project(project)
    given = {"weights": weights, "asked": asked}
    found = Comparison.from_kept(kept | {name: value for name, value in given.items() if value is not None})
    planned = Point(described.mechanism or DEFAULT_MECHANISM, described.settings)
    return {
        **_explored(found),
        "candidate": _key_of_same(planned, found, described.binarize),
        "planned": planned.label,
    }


def keep_weights(folder: Path, tell: Tell, *, project: str, weights: Sequence[float]) -> dict[str, Any]:
    """Write weights into the project file, so that ``sfumato compare`` ranks by them as well."""
    edited = edit_project(Path(project), ProjectChanges(weights=list(weights)))
    return {"weights": list(edited.compare["weights"])}


def _with_log(tell: Tell) -> Progress:
    """Pass progress on, and write every finished point into the log."""

    def told(done: int, total: int, what: str) -> None:
        tell.progress(done, total, what)
        tell.log(f"{done:,} of {total:,}: {what}")

    return told


def find(folder: Path, tell: Tell, *, project: str) -> dict[str, Any]:
    """Tell whether the run folder holds a comparison of the project's table as it is now.

    Returns
    -------
    dict
        ``is_found`` and ``inputs`` (what the table was made from, to notice changes).
    """
    inputs = noted(project, DESCRIPTION, DATA, HIERARCHY)
    described = load_project(project)
    try:
        kept = json.loads((run_folder_of(described.path) / COMPARISON_NAME).read_bytes())
        Comparison.from_kept(kept)
        is_found = kept["table"] == table_fingerprint(described.read(PreparationKeys.of_comparison()))
    except (OSError, ValueError, KeyError, TypeError, InvalidParameterError):
        is_found = False  # none, or not one of ours
    return {"is_found": is_found, "inputs": inputs}


def _stored(folder: Path) -> Path:
    own = folder / STORED_NAME
    return own if own.exists() else folder / COMPARISON_NAME


def _explored(found: Comparison) -> dict[str, Any]:
    rows = list(zip(found.by_rank, found.rows(), strict=False))  # the last row is the original's
    releases = [_release(one, row) for one, row in rows if one.is_done]
    return {
        "releases": releases,
        "groups": [
            {
                "title": group.title,
                "meaning": kind_meaning(group.kind),
                "keys": [one["key"] for one in releases if one["group"] == group.title],
            }
            for group in found.groups
        ],
        "kind": found.kind,
        "n_not_run": len(found.not_run),
        "not_measured": [
            _named(one) | {name: row[name] for name in ("status", "reason")} for one, row in rows if not one.is_done
        ],
        "left_out": dict(found.left_out),
        "frontier": [
            {**point, "key": _key(one.point)} for one, point in zip(found.points, found.frontier(), strict=True)
        ],
        "recommended": None if found.recommended is None else _key(found.recommended.point),
        "why": found.why(),
        "notes": found.notes(),
        "weights": list(found.weights),
        "utility_name": found.utility_name,
        "counted": found.counted,
        "figures": [
            {"name": figure.name, "heading": figure.heading, "words": figure.words, "unit": str(figure.unit)}
            for figure in COMPARED
        ],
        "original": {
            "utility": found.original_utility,
            "utility_low": found.ranked_original.low,
            "utility_high": found.ranked_original.high,
            "risk": found.original_risk,
            **found.ranked_original.figures,
            "reason": found.original["reason"],
        },
    }


def _release(one: RankedPoint, row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, **_named(one), "parameters": dict(one.point.parameters)}


def _named(one: RankedPoint) -> dict[str, Any]:
    point = one.point
    return {"key": _key(point), "label": point.label, "mechanism": point.mechanism, "settings": point.settings}


def _key(point: Point) -> str:
    """Name of a point that is the same in every comparison, and different for points with the same label."""
    return f"{point.mechanism}-{hashlib.sha256(_as_text(point.parameters)).hexdigest()[:12]}"


def _key_of_same(planned: Point, found: Comparison, plan: Mapping[str, Any] | None) -> str | None:
    """Key of the point that has the mechanism and the parameters of the project; the plan for features is its own."""
    for one in found.points:
        if one.point.mechanism == planned.mechanism and _is_same(one.point.parameters, planned.parameters, plan):
            return _key(one.point)
    return None


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any], plan: Mapping[str, Any] | None) -> bool:
    texts = [
        _as_text({name: value for name, value in parameters.items() if name != "binarize" or value != plan})
        for parameters in (one, other)
    ]
    return texts[0] == texts[1]


def _as_text(parameters: Mapping[str, Any]) -> bytes:
    """Parameters as the project file can say them: without those that are ``None``."""
    said = {name: value for name, value in parameters.items() if value is not None}
    return json.dumps(said, sort_keys=True, default=str).encode()
