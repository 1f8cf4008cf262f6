"""Explore: a comparison as the command makes it, ranked by any weights, and a candidate that the project file takes."""

import json
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sfumato.cli.main import run
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.evaluation.compare import table_fingerprint
from sfumato.evaluation.points import Point, Status, unmeasured
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.project.file import load_project
from sfumato.web.inputs import DATA, DESCRIPTION, HIERARCHY, PROJECT_FILE, noted
from sfumato.web.jobs.process import TaskError
from sfumato.web.tasks import explore as tasks
from sfumato.web.tasks import task_named
from sfumato.web.views import explore
from sfumato.web.views import measured as pictures
from web.asking import Site
from web.real_browser import STATIC, PolicyHeaders, look_at, served
from web.standing_in import PROJECT, JobsAtOnce, Told, end, people, small_project, start_for

CANARY = "CANARY-cell"
TABLE = people(80, ("x", "y", CANARY))
COMPARED = (
    PROJECT
    + """
[compare]
classifiers = ["naive-bayes"]
weights = [0.5, 0.3, 0.2]

[compare.grid.mondrian]
k = [5, 10, 60]

[compare.grid.greedy-containment]
k = [3]
on_infeasible = ["skip"]
"""
)


def make_project(folder):
    return small_project(folder, COMPARED, TABLE)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Compare for once: the project file, the job's folder, the result and what was told."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("job")
    project, tell = make_project(home), Told()
    result = tasks.compare(folder, tell, project=str(project), asked=["k=5"])
    return project, folder, result, tell


# ---- the comparison


