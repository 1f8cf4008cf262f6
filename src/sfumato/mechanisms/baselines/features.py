"""Binary features of a table; for differential privacy only by rules that do not look at the rows.

ε speaks of the noisy result. Everything else on the way from a file to a release must come out the same whatever one
row holds, refusals and their words included. So for differential privacy nothing is found out from the rows: roles are
declared, cells are read as text, and a cell that does not fit its rule is 0 instead of an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InvalidParameterError
from sfumato.manifest import AnyTable
from sfumato.schema import AS_TEXT, Column, Kind, Role
from sfumato.table.binarize import (
    TRUE_TEXTS,
    AsIs,
    Assignment,
    BinarizePlan,
    CutPoints,
    Drop,
    OneOf,
    binarize,
    cell_texts,
)
from sfumato.table.binary import ONE_OF, BinaryTable, Feature
from sfumato.table.coding import CodedColumn, Table, is_number_type, reads_as_number
from sfumato.table.io.formats import format_of
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.roles import redescribed

_SPARSE = "libsvm"
_MIDNIGHT = re.compile(r"(?<=\d)[ T]00:00(:00(\.0+)?)?$", re.ASCII)


def as_plan(given: BinarizePlan | Mapping[str, Any] | None) -> BinarizePlan | None:
    """Read a plan that may be given as a mapping."""
    return given if given is None or isinstance(given, BinarizePlan) else BinarizePlan.from_dict(given)


def described_publicly(data: Any, options: ReadOptions, roles: Mapping[str, Role]) -> AnyTable:
    """Read a table with the roles that are given and no other: none may be guessed from the rows.

    Columns that are not named are never released.

    Raises
    ------
    InvalidParameterError
        If no target or no feature is named, or the data cannot be read without a look at the rows.
    """
    options = public_options(data, options)
    given = {part for role in roles.values() for part in role.parts}
    lacking = [role for role in (Role.TARGET, Role.QUASI_IDENTIFIER) if role not in given]
    if lacking:
        raise InvalidParameterError(
            "roles",
            f"got no {' and no '.join(lacking)}",
            allowed="given for differential privacy: guesses would look at the rows",
            hint="name the class as target and the features as quasi-identifiers; other columns are not released",
            remedy=("target", "quasi_identifiers"),
        )
    table = read_table(data, options=options)
    described = _beside(table).schema
    for name in roles:
        described[name]
    return redescribed(table, [replace(c, role=roles.get(c.name, Role.OTHER)) for c in described])


def public_options(data: Any, options: ReadOptions) -> ReadOptions:
    """Complete the way a file is read so that no cell of it is an error; refuse what cannot be read like that.

    Raises
    ------
    InvalidParameterError
        If incomplete rows are to be dropped, one row of each person is to be kept, or the file is a sparse one.
        Nothing was read yet.
    """
    if options.complete_rows_only:
        raise _drops_rows()
    if options.one_row_per_person is not None:
        problem, allowed = "got it", "left out for differential privacy"
        hint = "keep one row of each person in the table that you give"
        raise InvalidParameterError("one_row_per_person", problem, allowed=allowed, hint=hint)
    by_name = format_of(data).removesuffix(".gz") if isinstance(data, str | PathLike) else None
    if (options.format or by_name) == _SPARSE:
        raise _sparse()
    if any(text != AS_TEXT for _, text in options.formats):
        problem, allowed = "got one", "left out for differential privacy, which takes all cells as text"
        hint = "write plain numbers and ISO dates into the table that you give"
        raise InvalidParameterError("the format of a column", problem, allowed=allowed, hint=hint)
    return replace(options, mixed_as_text=True, guess_formats=False)


def public_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Describe columns so that no cell contradicts it: all but the target, whose values are public, are text."""
    return tuple(
        c if c.role is Role.TARGET else replace(c, kind=Kind.CATEGORICAL, domain=None, hierarchy=None, reading=None)
        for c in columns
    )


