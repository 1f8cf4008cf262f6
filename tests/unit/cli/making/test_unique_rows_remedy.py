"""The command that is printed with the warning of unique rows runs as printed, and the warning is gone."""

import shlex

import pyarrow as pa
import pyarrow.csv
import pytest

from sfumato.cli.main import run

WARNING = "of rows are unique on all released columns together"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = {
        "age": [20 + i // 4 for i in range(200)],
        "diagnosis": [f"E{i * 7 % 20:02}" for i in range(200)],
        "ward": [f"w{i % 3}" for i in range(200)],
        "well": ["yn"[i % 2] for i in range(200)],
    }
    pa.csv.write_csv(pa.table(cells), "stays.csv")
    return tmp_path


def said(capsys, *arguments):
    code = run(list(arguments))
    return code, capsys.readouterr().err.split("\n")


def offered(lines):
    (line,) = [line for line in lines if line.startswith("To remove this warning, ")]
    return line.partition("run: ")


ROLES = ("--target", "well", "--sensitive", "diagnosis")


@pytest.mark.slow
@pytest.mark.parametrize("other", [(), ("--other", "ward")], ids=["guessed", "declared"])
def test_the_printed_command_runs_and_removes_the_warning(folder, capsys, other):
    code, lines = said(capsys, "release", "stays.csv", *ROLES, *other, "-o", "out.csv")
    assert code == 0
    assert any(line.startswith("WARNING") and WARNING in line for line in lines)
    before, _, command = offered(lines)
    assert before == "To remove this warning, "
    (cost,) = [line for line in lines if line.startswith("  (tried: ")]

    code, lines = said(capsys, *shlex.split(command)[1:])

    assert code == 0
    assert not any(line.startswith("WARNING") and WARNING in line for line in lines)
    (found,) = [line for line in lines if line.startswith("Not covered:")]
    assert f"{cost.partition(' of rows')[0].removeprefix('  (tried: ')} {WARNING}" in found


@pytest.mark.slow
def test_of_a_project_the_roles_to_change_are_said(folder, capsys):
    assert said(capsys, "init", "stays.csv", *ROLES)[0] == 0
    code, lines = said(capsys, "release", "-o", "out.csv")
    assert code == 0
    before, _, command = offered(lines)
    assert "give 'diagnosis' the role \"sensitive quasi-identifier\"" in before
    project = folder / "sfumato.toml"
    text = project.read_text()
    project.write_text(text.replace('role = "sensitive"', 'role = "sensitive quasi-identifier"'))

    code, lines = said(capsys, *shlex.split(command)[1:])

    assert code == 0
    assert not any(line.startswith("WARNING") and WARNING in line for line in lines)


@pytest.mark.slow
def test_with_quick_nothing_is_tried(folder, capsys):
    code, lines = said(capsys, "release", "stays.csv", *ROLES, "--quick", "-o", "out.csv")

    assert code == 0
    assert any(line.startswith("WARNING") and WARNING in line for line in lines)
    assert not any(line.startswith("To remove") for line in lines)
