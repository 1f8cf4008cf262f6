"""What ``sfumato compare`` shows: the points as a table in text, and the recommendation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import on_one_line

if TYPE_CHECKING:
    from sfumato.evaluation.comparison import Comparison
    from sfumato.evaluation.grid import Grid
    from sfumato.evaluation.ranking import RankedPoint

_HEADS = ("rank", "front", "mechanism", "settings", "promises", "utility", "risk", "columns", "rows", "seconds")
_ON_THE_RIGHT = ("rank", "utility", "risk", "columns", "rows", "seconds")
_WIDEST = 44


def show_grid(grid: Grid, *, as_json: bool) -> None:
    """List the points of a grid and the mechanisms that are left out."""
    from sfumato.evaluation.ranking import counted

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
