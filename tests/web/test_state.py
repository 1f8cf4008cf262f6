"""One page for several tabs: runs that are not started twice, tables that do not change under them, jobs that go."""

from __future__ import annotations

import asyncio
import stat
import threading

import pytest

from sfumato.web.jobs.process import TaskError
from sfumato.web.views import goal, opening
from waiting import until
from web.asking import Site, ask_soon
from web.standing_in import JobsAtOnce, end, small_project, start_for

TABLE = "age,sex\n" + "".join(f"{20 + n % 9},{'fm'[n % 2]}\n" for n in range(40))


class HeldJobs(JobsAtOnce):
    """Short tasks wait until the test lets them go on."""

    def __init__(self, folder):
        super().__init__(folder)
        self.is_asked, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def call(self, task, /, **arguments):
        self.is_asked.set()
        await self.may_go_on.wait()
        return await super().call(task, **arguments)


@pytest.fixture
def site(tmp_path):
    project = small_project(tmp_path / "project")
    made = Site(tmp_path / "page", opening, goal, jobs=JobsAtOnce(tmp_path / "page" / "jobs"))
    made.post("/open", path=str(project))
    assert made.page.job("open").status == "done"
    return made


def upload(site, name):
    assert site.upload("/open/upload", f"{name}.csv", TABLE).headers["location"] == "/columns"
    return site.page.job("open")


def refusal(site):
    return site.page.state.get("opening").get("problem", {}).get("message", "")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class TestRuns:
    @pytest.mark.parametrize("how", ["demo", "back", "path"])
    def test_no_table_takes_the_place_of_one_whose_release_is_being_started(self, tmp_path, how):
        async def release_and_open(site):
            form = {"mechanism": "mondrian", "promise-k-anonymity": "5"}
            first = asyncio.create_task(ask_soon(site.app, "POST", "/goal/release", form=form))
            await site.page.jobs.is_asked.wait()
            await ask_soon(site.app, "POST", "/open", form={"how": how, "path": "/elsewhere.csv"})
            words = refusal(site)
            site.page.jobs.may_go_on.set()
            await first
            return words

        project = small_project(tmp_path / "project")
        site = Site(tmp_path / "page", opening, goal, jobs=HeldJobs(tmp_path / "jobs"), project=project)
        site.page.state.update(former={"project": "other.toml", "jobs": {}})

        assert "still running" in asyncio.run(release_and_open(site))
        assert site.page.state.project == project
        assert [arguments["project"] for task, arguments in site.page.jobs.started if task == "release.make"] == [
            str(project)
        ]

    def test_a_run_that_is_started_while_a_table_is_replaced_is_one_of_the_new_table(self, site):
        found = []

        def start():
            with site.page.only_one("release") as is_first:
                found.append((is_first, site.page.state.get("project")))

        with site.page.between_runs():
            thread = threading.Thread(target=start)
            thread.start()
            thread.join(0.1)
            site.page.replace_table(project="new.toml")
        thread.join()

        assert found == [(True, "new.toml")]

    def test_one_of_a_kind_is_started_at_a_time_and_another_kind_beside_it(self, site):
        only_one = site.page.only_one
        with only_one("release") as first, only_one("release") as second, only_one("compare") as other:
            assert (first, second, other) == (True, False, True)
        with site.page.only_one("release") as again:
            assert again
            job = start_for(site.page, "release")
        with site.page.only_one("release") as while_it_runs:
            assert not while_it_runs
        end(job)
        with site.page.only_one("release") as afterwards:
            assert afterwards

    def test_a_start_that_fails_is_no_start(self, site):
        with pytest.raises(TaskError), site.page.only_one("release"):
            raise TaskError("no")
        with site.page.only_one("release") as is_first:
            assert is_first


class TestBack:
    def test_nobody_goes_back_while_a_run_is_under_way(self, site):
        upload(site, "second")
        start_for(site.page, "compare")
        project = site.page.state.project

        assert site.post("/open", how="back").headers["location"] == "/open"

        assert "still running" in site.get("/open").shown
        assert site.page.state.project == project
        assert site.page.job("compare").status == "running"

    def test_what_is_being_read_or_measured_is_ended_and_removed(self, site):
        first = site.page.job("open")
        site.page.jobs.waits |= {"opening.open_path", "goal.risk_today"}
        reading = upload(site, "second")
        site.get("/goal")
        measuring = site.page.job("risk")
        assert {reading.status, measuring.status} == {"running"}

        site.post("/open", how="back")

        assert {reading.status, measuring.status} == {"cancelled"}
        assert site.page.job("open") is first
        until(lambda: not reading.folder.exists() and not measuring.folder.exists())
        assert list((site.page.folder / "data").iterdir()) == []


class TestFoldersOfJobs:
    def test_a_job_that_is_replaced_goes_with_its_folder(self, site):
        older = start_for(site.page, "release")
        end(older)
        newer = start_for(site.page, "release")

        until(lambda: not older.folder.exists())
        assert site.page.jobs.get(older.id) is None
        assert site.page.job("release") is newer
        assert newer.folder.exists()
        assert newer.status == "running"

    def test_a_job_that_runs_is_ended_when_it_is_replaced(self, site):
        older = start_for(site.page, "release")
        start_for(site.page, "release")

        until(lambda: older.status == "cancelled" and not older.folder.exists())

    def test_jobs_of_the_former_table_stay_until_nobody_can_go_back_to_it(self, site):
        end(start_for(site.page, "release"))
        of_the_first = [site.page.job("open"), site.page.job("release")]
        second = upload(site, "second")
        assert all(job.folder.exists() and site.page.jobs.get(job.id) is job for job in of_the_first)

        third = upload(site, "third")
        until(lambda: not any(job.folder.exists() for job in of_the_first))
        assert second.folder.exists()

        site.post("/open", how="back")
        until(lambda: not third.folder.exists())
        assert site.page.job("open") is second
        assert second.result()["n_rows"] == 40


def test_what_the_server_keeps_is_private(site):
    upload(site, "second")

    assert mode_of(site.page.state.path) == 0o600
    assert mode_of(site.page.folder / "data") == 0o700
    assert [mode_of(folder) for folder in (site.page.folder / "data").iterdir()] == [0o700]
