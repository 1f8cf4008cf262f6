"""SPSS, Stata and SAS files, read through pyreadstat in a process of its own, with their codebook.

A column whose codes all have a label is read as the label texts; a column with labels for some of its codes (an age
with "90 or more", a scale with named ends) is read as its numbers. Missing codes are missing values. Decision 60.
"""

from __future__ import annotations

import codecs
import importlib.util
import os
import pickle
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NoReturn, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Kind
from sfumato.table.cells import ColumnCoder, check_names
from sfumato.table.io.bytes import LEAST_BYTES, StoredBytes, available_memory, unzipped, with_head
from sfumato.table.io.excel import command_of, send
from sfumato.table.io.formats import Parsed
from sfumato.table.io.kept_rows import KeptRows
from sfumato.table.io.statistics import child as statistics_child
from sfumato.table.io.text import known_encoding
from sfumato.table.labels import ColumnLabels

PACKAGES = {"sav": "SPSS", "zsav": "SPSS", "por": "SPSS", "dta": "Stata", "sas7bdat": "SAS", "xpt": "SAS transport"}
"""Formats by name, with the package whose files they are."""

PORTABLE = "por"

_PACKED = b"\x1f\x8b"
_CELLS_AT_ONCE = 1 << 21
_FEWEST_CELLS = 1 << 14
_ALL_CELLS = 1 << 30
_LEAST_MEMORY = 1 << 30
_FEWEST_ORDERED = 3
_MOST_WHOLE = 2.0**53
_DAY = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999, from 1970 on
_SPSS_DAYS = 141_428  # from 14 October 1582 to 1970
_OTHER_DAYS = 3_653  # from 1960 to 1970

_DATES = {
    "SPSS": re.compile(r"(DATE|ADATE|EDATE|JDATE|SDATE)\d*"),
    "Stata": re.compile(r"%-?(td|d).*"),
    "SAS": re.compile(r"(DATE|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?|E8601DA|IS8601DA|WEEKDATE|WORDDATE)\d*\.?"),
}
_MOMENTS = {
    "SPSS": re.compile(r"(DATETIME|YMDHMS)\d*(\.\d+)?"),
    "Stata": re.compile(r"%-?tc.*"),
    "SAS": re.compile(r"(DATETIME|DATEAMPM|E8601DT|IS8601DT)\d*\.?\d*"),
}

Numbers = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class RawTexts:
    """Stored texts of a block: distinct ones, and a code a row, -1 where missing."""

    distinct: list[str]
    codes: NDArray[np.int32]


Raw = Numbers | RawTexts
"""Stored cells of a block of a column; of numbers not-a-number is missing."""


@dataclass(frozen=True, repr=False)
class Codebook:
    """What a file says of its columns, in their order."""

    names: list[str]
    are_texts: list[bool]
    formats: list[str]
    labels: list[str | None]
    value_labels: list[list[tuple[float | str, str]]]
    missing: list[list[tuple[Any, Any]]]
    measures: list[str]


def require_pyreadstat(purpose: str, path: str | None = None) -> None:
    """Refuse to go on without the library.

    Raises
    ------
    InputError
        If it is not installed; names the extra.
    """
    if importlib.util.find_spec("pyreadstat") is None:
        raise InputError(f"{purpose} needs pyreadstat", path=path, hint="pip install 'sfumato[io]'")


