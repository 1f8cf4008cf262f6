"""Processes of a real standalone cluster of Spark on loopback, started through the wheel."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

N_WORKERS = 2
LEAST_JAVA = 17
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xss512k"
DIE_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
os.execv(sys.argv[1], sys.argv[1:])
"""


def why_no_cluster() -> str | None:
    """Say loudly what the tests of Spark lack here, if they lack something."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    what_to_do = f"the tests on a Spark cluster DID NOT RUN; install Java {LEAST_JAVA} or newer (or set JAVA_HOME)"
    if java is None:
        return f"NO JAVA: {what_to_do}"
    version = version_of(java)
    if version is None:
        return f"A JAVA THAT DOES NOT START: {what_to_do}"
    if version < LEAST_JAVA:
        return f"JAVA {version} IS TOO OLD: {what_to_do}"
    if importlib.util.find_spec("pyspark") is None:
        return "NO PYSPARK: the tests on a Spark cluster DID NOT RUN; pip install -e '.[dev,spark]'"
    return None


def version_of(java: str) -> int | None:
    """Ask a Java for its version, 8 for 1.8; none if it does not work."""
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', asked.stderr + asked.stdout)
    return int(found[1]) if found else None


def ending_with_this_process(command: list[str]) -> list[str]:
    """Change a command so that its process is killed when the one that starts it ends, however that ends."""
    return [sys.executable, "-c", DIE_WITH_PARENT, *command]


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
                ending_with_this_process(command),
                env=environment,
                cwd=self._folder,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        return process, log

    def _wait_for(self, log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
        def said() -> re.Match[str] | None:
            return re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))

        until(lambda: said() or process.poll() is not None)
        found = said()
        if found:
            return found[1]
        self.stop()
        pytest.fail(f"a process of the Spark cluster did not start; its log:\n{log.read_text()[-3000:]}")

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
