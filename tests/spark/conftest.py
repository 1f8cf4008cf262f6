"""A real standalone cluster of Spark on loopback, one master and two workers, and one session for all tests.

A test may kill what it likes: the next one finds the cluster whole again, and the session too if the master was killed.
A test that takes ``mortal_cluster`` opens sessions itself: Spark has one a process, so the shared one is stopped first.
Starting a session anew takes seconds, and one that has worked for a while is quicker. So these tests come first, with
those that end the session (``short_lived``); those that kill processes of the cluster (``deadly``) come last.
"""

from __future__ import annotations

import contextlib
import logging
import signal

import pytest

from sfumato.engines.spark.session import spark_session
from spark.loopback_cluster import SMALL, Cluster, why_no_cluster

DEFAULTS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SMALL,
    "spark.driver.extraJavaOptions": SMALL,
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.shuffle.io.retryWait": "200ms",
}


def pytest_configure(config):
    """Name the markers of tests that are done before or after all others."""
    config.addinivalue_line("markers", "short_lived: ends the session of Spark that all tests share")
    config.addinivalue_line("markers", "deadly(n): kills so many processes of the cluster, which are started again")


def pytest_collection_modifyitems(items):
    """Let tests come first that leave no session, and last those that leave no whole cluster, the worst at the end."""

    def place(item):
        deadly = item.get_closest_marker("deadly")
        if "mortal_cluster" in getattr(item, "fixturenames", ()):
            return -2
        if item.get_closest_marker("short_lived") is not None:
            return -1
        return 0 if deadly is None else deadly.args[0]

    items.sort(key=place)


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


@pytest.fixture(scope="session", autouse=True)
def handler_before_any_session():
    """Look up the handler of Ctrl-C that a session must leave as it was; in the background it is ignored."""
    return signal.getsignal(signal.SIGINT)


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


class _Listing(logging.Handler):
    def __init__(self, messages):
        super().__init__()
        self._messages = messages

    def emit(self, record):
        self._messages.append(record.getMessage())


@pytest.fixture
def spark_logs(spark):
    """Give a list of what PySpark logs of failed queries; its own handlers write to the terminal of long ago."""
    from pyspark.logger import PySparkLogger

    messages = []
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    handlers = [_Listing(messages) for _ in loggers]
    for logger, handler in zip(loggers, handlers, strict=True):
        logger.addHandler(handler)
    yield messages
    for logger, handler in zip(loggers, handlers, strict=True):
        logger.removeHandler(handler)
