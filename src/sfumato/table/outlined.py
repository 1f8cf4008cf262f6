"""Tables of which only the columns are known, each by itself, while their rows are elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from sfumato.errors import InputError
from sfumato.schema import Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import OpenColumn


@dataclass(frozen=True, repr=False)
class OutlinedTable(ABC):
    """A table whose rows are not in memory.

    Parameters
    ----------
    outline : Table
        Every column by itself: its entries are the distinct values as they are stored, with their counts. A column
        with too many of them is an :class:`OpenColumn`.
    """

    outline: Table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows:,} rows, {len(self.schema):,} columns)"

    @property
    @abstractmethod
    def place(self) -> str:
        """What messages call it."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.outline.n_rows

    @property
    def schema(self) -> Schema:
        """Description of the columns."""
        return self.outline.schema

    def is_open(self, name: str) -> bool:
        """Whether a column has too many distinct values to be listed."""
        return isinstance(self.outline[name], OpenColumn)

    def with_schema(self, schema: Schema | Mapping[str, Role | str]) -> Self:
        """Describe the same columns anew, by a schema or by roles alone (see :meth:`Table.with_schema`).

        Raises
        ------
        InputError
            If a column is declared numeric and some of its values are no numbers.
        """
        if not isinstance(schema, Schema):
            schema = self.schema.with_roles(schema)
        for column in schema:
            coded = self.outline[column.name]
            if isinstance(coded, OpenColumn) and column.kind is Kind.NUMERIC and coded.kind is not Kind.NUMERIC:
                problem = "is declared numeric, but some of its values are not numbers"
                raise InputError(problem, path=self.place, column=column.name)
        return replace(self, outline=self.outline.with_schema(schema))
