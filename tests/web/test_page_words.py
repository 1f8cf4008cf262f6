"""Texts of the library as the page says them: no option of the command line, no private folder."""

import asyncio
import tempfile

import pytest

from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.web.jobs.process import TaskError
from sfumato.web.page_words import error_in_page_words, in_page_words
from web.standing_in import JobsAtOnce, small_project


@pytest.mark.parametrize("before", ["/tmp", "/var/folders/x_1/T", tempfile.gettempdir(), "/private/var"])
@pytest.mark.parametrize("name", ["people.csv", "all my people.csv", "people (1).csv"])
def test_the_private_folder_is_left_out(before, name):
    error = InputError("holds texts", path=f"{before}/sfumato-page-81-ab_c/data/0f12/{name}", column="age")
    assert TaskError.of(error).message == f"{name}, column 'age': holds texts."
    hint = InputError("is gone", path="x", hint=f"create '{before}/sfumato-page-81-ab_c/data/0f12/out' first")
    assert TaskError.of(hint).hint == "create 'out' first"


def test_other_folders_are_kept():
    text = "/home/me/sfumato-pages/people.csv: is gone."
    assert in_page_words(text) == text


def test_an_output_is_said_to_stand_in_the_project_file():
    error = InvalidParameterError("output", "got a name without a suffix", allowed="a file name that ends in .csv")
    words = TaskError.of(error).message
    assert words.startswith("output in the project file, under [release], must be a file name that ends in .csv")


def test_a_near_key_is_decided_on_the_page_or_in_the_project_file():
    error = SchemaError("column 'ticket' is nearly a key", hint="confirm it", remedy=("confirmed",))
    words = error_in_page_words(error)
    assert "the role identifier on the step Columns" in words
    assert "confirmed = true" in words


def test_a_kind_that_does_not_fit_is_said_without_the_private_folder(tmp_path):
    folder = tmp_path / "sfumato-page-7-x" / "data"
    folder.mkdir(parents=True)
    call = JobsAtOnce(tmp_path).call
    arguments = {"project": str(small_project(folder / "0f")), "name": "town", "kind": "numeric"}
    with pytest.raises(TaskError, match="is declared numeric") as refused:
        asyncio.run(call("columns.set_kind", **arguments))
    assert "/" not in refused.value.message
    assert "people.csv" in refused.value.message
