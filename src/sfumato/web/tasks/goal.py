"""What the Goal step shows and writes: today's risk, what there is to choose, and the choice in the project file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.attack.uniques import minimal_uniques
from sfumato.audit.profile import risk_profile
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.evaluation.points import grid_for
from sfumato.evaluation.promises import kind_meaning, kind_title, other_kinds
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import MechanismInfo, Parameter
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import DEFAULT_MECHANISM, Project, load_project
from sfumato.report.guarantee_texts import share_in_words
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.web.goal_guarantees import goal_guarantees, level_names

if TYPE_CHECKING:
    from sfumato.web.jobs.jobs import Tell


# The form of the Goal step: what it offers for a table, and what was typed into it.


SET_ELSEWHERE = frozenset({"hierarchies", "binarize"})
"""Parameters that are set on the Columns step or in the project file, and stay as they are there."""
MOST_TARGETS = 200
"""Columns up to which all that can be the target are listed; beyond it a name is typed."""
_NOT_PROPOSED = SET_ELSEWHERE | {"n_workers"}  # one process is enough only where several points run at once
_USUAL_K = 5


def choices_for(table: AnyTable) -> dict[str, Any]:
    """Everything that the form offers for a table."""
    mechanisms = [_described(info, table) for info in registered_mechanisms().values()]
    name, why = _recommended(table)
    takers = _takers()
    return {
        "targets": _possible_targets(table),
        "is_binary": isinstance(table, BinaryTable),
        "mechanisms": mechanisms,
        "guarantees": [{**asdict(guarantee), "taken_by": takers[guarantee.name]} for guarantee in goal_guarantees()],
        "recommended": {"mechanism": name, "why": why, "is_measured": False},
        "kinds": [{"name": kind, "title": kind_title(kind), "meaning": kind_meaning(kind)} for kind in other_kinds()],
    }


def _described(info: MechanismInfo, table: AnyTable) -> dict[str, Any]:
    names = {parameter.name for parameter in info.parameters}
    reason: str | None = None
    proposals: list[dict[str, Any]] = [{}]
    try:
        if info.compared is not None:
            proposals = [dict(settings) for settings in info.compared(table)]
    except SchemaError as exc:
        reason = str(exc)
    return {
        "name": info.name,
        "why": info.why,
        "promises": info.promises,
        "definition": info.guarantee,
        "unavailable": reason,
        "proposed": _usual(proposals),
        "guarantees": [guarantee.name for guarantee in goal_guarantees() if guarantee.name in names],
        "parameters": [_field(parameter) for parameter in info.parameters if parameter.name not in SET_ELSEWHERE],
    }


def _usual(proposals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Choose the settings to begin with, of those that a comparison would try."""
    usual = next((settings for settings in proposals if settings.get("k", _USUAL_K) >= _USUAL_K), proposals[0])
    return {name: value for name, value in usual.items() if name not in _NOT_PROPOSED}


def _field(parameter: Parameter) -> dict[str, Any]:
    types = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    kinds = {int: "whole", float: "number", bool: "truth", str: "text", dict: "entries"}
    return {
        "name": parameter.name,
        "kind": "choice" if parameter.choices else kinds[types[0]],
        "default": parameter.default if isinstance(parameter.default, int | float | str | None) else None,
        "choices": list(parameter.choices),
        "help": parameter.help,
    }


def _possible_targets(table: AnyTable) -> list[dict[str, Any]] | None:
    """List the columns that can be the target; ``None`` where they are too many for a list."""
    plain = table.companions if isinstance(table, BinaryTable) else table
    found = [
        {"name": column.name, "n_distinct": plain[column.name].n_distinct}
        for column in plain.schema
        if column.role is not Role.IDENTIFIER and plain[column.name].n_distinct > 1
    ]
    return found if len(found) <= MOST_TARGETS else None


def _recommended(table: AnyTable) -> tuple[str, str]:
    """Recommend the default, for a table that no comparison was made of, and say what it comes to here."""
    plain = table.companions if isinstance(table, BinaryTable) else table
    if isinstance(table, BinaryTable):
        return DEFAULT_MECHANISM, "Of many 0/1 columns, those that separate the classes best are kept."
    if plain.schema.target is None:
        return DEFAULT_MECHANISM, "Without a target, as little detail as possible is lost in every column."
    return DEFAULT_MECHANISM, "Rows are put into groups in the way that keeps the target most predictable."


