"""Write SPSS, Stata and SAS transport files with the labels of what they hold, and nothing else of a codebook.

pyreadstat writes; the time of writing is then replaced, so that the same table gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidParameterError
from sfumato.private_folders import PrivateFolder
from sfumato.schema import Kind
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import are_whole_seconds, as_doubles, written_text
from sfumato.table.coding import Table, is_number_type
from sfumato.table.io.formats import STATISTICS
from sfumato.table.io.statistics.read import PACKAGES, require_pyreadstat
from sfumato.table.labels import ColumnLabels

_WITH_VALUE_LABELS = ("sav", "zsav", "dta")
_STATA_CODES = (-2_147_483_647, 2_147_483_620)
_SHORT_TEXT_BYTES = 8
_EXACT_INTEGERS = 2**53
_SAS_LARGEST, _SAS_SMALLEST = 7.2e75, 5.4e-79
_DAY = 86_400
_MEASURES = {Kind.NUMERIC: "scale", Kind.DATE: "scale", Kind.CATEGORICAL: "nominal", Kind.ORDERED: "ordinal"}


@dataclass(frozen=True)
class _Rules:
    """What a format can hold, and how a day and a moment are stored and shown in it."""

    name: re.Pattern[str]
    name_is: str
    most_name_bytes: int
    most_text_bytes: int
    most_label: int
    """Characters of a column's label."""
    most_value_label: int
    """Bytes of the label of a value."""
    epoch: int
    """Days from its first one to 1970."""
    per_day: int
    per_second: int
    date: str
    moment: str


_SPSS = _Rules(
    re.compile(r"[^\W\d][\w.$#@]*(?<!\.)"),
    "at most 64 bytes of letters, digits and ._$#@, beginning with a letter and not ending in a point",
    64,
    *(32_767, 200, 120, 141_428, _DAY, 1, "DATE11", "DATETIME20"),
)
_STATA = _Rules(
    re.compile(r"[A-Za-z_][A-Za-z0-9_]*"),
    "at most 32 letters of the English alphabet, digits and _, beginning with a letter",
    32,
    *(2_044, 80, 32_000, 3_653, 1, 1_000, "%td", "%tc"),
)
_SAS = replace(_STATA, most_text_bytes=32_767, most_label=200, per_second=1, date="DATE9", moment="DATETIME20")
_RULES = {"sav": _SPSS, "zsav": _SPSS, "dta": _STATA, "xpt": _SAS}


def written_labels(
    table: Table | BinaryTable, format: str, labels: Mapping[str, ColumnLabels], recoded: Collection[str] = ()
) -> dict[str, ColumnLabels]:
    """Give the labels that a file of some format will hold: of columns that are there, and of values that occur.

    A column that holds ranges or sets is a text and has no codes, and so are ``recoded`` columns, which hold labels of
    a hierarchy: one of these may have the name of a value.
    """
    if format not in _RULES:
        return {}
    rules, columns = _RULES[format], table.coded_part
    found = {}
    for name in columns.columns:
        own = labels.get(name)
        if own is None:
            continue
        label = (own.label or "").replace("\0", "")[: rules.most_label].strip() or None
        is_plain = format in _WITH_VALUE_LABELS and name not in recoded
        values, are_cells = _values_of(columns[name].values, own, format) if is_plain else ((), False)
        if label or values:
            found[name] = ColumnLabels(label, values, are_cells)
    return found


def _values_of(values: pa.Array, own: ColumnLabels, format: str) -> tuple[tuple[tuple[float | str, str], ...], bool]:
    """Labels of the values that occur, and whether these are the cells."""
    known = values.drop_null()
    if own.are_cells:
        if not pa.types.is_string(known.type):
            return (), False
        occurring = set(known.to_pylist())
        pairs = tuple(pair for pair in own.values if pair[1] in occurring)
        is_whole = len(pairs) == len(occurring) > 0
    else:
        is_text = pa.types.is_string(known.type)
        if not is_text and not is_number_type(known.type):
            return (), False
        stored = set(known.to_pylist()) if is_text else {float(value) for value in known.to_pylist()}
        pairs = tuple(pair for pair in own.values if pair[0] in stored)
        is_whole = 0 < len(pairs) < len(stored)  # with a label for each, it would be read as labels
    fits = all(_fits(code, text, format) for code, text in pairs)
    return (pairs, own.are_cells) if is_whole and fits else ((), False)