def parse_statistics(stored: StoredBytes, coder: ColumnCoder, name: str, encoding: str | None) -> Parsed:
    """Parse a file that fits into memory; of a larger one than is held its path is parsed."""
    require_pyreadstat(f"a file of {PACKAGES[name]}", stored.name)
    if name == PORTABLE and encoding is not None:
        raise InvalidParameterError("encoding", "got one", allowed="none for an SPSS portable file, which says its own")
    head = _passed_over(stored)
    if not head:
        problem = "is empty"
        raise InputError(problem, path=stored.name)
    path = stored.path_when_large if head != _PACKED else None
    data = b"" if path is not None else b"".join(unzipped(stored.again(), stored))
    cells = _ALL_CELLS if name == PORTABLE else _CELLS_AT_ONCE  # of which each block is sought from the beginning
    answers = RawFile(stored.name, name, encoding, path, data, cells).blocks()
    book = next(answers)
    assert isinstance(book, Codebook)
    names = check_names(book.names, place=stored.name)
    parts: list[list[Raw]] = [[] for _ in names]
    n_rows = n_bytes = 0
    for block in answers:
        assert isinstance(block, list)
        for own, raw in zip(parts, block, strict=True):
            own.append(raw)
            n_bytes += raw.nbytes if isinstance(raw, np.ndarray) else raw.codes.nbytes
        n_rows += _length(block[0]) if block else 0
        stored.limit.check(n_bytes, stored.name, hint="read it out of core, or give Parquet")
    if not n_rows:
        problem = "has no data rows"
        raise InputError(problem, path=stored.name)
    columns, kinds, labels, domains = {}, {}, {}, {}
    for position, column in enumerate(names):
        seen = _Seen(book, position, PACKAGES[name])
        for raw in parts[position]:
            seen.take(raw)
        reading = seen.finished(coder.rules.tokens(column))
        cells = pa.chunked_array([reading.cells(raw) for raw in parts[position]])
        parts[position] = []
        kind = Kind.ORDERED if reading.domain else None
        columns[column], kinds[column] = coder.code(column, cells, kind)
        if reading.labels is not None:
            labels[column] = reading.labels
        if reading.domain:
            domains[column] = reading.domain
    return Parsed(columns, kinds, n_rows, labels=labels, domains=domains)


def _passed_over(stored: StoredBytes) -> bytes:
    """First two bytes of a file that was passed over once, for its hash."""
    head, chunks = with_head(stored.first_pass(), len(_PACKED))
    deque(chunks, maxlen=0)
    return head


def _length(raw: Raw) -> int:
    return len(raw) if isinstance(raw, np.ndarray) else len(raw.codes)


# How the stored cells of a column are understood.


@dataclass(frozen=True, repr=False)
class Reading:
    """How stored cells become values: as they are, whole numbers, dates, moments, or by their labels."""

    what: str
    package: str
    labels: ColumnLabels | None = None
    domain: tuple[str, ...] = ()

    def cells(self, raw: Raw) -> pa.Array:
        """Give the cells of a block."""
        if isinstance(raw, RawTexts):
            texts = raw.distinct
            if self.what == "labels":
                shown = {str(code): text for code, text in self._values()}
                texts = [shown[text] for text in texts]
            indices = pa.array(raw.codes, mask=raw.codes < 0)
            return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()))
        is_missing = np.isnan(raw)
        known = np.where(is_missing, 0.0, raw)
        if self.what == "labels":
            codes = np.array([float(code) for code, _ in self._values()])
            indices = np.searchsorted(codes, known).astype(np.int32).clip(0, len(codes) - 1)
            texts = [text for _, text in self._values()]
            return pa.DictionaryArray.from_arrays(pa.array(indices, mask=is_missing), pa.array(texts, pa.string()))
        if self.what == "whole":
            return pa.array(known.astype(np.int64), mask=is_missing)
        if self.what == "date":
            return pa.array(_days(known, self.package).astype(np.int32), mask=is_missing).cast(pa.date32())
        if self.what == "moment":
            seconds = np.rint(_seconds(known, self.package) * 1e6).astype(np.int64)
            return pa.array(seconds, mask=is_missing).cast(pa.timestamp("us"))
        return pa.array(raw, mask=is_missing)

    def _values(self) -> tuple[tuple[float | str, str], ...]:
        return self.labels.values if self.labels is not None else ()


def _days(stored: Numbers, package: str) -> Numbers:
    """Days since 1970."""
    return stored / _DAY - _SPSS_DAYS if package == "SPSS" else stored - _OTHER_DAYS


def _seconds(stored: Numbers, package: str) -> Numbers:
    """Seconds since 1970."""
    if package == "SPSS":
        return stored - float(_SPSS_DAYS * _DAY)
    return (stored / 1000 if package == "Stata" else stored) - float(_OTHER_DAYS * _DAY)