def test_it_is_the_comparison_of_the_command(compared, tmp_path, capsys, monkeypatch):
    project, _, result, _ = compared
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    make_project(there)
    assert run(["compare", "--project", str(there / "sfumato.toml"), "--guarantee", "k=5", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)

    def comparable(found):
        timed = ("seconds", "cpu_seconds", "peak_memory_bytes")
        points = [{name: value for name, value in point.items() if name not in timed} for point in found["points"]]
        return json.loads(re.sub(r'"[a-z_]*seconds": [0-9.e-]+', '"s": 0', json.dumps({**found, "points": points})))

    mine = {name: value for name, value in result.items() if name in said}
    assert comparable(mine)["points"] == comparable(said)["points"]
    for name in ("guarantees", "weights", "measuring", "left_out", "recommended", "notes"):
        assert mine[name] == said[name]
    assert (project.parent / "sfumato-compare").is_dir()


def test_every_point_is_told_and_no_cell_is(compared):
    _, folder, result, tell = compared
    assert tell.steps[-1][:2] == (5, 5)  # four releases and the table as it is
    assert len(result["frontier"]) == 4
    written = (folder / tasks.STORED_NAME).read_text(encoding="utf-8")
    assert CANARY not in "".join([written, json.dumps(result), *tell.lines])


def test_a_second_comparison_takes_what_is_measured(compared, tmp_path, monkeypatch):
    project, _, result, _ = compared

    def fail(*arguments, **more):
        assert list(arguments[1]) == []

    monkeypatch.setattr("sfumato.evaluation.compare.measure_in_processes", fail)
    again = tasks.compare(tmp_path, Told(), project=str(project), asked=["k=5"])
    assert again == result


def test_only_the_named_mechanisms_are_compared(compared, tmp_path):
    project = compared[0]
    result = tasks.compare(tmp_path, Told(), project=str(project), asked=["k=5"], mechanisms=["mondrian"])
    assert {point["mechanism"] for point in result["points"]} == {"mondrian"}


@pytest.mark.parametrize(("asked", "error"), [(["k=1"], InvalidParameterError), (["what"], InvalidParameterError)])
def test_what_cannot_be_asked_is_refused(compared, tmp_path, asked, error):
    with pytest.raises(error):
        tasks.compare(tmp_path, Told(), project=str(compared[0]), asked=asked)


# ---- ranking


def stored_points(folder, figures, asked=()):
    """Write a comparison with given figures: (utility, risk, columns) of each point; the last is the original."""
    results = []
    for place, (utility, risk, n_columns) in enumerate(figures):
        results.append(
            unmeasured(Point("mondrian", {"k": place + 2}), Status.DONE)
            | {
                "guarantees": [{"kind": "k-anonymity", "k": place + 2, "is_partial": False}],
                "n_columns": n_columns,
                "n_rows": 10,
                "risk": {"headline": {"marketer": risk}},
                "utility": {"classifiers": {"naive-bayes": {"auc": {"mean": utility}, "accuracy": {"mean": utility}}}},
                "seconds": 1.0,
                "cpu_seconds": 1.0,
            }
        )
    kept = {
        "results": results[:-1],
        "original": results[-1] | {"mechanism": "original", "guarantees": []},
        "left_out": {},
        "measuring": {"classifiers": ["naive-bayes"], "n_folds": 3, "seed": 0, "max_rows": None},
        "weights": [1 / 3, 1 / 3, 1 / 3],
        "asked": list(asked),
    }
    (folder / tasks.STORED_NAME).write_text(json.dumps(kept))
    return str(folder)


def naive_scores(figures, weights):
    """E(S) by counting, for every point and the original, who is worse."""
    total = sum(weights)

    def rank(values, place):
        return 1 + sum(value < values[place] for value in values)

    utility, safety, fewness = (
        [one[0] for one in figures],
        [-one[1] for one in figures],
        [-one[2] for one in figures],
    )
    return [
        sum(w / total * rank(values, place) for w, values in zip(weights, (utility, safety, fewness), strict=True))
        for place in range(len(figures) - 1)
    ]


few = st.sampled_from([0.5, 0.6, 0.61, 0.7, 0.9])
figures = st.lists(st.tuples(few, st.sampled_from([0.0, 0.1, 0.2, 0.5]), st.integers(1, 5)), min_size=2, max_size=8)
weights = st.tuples(st.integers(1, 100), st.integers(0, 100), st.integers(0, 100))


@given(figures, weights)
def test_releases_are_ranked_by_the_weights(tmp_path_factory, drawn, given_weights):
    folder = tmp_path_factory.mktemp("ranked")
    scaled = [weight / 100 for weight in given_weights]
    found = tasks.rank(
        folder, Told(), made_in=stored_points(folder, drawn), project=str(make_project(folder)), weights=scaled
    )
    scores = naive_scores(drawn, scaled)
    total = sum(scaled)
    is_rounded = abs(total - 1) <= 0.0015  # such weights are taken as they are
    for release in found["releases"]:
        expected = scores[release["parameters"]["k"] - 2] * (total if is_rounded else 1)
        assert release["score"] == pytest.approx(expected)
    in_order = [(round(-release["score"], 9), release["n_columns"]) for release in found["releases"]]
    assert in_order == sorted(in_order)
    assert [release["rank"] for release in found["releases"]] == list(range(1, len(drawn)))
    assert [point["key"] for point in found["frontier"]] == [
        next(one["key"] for one in found["releases"] if one["parameters"]["k"] == place + 2)
        for place in range(len(drawn) - 1)
    ]


def test_weights_change_the_ranks_and_not_what_is_recommended(tmp_path):
    stored = stored_points(tmp_path, [(0.7, 0.5, 1), (0.699, 0.1, 5), (0.9, 1.0, 5)], asked=["k=2"])
    project = str(make_project(tmp_path))
    by = {
        name: tasks.rank(tmp_path, Told(), made_in=stored, project=project, weights=weights)
        for name, weights in {"privacy": [0, 1, 0], "size": [0, 0, 1]}.items()
    }
    settings = {
        name: [one["settings"] for one in found["releases"] if one["is_recommended"]] for name, found in by.items()
    }
    assert settings == {"privacy": ["k=3"], "size": ["k=3"]}
    assert by["size"]["why"] == by["privacy"]["why"]
    assert [one["settings"] for one in by["privacy"]["releases"]] == ["k=3", "k=2"]
    assert [one["settings"] for one in by["size"]["releases"]] == ["k=2", "k=3"]


def test_other_guarantees_may_be_asked_of_what_is_stored(tmp_path):
    stored, project = (
        stored_points(tmp_path, [(0.7, 0.5, 1), (0.6, 0.1, 5), (0.9, 1.0, 5)]),
        str(make_project(tmp_path)),
    )
    found = tasks.rank(tmp_path, Told(), made_in=stored, project=project, asked=["k=3"])
    assert [one["meets_guarantee"] for one in sorted(found["releases"], key=lambda one: one["parameters"]["k"])] == [
        False,
        True,
    ]


@pytest.mark.parametrize("wrong", [[0, 0, 0], [1, -1, 1]])
def test_weights_that_weigh_nothing_are_refused(tmp_path, wrong):
    stored, project = stored_points(tmp_path, [(0.7, 0.5, 1), (0.9, 1.0, 5)]), str(make_project(tmp_path))
    with pytest.raises(InvalidParameterError):
        tasks.rank(tmp_path, Told(), made_in=stored, project=project, weights=wrong)


def test_ranking_reads_no_data_and_measures_nothing(compared, tmp_path):
    project, folder, result, _ = compared
    elsewhere = tmp_path / "sfumato.toml"
    elsewhere.write_text(project.read_text(encoding="utf-8"), encoding="utf-8")  # and no table beside it
    found = tasks.rank(tmp_path, Told(), made_in=str(folder), project=str(elsewhere))
    assert found["why"] == result["why"]
    assert {one["label"] for one in found["not_measured"]} == {"mondrian k=60"}
    assert "k" in found["not_measured"][0]["reason"]


def test_the_candidate_is_what_the_project_file_asks_for(tmp_path):
    stored, project = stored_points(tmp_path, [(0.7, 0.5, 1), (0.6, 0.1, 5), (0.9, 1.0, 5)]), make_project(tmp_path)
    before = tasks.rank(tmp_path, Told(), made_in=stored, project=str(project))
    assert (before["candidate"], before["planned"]) == (None, "auto k=5")
    second = next(one for one in before["releases"] if one["parameters"] == {"k": 3})
    task_named("goal.choose")(
        tmp_path, Told(), project=str(project), mechanism=second["mechanism"], parameters=second["parameters"]
    )
    after = tasks.rank(tmp_path, Told(), made_in=stored, project=str(project))
    assert after["candidate"] == second["key"]


def test_what_it_was_compared_from_is_noted(compared):
    project, _, result, _ = compared
    assert result["inputs"] == noted(project, DESCRIPTION, DATA, HIERARCHY)


def test_weights_are_kept_in_the_project_file(tmp_path):
    project = make_project(tmp_path)
    tasks.keep_weights(tmp_path, Told(), project=str(project), weights=[0.9, 0.1, 0])
    assert list(load_project(project).compare["weights"]) == [0.9, 0.1, 0]
    assert project.read_text(encoding="utf-8").startswith("# mine\n")
    with pytest.raises(InputError):
        tasks.keep_weights(tmp_path, Told(), project=str(tmp_path / "none.toml"), weights=[1, 1, 1])


# ---- the page


class ExploreSite(Site):
    """A page with this step, pictures and a stand-in for what makes releases; answers carry the headers of the page."""

    def __init__(self, folder, project):
        released = Route("/goal/release", self._released, methods=["POST"])
        static = Mount("/static", StaticFiles(directory=STATIC))
        super().__init__(
            folder / "page",
            explore,
            pictures,
            project=project,
            jobs=JobsAtOnce(folder / "page" / "jobs"),
            routes=[released, static],
            middleware=[Middleware(PolicyHeaders)],
        )
        self.forms = []

    async def _released(self, request):
        self.forms.append(dict(await request.form()))
        return HTMLResponse('<title>release</title><link rel="icon" href="/static/icon.svg">')

    def job(self, purpose, status="done", **ended):
        job = start_for(self.page, purpose)
        if status != "running":
            end(job, status, **ended)
        return job


@pytest.fixture
def site(compared, tmp_path):
    """Give a page with the comparison of the module and a project file of its own."""
    project = make_project(tmp_path)
    site = ExploreSite(tmp_path, project)
    job = site.job("compare", result={**compared[2], "inputs": noted(project, DESCRIPTION, DATA, HIERARCHY)})
    stored = json.loads((compared[1] / tasks.STORED_NAME).read_bytes())
    (job.folder / tasks.STORED_NAME).write_text(json.dumps(stored))
    return site


def spec_in(text):
    return json.loads(unescape(re.search(r'data-spec="([^"]*)"', text)[1]))


def keys_of(text):
    """Keys of the buttons that make a candidate, by their release."""
    found = re.findall(r'name="key" value="([^"]+)" hx-post="/explore/candidate"[^>]*: ([^"]+)"', text)
    return {unescape(label): key for key, label in found}


def test_the_step_shows_every_release_and_the_recommendation(site, compared):
    status, _, text = site.get("/explore")
    assert status == 200
    assert unescape(text).count(compared[2]["why"]) == 2  # in words, and for those who do not see the chart
    assert set(keys_of(text)) == {"mondrian k=5", "mondrian k=10", "greedy-containment k=3 on_infeasible=skip"}
    assert "mondrian k=60" in text
    assert "Nothing is chosen yet." in text
    assert 'action="/goal/release"' not in text  # a new project file's mechanism is nobody's choice
    assert re.findall(r'scope="rowgroup">([^<]+?) <', text) == ["k-anonymity", "k-anonymity by containment"]
    assert text.count("another promise") == 1
    assert "less than asked" not in text
    assert len(spec_in(text)["data"]["values"]) == 3
    assert [int(value) for value in re.findall(r'type="range".*?value="(\d+)"', text)] == [50, 30, 20]


def test_the_step_speaks_of_no_option_of_the_command_line(site):
    path = site.page.job("compare").folder / tasks.STORED_NAME
    kept = json.loads(path.read_bytes())
    with pytest.raises(SchemaError) as refused:
        Slicer().release(toy_containment_table())
    kept["left_out"] = {"slicing": str(refused.value)}
    for result in kept["results"]:
        result["parameters"]["max_seconds"] = 3
        result |= {"status": Status.TIMED_OUT, "reason": str(refused.value)}
    path.write_text(json.dumps(kept))
    shown = site.get("/explore").shown
    assert "searches had a time limit (one of their parameters); with more time they may find" in shown
    assert shown.count("use a mechanism that selects features") >= 2
    assert not re.search(r"--\w|'sfumato | -o ", shown)


def test_sliders_rank_again_and_are_remembered(site):
    status, _, text = site.post("/explore/rank", htmx=True, utility="0", privacy="100", size="0")
    assert status == 200
    assert "<html" not in text
    first = re.search(r'<td class="num">1</td>\s*<th scope="row">([a-z-]+)', text)[1]
    again = site.get("/explore").text
    assert [int(value) for value in re.findall(r'type="range".*?value="(\d+)"', again)] == [0, 100, 0]
    assert re.search(r'<td class="num">1</td>\s*<th scope="row">([a-z-]+)', again)[1] == first
    rows = re.findall(r'<td class="num">(\d+)</td>\s*<th scope="row">.*?<td class="num">([0-9.]+) %</td>', again, re.S)
    by_rank = [float(risk) for _, risk in sorted(rows, key=lambda row: int(row[0]))]
    assert len(by_rank) == 3
    assert by_rank == sorted(by_rank)


@pytest.mark.parametrize("wrong", [{"utility": "0", "privacy": "0", "size": "0"}, {"utility": "x"}, {"utility": "101"}])
def test_wrong_weights_are_refused_beside_the_sliders(site, wrong):
    status, headers, text = site.post(
        "/explore/rank", htmx=True, **{"utility": "1", "privacy": "1", "size": "1", **wrong}
    )
    assert (status, headers["hx-retarget"]) == (422, "#explore-problem")
    assert 'role="alert"' in text
    assert site.page.state.get("weights") is None


def test_weights_go_into_the_project_file(site):
    site.post("/explore/rank", htmx=True, utility="80", privacy="10", size="10")
    status, _, text = site.post("/explore/weights", htmx=True)
    assert status == 200
    assert "now has these weights" in text
    assert list(load_project(site.page.state.project).compare["weights"]) == [0.8, 0.1, 0.1]


def test_a_candidate_goes_into_the_project_file(site):
    key = keys_of(site.get("/explore").text)["greedy-containment k=3 on_infeasible=skip"]
    status, _, text = site.post("/explore/candidate", htmx=True, key=key)
    assert status == 200
    project = load_project(site.page.state.project)
    assert (project.mechanism, dict(project.parameters)) == ("greedy-containment", {"k": 3, "on_infeasible": "skip"})
    assert [row["key"] for row in spec_in(text)["data"]["values"] if "candidate" in row["mark"]] == [key]
    assert 'action="/goal/release"' in text
    assert len(re.findall("badge mark", text)) == 1


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('mechanism = "auto"', 'mechanism = "mondrian"', ""),
        ("weights = [0.5, 0.3, 0.2]", "weights = [1, 0, 0]", ""),
        ('"town" = { role = "quasi-identifier"', '"town" = { role = "other"', "description of the table"),
        ('path = "people.csv"', 'path = "others.csv"', "description of the table"),
    ],
)
def test_a_table_described_otherwise_is_noticed(site, old, new, changed):
    project = site.page.state.project
    text = project.read_text(encoding="utf-8")
    assert old in text
    project.write_text(text.replace(old, new), encoding="utf-8")
    assert_compared_earlier(site, changed)