def check(
    folder: Path, tell: Tell, *, project: str, mechanism: str, values: Mapping[str, str], purpose: str
) -> dict[str, Any]:
    """Read what was typed into the form.

    Parameters
    ----------
    values : mapping of str to str
        Guarantees and parameters by name, as typed; blank means the default.
    purpose : {"release", "compare"}

    Returns
    -------
    dict
        ``problems`` by field; ``parameters`` to write and ``asked`` for a comparison, of the fields without one.
    """
    given = {name: text.strip() for name, text in values.items() if text.strip()}
    infos = registered_mechanisms()
    if purpose == "compare":
        asked = _asked(given)
        return {"parameters": {}, "asked": asked["asked"], "problems": _not_asked(given) | asked["problems"]}
    if mechanism not in infos:
        return {"parameters": {}, "asked": [], "problems": {"mechanism": "Choose a mechanism."}}
    known = {parameter.name: parameter for parameter in infos[mechanism].parameters}
    problems, parameters = _not_promised(mechanism, given), _set_elsewhere(project, known)
    for name in (name for name in known if name in given and name not in SET_ELSEWHERE):
        value = _typed(known[name], given[name])
        try:
            build_mechanism(mechanism, {name: value})
        except InvalidParameterError as exc:
            problems[name] = str(exc)
            continue
        if name in level_names() or value != known[name].default:
            parameters[name] = value
    promised = _asked({name: text for name, text in given.items() if name in known and name not in problems})
    return {"parameters": parameters, "asked": promised["asked"], "problems": promised["problems"] | problems}


def _not_promised(mechanism: str, given: Mapping[str, str]) -> dict[str, str]:
    """Refuse levels that a mechanism has no parameter for, so that none is left out unsaid."""
    takers = _takers()
    return {
        name: f"{mechanism} does not promise this. Leave it empty, or choose one of {', '.join(names)}."
        for name, names in takers.items()
        if name in given and mechanism not in names
    }


def _takers() -> dict[str, list[str]]:
    """Mechanisms that take each level."""
    return {
        guarantee.name: [
            name
            for name, info in registered_mechanisms().items()
            if guarantee.name in {parameter.name for parameter in info.parameters}
        ]
        for guarantee in goal_guarantees()
    }


def _not_asked(given: Mapping[str, str]) -> dict[str, str]:
    unknown = [guarantee.name for guarantee in goal_guarantees() if guarantee.asked is None and guarantee.name in given]
    return dict.fromkeys(unknown, "A comparison cannot ask for this. Leave it empty, or make a release.")


def _asked(given: Mapping[str, str]) -> dict[str, Any]:
    """Levels among typed values as a comparison is asked for them."""
    problems, asked = {}, []
    for guarantee in goal_guarantees():
        if guarantee.name not in given or guarantee.asked is None:
            continue
        try:
            AskedGuarantee(guarantee.asked, float(given[guarantee.name]))
        except InvalidParameterError as exc:
            problems[guarantee.name] = str(exc)
        except ValueError:
            problems[guarantee.name] = f"{guarantee.symbol} must be a number."
        else:
            asked.append(f"{guarantee.asked}={given[guarantee.name]}")
    return {"asked": asked, "problems": problems}


def _typed(parameter: Parameter, text: str) -> Any:
    """Turn a text into the parameter's type where that is possible; the registry refuses the rest in words."""
    types = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    if dict in types and "=" in text:
        halves = (entry.partition("=") for entry in text.split(","))
        return {name.strip(): _number_or_text(value.strip()) for name, _, value in halves}
    if bool in types:
        return {"true": True, "false": False}.get(text.lower(), text)
    return _number_or_text(text) if types[0] in (int, float) else text


def _number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _set_elsewhere(project: str, known: Mapping[str, Parameter]) -> dict[str, Any]:
    """Parameters in the project file that the form does not show."""
    written = load_project(Path(project).absolute()).parameters
    return {name: value for name, value in written.items() if name in SET_ELSEWHERE and name in known}


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


def grid(
    folder: Path, tell: Tell, *, project: str, asked: Sequence[str] = (), also: Sequence[str] = ()
) -> dict[str, Any]:
    """List the points that a comparison would try, and the mechanisms it would leave out, with the reason."""
    described = load_project(project)
    guarantees = [AskedGuarantee.parse(text) for text in asked]
    found = grid_for(
        described.read(),
        described.compare.get("grid"),
        binarize=described.binarize,
        asked=guarantees,
        also=also or described.compare.get("also", ()),
    )
    return {"points": [point.label for point in found.points], "left_out": dict(found.left_out)}
