"""What the parties agree on before they count: columns, their values or cut points, and the classes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato.atomic import write_atomically
from sfumato.collaborate.transport.channel import Words
from sfumato.counting.contingency import contingencies
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.schema import WITHHELD, Kind, Role
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
        if (cuts := self.cuts) is not None:
            if self.values:
                raise SchemaError("has both values and cut points", column=self.name)
            if not cuts or not all(map(math.isfinite, cuts)) or any(low >= high for low, high in pairwise(cuts)):
                raise SchemaError("has no cut points, or not ascending numbers", column=self.name)
        if len(set(self.values)) < len(self.values):
            raise SchemaError("lists a value twice", column=self.name)
        if self.n_values > MOST_VALUES:
            hint = "leave the column out, or cut its numbers into intervals"
            raise SchemaError(f"has more than {MOST_VALUES:,} values", column=self.name, hint=hint)
        if not self.n_values:
            raise SchemaError("has no values", column=self.name)

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
            raise InvalidParameterError("cuts", "but names other columns", allowed="cut points of features")
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
            has_values = own.n_distinct > (own.missing_code is not None)
            if column.cuts is not None and has_values and table.schema[column.name].kind is not Kind.NUMERIC:
                problem = "is cut into intervals in the shared schema and is not numeric here"
                raise SchemaError(problem, column=column.name)
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


def own_values(table: Table, name: str) -> tuple[str | None, ...]:
    """Distinct values of a party's column as texts; ``None`` is a missing one."""
    return tuple(as_text(table[name].values).to_pylist())


def _column(name: str, values: Iterable[str | None], cuts: Sequence[float] | None) -> SharedColumn:
    given = set(values)
    listed = tuple(sorted(value for value in given if value is not None)) if cuts is None else ()
    return SharedColumn(name, listed, None if cuts is None else tuple(map(float, cuts)), None in given)


# Shared schemas as files: JSON that is read strictly, since every party must read the same out of it.


SCHEMA_VERSION = 2
OLDER_VERSION = 1
"""Without roles."""
MOST_BYTES = 64 * 2**20

_VERSION_KEY = "sfumato_shared_schema"


def write_shared_schema(schema: SharedSchema, path: str | Path, *, force: bool = False) -> None:
    """Write a schema whole or not at all; a file that exists is replaced only with ``force``.

    The same schema always gives the same bytes.
    """
    roles = {name: str(schema.roles[name]) for name in sorted(schema.roles)}
    data = {_VERSION_KEY: SCHEMA_VERSION} | schema.to_dict() | {"roles": roles}
    write_atomically(Path(path), (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode(), force=force)


def read_shared_schema(path: str | Path) -> SharedSchema:
    """Read a schema; see :func:`read_shared_schema_and_digest`."""
    return read_shared_schema_and_digest(path)[0]


def read_shared_schema_and_digest(path: str | Path) -> tuple[SharedSchema, str]:
    """Read a schema, and the SHA-256 of the file, which people compare.

    Raises
    ------
    InputError
        If the file cannot be read, is of another version, or holds anything but the agreed entries.
    """
    content = _content(Path(path))
    parsed = _parsed(content, path)
    is_older = isinstance(parsed, dict) and parsed.get(_VERSION_KEY) == OLDER_VERSION
    data = _entries(parsed, {_VERSION_KEY, "features", "target"} | (set() if is_older else {"roles"}), path)
    if data[_VERSION_KEY] is True or data[_VERSION_KEY] not in (OLDER_VERSION, SCHEMA_VERSION):
        problem = "is a shared schema of a version this program does not know"
        raise InputError(problem, path=path, hint=f"expected {_VERSION_KEY} = {SCHEMA_VERSION}")
    if not isinstance(data["features"], list):
        _refuse(path, "features is not a list")
    try:
        features = tuple(_column_as_data(entry, path) for entry in data["features"])
        schema = SharedSchema(features, _column_as_data(data["target"], path), _roles(data.get("roles", {}), path))
    except SchemaError as exc:
        raise InputError(str(exc).removesuffix("."), path=path) from None
    return schema, hashlib.sha256(content).hexdigest()


def _roles(given: Any, path: str | Path) -> dict[str, Role]:
    known = {str(role): role for role in (*WITHHELD, Role.SENSITIVE, Role.OTHER)}
    if not isinstance(given, dict) or not all(isinstance(role, str) and role in known for role in given.values()):
        _refuse(path, f"roles are not columns with one of {', '.join(known)}")
    return {name: known[role] for name, role in given.items()}


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise InputError(f"cannot be read ({reason})", path=path) from None
    if len(content) > MOST_BYTES:
        _refuse(path, f"it has more than {MOST_BYTES // 2**20} MB")
    return content


def _parsed(content: bytes, path: str | Path) -> Any:
    try:
        return json.loads(content.decode(), object_pairs_hook=_without_repetition, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        _refuse(path, "it is not JSON, or names an entry twice")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _column_as_data(entry: Any, path: str | Path) -> SharedColumn:
    domain = "cuts" if isinstance(entry, dict) and "cuts" in entry else "values"
    data = _entries(entry, {"name", domain, "missing"}, path)
    listed = data[domain]
    if not isinstance(data["name"], str) or not isinstance(data["missing"], bool) or not isinstance(listed, list):
        _refuse(path, "a column's name is not a text, its missing not a truth value, or its values not a list")
    if domain == "values":
        if not all(isinstance(value, str) for value in listed):
            _refuse(path, "a column's values are not all texts")
        return SharedColumn(data["name"], tuple(listed), None, data["missing"])
    if not all(isinstance(cut, int | float) and not isinstance(cut, bool) and abs(cut) < 2**1023 for cut in listed):
        _refuse(path, "a column's cut points are not all numbers")
    return SharedColumn(data["name"], (), tuple(map(float, listed)), data["missing"])


def _entries(data: Any, names: set[str], path: str | Path) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != names:
        _refuse(path, f"an entry lacks or exceeds {', '.join(sorted(names))}")
    return data


def _refuse(path: str | Path, problem: str) -> NoReturn:
    message = f"is not a shared schema: {problem}"
    raise InputError(message, path=path, hint="let all parties make one", remedy=("shared_schema",))
