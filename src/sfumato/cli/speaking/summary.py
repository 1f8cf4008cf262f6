"""What people read after a command: a release, an audit, a risk profile, in a few plain lines."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.audit.checks import (
    DECLARE,
    GIVE_BOTH,
    GIVE_KEY,
    GIVE_ORIGINAL,
    GIVE_POPULATION,
    IN_MEMORY,
    PUBLISHERS_WORD,
)
from sfumato.audit.reading.identifiers import NAME as IDENTIFIERS
from sfumato.cli.speaking.on_stderr import warn
from sfumato.errors import CONFIRMED_EXCEPT, AuditFailedError, on_one_line
from sfumato.report.guarantee_texts import guarantee_in_words
from sfumato.report.in_short import lines_of
from sfumato.report.not_covered import not_promised
from sfumato.schema import Role

if TYPE_CHECKING:
    from sfumato.audit.verify import AuditReport
    from sfumato.manifest import AnyTable
    from sfumato.mechanisms.base import Mechanism, Release
    from sfumato.report.unique_rows import Remedy
    from sfumato.schema import Column, Schema
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.repeating import IdentifierCounts
    from sfumato.table.roles import ColumnGuess

GUESSES_SHOWN = 40
ROWS_SHOWN = 6
CELL_WIDTH = 32


def show_guesses(guesses: Sequence[ColumnGuess]) -> None:
    """Say which roles were guessed and why, or only how many when there are many.

    Which target was taken is said always, and which columns are withheld, with how to keep them.
    """
    if len(guesses) > GUESSES_SHOWN:
        click.echo(f"guessed the roles of {len(guesses):,} columns; 'sfumato init' writes them down", err=True)
    else:
        for guess in guesses:
            click.echo(on_one_line(f"guessed '{guess.column.name}' = {guess.column.role}: {guess.reason}"), err=True)
    for guess in guesses:
        if guess.column.role is Role.TARGET:
            why = guess.reason.removesuffix(f" → {Role.TARGET}")
            said = f"took '{guess.column.name}' as the target ({why}); if it is not, name another with --target"
            show_notes([said])
        if guess.is_withheld:
            name = guess.column.name
            why = guess.reason.removesuffix(f" → {Role.IDENTIFIER}")
            typed = shlex.quote(f'"{name}"' if "," in name else name)
            show_notes([f"withheld '{name}': {why}. If it names nobody, release it with --confirm {typed}"])


@contextmanager
def showing_new_key(folder: Path) -> Iterator[None]:
    """Say that a project got its key, if it did."""
    from sfumato.project.keys import KEY_NAME

    path = folder / KEY_NAME
    had_one = path.exists()
    yield
    if not had_one and path.exists():
        said = f"made {path}, the secret of this project: keep a copy, and give it to nobody"
        click.echo(f"note: {said}. 'sfumato audit-key' makes a key of one release, for its auditor", err=True)


def show_repeating(identifiers: Iterable[IdentifierCounts]) -> None:
    """Say of identifiers that repeat that rows are counted, not people."""
    from sfumato.table.repeating import repeating_identifiers

    for one in repeating_identifiers(identifiers):
        click.echo(on_one_line(f"note: {one.in_words()}: --person {shlex.quote(one.name)}"), err=True)


def show_persons(table: AnyTable, guesses: Sequence[ColumnGuess] = ()) -> None:
    """Say what is known or has to be asked about who is in a table; not about withheld texts that many rows share."""
    from sfumato.table.persons import identifiers_of, person_notes

    withheld = {guess.column.name for guess in guesses if guess.is_withheld}
    show_repeating(one for one in identifiers_of(table) if not (one.name in withheld and one.is_shared_by_many))
    show_notes(person_notes(table))


def show_notes(notes: Iterable[str]) -> None:
    """Print what should be known, a line each."""
    for note in notes:
        click.echo(on_one_line(f"note: {note}"), err=True)


def show_ready_hierarchies(mechanism: Mechanism) -> None:
    """Say of columns that nobody gave a hierarchy that a standard's was taken, and how to give another."""
    from sfumato.mechanisms.lattice.recoder import HierarchyRecoder

    if not isinstance(mechanism, HierarchyRecoder):
        return
    from sfumato.mechanisms.hierarchies.ready import READY

    for name, standard in mechanism.ready_columns().items():
        words = f"'{name}' is coarsened by the ready hierarchy of {READY[standard]}"
        show_notes([f"{words}; change it with --hierarchy '{name}=FILE'"])


