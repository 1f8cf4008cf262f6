"""The README's tour, as typed: what it shows is what comes out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.project.describe import write_demo

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
LEFT_OUT = "…"
LONGEST_LINE = 119


@pytest.fixture(scope="module")
def toured(tmp_path_factory):
    """Run the first block of commands in a folder of its own; gives what each printed, and the folder."""
    folder = tmp_path_factory.mktemp("tour")
    write_demo(folder / "sfumato-demo")
    printed = []
    with contextlib.chdir(folder):
        for command, _ in commands():
            name, *arguments = shlex.split(command)
            if name == "cp":
                shutil.copy(*arguments)
                printed.append("")
                continue
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                run(arguments)
            printed.append(err.getvalue() + out.getvalue())
    return folder, printed


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)[1]


def commands() -> list[tuple[str, str]]:
    """Give each command of the first block with what the README shows below it."""
    parts = re.split(r"^\$ ", block("console"), flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def on_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(commands())), ids=[command for command, _ in commands()])
def test_the_output_is_the_one_shown(toured, number):
    """In its order, whatever ``…`` leaves out; a line that the README breaks is one line."""
    printed = on_one_line(toured[1][number])

    for shown in filter(None, map(on_one_line, commands()[number][1].split(LEFT_OUT))):
        assert shown in printed
        printed = printed[printed.index(shown) + len(shown) :]


@pytest.mark.slow
def test_the_lines_of_python_do_what_they_say(toured, capsys):
    code = block("python")
    with contextlib.chdir(toured[0]):
        exec(compile(code, "README.md", "exec"), {})

    said = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert said
    assert capsys.readouterr().out.split("\n")[:-1] == said
    assert (toured[0] / "release10.csv").exists()


def test_every_file_that_is_linked_is_there():
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README)
    assert len(linked) > 20
    assert [path for path in linked if not (Path(__file__).parents[1] / path).exists()] == []


def test_lines_are_short():
    assert [line for line in README.split("\n") if len(line) > LONGEST_LINE] == []