def _fits(code: float | str, text: str, format: str) -> bool:
    if "\0" in text or len(text.encode()) > _RULES[format].most_value_label:
        return False
    if isinstance(code, str):
        return format != "dta" and len(code.encode()) <= _SHORT_TEXT_BYTES
    return format != "dta" or (code.is_integer() and _STATA_CODES[0] <= code <= _STATA_CODES[1])


def write_statistics(table: Table, file: BinaryIO, format: str, labels: Mapping[str, ColumnLabels]) -> None:
    """Write a table with the labels that :func:`written_labels` gives.

    Raises
    ------
    InvalidParameterError
        If the format cannot hold a name, number or text of the table.
    """
    if format not in STATISTICS or format not in _RULES:
        raise InvalidParameterError("format", f"got {format}", allowed=f"one of {', '.join(_RULES)}")
    require_pyreadstat(f"a file of {PACKAGES[format]}")
    import pandas as pd

    _check_names(table, format)
    formats: dict[str, str] = {}
    cells = {name: _cells(table, name, format, labels.get(name), formats, pd) for name in table.columns}
    settings: dict[str, Any] = {
        "column_labels": {name: own.label for name, own in labels.items() if own.label},
        "variable_format": formats,
    }
    if format in _WITH_VALUE_LABELS:
        with_values = {name: own for name, own in labels.items() if own.values}
        settings["variable_value_labels"] = {name: _keys(own) for name, own in with_values.items()}
    if format in ("sav", "zsav"):
        settings["variable_measure"] = {column.name: _MEASURES[column.kind] for column in table.schema}
        settings["compress"] = format == "zsav"
    content = _made(pd.DataFrame(cells), format, settings)
    file.write(with_fixed_time(content, format))


def _made(frame: Any, format: str, settings: Mapping[str, Any]) -> bytes:
    import pyreadstat

    writers: dict[str, Any] = {"dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}
    write = writers.get(format, pyreadstat.write_sav)
    version = {"version": 14} if format == "dta" else {}  # which all editions of Stata since 14 read
    folder = PrivateFolder("statistics")
    try:
        path = folder.path / f"table.{format}"
        try:
            write(frame, path, **settings, **version)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, OverflowError):
            problem = f"the table cannot be written as a file of {PACKAGES[format]}"
            hint = "write csv or parquet"
            raise InvalidParameterError("format", problem, allowed="one that can hold it", hint=hint) from None
        return path.read_bytes()
    finally:
        folder.remove()


def with_fixed_time(content: bytes, format: str) -> bytes:
    """Replace the time of writing, which stands in the header, by the first moment of 2000."""
    if format in ("sav", "zsav"):  # bytes 92 to 108: creation_date, creation_time
        return content[:92] + b"01 Jan 0000:00:00" + content[109:]
    if format == "dta":
        return re.sub(
            rb"<timestamp>\x11.{17}</timestamp>",
            b"<timestamp>\x1101 Jan 2000 00:00</timestamp>",
            content,
            count=1,
            flags=re.DOTALL,
        )
    moment = b"01JAN00:00:00:00"
    for start in (144, 160, 464, 480):  # created and modified, of the library and of its member
        content = content[:start] + moment + content[start + len(moment) :]
    return content


def _check_names(table: Table, format: str) -> None:
    rules, seen = _RULES[format], set()
    for name in table.columns:
        is_name = rules.name.fullmatch(name) is not None and len(name.encode()) <= rules.most_name_bytes
        if not is_name or name.lower() in seen:
            problem = f"got the column '{name}'" + (", twice but for large letters" if name.lower() in seen else "")
            allowed = f"something else than {format} unless names of columns are {rules.name_is}"
            hint = "rename the column, or write csv or parquet"
            raise InvalidParameterError("format", problem, allowed=allowed, hint=hint)
        seen.add(name.lower())