class _Seen:
    """What was seen of a column so far, by which its reading is settled at the end."""

    def __init__(self, book: Codebook, position: int, package: str) -> None:
        self._package = package.split()[0]
        self._label = (book.labels[position] or "").strip() or None
        self._is_text = book.are_texts[position]
        self._measure = book.measures[position]
        self._pairs = _usable_labels(book, position)
        self._codes = {code for code, _ in self._pairs}
        self._numbers = np.array(sorted(float(code) for code, _ in self._pairs)) if not self._is_text else np.zeros(0)
        own = book.formats[position].upper() if self._package != "Stata" else book.formats[position]
        self._is_date = not self._is_text and _DATES[self._package].fullmatch(own) is not None
        self._is_moment = not self._is_text and _MOMENTS[self._package].fullmatch(own) is not None
        self._has_values = False
        self._is_whole, self._is_labelled = True, bool(self._pairs)

    def take(self, raw: Raw) -> None:
        """Look at a block."""
        if isinstance(raw, RawTexts):
            self._has_values |= bool(raw.distinct)
            self._is_labelled &= self._codes.issuperset(raw.distinct)
            return
        known = raw[~np.isnan(raw)]
        if not len(known):
            return
        self._has_values = True
        self._is_labelled = self._is_labelled and bool(np.isin(known, self._numbers).all())
        if self._is_date:
            days = _days(known, self._package)
            self._is_date = bool(((days == np.rint(days)) & (days >= _FIRST_DAY) & (days <= _LAST_DAY)).all())
        if self._is_moment:
            days = _seconds(known, self._package) / _DAY
            self._is_moment = bool(((days >= _FIRST_DAY) & (days <= _LAST_DAY)).all())
        self._is_whole = self._is_whole and bool(((known == np.rint(known)) & (np.abs(known) <= _MOST_WHOLE)).all())

    def finished(self, tokens: Sequence[str]) -> Reading:
        """Settle how the column is read."""
        are_cells = self._is_labelled and self._has_values
        labels = ColumnLabels(self._label, self._pairs, are_cells) if self._pairs or self._label else None
        domain: tuple[str, ...] = ()
        if are_cells and self._measure == "ordinal":
            domain = tuple(text for _, text in self._pairs if text not in tokens)
            domain = domain if len(domain) >= _FEWEST_ORDERED else ()
        if are_cells:
            what = "labels"
        elif self._is_text:
            what = "text"
        elif self._is_date or self._is_moment:
            what = "date" if self._is_date else "moment"
        else:
            what = "whole" if self._is_whole else "number"
        return Reading(what, self._package, labels, domain)


def _usable_labels(book: Codebook, position: int) -> tuple[tuple[float | str, str], ...]:
    """Labels of codes that are no missing codes, ascending; none where two codes share a label or one is empty."""
    is_text = book.are_texts[position]
    found: dict[float | str, str] = {}
    for code, text in book.value_labels[position]:
        if isinstance(code, str) is not is_text:  # a tag of a missing value, such as .a
            continue
        key = code.strip() if isinstance(code, str) else float(code)
        if key == "" or key != key or any(low <= key <= high for low, high in _comparable(book.missing[position], key)):
            continue
        found[key] = text.strip()
    texts = list(found.values())
    if "" in texts or len(set(texts)) < len(texts):
        return ()
    return tuple(sorted(found.items(), key=lambda pair: pair[0]))


def _comparable(ranges: Sequence[tuple[Any, Any]], key: float | str) -> Iterator[tuple[Any, Any]]:
    for low, high in ranges:
        if isinstance(low, str) is isinstance(key, str) and isinstance(high, str) is isinstance(key, str):
            yield (low.strip(), high.strip()) if isinstance(low, str) else (low, high)


# A file that is read in blocks as often as asked.