def assert_compared_earlier(site, changed):
    """Look at the step, and at what is put into it when a candidate is chosen."""
    answer = site.get("/explore")
    key = next(iter(keys_of(answer.text).values()))
    for found in (answer, site.post("/explore/candidate", htmx=True, key=key)):
        assert found.status == 200
        said = " ".join(found.seen.texts.get("compared-earlier", "").split())
        assert (f"Changed since: {changed}. " in said) == bool(said) == bool(changed)


def test_other_data_is_noticed(site):
    assert_compared_earlier(site, "")
    data = site.page.state.project.parent / "people.csv"
    data.write_text(TABLE + "20,f,a,x,y\n")
    assert_compared_earlier(site, "data")


def test_a_hierarchy_written_anew_is_noticed(tmp_path, site):
    project, file = site.page.state.project, tmp_path / "town.csv"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace('"town" = {', '"town" = { hierarchy = "town.csv",'), encoding="utf-8")
    file.write_text("a,*\nb,*\nc,*\n")
    former = site.page.job("compare")
    result, stored = former.result(), (former.folder / tasks.STORED_NAME).read_bytes()
    job = site.job("compare", result={**result, "inputs": noted(project, DESCRIPTION, DATA, HIERARCHY)})
    (job.folder / tasks.STORED_NAME).write_bytes(stored)
    assert_compared_earlier(site, "")
    file.write_text("a,+\nb,+\nc,+\n")
    assert_compared_earlier(site, "hierarchy")


