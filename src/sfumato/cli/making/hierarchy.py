"""``sfumato hierarchy``: look at, build and check generalization hierarchies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.tables import read_options, reading_options

if TYPE_CHECKING:
    from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
    from sfumato.table.coding import Table
    from sfumato.table.io.read import ReadOptions

_METHODS = ("auto", "width", "quantile", "cuts", "mask", "dates", "groups", "ready")
_READY = ("age", "date", "country", "postcode", "icd10", "icd9", "isced", "isco", "nace")
_LABELS_SHOWN = 6


@click.group("hierarchy")
def command() -> None:
    """Look at, build and check generalization hierarchies (ARX's format: value;group;…;*).

    \b
    Examples:
      sfumato hierarchy build admissions.csv --column age -o age.csv
      sfumato hierarchy build admissions.csv --column age --method cuts --cuts 0,18,40,65 -o age.csv --force
      sfumato hierarchy build admissions.csv --column age --ready age -o age.csv --force
      sfumato hierarchy check age.csv --data admissions.csv --column age
      sfumato hierarchy show age.csv
      sfumato release admissions.csv -m global-recoding --hierarchy age=age.csv -o release.csv
    """


@command.command("show")
@click.argument("file")
@click.option("--delimiter", default=";", show_default=True, help="Delimiter between the labels of a line.")
@click.option("--encoding", help="Encoding of FILE. Default: UTF-8, or that of its byte-order mark.")
def show(file: str, delimiter: str, encoding: str | None) -> None:
    """Show the levels of the hierarchy in FILE: how many labels each has, and the first of them."""
    from sfumato.errors import on_one_line
    from sfumato.mechanisms.hierarchies.files import read_hierarchy

    hierarchy = read_hierarchy(file, delimiter=delimiter, encoding=encoding)
    click.echo(f"{_counted(hierarchy.n_values, 'value')}, {_counted(hierarchy.n_levels, 'level')}")
    for level, labels in enumerate(hierarchy.labels):
        shown = "  ".join(on_one_line(label) for label in labels[:_LABELS_SHOWN])
        more = "  …" if len(labels) > _LABELS_SHOWN else ""
        largest = float(hierarchy.shares(level).max())
        click.echo(f"level {level}: {_counted(len(labels), 'label')}, the largest joins {largest:.1%} of the values")
        click.echo(f"  {shown}{more}")
    first = " → ".join(on_one_line(label) for label in next(hierarchy.rows()))
    click.echo(f"for instance: {first}")
    _note_root(hierarchy)


@command.command("build")
@click.argument("data")
@click.option("--column", required=True, help="Column to build a hierarchy for.")
@click.option("-m", "--method", type=click.Choice(_METHODS), default="auto", show_default=True, help="How to join.")
@click.option("--width", type=float, help="width: of the finest intervals.")
@click.option("--start", type=float, default=0, show_default=True, help="width: where an interval begins.")
@click.option("--intervals", type=int, default=16, show_default=True, help="quantile: number of the finest intervals.")
@click.option("--cuts", help="cuts: where the finest intervals begin, such as 0,18,40,65.")
@click.option("--merge", help="width, quantile, cuts: neighbours joined on each further level, such as 2,2,5.")
@click.option("--step", type=int, default=1, show_default=True, help="mask: further characters to mask on each level.")
@click.option("--order", help="groups: all values from lowest to highest, A,B,….")
@click.option("--sizes", help="groups: neighbours joined on each level, such as 2,2 (default: two).")
@click.option("--target", help="auto: column whose classes decide which texts are alike (default: by frequency).")
@click.option(
    "--ready", type=click.Choice(_READY), help="Take the ready hierarchy of these codes, whatever the values."
)
@click.option(
    "--unknown", type=click.Choice(("refuse", "other")), help="ready: values it does not know. Default: refuse."
)
@click.option("--country", help="ready postcode: two letters of the country, such as US. Default: mask each character.")
@click.option("-o", "--output", required=True, help="Hierarchy file to write ('-': stdout).")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@reading_options
def build(data: str, column: str, method: str, output: str, force: bool, **settings: Any) -> None:
    """Build a hierarchy for a column of DATA; its highest level is always *.

    auto: numbers by quantiles, dates by month, quarter and year, ordered values by neighbours, countries and ICD-10
    codes as their standards group them, other texts by the target's classes or by frequency. --ready: ages in bands of
    5, 10 and 20 years; countries by UN sub-region and region; postcodes by prefix; ICD-10 by category, block and
    chapter; ICD-9 by category and chapter; ISCED, ISCO and NACE by their digits. Check the result and edit it: it is
    plain text.

    \b
    Examples:
      sfumato hierarchy build visits.csv --column country --ready country --unknown other -o country.csv
      sfumato hierarchy build visits.csv --column zip --ready postcode --country US -o zip.csv
      sfumato hierarchy build visits.csv --column diagnosis --ready icd10 -o diagnosis.csv
    """
    from sfumato.atomic import check_writable, write_atomically
    from sfumato.mechanisms.hierarchies.automatic import build_hierarchy
    from sfumato.mechanisms.hierarchies.files import hierarchy_text

    if output != "-":
        check_writable(Path(output), force=force)
        _refuse_the_data(data, Path(output))
    method = _method_of(method, settings)
    table = _read(data, read_options(settings))
    hierarchy = build_hierarchy(table, column, method, settings, mark="--")
    text = hierarchy_text(hierarchy)
    if output == "-":
        click.echo(text, nl=False)
    else:
        write_atomically(Path(output), text.encode(), force=force)
    sizes = ", ".join(f"{len(labels):,}" for labels in hierarchy.labels)
    click.echo(f"{_counted(hierarchy.n_levels, 'level')} with {sizes} labels", err=True)
    if output != "-":
        click.echo(f"wrote {output}: look at it with 'sfumato hierarchy show'", err=True)


@command.command("check")
@click.argument("file")
@click.option("--data", required=True, help="Table that the hierarchy is for.")
@click.option("--column", required=True, help="Column that the hierarchy is for.")
@reading_options
def check(file: str, data: str, column: str, **settings: Any) -> None:
    """Check the hierarchy in FILE, and that it covers every value of a column."""
    from sfumato.errors import InputError
    from sfumato.mechanisms.hierarchies.automatic import cover_column
    from sfumato.mechanisms.hierarchies.files import faults_of_file, read_hierarchy

    faults = faults_of_file(file)
    for fault in faults:
        click.echo(f"FAIL {fault}")
    if faults:
        raise InputError("is not a hierarchy: see above", path=file)
    hierarchy = read_hierarchy(file)
    table = _read(data, read_options(settings))
    coded = table[column]
    found = cover_column(hierarchy, table, column)
    click.echo(
        f"ok   {_counted(found.n_levels, 'level')}, nested; covers all {coded.n_distinct:,} values of the column"
    )
    if found.n_rows > hierarchy.n_values:
        click.echo(
            f"note {_counted(coded.n_missing, 'row')} without a value: missing stays separate below the highest level"
        )
    unused = found.n_rows - len(found.labels[0])
    if unused:
        click.echo(f"note {_counted(unused, 'value')} of the hierarchy not in the column")
    _note_root(hierarchy)


def _method_of(method: str, settings: dict[str, Any]) -> str:
    """Take --ready for a method, and refuse what is given beside it for another one."""
    if settings["ready"] is not None:
        if method not in ("auto", "ready"):
            problem = "--ready and --method are two ways to build: give one of them"
            raise click.UsageError(problem)
        return "ready"
    if method != "ready" and (settings["unknown"] or settings["country"]):
        problem = "--unknown and --country are for --ready"
        raise click.UsageError(problem)
    return method


def _refuse_the_data(data: str, output: Path) -> None:
    from sfumato.errors import OutputError

    if output.exists() and Path(data).exists() and output.samefile(data):
        raise OutputError("is the input, which is never overwritten", path=output, hint="name another file")


def _note_root(hierarchy: Hierarchy) -> None:
    if len(hierarchy.labels[-1]) > 1:
        n_labels = len(hierarchy.labels[-1])
        click.echo(f"note the highest level has {n_labels:,} labels; a level of * above it is added when it is used")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _read(data: str, options: ReadOptions) -> Table:
    from sfumato.errors import InputError
    from sfumato.table.coding import Table
    from sfumato.table.io.read import read_table

    table = read_table(data, options=replace(options, mixed_as_text=True))
    if not isinstance(table, Table):
        raise InputError("holds 0/1 features, which need no hierarchy", path=data)
    return table
