"""Errors of the library in the words of the page: the fields and steps by which what a hint speaks of is given."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.errors import SfumatoError

FOLDER_PURPOSE = "page"
"""Part of the name of a server's private folder, see :class:`sfumato.private_folders.PrivateFolder`."""

_FIELDS = {
    "delimiter": "Delimiter",
    "encoding": "Encoding",
    "format": "Format",
    "header": "The first line is data",
    "missing": "Texts that mean missing",
    "sheet": "Sheet",
    "skip_rows": "Rows above the header",
}
"""Fields of the step Open by the parameters that errors name, see :class:`sfumato.errors.SfumatoError`."""
_HINTS = {
    "confirmed": "give it the role identifier on the step Columns; if it names nobody, add confirmed = true to its "
    "line in the project file",
    "describe": "describe it in the project file, or open the data on the step Open with a new project file",
    "force": "move it elsewhere, or name another output",
    "init": "open the data file on the step Open, with a project file that does not exist yet",
    "output": 'name another output under [release] in the project file, such as output = "release.csv"',
    "run_folder": "rename it, or move it elsewhere",
    "target": "choose it on the step Columns",
    "update": "use the changed file if the change is meant",
}
"""Whole hints by the parameters that errors name, where the page has another way."""
_OUTPUT = re.compile(r"\boutput must be\b(?! given)")
_PLACE = re.compile(
    rf"(?:{re.escape(tempfile.gettempdir())}|(?:/[^\s/'\"]+)*){re.escape(os.sep)}sfumato-{FOLDER_PURPOSE}-"
    rf"[\w-]+{re.escape(os.sep)}(?:[\w.-]+{re.escape(os.sep)})*"
)


def error_in_page_words(error: SfumatoError) -> str:
    """Say an error, and after its hint the fields of the page that it is about.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> error_in_page_words(InputError("holds 2 sheets", path="a.xlsx", hint="name the one meant", remedy=("sheet",)))
    'a.xlsx: holds 2 sheets. Hint: name the one meant (“Sheet” under How to read it)'
    """
    for name in error.remedy:
        if name in _HINTS:
            return f"{error.message} Hint: {_HINTS[name]}"
    fields = [f"“{_FIELDS[name]}”" for name in dict.fromkeys(error.remedy) if name in _FIELDS]
    where = f" ({', '.join(fields)} under How to read it)" if error.hint and fields else ""
    return f"{error}{where}"


def in_page_words(text: str) -> str:
    """Say a message without the server's private folder, and where an output is named.

    Examples
    --------
    >>> in_page_words("/tmp/sfumato-page-17-ab/data/0f/people.csv, column 'age': holds texts.")
    "people.csv, column 'age': holds texts."
    """
    text = _OUTPUT.sub("output in the project file, under [release], must be", text)
    return _PLACE.sub("", text)
