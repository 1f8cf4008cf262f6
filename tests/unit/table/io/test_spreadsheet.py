"""Workbooks are parsed in a process of their own: what comes back is exact, and what happens there stays there."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.table.io import excel as spreadsheet
from sfumato.table.io import excel_child as workbook_child
from sfumato.table.io.excel_child import ROWS, read_sheet
from sfumato.table.io.read import ReadOptions, read_table
from sizes import examples
from waiting import until

CANARY = "CANARY-7f3a"
LONGEST = 30.0

STAND_IN = """
import ctypes, fcntl, os, pickle, sys, time

class PasswordError(Exception):
    pass

class PanicException(BaseException):
    pass

def recurse():
    recurse()

def hold(path):
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ctypes.PyDLL(None).sleep(60)  # no Python thread and no handler of a signal runs meanwhile

class Sheet:
    def __init__(self, rows):
        self.rows, self.end = rows, (len(rows) - 1, max(map(len, rows)) - 1) if rows else None

    def to_python(self, skip_empty_area):
        assert not skip_empty_area
        return self.rows

class CalamineWorkbook:
    sheet_names = ["first"]

    @classmethod
    def from_filelike(cls, file):
        data = file.read()
        cls.rows = None if data.startswith(b"PK") else pickle.loads(data)
        {action}
        return cls()

    def get_sheet_by_name(self, name):
        return Sheet(self.rows)
"""


def stand_in_command(folder: Path, action: str) -> list[str]:
    """Command line of the process with a parser that does something else, found in a folder of its own."""
    package = folder / "stand-in" / "python_calamine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN.replace("{action}", action), encoding="utf-8")
    return [sys.executable, "-B", "-I", "-S", workbook_child.__file__, str(package.parent)]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give a function that puts a parser in place which does the given."""

    def put(action: str) -> None:
        command = stand_in_command(tmp_path, action)
        monkeypatch.setattr(spreadsheet, "_command", lambda: command)

    return put


