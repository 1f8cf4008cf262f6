"""How parties come to a shared schema: the same column names, and the union of their values."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.collaborate.config import PartyConfig
from sfumato.collaborate.secure_sum import SecureSum, is_any
from sfumato.collaborate.session.handshake import (
    Plain,
    Terms,
    check_all_have_the_same,
    check_all_told_the_same,
    greet,
    odd_one_out,
)
from sfumato.collaborate.session.joining import joined
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import MOST_VALUES, SharedSchema, own_values
from sfumato.collaborate.transport.channel import PRIME, SumOfParties, Words
from sfumato.collaborate.transport.messages import size_limit_of_counts
from sfumato.errors import CollaborationError, InvalidParameterError, SchemaError
from sfumato.schema import WITHHELD, Kind, Role
from sfumato.table.coding import Table

# The union of what the parties hold, without who or how many of them hold a value.
#
# Every party writes its values into a public table of slots, each at a place that a salted hash gives, and the tables
# are added up modulo a prime. In a slot stands r · (1, words of the value, checksum) with a fresh random r other than
# 0. The same value of several parties adds up to another random multiple of the same words: divided by its first word,
# the slot shows the value and nothing of the factors. Different values in one slot spoil the checksum; they are tried
# again in a table with another salt, until nobody holds a value that all have not seen.
#
# What is learned: the union, the number of rounds, and which values met in a slot, which follows from the union and
# the public salts. Who holds a value learns one thing more: with its own factor subtracted, the slot tells whether
# anybody else holds it (not who, nor how many). No sum can hide that; it takes secure multiplication. Who does not
# hold a value learns nothing of its holders. A party can add values that it does not hold.


MOST_BYTES = 120
"""Longest value, as UTF-8."""
MOST_COLUMNS = 2**16
MOST_ROUNDS = 40
MOST_SLOTS = 2**18

_WORD = 7  # bytes: 56 bits are below the prime
_HEAD = 3  # bytes: column, and whether the value is missing
_FEWEST_SLOTS = 16
_SLOTS_A_COLLISION = 8
_MISSING, _TEXT = 0, 1


@dataclass(frozen=True)
class _Layout:
    """How a value lies in a slot: 1, its words (length first, then zeros to the end) and a checksum."""

    most_bytes: int

    @property
    def n_content_words(self) -> int:
        return -(-(1 + _HEAD + self.most_bytes) // _WORD)

    @property
    def n_words(self) -> int:
        return self.n_content_words + 2

    def pack(self, item: bytes) -> list[int]:
        padded = (bytes([len(item)]) + item).ljust(self.n_content_words * _WORD, b"\0")
        words = [int.from_bytes(padded[i : i + _WORD]) for i in range(0, len(padded), _WORD)]
        return [1, *words, _checksum(padded)]

    def unpack(self, slot: Sequence[int]) -> bytes | None:
        """Return the item of a slot, or nothing where different ones met."""
        if not slot[0]:
            return None
        inverse = pow(slot[0], -1, PRIME)
        _, *words, checksum = [word * inverse % PRIME for word in slot]
        if max(words) >= 2 ** (8 * _WORD):
            return None
        padded = b"".join(word.to_bytes(_WORD) for word in words)
        item = padded[1 : 1 + padded[0]]
        is_intact = checksum == _checksum(padded) and self.pack(item)[1:-1] == words if item else False
        return item if is_intact else None


def largest_table_bytes() -> int:
    """Size of the largest table that a union may need."""
    return MOST_SLOTS * _Layout(MOST_BYTES).n_words * 8


def private_union(
    sums: SumOfParties,
    values: Mapping[str, Iterable[str | None]],
    *,
    expected: int = 1000,
    salt: bytes = b"",
    most_bytes: int = MOST_BYTES,
) -> dict[str, tuple[str | None, ...]]:
    """Unite the parties' sets of values, column by column.

    Parameters
    ----------
    values : mapping of str to iterable of str or None
        This party's values of each column; ``None`` is a missing one. All parties name the same columns in the same
        order.
    expected : int
        Public guess of how many different values there are in all columns together. With more it takes longer.
    salt : bytes
        Public and the same for all, best of this session only.
    most_bytes : int
        Longest value that the slots have room for, the same for all.

    Returns
    -------
    dict of str to tuple
        Values of each column, sorted, a missing one last; the same for all parties.

    Raises
    ------
    SchemaError
        If a value is too long or there are too many; the message does not show it.
    CollaborationError
        If values are left after many rounds, which honest parties do not meet.
    """
    layout = _Layout(_checked("most_bytes", most_bytes, MOST_BYTES))
    columns = tuple(values)
    pending = _items(values, layout.most_bytes)
    n_slots = max(_FEWEST_SLOTS, 2 * _checked("expected", expected, MOST_SLOTS // 2))
    found: set[bytes] = set()
    for number in range(1, MOST_ROUNDS + 1):
        salted = hashlib.sha256(b"sfumato union" + number.to_bytes(4) + salt).digest()
        own = _written(pending, salted, n_slots, layout)
        total = sums.total(own, stage=f"union {number}", modulus=PRIME)
        seen, n_spoiled = _read(total, salted, n_slots, layout)
        found |= seen
        pending -= seen
        united = _by_column(found, columns)
        if not is_any(sums, bool(pending), stage=f"union {number}: anything left"):
            break
        n_slots = min(MOST_SLOTS, max(_FEWEST_SLOTS, _SLOTS_A_COLLISION * n_spoiled))
    if pending:
        problem = f"values are left after {number} rounds"
        raise CollaborationError(problem, party="one of them", stage="union", hint="start the session again")
    return united


def _checked(name: str, given: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= most:
        raise InvalidParameterError(name, f"got {given!r}", allowed=f"a whole number from 1 to {most:,}")
    return given


def _items(values: Mapping[str, Iterable[str | None]], most_bytes: int) -> set[bytes]:
    """Values as bytes: the column's number, whether one is missing, and the text."""
    if len(values) > MOST_COLUMNS:
        raise InvalidParameterError("values", f"got {len(values):,} columns", allowed=f"at most {MOST_COLUMNS:,}")
    items = set()
    for number, (name, held) in enumerate(values.items()):
        distinct = set(held)
        if len(distinct) > MOST_VALUES:
            hint = "leave the column out, or cut its numbers into intervals"
            raise SchemaError(f"has more than {MOST_VALUES:,} values", column=name, hint=hint)
        for value in distinct:
            tag = bytes([_MISSING if value is None else _TEXT])
            try:
                text = (value or "").encode()
            except UnicodeEncodeError:
                raise SchemaError("holds a value that is not Unicode text", column=name) from None
            if len(text) > most_bytes:
                problem = f"holds a value of more than {most_bytes} bytes"
                raise SchemaError(problem, column=name, hint="leave the column out, or shorten its values")
            items.add(number.to_bytes(2) + tag + text)
    return items


