"""Do what was declared to the columns of a table, once, before any mechanism sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Prepared, Table
from sfumato.table.preparing.cells import ages, masked, numbers_prepared, shifted
from sfumato.table.preparing.declared import Preparation, Scope, check_fits
from sfumato.table.preparing.keyed import PreparationKeys, days_of, pseudonym_of
from sfumato.table.weighted import OpenColumn

AnyTable = Table | BinaryTable


def prepared(table: AnyTable, preparations: Sequence[Preparation], keys: PreparationKeys | None = None) -> AnyTable:
    """Prepare the columns of a table; it remembers how they were, for the audit (:attr:`Table.as_read`).

    Parameters
    ----------
    table : Table or BinaryTable
        As it was read, with the rows that are to be released.
    preparations : sequence of Preparation
        At most one a column.
    keys : PreparationKeys or None
        The secrets of pseudonyms and shifted dates; ``None`` draws some that nobody keeps.

    Raises
    ------
    ColumnNotFoundError
        If a column does not exist.
    SchemaError
        If an operation is not for the role or kind of its column, or cannot be done to its cells.

    Examples
    --------
    >>> cells = pa.table({"income": ["1234", "250000"], "sex": ["f", "m"]})
    >>> described = Schema.of([Column("income", Role.SENSITIVE, Kind.NUMERIC), Column("sex")])
    >>> asked = [Preparation.of("income", {"top": 100000, "round": 1000})]
    >>> prepared(Table.from_arrow(cells, described), asked).to_arrow().column("income").to_pylist()
    ['1000', '100000']
    """
    if not preparations:
        return table
    plain = table.coded_part
    if plain.prepared is not None:
        problem = "the table has been prepared already, and is prepared only once"
        raise SchemaError(problem)
    _check_columns(table, preparations)
    keys = keys or PreparationKeys.ephemeral()
    columns, described = dict(plain.columns), dict(plain.schema.columns)
    preparations = [_by_persons(asked, plain) for asked in preparations]
    for asked in preparations:
        described[asked.column] = _described(plain.schema[asked.column], asked)
        columns[asked.column] = _prepared_column(plain, asked, keys)
        _refuse_tokens(columns[asked.column], plain.schema.missing_tokens(asked.column), asked)
    before = {asked.column: (plain.schema[asked.column], plain[asked.column]) for asked in preparations}
    done = Prepared(tuple(preparations), before, keys if any(asked.is_keyed for asked in preparations) else None)
    schema = Schema.of(described.values(), plain.schema.missing)
    return table.with_coded_part(replace(plain, schema=schema, columns=columns, prepared=done))


def _by_persons(asked: Preparation, table: Table) -> Preparation:
    """Say whose dates move alike: those of a person, where a column tells persons apart."""
    if asked.shift_days is None or asked.by is not None:
        return asked
    return replace(asked, by=table.schema.person)


def _check_columns(table: AnyTable, preparations: Iterable[Preparation]) -> None:
    plain = table.coded_part
    features = set(table.feature_names) if isinstance(table, BinaryTable) else set()
    seen: set[str] = set()
    for asked in preparations:
        name = asked.column
        if name in features:
            problem = "is a 0/1 feature, which needs no preparation"
            raise SchemaError(problem, column=name, hint="leave it as it is, or give it the role identifier")
        if name not in plain.schema:
            raise ColumnNotFoundError(name, plain.schema.names())
        if name in seen:
            problem = "is to be prepared twice"
            raise SchemaError(problem, column=name)
        seen.add(name)
        check_fits(plain.schema[name], asked)


def _described(column: Column, asked: Preparation) -> Column:
    """Describe a column anew; a pseudonym is released, names nobody, and no guarantee covers it."""
    if asked.drop:
        return replace(column, role=Role.IDENTIFIER)
    if asked.pseudonym:
        return replace(column, role=Role.OTHER, kind=Kind.CATEGORICAL, domain=None, hierarchy=None, confirmed=True)
    if asked.mask is not None:
        return replace(column, kind=Kind.CATEGORICAL, domain=None)
    return replace(column, kind=Kind.NUMERIC, domain=None) if asked.age_at is not None else column


def _prepared_column(table: Table, asked: Preparation, keys: PreparationKeys) -> CodedColumn:
    column = table[asked.column]
    if asked.drop:
        return column
    if isinstance(column, OpenColumn):
        problem = "has too many distinct values to be listed, and can be prepared in memory only"
        raise SchemaError(problem, column=asked.column, hint="give more memory, or leave its preparation out")
    if asked.is_keyed and not column.is_by_row:
        what = "replaced by pseudonyms" if asked.pseudonym else "shifted by persons"
        problem = f"is to be {what}, which is done to tables in memory only"
        raise SchemaError(problem, column=asked.column, hint="release it in memory, or leave its preparation out")
    if asked.pseudonym:
        return _pseudonyms(column, asked, _key(asked, keys))
    if asked.shift_days is not None:
        return _shifted(table, asked, _key(asked, keys))
    return column.recode(prepared_values(column.values, asked), _kind_after(table.schema[asked.column], asked))


def prepared_values(values: pa.Array, asked: Preparation) -> pa.Array:
    """Prepare distinct values by operations of single cells."""
    if asked.mask is not None:
        return masked(values, asked.mask)
    if asked.age_at is not None:
        values = ages(values, asked.age_at, asked.column)
    return numbers_prepared(values, asked) if asked.changes_numbers else values


def _kind_after(column: Column, asked: Preparation) -> Kind:
    return _described(column, asked).kind


def _key(asked: Preparation, keys: PreparationKeys) -> bytes:
    scope: Scope = asked.scope
    key = keys.of(scope)
    if key is None:
        problem = "has the scope project, and there is no project whose key could be used"
        raise SchemaError(problem, column=asked.column, hint="release a project, or leave the scope out")
    return key


def _pseudonyms(column: CodedColumn, asked: Preparation, key: bytes) -> CodedColumn:
    """Replace every value by its pseudonym; each must stand in one row, so that no two rows are linked."""
    counts = column.counts.copy()
    if column.missing_code is not None:
        counts[column.missing_code] = 0
    n_repeated = int(np.count_nonzero(counts > 1))
    if n_repeated:
        problem = f"is to be replaced by pseudonyms, but {n_repeated:,} of its values stand in several rows"
        hint = "a pseudonym would link these rows and what they show together; keep one row for each value"
        raise SchemaError(problem, column=asked.column, hint=hint)
    texts = as_text(column.values).to_pylist()
    found = [None if text is None else pseudonym_of(key, asked.column, text) for text in texts]
    if len(set(found)) < len(found):
        problem = "has two values with the same pseudonym, or two spellings of a value"
        raise SchemaError(problem, column=asked.column, hint="release it again with another key")
    return column.recode(pa.array(found, pa.string()))


def _shifted(table: Table, asked: Preparation, key: bytes) -> CodedColumn:
    """Move each date by the secret number of days of its row's person, or of its row where no column tells persons."""
    column, most = table[asked.column], asked.shift_days or 0
    person = asked.by
    if person is None:
        by = [days_of(key, most, "row", str(row)) for row in range(table.n_rows)]
        return CodedColumn.encode(shifted(column.cells(), by, asked.column), Kind.DATE)
    persons = table[person]
    texts = as_text(persons.values).to_pylist()
    days = [days_of(key, most, *(("person", text) if text is not None else ("nobody",))) for text in texts]
    pairs, codes = np.unique(column.codes.astype(np.int64) * len(texts) + persons.codes, return_inverse=True)
    values = column.values.take(pa.array(pairs // len(texts)))
    moved = shifted(values, [days[i] for i in pairs % len(texts)], asked.column)
    return CodedColumn(codes.astype(np.int32), moved).recode(moved, Kind.DATE)


def _refuse_tokens(column: CodedColumn, tokens: Sequence[str], asked: Preparation) -> None:
    """Refuse cells that would be read as missing once they are prepared."""
    if asked.drop or isinstance(column, OpenColumn):
        return
    is_token = pc.is_in(as_text(column.values), value_set=pa.array(tokens, pa.string()))
    if pc.any(pc.and_(is_token, column.values.is_valid())).as_py():
        problem = 'holds cells that, once prepared, are texts which mean "missing"'
        hint = "choose another character or bound, or other missing tokens"
        raise SchemaError(problem, column=asked.column, hint=hint)


def preparation_entries(table: AnyTable) -> list[Mapping[str, object]]:
    """List what a manifest says of how a table was prepared: nothing where it was not."""
    done = table.coded_part.prepared
    return [] if done is None else [entry for asked in done.preparations for entry in asked.entries()]
