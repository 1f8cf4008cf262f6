"""What the parties agree on before they count: columns, their values or cut points, and the classes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.collaboration.contract import Words
from sfumato.counting.contingency import contingencies
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.schema import Kind, Role
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table

Counts = NDArray[np.int64]

MOST_VALUES = 10_000
"""Values of one column."""
MOST_COUNTS = 10_000_000
"""Pairs of a value and a class in all columns together: what one sum of 80 MB holds."""


@dataclass(frozen=True, repr=False)
class SharedColumn:
    """A column as all parties see it: listed values, or numbers cut into intervals.

    Parameters
    ----------
    values : tuple of str
        Texts that may occur; empty where the column is cut.
    cuts : tuple of float or None
        Ascending cut points of a numeric column. With m of them there are m + 1 intervals, each with its upper end.
    has_missing : bool
        Whether a missing value may occur; it then counts as one value more, the last.
    """

    name: str
    values: tuple[str, ...] = ()
    cuts: tuple[float, ...] | None = None
    has_missing: bool = False

    def __post_init__(self) -> None:
        if self.cuts is not None:
            self._check_cuts(self.cuts)
        if len(set(self.values)) < len(self.values):
            raise SchemaError("lists a value twice", column=self.name)
        if self.n_values > MOST_VALUES:
            hint = "leave the column out, or cut its numbers into intervals"
            raise SchemaError(f"has more than {MOST_VALUES:,} values", column=self.name, hint=hint)
        if not self.n_values:
            raise SchemaError("has no values", column=self.name)

    def _check_cuts(self, cuts: tuple[float, ...]) -> None:
        if self.values:
            raise SchemaError("has both values and cut points", column=self.name)
        if not cuts or not all(map(math.isfinite, cuts)) or any(low >= high for low, high in pairwise(cuts)):
            raise SchemaError("has no cut points, or not ascending numbers", column=self.name)

    def __repr__(self) -> str:
        return f"SharedColumn({self.name!r}, {self.n_values:,} values)"

    @property
    def n_values(self) -> int:
        """Number of values, |A| of the paper, a missing one included."""
        listed = len(self.values) if self.cuts is None else len(self.cuts) + 1
        return listed + self.has_missing

    @property
    def labels(self) -> tuple[str, ...]:
        """How the values of a release are written: listed values as they are, intervals that share no number.

        Examples
        --------
        >>> SharedColumn("age", cuts=(30.0, 47.5)).labels
        ('≤ 30', ']30, 47.5]', '> 47.5')
        """
        if self.cuts is None:
            return self.values
        ends = [repr(cut).removesuffix(".0") for cut in self.cuts]
        return (f"≤ {ends[0]}", *(f"]{low}, {high}]" for low, high in pairwise(ends)), f"> {ends[-1]}")

    def places(self, coded: CodedColumn) -> NDArray[np.intp]:
        """Where each distinct value of a party's column stands in this one.

        Raises
        ------
        SchemaError
            If a value is not listed, is no number where the column is cut, or is missing where none may be.
        """
        found = self._listed(coded) if self.cuts is None else self._intervals(coded, self.cuts)
        if coded.missing_code is not None:
            found[coded.missing_code] = self.n_values - 1 if self.has_missing else -1
        outside = int(np.count_nonzero(found < 0))
        if outside:
            what = "value" if outside == 1 else "values"
            problem = f"holds {outside:,} {what} that the shared schema does not list"
            hint = "agree on a schema that lists them, for instance by a private union of the parties' values"
            raise SchemaError(problem, column=self.name, hint=hint)
        return found

    def _listed(self, coded: CodedColumn) -> NDArray[np.intp]:
        place = {value: i for i, value in enumerate(self.values)}
        return np.array([place.get(text, -1) for text in as_text(coded.values).to_pylist()], dtype=np.intp)

    def _intervals(self, coded: CodedColumn, cuts: tuple[float, ...]) -> NDArray[np.intp]:
        try:
            numbers = coded.numbers()
        except ValueError:
            problem = "is cut into intervals in the shared schema, but not all its values are numbers"
            raise SchemaError(problem, column=self.name) from None
        found = np.searchsorted(np.array(cuts, dtype=np.float64), numbers, side="left").astype(np.intp)
        found[np.isnan(numbers)] = -1
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the file."""
        domain = {"values": list(self.values)} if self.cuts is None else {"cuts": list(self.cuts)}
        return {"name": self.name, **domain, "missing": self.has_missing}