@pytest.fixture(scope="module")
def unpickling(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return stand_in_command(tmp_path_factory.mktemp("unpickling"), "pass")


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Collect all processes that are started; none may be left when a test ends."""
    children: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            children.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    yield children
    assert all(child.returncode is not None for child in children)


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")


def workbook(rows: list[list[object]], *titles: str) -> bytes:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        formats = {
            datetime.date: book.add_format({"num_format": "yyyy-mm-dd"}),
            datetime.datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            datetime.time: book.add_format({"num_format": "hh:mm:ss"}),
            datetime.timedelta: book.add_format({"num_format": "[h]:mm:ss"}),
        }
        for title in titles or ("first",):
            sheet = book.add_worksheet(title)
            for i, row in enumerate(rows):
                for j, cell in enumerate(row):
                    sheet.write(i, j, cell, formats.get(type(cell)))
    return file.getvalue()


def typed(rows: Any) -> list[list[tuple[type, str]]]:
    """Cells as type and text, which tell 1 from 1.0 and True, and let nan be itself."""
    return [[(type(cell), repr(cell)) for cell in row] for row in rows]


ANY_CELL = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    *(st.dates(), st.times(), st.datetimes(), st.timedeltas()),
)
CELLS: list[list[object]] = [
    ["text", "é\U0001f600", " a ", "=1", "\u2028"],
    [1, 2.5, 1e300, -0.0, 12345678901234.0],
    [True, False, None, "TRUE", 0],
    [datetime.date(2020, 2, 29), datetime.datetime(1999, 12, 31, 23, 59, 58), datetime.time(1, 2, 3)],
    [datetime.timedelta(hours=30, minutes=1), "", CANARY],
    [],
    ["", "", "far"],
]


class TestWhatComesBack:
    @pytest.mark.slow
    def test_is_what_the_parser_gives_in_this_process(self) -> None:
        data = workbook(CELLS)
        found = spreadsheet._parsed_apart(data, None)

        assert found is not None
        assert found[0] == ROWS
        assert typed(found[1]) == typed(read_sheet(data, None, 10**6)[1])
        kinds = {kind for row in typed(found[1]) for kind, _ in row}
        assert {str, float, bool, datetime.date, datetime.datetime, datetime.time, datetime.timedelta} <= kinds

    @pytest.mark.slow
    @pytest.mark.parametrize("n_rows", [0, 1, 999, 1000, 1001, 2500])
    def test_comes_whole_in_pieces(self, stand_in: Callable[[str], None], n_rows: int) -> None:
        stand_in("pass")
        rows = [[i, str(i)] for i in range(n_rows)]

        assert spreadsheet._parsed_apart(pickle.dumps(rows), None) == (ROWS, rows)

    @pytest.mark.slow
    @examples(30)
    @given(st.lists(st.lists(ANY_CELL)))
    def test_has_the_same_types(self, unpickling: list[str], rows: list[list[object]]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spreadsheet, "_command", lambda: unpickling)
            found = spreadsheet._parsed_apart(pickle.dumps(rows), None)

        assert found is not None
        assert typed(found[1]) == typed(rows)

    @pytest.mark.slow
    def test_may_be_large(self, stand_in: Callable[[str], None]) -> None:
        stand_in("cls.rows = [['x' * 1000] * 10] * 5000")
        found = spreadsheet._parsed_apart(b"PK" + bytes(1 << 22), None)

        assert found is not None
        assert (len(found[1]), len(found[1][-1][-1])) == (5000, 1000)


class TestWhatIsRefused:
    @pytest.mark.slow
    @pytest.mark.parametrize("is_apart", [True, False])
    def test_is_refused_in_the_same_words_in_both_ways(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any], is_apart: bool
    ) -> None:
        path = tmp_path / "t.xlsx"
        path.write_bytes(workbook([["a"], [1]], "first", "second"))
        if not is_apart:
            in_this_process(monkeypatch)

        with pytest.raises(InputError, match=r"t.xlsx: has no sheet 'secnd'. Hint: did you mean 'second'\?$"):
            read_table(path, options=ReadOptions(sheet="secnd"))
        with pytest.raises(InputError, match=r"has no sheet '\udcff'\. Hint: it has 'first', 'second'$"):
            read_table(path, options=ReadOptions(sheet="\udcff"))
        path.write_bytes(workbook([["a"], [1]])[:-30])
        with pytest.raises(InputError, match=r"cannot be read as an Excel workbook\. Hint: is it damaged, or a text"):
            read_table(path)
        assert len(started) == (3 if is_apart else 0)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("action", "message"),
        [
            ("raise PasswordError", "is protected by a password. Hint: save a copy without one"),
            ("cls.sheet_names = []", "holds no sheet."),
            ("raise ValueError(data)", "cannot be read as an Excel workbook. Hint: is it damaged, or a text file"),
            ("raise PanicException(data)", "cannot be read as an Excel workbook. Hint: is it damaged, or a text file"),
            ("recurse()", "cannot be read as an Excel workbook. Hint: is it damaged, or a text file"),
            ("cls.rows = [[]] * 10**6 + [[1] * 100]", "holds a sheet of 1,000,001 rows and 100 columns, more than"),
        ],
    )
    def test_has_its_reason(self, tmp_path: Path, stand_in: Callable[[str], None], action: str, message: str) -> None:
        stand_in(action)

        with pytest.raises(InputError) as caught:
            read_table(some_workbook(tmp_path))
        assert message in str(caught.value)

    @pytest.mark.slow
    def test_no_memory_is_no_damage(self, tmp_path: Path, stand_in: Callable[[str], None]) -> None:
        stand_in("raise MemoryError")

        with pytest.raises(MemoryError):
            read_table(some_workbook(tmp_path))


class TestParserThatTakesItsProcessDown:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("action", "cause"),
        [
            ("os.abort()", "its process was ended by signal 6"),
            ("ctypes.string_at(0)", "its process was ended by signal 11"),
            ("os._exit(3)", "its process ended early (exit code 3)"),
            ("os._exit(0)", "its process ended early (exit code 0)"),
            ("raise SystemExit(4)", "its process ended early (exit code 4)"),
            ("os.kill(os.getpid(), 9)", "its process was ended by signal 9; perhaps the memory was used up"),
        ],
    )
    def test_is_an_error_of_the_file(
        self, tmp_path: Path, stand_in: Callable[[str], None], action: str, cause: str
    ) -> None:
        stand_in(action)

        with pytest.raises(InputError) as caught:
            read_table(some_workbook(tmp_path))
        assert f"t.xlsx: cannot be read as an Excel workbook: {cause}. Hint: is it damaged?" in str(caught.value)

    @pytest.mark.slow
    def test_says_nothing(
        self, tmp_path: Path, stand_in: Callable[[str], None], capfd: pytest.CaptureFixture[str]
    ) -> None:
        stand_in(f"sys.stderr.write('{CANARY}'); os.write(2, b'{CANARY}'); raise SystemExit('{CANARY}')")

        with pytest.raises(InputError) as caught:
            read_table(some_workbook(tmp_path))
        assert capfd.readouterr() == ("", "")
        assert CANARY not in str(caught.value)

    @pytest.mark.slow
    def test_leaves_no_image_of_its_memory(self, stand_in: Callable[[str], None]) -> None:
        stand_in("import resource; cls.rows = [list(resource.getrlimit(resource.RLIMIT_CORE))]")

        assert spreadsheet._parsed_apart(b"PK", None) == (ROWS, [[0, 0]])

    @pytest.mark.slow
    @pytest.mark.parametrize("action", ["cls.rows = [[os.system]]", "os.write(1, b'x' * 100)"])
    def test_cannot_make_this_process_run_anything(self, stand_in: Callable[[str], None], action: str) -> None:
        stand_in(action)
        found = spreadsheet._parsed_apart(b"PK", None)

        assert found is not None
        assert found[0] not in (ROWS, workbook_child.DAMAGED)


READS = "import sys; from sfumato.table.io import excel; excel._command = lambda: {command!r}; "
READS += "excel._parsed_apart(b'PK', None)"


class TestEnds:
    """Whoever ends the reading process, on purpose or not, ends the one that parses, in the middle of native code."""

    @pytest.fixture
    def reading(self, tmp_path: Path, hears_ctrl_c: None) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Give a process that reads, in a session of its own, and a file that is locked while its child lives."""
        held = tmp_path / "held"
        command = stand_in_command(tmp_path, f"hold({str(held)!r})")
        program = [sys.executable, "-c", READS.format(command=command)]
        with subprocess.Popen(program, start_new_session=True, stderr=subprocess.PIPE) as process:
            try:
                until(lambda: held.exists() and is_locked(held))
                yield process, held
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child ends when it answers")
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_with_its_parent(self, reading: tuple[subprocess.Popen[bytes], Path], number: int) -> None:
        process, held = reading
        process.send_signal(number)

        assert process.wait(LONGEST) == -number
        until(lambda: not is_locked(held))

    @pytest.mark.slow
    @pytest.mark.parametrize("is_for_both", [True, False])
    def test_by_an_interrupt(self, reading: tuple[subprocess.Popen[bytes], Path], is_for_both: bool) -> None:
        process, held = reading
        if is_for_both:  # as from the keyboard
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.read()

        assert process.wait(LONGEST) == -signal.SIGINT
        assert told.count(b"Traceback") == 1
        assert told.rstrip().endswith(b"KeyboardInterrupt")
        until(lambda: not is_locked(held))

    @pytest.mark.slow
    def test_an_interrupt_of_the_child_alone_is_no_damage(
        self, hears_ctrl_c: None, stand_in: Callable[[str], None]
    ) -> None:
        stand_in("os.kill(os.getpid(), 2)")

        with pytest.raises(KeyboardInterrupt):
            spreadsheet._parsed_apart(b"PK", None)

    @pytest.mark.slow
    def test_native_code_does_not_delay_an_interrupt(self, hears_ctrl_c: None, stand_in: Callable[[str], None]) -> None:
        stand_in("import signal; cls.rows = [[int(signal.getsignal(signal.SIGINT))]]")

        assert spreadsheet._parsed_apart(b"PK", None) == (ROWS, [[int(signal.SIG_DFL)]])


def is_locked(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class TestPlaces:
    @pytest.mark.slow
    @pytest.mark.parametrize("executable", ["", None, "/usr/sbin/uwsgi", "/nowhere/python3"])
    def test_without_a_python_to_start_it_is_read_in_this_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any], executable: str | None
    ) -> None:
        monkeypatch.setattr(sys, "executable", executable)

        assert read_table(some_workbook(tmp_path)).n_rows == 1
        assert started == []

    def test_in_a_frozen_program_it_is_read_in_this_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any]
    ) -> None:
        monkeypatch.setattr(sys, "frozen", True, raising=False)

        assert read_table(some_workbook(tmp_path)).n_rows == 1
        assert started == []

    @pytest.mark.slow
    @pytest.mark.parametrize("body", ["exit 0", "exec cat", "echo Python 3; sleep 60"])
    def test_with_a_program_that_is_no_python_it_is_read_in_this_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any], body: str
    ) -> None:
        program = tmp_path / "python3"
        program.write_text(f"#!/bin/sh\nprintf 'not at all a greeting'\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))

        assert read_table(some_workbook(tmp_path)).n_rows == 1
        assert len(started) == 1

    @pytest.mark.slow
    def test_nothing_of_the_current_folder_is_imported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("pickle", "gc", "signal", "python_calamine", "sitecustomize", "sfumato"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        assert spreadsheet._parsed_apart(workbook([["a"]]), None) == (ROWS, [["a"]])

    @pytest.mark.slow
    def test_in_a_current_folder_that_is_gone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "gone"
        folder.mkdir()
        monkeypatch.chdir(folder)
        folder.rmdir()

        assert spreadsheet._parsed_apart(workbook([["a"]]), None) == (ROWS, [["a"]])

    @pytest.mark.slow
    def test_in_threads(self, started: list[Any]) -> None:
        books = [workbook([["a"], [i]]) for i in range(8)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda data: spreadsheet._parsed_apart(data, None), books))

        assert found == [(ROWS, [["a"], [float(i)]]) for i in range(8)]
        assert len(started) == 8

    @pytest.mark.slow
    def test_in_a_process_that_may_have_no_children_of_its_kind(self) -> None:
        process = multiprocessing.get_context("spawn").Process(target=read_apart, daemon=True)
        process.start()
        process.join(LONGEST)

        assert process.exitcode == 0


def read_apart() -> None:
    assert multiprocessing.current_process().daemon
    assert spreadsheet._parsed_apart(workbook([["a"]]), None) == (ROWS, [["a"]])


def some_workbook(folder: Path) -> Path:
    path = folder / "t.xlsx"
    path.write_bytes(workbook([["a"], [1]]))
    return path
