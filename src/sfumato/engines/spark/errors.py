"""What goes wrong on a Spark cluster, in words of ours: Spark's own quote rows, or do not come at all."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sfumato.engines.spark.master import Master
from sfumato.errors import ClusterError, InputError, InvalidParameterError
from sfumato.table.io.frames import without_quoted_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_SECONDS = 5.0
"""How long the master may be unreachable. A new one needs a few seconds; without any, nobody replaces a worker."""

MASTER_PROBES = 3
"""How many probes in a row must fail besides: a single one fails on a slow network and on a busy machine."""

EXECUTOR_SECONDS = 60.0
"""How long a job under way may be without an executor. One starts in 3 to 10 seconds, on a busy machine in a minute."""

_PAUSE_SECONDS = 1.0
_CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z][A-Z0-9_]*)*", re.ASCII)
_NO_FILE = re.compile(r"PATH_NOT_FOUND|FILE_NOT_EXIST|FileNotFoundException")
_BAD_FILE = re.compile(r"UNABLE_TO_INFER_SCHEMA|FAILED_READ_FILE|CANNOT_READ_FILE|is not a Parquet file")
_ODD_TYPE = re.compile(r"PARQUET_TYPE_ILLEGAL|PARQUET_TYPE_NOT_SUPPORTED|UNSUPPORTED_TIME_TYPE|UNSUPPORTED_DATA_TYPE")
_TOO_LARGE = re.compile(r"maxResultSize|OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY")


@contextlib.contextmanager
def explained(master: str | None = None) -> Iterator[None]:
    """Turn whatever PySpark raises into a short error without a cell value, which it logs neither; Ctrl-C passes.

    Raises
    ------
    InputError
        If the cluster cannot read a file.
    ClusterError
        If it cannot do something else.
    """
    import pyarrow as pa
    from narwhals.exceptions import NarwhalsError
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    raised_there = (PySparkException, Py4JError, NarwhalsError, pa.ArrowException)
    try:
        with without_quoted_cells():
            yield
    except raised_there as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise _in_our_words(error, master) from None
    except (ConnectionError, EOFError):
        raise _java_ended(master) from None


def _was_interrupted(error: BaseException) -> bool:
    """Whether it is about jobs that Ctrl-C has cancelled: PySpark waits for them, and their error hides the other."""
    before: BaseException | None = error
    while before is not None and not isinstance(before, KeyboardInterrupt):
        before = before.__context__
    return before is not None


def _java_ended(master: str | None) -> ClusterError:
    hint = "perhaps the memory was used up; give the driver more"
    return ClusterError("the Java process of the driver has ended", master=master, hint=hint, remedy=("memory",))


def _in_our_words(error: BaseException, master: str | None) -> ClusterError | InputError:
    """Choose words by what the error's text holds, without showing any of it."""
    if _is_java_gone(error):
        return _java_ended(master)
    text = _text(error)
    if _NO_FILE.search(text):
        hint = "driver and all workers must see it under the same path"
        return InputError("the cluster does not find a file", hint=hint)
    if _BAD_FILE.search(text):
        hint = "it must be a Parquet file, or a folder of such, that all workers may read"
        return InputError("the cluster cannot read a file as Parquet", hint=hint)
    if _ODD_TYPE.search(text):
        hint = "timestamps in nanoseconds and times of day are examples; write them in microseconds or as text"
        return InputError("a column is of a type that Spark does not know", hint=hint)
    if _TOO_LARGE.search(text):
        problem = "the memory of the cluster or of its driver is not enough"
        hint = "take fewer columns or coarser values, or give more memory (to workers by spark.executor.memory)"
        return ClusterError(problem, master=master, hint=hint, remedy=("memory",))
    kind = _kind(error)
    hint = "read the logs of the Spark workers, and check the settings in spark-defaults.conf"
    return ClusterError(f"Spark could not finish the work ({kind})", master=master, hint=hint)


def _is_java_gone(error: BaseException) -> bool:
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark import SparkContext

    if isinstance(error, Py4JNetworkError):
        return True
    process = getattr(SparkContext._gateway, "proc", None)
    if type(error) is not Py4JError or process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
    return process.poll() is not None


def _text(error: BaseException) -> str:
    """Text of an error; a Java error has to be asked for it, and may not be there any more."""
    with contextlib.suppress(Exception):
        return str(error)
    return ""


