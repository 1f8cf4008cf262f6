"""The order in which a column's cells are looked at: what is told most surely comes first."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn
from sfumato.table.identifiers import codes, names, numbers, patterns
from sfumato.table.identifiers.cells import Cells, Finding
from sfumato.table.identifiers.forms import NAMES_BY_LIST, forms_in

_FEWEST_VALUES = 3
_HALF = 0.5


def recognise(
    coded: CodedColumn, kind: Kind, *, name_says_birth: bool = False, name_says_degrees: bool = False
) -> Finding | None:
    """Say what kind of identifier a column's cells are; None if they seem to be none.

    At most 400 distinct values are looked at, whatever the size of the table.

    Parameters
    ----------
    name_says_birth, name_says_degrees : bool
        Whether the column's name says that it holds dates of birth, or a latitude or longitude: their cells alone do
        not tell them from other dates and decimals.
    """
    n_distinct = coded.n_distinct - coded.values.null_count
    if n_distinct < _FEWEST_VALUES:
        return None
    cells = Cells.of(coded, kind)
    return next(_findings(cells, name_says_birth=name_says_birth, name_says_degrees=name_says_degrees), None)


def _findings(cells: Cells, *, name_says_birth: bool, name_says_degrees: bool) -> Iterator[Finding]:
    found: Finding | None
    if name_says_degrees and (found := patterns.exact_degrees(cells)):
        yield found
    if cells.kind is not Kind.NUMERIC and (found := patterns.birth_dates(cells, name_says_birth=name_says_birth)):
        yield found
    if cells.kind is Kind.DATE:
        return
    yield from numbers.checked_numbers(cells)
    yield from _forms(cells)
    for detect in (codes.free_text, names.person_names, codes.record_codes):
        if found := detect(cells):
            yield found


def _forms(cells: Cells) -> Iterator[Finding]:
    """Find what has a form of its own in most cells, the plainest first."""
    if cells.kind is Kind.NUMERIC:
        return
    for what, places in forms_in(cells.texts):
        if what == NAMES_BY_LIST:
            continue  # free text mentions people as well; a column of names is told below
        share = max(len(places) / len(cells.texts), sum(cells.rows[place] for place in places) / sum(cells.rows))
        if share >= _HALF:
            yield Finding(what, share)
