"""The page of ``sfumato serve``: from start to first answer, a large upload, many tabs and the start of a task."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.contest import Benchmark, Contender, Outcome

UPLOAD = "people.csv"
UPLOAD_BYTES = 118_000_000
LOADS = 50
BOUNDARY = "sfumato-benchmark"
START = "import sys; from sfumato.__main__ import main; main(sys.argv[1:])"
PACKAGES = ("sfumato", "starlette", "uvicorn", "jinja2")


@dataclass
class Server:
    """A server process, where it listens, its cookie, and how long it took to come up."""

    process: subprocess.Popen[str]
    place: str
    cookie: str
    figures: dict[str, float]

    def ask(self, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Send a request as a browser with the cookie does."""
        connection = http.client.HTTPConnection(self.place, timeout=600)
        own = {"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"}
        connection.request(method, path, body, own | {name.replace("_", "-"): text for name, text in headers.items()})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    @property
    def peak_megabytes(self) -> float:
        """High-water mark of the server process alone; tasks have processes of their own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]

    def wait_for_columns(self) -> None:
        """Wait until the table that was opened is described."""
        while b"columns-table" not in self.ask("/columns")[1]:
            time.sleep(0.05)


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """Start a server in an empty folder and load its first page."""
    with tempfile.TemporaryDirectory(prefix="sfumato-benchmark-") as folder:
        begun = time.perf_counter()
        command = [sys.executable, "-c", START, "serve", "--no-browser"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = urlsplit(process.stdout.readline().strip() if process.stdout else "")
            printed = time.perf_counter()
            connection = http.client.HTTPConnection(url.netloc, timeout=60)
            connection.request("GET", f"{url.path}?{url.query}")
            cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
            connection.close()
            server = Server(process, url.netloc, cookie, {"start to address, s": printed - begun})
            status, _ = server.ask("/open")
            server.figures["address to first page, s"] = time.perf_counter() - printed
            server.figures["errors"] = int(status != 200)
            yield server
        finally:
            process.terminate()
            process.wait()


def write_upload(folder: Path) -> None:
    """Write a CSV file of 118 MB."""
    line = "{:07d},{},town {:03d},a text that makes the line longer,{}\n"
    with (folder / UPLOAD).open("w", encoding="ascii") as file:
        file.write("number,age,town,text,bought\n")
        row = 0
        while file.tell() < UPLOAD_BYTES:
            file.writelines(line.format(r, r % 90, r % 997, r % 2) for r in range(row, row + 10_000))
            row += 10_000


def first_page(folder: Path) -> dict[str, float]:
    """Start a server and load one page."""
    with serving() as server:
        return {**server.figures, "server's peak MB": server.peak_megabytes}


def upload(folder: Path) -> dict[str, float]:
    """Send the large file in pieces; reading it is a task, in a process of its own, and not waited for."""
    path = folder / UPLOAD
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{UPLOAD}"\r\n\r\n'.encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()

    def pieces() -> Iterator[bytes]:
        yield head
        with path.open("rb") as file:
            while piece := file.read(1 << 16):
                yield piece
        yield tail

    with serving() as server:
        before, begun = server.peak_megabytes, time.perf_counter()
        size = str(len(head) + path.stat().st_size + len(tail))
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        status, _ = server.ask("/open/upload", method="POST", body=pieces(), Content_Length=size, Content_Type=kind)
        seconds = time.perf_counter() - begun
        return {
            "upload, s": seconds,
            "errors": int(status != 303),
            "server's MB before": before,
            "server's peak MB": server.peak_megabytes,
        }


def many_tabs(folder: Path) -> dict[str, float]:
    """Load the columns of the demo table from fifty places at once."""
    with serving() as server:
        server.ask("/open", method="POST", body="how=demo", Content_Type="application/x-www-form-urlencoded")
        server.wait_for_columns()
        begun = time.perf_counter()
        with ThreadPoolExecutor(LOADS) as tabs:
            found = list(tabs.map(lambda _: server.ask("/columns")[0], range(LOADS)))
        seconds = time.perf_counter() - begun
        return {
            "50 loads, s": seconds,
            "errors": sum(status != 200 for status in found),
            "server's peak MB": server.peak_megabytes,
        }


def idle(folder: Path, tell: Any) -> dict[str, Any]:
    """Do nothing, as a task."""
    return {}


def start_of_a_task(folder: Path) -> dict[str, float]:
    """Run a task that does nothing: the first waits for the libraries, the others only for a process."""
    from sfumato.web.jobs.jobs import Jobs

    async def timed(jobs: Any) -> list[float]:
        seconds = []
        for _ in range(21):
            begun = time.perf_counter()
            await jobs.call("page.idle")
            seconds.append(time.perf_counter() - begun)
        return seconds

    with tempfile.TemporaryDirectory() as private:
        jobs = Jobs(Path(private) / "jobs", package="benchmarks")
        jobs.warm()
        seconds = asyncio.run(timed(jobs))
        jobs.close()
    return {"first task, s": seconds[0], "warm task, s": sorted(seconds[1:])[10]}


def assess(loaded: Any, figures: dict[str, float]) -> Outcome:
    """Show the figures; nobody else was asked the same."""
    return Outcome(None, dict(figures))


BENCHMARK = Benchmark(
    title="`sfumato serve`, each time a new server process. Wall seconds are of the whole, with start and end of the "
    "server; peak MB of the first column are of the asker, those of the server stand beside them",
    goal="address to first page ≤ 0.5 s; a 118 MB upload with ≤ 250 MB in the server; 50 loads at once without an "
    "error; a warm task in milliseconds",
    contenders=(
        Contender("start and first page", first_page, packages=PACKAGES, repeats=3, assess=assess),
        Contender("upload of 118 MB", upload, packages=PACKAGES, repeats=1, assess=assess),
        Contender("50 loads at once", many_tabs, packages=PACKAGES, repeats=1, assess=assess),
        Contender("start of a task", start_of_a_task, packages=PACKAGES, repeats=1, assess=assess),
    ),
    prepare=write_upload,
)
