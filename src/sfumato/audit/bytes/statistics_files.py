"""Every byte of a released SPSS, Stata or SAS transport file is accounted for.

The file is parsed into its stored cells, and a file is made of these and of the manifest alone, by our own calls of the
library that writes such files. If that is the very file, it holds its cells, the labels that the manifest states, and
nothing else: no note, no title, no missing codes, no label of a value that no row has, nothing in unused places. With
another version of the library that writes other bytes, the file is refused: nothing else accounts for it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.bytes.parquet import NotAccountedError
from sfumato.audit.claims import ClaimedColumn, Claims
from sfumato.errors import InputError
from sfumato.schema import Kind
from sfumato.table.io.statistics.read import Codebook, RawFile, RawTexts

FORMATS = ("sav", "zsav", "dta", "xpt")

_LEVEL = {Kind.ORDERED: "ordinal", Kind.CATEGORICAL: "nominal", Kind.NUMERIC: "scale", Kind.DATE: "scale"}
_SHOWN_AS = {
    "sav": ("F8.2", "DATE11", "DATETIME20"),
    "zsav": ("F8.2", "DATE11", "DATETIME20"),
    "dta": ("%10.0g", "%td", "%tc"),
    "xpt": ("", "DATE9", "DATETIME20"),
}
"""How plain numbers, days and moments are shown in a format; no number of a release is shown in another way."""
_SECONDS_A_DAY = 86_400
_TIMES = {
    "sav": (re.compile(rb"(?s).{92}(.{17})"), b"01 Jan 0000:00:00"),
    "dta": (re.compile(rb"(?s).*?<timestamp>\x11(.{17})</timestamp>"), b"01 Jan 2000 00:00"),
}
_TRANSPORT_TIMES = (144, 160, 464, 480)
_TRANSPORT_TIME = b"01JAN00:00:00:00"

Stored = NDArray[np.float64] | list[str]


def account_for_statistics(path: Path, claims: Claims, tokens: Mapping[str, Sequence[str]]) -> None:
    """Account for every byte of a file.

    Raises
    ------
    NotAccountedError
        If it holds more than its cells and the labels that the manifest states, or these say more than they may.
    """
    try:
        found = version("pyreadstat")
    except PackageNotFoundError:
        raise InputError("its audit needs pyreadstat", path=path, hint="pip install 'sfumato[io]'") from None
    content = path.read_bytes()
    book, columns = _parsed(path, claims.output_format, content)
    if tuple(book.names) != claims.names():
        problem = "its columns are not those of the manifest"
        raise NotAccountedError(problem)
    shown = {}
    for position, claimed in enumerate(claims.columns):
        stored = columns[position]
        own = "" if isinstance(stored, list) else book.formats[position]
        if not isinstance(stored, list):
            _check_numbers(stored, own, claims.output_format)
            shown[claimed.name] = own
        else:
            _check_texts(stored, claimed, tokens[claimed.name])
        _check_labels(stored, claimed, tokens[claimed.name])
    made = _made(dict(zip(book.names, columns, strict=True)), shown, claims)
    if made != content:
        recorded = claims.versions.get("pyreadstat")
        other = f"; it was written with pyreadstat {recorded}, audit it with that" if recorded != found else ""
        problem = f"pyreadstat {found} makes other bytes of its cells and the stated labels{other}"
        raise NotAccountedError(problem)


def _parsed(path: Path, format: str, content: bytes) -> tuple[Codebook, list[Stored]]:
    """Give the codebook and the stored cells of a file: doubles, or texts, of which an empty one is missing."""
    answers = RawFile(str(path), format, data=content).blocks()
    try:
        book = next(answers)
        blocks = list(answers)
    except InputError:
        problem = "it cannot be parsed"
        raise NotAccountedError(problem) from None
    assert isinstance(book, Codebook)
    columns: list[Stored] = []
    for position, is_text in enumerate(book.are_texts):
        parts = [block[position] for block in blocks if isinstance(block, list)]
        if is_text:
            columns.append([text for part in parts for text in _texts(part)])
        else:
            columns.append(np.concatenate([np.zeros(0), *(part for part in parts if isinstance(part, np.ndarray))]))
    return book, columns


def _texts(part: object) -> list[str]:
    if not isinstance(part, RawTexts):
        problem = "it cannot be parsed"
        raise NotAccountedError(problem)
    distinct = [*part.distinct, ""]  # the code of a missing text is -1
    return [distinct[code] for code in part.codes.tolist()]


def _check_numbers(stored: NDArray[np.float64], shown: str, format: str) -> None:
    known = stored[~np.isnan(stored)]
    plain, day, moment = _SHOWN_AS[format]
    problem = ""
    if shown not in (plain, day, moment):
        problem = "a column is shown in a way in which no release is"
    elif (np.signbit(known) & (known == 0)).any():
        problem = "a number is -0"
    elif shown == day and (known % (_SECONDS_A_DAY if format in ("sav", "zsav") else 1)).any():
        problem = "a date has a time of the day"
    elif shown == moment and (known % (1000 if format == "dta" else 1)).any():
        problem = "a moment has a fraction of a second"
    if problem:
        raise NotAccountedError(problem)


def _check_texts(stored: Sequence[str], claimed: ClaimedColumn, tokens: Sequence[str]) -> None:
    distinct = set(stored) - {""}
    if any(text != text.strip() or "\0" in text for text in distinct):
        problem = "there are blanks around a text"
        raise NotAccountedError(problem)
    if not claimed.value_labels and distinct & set(tokens):
        problem = "it spells missing values in more than one way"
        raise NotAccountedError(problem)


def _check_labels(stored: Stored, claimed: ClaimedColumn, tokens: Sequence[str]) -> None:
    """Refuse labels of values that no row has, and labels that do not tell values apart."""
    label = claimed.label
    if label is not None and (label != label.strip() or not label or "\0" in label):
        problem = "a label of a column is empty or has blanks around it"
        raise NotAccountedError(problem)
    if not claimed.value_labels:
        return
    codes = [code for code, _ in claimed.value_labels]
    texts = [text for _, text in claimed.value_labels]
    occurring: set[Any] = set(stored) - {""} if isinstance(stored, list) else set(stored[~np.isnan(stored)].tolist())
    problem = ""
    if len({isinstance(code, str) for code in codes}) != 1 or isinstance(codes[0], str) is not isinstance(stored, list):
        problem = "the manifest has labels of values of another type than the column's"
    elif codes != sorted(set(codes), key=lambda code: code):
        problem = "labels of values are not in the order of the values"
    elif not occurring.issuperset(codes):
        problem = "there are labels of values that no row has"
    elif len(set(texts)) < len(texts) or any(text != text.strip() or not text or text in tokens for text in texts):
        problem = "labels of values do not tell them apart, are empty, or mean that a value is missing"
    if problem:
        raise NotAccountedError(problem)


def _made(columns: Mapping[str, Stored], shown: Mapping[str, str], claims: Claims) -> bytes:
    """Write a file of stored cells, with the settings that every released one has."""
    import pandas as pd
    import pyreadstat

    form = claims.output_format
    by_name = {column.name: column for column in claims.columns}
    frame = pd.DataFrame({name: _series(own, by_name[name], pd) for name, own in columns.items()})
    plain = _SHOWN_AS[form][0]
    arguments: dict[str, Any] = {
        "column_labels": {column.name: column.label for column in claims.columns if column.label is not None},
        "variable_format": {name: own for name, own in shown.items() if own != plain},
    }
    if form != "xpt":
        arguments["variable_value_labels"] = {
            column.name: {_whole(code): text for code, text in column.value_labels}
            for column in claims.columns
            if column.value_labels
        }
    with tempfile.TemporaryDirectory(prefix="sfumato-audit-") as folder:  # which only this user can enter
        target = Path(folder) / "again"
        try:
            if form == "dta":
                pyreadstat.write_dta(frame, target, version=14, **arguments)
            elif form == "xpt":
                pyreadstat.write_xport(frame, target, **arguments)
            else:
                levels = {column.name: _LEVEL[column.kind] for column in claims.columns}
                pyreadstat.write_sav(frame, target, compress=form == "zsav", variable_measure=levels, **arguments)
        except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, OverflowError):
            problem = "no file can be made of its cells and the stated labels"
            raise NotAccountedError(problem) from None
        return _without_time(target.read_bytes(), form)


def _whole(code: float | str) -> float | int | str:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _series(stored: Stored, claimed: ClaimedColumn, pd: Any) -> Any:
    """Column of a frame; of whole numbers where there are labels, which the library looks up by their type."""
    if isinstance(stored, list):
        return pd.Series(stored, dtype="string")
    known = stored[~np.isnan(stored)]
    are_short = bool((known == np.trunc(known)).all()) and bool((np.abs(known) < 2**31 - 1).all())
    numbers = pd.Series(stored, dtype="float64")
    return numbers.astype("Int64") if claimed.value_labels and are_short else numbers


def _without_time(content: bytes, form: str) -> bytes:
    """Put the first moment of 2000 where the library writes the present one."""
    if form == "xpt":
        changed = bytearray(content)
        for start in _TRANSPORT_TIMES:
            changed[start : start + len(_TRANSPORT_TIME)] = _TRANSPORT_TIME
        return bytes(changed)
    pattern, fixed = _TIMES["dta" if form == "dta" else "sav"]
    place = pattern.match(content)
    if place is None:
        problem = "no file can be made of its cells and the stated labels"
        raise NotAccountedError(problem)
    return content[: place.start(1)] + fixed + content[place.end(1) :]
