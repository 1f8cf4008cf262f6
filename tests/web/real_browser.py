"""A server in one thread and a Chromium in another, which reports what it logs and what it asks for."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn

import sfumato.web
from sfumato.web.security import SECURITY_HEADERS

NAMES = ("chromium", "chromium-browser", "google-chrome")
STATIC = Path(sfumato.web.__file__).parent / "static"
PATIENCE = 30.0  # bounds a hang


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
        end = time.monotonic() + PATIENCE
        while not server.started and time.monotonic() < end:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(PATIENCE)


def look_at(origin, path, look, **settings):
    """Open a page and look at it; gives what ``look(tab)`` gives. Whatever the tab logs or asks elsewhere fails.

    Playwright keeps a running event loop in the thread that it is started in, so it gets one of its own.
    """
    found = next((program for program in map(shutil.which, NAMES) if program), None)
    if found is None:
        pytest.skip("NO CHROMIUM: install it (Debian: apt-get install chromium) to run the browser tests")
    with ThreadPoolExecutor(1) as thread:
        result, problems = thread.submit(_look, found, origin, path, look, settings).result()
    assert not problems, problems
    return result


def _look(program, origin, path, look, settings):
    from playwright.sync_api import sync_playwright

    problems = []

    def check(request):
        if not request.url.startswith((f"{origin}/", "data:")):
            problems.append(f"request to {request.url}")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_context(**settings).new_page()
        tab.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: problems.append(f"error: {error}"))
        tab.on("request", check)
        tab.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
        tab.goto(origin + path)
        result = look(tab)
        browser.close()
    return result, problems
