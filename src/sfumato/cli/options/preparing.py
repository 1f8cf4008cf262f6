"""``--prepare``: what is done to a column before any mechanism sees it, as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from sfumato.table.preparing.declared import Preparation

Function = TypeVar("Function", bound="Callable[..., Any]")
_FORM = "COLUMN=OPERATION[,OPERATION…] such as income=top:100000,round:1000"
_FLAGS = ("drop", "pseudonym", "mask")
_OF_MASK = ("keep_first", "keep_last", "character")


def prepare_option(function: Function) -> Function:
    """Add the option to a command whose table is released."""
    return click.option(
        "--prepare",
        "prepare",
        multiple=True,
        metavar="COLUMN=…",
        help="Prepare a column first: top:N, bottom:N, round:N, mask, keep_first:N, keep_last:N, pseudonym, "
        "shift_days:N, age_at:DATE or drop, with commas between. Repeat for several columns.",
    )(function)


def preparations_in(settings: dict[str, Any]) -> tuple[Preparation, ...]:
    """Take the preparations out of a command's settings.

    Raises
    ------
    InvalidParameterError
        If a text is no such list, or a column is named twice.
    SchemaError
        If it asks for what cannot be done.
    """
    from sfumato.errors import InvalidParameterError
    from sfumato.table.preparing.declared import preparations_of

    found: dict[str, dict[str, Any]] = {}
    for text in settings.pop("prepare", ()):
        column, equals, operations = text.partition("=")
        if not equals or not column.strip() or not operations:
            raise InvalidParameterError("--prepare", "got another text", allowed=_FORM)
        if column.strip() in found:
            raise InvalidParameterError("--prepare", "got a column twice", allowed="given once a column")
        found[column.strip()] = _operations(operations)
    return preparations_of(found)


def _operations(text: str) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for part in text.split(","):
        name, colon, value = part.strip().partition(":")
        if name in _OF_MASK:
            mask = written.get("mask")
            written["mask"] = {**(mask if isinstance(mask, dict) else {}), name: number_or_text(value)}
        elif name in _FLAGS and not colon:
            written.setdefault(name, {} if name == "mask" else True)
        else:
            written[name] = number_or_text(value)
    return written


def number_or_text(text: str) -> int | float | str:
    """Read a value of an option: a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
