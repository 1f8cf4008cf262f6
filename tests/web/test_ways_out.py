"""Whatever happens to the project file or the data meanwhile: every step says what is wrong and leads out of it."""

import re

import pytest

from sfumato.cli.main import COMMANDS
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.web.goal_guarantees import goal_guarantees
from sfumato.web.server import create_app
from sfumato.web.settings import PageSettings
from web.asking import HTMX, ask
from web.real_browser import STATIC
from web.standing_in import PROJECT, JobsAtOnce, small_project

TOKEN = "a-secret-of-many-characters"
HOST = "127.0.0.1:8050"
COMPARED = (
    PROJECT
    + """
[compare]
classifiers = ["naive-bayes"]

[compare.grid.mondrian]
k = [5]
"""
)
STEPS = (
    "/open",
    "/columns",
    "/columns/1",
    "/goal",
    "/run",
    "/explore",
    "/utility",
    "/risk",
    "/release",
    "/collaborate",
)
GOAL = {"mechanism": "mondrian", "shown": "mondrian", "promise-k-anonymity": "5", "target": "paid", "quick": "yes"}


class Browser:
    """Somebody who was let in, with a table that was opened, compared and released."""

    def __init__(self, folder):
        self.project = small_project(folder / "home", COMPARED)
        (folder / "page").mkdir()
        self.app = create_app(PageSettings(port=8050, token=TOKEN), folder / "page")
        self.page = self.app.state.page
        self.page.jobs = JobsAtOnce(self.page.folder / "jobs")
        self.page.jobs._folder.mkdir(exist_ok=True)
        self.page.jobs.waits = set()
        let_in = ask(self.app, "GET", f"/?token={TOKEN}", headers={"host": HOST})
        self.headers = {"host": HOST, "origin": f"http://{HOST}", "cookie": let_in.headers["set-cookie"].split(";")[0]}
        self.post("/open", how="path", path=str(self.project))
        assert self.get("/goal").status == 200
        assert self.post("/goal/release", **GOAL).headers["location"] == "/run"
        assert self.post("/goal/compare", **GOAL).headers["location"] == "/run"
        assert {purpose: self.page.job(purpose).status for purpose in ("open", "release", "compare")} == dict.fromkeys(
            ("open", "release", "compare"), "done"
        )

    def get(self, url, **headers):
        return ask(self.app, "GET", url, headers={**self.headers, **headers})

    def post(self, url, **form):
        return ask(self.app, "POST", url, form=form, headers=self.headers)


def main_of(answer):
    return answer.text.partition("<main")[2].partition("</main>")[0]


def links_in(answer):
    return re.findall(r'href="([^"#]+)', main_of(answer))


def problems_in(answer):
    return re.findall(r'class="problem".*?</div>', main_of(answer), re.DOTALL)


def break_toml(browser):
    browser.project.write_text(PROJECT.replace('path = "people.csv"', 'path = "people.csv'), encoding="utf-8")


