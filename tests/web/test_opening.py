"""The step Open: paths, uploads and the demo table, and what is wrong with them beside the field."""

from __future__ import annotations

import json
import re

import pytest

from sfumato.cli.main import run
from sfumato.errors import InputError, InvalidParameterError
from sfumato.project.edit import ProjectChanges, edit_project
from sfumato.project.file import load_project
from sfumato.schema import Kind, Role
from sfumato.web.inputs import DATA, note
from sfumato.web.tasks import columns as column_tasks
from sfumato.web.tasks import opening as tasks
from sfumato.web.views import opening
from sfumato.web.views.opening import start_opening
from waiting import until
from web.asking import Site, shown
from web.standing_in import JobsAtOnce, Told, start_for

PEOPLE = "age,sex,paid\n" + "".join(f"{20 + n % 9},{'fm'[n % 2]},{'yn'[n % 3 == 0]}\n" for n in range(40))


class OpenSite(Site):
    """A page with the step Open alone."""

    def __init__(self, folder, **settings):
        super().__init__(folder / "page", opening, jobs=JobsAtOnce(folder / "page" / "jobs"), **settings)

    def problem(self, place):
        """Find what the step says beside a field, which must then be marked."""
        status, _, text = self.get("/open")
        assert status == 200
        found = re.search(rf'id="problem-{place}">(.*?)</div>', text, re.DOTALL)
        others = re.findall(r'id="problem-([a-z]+)"', text)
        assert others == ([place] if found else []), "a problem stands beside another field"
        if place != "demo":
            field = re.search(rf'<input id="open-{place}".*?>', text, re.DOTALL)[0]
            assert ('aria-invalid="true"' in field) == (found is not None)
        return shown(found[1]) if found else None


@pytest.fixture
def site(tmp_path):
    return OpenSite(tmp_path)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


