"""Options that give something by name, as one text: ``COLUMN=FILE`` and ``NAME=VALUE``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def hierarchy_option(help_text: str) -> Callable[[Function], Function]:
    """Make the option that names hierarchy files by column."""
    return click.option("--hierarchy", "hierarchies", multiple=True, metavar="COLUMN=FILE", help=help_text)


def hierarchy_files(texts: Iterable[str]) -> dict[str, str]:
    """Read the hierarchy files of columns; of two for a column the last one counts.

    Examples
    --------
    >>> hierarchy_files(["age=age.csv", "home=a=b.csv"])
    {'age': 'age.csv', 'home': 'a=b.csv'}
    """
    return dict(halves(text, "--hierarchy", "COLUMN=FILE") for text in texts)


def halves(text: str, option: str, form: str, *, may_be_empty: bool = False) -> tuple[str, str]:
    """Cut a text at its first ``=``.

    Raises
    ------
    InvalidParameterError
        If there is none, nothing before it, or nothing behind it where that means nothing.
    """
    from sfumato.errors import InvalidParameterError

    name, equals, value = text.partition("=")
    if not equals or not name or not (value or may_be_empty):
        problem = "got nothing before or after '='" if equals else "got a text without '='"
        raise InvalidParameterError(option, problem, allowed=form)
    return name, value
