"""How parties come to a shared schema: the same column names, and the union of their values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sfumato.collaboration.config import PartyConfig
from sfumato.collaboration.echo import check_all_have_the_same, check_all_told_the_same, odd_one_out
from sfumato.collaboration.hello import Plain, Terms, greet
from sfumato.collaboration.joining import joined
from sfumato.collaboration.messages import size_limit_of_counts
from sfumato.collaboration.private_union import largest_table_bytes, private_union
from sfumato.collaboration.session import Session
from sfumato.collaboration.shared_schema import SharedSchema, own_values
from sfumato.collaboration.sums import SecureSum
from sfumato.collaboration.transcript import RoundProgress, Transcript
from sfumato.errors import SchemaError
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table

FEW_VALUES = 20
"""A numeric column with more values needs cut points."""

_ALWAYS_FEW = 3
_ROWS_A_VALUE = 10
_MOST_BYTES_OF_NAMES = 2**20
_KEEP_BACK = "give it the role identifier, which keeps it back, or cut its numbers into bands"
_STAGE = "columns"
_OUTSIDE = (Role.IDENTIFIER, Role.SENSITIVE, Role.OTHER)
_TWO = 2


def agree_on_schema(
    config: PartyConfig,
    table: Table,
    *,
    cuts: Mapping[str, Sequence[float]] | None = None,
    named: Collection[str] = (),
    transcript: Transcript | None = None,
    progress: RoundProgress | None = None,
) -> SharedSchema:
    """Build the shared schema with all other parties, who call this at the same time.

    Each party learns the column names of the others with their roles, and of the features' and the target's values the
    union only. Roles of other columns become part of the schema as far as no party gives another.

    Parameters
    ----------
    table : Table
        This party's rows; its quasi-identifiers and target are described.
    cuts : mapping of str to sequence of float or None
        Cut points of numeric columns, the same for all parties.
    named : collection of str
        Features that the user named one by one, see :func:`check_columns`.

    Raises
    ------
    SchemaError
        If a numeric column has many values and no cut points, or a column has too many values to be told to all.
    CollaborationError
        If a party has other columns or cut points, or fails.
    """
    target = table.schema.target
    if target is None:
        raise SchemaError("has no column with the role target", hint="name the column that is to be predicted")
    given = {name: [float(cut) for cut in points] for name, points in (cuts or {}).items()}
    check_columns(table, given, named)
    limit = size_limit_of_counts(largest_table_bytes() // 8)
    with joined(config, transcript=transcript, progress=progress, size_limit=limit) as session:
        parameters: dict[str, Plain] = {"target": target, "cuts": {name: [*points] for name, points in given.items()}}
        parameters["missing"] = [*sorted(set(table.schema.missing))]
        greet(session, Terms(config.session, config.roster.fingerprints, "", "shared schema", parameters))
        names, roles = _common_columns(session, table)
        values = {name: _own_values(table, name, is_cut=name in given) for name in (*names, target)}
        union = private_union(SecureSum(session), values, salt=session.binding)
        united = SharedSchema.of_values({name: union[name] for name in names}, {target: union[target]}, given)
        schema = replace(united, roles=roles)
        check_all_have_the_same(session, "shared schema", json.dumps([schema.hash(), sorted(roles.items())]).encode())
    return schema


def columns_outside(table: Table) -> dict[str, Role]:
    """Columns that are neither feature nor target, with their roles: what all parties are told of them."""
    return {name: table.schema[name].role for name in table.schema.names(*_OUTSIDE)}


def united_columns(table: Table, cuts: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Columns whose values all parties will see in the union, and how many values this party puts in.

    To be shown to people before anybody is connected. Of columns that are cut no value leaves.
    """
    names = (*table.schema.names(Role.QUASI_IDENTIFIER), *table.schema.names(Role.TARGET))
    return {name: _n_known(table, name) for name in names if name not in cuts}