@dataclass(frozen=True, repr=False)
class StatisticsBlocks:
    """Cells of a file in blocks; it was parsed once, by a process of its own, and stored cells are kept on disk."""

    names: list[str]
    labels: Mapping[str, ColumnLabels]
    domains: Mapping[str, tuple[str, ...]]
    _kept: KeptRows
    _readings: tuple[Reading, ...]

    @classmethod
    def of(
        cls,
        stored: StoredBytes,
        path: Path,
        name: str,
        encoding: str | None,
        cells: int,
        tokens: Callable[[str], Sequence[str]],
    ) -> Self:
        """Pass over a file once for its hash, and once for its cells, so many at a time, and what columns hold."""
        require_pyreadstat(f"a file of {PACKAGES[name]}", stored.name)
        if _passed_over(stored) == _PACKED:
            problem = "is packed, and cannot be read in blocks"
            raise InputError(problem, path=stored.name, hint="unpack it, or convert it to Parquet")
        answers = RawFile(stored.name, name, encoding, path=path, cells=max(_FEWEST_CELLS, cells)).blocks()
        book = next(answers)
        assert isinstance(book, Codebook)
        names = check_names(book.names, place=stored.name)
        seen = [_Seen(book, i, PACKAGES[name]) for i in range(len(book.names))]
        fields = [(str(i), pa.string() if is_text else pa.float64()) for i, is_text in enumerate(book.are_texts)]

        def batches() -> Iterator[pa.RecordBatch]:
            n_rows = 0
            for block in answers:
                assert isinstance(block, list)
                n_rows += _length(block[0]) if block else 0
                for own, raw in zip(seen, block, strict=True):
                    own.take(raw)
                yield pa.record_batch([_kept_cells(raw) for raw in block], schema=pa.schema(fields))
            if not n_rows:
                problem = "has no data rows"
                raise InputError(problem, path=stored.name)

        kept = KeptRows.of(book.names, pa.schema(fields), batches(), stored.name, cells)
        readings = [own.finished(tokens(column)) for own, column in zip(seen, names, strict=True)]
        by_name = dict(zip(names, readings, strict=True))
        labels = {column: own.labels for column, own in by_name.items() if own.labels is not None}
        domains = {column: own.domain for column, own in by_name.items() if own.domain}
        return cls(book.names, labels, domains, kept, tuple(readings))

    def __call__(self, positions: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Cells of some columns, block by block."""
        if not positions:
            return
        for block in self._kept(positions):
            yield [self._readings[i].cells(_stored_cells(cells)) for i, cells in zip(positions, block, strict=True)]


def _kept_cells(raw: Raw) -> pa.Array:
    """Give stored cells as they are kept: doubles with not-a-number, or texts with nulls."""
    if not isinstance(raw, RawTexts):
        return pa.array(raw, pa.float64())
    indices = pa.array(raw.codes, mask=raw.codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(raw.distinct, pa.string())).cast(pa.string())


def _stored_cells(cells: pa.Array) -> Raw:
    """Give stored cells as they were kept."""
    if not pa.types.is_dictionary(cells.type):
        return np.asarray(cells.to_numpy(zero_copy_only=False), np.float64)
    codes = pc.fill_null(cells.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return RawTexts(cells.dictionary.to_pylist(), codes)


# The process that parses.


@dataclass(frozen=True, repr=False)
class RawFile:
    """A file that is parsed by another process, given by its path or its bytes.

    Parameters
    ----------
    place : str
        What messages call it.
    cells : int
        Cells of a block.
    """

    place: str
    format: str
    encoding: str | None = None
    path: Path | None = None
    data: bytes = b""
    cells: int = _CELLS_AT_ONCE

    def blocks(self) -> Iterator[Codebook | list[Raw]]:
        """Give the codebook, then blocks of all columns."""
        command = _command()
        if command is None:
            problem = "is parsed in a process of its own, and this program cannot start one"
            raise InputError(problem, path=self.place, hint="give CSV or Parquet")
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=os.environ | one_thread)
        except OSError:
            problem = "is parsed in a process of its own, which cannot be started"
            raise InputError(problem, path=self.place) from None
        with process:
            try:
                yield from self._talk(process)
            except KeyboardInterrupt:
                raise KeyboardInterrupt from None  # ours may come while the child's end by the same Ctrl-C is looked at
            finally:
                process.kill()

    def _talk(self, process: subprocess.Popen[bytes]) -> Iterator[Codebook | list[Raw]]:
        given, answer = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        n_bytes = self.path.stat().st_size if self.path is not None else len(self.data)
        order = {
            "format": self.format,
            "path": None if self.path is None else os.fspath(self.path),
            "n_bytes": n_bytes,
            "encoding": None if self.encoding is None else codecs.lookup(known_encoding(self.encoding)).name,
            "cells": self.cells,
            "memory": max(_LEAST_MEMORY, LEAST_BYTES, available_memory() // 2),
        }
        try:
            if answer.read(len(statistics_child.GREETING)) != statistics_child.GREETING:
                raise EOFError
            send(given.fileno(), pickle.dumps(order))
            if self.path is None:
                send(given.fileno(), self.data)
            is_first = True
            while (said := _Answer(answer).load()) is not None:
                outcome, found = said
                if outcome != statistics_child.COLUMNS:
                    self._refuse(outcome)
                yield Codebook(**found) if is_first else _block(found)
                is_first = False
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            if isinstance(error, InputError):
                raise
            answer.close()
            code = process.wait()
            if code == -signal.SIGINT:
                raise KeyboardInterrupt from None
            from sfumato.processes import cause_of_death

            problem = f"cannot be read as a file of {PACKAGES[self.format]}: {cause_of_death(code)}"
            hint = "is it damaged? Save it again, or as CSV"
            raise InputError(problem, path=self.place, hint=hint) from None

    def _refuse(self, outcome: str) -> NoReturn:
        package = PACKAGES[self.format]
        if outcome == statistics_child.NO_MEMORY:
            problem = "needs more memory than is free, or says so because it is damaged"
            raise InputError(problem, path=self.place, hint="read it out of core, or save it again as CSV")
        if outcome == statistics_child.NOT_TEXT:
            problem = f"holds texts in another encoding than this file of {package} says"
            hint = "name its encoding, for instance latin-1 or cp1252"
            raise InputError(problem, path=self.place, hint=hint, remedy=("encoding",))
        problem = f"cannot be read as a file of {package}"
        hint = "is it damaged, or of another format? Then name its format"
        raise InputError(problem, path=self.place, hint=hint, remedy=("format",))


def _block(found: tuple[int, list[tuple[str, Any, bytes]]]) -> list[Raw]:
    """Columns of a block."""
    n_rows, columns = found
    return [_raw(n_rows, *column) for column in columns]


def _raw(n_rows: int, what: str, distinct: list[bytes] | None, content: bytes) -> Raw:
    if what == statistics_child.TEXTS and distinct is not None:
        codes = np.frombuffer(content, np.int32)
        if len(codes) != n_rows:
            raise EOFError
        return _trimmed([text.decode() for text in distinct], codes)
    numbers = np.frombuffer(content, np.float64)
    if len(numbers) != n_rows:
        raise EOFError
    return numbers


def _trimmed(distinct: list[str], codes: NDArray[np.int32]) -> RawTexts:
    """Trim texts, as everywhere at the door, so that a code of texts meets its label."""
    trimmed = [text.strip() for text in distinct]
    if trimmed == distinct:
        return RawTexts(distinct, codes)
    places: dict[str, int] = {}
    new = np.array([places.setdefault(text, len(places)) if text else -1 for text in trimmed] + [-1], np.int32)
    return RawTexts(list(places), new[codes])


class _Answer(pickle.Unpickler):
    """Reads plain data and nothing that would have to be looked up, should a file ever rule the process that parses."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every class."""
        raise pickle.UnpicklingError


@lru_cache(maxsize=1)
def _command() -> tuple[str, ...] | None:
    import narwhals
    import pyreadstat

    command = command_of(statistics_child.__file__, [pyreadstat, np, narwhals])
    return None if command is None else tuple(command)
