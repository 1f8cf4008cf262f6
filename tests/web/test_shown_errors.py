"""Errors of the library as the page says them: no option of the command line, no private folder."""

import asyncio
import json
import os

import pytest

from sfumato.cli.main import FLAGS
from sfumato.errors import InputError, InvalidParameterError, OutputError
from sfumato.web.jobs.jobs import Jobs
from sfumato.web.jobs.process import UPLOADS, TaskError, in_folder_of_upload
from sfumato.web.shown_errors import FIELDS, HINTS
from web.standing_in import JobsAtOnce, small_project


@pytest.mark.parametrize("name", ["people.csv", "all my people.csv", "people (1).csv"])
@pytest.mark.parametrize("kind", [InputError, OutputError])
def test_a_file_in_the_private_folder_is_called_by_its_name(tmp_path, name, kind):
    error = kind("holds texts", path=tmp_path / "jobs" / "0f12" / name)
    assert TaskError.of(error, tmp_path).message == f"{name}: holds texts."


def test_a_private_folder_behind_a_link_is_left_out_too(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    error = InputError("holds texts", path=tmp_path / "real" / "people.csv", column="age")
    assert TaskError.of(error, tmp_path / "link").message == "people.csv, column 'age': holds texts."


def test_other_folders_are_kept(tmp_path):
    path = tmp_path / "mine" / "people.csv"
    assert TaskError.of(InputError("is gone", path=path), tmp_path / "private").message == f"{path}: is gone."


def test_an_output_is_said_to_be_named_in_the_project_file():
    error = InvalidParameterError("output", "got a name without a suffix", allowed="a file name that ends in .csv")
    words = TaskError.of(error).message
    assert words.startswith("output in the project file, under [release], must be a file name that ends in .csv")


def test_the_tables_of_page_and_command_line_have_the_same_names():
    assert FIELDS.keys() <= FLAGS.keys()
    assert HINTS.keys() <= FLAGS.keys()
    assert not FIELDS.keys() & HINTS.keys()


def test_files_of_an_upload_are_named_from_its_folder(tmp_path):
    folder = tmp_path / UPLOADS / "0f"
    folder.mkdir(parents=True)
    given = {"project": str(folder / "sfumato.toml"), "target": str(folder), "name": "town", "n": 3, "other": "/x/y"}
    before = os.getcwd()  # noqa: PTH109 # as the system says it
    with in_folder_of_upload(given, tmp_path) as named:
        assert named == {**given, "project": "sfumato.toml", "target": "."}
        assert os.path.samefile(".", folder)  # noqa: PTH121
    assert os.getcwd() == before  # noqa: PTH109


def test_arguments_about_no_upload_stay(tmp_path):
    given = {"project": "/home/me/sfumato.toml", "gone": str(tmp_path / UPLOADS / "gone" / "people.csv")}
    with in_folder_of_upload(given, tmp_path) as named:
        assert named == given


def wrong_kind(jobs: Jobs, folder) -> TaskError:
    arguments = {"project": str(small_project(folder)), "name": "town", "kind": "numeric"}
    with pytest.raises(TaskError, match="is declared numeric") as refused:
        asyncio.run(jobs.call("columns.set_kind", **arguments))
    return refused.value


@pytest.mark.parametrize("in_processes", [False, True])
def test_a_kind_that_does_not_fit_is_said_without_the_private_folder(tmp_path, in_processes):
    folder = tmp_path / UPLOADS / "0f"
    folder.parent.mkdir()
    jobs = Jobs(tmp_path / "jobs") if in_processes else JobsAtOnce(tmp_path / "jobs")
    try:
        error = wrong_kind(jobs, folder)
    finally:
        jobs.close()
    assert "/" not in error.message
    assert "people.csv" in error.message


def upload_without_its_hierarchy(private):
    """Make a project as of an upload; the hierarchy file that it names is gone."""
    (private / UPLOADS).mkdir()
    project = small_project(private / UPLOADS / "0f")
    text = project.read_text(encoding="utf-8").replace('"auto"', '"global-recoding"')
    town = '"town" = { role = "quasi-identifier", kind = "categorical"'
    assert town in text
    project.write_text(text.replace(town, f'{town}, hierarchy = "levels.csv"'), encoding="utf-8")
    return project


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("hierarchies.show", {"name": "town"}),
        ("hierarchies.check", {"name": "town"}),
        ("release.make", {}),
    ],
)
def test_no_error_shows_the_private_folder_of_an_upload(tmp_path, task, arguments):
    project = upload_without_its_hierarchy(tmp_path)
    with pytest.raises(TaskError, match=r"^levels\.csv: does not exist") as refused:
        asyncio.run(JobsAtOnce(tmp_path / "jobs").call(task, project=str(project), **arguments))
    assert str(tmp_path) not in str(refused.value)


def test_no_reason_of_a_comparison_shows_the_private_folder_of_an_upload(tmp_path):
    project = upload_without_its_hierarchy(tmp_path)
    wanted = {"project": str(project), "mechanisms": ["global-recoding"], "asked": ["k=5"]}
    found = asyncio.run(JobsAtOnce(tmp_path / "jobs").call("explore.compare", **wanted))
    assert "levels.csv: does not exist" in json.dumps(found["rows"])
    assert {key for key, value in found.items() if str(tmp_path) in json.dumps(value)} == {"inputs"}
