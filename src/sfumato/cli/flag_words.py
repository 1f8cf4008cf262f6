"""How the command line says an error: the options by which what the hint speaks of is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.errors import SfumatoError

FLAGS = {
    "delimiter": "--delimiter",
    "encoding": "--encoding",
    "format": "--format",
    "header": "--no-header",
    "quasi_identifiers": "--quasi-identifiers",
    "sheet": "--sheet",
    "skip_rows": "--skip-rows",
    "target": '--target COLUMN, or role = "target" in the project file',
    "update": "sfumato init --update",
}
"""By the name that a parameter has in Python, see :class:`sfumato.errors.SfumatoError`."""


def in_flag_words(error: SfumatoError) -> str:
    """Say an error, and after its hint the options that it is about.

    Examples
    --------
    >>> from sfumato.errors import InputError
    >>> in_flag_words(InputError("is not utf-8 text", path="a.csv", hint="name its encoding", remedy=("encoding",)))
    'a.csv: is not utf-8 text. Hint: name its encoding (--encoding)'
    """
    flags = [FLAGS[name] for name in dict.fromkeys(error.remedy) if name in FLAGS]
    return f"{error} ({', '.join(flags)})" if error.hint and flags else str(error)