def test_a_selected_release_is_shown_and_nothing_is_written(site):
    before = site.page.state.project.read_bytes()
    key = keys_of(site.get("/explore").text)["mondrian k=10"]
    answer = site.post("/explore/select", htmx=True, key=key)
    assert answer.status == 200
    assert site.page.state.project.read_bytes() == before
    assert [row["key"] for row in spec_in(answer.text)["data"]["values"] if "selected" in row["mark"]] == [key]
    assert 'id="choose-selected"' in site.get("/explore").text
    site.post("/explore/candidate", htmx=True, key=key)
    assert 'id="choose-selected"' not in site.get("/explore").text  # it is the candidate now


@pytest.mark.parametrize("path", ["/explore/candidate", "/explore/short-list", "/explore/select"])
def test_an_unknown_release_is_refused(site, path):
    before = site.page.state.project.read_bytes()
    for key in ("", "no-such", "mondrian k=5"):
        assert site.post(path, htmx=True, key=key).status == 422
    assert site.page.state.project.read_bytes() == before
    assert not site.page.state.get("short_list")


def test_the_short_list_takes_and_gives_back(site):
    key = keys_of(site.get("/explore").text)["mondrian k=10"]
    assert "Empty." not in site.post("/explore/short-list", htmx=True, key=key).text
    text = site.get("/explore").text
    assert re.findall(r'id="star-([^"]+)"[^>]*aria-pressed="true"', text) == [key]
    assert "Empty." in site.post("/explore/short-list", htmx=True, key=key).text


