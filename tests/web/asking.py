"""Requests to a page without a server; every page that is answered is held to the content-security policy."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.routing import BaseRoute

from sfumato.web.jobs.jobs import Jobs
from sfumato.web.settings import PageSettings
from sfumato.web.state import Page

BOUNDARY = b"----page-boundary-7"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=" + BOUNDARY.decode()
HTMX = {"hx-request": "true"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


def shown(text: str) -> str:
    """Text of HTML on one line, as people read it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


class Seen(HTMLParser):
    """Elements of a page, form fields with their values, and the text of every element with an id.

    Refuses what the page's content-security policy would, an id that stands twice, and elements that are not closed in
    order.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.by_id: dict[str, dict[str, str | None]] = {}
        self.values: dict[str, str | None] = {}
        self.texts: dict[str, str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._select = ""
        self._open: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._note(tag, found)
        if tag not in VOID:
            self._open.append((tag, found.get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> at {self.getpos()} closes nothing"
        assert self._open.pop()[0] == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name is not None:
                self.texts[name] = self.texts.get(name, "") + data

    def _note(self, tag: str, found: dict[str, str | None]) -> None:
        assert tag != "style", f"a style element at {self.getpos()}"
        assert tag != "script" or found.get("src"), f"an inline script at {self.getpos()}"
        for name in found:
            assert name != "style", f"a style attribute of {tag} at {self.getpos()}"
            assert not name.startswith("on"), f"{name} of {tag} at {self.getpos()}"
        self.elements.append((tag, found))
        if (identity := found.get("id")) is not None:
            assert identity not in self.by_id, f"two elements have the id {identity}"
            self.by_id[identity] = found
        self._note_value(tag, found)

    def _note_value(self, tag: str, found: dict[str, str | None]) -> None:
        if (
            tag == "input"
            and "name" in found
            and (found.get("type") not in ("radio", "checkbox") or "checked" in found)
        ):
            self.values[found["name"] or ""] = found.get("value", "")
        if tag == "select":
            self._select = found.get("name") or ""
        if tag == "option" and (self._select not in self.values or "selected" in found):
            self.values[self._select] = found.get("value")


class Answer(NamedTuple):
    """Answer to a request; bytes that are no text are kept in it as surrogates."""

    status: int
    headers: Headers
    text: str

    @property
    def body(self) -> bytes:
        return self.text.encode(errors="surrogateescape")

    @property
    def is_page(self) -> bool:
        """Whether a browser shows it as HTML of this site."""
        is_html = self.headers.get("content-type", "").startswith("text/html")
        return is_html and not self.headers.get("content-disposition", "").startswith("attachment")

    @property
    def seen(self) -> Seen:
        return Seen(self.text)

    @property
    def shown(self) -> str:
        return shown(self.text)


def form_of(*parts: tuple[str, str] | tuple[str, str, str | bytes], boundary: bytes = BOUNDARY) -> bytes:
    """Write a form by hand: (name, value) is a field, (name, file name, content) a file."""
    body = b""
    for part in parts:
        body += b"--" + boundary + b'\r\nContent-Disposition: form-data; name="' + part[0].encode() + b'"'
        if len(part) == 3:
            body += b'; filename="' + part[1].encode() + b'"\r\nContent-Type: text/csv'
        content = part[-1] if isinstance(part[-1], bytes) else part[-1].encode()
        body += b"\r\n\r\n" + content + b"\r\n"
    return body + b"--" + boundary + b"--\r\n"


async def ask_soon(
    app: Any,
    method: str,
    url: str,
    *,
    form: Mapping[str, Any] | None = None,
    body: bytes = b"",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
) -> Answer:
    """Send one request as a server would, and look at what comes back."""
    lines = list(headers.items() if isinstance(headers, Mapping) else headers)
    if form is not None:
        lines.append(("content-type", FORM))
        body = urlencode(form, doseq=True).encode()
    path, _, query = url.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "server": ("127.0.0.1", 8050),
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in lines],
    }
    coming, sent = [{"type": "http.request", "body": body, "more_body": False}], []

    async def receive() -> dict[str, Any]:
        if not coming:
            await asyncio.Event().wait()  # the browser stays
        return coming.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    text = b"".join(message.get("body", b"") for message in rest).decode(errors="surrogateescape")
    answer = Answer(start["status"], Headers(raw=start["headers"]), text)
    if answer.is_page:
        Seen(text)
    return answer


def ask(app: Any, method: str, url: str, **more: Any) -> Answer:
    """Send one request and wait for its answer; see ``ask_soon``."""
    return asyncio.run(ask_soon(app, method, url, **more))


class Site:
    """A page with some of the steps, and requests to it.

    Parameters
    ----------
    views : modules
        Views whose routes it has.
    jobs : Jobs or None
        Jobs in the place of the page's own, which run in processes.
    routes : sequence of BaseRoute
        Further routes.
    """

    def __init__(
        self,
        folder: Path,
        *views: ModuleType,
        project: Path | None = None,
        jobs: Jobs | None = None,
        routes: Iterable[BaseRoute] = (),
        middleware: Iterable[Any] = (),
        **settings: Any,
    ) -> None:
        folder.mkdir(exist_ok=True, parents=True)
        self.page = Page(PageSettings(**settings), folder)
        if jobs is not None:
            self.page.jobs = jobs
        if project is not None:
            self.page.state.update(project=str(project), data_name="people.csv")
        own = [route for view in views for route in view.ROUTES]
        self.app = Starlette(routes=[*own, *routes], middleware=list(middleware))
        self.app.state.page = self.page

    def get(self, url: str, /, *, htmx: bool = False, **query: Any) -> Answer:
        return ask(self.app, "GET", url + (f"?{urlencode(query)}" if query else ""), headers=HTMX if htmx else ())

    def post(self, url: str, /, form: Mapping[str, Any] | None = None, *, htmx: bool = False, **fields: Any) -> Answer:
        """Send the fields of a form, given together or one by one."""
        return ask(self.app, "POST", url, form={**(form or {}), **fields}, headers=HTMX if htmx else ())

    def post_twice(self, url: str, /, form: Mapping[str, Any]) -> list[Answer]:
        """Send the same form from two tabs at the same moment."""

        async def both() -> list[Answer]:
            return await asyncio.gather(*(ask_soon(self.app, "POST", url, form=form) for _ in range(2)))

        return asyncio.run(both())

    def upload(self, url: str, name: str, content: str | bytes, /, *, htmx: bool = False, **fields: str) -> Answer:
        """Send fields and then a file."""
        headers = {"content-type": MULTIPART, **(HTMX if htmx else {})}
        return ask(self.app, "POST", url, body=form_of(*fields.items(), ("file", name, content)), headers=headers)
