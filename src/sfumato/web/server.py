"""Server of the page: one process, one private folder, one address; both are gone when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import ssl
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from sfumato.errors import InputError, InvalidParameterError, OutputError, SfumatoError, bug_in_words
from sfumato.private_folders import PrivateFolder
from sfumato.processes import signals_heard
from sfumato.web.door import Connection, Door, accept
from sfumato.web.jobs.jobs import TaskError
from sfumato.web.rendering import STEPS, UNPROCESSABLE, is_htmx, page_of, page_response, problem_response
from sfumato.web.security import PageSecurity
from sfumato.web.settings import PageSettings, bracketed
from sfumato.web.state import Page
from sfumato.web.views import collaborate, columns, explore, goal, measured, opening, release, run

FOLDER_PURPOSE = "page"
"""Part of the name of a server's private folder, see :class:`sfumato.private_folders.PrivateFolder`."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BACKLOG = 512
_SECONDS_TO_FINISH = 1


def serve(settings: PageSettings) -> None:
    """Serve the page until Ctrl-C or SIGTERM; the address goes to stdout, words go to stderr.

    Parameters
    ----------
    settings : PageSettings
        Port 0 lets the system choose.

    Raises
    ------
    OutputError
        When the port is taken.
    InputError
        When the TLS files cannot be used.
    """
    context = None
    if settings.tls_cert is not None and settings.tls_key is not None:
        context = tls_context(settings.tls_cert, settings.tls_key)
    with listening(settings) as listener, _until_stopped() as stop, private_folder() as folder:
        settings = replace(settings, port=listener.getsockname()[1])
        _run(settings, listener, folder, stop, context)


class Stop:
    """Ends the server at the first signal, or what comes before it."""

    def __init__(self) -> None:
        self.server: uvicorn.Server | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Take a signal."""
        if self.server is None:
            raise KeyboardInterrupt
        self.server.should_exit = True


def _run(
    settings: PageSettings, listener: socket.socket, folder: Path, stop: Stop, context: ssl.SSLContext | None
) -> None:

    door = Door()
    app = create_app(settings, folder, door)
    page = app.state.page
    try:
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            loop="asyncio",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        )
        _keep_data_out_of_logs()
        stop.server = _Server(config, door, context)
        announce(settings)
        stop.server.run(sockets=[listener])
    finally:
        page.close()


def _keep_data_out_of_logs() -> None:
    """Silence what quotes requests, and show errors by their place only."""
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn.error").addFilter(without_text)


def without_text(record: logging.LogRecord) -> bool:
    """Take an error's own text and its traceback out of a log record; what the end of the server cancelled is quiet."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is not None:
        record.msg, record.args = bug_in_words(error), ()
    record.exc_info = record.exc_text = None
    return not isinstance(error, asyncio.CancelledError)


class _Server(uvicorn.Server):
    """uvicorn's server, whose connections come in through the :class:`Door`.

    It leaves the signals to :class:`Stop` and so ends without one.
    """

    def __init__(self, config: uvicorn.Config, door: Door, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._door = door
        self._context = context
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets=[])
        self._accepting = [
            asyncio.create_task(accept(listener, self._door, self._connection, self._context))
            for listener in sockets or []
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and see the others off."""
        for task in self._accepting:
            task.cancel()
        await super().shutdown(sockets=sockets)

    def _connection(self) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state, asyncio.get_running_loop())

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, which leaves them alone."""
        yield


def announce(settings: PageSettings) -> None:
    """Write the address, and open a browser where one is wanted."""
    sys.stderr.write("The page is ready: open the address below. Keep it to yourself. Ctrl-C ends the page.\n")
    sys.stdout.write(f"{settings.origin}/?token={quote(settings.token, safe='')}\n")
    sys.stdout.flush()
    if settings.open_browser:
        address = f"{settings.origin}/?token={settings.ticket}"
        threading.Thread(target=_open_browser, args=(address,), daemon=True).start()


def _open_browser(address: str) -> None:
    with contextlib.suppress(Exception):  # whoever has no browser here copies the address
        webbrowser.open(address)


@contextlib.contextmanager
def listening(settings: PageSettings) -> Iterator[socket.socket]:
    """Bind the port before anything else starts."""
    place = f"{bracketed(settings.host)}:{settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise InvalidParameterError("host", "which is not known here", allowed="an address of this machine") from None
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as exc:
            _refuse_port(exc, place)
        yield listener


def _refuse_port(error: OSError, place: str) -> NoReturn:
    hint, remedy = "choose another, or none to get a free one", ("port",)
    if error.errno == errno.EADDRINUSE:
        problem = "the port is used by another program"
    elif error.errno in (errno.EACCES, errno.EPERM):
        problem = "no permission to use this port"
    else:
        problem, hint, remedy = "cannot be listened on", "give an address of this machine", ("host",)
    raise OutputError(problem, path=place, hint=hint, remedy=remedy) from None


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Make ready to speak TLS 1.3, and refuse files that are absent, unreadable, no pair, or locked by a passphrase."""
    for path in (certificate, key):
        try:
            path.read_bytes()
        except (OSError, ValueError):
            problem = "cannot be read"
            raise InputError(problem, path=path, hint="give PEM files", remedy=("tls_cert", "tls_key")) from None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except _PassphraseNeededError:
        problem = "is locked by a passphrase"
        raise InputError(problem, path=key, hint="give a key without one") from None
    except (ssl.SSLError, ValueError):
        problem = "is not a certificate that fits the key"
        raise InputError(problem, path=certificate, hint="give PEM files that belong together") from None
    return context


class _PassphraseNeededError(Exception):
    pass


def _no_passphrase() -> str:
    raise _PassphraseNeededError


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make the server's own folder and remove it at the end, with what killed servers left."""
    folder = PrivateFolder(FOLDER_PURPOSE)
    try:
        yield folder.path
    finally:
        folder.remove()


@contextlib.contextmanager
def _until_stopped() -> Iterator[Stop]:
    """Turn Ctrl-C, SIGTERM and a closed terminal into a quiet end; what is tidied up then is not interrupted."""
    stop = Stop()
    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores one
    with contextlib.suppress(KeyboardInterrupt), signals_heard(heeded, stop):
        yield stop


# The page as an ASGI application: routes of all steps, static files, and errors in words.


_STATIC = Path(__file__).parent / "static"
_VIEWS = (opening, columns, goal, run, explore, measured, release, collaborate)
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
    found = TaskError.of(error, page_of(request).folder)
    return problem_response(request, found) if is_htmx(request) else _error_page(request, found, UNPROCESSABLE)


async def _bug(request: Request, error: Exception) -> Response:
    """Answer an unknown error without its own text, which may quote a cell."""
    return _error_page(request, TaskError.of(error, page_of(request).folder), 500)


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
