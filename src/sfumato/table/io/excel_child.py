"""Program of the process that parses a workbook: bytes come in, rows go out.

The parser is native code, and a damaged file may end the process that it runs in. So this file is run by its path, with
the standard library and calamine alone; it imports nothing of sfumato, and starts in some hundredths of a second.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import signal
import sys
from typing import Any

GREETING = b"ready for a workbook\n"

ROWS = "rows"
NO_SHEET = "no sheet"
SEVERAL_SHEETS = "several sheets"
LOCKED = "locked"
DAMAGED = "damaged"
TOO_LARGE = "too large"
NO_MEMORY = "no memory"

_ROWS_AT_ONCE = 1000
_KILLED_FIRST = b"1000"


def read_sheet(data: bytes, sheet: str | None, max_cells: int) -> tuple[str, Any]:
    """Parse one sheet: the one named, or the only one that holds something.

    Returns
    -------
    (ROWS, rows), (NO_SHEET, titles), (SEVERAL_SHEETS, titles of those that hold something), (LOCKED, None),
    (DAMAGED, None) or (TOO_LARGE, (n_rows, n_columns))
    """
    import python_calamine  # in a child it is found only once its folder is on the path

    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        titles = workbook.sheet_names
        if not titles or (sheet is not None and sheet not in titles):
            return NO_SHEET, titles
        if sheet is None:
            filled = _filled(workbook, titles)
            if len(filled) > 1:
                return SEVERAL_SHEETS, filled
            sheet = (filled or titles)[0]
        found = workbook.get_sheet_by_name(sheet)
        last_row, last_column = found.end or (-1, -1)
        if (last_row + 1) * (last_column + 1) > max_cells:
            return TOO_LARGE, (last_row + 1, last_column + 1)
        return ROWS, found.to_python(skip_empty_area=False)
    except python_calamine.PasswordError:
        return LOCKED, None
    except BaseException as error:  # a damaged file may end in a panic of the Rust parser, which is no Exception
        is_damage = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if isinstance(error, MemoryError) or not is_damage:
            raise
        return DAMAGED, None


def _filled(workbook: Any, titles: list[str]) -> list[str]:
    """Titles of the sheets that hold a cell; a picture of a chart is no sheet. One sheet alone is not looked into."""
    if len(titles) == 1:
        return titles
    import python_calamine

    tables = [m.name for m in workbook.sheets_metadata if m.typ == python_calamine.SheetTypeEnum.WorkSheet]
    return [title for title in tables if workbook.get_sheet_by_name(title).end is not None]


def main() -> None:
    """Greet, take one workbook from standard input, and answer on standard output in pieces, the last one ``None``."""
    sys.path.append(sys.argv[1])
    import python_calamine  # noqa: F401  (whether it can be is part of the greeting)

    leave_no_traces()
    gc.disable()
    given, answer = sys.stdin.buffer, sys.stdout.buffer
    answer.write(GREETING)
    answer.flush()
    sheet, max_cells, n_bytes = pickle.load(given)
    data = given.read(n_bytes)
    end_with_parent(given.fileno())
    try:
        outcome, found = read_sheet(data, sheet, max_cells)
    except MemoryError:
        outcome, found = NO_MEMORY, None
    rows = found if outcome == ROWS else []
    pickle.dump((outcome, None if outcome == ROWS else found), answer, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        pickle.dump(rows[start : start + _ROWS_AT_ONCE], answer, pickle.HIGHEST_PROTOCOL)
    pickle.dump(None, answer, pickle.HIGHEST_PROTOCOL)
    answer.flush()


def leave_no_traces() -> None:
    """End at once when interrupted, before others when memory runs out, and without an image of the memory on disk."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), _KILLED_FIRST)


def end_with_parent(given: int) -> None:
    """Ask for a signal when the parent is gone and its end of the pipe closes; the parser lets no Python thread run."""
    if not hasattr(os, "O_ASYNC"):
        return
    import fcntl
    import select

    with contextlib.suppress(OSError):
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        fcntl.fcntl(given, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(given, fcntl.F_SETFL, fcntl.fcntl(given, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([given], [], [], 0)[0]:  # gone already
            os._exit(1)


if __name__ == "__main__":
    main()
