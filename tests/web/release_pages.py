"""A project on disk, a release job that is over, and a small asker of the pages that show it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette

from sfumato.datasets.admissions import admissions
from sfumato.project import load_project, toml_text
from sfumato.table.write import write_table
from sfumato.web.settings import PageSettings
from sfumato.web.state import Page
from sfumato.web.tasks import release as tasks
from sfumato.web.views import measured, release

NAMES = ["name", "age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
JOB = "0f" * 8
VOID = {"meta", "br", "img", "hr", "input", "link"}


class Quiet:
    """Takes what a task tells."""

    def __init__(self):
        self.lines = []
        self.steps = []

    def progress(self, done, total, what):
        self.steps.append((done, total, what))

    def log(self, text):
        self.lines.append(text)


def write_project(
    folder: Path, mechanism: str, more: str = "", *, n_rows: int = 160, output: str = "release.csv"
) -> Path:
    """Write a table of made-up admissions and a project file that asks for a mechanism."""
    table = admissions(n_rows=n_rows).keep(NAMES)
    with (folder / "stays.csv").open("w+b") as file:
        write_table(table, file, "csv")
    columns = [f'{toml_text(c.name)} = {{ role = "{c.role}", kind = "{c.kind}" }}  # why' for c in table.schema]
    text = ["[data]", 'path = "stays.csv"', "[columns]", *columns]
    text += ["[release]", f'mechanism = "{mechanism}"', f"output = {toml_text(output)}", "[release.parameters]", more]
    path = folder / "sfumato.toml"
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    load_project(path)
    return path


def make(project: Path, folder: Path, *, quick: bool = True) -> dict:
    """Run the task as a job would, and leave its result as a job does."""
    folder.mkdir(parents=True)
    result = tasks.make(folder, Quiet(), project=str(project), quick=quick)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    facts = {"id": folder.name, "task": "release.make", "title": "Release", "status": "done", "seconds": 1.0, "done": 1}
    facts |= {"total": 1, "what": "", "log": [], "error": None}
    (folder / "job.json").write_text(json.dumps(facts), encoding="utf-8")
    return result


def is_same(one: bytes, other: bytes) -> bool:
    """Compare whole files; pytest would take minutes to show how they differ."""
    return one == other


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def shown(self) -> str:
        """Text of the page on one line, as people read it."""
        parser = _Text()
        parser.feed(self.text)
        assert not parser.open, f"left open: {parser.open}"
        return " ".join(" ".join(parser.found).split())


class _Text(HTMLParser):
    """Takes the text, and checks on the way that elements are closed in order and nothing is inline."""

    def __init__(self):
        super().__init__()
        self.found, self.open = [], []

    def handle_starttag(self, tag, attributes):
        for name, _ in attributes:
            assert not name.startswith(("style", "on")), f"{name} in {tag}"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.found.append(data)


class Pages:
    """The pages of a release, over a server's folder."""

    def __init__(self, folder: Path, project: Path | None, *, is_private: bool = False, job: str | None = JOB):
        self.page = Page(PageSettings(), folder)
        self.page.state.update(data_name="stays.csv", is_private=is_private)
        if project is not None:
            self.page.state.update(project=str(project))
        if job is not None:
            self.page.state.update(jobs={"release": job})
        self.app = Starlette(routes=[*measured.ROUTES, *release.ROUTES])
        self.app.state.page = self.page

    def get(self, url: str, **headers: str) -> Answer:
        return asyncio.run(self._ask("GET", url, b"", headers))

    def post(self, url: str, **form: str) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return asyncio.run(self._ask("POST", url, urlencode(form).encode(), headers))

    async def _ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        parts, sent = urlsplit(url), []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "server": ("127.0.0.1", 8050),
        }

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))
