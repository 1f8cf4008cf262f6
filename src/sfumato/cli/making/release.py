"""``sfumato release``: mechanism, audit, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.asked import checked_output, merged_parameters, project_with_flags
from sfumato.cli.options.homes import ENGINE_HELP, MEMORY_HELP, Order, described, home_of, opened
from sfumato.cli.options.named import hierarchy_files, hierarchy_option
from sfumato.cli.options.preparing import (
    preparations_in,
    prepare_option,
)
from sfumato.cli.options.short_help import ShortHelp
from sfumato.cli.options.tables import (
    ROLE_SETTINGS,
    TABLE_FILE_HELP,
    check_data_there,
    confirm_option,
    confirmed_columns,
    given_roles,
    person_rows_option,
    progress_bar,
    read_options,
    reading_options,
    role_options,
)
from sfumato.cli.speaking.on_stderr import quiet_option
from sfumato.cli.speaking.released import formula_warnings, order_warnings, said_of, say_left_out, say_not_used
from sfumato.schema import PROJECT_NAME

if TYPE_CHECKING:
    from sfumato.engines.memory_limit import Memory
    from sfumato.manifest import AnyTable
    from sfumato.mechanisms.base import Mechanism, Release
    from sfumato.progress import Progress
    from sfumato.publishing.from_project import OpenRows
    from sfumato.publishing.proposals.base import Proposal
    from sfumato.publishing.publish import Published
    from sfumato.publishing.together import LedgerUse
    from sfumato.report.in_short import Prediction
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.roles import ColumnGuess


_COMMON = (
    "project",
    "output",
    "mechanism",
    "k",
    "params",
    "force",
    "dry_run",
    "quick",
    "memory",
    "engine",
    "prepare",
    "target",
    "quasi_identifiers",
    "sensitive",
    "identifiers",
    "person",
    "other",
    "confirm",
    "quiet",
)


@click.command("release", cls=ShortHelp, common=_COMMON)
@click.argument("data", required=False)
@click.option("--project", help="Project file. Default: sfumato.toml. With DATA: DATA is released by its description.")
@click.option("-o", "--output", help=TABLE_FILE_HELP)
@click.option("-m", "--mechanism", help="Mechanism; 'sfumato mechanisms' lists them. Default: auto.")
@click.option("-k", type=int, help="Shorthand for -p k=…")
@click.option(
    "--no-l", is_flag=True, help="auto only: promise k-anonymity alone, without l-diversity of sensitive columns."
)
@click.option(
    "--attacker-knows",
    type=click.Choice(["all", "ones"]),
    help="auto only, 0/1 tables (words, items): all values of a person, or 1-values only. Default: all.",
)
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the mechanism.")
@hierarchy_option("Hierarchy file of a column; repeat for several. Shorthand for -p hierarchies.COLUMN=FILE")
@click.option(
    "--population-table",
    metavar="FILE",
    help="Table of the population, one row a person, that -p k_map=… or -p delta_max=… is promised about.",
)
@click.option(
    "--cells",
    type=click.Choice(["ranges", "values", "draws"]),
    help="What a class shows: ranges, sets and labels; one typical value a column; or its own values, dealt anew.",
)
@click.option(
    "--max-copies",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    help="With --cells draws: share of rows that may equal an original row which is the only one of its kind "
    "(default 0.3).",
)
@click.option("--binarize", help="Named recipe for binary features, such as adult-19.")
@click.option("--force", is_flag=True, help="Replace output files that exist.")
@click.option(
    "--ledger",
    type=click.Choice(["check", "same-levels", "off"]),
    help="Projects with a person column: check with earlier releases (default); also take their levels; or neither.",
)
@click.option(
    "--keep-order",
    is_flag=True,
    help="Leave rows in the order of DATA. Releases can then be joined by row number: rather not.",
)
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="CSV and TSV: put an apostrophe before texts that a spreadsheet program would run (=, +, -, @).",
)
@click.option("--dry-run", is_flag=True, help="Do everything, audit included, but write nothing.")
@click.option("--quick", is_flag=True, help="Train no classifiers; prediction is then not measured.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest to stdout.")
@click.option("--metadata", is_flag=True, help="Also describe the release: Croissant, DCAT-AP, a data dictionary.")
@click.option("--memory", metavar="SIZE", help=MEMORY_HELP)
@click.option("--engine", metavar="URL", help=ENGINE_HELP)
@prepare_option
@role_options
@confirm_option
@reading_options
@person_rows_option
@quiet_option
def command(
    data: str | None,
    project: str | None,
    force: bool,
    dry_run: bool,
    quick: bool,
    as_json: bool,
    memory: str | None,
    engine: str | None,
    ledger: LedgerUse | None,
    population_table: str | None,
    metadata: bool,
    **settings: Any,
) -> None:
    """Make a release of DATA (or of the table that the project file describes), audit it and write it.

    Nothing is written unless an independent audit confirms every guarantee. The manifest is written next to the table,
    as OUTPUT.manifest.json.

    Without -m, auto makes the release: strict k-anonymity (k = 5), with l-diversity (l = 2) of every sensitive column,
    in the form that keeps most of the target predictable. Five lines sum the release up.

    \b
    Examples:
      sfumato release admissions.csv --target readmitted -o release.csv
      sfumato release admissions.csv --target readmitted --sensitive diagnosis -k 10 -o release.parquet
      sfumato release visits.csv --person patient_nbr --target readmitted -o release.csv
      sfumato release                                   # what sfumato.toml says
      sfumato release -k 10 --dry-run
      sfumato release large.parquet --target y --identifiers id --memory 1GB -o release.parquet
    \f

    Give a parameter that is a table entry by entry, as -p NAME.ENTRY=VALUE. Files named on the command line are looked
    up in the working folder, files named in a project file in the folder of that file.

    For differential privacy (laplace-dp, exponential-dp) nothing is guessed from the rows: give --target and
    --quasi-identifiers. Other columns are never released, and incomplete rows stay.

    DATA is a file, or a database: postgresql://host/database (user and password in PGUSER and PGPASSWORD, never in the
    address), an SQLite or a DuckDB file. --table or --query says which rows.

    With --memory the table is not held in memory: its distinct combinations of quasi-identifiers are counted, and the
    release is written in one pass over the file. A mechanism or an option that needs all rows takes them into memory if
    they fit (docs/guide/scale.md).

    With --engine the rows stay on a Spark cluster: it counts them and writes the release as a folder of Parquet files.
    The search runs here, over the counts. Driver and workers must see DATA and OUTPUT under the same path.

    A project whose table has a person column keeps a private ledger (.sfumato-ledger) of its releases. A new one is
    checked together with them: it is refused (exit code 4) if people would be told apart by comparing releases.
    --ledger same-levels takes the levels of the last release, so that people who did not change keep their classes, and
    is checked as well (global-recoding, gain-recoding). --ledger off neither checks nor keeps.

    --prepare changes a column right after it is read, before any mechanism: numbers are coded at the top or bottom or
    rounded, texts masked, identifiers replaced by keyed pseudonyms, dates shifted by a secret number of days a person
    or turned into ages. The manifest states it and the audit does it again. (docs/guide/preparing-columns.md; in a
    project file: prepare = { top = 100000 } at the column.)

    --escape-formulas is for text files that are opened in spreadsheet programs: a cell of text that begins with =, +, -
    or @ gets an apostrophe in front, which the manifest states. Without it such cells are counted and warned about.

    With DATA and --project, DATA is released as the project file describes last year's file: same roles, kinds,
    hierarchies, mechanism and parameters, key and ledger. -o must be given. Columns that are missing or new are named.

    With --population-table the rows are a sample of a population, and -p k_map=5 promises that every released row fits
    five people of it; -p delta_max=0.2 that nobody of it is known to be in the release with more than 20 %. Classes may
    have fewer than k rows only if k is 1: give -k 1 for k-map alone. (mondrian, global-recoding, gain-recoding.)

    With --cells values every quasi-identifying cell is the median or the most frequent value of its class, in the
    column's own type: files that any library reads and trains on. k, l and t are counted over the cells as ever. A
    value is true of the class, not of the person. (auto, mondrian, error-risk-tree, recodings; mdav makes no others.)

    With --cells draws each class keeps its own values, dealt out to its rows anew, every column by itself; the column
    bucket names the class. It keeps most for learners, and is not k-anonymity: rows of a class differ, and those that
    come out as an original row are counted and limited (--max-copies). (docs/guide/drop-in-releases.md)

    \b
    Further examples:
      sfumato release admissions.csv --target readmitted --cells values -o release.csv
      sfumato release admissions.csv --target readmitted --cells draws --max-copies 0.1 -o release.csv
      sfumato release --ledger same-levels -o release-2026.csv
      sfumato release 2026.csv --project sfumato.toml -o release-2026.csv     # as last year's file
      sfumato release survey.csv -m mondrian --population-table register.csv -p k_map=5 -k 1 -o release.csv
      sfumato release mail.svm --attacker-knows ones -o mail-release.csv
      sfumato release people.csv --sensitive income --prepare income=top:100000,round:1000 -o release.csv
      sfumato release people.csv --quasi-identifiers born --prepare born=age_at:2026-01-01,top:90 -o release.csv
      sfumato release admissions.csv --escape-formulas -o release.csv
      sfumato release admissions.csv -m global-recoding --hierarchy age=age.csv -o release.csv
      sfumato release people.db --table visits --target readmitted -o release.csv
      sfumato release postgresql://host/db --query 'select age, sex, y from visits' --target y -o release.csv
      sfumato release large.parquet --target y --identifiers id --engine spark://node1:7077 -o release.parquet
    """
    from sfumato.errors import InvalidParameterError

    if data and project:  # the description of another file, such as last year's
        check_data_there(data)
        data, settings["next_file"] = None, data
    if data and ledger is not None:
        raise InvalidParameterError("--ledger", "got DATA", allowed="given for the release of a project")
    home = home_of(memory, engine)
    if metadata and dry_run:
        hint = "'sfumato metadata RELEASE' describes a release that was written"
        raise InvalidParameterError("--metadata", "got --dry-run", allowed="given without it", hint=hint)
    if data and settings["mechanism"] is None:  # another may refuse what is public before it looks at any file
        check_data_there(data)
    from sfumato.cli.speaking.summary import (
        show_lines,
        show_notes,
        show_ready_hierarchies,
        show_release,
        show_verdict,
        show_warnings,
        warn_of_identifiers,
    )
    from sfumato.project.file import DEFAULT_MECHANISM
    from sfumato.publishing.ledger import Ledger
    from sfumato.publishing.proposals.base import DEFAULT_MEMORY
    from sfumato.publishing.proposals.in_memory import InMemory
    from sfumato.publishing.propose import check_may_be_counted
    from sfumato.publishing.publish import publish
    from sfumato.publishing.together import checked_together
    from sfumato.report.in_short import MOST_UNIQUE, in_short
    from sfumato.report.prepared_columns import prepared_in_words, prepared_warnings
    from sfumato.table.coding import Source

    place, use = Path(project or PROJECT_NAME), ledger or "check"
    order = _from_flags(data, settings, population_table) if data else _from_project(place, settings, population_table)
    target = None
    if home is not None:
        check_may_be_counted(order.mechanism)
        target = home.checked_output(order, force=force, dry_run=dry_run)
    elif not dry_run:
        target = checked_output(order.output, Source(order.path, ""), force=force)
    if metadata and target is not None:
        _check_descriptions(target, force=force)
    limit = DEFAULT_MEMORY if home is None else home.memory
    with opened(home, order.name) as (open_rows, progress):
        proposal, guesses = _proposed(order, open_rows, limit, use, target, progress)
        _say_what_was_read(proposal, guesses, limit)
        if order.project is None:
            say_not_used()
            recorded = None
        else:
            recorded = said_of(checked_together(proposal, Ledger.of_project(order.project.path), use, limit))
        release, published = proposal.release, None
        if target is not None:
            published = publish(proposal, target, force=force, recorded=recorded, memory=limit, progress=progress)
            release = published.release
    if published is not None:  # before prediction is measured, which takes longer than all else
        warn_of_identifiers(published.audit)
        show_verdict(published.audit)
        click.echo(f"wrote {published.table_path} and {published.manifest_path}", err=True)
        if metadata:
            _describe(published, force=force)
    if as_json:
        click.echo(release.manifest.to_json(), nl=False)
    short = None
    if isinstance(proposal, InMemory) and order.name == DEFAULT_MECHANISM:
        bar, measuring = progress_bar("what prediction keeps")
        with bar:
            short = in_short(release, proposal.original, order.mechanism, quick=quick, progress=measuring)
        _note_no_target(order.mechanism, proposal.original)
        show_lines(short.headed())
    else:
        show_release(release)
    show_notes(prepared_in_words(release.manifest))
    show_ready_hierarchies(order.mechanism)
    if target is None:
        measured = "" if isinstance(proposal, InMemory) else "; the promises were measured on counts or on a sample"
        click.echo(f"dry run: nothing was written{measured}", err=True)
    own = short or (in_short(release) if isinstance(proposal, InMemory) else None)
    said = [*(own.warnings() if own else ()), *order_warnings(release), *prepared_warnings(release.manifest)]
    show_warnings([*said, *formula_warnings(release, target)])
    if short is not None and isinstance(proposal, InMemory) and not quick and short.unique > MOST_UNIQUE:
        _offer_remedy(release, proposal.original, order.mechanism, short.prediction)


def _proposed(
    order: Order,
    open_rows: OpenRows | None,
    memory: Memory,
    ledger: LedgerUse,
    target: Path | None,
    progress: Progress,
) -> tuple[Proposal, Sequence[ColumnGuess]]:
    """Let the mechanism propose a release of the table, wherever it is opened; one that is not published is audited."""
    from sfumato.cli.speaking.summary import showing_new_key
    from sfumato.publishing.from_project import propose_project
    from sfumato.publishing.proposals.in_memory import InMemory
    from sfumato.publishing.propose import propose, why_written_whole

    if order.project is not None:
        with showing_new_key(order.project.path.parent):
            made = propose_project(
                order.project,
                mechanism=order.mechanism,
                open_rows=open_rows,
                memory=memory,
                is_published=target is not None,
                target=target,
                ledger=ledger,
                progress=progress,
            )
        return made, ()
    original, guesses = described(order, open_rows, memory)
    why = why_written_whole(target, escapes_formulas=order.escapes_formulas)
    made = propose(original, order.mechanism, memory, all_rows_for=why, progress=progress)
    if isinstance(made, InMemory) and target is None:
        made = replace(made, release=made.audited_in_memory())
    made = made.with_order_kept() if order.keeps_order else made
    return made.with_formulas_escaped() if order.escapes_formulas else made, guesses


def _say_what_was_read(proposal: Proposal, guesses: Sequence[ColumnGuess], memory: Memory) -> None:
    """Say what the columns were taken for and who is in the table."""
    from sfumato.cli.speaking.summary import (
        show_ages,
        show_guesses,
        show_notes,
        show_persons,
        show_readings,
        show_repeating,
    )
    from sfumato.engines.persons import identifiers_away, person_notes_away
    from sfumato.engines.protocol import Rows

    original = proposal.original
    show_guesses(guesses)
    if proposal.release.manifest.is_differentially_private:
        return  # what is said then must not depend on a look at the rows
    show_ages(guesses)
    if isinstance(original, Rows):
        show_readings(original.schema)
        show_repeating(identifiers_away(original, memory.n_bytes))
        show_notes(person_notes_away(original))
        say_left_out(original.outline)
    else:
        show_readings(original.coded_part.schema)
        show_persons(original, guesses)
        say_left_out(original)


def _offer_remedy(release: Release, original: AnyTable, mechanism: Mechanism, prediction: Prediction | str) -> None:
    """Say by which command few rows are unique: the one that was typed, with other roles and another k."""
    from sfumato.cli.speaking.summary import show_remedy
    from sfumato.report.reproduction import options_of_roles
    from sfumato.report.unique_rows import remedy_for

    bar, progress = progress_bar("fewer unique rows")
    with bar:
        remedy = remedy_for(release, original, mechanism, prediction, progress=progress)
    if remedy is None:
        return
    context = click.get_current_context()
    given = _typed(context, without=("k", "force", *ROLE_SETTINGS))
    typed = ["sfumato", "release", *given, "-k", str(remedy.k), "--force"]
    if context.params["data"] and not context.params["project"]:
        show_remedy([*typed, *options_of_roles(given_roles(dict(context.params)) | dict(remedy.roles))], remedy)
        return
    roles = ", ".join(f"'{name}' the role \"{role}\"" for name, role in remedy.roles.items())
    file = context.params["project"] or PROJECT_NAME
    show_remedy(typed, remedy, first=f"give {roles} in {file} and " if roles else "")


def _typed(context: click.Context, *, without: Sequence[str]) -> list[str]:
    """Write the arguments and options that were given, but for some."""
    found: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not is_given or name in without or name not in context.params:
            continue
        value = context.params[name]
        if isinstance(parameter, click.Argument):
            found.append(str(value))
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            found.append(parameter.opts[0])
        else:
            values = value if parameter.multiple else [value]
            found += [text for one in values for text in (parameter.opts[0], str(one))]
    return found


def _check_descriptions(released: Path, *, force: bool) -> None:
    """Refuse descriptions that cannot be written before the release is made."""
    from sfumato.atomic import check_writable
    from sfumato.report.metadata import KINDS, metadata_path

    for kind in KINDS:
        check_writable(metadata_path(released, kind), force=force)


def _describe(published: Published, *, force: bool) -> None:
    """Describe a release by the files that were written, as whoever gets them can."""
    from sfumato.mechanisms.base import Release
    from sfumato.publishing.reaudit import read_manifest
    from sfumato.report.metadata import KINDS, Publication, write_metadata

    manifest, _ = read_manifest(published.manifest_path)
    release = Release(published.release.table, manifest)
    written = write_metadata(release, published.table_path, KINDS, Publication(), force=force)
    click.echo(f"wrote {', '.join(map(str, written))}", err=True)


def _note_no_target(mechanism: Mechanism, original: AnyTable) -> None:
    """Say of auto where no target guides it."""
    from sfumato.mechanisms.auto import Automatic

    why = mechanism.why_no_score(original) if isinstance(mechanism, Automatic) else ""
    if why:
        click.echo(f"note: {why}", err=True)


def _from_flags(data: str, settings: dict[str, Any], population_table: str | None) -> Order:
    from sfumato.mechanisms.registry import build_mechanism, mechanism_info
    from sfumato.project.file import DEFAULT_MECHANISM
    from sfumato.publishing.propose import refuse_preparation

    options, preparations = read_options(settings), preparations_in(settings)
    name = settings["mechanism"] or DEFAULT_MECHANISM
    if preparations and mechanism_info(name).is_differentially_private:
        refuse_preparation(name)
    _check_takes_population(name, population_table)
    built = build_mechanism(name, merged_parameters(name, {}, settings))
    built = built.with_cells(settings["cells"], settings["max_copies"])
    return Order(
        name,
        data,
        _with_population(built, population_table, options),
        Path(settings["output"]) if settings["output"] else None,
        options,
        given_roles(settings),
        confirmed=confirmed_columns(settings),
        with_hierarchies=tuple(hierarchy_files(settings["hierarchies"])),
        preparations=preparations,
        keeps_order=settings["keep_order"],
        escapes_formulas=settings["escape_formulas"],
    )


def _check_takes_population(name: str, population_table: str | None) -> None:
    """Refuse a mechanism that promises nothing about a population, before anything is read."""
    from sfumato.mechanisms.base import not_about_population
    from sfumato.mechanisms.registry import mechanism_info

    if population_table is not None and not mechanism_info(name).build.takes_population:
        raise not_about_population(name)


def _with_population(mechanism: Mechanism, path: str | None, options: ReadOptions) -> Mechanism:
    """Read the table of the population, as the audit does, and give it to the mechanism."""
    if path is None:
        return mechanism
    from sfumato.mechanisms.population import Population
    from sfumato.publishing.reaudit import read_original

    check_data_there(path)
    return mechanism.with_population(Population.of(read_original(path, options.of_files())))


def _from_project(path: Path, settings: dict[str, Any], population_table: str | None) -> Order:
    from sfumato.publishing.from_project import built_for

    project = project_with_flags(path, settings)
    _check_takes_population(str(project.mechanism), population_table)
    mechanism = _with_population(built_for(project), population_table, project.options)
    return Order(
        str(project.mechanism), str(project.data), mechanism, project.output, project.options, {}, project=project
    )
