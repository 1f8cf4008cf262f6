"""What the Goal step shows and writes: today's risk, what there is to choose, and the choice in the project file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from sfumato.attack.uniques import minimal_uniques
from sfumato.audit.profile import risk_profile
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.evaluation.points import grid_for
from sfumato.evaluation.promises import kind_meaning, kind_title, other_kinds
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Cells, Mechanism, MechanismInfo
from sfumato.mechanisms.registry import build_mechanism, check_value, find_mechanism, registered_mechanisms
from sfumato.parameters import Parameter
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import DEFAULT_MECHANISM, Project, load_project
from sfumato.publishing.proposals.in_memory import check_escapes
from sfumato.report.guarantee_texts import share_in_words
from sfumato.schema import WITHHELD, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.io.formats import writable_format_of
from sfumato.table.persons import may_repeat
from sfumato.web.goal_guarantees import goal_guarantees, level_names
from sfumato.web.tasks.goal_levels import (
    asked_levels,
    checked_levels,
    is_required,
    levels_by_setting,
    levels_of,
    number_or_text,
)

if TYPE_CHECKING:
    from sfumato.web.jobs.jobs import Tell


# The form of the Goal step: what it offers for a table, and what was typed into it.


SET_ELSEWHERE = frozenset({"hierarchies", "binarize"})
"""Parameters that are set on the Columns step or in the project file, and stay as they are there."""
MOST_TARGETS = 200
"""Columns up to which all that can be the target are listed; beyond it a name is typed."""
_NOT_PROPOSED = SET_ELSEWHERE | {"n_workers"}  # one process is enough only where several points run at once
_USUAL_K = 5
_CELLS = {
    "ranges": "ranges and sets, true of every row",
    "values": "one typical value of a group, in the original's types: ready for any program",
    "draws": "a group's own values, dealt out to its rows anew: NOT k-anonymity",
}
"""Forms of released cells in words; one that has none is called by its name."""


def choices_for(table: AnyTable) -> dict[str, Any]:
    """Everything that the form offers for a table."""
    mechanisms = [_described(info, table) for info in registered_mechanisms().values()]
    name, why = _recommended(table)
    plain = table.coded_part
    return {
        "targets": _possible_targets(table),
        "has_sensitive": bool(plain.schema.names(Role.SENSITIVE)),
        "mechanisms": mechanisms,
        "guarantees": [asdict(guarantee) for guarantee in goal_guarantees()],
        "recommended": {"mechanism": name, "why": why, "is_measured": False},
        "cells": [{"name": form, "words": _CELLS.get(form, form)} for form in get_args(Cells)],
        "kinds": [{"name": kind, "title": kind_title(kind), "meaning": kind_meaning(kind)} for kind in other_kinds()],
    }


def _described(info: MechanismInfo, table: AnyTable) -> dict[str, Any]:
    reason: str | None = None
    proposals: list[dict[str, Any]] = [{}]
    try:
        if info.compared is not None:
            proposals = [dict(settings) for settings in info.compared(table)]
    except SchemaError as exc:
        reason = str(exc)
    levels = levels_of(info, {})
    return {
        "name": info.name,
        "why": info.why,
        "promises": info.promises,
        "definition": info.guarantee,
        "unavailable": reason,
        "proposed": _usual(proposals),
        "levels": levels,
        "levels_by": levels_by_setting(info, proposals, levels),
        "needs_target": _stands_for_one_that_needs_a_target(info, table),
        "parameters": [_field(one, levels) for one in info.parameters if one.name not in SET_ELSEWHERE],
    }


def _stands_for_one_that_needs_a_target(info: MechanismInfo, table: AnyTable) -> bool:
    """Whether the mechanism chooses, for this table, another one that refuses tables without a target."""
    try:
        made_by = find_mechanism(info.build().for_table(table).mechanism_name)
    except SchemaError:
        return False
    return made_by is not None and made_by is not info and made_by.needs_target_for({})


def _usual(proposals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Choose the settings to begin with, of those that a comparison would try."""
    usual = next((settings for settings in proposals if settings.get("k", _USUAL_K) >= _USUAL_K), proposals[0])
    return {name: value for name, value in usual.items() if name not in _NOT_PROPOSED}


def _field(parameter: Parameter, levels: Mapping[str, str]) -> dict[str, Any]:
    types = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    kinds = {int: "whole", float: "number", bool: "truth", str: "text", dict: "entries", tuple: "numbers"}
    return {
        "name": parameter.name,
        "kind": "choice" if parameter.choices else kinds[types[0]],
        "default": parameter.default if isinstance(parameter.default, int | float | str | None) else None,
        "choices": list(parameter.choices),
        "help": parameter.help,
        "is_required": any(is_required(parameter, kind) for kind, name in levels.items() if name == parameter.name),
    }


def _possible_targets(table: AnyTable) -> list[dict[str, Any]] | None:
    """List the columns that can be the target; ``None`` where they are too many for a list."""
    plain = table.coded_part
    found = [
        {"name": column.name, "n_distinct": plain[column.name].n_distinct}
        for column in plain.schema
        if column.role not in WITHHELD and plain[column.name].n_distinct > 1
    ]
    return found if len(found) <= MOST_TARGETS else None


