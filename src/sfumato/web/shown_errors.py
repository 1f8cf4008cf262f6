"""How the page says an error: its fields and steps for the hint, and files by the names that the user gave them.

The command line has a table of its own for the same ``remedy`` names, see :data:`sfumato.cli.main.FLAGS`.
"""

from __future__ import annotations

from pathlib import Path

from sfumato.errors import InvalidParameterError, SfumatoError

FIELDS = {
    "delimiter": "Delimiter",
    "encoding": "Encoding",
    "format": "Format",
    "header": "The first line is data",
    "sheet": "Sheet",
    "skip_rows": "Rows above the header",
}
"""Fields of the step Open by the parameters that errors name, see :class:`sfumato.errors.SfumatoError`."""
HINTS = {
    "confirmed": "open the column on the step Columns: give it the role identifier, or confirm that it names nobody",
    "describe": "describe it in the project file, or open the data on the step Open with a new project file",
    "force": "move it elsewhere, or name another output",
    "init": "open the data file on the step Open, with a project file that does not exist yet",
    "max_copies": "raise k, leave columns out, let cells hold typical values, or write a larger max_copies under "
    "[release] in the project file",
    "one_row_per_person": 'take a mechanism that counts persons, or write one_row_per_person = "first" under [data] '
    "in the project file",
    "output": 'name another output under [release] in the project file, such as output = "release.csv"',
    "run_folder": "rename it, or move it elsewhere",
    "target": "choose it on the step Columns",
    "update": "use the changed file if the change is intended",
}
"""Whole hints by the parameters that errors name, where the page has another way."""
_OWN_NAMES = {"output": "output in the project file, under [release],"}
"""Parameters that the page has no field for."""


def shown_message(error: SfumatoError, private: Path | None = None) -> str:
    """Say what is wrong. A file in the server's private folder is called by its name.

    Parameters
    ----------
    private : Path or None
        The server's private folder.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> shown_message(InputError("is empty", path="/tmp/page-1/data/0f/people.csv"), Path("/tmp/page-1"))
    'people.csv: is empty.'
    """
    if isinstance(error, InvalidParameterError) and error.name in _OWN_NAMES:
        return _OWN_NAMES[error.name] + error.message.removeprefix(error.name)
    if error.path is not None and private is not None and _is_in(private, Path(error.path)):
        return Path(error.path).name + error.message.removeprefix(error.path)
    return error.message


def shown_hint(error: SfumatoError) -> str:
    """Say what to do about it by the fields and steps of the page.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> shown_hint(InputError("holds 2 sheets", path="a.xlsx", hint="name the one meant", remedy=("sheet",)))
    'name the one meant (“Sheet” under How to read it)'
    """
    for name in error.remedy:
        if name in HINTS:
            return HINTS[name]
    fields = [f"“{FIELDS[name]}”" for name in dict.fromkeys(error.remedy) if name in FIELDS]
    where = f" ({', '.join(fields)} under How to read it)" if error.hint and fields else ""
    return f"{error.hint}{where}"


def _is_in(folder: Path, path: Path) -> bool:
    return path.is_relative_to(folder) or path.is_relative_to(folder.resolve())
