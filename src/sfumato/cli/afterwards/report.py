"""``sfumato report``: a release as one HTML file to read, print and file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.tables import (
    apply_roles,
    check_data_there,
    check_release_there,
    given_roles,
    progress_bar,
    read_options,
    reading_options,
    role_options,
    with_given_roles,
)
from sfumato.cli.speaking.on_stderr import quiet_option

if TYPE_CHECKING:
    from sfumato.audit.reading.columns import Declared
    from sfumato.manifest import AnyTable, Manifest
    from sfumato.report.reproduction import Asked
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions


@click.command("report")
@click.argument("released")
@click.option("--manifest", "manifest_path", help="Manifest of the release. Default: the one next to RELEASED.")
@click.option("--original", help="Original table, to measure utility and risk against.")
@click.option("--project", help="Project file of the original, instead of --original.")
@click.option("--population-table", metavar="FILE", help="Population that k-map or δ-presence is promised about.")
@click.option("-o", "--output", required=True, help="HTML file to write.")
@click.option("--external", is_flag=True, help="Write the version for recipients: less detail, no file paths.")
@click.option("--quick", is_flag=True, help="Train no classifiers; the report then says that utility was not measured.")
@click.option("--force", is_flag=True, help="Replace a report that exists.")
@role_options
@reading_options
@quiet_option
def command(released: str, manifest_path: str | None, output: str, **settings: Any) -> None:
    """Write what was asked, done, promised and found about a RELEASED table into one HTML file.

    The release is audited first; if the audit refuses it, there is no report (exit code 5). The report begins with what
    the audit could not check. With the original, classifiers are trained before and after, and both tables are
    attacked. Mechanisms are fitted in every fold, which may take a while: --quick skips it. Roles of released columns
    come from the manifest; those of other columns from the options or a guess. The audit compares the roles that are
    given, or those of a project.

    \b
    Examples:
      sfumato report release.csv --project sfumato.toml -o report.html
      sfumato report release.csv --original admissions.csv --identifiers name -o report.html
      sfumato report release.csv --project sfumato.toml -o for-recipients.html --external
    """
    from sfumato.atomic import check_writable
    from sfumato.publishing.manifest_file import manifest_path_for

    external, quick, force = settings["external"], settings["quick"], settings["force"]
    check_writable(Path(output), force=force)
    where = Path(manifest_path) if manifest_path else manifest_path_for(Path(released))
    check_release_there(released, where)
    if settings["original"] and not settings["project"]:
        check_data_there(settings["original"])
    from sfumato.audit.claims import read_claims
    from sfumato.cli.speaking.summary import show_persons, show_verdict
    from sfumato.mechanisms.base import Release
    from sfumato.publishing.reaudit import (
        audit_published,
        beside_original,
        key_of_release,
        read_manifest,
        read_original,
        read_released,
    )
    from sfumato.report.render import write_report

    options, roles = read_options(settings), given_roles(settings)
    manifest, entries = read_manifest(where)
    read_claims(entries)  # refuses a manifest that is not as this program writes it
    found = _original(manifest, settings["original"], settings["project"], options, roles)
    if found.described is not None and not manifest.is_differentially_private:  # then no line may tell about rows
        show_persons(found.described)
    table = read_released(released, manifest)
    beside = beside_original(table, found.described, manifest) if found.described is not None else None
    release = Release(beside or table, manifest)
    key = key_of_release(where, project=settings["project"])
    register = settings["population_table"]
    population = None if register is None else read_original(register, options.of_files())
    audit = audit_published(
        released, where, original=found.audited, key=key, population=population, check_roles=found.declared
    )
    audit.raise_if_failed()
    bar, progress = progress_bar("report")
    with bar:
        write_report(
            release,
            output,
            original=found.described,
            audit=audit,
            asked=found.asked,
            external=external,
            quick=quick,
            force=force,
            progress=progress,
        )
    show_verdict(audit)
    click.echo(f"wrote {output}", err=True)


@dataclass(frozen=True)
class _Original:
    """An original as the audit reads it, and as it was described for the release."""

    audited: AnyTable | None
    described: AnyTable | None
    asked: Asked
    declared: Declared


def _original(
    manifest: Manifest, original: str | None, project: str | None, options: ReadOptions, roles: dict[str, Role]
) -> _Original:
    from sfumato.cli.speaking.summary import show_notes
    from sfumato.errors import InvalidParameterError
    from sfumato.publishing.reaudit import as_prepared, read_original
    from sfumato.report.reproduction import Asked
    from sfumato.table.io.read import ReadOptions

    if original and project:
        raise InvalidParameterError("--original and --project", "got both", allowed="given one at a time")
    if not original and (roles or options != ReadOptions()):
        raise InvalidParameterError("role and reading options", "got some", allowed="used with --original only")
    if project:
        return _of_project(project, manifest)
    if original is None:
        return _Original(None, None, Asked(), declared=False)
    table = read_original(original, options, manifest)
    described, guesses = apply_roles(table, _shared(_released_roles(manifest), table) | roles)
    described, notes = as_prepared(described, manifest)
    show_notes(notes)
    asked = Asked(reading=_as_options(options), n_guessed=len(guesses), is_as_read=True)
    return _Original(with_given_roles(table, roles), described, asked, roles.keys())


def _of_project(path: str, manifest: Manifest) -> _Original:
    from sfumato.publishing.from_project import read_project_of
    from sfumato.report.reproduction import Asked

    project, table = read_project_of(path, manifest)
    return _Original(table, table, Asked(path, project.settings), declared=True)


def _released_roles(manifest: Manifest) -> dict[str, Role]:
    """Roles of the released columns, and of the columns that they were made of."""
    from sfumato.schema import Role

    stated = {str(column["name"]): Role(column["role"]) for column in manifest.output["columns"]}
    made_of = {
        str(entry["column"]): stated[str(entry["name"])]
        for entry in manifest.recodings
        if "column" in entry and str(entry.get("name")) in stated
    }
    return stated | made_of


def _shared(roles: Mapping[str, Role], table: AnyTable) -> dict[str, Role]:
    """Take the roles of columns that a table has; features of a sparse table need none."""
    plain = table.coded_part
    return {name: role for name, role in roles.items() if name in plain.schema}


def _as_options(options: ReadOptions) -> tuple[str, ...]:
    """Write reading options as they were given; what means missing is in the manifest."""
    from sfumato.table.reading.dates import date_format

    given = {
        "--format": options.format,
        "--delimiter": options.delimiter,
        "--encoding": options.encoding,
        "--sheet": options.sheet,
        "--table": options.table,
        "--query": None if options.query is None else "QUERY",  # which may hold values
        "--skip-rows": str(options.skip_rows) if options.skip_rows else None,
    }
    flags = [part for flag, value in given.items() if value is not None for part in (flag, value)]
    for name, text in options.formats:
        flags += ["--date-format" if date_format(text) else "--number-format", f"{name}={text}"]
    return (*flags, *(() if options.header else ("--no-header",)))
