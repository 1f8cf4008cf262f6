"""``sfumato ledger``: what a project has released, and whose rows are where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.tables import read_options, reading_options
from sfumato.schema import PROJECT_NAME

if TYPE_CHECKING:
    from sfumato.publishing.ledger import Ledger

_project = click.option("--project", default=PROJECT_NAME, show_default=True, help="Project file that it is next to.")


@click.group("ledger")
def command() -> None:
    """Look at a project's ledger, add an earlier release, or forget one.

    The ledger (.sfumato-ledger, next to the project file) keeps every release of a project whose table has a person
    column: the file, its manifest, and keyed hashes of the persons in each class. It is personal data: only you can
    read it, git ignores it, and it belongs into your backup together with the project's key.

    \b
    Examples:
      sfumato ledger list
      sfumato ledger add release-2024.csv --manifest release-2024.csv.manifest.json --original 2024.csv --person id
      sfumato ledger forget 3
    """


def _there(project: str) -> Ledger:
    from sfumato.errors import InputError
    from sfumato.publishing.ledger import Ledger

    if not Path(project).is_file():
        problem = "there is no such project file"
        raise InputError(problem, path=project, hint="a ledger is next to a project file", remedy=("init",))
    return Ledger.of_project(project)


@command.command("list")
@_project
def list_entries(project: str) -> None:
    """List the releases in the ledger: name, mechanism, rows and persons.

    \b
    Examples:
      sfumato ledger list
      sfumato ledger list --project hospital/sfumato.toml
    """
    ledger = _there(project)
    entries = ledger.entries()
    if not entries:
        click.echo("the ledger is empty", err=True)
    for entry in entries:
        whose = "persons unknown" if entry.rows is None else f"{entry.rows.n_persons:,} persons"
        rows = "" if entry.rows is None else f", {len(entry.rows.classes):,} rows"
        click.echo(f"{entry.number:>4}  {entry.output_name}  ({entry.mechanism}{rows}, {whose})")


@command.command("forget")
@click.argument("number", type=int)
@_project
def forget(number: int, project: str) -> None:
    """Remove entry NUMBER: only for a release that nobody was ever given.

    Later releases are then no longer checked together with it.

    \b
    Examples:
      sfumato ledger forget 3
    """
    _there(project).forget(number)
    click.echo(f"forgot entry {number}: later releases are not checked together with it", err=True)


@command.command("add")
@click.argument("table")
@click.option("--manifest", "manifest_path", required=True, help="Manifest of the release.")
@click.option("--original", required=True, help="Table that the release was made of.")
@click.option("--person", required=True, help="Column of the original that tells persons apart.")
@_project
@reading_options
def add(table: str, manifest_path: str, original: str, person: str, project: str, **settings: Any) -> None:
    """Add an earlier release (TABLE) to the ledger, by its original.

    For releases made before there was a ledger, elsewhere, or without a person column. The reading options describe the
    original.

    \b
    Examples:
      sfumato ledger add release-2024.csv --manifest release-2024.csv.manifest.json --original 2024.csv --person id
    """
    from sfumato.audit.claims import read_claims
    from sfumato.audit.together.appearances import Promised, named_rows
    from sfumato.errors import InvalidParameterError
    from sfumato.publishing.audit_together import as_claimed
    from sfumato.publishing.reaudit import audit_published, read_manifest, read_original, read_released

    ledger = _there(project)
    manifest, entries = read_manifest(Path(manifest_path))
    source = read_original(original, read_options(settings), manifest)
    audit_published(table, manifest_path, original=source).raise_if_failed()
    claims = read_claims(entries)
    if not Promised.of(claims).has_classes:
        problem = f"{manifest.mechanism['name']} promises no classes of persons"
        raise InvalidParameterError("the release", problem, allowed="k-anonymous, to be judged together with others")
    seen = as_claimed(source, claims, person)
    if seen is None:
        problem = "has dates that were shifted by a secret, which is not given here"
        raise InvalidParameterError("the release", problem, allowed="one whose rows can be found in its original")
    rows = ledger.named(named_rows(read_released(table, manifest), seen, claims, person))
    with ledger.recorded(Path(table), manifest, rows, person) as number:
        pass
    said = "is in the ledger already" if number is None else f"is entry {number} of the ledger"
    click.echo(f"{table} {said}: {rows.n_persons:,} persons", err=True)
