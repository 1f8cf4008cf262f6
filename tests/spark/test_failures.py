"""Killed workers, killed masters, and masters that are not there: the same result, or a clear error in seconds."""

import contextlib
import gc
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.cluster import session as session_module
from sfumato.cluster import watching as watching_module
from sfumato.cluster.engine import SparkEngine
from sfumato.cluster.session import explained, spark_session
from sfumato.counting.cells import cell_table
from sfumato.errors import ClusterError

N_ROWS, N_PARTS = 40, 10
CANARY = "canary-4711"


def slow_rows(spark, milliseconds):
    """Make a frame whose every row takes its time, on the worker that has it."""
    sleep = f"java_method('java.lang.Thread', 'sleep', bigint({milliseconds} + 0 * id)) AS nothing"
    return spark.range(0, N_ROWS, 1, N_PARTS).selectExpr("id % 4 AS remainder", sleep).where("nothing IS NOT NULL")


@contextlib.contextmanager
def in_the_middle(spark, act):
    """Do something as soon as a part of the work in the block is done and another part is being worked on."""
    over, done = threading.Event(), threading.Event()
    status = spark.sparkContext.statusTracker()

    def is_in_the_middle():
        stages = [status.getStageInfo(number) for number in status.getActiveStageIds()]
        return any(stage and stage.numCompletedTasks and stage.numActiveTasks for stage in stages)

    def wait_and_act():
        while not over.wait(0.05):
            if is_in_the_middle():
                act()
                done.set()
                return

    waiting = threading.Thread(target=wait_and_act)
    waiting.start()
    try:
        yield done
    finally:
        over.set()
        waiting.join()


def test_a_count_finishes_though_a_worker_is_killed(spark, cluster):
    expected = cell_table(pa.table({"remainder": [i % 4 for i in range(N_ROWS)]}), ["remainder"])
    with in_the_middle(spark, cluster.kill_worker) as killed:
        found = cell_table(slow_rows(spark, 50), ["remainder"], SparkEngine(spark))

    assert killed.is_set()
    assert len(cluster.workers) == 1
    assert found.codes.tobytes() == expected.codes.tobytes()
    assert found.counts.tobytes() == expected.counts.tobytes()


def test_a_count_ends_when_all_workers_are_killed(spark, cluster, monkeypatch):
    assert spark.range(1).count() == 1  # there is an executor
    monkeypatch.setattr(watching_module, "EXECUTOR_SECONDS", 3.0)
    with in_the_middle(spark, cluster.kill_workers) as killed, pytest.raises(ClusterError) as caught:
        cell_table(slow_rows(spark, 50), ["remainder"], SparkEngine(spark))

    assert killed.is_set()
    assert str(caught.value).startswith(f"{cluster.url}: no worker of the Spark cluster has worked for 3 seconds")


def test_ctrl_c_stops_the_jobs(spark, cluster):
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    with in_the_middle(spark, interrupt), pytest.raises(KeyboardInterrupt):
        cell_table(slow_rows(spark, 1_500), ["remainder"], SparkEngine(spark))

    status = spark.sparkContext.statusTracker()
    for _ in range(100):
        if not status.getActiveJobsIds():
            break
        time.sleep(0.1)
    assert not status.getActiveJobsIds()


def test_a_second_session_in_the_same_process_is_refused(spark, cluster):
    """Spark would hand out the first one, whatever its master."""
    with pytest.raises(ClusterError, match="open already in this process"), spark_session("local[1]"):
        pass


def test_errors_of_spark_do_not_quote_rows(spark):
    with pytest.raises(ClusterError) as caught, explained():
        spark.createDataFrame(pa.table({"a": [CANARY]})).selectExpr("CAST(a AS INT) AS a").toArrow()

    assert CANARY not in str(caught.value)
    assert "CAST_INVALID_INPUT" in str(caught.value)


def test_nothing_is_left_of_a_session_whose_java_process_is_gone(spark, shared_session, capfd):
    """No folder, no process, no handler of Ctrl-C, and not a word on the terminal; the next session starts another."""
    process, folder = spark.sparkContext._gateway.proc, Path(spark.conf.get("spark.local.dir"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.executor.memory") == "512m"  # as in spark-defaults.conf
    engine, rows = SparkEngine(spark), spark.range(3)
    process.kill()
    with pytest.raises(ClusterError, match="Java process of the driver has ended"):
        engine.n_rows(rows)
    shared_session.stop()

    assert process.poll() is not None
    assert not folder.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert capfd.readouterr() == ("", "")


def test_a_port_that_answers_but_is_no_master_is_told_in_time(mortal_cluster, monkeypatch):
    monkeypatch.setattr(session_module, "_REGISTRATION_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"spark://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ClusterError, match="does not accept a Spark application"), spark_session(url):
            pass


def test_a_master_that_is_not_there_is_told_at_once(mortal_cluster):
    """No Java process is started for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"spark://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ClusterError) as caught, spark_session(url):
        pass

    assert str(caught.value).startswith(f"{url}: the Spark master cannot be reached. Hint: check host, port")


@pytest.mark.parametrize("home", [None, "nowhere"])
def test_a_missing_java_is_told(mortal_cluster, monkeypatch, tmp_path, home):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
    with pytest.raises(ClusterError, match="Java was not found") as caught, spark_session(mortal_cluster.url):
        pass

    assert ("JAVA_HOME points" in str(caught.value)) == bool(home)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PySpark does not close its pipe
@pytest.mark.parametrize(
    ("words", "told"), [("UnsupportedClassVersionError", "too old"), ("Unrecognized option", "does not start")]
)
def test_a_java_that_does_not_do_is_told(mortal_cluster, monkeypatch, tmp_path, words, told):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho {words} >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match=told), spark_session(mortal_cluster.url):
        pass
    gc.collect()


def test_a_count_ends_when_the_master_is_killed(spark, cluster, monkeypatch):
    """Though the workers would finish it."""
    monkeypatch.setattr(watching_module, "MASTER_SECONDS", 1.0)
    with in_the_middle(spark, cluster.kill_master) as killed, pytest.raises(ClusterError) as caught:
        cell_table(slow_rows(spark, 1_500), ["remainder"], SparkEngine(spark))

    assert killed.is_set()
    assert caught.value.master == cluster.url
    assert "the Spark master was lost" in str(caught.value)
