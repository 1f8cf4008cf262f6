"""Further factors of E(S) on the page: typed on the Goal step, used by the release, and shown where it is looked at."""

from __future__ import annotations

import json
import tomllib

import pytest

from sfumato.mechanisms.breach.factors import FURTHER_FACTORS
from sfumato.web.views import goal, run
from web.asking import Site
from web.release_pages import JOB, Pages, make, write_project
from web.standing_in import JobsAtOnce, small_project

FACTORS = {"anonymity": 0.4, "uniqueness": 0.1}
TYPED = "anonymity=0.4, uniqueness=0.1"


@pytest.fixture
def project(tmp_path):
    return small_project(tmp_path / "work")


@pytest.fixture
def site(tmp_path, project):
    return Site(tmp_path / "page", goal, run, project=project, jobs=JobsAtOnce(tmp_path / "jobs"))


def filled(site, **changes):
    """Fields of the form with breach-aware chosen, some of them changed."""
    own = site.get("/goal/fields", mechanism="breach-aware", shown="breach-aware").seen.values
    return {**site.get("/goal").seen.values, **own, "mechanism": "breach-aware", **changes}


def test_the_field_says_which_factors_there_are_and_how_to_write_them(site):
    seen = site.get("/goal/fields", mechanism="breach-aware", shown="breach-aware").seen

    assert seen.by_id["set-factors"]["value"] == ""
    about = seen.texts[seen.by_id["set-factors"]["aria-describedby"]]
    assert all(name in about for name in FURTHER_FACTORS)
    assert "NAME=VALUE, NAME=VALUE" in about


def test_factors_land_in_the_project_file_and_in_the_form_when_it_is_opened_again(site, project):
    answer = site.post("/goal/release", filled(site, **{"set-factors": TYPED}))

    assert answer.status == 303, answer.text
    chosen = tomllib.loads(project.read_text())["release"]
    assert chosen["mechanism"] == "breach-aware"
    assert chosen["parameters"]["factors"] == FACTORS
    assert site.page.jobs.started[-1][0] == "release.make"
    assert site.get("/goal").seen.values["set-factors"] == TYPED


def test_an_empty_field_asks_for_no_factor(site, project):
    assert site.post("/goal/release", filled(site)).status == 303

    assert "factors" not in tomllib.loads(project.read_text())["release"]["parameters"]


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("factors", "anonymity", "factors must be a table of settings"),
        ("factors", "0.4, 0.1", "factors must be a table of settings"),
        ("factors", "beauty=0.4", "factors must be named anonymity, uniqueness, got 'beauty'"),
        ("factors", "anonymity=-1", "factors must be numbers from 0"),
        ("factors", "anonymity=much", "factors must be numbers from 0"),
        ("weights", "beauty=1", "weights must be three numbers, for performance, privacy and size"),
    ],
)
def test_what_no_search_could_use_is_refused_at_its_field_and_kept_there(site, project, field, typed, words):
    before = project.read_text()
    answer = site.post("/goal/release", filled(site, **{f"set-{field}": typed}))

    assert answer.status == 422
    assert words in answer.shown
    assert answer.seen.values[f"set-{field}"] == typed
    assert project.read_text() == before


def downloads(folder, parameters):
    """Make a release as a job does; gives manifest and report as its page hands them out."""
    folder.mkdir()
    project = write_project(folder, "breach-aware", f"max_breach_increase = 0\n{parameters}", n_rows=120)
    make(project, folder / "server" / "jobs" / JOB)
    pages = Pages(folder / "server", project)
    manifest, report = (pages.get(f"/release/files/{what}").body for what in ("manifest", "report"))
    return json.loads(manifest), report.decode()


@pytest.mark.slow
def test_the_release_of_a_job_uses_the_factors_and_the_files_that_its_page_hands_out_show_them(tmp_path):
    manifest, report = downloads(tmp_path / "with", f"factors = {{ {TYPED} }}")
    other_manifest, other_report = downloads(tmp_path / "without", "")

    assert manifest["mechanism"]["parameters"]["factors"] == FACTORS
    choice, other = manifest["evidence"]["choice"], other_manifest["evidence"]["choice"]
    assert set(choice["weights"]) - set(other["weights"]) == set(FACTORS)
    for name, weight in FACTORS.items():
        assert choice["weights"][name] == pytest.approx(weight / (1 + sum(FACTORS.values())), abs=5e-4)
        assert len({one["ranks"][name] for one in choice["candidates"]}) > 1, (
            "a factor by which all are alike proves nothing"
        )
    for one in choice["candidates"]:
        expected = sum(choice["weights"][name] * rank for name, rank in one["ranks"].items())
        assert one["score"] == pytest.approx(expected, rel=0.01)  # weights in a manifest have three digits
    assert '<th scope="row">factors</th>' in report
    assert all(f"&#34;{name}&#34;: {weight}" in report for name, weight in FACTORS.items())
    assert "uniqueness" not in other_report
