"""Pictures that a job has left in its folder."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from sfumato.web.rendering import page_of

PURPOSES = frozenset({"compare", "release"})
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


async def picture(request: Request) -> Response:
    """Send one picture of the latest job of a purpose."""
    purpose, name = request.path_params["purpose"], request.path_params["name"]
    job = page_of(request).job(purpose) if purpose in PURPOSES else None
    if job is None or job.status != "done" or not _NAME.fullmatch(name):
        raise HTTPException(404)
    path = job.folder / f"{name}.svg"
    if path.is_symlink() or not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, media_type="image/svg+xml")


ROUTES = [Route("/pictures/{purpose}/{name}.svg", picture)]
