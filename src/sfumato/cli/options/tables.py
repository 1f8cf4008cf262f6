"""Options that several commands share, and how they become a table with roles."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sfumato.cli.speaking.on_stderr import LogLines

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.manifest import AnyTable
    from sfumato.progress import Progress
    from sfumato.schema import Role
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.roles import ColumnGuess

Function = TypeVar("Function", bound=Callable[..., Any])

TABLE_FILE_HELP = "File to write (.csv, .tsv, .parquet, .xlsx, .jsonl, .sav, .zsav, .dta, .xpt, .svm; .gz for text)."

_READING = (
    click.option(
        "--format",
        "format_",
        help="csv, tsv, parquet, excel, arff, libsvm, jsonl, sav, por, dta, sas7bdat, xpt, sqlite or duckdb. "
        "Default: from the name.",
    ),
    click.option("--delimiter", help="Column delimiter of a text file. Default: detected."),
    click.option(
        "--encoding",
        help="Encoding of the texts. Default: UTF-8, or what the file says.",
    ),
    click.option("--no-header", is_flag=True, help="The first line is data; columns are named c1, c2, …"),
    click.option("--sheet", help="Sheet of an Excel file; required if several sheets hold data."),
    click.option(
        "--skip-rows",
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Skip the first N lines of a text file, or rows of a sheet (a title above the header).",
    ),
    click.option("--table", "table_name", metavar="NAME", help="Table of a database; required if it has several."),
    click.option("--query", metavar="SQL", help="SELECT statement of a database, instead of --table."),
    click.option(
        "--missing",
        multiple=True,
        help="Text that means 'missing'; repeat for several. Default: empty, ?, NA, n/a, k.A., s/d, …",
    ),
    click.option(
        "--date-format",
        "date_formats",
        multiple=True,
        metavar="COLUMN=FORMAT",
        help="Format of a column's dates: DD/MM/YYYY, MM/DD/YYYY, 'DD.MM.YY from 1925', excel, …; text: no dates.",
    ),
    click.option(
        "--number-format",
        "number_formats",
        multiple=True,
        metavar="COLUMN=FORMAT",
        help="How 1234.56 is written in a column: 1.234,56 or 1234,56 or '1,234.56 kg'; text: no numbers.",
    ),
    click.option(
        "--drop-incomplete", is_flag=True, help="Drop rows with missing values. Default: missing is a value of its own."
    ),
)

_ROLES = (
    click.option("--target", help="Column that recipients predict."),
    click.option("--quasi-identifiers", multiple=True, metavar="A,B,…", help="Columns an attacker may know."),
    click.option("--sensitive", multiple=True, metavar="A,B,…", help="Columns an attacker wants to learn."),
    click.option("--identifiers", multiple=True, metavar="A,B,…", help="Columns that name a person; never released."),
    click.option(
        "--person", help="Column that says which rows are about one person; never released. Persons are then counted."
    ),
    click.option("--weight", help="Column of survey weights; never released. Their sum estimates the population."),
    click.option(
        "--other", multiple=True, metavar="A,B,…", help="Columns published unchanged; no guarantee covers them."
    ),
)


confirm_option = click.option(
    "--confirm",
    multiple=True,
    metavar="A,B,…",
    help="Columns to release although their values look as if they named people: they name nobody.",
)
"""For columns that are withheld until somebody has decided."""


def reading_options(function: Function) -> Function:
    """Add the options that say how to read a file."""
    for option in reversed(_READING):
        function = option(function)
    return function


def person_rows_option(function: Function) -> Function:
    """Add the option that keeps one row of each person, to commands whose rows are released or compared."""
    return click.option(
        "--one-row-per-person",
        type=click.Choice(["first", "last", "random"]),
        help="Keep one row of each person, whom the column with the role person tells apart.",
    )(function)


def role_options(function: Function) -> Function:
    """Add the options that give columns their roles."""
    for option in reversed(_ROLES):
        function = option(function)
    return function


def check_data_there(path: str) -> None:
    """Refuse a data file that is not there before libraries are loaded, which takes seconds.

    Raises
    ------
    InputError
        If nothing is there, or it is an address of what cannot be read, or one with credentials.
    """
    from sfumato.table.io.bytes import require_something_at
    from sfumato.table.io.databases.address import database_of, is_address
    from sfumato.table.io.foreign import refuse_address

    if is_address(path):
        database_of(path)
        return
    refuse_address(path)
    require_something_at(path)


def check_release_there(released: str, manifest_path: Path) -> None:
    """Refuse a release whose manifest or table is not there before libraries are loaded.

    Raises
    ------
    ManifestError, InputError
        If there is none.
    """
    from sfumato.publishing.manifest_file import manifest_text
    from sfumato.table.io.bytes import require_something_at

    manifest_text(manifest_path)
    require_something_at(released)


def read_options(settings: dict[str, Any]) -> ReadOptions:
    """Take the reading options out of a command's settings."""
    from sfumato.schema import DEFAULT_MISSING_TOKENS
    from sfumato.table.io.read import ReadOptions

    return ReadOptions(
        format=settings.pop("format_"),
        delimiter=settings.pop("delimiter"),
        encoding=settings.pop("encoding"),
        header=not settings.pop("no_header"),
        sheet=settings.pop("sheet"),
        skip_rows=settings.pop("skip_rows"),
        table=settings.pop("table_name", None),
        query=settings.pop("query", None),
        missing=tuple(settings.pop("missing")) or DEFAULT_MISSING_TOKENS,
        complete_rows_only=settings.pop("drop_incomplete"),
        one_row_per_person=settings.pop("one_row_per_person", None),
        formats=_formats(settings.pop("date_formats", ()), settings.pop("number_formats", ())),
    )