def _checksum(padded: bytes) -> int:
    return int.from_bytes(hashlib.sha256(padded).digest()[:_WORD])


def _slot_of(item: bytes, salted: bytes, n_slots: int) -> int:
    return int.from_bytes(hashlib.sha256(salted + item).digest()[:8]) % n_slots


def _written(items: Iterable[bytes], salted: bytes, n_slots: int, layout: _Layout) -> Words:
    """Write a party's table: in each slot the sum of what falls there, every item by a random factor of its own."""
    slots: dict[int, list[int]] = {}
    for item in items:
        factor = 1 + secrets.randbelow(PRIME - 1)
        place = _slot_of(item, salted, n_slots)
        before = slots.get(place, [0] * layout.n_words)
        slots[place] = [(old + factor * word) % PRIME for old, word in zip(before, layout.pack(item), strict=True)]
    table = np.zeros((n_slots, layout.n_words), dtype=np.uint64)
    for place, words in slots.items():
        table[place] = words
    return table.ravel()


def _read(total: Words, salted: bytes, n_slots: int, layout: _Layout) -> tuple[set[bytes], int]:
    """Items that can be read, and in how many slots something else stands."""
    table = total.reshape(n_slots, layout.n_words)
    items, n_spoiled = set(), 0
    for place in np.flatnonzero(table.any(axis=1)):
        item = layout.unpack(table[place].tolist())
        if item is None or _slot_of(item, salted, n_slots) != place:
            n_spoiled += 1
        else:
            items.add(item)
    return items, n_spoiled


