"""kill -9 at any moment of a release leaves nothing, or a complete release; one that is replaced stays.

The only exception is the instant between the two names of a release that replaces another: the old table with the new
manifest, which the audit refuses.
"""

import math
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from sfumato.datasets.admissions import admissions
from sfumato.publishing.reaudit import audit_published
from sfumato.table.io.write import write_table

GREEDY = ["--target", "readmitted", "-m", "greedy-containment", "-p", "on_infeasible=skip"]

# Imports everything once; at a line of its input it forks a child that runs the release, at the next says how it ended.
# A number in the line lets the child kill itself just before that call, of those that change names or reach the disk.
NURSERY = """
import os, signal, sys
import sfumato.cli.making.release, sfumato.cli.speaking.summary, sfumato.publishing.publish, sfumato.table.roles
import sfumato.mechanisms.registry, sfumato.report.in_short
from sfumato.cli.main import run

sfumato.mechanisms.registry.registered_mechanisms()

def counted(call):
    def called(*arguments, **named):
        global n_calls_left
        n_calls_left -= 1
        if n_calls_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return called

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.stderr = open(os.devnull, "w")
        if line.strip():
            n_calls_left = int(line)
            for name in ("link", "rename", "replace", "unlink", "fsync"):
                setattr(os, name, counted(getattr(os, name)))
        os._exit(run(sys.argv[1:]))
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "admissions.csv"
    with path.open("wb") as file:
        write_table(admissions(n_rows=600), file, "csv")
    return path


class Nursery:
    """Starts releases that can be killed."""

    def __init__(self, *arguments):
        command = [sys.executable, "-c", NURSERY, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, line=""):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    start = _ask
    status = _ask

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


def seconds_of_one_run(nursery):
    nursery.start()
    begun = time.perf_counter()
    assert nursery.status() == 0
    return time.perf_counter() - begun


@pytest.mark.parametrize("force", [False, True], ids=["new", "replacing"])
def test_a_killed_release_is_nothing_or_complete(tmp_path, original, force):
    """Of either kind a dozen moments; ``make soak`` tries hundreds, on every mechanism."""
    table, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    arguments = ["release", original, *GREEDY, "-k", "5", "-o", table]
    draw = random.Random(11).uniform
    moments = [0.0, *(draw(0, 1) if turn % 2 else draw(0.8, 1.3) for turn in range(12)), math.inf]  # inf: not killed
    n_nothing = n_complete = 0
    with Nursery(*arguments, *(["--force"] if force else [])) as nursery:
        duration = seconds_of_one_run(nursery)
        for moment in moments:
            if not force:
                table.unlink(missing_ok=True)
                manifest.unlink(missing_ok=True)
            child = nursery.start()
            if moment < math.inf:
                # Not to wait for anything: a moment drawn at random is what is tested, and all below holds at any.
                time.sleep(duration * moment)
                os.kill(child, signal.SIGKILL)
            nursery.status()
            left = {name for name in os.listdir(tmp_path) if not (force and name.endswith((".new", ".old")))}
            assert left <= {table.name, manifest.name}, "a temporary file was left behind"
            assert not force or left == {table.name, manifest.name}, "the old release was gone before the new one came"
            if table.exists():
                assert audit_published(table, manifest).passed  # replaced by its like, so that a mixture is whole too
                n_complete += 1
            else:
                n_nothing += 1

    assert n_complete > 0
    assert force or n_nothing > 0


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "admissions.csv"
    with path.open("wb") as file:
        write_table(admissions(n_rows=300), file, "csv")
    return path


def release_of(original, table, k):
    return ["release", original, *GREEDY, "-k", k, "-o", table, "--force"]


def pair(table, manifest):
    return tuple(path.read_bytes() if path.exists() else None for path in (table, manifest))


def test_a_release_killed_at_any_step_of_replacing_another_leaves_one_of_them(tmp_path, small):
    """Or, between the two names, a mixture that the audit refuses; the next run then replaces it, and tidies up."""
    table, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    with Nursery(*release_of(small, table, "2")) as nursery:
        nursery.start()
        assert nursery.status() == 0
    old, seen = pair(table, manifest), []
    with Nursery(*release_of(small, table, "5")) as nursery:
        for call in range(1, 100):
            nursery.start(call)
            if nursery.status() == 0:
                break
            seen.append(pair(table, manifest))
            (table.write_bytes(old[0]), manifest.write_bytes(old[1]))
            hidden = {name for name in os.listdir(tmp_path) if name not in (table.name, manifest.name)}
            assert all(name.startswith(".out.csv.") and name.endswith((".new", ".old")) for name in hidden)
    new = pair(table, manifest)

    assert old[0] != new[0]
    assert call > 5, "the calls were counted"
    assert set(os.listdir(tmp_path)) == {table.name, manifest.name}
    mixture = (old[0], new[1])
    assert set(seen) <= {old, new, mixture}, "table and manifest, at every moment"
    assert {old, new, mixture} <= set(seen), "kills before, between and after the two names"
    (table.write_bytes(mixture[0]), manifest.write_bytes(mixture[1]))
    assert not audit_published(table, manifest).passed
