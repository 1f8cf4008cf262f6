"""The table of a soak, for the terminal and for SOAK.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.run import machine
from benchmarks.soak.outcome import Outcome

SOAK = Path(__file__).parents[1] / "SOAK.md"
_HEADER = """# Soak

Written by `make soak` (`python -m benchmarks.soak`). Every kind runs while two processes release in the background.
A finding is a traceback, an exit code 1, a partial output, a file left behind, a hang, or a release that a later audit
does not confirm. None is what is wanted. What earlier runs found is fixed and kept in small in
`tests/test_soak_findings.py`, `tests/unit/test_staging.py` and `tests/unit/test_private_folders.py`.
"""


def as_markdown(outcomes: Sequence[Outcome], minutes: float, command: str) -> str:
    """Say a soak as Markdown: where and when, the table, and the findings."""
    lines = [
        _HEADER,
        f"Command: `{command}`; it took {minutes:.1f} minutes. {machine()}",
        "",
        f"Versions: {versions()}.",
        "",
    ]
    lines += [f"Load of the machine at the end: {os.getloadavg()[0]:.1f}.", ""]
    lines += ["| kind | done | seconds | findings | figures |", "| --- | ---: | ---: | ---: | --- |"]
    lines += map(_row, outcomes)
    lines += ["", "## Findings", ""]
    return "\n".join([*lines, *(_findings(outcomes) or ["None."]), ""])


def with_rows(text: str, outcomes: Sequence[Outcome], command: str) -> str:
    """Give SOAK.md with the rows of some kinds that were run by themselves, each with its own command and date.

    Other rows stay; findings of these kinds replace theirs.
    """
    table, _, found = text.partition("\n## Findings\n")
    rows = table.rstrip().split("\n")
    listed = [line for line in found.strip().split("\n") if line != "None."]
    for outcome in outcomes:
        row = _row(outcome).removesuffix(" |") + f"; by itself: `{command}`, {machine()} |"
        places = [i for i, line in enumerate(rows) if line.startswith(f"| {outcome.kind} |")]
        if places:
            rows[places[0]] = row
        else:
            rows.append(row)
        listed = [line for line in listed if not line.startswith(f"- {outcome.kind}:")]
    listed += _findings(outcomes)
    return "\n".join([*rows, "", "## Findings", "", *(listed or ["None."]), ""])


def _row(outcome: Outcome) -> str:
    done = outcome.skipped or f"{outcome.n_done:,} {outcome.unit}"
    figures = "; ".join(f"{name}: {figure}" for name, figure in outcome.figures.items())
    found = sum(outcome.findings.values())
    return f"| {outcome.kind} | {done} | {outcome.seconds:.0f} | {found or '–'} | {figures} |"


def _findings(outcomes: Sequence[Outcome]) -> list[str]:
    return [f"- {o.kind}: {what} ({n}×)" for o in outcomes for what, n in o.findings.items()]


def versions() -> str:
    """Versions of what was soaked."""
    from sfumato.manifest import tool_versions

    listed = tool_versions() | {"Linux": platform.release()}
    return ", ".join(f"{name} {number}" for name, number in listed.items())


def as_table(outcomes: Sequence[Outcome]) -> str:
    """Say a soak in short lines, for a terminal."""
    lines = []
    for outcome in outcomes:
        found = sum(outcome.findings.values())
        done = outcome.skipped or f"{outcome.n_done:>7,} {outcome.unit:<9}"
        lines.append(f"{outcome.kind:<40} {done} {outcome.seconds:>5.0f} s  {found} findings")
        lines += [f"    {what} ({number}×)" for what, number in outcome.findings.items()]
    return "\n".join(lines)


def stamp() -> str:
    """Now, for names of folders."""
    return datetime.now(tz=UTC).strftime("%Y%m%d-%H%M%S")
