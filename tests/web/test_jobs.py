"""Jobs: tasks run in private processes that tell how far they are, can be killed, and give away nothing."""

from __future__ import annotations

import asyncio
import json
import multiprocessing.forkserver
import os
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.web.jobs.jobs import Jobs, Progress
from sfumato.web.jobs.process import TaskError, Tell
from sfumato.web.jobs.running import TaskProcess, end_forkserver, make_private_folder
from sfumato.web.tasks import task_named
from waiting import until

CANARY = "CANARY-7f3a"
PACKAGE = "tests.web"
HANGS = 300.0  # seconds after which a test gives up; nothing here takes so long, on a machine however busy

SERVER = """
import sys, time
from pathlib import Path
from sfumato.web.jobs.jobs import Jobs

if __name__ == "__main__":
    jobs = Jobs(Path(sys.argv[1]) / "jobs", "tests.web")
    jobs.warm()
    job = jobs.start(sys.argv[2], title="t")
    while not job.done:
        time.sleep(0.01)  # between two looks
    print(job.what, flush=True)
    time.sleep(600)  # until it is killed
"""


@pytest.fixture
def jobs(tmp_path):
    made = Jobs(tmp_path / "jobs", PACKAGE)
    yield made
    made.close()


def call(jobs, task, **arguments):
    return asyncio.run(jobs.call(f"job_tasks.{task}", **arguments))


def started(jobs, task, **arguments):
    return jobs.start(f"job_tasks.{task}", title="a title", **arguments)


def finished(job):
    until(lambda: job._has_ended.is_set())
    return job


def exists(pid):
    return Path(f"/proc/{pid}").exists()


