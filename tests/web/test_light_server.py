"""The server process stays light: heavy libraries are loaded where tasks run, not where pages are answered."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "pyarrow", "duckdb", "sklearn", "scipy", "matplotlib", "pandas", "polars", "joblib", "opendp", "mpyc"}
LOADED = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
SERVED = """
import asyncio, pathlib, sys, tempfile
from sfumato.web.server import create_app
from sfumato.web.settings import PageSettings
from sfumato.web.rendering import STEPS

async def answered(app, path):
    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        answers.append(message)

    answers = []
    headers = [(b"host", b"127.0.0.1:8050"), (b"cookie", cookie)]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": query,
             "headers": headers, "scheme": "http", "server": ("127.0.0.1", 8050), "root_path": "",
             "http_version": "1.1"}
    await app(scope, receive, send)
    return answers[0]

settings = PageSettings(port=8050)
with tempfile.TemporaryDirectory() as folder:
    app = create_app(settings, pathlib.Path(folder))
    cookie, query = b"", f"token={settings.token}".encode()
    first = asyncio.run(answered(app, "/"))
    assert first["status"] == 303, first["status"]
    cookie, query = dict(first["headers"])[b"set-cookie"].partition(b";")[0], b""
    for path in (*(step.url for step in STEPS), "/definitions", "/static/page.css"):
        status = asyncio.run(answered(app, path))["status"]
        assert status in (200, 303), (path, status)
"""


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("code", ["import sfumato.web.server", "import sfumato.cli.making.serve", SERVED])
def test_server_loads_no_heavy_library(code):
    assert not modules_after(code) & HEAVY


def test_the_check_would_notice():
    assert modules_after("import sfumato.web.jobs.preload") >= {"numpy", "pyarrow", "duckdb", "sklearn"}
