"""Tools of the tests of tables larger than memory: files, small blocks, and what comes of an order."""

import csv
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow.parquet

from sfumato.audit.bytes import parquet as parquet_bytes
from sfumato.audit.bytes import text as text_bytes
from sfumato.engines import counting as blocks
from sfumato.engines.blocks import rows as distinct
from sfumato.errors import PrivacyNotAchievableError
from sfumato.table.io import csv as delimited_blocks
from sfumato.table.io import parquet
from sfumato.table.weighted import OpenColumn


def small_blocks():
    """Make everything come in several blocks, however few rows there are."""
    stack = ExitStack()
    for module, name, value in (
        (delimited_blocks, "BLOCK_BYTES", 97),
        (parquet, "BLOCK_ROWS", 5),
        (distinct, "_FEWEST_PENDING", 3),
        (blocks, "_FEWEST_PENDING", 3),
        (parquet, "ROWS_OF_A_GROUP", 7),
        (parquet_bytes, "BLOCK_ROWS", 5),
        (text_bytes, "BLOCK_BYTES", 97),
    ):
        stack.enter_context(patch.object(module, name, value))
    return stack


def write_file(cells, path, row_group_size=11):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(cells, path, row_group_size=row_group_size)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(cells.column_names)
        writer.writerows(["" if cell is None else cell for cell in row.values()] for row in cells.to_pylist())


def made_open(large, name):
    """Let the values of a column not be listed, as if there were too many."""
    column = large.outline[name]
    nothing = np.zeros(0, dtype=np.int32)
    opened = OpenColumn(nothing, column.values.slice(0, 0), large.n_rows, column.n_missing, large.schema[name].kind)
    stored = {**large._stored, name: large._stored[name].slice(0, 0)}
    outline = replace(large.outline, columns={**large.outline.columns, name: opened})
    return replace(large, outline=outline, _stored=stored)


def outcome(make, *arguments):
    """Give the release, or why there is none."""
    try:
        return make(*arguments)
    except PrivacyNotAchievableError as error:
        return str(error)