def _formats(dates: Iterable[str], numbers: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Read the formats of columns."""
    if not dates and not numbers:
        return ()
    from sfumato.errors import InvalidParameterError
    from sfumato.schema import Kind
    from sfumato.table.reading.columns import format_named

    found: dict[str, str] = {}
    given = ((("--date-format", Kind.DATE), dates), (("--number-format", Kind.NUMERIC), numbers))
    for (option, kind), texts in given:
        for text in texts:
            name, equals, written = (part.strip() for part in text.rpartition("="))
            if not equals or not name or name in found:
                problem = f"got two for '{name}'" if name in found else "got a text without a column"
                raise InvalidParameterError(option, problem, allowed="COLUMN=FORMAT, once for a column")
            format_named(written, kind)
            found[name] = written
    return tuple(found.items())


ROLE_SETTINGS = ("target", "person", "weight", "quasi_identifiers", "sensitive", "identifiers", "other")


def given_roles(settings: dict[str, Any]) -> dict[str, Role]:
    """Take the role options out of a command's settings, as column → role."""
    from sfumato.errors import InvalidParameterError
    from sfumato.schema import Role, combined

    target, person, weight = settings.pop("target"), settings.pop("person", None), settings.pop("weight", None)
    lists = {
        Role.TARGET: (target,) if target else (),
        Role.PERSON: (person,) if person else (),
        Role.WEIGHT: (weight,) if weight else (),
        Role.QUASI_IDENTIFIER: settings.pop("quasi_identifiers"),
        Role.SENSITIVE: settings.pop("sensitive"),
        Role.IDENTIFIER: settings.pop("identifiers"),
        Role.OTHER: settings.pop("other"),
    }
    roles: dict[str, Role] = {}
    for role, texts in lists.items():
        names = (
            texts
            if role in (Role.TARGET, Role.PERSON, Role.WEIGHT)
            else [name for text in texts for name in _listed(text)]
        )
        for name in (name.strip() for name in names):
            both = combined(roles.get(name, role), role)
            if both is None:
                hint = "only quasi-identifier and sensitive may be combined"
                raise InvalidParameterError(f"the role of '{name}'", "got two", allowed="given once", hint=hint)
            roles[name] = both
    return roles


def confirmed_columns(settings: dict[str, Any]) -> list[str]:
    """Take the columns that are confirmed out of a command's settings."""
    return [name.strip() for text in settings.pop("confirm") for name in _listed(text)]


def _listed(text: str) -> list[str]:
    """Split names at commas; a name that holds one is put in double quotes."""
    return next(csv.reader([text], skipinitialspace=True), [])


def apply_roles(
    table: AnyTable, roles: dict[str, Role], *, quasi_identifiers_as_given: bool = False
) -> tuple[AnyTable, list[ColumnGuess]]:
    """Give the named columns their roles and the others the guessed ones; returns the guesses made."""
    from sfumato.table.roles import with_guessed_roles

    result, guesses = with_guessed_roles(table, roles, quasi_identifiers_as_given=quasi_identifiers_as_given)
    return result, [guess for guess in guesses if not guess.is_given]


def with_given_roles(table: AnyTable, roles: dict[str, Role]) -> AnyTable:
    """Give the named columns their roles and all others the role other, which no check speaks of."""
    from sfumato.schema import Role
    from sfumato.table.roles import redescribed

    plain = table.coded_part
    for name in roles:
        plain.schema[name]
    if not roles:
        return table
    return redescribed(table, [replace(c, role=roles.get(c.name, Role.OTHER)) for c in plain.schema])


def accepted_exceptions(names: str | None) -> tuple[str, ...]:
    """Read the exceptions that ``--accept`` names."""
    from sfumato.audit.checks import EXCEPTIONS
    from sfumato.errors import InvalidParameterError

    given = tuple(name.strip() for name in names.split(",")) if names else ()
    for name in given:
        if name not in EXCEPTIONS:
            raise InvalidParameterError("--accept", f"got '{name}'", allowed=f"some of {', '.join(EXCEPTIONS)}")
    return given


def progress_bar(what: str) -> tuple[Any, Progress]:
    """Return a context manager that shows a bar on a terminal's stderr, and the callback that moves it.

    Where stderr is no terminal, such as in a log, there is a line now and then instead.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        return nullcontext(), LogLines()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what)

    def move(done: int, total: int, doing: str) -> None:
        bar.update(task, completed=done, total=total, description=doing)

    return bar, move


def needs_cryptography() -> None:
    """Refuse to sign or to check a signature without the package that does so."""
    from importlib.util import find_spec

    from sfumato.errors import InvalidParameterError

    if find_spec("cryptography") is None:
        hint, allowed = "pip install 'sfumato[collaborate]'", "one with the extra 'collaborate'"
        raise InvalidParameterError("the installation", "but it lacks cryptography", allowed=allowed, hint=hint)
