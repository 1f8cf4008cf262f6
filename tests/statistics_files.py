"""Files of statistics packages for tests: a survey with a codebook, and a SAS file, which none of them writes."""

from __future__ import annotations

import ctypes
import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat

CANARY = "CANARY-7f3a"
VALUE_LABELS: dict[str, dict[Any, str]] = {
    "sex": {1: "male", 2: "female", 3: f"other {CANARY}"},
    "region": {1: "North", 2: "East", 3: "South"},
    "edu": {1: "none", 2: "school", 3: "college", 4: "university", 9: f"refused {CANARY}"},
    "sat": {0: "not at all", 10: "completely"},
    "ill": {0: "no", 1: "yes"},
}
COLUMN_LABELS = {"sex": "Sex of the person", "ill": "Is ill", "person": f"Name {CANARY}", "sat": "Satisfaction"}


def survey(n_rows: int = 240) -> pd.DataFrame:
    """Rows whose education is 9 in some, a missing code; nobody has sex 3."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "person": [f"{CANARY} {i}" for i in range(n_rows)],
            "sex": rng.integers(1, 3, n_rows),
            "region": rng.integers(1, 4, n_rows),
            "edu": rng.choice([1, 2, 3, 4, 9], n_rows),
            "sat": rng.integers(0, 11, n_rows),
            "share": rng.integers(0, 4, n_rows) / 4 + 0.125,
            "note": rng.choice(["a", "bé", ""], n_rows),
            "ill": rng.integers(0, 2, n_rows),
        }
    )
    first = datetime.date(2020, 2, 28)
    frame["day"] = [first + datetime.timedelta(days=int(d)) for d in rng.integers(0, 4, n_rows)]
    return frame


def write_survey(path: Path) -> Path:
    """Write the survey with its codebook, a title and a note, in the format of the suffix."""
    frame, labels = survey(), dict(VALUE_LABELS)
    title: dict[str, Any] = {"file_label": f"Title {CANARY}", "column_labels": COLUMN_LABELS}
    if path.suffix in (".sav", ".zsav"):
        frame["code"] = np.where(frame["sex"] == 1, "m", "f")
        labels["code"] = {"m": "Man", "f": "Woman"}
        pyreadstat.write_sav(
            frame,
            path,
            compress=path.suffix == ".zsav",
            note=[f"Note {CANARY}"],
            variable_value_labels=labels,
            missing_ranges={"edu": [9]},
            variable_measure={"edu": "ordinal", "region": "nominal"},
            **title,
        )
    elif path.suffix == ".dta":
        frame["edu"] = frame["edu"].astype(object)
        frame.loc[frame["edu"] == 9, "edu"] = "a"
        labels["edu"] = {1: "none", 2: "school", 3: "college", 4: "university", "a": f"refused {CANARY}"}
        missing = {"missing_user_values": {"edu": ["a"]}}
        pyreadstat.write_dta(frame, path, variable_value_labels=labels, **missing, **title)
    else:
        pyreadstat.write_xport(frame, path, **title)
    return path


def sas_file(n_rows: int = 40) -> bytes:
    """Make a sas7bdat file by the library under pyreadstat, which offers its writer of them to nobody."""
    from pyreadstat import _readstat_writer

    library = ctypes.CDLL(_readstat_writer.__file__)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    content = bytearray()

    @ctypes.CFUNCTYPE(ctypes.c_ssize_t, pointer, ctypes.c_size_t, pointer)
    def take(data: int, n_bytes: int, _: int) -> int:
        content.extend(ctypes.string_at(data, n_bytes))
        return n_bytes

    library.readstat_writer_init.restype = pointer
    library.readstat_add_variable.restype = pointer
    library.readstat_add_variable.argtypes = [pointer, text, ctypes.c_int, ctypes.c_size_t]
    library.readstat_insert_double_value.argtypes = [pointer, pointer, ctypes.c_double]
    library.readstat_insert_missing_value.argtypes = [pointer, pointer]
    library.readstat_insert_string_value.argtypes = [pointer, pointer, text]
    library.readstat_variable_set_label.argtypes = [pointer, text]
    library.readstat_variable_set_format.argtypes = [pointer, text]
    writer = pointer(library.readstat_writer_init())
    library.readstat_set_data_writer(writer, take)
    age = library.readstat_add_variable(writer, b"age", 5, 0)
    name = library.readstat_add_variable(writer, b"name", 0, 12)
    day = library.readstat_add_variable(writer, b"day", 5, 0)
    library.readstat_variable_set_label(age, b"Age in years")
    library.readstat_variable_set_format(day, b"DATE9")
    library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(n_rows))
    for i in range(n_rows):
        library.readstat_begin_row(writer)
        if i == 3:
            library.readstat_insert_missing_value(writer, age)
        else:
            library.readstat_insert_double_value(writer, age, 20.0 + i % 5)
        library.readstat_insert_string_value(writer, name, [b"a", CANARY.encode()][i % 2])
        library.readstat_insert_double_value(writer, day, 22_000.0 + i % 3)
        library.readstat_end_row(writer)
    library.readstat_end_writing(writer)
    library.readstat_writer_free(writer)
    return bytes(content)
