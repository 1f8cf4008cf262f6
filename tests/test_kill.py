"""kill -9 at random moments of a release leaves nothing, or a complete, auditable release."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from sfumato.datasets.admissions import admissions
from sfumato.reaudit import audit_published
from sfumato.table.write import write_table

# Imports everything once; at a line of its input it forks a child that runs the release, at the next says how it ended.
NURSERY = """
import os, sys
import sfumato.cli.release, sfumato.cli.summary, sfumato.publishing, sfumato.table.describe
import sfumato.mechanisms
from sfumato.cli.main import run

sfumato.mechanisms.registered_mechanisms()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        sys.stderr = open(os.devnull, "w")
        os._exit(run(sys.argv[1:]))
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "admissions.csv"
    with path.open("wb") as file:
        write_table(admissions(n_rows=1500), file, "csv")
    return path


class Nursery:
    """Starts releases that can be killed."""

    def __init__(self, *arguments):
        command = [sys.executable, "-c", NURSERY, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self):
        self.process.stdin.write("\n")
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


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True], ids=["new", "replacing"])
def test_a_killed_release_is_nothing_or_complete(tmp_path, original, force):
    table, manifest = tmp_path / "out.csv", tmp_path / "out.csv.manifest.json"
    arguments = ["release", original, "--target", "readmitted", "-k", "5", "-p", "on_infeasible=skip", "-o", table]
    moments = random.Random(11)
    n_nothing = n_complete = 0
    with Nursery(*arguments, *(["--force"] if force else [])) as nursery:
        duration = seconds_of_one_run(nursery)
        for turn in range(60):
            if not force:
                table.unlink(missing_ok=True)
                manifest.unlink(missing_ok=True)
            child = nursery.start()
            time.sleep(duration * (moments.uniform(0, 1) if turn % 2 else moments.uniform(0.8, 1.3)))
            os.kill(child, signal.SIGKILL)
            nursery.status()
            left = set(os.listdir(tmp_path))
            assert left <= {table.name, manifest.name}, "a temporary file was left behind"
            if table.exists():
                assert audit_published(table, manifest).passed
                n_complete += 1
            else:
                n_nothing += 1

    assert n_complete > 0
    assert force or n_nothing > 0
