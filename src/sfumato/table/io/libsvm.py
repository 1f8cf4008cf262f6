"""The libsvm / svmlight format: sparse 0/1 rows with a numeric label each.

A feature is called after its own index in the file (``f17``), counted from 0 or from 1 as the file does. Only indices
that the file mentions become features: a release that dropped some columns keeps the numbers of the others, and
``17:0`` mentions a feature without any one. Query ids (``qid:3``) are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.errors import InputError, InvalidParameterError, NotBinaryError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.cells import ColumnCoder, as_text
from sfumato.table.coding import Source, Table
from sfumato.table.io.text import Text

LABEL = "target"

_EXACT_FLOAT_INTEGERS = 2.0**53
_NUMBERED = re.compile(r"f(0|[1-9]\d{0,8})")


def parse_libsvm(text: Text, coder: ColumnCoder, source: Source) -> BinaryTable:
    """Parse a checked text into a binary table whose only other column is the label, as target."""
    matrix, labels = _load(text)
    if matrix.shape[0] == 0:
        problem = "holds no rows"
        raise InputError(problem, path=text.name)
    mentioned, positions = np.unique(matrix.indices, return_inverse=True)
    names = [f"f{index}" for index in mentioned]
    _check_binary(matrix, text)
    ones = np.asarray(matrix.data, dtype=np.uint8)
    compact = sp.csr_matrix((ones, positions, matrix.indptr), shape=(matrix.shape[0], len(names))).tocsc()
    compact.eliminate_zeros()
    compact.sort_indices()
    coded, _ = coder.code(LABEL, pa.array([label_text(value) for value in labels], pa.string()), Kind.CATEGORICAL)
    schema = Schema.of([Column(LABEL, Role.TARGET, Kind.CATEGORICAL)], coder.rules.missing)
    companions = Table(schema, {LABEL: coded}, matrix.shape[0], source)
    return BinaryTable(compact, tuple(Feature(name, name) for name in names), companions)


def _load(text: Text) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    try:
        matrix, labels = load_svmlight_file(text.open(), zero_based=True)
        return matrix, labels
    except (ValueError, OverflowError):
        pass  # its message quotes the cell
    for number, line in _content_lines(text):
        problem = _fault(line.split())
        if problem:
            raise InputError(problem, path=text.name, line=number)
    problem = "cannot be read as libsvm text"
    raise InputError(problem, path=text.name)


def _content_lines(text: Text) -> Iterator[tuple[int, str]]:
    """Lines as the format knows them (line feeds only), without comments and without those that are empty then."""
    for number, line in enumerate(text.open(), start=1):
        content = line.decode().partition("#")[0].strip()
        if content:
            yield number, content


def _fault(parts: list[str]) -> str:
    try:
        float(parts[0])
    except ValueError:
        return "the label is not a number"
    last = -1
    for part in parts[1:]:
        index, colon, value = part.partition(":")
        if index == "qid" and last < 0:
            continue
        try:
            position = int(index)
            float(value)
        except ValueError:
            return "expected INDEX:VALUE pairs after the label"
        if not colon or not 0 <= position < 2**31 - 1:
            return "an index is out of range"
        if position <= last:
            return "indices have to ascend"
        last = position
    return ""


def _check_binary(matrix: Any, text: Text) -> None:
    wrong = np.flatnonzero((matrix.data != 1) & (matrix.data != 0))
    if wrong.size == 0:
        return
    row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
    line = next((number for i, (number, _) in enumerate(_content_lines(text)) if i == row), row + 1)
    problem = f"holds entries that are neither 0 nor 1 ({wrong.size:,} in {text.name}, first on line {line:,})"
    hint = "libsvm files are read as 0/1 features; write other numbers as CSV or Parquet"
    raise NotBinaryError(problem, column=f"f{matrix.indices[wrong[0]]}", hint=hint)


@lru_cache(maxsize=4096)
def label_text(value: float) -> str:
    """Spell a label: 1 for 1.0."""
    is_whole = abs(value) < _EXACT_FLOAT_INTEGERS and value == int(value)
    return str(int(value)) if is_whole else str(as_text(pa.array([float(value)]))[0])


def write_libsvm(table: Table | BinaryTable, file: BinaryIO) -> None:
    """Write a binary table with a numeric target.

    Features called ``f`` and a number, as the reader calls them, keep that number; any others are numbered from 1 in
    their order, and their names are lost.
    """
    if not isinstance(table, BinaryTable):
        raise _refused(
            problem="got columns that are not all 0/1 features", hint="binarize the table first (sfumato.binarize)"
        )
    labels = _labels(table)
    indices = _indices(table.feature_names)
    order = np.argsort(indices)
    rows = table.matrix[:, order].tocsr()
    rows.sort_indices()
    silent = np.flatnonzero(rows.getnnz(axis=0) == 0)
    ones = np.array([f" {index}:1" for index in indices[order]], dtype=object)
    zeros = {int(i): f" {indices[order][i]}:0" for i in silent}  # a reader has to know of these features too
    for row in range(table.n_rows):
        found = rows.indices[rows.indptr[row] : rows.indptr[row + 1]]
        parts = ones[found] if row or not zeros else _in_order({int(i): ones[i] for i in found} | zeros)
        file.write(f"{labels[row]}{''.join(parts)}\n".encode())


def _in_order(parts: dict[int, str]) -> list[str]:
    return [parts[position] for position in sorted(parts)]


def _labels(table: BinaryTable) -> list[str]:
    target = table.companions.schema.target
    if target is None or len(table.companions.columns) > 1:
        problem = "got a table that has more than features and a target"
        raise _refused(problem, hint="write csv or parquet")
    coded = table.companions[target]
    try:
        numbers = coded.numbers()
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise _refused(problem="got labels that are not all numbers", hint="write csv or parquet")
    if not pa.types.is_floating(coded.values.type) and (np.abs(numbers) >= _EXACT_FLOAT_INTEGERS).any():
        raise _refused(problem="got labels of more digits than a double has", hint="write csv or parquet")
    texts = [label_text(number) for number in numbers]
    if pa.types.is_string(coded.values.type) and texts != coded.values.to_pylist():
        raise _refused(problem="got labels such as 01 or 1.0, which would be read as 1", hint="write csv or parquet")
    return [texts[code] for code in coded.codes]


def _indices(names: tuple[str, ...]) -> NDArray[np.int64]:
    matches = [_NUMBERED.fullmatch(name) for name in names]
    if all(matches):
        return np.array([int(match[1]) for match in matches if match], dtype=np.int64)
    return np.arange(1, len(names) + 1, dtype=np.int64)


def _refused(problem: str, hint: str) -> InvalidParameterError:
    allowed = "another one than libsvm unless all columns are 0/1 features and a numeric target"
    return InvalidParameterError("format", problem, allowed=allowed, hint=hint)
