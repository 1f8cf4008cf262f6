"""Killed workers, killed masters, and masters that are not there: the same result, or a clear error in seconds."""

import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.engines.memory_limit import Memory
from sfumato.engines.spark import errors as watching_module
from sfumato.engines.spark import session as session_module
from sfumato.engines.spark.errors import watching
from sfumato.engines.spark.frames import exact_settings
from sfumato.engines.spark.opening import open_cluster
from sfumato.engines.spark.session import explained, spark_session
from sfumato.errors import ClusterError
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.propose import propose
from sfumato.publishing.publish import publish
from spark.interference import in_the_middle, slow_writing
from spark.loopback_cluster import ending_with_this_process, why_no_cluster
from waiting import until

N_ROWS, N_PARTS = 40, 10
MEMORY = Memory(200 * 10**6)
CANARY = "canary-4711"


def slow_rows(spark, milliseconds, n_parts=N_PARTS):
    """Make a frame whose every row takes its time, on the worker that has it."""
    sleep = f"java_method('java.lang.Thread', 'sleep', bigint({milliseconds} + 0 * id)) AS nothing"
    return spark.range(0, N_ROWS, 1, n_parts).selectExpr("id % 4 AS remainder", sleep).where("nothing IS NOT NULL")


def counted(spark, rows):
    """How often each remainder occurs, counted as every count of this program is."""
    with watching(spark), exact_settings(spark):
        found = rows.groupBy("remainder").count().toArrow()
    return list(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


@pytest.mark.deadly(1)
def test_a_count_finishes_though_a_worker_is_killed(spark, cluster):
    with in_the_middle(spark, cluster.kill_worker) as killed:
        found = counted(spark, slow_rows(spark, 50))

    assert killed.is_set()
    assert len(cluster.workers) == 1
    assert sorted(found) == [(remainder, N_ROWS // 4) for remainder in range(4)]


@pytest.mark.deadly(2)
def test_a_count_ends_when_all_workers_are_killed(spark, cluster, monkeypatch):
    assert spark.range(1).count() == 1  # there is an executor
    monkeypatch.setattr(watching_module, "EXECUTOR_SECONDS", 3.0)
    monkeypatch.setattr(watching_module, "_PAUSE_SECONDS", 0.2)
    with in_the_middle(spark, cluster.kill_workers) as killed, pytest.raises(ClusterError) as caught:
        counted(spark, slow_rows(spark, 50))

    assert killed.is_set()
    assert str(caught.value).startswith(f"{cluster.url}: no worker of the Spark cluster has run a task for 3 seconds")


def test_ctrl_c_stops_the_jobs(spark, cluster):
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    with in_the_middle(spark, interrupt), pytest.raises(KeyboardInterrupt):
        counted(spark, slow_rows(spark, 1_500, N_ROWS))

    status = spark.sparkContext.statusTracker()
    until(lambda: not status.getActiveJobsIds())


def test_a_second_session_in_the_same_process_is_refused(spark, cluster):
    """Spark would hand out the first one, whatever its master."""
    with pytest.raises(ClusterError, match="open already in this process"), spark_session("local[1]"):
        pass


@pytest.mark.parametrize("how", ["expression", "columns"])
def test_errors_of_spark_do_not_quote_rows(spark, spark_logs, capfd, how):
    """Neither does its log, which writes to the terminal by loggers of two names."""
    texts = spark.createDataFrame(pa.table({"a": [CANARY]}))
    numbers = texts.selectExpr("CAST(a AS INT) AS a") if how == "expression" else texts.select(texts.a.cast("int"))
    with pytest.raises(ClusterError) as caught, explained():
        numbers.toArrow()

    assert CANARY not in str(caught.value)
    assert "CAST_INVALID_INPUT" in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert not spark_logs


def test_the_log_of_spark_speaks_again_afterwards(spark, spark_logs):
    with explained():
        pass
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("SELECT 1 / 0").collect()

    assert ["DIVIDE_BY_ZERO" in message for message in spark_logs] == [True]


@pytest.mark.short_lived
def test_nothing_is_left_of_a_session_whose_java_process_is_gone(
    handler_before_any_session, spark, shared_session, capfd
):
    """No folder, no process, no handler of Ctrl-C, and not a word on the terminal; the next session starts another."""
    process, folder = spark.sparkContext._gateway.proc, Path(spark.conf.get("spark.local.dir"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.executor.memory") == "512m"  # as in spark-defaults.conf
    rows = spark.range(3).selectExpr("id AS remainder")
    process.kill()
    with pytest.raises(ClusterError, match="Java process of the driver has ended"):
        counted(spark, rows)
    shared_session.stop()

    assert process.poll() is not None
    assert not folder.exists()
    assert signal.getsignal(signal.SIGINT) is handler_before_any_session
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


@pytest.mark.deadly(3)
def test_a_killed_master_is_told_and_leaves_nothing(spark, cluster, tmp_path, monkeypatch):
    """A release ends, and so does a count that is asked for then, though the workers would finish it."""
    monkeypatch.setattr(watching_module, "MASTER_SECONDS", 1.0)
    monkeypatch.setattr(watching_module, "_PAUSE_SECONDS", 0.2)
    cells = pa.table({"age": [20, 30, 40] * 20, "illness": ["flu", "cold"] * 30})
    table = open_cluster(spark, spark.createDataFrame(cells).repartition(8), memory=MEMORY.n_bytes)
    proposal = propose(table, GlobalRecoder(k=2), MEMORY)
    with (
        slow_writing(200),
        in_the_middle(spark, cluster.kill_master) as killed,
        pytest.raises(ClusterError, match="the Spark master was lost") as caught,
    ):
        publish(proposal, tmp_path / "out.parquet", memory=MEMORY)
    assert killed.is_set()
    assert caught.value.master == cluster.url
    assert not list(tmp_path.iterdir())
    with pytest.raises(ClusterError, match="the Spark master was lost"):
        counted(spark, slow_rows(spark, 1_500, N_ROWS))


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("echo 'openjdk version \"17.0.9\" 2023-10-17' >&2", None),
        ("echo 'java version \"21\" 2023-09-19 LTS' >&2", None),
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "JAVA 11 IS TOO OLD"),
        ("echo 'java version \"1.8.0_202\"' >&2", "JAVA 8 IS TOO OLD"),
        ("echo 'Error: could not find libjava.so' >&2; exit 1", "A JAVA THAT DOES NOT START"),
        ("echo nothing", "A JAVA THAT DOES NOT START"),
        (None, "NO JAVA"),
    ],
)
def test_a_java_that_does_not_do_lets_these_tests_say_so(tmp_path, monkeypatch, says, told):
    java = tmp_path / "bin" / "java"
    if says is not None:
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\n{says}\n")
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    reason = why_no_cluster()

    assert reason is None if told is None else reason.startswith(f"{told}: the tests on a Spark cluster DID NOT RUN")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_of_the_cluster_outlives_these_tests(number):
    """Also if they are ended from outside, before they can tidy up."""
    start = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); input()"
    command = ending_with_this_process([str(shutil.which("sleep")), "60"])
    with subprocess.Popen(
        [sys.executable, "-c", start, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        child = Path(f"/proc/{int(parent.stdout.readline())}")
        until(lambda: (child / "cmdline").read_bytes().startswith(command[-2].encode()))
        parent.send_signal(number)
    until(lambda: not child.exists() or (child / "stat").read_text().split()[2] == "Z")