def test_every_form_works_without_a_script(site):
    key = keys_of(site.get("/explore").text)["mondrian k=5"]
    for path, form in {
        "/explore/rank": {"utility": "10", "privacy": "10", "size": "80"},
        "/explore/weights": {},
        "/explore/candidate": {"key": key},
        "/explore/short-list": {"key": key},
    }.items():
        status, headers, _ = site.post(path, **form)
        assert (status, headers["location"]) == (303, "/explore")
    assert load_project(site.page.state.project).mechanism == "mondrian"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("running", "The comparison is running"),
        ("failed", "did not finish"),
        ("cancelled", "did not finish"),
        (None, "No comparison yet"),
    ],
)
def test_without_a_comparison_the_step_says_how_to_get_one(tmp_path, status, words):
    site = ExploreSite(tmp_path, make_project(tmp_path))
    if status:
        site.job("compare", status, error=TaskError("too few rows") if status == "failed" else None)
    text = site.get("/explore").text
    assert words in text
    assert ("/run" if status == "running" else "/goal") in text
    with pytest.raises(TaskError):
        site.post("/explore/candidate", htmx=True, key="x")


def left_on_disk(compared, project, *, n_not_run=0):
    """Put what a comparison has kept into the run folder of another project file of the same table."""
    kept = json.loads((compared[1] / tasks.STORED_NAME).read_bytes())
    kept["table"] = table_fingerprint(load_project(project).read())
    for result in kept["results"][:n_not_run]:
        result |= unmeasured(Point(result["mechanism"], result["parameters"]), Status.NOT_RUN, "it was ended")
    folder = project.parent / "sfumato-compare"
    folder.mkdir()
    (folder / "latest.comparison").write_text(json.dumps(kept))
    return folder