def _kind(error: BaseException) -> str:
    """Name of a kind of error, such as Spark's DIVIDE_BY_ZERO or the name of a Java class; it holds no data."""
    with contextlib.suppress(Exception):
        name = str(error.getCondition()) if hasattr(error, "getCondition") else ""
        if _CONDITION.fullmatch(name):
            return name
        if hasattr(error, "java_exception"):
            return str(error.java_exception.getClass().getSimpleName())
    return type(error).__name__


@contextlib.contextmanager
def watching(session: SparkSession) -> Iterator[None]:
    """Give up when the cluster is lost while the block runs.

    A Spark application goes on without its master, and waits for ever when no worker is left. So a thread looks after
    both, and cancels all jobs when one of them is missing for too long (:data:`MASTER_SECONDS` and
    :data:`MASTER_PROBES`, :data:`EXECUTOR_SECONDS`).

    Raises
    ------
    ClusterError
        If the cluster was lost; says whether it was the master or the workers. Also if the last job still finished.
    InputError, ClusterError
        As :func:`explained` says, if a job fails.
    """
    watcher = _Watcher(session)
    thread = threading.Thread(target=watcher.watch, name="sfumato-cluster-watcher", daemon=True)
    thread.start()
    try:
        with explained(watcher.url):
            yield
    except (ClusterError, InputError):
        if watcher.trouble is None:
            watcher.look_again()
        if watcher.trouble is None:
            raise
    finally:
        watcher.is_over.set()
        thread.join()
    if watcher.trouble is not None:
        raise watcher.trouble


class _Watcher:
    """Looks for the master and for executors in a thread of its own."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = getattr(session, "sparkContext", None)  # a session of Spark Connect has none
        self.url = str(self._context.master) if self._context is not None else None
        self._master: Master | None = None
        with contextlib.suppress(InvalidParameterError):  # YARN and Kubernetes replace what is lost
            self._master = None if self.url is None else Master.of(self.url)
        self._master_seen = self._executor_seen = time.monotonic()
        self._failed_probes = 0
        self.is_over = threading.Event()
        self.trouble: ClusterError | None = None

    def watch(self) -> None:
        """Look until the work is over; once there is trouble, cancel every job that is still started."""
        if self._master is None or self._master.is_local:
            return
        while not self.is_over.wait(_PAUSE_SECONDS):
            self._look(self._master)
            if self.trouble is not None:
                with contextlib.suppress(Exception):
                    self._context.cancelAllJobs()

    def look_again(self) -> None:
        """Find out whether a job has failed because the master was just lost."""
        if self._master is None:
            return
        for _ in range(MASTER_PROBES):
            if self._master.answers(MASTER_SECONDS):
                return
            time.sleep(_PAUSE_SECONDS)
        self.trouble = _no_master(self.url)

    def _look(self, master: Master) -> None:
        if master.answers(MASTER_SECONDS):
            self._master_seen, self._failed_probes = time.monotonic(), 0
        else:
            self._failed_probes += 1
        if not self._waits_for_executors():
            self._executor_seen = time.monotonic()
        now = time.monotonic()
        is_master_lost = self._failed_probes >= MASTER_PROBES and now - self._master_seen > MASTER_SECONDS
        if self.trouble is None and is_master_lost:
            self.trouble = _no_master(self.url)
        elif self.trouble is None and now - self._executor_seen > EXECUTOR_SECONDS:
            self.trouble = _no_worker(self.url)

    def _waits_for_executors(self) -> bool:
        """Whether a job is under way and no process but the driver is there.

        Spark ends executors that have nothing to do. When it does not say, its job fails by itself.
        """
        try:
            if not self._context.statusTracker().getActiveJobsIds():
                return False
            return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) <= 1
        except Exception:
            return False


def _no_master(url: str | None) -> ClusterError:
    hint = "check that it runs, and start again"
    return ClusterError("the Spark master was lost during the work", master=url, hint=hint)


def _no_worker(url: str | None) -> ClusterError:
    problem = f"no worker of the Spark cluster has run a task for {EXECUTOR_SECONDS:g} seconds"
    hint = "check that workers run, have free cores, and have as much memory as spark.executor.memory asks for"
    return ClusterError(problem, master=url, hint=hint)
