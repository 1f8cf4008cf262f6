"""What went wrong in a task, as far as people may read it."""

from __future__ import annotations

from typing import Any

from sfumato.errors import BUG, words_and_exit_code
from sfumato.web.page_words import error_in_page_words, in_page_words

_HINT = " Hint: "


class TaskError(Exception):
    """A task did not give a result.

    Parameters
    ----------
    message : str
        For people; never a cell value. A hint at its end is split off.
    hint : str
        What to do about it.
    exit_code : int
        What the command line would return.
    kind : str
        Name of the error's class.
    field : str
        Parameter or column that it is about, where that is known.

    Examples
    --------
    >>> error = TaskError("k must be at least 2, got 1. Hint: take 5", kind="InvalidParameterError")
    >>> error.message, error.hint
    ('k must be at least 2, got 1.', 'take 5')
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = BUG, kind: str = "", field: str = "") -> None:
        if not hint:
            message, _, hint = message.partition(_HINT)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.kind = kind
        self.field = field
        super().__init__(message + (_HINT + hint if hint else ""))

    @classmethod
    def of(cls, error: BaseException) -> TaskError:
        """Take from an error what may leave the process."""
        if isinstance(error, TaskError):
            return error
        words, exit_code = words_and_exit_code(error, error_in_page_words)
        is_told = exit_code != BUG
        field = (getattr(error, "name", None) or getattr(error, "column", None)) if is_told else None
        known = field if isinstance(field, str) else ""
        return cls(in_page_words(words), exit_code=exit_code, kind=type(error).__name__, field=known)

    def facts(self) -> dict[str, Any]:
        """Give what ``TaskError(**facts)`` is made of."""
        names = ("message", "hint", "exit_code", "kind", "field")
        return {name: getattr(self, name) for name in names}
