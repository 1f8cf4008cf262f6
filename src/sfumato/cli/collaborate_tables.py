"""What people read of a session: rounds, the scores of the features (Table I) and gains (Table II)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sfumato.errors import on_one_line

_FEWEST = 3

if TYPE_CHECKING:
    from sfumato.collaboration.party import Selection
    from sfumato.collaboration.simulation import SimulationResult


def round_line(number: int, stage: str, n_bytes: int, seconds: float) -> str:
    """One line for a round that is over.

    Examples
    --------
    >>> round_line(4, "counts/64/seeds-sum", 15334, 0.172)
    'round   4  counts/64/seeds-sum                    15,334 bytes sent so far    0.172 s'
    """
    return f"round {number:>3}  {stage:<32} {n_bytes:>12,} bytes sent so far  {seconds:7.3f} s"


def say_trust(mode: str, n_parties: int) -> None:
    """Say what the protocol protects against and what not: mode of a session, or "schema"."""
    others, few = n_parties - 1, (n_parties - 1) // 2
    pooling = "" if n_parties == _FEWEST else f", also if {n_parties - 2} of the {others} others pool all they see"
    if mode == "selection-only":
        protects = f"all counts stay hidden from any {_parties(few)} that keep to the protocol"
        not_covered = (
            f"{_parties(few + 1)} that pool all they see learn everything; a party that sends wrong numbers, "
            "even after it has seen the others', can change the result unnoticed"
        )
    else:
        what = "who holds a value stays" if mode == "schema" else "your counts stay"
        protects = f"{what} hidden from parties that keep to the protocol{pooling}"
        false = "claims values that it does not hold" if mode == "schema" else "puts in false numbers"
        known = "which values you hold" if mode == "schema" else "your counts"
        not_covered = (
            f"a party that {false} is not noticed; one can stop when it has learned a total; "
            f"all {others} others together can work out {known}"
        )
    click.echo(f"semi-honest protocol: {protects}", err=True)
    click.echo(f"not protected against: {not_covered}", err=True)


def _parties(n: int) -> str:
    return "one party" if n == 1 else f"{n} parties"


def show_scores(scores: Sequence[Mapping[str, Any]], removed: Sequence[str]) -> None:
    """Print Table I: every feature's utility, privacy and trade-off, and as which it was removed."""
    order = {name: place for place, name in enumerate(removed, start=1)}
    if not scores:
        click.echo(f"removed, in this order: {', '.join(map(on_one_line, removed))}", err=True)
        click.echo("scores: not opened in this mode", err=True)
        return
    width = max(7, *(len(on_one_line(score["name"])) for score in scores))
    click.echo("scores of the features over all rows of all parties (Table I)", err=True)
    click.echo(f"{'feature':<{width}} utility privacy average trade-off removed", err=True)
    for score in scores:
        average = score["privacy_average"]
        shown = f"{average:7.4f}" if average is not None else f"{'-':>7}"
        click.echo(
            f"{on_one_line(score['name']):<{width}} {score['utility']:7.4f} {score['privacy_pooled']:7.4f} {shown} "
            f"{score['tradeoff']:9.4f} {order.get(score['name'], ''):>7}",
            err=True,
        )


def show_own_gains(selection: Selection) -> None:
    """Print this party's gain after each removal."""
    click.echo("privacy gain of this party after each removal; no other party learns it", err=True)
    for name, gain in zip(selection.removed, selection.own_gains, strict=True):
        click.echo(f"  {gain:.4f}  without {on_one_line(name)}", err=True)


def show_simulation(found: SimulationResult, min_privacy_gain: float) -> None:
    """Print both tables of the paper."""
    show_scores(found.scores, found.removed)
    click.echo("privacy gain after each removal (Table II); a party sees its own line only", err=True)
    width = max(len(name) for name in (*found.gains, "all rows"))
    for name, gains in (*found.gains.items(), ("all rows", found.whole_table_gains)):
        n_rows = found.n_rows.get(name, sum(found.n_rows.values()))
        click.echo(f"{name:<{width}} {n_rows:>9,} rows  {_gains(gains)}", err=True)
    click.echo(f"every party gains at least {min_privacy_gain:g} without {len(found.removed)} features", err=True)
    written = [result["table"] for result in found.parties.values() if result["table"]]
    said = f"wrote {len(written)} releases and their manifests" if written else "dry run: no release was kept"
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
    click.echo(f"{said}; {found.cpu_seconds:.2f} s of processor time in all parties", err=True)


def _gains(gains: Iterable[float]) -> str:
    return " ".join(f"{gain:.4f}" for gain in gains)
