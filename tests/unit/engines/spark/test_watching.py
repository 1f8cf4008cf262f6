"""When a cluster counts as lost, on a clock of our own; tests/spark kills a real one."""

import pytest

from sfumato.engines.spark import errors as watching
from sfumato.engines.spark.master import Master


class Clock:
    """Seconds that pass when somebody waits."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Cluster:
    """Stands in for a session, its context and the Java objects behind it."""

    master = "spark://127.0.0.1:1"

    def __init__(self):
        self.jobs, self.n_processes = [1], 3

    @property
    def sparkContext(self):  # noqa: N802
        return self

    def statusTracker(self):  # noqa: N802
        return self

    def getActiveJobsIds(self):  # noqa: N802
        return self.jobs

    @property
    def _jsc(self):
        return self

    def sc(self):
        return self

    def getExecutorMemoryStatus(self):  # noqa: N802
        return self

    def size(self):
        return self.n_processes


@pytest.fixture
def clock(monkeypatch):
    """Replace the watcher's clock."""
    clock = Clock()
    monkeypatch.setattr(watching, "time", clock)
    return clock


@pytest.fixture
def answers(monkeypatch, clock):
    """Give a list of the master's next answers, each with the seconds it takes; a master that is not asked answers."""
    answers = []

    def answer(self, seconds):
        does, taken = answers.pop(0) if answers else (True, 0.0)
        clock.sleep(taken)
        return does

    monkeypatch.setattr(Master, "answers", answer)
    return answers


def troubles(clock, watcher, n_looks):
    """Whether there is trouble after each look, one a second."""
    found = []
    for _ in range(n_looks):
        clock.sleep(1.0)
        watcher._look(watcher._master)
        found.append(watcher.trouble is not None)
    return found


def test_one_or_two_slow_probes_are_no_lost_master(clock, answers):
    """A probe alone may take all the seconds that a master may be away."""
    watcher = watching._Watcher(Cluster())
    slow = (False, watching.MASTER_SECONDS)
    answers += [slow, (True, 0.0), slow, slow, (True, 0.0), slow, slow]

    assert not any(troubles(clock, watcher, 7))


def test_several_slow_probes_are_a_lost_master(clock, answers):
    watcher = watching._Watcher(Cluster())
    answers += [(False, watching.MASTER_SECONDS)] * watching.MASTER_PROBES

    assert troubles(clock, watcher, watching.MASTER_PROBES) == [False, False, True]
    assert "master was lost" in str(watcher.trouble)


def test_quick_refusals_are_a_lost_master_only_after_seconds(clock, answers):
    """So that a master that starts anew is waited for."""
    watcher = watching._Watcher(Cluster())
    answers += [(False, 0.0)] * 6

    assert troubles(clock, watcher, 6) == [False] * 5 + [True]


@pytest.mark.parametrize("n_failed", [0, 1, 2, 3])
def test_after_a_failed_job_the_master_is_asked_as_often(clock, answers, n_failed):
    watcher = watching._Watcher(Cluster())
    answers += [(False, 0.0)] * n_failed
    watcher.look_again()

    assert (watcher.trouble is not None) == (n_failed >= watching.MASTER_PROBES)


def test_no_executor_is_needed_while_no_job_is_under_way(clock, answers):
    """Spark ends those that have nothing to do; the seconds count from the job on."""
    cluster = Cluster()
    cluster.jobs, cluster.n_processes = [], 1
    watcher = watching._Watcher(cluster)
    seconds = int(watching.EXECUTOR_SECONDS)
    assert not any(troubles(clock, watcher, 3 * seconds))

    cluster.jobs = [7]
    assert troubles(clock, watcher, seconds + 1) == [False] * seconds + [True]
    assert "no worker of the Spark cluster has run a task" in str(watcher.trouble)


def test_an_executor_that_comes_back_in_time_is_enough(clock, answers):
    cluster = Cluster()
    watcher = watching._Watcher(cluster)
    for _ in range(3):
        cluster.n_processes = 1
        assert not any(troubles(clock, watcher, int(watching.EXECUTOR_SECONDS)))
        cluster.n_processes = 2
        assert not any(troubles(clock, watcher, 1))
