"""The union of what the parties hold, without who or how many of them hold a value.

Every party writes its values into a public table of slots, each at a place that a salted hash gives, and the tables are
added up modulo a prime. In a slot stands r · (1, words of the value, checksum) with a fresh random r other than 0. The
same value of several parties adds up to another random multiple of the same words: divided by its first word, the slot
shows the value and nothing of the factors. Different values in one slot spoil the checksum; they are tried again in a
table with another salt, until nobody holds a value that all have not seen.

What is learned: the union, the number of rounds, and which values met in a slot, which follows from the union and the
public salts. Who holds a value learns one thing more: with its own factor subtracted, the slot tells whether anybody
else holds it (not who, nor how many). No sum can hide that; it takes secure multiplication. Who does not hold a value
learns nothing of its holders. A party can add values that it does not hold.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.collaboration.contract import PRIME, SumOfParties, Words
from sfumato.collaboration.questions import is_any
from sfumato.collaboration.shared_schema import MOST_VALUES
from sfumato.errors import CollaborationError, InvalidParameterError, SchemaError

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


def largest_table_bytes(most_bytes: int = MOST_BYTES) -> int:
    """Size of the largest table that a union may need."""
    return MOST_SLOTS * _Layout(most_bytes).n_words * 8


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
        raise CollaborationError(problem, party="one of them", stage="union", hint="start the session anew")
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
            items.add(number.to_bytes(2) + tag + _encoded(value or "", name, most_bytes))
    return items


def _encoded(value: str, column: str, most_bytes: int) -> bytes:
    try:
        text = value.encode()
    except UnicodeEncodeError:
        raise SchemaError("holds a value that is no Unicode text", column=column) from None
    if len(text) > most_bytes:
        problem = f"holds a value of more than {most_bytes} bytes"
        raise SchemaError(problem, column=column, hint="leave the column out, or shorten its values")
    return text


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
        problem = "wrote something that is no value"
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
    return {name: _sorted(values) for name, values in zip(columns, held, strict=True)}


def _sorted(values: set[str | None]) -> tuple[str | None, ...]:
    return (*sorted(value for value in values if value is not None), *(value for value in values if value is None))