def _decoded(item: bytes, n_columns: int) -> tuple[int, str | None]:
    """Column and value of an item; ends the session where it is one that no honest party writes."""
    number, tag, text = int.from_bytes(item[:2]), item[2:_HEAD], item[_HEAD:]
    try:
        value = text.decode()
    except UnicodeDecodeError:
        value = None
    is_missing = tag == bytes([_MISSING]) and not text
    if number >= n_columns or not (is_missing or (tag == bytes([_TEXT]) and value is not None)):
        problem = "wrote something that is not a value"
        raise CollaborationError(problem, party="one of them", stage="union")
    return number, None if is_missing else value


def _by_column(items: set[bytes], columns: tuple[str, ...]) -> dict[str, tuple[str | None, ...]]:
    held: list[set[str | None]] = [set() for _ in columns]
    for item in items:
        number, value = _decoded(item, len(columns))
        held[number].add(value)
    for name, values in zip(columns, held, strict=True):
        if len(values) > MOST_VALUES:
            hint = "leave the column out, or cut its numbers into intervals"
            raise SchemaError(f"has more than {MOST_VALUES:,} values among the parties", column=name, hint=hint)
    ordered = [sorted(values, key=lambda value: (value is None, value or "")) for values in held]  # missing ones last
    return {name: tuple(values) for name, values in zip(columns, ordered, strict=True)}


FEW_VALUES = 20
"""A numeric column with more values needs cut points."""

_ALWAYS_FEW = 3
_ROWS_A_VALUE = 10
_MOST_BYTES_OF_NAMES = 2**20
_KEEP_BACK = "give it the role identifier, which keeps it back, or cut its numbers into bands"
_STAGE = "columns"
_OUTSIDE = (*WITHHELD, Role.SENSITIVE, Role.OTHER)
_TWO = 2


def agree_on_schema(
    config: PartyConfig,
    table: Table,
    *,
    cuts: Mapping[str, Sequence[float]] | None = None,
    named: Collection[str] = (),
    transcript: Transcript | None = None,
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
    with joined(config, transcript=transcript, size_limit=limit) as session:
        parameters: dict[str, Plain] = {"target": target, "cuts": {name: [*points] for name, points in given.items()}}
        parameters["missing"] = [*sorted(set(table.schema.missing))]
        greet(session, Terms(config.session, config.roster.fingerprints, "", "shared schema", parameters))
        names, roles = _common_columns(session, table)
        values = {name: own_values(table, name) for name in (*names, target)}
        for name in set(values) & set(given):  # of a column that is cut no number leaves
            values[name] = (None,) if table[name].n_missing else ()
        union = private_union(SecureSum(session), values, salt=session.binding)
        united = SharedSchema.of_values({name: union[name] for name in names}, {target: union[target]}, given)
        schema = replace(united, roles=roles)
        check_all_have_the_same(session, "shared schema", json.dumps([schema.hash(), sorted(roles.items())]).encode())
    return schema


def columns_outside(table: Table) -> dict[str, Role]:
    """Columns that are neither feature nor target, with their roles: what all parties are told of them."""
    return {column.name: column.role for column in table.schema if column.role in _OUTSIDE}


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
            raise SchemaError("has cut points but is not a feature", column=name)
        try:
            table[name].numbers()
        except ValueError:
            raise SchemaError("has cut points, but not all its values are numbers", column=name) from None
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