def test_a_comparison_on_disk_is_shown_by_another_server(compared, tmp_path):
    project = make_project(tmp_path)
    left_on_disk(compared, project)
    site = ExploreSite(tmp_path, project)
    answer = site.get("/explore")
    assert "This comparison was made earlier" in answer.text
    assert set(keys_of(answer.text)) == {"mondrian k=5", "mondrian k=10", "greedy-containment k=3 on_infeasible=skip"}
    key = keys_of(answer.text)["mondrian k=10"]
    assert site.post("/explore/candidate", htmx=True, key=key).status == 200
    assert load_project(project).mechanism == "mondrian"


@pytest.mark.parametrize("what", ["another table", "broken", "of another sort"])
def test_what_is_on_disk_of_another_table_or_broken_is_not_shown(compared, tmp_path, what):
    project = make_project(tmp_path)
    file = left_on_disk(compared, project) / "latest.comparison"
    if what == "another table":
        (tmp_path / "people.csv").write_text(TABLE + "20,f,a,x,y\n")
    else:
        file.write_text("{" if what == "broken" else "[]")
    assert "No comparison yet" in ExploreSite(tmp_path, project).get("/explore").text


@pytest.mark.parametrize(("status", "words"), [("running", "Still running."), ("cancelled", "Ended early.")])
def test_a_comparison_that_is_not_finished_shows_what_is(compared, tmp_path, status, words):
    project = make_project(tmp_path)
    left_on_disk(compared, project, n_not_run=1)
    site = ExploreSite(tmp_path, project)
    site.job("compare", status)
    answer = site.get("/explore")
    assert words in answer.text
    assert len(keys_of(answer.text)) == 2
    assert 'mondrian k=5</strong> <span class="badge warn">not run</span>' in answer.text


def test_an_earlier_comparison_is_not_taken_for_one_that_fails(compared, tmp_path):
    project = make_project(tmp_path)
    folder = left_on_disk(compared, project)
    (tmp_path / "people.csv").unlink()
    with pytest.raises(InputError):
        tasks.compare(tmp_path, Told(), project=str(project), asked=["k=5"])
    assert list(folder.iterdir()) == []


def test_a_comparison_without_any_release_gives_the_reasons(site):
    path = site.page.job("compare").folder / tasks.STORED_NAME
    stored = json.loads(path.read_bytes())
    for result in stored["results"]:
        result |= unmeasured(Point(result["mechanism"], result["parameters"]), Status.INFEASIBLE, "too few rows there")
    path.write_text(json.dumps(stored))
    text = site.get("/explore").text
    assert 'class="chart' not in text
    assert "No release is recommended" in text
    assert text.count("too few rows there") == 4


# ---- pictures


