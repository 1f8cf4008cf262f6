"""``sfumato init``: from a data file to a project file."""

from __future__ import annotations

from collections import Counter
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
    from sfumato.describing_project import describe_data, describe_to_project

    options, roles = read_options(settings), given_roles(settings)
    if output == "-":
        described = describe_data(data, Path(), options=options, roles=roles)
        click.echo(described.text, nl=False)
    else:
        described = describe_to_project(data, output, options=options, roles=roles, force=force)
    counted = Counter(guess.column.role for guess in described.guesses)
    listed = ", ".join(f"{n:,} {role}" for role, n in counted.items())
    click.echo(f"{described.table.n_rows:,} rows; {listed}", err=True)
    if output != "-":
        click.echo(f"wrote {Path(output)}: check the roles, then run 'sfumato release'", err=True)
