"""``sfumato reproduce``: a paper's tables next to ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

CHECKOUT = Path(__file__).resolve().parents[3]


@click.command("reproduce")
@click.argument("paper", required=False)
def command(paper: str | None) -> None:
    """Recompute a PAPER's tables from public data; write both into reproductions/PAPER/RESULTS.md.

    Works in a checkout of the project, with the data sets in the folder named by SFUMATO_DATA (or ../shared/data).
    Without PAPER, list all papers.

    \b
    Examples:
      sfumato reproduce
      sfumato reproduce containment
    """
    from sfumato.errors import InputError, InvalidParameterError

    folder = CHECKOUT / "reproductions"
    known = sorted(path.parent.name for path in folder.glob("*/run.py"))
    if not known:
        problem = "there are no reproductions here"
        raise InputError(problem, path=folder, hint="they come with a checkout of the project, not with the package")
    if paper is None:
        click.echo("\n".join(known))
        return
    if paper not in known:
        raise InvalidParameterError("PAPER", f"got '{paper}'", allowed=f"one of {', '.join(known)}")
    code = _run(f"reproductions.{paper}.run")
    if code:
        raise click.exceptions.Exit(code)


def _run(module: str) -> int:
    """Run a module in a group of its own, which does not hear Ctrl-C but ends with this process's part."""
    from sfumato.processes import kill_group

    process = subprocess.Popen([sys.executable, "-m", module], cwd=CHECKOUT, start_new_session=True)
    try:
        return process.wait()
    finally:
        kill_group(process.pid)
        process.wait()
