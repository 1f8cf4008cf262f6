"""``sfumato compare``: one table, every mechanism, one picture."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options.preparing import preparations_in, prepare_option, refuse_preparations_beside_project
from sfumato.cli.options.tables import (
    check_data_there,
    confirm_option,
    confirmed_columns,
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
    from sfumato.evaluation.comparison import Comparison, RankedPoint
    from sfumato.evaluation.points import Grid, Measuring
    from sfumato.evaluation.requested_guarantees import AskedGuarantee
    from sfumato.manifest import AnyTable
    from sfumato.progress import Progress
    from sfumato.table.roles import ColumnGuess


INTERRUPTED = 130
_A_DAY = 86_400.0


@dataclass(frozen=True)
class Order:
    """What is to be compared, from a project file or from flags."""

    table: AnyTable
    binarize: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    guesses: tuple[ColumnGuess, ...] = ()


@click.command("compare")
@click.argument("data", required=False)
@click.option("--project", help="Project file, when DATA is not given. Default: sfumato.toml.")
@click.option("-m", "--mechanism", "mechanisms", multiple=True, help="Compare only this one; repeat for several.")
@click.option("--guarantee", "guarantees", multiple=True, metavar="NAME=VALUE", help="What to promise, such as k=5.")
@click.option("--no-l", "no_l", is_flag=True, help="Ask for k alone, even if a column is sensitive.")
@click.option(
    "--also", multiple=True, metavar="KIND", help="Try another kind of promise too, such as containment; all; papers."
)
@click.option("--weights", metavar="U,P,S", help="Weights of utility, privacy and size in E(S). Default: equal.")
@click.option("--classifiers", metavar="A,B,…", help="Classifiers that measure utility.")
@click.option("--folds", type=int, default=3, show_default=True, help="Folds of the cross-validation.")
@click.option("--max-rows", type=int, default=20_000, show_default=True, help="Rows that utility is measured on.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of folds and samples.")
@click.option("--run-folder", default="sfumato-compare", show_default=True, help="Folder of finished points.")
@click.option("--fresh", is_flag=True, help="Measure every point again; ignore the run folder.")
@click.option("--workers", type=int, help="Processes at once. Default: number of cores.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds for each point.")
@click.option(
    "--time-limit", type=float, help="Seconds for the whole comparison; remaining points are listed as not run."
)
@click.option("-o", "--output", help="Write the table: .csv, or .json with everything.")
@click.option("--plot", help="Draw utility against risk: .svg, .png or .pdf.")
@click.option("--force", is_flag=True, help="Replace output files that exist.")
@click.option("--dry-run", is_flag=True, help="List the points and compute nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON to stdout.")
@prepare_option
@role_options
@confirm_option
@reading_options
@person_rows_option
@quiet_option
def command(data: str | None, project: str | None, dry_run: bool, as_json: bool, **settings: Any) -> None:
    """Compare mechanisms on DATA (or on the table that the project file describes) and recommend a release.

    Every mechanism proposes settings that suit the table; [compare.grid] of the project file names others. Each point
    is released, audited, attacked (re-identification) and cross-validated in a process of its own, cheap ones first,
    and shown when it is finished. Finished points are kept in the run folder: a run that was stopped shows them, and
    the same command continues with the others. Nothing of the data is written.

    Utility is the mean AUC of the classifiers, with mechanisms fitted on the training rows alone. Risk is the share of
    people re-identified by an attacker who knows all quasi-identifiers (marketer attack), of rows where an identifier
    repeats and no column has the role person. A recommended release must
    promise strict k-anonymity with k = 5, and l = 2 of every sensitive column, unless --guarantee says otherwise.
    --also tries other kinds of promises (kk-anonymity, containment, buckets, differential-privacy, breach-bound,
    perturbation, partial) in groups of their own; --also papers adds the papers' own systems as baselines.

    --prepare changes columns of DATA first, as release does; of a project the preparations in its file are used.
    Utility and risk are then those of the prepared table. For pseudonyms and shifted dates a comparison takes keys of
    its own: it publishes no cell.

    The command recommends the release with the least risk among those on the Pareto front whose utility does not
    clearly differ from the best with the same promise.

    \b
    Examples:
      sfumato compare
      sfumato compare admissions.csv --target readmitted --sensitive diagnosis -o compare.csv --plot frontier.svg
      sfumato compare --guarantee k=10 --time-limit 600
      sfumato compare --also containment --also kk-anonymity
      sfumato compare people.csv --target ill --prepare income=top:100000,round:1000 --prepare born=age_at:2026-01-01
      sfumato compare --dry-run
    """
    from sfumato.errors import InvalidParameterError

    if data and project:
        raise InvalidParameterError("DATA and --project", "got both", allowed="given one at a time")
    if data:
        check_data_there(data)
    from sfumato.cli.speaking.summary import show_ages, show_guesses, show_notes, show_persons, show_readings
    from sfumato.evaluation.requested_guarantees import AskedGuarantee

    asked = [AskedGuarantee.parse(text) for text in settings["guarantees"]]
    _check_outputs(settings)
    order = _from_flags(data, settings) if data else _from_project(Path(project or PROJECT_NAME), settings)
    show_guesses(order.guesses)
    show_ages(order.guesses)
    show_readings(order.table.coded_part.schema)
    show_persons(order.table)
    done = order.table.coded_part.prepared
    show_notes(f"prepared: {one.in_words()}" for one in (done.preparations if done is not None else ()))
    grid = _grid(order, asked, settings)
    if dry_run:
        show_grid(grid, as_json=as_json)
        return
    found, is_whole = _compared(order, grid, asked, settings)
    show_comparison(found, as_json=as_json)
    _write(found, settings)
    if not is_whole:
        kept = f"finished points are kept in {settings['run_folder']}; the same command continues from there"
        click.echo(f"sfumato: interrupted; {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED)
    found.raise_if_nothing_meets()


def _from_flags(data: str, settings: dict[str, Any]) -> Order:
    from sfumato.table.preparing.keyed import PreparationKeys
    from sfumato.table.understanding import read_understood

    options, roles, confirmed = read_options(settings), given_roles(settings), confirmed_columns(settings)
    asked = preparations_in(settings)
    understood = read_understood(data, options, roles, preparations=asked, confirmed=confirmed)
    return Order(understood.prepared(PreparationKeys.of_comparison(has_project=False)), guesses=understood.guessed)


def _from_project(path: Path, settings: dict[str, Any]) -> Order:
    from sfumato.errors import InvalidParameterError
    from sfumato.project.file import load_project
    from sfumato.table.io.read import ReadOptions
    from sfumato.table.preparing.keyed import PreparationKeys

    if given_roles(settings) or confirmed_columns(settings) or read_options(settings) != ReadOptions():
        hint = "edit the project file, or name the data file as the argument"
        raise InvalidParameterError("role and reading options", "got some", allowed="used with DATA only", hint=hint)
    refuse_preparations_beside_project(settings)
    project = load_project(path)
    return Order(project.read(PreparationKeys.of_comparison()), project.binarize, project.compare)


def _grid(order: Order, asked: Sequence[AskedGuarantee], settings: dict[str, Any]) -> Grid:
    from sfumato.evaluation.points import grid_for, usual_guarantees

    wanted = asked or usual_guarantees(order.table, with_l=not settings["no_l"])
    return grid_for(
        order.table,
        order.settings.get("grid"),
        mechanisms=settings["mechanisms"],
        binarize=order.binarize,
        asked=wanted,
        also=settings["also"] or order.settings.get("also", ()),
    )


def _measuring(order: Order, settings: dict[str, Any]) -> Measuring:
    from sfumato.evaluation.points import Measuring, quick_classifiers

    named = settings["classifiers"]
    written = order.settings.get("classifiers") or quick_classifiers(order.table)
    classifiers = [name.strip() for name in named.split(",")] if named else written
    return Measuring(tuple(classifiers), settings["folds"], settings["seed"], settings["max_rows"])


def _weights(order: Order, settings: dict[str, Any]) -> list[float]:
    from sfumato.errors import InvalidParameterError
    from sfumato.mechanisms.breach.tradeoff import EvaluationWeights

    if settings["weights"] is None:
        return list(order.settings.get("weights", EvaluationWeights()))
    try:
        weights = [float(part) for part in settings["weights"].split(",")]
    except ValueError:
        weights = []
    if len(weights) != len(EvaluationWeights._fields):
        allowed = "three numbers separated by commas: utility, privacy, size"
        raise InvalidParameterError("--weights", f"got {settings['weights']!r}", allowed=allowed)
    return weights


def _compared(
    order: Order, grid: Grid, asked: Sequence[AskedGuarantee], settings: dict[str, Any]
) -> tuple[Comparison, bool]:
    """Compare; whatever ends it early, what is finished is given, and whether it is all."""
    from sfumato.evaluation.compare import ComparisonInterrupted, compare

    measuring, weights = _measuring(order, settings), _weights(order, settings)
    bar, progress = _points_bar()
    try:
        with _endings_as_interruptions(), bar:
            found = compare(
                order.table,
                grid,
                measuring=measuring,
                weights=weights,
                asked=asked,
                run_folder=settings["run_folder"],
                fresh=settings["fresh"],
                workers=settings["workers"],
                timeout=settings["timeout"],
                time_limit=settings["time_limit"],
                progress=progress,
                on_result=lambda result: bar.console.print(_as_it_comes(result), soft_wrap=True, **_PLAIN),
            )
            return found, True
    except ComparisonInterrupted as ended:
        return ended.found, False


_PLAIN: Mapping[str, Any] = {"markup": False, "highlight": False, "emoji": False}


@contextlib.contextmanager
def _endings_as_interruptions() -> Iterator[None]:
    """Take an order to end (by a scheduler, ``timeout`` or a closed terminal) as Ctrl-C: what is finished is shown."""
    from sfumato.processes import signals_heard

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    with signals_heard([n for n in numbers if signal.getsignal(n) is signal.SIG_DFL], _interrupt):
        yield


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _as_it_comes(result: Mapping[str, Any]) -> str:
    """Say what became of a point, in a line, while others are still running."""
    from sfumato.evaluation.comparison import headline_risk, mean_utility
    from sfumato.evaluation.points import Point
    from sfumato.figures import SCORES

    label, risk = Point(result["mechanism"], result["parameters"]).label, headline_risk(result)
    means = ((score.heading, mean_utility(result, score.name)) for score in SCORES)
    utility = next((f"{heading} {mean:.3f}" for heading, mean in means if mean is not None), "")
    if not utility or risk is None:
        return on_one_line(f"{label}: {result['status']}")
    return on_one_line(f"{label}: {utility}, risk {risk:.4f}, {result['seconds']:.1f} s")


def _points_bar() -> tuple[Any, Progress]:
    """Return a bar with points done and time left, on a terminal's stderr, and the callback that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("points"), TimeRemainingColumn(), TextColumn("left"))
    console = Console(stderr=True)
    bar = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=_A_DAY
    )
    task = bar.add_task("points", total=None)

    def move(done: int, total: int, doing: str) -> None:
        bar.update(task, completed=done, total=total)

    return bar, move


