"""No text of the library names an option of the command line: errors carry what a hint is about, each place says how.

Outside of ``cli`` a text is read in Python, on the page and in files as well, where there are no options.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sfumato
from sfumato.cli.main import FLAGS, in_flag_words
from sfumato.errors import InputError, InvalidParameterError
from sfumato.web.jobs.process import TaskError

SOURCE = Path(sfumato.__file__).parent
OPTION = re.compile(r"(?:^|[\s(\[\"'`])(?:--[a-z][a-z-]+|-[a-z]\b)")
COMMAND = re.compile(r"'sfumato [a-z]+|\bsfumato (?:init|release|audit|compare|report|attack|plot|serve|hierarchy) -")
WRITE_COMMAND_LINES = {
    "report/reproduction.py": "lines to type, which are what it is for",
    "collaborate/simulate/simulation.py": "arguments of a process",
}
WRITE_PROJECT_FILES = {"project/describe.py": "remarks in the project file, which the command line reads"}


def modules() -> list[str]:
    names = (path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")))
    return [name for name in names if not name.startswith("cli/") and name not in WRITE_COMMAND_LINES]


@cache
def nodes(name: str) -> list[ast.AST]:
    """Everything in a module, which is parsed once for all tests."""
    return list(ast.walk(ast.parse((SOURCE / name).read_text(encoding="utf-8"))))


@pytest.fixture(autouse=True, scope="module")
def _forget_nodes() -> Iterator[None]:
    """Do not keep the syntax trees of all modules in memory while other tests run."""
    yield
    nodes.cache_clear()


def texts(name: str) -> Iterator[tuple[int, str]]:
    """Texts of a module without docstrings; a part of a text that follows a value does not begin with an option."""
    skipped = {id(node.value) for node in nodes(name) if isinstance(node, ast.Expr)}
    for node in nodes(name):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "0" for p in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
            skipped |= {id(argument) for argument in node.args}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def test_no_text_of_the_library_names_an_option() -> None:
    said = [(name, line, text.replace("var(--", "var(")) for name in modules() for line, text in texts(name)]
    assert len({name for name, _, _ in said}) > 200
    assert not [found for found in said if OPTION.search(found[2])]


def test_no_text_of_the_library_sends_the_reader_to_a_command() -> None:
    names = sorted(set(modules()) - set(WRITE_PROJECT_FILES))
    assert not [(name, line, text) for name in names for line, text in texts(name) if COMMAND.search(text)]


def test_such_texts_would_be_found() -> None:
    wrong = ("use --force", "name it (-m)", "--memory", "give '--target' a name", "-o release.csv")
    assert all(OPTION.search(text) for text in wrong)
    right = ("k-anonymity", "a - b", "3 -4", "well-known", "x--y", "-1")
    assert not any(OPTION.search(text) for text in right)


def remedies() -> set[str]:
    """Words in every ``remedy=`` of the library."""
    found: set[str] = set()
    for name in modules():
        for node in nodes(name):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                parts = [part for part in ast.walk(node.value) if isinstance(part, ast.Tuple)]
                found |= {e.value for part in parts for e in part.elts if isinstance(e, ast.Constant)}  # type: ignore[misc]
    return found


def test_the_command_line_has_words_for_every_remedy() -> None:
    found = remedies()
    assert len(found) > 10
    assert found <= FLAGS.keys()


@pytest.mark.parametrize("remedy", sorted(FLAGS))
def test_an_error_is_said_by_options_on_the_command_line_and_without_them_elsewhere(remedy: str) -> None:
    error = InputError("is wrong", path="people.csv", hint="do something", remedy=(remedy, "unknown"))

    assert str(error) == "people.csv: is wrong. Hint: do something"
    assert in_flag_words(error) == f"people.csv: is wrong. Hint: do something ({FLAGS[remedy]})"
    said = TaskError.of(error)
    assert said.message == "people.csv: is wrong."
    assert not OPTION.search(said.hint)
    assert not COMMAND.search(said.hint)


def test_without_a_hint_nothing_is_added() -> None:
    assert in_flag_words(InputError("is wrong", remedy=("force",))) == "is wrong."


def test_a_parameter_is_called_by_its_option_on_the_command_line_alone() -> None:
    error = InvalidParameterError("memory", "got less", allowed="at least 600MB")

    assert str(error) == "memory must be at least 600MB, got less."
    assert in_flag_words(error) == "--memory must be at least 600MB, got less."
