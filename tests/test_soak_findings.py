"""What the soak (benchmarks/soak) has found, each in small."""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
import xlsxwriter

import sfumato
from manifest_texts import text_of
from sfumato.cli import limited_memory
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import InputError, InvalidParameterError, ManifestError, words_and_exit_code
from sfumato.mechanisms.registry import build_mechanism
from sfumato.project.file import load_project
from sfumato.publishing.reaudit import audit_published, read_manifest, read_original
from sfumato.table.io.read import DEFAULT_OPTIONS
from sfumato.table.io.write import write_table

HALF_A_CHARACTER = "\ud800"
MEGABYTES = 2**20


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Publish a small release; gives the original's path, the release's and the manifest's."""
    folder = tmp_path_factory.mktemp("published")
    original = folder / "admissions.csv"
    with original.open("wb") as file:
        write_table(admissions(n_rows=60).keep(["age", "sex", "readmitted"]), file, "csv")
    table = sfumato.read_table(original)
    table = table.with_schema(table.schema.with_roles({"readmitted": sfumato.Role.TARGET}))
    release = sfumato.release(table, build_mechanism("mondrian", {"k": 3}))
    done = sfumato.publish(release, folder / "out.csv", original=table)
    return original, done.table_path, done.manifest_path


def changed(manifest_path, target, change):
    """Change a manifest, written as manifests are."""
    entries = json.loads(manifest_path.read_text())
    change(entries)
    target.write_bytes(text_of(entries).encode("utf-8", "backslashreplace"))  # half a character has no bytes
    return target


class TestHalfCharacters:
    """JSON can hold half a character, which no table can; so can bytes of a command line."""

    def test_among_the_missing_tokens_of_a_manifest(self, tmp_path, published):
        _, table, manifest = published
        bad = changed(manifest, tmp_path / "m.json", lambda m: m["missing"]["tokens"].append(HALF_A_CHARACTER))

        with pytest.raises(ManifestError, match="canonical form"):
            audit_published(table, bad)

    @pytest.mark.parametrize("field", ["domain", "missing"])
    def test_in_the_columns_of_a_manifest(self, tmp_path, published, field):
        _, table, manifest = published
        bad = changed(
            manifest, tmp_path / "m.json", lambda m: m["output"]["columns"][0].update({field: [HALF_A_CHARACTER]})
        )

        with pytest.raises(ManifestError, match="canonical form"):
            audit_published(table, bad)

    def test_on_the_command_line(self, tmp_path, published, capsys):
        assert run(["audit", str(published[0]), "--missing", "\udcff"]) == 2
        assert "missing must be texts" in capsys.readouterr().err

    def test_in_python(self):
        with pytest.raises(InvalidParameterError, match="not valid Unicode"):
            sfumato.read_table(pa.table({"a": ["x"]}), options=sfumato.ReadOptions(missing=(HALF_A_CHARACTER,)))


@pytest.mark.parametrize("own", [{"age": [1, None]}, {"age": "ab"}, {"age": [HALF_A_CHARACTER]}, ["age"], "age"])
def test_missing_tokens_of_a_column_that_are_no_texts_are_refused(tmp_path, published, own):
    original, table, manifest = published
    bad = changed(manifest, tmp_path / "m.json", lambda m: m["missing"].update(columns=own))

    with pytest.raises(ManifestError, match=r"missing\.columns.* is not a|canonical form"):
        audit_published(table, bad, original=read_original(original, DEFAULT_OPTIONS))


def test_missing_tokens_of_a_column_are_not_taken_from_a_manifest(published, tmp_path):
    """They would make values of the original missing that its reader takes as values."""
    original, table, manifest = published
    stated = changed(manifest, tmp_path / "m.json", lambda m: m["missing"].update(columns={"sex": ["male"]}))

    report = audit_published(table, stated, original=read_original(original, DEFAULT_OPTIONS))

    assert read_manifest(stated)[0].missing_tokens_by_column == {"sex": ("male",)}
    assert "missing" in [check.name for check in report.checks if not check.passed]


def test_a_number_of_thousands_of_digits_in_a_project_is_refused(tmp_path):
    (tmp_path / "sfumato.toml").write_text(f'[data]\npath = "x.csv"\n[release.parameters]\nk = {"9" * 5000}\n')

    with pytest.raises(InputError, match="too many digits"):
        load_project(tmp_path / "sfumato.toml")


def damaged_workbook(path, old, new, *, sheet="sheet1.xml"):
    """Write a small workbook with some text in its members replaced."""
    good = io.BytesIO()
    with xlsxwriter.Workbook(good) as book:
        page = book.add_worksheet()
        page.write_column(0, 0, ["a", "x", 1])
    with zipfile.ZipFile(good) as archive, zipfile.ZipFile(path, "w") as changed:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
        assert sum(old in member for member in members.values()) == 1
        for name, member in members.items():
            replaced = member.replace(old, new).replace("sheet1.xml", sheet)
            changed.writestr(name.replace("sheet1.xml", sheet), replaced)
    return path


@pytest.mark.parametrize("index", ["9" * 5_000, "1" * 10])
def test_an_index_of_thousands_of_digits_in_a_sparse_row_is_refused(tmp_path, index):
    path = tmp_path / "sparse.arff"
    path.write_text(f"@relation r\n@attribute a numeric\n@data\n{{0 1}}\n{{{index} 1}}\n", encoding="ascii")

    with pytest.raises(InputError, match="line 5: a cell of this sparse row is not 'INDEX VALUE'"):
        sfumato.read_table(path)


