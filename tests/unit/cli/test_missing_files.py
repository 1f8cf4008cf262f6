"""A file that is not there is refused before any library is loaded, in the words in which reading it is refused."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "pyarrow", "scipy", "pandas", "sklearn")
PROGRAM = """
import sys
from sfumato.cli.main import run
code = run(sys.argv[1:])
print(*(name for name in {heavy!r} if name in sys.modules))
sys.exit(code)
"""
NOT_THERE = "sfumato: error: {name}: does not exist.\n"
NO_MANIFEST = "sfumato: error: {name}: cannot be read (No such file or directory).\n"


def run_in_a_process(folder, *arguments):
    command = [sys.executable, "-c", PROGRAM.format(heavy=HEAVY), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    """Make a folder with a table and a file in the place of a manifest, and nothing whose name is like another's."""
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "m.json").write_text("{}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("release zz --target b -o out.csv", NOT_THERE.format(name="zz")),
        ("compare zz --target b", NOT_THERE.format(name="zz")),
        ("init zz", NOT_THERE.format(name="zz")),
        ("audit zz", NOT_THERE.format(name="zz")),
        ("audit zz --manifest m.json", NOT_THERE.format(name="zz")),
        ("audit table.csv --manifest zz", NO_MANIFEST.format(name="zz")),
        ("audit table.csv --manifest m.json --original zz", NOT_THERE.format(name="zz")),
        ("report table.csv -o r.html", NO_MANIFEST.format(name="table.csv.manifest.json")),
        ("report zz --manifest m.json -o r.html", NOT_THERE.format(name="zz")),
        ("report table.csv --manifest m.json --original zz -o r.html", NOT_THERE.format(name="zz")),
        ("attack zz table.csv", NOT_THERE.format(name="zz")),
        ("attack table.csv zz", NOT_THERE.format(name="zz")),
        ("attack table.csv table.csv --manifest zz", NO_MANIFEST.format(name="zz")),
        ("attack table.csv --manifest m.json --reference zz", NOT_THERE.format(name="zz")),
    ],
)
def test_a_file_that_is_not_there_is_refused_before_libraries_are_loaded(folder, arguments, said):
    ended = run_in_a_process(folder, *arguments.split())

    assert (ended.returncode, ended.stderr) == (3, said)
    assert ended.stdout == "\n"


def test_the_nearest_name_is_proposed(folder):
    ended = run_in_a_process(folder, "release", "tabel.csv", "--target", "b", "-o", "out.csv")

    assert ended.stderr == "sfumato: error: tabel.csv: does not exist. Hint: did you mean 'table.csv'?\n"


@pytest.mark.slow
def test_standard_input_is_always_there(folder):
    assert "does not exist" not in run_in_a_process(folder, "init", "-").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("https://example.org/zz.csv", "is a remote address"),
        ("table.csv/zz", "cannot be opened"),
        (".", "is a folder"),
        ("z\udcff", "not valid Unicode"),
    ],
)
def test_what_is_wrong_with_a_path_itself_is_said_as_when_it_is_read(folder, name, said):
    ended = run_in_a_process(folder, "init", name)

    assert ended.returncode == 3
    assert said in ended.stderr
