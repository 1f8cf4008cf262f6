"""What the Goal step shows and writes: today's risk, what there is to choose, and the choice in the project file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.attack.uniques import minimal_uniques
from sfumato.audit.profile import risk_profile
from sfumato.errors import ColumnNotFoundError
from sfumato.evaluation.asked import AskedGuarantee
from sfumato.evaluation.grid import grid_for
from sfumato.manifest import AnyTable
from sfumato.mechanisms import build_mechanism
from sfumato.project import Project, load_project
from sfumato.project_edit import ProjectChanges, edit_project
from sfumato.report.words import share_in_words
from sfumato.schema import Role
from sfumato.web.tasks.goal_form import choices_for

if TYPE_CHECKING:
    from sfumato.web.jobs import Tell

BLAMED = 8
"""Columns to blame that are shown."""
_MOST_COLUMNS_TO_BLAME = 200


def risk_today(folder: Path, tell: Tell, *, project: str) -> dict[str, Any]:
    """Measure the risk of the table as it is, and say what can be chosen for it.

    The result holds ``profile`` of :func:`sfumato.audit.profile.risk_profile`, ``words``, ``blame`` (columns by which
    people stand out, by score of :func:`sfumato.attack.uniques.minimal_uniques`) and ``choices``.
    """
    tell.progress(0, 3, "reading the table")
    described = load_project(project)
    table = described.read()
    tell.progress(1, 3, "grouping equal rows")
    profile = risk_profile(table)
    tell.progress(2, 3, "looking for columns by which people stand out")
    blame = _blame(table, profile, tell)
    choices = choices_for(table)
    tell.progress(3, 3, "done")
    n_names = len(profile.pop("quasi_identifiers"))
    return {
        "profile": {**profile, "n_quasi_identifiers": n_names},
        "words": list(_in_words(profile, n_names)),
        "blame": blame,
        "choices": choices,
    }


def _blame(table: AnyTable, profile: Mapping[str, Any], tell: Tell) -> list[dict[str, Any]]:
    n_columns = len(profile["quasi_identifiers"])
    if not profile["sample_uniques"]["count"] or n_columns > _MOST_COLUMNS_TO_BLAME:
        return []
    found = minimal_uniques(table, progress=lambda done, total, _: tell.progress(done, total, "sets of columns"))
    return [column for column in found.summary()["columns"] if column["n_minimal"]][:BLAMED]


def _in_words(profile: Mapping[str, Any], n_names: int) -> Iterator[str]:
    """Say what the figures mean to somebody who has not met them before."""
    n_rows, k, uniques = profile["n_rows"], profile["k"], profile["sample_uniques"]
    if not n_names:
        yield "No column is a quasi-identifier, so nobody can be told apart by what is counted here. Check the roles."
        return
    if uniques["count"]:
        yield (
            f"{uniques['count']:,} of {n_rows:,} rows are unique. Somebody who knows the {n_names:,} quasi-identifying "
            "values of such a person finds exactly one row."
        )
    else:
        yield f"No row is unique: everybody shares all quasi-identifying values with at least {k - 1:,} others."
    right = share_in_words(profile["reidentification_risk"]["mean"])
    yield f"Somebody who knows these values of all and guesses among the rows that fit is right for {right} of them."
    for name, levels in profile["sensitive"].items():
        if levels["distinct_l"] == 1:
            yield f"In at least one group all rows have the same '{name}': who finds the group learns it."
    if profile["containment"] is not None:
        level = profile["containment"]["level"]
        rows = "one row" if level == 1 else f"{level:,} rows"
        yield f"Somebody who knows only the ones of a person (conditions had, items bought) may be left with {rows}."


def choose(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    mechanism: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    target: str | None = None,
) -> dict[str, Any]:
    """Write a choice into the project file.

    Parameters
    ----------
    mechanism : str or None
        ``None`` leaves what the file says.
    parameters : mapping or None
        All parameters of the mechanism.
    target : str or None
        New target; empty for none. The former one becomes a quasi-identifier, which is the safe choice.

    Raises
    ------
    InvalidParameterError
        If the mechanism does not take the parameters.
    ColumnNotFoundError
        If no column has the target's name.
    """
    described = load_project(project)
    plan = dict(parameters or {})
    if described.binarize and plan.get("binarize") == described.binarize:
        del plan["binarize"]
    if mechanism is not None:
        build_mechanism(mechanism, plan)
    changes = ProjectChanges(
        roles=_new_roles(described, target),
        former_target=Role.QUASI_IDENTIFIER,
        mechanism=mechanism,
        parameters=None if mechanism is None else plan,
    )
    edit_project(project, changes)
    return {"project": project}


def _new_roles(project: Project, target: str | None) -> dict[str, Role]:
    if not target:
        former = [] if target is None else [column.name for column in project.columns if column.role is Role.TARGET]
        return dict.fromkeys(former, Role.QUASI_IDENTIFIER)
    listed = [column.name for column in project.columns]
    if target not in listed:
        raise ColumnNotFoundError(target, listed, where="the project file")
    return {target: Role.TARGET}


def grid(folder: Path, tell: Tell, *, project: str, asked: Sequence[str] = ()) -> dict[str, Any]:
    """List the points that a comparison would try, and the mechanisms it would leave out, with the reason."""
    described = load_project(project)
    guarantees = [AskedGuarantee.parse(text) for text in asked]
    found = grid_for(described.read(), described.compare.get("grid"), binarize=described.binarize, asked=guarantees)
    return {"points": [point.label for point in found.points], "left_out": dict(found.left_out)}
