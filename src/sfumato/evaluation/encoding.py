"""Generalized cells as numbers that any classifier can be trained on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from sfumato.errors import InputError, InvalidParameterError
from sfumato.mechanisms.axes import cell_of_values, positions_of
from sfumato.mechanisms.hierarchies.hierarchy import ROOT
from sfumato.mechanisms.lattice.levels import HIERARCHY, MISSING, read_interval
from sfumato.mechanisms.recoder import GENERALIZED
from sfumato.schema import Column, Kind
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import GeneralizedCell, read_cell, write_value
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.kinds import guess_kind
from sfumato.table.orders.recognise import recognise_order

Matrix = NDArray[np.float64]
Codes = NDArray[np.int32]
RangeEncoding = Literal["pieces", "midpoint", "bounds"]
SetEncoding = Literal["shares", "label"]
MOST_PIECES = 16
"""Pieces of a column with an order: enough for a linear model to bend, few enough for small tables."""
MOST_DRAWS = 5
MOST_DRAWN_ROWS = 25_000
"""Draws are fewer, but at least one, where all of them together would have more rows than this."""
MOST_WHOLE = 2.0**53


class TrainingRows(NamedTuple):
    """Rows that a classifier is trained on, their classes, and the weight of each; ``None``: one each."""

    numbers: Matrix
    target: Codes
    weights: NDArray[np.float64] | None = None


class GeneralizedEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no types upstream
    """Turn ranges, sets and labels into columns of numbers: the mean of what each cell represents.

    A cell stands for some of a column's values. A value by itself would get a few numbers; a cell gets their mean over
    the values that it stands for. So values and cells are numbers of one kind, a classifier that was trained on a
    release can be asked about original rows, and it does not matter how a cell is written: ``[17, 24]``, the set of its
    values and a label of a hierarchy that stands for them (see :func:`cells_of_release`) get the same numbers.

    It is a transformer of scikit-learn, the step after a recoder:
    ``make_pipeline(Mondrian(k=5), GeneralizedEncoder(), LogisticRegression())``.

    Parameters
    ----------
    ranges : {"pieces", "midpoint", "bounds"}, default="pieces"
        Of a column with an order. ``midpoint`` is the middle of a range; ``bounds`` its two ends. ``pieces`` is the
        middle and, for up to 15 cuts, the share of the range above the cut, so that a linear model can give each part
        of the column a level of its own. Cuts are between the ends of the fitted cells: all of them where these are
        few, else those that divide the rows evenly. ``*`` is the range of all fitted cells, and a set the range from
        its lowest to its highest value.
    sets : {"shares", "label"}, default="shares"
        Of a column without order. A set becomes one column for each value that the fitted table names, with 1 over the
        size of the set for its values and 0 for all others (a single value is a one, ``*`` the same share for all;
        missing is not counted). Values that every fitted cell names together, or not at all, have one column together.
        Or one column with a number for each distinct set, to be taken as a category.
    max_values : int or None
        Largest number of columns of shares that a column without order gets: those of most rows.

    Attributes
    ----------
    feature_names_ : tuple of str
    is_categorical_, is_share_, is_piece_ : ndarray of bool
        Which columns hold numbers of categories, shares of values, and shares above a cut. A tree finds cuts by itself
        and needs no pieces.

    Notes
    -----
    A missing cell is not-a-number in a column of ranges and of labels, and all zeros in shares and pieces. A label that
    the fitted table did not have is not-a-number as well, and so is a date or level without a place in the order of the
    fitted ones. Where no cell of the fitted table says anything, all rows get one column of zeros.

    Examples
    --------
    >>> from sfumato.schema import Schema
    >>> cells = pa.table({"age": ["[20, 30]", "25"], "job": ["{a|b}", "b"]})
    >>> columns = {"age": Column("age", kind=Kind.NUMERIC), "job": Column("job")}
    >>> coded = Table.from_arrow(cells, Schema.of([Column("age"), Column("job")]))
    >>> encoder = GeneralizedEncoder().fit(coded, columns)
    >>> encoder.transform(coded).tolist()
    [[25.0, 0.75, 0.25, 0.5, 0.5], [25.0, 1.0, 0.0, 0.0, 1.0]]
    >>> encoder.feature_names_
    ('age', 'age above cut 1', 'age above cut 2', 'job = 0', 'job = 1')
    """

    def __init__(
        self, ranges: RangeEncoding = "pieces", sets: SetEncoding = "shares", max_values: int | None = None
    ) -> None:
        if ranges not in get_args(RangeEncoding):
            raise InvalidParameterError("ranges", f"got {ranges!r}", allowed="one of pieces, midpoint, bounds")
        if sets not in get_args(SetEncoding):
            raise InvalidParameterError("sets", f"got {sets!r}", allowed="one of shares, label")
        self.ranges = ranges
        self.sets = sets
        self.max_values = max_values

    def fit(self, X: Any, columns: Any = None, y: Any = None) -> GeneralizedEncoder:
        """Learn which values occur.

        Parameters
        ----------
        X : Table or data frame
            Released columns, cells as :mod:`sfumato.table.generalized` writes them.
        columns : mapping of str to Column, optional
            Columns to encode, with the kind that their *original* values have; see :func:`cells_of_release`. Without a
            mapping all columns are encoded, and the values that their cells name say of which kind they are: numbers,
            ISO dates, texts with a known order, or else categories.
        y
            Not looked at, and neither are classes that a pipeline gives in the place of ``columns``.
        """
        table = _as_cells(X)
        if not isinstance(columns, Mapping):
            columns = {name: _described_by_cells(name, table[name]) for name in table.columns}
        self._parts: list[_Part] = []
        for name, described in columns.items():
            distinct = _Distinct.of(name, table[name], described)
            if distinct.has_order:
                self._parts.append(_Ranges.fitted(described, self.ranges, distinct, table[name].counts))
            elif self.sets == "shares":
                self._parts.append(_Shares.fitted(described, distinct, table[name].counts, self.max_values))
            else:
                labels = tuple(text for text in table[name].values.to_pylist() if text is not None)
                self._parts.append(_Labels(described, {label: i for i, label in enumerate(labels)}))
        named = [(name, part, i) for part in self._parts for i, name in enumerate(part.names())]
        self.feature_names_ = tuple(name for name, _, _ in named) or ("nothing known",)
        flags = [
            (isinstance(part, _Labels), isinstance(part, _Shares), isinstance(part, _Ranges) and part.is_piece(i))
            for _, part, i in named
        ]
        of_kinds = np.array(flags or [(False, False, False)], dtype=np.bool_)
        self.is_categorical_, self.is_share_, self.is_piece_ = of_kinds.T
        return self

    def transform(self, X: Any) -> Matrix:
        """Encode the rows of a table or data frame, which may be another one than was fitted."""
        table = _as_cells(X)
        return _means(table.n_rows, self._read(table))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Names of the encoded columns."""
        return np.array(self.feature_names_, dtype=object)

    def training_rows(self, table: Table, target: Codes, seed: int = 0) -> TrainingRows:
        """Encode rows to train a classifier on: every row by its means, and by values drawn from its cells.

        A classifier that sees means only takes them for values: with few groups even the middles of ranges that were
        never cut tell these apart, and what it learns from them fails on original rows. So half of a row's weight is on
        the means and half on up to five draws, which spread over all that a cell stands for. A draw takes one value of
        each cell, independently and each with the same chance: of a range any number from one end to the other, whole
        if all ends of the fitted cells are. Missing cells stay missing.

        Parameters
        ----------
        table : Table
            The table that was fitted, or rows of it.
        target : ndarray of int
            Class of each row. It decides nothing but which of the draws a row gets.
        seed : int
            Of the draws. These do not depend on the order of the rows, nor on how cells are written.

        Returns
        -------
        TrainingRows
            Where every cell stands for one value (as in an original table) the encoded rows as they are.

        Examples
        --------
        >>> from sfumato.schema import Schema
        >>> coded = Table.from_arrow(pa.table({"age": ["[20, 30]", "25"]}), Schema.of([Column("age")]))
        >>> encoder = GeneralizedEncoder("midpoint").fit(coded, {"age": Column("age", kind=Kind.NUMERIC)})
        >>> rows = encoder.training_rows(coded, np.array([0, 1], dtype=np.int32))
        >>> rows.numbers[::2, 0].tolist(), rows.weights[::2].tolist()
        ([25.0, 27.0, 20.0, 28.0, 26.0, 25.0], [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
        >>> rows.numbers[1::2, 0].tolist(), rows.target[1::2].tolist()
        ([25.0, 25.0, 25.0, 25.0, 25.0, 25.0], [1, 1, 1, 1, 1, 1])
        """
        read = self._read(table)
        means = _means(table.n_rows, read)
        if not any(part.can_differ(distinct) for part, distinct, _ in read):
            return TrainingRows(means, target)
        n_draws = min(MOST_DRAWS, max(MOST_DRAWN_ROWS // max(table.n_rows, 1), 1))
        ranks: list[NDArray[np.integer]] = [_ranks(part.told(distinct))[codes] for part, distinct, codes in read]
        order = np.lexsort([target, *ranks])
        rng = np.random.default_rng(seed)
        drawn = np.empty((n_draws, *means.shape))
        for one in drawn:
            blocks = (part.drawn(distinct, codes[order], rng) for part, distinct, codes in read)
            one[order] = _side_by_side(table.n_rows, blocks)
        weights = np.repeat([0.5, *[0.5 / n_draws] * n_draws], table.n_rows)
        return TrainingRows(np.vstack([means, *drawn]), np.tile(target, 1 + n_draws), weights)

    def _read(self, table: Table) -> list[tuple[_Part, _Distinct, Codes]]:
        """Read the cells of each encoded column of a table."""
        if not hasattr(self, "_parts"):
            message = "fit the encoder before it transforms a table"
            raise NotFittedError(message)
        columns = [(part, table[part.described.name]) for part in self._parts]
        return [
            (part, _Distinct.of(part.described.name, column, part.described), column.codes) for part, column in columns
        ]


def _as_cells(rows: Any) -> Table:
    """Take the cells of a data frame as they are: no text of them means missing, and no format is looked for."""
    if isinstance(rows, Table):
        return rows
    read = read_table(rows, options=ReadOptions(mixed_as_text=True, guess_formats=False, missing=()))
    return read if isinstance(read, Table) else read.to_table()


def _described_by_cells(name: str, column: CodedColumn) -> Column:
    """Say of which kind the values are that the cells of a column name."""
    named = pa.array(_Distinct.of(name, column, Column(name)).named(), pa.string())
    kind = guess_kind(named)
    order = recognise_order(named).domain if kind is Kind.CATEGORICAL else ()
    return Column(name, kind=Kind.ORDERED, domain=order) if order else Column(name, kind=kind)


def _means(n_rows: int, read: list[tuple[_Part, _Distinct, Codes]]) -> Matrix:
    """Encode every row by the means of its cells."""
    return _side_by_side(n_rows, (part.encode(distinct)[codes] for part, distinct, codes in read))


def _side_by_side(n_rows: int, blocks: Iterable[Matrix]) -> Matrix:
    encoded = np.hstack([np.zeros((n_rows, 0)), *blocks])
    return encoded if encoded.shape[1] else np.zeros((n_rows, 1))


def _ranks(told: Matrix) -> NDArray[np.intp]:
    """Give cells numbers that follow what they tell, and one number to cells that tell the same."""
    return np.unique(np.where(np.isnan(told), -np.inf, told), axis=0, return_inverse=True)[1].reshape(-1)


def cells_of_release(manifest: Mapping[str, Any], table: Table) -> tuple[Table, dict[str, Column]]:
    r"""Prepare a release for an encoder: all columns as cells, described by the kinds that their original values have.

    A column that the manifest calls generalized holds cells already; its recoding says what its values were. Labels of
    a hierarchy are written as cells of what they stand for: the values that the manifest lists, or the interval that
    the label itself tells (by the ends it names; of an open one by that end); any other label is one value. In all
    other columns a text such as ``*`` or ``{a|b}`` is a value like any other, and is written as one.

    Examples
    --------
    >>> from sfumato.schema import Schema
    >>> shown = pa.table({"age": ["[20, 30]", "25"], "note": ["*", "b"]})
    >>> released = Table.from_arrow(shown, Schema.of([Column("age"), Column("note")]))
    >>> manifest = {"recodings": [{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]}
    >>> cells, columns = cells_of_release(manifest, released)
    >>> cells["note"].values.to_pylist(), str(columns["age"].kind)
    (['\\*', 'b'], 'numeric')
    """
    entries = {
        entry["name"]: entry for entry in manifest.get("recodings", ()) if entry.get("rule") in (GENERALIZED, HIERARCHY)
    }
    described = {name: _described(entry) for name, entry in entries.items()}
    cells = values_as_cells(table, (name for name in table.schema.names() if name not in entries))
    columns = dict(cells.columns)
    for name, entry in entries.items():
        if entry["rule"] == HIERARCHY:
            columns[name] = _labels_as_cells(columns[name], described[name], entry.get("labels") or {})
    columns_of_values = {column.name: described.get(column.name, column) for column in table.schema}
    return replace(cells, columns=columns), columns_of_values


def _described(entry: Mapping[str, Any]) -> Column:
    kind = Kind(entry.get("kind", Kind.CATEGORICAL))
    return Column(entry["name"], kind=kind, domain=tuple(entry.get("domain") or ()) or None)


def _labels_as_cells(column: CodedColumn, described: Column, listed: Mapping[str, Sequence[str]]) -> CodedColumn:
    written = [_label_as_cell(text, described, listed) for text in as_text(column.values).to_pylist()]
    return column.recode(pa.array(written, pa.string()))


def _label_as_cell(label: str | None, described: Column, listed: Mapping[str, Sequence[str]]) -> str | None:
    if label is None or label == ROOT:
        return label
    if label in listed:
        return cell_of_values(described, [None if value == MISSING else value for value in listed[label]])
    interval = None if described.kind is Kind.CATEGORICAL else read_interval(label)
    ends = [] if interval is None else [end for end in (interval.low, interval.high) if end is not None]
    return cell_of_values(described, ends or [label])


def values_as_cells(table: Table, names: Iterable[str]) -> Table:
    """Write plain values of some columns as cells that represent one value each; numeric truth values as 1 and 0."""
    columns = dict(table.columns)
    for name in names:
        values, kind = columns[name].values, table.schema[name].kind
        if pa.types.is_boolean(values.type) and kind is Kind.NUMERIC:
            values = pc.cast(values, pa.int8())
        texts = as_text(values).to_pylist()
        written = pa.array([None if text is None else write_value(text) for text in texts], pa.string())
        columns[name] = columns[name].recode(written, kind)
    return replace(table, columns=columns)


@dataclass(frozen=True)
class _Distinct:
    """Distinct cells of a column, read; positions of all single values and range ends in them."""

    texts: tuple[str | None, ...]
    cells: tuple[GeneralizedCell, ...]
    position_of: Mapping[str, float] | None

    @classmethod
    def of(cls, name: str, column: CodedColumn, described: Column) -> _Distinct:
        texts = tuple(as_text(column.values).to_pylist())
        try:
            cells = tuple(read_cell(text) for text in texts)
        except ValueError:
            problem = "has cells that are neither values nor ranges or sets of values"
            raise InputError(problem, column=name) from None
        named = sorted({value for cell in cells for value in _named(cell)})
        positions = _positions(described, named)
        return cls(texts, cells, None if positions is None else dict(zip(named, positions.tolist(), strict=True)))

    @property
    def has_order(self) -> bool:
        return self.position_of is not None

    def named(self) -> list[str]:
        """Give all single values and range ends, in the order of their texts."""
        return sorted({value for cell in self.cells for value in _named(cell)})


def _positions(described: Column, values: Sequence[str]) -> NDArray[np.float64] | None:
    """Place values in the order of a column; ``None`` where one has no place, as a label such as ``19**`` has none."""
    try:
        return positions_of(described, pa.array(values, pa.string()))
    except ValueError:
        return None


def _named(cell: GeneralizedCell) -> tuple[str, ...]:
    return (*cell.values, *(cell.bounds or ()))


@dataclass(frozen=True, eq=False)
class _Ranges:
    described: Column
    form: RangeEncoding
    whole: tuple[float, float]
    cuts: NDArray[np.float64]
    has_whole_ends: bool = False

    @classmethod
    def fitted(cls, described: Column, form: RangeEncoding, distinct: _Distinct, counts: NDArray[np.int64]) -> _Ranges:
        placed = [_ends(cell, distinct.position_of or {}, (np.nan, np.nan)) for cell in distinct.cells]
        ends = np.array(placed).reshape(-1, 2)
        is_known = ~np.isnan(ends[:, 0])
        ends, weights = ends[is_known], counts[is_known]
        if not len(ends):
            return cls(described, form, (np.nan, np.nan), np.zeros(0))
        whole = (float(ends[:, 0].min()), float(ends[:, 1].max()))
        has_whole_ends = bool(((ends == np.round(ends)) & (np.abs(ends) < MOST_WHOLE)).all())
        return cls(described, form, whole, _cuts(ends, weights) if form == "pieces" else np.zeros(0), has_whole_ends)

    def names(self) -> list[str]:
        name = self.described.name
        if self.form == "bounds":
            return [f"{name} from", f"{name} to"]
        return [name, *(f"{name} above cut {number}" for number in range(1, len(self.cuts) + 1))]

    def is_piece(self, place: int) -> bool:
        return self.form == "pieces" and place > 0

    def told(self, distinct: _Distinct) -> Matrix:
        """Both ends of each cell."""
        position_of = self._placed_one_by_one(distinct) if distinct.position_of is None else distinct.position_of
        return np.array([_ends(cell, position_of, self.whole) for cell in distinct.cells]).reshape(-1, 2)

    def can_differ(self, distinct: _Distinct) -> bool:
        """Whether draws from some cell differ."""
        low, high = self.told(distinct).T
        return bool((low < high).any())

    def drawn(self, distinct: _Distinct, codes: Codes, rng: np.random.Generator) -> Matrix:
        """Encode one number of each range; a mean of both ends, so that huge ones stay finite."""
        low, high = self.told(distinct)[codes].T
        way = rng.random(len(codes))
        if self.has_whole_ends:
            found = np.minimum(np.floor(low * (1 - way) + (high + 1) * way), high)
        else:
            found = np.clip(low * (1 - way) + high * way, low, high)
        found = np.where(low < high, found, low)
        return self._encoded(np.column_stack([found, found]))

    def encode(self, distinct: _Distinct) -> Matrix:
        return self._encoded(self.told(distinct))

    def _encoded(self, ends: Matrix) -> Matrix:
        if self.form == "bounds":
            return ends
        return np.hstack([ends[:, :1] / 2 + ends[:, 1:] / 2, self._above(ends)])

    def _above(self, ends: Matrix) -> Matrix:
        """Share of each range above each cut; halves keep differences of huge numbers finite."""
        low, high = ends[:, :1], ends[:, 1:]
        width = np.where(high > low, high / 2 - low / 2, 1.0)
        share = np.clip((high / 2 - self.cuts / 2) / width, 0.0, 1.0)
        return np.asarray(np.where(low > self.cuts, 1.0, np.where(high > self.cuts, share, 0.0)), dtype=np.float64)

    def _placed_one_by_one(self, distinct: _Distinct) -> dict[str, float]:
        """Place the values that have a place, beside others that have none."""
        named = {value for cell in distinct.cells for value in _named(cell)}
        found = ((value, _positions(self.described, [value])) for value in named)
        return {value: float(position[0]) for value, position in found if position is not None}


def _ends(cell: GeneralizedCell, position_of: Mapping[str, float], whole: tuple[float, float]) -> tuple[float, float]:
    """Lowest and highest position of what a cell stands for; not-a-number where that is not known."""
    if cell.is_any:
        return whole
    places = [position_of[value] for value in _named(cell) if value in position_of]
    is_placed = places and len(places) == len(_named(cell))
    return (min(places), max(places)) if is_placed else (np.nan, np.nan)


def _cuts(ends: Matrix, weights: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where pieces of a column meet: between neighbouring ends of ranges, such that pieces have about as many ends.

    Two different ends need no cut: the middle of a range tells them apart.
    """
    different, places = np.unique(ends, return_inverse=True)
    if len(different) <= 2:
        return np.zeros(0)
    lower, upper = different[:-1], different[1:]
    middle = lower / 2 + upper / 2
    between = np.where((lower <= middle) & (middle < upper), middle, lower)
    if len(between) < MOST_PIECES:
        return between
    below = np.cumsum(np.bincount(places.reshape(-1), np.repeat(weights, 2)))
    wanted = np.arange(1, MOST_PIECES) / MOST_PIECES * below[-1]
    taken = np.unique(np.searchsorted(below, wanted).clip(max=len(between) - 1))
    return np.asarray(between[taken], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Shares:
    described: Column
    place_of: Mapping[str, int]
    sizes: NDArray[np.int64]
    kept: NDArray[np.intp]

    @classmethod
    def fitted(cls, described: Column, distinct: _Distinct, counts: NDArray[np.int64], most: int | None) -> _Shares:
        """Group the values that are always named together, in the order of each group's first value."""
        named_by: dict[str, list[int]] = {}
        for i, cell in enumerate(distinct.cells):
            for value in cell.values:
                named_by.setdefault(value, []).append(i)
        group_of: dict[tuple[int, ...], int] = {}
        place_of = {value: group_of.setdefault(tuple(named_by[value]), len(group_of)) for value in sorted(named_by)}
        sizes = np.bincount(list(place_of.values()), minlength=len(group_of))
        everything = cls(described, place_of, sizes, np.arange(len(group_of)))
        if most is None or len(group_of) <= most:
            return everything
        rows = counts @ everything.encode(distinct)
        return replace(everything, kept=np.sort(np.argsort(-rows, kind="stable")[:most]))

    def names(self) -> list[str]:
        return [f"{self.described.name} = {i}" for i in range(len(self.kept))]

    def can_differ(self, distinct: _Distinct) -> bool:
        return any(len(set(places)) > 1 for places in self._places(distinct))

    def drawn(self, distinct: _Distinct, codes: Codes, rng: np.random.Generator) -> Matrix:
        """Encode one value of each set."""
        places = [np.sort(np.array(held, dtype=np.intp)) for held in self._places(distinct)]
        sizes = np.array([len(held) for held in places])
        starts = np.cumsum(sizes) - sizes
        has_value = np.flatnonzero(sizes[codes])
        at = codes[has_value]
        found = np.concatenate(places)[starts[at] + rng.integers(0, sizes[at])]
        numbers = np.zeros((len(codes), len(self.sizes)))
        numbers[has_value, found] = 1.0
        return numbers[:, self.kept]

    def _places(self, distinct: _Distinct) -> list[list[int]]:
        """Place of each value that a cell names."""
        everything = np.repeat(np.arange(len(self.sizes)), self.sizes).tolist()
        return [
            everything if cell.is_any else [self.place_of[value] for value in cell.values if value in self.place_of]
            for cell in distinct.cells
        ]

    def encode(self, distinct: _Distinct) -> Matrix:
        return self.told(distinct)[:, self.kept]

    def told(self, distinct: _Distinct) -> Matrix:
        """Shares of all values."""
        shares = np.zeros((len(distinct.cells), len(self.sizes)))
        for row, cell in enumerate(distinct.cells):
            if cell.is_any:
                shares[row] = self.sizes / max(int(self.sizes.sum()), 1)
            else:
                held = [self.place_of[value] for value in cell.values if value in self.place_of]
                np.add.at(shares[row], held, 1 / max(len(cell.values), 1))
        return shares


@dataclass(frozen=True)
class _Labels:
    described: Column
    number_of: Mapping[str, int]

    def names(self) -> list[str]:
        return [self.described.name]

    def told(self, distinct: _Distinct) -> Matrix:
        return self.encode(distinct)

    def can_differ(self, distinct: _Distinct) -> bool:
        return False

    def drawn(self, distinct: _Distinct, codes: Codes, rng: np.random.Generator) -> Matrix:
        """Encode a category as it is: it has no values."""
        return self.encode(distinct)[codes]

    def encode(self, distinct: _Distinct) -> Matrix:
        numbers = [np.nan if text is None else self.number_of.get(text, np.nan) for text in distinct.texts]
        return np.array(numbers, dtype=np.float64).reshape(-1, 1)


_Part = _Ranges | _Shares | _Labels
