"""Step Columns: the table of all columns with filter, order and pages, and the roles of one, some or all that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sfumato.errors import SchemaError
from sfumato.schema import Kind, Role
from sfumato.web.describing import ColumnNow, Described, described, give_role, is_data_changed, read_changed_data
from sfumato.web.jobs.jobs import TaskError
from sfumato.web.rendering import UNPROCESSABLE, is_htmx, page_of, page_response, part_response, redirect
from sfumato.web.state import Page
from sfumato.web.views import column_detail

# The table of columns: filter, order and page, all said in the address, so that a reload shows the same.


PAGE_SIZE = 100


@dataclass(frozen=True)
class Heading:
    """Heading of the table: its key, its words, what its columns are ordered by, and whether numbers are under it."""

    key: str
    title: str
    order: Callable[[ColumnNow], Any]
    is_number: bool = False


HEADINGS = (
    Heading("number", "#", lambda column: column.number, is_number=True),
    Heading("name", "Name", lambda column: column.name.casefold()),
    Heading("role", "Role", lambda column: column.role),
    Heading("kind", "Kind", lambda column: column.kind),
    Heading("guess", "Guess, and why", lambda column: column.guessed_role),
    Heading("missing", "Missing", lambda column: column.n_missing, is_number=True),
    Heading("distinct", "Distinct", lambda column: column.n_distinct, is_number=True),
    Heading("unique", "Unique", lambda column: column.uniqueness, is_number=True),
    Heading("values", "Values", lambda column: column.most_in_one_bar),
    Heading("hierarchy", "Hierarchy", lambda column: column.hierarchy or ""),
)
_ORDERS = {heading.key: heading.order for heading in HEADINGS}


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


async def show_columns(request: Request) -> Response:
    """Show the step: the table, or how far reading it is; the step Open says why there is none."""
    page = page_of(request)
    job = page.job("open")
    if job is not None and not job.is_over:
        return page_response(request, "columns_opening.html", step="columns", job=job)
    if job is None or job.status != "done":
        return redirect("/open")
    if (name := job.result()["data_name"]) != page.state.get("data_name"):
        page.state.update(data_name=name)
    return _whole_page(request, _context(await described(page_of(request)), Listing.of(request.query_params)))


async def show_table(request: Request) -> Response:
    """Show the table alone, for another filter, order or page."""
    listing = Listing.of(request.query_params)
    if not is_htmx(request):
        return redirect(f"/columns{listing.query}")
    now = await described(page_of(request))
    response = part_response(request, "columns_table.html", **_context(now, listing))
    if request.headers.get("HX-Trigger") == "columns-filter":
        response.headers["HX-Replace-Url"] = f"/columns{listing.query}"
    return response


async def set_roles(request: Request) -> Response:
    """Change the role of one column, of those that are ticked, or of all that match the filter."""
    page = page_of(request)
    async with request.form() as form:
        listing = Listing.of(form)
        ticked = _numbers(form)
        now = await described(page)
        notes: list[str] = []
        problem = None
        try:
            role, chosen = _choice(form, listing, now)
            notes = await _give_role(page, now, role, chosen)
        except (TaskError, SchemaError) as exc:
            problem = exc if isinstance(exc, TaskError) else TaskError.of(exc)
    if problem is None and not is_htmx(request):
        return redirect(f"/columns{listing.query}")
    context = _context(await described(page), listing, ticked=ticked, notes=notes, problem=problem, with_summary=True)
    status = 200 if problem is None else UNPROCESSABLE
    if is_htmx(request):
        return part_response(request, "columns_table.html", status=status, **context)
    return _whole_page(request, context, status)


async def use_changed_data(request: Request) -> Response:
    """Take the data file as it is now, and read it again."""
    await read_changed_data(page_of(request))
    return redirect("/columns")


def _whole_page(request: Request, context: Mapping[str, Any], status: int = 200) -> Response:
    is_changed = is_data_changed(page_of(request))
    return page_response(request, "columns.html", step="columns", status=status, is_data_changed=is_changed, **context)


def _numbers(form: FormData) -> set[int]:
    return {int(number) for number in form.getlist("number") if isinstance(number, str) and number.isdecimal()}


def _choice(form: FormData, listing: Listing, now: Described) -> tuple[str, Sequence[ColumnNow]]:
    """Role that is wanted, and for which columns."""
    only = str(form.get("only", ""))
    if only:
        column = now.column(int(only)) if only.isdecimal() else None
        return str(form.get(f"role-{only}", "")), [column] if column else []
    role = str(form.get("new_role", ""))
    if form.get("scope") == "matching":
        return role, listing.matching(now.columns)
    return role, [column for number in sorted(_numbers(form)) if (column := now.column(number))]


async def _give_role(page: Page, now: Described, role: str, chosen: Sequence[ColumnNow]) -> list[str]:
    """Write the role into the project file and say in words what was done."""
    able = [column for column in chosen if not column.is_feature]
    if not role:
        problem = "no role was chosen"
        raise SchemaError(problem, hint="choose one in the list")
    if not able:
        problem = "features of a 0/1 table are always quasi-identifiers" if chosen else "no column was selected"
        raise SchemaError(problem, hint="select columns that can have another role")
    await give_role(page, role, able)
    notes = [f"“{able[0].name}” is now {role}." if len(able) == 1 else f"{len(able):,} columns are now {role}."]
    if len(able) < len(chosen):
        notes.append(f"{len(chosen) - len(able):,} features of the 0/1 table stay quasi-identifiers.")
    if role == Role.TARGET and now.target and now.target != able[0].name:
        notes.append(f"“{now.target}” was the target; it is now a quasi-identifier.")
    return notes


def _context(
    now: Described,
    listing: Listing,
    *,
    ticked: set[int] | None = None,
    notes: Sequence[str] = (),
    problem: TaskError | None = None,
    with_summary: bool = False,
) -> dict[str, Any]:
    return {
        "now": now,
        "shown": Shown(listing, listing.matching(now.columns)),
        "listing": listing,
        "headings": HEADINGS,
        "roles": tuple(Role),
        "kinds": tuple(Kind),
        "ticked": ticked or set(),
        "notes": notes,
        "problem": problem,
        "with_summary": with_summary,
    }


ROUTES = [
    Route("/columns", show_columns),
    Route("/columns/table", show_table),
    Route("/columns/roles", set_roles, methods=["POST"]),
    Route("/columns/data", use_changed_data, methods=["POST"]),
    *column_detail.ROUTES,
]