def numbers_as_categories(table: Table, cuts: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Numeric features without cut points, whose numbers count as categories; 0/1 columns need none."""
    features = table.schema.names(Role.QUASI_IDENTIFIER)
    return tuple(
        name
        for name in features
        if table.schema[name].kind is Kind.NUMERIC and name not in cuts and _n_known(table, name) > _TWO
    )


def most_united_values(n_rows: int) -> int:
    """How many values a column may have that nobody named: half as many as rows up to 20, then one for ten rows.

    Examples
    --------
    >>> [most_united_values(n) for n in (4, 20, 40, 200, 1000)]
    [3, 10, 20, 20, 100]
    """
    return max(_ALWAYS_FEW, min(FEW_VALUES, n_rows // 2), n_rows // _ROWS_A_VALUE)


def check_columns(table: Table, cuts: Mapping[str, Sequence[float]], named: Collection[str] = ()) -> None:
    """Refuse cut points of a column that is no numeric feature, and columns that would tell all parties who is in one.

    All parties see every value of a column that is not cut. So it may have at most :func:`most_united_values` of them.
    A feature of ``named`` may have more, but none that :func:`check_tells_nobody_apart` refuses.
    """
    features = table.schema.names(Role.QUASI_IDENTIFIER)
    for name in cuts:
        if name not in features:
            raise SchemaError("is given cut points and is no feature", column=name)
        try:
            table[name].numbers()
        except ValueError:
            raise SchemaError("is given cut points, but not all its values are numbers", column=name) from None
    for name in numbers_as_categories(table, cuts):
        if table[name].n_distinct > FEW_VALUES:
            problem = f"is numeric with more than {FEW_VALUES} values and has no cut points"
            raise SchemaError(problem, column=name, hint="give some, such as 10,20,30", remedy=("bins",))
    check_tells_nobody_apart(table, cuts)
    for name in features:
        if name not in cuts and name not in named and _n_known(table, name) > most_united_values(table.n_rows):
            hint = f"{_KEEP_BACK}; if everybody may know its values, list all features as quasi-identifiers"
            raise _too_telling(table, name, most_united_values(table.n_rows), hint, "quasi_identifiers")


def check_tells_nobody_apart(table: Table, cuts: Collection[str]) -> None:
    """Refuse a feature or target with more than 20 values that has another one in more than half of the rows.

    Such a column names people, whoever wrote it into a schema.
    """
    most = max(FEW_VALUES, table.n_rows // 2)
    for name in (*table.schema.names(Role.QUASI_IDENTIFIER), *table.schema.names(Role.TARGET)):
        if name not in cuts and _n_known(table, name) > most:
            raise _too_telling(table, name, most, _KEEP_BACK)


def _too_telling(table: Table, name: str, most: int, hint: str, *more: str) -> SchemaError:
    problem = f"has {_n_known(table, name):,} values in {table.n_rows:,} rows, and all parties would see them"
    remedy = ("identifiers", "bins")
    return SchemaError(f"{problem} (at most {most:,} are allowed)", column=name, hint=hint, remedy=(*remedy, *more))


def _n_known(table: Table, name: str) -> int:
    return table[name].n_distinct - (table[name].missing_code is not None)


def _own_values(table: Table, name: str, *, is_cut: bool) -> tuple[str | None, ...]:
    if is_cut:
        return (None,) if table[name].n_missing else ()
    return own_values(table, name)


def _common_columns(session: Session, table: Table) -> tuple[tuple[str, ...], dict[str, Role]]:
    """Names of the features in the order of the first party, and the roles of other columns as far as all agree.

    All parties must have the same features. Of the other columns each may have its own.
    """
    outside = {name: str(role) for name, role in columns_outside(table).items()}
    own = json.dumps([table.schema.names(Role.QUASI_IDENTIFIER), outside]).encode()
    bodies = session.broadcast(_STAGE, own, largest=_MOST_BYTES_OF_NAMES)
    check_all_told_the_same(session, f"{_STAGE}/echo", bodies)
    told = {name: _told_columns(session, name, body) for name, body in bodies.items()}
    listed = {name: features for name, (features, _) in told.items()}
    sets = {name: json.dumps(sorted(names)).encode() for name, names in listed.items()}
    if odd := odd_one_out(sets):
        usual = next(names for name, names in listed.items() if sets[name] != sets[odd])
        lacking, further = sorted(set(usual) - set(listed[odd])), sorted(set(listed[odd]) - set(usual))
        column = (lacking or further)[0]
        detail = f"column '{column}' is {'missing there' if lacking else 'there only'}"
        session.accuse(odd, _STAGE, "schema", detail=detail)
    return listed[session.roster[0]], _agreed_roles([roles for _, roles in told.values()], table)


def _agreed_roles(told: Sequence[Mapping[str, Role]], table: Table) -> dict[str, Role]:
    """Roles that nobody contradicts, in the order of their columns' names."""
    given: dict[str, set[Role]] = {}
    for roles in told:
        for name, role in roles.items():
            given.setdefault(name, set()).add(role)
    taken = {*table.schema.names(Role.QUASI_IDENTIFIER), table.schema.target}
    return {name: next(iter(given[name])) for name in sorted(given) if len(given[name]) == 1 and name not in taken}


def _told_columns(session: Session, party: str, body: bytes) -> tuple[tuple[str, ...], dict[str, Role]]:
    """Features and other columns of a party; ends the session where it is something else."""
    try:
        names, outside = json.loads(body)
        roles = {name: Role(role) for name, role in outside.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        session.accuse(party, _STAGE, "garbage")
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if (
        not is_list
        or len(set(names)) < len(names)
        or not set(roles.values()) <= set(_OUTSIDE)
        or set(names) & set(roles)
    ):
        session.accuse(party, _STAGE, "garbage")
    return tuple(names), roles