def _check_outputs(settings: dict[str, Any]) -> None:
    from sfumato.atomic import check_writable
    from sfumato.displays.base import check_picture
    from sfumato.errors import InvalidParameterError

    output = settings["output"]
    if output is not None:
        if Path(output).suffix.lower() not in (".csv", ".json"):
            allowed = "a file name that ends in .csv or .json"
            raise InvalidParameterError("--output", f"got {output!r}", allowed=allowed)
        check_writable(Path(output), force=settings["force"])
    if settings["plot"] is not None:
        check_picture(settings["plot"], force=settings["force"])


def _write(found: Comparison, settings: dict[str, Any]) -> None:
    from sfumato.atomic import write_atomically

    if settings["output"] is not None:
        path = Path(settings["output"])
        is_csv = path.suffix.lower() == ".csv"
        text = found.to_csv() if is_csv else json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n"
        write_atomically(path, text.encode(), force=settings["force"])
        click.echo(f"wrote {path}", err=True)
    if settings["plot"] is not None and any(one.is_done for one in found.points):
        _draw(found, settings["plot"], force=settings["force"])
        click.echo(f"wrote {settings['plot']}", err=True)


def _draw(found: Comparison, path: str, *, force: bool) -> None:
    from sfumato.displays.base import save
    from sfumato.displays.frontier import FrontierDisplay
    from sfumato.figures.risk import MARKETER

    measured = (found.original["utility"] or {}).get("majority_accuracy")
    display = FrontierDisplay.from_points(
        found.frontier(),
        original_utility=found.original_utility,
        majority_utility=0.5 if found.utility_name == "AUC" else measured,
        utility_name=f"mean {found.utility_name}",
        risk_name=MARKETER.words.format(counted=found.counted),
    )
    save(display, path, force=force)


