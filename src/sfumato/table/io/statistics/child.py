"""Program of the process that parses a file of a statistics package: a path or bytes come in, columns go out.

The parser is native code, and a damaged file may end the process that it runs in, or never end. So this file is run by
its path, with the standard library, numpy and pyreadstat alone; it imports nothing of sfumato but the program for
workbooks, which it is a sibling of.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import sys
from pathlib import Path
from typing import Any

GREETING = b"ready for a file of a statistics package\n"

COLUMNS = "columns"
DAMAGED = "damaged"
NOT_TEXT = "not text"
NO_MEMORY = "no memory"

NUMBERS, TEXTS = "numbers", "texts"
"""Of each column of a block: doubles (not-a-number: missing), or distinct texts and codes of them."""

_READERS = {
    "sav": "read_sav",
    "zsav": "read_sav",
    "por": "read_por",
    "dta": "read_dta",
    "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}
_WITHOUT_MISSING_CODES = ("xpt", "por")
_LEAST_SECONDS = 120
_BYTES_A_SECOND = 50_000
_NO_UTF8 = ("decod", "convert", "encod")


def described(found: Any) -> dict[str, Any]:
    """Give what a file says of its columns, as plain data."""
    names = list(found.column_names)
    labels = {name: dict(own) for name, own in found.variable_value_labels.items()}
    ranges = {name: [(own["lo"], own["hi"]) for own in given] for name, given in found.missing_ranges.items()}
    return {
        "names": names,
        "are_texts": [found.readstat_variable_types[name] == "string" for name in names],
        "formats": [found.original_variable_types[name] or "" for name in names],
        "labels": list(found.column_labels),
        "value_labels": [list(labels.get(name, {}).items()) for name in names],
        "missing": [ranges.get(name, []) for name in names],
        "measures": [found.variable_measure.get(name) or "" for name in names],
    }


def main() -> None:
    """Greet, take one order from standard input, and answer on standard output, at the end ``None``."""
    sys.path.extend(sys.argv[1:])
    import numpy as np
    import pyreadstat

    sys.path.append(str(Path(__file__).parents[1]))
    import excel_child  # type: ignore[import-not-found]

    excel_child.leave_no_traces()
    gc.disable()
    given, answer = sys.stdin.buffer, sys.stdout.buffer
    answer.write(GREETING)
    answer.flush()
    order = pickle.load(given)
    source = _source(order["path"], given, order["n_bytes"])
    excel_child.end_with_parent(given.fileno())
    _limit(order["memory"], order["n_bytes"])
    read = getattr(pyreadstat, _READERS[order["format"]])
    with_user_missing = {} if order["format"] in _WITHOUT_MISSING_CODES else {"user_missing": True}
    settings: dict[str, Any] = {"output_format": "dict"}
    if order["format"] != "por":  # which says it itself
        settings["encoding"] = order["encoding"]

    def say(outcome: object) -> None:
        pickle.dump(outcome, answer, pickle.HIGHEST_PROTOCOL)
        answer.flush()

    try:
        _, found = read(source(), metadataonly=True, **with_user_missing, **settings)
        about = described(found)
        say((COLUMNS, about))
        wanted = about["names"]
        texts = {name for name, is_text in zip(about["names"], about["are_texts"], strict=True) if is_text}
        n_rows = max(1, order["cells"] // max(1, len(wanted)))
        start = 0
        while wanted:
            cells, _ = read(source(), row_offset=start, row_limit=n_rows, disable_datetime_conversion=True, **settings)
            columns = [_column(np, cells[name], is_text=name in texts) for name in wanted]
            n_read = len(cells[wanted[0]])
            if n_read:
                say((COLUMNS, (n_read, columns)))
            del cells, columns
            if n_read < n_rows:
                break
            start += n_read
        say(None)
    except MemoryError:
        say((NO_MEMORY, None))
    except Exception as error:  # of many kinds; what it says may quote cells
        is_encoding = isinstance(error, UnicodeError) or any(word in str(error).lower() for word in _NO_UTF8)
        say((NOT_TEXT if is_encoding else DAMAGED, None))


def _source(path: str | None, given: Any, n_bytes: int) -> Any:
    """Give what opens the file: its path, or its bytes under a name that only this process has."""
    if path is not None:
        return lambda: path
    data = given.read(n_bytes)
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            held = os.memfd_create("file")
            left = memoryview(data)
            while left:
                left = left[os.write(held, left) :]
            if Path(f"/proc/self/fd/{held}").is_file():
                return lambda: f"/proc/self/fd/{held}"
    return lambda: io.BytesIO(data)


def _limit(memory: int, n_bytes: int) -> None:
    """Let a file that says that it is endless end in an error, and a parser that runs in a circle end at all."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        n_now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = n_now + memory if hard == resource.RLIM_INFINITY else min(n_now + memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        seconds = _LEAST_SECONDS + n_bytes // _BYTES_A_SECOND
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _column(np: Any, cells: Any, *, is_text: bool) -> tuple[str, Any, bytes]:
    """Cells as bytes: texts by their distinct values, where an empty one is missing, as these packages have it."""
    if is_text:
        places: dict[str, int] = {}
        codes = [places.setdefault(cell, len(places)) if cell else -1 for cell in cells]
        return TEXTS, [text.encode() for text in places], np.array(codes, np.int32).tobytes()
    return NUMBERS, None, np.array(cells, np.float64).tobytes()


if __name__ == "__main__":
    main()