def _recommended(table: AnyTable) -> tuple[str, str]:
    """Recommend the default, for a table that no comparison was made of, and say what it comes to here."""
    plain = table.coded_part
    if isinstance(table, BinaryTable):
        return DEFAULT_MECHANISM, "Keeps those 0/1 columns that separate the classes best."
    if plain.schema.target is None:
        return DEFAULT_MECHANISM, "Without a target: loses as little detail as possible in every column."
    return DEFAULT_MECHANISM, "Groups rows so that the target stays as predictable as possible."


def check(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    mechanism: str,
    levels: Mapping[str, str],
    values: Mapping[str, str],
    target: str,
    purpose: str,
    cells: str = "",
    escaped: str = "",
) -> dict[str, Any]:
    """Read what was typed into the form; nothing is written.

    Parameters
    ----------
    levels : mapping of str to str
        Of guarantees by kind, as typed; blank means that nothing of the kind is asked for.
    values : mapping of str to str
        Other parameters by name, as typed; blank means the default.
    target : str
        Empty for none.
    purpose : {"release", "compare"}
    cells : str
        Form of the released cells; empty for what the mechanism makes.
    escaped : str
        Output whose formulas are to be escaped; empty for none.

    Returns
    -------
    dict
        ``problems`` by field; ``parameters`` to write, or ``asked`` of a comparison, of the fields without one.
    """
    described = load_project(project)
    given, typed = _filled(levels), _filled(values)
    problems = _target_problem(described, target)
    if purpose == "compare":
        asked, wrong = asked_levels(given, has_sensitive=_has_sensitive(described, target))
        return {"parameters": {}, "asked": asked, "problems": problems | wrong}
    info = registered_mechanisms().get(mechanism)
    if info is None:
        return {"parameters": {}, "asked": [], "problems": {"mechanism": "Choose a mechanism."}}
    settings, wrong = _checked_settings(info, typed)
    settings = _set_elsewhere(described, info) | settings
    has_sensitive = _has_sensitive(described, target) or bool(settings.get("sensitive"))
    found, of_levels = checked_levels(info, settings, given, has_sensitive=has_sensitive)
    problems |= wrong | of_levels
    if not target and info.needs_target_for(settings):
        problems["target"] = f"{mechanism} keeps a target predictable with these settings. Choose one."
    merged = settings | found
    if not problems:
        try:
            problems = _file_problems(described, build_mechanism(info.name, merged), cells, escaped)
        except InvalidParameterError as exc:  # of settings that do not go together
            problems = {exc.name: str(exc)}
    return {
        "parameters": {one.name: merged[one.name] for one in info.parameters if one.name in merged},
        "asked": [],
        "problems": problems,
    }


def _file_problems(project: Project, mechanism: Mechanism, cells: str, escaped: str) -> dict[str, str]:
    """Say beside their fields that a mechanism does not make such cells, or a format needs no escapes."""
    problems = {}
    try:
        mechanism.with_cells(cells or None, project.max_copies)
    except InvalidParameterError as exc:
        problems["cells"] = str(exc)
    try:
        if escaped:
            check_escapes((), writable_format_of(escaped))
    except InvalidParameterError as exc:
        problems["escape"] = str(exc)
    return problems


def _filled(texts: Mapping[str, str]) -> dict[str, str]:
    return {name: text.strip() for name, text in texts.items() if text.strip()}


def _target_problem(project: Project, target: str) -> dict[str, str]:
    try:
        _new_roles(project, target)
    except ColumnNotFoundError as exc:
        return {"target": str(exc)}
    return {}


def _has_sensitive(project: Project, target: str) -> bool:
    return any(column.role.is_one_of([Role.SENSITIVE]) and column.name != target for column in project.columns)


