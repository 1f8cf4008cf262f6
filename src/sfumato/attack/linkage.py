r"""Mass linkage: a reference table is matched with a release, person by person, on columns that both have.

Whoever holds a reference table (a voter list) knows some *background* columns of the people in it. The released rows
that are *consistent* with a reference row - every released cell may stand for its value - are its candidates.

- confidence is 1 over the number of candidates; a single candidate is a re-identification, and a record without any
  is not in the release, or one of the two tables is wrong about it;
- ICR :math:`= \log_2` of the number of candidates, Definition 2 of [ERP19]_;
- BIG :math:`= -\sum_j \log_2 P_j` over the background columns, Definition 1, where :math:`P_j` is the share of the
  column's domain that a candidate's cell stands for (see :func:`background_column`). A record
  has the least one among its candidates;
- TIDI = BIG + ICR, Definition 3: the bits that it takes to disclose the person. Small values are risky.

A column that all candidates agree on is learned without knowing which one is the person's.

References
----------
.. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity Disclosure
   Risks. ICIS 2019.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from sfumato.audit.reading import cells as bit_rows
from sfumato.audit.reading.cells import ColumnBits, Containing, Words, a_row_of_each, contained, first_ones, packed
from sfumato.audit.reading.columns import Classes, Refinement
from sfumato.audit.reading.values import is_text, meanings_read_as, numbers_in, ranks
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, ManifestError, SchemaError
from sfumato.manifest import AnyTable
from sfumato.measures.disclosure import (
    background_information_granularity,
    information_for_reidentification,
    total_information,
)
from sfumato.mechanisms.axes import positions_of
from sfumato.mechanisms.recoder import GENERALIZED
from sfumato.progress import Progress
from sfumato.schema import Column, Kind, Role
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import GeneralizedCell, read_cell

# One column that an attacker knows: which released cells may stand for a reference value, and how much they say.


Ids = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class BackgroundColumn:
    """A column of a reference table next to the same column of a release.

    Parameters
    ----------
    containing : Containing
        Values that each distinct released cell may stand for, among all values that either table shows.
    places : array
        Value of each reference row, as its place among them.
    cells : array
        Distinct released cell of each released row.
    shares : array
        Share of the column's domain that each distinct released cell stands for, :math:`P_j` of [ERP19]_.
    """

    containing: Containing
    places: Ids
    cells: Ids
    shares: Shares

    def holds(self, rows: Ids, released_rows: Ids) -> NDArray[np.bool_]:
        """Whether, pair by pair, a released row's cell may mean a reference row's value."""
        return self.containing.holds_at(self.places[rows], self.cells[released_rows])


def background_column(
    reference: CodedColumn, released: CodedColumn, described: Column, *, generalized: bool
) -> BackgroundColumn:
    """Read a column of both tables.

    The domain is what the released cells and the reference show together; missing is a value. A set's share is its
    number of values over that of the domain. A range's share is its length over the length of the domain, but no less
    than that of one value, which is 1 over the number of values; a missing member adds one value.

    Parameters
    ----------
    described : Column
        Name, kind and order of the column's *original* values.
    generalized : bool
        Whether released cells are written as ranges and sets; otherwise each one is a value.

    Raises
    ------
    SchemaError
        If released cells cannot be read, or a column of numbers or dates has something else in the reference. No cell
        is shown.
    """
    if generalized:
        containing, shares = _of_generalized(reference.values, released.values, described)
    else:
        containing = _of_single_values(reference.values, released.values, described.kind)
        shares = np.full(containing.n_cells, 1 / max(containing.n_places, 1))
    places = containing.places[reference.codes]
    return BackgroundColumn(containing, places, released.codes.astype(np.int64), shares)


def _of_single_values(reference: pa.Array, released: pa.Array, kind: Kind) -> Containing:
    """Let a released cell stand for the value that means the same: numbers by size, whatever their spelling."""
    is_numeric = kind is Kind.NUMERIC
    known = meanings_read_as(_trimmed(reference), pa.float64() if is_numeric else released.type)
    shown = meanings_read_as(_trimmed(released), pa.float64() if is_numeric else reference.type)
    place_of: dict[Hashable, int] = {}
    for meaning in (*known, *shown):
        place_of.setdefault(meaning, len(place_of))
    starts = np.array([place_of[meaning] for meaning in shown], dtype=np.int64)
    places = np.array([place_of[meaning] for meaning in known], dtype=np.int64)
    return Containing(places, len(place_of), np.arange(len(shown)), starts, starts + 1, len(shown))


def _trimmed(values: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(values) if is_text(values.type) else values


def _of_generalized(reference: pa.Array, released: pa.Array, described: Column) -> tuple[Containing, Shares]:
    known = as_text(_trimmed(reference))
    _check_reference(reference, known, described)
    cells = _read_cells(released, described.name)
    tokens = [value for cell in cells for value in (*cell.values, *(cell.bounds or ()))]
    tokens += [None] if any(cell.may_be_missing and not cell.is_any for cell in cells) else []
    if described.kind is Kind.NUMERIC and numbers_in(pa.array(tokens, pa.string()))[1].any():
        raise _unreadable(described.name)
    domain = pa.concat_arrays([known, pa.array(tokens, pa.string())]).unique()
    if described.domain:
        described = replace(
            described, domain=tuple(dict.fromkeys([*described.domain, *domain.drop_null().to_pylist()]))
        )
    containing = contained(released, domain, described.kind, described.domain)
    if containing.n_unreadable:
        raise _unreadable(described.name)
    shares = _shares(containing, _positions(domain, containing, described))
    places = containing.places[pc.index_in(known, domain).to_numpy().astype(np.int64)]
    return replace(containing, places=places), shares


def _check_reference(reference: pa.Array, known: pa.Array, described: Column) -> None:
    """Refuse values that would be compared as texts with ranges of numbers or dates."""
    if described.kind is Kind.NUMERIC:
        n_wrong, what, hint = int(numbers_in(known)[1].sum()), "numbers", "list the texts that mean 'missing'"
    elif described.kind is Kind.DATE and not pa.types.is_temporal(reference.type):
        n_wrong, what, hint = _n_no_dates(known), "dates", "write them as 1960-02-11"
    else:
        return
    if n_wrong:
        problem = f"the release has {what} here, but {n_wrong:,} distinct values of the reference are none"
        raise SchemaError(problem, column=described.name, hint=f"{hint}, or leave the column out")


def _n_no_dates(known: pa.Array) -> int:
    """Count texts that are no ISO dates or times, with or without a zone."""
    texts = known.drop_null()
    if _are_moments(texts):
        return 0
    return sum(not _are_moments(texts.slice(i, 1)) for i in range(len(texts)))


def _are_moments(texts: pa.Array) -> bool:
    for zone in (None, "UTC"):
        try:
            pc.cast(texts, pa.timestamp("us", zone))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _read_cells(released: pa.Array, name: str) -> list[GeneralizedCell]:
    try:
        return [read_cell(text) for text in as_text(released).to_pylist()]
    except ValueError:
        raise _unreadable(name) from None


def _unreadable(name: str) -> SchemaError:
    problem = "the release has cells that are neither values nor ranges or sets of values"
    return SchemaError(problem, column=name, hint="does the manifest belong to this release?")


def _positions(domain: pa.Array, containing: Containing, described: Column) -> Shares | None:
    """Position of each place, not-a-number for missing; ``None`` where the values have no order."""
    found = positions_of(described, domain.drop_null())
    if found is None:
        return None
    positions = np.full(containing.n_places, np.nan)
    positions[containing.places[domain.is_valid().to_numpy(zero_copy_only=False)]] = found
    return positions


def _shares(containing: Containing, positions: Shares | None) -> Shares:
    n_values = max(containing.n_places, 1)
    sizes = (containing.stops - containing.starts) / n_values
    if positions is not None and len(containing.cells):
        has_missing = np.isnan(positions[containing.stops - 1])  # missing has the last place
        last = containing.stops - 1 - has_missing
        length = positions[np.maximum(last, containing.starts)] - positions[containing.starts]
        span = np.nanmax(positions, initial=-np.inf) - np.nanmin(positions, initial=np.inf)
        is_range = last >= containing.starts
        part = np.maximum(length / span if span > 0 else 0.0, 1 / n_values)
        sizes = np.where(is_range, part, 0.0) + has_missing / n_values
    return np.minimum(np.bincount(containing.cells, weights=sizes, minlength=containing.n_cells), 1.0)


# Reference rows beside the released rows that are consistent with them, without a matrix of all pairs.
#
# Equal reference rows are taken as one, and so are equal released rows, the groups. For each column and value the
# groups whose cell may stand for the value are a row of bits; the rows for a record's values are joined by "and", some
# records at a time. Groups are numbered by their background information granularity, so that the first bit tells the
# least one.


Flags = NDArray[np.bool_]
Bits = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Matched:
    """What the released rows that are consistent with a reference row have in common, one entry a reference row.

    Parameters
    ----------
    candidates : array
        How many they are.
    granularity : array
        Least background information granularity among them, in bits; infinite where there are none.
    agreeing : mapping of str to array
        For each column to be learned, whether they all have the same value; false where there are none.
    """

    candidates: Ids
    granularity: Bits
    agreeing: Mapping[str, Flags]


def match(columns: Sequence[BackgroundColumn], learned: Mapping[str, Ids]) -> Matched:
    """Match every reference row.

    Parameters
    ----------
    columns : sequence of BackgroundColumn
        At least one.
    learned : mapping of str to array
        Columns to be learned: the number of each released row's value, from 0.
    """
    records = _alike([(column.places, column.containing.n_places) for column in columns])
    groups = _groups(columns)
    one_record, one_row = a_row_of_each(records), a_row_of_each(groups)
    bits = [ColumnBits(c.containing, c.places[one_record], c.cells[one_row]) for c in columns]
    granularity = np.append(_granularity(columns, one_row), np.inf)
    sizes = [(digit, packed((groups.sizes >> digit) & 1 == 1)) for digit in _digits(groups.sizes)]
    outcomes = {name: _outcomes(values, groups, one_row) for name, values in learned.items()}
    n_records = len(records.sizes)
    candidates, first = np.zeros(n_records, dtype=np.int64), np.full(n_records, len(groups.sizes))
    agreeing = {name: np.zeros(n_records, dtype=np.bool_) for name in learned}
    for chunk, words in _joined(bits, n_records):
        for digit, mask in sizes:
            candidates[chunk] += np.bitwise_count(words & mask).sum(axis=1, dtype=np.int64) << digit
        has_any = candidates[chunk] > 0
        if has_any.any():
            first[chunk][has_any] = first_ones(words[has_any])
        for name, pairs in outcomes.items():
            agreeing[name][chunk] = has_any & _agree(words, pairs)
    of_row = records.ids
    flags = {name: found[of_row] for name, found in agreeing.items()}
    return Matched(candidates[of_row], granularity[first][of_row], flags)


def _alike(columns: Sequence[tuple[Ids, int]]) -> Classes:
    refinement = Refinement(len(columns[0][0]))
    for codes, n_values in columns:
        refinement.add(codes, n_values)
    return refinement.classes()


def _groups(columns: Sequence[BackgroundColumn]) -> Classes:
    """Released rows with equal cells, the group of the least granularity first."""
    groups = _alike([(column.cells, column.containing.n_cells) for column in columns])
    order = np.argsort(_granularity(columns, a_row_of_each(groups)), kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Classes(rank[groups.ids], groups.sizes[order])


def _granularity(columns: Sequence[BackgroundColumn], released_rows: Ids) -> Bits:
    shares = np.column_stack([column.shares[column.cells[released_rows]] for column in columns])
    return background_information_granularity(shares)


def _joined(columns: Sequence[ColumnBits], n_records: int) -> Iterator[tuple[slice, Words]]:
    """Give the records, some at a time, with the groups that are consistent with each as bits."""
    step = max(1, bit_rows.CHUNK_WORDS // max(columns[0].n_words, 1))
    for start in range(0, n_records, step):
        chunk = slice(start, start + step)
        words = columns[0].of(chunk)
        for column in columns[1:]:
            words &= column.of(chunk)
        yield chunk, words


def _outcomes(values: Ids, groups: Classes, one_row: Ids) -> list[tuple[Words, Words]]:
    """For each binary digit of the values, the groups in which it is 1 and those in which it is 0 (both: it varies)."""
    own = values[one_row]
    varies = np.bincount(groups.ids, weights=values != own[groups.ids], minlength=len(own)) > 0
    digits = [(own >> digit) & 1 == 1 for digit in _digits(values)]
    return [(packed(varies | is_one), packed(varies | ~is_one)) for is_one in digits]


def _agree(words: Words, outcomes: Sequence[tuple[Words, Words]]) -> Flags:
    """Whether the values of all groups in a record's bits have the same binary digits."""
    agree = np.ones(len(words), dtype=np.bool_)
    for with_one, with_zero in outcomes:
        agree &= ~((words & with_one).any(axis=1) & (words & with_zero).any(axis=1))
    return agree


