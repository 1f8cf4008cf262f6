"""The table of columns: filter, order and page, all said in the address, so that a reload shows the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from sfumato.web.describing import ColumnNow

PAGE_SIZE = 100

_ORDERS: Mapping[str, Callable[[ColumnNow], Any]] = {
    "number": lambda column: column.number,
    "name": lambda column: column.name.casefold(),
    "role": lambda column: column.role,
    "kind": lambda column: column.kind,
    "guess": lambda column: column.guessed_role,
    "missing": lambda column: column.n_missing,
    "distinct": lambda column: column.n_distinct,
    "unique": lambda column: column.uniqueness,
    "values": lambda column: column.most_in_one_bar,
    "hierarchy": lambda column: column.hierarchy or "",
}


@dataclass(frozen=True)
class Listing:
    """Which columns are shown, and in which order.

    Parameters
    ----------
    text : str
        Part of the name, whatever its case.
    role, kind : str
        Empty for all.
    sort : str
        Key of the order.
    order : {"asc", "desc"}
    page : int
        From 1.
    """

    text: str = ""
    role: str = ""
    kind: str = ""
    sort: str = "number"
    order: str = "asc"
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Listing:
        """Read from an address or a form; what makes no sense counts as not given.

        Examples
        --------
        >>> Listing.of({"sort": "name", "order": "sideways", "page": "x"}).query
        '?sort=name'
        """
        known = {one.name: str(given[one.name]) for one in fields(cls) if one.name in given}
        page, sort = known.pop("page", ""), known.pop("sort", "")
        return cls(
            text=known.get("text", "").strip(),
            role=known.get("role", ""),
            kind=known.get("kind", ""),
            sort=sort if sort in _ORDERS else "number",
            order="desc" if known.get("order") == "desc" else "asc",
            page=max(1, int(page)) if page.isdecimal() and len(page) < 10 else 1,
        )

    @property
    def query(self) -> str:
        """The same as the end of an address."""
        plain = Listing()
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        said = {name: value for name, value in given.items() if value != getattr(plain, name)}
        return f"?{urlencode(said)}" if said else ""

    def on_page(self, page: int) -> Listing:
        """Turn to another page."""
        return replace(self, page=page)

    def sorted_by(self, sort: str) -> Listing:
        """Order by something, or the other way round if it is ordered so already; from the first page."""
        turned = self.sort == sort and self.order == "asc"
        return replace(self, sort=sort, order="desc" if turned else "asc", page=1)

    def direction(self, sort: str) -> str:
        """How a heading is ordered, as ``aria-sort`` says it."""
        if self.sort != sort:
            return "none"
        return "ascending" if self.order == "asc" else "descending"

    def matching(self, columns: Sequence[ColumnNow]) -> list[ColumnNow]:
        """Columns that pass the filter, in order; equal ones stay in the order of the table."""
        text = self.text.casefold()
        found = [
            column
            for column in columns
            if (not text or text in column.name.casefold())
            and self.role in ("", column.role)
            and self.kind in ("", column.kind)
        ]
        return sorted(found, key=_ORDERS[self.sort], reverse=self.order == "desc")


@dataclass(frozen=True)
class Shown:
    """One page of the columns that pass the filter."""

    listing: Listing
    matching: Sequence[ColumnNow]

    @property
    def n_pages(self) -> int:
        """Number of pages, at least one."""
        return max(1, -(-len(self.matching) // PAGE_SIZE))

    @property
    def page(self) -> int:
        """Page that is shown: the last one, if a later one was asked for."""
        return min(self.listing.page, self.n_pages)

    @property
    def first(self) -> int:
        """Place of the first column of the page, from 0."""
        return (self.page - 1) * PAGE_SIZE

    @property
    def columns(self) -> Sequence[ColumnNow]:
        """Columns of the page."""
        return self.matching[self.first : self.first + PAGE_SIZE]