def show_ages(guesses: Iterable[ColumnGuess], where: str | None = None) -> None:
    """Say which dates of birth are released as ages, and how to have it otherwise: in a project file, or by options."""
    for guess in guesses:
        if not guess.prepare:
            continue
        name, day = guess.column.name, guess.prepare["age_at"]
        listed = shlex.quote(f'"{name}"' if "," in name else name)
        other_day = shlex.quote(f"{name}=age_at:DAY")
        remedy = f"--prepare {other_day} takes another day, --identifiers {listed} leaves it out"
        if where is not None:
            remedy = f'change prepare in {where}, or write role = "identifier" there without prepare'
        show_notes([f"'{name}' holds dates of birth and is released as the age on {day}: {remedy}"])


def show_readings(schema: Schema) -> None:
    """Say of columns which part of their reading is a guess that no value decides, and how to settle it."""
    from sfumato.table.reading.columns import doubts_of

    for name, words in doubts_of(schema):
        click.echo(on_one_line(f"note: {words}; please confirm, or say it: {_option_for(schema[name])}"), err=True)


def _option_for(column: Column) -> str:
    from sfumato.table.reading.columns import format_key

    option = f"--{format_key(column).replace('_', '-')}"
    return f"{option} '{column.name}=FORMAT', or {format_key(column)} in the project file"


def show_stated_formats(options: ReadOptions, manifest_path: Path) -> None:
    """Say which columns of an original are read as the manifest says, and not as anybody would guess."""
    from sfumato.publishing.reaudit import stated_formats

    own = dict(options.formats)
    for name, text in stated_formats(manifest_path).items():
        if name not in own:
            click.echo(on_one_line(f"note: column '{name}' is read as {text}, as the manifest says"), err=True)


def show_lines(headed: Mapping[str, str]) -> None:
    """Print the five lines."""
    for line in lines_of(headed):
        click.echo(line, err=True)


def show_warnings(warnings: Sequence[str]) -> None:
    """Print in red what should make one stop."""
    for sentence in warnings:
        warn(f"WARNING: {sentence}", fg="red")


def warn_of_identifiers(report: AuditReport) -> None:
    """Print in red, before everything else, that the audit saw what looks like people's names or numbers."""
    show_warnings(
        [f"{one.message[0].upper()}{one.message[1:]}." for one in report.unchecked if one.name == IDENTIFIERS]
    )


def show_remedy(command: Sequence[str], remedy: Remedy, *, first: str = "") -> None:
    """Say by which command few rows are unique, and what it costs; ``first`` is to be done before."""
    warn(on_one_line(f"To remove this warning, {first}run: {shlex.join(command)}"))
    warn(on_one_line(f"  ({remedy.cost_in_words()})"))


def show_release(release: Release) -> None:
    """Say what was promised and found, the utility kept and the risk left."""
    manifest = release.manifest
    for entry in manifest.guarantees:
        click.echo(_promise(entry), err=True)
    for heading, values in manifest.evidence.items():
        click.echo(f"{heading}:", err=True)
        for name, value in values.items():
            for line in _evidence_lines(name.replace("_", " "), value):
                click.echo(line, err=True)
    if manifest.missing.get("n_dropped"):
        click.echo(f"rows dropped because of missing values: {manifest.missing['n_dropped']:,}", err=True)
    for line in not_promised(release):
        click.echo(line, err=True)


