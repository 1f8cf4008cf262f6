"""Finds the command, and turns every error into one line and an exit code; :mod:`sfumato.__main__` starts it."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

import click

from sfumato.errors import BUG, INTERRUPTED, InvalidParameterError, SfumatoError, words_and_exit_code

# How the command line says an error: the options by which what the hint speaks of is given.


FLAGS = {
    "audit_key": "sfumato audit-key",
    "bins": "--bins COLUMN=10,20,30",
    "confirmed": "--identifiers or --confirm; in the project file confirmed = true",
    "delimiter": "--delimiter",
    "describe": "sfumato init --update",
    "encoding": "--encoding",
    "entries": "-p {name}.NAME=VALUE",
    "force": "--force",
    "format": "--format",
    "guarantee": "--guarantee NAME=VALUE",
    "header": "--no-header",
    "host": "--host",
    "hierarchies": "'sfumato hierarchy check' counts them, 'sfumato hierarchy build' makes one",
    "hierarchy_encoding": "to look at it first, 'sfumato hierarchy show' has --encoding",
    "forget": "sfumato ledger forget",
    "from_project": "sfumato init DATA --from PROJECT -o NEW.toml",
    "identifiers": "--identifiers",
    "init": "sfumato init DATA",
    "ledger": "to release without it: --ledger off",
    "ledger_same_levels": "--ledger same-levels",
    "max_copies": "--max-copies SHARE",
    "mechanism": "-m; 'sfumato mechanisms' lists them",
    "memory": "--memory",
    "n_folds": "--folds",
    "no_l": "--no-l asks for k alone",
    "one_row_per_person": "--one-row-per-person first",
    "original": "--original FILE, --project FILE or --release FILE",
    "output": "-o",
    "person": "--person",
    "port": "--port",
    "party_files": "sfumato collaborate keys",
    "parameters": "-p NAME=VALUE",
    "population_table": "--population-table",
    "quasi_identifiers": "--quasi-identifiers",
    "roles": "--identifiers, --sensitive, --other",
    "root": "--root",
    "query": "--query",
    "run_folder": "--run-folder",
    "shared_schema": "sfumato collaborate schema",
    "sheet": "--sheet",
    "skip_rows": "--skip-rows",
    "table": "--table or --query",
    "target": '--target COLUMN, or role = "target" in the project file',
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
    "token": "--token, such as the output of openssl rand -base64 32",
    "timeout": "--timeout",
    "unknown_values": "--unknown generalize",
    "update": "sfumato init --update",
    "value": "-p {name}=VALUE",
}
"""By the name that a parameter has in Python, see :class:`sfumato.errors.SfumatoError`.

``{name}`` stands for the parameter that the error is about.
"""

_OWN_NAMES = {
    "allowed_hosts": "--allow-host",
    "also": "--also",
    "attacker_knows": "--attacker-knows",
    "complete_rows_only": "--drop-incomplete",
    "one_row_per_person": "--one-row-per-person",
    "guarantee": "--guarantee",
    "host": "--host",
    "kind": "--kind",
    "memory": "--memory",
    "port": "--port",
    "query": "--query",
    "query and table": "--query and --table",
    "table": "--table",
    "tls_cert": "--tls-cert",
    "token": "--token",
    "upload_limit": "--upload-limit",
}
"""Parameters that are known by their option."""


def in_flag_words(error: SfumatoError) -> str:
    """Say an error, and after its hint the options that it is about.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> in_flag_words(InputError("is not utf-8 text", path="a.csv", hint="name its encoding", remedy=("encoding",)))
    'a.csv: is not utf-8 text. Hint: name its encoding (--encoding)'
    """
    text = str(error)
    if isinstance(error, InvalidParameterError) and error.name in _OWN_NAMES:
        text = _OWN_NAMES[error.name] + text.removeprefix(error.name)
    flags = [FLAGS[name] for name in dict.fromkeys(error.remedy) if name in FLAGS]
    if isinstance(error, InvalidParameterError):
        flags = [flag.replace("{name}", error.name) for flag in flags]
    return f"{text} ({', '.join(flags)})" if error.hint and flags else text


_MAKING = {
    "collaborate": "Choose features with other parties; no party shows its rows.",
    "compare": "Try every mechanism on a table, show utility against risk, and recommend one release.",
    "demo": "Take a built-in hospital table from roles to an audited release.",
    "hierarchy": "Look at, build and check generalization hierarchies.",
    "init": "Describe a table in a project file, with guessed roles and the reasons.",
    "ledger": "Look at what a project has released, add an earlier release, or forget one.",
    "mechanisms": "List the mechanisms, what they promise and their parameters.",
    "release": "Make a release, audit it, and write it with its manifest.",
    "reproduce": "Recompute a paper's tables from public data, next to the printed ones.",
    "serve": "Open the page: all steps from a table to an audited release, in a local browser.",
}
_AFTERWARDS = {
    "apply": "Bring new rows, such as a test set, into the form of a release.",
    "attack": "Play the attacker: who is re-identified, what is inferred, with which columns.",
    "audit": "Re-check a release against its manifest, or profile the risk of any table.",
    "audit-key": "Write the key of one release, for its auditor.",
    "metadata": "Describe a release for catalogues and people: Croissant, DCAT-AP, a data dictionary.",
    "plot": "Draw the evidence in a release's manifest.",
    "report": "Write a report of a release as one HTML file.",
    "sign": "Sign a manifest, so that recipients can see whose release it is.",
}
COMMANDS = dict(sorted({**_MAKING, **_AFTERWARDS}.items()))

EXIT_CODES = """\b
Exit codes: 0 fine, 1 a bug in sfumato, 2 wrong usage, 3 bad input or output path,
4 the guarantee cannot be met (nothing written), 5 the audit refuses the release,
6 a session of several parties ended early (this party publishes nothing; nor do the others,
unless it says that they may have),
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
        folder = "making" if name in _MAKING else "afterwards"
        command: click.Command = importlib.import_module(f"sfumato.cli.{folder}.{name.replace('-', '_')}").command
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


def run(arguments: list[str]) -> int:
    """Run the command line; the exit code is the answer, and no traceback reaches the user unasked."""
    debug = "--debug" in arguments
    try:
        result = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)  # an Exit becomes its code
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("interrupted", INTERRUPTED)
    except click.ClickException as exc:
        exc.show(sys.stderr)
        return exc.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # keeps the interpreter's last flush quiet
        return 0
    except Exception as exc:  # the last line of defence
        if _is_interruption(exc):
            return _say("interrupted", INTERRUPTED)
        return _refused(exc, debug)


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error; DuckDB raises one of its own instead, by which alone it can be told."""
    seen: set[int] = set()  # errors of several threads may be behind each other in a circle
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted":
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _refused(error: Exception, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    words, code = words_and_exit_code(error, in_flag_words)
    is_bug = code == BUG and not isinstance(error, SfumatoError)
    return _say(f"{words}. Run with --debug to see more" if is_bug else f"error: {words}", code)


def _say(message: str, code: int) -> int:
    click.echo(f"sfumato: {message}", err=True)
    return code


__all__ = ["COMMANDS", "run", "sfumato"]
