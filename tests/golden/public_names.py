"""A snapshot of what users and other packages rely on: public names, command line, mechanisms and exit codes."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
from typing import Any

import click

import sfumato
from sfumato import errors
from sfumato.cli.main import run
from sfumato.cli.main import sfumato as command_line


def public_names() -> dict[str, Any]:
    """Everything that has a name which a user may write down."""
    return {
        "python": {name: _parameters(getattr(sfumato, name)) for name in sfumato.__all__},
        "commands": _command(command_line),
        "mechanisms": _mechanisms(),
        "exit_codes": _exit_codes(),
    }


def _parameters(value: Any) -> list[str] | None:
    """Parameters of a public function or class with their defaults; annotations may change."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [str(one.replace(annotation=inspect.Parameter.empty)) for one in signature.parameters.values()]


def _command(command: click.Command) -> dict[str, Any]:
    """Words and options of a command, and of those below it."""
    context = click.Context(command)
    found: dict[str, Any] = {
        "help": command.help,
        "epilog": command.epilog,
        "parameters": [_option(one) for one in command.params],
    }
    if isinstance(command, click.Group):
        below = ((name, command.get_command(context, name)) for name in command.list_commands(context))
        found["commands"] = {name: _command(one) for name, one in below if one is not None}
    return found


def _option(option: click.Parameter) -> dict[str, Any]:
    # Whether a default was given at all is marked differently from one version of Click to the next.
    default = option.default if isinstance(option.default, bool | int | float | str) else None
    return {
        "names": [*option.opts, *option.secondary_opts],
        "default": default,
        "required": option.required,
        "multiple": option.multiple or option.nargs != 1,
        "help": getattr(option, "help", None),
    }


def _mechanisms() -> Any:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run(["mechanisms", "--json"])
    return json.loads(printed.getvalue())


def _exit_codes() -> dict[str, int]:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    known = {one.__name__: one.exit_code for one in classes if issubclass(one, errors.SfumatoError)}
    return dict(sorted(known.items())) | {"bug": errors.BUG, "confirmed except": errors.CONFIRMED_EXCEPT}
