"""Texts of the library as the page says them: no option of the command line, no private folder."""

import ast
import asyncio
import re
import tempfile
from pathlib import Path

import pytest

import sfumato
from sfumato.errors import InputError, InvalidParameterError
from sfumato.web.job_errors import TaskError
from sfumato.web.page_words import in_page_words
from web.standing_in import JobsAtOnce, small_project

SOURCE = Path(sfumato.__file__).parent
OF_THE_COMMAND_LINE = re.compile(r"(?<![\w-])--[a-z]{2,}|'sfumato [a-z]+|header=False|(?<!\w)-[om]\b")
NOT_SHOWN = {"cli", "cluster", "collaboration", "large", "web"}
"""Packages whose own texts are for a terminal, or are written for the page."""
NEVER_ON_THE_PAGE = {
    "describing_project.py",  # comments in the project file itself
    "reproduction.py",  # lines to type
    "base.py",  # the kind of a picture, which the page knows
    "verify.py",  # said where no original is given; the page gives it
    "fidelity.py",
    "asked.py",  # the page has a field for each guarantee
    "large.py",  # tables larger than memory, which the page does not take
    "cell_limits.py",
    "large_breach.py",
    "block_counting.py",
}


def hints():
    """Texts in the library that name an option or a command, without docstrings and shell lines."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] in NOT_SHOWN or path.name in NEVER_ON_THE_PAGE:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
            if is_text and OF_THE_COMMAND_LINE.search(node.value) and not node.value.startswith("-"):
                yield pytest.param(node.value, id=f"{path.name}:{node.lineno}")


@pytest.mark.parametrize("text", list(hints()))
def test_no_text_of_the_library_sends_the_reader_to_the_command_line(text):
    assert not OF_THE_COMMAND_LINE.search(in_page_words(text))


def test_there_are_such_texts():
    assert len(list(hints())) > 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name it with --missing", "name it with “Texts that mean missing” (under How to read it)"),
        (
            "the file is large: start with a higher --upload-limit",
            "the file is large: start with a higher --upload-limit",
        ),
        ("k must be at least 2, got 1.", "k must be at least 2, got 1."),
        ("the --missing-rows of old", "the --missing-rows of old"),
    ],
)
def test_only_what_has_a_field_is_said_otherwise(text, words):
    assert in_page_words(text) == words


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


def test_a_kind_that_does_not_fit_is_said_without_the_private_folder(tmp_path):
    folder = tmp_path / "sfumato-page-7-x" / "data"
    folder.mkdir(parents=True)
    call = JobsAtOnce(tmp_path).call
    arguments = {"project": str(small_project(folder / "0f")), "name": "town", "kind": "numeric"}
    with pytest.raises(TaskError, match="is declared numeric") as refused:
        asyncio.run(call("columns.set_kind", **arguments))
    assert "/" not in refused.value.message
    assert "people.csv" in refused.value.message
