"""``sfumato init``: from a data file to a project file."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import given_roles, read_options, reading_options, role_options


@click.command("init")
@click.argument("data")
@click.option("-o", "--output", default="sfumato.toml", show_default=True, help="Project file to write ('-': stdout).")
@click.option("--force", is_flag=True, help="Replace a project file that exists.")
@role_options
@reading_options
def command(data: str, output: str, force: bool, **settings: Any) -> None:
    """Describe DATA in a project file: a role and a kind for every column, with the reason for each guess.

    \b
    Examples:
      sfumato init admissions.csv
      sfumato init adult.csv --target salary --sensitive occupation --missing "?"
    """
    from sfumato.atomic import check_writable, write_atomically
    from sfumato.errors import InputError, OutputError
    from sfumato.project import project_text
    from sfumato.schema import Role
    from sfumato.table.binary import BinaryTable
    from sfumato.table.describe import describe_columns
    from sfumato.table.read import read_table

    if data == "-":
        problem = "a project names its data by path, and standard input has none"
        raise InputError(problem, path="-", hint="save the data to a file first")
    target = Path(output)
    if output != "-":
        check_writable(target, force=force)
        if target.exists() and Path(data).exists() and target.samefile(data):
            problem = "is the data, which is never written to"
            raise OutputError(problem, path=target, hint="name another project file")
    options, roles = replace(read_options(settings), mixed_as_text=True), given_roles(settings)
    table = read_table(data, options=options)
    guesses = describe_columns(table, overrides=roles)
    default_role = None
    if isinstance(table, BinaryTable):
        default_role = Role.QUASI_IDENTIFIER
        guesses = [guess for guess in guesses if guess.column.name in table.companions.schema]
    if table.source is None:
        raise AssertionError
    relative = os.path.relpath(Path(data).resolve(), target.parent.resolve() if output != "-" else ".")
    text = project_text(guesses, replace(table.source, name=relative), options, default_role=default_role)
    if output == "-":
        click.echo(text, nl=False)
    else:
        write_atomically(target, text.encode(), force=force)
    counted = Counter(guess.column.role for guess in guesses)
    if isinstance(table, BinaryTable):
        counted[Role.QUASI_IDENTIFIER] += len(table.features)
    listed = ", ".join(f"{n:,} {role}" for role, n in counted.items())
    click.echo(f"{table.n_rows:,} rows; {listed}", err=True)
    if output != "-":
        click.echo(f"wrote {target}: check the roles, then run 'sfumato release'", err=True)
