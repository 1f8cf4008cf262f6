"""What commands say on stderr besides errors: nothing but warnings with ``--quiet``, and progress as lines of a log."""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from sfumato.errors import on_one_line

Function = TypeVar("Function", bound=Callable[..., Any])

_FEWEST_SECONDS = 10.0
_MOST_SECONDS = 60.0
_TENTH = 10
_warned_on: ContextVar[IO[str] | None] = ContextVar("warned_on", default=None)


def quiet_option(function: Function) -> Function:
    """Add ``--quiet``, under which a command says nothing on stderr but errors and warnings."""

    @functools.wraps(function)
    def said(*arguments: Any, quiet: bool = False, **settings: Any) -> Any:
        # Not while options are parsed: an error in another option would then be silenced, too.
        with _only_warnings() if quiet else nullcontext():
            return function(*arguments, **settings)

    help_text = "Print nothing on stderr but errors and warnings."
    return click.option("--quiet", is_flag=True, help=help_text)(said)  # type: ignore[return-value]  # same signature


@contextmanager
def _only_warnings() -> Iterator[None]:
    """Let go to stderr only what is given to :func:`warn`, and warnings of Python."""
    shown = sys.stderr
    token = _warned_on.set(shown)
    try:
        with (
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            redirect_stderr(nowhere),
            warnings.catch_warnings(),
        ):
            show = warnings.showwarning
            warnings.showwarning = lambda message, category, filename, lineno, file=None, line=None: show(
                message, category, filename, lineno, file or shown, line
            )
            yield
    finally:
        _warned_on.reset(token)


def warn(text: str, **style: Any) -> None:
    """Print a line that ``--quiet`` does not silence."""
    shown = _warned_on.get()
    click.secho(text, file=shown, err=shown is None, **style)


class LogLines:
    """Progress where there is no terminal: a line now and then, with what is being done and how far it is.

    No line comes in the first ten seconds or within ten seconds of another one. After that one comes with every tenth
    of the work, and once a minute.

    Parameters
    ----------
    clock : callable
        Gives seconds.
    say : callable
        Takes a line.

    Examples
    --------
    >>> seconds = iter([0, 9, 11, 15, 25])
    >>> lines = LogLines(clock=lambda: next(seconds), say=print)
    >>> for done in (1, 2, 3, 4):
    ...     lines(done, 10, "searching")
    [0:11] searching: 20 %
    [0:25] searching: 40 %
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, say: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._say = say or functools.partial(click.echo, err=True)
        self._began = self._last = clock()
        self._percent = -_TENTH

    def __call__(self, done: int, total: int, what: str) -> None:
        """Say how far the work is, if it is time to."""
        now = self._clock()
        since = now - self._last
        percent = min(100 * done // total, 100) if total > 0 else 0
        if since < _FEWEST_SECONDS or (since < _MOST_SECONDS and 0 <= percent - self._percent < _TENTH):
            return
        minutes, seconds = divmod(int(now - self._began), 60)
        far = f": {percent} %" if total > 0 else ""
        self._say(on_one_line(f"[{minutes}:{seconds:02}] {what}{far}"))
        self._last, self._percent = now, percent
