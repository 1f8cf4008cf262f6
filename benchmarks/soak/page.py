"""The page under 50 clients: every step is looked at, roles change, files come, jobs start and are cancelled."""

from __future__ import annotations

import http.client
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.soak.orders import write_original
from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import ROOT, environment, sfumato_command

N_CLIENTS = 50
FULL_SECONDS = 60.0
MOST_GROWTH = 150
"""Megabytes that the server may grow by: its threads and their stacks, not what clients send."""
PAGES = (
    *("/", "/open", "/open/progress", "/columns", "/columns/table", "/columns/1", "/columns/3", "/columns/99", "/goal"),
    *("/goal/today", "/goal/fields", "/goal/grid", "/definitions", "/run", "/run/progress", "/explore", "/release"),
    *("/explore/release", "/utility", "/utility/names", "/utility/roc.json", "/risk", "/collaborate", "/nowhere"),
    *("/collaborate/status", "/release/files/table", "/release/files/manifest", "/pictures/release/levels.svg"),
)
ROLES = ("quasi-identifier", "sensitive", "identifier", "other", "target", "nonsense", "")
MECHANISMS = ("mondrian", "greedy-containment", "anatomy", "error-risk-tree", "gain-recoding")
_WORDS = "The page is ready"
_PATIENCE = 60.0


def run(effort: Effort, folder: Path) -> Outcome:
    """Serve a table to many clients and look at answers, log, memory and what is left."""
    outcome = Outcome("page under 50 clients", "requests")
    table = write_original(folder)
    private = folder / "private"
    private.mkdir()
    said, words = folder / "said", folder / "words"
    with said.open("w") as out, words.open("w") as log:
        command = sfumato_command("serve", table, "--no-browser", "--project", folder / "sfumato.toml")
        server = subprocess.Popen(command, stdout=out, stderr=log, cwd=ROOT, env=environment(TMPDIR=str(private)))
    try:
        _until(lambda: said.read_text().endswith("\n"))
        visitors = Visitors(said.read_text().strip(), table.read_bytes(), effort.seed)
        visitors.warm_up()
        before = _resident(server.pid)
        visitors.stay(max(10.0, FULL_SECONDS * min(1.0, effort.share)))
        after = _resident(server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(_PATIENCE)
    outcome.n_done = visitors.answers.total()
    outcome.count({f"answer {status}": number for status, number in visitors.answers.items()})
    outcome.figures["VmRSS before and after"] = f"{before} MB, {after} MB"
    for status in [status for status in visitors.answers if status >= 500]:
        outcome.found(f"answer {status}", visitors.answers[status])
    for what, number in visitors.failures.items():
        outcome.found(f"a request failed: {what}", number)
    if after - before > MOST_GROWTH:
        outcome.found(f"the server grew by {after - before} MB")
    if code:
        outcome.found(f"the server ended with {code}")
    for line in words.read_text().splitlines():
        if not line.startswith(_WORDS):
            outcome.found(f"in the log: {line[:120]}")
    if left := sorted(path.name for path in private.iterdir()):
        outcome.found(f"left behind: {re.sub('[0-9]+', '…', left[0])}", len(left))
    return outcome


def _until(condition: object, seconds: float = _PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.05)


def _resident(process: int) -> int:
    """Megabytes of a process that are in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]


class Visitors:
    """Clients of one server, each in a thread."""

    def __init__(self, address: str, table: bytes, seed: int) -> None:
        self.origin, _, self.ticket = address.partition("/?")
        self.authority = self.origin.partition("://")[2]
        self.table = table
        self.seed = seed
        self.answers: Counter[int] = Counter()
        self.failures: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.cookie = ""

    def warm_up(self) -> None:
        """Get the cookie, wait until the table is open, and look at every page once."""
        connection = http.client.HTTPConnection(self.authority, timeout=_PATIENCE)
        connection.request("GET", f"/?{self.ticket}")
        self.cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
        connection.close()
        _until(lambda: self._ask("GET", "/columns/table", htmx=True) == 200)
        for path in PAGES:
            self._ask("GET", path)

    def stay(self, seconds: float) -> None:
        """Let all clients do what they like for some time."""
        until = time.monotonic() + seconds
        clients = [threading.Thread(target=self._visit, args=(number, until)) for number in range(N_CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _visit(self, number: int, until: float) -> None:
        random_ = random.Random(self.seed * 1000 + number)
        while time.monotonic() < until:
            try:
                self._do_something(random_)
            except Exception as error:
                with self._lock:
                    self.failures[type(error).__name__] += 1
            time.sleep(random_.uniform(0, 0.2))

    def _do_something(self, random_: random.Random) -> None:
        choice = random_.random()
        if choice < 0.7:
            self._ask("GET", random_.choice(PAGES), htmx=random_.random() < 0.3)
        elif choice < 0.82:
            number = random_.randrange(12)
            fields = {"only": number, f"role-{number}": random_.choice(ROLES)}
            self._post("/columns/roles", fields, random_)
        elif choice < 0.86:
            level = random_.choice(("k-anonymity", "containment", "kk-anonymity"))  # which some do not promise
            fields = {
                "mechanism": random_.choice(MECHANISMS),
                "target": "readmitted",
                f"promise-{level}": random_.choice((2, 5, "x")),
            }
            self._post("/goal/release", fields, random_)
        elif choice < 0.87:
            self._post("/goal/compare", {"mechanism": "mondrian", "target": "readmitted"}, random_)
        elif choice < 0.93:
            self._post(
                random_.choice(("/run/cancel", "/open/cancel", "/goal/risk", "/collaborate/cancel")), {}, random_
            )
        elif choice < 0.96:
            self._post("/open", {"how": random_.choice(("demo", "back", "path")), "path": "/nowhere"}, random_)
        else:
            self._upload(random_)

    def _post(self, path: str, fields: dict[str, object], random_: random.Random) -> None:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        self._ask("POST", path, urlencode(fields).encode(), kind, htmx=random_.random() < 0.5)

    def _upload(self, random_: random.Random) -> None:
        content = self.table if random_.random() < 0.6 else random_.randbytes(3000)
        boundary = f"b{random_.getrandbits(60):x}"
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        self._ask("POST", "/open/upload", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        *,
        htmx: bool = False,
    ) -> int:
        connection = http.client.HTTPConnection(self.authority, timeout=_PATIENCE)
        more = {"HX-Request": "true"} if htmx else {}
        try:
            given = {"Cookie": self.cookie, "Origin": self.origin, **(headers or {}), **more}
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        with self._lock:
            self.answers[answer.status] += 1
        return answer.status