def is_dead(pid):
    """Whether it has ended, be it that nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def is_busy(pid):
    """Whether it has computed for so long that it is in the one long step of ``hogs_the_interpreter``."""
    user, system = map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK") > 0.5


def facts_of(job):
    return json.loads((job.folder / "job.json").read_text())


class TestShortTasks:
    def test_a_result_comes_back_and_the_folder_goes(self, jobs, tmp_path):
        found = call(jobs, "echo", names=["a", "ü"], k=5, deep={"x": None})

        assert found["arguments"] == {"names": ["a", "ü"], "k": 5, "deep": {"x": None}}
        assert not Path(found["folder"]).exists()
        assert os.listdir(tmp_path / "jobs") == []

    def test_the_process_stands_alone_and_is_private(self, jobs, tmp_path):
        found = call(jobs, "echo")

        assert found["session"] == found["pid"] != os.getpid()
        assert found["interrupt_is_ignored"]
        assert found["folder_mode"] == 0o700
        assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700
        assert not exists(found["pid"])

    def test_files_for_the_user_have_the_mode_that_the_command_line_gives_them(self, jobs, tmp_path):
        (tmp_path / "of-the-command-line.txt").touch()
        usual = stat.S_IMODE((tmp_path / "of-the-command-line.txt").stat().st_mode)

        assert call(jobs, "echo")["file_mode"] == usual

    def test_processes_come_from_one_server(self, jobs):
        assert call(jobs, "echo")["forkserver"] == call(jobs, "echo")["forkserver"] != os.getpid()

    def test_an_error_of_ours_arrives_in_full(self, jobs):
        with pytest.raises(TaskError) as caught:
            call(jobs, "refuses")

        error = caught.value
        assert (error.message, error.hint) == ("k must be at least 2, got 1.", "take 5")
        assert str(error) == "k must be at least 2, got 1. Hint: take 5"
        assert (error.exit_code, error.kind, error.field) == (2, "InvalidParameterError", "k")

    @pytest.mark.parametrize(
        ("task", "kind"), [("breaks", "ValueError"), ("leaves", "SystemExit"), ("gives_no_json", "TypeError")]
    )
    def test_the_text_of_an_unknown_error_stays_in_the_process(self, jobs, task, kind):
        with pytest.raises(TaskError, match=rf"^this is a bug in sfumato \({kind} in \w+\.py:\d+\)$") as caught:
            call(jobs, task)

        assert (caught.value.exit_code, caught.value.kind, caught.value.field) == (1, kind, "")
        assert CANARY not in repr(caught.value)

    def test_an_unknown_task_is_a_bug(self, jobs):
        with pytest.raises(TaskError, match="LookupError"):
            call(jobs, "no_such_task")

    def test_what_a_task_prints_goes_nowhere(self, tmp_path):
        script = "import asyncio, sys\nfrom pathlib import Path\nfrom sfumato.web.jobs.jobs import Jobs\n"
        script += "jobs = Jobs(Path(sys.argv[1]), 'tests.web')\n"
        script += "asyncio.run(jobs.call('job_tasks.chatters'))\njobs.close()"
        shown = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "jobs")], capture_output=True, check=True, timeout=HANGS
        )

        assert (shown.stdout, shown.stderr) == (b"", b"")

    def test_a_task_that_takes_too_long_is_killed(self, jobs, tmp_path):
        with pytest.raises(TaskError, match=r"took longer than 0.5 seconds and was ended") as caught:
            call(jobs, "waits", seconds=0.5, signs=str(tmp_path))

        assert caught.value.kind == "TimedOut"
        assert not exists((tmp_path / "pid.json").read_text())
        assert os.listdir(tmp_path / "jobs") == []

    def test_the_event_loop_goes_on_and_few_run_at_once(self, jobs, tmp_path):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)  # a clock that ticks, to see that the loop goes on
                ticks += 1

        async def main():
            ticking = asyncio.create_task(tick())
            meets = partial(jobs.call, "job_tasks.meets_another", signs=str(tmp_path), pause=0.3)
            spans = await asyncio.gather(*(meets() for _ in range(7)))
            ticking.cancel()
            return spans

        spans = asyncio.run(main())
        at_once = [sum(one["from"] <= other["from"] < one["to"] for one in spans) for other in spans]
        assert 2 <= max(at_once) <= 4
        assert ticks > 5

    def test_a_call_that_nobody_awaits_any_more_is_killed(self, jobs, tmp_path):
        async def main():
            calling = asyncio.create_task(jobs.call("job_tasks.waits", signs=str(tmp_path)))
            await asyncio.to_thread(until, (tmp_path / "pid.json").exists)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling

        asyncio.run(main())
        until(lambda: not exists((tmp_path / "pid.json").read_text()))
        until(lambda: os.listdir(tmp_path / "jobs") == [])

    def test_a_closed_server_takes_no_task(self, jobs):
        jobs.close()

        with pytest.raises(TaskError, match="the server is ending"):
            call(jobs, "echo")
        with pytest.raises(TaskError, match="the server is ending"):
            started(jobs, "echo")

    def test_processes_that_a_task_leaves_are_ended(self, jobs):
        pid = call(jobs, "leaves_a_process")["pid"]
        until(lambda: is_dead(pid))


class TestLongTasks:
    def test_progress_log_and_result(self, jobs):
        job = finished(started(jobs, "steps", count=20_000))

        assert (job.status, job.is_over, job.error) == ("done", True, None)
        assert (job.done, job.total, job.what) == (20_000, 20_000, "counting")
        assert [line["text"] for line in job.log] == ["begun", "all counted"]
        assert all(0 <= line["seconds"] <= job.seconds for line in job.log)
        assert job.result() == {"count": 20_000}
        assert job.result() is job.result()
        assert job.seconds_left is None
        assert jobs.get(job.id) is job

    def test_it_starts_without_waiting(self, jobs):
        job = started(jobs, "sleeps", pause=0.2)

        assert (job.status, job.is_over, job.done, job.total) == ("running", False, 0, 0)
        assert facts_of(job)["status"] == "running"
        with pytest.raises(TaskError, match="there is no result"):
            job.result()
        assert finished(job).status == "done"
        frozen, now = job.seconds, time.monotonic()
        until(lambda: time.monotonic() > now)
        assert job.seconds == frozen

    def test_a_failure_leaves_its_facts_and_records_and_nothing_else(self, jobs):
        job = finished(started(jobs, "cannot"))

        assert sorted(os.listdir(job.folder)) == ["job.json", "rounds.jsonl"]

    def test_a_failure_is_told(self, jobs):
        job = finished(started(jobs, "cannot"))

        assert (job.status, job.error.kind, job.error.exit_code) == ("failed", "PrivacyNotAchievableError", 4)
        assert "the best level reached is 3" in job.error.message
        assert facts_of(job)["error"]["message"] == job.error.message
        with pytest.raises(TaskError, match="there is no result"):
            job.result()

    @pytest.mark.parametrize(
        ("task", "arguments", "words"),
        [
            ("dies", {"number": signal.SIGKILL}, "signal 9; perhaps the memory was used up"),
            ("dies", {"number": signal.SIGSEGV}, "signal 11"),
            ("ends_early", {}, r"ended early \(exit code 3\)"),
        ],
    )
    def test_a_process_that_dies_has_failed(self, jobs, task, arguments, words):
        job = finished(started(jobs, task, **arguments))

        assert job.status == "failed"
        with pytest.raises(TaskError, match=f"the task did not finish: .*{words}"):
            raise job.error

    def test_many_at_once(self, jobs):
        for job in [started(jobs, "steps", count=3) for _ in range(8)]:
            assert finished(job).status == "done"

    def test_unknown_jobs_are_none(self, jobs):
        assert jobs.get("../jobs") is None
        jobs.cancel("../jobs")


class TestCancelling:
    def test_nothing_is_left_but_the_facts(self, jobs):
        job = started(jobs, "waits")
        until(lambda: job.done == 1)
        pid = int((job.folder / "pid.json").read_text())

        jobs.cancel(job.id)

        assert job.status == "cancelled"
        assert not exists(pid)
        assert os.listdir(job.folder) == ["job.json"]
        assert stat.S_IMODE((job.folder / "job.json").stat().st_mode) == 0o600
        facts = facts_of(job)
        assert (facts["status"], facts["done"], facts["what"]) == ("cancelled", 1, "waiting")
        assert CANARY not in json.dumps(facts)

    def test_a_job_that_has_just_been_started(self, jobs):
        job = started(jobs, "waits")
        jobs.cancel(job.id)

        assert job.status == "cancelled"
        assert os.listdir(finished(job).folder) == ["job.json"]

    def test_a_finished_job_stays_as_it_is(self, jobs):
        job = finished(started(jobs, "steps", count=1))
        jobs.cancel(job.id)

        assert job.status == "done"
        assert job.result() == {"count": 1}

    def test_a_job_that_is_removed_is_ended_and_unknown(self, jobs):
        job = started(jobs, "waits")
        until(lambda: job.done == 1)
        pid = (job.folder / "pid.json").read_text()

        jobs.remove(job.id)
        jobs.remove(job.id)

        assert not exists(pid)
        assert not job.folder.exists()
        assert jobs.get(job.id) is None

    def test_what_is_unwanted_before_it_begins_needs_no_process(self, jobs, tmp_path):
        process = TaskProcess("job_tasks.waits", {"signs": str(tmp_path)}, tmp_path, PACKAGE)
        process.kill()

        assert process.run(lambda message: None, HANGS).kind == "NotStarted"

    def test_closing_ends_all(self, jobs, tmp_path):
        running = [started(jobs, "waits") for _ in range(3)]
        until(lambda: all(job.done for job in running))
        pids = [(job.folder / "pid.json").read_text() for job in running]
        jobs.close()

        assert [job.status for job in running] == ["cancelled"] * 3
        assert not any(exists(pid) for pid in pids)


class TestProcessesOfTasks:
    def test_they_come_from_the_same_warm_server(self, jobs, tmp_path):
        found = call(jobs, "forks_again", signs=str(tmp_path), hog=False)

        assert found["parent"] == found["forkserver"]

    def test_they_end_with_the_task(self, jobs, tmp_path):
        job = started(jobs, "forks_again", signs=str(tmp_path), hog=True)
        sign = tmp_path / "grandchild.json"
        until(sign.exists)
        pid = json.loads(sign.read_text())["pid"]
        assert not is_dead(pid)

        jobs.cancel(job.id)
        until(lambda: not exists(pid))

    def test_a_task_ends_with_the_server(self, tmp_path):
        server = tmp_path / "server.py"
        server.write_text(SERVER)
        command = [sys.executable, str(server), str(tmp_path), "job_tasks.hogs_the_interpreter"]
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}) as process:
            pid = int(process.stdout.readline())
            until(lambda: is_busy(pid))
            assert not is_dead(pid)
            process.kill()
        until(lambda: is_dead(pid))

        [job] = Jobs(tmp_path / "jobs", PACKAGE)._jobs.values()
        assert (job.status, job.error.message) == ("failed", "the server ended")


class TestFolder:
    def test_folders_above_a_private_one_are_private_too(self, tmp_path):
        make_private_folder(tmp_path / "above" / "own")

        assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")] == [0o700, 0o700]
        with pytest.raises(TaskError):
            make_private_folder(tmp_path / "above" / "own")

    def test_jobs_of_an_earlier_server_are_shown_again(self, jobs, tmp_path):
        ids = [finished(started(jobs, "steps", count=2)).id, finished(started(jobs, "refuses")).id]
        running = started(jobs, "waits")
        until(lambda: running.done == 1)
        (tmp_path / "jobs" / "call-left").mkdir()
        (tmp_path / "jobs" / "broken").mkdir()
        (tmp_path / "jobs" / "broken" / "job.json").write_text("{")

        again = Jobs(tmp_path / "jobs", PACKAGE)
        done, failed = (again.get(job_id) for job_id in ids)
        assert (done.status, done.title, done.task) == ("done", "a title", "job_tasks.steps")
        assert (done.done, done.total, done.what, done.seconds) == (2, 2, "counting", jobs.get(ids[0]).seconds)
        assert (done.result(), done.log) == ({"count": 2}, jobs.get(ids[0]).log)
        assert failed.error.facts() == jobs.get(ids[1]).error.facts()
        was_running = again.get(running.id)
        assert (was_running.status, was_running.error.message) == ("failed", "the server ended")
        assert facts_of(was_running)["status"] == "failed"
        assert again.get("broken") is None
        assert not (tmp_path / "jobs" / "call-left").exists()

    def test_a_result_that_has_gone_is_told(self, jobs):
        job = finished(started(jobs, "steps", count=1))
        (job.folder / "result.json").unlink()

        with pytest.raises(TaskError, match="the result has gone"):
            job.result()


class TestTelling:
    def test_messages_are_few_and_the_last_arrives_by_itself(self):
        heard = []
        tell = Tell(heard.append)
        begin = time.monotonic()
        while time.monotonic() < begin + 0.4:
            for number in range(100):
                tell.progress(number, 100, "x")
        tell.progress(100, 100, "last")
        until(lambda: heard[-1]["progress"] == (100, 100, "last"))

        assert 2 <= len(heard) <= (time.monotonic() - begin) / 0.05 + 1

    def test_finishing_passes_on_what_is_left(self):
        heard = []
        tell = Tell(heard.append)
        tell.progress(1, 3, "x")
        until(lambda: heard)
        tell.progress(2, 3, "x\ny" + "z" * 1000)
        tell.log("line")
        tell.finish()

        assert heard[-1]["progress"][:2] == (2, 3)
        assert heard[-1]["progress"][2] == "x y" + "z" * 497
        assert [line["text"] for line in heard[-1]["log"]] == ["line"]


class TestTimeLeft:
    @given(
        st.integers(1, 50),
        st.integers(1, 50),
        st.integers(0, 20),
        st.floats(0.5, 100),
        st.floats(0, 1, exclude_max=True),
        st.floats(0, 1000),
    )
    def test_equal_steps_give_what_is_left(self, completed, remaining, earlier, each, part, begin):
        total = earlier + completed + remaining
        progress = Progress.none().then(7, 9, "before", begin / 2)
        for number in range(completed + 1):
            progress = progress.then(earlier + number, total, "phase", begin + number * each)
        now = begin + (completed + part) * each

        assert progress.seconds_left(now) == pytest.approx((remaining - part) * each, rel=1e-6, abs=1e-6)

    def test_a_slow_step_slows_the_rate(self):
        progress = Progress.none().then(0, 4, "x", 0.0).then(1, 4, "x", 1.0)

        assert progress.seconds_left(2.0) == pytest.approx(2.0)
        assert progress.seconds_left(3.0) == pytest.approx(3.0)
        assert progress.seconds_left(9.0) == pytest.approx(9.0)

    def test_another_name_alone_is_no_new_phase(self):
        progress = Progress.none().then(0, 4, "comparing", 0.0).then(1, 4, "mondrian", 1.0).then(2, 4, "tree", 2.0)

        assert progress.seconds_left(2.0) == pytest.approx(2.0)

    def test_a_total_that_changes_is_no_new_phase(self):
        progress = Progress.none().then(0, 100, "models", 0.0).then(10, 20, "models", 10.0)

        assert progress.seconds_left(10.0) == pytest.approx(10.0)

    @pytest.mark.parametrize(
        "news",
        [
            [],
            [(1, 4, "x", 0.0)],
            [(0, 0, "x", 0.0), (1, 0, "x", 1.0)],
            [(0, 4, "x", 0.0), (4, 4, "x", 1.0)],
            [(0, 4, "x", 0.0), (3, 4, "x", 1.0), (0, 4, "x", 2.0)],
            [(0, 4, "x", 0.0), (3, 4, "x", 1.0), (3, 9, "y", 2.0)],
            [(0, 4, "x", 4.9), (3, 4, "x", 4.95)],
        ],
    )
    def test_unknown(self, news):
        progress = Progress.none()
        for one in news:
            progress = progress.then(*one)

        assert progress.seconds_left(5.0) is None


class TestNames:
    def test_a_function_is_found(self):
        assert task_named("job_tasks.echo", PACKAGE).__name__ == "echo"

    @pytest.mark.parametrize(
        "name",
        [
            "echo",
            "job_tasks._grandchild",
            "job_tasks.Path",
            "job_tasks.stand_alone",
            "job_tasks.CANARY",
            "a.b.c",
        ],
    )
    def test_what_is_no_public_function_of_the_module_is_no_task(self, name):
        with pytest.raises(LookupError):
            task_named(name, PACKAGE)


def test_the_server_imports_nothing_heavy():
    script = "import sys, sfumato.web.jobs.jobs; print(*{name.partition('.')[0] for name in sys.modules})"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=HANGS, text=True)

    heavy = {"numpy", "scipy", "pyarrow", "duckdb", "sklearn", "matplotlib", "narwhals", "joblib", "rich"}
    assert heavy.isdisjoint(shown.stdout.split())


def test_a_temporary_folder_whose_path_is_too_long_for_a_socket_does_no_harm(tmp_path):
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    program = (
        "import pathlib, sys; from sfumato.web.jobs.jobs import Jobs\n"
        "jobs = Jobs(pathlib.Path(sys.argv[1]) / 'jobs')\n"
        "jobs.warm(); jobs.close(); print('fine')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("fine\n", 0), ended.stderr


def test_closing_ends_the_server_of_processes_that_it_has_warmed(tmp_path):
    """The last of this file, for whatever needs the server of processes afterwards starts it anew."""
    end_forkserver()
    jobs, others = Jobs(tmp_path / "jobs", PACKAGE), Jobs(tmp_path / "others", PACKAGE)
    jobs.warm()
    pid = multiprocessing.forkserver._forkserver._forkserver_pid
    others.close()
    assert not is_dead(pid)

    jobs.close()
    jobs.close()

    assert not exists(pid)
