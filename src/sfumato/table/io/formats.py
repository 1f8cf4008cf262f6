"""File formats by name and by suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import PurePath

from sfumato.errors import InvalidParameterError
from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.labels import ColumnLabels

STATISTICS = ("sav", "zsav", "dta", "xpt", "sas7bdat", "por")
"""Formats of statistics packages."""
_READ_ONLY = {
    "sas7bdat": (", a format that only SAS can write", "SAS reads .xpt, .sav, .dta and .csv"),
    "por": (", a format that is read only", "SPSS reads .sav and .csv"),
}
READABLE = ("csv", "tsv", "parquet", "excel", "arff", "libsvm", "jsonl", *STATISTICS)
WITH_ROWS_ABOVE = ("csv", "tsv", "excel")
"""Formats in which rows that are no part of the table can stand above it."""
WRITABLE = (
    *("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "excel", "libsvm", "jsonl", "jsonl.gz"),
    *(name for name in STATISTICS if name not in _READ_ONLY),
)

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
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    **{f".{name}": name for name in STATISTICS},
}

_WRITABLE_SUFFIXES = {
    **{suffix: name for suffix, name in _BY_SUFFIX.items() if name in WRITABLE and name != "excel"},
    ".xlsx": "excel",
    ".csv.gz": "csv.gz",
    ".tsv.gz": "tsv.gz",
    ".jsonl.gz": "jsonl.gz",
    ".ndjson.gz": "jsonl.gz",
}


def format_of(path: str | PathLike[str]) -> str:
    """Name the format a path's suffixes represent; an unknown suffix is CSV, a trailing ``.gz`` is kept.

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


def writable_format_of(path: str | PathLike[str]) -> str:
    """Name the format in which an output of this name is written, by its suffix in any letter case.

    Raises
    ------
    InvalidParameterError
        If there is no suffix, or one whose format is unknown or is read only; or if the name is not valid Unicode.

    Examples
    --------
    >>> writable_format_of("release.xlsx"), writable_format_of("release.TAB"), writable_format_of("release.csv.gz")
    ('excel', 'tsv', 'csv.gz')
    """
    name = PurePath(path)
    allowed = "a file name that ends in " + ", ".join(sorted(_WRITABLE_SUFFIXES))
    try:
        str(name).encode()
    except UnicodeEncodeError:
        problem = "got a name that is not valid Unicode"
        raise InvalidParameterError("output", problem, allowed=allowed) from None
    suffix = "".join(name.suffixes[-2:] if name.suffix.lower() == ".gz" else name.suffixes[-1:]).lower()
    if suffix.removeprefix(".") in _READ_ONLY:
        why, hint = _READ_ONLY[suffix.removeprefix(".")]
        raise InvalidParameterError("output", f"got a name that ends in {suffix}{why}", allowed=allowed, hint=hint)
    if suffix not in _WRITABLE_SUFFIXES:
        problem = f"got a name that ends in {suffix}" if suffix else "got a name without a suffix"
        raise InvalidParameterError("output", problem, allowed=allowed)
    return _WRITABLE_SUFFIXES[suffix]


def check_format(name: str, allowed: tuple[str, ...]) -> str:
    """Return a format's name if it is one of those allowed."""
    if name not in allowed:
        raise InvalidParameterError(name="format", problem=f"got {name!r}", allowed="one of " + ", ".join(allowed))
    return name


# What every file parser hands over.


@dataclass(frozen=True, repr=False)
class Parsed:
    """Coded columns with their kinds, the physical line of a data row where lines exist, and what a codebook says.

    ``domains`` are the values of ordered columns, from lowest to highest.
    """

    columns: Mapping[str, CodedColumn]
    kinds: Mapping[str, Kind]
    n_rows: int
    line_of: Callable[[int], int | None] | None = None
    labels: Mapping[str, ColumnLabels] = field(default_factory=dict)
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
