"""Texts of the library in the words of the page: its fields and steps in the place of the command line's options."""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.errors import SfumatoError

FOLDER_PURPOSE = "page"
"""Part of the name of a server's private folder, see :class:`sfumato.private_folders.PrivateFolder`."""

_FIELDS_OF_OPEN = {
    "--missing": "Texts that mean missing",
}
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
_HINTS = {"target": "choose it on the step Columns", "update": "use the changed file if the change is meant"}
"""Whole hints by the parameters that errors name, where the page has another way."""
_REMEDIES = {
    " (--quick)": "",
    "; to look at it first, 'sfumato hierarchy show' has --encoding": "",
    " ('sfumato hierarchy check' counts them), or build one with 'sfumato hierarchy build'": ", or build one there",
    ": see 'sfumato mechanisms'": ", such as one of those on the step Goal",
    "see 'sfumato mechanisms'": "choose one on the step Goal",
    " (-m):": ":",
    "; 'sfumato attack' counts of whom they are learned": "",
    "make one with 'sfumato init DATA', or name the data file": "open the data file on the step Open, which makes one",
    "run 'sfumato init DATA'": "open the data file on the step Open with another project file",
    ", which --json and -o show": "",
    ", or give more time with --timeout": "",
    "; more --folds have more rows each": "; folds of more rows need a larger table",
    "name another folder with --run-folder": "rename it, or move it elsewhere",
    "use --force (in Python force=True) to replace it": "move it elsewhere, or name another output",
    "use --force to replace it": "start again",
    "choose another output path": "name another output under [release] in the project file",
    "name one such as -o release.csv": 'name one, such as output = "release.csv"',
}
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
    """Say a message as the page can: by its own fields and steps, and without the server's private folder.

    Examples
    --------
    >>> in_page_words("name what means missing with --missing")
    'name what means missing with “Texts that mean missing” (under How to read it)'
    >>> in_page_words("/tmp/sfumato-page-17-ab/data/0f/people.csv, column 'age': holds texts.")
    "people.csv, column 'age': holds texts."
    """
    for words, remedy in _REMEDIES.items():
        text = text.replace(words, remedy)
    for flag, label in _FIELDS_OF_OPEN.items():
        text = re.sub(rf"{flag}\b(?!-)", f"“{label}” (under How to read it)", text)
    text = _OUTPUT.sub("output in the project file, under [release], must be", text)
    return _PLACE.sub("", text)