class TestWorkbooksThatAbortTheirParser:
    """It takes memory for what a file announces, and ends its process where it gets none."""

    @pytest.mark.parametrize("count", ['uniqueCount="2147483648"', "uniqueCount = '1099511627776'"])
    def test_texts_beyond_number(self, tmp_path, count):
        path = damaged_workbook(tmp_path / "t.xlsx", 'uniqueCount="2"', count)

        with pytest.raises(InputError, match=r"says that it holds .* different texts, more than 67,108,864"):
            sfumato.read_table(path)

    @pytest.mark.parametrize("letters", ["I" * 51, "AAAA", "xfe"])
    def test_a_column_beyond_the_last(self, tmp_path, letters):
        path = damaged_workbook(tmp_path / "t.xlsx", '<c r="A2"', f'<c r="{letters}2"')

        with pytest.raises(InputError, match="holds a cell beyond column 16,384"):
            sfumato.read_table(path)

    @pytest.mark.parametrize(
        "cell", ['<c r="xfd1048576"', '<c r = "XFD1048576"', "<c\n s='0'\n r='XFD1048576'", '<c r="XFD4294967295"']
    )
    @pytest.mark.parametrize("sheet", ["sheet1.xml", "sheet1.data"])
    def test_a_cell_far_away_however_it_is_written(self, tmp_path, cell, sheet):
        path = damaged_workbook(tmp_path / "t.xlsx", '<c r="A2"', cell, sheet=sheet)

        with pytest.raises(InputError, match=r"holds a sheet of .* rows and 16,384 columns, more than"):
            sfumato.read_table(path)

    def test_an_abort_that_nothing_foretold(self, tmp_path, capfd):
        row = '<row r="4000000000">' + "<c/>" * 2000 + "<c><v>1</v></c></row><row"  # more than any address space
        path = damaged_workbook(tmp_path / "t.xlsx", '<row r="2"', row)

        with pytest.raises(InputError, match="cannot be read as an Excel workbook: its process was ended by signal 6"):
            sfumato.read_table(path)
        assert capfd.readouterr() == ("", "")

    def test_what_stands_in_a_text_is_no_cell(self, tmp_path):
        text = '<t>r="XFD1048576" c r=\'ABCDE1\' uniqueCount="2147483648"</t>'
        path = damaged_workbook(tmp_path / "t.xlsx", "<t>x</t>", text)

        assert sfumato.read_table(path, options=sfumato.ReadOptions(mixed_as_text=True)).n_rows == 2


class TestLittleMemory:
    def test_a_reader_that_gets_no_memory_does_not_call_the_file_damaged(self, tmp_path, monkeypatch):
        table = pa.table({"a": np.arange(5)})
        pa.parquet.write_table(table, tmp_path / "t.parquet")

        def refuse(*_, **__):
            raise pa.ArrowMemoryError

        monkeypatch.setattr("pyarrow.parquet.ParquetFile", refuse)
        with pytest.raises(MemoryError):
            sfumato.read_table(tmp_path / "t.parquet")

    def test_refusals_of_libraries_are_no_bugs(self):
        refused = type("OutOfMemoryException", (Exception,), {})

        assert words_and_exit_code(refused("a cell")) == ("not enough memory for this table", 3)
        assert words_and_exit_code(RuntimeError("can't start new thread"))[1] == 3
        assert words_and_exit_code(RuntimeError("a cell"))[1] == 1

    @pytest.mark.parametrize("crash", ["os.abort()", "ctypes.string_at(0)", "os._exit(127)"])
    def test_a_library_that_crashes_is_explained(self, tmp_path, crash):
        done = run_limited(f"go_on_in_a_child(); {crash}", tmp_path, megabytes=2048)

        assert done.returncode == 3
        last = done.stderr.splitlines()[-1]
        assert "not enough memory: this process may use 2,048 MB" in last
        assert "ulimit -v" in last

    def test_what_the_crashed_command_left_is_removed(self, tmp_path):
        hold = "from sfumato.private_folders import PrivateFolder; kept = PrivateFolder('count'); os.abort()"

        done = run_limited(f"go_on_in_a_child(); {hold}", tmp_path, megabytes=2048)

        assert done.returncode == 3
        assert os.listdir(tmp_path) == []

    def test_too_little_to_start_with_is_refused_at_once(self, tmp_path):
        done = run_limited("go_on_in_a_child(); print('started')", tmp_path, megabytes=512)

        assert (done.returncode, done.stdout) == (3, "")
        assert "at least 1,024 MB are needed" in done.stderr

    @pytest.mark.parametrize(("leave", "code"), [("sys.exit(5)", 5), ("os.kill(os.getpid(), 9)", 137)])
    def test_other_ends_are_passed_on(self, tmp_path, leave, code):
        done = run_limited(f"go_on_in_a_child(); {leave}", tmp_path, megabytes=2048)

        assert (done.returncode, done.stderr) == (code, "")

    def test_without_a_limit_there_is_no_child(self, monkeypatch):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        before = os.getpid()

        limited_memory.go_on_in_a_child()

        assert os.getpid() == before

    def test_the_child_ends_with_its_parent(self, tmp_path):
        kill_parent = "go_on_in_a_child(); os.kill(os.getppid(), 9); time.sleep(5); open('alive', 'w')"

        run_limited(kill_parent, tmp_path, megabytes=2048)

        assert os.listdir(tmp_path) == []


def run_limited(program, folder, *, megabytes):
    """Run a program in a process whose address space is limited; waits until its pipes are closed, also by a child."""
    start = "import ctypes, os, sys, time; from sfumato.cli.limited_memory import go_on_in_a_child; "

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTES, megabytes * MEGABYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        [sys.executable, "-c", start + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
        preexec_fn=limit,
    )