class TestOpenPath:
    def test_a_new_table_is_described_as_init_describes_it(self, people, tmp_path, capsys):
        told = Told()

        result = tasks.open_path(tmp_path, told, project=str(tmp_path / "sfumato.toml"), data=str(people))

        assert run(["init", str(people), "-o", str(tmp_path / "init.toml")]) == 0, capsys.readouterr().err
        assert (tmp_path / "sfumato.toml").read_bytes() == (tmp_path / "init.toml").read_bytes()
        assert json.loads(json.dumps(result)) == result
        columns = result.pop("columns")
        assert result == {
            "project": str(tmp_path / "sfumato.toml"),
            "data_name": "people.csv",
            "n_rows": 40,
            "n_columns": 3,
            "is_binary": False,
            "inputs": [note(DATA, people)],
        }
        assert [(c["number"], c["name"], c["guessed_role"]) for c in columns] == [
            (1, "age", "quasi-identifier"),
            (2, "sex", "quasi-identifier"),
            (3, "paid", "target"),
        ]
        assert [done for done, _, _ in told.steps] == [0, 1, 3]
        assert {total for _, total, _ in told.steps} == {3}

    def test_a_project_that_exists_is_kept_and_read_by(self, people, tmp_path):
        project = tmp_path / "sfumato.toml"
        tasks.open_path(tmp_path, Told(), project=str(project), data=str(people))
        edit_project(project, ProjectChanges(roles={"sex": Role.OTHER}, kinds={"age": Kind.CATEGORICAL}))
        before = project.read_bytes()

        by_both = tasks.open_path(tmp_path, Told(), project=str(project), data=str(people))
        alone = tasks.open_path(tmp_path, Told(), project=str(project))

        assert by_both == alone
        assert by_both["columns"][0]["kind"] == "categorical"
        assert by_both["columns"][1]["guessed_role"] == "quasi-identifier"
        assert project.read_bytes() == before

    def test_a_project_of_other_data_is_refused(self, people, tmp_path):
        project = tmp_path / "sfumato.toml"
        tasks.open_path(tmp_path, Told(), project=str(project), data=str(people))
        other = tmp_path / "other.csv"
        other.write_text(PEOPLE)

        with pytest.raises(InputError, match=r"sfumato\.toml: describes another data file"):
            tasks.open_path(tmp_path, Told(), project=str(project), data=str(other))
        link = tmp_path / "link.csv"
        link.symlink_to(people)
        assert tasks.open_path(tmp_path, Told(), project=str(project), data=str(link))["n_rows"] == 40

    def test_reading_options_go_into_a_new_project_and_not_into_an_old_one(self, tmp_path):
        data, project = tmp_path / "d.csv", tmp_path / "p.toml"
        data.write_bytes("1;é;-\n2;è;x\n".encode("latin-1"))
        reading = {"delimiter": ";", "encoding": "latin-1", "header": False, "missing": ["-"]}

        result = tasks.open_path(tmp_path, Told(), project=str(project), data=str(data), reading=reading)

        assert [column["name"] for column in result["columns"]] == ["c1", "c2", "c3"]
        assert result["columns"][2]["n_missing"] == 1
        options = load_project(project).options
        assert (options.delimiter, options.encoding, options.header, options.missing) == (";", "latin-1", False, ("-",))
        with pytest.raises(InvalidParameterError, match="the project file says them already"):
            tasks.open_path(tmp_path, Told(), project=str(project), data=str(data), reading=reading)

    def test_columns_that_mix_numbers_and_text_are_read_as_init_reads_them(self, tmp_path):
        import xlsxwriter

        book = xlsxwriter.Workbook(tmp_path / "d.xlsx")
        sheet = book.add_worksheet()
        for row, value in enumerate(["dose", *range(40), "much"]):
            sheet.write(row, 0, value)
        book.close()

        result = tasks.open_path(tmp_path, Told(), project=str(tmp_path / "p.toml"), data=str(tmp_path / "d.xlsx"))

        assert "kind categorical because of the others" in result["columns"][0]["reason"]
        assert tasks.open_path(tmp_path, Told(), project=str(tmp_path / "p.toml"))["n_rows"] == 41

    def test_features_of_a_sparse_table_are_shown_with_its_other_columns(self, tmp_path):
        (tmp_path / "mail.svm").write_text("1 1:1 3:1\n-1 2:1\n1 1:1\n")

        result = tasks.open_path(tmp_path, Told(), project=str(tmp_path / "p.toml"), data=str(tmp_path / "mail.svm"))

        assert result["is_binary"]
        assert result["n_columns"] == len(result["columns"]) == 4

    @pytest.mark.parametrize(("name", "problem"), [("absent.csv", "does not exist"), (".", "is a folder")])
    def test_paths_without_a_table(self, name, problem, tmp_path):
        with pytest.raises(InputError, match=problem):
            tasks.open_path(tmp_path, Told(), project=str(tmp_path / "p.toml"), data=str(tmp_path / name))

        assert not (tmp_path / "p.toml").exists()

    def test_the_demo_is_what_the_command_writes(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("sfumato.report.render.write_report", lambda *given, **more: None)  # takes long
        result = tasks.open_demo(tmp_path, Told(), target=str(tmp_path / "page"))

        assert run(["demo", "--quick", "-o", str(tmp_path / "command")]) == 0, capsys.readouterr().err
        for name in ("admissions.csv", "sfumato.toml"):
            assert (tmp_path / "page" / name).read_bytes() == (tmp_path / "command" / name).read_bytes()
        assert (result["data_name"], result["n_rows"]) == ("admissions.csv", 5000)
        assert result["project"] == str(tmp_path / "page" / "sfumato.toml")


class TestPath:
    def test_a_path_is_opened_with_the_project_file_beside_it(self, site, people, tmp_path):
        status, headers, _ = site.post("/open", how="path", path=str(people))

        assert (status, headers["location"]) == (303, "/columns")
        assert site.page.job("open").status == "done"
        assert site.page.state.project == tmp_path / "sfumato.toml"
        assert (site.page.state.get("data_name"), site.page.state.get("is_private")) == ("people.csv", False)
        assert site.problem("path") is None
        assert site.get("/").headers["location"] == "/columns"

    def test_a_project_file_can_be_named_beside_or_in_the_place_of_the_data(self, site, people, tmp_path):
        site.post("/open", how="path", path=str(people), project=str(tmp_path / "mine.toml"))
        assert site.page.job("open").status == "done"
        site.post("/open", how="path", path=str(tmp_path / "mine.toml"))

        assert site.page.job("open").result()["project"] == str(tmp_path / "mine.toml")
        assert site.page.job("open").result()["data_name"] == "people.csv"
        assert not (tmp_path / "sfumato.toml").exists()

    def test_reading_options_of_the_form_are_used(self, site, tmp_path):
        (tmp_path / "d.txt").write_bytes("1\té\t-\n2\tè\tx\n".encode("latin-1"))

        site.post(
            "/open", path=str(tmp_path / "d.txt"), delimiter="tab", encoding="latin-1", missing="-, ?", no_header="yes"
        )

        options = load_project(tmp_path / "sfumato.toml").options
        assert (options.delimiter, options.encoding, options.header) == ("\t", "latin-1", False)
        assert options.missing == ("", "-", "?")

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("", "no file was named"),
            ("a\0b", "this is not a path"),
            ("~nobody-of-this-name/d.csv", "this is not a path"),
            ("/nowhere/at/all.csv", "does not exist"),
            ("/", "is a folder"),
        ],
    )
    def test_what_is_wrong_stands_beside_the_path(self, site, path, words):
        status, headers, _ = site.post("/open", how="path", path=path)

        assert (status, headers["location"]) in ((303, "/open"), (303, "/columns"))
        assert words in site.problem("path")
        assert words in site.problem("path"), "it is gone after a reload"
        assert site.get("/").headers["location"] == "/open"

    def test_what_was_typed_is_kept_when_the_file_is_bad(self, site, tmp_path):
        (tmp_path / "bad.csv").write_bytes(b"a,b\n1,2,3\n")

        site.post("/open", how="path", path=str(tmp_path / "bad.csv"), format="csv", encoding="utf-8")
        text = site.get("/open").text

        assert "line 2" in site.problem("path")
        assert "name the delimiter (“Delimiter” under How to read it)" in site.problem("path")
        assert f'value="{tmp_path / "bad.csv"}"' in text
        assert '<option value="csv" selected>' in text
        assert '<details class="reading" open>' in text
        assert text.count('<details class="reading">') == 1

    @pytest.mark.parametrize("way", ["path", "upload"])
    def test_a_wrong_reading_option_is_marked_and_focused_and_nothing_is_written(self, site, people, tmp_path, way):
        if way == "path":
            site.post("/open", how="path", path=str(people), skip_rows="two")
        else:
            site.upload("/open/upload", "people.csv", PEOPLE.encode(), skip_rows="two")
        seen = site.get("/open").seen
        field = seen.by_id[f"{way}-skip_rows"]
        assert (field["value"], field["aria-invalid"]) == ("two" if way == "path" else "", "true")
        assert field["aria-describedby"].split()[0] == f"problem-{way}-skip_rows"
        assert "must be a whole number" in seen.texts[f"problem-{way}-skip_rows"]
        assert [found["id"] for _, found in seen.elements if "autofocus" in found] == [f"{way}-skip_rows"]
        assert not list(tmp_path.glob("*.toml"))

    def test_a_wrong_path_is_focused(self, site):
        site.post("/open", how="path", path="/nowhere.csv")
        assert [found["id"] for _, found in site.get("/open").seen.elements if "autofocus" in found] == ["open-path"]

    def test_the_message_goes_when_another_table_is_opened(self, site, people):
        site.post("/open", how="path", path="/nowhere.csv")
        site.post("/open", how="path", path=str(people))

        assert site.problem("path") is None

    def test_a_second_table_of_a_folder_has_a_project_file_of_its_own(self, site, people, tmp_path):
        site.post("/open", path=str(people))
        before = (tmp_path / "sfumato.toml").read_bytes()
        for name in ("other.csv", "other.tsv"):
            (tmp_path / name).write_text(PEOPLE.replace(",", "\t") if name.endswith("tsv") else PEOPLE)
            for _ in range(2):  # the second time it is found
                assert site.post("/open", path=str(tmp_path / name)).headers["location"] == "/columns"
                assert site.page.job("open").status == "done"
                assert load_project(site.page.state.project).data_path.name == name
        site.post("/open", path=str(people))

        assert site.page.state.project == tmp_path / "sfumato.toml"
        assert (tmp_path / "sfumato.toml").read_bytes() == before
        outputs = {path.name: load_project(path).output.name for path in sorted(tmp_path.glob("*.toml"))}
        assert outputs == {
            "other.sfumato.toml": "other-release.csv",
            "other.tsv.sfumato.toml": "other.tsv-release.csv",
            "sfumato.toml": "release.csv",
        }

    def test_a_second_table_that_the_server_begins_with_is_opened(self, site, people, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "other.csv").write_text(PEOPLE)
        assert start_opening(site.page, data=people).status == "done"
        assert start_opening(site.page, data=tmp_path / "other.csv").status == "done"

        assert site.page.state.project == tmp_path / "other.sfumato.toml"

    def test_a_project_file_that_is_broken_is_explained_and_not_passed_over(self, site, people, tmp_path):
        (tmp_path / "sfumato.toml").write_text("[data\n")
        site.post("/open", path=str(people))

        assert "sfumato.toml" in site.problem("path")
        assert [path.name for path in tmp_path.glob("*.toml")] == ["sfumato.toml"]

    def test_a_project_file_that_leads_elsewhere_is_not_looked_into(self, people, tmp_path):
        outside = tmp_path / "outside.toml"
        outside.write_text("[data]\npath = 'x.csv'\n")
        (tmp_path / "in").mkdir()
        data = tmp_path / "in" / "people.csv"
        data.write_text(PEOPLE)
        (tmp_path / "in" / "sfumato.toml").symlink_to(outside)
        site = OpenSite(tmp_path, root=tmp_path / "in")
        site.post("/open", path=str(data))

        assert "outside" in site.problem("path")
        assert site.page.job("open") is None

    def test_a_named_project_file_of_other_data_is_refused(self, site, people, tmp_path):
        site.post("/open", path=str(people))
        (tmp_path / "other.csv").write_text(PEOPLE)

        site.post("/open", path=str(tmp_path / "other.csv"), project=str(tmp_path / "sfumato.toml"))

        assert "describes another data file" in site.problem("path")
        assert site.page.job("open").status == "failed"


