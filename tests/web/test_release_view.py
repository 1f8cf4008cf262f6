"""Release: downloads are the very files, saving replaces nothing unasked, and another format is made again."""

import json
import re
import shutil
from io import BytesIO

import numpy as np
import pytest
from matplotlib.image import imread
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from sfumato.project.file import load_project
from sfumato.table.io.formats import writable_format_of
from sfumato.web.project_files import OUTPUT_FORMATS
from sfumato.web.tasks import release as tasks
from sfumato.web.views import measured, release
from sfumato.web.views import measured as pictures
from waiting import until
from web.asking import Site
from web.real_browser import STATIC, look_at, served
from web.release_pages import JOB, Pages, is_same, make, write_project
from web.standing_in import JobsAtOnce, Told, end, start_for

LIMIT = 120.0  # seconds after which a test gives up


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    project = write_project(folder, "mondrian", "k = 5", n_rows=80)
    make(project, folder / "server" / "jobs" / JOB)
    return folder


@pytest.fixture
def pages(made):
    return Pages(made / "server", made / "sfumato.toml")


@pytest.fixture
def cleared(made, pages):
    """Pages over a project folder that holds nothing but project and data afterwards."""
    yield pages
    pages.page.jobs.close()
    for path in made.glob("re*"):
        path.unlink()


def test_page_lists_files_with_size_and_hash(pages):
    page = pages.get("/release")
    assert page.status == 200
    for file in (pages.page.job("release").result()["files"][what] for what in ("table", "manifest", "report")):
        assert file["sha256"] in page.shown
        assert file["name"] in page.shown