# What ``sfumato compare`` shows: the points as a table in text, and the recommendation.


_ON_THE_LEFT = ("", "mechanism", "settings", "promises", "utility")
_WIDEST = 52


def show_grid(grid: Grid, *, as_json: bool) -> None:
    """List the points of a grid and the mechanisms that are left out."""
    from sfumato.evaluation.comparison import counted

    if as_json:
        points = [{"mechanism": point.mechanism, "parameters": dict(point.parameters)} for point in grid.points]
        click.echo(json.dumps({"points": points, "left_out": dict(grid.left_out)}, indent=2, default=str))
        return
    for point in grid.points:
        click.echo(on_one_line(point.label))
    click.echo(counted(len(grid.points), "point"))
    _show_left_out(grid.left_out)


def show_comparison(found: Comparison, *, as_json: bool) -> None:
    """Show all points by what they promise, the most useful first, what went wrong, and which one is recommended."""
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    for line in _table(found):
        click.echo(line)
    for one in found.points:
        if not one.is_done and one not in found.not_run:
            click.echo(on_one_line(f"{one.result['status']}: {one.point.label}: {one.result['reason']}"))
    for reason in dict.fromkeys(one.result["reason"] for one in found.not_run):
        missing = [one.point.label for one in found.not_run if one.result["reason"] == reason]
        click.echo(on_one_line(f"not run ({reason}): {'; '.join(missing)}"))
    if found.original["reason"]:
        click.echo(on_one_line(f"the original table was not measured: {found.original['reason']}"))
    _show_left_out(found.left_out)
    for note in found.notes():
        click.echo(f"note: {note}")
    click.echo(on_one_line(found.why()))


