"""Everything sfumato raises on purpose.

::

    SfumatoError
    ├── InvalidParameterError (ValueError)     .name .allowed            exit 2
    ├── InputError (ValueError)                .path .line .column       exit 3
    │   └── DataChangedError                   .path                     exit 3
    ├── OutputError (OSError)                  .path                     exit 3
    ├── SchemaError (ValueError)               .column .entry            exit 3
    │   ├── ColumnNotFoundError (KeyError)     .column .suggestion       exit 3
    │   └── NotBinaryError                     .column                   exit 3
    ├── ManifestError (ValueError)             .path                     exit 3
    │   └── ManifestRefusedError               .path                     exit 3, 5 in an audit
    ├── PrivacyNotAchievableError              .guarantee .best_level    exit 4
    ├── AuditFailedError                       .findings                 exit 5
    ├── CollaborationError                     .party .stage             exit 6
    └── ClusterError                           .master                   exit 7

A message says what, where, and what to do. It may show column names, parameters and counts, never a cell value.
What to do is the ``hint``; it names no option of the command line and no field of the page. Which parameters it is
about stands in ``remedy``, and whoever shows the error says how they are given there.
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

BUG = 1  # exit code of what sfumato does not raise on purpose
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended, as shells have it
CONFIRMED_EXCEPT = 8  # exit code of an audit that confirms a release except for what it could not check


def on_one_line(name: str) -> str:
    """Show a name without line ends and control characters, which a file's header may hold."""
    return "".join(character if character.isprintable() else " " for character in name)


_HINT = " Hint: "


class SfumatoError(Exception):
    """Base of all deliberate errors; ``exit_code`` is what the command line returns for it.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    hint : str
        What to do about it.
    remedy : tuple of str
        Names of the parameters that the hint speaks of, as they are called in Python.

    Attributes
    ----------
    path : str or None
        File that the message begins with, if it is about one.

    Examples
    --------
    >>> error = InputError("is not utf-8 text", path="people.csv", hint="name its encoding", remedy=("encoding",))
    >>> str(error)
    'people.csv: is not utf-8 text. Hint: name its encoding'
    >>> error.hint, error.remedy
    ('name its encoding', ('encoding',))
    """

    exit_code: ClassVar[int] = 1
    hint: str = ""
    remedy: tuple[str, ...] = ()
    path: str | None = None

    def __init__(self, message: str = "", *, hint: str = "", remedy: tuple[str, ...] = ()) -> None:
        self.hint = hint
        self.remedy = remedy
        super().__init__(message + (_HINT + hint if hint else ""))

    @property
    def message(self) -> str:
        """What is wrong, without the hint."""
        text = str(self)
        return text.removesuffix(_HINT + self.hint) if self.hint else text


class InvalidParameterError(SfumatoError, ValueError):
    """A parameter is outside what the callee allows."""

    exit_code = 2

    def __init__(self, name: str, problem: str, *, allowed: str, hint: str = "", remedy: tuple[str, ...] = ()) -> None:
        self.name = name
        self.allowed = allowed
        super().__init__(f"{name} must be {allowed}, {problem}.", hint=hint, remedy=remedy)


class InputError(SfumatoError, ValueError):
    """A file or object cannot be read as a table."""

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: str | None = None,
        hint: str = "",
        remedy: tuple[str, ...] = (),
    ) -> None:
        self.problem = problem
        self.path = str(path) if path is not None else None
        self.line = line
        self.column = column
        where = [str(path)] if path is not None else []
        if line is not None:
            where.append(f"line {line:,}")
        if column is not None:
            where.append(f"column '{on_one_line(column)}'")
        place = ", ".join(where) + ": " if where else ""
        super().__init__(place + problem + ".", hint=hint, remedy=remedy)


class DataChangedError(InputError):
    """A data file is not the one that a project file describes: its SHA-256 differs."""


class OutputError(SfumatoError, OSError):
    """A result cannot be written; nothing was left behind."""

    exit_code = 3
    path: str

    def __init__(self, problem: str, *, path: str | Path, hint: str = "", remedy: tuple[str, ...] = ()) -> None:
        self.path = str(path)
        super().__init__(f"{path}: {problem}.", hint=hint, remedy=remedy)


class SchemaError(SfumatoError, ValueError):
    """The description of a table contradicts itself or the table.

    ``entry`` names the part of the column's description that is wrong, such as ``top``, where that is known.
    """

    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        column: str | None = None,
        entry: str | None = None,
        hint: str = "",
        remedy: tuple[str, ...] = (),
    ) -> None:
        self.column = column
        self.entry = entry
        place = f"column '{on_one_line(column)}': " if column is not None else ""
        super().__init__(place + problem + ".", hint=hint, remedy=remedy)


