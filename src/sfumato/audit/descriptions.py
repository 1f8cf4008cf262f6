"""What a manifest says of released columns besides names and roles: texts that could say anything, and are compared.

Kinds and orders are compared with the original's in :mod:`sfumato.audit.original.fidelity`, labels of statistics
packages in :mod:`sfumato.audit.original.labels`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sfumato.audit.checks import GIVE_ORIGINAL, Check, Unchecked, listed
from sfumato.audit.claims import ClaimedColumn, Claims
from sfumato.audit.reading.columns import Columns
from sfumato.audit.reading.values import TYPICAL, meanings_read_as
from sfumato.schema import Kind, Role


def described_otherwise(released: Columns, claims: Claims) -> list[str]:
    """Say which columns the manifest describes otherwise than it says that they were made; needs the release alone.

    Cells that stand for several values are texts without an order, typical values are of the kind whose middle they
    are, and a number of a bucket is nobody's role, kind or order. An order has all values that are released. A column
    has the texts for missing cells that the manifest lists for the column that it came from.
    """
    said = {column.name: _problem(column, claims) or _lacking(column, released) for column in claims.columns}
    return [f"'{name}' {problem}" for name, problem in said.items() if problem]


def _problem(column: ClaimedColumn, claims: Claims) -> str:
    recoding = claims.recodings.get(column.name)
    made = claims.perturbation.bucket if claims.perturbation is not None else None
    if column.name == made and recoding is None:
        is_plain = column.role is Role.OTHER and column.kind is Kind.CATEGORICAL and column.domain is None
        return "" if is_plain and not column.missing else "numbers buckets, and has a role, kind, order or missing text"
    if recoding is not None:
        is_typical = recoding.rule == TYPICAL
        kind, domain = (recoding.kind, recoding.domain) if is_typical else (Kind.CATEGORICAL, None)
        if (column.kind, column.domain) != (kind, domain):
            return "has another kind or order than its cells"
    source = column.name if recoding is None else recoding.column
    if column.missing is not None and column.missing != claims.missing_by_column.get(source):
        return "has other texts for missing cells than the manifest lists"
    return ""


def _lacking(column: ClaimedColumn, released: Columns) -> str:
    if column.kind is not Kind.ORDERED or column.domain is None or column.name not in released:
        return ""
    values = released.coded(column.name).values.drop_null()
    known = set(meanings_read_as(pa.array(column.domain, pa.string()), values.type))
    lacks = not known.issuperset(meanings_read_as(values, pa.string()))
    return "has an order without some released values" if lacks else ""


def check_read(original: Columns, claims: Claims) -> Iterator[Check]:
    """Whether the original has the columns whose texts are said to be read in some format, and the stated units."""
    strangers = [name for name in claims.read_as if name not in {*original.names, *original.sources}]
    others = [name for name, text in claims.read_as.items() if name in original and _format_of(original, name) != text]
    if claims.read_as:
        said = f"for columns that the original lacks: {listed(strangers)}" if strangers else "for its columns"
        said = f"in which they cannot be read: {listed(others)}" if others and not strangers else said
        yield Check("formats", not strangers + others, f"the manifest states formats of the original's texts {said}")
    yield from _check_units(original, claims)


def _format_of(original: Columns, name: str) -> str | None:
    reading = original.describe(name).reading
    return None if reading is None else reading.format


def _check_units(original: Columns, claims: Claims) -> Iterator[Check]:
    stated = [column for column in claims.columns if column.unit]
    wrong = []
    for column in stated:
        recoding = claims.recodings.get(column.name)
        source = column.name if recoding is None else recoding.column
        reading = original.describe(source).reading if source in original else None
        if reading is None or reading.unit != column.unit:
            wrong.append(column.name)
    if stated:
        said = f"are not the original's: {listed(wrong)}" if wrong else "are those that the original has"
        yield Check("units", not wrong, f"units of numbers {said}")


def described_without_original(claims: Claims) -> Iterator[Unchecked]:
    """Name descriptions that only an original could confirm."""
    units = [column.name for column in claims.columns if column.unit]
    labels = [column.name for column in claims.columns if column.label is not None or column.value_labels]
    said = [f"units of {listed(units)}"] if units else []
    said += [f"labels of {listed(labels)}"] if labels else []
    if said:
        yield Unchecked("original", f"whether {' and '.join(said)} are the original's", GIVE_ORIGINAL)