def _show_left_out(left_out: Mapping[str, str]) -> None:
    from sfumato.evaluation.points import ON_REQUEST
    from sfumato.evaluation.promises import other_kinds

    for name, why in left_out.items():
        click.echo(on_one_line(f"left out: {name}: {why}"))
    if any(why.endswith(ON_REQUEST) for why in left_out.values()):
        click.echo(f"on request: --also KIND, which is one of {', '.join(other_kinds())}, or all")


def _cells(one: RankedPoint, found: Comparison) -> dict[str, str]:
    """Write what a point, or the original, has under each heading."""
    from sfumato.evaluation.comparison import short_guarantees, with_interval
    from sfumato.figures import COMPARED

    is_original = one is found.ranked_original
    seconds = one.result["seconds"]
    return {
        "": ">" if one is found.recommended else "*" if one.on_front else "",
        "mechanism": "(original)" if is_original else one.point.mechanism,
        "settings": "" if is_original else one.point.settings,
        "promises": ", ".join(short_guarantees(one.result["guarantees"])),
        "utility": with_interval(one),
        "risk": "-" if one.risk is None else f"{one.risk:.4f}",
        **{figure.heading: _value(one.figures[figure.name], figure.unit) for figure in COMPARED},
        "E(S)": "" if is_original else f"{one.rank}",
        "seconds": "" if is_original else f"{seconds:.1f}",
    }


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" if unit == "share" else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _table(found: Comparison) -> Iterator[str]:
    from sfumato.evaluation.promises import kind_meaning

    groups = [(group, [_cells(one, found) for one in group.points]) for group in found.groups]
    last = _cells(found.ranked_original, found)
    rows = [*(row for _, of_group in groups for row in of_group), last]
    widths = {head: min(max(len(head), *(len(row[head]) for row in rows)), _WIDEST) for head in last}
    yield _line({head: head for head in last}, widths)
    for group, of_group in groups:
        yield on_one_line(f"{group.title}: {kind_meaning(group.kind)}".removesuffix(": "))
        yield from (_line(row, widths) for row in of_group)
    yield _line(last, widths)


def _line(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    cells = [_cell(text, widths[head], on_the_right=head not in _ON_THE_LEFT) for head, text in row.items()]
    return on_one_line("  ".join(cells)).rstrip()


def _cell(text: str, width: int, *, on_the_right: bool) -> str:
    short = text if len(text) <= width else text[: width - 1] + "…"
    return short.rjust(width) if on_the_right else short.ljust(width)
