"""The Run step: progress, log, cancel, and in plain words how a run ended and what to do next."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import errors
from sfumato.web.jobs.jobs import Job, Jobs
from sfumato.web.jobs.process import TaskError
from sfumato.web.views import run as view
from sfumato.web.views.run import LINES_SHOWN, Run
from waiting import until
from web.asking import Site
from web.standing_in import JobsAtOnce, end, start_for

ERRORS = [
    errors.InvalidParameterError("k", "got 0", allowed="at least 1", hint="take 5"),
    errors.InputError("cannot be read", path="x.csv"),
    errors.OutputError("is full", path="y.csv"),
    errors.SchemaError("has no role", column="age"),
    errors.ColumnNotFoundError("agee", ["age"]),
    errors.NotBinaryError("is not 0/1", column="age"),
    errors.PrivacyNotAchievableError("k-anonymity with k=5", best_level=3),
    errors.AuditFailedError(["k is 1"]),
    ValueError("secret cell"),
]
PLACES = ["/goal", "/open", "/goal", "/columns", "/columns", "/columns", "/goal", "/goal", "/goal"]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "page", view, jobs=JobsAtOnce(tmp_path / "page" / "jobs"))


def started(site, purpose="release", title="Make the release"):
    return start_for(site.page, purpose, title)


def heard(job, *, progress=None, log=()):
    lines = [{"seconds": float(number), "text": text} for number, text in enumerate(log)]
    job._hear({**({"progress": progress} if progress else {}), "log": lines})


def test_before_anything_is_run_the_page_says_where_to_start(site):
    answer = site.get("/run")

    assert answer.status == 200
    assert "Nothing was run yet" in answer.text
    assert "hx-trigger" not in answer.seen.by_id["run-jobs"]


def test_a_running_job_shows_how_far_it_is_and_is_polled(site):
    job = started(site)
    heard(job, progress=(3, 12, "pruning"), log=["first", "second"])
    for answer in (site.get("/run"), site.get("/run/progress")):
        seen = answer.seen
        assert seen.by_id["run-jobs"]["hx-trigger"] == "every 500ms"
        assert seen.by_id["run-jobs"]["hx-get"].startswith("/run/progress")
        bar = next(found for tag, found in seen.elements if tag == "progress")
        assert (bar["max"], bar["value"]) == ("12", "3")
        assert "pruning (3 of 12)" in seen.texts["run-jobs"]
        assert seen.texts["log-release"].index("second") < seen.texts["log-release"].index("first")
        assert "Running for" in seen.texts["run-jobs"]


def test_time_left_is_shown_where_there_is_an_estimate(site, monkeypatch):
    monkeypatch.setattr(Job, "seconds_left", 75.0)
    started(site)

    assert "about 1 min 15 s left" in site.get("/run").text


@pytest.mark.parametrize("progress", [(0, 0, "reading"), (9, 3, "more than all"), (-1, 3, "less than none")])
def test_odd_progress_does_not_break_the_page(site, progress):
    heard(started(site), progress=progress)

    assert site.get("/run").status == site.get("/run/progress").status == 200


def test_a_fragment_is_no_whole_page_and_ends_polling_when_all_is_over(site):
    job = started(site)
    assert "hx-get" in site.get("/run/progress").seen.by_id["run-jobs"]
    end(job)
    answer = site.get("/run/progress")

    assert "<html" not in answer.text
    assert "hx-get" not in answer.seen.by_id["run-jobs"]


@pytest.mark.parametrize(("purpose", "place"), [("release", "/utility"), ("compare", "/explore")])
def test_a_run_that_is_done_leads_to_its_result(site, purpose, place):
    end(started(site, purpose))
    answer = site.get("/run")

    assert f'<a href="{place}">' in answer.text
    assert "Took" in answer.text
    assert "Cancel" not in answer.text


@pytest.mark.parametrize(("error", "place"), list(zip(ERRORS, PLACES, strict=True)), ids=lambda one: type(one).__name__)
def test_a_failure_says_what_happened_and_what_to_do_next(site, error, place):
    told = TaskError.of(error)
    end(started(site), "failed", error=told)
    answer = site.get("/run")
    seen = answer.seen

    assert told.message in seen.texts["run-jobs"]
    assert told.hint in seen.texts["run-jobs"]
    assert place in [found["href"] for tag, found in seen.elements if tag == "a" and "class" not in found]
    assert "secret" not in answer.text
    assert "Cancel" not in answer.text


def test_cancelling_ends_the_named_run_alone(site):
    release, compare = started(site), started(site, "compare", "Compare mechanisms")
    button = site.get("/run").seen.by_id["cancel-release"]
    assert (button["name"], button["value"]) == ("job", release.id)
    answer = site.post("/run/cancel", job=button["value"])

    assert (answer.status, answer.headers["location"]) == (303, "/run")
    assert release.status == "cancelled"
    assert compare.status == "running"
    seen = site.get("/run").seen
    assert "Cancelled. Nothing was released." in seen.texts["run-jobs"]
    assert "cancel-release" not in seen.by_id
    assert "cancel-compare" in seen.by_id
    assert "hx-get" in seen.by_id["run-jobs"]


def test_cancelling_what_is_over_or_is_not_shown_here_changes_nothing(site):
    hidden = site.page.jobs.start("release.make", title="of another step")
    done = started(site)
    end(done)
    for job in (done.id, hidden.id, "no-such-id", ""):
        assert site.post("/run/cancel", job=job).status == 303
    assert site.post("/run/cancel").status == 303

    assert done.status == "done"
    assert hidden.status == "running"


def test_a_running_job_stands_before_one_that_is_over(site):
    end(started(site, title="Make the release"))
    started(site, "compare", "Compare mechanisms")
    text = site.get("/run").seen.texts["run-jobs"]

    assert text.index("Compare mechanisms") < text.index("Make the release")


def test_the_log_shows_its_last_lines(site):
    heard(started(site), log=[f"line {number}." for number in range(LINES_SHOWN + 50)])
    text = site.get("/run").seen.texts["log-release"]

    assert "line 49." not in text
    assert "line 50." in text
    assert f"line {LINES_SHOWN + 49}." in text


def test_texts_of_a_job_are_shown_as_text(site):
    job = started(site, title="<b>title")
    heard(job, progress=(1, 2, "<b>what"), log=["<b>line"])
    end(job, "failed", error=TaskError("<b>message", hint="<b>hint"))

    assert "<b>" not in site.get("/run").text


def test_a_screen_reader_is_told_when_the_words_change_and_not_at_every_poll(site):
    job = started(site)
    seen = site.get("/run").seen
    status = seen.by_id["run-said"]
    assert (status["role"], status["aria-live"]) == ("status", "polite")
    assert "running" in seen.texts["run-said"]
    address = seen.by_id["run-jobs"]["hx-get"]
    assert "run-said" not in site.get(address).seen.by_id

    heard(job, progress=(3, 4, "x"))
    news = site.get(address).seen
    assert news.by_id["run-said"]["hx-swap-oob"] == "innerHTML"
    assert "75 per cent" in news.texts["run-said"]
    assert "run-said" not in site.get(news.by_id["run-jobs"]["hx-get"]).seen.by_id

    end(job, "failed", error=TaskError("k cannot be met"))
    assert "failed. k cannot be met" in site.get(unquote(address)).seen.texts["run-said"]


def test_the_log_is_no_live_region(site):
    heard(started(site), log=["a line"])
    seen = site.get("/run").seen

    live = [found.get("id") for _, found in seen.elements if "aria-live" in found or found.get("role") == "status"]
    assert live == ["run-said"]


@given(total=st.integers(1, 1000), part=st.floats(0, 1))
def test_what_is_said_changes_at_most_five_times(tmp_path_factory, total, part):
    folder = tmp_path_factory.mktemp("job")
    job = Job("id", "release.make", "It", folder)
    run = Run("release", job, "", "", "")
    done = int(part * total)
    job._progress = job._progress.then(done, total, "x", 1.0)

    quarter = 25 * (4 * done // total)
    assert run.said == ("It: running." if quarter == 0 else f"It: running, {quarter} per cent done.")


def test_a_reload_and_a_second_tab_show_the_same(site):
    job = started(site)
    heard(job, progress=(1, 4, "x"))
    end(job)

    assert site.get("/run").text == site.get("/run").text
    assert job.title in site.get("/run").text


def test_a_real_process_is_shown_while_it_runs_and_cancelled_within_a_second(tmp_path):
    jobs = Jobs(tmp_path / "jobs", "tests.web")
    site = Site(tmp_path / "page", view, jobs=jobs)
    try:
        job = jobs.start("job_tasks.waits", title="Wait")
        site.page.started("release", job)
        until(lambda: "waiting (1 of 2)" in site.get("/run/progress").text)
        site.post("/run/cancel", job=job.id)
        assert "cancelled" in site.get("/run").text
        assert [path.name for path in job.folder.iterdir()] == ["job.json"]
    finally:
        jobs.close()


def test_a_first_result_is_there_while_the_job_goes_on_and_stays_when_it_is_stopped(tmp_path):
    jobs = Jobs(tmp_path / "jobs", "tests.web")
    site = Site(tmp_path / "page", view, jobs=jobs)
    try:
        job = jobs.start("job_tasks.finds_and_waits", title="Release")
        assert "/risk" not in site.get("/run/progress").text
        site.page.started("release", job)
        until(lambda: job.has_result)
        answer = site.get("/run/progress")
        assert (job.status, job.result()["found"]) == ("running", "first")
        assert 'href="/risk"' in answer.text
        assert "Its risk is measured, utility is being measured" in answer.seen.texts["run-jobs"]
        assert "Stop measuring" in answer.seen.texts["run-jobs"]
        site.post("/run/cancel", job=job.id)
        assert "utility was not measured: it was stopped" in site.get("/run").shown
        until(lambda: Job.loaded(job.folder / "job.json").is_over)
        for known in (job, Job.loaded(job.folder / "job.json")):
            assert (known.status, known.result()["found"]) == ("done", "first")
        assert (job.folder / "made.txt").exists()
    finally:
        jobs.close()


def test_a_job_that_is_stopped_after_its_last_result_is_done(tmp_path):
    """Nobody is told that utility was not measured where it was."""
    jobs = Jobs(tmp_path / "jobs", "tests.web")
    site = Site(tmp_path / "page", view, jobs=jobs)
    try:
        job = jobs.start("job_tasks.finds_all_and_waits", title="Release")
        site.page.started("release", job)
        until(lambda: job.has_result)
        site.post("/run/cancel", job=job.id)
        until(job._has_ended.is_set)
        for known in (job, Job.loaded(job.folder / "job.json")):
            assert (known.status, known.error, known.result()) == ("done", None, {"found": "last"})
        assert "not measured" not in site.get("/run").shown
    finally:
        jobs.close()


def test_a_job_whose_server_ended_after_its_last_result_is_done(tmp_path):
    job = Job("id", "release.make", "It", tmp_path)
    job._hear({"has_result": True})
    (tmp_path / "result.json").write_text('{"found": "last"}')
    job._write()
    found = Job.loaded(tmp_path / "job.json")
    assert (found.status, found.error, found.result()) == ("done", None, {"found": "last"})


@pytest.mark.parametrize("is_known", [True, False])
def test_a_job_that_a_server_left_has_failed_but_for_its_first_result(tmp_path, is_known):
    job = Job("id", "release.make", "It", tmp_path)
    job._hear({"has_result": is_known})
    job._write()
    assert Job.loaded(tmp_path / "job.json").status == ("done" if is_known else "failed")


def test_when_a_run_ends_the_bar_of_steps_leads_on(site):
    job = started(site)
    assert "/risk" not in site.get("/run/progress").text
    end(job)
    assert 'href="/risk"' in site.get("/run/progress").text
