r"""Generalized cells, read by the audit's own code: which values of the original a released cell may mean.

A missing cell stands for a missing value, ``*`` for anything, ``[low, high]`` for a closed range, ``{a|b}`` for one of
some values (``\N`` is the missing one; the first may be a range) and every other text for the value that it spells. A
backslash precedes each of ``\ | { } [ ] , *`` inside a value. Values are compared by meaning, see
:mod:`sfumato.audit.reading.values`: numbers as numbers in a numeric column, ISO texts in a column of dates.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.audit.reading.columns import Classes, places_of_runs
from sfumato.audit.reading.spelling import SPELLINGS
from sfumato.audit.reading.values import is_text, matching_ids, meanings_read_as, texts_of
from sfumato.schema import Kind

Ids = NDArray[np.int64]
Run = tuple[int, int]

_SPELLED = SPELLINGS["cells"]
_ESCAPES = re.sub(r"(.)", r"\\\1", _SPELLED["escaped"])
_VALUE = rf"((?:[^{_ESCAPES}]|\\[{_ESCAPES}])*)"
_SINGLE = re.compile(_VALUE)
_RANGE = re.compile(rf"\[{_VALUE}, {_VALUE}\]")
_MEMBER = re.compile(r"((?:[^\\|]|\\.)*)\|", re.DOTALL)
_WITHOUT_OPEN_ESCAPE = re.compile(r"(?:[^\\]|\\.)*+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")
_ANY, _MISSING_MEMBER = _SPELLED["any"], _SPELLED["missing_member"]
_NUMBERS = (int, float, Decimal)
_MOST_MEANT = 1 << 22  # stretches of values that all cells mean, up to which equal sets of cells are looked for
_NOT_A_NUMBER = meanings_read_as(pa.array([float("nan")]), pa.string())[0]


@dataclass(frozen=True)
class _Said:
    """What the text of a cell says, before it is compared with any value."""

    bounds: tuple[str, str] | None = None
    members: tuple[str, ...] = ()
    may_be_missing: bool = False
    is_any: bool = False
    is_missing_last: bool = True


@dataclass(frozen=True, repr=False, eq=False)
class Containing:
    """Which original values each distinct released cell may mean, as runs of places in the originals' order.

    Parameters
    ----------
    places : array
        Place of each distinct original value from 0 to ``n_places - 1``; values that mean the same share one.
    cells, starts, stops : array
        Runs ``starts <= place < stops`` of a released cell, ascending, not touching; a cell may have none.
    n_cells : int
        Number of distinct released cells.
    n_unreadable : int
        Cells of broken syntax, of ranges where the column has no order, or from a higher to a lower value.
    n_foreign : int
        Cells that name values (or bounds, or "missing") that are not among the original's: they say more than it does.
    n_repeated : int
        Cells that say what another one says in another spelling.
    n_misspelled : int
        Cells in another spelling than the one that their values have: ``[29, 42.0]`` where the original has ``42``,
        ``[42, 42]`` for ``42``, ``{b|a}`` for ``{a|b}``, a set of all values for ``*``.
    """

    places: Ids
    n_places: int
    cells: Ids
    starts: Ids
    stops: Ids
    n_cells: int
    n_unreadable: int = 0
    n_foreign: int = 0
    n_repeated: int = 0
    n_misspelled: int = 0

    def __repr__(self) -> str:
        return f"Containing({self.n_cells:,} cells, {self.n_places:,} values)"

    @cached_property
    def first_runs(self) -> Ids:
        """Where the runs of each cell start, and after them where the last one's end."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.cells, minlength=self.n_cells))]).astype(np.int64)

    def holds(self, original: NDArray[np.integer], released: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether, pair by pair, the released cell of one code may mean the original value of the other."""
        return self.holds_at(self.places[original], released)

    def holds_at(self, places: Ids, released: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether, pair by pair, the released cell of a code may mean the value at a place."""
        if not len(self.cells):
            return np.zeros(len(places), dtype=np.bool_)
        width = self.n_places + 1
        wanted = released.astype(np.int64) * width + places
        run = np.searchsorted(self.cells * width + self.starts, wanted, side="right") - 1
        found: NDArray[np.bool_] = (run >= 0) & (wanted < (self.cells * width + self.stops)[run])
        return found

    def separated(self) -> Containing:
        """Give values that the same cells may mean one place: which rows fit which does not depend on more.

        Where cells mean very many values in all, only neighbours share one.

        Examples
        --------
        >>> read = contained(pa.array(["{a|c}", "*"]), pa.array(["a", "b", "c", "d"]), Kind.CATEGORICAL)
        >>> read.separated().places.tolist(), read.separated().n_places
        ([0, 1, 0, 1], 2)
        """
        begins = np.unique(np.concatenate([[0], self.starts, self.stops]))
        begins = begins[begins < max(self.n_places, 1)]
        first, last = np.searchsorted(begins, self.starts), np.searchsorted(begins, self.stops)
        lengths = last - first
        place_of = np.arange(len(begins))
        if int(lengths.sum()) <= _MOST_MEANT:
            run = np.repeat(np.arange(len(lengths)), lengths)
            stretch = places_of_runs(first, last)
            by_stretch = np.argsort(stretch, kind="stable")  # the cells of each in their order
            cells = np.split(self.cells[run][by_stretch], np.cumsum(np.bincount(stretch, minlength=len(begins)))[:-1])
            known: dict[bytes, int] = {}
            place_of = np.array([known.setdefault(own.tobytes(), len(known)) for own in cells], dtype=np.int64)
            pairs = np.unique(self.cells[run] * len(begins) + place_of[stretch])
            cell, place = np.divmod(pairs, len(begins))
            begins_run = np.append(True, (np.diff(cell) != 0) | (np.diff(place) != 1))[: len(pairs)]
            ends_run = np.append(begins_run[1:], True)[: len(pairs)]
            merged = cell[begins_run], place[begins_run], place[ends_run] + 1
        else:
            merged = self.cells, first, last
        stretch_of_place = np.searchsorted(begins, np.arange(self.n_places), side="right") - 1
        n_places = int(place_of.max(initial=-1)) + 1
        return replace(
            self,
            places=place_of[stretch_of_place][self.places],
            n_places=n_places,
            cells=merged[0],
            starts=merged[1],
            stops=merged[2],
        )


def unchanged(released: pa.Array, original: pa.Array) -> Containing:
    """Let each released cell mean the original value that equals it, and no other."""
    before, after = matching_ids(original, released)
    known, places = np.unique(before, return_inverse=True)
    place = np.searchsorted(known, after)
    cells = np.flatnonzero(np.isin(after, known))
    starts = place[cells].astype(np.int64)
    n_foreign = len(released) - len(cells)
    return Containing(places, len(known), cells, starts, starts + 1, len(released), n_foreign=n_foreign)


def contained(released: pa.Array, original: pa.Array, kind: Kind, domain: tuple[str, ...] | None = None) -> Containing:
    r"""Read the distinct cells of a generalized column against the distinct values of its original.

    Parameters
    ----------
    kind : Kind
        Ranges are read in numeric, ordered and date columns only.
    domain : tuple of str or None
        Order of an ordered column, lowest first; its values are never foreign. No range holds a value of the original
        that it lacks. ``None``: ordered as they are.

    Examples
    --------
    >>> found = contained(pa.array(["[29, 42]", r"{57|\N}", "*"]), pa.array([29, 38, 42, 57, None]), Kind.NUMERIC)
    >>> [found.holds(np.arange(5), np.full(5, cell)).astype(int).tolist() for cell in range(3)]
    [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 1, 1]]
    """
    values = _Values(original, kind, domain if kind is Kind.ORDERED else None)
    texts = (released if is_text(released.type) else pc.cast(released, pa.string())).to_pylist()
    said = [_parse(text) for text in texts]
    values.learn(token for cell in said if cell for token in (*(cell.bounds or ()), *cell.members))
    runs: list[tuple[int, int, int]] = []
    known: set[tuple[Run, ...]] = set()
    n_unreadable = n_foreign = n_repeated = n_misspelled = 0
    for number, cell in enumerate(said):
        places = values.places_of(cell) if cell else None
        if cell is None or places is None:
            n_unreadable += 1
            continue
        n_foreign += values.is_foreign(cell)
        n_misspelled += not values.is_spelled(cell)
        covered = _merged(places)
        n_repeated += tuple(covered) in known
        known.add(tuple(covered))
        runs.extend((number, start, stop) for start, stop in covered)
    cells, starts, stops = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    problems = (n_unreadable, n_foreign, n_repeated, n_misspelled)
    return Containing(values.places, values.n_places, cells, starts, stops, len(texts), *problems)


def tokens_of(released: pa.Array) -> tuple[list[str], bool]:
    r"""Texts of the values that generalized cells name, each once, and whether some cell may be missing.

    Examples
    --------
    >>> tokens_of(pa.array(["[29, 42]", r"{57|\N}", "*", "42"]))
    (['29', '42', '57'], True)
    """
    said = [cell for cell in map(_parse, pc.cast(released, pa.string()).to_pylist()) if cell is not None]
    tokens = dict.fromkeys(token for cell in said for token in (*(cell.bounds or ()), *cell.members))
    return list(tokens), any(cell.may_be_missing for cell in said)


def _parse(text: str | None) -> _Said | None:
    """Take a cell's text apart; ``None`` for a text that does not follow the syntax."""
    if text is None:
        return _Said(may_be_missing=True)
    if text == _ANY:
        return _Said(is_any=True)
    if not text.startswith("{"):
        return _parse_pieces([text])
    if not text.endswith("}") or not _WITHOUT_OPEN_ESCAPE.fullmatch(text[1:-1]):
        return None
    pieces = _MEMBER.findall(text[1:-1] + "|")
    return _parse_pieces(pieces) if len(pieces) > 1 else None


def _parse_pieces(pieces: Sequence[str]) -> _Said | None:
    bounds, members, may_be_missing = None, [], False
    for i, piece in enumerate(pieces):
        if piece == _MISSING_MEMBER and len(pieces) > 1 and not may_be_missing:
            may_be_missing = True
        elif i == 0 and (match := _RANGE.fullmatch(piece)):
            bounds = (_plain(match[1]), _plain(match[2]))
        elif _SINGLE.fullmatch(piece):
            members.append(_plain(piece))
        else:
            return None
    is_missing_last = not may_be_missing or pieces[-1] == _MISSING_MEMBER
    return _Said(bounds, tuple(members), may_be_missing, is_missing_last=is_missing_last)


def _plain(value: str) -> str:
    return _ESCAPED.sub(r"\1", value) if "\\" in value else value


def _merged(places: Iterable[Run]) -> list[Run]:
    """Join runs so that they neither overlap nor touch; empty ones are left out."""
    merged: list[Run] = []
    for start, stop in sorted(places):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif start < stop:
            merged.append((start, stop))
    return merged


class _Values:
    """Distinct values of an original column in their order: those with an order first, then the others, then missing.

    A key is what a value is ordered by: its place in the domain where one is declared, else its meaning.
    """

    def __init__(self, original: pa.Array, kind: Kind, domain: tuple[str, ...] | None) -> None:
        if kind is Kind.NUMERIC and pa.types.is_boolean(original.type):
            original = pc.cast(original, pa.int8())  # the numbers 0 and 1
        self._kind, self._type = kind, original.type
        self._text_type = _reading_type(original.type, kind)
        meanings = self._read(original)
        self._domain_place = self._places_in_domain(domain)
        keys = [self._key(meaning) for meaning in meanings]
        has_domain = self._domain_place is not None
        in_order = {key for key in keys if key is not None and (not has_domain or isinstance(key, int))}
        self._sorted = _with_order(in_order, kind)
        place_of: dict[Hashable, int] = {key: place for place, key in enumerate(self._sorted)}
        for key in keys:
            if key is not None:
                place_of.setdefault(key, len(place_of))
        self._has_missing = None in keys
        if self._has_missing:
            place_of[None] = len(place_of)
        self._place_of, self.n_places = place_of, len(place_of)
        self.places = np.array([place_of[key] for key in keys], dtype=np.int64)
        self._key_of: dict[str, Hashable] = {}
        shown = texts_of(original)
        self._spellings = set((pc.utf8_trim_whitespace(shown) if kind is Kind.NUMERIC else shown).to_pylist())
        self._spelling_of: dict[Hashable, str] = {}

    def _read(self, values: pa.Array) -> list[Hashable]:
        if is_text(values.type):
            values = pc.utf8_trim_whitespace(values) if self._kind is Kind.NUMERIC else values
            return meanings_read_as(values, self._text_type)
        return meanings_read_as(values, pa.string())

    def _places_in_domain(self, domain: tuple[str, ...] | None) -> dict[Hashable, int] | None:
        if domain is None:
            return None
        return {meaning: i for i, meaning in enumerate(self._read(pa.array(domain, pa.string())))}

    def _key(self, meaning: Hashable) -> Hashable:
        if self._domain_place is None or meaning is None:
            return meaning
        return self._domain_place.get(meaning, (meaning,))  # a pair of brackets, so that it equals no place

    def learn(self, tokens: Iterable[str]) -> None:
        """Find out what the texts in the cells mean."""
        distinct = list(dict.fromkeys(tokens))
        meanings = self._read(pa.array(distinct, pa.string()))
        self._key_of = {token: self._key(meaning) for token, meaning in zip(distinct, meanings, strict=True)}

    def places_of(self, cell: _Said) -> list[Run] | None:
        """Find the runs of places that a cell stands for; ``None`` for a range that cannot be placed."""
        if cell.is_any:
            return [(0, self.n_places)]
        keys = [self._key_of[token] for token in cell.members] + ([None] if cell.may_be_missing else [])
        if len(set(keys)) < len(keys) or (cell.bounds and cell.members):
            return None  # says something twice: what is said once more could tell apart who is in it
        runs = [(self._place_of[key], self._place_of[key] + 1) for key in keys if key in self._place_of]
        if cell.bounds is None:
            return runs
        low, high = (self._key_of[token] for token in cell.bounds)
        if not self._is_range(low, high):
            return None
        return [*runs, (bisect_left(self._sorted, low), bisect_right(self._sorted, high))]

    def _is_range(self, low: Any, high: Any) -> bool:
        if not self._sorted:
            return False
        sort = _NUMBERS if isinstance(self._sorted[0], _NUMBERS) else str
        return all(isinstance(bound, sort) for bound in (low, high)) and bool(low <= high)

    def is_spelled(self, cell: _Said) -> bool:
        """Whether a cell is the one text of what it says, with values as the original spells them, each in one way."""
        tokens = (*(cell.bounds or ()), *cell.members)
        keys = [self._key_of[token] for token in tokens]
        for token, key in zip(tokens, keys, strict=True):
            if key in self._place_of and (
                token not in self._spellings or self._spelling_of.setdefault(key, token) != token
            ):
                return False
        if cell.bounds:
            return cell.is_missing_last and keys[0] != keys[1]
        is_all = len(keys) + cell.may_be_missing == self.n_places > 1
        is_range = self._sorted and len(keys) == 1  # whose ends are one value: {7|\\N} is no *
        return cell.is_missing_last and _ascend(keys) and not (is_all and keys and not is_range)

    def is_foreign(self, cell: _Said) -> bool:
        """Whether a cell names something that is not in the column."""
        if cell.may_be_missing and not self._has_missing:
            return True
        keys = (self._key_of[token] for token in (*(cell.bounds or ()), *cell.members))
        return any(key not in self._place_of for key in keys)


def _ascend(keys: Sequence[Any]) -> bool:
    try:
        return all(a < b for a, b in pairwise(keys))
    except TypeError:  # values of several types have no order
        return True


def _reading_type(original: pa.DataType, kind: Kind) -> pa.DataType:
    """Type that texts are read as: the original's, and where that is text, decimal numbers or moments by kind."""
    if not is_text(original):
        return original
    return {Kind.NUMERIC: pa.decimal128(1), Kind.DATE: pa.timestamp("us")}.get(kind, original)


def _with_order(keys: set[Any], kind: Kind) -> list[Any]:
    """Sort the keys that a range can run over; none in a categorical column, nor where numbers and texts are mixed."""
    if kind is Kind.CATEGORICAL:
        return []
    numbers = [key for key in keys if isinstance(key, _NUMBERS)]
    if numbers:
        return sorted(numbers) if keys - set(numbers) <= {_NOT_A_NUMBER} else []
    return sorted(keys) if kind is not Kind.NUMERIC else []


# Rows of bits: for each value of a column, the groups of released rows whose cell may stand for it.


Words = NDArray[np.uint64]

CHUNK_WORDS = 1 << 17
"""Words that are handled at once: 1 MiB."""
_WORD_BITS = 64
_MOST_IN_BYTE = 255
_WHOLE_WORDS = 1 << 21  # bits of a column that are kept: 16 MiB


class ColumnBits:
    """Released classes whose cell of a column may mean an original value, one bit a class.

    Going up the places of the values, a class is switched on where a run of its cell starts and off where it stops.
    """

    def __init__(self, containing: Containing, places: Ids, cells: Ids) -> None:
        self._containing, self._cells = containing, cells
        self.places, self.n_words = places, -(-len(cells) // _WORD_BITS)

    def kept(self, originals: Ids, classes: Ids) -> ColumnBits:
        """Keep some of the distinct originals and of the classes."""
        return ColumnBits(self._containing, self.places[originals], self._cells[classes])

    def touches(self, classes: Ids, places: Ids) -> NDArray[np.bool_]:
        """Whether the cell of each class may mean a value at one of the places.

        Among many values it is only asked whether the cell's lowest and highest one leave room for it.
        """
        cells = self._cells[classes]
        if self._containing.n_places <= _WORD_BITS:
            wanted = np.bitwise_or.reduce(np.uint64(1) << np.unique(places).astype(np.uint64))
            return np.asarray((self._values_of_cell[cells] & wanted) != 0)
        lowest, end = self._extent_of_cell
        return np.asarray((lowest[cells] <= places.max()) & (end[cells] > places.min()))

    @cached_property
    def _values_of_cell(self) -> Words:
        """Values that each cell may stand for, a bit each."""
        read, values = self._containing, np.zeros(self._containing.n_cells, dtype=np.uint64)
        for place in range(read.n_places):
            holding = read.cells[(read.starts <= place) & (place < read.stops)]
            values[holding] |= np.uint64(1) << np.uint64(place)
        return values

    @cached_property
    def _extent_of_cell(self) -> tuple[Ids, Ids]:
        """Lowest place of each cell and the end of its last run; nothing lies between those of a cell without runs."""
        read = self._containing
        lowest, end = np.full(read.n_cells, read.n_places), np.zeros(read.n_cells, dtype=np.int64)
        np.minimum.at(lowest, read.cells, read.starts)
        np.maximum.at(end, read.cells, read.stops)
        return lowest, end

    @cached_property
    def _switched(self) -> tuple[Ids, Ids, Words]:
        """Places at which classes are switched, ascending, with the word and bit of each."""
        read, first = self._containing, self._containing.first_runs
        each = first[self._cells + 1] - first[self._cells]
        own = places_of_runs(first[self._cells], first[self._cells + 1])
        classes = np.tile(np.repeat(np.arange(len(self._cells)), each), 2)
        switches = np.concatenate([read.starts[own], read.stops[own]])
        order = np.argsort(switches, kind="stable")
        classes = classes[order]
        bits = np.uint64(1) << (classes % _WORD_BITS).astype(np.uint64)
        return switches[order], classes // _WORD_BITS, bits

    @cached_property
    def _whole(self) -> Words | None:
        """Bits at all places, where they are few."""
        n_places = self._containing.n_places
        return self._at(np.arange(n_places)) if n_places * self.n_words <= _WHOLE_WORDS else None

    def of(self, originals: Ids | slice) -> Words:
        """Bits for some of the distinct originals, a row each."""
        places = self.places[originals]
        if self._whole is not None:
            return self._whole[places]
        needed, inverse = np.unique(places, return_inverse=True)
        return self._at(needed)[inverse]

    def _at(self, places: Ids) -> Words:
        """Bits at ascending places."""
        switches, switched_words, switched_bits = self._switched
        row = np.searchsorted(places, switches)
        n_reached = int(np.searchsorted(row, len(places)))
        flat = np.zeros(len(places) * self.n_words, dtype=np.uint64)
        at = row[:n_reached] * self.n_words + switched_words[:n_reached]
        np.bitwise_xor.at(flat, at, switched_bits[:n_reached])
        bits = flat.reshape(len(places), self.n_words)
        np.bitwise_xor.accumulate(bits, axis=0, out=bits)
        return bits


def packed(bits: NDArray[np.bool_]) -> Words:
    """Pack bits into words, the first bit lowest."""
    padded = np.zeros(-(-len(bits) // _WORD_BITS) * _WORD_BITS, dtype=np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def ones(words: Words) -> tuple[Ids, Ids]:
    """Find the rows and bit numbers of the ones."""
    rows, places = np.nonzero(words)
    held = np.unpackbits(words[rows, places].astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    entries, bits = np.nonzero(held)
    return rows[entries], places[entries] * _WORD_BITS + bits


def weighted_ones(words: Words, weights: Ids) -> Ids:
    """Add up the weights of the ones in each row: bits whose weight has a binary digit count by its value."""
    total = np.zeros(len(words), dtype=np.int64)
    for digit in range(int(weights.max(initial=0)).bit_length()):
        mask = packed((weights >> digit) & 1 == 1)
        total += np.bitwise_count(words & mask).sum(axis=1, dtype=np.int64) << digit
    return total


def weighted_rows(words: Words, weights: Ids, n_bits: int) -> Ids:
    """Add up, for each bit, the weights of the rows in which it is 1."""
    total = np.zeros(n_bits, dtype=np.int64)
    for digit in range(int(weights.max(initial=0)).bit_length()):
        rows = words[(weights >> digit) & 1 == 1].astype("<u8").view(np.uint8)
        for start in range(0, len(rows), _MOST_IN_BYTE):
            flags = np.unpackbits(rows[start : start + _MOST_IN_BYTE], axis=1, bitorder="little", count=n_bits)
            total += flags.sum(axis=0, dtype=np.uint8).astype(np.int64) << digit
    return total


def first_ones(words: Words) -> Ids:
    """Find the first bit that is 1 in each row; every row has one."""
    place = (words != 0).argmax(axis=1)
    word = words[np.arange(len(words)), place]
    below = (word & (~word + np.uint64(1))) - np.uint64(1)
    first: Ids = place * _WORD_BITS + np.bitwise_count(below)
    return first


def a_row_of_each(classes: Classes) -> Ids:
    """Pick a row of each class, the last one."""
    rows = np.zeros(len(classes.sizes), dtype=np.int64)
    rows[classes.ids] = np.arange(len(classes.ids))
    return rows