def _digits(numbers: Ids) -> range:
    return range(int(numbers.max(initial=0)).bit_length())


Numbers = NDArray[np.float64]

ABSENT = -1
"""Released row of a person who is not in the release."""

_CROWDS = (1, 2, 5, 10)


@dataclass(frozen=True, repr=False, eq=False)
class Linkage:
    """What a reference table and some background columns tell about the people in it, one entry a reference row.

    Parameters
    ----------
    background : tuple of str
    n_released : int
        Rows of the release.
    candidates : array
        Released rows that are consistent with the reference row.
    granularity : array
        Least background information granularity (BIG) among the candidates, in bits; infinite where there are none.
    learned : mapping of str to array
        For each sensitive or target column outside of the background, whether all candidates agree on it.
    is_true_candidate : array or None
        Whether the person's own row is among the candidates; ``None`` where the truth is not known.
    k : int or None
        Crowd that the release promises; adds the confidence 1/k to the summary.
    """

    background: tuple[str, ...]
    n_released: int
    candidates: Ids
    granularity: Numbers
    learned: Mapping[str, Flags] = field(default_factory=dict)
    is_true_candidate: Flags | None = None
    k: int | None = None

    def __repr__(self) -> str:
        return f"Linkage({len(self.background)} columns, {self.n_reidentified:,} of {len(self.candidates):,} records)"

    @cached_property
    def confidence(self) -> Numbers:
        """1 over the number of candidates; 0 where there are none."""
        return np.where(self.candidates > 0, 1 / np.maximum(self.candidates, 1), 0.0)

    @cached_property
    def reidentification(self) -> Numbers:
        """Information for conditional re-identification (ICR), in bits; infinite where there are no candidates."""
        return information_for_reidentification(self.candidates)

    @property
    def information(self) -> Numbers:
        """Total information for disclosing the person (TIDI), in bits; small is risky."""
        return total_information(self.granularity, self.candidates)

    @property
    def n_reidentified(self) -> int:
        """Records with a single candidate."""
        return int(np.count_nonzero(self.candidates == 1))

    @property
    def n_expected(self) -> float:
        """Right identifications that are expected when one candidate of each record is picked at random.

        Where the truth is not known, each record with candidates is taken to have its own row among them.
        """
        known = self.is_true_candidate
        return float(self.confidence.sum() if known is None else self.confidence[known].sum())

    def summary(self) -> dict[str, Any]:
        """Plain counts and bits, fit for JSON; no cell value is in it."""
        matched = self.candidates > 0
        crowds = sorted({*_CROWDS, *([self.k] if self.k else [])})
        return {
            "background": list(self.background),
            "n_records": len(self.candidates),
            "n_released": self.n_released,
            "n_without_candidates": int(np.count_nonzero(~matched)),
            "n_reidentified": self.n_reidentified,
            "n_expected": self.n_expected,
            "highest_confidence": float(self.confidence.max(initial=0.0)),
            "by_confidence": [
                {"at_least": "1" if crowd == 1 else f"1/{crowd}", "n_records": self._n_at_most(crowd)}
                for crowd in crowds
            ],
            "truth": self._truth(),
            "granularity_bits": _least_and_mean(self.granularity[matched]),
            "reidentification_bits": _least_and_mean(self.reidentification[matched]),
            "information_bits": _least_and_mean(self.information[matched]),
            "n_learned": {name: int(np.count_nonzero(found)) for name, found in self.learned.items()},
        }

    def _n_at_most(self, crowd: int) -> int:
        return int(np.count_nonzero((self.candidates > 0) & (self.candidates <= crowd)))

    def _truth(self) -> dict[str, int] | None:
        known = self.is_true_candidate
        if known is None:
            return None
        return {
            "n_own_row_among_candidates": int(np.count_nonzero(known)),
            "n_reidentified_rightly": int(np.count_nonzero(known & (self.candidates == 1))),
        }


