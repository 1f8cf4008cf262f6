"""What people read after a command: a release, an audit, a risk profile, in a few plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sfumato.audit.verify import AuditReport
    from sfumato.contract import Release
    from sfumato.table.describe import ColumnGuess

GUESSES_SHOWN = 40


def show_guesses(guesses: Sequence[ColumnGuess]) -> None:
    """Say which roles were guessed and why, or only how many when there are many."""
    if len(guesses) > GUESSES_SHOWN:
        click.echo(f"guessed the roles of {len(guesses):,} columns; 'sfumato init' writes them down", err=True)
        return
    for guess in guesses:
        click.echo(f"guessed '{guess.column.name}' = {guess.column.role}: {guess.reason}", err=True)


def show_release(release: Release) -> None:
    """Say what was promised and found, the utility kept and the risk left."""
    manifest = release.manifest
    for entry in manifest.guarantees:
        click.echo(f"promised and audited: {entry['statement']} (found: {_number(entry['audited'])})", err=True)
    for heading, values in manifest.evidence.items():
        click.echo(f"{heading}:", err=True)
        for name, value in values.items():
            click.echo(f"  {name.replace('_', ' '):<46} {_number(value)}", err=True)
    if manifest.missing["n_dropped"]:
        click.echo(f"rows left out for missing values: {manifest.missing['n_dropped']:,}", err=True)
    click.echo(_not_promised(manifest.evidence.get("risk", {})), err=True)


def _not_promised(risk: Mapping[str, Any]) -> str:
    if "unique_pattern_fraction" not in risk:
        return ""
    unique, k = risk["unique_pattern_fraction"], risk["anonymity_level"]
    return (
        f"not promised: anything about zeros. {unique:.2%} of the rows have a 0/1 pattern that no other row has; the "
        f"ordinary k is {k}."
    )


def show_checks(report: AuditReport) -> None:
    """List every check with its verdict."""
    for check in report.checks:
        click.echo(f"{'ok  ' if check.passed else 'FAIL'} {check.message}")
    verdict = "confirmed" if report.passed else "NOT confirmed"
    click.echo(f"{verdict}: {sum(c.passed for c in report.checks)} of {len(report.checks)} checks hold")


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
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