class TestUpload:
    def test_a_file_is_put_into_the_private_folder_and_opened(self, site):
        status, headers, _ = site.upload("/open/upload", "../people.csv", PEOPLE.encode(), missing="?")

        assert (status, headers["location"]) == (303, "/columns")
        project = site.page.state.project
        assert project.parent.parent == site.page.folder / "data"
        assert project.parent.stat().st_mode & 0o777 == 0o700
        assert sorted(path.name for path in project.parent.iterdir()) == ["people.csv", "sfumato.toml"]
        assert (site.page.state.get("data_name"), site.page.state.get("is_private")) == ("people.csv", True)
        result = site.page.job("open").result()
        assert (result["n_rows"], result["project"]) == (40, str(project))
        assert load_project(project).options.missing == ("", "?")

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("bad.csv", b"a,b\n1,2,3\n", "bad.csv, line 2"),
            ("empty.csv", b"", "the file is empty"),
            ("", b"a\n1\n", "no file was chosen"),
            ("picture.parquet", b"\x89PNG", "picture.parquet"),
        ],
    )
    def test_what_is_wrong_stands_beside_the_upload_and_names_no_private_folder(self, site, name, content, words):
        site.upload("/open/upload", name, content)

        assert words in site.problem("upload")
        assert str(site.page.folder) not in site.get("/open").text

    def test_a_file_that_is_too_large_is_refused_with_413(self, tmp_path):
        site = OpenSite(tmp_path, upload_limit=100)

        status, _, text = site.upload("/open/upload", "people.csv", PEOPLE.encode())

        assert status == 413
        assert 'id="problem-upload"' in text
        assert "100 bytes" in site.problem("upload")
        assert list((site.page.folder / "data").iterdir()) == []
        assert site.get("/open/upload").headers["location"] == "/open"

    def test_uploads_that_nobody_needs_are_removed(self, site):
        site.upload("/open/upload", "first.csv", PEOPLE.encode())
        site.upload("/open/upload", "bad.csv", b"a,b\n1,2,3\n")
        site.upload("/open/upload", "worse.csv", b"a,b\n1,2,3\n")

        names = sorted(path.name for path in (site.page.folder / "data").glob("*/*.csv"))
        assert names == ["first.csv", "worse.csv"]

    def test_a_table_that_was_open_before_can_be_gone_back_to(self, site):
        site.upload("/open/upload", "first.csv", PEOPLE.encode())
        first = site.page.state.project
        site.page.state.update(short_list=["a"])
        assert "Back to" not in site.get("/open").text
        site.upload("/open/upload", "bad.csv", b"a,b\n1,2,3\n")
        assert "Back to first.csv" in site.get("/open").text

        status, headers, _ = site.post("/open", how="back")

        assert (status, headers["location"]) == (303, "/columns")
        assert site.page.state.project == first
        assert site.page.job("open").result()["n_rows"] == 40
        assert site.page.state.get("short_list") == ["a"]
        assert site.problem("upload") is None
        assert "Back to" not in site.get("/open").text


