"""What is said of a release wherever its rows are: warnings, the ledger, rows that were left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.schema import LEDGER_NAME

if TYPE_CHECKING:
    from sfumato.manifest import AnyTable
    from sfumato.mechanisms.base import Release
    from sfumato.publishing.together import NotRecorded, Recording


def order_warnings(release: Release) -> list[str]:
    """Say what an order of rows that was kept tells."""
    from sfumato.table.row_order import AS_READ

    if release.manifest.output.get("order") != AS_READ:
        return []
    said = "the rows are in the order of the input: whoever has two releases of it can join them by row number"
    return [f"{said}, and may find people whom neither release shows alone"]


def formula_warnings(release: Release, target: Path | None) -> list[str]:
    """Say how many cells of a text file a spreadsheet program would run."""
    from sfumato.table.io.formats import writable_format_of
    from sfumato.table.io.formulas import n_formulas

    if target is None or release.manifest.output.get("escaped_formulas"):
        return []
    n_cells = n_formulas(release.table) if writable_format_of(target).startswith(("csv", "tsv")) else 0
    if not n_cells:
        return []
    are = "1 cell begins" if n_cells == 1 else f"{n_cells:,} cells begin"
    said = f"{are} with =, +, - or @ and would be run as a formula by a spreadsheet program that opens the file"
    return [f"{said}: --escape-formulas puts an apostrophe in front"]


def say_not_used() -> None:
    """Say where there is a ledger that a release of a data file leaves it alone."""
    if Path(LEDGER_NAME).is_dir():
        click.echo("ledger: not used: a data file was named, not the project", err=True)


def said_of(recorded: Recording | NotRecorded) -> Recording | NotRecorded:
    """Say what a check with the ledger found."""
    for line in recorded.lines:
        click.echo(f"ledger: {line}", err=True)
    return recorded


def say_left_out(original: AnyTable) -> None:
    """Say how many rows were left out because each person was to have one."""
    kept = original.coded_part.person_rows
    if kept is not None:
        said = f"kept the {kept.rule} row of each of {original.n_rows:,} persons"
        click.echo(f"note: {said}; {kept.n_dropped:,} further rows were left out", err=True)
