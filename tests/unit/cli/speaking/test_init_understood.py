"""``sfumato init`` shows what it understood: cells on a terminal only, counts and lines in a log."""

import os
import pty
import re
import subprocess
import sys
import tomllib

import pytest

from sfumato.cli.main import run
from sfumato.project.file import load_project

CANARY = "CANARY7f3a"
COMMAND = [sys.executable, "-c", "from sfumato.__main__ import main; main()"]
MESSY = [
    "name;born;paid;share;weight;visit;amount;result;class",
    *(
        f"{CANARY} {i};{i % 28 + 1:02}.{i % 12 + 1:02}.{1950 + i};{i}.234,5{i % 10};{i} %;{50 + i},5 kg;"
        f"{i % 12 + 1:02}/{(i * 5) % 12 + 1:02}/2021;{i % 9 + 1},{100 + i};{i},5;{'no' if i % 3 else 'yes'}"
        for i in range(1, 40)
    ),
    f"{CANARY};01.01.1990;1,00;5 %;61,5 kg;01/02/2021;1,200;#DIV/0!;no",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messy.csv").write_text("\n".join(MESSY) + "\n", encoding="utf-8")
    return tmp_path


def test_the_project_file_says_how_every_column_is_read(folder, capsys):
    assert run(["init", "messy.csv"]) == 0

    columns = tomllib.loads((folder / "sfumato.toml").read_text())["columns"]
    formats = {name: entry.get("date_format") or entry.get("number_format") for name, entry in columns.items()}
    assert formats == {
        "name": None,
        "born": "DD.MM.YYYY",
        "paid": "1.234,56",
        "share": "1234.56 %",
        "weight": "1234,56 kg",
        "visit": "DD/MM/YYYY",
        "amount": "1,234.56",
        "result": None,
        "class": None,
    }
    said = capsys.readouterr().err
    assert "note: column 'visit' is read as DD/MM/YYYY: day first; no value above 12 decides; please confirm" in said
    assert "--date-format 'visit=FORMAT'" in said
    assert "note: column 'amount' is read as 1,234.56: the comma between thousands" in said
    assert re.search(r"'result' is left as text: 1 of 40 values do not parse as a number .*first in line 41", said)
    assert CANARY not in said
    assert "DIV" not in said
    assert CANARY not in (folder / "sfumato.toml").read_text()
    read = load_project(folder / "sfumato.toml").read()
    assert not any(column.reading.doubt for column in read.schema if column.reading)


def test_a_format_that_is_given_is_written_down(folder):
    assert run(["init", "messy.csv", "--date-format", "visit=mm/dd/yyyy", "--number-format", "amount=1234,56"]) == 0

    columns = tomllib.loads((folder / "sfumato.toml").read_text())["columns"]
    assert columns["visit"]["date_format"] == "MM/DD/YYYY"
    assert columns["amount"]["number_format"] == "1234,56"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--date-format", "visit"], "COLUMN=FORMAT"),
        (["--date-format", "visit=day first"], "date_format"),
        (["--number-format", "visit=DD/MM/YYYY"], "number_format"),
        (["--date-format", "visits=text"], "did you mean 'visit'"),
        (["--date-format", "visit=text", "--number-format", "visit=text"], "got two for 'visit'"),
        (["--date-format", "visit=DD.MM.YYYY"], "40 rows are not"),
    ],
)
def test_formats_that_do_not_fit_are_refused_in_one_line(folder, capsys, arguments, words):
    assert run(["init", "messy.csv", *arguments]) in (2, 3)

    said = capsys.readouterr().err
    assert words in said
    assert CANARY not in said
    assert not (folder / "sfumato.toml").exists()


@pytest.mark.parametrize(
    "entry", ['date_format = "soon"', 'number_format = "DD/MM/YYYY"', 'date_format = "text", number_format = "1,5"']
)
def test_a_project_file_with_a_format_that_is_none_is_refused(folder, capsys, entry):
    run(["init", "messy.csv"])
    text = (folder / "sfumato.toml").read_text()
    (folder / "sfumato.toml").write_text(text.replace('date_format = "DD/MM/YYYY"', entry))
    capsys.readouterr()

    assert run(["release", "-o", "r.csv"]) == 3
    assert "visit" in capsys.readouterr().err


def test_cells_are_shown_where_that_is_asked_for(folder, capsys):
    assert run(["init", "messy.csv", "--show-rows"]) == 0

    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"^born +\S.* date +DD\.MM\.YYYY +1951-02-02 ", shown.err, re.MULTILINE)
    assert re.search(r"^visit .*DD/MM/YYYY \? ", shown.err, re.MULTILINE)
    assert CANARY in shown.err


def test_a_cell_cannot_move_the_cursor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a,y\n\x1b[2Jx,p\nb,q\n", encoding="utf-8")

    assert run(["init", "a.csv", "--show-rows"]) == 0
    assert "\x1b" not in capsys.readouterr().err


def on_a_terminal(*arguments):
    """Run the command with a pseudo-terminal as its stderr; what that has shown."""
    parent, child = pty.openpty()
    with subprocess.Popen([*COMMAND, *arguments], stderr=child, stdout=subprocess.PIPE) as done:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(parent)
        written = done.stdout.read()
    assert done.returncode == 0
    return shown.decode(), written.decode()


@pytest.mark.slow
def test_a_terminal_shows_the_first_rows_and_a_log_none(folder):
    shown, written = on_a_terminal("init", "messy.csv", "-o", "-")
    assert f"{CANARY} 1" in shown
    assert "1951-02-02" in shown
    assert CANARY not in written
    shown, _ = on_a_terminal("init", "messy.csv", "--no-rows")
    assert CANARY not in shown
    command = [*COMMAND, "init", "messy.csv", "--force"]
    logged = subprocess.run(command, capture_output=True, text=True, check=True)
    assert CANARY not in logged.stderr + logged.stdout


@pytest.mark.parametrize(
    ("output", "said"),
    [("sfumato.toml", " 'sfumato release'"), ("other one.toml", ": sfumato release --project 'other one.toml'")],
)
def test_init_says_the_command_that_reads_its_file(tmp_path, monkeypatch, capsys, output, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,ill\nm,yes\nf,no\n")

    assert run(["init", "people.csv", "-o", output]) == 0
    assert f"check the roles, then run{said}\n" in capsys.readouterr().err