class TestWhileOthersRun:
    def test_the_demo_table_is_private(self, site):
        site.post("/open", how="demo")

        assert site.page.job("open").result()["data_name"] == "admissions.csv"
        assert site.page.state.project.parent.parent == site.page.folder / "data"
        assert site.page.state.get("is_private")

    def test_no_other_table_is_opened_while_a_release_is_made(self, site, people):
        site.post("/open", path=str(people))
        site.page.jobs.waits.add("opening.open_path")
        start_for(site.page, "release")
        opened = site.page.job("open").id

        for how, place in (("demo", "demo"), ("path", "path")):
            site.post("/open", how=how, path=str(people))
            assert "still running" in site.problem(place)
        site.upload("/open/upload", "first.csv", PEOPLE.encode())
        assert "still running" in site.problem("upload")

        assert site.page.job("open").id == opened
        assert list((site.page.folder / "data").iterdir()) == []
        assert site.get("/").headers["location"] == "/run"

    def test_progress_is_shown_until_it_is_over(self, site, people):
        site.page.jobs.waits.add("opening.open_path")
        site.post("/open", path=str(people))

        status, _, text = site.get("/open/progress", htmx=True)
        assert (status, 'hx-get="/open/progress"' in text) == (200, True)
        assert "is running" in site.get("/open").text
        assert site.get("/open/progress").headers["location"] == "/columns"
        status, headers, _ = site.post("/open/cancel")

        assert (status, headers["location"]) == (303, "/open")
        assert site.page.job("open").status == "cancelled"
        assert site.get("/open/progress", htmx=True).headers["hx-redirect"] == "/open"
        assert "was cancelled" in site.get("/open").text
        assert site.get("/").headers["location"] == "/open"

    def test_a_table_that_replaces_one_that_is_being_read_ends_that(self, site, people):
        site.page.jobs.waits.add("opening.open_path")
        site.post("/open", path=str(people))
        first = site.page.job("open")
        site.page.jobs.waits.clear()
        site.post("/open", how="demo")

        assert first.status == "cancelled"
        assert site.page.job("open").status == "done"
        assert site.get("/open/progress", htmx=True).headers["hx-refresh"] == "true"
        assert site.page.job("open").result()["data_name"] == "admissions.csv"

    def test_two_that_are_opened_at_once_leave_one_under_way(self, site, people):
        site.page.jobs.waits.add("opening.open_path")

        site.post_twice("/open", {"how": "path", "path": str(people)})

        assert [task for task, _ in site.page.jobs.started] == ["opening.open_path"] * 2
        until(lambda: list(site.page.jobs._jobs) == [site.page.job("open").id])
        assert site.page.job("open").status == "running"

    @pytest.mark.parametrize(("purpose", "step"), [("compare", "/explore"), ("release", "/release")])
    def test_the_start_leads_to_the_furthest_step(self, site, people, purpose, step):
        assert site.get("/").headers["location"] == "/open"
        site.post("/open", path=str(people))
        job = site.page.jobs.start("opening.open_path", title="stands in", project=str(site.page.state.project))
        site.page.started(purpose, job)

        assert site.get("/").headers["location"] == step


