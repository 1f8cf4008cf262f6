"""From a view's facts to HTML: whole pages, fragments for htmx, and problems next to the field they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from sfumato.web.jobs.jobs import TaskError
from sfumato.web.state import Page

UNPROCESSABLE = 422
_SEE_OTHER = 303
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Step:
    """One step of the way, as the bar at the top shows it."""

    name: str
    title: str
    is_optional: bool = False

    @property
    def url(self) -> str:
        """Address of the step."""
        return f"/{self.name}"


STEPS = (
    Step("open", "Open"),
    Step("columns", "Columns"),
    Step("goal", "Goal"),
    Step("run", "Run"),
    Step("explore", "Explore"),
    Step("utility", "Utility"),
    Step("risk", "Risk"),
    Step("release", "Release"),
    Step("collaborate", "Collaborate", is_optional=True),
)


def page_of(request: Request) -> Page:
    """Give the server's state to a view."""
    page: Page = request.app.state.page
    return page


def is_htmx(request: Request) -> bool:
    """Whether a fragment is asked for."""
    return request.headers.get("HX-Request") == "true"


def page_response(
    request: Request, template: str, *, step: str = "", status: int = 200, **context: Any
) -> HTMLResponse:
    """Render a whole page; the step is marked in the bar at the top."""
    page = page_of(request)
    known = {**step_facts(page, step), "is_part": False, "data_name": page.state.get("data_name")}
    return HTMLResponse(_environment().get_template(template).render(**known, **context), status)


def part_response(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """Render a fragment that htmx puts into a page."""
    return HTMLResponse(_environment().get_template(template).render(**context), status)


def problem_response(request: Request, error: TaskError, field: str = "", **context: Any) -> HTMLResponse:
    """Render what is wrong, for the place next to the field that it is about."""
    return part_response(request, "problem.html", status=UNPROCESSABLE, error=error, field=field, **context)


def redirect(address: str) -> RedirectResponse:
    """Lead on to another page, which is then asked for by GET."""
    return RedirectResponse(address, _SEE_OTHER)


def step_facts(page: Page, step: str) -> dict[str, Any]:
    """Give what the bar of steps shows."""
    return {"step": step, "steps": STEPS, "reached": _reached(page)}


def _reached(page: Page) -> Sequence[str]:
    """Name the steps that there is something to see on."""
    opened, release = page.job("open"), page.job("release")
    reached = ["open", "collaborate"]
    if opened is not None:
        reached.append("columns")
    if opened is not None and opened.status == "done":
        reached += ["goal", "run", "explore"]
    if release is not None and release.has_result:
        reached += ["utility", "risk", "release"]
    return reached


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "share": _share,
        "amount": _amount,
        "duration": _duration,
        "bytes": _bytes,
    }
    return environment


def _number(value: float | None, digits: int = 4) -> str:
    """Write a number for people: whole ones with commas, others with a few digits."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"


def _share(value: float | None) -> str:
    """Write a share as per cent.

    Examples
    --------
    >>> _share(0.0312), _share(1), _share(0.00004), _share(None)
    ('3.12 %', '100 %', '< 0.01 %', '–')
    """
    if value is None:
        return "–"
    if 0 < value < 0.0001:
        return "< 0.01 %"
    return f"{100 * value:.2f}".rstrip("0").rstrip(".") + " %"


def _amount(value: float | None, unit: str) -> str:
    """Write the value of a figure in its unit."""
    return _share(value) if unit == "share" else _number(value)


def _duration(seconds: float | None) -> str:
    """Write a time for people.

    Examples
    --------
    >>> _duration(0.31), _duration(75), _duration(7300), _duration(None)
    ('0.3 s', '1 min 15 s', '2 h 1 min', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _bytes(size: int) -> str:
    """Write a size for people.

    Examples
    --------
    >>> _bytes(950), _bytes(118_000_000)
    ('950 B', '118.0 MB')
    """
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
