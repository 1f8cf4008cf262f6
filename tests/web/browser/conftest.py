"""A real server, a real Chromium, and a watch over what the page logs and asks for."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from web.browser.watching import Served, Watch

pytest.register_assert_rewrite("web.browser.walking")
NAMES = ("chromium", "chromium-browser", "google-chrome")
START = "import sys; from sfumato.__main__ import main; main(sys.argv[1:])"
PATIENCE = 300_000  # milliseconds; bounds a hang, on a machine however busy


@pytest.fixture(scope="module")  # while Playwright runs, asyncio.run fails in this thread: no other module may see it
def chromium():
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("NO CHROMIUM: install it (Debian: apt-get install chromium) to run the browser tests")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextlib.contextmanager
def serving(own: Path) -> Iterator[Callable[..., Served]]:
    """Start servers with files below a folder; each is ended, and must have removed its files, afterwards."""
    started: list[Served] = []

    def start(*arguments: str, folder: Path | None = None) -> Served:
        where = folder or own / "work"
        where.mkdir(exist_ok=True)
        temporary = own / f"temporary-{len(started)}"
        temporary.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", START, "serve", "--no-browser", "--port", "0", *arguments],
            cwd=where,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        url = process.stdout.readline().strip()
        if not url:
            raise AssertionError(process.communicate()[1])
        served = Served(url, where, process, temporary)
        started.append(served)
        return served

    yield start
    for served in started:
        served.process.terminate()
        said = served.process.communicate(timeout=120)[1]
        assert "bug in sfumato" not in said, said
        assert "Traceback" not in said, said
        assert not any(served.temporary.glob("sfumato-page-*")), "the private folder was left behind"


@pytest.fixture
def serve(tmp_path) -> Iterator[Callable[..., Served]]:
    """Start ``sfumato serve`` in a folder of its own."""
    with serving(tmp_path) as start:
        yield start


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory) -> Iterator[Served]:
    """Start one server for all tests that open their table themselves; its processes load the libraries once."""
    with serving(tmp_path_factory.mktemp("served")) as start:
        yield start()


@pytest.fixture
def open_tab(chromium) -> Iterator[Callable[..., object]]:
    """Open a tab on a server; console errors and requests to other places fail the test."""
    watches: list[Watch] = []
    with contextlib.ExitStack() as ends:

        def tab(served: Served, *, context=None, expected: tuple[str, ...] = (), **settings):
            if context is None:
                context = chromium.new_context(viewport={"width": 1280, "height": 900}, **settings)
                ends.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            watches.append(Watch.over(page, served.origin, expected))
            page.goto(served.url)
            return page

        yield tab
    problems = [problem for watch in watches for problem in watch.problems]
    assert not problems, "\n".join(problems)