class ColumnNotFoundError(SchemaError, KeyError):
    """A named column does not exist; suggests the nearest one that does."""

    def __init__(self, column: str, available: Iterable[str], *, where: str = "the table") -> None:
        names = list(available)
        nearest = difflib.get_close_matches(column, names, n=1)
        self.suggestion = nearest[0] if nearest else None
        hint = f"did you mean '{on_one_line(nearest[0])}'?" if nearest else f"it has {len(names):,} columns"
        super().__init__(f"not found in {where}", column=column, hint=hint)

    __str__ = Exception.__str__  # KeyError would show the repr


class NotBinaryError(SchemaError):
    """A column that must hold only 0 and 1 holds something else."""


class ManifestError(SfumatoError, ValueError):
    """A manifest cannot be read or is not one of ours."""

    exit_code = 3

    def __init__(
        self, problem: str, *, path: str | Path | None = None, hint: str = "", remedy: tuple[str, ...] = ()
    ) -> None:
        self.path = str(path) if path is not None else None
        place = f"{path}: " if path is not None else ""
        super().__init__(place + problem + ".", hint=hint, remedy=remedy)


class ManifestRefusedError(ManifestError):
    """A manifest of a known version breaks the rules of that version; an audit refuses the release."""


class PrivacyNotAchievableError(SfumatoError):
    """A guarantee cannot be met; carries the best level that can. Nothing is released."""

    exit_code = 4

    def __init__(
        self,
        guarantee: str,
        *,
        best_level: float | None,
        hint: str = "",
        problem: str = "cannot be met:",
        remedy: tuple[str, ...] = (),
    ) -> None:
        self.guarantee = guarantee
        self.best_level = best_level
        reached = f"; the best level reached is {best_level:g}" if best_level is not None else ""
        super().__init__(f"{problem} {guarantee}{reached}. Nothing was released.", hint=hint, remedy=remedy)


class AuditFailedError(SfumatoError):
    """The independent audit does not confirm a release. Nothing is published."""

    exit_code = 5

    def __init__(self, findings: Sequence[str]) -> None:
        self.findings = tuple(findings)
        super().__init__("the audit does not confirm this release: " + "; ".join(findings))


class CollaborationError(SfumatoError):
    """A session of several parties ended early. This party releases nothing.

    Nor does any other, unless ``may_be_published``: then the session broke off during its very last messages.
    ``line`` names two parties where neither gets what the other sends, and neither of them need be at fault.
    """

    exit_code = 6

    def __init__(
        self,
        problem: str,
        *,
        party: str,
        stage: str,
        hint: str = "",
        remedy: tuple[str, ...] = (),
        line: tuple[str, str] | None = None,
        may_be_published: bool = False,
    ) -> None:
        self.problem = problem
        self.party = party
        self.stage = stage
        self.line = line
        self.may_be_published = may_be_published
        named = " and ".join(f"'{on_one_line(name)}'" for name in line or (party,))
        end = "The others may have published; this party did not." if may_be_published else "Nothing was released."
        message = f"{'parties' if line else 'party'} {named}, stage '{on_one_line(stage)}': {problem}. {end}"
        super().__init__(message, hint=hint, remedy=remedy)


class ClusterError(SfumatoError):
    """A Spark cluster cannot be used, or was lost on the way. Nothing is published."""

    exit_code = 7

    def __init__(
        self, problem: str, *, master: str | None = None, hint: str = "", remedy: tuple[str, ...] = ()
    ) -> None:
        self.problem = problem
        self.master = master
        place = f"{on_one_line(master)}: " if master else ""
        super().__init__(place + problem + ".", hint=hint, remedy=remedy)


def words_and_exit_code(error: BaseException, own_words: Callable[[SfumatoError], str] = str) -> tuple[str, int]:
    """Say what people may read of any error, and what the command line returns for it.

    The text of an unknown error may quote a cell, so its place in the program is told instead.

    Parameters
    ----------
    own_words : callable
        How the place that shows it says a deliberate error, such as the command line by its options.

    Examples
    --------
    >>> try:
    ...     int("a cell")
    ... except ValueError as error:
    ...     words_and_exit_code(error)
    ('this is a bug in sfumato (ValueError in <doctest sfumato.errors.words_and_exit_code[0]>:2)', 1)
    """
    if isinstance(error, SfumatoError):
        return own_words(error), error.exit_code
    if isinstance(error, OSError):
        return f"reading or writing failed ({error.strerror or type(error).__name__})", 3
    if isinstance(error, MemoryError) or _is_refused_memory(error):
        return "not enough memory for this table", 3
    return bug_in_words(error), BUG


def bug_in_words(error: BaseException) -> str:
    """Say where an unexpected error arose, without its own text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"this is a bug in sfumato ({type(error).__name__}{place})"


def _is_refused_memory(error: BaseException) -> bool:
    """Whether memory was refused to the database, to a library that is loaded, or for the stack of a thread."""
    is_database = type(error).__name__ == "OutOfMemoryException"
    is_loading = isinstance(error, ImportError) and "failed to map segment" in str(error)
    return is_database or is_loading or (isinstance(error, RuntimeError) and str(error) == "can't start new thread")