@dataclass(frozen=True, repr=False)
class SharedSchema:
    """Features and the target that all parties have, in the order in which everything is counted.

    Parameters
    ----------
    roles : mapping of str to Role
        Roles of columns outside these, as far as no party gave another: identifiers and sensitive ones, which are kept
        back, and others, which are released unchanged. A party need not have such a column. They change no count and
        no hash.

    Examples
    --------
    >>> schema = SharedSchema.of_values({"sex": ["m", "f", None]}, {"ill": ["n", "y"]})
    >>> schema, schema.features[0].n_values, schema.n_counts
    (SharedSchema(1 features, 2 classes of 'ill'), 3, 6)
    """

    features: tuple[SharedColumn, ...]
    target: SharedColumn
    roles: Mapping[str, Role] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        names = [*self.names, self.target.name]
        for name, role in self.roles.items():
            if name in names or role in (Role.TARGET, Role.QUASI_IDENTIFIER):
                raise SchemaError("has a role that columns outside the shared features cannot have", column=name)
        if not self.features or len(set(names)) < len(names):
            problem = "the shared schema needs at least one feature, and different names of all columns"
            raise SchemaError(problem)
        if self.target.cuts is not None:
            raise SchemaError("is the target and cannot be cut", column=self.target.name)
        if self.n_counts > MOST_COUNTS:
            problem = f"the shared schema asks for {self.n_counts:,} counts, more than {MOST_COUNTS:,}"
            raise SchemaError(problem, hint="leave out columns with many values")

    def __repr__(self) -> str:
        return f"SharedSchema({len(self.features)} features, {self.target.n_values:,} classes of {self.target.name!r})"

    @classmethod
    def of_values(
        cls,
        features: Mapping[str, Iterable[str | None]],
        target: Mapping[str, Iterable[str | None]],
        cuts: Mapping[str, Sequence[float]] | None = None,
    ) -> SharedSchema:
        """Build a schema from sets of values (``None`` is a missing one) and from cut points, by column.

        A column that is cut needs an entry of ``features`` as well, of which only a missing value counts.
        """
        if len(target) != 1:
            raise InvalidParameterError("target", f"got {len(target)} columns", allowed="one column")
        unknown = set(cuts or {}) - set(features)
        if unknown:
            raise InvalidParameterError("cuts", "names other columns", allowed="cut points of features")
        columns = tuple(_column(name, values, (cuts or {}).get(name)) for name, values in features.items())
        ((name, classes),) = target.items()
        return cls(columns, _column(name, classes, None))

    @classmethod
    def of_table(cls, table: Table, cuts: Mapping[str, Sequence[float]] | None = None) -> SharedSchema:
        """Describe the quasi-identifiers and the target of one table that holds all rows, as in a simulation."""
        target = table.schema.target
        if target is None:
            problem = "has no column with the role target"
            raise SchemaError(problem, hint="name the column that is to be predicted")
        features = {name: own_values(table, name) for name in table.schema.names(Role.QUASI_IDENTIFIER)}
        return cls.of_values(features, {target: own_values(table, target)}, cuts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(column.name for column in self.features)

    @property
    def n_values(self) -> dict[str, int]:
        """Number of values of each feature."""
        return {column.name: column.n_values for column in self.features}

    @property
    def cuts(self) -> dict[str, tuple[float, ...]]:
        """Cut points of the features that are cut."""
        return {column.name: column.cuts for column in self.features if column.cuts is not None}

    @property
    def n_counts(self) -> int:
        """Length of the vector of counts."""
        return sum(column.n_values for column in self.features) * self.target.n_values

    def check_table(self, table: Table) -> None:
        """Refuse a table whose quasi-identifiers and target are not this schema's columns.

        A quasi-identifier that the others know nothing of would be counted in nobody's gain.
        """
        quasi = set(table.schema.names(Role.QUASI_IDENTIFIER))
        for name in (*self.names, self.target.name):
            table[name]
        wrong = sorted(quasi ^ set(self.names))
        if wrong:
            where = "features of the shared schema" if wrong[0] in quasi else "quasi-identifiers of the table"
            problem = f"is not among the {where} ({len(wrong):,} columns differ)"
            raise SchemaError(problem, column=wrong[0], hint="give the column another role, or agree on another schema")
        for column in self.features:
            own = table[column.name]
            if column.cuts is not None and own.n_distinct > (own.missing_code is not None):
                _check_is_numeric(table, column.name)
        if table.schema.target != self.target.name:
            raise SchemaError("is the target of the shared schema and not of the table", column=self.target.name)

    def counts(self, table: Table) -> Words:
        """Count a party's rows: of every feature how often each value occurs with each class, as one long vector.

        Raises
        ------
        SchemaError
            If a column is missing or holds a value that is not agreed on; the message does not show it.
        """
        classes = self.target.places(table[self.target.name])
        places = {column.name: column.places(table[column.name]) for column in self.features}
        counted = contingencies(table, self.names, self.target.name)
        blocks = []
        for column in self.features:
            block = np.zeros((column.n_values, self.target.n_values), dtype=np.uint64)
            np.add.at(block, np.ix_(places[column.name], classes), counted[column.name].astype(np.uint64))
            blocks.append(block.ravel())
        return np.concatenate(blocks)

    def matrices(self, counts: Words) -> tuple[Counts, ...]:
        """Cut the long vector into one matrix a feature, values × classes; noise may make some counts negative."""
        if counts.shape != (self.n_counts,):
            raise InvalidParameterError("counts", f"got {counts.size:,}", allowed=f"{self.n_counts:,} numbers")
        ends = np.cumsum([column.n_values * self.target.n_values for column in self.features])
        parts = np.split(counts.astype(np.uint64).view(np.int64), ends[:-1])
        return tuple(part.reshape(-1, self.target.n_values) for part in parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the file, without the version."""
        return {"features": [column.to_dict() for column in self.features], "target": self.target.to_dict()}

    def hash(self) -> str:
        """SHA-256 by which parties see that they hold the same schema."""
        canonical = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


def _check_is_numeric(table: Table, name: str) -> None:
    if table.schema[name].kind is not Kind.NUMERIC:
        raise SchemaError("is cut into intervals in the shared schema and is not numeric here", column=name)


def own_values(table: Table, name: str) -> tuple[str | None, ...]:
    """Distinct values of a party's column as texts; ``None`` is a missing one."""
    return tuple(as_text(table[name].values).to_pylist())


def _column(name: str, values: Iterable[str | None], cuts: Sequence[float] | None) -> SharedColumn:
    given = set(values)
    listed = tuple(sorted(value for value in given if value is not None)) if cuts is None else ()
    return SharedColumn(name, listed, None if cuts is None else tuple(map(float, cuts)), None in given)
