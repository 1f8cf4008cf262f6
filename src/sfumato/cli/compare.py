"""``sfumato compare``: one table, every mechanism, one picture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import apply_roles, given_roles, read_options, reading_options, role_options
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
@click.option("--weights", metavar="U,P,S", help="Weights of utility, privacy and size in E(S). Default: equal.")
@click.option("--classifiers", metavar="A,B,…", help="Classifiers that measure utility.")
@click.option("--folds", type=int, default=3, show_default=True, help="Folds of the cross-validation.")
@click.option("--max-rows", type=int, default=50_000, show_default=True, help="Rows that utility is measured on.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of folds, samples and attacks.")
@click.option("--run-folder", default="sfumato-compare", show_default=True, help="Folder of finished points.")
@click.option("--fresh", is_flag=True, help="Measure every point again, whatever the run folder holds.")
@click.option("--workers", type=int, help="Processes at once. Default: number of cores.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds for each point.")
@click.option("-o", "--output", help="Write the table: .csv, or .json with everything.")
@click.option("--plot", help="Draw utility against risk: .svg, .png or .pdf.")
@click.option("--force", is_flag=True, help="Replace output files that exist.")
@click.option("--dry-run", is_flag=True, help="List the points and compute nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON to stdout.")
@role_options
@reading_options
def command(data: str | None, project: str | None, dry_run: bool, as_json: bool, **settings: Any) -> None:
    """Compare mechanisms on DATA (or on the table that the project file describes) and recommend a release.

    Every mechanism proposes settings that suit the table; [compare.grid] of the project file names others. Each point
    is released, audited, attacked and cross-validated in a process of its own. Finished points are kept in the run
    folder, so that a run that was ended goes on where it was. Nothing of the data is written.

    Utility is the mean AUC of the classifiers, with mechanisms fitted on the training rows alone. Risk is the expected
    share of people who are re-identified by somebody who knows all quasi-identifiers. k=5 is asked for unless
    --guarantee says otherwise.

    \b
    Examples:
      sfumato compare
      sfumato compare admissions.csv --target readmitted --sensitive diagnosis -o compare.csv --plot frontier.svg
      sfumato compare --guarantee k=10 --weights 0.5,0.4,0.1
      sfumato compare --dry-run
    """
    from sfumato.cli.summary import show_guesses
    from sfumato.errors import InvalidParameterError
    from sfumato.evaluation.requested_guarantees import AskedGuarantee

    if data and project:
        raise InvalidParameterError("DATA and --project", "got both", allowed="given one at a time")
    asked = [AskedGuarantee.parse(text) for text in settings["guarantees"]]
    _check_outputs(settings)
    order = _from_flags(data, settings) if data else _from_project(Path(project or PROJECT_NAME), settings)
    show_guesses(order.guesses)
    grid = _grid(order, asked, settings)
    if dry_run:
        show_grid(grid, as_json=as_json)
        return
    found = _compared(order, grid, asked, settings)
    show_comparison(found, as_json=as_json)
    _write(found, settings)
    found.raise_if_nothing_meets()


def _from_flags(data: str, settings: dict[str, Any]) -> Order:
    from sfumato.table.io.read import read_table

    options, roles = read_options(settings), given_roles(settings)
    table, guesses = apply_roles(read_table(data, options=replace(options, mixed_as_text=True)), roles)
    return Order(table, guesses=tuple(guesses))


def _from_project(path: Path, settings: dict[str, Any]) -> Order:
    from sfumato.errors import InvalidParameterError
    from sfumato.project.file import load_project
    from sfumato.table.io.read import ReadOptions

    if given_roles(settings) or read_options(settings) != ReadOptions():
        hint = "edit the project file, or name the data file as the argument"
        raise InvalidParameterError("role and reading options", "got some", allowed="used with DATA only", hint=hint)
    project = load_project(path)
    return Order(project.read(), project.binarize, project.compare)


def _grid(order: Order, asked: Sequence[AskedGuarantee], settings: dict[str, Any]) -> Grid:
    from sfumato.evaluation.points import grid_for

    chosen = order.settings.get("grid")
    return grid_for(order.table, chosen, mechanisms=settings["mechanisms"], binarize=order.binarize, asked=asked)


def _measuring(order: Order, settings: dict[str, Any]) -> Measuring:
    from sfumato.evaluation.points import QUICK_CLASSIFIERS, Measuring

    named = settings["classifiers"]
    written = order.settings.get("classifiers", QUICK_CLASSIFIERS)
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
        allowed = "three numbers by commas: utility, privacy, size"
        raise InvalidParameterError("--weights", "got another text", allowed=allowed)
    return weights


def _compared(order: Order, grid: Grid, asked: Sequence[AskedGuarantee], settings: dict[str, Any]) -> Comparison:
    from sfumato.evaluation.compare import compare

    measuring, weights = _measuring(order, settings), _weights(order, settings)
    bar, progress = _points_bar()
    try:
        with bar:
            return compare(
                order.table,
                grid,
                measuring=measuring,
                weights=weights,
                asked=asked,
                run_folder=settings["run_folder"],
                fresh=settings["fresh"],
                workers=settings["workers"],
                timeout=settings["timeout"],
                progress=progress,
            )
    except KeyboardInterrupt:
        kept = f"finished points are kept in {settings['run_folder']}, and the same command goes on from there"
        click.echo(f"sfumato: interrupted; {kept}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


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
            raise InvalidParameterError("--output", "got another name", allowed=allowed)
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

    measured = (found.original["utility"] or {}).get("majority_accuracy")
    display = FrontierDisplay.from_points(
        found.frontier(),
        original_utility=found.original_utility,
        majority_utility=0.5 if found.utility_name == "AUC" else measured,
        utility_name=f"mean {found.utility_name}",
        risk_name="people expected to be re-identified (share)",
    )
    save(display, path, force=force)


# What ``sfumato compare`` shows: the points as a table in text, and the recommendation.


_HEADS = ("rank", "front", "mechanism", "settings", "promises", "utility", "risk", "columns", "rows", "seconds")
_ON_THE_RIGHT = ("rank", "utility", "risk", "columns", "rows", "seconds")
_WIDEST = 44


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
    """Show all points, best E(S) first, what went wrong, and which release is recommended."""
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    for line in _table([_cells(one, found) for one in found.by_rank if one.is_done] + [_original(found)]):
        click.echo(line)
    for one in found.by_rank:
        if not one.is_done:
            click.echo(on_one_line(f"{one.result['status']}: {one.point.label}: {one.result['reason']}"))
    if found.original["reason"]:
        click.echo(on_one_line(f"the original table was not measured: {found.original['reason']}"))
    _show_left_out(found.left_out)
    for note in found.notes():
        click.echo(f"note: {note}")
    click.echo(on_one_line(found.why()))


def _show_left_out(left_out: Mapping[str, str]) -> None:
    for name, why in left_out.items():
        click.echo(on_one_line(f"left out: {name}: {why}"))


def _cells(one: RankedPoint, found: Comparison) -> dict[str, str]:
    from sfumato.evaluation.comparison import short_guarantees

    result = one.result
    mark = ">" if one is found.recommended else ""
    return {
        "rank": f"{mark}{one.rank}",
        "front": "*" if one.on_front else "",
        "mechanism": one.point.mechanism,
        "settings": one.point.settings,
        "promises": ", ".join(short_guarantees(result["guarantees"])),
        "utility": f"{one.utility:.3f}",
        "risk": f"{one.risk:.4f}",
        "columns": f"{result['n_columns']:,}",
        "rows": f"{result['n_rows']:,}",
        "seconds": f"{result['seconds']:.1f}",
    }


def _original(found: Comparison) -> dict[str, str]:
    result = found.original
    known = {"utility": found.original_utility, "risk": found.original_risk}
    shown = {name: "-" if value is None else f"{value:.3f}" for name, value in known.items()}
    numbers = {"columns": result["n_columns"], "rows": result["n_rows"]}
    counts = {name: "-" if value is None else f"{value:,}" for name, value in numbers.items()}
    return dict.fromkeys(_HEADS, "") | {"mechanism": "(as it is)"} | shown | counts


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    widths = {head: min(max(len(head), *(len(row[head]) for row in rows)), _WIDEST) for head in _HEADS}
    for row in ({head: head for head in _HEADS}, *rows):
        cells = [_cell(row[head], widths[head], on_the_right=head in _ON_THE_RIGHT) for head in _HEADS]
        yield on_one_line("  ".join(cells)).rstrip()


def _cell(text: str, width: int, *, on_the_right: bool) -> str:
    short = text if len(text) <= width else text[: width - 1] + "…"
    return short.rjust(width) if on_the_right else short.ljust(width)
