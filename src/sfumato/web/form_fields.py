"""A field of a form, declared once: ``field`` in ``fields.html`` shows it, and the view reads it by its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One field: a text; with ``choices`` one of them, each with its words; or something to tick.

    Parameters
    ----------
    hint : str
        What to write into it, below it.
    default : str
        What it holds at first; of something to tick, empty is not ticked.
    placeholder : str
        Example that is shown in it while it is empty.
    """

    name: str
    title: str
    hint: str = ""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    is_check: bool = False
    placeholder: str = ""

    @property
    def is_typed(self) -> bool:
        """Whether people type what it holds, and may be told what is wrong with it."""
        return not self.choices and not self.is_check
