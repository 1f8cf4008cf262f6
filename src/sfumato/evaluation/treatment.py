"""Training rows as a mechanism releases them, and test rows in the same form, which the mechanism never saw.

A mechanism needs nothing of its own for this unless it makes new cell values. One that coarsens values has a method
``recode`` that gives a :class:`Recoded`. Of all others the release itself says how its columns are made: binary
features by their rules, other columns as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.encoding import values_as_cells
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.mechanisms.drop_in.form import in_asked_form
from sfumato.mechanisms.drop_in.typical import TYPICAL
from sfumato.mechanisms.new_rows import in_form_of
from sfumato.mechanisms.tree.targets import MOST_CLASSES
from sfumato.publishing.new_rows import zero_one
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.persons import PersonCodes

_NO_SECRET = b"releases that are measured and never published"

# Which rows are trained and tested on: the same folds for every mechanism and classifier.


Rows = NDArray[np.intp]
Codes = NDArray[np.int32]


def class_column(table: AnyTable) -> CodedColumn:
    """Return the target, whose values are the classes; a missing one is a class of its own.

    Raises
    ------
    SchemaError
        If there is no target, or it is a quantity: numeric, with more than 20 values.
    """
    beside = table.coded_part
    name = beside.schema.target
    if name is None:
        problem = "the table has no target to predict"
        raise SchemaError(problem, hint="give one column the role target")
    if beside.schema[name].kind is Kind.NUMERIC and beside[name].n_distinct > MOST_CLASSES:
        problem = f"has {beside[name].n_distinct:,} different numbers, but only classes can be predicted"
        raise SchemaError(problem, column=name, hint="group it into classes, or predict another column")
    return beside[name]


def stratified_folds(
    target: Codes, n_folds: int, seed: int, persons: PersonCodes | None = None
) -> list[tuple[Rows, Rows]]:
    """Rows to train and to test on, fold by fold; every class as evenly spread as its number of rows allows.

    Where ``persons`` says whose the rows are, all rows of a person are in one fold: nobody is tested on a person whom
    the classifier has seen.
    """
    most = int(np.bincount(target, minlength=1).max())
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= most:
        allowed = f"a whole number of at least 2 and at most {most:,} (rows of the most frequent class)"
        raise InvalidParameterError("n_folds", f"got {n_folds!r}", allowed=allowed)
    kind = StratifiedKFold if persons is None else StratifiedGroupKFold
    if persons is not None and len(np.unique(persons)) < n_folds:
        allowed = "at most the number of persons"
        raise InvalidParameterError("n_folds", f"got {n_folds}", allowed=allowed)
    folds = kind(int(n_folds), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds, or that are many
        return list(folds.split(np.zeros(len(target)), target, persons))


NOT_LEARNED_FROM = (*WITHHELD, Role.TARGET)


class Recoded(Protocol):
    """How a table was recoded: its own cells, those of new rows, and how an encoder reads them.

    Where rows are suppressed, ``is_released`` (a truth value for each row) says which are not.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that were recoded."""
        ...

    @property
    def certainty_penalty(self) -> float:
        """Global certainty penalty of the recoded rows."""
        ...

    def recoded(self, table: Table) -> Table:
        """Put the released cells into the table."""
        ...

    def generalized(self, table: Table) -> Table:
        """Give the rows of another table the cells that fit them."""
        ...

    def as_cells(self, table: Table) -> Table:
        """Write recoded cells as an encoder reads them."""
        ...

    def encodable(self) -> dict[str, Column]:
        """Describe the recoded columns for an encoder."""
        ...


class RecodingMechanism(Protocol):
    """What is needed of a mechanism that recodes."""

    def recode(self, table: Table) -> Recoded:
        """Recode a table."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Treated:
    """Training and test rows in the form of a release, as an encoder of cells reads them.

    Parameters
    ----------
    train, test : Table
        Cells of the columns to learn from; identifiers and the target are not among them.
    columns : dict of str to Column
        These columns, each with the kind of its original values.
    target : CodedColumn or None
        Class of each training row *as released*; ``None`` if the table has no target.
    rows : ndarray of int or None
        Row of the training table that each released one stands for; ``None`` where that is not known, as of rows that
        were drawn anew.
    manifest : Manifest or None
        Of the release; ``None`` where there is none, or where the rows were only recoded.
    """

    train: Table
    test: Table
    columns: dict[str, Column]
    target: CodedColumn | None
    rows: Rows | None = None
    manifest: Manifest | None = None

    def __repr__(self) -> str:
        return f"Treated({self.train.n_rows:,} and {self.test.n_rows:,} rows, {len(self.columns):,} columns)"


