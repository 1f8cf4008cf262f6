"""Public data sets from a local folder, checked against known checksums. Nothing is fetched over the network."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Source, Table
from sfumato.table.read import ReadOptions, read_table

FOLDER_VARIABLE = "SFUMATO_DATA"

_ADULT_COLUMNS = (
    Column("age", kind=Kind.NUMERIC),
    Column("workclass"),
    Column("fnlwgt", Role.IDENTIFIER, Kind.NUMERIC),
    Column("education"),
    Column("education-num", kind=Kind.NUMERIC),
    Column("marital-status"),
    Column("occupation"),
    Column("relationship"),
    Column("race"),
    Column("sex"),
    Column("capital-gain", Role.SENSITIVE, Kind.NUMERIC),
    Column("capital-loss", Role.SENSITIVE, Kind.NUMERIC),
    Column("hours-per-week", kind=Kind.NUMERIC),
    Column("native-country"),
    Column("salary", Role.TARGET),
)
_CMC_COLUMNS = (
    Column("wife-age", kind=Kind.NUMERIC),
    Column("wife-education"),
    Column("husband-education"),
    Column("children", kind=Kind.NUMERIC),
    Column("wife-religion"),
    Column("wife-working"),
    Column("husband-occupation"),
    Column("living-standard"),
    Column("media-exposure"),
    Column("method", Role.TARGET),
)
_PIMA_COLUMNS = (
    *(Column(name, kind=Kind.NUMERIC) for name in ("pregnancies", "glucose", "pressure", "skin", "insulin", "mass")),
    Column("pedigree", kind=Kind.NUMERIC),
    Column("age", kind=Kind.NUMERIC),
    Column("diabetes", Role.TARGET),
)
_ADULT_FILES = {"train": ("adult.data",), "test": ("adult.test",), "all": ("adult.data", "adult.test")}
_MD5 = {
    "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
    "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
    "cmc.data": "c9be855c8ebdb27377721199837e4f07",
    "pima-indians-diabetes.csv": "56a8d8ae619fcc223941e54f361b8406",
    "pu1_bare_body.svm.gz": "8818609e67e60fbed2a114ff01eba7fb",
}
_PU1_SHAPE = (1_099, 24_604)


def data_folder() -> Path:
    """Folder of the public data sets: ``SFUMATO_DATA``, or ``shared/data`` beside the checkout.

    Raises
    ------
    InputError
        If there is no such folder.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else Path(__file__).resolve().parents[3].parent / "shared" / "data"
    if not folder.is_dir():
        problem = "the folder of the public data sets does not exist"
        hint = (
            f"fetch Adult (adult.data and adult.test, archive.ics.uci.edu/dataset/2) into a folder adult, PU1 "
            f"(pu1_bare_body.svm.gz) into a folder pu1, and set {FOLDER_VARIABLE} to the folder above them"
        )
        raise InputError(problem, path=folder, hint=hint)
    return folder


def load_adult(part: Literal["train", "test", "all"] = "train", complete: bool = False) -> Table:
    """UCI Adult (census income), with the target ``salary``.

    Parameters
    ----------
    part : {"train", "test", "all"}
        ``train`` is adult.data (32,561 rows), ``test`` adult.test (16,281), ``all`` one after the other.
    complete : bool
        Leave out the rows with missing values: 30,162, 15,060 and 45,222 remain.

    Returns
    -------
    Table
        The sampling weight ``fnlwgt`` has the role identifier (21,648 values in adult.data: it nearly names the row),
        capital gain and loss are sensitive, all else is quasi-identifying.
    """
    if part not in _ADULT_FILES:
        where, problem = "part", f"got {part!r}"
        raise InvalidParameterError(where, problem, allowed="'train', 'test' or 'all'")
    content = b"".join(_adult_lines(_checked_bytes("adult", name)) for name in _ADULT_FILES[part])
    return _read_lines(content, _ADULT_COLUMNS, " + ".join(_ADULT_FILES[part]), complete=complete)


def load_cmc() -> Table:
    """Contraceptive method choice (the paper's "Contra"): 1,473 × 10, with the target ``method`` (629 / 333 / 511).

    Age and number of children are numeric, the rest is nominal, as in the reference values for J48.
    """
    return _read_lines(_checked_bytes("cmc", "cmc.data"), _CMC_COLUMNS, "cmc.data")


def load_pima() -> Table:
    """Pima Indians diabetes: 768 × 9, all numeric but the target ``diabetes`` (500 / 268)."""
    name = "pima-indians-diabetes.csv"
    return _read_lines(_checked_bytes("pima", name), _PIMA_COLUMNS, name)


def _read_lines(content: bytes, columns: Sequence[Column], name: str, *, complete: bool = False) -> Table:
    """Read the rows of a file without a header; the reader wants a file, so one is made and removed."""
    header = ",".join(column.name for column in columns).encode() + b"\n"
    options = ReadOptions(format="csv", delimiter=",", missing=("?",), complete_rows_only=complete)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(header + content)
        table = read_table(path, schema=Schema.of(columns, missing=("?",)), options=options)
    if not isinstance(table, Table):
        raise AssertionError
    return replace(table, source=Source(name, hashlib.sha256(content).hexdigest(), "csv"))


def load_pu1() -> BinaryTable:
    """PU1 e-mail corpus, body words: 1,099 messages × 24,604 words with the target ``spam`` (481 yes, 618 no).

    The corpus is for non-commercial experiments and must not be passed on.
    """
    from sklearn.datasets import load_svmlight_file

    path = data_folder() / "pu1" / "pu1_bare_body.svm.gz"
    content = _checked_bytes("pu1", path.name)
    matrix, labels = load_svmlight_file(str(path), zero_based=False)
    if matrix.shape != _PU1_SHAPE:
        problem = f"is {matrix.shape} where {_PU1_SHAPE} was expected"
        raise InputError(problem, path=path)
    spam = pa.table({"spam": np.where(labels > 0, "yes", "no")})
    source = Source(path.name, hashlib.sha256(content).hexdigest(), "libsvm")
    companions = Table.from_arrow(spam, Schema.of([Column("spam", Role.TARGET)]), source)
    names = [f"w{i}" for i in range(1, _PU1_SHAPE[1] + 1)]
    return BinaryTable(as_binary_matrix(matrix, names), tuple(Feature(name, name) for name in names), companions)


def _checked_bytes(folder: str, name: str) -> bytes:
    path = data_folder() / folder / name
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise InputError(problem, path=path) from None
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != _MD5[name]:
        problem = f"is not the file that was expected: md5 {found}, not {_MD5[name]}"
        raise InputError(problem, path=path, hint="fetch the official copy again")
    return content


def _adult_lines(content: bytes) -> bytes:
    """Leave out comments and empty lines, the blank after each comma, and the full stop after a test label."""
    lines: Sequence[bytes] = content.splitlines()
    kept = [line.rstrip(b".").replace(b", ", b",") for line in lines if line.strip() and not line.startswith(b"|")]
    return b"\n".join(kept) + b"\n"
