"""Entry point: finds the command, and turns every error into one line and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import traceback

import click

from sfumato.cli.flag_words import in_flag_words
from sfumato.cli.limited_memory import go_on_in_a_child
from sfumato.errors import BUG, SfumatoError, words_and_exit_code

COMMANDS = {
    "attack": "Play the attacker: who is re-identified, what is inferred, with which columns.",
    "audit": "Re-check a release against its manifest, or profile the risk of any table.",
    "collaborate": "Choose features with other parties, none of whom shows its rows.",
    "compare": "Try every mechanism on a table, show utility against risk, and recommend one release.",
    "demo": "Take a built-in hospital table from roles to an audited release.",
    "hierarchy": "Look at, build and check generalization hierarchies.",
    "init": "Describe a table in a project file, with guessed roles and the reasons.",
    "mechanisms": "List the mechanisms, what they promise and their parameters.",
    "plot": "Draw what a release's manifest has evidence for.",
    "release": "Make a release, audit it, and write it with its manifest.",
    "report": "Write a report of a release as one HTML file.",
    "reproduce": "Re-make a paper's tables from public data, beside ours.",
    "serve": "Open the page: all steps from a table to an audited release, in a local browser.",
}

EXIT_CODES = """\b
Exit codes: 0 fine, 1 a bug in sfumato, 2 wrong usage, 3 bad input or output path,
4 the guarantee cannot be met (nothing written), 5 the audit refuses the release,
6 a session of several parties ended early (no party publishes),
7 a Spark cluster cannot be used or was lost (nothing written),
8 the audit confirms the release except for what it could not check (see audit --accept)."""


class LazyGroup(click.Group):
    """Lists commands without importing them, so that --help is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command when it is really called."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"sfumato.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the one-line summaries from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sfumato", prog_name="sfumato")
@click.option("--debug", is_flag=True, help="Show the full traceback of an error (it may show data).")
@click.pass_context
def sfumato(ctx: click.Context, debug: bool) -> None:
    """Publish a labelled table that others can learn from, without disclosing the people in it.

    \b
    Examples:
      sfumato demo
      sfumato init admissions.csv --target readmitted
      sfumato release
      sfumato audit release.csv --manifest release.csv.manifest.json --original admissions.csv
    """
    ctx.obj = {"debug": debug}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    What was registered for the end is run, and then the process ends at once: threads of native libraries that are
    still waiting for work would now and then abort it (exit code 134) while the interpreter is taken down. Where memory
    is limited, the command runs in a child of this process.
    """
    go_on_in_a_child()
    code = run(sys.argv[1:] if arguments is None else arguments)
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code is the answer, and no traceback reaches the user unasked."""
    debug = "--debug" in arguments
    try:
        result = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)  # an Exit becomes its code
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _say("interrupted; no release was written", 130)
    except click.ClickException as exc:
        exc.show(sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        return _say("interrupted; no release was written", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # keeps the interpreter's last flush quiet
        return 0
    except Exception as exc:  # the last line of defence
        return _refused(exc, debug)


def _refused(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    words, code = words_and_exit_code(error, in_flag_words)
    is_bug = code == BUG and not isinstance(error, SfumatoError)
    return _say(f"{words}. Run with --debug to see more" if is_bug else f"error: {words}", code)


def _say(message: str, code: int) -> int:
    click.echo(f"sfumato: {message}", err=True)
    return code
