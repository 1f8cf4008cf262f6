"""``sfumato reproduce``: a paper's tables next to ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

CHECKOUT = Path(__file__).resolve().parents[4]


@click.command("reproduce")
@click.argument("paper", required=False)
@click.option("--only", multiple=True, metavar="TEXT", help="Only jobs whose name contains this; repeat for several.")
@click.option("--quick", is_flag=True, help="Only a few figures, in less than two minutes.")
@click.option("--list", "only_list", is_flag=True, help="List the jobs and run nothing.")
@click.option("-o", "--output", help="Write the tables here. Default: standard output.")
@click.option("--force", is_flag=True, help="Replace an output file that exists.")
@click.option("--update", is_flag=True, help="Rewrite RESULTS.md, figures.csv and the scoreboard of the checkout.")
@click.option("--fresh", is_flag=True, help="Run all jobs again, also those that an earlier run finished.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at once.")
def command(
    paper: str | None,
    only: tuple[str, ...],
    quick: bool,
    only_list: bool,
    output: str | None,
    force: bool,
    update: bool,
    fresh: bool,
    workers: int,
) -> None:
    """Recompute a PAPER's tables from public data and print them next to the paper's.

    Works in a checkout of the project, with the data sets in the folder named by SFUMATO_DATA (or ../shared/data).
    Without PAPER, list all papers. Finished jobs are kept: a run that was stopped continues where it was. With --only
    or --quick the printed figures that these jobs give are compared with the paper's and with the last whole run.

    \b
    Examples:
      sfumato reproduce
      sfumato reproduce gain --quick
      sfumato reproduce containment --only hamdist -o hamdist.md
      sfumato reproduce tree --update
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
    flags = {"--quick": quick, "--list": only_list, "--force": force, "--update": update, "--fresh": fresh}
    arguments = [flag for flag, is_given in flags.items() if is_given] + [f"--workers={workers}"]
    arguments += [f"--only={text}" for text in only] + ([f"--output={Path(output).resolve()}"] if output else [])
    code = _run(f"reproductions.{paper}.run", arguments)
    if code:
        raise click.exceptions.Exit(code)


def _run(module: str, arguments: list[str]) -> int:
    """Run a module in a group of its own, which does not hear Ctrl-C but ends with this process's part."""
    from sfumato.processes import kill_group

    process = subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=CHECKOUT, start_new_session=True)
    try:
        return process.wait()
    finally:
        kill_group(process.pid)
        process.wait()