def test_pictures_of_a_release_are_shown_and_sent(tmp_path):
    site = ExploreSite(tmp_path, make_project(tmp_path))
    assert "There is no release yet" in site.get("/explore/release").text
    kinds = [("lattice", "done"), ("roc", "utility")]
    listed = [{"name": n, "title": f"Title {n}", "alt": f"Alt {n}", "group": g} for n, g in kinds]
    project = site.page.state.project
    job = site.job("release", result={"pictures": listed, "inputs": noted(project, PROJECT_FILE, DATA)})
    (job.folder / "lattice.svg").write_text("<svg/>")
    text = site.get("/explore/release").text
    assert re.findall(r'<img[^>]* src="([^"]+)" alt="([^"]+)"', text) == [
        ("/pictures/release/lattice.svg", "Alt lattice")
    ]
    assert "Made with earlier settings" not in text
    project.write_text(project.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    assert "Made with earlier settings. Changed since: project file." in site.get("/explore/release").shown
    status, headers, text = site.get("/pictures/release/lattice.svg")
    assert (status, headers["content-type"], text) == (200, "image/svg+xml", "<svg/>")


def test_a_release_without_pictures_says_so(tmp_path):
    site = ExploreSite(tmp_path, make_project(tmp_path))
    site.job("release", result={"pictures": [], "inputs": []})
    assert "nothing that can be drawn" in site.get("/explore/release").text


@pytest.mark.parametrize(
    "path",
    [
        "release/none.svg",
        "release/../job.svg",
        "release/Upper.svg",
        "release/.hidden.svg",
        "release/a/b.svg",
        "release/link.svg",
        "release/result.json",
        "open/lattice.svg",
        "release/%2e%2e%2fsecret.svg",
    ],
)
def test_only_pictures_of_a_job_are_sent(tmp_path, path):
    site = ExploreSite(tmp_path, make_project(tmp_path))
    job = site.job("release", result={"pictures": []})
    for name in ("Upper.svg", ".hidden.svg", "secret.svg"):
        (job.folder / name).write_text("<svg/>")
    (job.folder / "link.svg").symlink_to(job.folder / "secret.svg")
    (job.folder.parent / "job.svg").write_text("<svg/>")
    assert site.get(f"/pictures/{path}").status == 404


# ---- in a real browser


@pytest.mark.slow
def test_a_steward_explores(site):
    """Sliders re-rank live, a click on a point selects it, a button decides, and another posts nothing but itself."""
    site.page.state.update(weights=[1.0, 0.0, 0.0])

    def look(tab):
        drawn = tab.locator("#frontier[data-state=drawn]")
        drawn.wait_for()
        ranks = tab.locator("#explore-table tbody tr:not(.group):not(.as-it-is) td:first-child")
        first = ranks.all_inner_texts()
        scores = tab.locator("#explore-table").inner_text()
        for name, value in (("utility", "0"), ("privacy", "100")):
            tab.locator(f"#weight-{name}").fill(value)
        assert tab.locator("#shows-privacy").inner_text() == "100"
        tab.wait_for_function("before => document.querySelector('#explore-table').innerText !== before", arg=scores)
        assert ranks.all_inner_texts() != first
        drawn.wait_for()
        star = tab.get_by_role("button", name="mondrian k=10 on the short list")
        star.focus()
        tab.keyboard.press("Enter")
        tab.locator(".star[aria-pressed=true]").wait_for()
        assert tab.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
        drawn.wait_for()
        before = site.page.state.project.read_bytes()
        tab.locator("#frontier .mark-symbol.role-mark path[aria-label*='mondrian k=5']").first.click()
        tab.get_by_text("mondrian k=5 is selected.").wait_for()
        assert site.page.state.project.read_bytes() == before
        assert tab.get_by_role("button", name="Make this release").count() == 0
        tab.locator("#choose-selected").click()
        tab.get_by_text("The project file now asks for mondrian k=5.").wait_for()
        tab.get_by_role("button", name="Make candidate: mondrian k=10").press("Enter")
        tab.get_by_text("The project file now asks for mondrian k=10.").wait_for()
        assert tab.evaluate("document.activeElement.innerText") == "candidate"
        tab.get_by_role("button", name="Make candidate: mondrian k=5").click()
        tab.get_by_text("The project file now asks for mondrian k=5.").wait_for()
        drawn.wait_for()
        tab.reload()
        drawn.wait_for()
        assert tab.locator("tr.chosen th").inner_text().startswith("mondrian")
        tab.get_by_role("button", name="Make this release").click()
        tab.wait_for_url("**/goal/release")

    with served(site.app) as origin:
        look_at(origin, "/explore", look)
    assert site.forms == [{}]
    assert dict(load_project(site.page.state.project).parameters) == {"k": 5}


@pytest.mark.slow
def test_a_server_that_is_gone_is_said(site):
    """What htmx sends gets no answer; the words go when there is one again."""

    def look(tab):
        tab.locator("#frontier[data-state=drawn]").wait_for()
        tab.route("**/explore/short-list", lambda route: route.abort())
        tab.locator(".star").first.click()
        said = tab.locator("#server-gone")
        said.wait_for()
        assert "does not answer" in said.inner_text()
        tab.unroute("**/explore/short-list")
        tab.locator(".star").first.click()
        said.wait_for(state="detached")
        tab.route("**/static/icon.svg", lambda route: route.abort())
        tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        said.wait_for()

    expected = ("htmx:sendError", "htmx:afterRequest", "ERR_FAILED", "/explore/short-list", "/static/icon.svg")
    with served(site.app) as origin:
        look_at(origin, "/explore", look, expected=expected)
