"""Door of the page: who may send a request, and the headers that every answer carries.

A page on loopback is reachable for every program and, through the browser, for every web site. Five checks stand
before each view, in this order: the name it was asked under (against DNS rebinding), the method, the token (against
other users and programs of this machine), the origin of requests that change something (against other sites), and
the size of what is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from html import escape
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import bug_in_words
from sfumato.web.door import Door
from sfumato.web.settings import PageSettings

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_RAW_HEADERS = {name.lower().encode(): value.encode() for name, value in SECURITY_HEADERS.items()}
SAFE_METHODS = frozenset({"GET", "HEAD"})
UNSAFE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
LARGEST_FORM = 1_000_000
"""Bytes that a request may send, but for uploads, whose views have limits of their own."""
_UPLOADS = re.compile("/open/upload|/columns/[0-9]+/hierarchy", re.ASCII)

_FIRST_DELAY, _LONGEST_DELAY, _MOST_DOUBLINGS = 0.25, 8.0, 10  # less than the door gives to strangers
_SECONDS_TO_FORGET = 600.0
_MOST_ADDRESSES = 4096
_LOGGED_EACH = 20

_log = logging.getLogger("sfumato.web")

BugPage = Callable[[Request, Exception], Awaitable[Response]]


class PageSecurity:
    """ASGI middleware that lets only the page's own user in and puts the headers on every answer.

    An error that no view expected ends here too: its own text, which may quote a cell, reaches neither log nor answer.

    Parameters
    ----------
    app : ASGIApp
        Views behind the door.
    settings : PageSettings
        With the port that was really bound.
    bug_page : callable, optional
        Makes the answer to an unexpected error; by default a line of text.
    door : Door or None
        Is told which connections have shown the token or the cookie.
    wrong_tokens : WrongTokens or None
        Slows and logs those that have shown another.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: PageSettings,
        bug_page: BugPage | None = None,
        door: Door | None = None,
        wrong_tokens: WrongTokens | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._authorities = settings.authorities
        self._cookie_name = f"sfumato-{settings.port}"
        self._cookie_value = hmac.new(settings.token.encode(), b"sfumato page cookie", hashlib.sha256).hexdigest()
        self._ticket = settings.ticket
        self._bug_page = bug_page
        self._door = door or Door()
        self._wrong_tokens = wrong_tokens or WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False

        async def send_guarded(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                message = {**message, "headers": _guarded(message.get("headers", ()))}
            await send(message)

        request = Request(scope, receive)
        try:
            refusal = self._refusal(request)
            if refusal is _NO_TOKEN and self._shows_secret(request):
                await self._wrong_tokens.slow(request.client.host if request.client else "")
            allowed = receive if _is_upload(request) else _limited(receive)
            await (self._app if refusal is None else refusal)(scope, allowed, send_guarded)
        except ClientDisconnect:
            return
        except _TooLargeError:
            await _TOO_LARGE(scope, receive, send_guarded)
        except Exception as error:
            _log.error("%s", bug_in_words(error))
            if not is_started:  # half an answer cannot be taken back: the server closes the connection
                answer = await self._bug_answer(request, error)
                await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Answer at the door, or None where the request may pass."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1:
            return _words(400, "The request does not say which host it is for.")
        if hosts[0].lower() not in self._authorities:
            return _words(421, "This page is not served under that name. Use the address that sfumato serve printed.")
        if request.method not in SAFE_METHODS | UNSAFE_METHODS:
            return _words(405, "No such method here.", {"Allow": ", ".join(sorted(SAFE_METHODS | UNSAFE_METHODS))})
        if request.method in SAFE_METHODS and "token" in request.query_params:
            return self._first_visit(request)
        if not _are_equal(request.cookies.get(self._cookie_name, ""), self._cookie_value):
            return _NO_TOKEN
        self._door.admit(request.client)
        if request.method in UNSAFE_METHODS and not self._is_own_site(request.headers):
            return _words(403, "This request came from another site. Go back to the page and try again.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > LARGEST_FORM and not _is_upload(request):
            return _TOO_LARGE
        return None

    def _first_visit(self, request: Request) -> Response:
        """Turn the token in the address into a cookie, so that it stays in no history and no Referer."""
        if not self._is_admitted(request):
            return _NO_TOKEN
        self._door.admit(request.client)
        rest = [(name, value) for name, value in parse_qsl(request.url.query, True) if name != "token"]
        target = "/" + quote(request.scope["path"].lstrip("/")) + ("?" + urlencode(rest) if rest else "")
        is_linked = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        answer = _onward_page(target) if is_linked else RedirectResponse(target, 303)
        secure = self._settings.is_tls
        answer.set_cookie(self._cookie_name, self._cookie_value, secure=secure, httponly=True, samesite="strict")
        return answer

    def _shows_secret(self, request: Request) -> bool:
        """Whether a request brings a token or a cookie of ours, right or wrong."""
        return "token" in request.query_params or self._cookie_name in request.cookies

    def _is_admitted(self, request: Request) -> bool:
        """Whether the address holds the token, or the ticket for the first time."""
        given = request.query_params["token"]
        if _are_equal(given, self._settings.token):
            return True
        is_first = request.method == "GET" and bool(self._ticket) and _are_equal(given, self._ticket)
        if is_first:
            self._ticket = ""
        return is_first

    def _is_own_site(self, headers: Headers) -> bool:
        """Whether the browser says that a page of ours sent this.

        ``Origin: null`` is nothing to go by where ``Sec-Fetch-Site`` speaks, and a refusal where it does not.
        """
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        own = f"{self._settings.scheme}://{headers['host']}".lower()
        if site is None:
            return origin is not None and origin.lower() == own
        return site in ("same-origin", "none") and (origin in (None, "null") or origin.lower() == own)

    async def _bug_answer(self, request: Request, error: Exception) -> Response:
        if self._bug_page is not None:
            try:
                return await self._bug_page(request, error)
            except Exception as second:
                _log.error("%s", bug_in_words(second))
        return _words(500, "This is a bug in sfumato. Its place is in the terminal where sfumato serve runs.")


class WrongTokens:
    """Answers wrong tokens and cookies the later, the more of them came from an address; right ones are not held up.

    Parameters
    ----------
    sleep, clock : callable
        For tests.
    """

    def __init__(
        self,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep = sleep
        self._clock = clock
        self._seen: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def slow(self, address: str) -> None:
        """Note a wrong token of an address, log it, and wait before it is answered."""
        n_before, last = self._seen.pop(address, (0, 0.0))
        now = self._clock()
        n_wrong = 1 if now - last > _SECONDS_TO_FORGET else n_before + 1
        self._seen[address] = n_wrong, now
        if len(self._seen) > _MOST_ADDRESSES:
            self._seen.popitem(last=False)
        if n_wrong <= _LOGGED_EACH or n_wrong % _LOGGED_EACH == 0:
            _log.warning("wrong token from %s (%s so far)", address, f"{n_wrong:,}")
        await self._sleep(min(_FIRST_DELAY * 2.0 ** min(n_wrong - 1, _MOST_DOUBLINGS), _LONGEST_DELAY))


class _TooLargeError(Exception):
    pass


def _is_upload(request: Request) -> bool:
    """Whether a request brings a file to a view that takes one."""
    is_form_with_file = request.headers.get("content-type", "").startswith("multipart/")
    return is_form_with_file and _UPLOADS.fullmatch(request.scope["path"]) is not None


def _limited(receive: Receive) -> Receive:
    """Count the bytes that come, whatever length was announced."""
    n_bytes = 0

    async def counted() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > LARGEST_FORM:
            raise _TooLargeError
        return message

    return counted


def _guarded(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Put the security headers in place of a view's own."""
    kept = [(name, value) for name, value in headers if name.lower() not in _RAW_HEADERS]
    return [*kept, *_RAW_HEADERS.items()]


def _words(status: int, words: str, headers: dict[str, str] | None = None) -> HTMLResponse:
    body = f'<!DOCTYPE html><html lang="en"><title>sfumato</title><p role="alert">{words}</p></html>\n'
    return HTMLResponse(body, status, headers)


_NO_TOKEN = _words(
    403,
    "Open the page with the whole address that <code>sfumato serve</code> printed, with its token. "
    "When the server was started again, the address changed.",
)
_TOO_LARGE = _words(413, f"This request is larger than the page takes ({LARGEST_FORM:,} bytes).")


def _onward_page(target: str) -> HTMLResponse:
    """Lead on from a link on another site: a redirect would count as that site's, and bring no strict cookie."""
    link = escape(target)
    refresh = f'<meta http-equiv="refresh" content="0; url={link}">'
    words = f'<p><a href="{link}">Go on to the page</a></p>'
    return HTMLResponse(f'<!DOCTYPE html><html lang="en">{refresh}<title>sfumato</title>{words}</html>\n')


def _are_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), secret.encode())