def _least_and_mean(bits: Numbers) -> dict[str, float] | None:
    return {"least": float(bits.min()), "mean": float(bits.mean())} if len(bits) else None


def link(
    reference: AnyTable,
    released: AnyTable,
    background: Sequence[str],
    *,
    columns: Mapping[str, Column],
    truth: ArrayLike | None = None,
    k: int | None = None,
) -> Linkage:
    """Match a reference table with a release on some background columns.

    Parameters
    ----------
    background : sequence of str
        Names of columns that both tables have, with the same meaning.
    columns : mapping of str to Column
        Kind and order of the original values of those columns whose released cells are generalized (ranges and sets);
        see :func:`generalized_columns`. Cells of all other columns are taken as single values.
    truth : array_like of int or None
        For each reference row the number of the person's released row, or -1 for a person who is not in the release.
    k : int or None
        Crowd that the release promises, for the summary.

    Raises
    ------
    InvalidParameterError
        If there is no background column, one is named twice, or the truth does not fit the tables.
    ColumnNotFoundError
        If a table lacks a background column.
    SchemaError
        If released cells cannot be read, or a numeric column of the reference holds something else.

    Notes
    -----
    A missing value is a value of its own: it is consistent with cells that may be missing and with ``*`` only. An
    attacker who does not know a value should leave the column out for that record.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Kind, Schema
    >>> voters = Table.from_arrow(pa.table({"age": [30, 40, 70]}), Schema.of([Column("age", kind=Kind.NUMERIC)]))
    >>> cells = pa.table({"age": ["[29, 42]", "[29, 42]", "70"], "ill": ["y", "y", "n"]})
    >>> public = Table.from_arrow(cells, Schema.of([Column("age"), Column("ill", Role.SENSITIVE)]))
    >>> found = link(voters, public, ["age"], columns={"age": Column("age", kind=Kind.NUMERIC)})
    >>> found.candidates.tolist(), found.learned["ill"].tolist()
    ([2, 2, 1], [True, True, True])
    """
    return LinkageAttack(reference, released, background, columns=columns, truth=truth, k=k).on(background)


