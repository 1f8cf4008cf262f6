"""Cells that are escaped so that no spreadsheet program runs them: read back by the audit's own means."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa

from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import Claims
from sfumato.audit.reading.columns import AnyTable
from sfumato.audit.reading.spelling import SPELLINGS
from sfumato.audit.reading.values import is_text
from sfumato.schema import Kind

_RUN, _MARK = SPELLINGS["formulas"]["begin"], SPELLINGS["formulas"]["mark"]
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def without_apostrophes(released: AnyTable, claims: Claims) -> tuple[AnyTable, list[Check]]:
    """Take the stated apostrophes away, and refuse cells that a spreadsheet program would run in spite of them."""
    if not claims.escapes_formulas:
        return released, []
    plain = released.coded_part
    columns, running = dict(plain.columns), []
    for column in plain.schema:
        coded = plain[column.name]
        if column.kind in (Kind.NUMERIC, Kind.DATE) or not is_text(coded.values.type):
            continue
        texts = coded.values.to_pylist()
        if any(text is not None and _escaped(_plain(text)) != text for text in texts):
            running.append(column.name)
        plain_texts = [None if text is None else _plain(text) for text in texts]
        columns[column.name] = coded.recode(pa.array(plain_texts, pa.string()), column.kind)
    said = f"cells are not escaped in the one way in which they should be: {listed(running)}"
    said = said if running else "every cell that a spreadsheet program would run is escaped, as the manifest says"
    return released.with_coded_part(replace(plain, columns=columns)), [Check("formulas", not running, said)]


def _escaped(text: str) -> str:
    """Write a cell: with an apostrophe where a program would run it, or would after taking its own ones away."""
    rest = text.lstrip(_MARK)
    is_run = rest != "" and rest[0] in _RUN and _NUMBER.fullmatch(text) is None
    return f"{_MARK}{text}" if is_run else text


def _plain(text: str) -> str:
    """Read a cell that was written so."""
    rest = text.lstrip(_MARK)
    return text[1:] if rest != text and rest != "" and rest[0] in _RUN else text
