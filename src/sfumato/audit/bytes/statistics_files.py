"""SPSS, Stata and SAS transport files are written again from their cells and the stated labels, and compared.

No note, no title, no missing codes, no label of a value that no row has, nothing in unused places comes out of that.
Where another version of the library wrote the file, only the header may differ, in what pyreadstat does not read of it:
the name of the program. Behind it, blanks after texts and the last bits of numbers could carry something.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sfumato.audit.bytes.compared import NotAccountedError, require
from sfumato.audit.claims import Claims
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.schema import Column, Schema
from sfumato.table.coding import Table
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.io.statistics.write import write_statistics, written_labels
from sfumato.table.labels import ColumnLabels

FORMATS = ("sav", "zsav", "dta", "xpt")

_HEADER_BYTES = {"sav": 176, "zsav": 176, "dta": 0, "xpt": 560}  # a Stata file does not name its writer
_READERS = {"sav": "read_sav", "zsav": "read_sav", "dta": "read_dta", "xpt": "read_xport"}


def written_again(path: Path, claims: Claims, tokens: Mapping[str, Sequence[str]]) -> bytes:
    """Write the cells of a file, and the labels that it has, with the canonical writer.

    Raises
    ------
    NotAccountedError
        If it cannot be parsed as the stated columns, or has other labels than those that the manifest states.
    """
    form = claims.output_format
    schema = Schema.of(Column(name, missing=tuple(own)) for name, own in tokens.items())
    try:
        table = read_table(path, schema=schema, options=ReadOptions(format=form, guess_formats=False))
    except (InputError, SchemaError):
        problem = "it cannot be parsed as the stated columns"
        raise NotAccountedError(problem) from None
    assert isinstance(table, Table)
    require(tuple(table.columns) == claims.names(), "its columns are not in the order of the manifest")
    labels = table.source.labels if table.source is not None else {}
    for column in claims.columns:
        own = labels.get(column.name, ColumnLabels())
        is_stated = own.label == column.label and own.values == column.value_labels
        require(is_stated, f"'{column.name}' has other labels than the manifest states")
    stated = replace(table, schema=Schema.of(Column(column.name, kind=column.kind) for column in claims.columns))
    made = io.BytesIO()
    try:
        write_statistics(stated, made, form, written_labels(stated, form, labels))
    except InvalidParameterError:
        problem = "no file can be made of its cells and labels"
        raise NotAccountedError(problem) from None
    return made.getvalue()


def check_content(path: Path, made: bytes, form: str) -> None:
    """Compare a file of another version of pyreadstat with one that was made here of its cells and labels.

    Raises
    ------
    NotAccountedError
        If pyreadstat finds anything else in it, or it has other bytes behind its header.
    """
    import pyreadstat

    header = _HEADER_BYTES[form]
    require(path.read_bytes()[header:] == made[header:], "it has other bytes than its cells and labels make")
    read = getattr(pyreadstat, _READERS[form])
    with tempfile.TemporaryDirectory(prefix="sfumato-audit-") as folder:  # which only this user can enter
        again = Path(folder) / f"again.{form}"
        again.write_bytes(made)
        (one, about), (other, expected) = (read(file, disable_datetime_conversion=True) for file in (path, again))
    is_same = one.equals(other) and vars(about) == vars(expected)
    require(is_same, "it says something else of its columns and cells than a release does")