def public_features(
    table: AnyTable, given: BinarizePlan | Mapping[str, Any] | None
) -> tuple[BinaryTable, BinarizePlan | None]:
    """Binary features that are the same whatever the rows are, and the plan they follow (None: they were there).

    The features of a binary table are taken as public knowledge.

    Raises
    ------
    InvalidParameterError
        If rows were dropped for what they hold, the features were found in the rows of a sparse file, or a rule looks
        at the rows.
    """
    if _beside(table).only_complete_rows:
        raise _drops_rows()
    if any(c.reading is not None and c.reading.format != AS_TEXT for c in _beside(table).schema):
        problem = "got one whose dates or numbers were read in a format that was found in its rows"
        hint = "give the file or the frame itself, or a table of plain numbers and ISO dates"
        raise InvalidParameterError("the table", problem, allowed="one read without a look at its rows", hint=hint)
    if isinstance(table, BinaryTable):
        if table.source is not None and table.source.format == _SPARSE:
            raise _sparse()
        return table, None
    plan = fixed_plan(table, as_plan(given))
    public = {
        name: PublicRule(rule) if isinstance(rule, AsIs | CutPoints | OneOf) else rule
        for name, rule in plan.columns.items()
    }
    return binarize(table, replace(plan, columns=public)), plan


def _beside(table: AnyTable) -> Table:
    return table.coded_part


@dataclass(frozen=True)
class PublicRule:
    """A fixed rule that looks at one cell at a time and has an answer for every cell.

    ``as-is``: 1 where the cell is 1, yes or true in one of their usual spellings, and 0 everywhere else. ``one_of``: 1
    where the text of the cell is one of the values. ``cuts``: the band of a number. A missing cell, and one that is no
    number, has 0 in all features of its column.
    """

    rule: AsIs | CutPoints | OneOf

    def assign(self, column: Column, coded: CodedColumn) -> Assignment:
        """Describe the features by the rule alone, and say which distinct value belongs to which."""
        if isinstance(self.rule, CutPoints):
            if not is_number_type(coded.values.type) or pa.types.is_boolean(coded.values.type):
                # what is no number is taken as missing; values keep their places
                numbers = [text if reads_as_number(text) else None for text in cell_texts(coded.values)]
                coded = replace(coded, values=pa.array(numbers, pa.string()))
            return self.rule.assign(column, coded)
        values, given = (TRUE_TEXTS, column.name) if isinstance(self.rule, AsIs) else (self.rule.values, self.rule.name)
        wanted = frozenset(values)
        is_one = np.array([text in wanted for text in _texts(coded.values)], dtype=np.bool_)
        feature = Feature(given or f"{column.name}={'|'.join(values)}", column.name, ONE_OF, values=values)
        return Assignment((feature,), np.where(is_one, 0, -1).astype(np.intp))

    def to_plan(self) -> Any:
        """Return what represents the rule in a project file."""
        return self.rule.to_plan()


def _texts(values: pa.Array) -> list[str | None]:
    """Write each value in a way that no other one has a part in: a whole column at midnight is read as dates."""
    return [None if text is None else _MIDNIGHT.sub("", text) for text in cell_texts(values)]


def fixed_plan(table: Table, plan: BinarizePlan | None) -> BinarizePlan:
    """Complete a plan so that its features are the same whatever the rows are.

    A column that is not listed is taken as 0/1. There are no "missing" features, whose presence would tell that a value
    is missing somewhere.

    Raises
    ------
    InvalidParameterError
        If a column is listed with a rule that takes its cut points or values from the rows.
    """
    plan = plan or BinarizePlan()
    for name, rule in plan.columns.items():
        if not isinstance(rule, AsIs | CutPoints | Drop | OneOf):
            raise InvalidParameterError(
                f"binarize.columns.{name}",
                "got a rule that looks at the rows",
                allowed="'as-is', 'drop', cuts or one_of for differential privacy",
                hint="quantiles and lists of values are taken from people's rows and would be published",
            )
    unlisted = [name for name in table.schema.names(Role.QUASI_IDENTIFIER) if name not in plan.columns]
    as_it_is = {} if plan.unlisted == "drop" else {name: AsIs() for name in unlisted}
    return replace(plan, columns={**plan.columns, **as_it_is}, missing_features=False, unlisted="drop")


def _drops_rows() -> InvalidParameterError:
    return InvalidParameterError(
        "incomplete rows",
        "got rows left out because a value is missing",
        allowed="kept for differential privacy: their number would disclose something about people",
        hint="keep them; a missing value is 0 in every feature",
    )


def _sparse() -> InvalidParameterError:
    return InvalidParameterError(
        "format",
        f"got {_SPARSE}",
        allowed="one that names its columns for differential privacy: a sparse file has the features that rows mention",
        hint="write the features as columns of a CSV or Parquet file",
    )


def public_descriptions(features: Sequence[Feature], plan: BinarizePlan | None) -> tuple[dict[str, Any], ...]:
    """Describe features by their rules; without a plan, those that are columns of the original are not described."""
    described = features if plan is not None else [f for f in features if f != Feature(f.column, f.column)]
    return tuple(feature.to_dict() for feature in described)
