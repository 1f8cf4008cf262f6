"""A session with a Spark cluster: started with clear errors, without noise on the terminal, and removed at the end.

Nothing of Spark is imported before it is needed; it comes with the extra ``sfumato[spark]``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sfumato.engines.spark.errors import explained, watching
from sfumato.engines.spark.master import Master
from sfumato.errors import ClusterError
from sfumato.private_folders import PrivateFolder
from sfumato.processes import environment, signals_heard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT_MEMORY", "explained", "spark_session", "watching"]

DEFAULT_MEMORY = 10**9
_LEAST_HEAP = 512 * 2**20  # Spark refuses to start with less than 450 MB
_PROBE_SECONDS = 10.0  # for the first answer: a name to resolve, a far network
_REGISTRATION_SECONDS = 45.0  # Spark itself tries for 60, after its start; an idle machine needs 5 for both
_END_SECONDS = 10.0
_OLD_JAVA = b"UnsupportedClassVersionError"
_SETTINGS = {
    "spark.app.name": "sfumato",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}


@contextlib.contextmanager
def spark_session(
    master: str, *, memory: int = DEFAULT_MEMORY, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a session with a Spark cluster for the length of a ``with`` block.

    Parameters
    ----------
    master : str
        ``spark://host:port`` (several, after commas, where masters stand by for each other), or ``local[n]`` for a
        try on this machine.
    memory : int
        Bytes that the driver's own Java process may use for results; at least 512 MiB are taken.
    settings : mapping of str to str or None
        More settings of Spark (``spark.…``). They win over those of the user's own ``spark-defaults.conf``, which
        hold for everything that is not set here: executors' memory and cores, encryption, secrets.

    Raises
    ------
    InvalidParameterError
        If the master's address is none.
    ClusterError
        If PySpark or Java is missing, a session is open already in this process, the master cannot be reached, or it
        does not accept the application.
    """
    place = Master.of(master)
    _refuse_missing_parts()
    _refuse_second_session(master)
    if not place.answers(_PROBE_SECONDS):
        hint = "check host, port and firewall; the master's page shows its address as URL: spark://host:port"
        raise ClusterError("the Spark master cannot be reached", master=master, hint=hint)
    with contextlib.ExitStack() as at_the_end:
        folder = PrivateFolder("spark")
        at_the_end.callback(folder.remove)
        # Spark replaces the handler of Ctrl-C by one that outlives its session
        at_the_end.enter_context(signals_heard([signal.SIGINT], signal.getsignal(signal.SIGINT)))
        at_the_end.enter_context(_quiet_gateway())
        gateway = at_the_end.enter_context(_java(place, memory))
        session = _started(place, gateway, memory, folder.path, settings or {})
        at_the_end.callback(_stop, session)
        yield session


def _refuse_missing_parts() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        hint = "pip install 'sfumato[spark]'"
        raise ClusterError("PySpark is not installed", hint=hint) from None
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=str(Path(home) / "bin") if home else None) is None:
        where = "where JAVA_HOME points" if home else "on the PATH"
        hint = "install Java 17 or newer, or set JAVA_HOME to its folder"
        raise ClusterError(f"Java was not found {where}, and Spark needs it", hint=hint)


def _refuse_second_session(master: str) -> None:
    """Spark has one application a process and would hand out the one that is there, whatever its master."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        hint = "pass that session, or stop it first"
        raise ClusterError("a Spark session is open already in this process", master=master, hint=hint)


def _started(place: Master, gateway: Any, memory: int, folder: Path, settings: Mapping[str, str]) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    wanted = _SETTINGS | {
        "spark.master": place.url,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.driver.maxResultSize": str(max(memory, _LEAST_HEAP)),
    }
    if place.is_on_loopback:
        wanted |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    with _impatient(gateway, place), explained(place.url), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of pandas, which is not used
        conf = SparkConf(_jvm=gateway.jvm)
        for name, value in (wanted | dict(settings)).items():
            conf.set(name, value)
        context = SparkContext(conf=conf, gateway=gateway)
        context.setLogLevel("ERROR")
        return SparkSession(context)


def _stop(session: SparkSession) -> None:
    """Stop a session, also one whose Java process is gone."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()


@contextlib.contextmanager
def _java(place: Master, memory: int) -> Iterator[Any]:
    """Start the Java process of the driver and end it; one that this program has already is used and kept."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        yield SparkContext._gateway
        return
    gateway = _launched(place, max(memory, _LEAST_HEAP) // 2**20)
    try:
        yield gateway
    finally:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        _end(gateway.proc)
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _launched(place: Master, heap_mib: int) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    with tempfile.TemporaryFile() as log, _environment(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a process with threads that forks
        try:
            return launch_gateway(_JavaSettings(heap_mib), {"stdout": log, "stderr": log})
        except (PySparkException, OSError):
            raise _no_java(log) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the Java process end by itself, which removes its files, and kill it if it does not."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _JavaSettings:
    """What the Java process is started with, in the form that PySpark asks for; all else is set by the session."""

    def __init__(self, heap_mib: int) -> None:
        self._heap = f"{heap_mib}m"

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802
        """Names and values."""
        return [("spark.driver.memory", self._heap)]


def _no_java(log: IO[bytes]) -> ClusterError:
    log.seek(0)
    if _OLD_JAVA in log.read(2**20):
        return ClusterError("this Java is too old for Spark", hint="install Java 17 or newer, or set JAVA_HOME to it")
    hint = "start java by itself to see why; Spark 4 needs Java 17 or newer and about 1 GB of memory"
    return ClusterError("Java does not start", hint=hint)


@contextlib.contextmanager
def _environment(place: Master) -> Iterator[None]:
    """Keep the driver of a cluster on loopback there too; Spark would take the address of the host's name."""
    is_free = place.is_on_loopback and "SPARK_LOCAL_IP" not in os.environ
    with environment({"SPARK_LOCAL_IP": "127.0.0.1"} if is_free else {}):
        yield


@contextlib.contextmanager
def _impatient(gateway: Any, place: Master) -> Iterator[None]:
    """End the Java process if the master has not accepted the application in time.

    A port that answers and is no master, or one of another version, keeps Spark trying for a minute.
    """
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        gateway.proc.kill()

    timer = threading.Timer(_REGISTRATION_SECONDS, give_up)
    if gateway.proc is not None and not place.is_local:
        timer.daemon = True
        timer.start()
    try:
        yield
    except ClusterError:
        if is_late.is_set():
            raise _not_accepted(place.url) from None
        raise
    finally:
        timer.cancel()


def _not_accepted(master: str) -> ClusterError:
    from pyspark import __version__

    hint = (
        f"is it the master's port, not that of its page, and does the cluster run Spark {__version__} as this driver?"
    )
    return ClusterError("something answers there, but does not accept a Spark application", master=master, hint=hint)


@contextlib.contextmanager
def _quiet_gateway() -> Iterator[None]:
    """Keep tracebacks of the connection to Java off the terminal: it logs them, besides raising errors."""
    root, nowhere = logging.getLogger(), logging.NullHandler()
    root.addFilter(_is_not_of_gateway)
    root.addHandler(nowhere)  # without any, a handler that writes to the terminal would be made
    try:
        yield
    finally:
        root.removeHandler(nowhere)
        root.removeFilter(_is_not_of_gateway)


def _is_not_of_gateway(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