def treated(mechanism: Mechanism | RecodingMechanism | None, train: AnyTable, test: AnyTable) -> Treated:
    """Fit a mechanism on training rows and bring test rows into the form of its release.

    Test rows are given to the mechanism without target and identifiers, and only after it was fitted. A column that it
    drops is dropped in the test rows, suppressed training rows are left out, and nothing is flipped or moved in the
    test rows: they are new ones, which come to a classifier as they are.

    Parameters
    ----------
    mechanism : Mechanism or None
        It stays as it is: a copy is fitted. ``None`` leaves the rows as they are.
    train, test : Table or BinaryTable
        Rows of one table.

    Raises
    ------
    SchemaError
        If a released column cannot be made of new rows. Errors of the mechanism pass through.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> from sfumato.mechanisms.mondrian.mechanism import Mondrian
    >>> table = admissions(n_rows=60).keep(["name", "age", "sex", "readmitted"])
    >>> treated(Mondrian(k=5), table.take(np.arange(40)), table.take(np.arange(40, 60)))
    Treated(40 and 20 rows, 2 columns)
    """
    if mechanism is None:
        return _as_they_are(train, test)
    asked: Any = mechanism
    own: Any = copy(mechanism)
    if hasattr(own, "for_table"):
        own = own.for_table(train)
    own = repeatable(own)
    if getattr(asked, "cells", "ranges") != "ranges":
        return _released(in_asked_form(asked, train, own.release(train)), train, test)
    if hasattr(own, "recode"):
        return _recoded(own.recode(train), _as_table(train), _as_table(test))
    return _released(own.release(train), train, test)


def repeatable(mechanism: Any) -> Any:
    """Let choices that hide something be the same ones every time: for releases that are measured, never published."""
    return mechanism.keyed(_NO_SECRET) if getattr(mechanism, "hides_choices", False) else mechanism


def learned_from(schema: Schema) -> list[str]:
    """Names of the columns that a classifier may learn from."""
    return [column.name for column in schema if column.role not in NOT_LEARNED_FROM]


def recoded_cells(recoding: Recoded, recoded: Table, names: Sequence[str]) -> Table:
    """Write the columns of a recoded table as cells, those that were not recoded as well."""
    return values_as_cells(recoding.as_cells(recoded), [name for name in names if name not in recoding.names])


def _as_they_are(train: AnyTable, test: AnyTable) -> Treated:
    own, new = _as_table(train), _as_table(test)
    names = learned_from(own.schema)
    columns = {name: own.schema[name] for name in names} | _numeric(_features(train))
    return Treated(_cells(own, names), _cells(new, names), columns, _target(own), np.arange(own.n_rows))


def _recoded(recoding: Recoded, train: Table, test: Table) -> Treated:
    names = learned_from(train.schema)
    rows = np.flatnonzero(getattr(recoding, "is_released", np.ones(train.n_rows, dtype=np.bool_)))
    own = recoded_cells(recoding, recoding.recoded(train), names).keep(names).take(rows)
    new = recoded_cells(recoding, in_form_of(recoding, train.schema.keep(names), test), names).keep(names)
    columns = {name: train.schema[name] for name in names} | recoding.encodable()
    return Treated(own, new, columns, _target(train.take(rows)), rows)


def _released(release: Release, train: AnyTable, test: AnyTable) -> Treated:
    released, done = release.table, release.manifest.perturbation or {}
    own = _as_table(released)
    names = [name for name in learned_from(own.schema) if name != done.get("bucket")]
    new = _in_form_of(released, names, test, release.manifest)
    columns = {name: own.schema[name] for name in names} | _numeric(_features(released))
    stands_for_rows = done.get("kind") != "synthetic" and released.n_rows == train.n_rows
    rows = np.arange(train.n_rows) if stands_for_rows else None
    return Treated(_cells(own, names), _cells(new, names), columns, _target(own), rows, release.manifest)


def _in_form_of(released: AnyTable, names: Sequence[str], test: AnyTable, manifest: Manifest) -> Table:
    """Compute the released columns from rows that were not released."""
    features = _features(released)
    if features and isinstance(test, BinaryTable):
        place_of = {name: place for place, name in enumerate(test.feature_names)}
        return test.select([place_of[feature.name] for feature in features]).to_table()
    table = _as_table(test)
    computed = {feature.name: zero_one(feature, table[feature.column])[0] for feature in features}
    made = [recoding["name"] for recoding in manifest.recodings if recoding["rule"] != TYPICAL]
    recoded = set(made) - computed.keys()  # typical values are trained on, and new rows come with their own
    for name in names:
        if name not in computed and (name not in table.schema or name in recoded):
            problem = f"is released by {manifest.mechanism['name']}, but no rule computes it for new rows"
            raise SchemaError(problem, column=name, hint="the mechanism needs a method 'recode'")
    described = [Column(name) if name in computed else table.schema[name] for name in names]
    columns = {name: computed[name] if name in computed else table[name] for name in names}
    return replace(table, schema=Schema.of(described, table.schema.missing), columns=columns)


def _as_table(table: AnyTable) -> Table:
    return table if isinstance(table, Table) else table.to_table()


def _features(table: AnyTable) -> tuple[Feature, ...]:
    return table.features if isinstance(table, BinaryTable) else ()


def _numeric(features: Sequence[Feature]) -> dict[str, Column]:
    """Describe 0/1 features so that an encoder makes one column of each."""
    return {feature.name: Column(feature.name, kind=Kind.NUMERIC) for feature in features}


def _cells(table: Table, names: Sequence[str]) -> Table:
    return values_as_cells(table.keep(names), names)


def _target(table: Table) -> CodedColumn | None:
    return None if table.schema.target is None else table[table.schema.target]
