"""File formats by name and by suffix."""

from __future__ import annotations

from os import PathLike
from pathlib import PurePath

from sfumato.errors import InvalidParameterError

READABLE = ("csv", "tsv", "parquet", "excel", "arff", "libsvm")
WRITABLE = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "excel", "libsvm")

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".arff": "arff",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
}


def format_of(path: str | PathLike[str]) -> str:
    """Name the format a path's suffixes stand for; an unknown suffix is CSV, a trailing ``.gz`` is kept.

    Examples
    --------
    >>> format_of("patients.xlsx"), format_of("patients.tsv.gz"), format_of("patients.data")
    ('excel', 'tsv.gz', 'csv')
    """
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    if zipped:
        suffixes.pop()
    return _BY_SUFFIX.get(suffixes[-1] if suffixes else "", "csv") + (".gz" if zipped else "")


def check_format(name: str, allowed: tuple[str, ...]) -> str:
    """Return a format's name if it is one of those allowed."""
    if name not in allowed:
        raise InvalidParameterError(name="format", problem="got another", allowed="one of " + ", ".join(allowed))
    return name