def _checked_settings(info: MechanismInfo, typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Read parameters that are no levels: those that are not the default, and the problems by name."""
    found, problems = {}, {}
    elsewhere = SET_ELSEWHERE | level_names()
    for parameter in (one for one in info.parameters if one.name in typed and one.name not in elsewhere):
        value = _typed(parameter, typed[parameter.name])
        try:
            check_value(info, parameter, value)
        except InvalidParameterError as exc:
            problems[parameter.name] = str(exc)
            continue
        if value != parameter.default:
            found[parameter.name] = value
    return found, problems


def _typed(parameter: Parameter, text: str) -> Any:
    """Turn a text into the parameter's type where that is possible; the registry refuses the rest in words."""
    types = parameter.type if isinstance(parameter.type, tuple) else (parameter.type,)
    if dict in types and "=" in text:
        halves = (entry.partition("=") for entry in text.split(","))
        return {name.strip(): number_or_text(value.strip()) for name, _, value in halves}
    if bool in types:
        return {"true": True, "false": False}.get(text.lower(), text)
    return number_or_text(text) if types[0] in (int, float) else text


def _set_elsewhere(project: Project, info: MechanismInfo) -> dict[str, Any]:
    """Parameters in the project file that the form does not show."""
    known = {parameter.name for parameter in info.parameters}
    return {name: value for name, value in project.parameters.items() if name in SET_ELSEWHERE and name in known}


BLAMED = 8
"""Columns to blame that are shown."""
_MOST_COLUMNS_TO_BLAME = 200


def risk_today(folder: Path, tell: Tell, *, project: str) -> dict[str, Any]:
    """Measure the risk of the original table, and say what can be chosen for it.

    The result holds ``profile`` of :func:`sfumato.audit.profile.risk_profile`, ``words``, ``blame`` (columns by which
    people stand out, by score of :func:`sfumato.attack.uniques.minimal_uniques`) and ``choices``.
    """
    tell.progress(0, 3, "reading the table")
    described = load_project(project)
    table = described.read()
    tell.progress(1, 3, "grouping equal rows")
    profile = risk_profile(table)
    tell.progress(2, 3, "looking for columns that make rows unique")
    blame = _blame(table, profile, tell)
    choices = choices_for(table)
    tell.progress(3, 3, "done")
    n_names = len(profile.pop("quasi_identifiers"))
    return {
        "profile": {**profile, "n_quasi_identifiers": n_names},
        "words": list(_in_words(profile, n_names, may_repeat(table))),
        "blame": blame,
        "choices": choices,
    }


def _blame(table: AnyTable, profile: Mapping[str, Any], tell: Tell) -> list[dict[str, Any]]:
    n_columns = len(profile["quasi_identifiers"])
    if not profile["sample_uniques"]["count"] or n_columns > _MOST_COLUMNS_TO_BLAME:
        return []
    found = minimal_uniques(table, progress=lambda done, total, _: tell.progress(done, total, "sets of columns"))
    return [column for column in found.summary()["columns"] if column["n_minimal"]][:BLAMED]


def _in_words(profile: Mapping[str, Any], n_names: int, are_rows: bool) -> Iterator[str]:
    """Say what the figures mean to somebody who has not met them before."""
    if not n_names:
        yield "No column is a quasi-identifier, so nothing is counted here that distinguishes people. Check the roles."
        return
    yield from _persons_in_words(profile) if "persons" in profile else _rows_in_words(profile, n_names, are_rows)
    for name, levels in profile["sensitive"].items():
        if levels["distinct_l"] == 1:
            yield f"In at least one group all rows have the same '{name}': whoever finds the group learns it."
    if profile["containment"] is not None:
        level = profile["containment"]["level"]
        rows = "one row" if level == 1 else f"{level:,} rows"
        yield f"An attacker who knows only 1-values of a person (conditions, items bought) may be left with {rows}."


def _rows_in_words(profile: Mapping[str, Any], n_names: int, are_rows: bool) -> Iterator[str]:
    n_rows, k, uniques = profile["n_rows"], profile["k"], profile["sample_uniques"]
    if uniques["count"]:
        yield (
            f"{uniques['count']:,} of {n_rows:,} rows are unique. An attacker who knows the {n_names:,} "
            "quasi-identifying values of such a person finds exactly one row."
        )
    else:
        whose = "each" if are_rows else "everybody"
        yield f"No row is unique: {whose} shares all quasi-identifying values with at least {k - 1:,} others."
    right, whom = share_in_words(profile["reidentification_risk"]["mean"]), "rows" if are_rows else "people"
    yield f"An attacker who knows these values and guesses among the matching rows is right for {right} of the {whom}."


def _persons_in_words(profile: Mapping[str, Any]) -> Iterator[str]:
    found = profile["persons"]
    n_persons, n_alone = found["n_persons"], found["uniques"]["count"]
    yield f"{n_persons:,} people have {profile['n_rows']:,} rows. People are counted, each by the most exposed row."
    if n_alone:
        yield f"{n_alone:,} of {n_persons:,} people have a row with quasi-identifying values that nobody else has."
    else:
        yield f"Everybody shares the quasi-identifying values of each row with at least {found['k'] - 1:,} others."
    right = share_in_words(profile["reidentification_risk"]["mean"])
    yield f"An attacker who knows these values and names one of the people who fit is right for {right} of the people."


def choose(
    folder: Path,
    tell: Tell,
    *,
    project: str,
    mechanism: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    target: str | None = None,
    cells: str | None = None,
    escape_formulas: bool | None = None,
    output: str | None = None,
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
    cells : str or None
        Form of the released cells; empty for what the mechanism makes.
    escape_formulas : bool or None
        Whether texts that a spreadsheet program would run get an apostrophe.
    output : str or None
        File of the release, whose suffix says the format.

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
        build_mechanism(mechanism, plan).check_parameters()
    changes = ProjectChanges(
        roles=_new_roles(described, target),
        former_target=Role.QUASI_IDENTIFIER,
        mechanism=mechanism,
        parameters=None if mechanism is None else plan,
        cells=cells,
        escape_formulas=escape_formulas,
        output=output,
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
