"""The page as an ASGI application: routes of all steps, static files, and errors in words."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from sfumato.errors import SfumatoError
from sfumato.web.door import Door
from sfumato.web.jobs import TaskError
from sfumato.web.rendering import STEPS, UNPROCESSABLE, is_htmx, page_response, problem_response
from sfumato.web.security import PageSecurity
from sfumato.web.settings import PageSettings
from sfumato.web.state import Page
from sfumato.web.views import collaborate, columns, explore, goal, measured, opening, pictures, release, run

_STATIC = Path(__file__).parent / "static"
_VIEWS = (opening, columns, goal, run, explore, measured, release, collaborate, pictures)
_WORDS = {
    404: "There is no such page here.",
    405: "This address does not take that kind of request.",
    413: "The file is larger than this server takes.",
}


def create_app(settings: PageSettings, folder: Path, door: Door | None = None) -> Starlette:
    """Build the application of one server.

    Parameters
    ----------
    folder : Path
        Private folder, which exists; it is removed when the application ends.
    door : Door or None
        Is told which connections have shown the token.
    """
    routes = [route for view in _VIEWS for route in view.ROUTES]
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=_STATIC), name="static")],
        middleware=[Middleware(PageSecurity, settings=settings, bug_page=_bug, door=door)],
        exception_handlers={HTTPException: _refused, TaskError: _problem, SfumatoError: _problem},
        lifespan=_lifespan,
    )
    app.state.page = Page(settings, folder)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    page: Page = app.state.page
    page.jobs.warm()
    if page.settings.data is not None or page.settings.project is not None:
        opening.start_opening(page, data=page.settings.data, project=page.settings.project)
    yield
    page.close()


async def _refused(request: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 500
    return _error_page(request, TaskError(_WORDS.get(code, "This request cannot be answered.")), code)


async def _problem(request: Request, error: Exception) -> Response:
    """Answer what the user can mend, as a fragment or as a page."""
    found = TaskError.of(error)
    return problem_response(request, found) if is_htmx(request) else _error_page(request, found, UNPROCESSABLE)


async def _bug(request: Request, error: Exception) -> Response:
    """Answer an unknown error without its own text, which may quote a cell."""
    return _error_page(request, TaskError.of(error), 500)


def _error_page(request: Request, error: TaskError, status: int) -> Response:
    """Say what is wrong, with ways out: the same address once more, the step that it belongs to, or another table."""
    path, query = request.url.path, request.url.query
    step = next((one for one in STEPS if one.name == path.split("/")[1]), None)
    is_worth_asking = request.method == "GET" and status not in _WORDS
    return page_response(
        request,
        "error.html",
        step=step.name if step else "",
        status=status,
        error=error,
        field="",
        again=path + (f"?{query}" if query else "") if is_worth_asking else "",
        back=step if step and step.url not in (path, "/open") else None,
    )
