"""Every file, command and option that the README and the docs name is there.

Of decisions only the links are judged: they say what was chosen then, with the names of then.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

from sfumato.cli.main import sfumato as cli
from sfumato.table.io.formats import READABLE

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts),
]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
ROOTS = (ROOT, ROOT / "src", ROOT / "src" / "sfumato", ROOT / "docs")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)")
SOURCE = re.compile(r"[\w./-]*\w\.(?:py|md)|[\w-]+(?:/[\w.-]+)*/")
"""Files of this repository: code, pages, folders. Tables, pictures and project files of examples are the reader's."""
OF_THE_READER = {
    "sfumato-demo/",  # made by the command that the page tells to run
    "release.csv.dictionary.md",
    "src/sfumato/guarantees/match_chance.py",  # what adding-a-guarantee.md has one write
    "src/sfumato/audit/levels/match_chance.py",
}
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)")


def without_blocks(text: str) -> str:
    return FENCE.sub("", text)


def files_named(page: Path) -> list[tuple[str, list[Path]]]:
    """Names of files with the places where each may be; a bare name may be in a folder that its line named before."""
    found = []
    for line in without_blocks(page.read_text(encoding="utf-8")).splitlines():
        folders: list[Path] = []
        for span in SPAN.findall(line):
            if not SOURCE.fullmatch(span) or span in OF_THE_READER or Path(span).stem.isupper():
                continue
            path = Path(span)
            is_bare = len(path.parts) == 1
            # where a line names no folder before, or a folder by itself, its text says of what it speaks
            anywhere = [ROOT / name for name in folders_with(path.name)] if not folders or span.endswith("/") else []
            around = [*folders, *anywhere]
            places = [folder / path for folder in (*ROOTS, page.parent, *(around if is_bare else ()))]
            found.append((span, places))
            there = [place for place in places if place.exists()]
            folders += [place if place.is_dir() else place.parent for place in there if not is_bare or place.is_dir()]
    return found


@cache
def folders_with(name: str) -> tuple[str, ...]:
    """Folders of this repository that hold a file or folder of a name."""
    found = [path for top in ("src", "tests", "docs", "reproductions") for path in (ROOT / top).rglob(name)]
    return tuple(str(path.parent.relative_to(ROOT)) for path in found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_folders_are_there(page):
    """A path begins at the root, in the package, in docs or at the page; a bare name goes on from the path before."""
    named = files_named(page)

    assert [span for span, places in named if not any(place.exists() for place in places)] == []


def anchors_of(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *DECISIONS], ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_pages_and_their_sections_are_there(page):
    linked = LINK.findall(without_blocks(page.read_text(encoding="utf-8")))
    places = [(page.parent / name if name else page, anchor) for name, anchor in linked]

    assert [place for place, _ in places if not place.exists()] == []
    assert [(place.name, anchor) for place, anchor in places if anchor and anchor not in anchors_of(place)] == []


def typed_commands(page: Path) -> list[str]:
    """Lines that begin with the command, in blocks and in the text."""
    text = page.read_text(encoding="utf-8")
    blocks = [body.replace("\\\n", " ") for _, body in FENCE.findall(text)]
    lines = [line.strip().removeprefix("$ ") for body in blocks for line in body.splitlines()]
    spans = SPAN.findall(without_blocks(text))
    return [line for line in (*lines, *spans) if re.match(r"(?:\w+=\S+ )*sfumato( |$)", line)]


def resolved(line: str) -> tuple[click.Command, list[str]]:
    """Command that a line calls, and its words after that."""
    words = shlex.split(line.split(" # ")[0].split(" | ")[0].split(" > ")[0].replace("…", "x"), comments=False)
    words = words[words.index("sfumato") + 1 :]
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, words = words[0], words[1:]
        below = command.get_command(click.Context(command), name)
        if below is None:
            if name.isupper() or "|" in name:  # a placeholder
                return command, []
            raise LookupError(name)
        command = below
    return command, words


def options_of(command: click.Command) -> set[str]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own | {"--help", "--version", "--debug"}


@cache
def all_options() -> frozenset[str]:
    found, waiting = set(), [cli]
    while waiting:
        command = waiting.pop()
        found |= options_of(command)
        if isinstance(command, click.Group):
            context = click.Context(command)
            waiting += [
                below for name in command.list_commands(context) if (below := command.get_command(context, name))
            ]
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_their_options_are_there(page):
    wrong = []
    for line in typed_commands(page):
        try:
            command, words = resolved(line)
        except (LookupError, ValueError) as exc:
            wrong.append(f"{line}: {exc!r}")
            continue
        given = [word.split("=")[0] for word in words if re.match(r"-[a-zA-Z]|--[a-z]", word)]
        wrong += [f"{line}: {option}" for option in given if option not in options_of(command)]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_are_named_alone_are_those_of_some_command(page):
    spans = [span for span in SPAN.findall(without_blocks(page.read_text(encoding="utf-8"))) if span.startswith("--")]

    assert [name for span in spans for name in OPTION.findall(span) if name not in all_options()] == []


def test_no_format_that_is_read_is_said_not_to_be():
    """Of the suffixes in the sentence about what is not read none is one of a reader's."""
    text = (ROOT / "docs" / "known-limitations.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^- \*\*([^*]* are not read)\*\*", text, re.MULTILINE)

    assert not [name for name in READABLE if f"`.{name}`" in sentence]
    assert "database" not in sentence


def test_the_changelog_says_nothing_twice():
    """Two entries that begin alike contradicted each other after a merge."""
    entries = re.findall(r"^- (.{50})", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert len(entries) == len(set(entries))