DAMAGES = {
    "broken TOML": break_toml,
    "project file deleted": lambda browser: browser.project.unlink(),
    "data deleted": lambda browser: (browser.project.parent / "people.csv").unlink(),
}
REMEDIES = {
    "broken TOML": "fix line 3 of sfumato.toml in a text editor",
    "project file deleted": "open the data file on the step Open, with a project file that does not exist yet",
    "data deleted": "",
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    return Browser(tmp_path_factory.mktemp("ways-out"))


@pytest.fixture(params=DAMAGES)
def damaged(request, browser):
    files = {path: path.read_bytes() for path in browser.project.parent.iterdir() if path.is_file()}
    DAMAGES[request.param](browser)
    yield browser, request.param
    for path, content in files.items():
        path.write_bytes(content)


@pytest.mark.parametrize("step", STEPS)
def test_every_step_says_what_is_wrong_and_leads_out(damaged, step):
    browser, damage = damaged
    answer = browser.get(step)
    assert answer.status in (200, 422)
    if answer.status == 422:
        assert {step, "/open"} <= set(links_in(answer))
        assert "Try again" in answer.shown
        assert REMEDIES[damage] in answer.shown
    if problems_in(answer):
        assert "/open" in links_in(answer)
    assert "'sfumato " not in answer.shown
    assert "this is a bug" not in answer.shown


@pytest.mark.parametrize("damage", ["broken TOML", "project file deleted"])
@pytest.mark.parametrize("step", ["/columns", "/columns/1", "/explore"])
def test_steps_that_read_the_project_file_cannot_be_shown_without_it(browser, damage, step):
    text = browser.project.read_bytes()
    DAMAGES[damage](browser)
    try:
        assert browser.get(step).status == 422
        fragment = browser.get(step, **HTMX)
        assert fragment.status == 422
        assert "<html" not in fragment.text
    finally:
        browser.project.write_bytes(text)
    assert browser.get(step).status == 200


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_release_without_its_files_is_refused_in_words(browser, damage):
    files = {path: path.read_bytes() for path in browser.project.parent.iterdir() if path.is_file()}
    DAMAGES[damage](browser)
    try:
        answer = browser.post("/goal/release")
        shown = browser.get("/run") if answer.status == 303 else answer
    finally:
        for path, content in files.items():
            path.write_bytes(content)
    assert problems_in(shown)
    assert links_in(shown)
    assert browser.post("/goal/release", **GOAL).status == 303
    assert browser.page.job("release").status == "done"


def test_what_cannot_be_asked_again_leads_back_to_its_step(browser):
    for address, back in {"/goal/release": "/goal", "/columns/999": "/columns", "/what": None}.items():
        answer = browser.get(address)
        assert answer.status in (404, 405)
        assert links_in(answer) == [*([back] if back else []), "/open"]


def test_after_a_refused_change_the_step_is_offered_not_the_address_of_the_form(browser):
    text = browser.project.read_bytes()
    break_toml(browser)
    try:
        answer = browser.post("/columns/roles", only="1", **{"role-1": "other"})
    finally:
        browser.project.write_bytes(text)
    assert answer.status == 422
    assert links_in(answer) == ["/columns", "/open"]


def test_a_target_that_is_not_there_is_said_beside_its_field(browser):
    answer = browser.post("/goal/release", **GOAL | {"target": "nobody"})
    assert answer.status == 422
    assert "nobody" in answer.seen.texts["problem-target"]
    assert answer.seen.by_id["target"]["aria-errormessage"] == "problem-target"


def test_an_output_that_cannot_be_written_is_said_in_the_words_of_the_page(browser):
    text = browser.project.read_bytes()
    browser.project.write_bytes(text.replace(b'"release.csv"', b'"release.doc"'))
    try:
        assert browser.post("/goal/release", **GOAL).status == 303
        shown = [browser.get(step).shown for step in ("/run", "/goal")]
    finally:
        browser.project.write_bytes(text)
    assert all("output in the project file, under [release], must be a file name that ends in" in one for one in shown)
    assert browser.post("/goal/release", **GOAL).status == 303


# ---- no word of the command line, but in blocks that say how to do the same there


OF_COMMAND_LINE = re.compile(
    rf"(?:^|[\s(\[\"'`>])--[a-z][a-z-]+|\bsfumato (?:{'|'.join(COMMANDS)})\b"
    r"|\bcommand line\b|\bexit code\b|\bstd(?:in|out|err)\b",
    re.M,
)
BLOCK = re.compile(r"<(section|details|p)\b[^>]* data-command-line.*?</\1>", re.DOTALL)
SOURCES = [*(STATIC.parent / "templates").glob("*.html"), *STATIC.glob("*.js")]
ADDRESSES = [*STEPS, "/definitions", "/explore/release", "/goal/today", "/utility?column=none", "/what"]


def of_command_line(text):
    return OF_COMMAND_LINE.findall(BLOCK.sub("", text).replace("var(--", "var("))  # a colour of the style sheet


def test_words_of_the_command_line_would_be_found():
    wrong = ("use --force", "<p>--force", "run 'sfumato release'", "on the command line", "ends with exit code 4")
    assert all(of_command_line(text) for text in wrong)
    assert not of_command_line("<p data-command-line><code>sfumato release --force</code></p> sfumato makes a release")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_template_has_a_word_of_the_command_line(path):
    assert not of_command_line(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("step", ADDRESSES)
def test_no_step_shows_a_word_of_the_command_line(browser, step):
    answer = browser.get(step)
    assert answer.text
    assert not of_command_line(answer.text)


def test_steps_of_a_damaged_project_show_no_word_of_the_command_line(damaged):
    browser, _ = damaged
    for step in STEPS:
        assert not of_command_line(browser.get(step).text), step


def test_no_mechanism_is_described_by_words_of_the_command_line(browser):
    for name in registered_mechanisms():
        fields = browser.get(f"/goal/fields?mechanism={name}&shown={name}")
        assert f"Settings of {name}" in fields.text or name == "mdav"  # which has k alone, a guarantee
        assert not of_command_line(fields.text)


def test_no_refusal_of_the_goal_has_a_word_of_the_command_line(browser):
    """Every field of every mechanism, with something that cannot be."""
    refused = 0
    for name, info in registered_mechanisms().items():
        wrong = {f"set-{one.name}": "no such thing" for one in info.parameters}
        answer = browser.post("/goal/release", mechanism=name, shown=name, target="", **wrong)
        refused += answer.status == 422
        assert not of_command_line(answer.text)
    levels = {f"promise-{one.kind}": "-7" for one in goal_guarantees()}
    for address in ("/goal/release", "/goal/compare"):
        assert not of_command_line(browser.post(address, **GOAL | levels).text)
    assert refused == len(registered_mechanisms())