def test_the_release_in_five_lines_stands_above_the_files_with_what_should_make_one_stop(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 80", n_rows=80)
    verdict = make(project, tmp_path / "server" / "jobs" / JOB)["summary"]["verdict"]
    page = Pages(tmp_path / "server", project).get("/release")
    card = page.text[page.text.index('id="verdict"') : page.text.index('id="files"')]
    assert re.findall("<dt>(.*?)</dt>", card) == [
        "Promised",
        "Prediction",
        "Lost columns",
        "Re-identified",
        "Not covered",
    ]
    assert verdict["warnings"]
    assert card.count('<p class="problem"><strong>Warning:</strong>') == len(verdict["warnings"])
    assert all(sentence in page.shown for sentence in (*verdict["headed"].values(), *verdict["warnings"]))


def test_the_audited_file_can_be_downloaded_before_risk_is_measured(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    seen = []

    class Looking(Told):
        def first_result(self):
            seen.append(json.loads((tmp_path / "made" / "first-result.json").read_text()))

    (tmp_path / "made").mkdir()
    tasks.make(tmp_path / "made", Looking(), project=str(project), quick=True)
    pages = Site(tmp_path / "page", measured, release, project=project, jobs=JobsAtOnce(tmp_path / "page" / "jobs"))
    job = start_for(pages.page, "release")
    shutil.copytree(tmp_path / "made", job.folder, dirs_exist_ok=True)
    job._hear({"has_result": True})

    assert is_same(pages.get("/release/files/table").body, (job.folder / "release.csv").read_bytes())
    page = pages.get("/release")
    assert "Risk is being measured" in page.shown
    assert page.seen.by_id["measuring"]["hx-get"] == "/release/measuring?what=risk"
    assert "The report has no risk in it yet" in page.shown
    assert "Not yet measured: is being measured" in pages.get("/risk").shown
    assert pages.get("/release/measuring?what=risk").status == 204
    assert pages.get("/release/measuring?what=risk&what=utility").headers["hx-refresh"] == "true"
    end(job, result=seen[0])
    assert "Not measured: measuring ended before" in pages.get("/risk").shown


def test_what_is_there_is_shown_and_saved_while_utility_is_being_measured(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    first = make(project, tmp_path / "jobs" / "job1") | {"to_come": ["utility"]}
    shutil.move(tmp_path / "jobs" / "job1", tmp_path / "made")
    pages = Site(tmp_path / "page", measured, release, project=project, jobs=JobsAtOnce(tmp_path / "page" / "jobs"))
    job = start_for(pages.page, "release")
    shutil.copytree(tmp_path / "made", job.folder, dirs_exist_ok=True)
    assert "The release is being made" in pages.get("/release").shown
    (job.folder / "result.json").unlink()
    (job.folder / "first-result.json").write_text(json.dumps(first))
    job._hear({"has_result": True})

    page = pages.get("/release")
    assert "Prediction is being measured" in page.shown
    assert page.seen.by_id["measuring"]["hx-get"] == "/release/measuring?what=utility"
    assert "Not yet measured: is being measured" in pages.get("/utility").shown
    assert "checks ran against the original" in pages.get("/risk").shown
    assert pages.get("/pictures/release/class-sizes.svg").status == 200
    assert pages.get("/release/measuring?what=utility").status == 204
    assert pages.post("/release/save").headers["location"] == "/release#save"
    assert is_same((tmp_path / "release.csv").read_bytes(), (job.folder / "release.csv").read_bytes())

    end(job, result=first)
    assert "measuring ended before" in pages.get("/release").shown
    assert pages.get("/release/measuring?what=utility").headers["hx-refresh"] == "true"
    end(job, result=first | {"to_come": []})
    assert "measuring" not in pages.get("/release").seen.by_id


@pytest.mark.parametrize("what", ["table", "manifest", "report"])
def test_downloads_are_the_files_themselves(pages, what):
    answer, job = pages.get(f"/release/files/{what}"), pages.page.job("release")
    file = job.result()["files"][what]
    assert answer.status == 200
    assert is_same(answer.body, (job.folder / file["name"]).read_bytes())
    assert answer.headers["content-disposition"] == f'attachment; filename="{file["name"]}"'
    assert answer.headers["content-length"] == str(file["size"])


@pytest.mark.parametrize(
    "what", ["project", "data", "key", "result", "..", "columns.sqlite", "job.json", "%2e%2e%2fjob.json"]
)
def test_nothing_else_can_be_downloaded(pages, what):
    assert pages.get(f"/release/files/{what}").status == 404


def test_private_data_comes_with_its_project_file(made):
    pages = Pages(made / "server", made / "sfumato.toml", is_private=True)
    try:
        assert is_same(pages.get("/release/files/project").body, (made / "sfumato.toml").read_bytes())
        assert is_same(pages.get("/release/files/data").body, (made / "stays.csv").read_bytes())
        page = pages.get("/release")
        assert is_same(pages.get("/release/files/key").body, (made / "sfumato.key").read_bytes())
        assert "put both into a folder with stays.csv" in page.shown
        assert "/release/save" not in page.text
        assert pages.post("/release/save").status == 404
    finally:
        pages.page.state.update(is_private=False)


def test_command_and_python_are_shown_to_be_copied(pages):
    page, result = pages.get("/release"), pages.page.job("release").result()
    for name, what in (("as-command", "command"), ("as-python", "python"), ("as-report", "report_command")):
        shown = re.search(rf'<code id="{name}">(.*?)</code>', page.text, re.S)[1]
        assert shown.replace("&#39;", "'").strip() == result[what].strip()
        assert f'data-copy-target="#{name}"' in page.text
    assert result["command"] == "sfumato release --project sfumato.toml -o release.csv"


def test_saving_writes_beside_the_project_file_once(made, cleared):
    assert cleared.post("/release/save").headers["location"] == "/release#save"
    folder = cleared.page.job("release").folder
    for name in ("release.csv", "release.csv.manifest.json", "report.html"):
        assert is_same((made / name).read_bytes(), (folder / name).read_bytes())
    assert f"Saved in {made}" in cleared.get("/release").shown
    (made / "release.csv").write_text("mine")
    refused = cleared.post("/release/save")
    assert refused.status == 422
    assert "tick 'Replace files that exist'" in refused.shown
    assert 'aria-describedby="problem-save"' in refused.text
    assert (made / "release.csv").read_text() == "mine"
    assert cleared.post("/release/save", replace="yes").status == 303
    assert is_same((made / "release.csv").read_bytes(), (folder / "release.csv").read_bytes())


def test_another_format_is_written_to_the_project_and_made(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    make(project, tmp_path / "server" / "jobs" / JOB)
    pages = Pages(tmp_path / "server", project)
    try:
        assert pages.post("/release/format", format=".exe").status == 422
        assert load_project(project).output == tmp_path / "release.csv"
        assert pages.post("/release/format", format=".parquet").headers["location"] == "/run"
        assert load_project(project).output == tmp_path / "release.parquet"
        job = pages.page.job("release")
        assert job.id != JOB
        assert "See how far it is" in pages.get("/release").shown
        assert pages.post("/release/format", format=".csv").headers["location"] == "/run"
        until(lambda: job.is_over, LIMIT)
        assert job.status == "done", job.error
        assert pages.get("/release/files/table").body[:4] == b"PAR1"
        assert "Made with earlier settings" not in pages.get("/release").shown
    finally:
        pages.page.jobs.close()


def test_two_tabs_at_the_same_moment_make_one_release(tmp_path):
    project = write_project(tmp_path, "mondrian", "k = 5", n_rows=60)
    make(project, tmp_path / "server" / "jobs" / JOB)
    pages = Pages(tmp_path / "server", project)
    pages.page.jobs = JobsAtOnce(tmp_path / "server" / "jobs")

    answers = pages.post_twice("/release/format", {"format": ".tsv"})

    assert [answer.headers["location"] for answer in answers] == ["/run", "/run"]
    assert [task for task, _ in pages.page.jobs.started] == ["release.make"]


def test_nothing_is_saved_while_it_is_being_made_anew(made, cleared):
    with cleared.page.only_one("release"):
        refused = cleared.post("/release/save")
    assert refused.status == 422
    assert "made again" in refused.shown
    assert not (made / "release.csv").exists()


def test_a_format_that_the_output_has_already_is_not_offered(pages):
    offered = re.findall(r'<option value="(.*?)">', pages.get("/release").text)
    assert offered == [suffix for suffix in OUTPUT_FORMATS if suffix != ".csv"]
    assert {".sav", ".dta", ".jsonl", ".xlsx"} <= set(offered)
    for suffix in OUTPUT_FORMATS:
        assert writable_format_of(f"release{suffix}")


def test_a_file_that_has_gone_is_not_found(made, tmp_path):
    shutil.copytree(made / "server", tmp_path / "server")
    pages = Pages(tmp_path / "server", made / "sfumato.toml")
    (pages.page.job("release").folder / "release.csv").unlink()
    assert pages.get("/release/files/table").status == 404
    assert pages.get("/release").status == 200


@pytest.mark.slow
def test_pictures_do_not_glare_in_the_dark(made):
    static = Mount("/static", StaticFiles(directory=STATIC))
    site = Site(made / "server", measured, pictures, project=made / "sfumato.toml", routes=[static])
    site.page.state.update(jobs={"release": JOB})

    def look(tab):
        drawn = tab.locator("img.picture").first
        drawn.scroll_into_view_if_needed()
        tab.wait_for_function("() => document.querySelector('img.picture').naturalWidth > 0")
        shown = {}
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            shown[scheme] = float(np.median(imread(BytesIO(drawn.screenshot()))[:, :, :3]))
        return shown

    with served(site.app) as origin:
        shown = look_at(origin, "/risk", look)
    assert shown["light"] == 1
    assert 0.6 < shown["dark"] < 0.9
