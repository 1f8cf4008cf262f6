"""What a result was made from: every change of it is noticed, and a changed data file is no dead end."""

import asyncio
import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.project.describe import describe_to_project
from sfumato.project.edit import toml_value
from sfumato.project.file import load_project
from sfumato.web.inputs import DATA, DESCRIPTION, HIERARCHY, PROJECT_FILE, changed_since, content_of, noted
from sfumato.web.jobs.process import TaskError
from sfumato.web.views import columns, goal, opening, run
from web.asking import Site
from web.standing_in import PROJECT, JobsAtOnce, people, small_project

ALL = (PROJECT_FILE, DESCRIPTION, DATA, HIERARCHY)
WITH_FILES = (
    PROJECT.replace('"town" = { role = "quasi-identifier",', '"town" = { hierarchy = "h/town.csv", role = "other",')
    + '[release.parameters.hierarchies]\nage = "h/age.csv"\n'
    + '[compare.grid.global-recoding.hierarchies]\nsex = "h/sex.csv"\n'
)
BUTTON = "Use the changed file"


@pytest.fixture
def project(tmp_path):
    path = small_project(tmp_path / "work", WITH_FILES)
    (path.parent / "h").mkdir()
    for name in ("town", "age", "sex"):
        (path.parent / "h" / f"{name}.csv").write_text(f"{name},*\n")
    return path


def test_everything_is_noted_with_its_place(project):
    found = [(one["what"], one["path"]) for one in noted(project, *ALL)]

    here = project.parent
    files = [(HIERARCHY, str(here / "h" / name)) for name in ("town.csv", "age.csv", "sex.csv")]
    assert found == [
        (PROJECT_FILE, str(project)),
        (DESCRIPTION, str(project)),
        (DATA, str(here / "people.csv")),
        *files,
    ]


def test_nothing_has_changed_while_nothing_changes(project):
    before = noted(project, *ALL)
    assert changed_since(before, project) == changed_since(before, None) == []
    project.write_bytes(project.read_bytes())
    (project.parent / "h" / "age.csv").write_text("age,*\n")
    assert changed_since(before, project) == []


@pytest.mark.parametrize("name", ["town", "age", "sex"])
def test_a_hierarchy_that_is_written_anew_is_noticed_even_at_the_same_size_and_time(project, name):
    file = project.parent / "h" / f"{name}.csv"
    before, was = noted(project, *ALL), file.stat()
    file.write_text(f"{name},+\n")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert changed_since(before, project) == [HIERARCHY]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("k = 5", "k = 7", [PROJECT_FILE]),
        ("# mine", "# yours", [PROJECT_FILE]),
        ('"age" = { role = "quasi-identifier"', '"age" = { role = "other"', [PROJECT_FILE, DESCRIPTION]),
        ('path = "people.csv"', 'path = "people.csv"\nencoding = "latin-1"', [PROJECT_FILE, DESCRIPTION]),
        ("[data]", "[data", [PROJECT_FILE, DESCRIPTION]),
    ],
)
def test_what_the_project_file_says_is_noticed(project, old, new, expected):
    before = noted(project, *ALL)
    text = project.read_text()
    assert old in text
    project.write_text(text.replace(old, new))
    assert changed_since(before, project) == expected


@pytest.mark.parametrize("change", ["longer", "newer", "gone"])
def test_other_data_is_noticed(project, change):
    before, data = noted(project, *ALL), project.parent / "people.csv"
    if change == "longer":
        data.write_text(data.read_text() + "1,f,a,x,y\n")
    elif change == "newer":
        os.utime(data, ns=(1, 1))
    else:
        data.unlink()
    assert changed_since(before, project) == [DATA]


def test_another_project_file_is_another_one_even_with_the_same_text(project, tmp_path):
    other = tmp_path / "other.toml"
    other.write_bytes(project.read_bytes())
    assert changed_since(noted(project, *ALL), other) == [PROJECT_FILE, DESCRIPTION]
    assert changed_since(noted(project, DATA), other) == []


def test_files_that_appear_later_are_noticed(tmp_path):
    path = small_project(tmp_path / "work", WITH_FILES)
    before = noted(path, HIERARCHY)
    assert changed_since(before, path) == []
    (path.parent / "h").mkdir()
    (path.parent / "h" / "sex.csv").write_text("f,*\n")
    assert changed_since(before, path) == [HIERARCHY]


