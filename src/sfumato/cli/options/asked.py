"""What a release is asked for: by flags, or by a project file in which flags win."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.named import halves, hierarchy_files
from sfumato.cli.options.preparing import number_or_text, refuse_preparations_beside_project
from sfumato.cli.options.tables import confirmed_columns, given_roles, read_options

if TYPE_CHECKING:
    from sfumato.project.file import Project
    from sfumato.table.coding import Source

HIERARCHIES = "hierarchies"


def checked_output(output: Path | None, source: Source | None, *, force: bool) -> Path:
    """Refuse an output that is not named or cannot be written."""
    from sfumato.errors import InvalidParameterError
    from sfumato.publishing.manifest_file import manifest_path_for
    from sfumato.publishing.publish import check_targets

    if output is None:
        hint = "a file name such as -o release.csv; or try --dry-run"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint)
    check_targets(output, manifest_path_for(output), source, force=force)
    return output


def project_with_flags(path: Path, settings: dict[str, Any]) -> Project:
    """Read a project file; mechanism, parameters and output that are given as flags win.

    Parameters in the file are about the mechanism that the file names. Where a flag names another one, those that it
    does not take are left out, which is said.
    """
    from sfumato.errors import InvalidParameterError
    from sfumato.mechanisms.registry import foreign_parameters
    from sfumato.project.file import DEFAULT_MECHANISM, load_project
    from sfumato.publishing.from_project import mechanism_of_project
    from sfumato.table.io.read import ReadOptions

    if given_roles(settings) or confirmed_columns(settings) or read_options(settings) != ReadOptions():
        hint = "edit the project file, or name the data file as the argument"
        raise InvalidParameterError("role and reading options", "got some", allowed="used with DATA only", hint=hint)
    refuse_preparations_beside_project(settings)
    written = load_project(path)
    name, declared = mechanism_of_project(replace(written, mechanism=settings["mechanism"] or written.mechanism))
    foreign = foreign_parameters(name, written.mechanism or DEFAULT_MECHANISM, declared)
    if foreign:
        own = written.mechanism or DEFAULT_MECHANISM
        said = f"{written.path.name} sets {', '.join(foreign)} for {own}; not used, {name} does not take it"
        click.echo(f"note: {said}", err=True)
        declared = {key: value for key, value in declared.items() if key not in foreign}
    output = Path(settings["output"]) if settings["output"] else written.output
    if settings.get("next_file") is not None:
        described, written = written.options, written.for_data(settings["next_file"])
        for what in ("query", "table"):
            if getattr(described, what) is not None and getattr(written.options, what) is None:
                said = f"the {what} in {written.path.name} is not used: the new file has no tables"
                click.echo(f"note: {said}", err=True)
        output = Path(settings["output"]) if settings["output"] else None
    parameters = merged_parameters(name, declared, settings)  # the plan for binary features is among them
    keep_order = written.keep_order or settings.get("keep_order", False)  # which the number of the release depends on
    escapes = written.escape_formulas or settings.get("escape_formulas", False)
    return replace(
        written,
        mechanism=name,
        parameters=parameters,
        binarize=None,
        output=output,
        keep_order=keep_order,
        escape_formulas=escapes,
        cells=settings.get("cells") or written.cells,
        max_copies=settings.get("max_copies") if settings.get("max_copies") is not None else written.max_copies,
    )


def merged_parameters(name: str, written: Mapping[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Merge the project's parameters of a mechanism with flags; flags win."""
    parameters = dict(written)
    if settings["binarize"]:
        parameters["binarize"] = {"recipe": settings["binarize"]}
    for text in settings["params"]:
        may_be_empty = "." not in text.partition("=")[0]
        _set_parameter(parameters, *halves(text, "--param", "NAME=VALUE", may_be_empty=may_be_empty))
    for column, file in hierarchy_files(settings["hierarchies"]).items():
        _set_parameter(parameters, f"{HIERARCHIES}.{column}", file)
    if settings["k"] is not None:
        parameters["k"] = settings["k"]
    if settings["no_l"]:
        _check_of_auto("--no-l", name)
        parameters["l"] = 1
    if settings["attacker_knows"]:
        _check_of_auto("--attacker-knows", name)
        parameters["attacker_knows"] = settings["attacker_knows"]
    return parameters


def _check_of_auto(option: str, mechanism: str) -> None:
    from sfumato.errors import InvalidParameterError
    from sfumato.project.file import DEFAULT_MECHANISM

    if mechanism != DEFAULT_MECHANISM:
        hint = "leave it out, or name no mechanism"
        raise InvalidParameterError(option, f"got it with {mechanism}", allowed="used with auto only", hint=hint)


def _set_parameter(parameters: dict[str, Any], name: str, value: str) -> None:
    """Set a parameter, or one entry of a parameter that is a table; other entries stay."""
    from sfumato.errors import InvalidParameterError

    table, dot, entry = name.partition(".")
    if not dot:
        parameters[name] = value
        return
    if not table or not entry:
        raise InvalidParameterError("--param", "got a name that begins or ends with '.'", allowed="NAME.ENTRY=VALUE")
    others = parameters.get(table)
    entries = dict(others) if isinstance(others, Mapping) else {}
    parameters[table] = entries | {entry: value if table == HIERARCHIES else number_or_text(value)}
