"""A server in one thread and a Chromium in another, which reports what it logs and what it asks for."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn

import sfumato.web
from sfumato.web.security import SECURITY_HEADERS
from waiting import until

NAMES = ("chromium", "chromium-browser", "google-chrome")
STATIC = Path(sfumato.web.__file__).parent / "static"
PATIENCE = 300.0  # bounds a hang


class PolicyHeaders:
    """The headers of the page on every answer, without its door."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self.app(scope, receive, send_with_headers)


@contextlib.contextmanager
def served(app):
    """Serve an application on a free port of this machine; gives its origin."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", http="h11", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(PATIENCE)


class Eyes:
    """A Chromium that looks at pages, in a thread of its own: Playwright keeps an event loop where it is started."""

    def __init__(self, program):
        self._thread = ThreadPoolExecutor(1)
        self._playwright, self._browser = self._thread.submit(self._open, program).result()

    def look_at(self, origin, path, look, *, expected=(), **settings):
        """Open a page and look at it; gives what ``look(tab)`` gives.

        Whatever the tab logs or asks elsewhere fails, unless it holds an expected part.
        """
        result, found = self._thread.submit(self._look, origin, path, look, settings).result()
        problems = [problem for problem in found if not any(part in problem for part in expected)]
        assert not problems, problems
        return result

    def close(self):
        self._thread.submit(self._browser.close).result()
        self._thread.submit(self._playwright.stop).result()
        self._thread.shutdown()

    @staticmethod
    def _open(program):
        from playwright.sync_api import sync_playwright

        playwright = sync_playwright().start()
        return playwright, playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

    def _look(self, origin, path, look, settings):
        problems = []

        def check(request):
            if not request.url.startswith((f"{origin}/", "data:")):
                problems.append(f"request to {request.url}")

        with self._browser.new_context(**settings) as context:
            tab = context.new_page()
            tab.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
            tab.on("pageerror", lambda error: problems.append(f"error: {error}"))
            tab.on("request", check)
            tab.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
            tab.goto(origin + path)
            return look(tab), problems


@contextlib.contextmanager
def opened_eyes():
    """Start a Chromium to look at several pages with."""
    found = next((program for program in map(shutil.which, NAMES) if program), None)
    if found is None:
        pytest.skip("NO CHROMIUM: install it (Debian: apt-get install chromium) to run the browser tests")
    eyes = Eyes(found)
    try:
        yield eyes
    finally:
        eyes.close()


def look_at(origin, path, look, **settings):
    """Look at one page; see ``Eyes.look_at``."""
    with opened_eyes() as eyes:
        return eyes.look_at(origin, path, look, **settings)
