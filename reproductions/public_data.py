"""Public data sets from a local folder, checked against known checksums. Nothing is fetched over the network."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
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
from sfumato.table.io.read import ReadOptions, read_table

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
_ILPD_COLUMNS = (
    Column("age", kind=Kind.NUMERIC),
    Column("gender"),
    Column("total-bilirubin", kind=Kind.NUMERIC),
    Column("direct-bilirubin", kind=Kind.NUMERIC),
    Column("alkaline-phosphatase", kind=Kind.NUMERIC),
    Column("sgpt", kind=Kind.NUMERIC),
    Column("sgot", kind=Kind.NUMERIC),
    Column("total-protein", kind=Kind.NUMERIC),
    Column("albumin", kind=Kind.NUMERIC),
    Column("albumin-globulin-ratio", kind=Kind.NUMERIC),
    Column("patient", Role.TARGET),
)
_DIABETES_IDENTIFIERS = ("encounter_id", "patient_nbr")
_DIABETES_NUMBERS = (
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
)
_DIABETES_TARGET = "readmitted"
_ADULT_FILES = {"train": ("adult.data",), "test": ("adult.test",), "all": ("adult.data", "adult.test")}
_MD5 = {
    "adult.data": "5d7c39d7b8804f071cdd1f2a7c460872",
    "adult.test": "35238206dfdf7f1fe215bbb874adecdc",
    "diabetic_data.csv": "502f0cc004e4cf71536ec2e61596e42f",
    "ilpd.csv": "aea7a7309e79b5018ef5511f4f7c303e",
    "cmc.data": "c9be855c8ebdb27377721199837e4f07",
    "pima-indians-diabetes.csv": "56a8d8ae619fcc223941e54f361b8406",
    "pu1_bare_body.svm.gz": "8818609e67e60fbed2a114ff01eba7fb",
}
_PU1_SHAPE = (1_099, 24_604)


def data_folder() -> Path:
    """Folder of the public data sets: ``SFUMATO_DATA``, or ``shared/data`` next to the checkout.

    Raises
    ------
    InputError
        If there is no such folder.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    folder = Path(named) if named else Path(__file__).resolve().parents[1].parent / "shared" / "data"
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


def load_ilpd(complete: bool = False) -> Table:
    """Indian liver patients: 583 × 11, with the target ``patient`` (1: yes, 416; 2: no, 167); gender is nominal.

    Parameters
    ----------
    complete : bool
        Leave out the four rows without a ratio of albumin to globulin: 579 remain.
    """
    _, _, rows = _checked_bytes("ilpd", "ilpd.csv").partition(b"\n")
    return _read_lines(rows, _ILPD_COLUMNS, "ilpd.csv", missing="", complete=complete)


def load_diabetes130() -> Table:
    """Diabetes in 130 US hospitals, 1999 to 2008: 101,766 stays × 50, with the target ``readmitted`` (three classes).

    Returns
    -------
    Table
        The numbers of stay and patient are identifiers, the other 47 columns quasi-identifying. Counts and days are
        numeric. Codes of admission and discharge are nominal, as are diagnoses and ages, which are given as ranges.
        Seven columns have missing values; only 1,043 rows have none.
    """
    content = _checked_bytes("diabetes130", "diabetic_data.csv", packed=True)
    header, _, rows = content.partition(b"\n")
    columns = [_diabetes_column(name) for name in header.decode().strip().split(",")]
    return _read_lines(rows, columns, "diabetic_data.csv")


def _diabetes_column(name: str) -> Column:
    if name in _DIABETES_IDENTIFIERS:
        return Column(name, Role.IDENTIFIER)
    if name == _DIABETES_TARGET:
        return Column(name, Role.TARGET)
    return Column(name, kind=Kind.NUMERIC if name in _DIABETES_NUMBERS else Kind.CATEGORICAL)


def _read_lines(
    content: bytes, columns: Sequence[Column], name: str, *, missing: str = "?", complete: bool = False
) -> Table:
    """Read the rows of a file without a header; the reader wants a file, so one is made and removed."""
    header = ",".join(column.name for column in columns).encode() + b"\n"
    options = ReadOptions(format="csv", delimiter=",", missing=(missing,), complete_rows_only=complete)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(header + content)
        table = read_table(path, schema=Schema.of(columns, missing=(missing,)), options=options)
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


def _checked_bytes(folder: str, name: str, *, packed: bool = False) -> bytes:
    """Content of a file, that of ``name.gz`` unpacked if ``packed``, if its checksum is the known one."""
    path = data_folder() / folder / (f"{name}.gz" if packed else name)
    try:
        content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is no whole gzip file"
        problem = f"cannot be read ({reason})"
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
