"""``sfumato apply``: new rows in the form of a release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.named import hierarchy_files, hierarchy_option
from sfumato.cli.options.tables import TABLE_FILE_HELP, check_data_there, progress_bar, read_options, reading_options
from sfumato.cli.speaking.on_stderr import quiet_option

if TYPE_CHECKING:
    from sfumato.manifest import Manifest
    from sfumato.publishing.new_rows import UnknownRule
    from sfumato.table.coding import Table
    from sfumato.table.io.read import ReadOptions


@click.command("apply")
@click.argument("manifest")
@click.argument("new")
@click.option("-o", "--output", required=True, help=TABLE_FILE_HELP)
@click.option("--original", metavar="FILE", help="Original of the release, which is made again to find the recoding.")
@click.option("--project", metavar="FILE", help="Project file of the original, instead of --original.")
@click.option(
    "--release",
    metavar="FILE",
    help="Released file: match new rows with its cells. For recipients, who have no original.",
)
@hierarchy_option("With --original: hierarchy file of a column that the release was made with; repeat for several.")
@click.option(
    "--unknown",
    type=click.Choice(["refuse", "generalize"]),
    default="refuse",
    show_default=True,
    help="Values that the recoding does not know: refuse them, or write '*' in their cells.",
)
@click.option("--force", is_flag=True, help="Replace an output file that exists.")
@reading_options
@quiet_option
def command(manifest: str, new: str, output: str, unknown: UnknownRule, force: bool, **settings: Any) -> None:
    """Bring NEW rows (a test set, next year's file) into the form of the release that MANIFEST describes, row by row.

    Columns and their order are those of the release, rows stay in their order, identifiers are dropped; the target may
    be missing. No guarantee holds for the new rows, and no manifest is written for them.

    Of a release that selects columns or binary features the manifest says all. How rows were grouped and how far values
    were coarsened is in no manifest: give the original, or its project file. The release is made again and must be the
    same to the byte; nothing secret is kept for this. New rows are then recoded exactly as an evaluation treats test
    rows.

    Without the original give the released file: each row gets the cells of the released class that holds its values, of
    several the narrowest. A row that no class holds is unknown, and there are more of them than with the original.

    A value is unknown if it is a category that the original did not have (or that its hierarchy does not list), or a
    number outside its range. An error names the columns and rows, never the values.

    Reading options are about NEW, and about --original; --query and --table are about those of them that are
    databases, and a note says which. What means missing is in the manifest.

    \b
    Examples:
      sfumato apply release.csv.manifest.json test.csv --project sfumato.toml -o test-released.csv
      sfumato apply release.csv.manifest.json 2026.csv --original 2025.csv --unknown generalize -o 2026-form.csv
      sfumato apply selected.csv.manifest.json test.csv -o test-selected.csv
      sfumato apply release.csv.manifest.json mine.csv --release release.csv --unknown generalize -o mine-form.csv
    """
    from sfumato.errors import InvalidParameterError

    original, project, release = settings.pop("original"), settings.pop("project"), settings.pop("release")
    if sum(path is not None for path in (original, project, release)) > 1:
        raise InvalidParameterError("--original, --project and --release", "got several", allowed="given one at a time")
    for path in (new, original, release):
        if path is not None:
            check_data_there(path)
    from sfumato.cli.speaking.summary import show_warnings
    from sfumato.publishing.new_rows import (
        NO_GUARANTEE,
        by_rules,
        check_can_be_applied,
        check_output,
        needs_recoding,
        write_rows,
    )
    from sfumato.publishing.reaudit import read_manifest, stated_formats
    from sfumato.table.io.read import ReadOptions

    options, target = read_options(settings), Path(output)
    if options.missing != ReadOptions().missing or options.complete_rows_only:
        hint = "what means missing is in the manifest, and no row is left out"
        raise InvalidParameterError("--missing and --drop-incomplete", "got some", allowed="left out", hint=hint)
    check_output(target, [path for path in (manifest, new, original, project, release) if path], force=force)
    papers, entries = read_manifest(Path(manifest))
    check_can_be_applied(papers, entries)
    options = replace(options, formats=tuple((stated_formats(papers) | dict(options.formats)).items()))
    of_original = options
    if options.query is not None or options.table is not None:
        options, of_original = _of_databases(options, new, original)
    if release is not None:
        applied = _by_release(papers, new, release, options, unknown)
    elif needs_recoding(papers):
        applied = _by_original(papers, new, original, project, (options, of_original), unknown, settings["hierarchies"])
    else:
        applied = by_rules(papers, _described(papers, new, options))
    write_rows(applied, target, force=force)
    click.echo(f"wrote {target}: {applied.n_rows:,} rows in the form of the release", err=True)
    show_warnings([NO_GUARANTEE])


def _of_databases(options: ReadOptions, new: str, original: str | None) -> tuple[ReadOptions, ReadOptions]:
    """Give the reading options of new rows and of the original: a query is for those of them that are databases.

    Says which, where both are given. If none is a database, reading refuses the query.
    """
    if original is None:
        return options, options
    of_new, of_original = options.of_source(new), options.of_source(original)
    are_databases = [own.query is not None or own.table is not None for own in (of_new, of_original)]
    if not any(are_databases):
        return options, options
    what = "--query" if options.query is not None else "--table"
    if all(are_databases):
        click.echo(f"note: {what} is used for NEW and for --original, which are both databases", err=True)
    else:
        used, other = ("NEW", "--original") if are_databases[0] else ("--original", "NEW")
        click.echo(f"note: {what} is used for {used} only: {other} is a file without tables", err=True)
    return of_new, of_original


def _by_release(manifest: Manifest, new: str, release: str, options: ReadOptions, unknown: UnknownRule) -> Table:
    """Match new rows with the cells of a released file."""
    from sfumato.evaluation.matching import by_released_cells
    from sfumato.publishing.reaudit import read_released

    return by_released_cells(read_released(release, manifest), manifest, _described(manifest, new, options), unknown)


def _described(manifest: Manifest, new: str, options: ReadOptions) -> Table:
    """Read new rows as the manifest describes columns."""
    from sfumato.publishing.new_rows import columns_of, read_described

    asked = manifest.preparations
    return read_described(new, options, columns_of(manifest), manifest.missing_tokens, asked)


def _by_original(
    manifest: Manifest,
    new: str,
    original: str | None,
    project: str | None,
    both_options: tuple[ReadOptions, ReadOptions],
    unknown: UnknownRule,
    hierarchies: tuple[str, ...],
) -> Table:
    from sfumato.cli.speaking.summary import show_warnings
    from sfumato.errors import InvalidParameterError
    from sfumato.project.keys import key_of_manifest
    from sfumato.publishing.from_project import read_project_of
    from sfumato.publishing.new_rows import by_recoding, read_described, read_original_of, recoding_of, shows_more
    from sfumato.report.reproduction import mechanism_of

    options, of_original = both_options
    declared: dict[str, Any] = {}
    if project is not None:
        described, table = read_project_of(project, manifest)
        declared, key = described.settings, key_of_manifest(Path(project).parent, manifest.to_dict())
    elif original is not None:
        table, key = read_original_of(original, of_original, manifest), None
        declared = {"hierarchies": hierarchy_files(hierarchies)} if hierarchies else {}
    else:
        name = manifest.mechanism["name"]
        problem = f"got a manifest of {name}, which does not hold how rows were grouped or values coarsened"
        hint = "give the original of the release, its project file, or the released file"
        raise InvalidParameterError(
            "--original, --project or --release", problem, allowed="given", hint=hint, remedy=("original",)
        )
    mechanism = mechanism_of(manifest, declared, table)
    if isinstance(mechanism, str):
        raise InvalidParameterError("the manifest", f"but {mechanism}", allowed="one whose release can be made again")
    bar, progress = progress_bar(f"making the release again ({manifest.mechanism['name']})")
    with bar:
        recoding, released = recoding_of(table, mechanism, manifest, key, progress=progress)
    schema = table.coded_part.schema
    asked = manifest.preparations
    rows = read_described(new, options, {c.name: c for c in schema}, schema.missing, asked)
    applied = by_recoding(recoding, schema, rows, unknown)
    show_warnings([said for said in [shows_more(applied, released, recoding)] if said])
    return applied