def _evidence_lines(label: str, value: Any) -> Iterator[str]:
    """Show a value on a line, and a list of records as a table of its first rows."""
    if not (isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value)):
        yield f"  {label:<46} {_number(value)}"
        return
    yield f"  {label} ({len(value):,})"
    heads = [str(name).replace("_", " ") for name in value[0]]
    rows = [[_number(cell) for cell in item.values()] for item in value[:ROWS_SHOWN]]
    widths = [min(max(map(len, column)), CELL_WIDTH) for column in zip(heads, *rows, strict=False)]
    for row in (heads, *rows):
        cells = (_shortened(cell, width).ljust(width) for cell, width in zip(row, widths, strict=False))
        yield on_one_line(("    " + "  ".join(cells)).rstrip())
    if len(value) > ROWS_SHOWN:
        yield f"    … {len(value) - ROWS_SHOWN:,} more in the manifest"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _promise(entry: Mapping[str, Any]) -> str:
    statement = guarantee_in_words(entry)["statement"]
    if entry["audited"] is None:
        return f"promised by construction of the mechanism; no audit can confirm it: {statement}"
    return f"promised and audited: {statement} (found: {_number(entry['audited'])})"


_FLAGS = {
    GIVE_ORIGINAL: "give --original or --project",
    DECLARE: "give --project or the role of every column",
    GIVE_KEY: "give --key, or --project with its key",
    GIVE_BOTH: "give --original and --key, or --project with its key",
    GIVE_POPULATION: "give --population-table",
    IN_MEMORY: "audit it in memory, without --memory and --engine",
}
"""Remedies of the audit as options of the command line."""


def show_checks(report: AuditReport) -> None:
    """List every check and every exception; the last line says the end."""
    for check in report.checks:
        click.echo(on_one_line(f"{'ok  ' if check.passed else 'FAIL'} {check.message}"))
    for line in _exceptions(report):
        click.echo(line)
    click.echo(f"not judged, the publisher's word: {PUBLISHERS_WORD}")
    click.echo(last_line(report))


def show_verdict(report: AuditReport) -> None:
    """Say after a release what its audit ended in, and what it could not check."""
    for line in _exceptions(report):
        click.echo(line, err=True)
    click.echo(f"audit: {last_line(report)}", err=True)


def last_line(report: AuditReport) -> str:
    """Say the end of an audit in one line, with the options that make more checks possible."""
    shown = [replace(one, remedy=_FLAGS.get(one.remedy, one.remedy)) for one in report.unchecked]
    return on_one_line(replace(report, unchecked=tuple(shown)).last_line)


def _exceptions(report: AuditReport) -> Iterator[str]:
    for one in report.unchecked:
        accepted = ", accepted" if one.name in report.accepted else ""
        yield on_one_line(f"{one.heading} ({one.name}{accepted}): {one.message}")


def end_audit(report: AuditReport, as_json: bool, beside: Mapping[str, Any] | None = None) -> None:
    """Print an audit and leave with its exit code: 0 confirmed, 8 confirmed except, 5 refused.

    ``beside`` are figures by name that are no part of the audit, printed before it.
    """
    if not as_json:
        show_profile(beside or {})
    if as_json:
        click.echo(json.dumps({**report.to_dict(), **(beside or {}), "last_line": last_line(report)}, indent=2))
        click.echo(last_line(report), err=True)
    else:
        show_checks(report)
    if not report.is_accepted:
        click.get_current_context().exit(CONFIRMED_EXCEPT if report.passed else AuditFailedError.exit_code)


def show_profile(profile: Mapping[str, Any], indent: int = 0) -> None:
    """Print a profile as an indented list of names and numbers."""
    for name, value in profile.items():
        label = " " * indent + str(name).replace("_", " ")
        if isinstance(value, Mapping):
            click.echo(label)
            show_profile(value, indent + 2)
        else:
            click.echo(f"{label:<48} {_number(value)}")


def _number(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_number(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) for item in value):
            return "; ".join(_number(item) for item in value)
        return ", ".join(str(item) for item in value)
    return str(value)
