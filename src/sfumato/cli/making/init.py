"""``sfumato init``: from a data file to a project file."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.tables import (
    check_data_there,
    given_roles,
    person_rows_option,
    read_options,
    reading_options,
    role_options,
)
from sfumato.cli.speaking.on_stderr import quiet_option
from sfumato.errors import on_one_line
from sfumato.schema import PROJECT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sfumato.project.describe import Described
    from sfumato.schema import Column, Role


@click.command("init")
@click.argument("data", required=False)
@click.option("-o", "--output", default=PROJECT_NAME, show_default=True, help="Project file to write ('-': stdout).")
@click.option("--force", is_flag=True, help="Replace a project file that exists.")
@click.option(
    "--update",
    is_flag=True,
    help="Read changed data again; keep the project file's reviewed roles, kinds and comments.",
)
@click.option(
    "--show-rows/--no-rows",
    "show_rows",
    default=None,
    help="Show the first rows as they were read. Default: only on a terminal, so that no cell gets into a log.",
)
@click.option(
    "--from",
    "from_project",
    metavar="PROJECT",
    help="Describe DATA as this project file describes its own data, such as last year's.",
)
@role_options
@reading_options
@person_rows_option
@quiet_option
def command(
    data: str | None,
    output: str,
    force: bool,
    update: bool,
    show_rows: bool | None,
    from_project: str | None,
    **settings: Any,
) -> None:
    """Describe DATA in a project file: a role and a kind for every column, with the reason for each guess.

    On a terminal the first rows are shown as they were read. Dates and numbers are read in the formats of many
    countries; what is a guess is said, and is an entry of the project file.

    With --update: update an existing project file after its data changed. What it says about columns stays, new columns
    are added with guesses, and columns that are gone become comments.

    With --from: the same for another file and a new project file; the former one stays as it is.

    \b
    Examples:
      sfumato init admissions.csv
      sfumato init adult.csv --target salary --sensitive occupation --missing "?"
      sfumato init visits.csv --date-format admitted=MM/DD/YYYY --number-format "price=1.234,56 €"
      sfumato init postgresql://host/db --table visits
      sfumato init --update
      sfumato init 2026.csv --from sfumato.toml -o 2026.toml
    """
    if update or from_project:
        _update(data, output, settings, update=update, like=from_project, force=force)
        return
    if data is None:
        problem = "Missing argument 'DATA'."
        raise click.UsageError(problem)
    check_data_there(data)
    from sfumato.cli.speaking.summary import show_ages, show_readings
    from sfumato.cli.speaking.understood import is_shown, show_first_rows, show_not_understood
    from sfumato.project.describe import describe_data, describe_to_project
    from sfumato.schema import Schema

    options, roles = read_options(settings), given_roles(settings)
    if output == "-":
        described = describe_data(data, Path(), options=options, roles=roles)
        click.echo(described.text, nl=False)
    else:
        described = describe_to_project(data, output, options=options, roles=roles, force=force)
    counted = Counter(guess.column.role for guess in described.guesses)
    if is_shown(show_rows):
        show_first_rows(described)
    _say_rows(described.table.n_rows, counted)
    show_readings(Schema.of(guess.column for guess in described.guesses))
    show_not_understood(described, data, options)
    _say_repeating(described)
    show_ages(described.guesses, "the project file" if output == "-" else output)
    if output != "-":
        named = shlex.join(["sfumato", "release", "--project", output])
        run = " 'sfumato release'" if output == PROJECT_NAME else f": {named}"
        click.echo(f"wrote {Path(output)}: check the roles, then run{run}", err=True)
    _say_lacking((guess.column for guess in described.guesses), output)


def _update(
    data: str | None, output: str, settings: dict[str, Any], *, update: bool, like: str | None, force: bool
) -> None:
    """Bring a project file, or a copy of another one, up to date and say what changed in it."""
    from sfumato.errors import InvalidParameterError
    from sfumato.project.describe import describe_next, update_project
    from sfumato.table.io.read import ReadOptions

    option = "--update" if update else "--from"
    if update and like:
        raise InvalidParameterError("--update and --from", "got both", allowed="given one at a time")
    if output == "-" or data == "-":
        raise InvalidParameterError(f"a project file with {option}", "got '-'", allowed="a file")
    if read_options(settings) != ReadOptions():
        hint = f"change them under [data] in {output}, or leave {option} out"
        raise InvalidParameterError("reading options", "got some", allowed=f"left out with {option}", hint=hint)
    roles = given_roles(settings)
    if like is None:
        updated = update_project(output, data=data, roles=roles)
    else:
        if roles:
            raise InvalidParameterError("role options", "got some", allowed="left out with --from")
        if data is None:
            problem = "Missing argument 'DATA'."
            raise click.UsageError(problem)
        check_data_there(data)
        updated = describe_next(data, output, like=like, force=force)
    listed = updated.project.columns
    _say_rows(updated.n_rows, Counter(column.role for column in listed))
    for guess in updated.new:
        click.echo(on_one_line(f"new: '{guess.column.name}' = {guess.column.role}: {guess.reason}"), err=True)
    for name in updated.gone:
        click.echo(on_one_line(f"no longer in the data: '{name}', now a comment in {output}"), err=True)
    for name, kind in updated.unfit.items():
        words = (
            f"the values of '{name}' are now {kind}, but the project file says otherwise: check its kind in {output}"
        )
        click.echo(on_one_line(words), err=True)
    done = "updated" if update else "wrote"
    click.echo(f"{done} {Path(output)}: all other roles are unchanged", err=True)
    if updated.project.default_role is None:
        _say_lacking(listed, output)


def _say_repeating(described: Described) -> None:
    from sfumato.cli.speaking.summary import show_notes, show_repeating
    from sfumato.schema import Role
    from sfumato.table.persons import notes_of_persons
    from sfumato.table.repeating import counted_identifiers

    facts = ((g.column.name, g.column.role, g.n_distinct, g.n_missing) for g in described.guesses)
    plain = described.table.coded_part
    show_repeating(counted_identifiers(facts, plain.n_rows))
    for name in (g.column.name for g in described.guesses if g.column.role is Role.PERSON):
        show_notes(notes_of_persons(name, plain[name], plain.n_rows))


def _say_rows(n_rows: int, counted: Counter[Role]) -> None:
    click.echo(f"{n_rows:,} rows; {', '.join(f'{n:,} {role}' for role, n in counted.items())}", err=True)


def _say_lacking(columns: Iterable[Column], output: str) -> None:
    """Say what a release will need that no column is."""
    from sfumato.project.describe import roles_lacking
    from sfumato.schema import Role

    where = "the project file" if output == "-" else output
    lacking = roles_lacking(columns)
    if Role.TARGET in lacking:
        needs = "no target column was found, and most mechanisms of 'sfumato release' need one"
        click.echo(f'{needs}: name it with --target COLUMN, or write role = "target" in {where}', err=True)
    if Role.QUASI_IDENTIFIER in lacking:
        needs = "no quasi-identifier was found, and 'sfumato release' needs at least one"
        click.echo(f"{needs}: check the identifiers, or name columns with --quasi-identifiers", err=True)