def _keys(own: ColumnLabels) -> dict[Any, str]:
    """Labels by their codes, as pyreadstat wants them: whole numbers where all are."""
    are_whole = all(isinstance(code, float) and code.is_integer() for code, _ in own.values)
    return {int(code) if are_whole else code: text for code, text in own.values}


def _cells(table: Table, name: str, format: str, own: ColumnLabels | None, formats: dict[str, str], pd: Any) -> Any:
    """Cells of a column as a series of doubles or texts; ``formats`` gets how a date is shown."""
    rules, values = _RULES[format], table[name].values
    codes = table[name].codes
    if own is not None and own.values and own.are_cells:
        by_text = own.codes()
        stored = [None if text is None else by_text[text] for text in values.to_pylist()]
        if any(isinstance(code, str) for code in stored):
            return _text_series([str(code or "") for code in stored], codes, name, format, pd)
        return _numbers(np.array(stored, np.float64)[codes], own, pd)
    if is_number_type(values.type) and not pa.types.is_boolean(values.type) and not pa.types.is_decimal(values.type):
        return _numbers(_checked_numbers(values, name, format)[codes], own, pd)
    if pa.types.is_date(values.type):
        formats[name] = rules.date
        days = pc.cast(values, pa.int32()).to_numpy(zero_copy_only=False).astype(np.float64)
        return pd.Series(((days + rules.epoch) * rules.per_day)[codes])
    moments = _whole_seconds(values)
    if moments is not None:
        formats[name] = rules.moment
        return pd.Series(((moments + rules.epoch * _DAY) * rules.per_second)[codes])
    return _text_series([text or "" for text in written_text(values).to_pylist()], codes, name, format, pd)


def _numbers(numbers: Any, own: ColumnLabels | None, pd: Any) -> Any:
    """Doubles; whole numbers where their labels are of whole numbers, since a label is looked up by its type."""
    known = numbers[~np.isnan(numbers)]
    if own is not None and own.values and (known == np.rint(known)).all() and (np.abs(known) < 2**31 - 1).all():
        return pd.Series(numbers).astype("Int64")
    return pd.Series(numbers, dtype="float64")


def _text_series(texts: list[str], codes: Any, name: str, format: str, pd: Any) -> Any:
    most = _RULES[format].most_text_bytes
    if any(len(text.encode()) > most or "\0" in text for text in texts):
        problem = f"got a text in column '{name}' that is longer than {most:,} bytes or holds a NUL"
        allowed = f"something else than {format} for such texts"
        raise InvalidParameterError("format", problem, allowed=allowed, hint="write csv or parquet")
    return pd.Series(np.array(texts, object)[codes], dtype="string")


def _whole_seconds(values: pa.Array) -> Any:
    """Seconds since 1970 of moments without a time zone and without fractions; ``None`` for anything else."""
    if not are_whole_seconds(values):
        return None
    seconds = pc.cast(values, pa.timestamp("s"), safe=False)
    return pc.cast(seconds, pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64)


def _checked_numbers(values: pa.Array, name: str, format: str) -> Any:
    known = values.drop_null()
    problem = ""
    if pa.types.is_integer(values.type) and any(abs(number) > _EXACT_INTEGERS for number in known.to_pylist()):
        problem = f"got integers in column '{name}' that a double would round"
    numbers = pc.cast(as_doubles(values), pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    sizes = np.abs(numbers[~np.isnan(numbers)])
    if not np.isfinite(sizes).all():
        problem = f"got infinite numbers in column '{name}'"
    elif format == "xpt" and ((sizes > _SAS_LARGEST) | ((sizes > 0) & (sizes < _SAS_SMALLEST))).any():
        problem = f"got numbers in column '{name}' that SAS cannot hold"
    elif format != "xpt" and (sizes > 8.9e307).any():  # above it is what these packages take for missing
        problem = f"got numbers in column '{name}' that {PACKAGES[format]} takes for missing"
    if problem:
        allowed = f"something else than {format} for such numbers"
        raise InvalidParameterError("format", problem, allowed=allowed, hint="write csv or parquet")
    return numbers
