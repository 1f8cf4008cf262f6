"""A page with the Goal and Run steps alone, jobs that a test steers, and a client that speaks ASGI."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

from starlette.applications import Starlette

from sfumato.web.job import Job
from sfumato.web.job_errors import TaskError
from sfumato.web.jobs import Jobs
from sfumato.web.settings import PageSettings
from sfumato.web.state import Page
from sfumato.web.tasks import task_named
from sfumato.web.views import goal, run

TABLE = "age,sex,town,illness,paid\n" + "".join(
    f"{20 + number % 7},{'fm'[number % 2]},{'abc'[number % 3]},{'xyz'[number % 3]},{'yn'[number % 4 == 0]}\n"
    for number in range(60)
)
PROJECT = """# mine
[data]
path = "people.csv"

[columns]
"age" = { role = "quasi-identifier", kind = "numeric" }  # why
"sex" = { role = "quasi-identifier", kind = "categorical" }
"town" = { role = "quasi-identifier", kind = "categorical" }
"illness" = { role = "sensitive", kind = "categorical" }
"paid" = { role = "target", kind = "categorical" }

[release]
mechanism = "greedy-containment"
output = "release.csv"

[release.parameters]
k = 5
"""


class Told:
    """Stands in for what a task tells its server."""

    def __init__(self):
        self.steps = []

    def progress(self, done, total, what):
        self.steps.append((done, total, what))

    def log(self, text):
        raise AssertionError(text)


def make_project(folder, text=PROJECT, table=TABLE):
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text(table, encoding="utf-8")
    path = folder / "sfumato.toml"
    path.write_text(text, encoding="utf-8")
    return path


class SteeredJobs(Jobs):
    """Tasks run at once in this process, but for those in ``waits``, which run until the test ends them."""

    def __init__(self, folder):
        super().__init__(folder)
        self.waits = {"release.make", "explore.compare"}
        self.started = []
        self.called = []

    async def call(self, task, /, *, seconds=60.0, **arguments):
        self.called.append(task)
        try:
            return task_named(task)(self._folder, Told(), **json.loads(json.dumps(arguments)))
        except Exception as error:
            raise TaskError.of(error) from None

    def start(self, task, /, *, title, **arguments):
        self.started.append((task, arguments))
        folder = self._folder / f"job{len(self.started)}"
        folder.mkdir()
        job = Job(folder.name, task, title, folder)
        self._jobs[job.id] = job
        if task not in self.waits:
            try:
                end(job, result=task_named(task)(folder, Told(), **arguments))
            except Exception as error:
                end(job, "failed", error=TaskError.of(error))
        return job

    def cancel(self, job_id):
        job = self.get(job_id)
        if not job.is_over:
            end(job, "cancelled")


def end(job, status="done", *, result=None, error=None):
    (job.folder / "result.json").write_text(json.dumps(result or {}))
    job._end(status, error)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def seen(self):
        return Seen(self.text)


class Seen(HTMLParser):
    """Elements of a page by id, form fields with their values, and all text."""

    def __init__(self, text):
        super().__init__()
        self.by_id, self.values, self.texts = {}, {}, {}
        self.elements, self._select, self._open = [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements.append((tag, found))
        if "id" in found:
            assert found["id"] not in self.by_id, f"two elements have the id {found['id']}"
            self.by_id[found["id"]] = found
        if tag not in ("input", "meta", "link", "br"):
            self._open.append((tag, found.get("id")))
        if tag == "input" and (found.get("type") != "radio" or "checked" in found):
            self.values[found["name"]] = found.get("value", "")
        if tag == "select":
            self._select = found["name"]
        if tag == "option" and (self._select not in self.values or "selected" in found):
            self.values[self._select] = found["value"]

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self._open:
            if name is not None:
                self.texts[name] = self.texts.get(name, "") + data


class Site:
    """The page of a test, and requests to it."""

    def __init__(self, folder: Path, project: Path | None, jobs: Jobs | None = None):
        folder.mkdir()
        self.page = Page(PageSettings(), folder)
        self.page.jobs = jobs or SteeredJobs(folder / "steered")
        if project is not None:
            self.page.state.update(project=str(project), data_name="people.csv")
        self._app = Starlette(routes=[*goal.ROUTES, *run.ROUTES])
        self._app.state.page = self.page

    def get(self, path, **query):
        return asyncio.run(self._ask("GET", path, urlencode(query).encode(), b""))

    def post(self, path, **form):
        fields = {name.replace("set_", "set-", 1): value for name, value in form.items()}
        return asyncio.run(self._ask("POST", path, b"", urlencode(fields).encode()))

    def post_fields(self, path, fields):
        return asyncio.run(self._ask("POST", path, b"", urlencode(fields).encode()))

    async def both(self, path, fields):
        body = urlencode(fields).encode()
        return await asyncio.gather(self._ask("POST", path, b"", body), self._ask("POST", path, b"", body))

    async def _ask(self, method, path, query, body):
        path, _, more = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query or more.encode(),
            "headers": [(b"content-type", b"application/x-www-form-urlencoded")],
            "http_version": "1.1",
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            sent.append(message)

        await self._app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:]).decode())
