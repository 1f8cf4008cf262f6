"""A real standalone cluster of Spark on loopback: one master and two workers, started through the wheel.

``spark`` is one session for all tests. A test may kill what it likes: the next one finds the cluster whole again, and
the session too if the master was killed. A test that wants to open a session itself takes ``mortal_cluster``: Spark has
one session a process, so the shared one is stopped first, and opened anew for the next test that asks for it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sfumato.cluster.session import spark_session

N_WORKERS = 2
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss512k"
DEFAULTS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SMALL,
    "spark.driver.extraJavaOptions": SMALL,
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "3",
    "spark.sql.adaptive.enabled": "false",
}


def why_no_cluster() -> str | None:
    """Say loudly what the tests of Spark lack here, if they lack something."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        return "NO JAVA: the tests on a Spark cluster DID NOT RUN; install Java 17 or newer (or set JAVA_HOME)"
    if importlib.util.find_spec("pyspark") is None:
        return "NO PYSPARK: the tests on a Spark cluster DID NOT RUN; pip install -e '.[dev,spark]'"
    return None


class Cluster:
    """Processes of a cluster, each with its own group, so that a killed worker takes its executors along."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_started = 0
        self.master: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def make_whole(self) -> None:
        """Start what is missing."""
        if self.master is None:
            self.kill_workers()
            self.master, log = self._start("master.Master")
            self.url = self._wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", self.master)
        self.start_workers(N_WORKERS - len(self.workers))

    def start_workers(self, n: int) -> None:
        """Start workers of one core each; come back when the master knows them."""
        options = ["--cores", "1", "--memory", "600M", "--work-dir", str(self._folder / "work"), self.url]
        started = [self._start("worker.Worker", *options) for _ in range(n)]
        for worker, log in started:
            self._wait_for(log, r"(Successfully registered with master)", worker)
            self.workers.append(worker)

    def start_worker(self) -> None:
        """Start one more worker."""
        self.start_workers(1)

    def kill_worker(self) -> None:
        """Kill a worker and its executors, as a machine that loses power."""
        self._kill(self.workers.pop())

    def kill_workers(self) -> None:
        """Kill all workers."""
        while self.workers:
            self.kill_worker()

    def kill_master(self) -> None:
        """Kill the master; the workers go on."""
        if self.master is not None:
            self._kill(self.master)
            self.master = None

    def stop(self) -> None:
        """Kill everything that is left."""
        self.kill_workers()
        self.kill_master()

    def _start(self, name: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        import pyspark

        home = Path(pyspark.__file__).parent
        self._n_started += 1
        log = self._folder / f"{self._n_started}.log"
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SMALL,
        }
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *where, *options]
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=file, stderr=file, start_new_session=True
            )
        return process, log

    def _wait_for(self, log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
        for _ in range(600):
            found = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
            if process.poll() is not None:
                break
            time.sleep(0.1)
        self.stop()
        pytest.fail(f"a process of the Spark cluster did not start; its log:\n{log.read_text()[-3000:]}")

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class SharedSession:
    """One session for all tests, opened when the first asks for it."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._session = None
        self._url = ""

    def get(self, url: str):
        """Give the session with a cluster; open it if there is none."""
        if self._session is None or self._url != url:
            self.stop()
            self._session, self._url = self._open.enter_context(spark_session(url)), url
        return self._session

    def stop(self) -> None:
        """Stop it, so that a test can open another; the next that asks gets a new one."""
        self._session = None
        self._open.close()


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory):
    """Folder with settings for small workers, where Spark looks for the user's own."""
    reason = why_no_cluster()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("spark-conf")
    lines = [f"{name} {value}\n" for name, value in DEFAULTS.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session")
def one_cluster(spark_settings, tmp_path_factory):
    """Give the cluster of all tests, and kill all of it at the end."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def shared_session(one_cluster):
    """Give the holder of the one session."""
    shared = SharedSession()
    yield shared
    shared.stop()


@pytest.fixture
def cluster(one_cluster):
    """Give the cluster, with a master and two workers, whatever the test before has killed."""
    one_cluster.make_whole()
    return one_cluster


@pytest.fixture
def spark(cluster, shared_session):
    """Give a session with the cluster."""
    return shared_session.get(cluster.url)


@pytest.fixture
def mortal_cluster(cluster, shared_session):
    """Give the cluster without an open session, so that the test can open one: ``spark_session(cluster.url)``."""
    shared_session.stop()
    return cluster