def test_the_command_names_a_file_before_the_page_is_there(tmp_path, people, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = OpenSite(tmp_path)

    start_opening(site.page, data=people, project=None)

    assert site.page.state.project == tmp_path / "sfumato.toml"
    assert site.page.job("open").result()["n_rows"] == 40
    start_opening(site.page, data=None, project=tmp_path / "sfumato.toml")
    assert site.page.job("open").result()["data_name"] == "people.csv"


def test_a_table_is_opened_by_a_process_of_its_own(tmp_path, people):
    site = Site(tmp_path / "page", opening)
    try:
        site.post("/open", path=str(people))
        until(lambda: site.page.job("open").is_over)

        assert site.page.job("open").error is None
        assert site.page.job("open").result()["n_rows"] == 40
        assert [line["text"] for line in site.page.job("open").log] == ["40 rows, 3 columns"]
    finally:
        site.page.jobs.close()


def test_a_guessed_format_is_a_guess_until_somebody_says_it_also_when_opened_again(tmp_path):
    (tmp_path / "visits.csv").write_text("seen,ill\n" + "".join(f"0{1 + i % 9}/05/2021,{i % 2}\n" for i in range(40)))
    project = str(tmp_path / "sfumato.toml")

    def doubts(**data):
        found = tasks.open_path(tmp_path, Told(), project=project, **data)
        return {facts["name"]: facts["doubt"] for facts in found["columns"] if facts["doubt"]}

    first = doubts(data=str(tmp_path / "visits.csv"))
    assert first.keys() == {"seen"}
    assert doubts() == first
    column_tasks.set_format(tmp_path, Told(), project=project, name="seen", format="DD/MM/YYYY")
    assert doubts() == {}


def test_a_project_whose_preparation_cannot_be_done_is_opened_so_that_it_can_be_mended(tmp_path):
    (tmp_path / "people.csv").write_text("name,ill\n" + "ann,yes\nann,no\n" * 20)
    text = """[data]
path = "people.csv"
[columns]
name = { role = "identifier", kind = "categorical", prepare = { pseudonym = true } }
ill = { role = "target", kind = "categorical" }
"""
    (tmp_path / "sfumato.toml").write_text(text)

    found = tasks.open_path(tmp_path, Told(), project=str(tmp_path / "sfumato.toml"))

    assert found["n_rows"] == 40
