"""A server of the tests, and a watch over what a tab logs and asks for."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit


@dataclass
class Served:
    """A server process, the URL it printed, the folder it was started in and that of its temporary files."""

    url: str
    folder: Path
    process: subprocess.Popen[str]
    temporary: Path

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def private(self) -> Path:
        """Private folder of the server."""
        (found,) = self.temporary.glob("sfumato-page-*")
        return found

    @property
    def state(self) -> dict:
        """What the server knows beyond the project file."""
        return json.loads((self.private / "state.json").read_bytes())

    def processes(self) -> dict[int, str]:
        """Find the processes that descend from the server and live, with their command lines."""
        parents, commands = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if state != "Z":
                parents[int(folder.name)], commands[int(folder.name)] = int(parent), command
        found = {self.process.pid}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return {process: commands[process] for process in found - {self.process.pid}}


@dataclass
class Watch:
    """What a tab did that it should not; messages with an expected part are let pass."""

    origin: str
    expected: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    @classmethod
    def over(cls, tab, origin: str, expected: tuple[str, ...] = ()) -> Watch:
        watch = cls(origin, expected)
        tab.on("console", watch.message)
        tab.on("pageerror", lambda error: watch.problems.append(f"script error: {error}"))
        tab.on("request", watch.request)
        tab.on("response", watch.response)
        return watch

    def message(self, message) -> None:
        if message.type in ("error", "warning") and not any(part in message.text for part in self.expected):
            self.problems.append(f"console {message.type}: {message.text}")

    def request(self, request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:", "about:")):
            self.problems.append(f"request to {request.url}")

    def response(self, response) -> None:
        if response.status >= 500:
            self.problems.append(f"{response.status} for {urlsplit(response.url).path}")