TOML = st.recursive(
    st.integers() | st.text(max_size=3).map(lambda text: text.encode("ascii", "replace").decode()),
    lambda inner: st.dictionaries(
        st.sampled_from(["data", "columns", "path", "hierarchy", "release", "parameters", "hierarchies", "grid", "a"]),
        inner,
        max_size=3,
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["data", "columns", "release", "compare"]), TOML, max_size=4))
def test_a_project_file_of_any_shape_can_be_noted(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "sfumato.toml"
    path.write_text("".join(f"{name} = {toml_value(value)}\n" for name, value in content.items()))
    assert content_of(path) == tomllib.loads(path.read_text())
    before = noted(path, *ALL)
    assert changed_since(before, path) == []


@pytest.mark.parametrize("content", [None, b"[data", b"\xff"])
def test_a_file_that_is_no_project_is_noted_all_the_same(tmp_path, content):
    path = tmp_path / "sfumato.toml"
    if content is not None:
        path.write_bytes(content)
    before = noted(path, *ALL)
    assert content_of(path) is None
    assert changed_since(before, path) == []
    path.write_text(PROJECT)
    assert changed_since(before, path) == [PROJECT_FILE, DESCRIPTION]


# ---- data that changed under the page


class ChangingSite(Site):
    """A page over a table that was opened from a project file with the SHA-256 of the data, as init writes it."""

    def __init__(self, folder):
        self.data = folder / "work" / "people.csv"
        self.data.parent.mkdir()
        self.data.write_text(people())
        describe_to_project(self.data, folder / "work" / "sfumato.toml")
        super().__init__(folder / "page", opening, columns, goal, run, jobs=JobsAtOnce(folder / "page" / "jobs"))
        self.open()

    def open(self):
        return self.post("/open", how="path", path=str(self.data))

    @property
    def sha256(self):
        return load_project(self.page.state.project).data_sha256

    def add_row(self, row="20,f,a,x,y\n"):
        self.data.write_text(self.data.read_text() + row)


@pytest.fixture
def site(tmp_path):
    return ChangingSite(tmp_path)


def test_counts_of_a_file_that_changed_are_said_to_be_old_and_can_be_read_again(site):
    assert "data-changed" not in site.get("/columns").seen.by_id
    former = site.sha256
    site.add_row()
    answer = site.get("/columns")
    assert "has changed since it was opened" in answer.seen.texts["data-changed"]
    assert "60 rows" in answer.shown
    assert BUTTON in answer.shown

    assert site.post("/columns/data").headers["location"] == "/columns"
    answer = site.get("/columns")
    assert "61 rows" in answer.shown
    assert "data-changed" not in answer.seen.by_id
    assert site.sha256 not in (former, None)
    load_project(site.page.state.project).read()


def test_roles_and_remarks_stay_when_the_changed_file_is_used(site):
    site.post("/columns/roles", {"only": "1", "role-1": "other"})
    before = site.page.state.project.read_text()
    former = site.sha256
    site.add_row()
    site.post("/columns/data")
    assert site.page.state.project.read_text() == before.replace(former, site.sha256)


def test_a_project_without_a_hash_gets_none(site):
    path = site.page.state.project
    text = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("sha256"))
    path.write_text(text)
    site.add_row()
    site.post("/columns/data")
    assert "61 rows" in site.get("/columns").shown
    assert path.read_text() == text


def test_a_file_that_no_longer_fits_changes_nothing(site):
    before = site.page.state.project.read_bytes()
    site.data.write_text("other,names\n1,2\n")
    with pytest.raises(TaskError):
        site.post("/columns/data")
    assert site.page.state.project.read_bytes() == before
    answer = site.get("/columns")
    assert answer.status == 200
    assert "data-changed" in answer.seen.by_id


def test_the_goal_offers_the_changed_file(site):
    assert BUTTON not in site.get("/goal").text
    site.add_row()
    answer = site.get("/goal")
    assert "SHA-256 differs" in answer.shown
    assert BUTTON in answer.shown
    site.post("/columns/data")
    answer = site.get("/goal")
    assert "of 61" in answer.shown
    assert BUTTON not in answer.shown


def test_opening_a_file_that_changed_offers_it(site):
    site.add_row()
    site.open()
    answer = site.get("/open")
    assert "SHA-256 differs" in answer.shown
    assert BUTTON in answer.shown
    site.post("/columns/data")
    assert "61 rows" in site.get("/columns").shown
    assert BUTTON not in site.get("/open").text


def test_another_problem_does_not_offer_it(site):
    site.data.unlink()
    site.open()
    assert BUTTON not in site.get("/open").text
    assert BUTTON not in site.get("/goal").text


@pytest.fixture
def slowly(site, monkeypatch):
    """Let others act while a task is called; gives what they do."""
    meanwhile, call = [], site.page.jobs.call

    async def called(task, /, **arguments):
        await asyncio.sleep(0.01)  # not waited for: what is claimed holds in whatever order they act
        result = await call(task, **arguments)
        for act in meanwhile:
            act()
        return result

    monkeypatch.setattr(site.page.jobs, "call", called)
    return meanwhile


def test_a_file_that_is_being_read_is_not_read_twice(site, slowly):
    site.page.jobs.waits.add("opening.open_path")
    site.add_row()
    site.post_twice("/columns/data", {})
    site.post("/columns/data")
    assert [task for task, _ in site.page.jobs.started].count("opening.open_path") == 2  # at first, and once again


def test_a_table_that_was_opened_meanwhile_stays(site, slowly, tmp_path):
    slowly.append(lambda: site.page.state.update(project=str(tmp_path / "other.toml")))
    opened = site.page.job("open")
    site.add_row()
    site.post("/columns/data")
    assert site.page.job("open") is opened


def test_without_a_table_there_is_nothing_to_read_again(tmp_path):
    bare = Site(tmp_path / "page", columns, jobs=JobsAtOnce(tmp_path / "page" / "jobs"))
    with pytest.raises(TaskError):
        bare.post("/columns/data")