def generalized_columns(recodings: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """Describe the original values of a release's generalized columns by the recodings in its manifest.

    Raises
    ------
    ManifestError
        If an entry has no name, or no kind that is known.

    Examples
    --------
    >>> list(generalized_columns([{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]))
    ['age']
    """
    try:
        return {
            str(entry["name"]): Column(
                str(entry["name"]),
                kind=Kind(entry.get("kind", Kind.CATEGORICAL)),
                domain=tuple(map(str, entry.get("domain") or ())) or None,
            )
            for entry in recodings
            if entry.get("rule") == GENERALIZED
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "does not say how the released columns were recoded"
        raise ManifestError(problem) from None


class LinkageAttack:
    """A reference table and a release, read once, to be matched on several sets of the background columns.

    Parameters are those of :func:`link`.
    """

    def __init__(
        self,
        reference: AnyTable,
        released: AnyTable,
        background: Sequence[str],
        *,
        columns: Mapping[str, Column],
        truth: ArrayLike | None = None,
        k: int | None = None,
    ) -> None:
        known = reference if isinstance(reference, Table) else reference.to_table()
        public = released if isinstance(released, Table) else released.to_table()
        _check_background(background, known, public)
        self._n_released, self._k = public.n_rows, k
        self._truth = None if truth is None else _checked_truth(truth, known.n_rows, public.n_rows)
        self._columns = {name: _read(name, known, public, columns.get(name)) for name in background}
        self._values = {
            column.name: ranks(public[column.name].values, column.kind, column.domain)[public[column.name].codes]
            for column in public.schema
            if column.role in (Role.SENSITIVE, Role.TARGET)
        }

    def on(self, background: Sequence[str]) -> Linkage:
        """Match on some of the columns."""
        columns = [self._columns[name] for name in background]
        learned = {name: values for name, values in self._values.items() if name not in background}
        found = match(columns, learned)
        is_true = None if self._truth is None else _own_row_is_consistent(columns, self._truth)
        names = tuple(background)
        return Linkage(names, self._n_released, found.candidates, found.granularity, found.agreeing, is_true, self._k)


def _check_background(background: Sequence[str], known: Table, public: Table) -> None:
    if not background or len(set(background)) < len(background):
        problem = "got none" if not background else "got one twice"
        raise InvalidParameterError("background", problem, allowed="some columns, each named once")
    for name in background:
        for table, where in ((known, "the reference table"), (public, "the release")):
            if name not in table.schema:
                raise ColumnNotFoundError(name, table.schema.names(), where=where)


def _checked_truth(truth: ArrayLike, n_records: int, n_released: int) -> Ids:
    rows = np.asarray(truth)
    if rows.shape != (n_records,) or (n_records and rows.dtype.kind not in "iu"):
        problem = f"got shape {rows.shape} for {n_records:,} records"
        raise InvalidParameterError("truth", problem, allowed="one whole number for each reference row")
    if ((rows < ABSENT) | (rows >= n_released)).any():
        raise InvalidParameterError("truth", "some are not", allowed=f"from 0 to {n_released - 1}, or {ABSENT}")
    return rows.astype(np.int64)


def _read(name: str, known: Table, public: Table, generalized: Column | None) -> BackgroundColumn:
    described = public.schema[name] if generalized is None else generalized
    return background_column(known[name], public[name], described, generalized=generalized is not None)


def _own_row_is_consistent(columns: Sequence[BackgroundColumn], truth: Ids) -> Flags:
    rows = np.flatnonzero(truth != ABSENT)
    holds = np.zeros(len(truth), dtype=np.bool_)
    holds[rows] = np.logical_and.reduce([column.holds(rows, truth[rows]) for column in columns])
    return holds


# Linkage on many sets of background columns: with which ones how many people fall.


_MOST_SETS = 5_000


def sweep(
    reference: AnyTable,
    released: AnyTable,
    background: Sequence[str],
    *,
    columns: Mapping[str, Column],
    up_to: int = 2,
    truth: ArrayLike | None = None,
    k: int | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Summaries of :func:`link` for many sets of the background columns.

    First all sets of up to ``up_to`` columns, the smallest first. Then the best one of the largest of these (most
    re-identified, then most expected right, then first) grows to all columns, each time by the column that makes it
    best. The last entry is that of all columns; with ``up_to=0`` it is the only one.

    Raises
    ------
    InvalidParameterError
        As for one set, and if more than 5,000 sets would have to be matched.
    """
    names = tuple(background)
    total = _checked_number_of_sets(len(names), up_to)
    tried = _Tried(LinkageAttack(reference, released, names, columns=columns, truth=truth, k=k), total, progress)
    if up_to == 0:
        return [tried.best_of([names])]
    for size in range(1, min(up_to, len(names)) + 1):
        best = tried.best_of(combinations(names, size))
    shown = list(tried.summaries)
    while len(best["background"]) < len(names):
        wider = [[n for n in names if n in best["background"] or n == other] for other in names]
        best = tried.best_of(chosen for chosen in wider if len(chosen) > len(best["background"]))
        shown.append(best)
    return shown


class _Tried:
    """Sets of columns that were matched on so far."""

    def __init__(self, attack: LinkageAttack, total: int, progress: Progress | None) -> None:
        self.summaries: list[dict[str, Any]] = []
        self._attack, self._total, self._progress = attack, total, progress

    def best_of(self, sets: Iterable[Sequence[str]]) -> dict[str, Any]:
        """Match on each of the sets and return the first of the most successful ones."""
        n_before = len(self.summaries)
        for chosen in sets:
            self.summaries.append(self._attack.on(chosen).summary())
            if self._progress is not None:
                self._progress(len(self.summaries), self._total, "matching")
        return max(self.summaries[n_before:], key=lambda summary: (summary["n_reidentified"], summary["n_expected"]))


def _checked_number_of_sets(n_columns: int, up_to: object) -> int:
    if isinstance(up_to, bool) or not isinstance(up_to, int | np.integer) or up_to < 0:
        raise InvalidParameterError("up_to", f"got {up_to!r}", allowed="a whole number of at least 0")
    if up_to == 0:
        return 1
    n_grown = max(n_columns - int(up_to), 0)
    small = sum(comb(n_columns, size) for size in range(1, min(int(up_to), n_columns) + 1))
    n_sets = small + n_grown * (n_grown + 1) // 2
    if n_sets > _MOST_SETS:
        problem = f"{up_to} of {n_columns} columns make {n_sets:,} sets"
        hint = "name fewer background columns, or take 0 to match on all of them only"
        raise InvalidParameterError("up_to", problem, allowed=f"small enough for {_MOST_SETS:,} sets", hint=hint)
    return n_sets
