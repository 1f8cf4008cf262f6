"""Made tables of odd spellings, released by every mechanism, in every form of cells, into every format.

A case is a number: the table, what is said of its columns, the mechanism, the form of cells and the file follow from
it. :func:`outcome` says what became of it.
"""

from __future__ import annotations

import csv
import datetime
import json
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import xlsxwriter

from sfumato.errors import AuditFailedError, SfumatoError
from sfumato.evaluation.encoding import cells_of_release
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published, read_original
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.generalized import read_cell
from sfumato.table.io.read import DEFAULT_OPTIONS, ReadOptions, read_table

TEXTS: dict[str, list[str]] = {
    "leading zeros": ["7", "07", "007", "70", "0", "00"],
    "zip codes": ["02139", "02140", "10115", "00501"],
    "signs": ["+3", "3", "-3", "-0", "0", "+0"],
    "exponents": ["1e3", "1E3", "1000", "1e+3", "2e-7", "1e10", "10000000000", "1e22"],
    "points": [".5", "0.5", "0.50", "5.", "5", "5.0", "-.5"],
    "places": ["1.50", "2.00", "3.25", "10.00"],
    "places below zero": ["-1.50", "0.00", "-0.00", "2.25"],
    "endless": ["inf", "-inf", "Infinity", "1", "2", "3"],
    "endless and not": ["inf", "nan", "NaN", "1", "-1"],
    "whole": ["1", "2", "3", "40", "50"],
    "long": ["9007199254740993", "9007199254740992", "123456789012345678901", "1"],
    "doubles": ["0.1", "0.30000000000000004", "1e-7", "123456789.125", "1e+10", "2.5"],
    "half doubles": ["0.1", "0.10", "1e-7", "0.0000001", "12345678901", "2"],
    "dates": ["2020-01-02", "2020-02-29", "1999-12-31", "2001-07-08"],
    "moments": ["2020-01-02 03:04", "2020-01-02 03:04:05", "2020-01-02T03:04:05", "2020-01-02 00:00:00", "2020-01-03"],
    "fractions of seconds": ["2020-01-02 03:04:05.5", "2020-01-02 03:04:05.50", "2020-01-02 03:04:05", "2020-01-02"],
    "moments in UTC": [
        "2020-01-02T03:04:05Z",
        "2020-01-02T03:04:05+01:00",
        "2020-01-02T02:04:05Z",
        "2020-01-03T00:00Z",
    ],
    "days of other countries": ["02.03.2020", "29.02.2020", "31.12.1999", "01.01.2000"],
    "numbers of other countries": ["1.234,50", "2,00", "3,25", "1.000,00"],
    "units": ["5 kg", "7 kg", "12 kg", "7.5 kg"],
    "zeros and ones": ["0", "1"],
    "zeros and ones with a point": ["0.0", "1.0", "0", "1"],
    "zeros and ones with zeros": ["00", "01", "1", "0"],
    "zeros and ones with signs": ["+1", "-0", "0", "1"],
    "truth": ["true", "false"],
    "truth in capitals": ["True", "FALSE", "true", "False"],
    "truth and ones": ["true", "false", "1", "0"],
    "yes and no": ["yes", "no", "Yes", "NO"],
    "mixed": ["1", "2", "03", "a", "b", "1e2"],
    "mixed with words": ["12", "7", "unknown", "+7", "3.50", "none"],
    "mixed dates": ["2020-01-02", "2020-02-30", "yesterday", "1999-12-31"],
    "special": ["{a|b}", "[1, 2]", "*", "\\N", "a,b", "\\", "a|b", "{", "}"],
    "sets and members": ["a", "b", "{a|b}", "\\{a\\|b\\}", "c", "d", "{c|d}"],
    "ranges": ["[1, 2]", "[3, 4]", "{[1, 2]|\\N}", "1"],
    "sets and numbers": ["{1|2}", "1", "2", "[1, 2]"],
    "quotes": ['a"b', "line\nbreak", "a\rb", "tab\tbed", "a, b", ";", "'x'"],
    "formulas": ["=1+1", "'=1+1", "+a", "-a", "@x", "-1", "+1"],
    "letters": ["é", "e\u0301", "É", "ﬁ", "fi", "a\u200bb", "ab"],
    "wide digits": ["１２", "12", "１", "1"],
    "words": ["a", "b", "c", "d", "rare"],
    "blanks inside": ["a b", "a  b", "a\u00a0b", "A B"],
    "levels": ["Preschool", "Elementary", "Secondary", "Bachelor", "Master", "Doctorate"],
    "low and high": ["low", "medium", "high"],
    "intervals": ["<5", "5-10", "10-20", ">20"],
    "one value": ["x"],
    "one number": ["007"],
    "missing words": ["NA", "?", "n/a", "null", "x", "y"],
}
"""Texts of a column, by what is odd about them."""

_DAY, _UTC = datetime.datetime(2020, 1, 2), datetime.UTC
_IN_UTC = [_DAY.replace(hour=hour, microsecond=part, tzinfo=_UTC) for hour, part in ((0, 0), (3, 500), (3, 0))]
TYPED: dict[str, pa.Array] = {
    "int64": pa.array([1, -2, 3, 10**15, 0]),
    "int8": pa.array([0, 1, 2, -128], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2**63, 1, 0], pa.uint64()),
    "float64": pa.array([0.1, -0.0, 1e22, 1e-7, 2.0]),
    "float64 of 17 digits": pa.array([0.1 + 0.2, 1 / 3, 0.1, 123456789.1234567]),
    "float64 endless": pa.array([float("inf"), float("-inf"), 1.0, 2.5]),
    "float64 not a number": pa.array([float("nan"), 1.0, 2.5]),
    "float64 whole": pa.array([1.0, 2.0, 3.0]),
    "float32": pa.array([0.1, 16777217.0, 3.0, 1e-7], pa.float32()),
    "float16": pa.array([0.1, 2.0, 65504.0], pa.float32()).cast(pa.float16()),
    "decimal": pa.array([Decimal("1.50"), Decimal("-2.00"), Decimal("0.00")]),
    "decimal whole": pa.array([Decimal(1), Decimal(2), Decimal(30)], pa.decimal128(5, 0)),
    "decimal small": pa.array([Decimal("0.0000001"), Decimal("2.5000000"), Decimal("0.0000000")], pa.decimal128(12, 7)),
    "decimal long": pa.array([Decimal("12345678901234567890.12"), Decimal("0.10")], pa.decimal128(25, 2)),
    "bool": pa.array([True, False]),
    "date32": pa.array([_DAY.date(), datetime.date(1999, 12, 31), datetime.date(1, 1, 1)]),
    "timestamp": pa.array([_DAY, _DAY.replace(hour=3, microsecond=500), _DAY.replace(hour=4)], pa.timestamp("us")),
    "timestamp s": pa.array([_DAY, _DAY.replace(hour=3), _DAY.replace(hour=4)], pa.timestamp("s")),
    "timestamp ns": pa.array([1577934245000000001, 1577934245000000000, 0], pa.timestamp("ns")),
    "timestamp midnight": pa.array([_DAY, _DAY.replace(day=3)], pa.timestamp("ms")),
    "timestamp UTC": pa.array(_IN_UTC, pa.timestamp("us", "UTC")),
    "timestamp Berlin": pa.array(_IN_UTC, pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([datetime.time(3, 4), datetime.time(3, 4, 5), datetime.time(0)], pa.time64("us")),
    "text": pa.array(["1", "01", "a"]),
    "large text": pa.array(["x", "y", "07"], pa.large_string()),
}
"""Values of a typed column."""
TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".jsonl", ".jsonl.gz")
SUFFIXES = (*TEXT_SUFFIXES, ".tsv.gz", ".tab", ".ndjson", ".parquet", ".parquet", ".xlsx", ".xlsx")
STATISTICS = (".sav", ".zsav", ".dta", ".xpt")
FEATURES_ONLY = ".libsvm"
CELLS = ("ranges", "values", "draws")
_FEW = {"k": (2, 3), "n_features": (2,)}


@dataclass
class Case:
    """What follows from a number: of each column what is odd about it, its role, and the kind declared of it."""

    number: int
    mechanism: str
    parameters: dict[str, Any]
    cells: str
    source: str
    suffix: str
    escapes: bool
    columns: dict[str, tuple[str, Role, Kind | None]] = field(default_factory=dict)
    cells_of: dict[str, pa.Array] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        columns = "; ".join(f"{n}: {what}, {role}, {kind}" for n, (what, role, kind) in self.columns.items())
        made = f"{self.mechanism} {self.parameters} {self.cells} {self.source} to {self.suffix}"
        return f"{self.number}: {made}{' escaped' if self.escapes else ''} [{columns}]"


def case(number: int) -> Case:
    """Draw a case; mechanisms take turns."""
    rng = random.Random(f"odd spelling {number}")
    mechanisms = registered_mechanisms()
    mechanism = list(mechanisms)[number % len(mechanisms)]
    info = mechanisms[mechanism]
    known = {parameter.name for parameter in info.parameters}
    parameters: dict[str, Any] = {name: rng.choice(few) for name, few in _FEW.items() if name in known}
    if "max_suppressed_fraction" in known:
        parameters["max_suppressed_fraction"] = rng.choice([0, 0.1, 0.4])
    if "on_infeasible" in known:
        parameters["on_infeasible"] = "skip"
    if mechanism == "error-risk-tree" and rng.random() < 0.6:
        parameters["generalization"] = "uniform"
    cells = rng.choice(CELLS) if getattr(info.build, "takes_cells", False) else "ranges"
    if cells == "draws" and "max_suppressed_fraction" in known:
        parameters["max_suppressed_fraction"] = 0
    source = rng.choice([".csv", ".csv", ".tsv", ".parquet", ".parquet", ".parquet", ".jsonl", ".xlsx"])
    is_of_features = "binarize" in known
    suffix = rng.choice(SUFFIXES if is_of_features else SUFFIXES + STATISTICS)
    suffix = FEATURES_ONLY if is_of_features and rng.random() < 0.1 else suffix
    made = Case(
        number, mechanism, parameters, cells, source, suffix, suffix in TEXT_SUFFIXES[:3] and rng.random() < 0.3
    )
    roles = [Role.QUASI_IDENTIFIER, Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET]
    roles += rng.choice([[], [Role.QUASI_IDENTIFIER], [Role.OTHER], [Role.QUASI_IDENTIFIER, Role.OTHER]])
    # An attacker of few rows may be right in none of them, and then a bound on what he gains is refused by design.
    n_rows = 60 if "attacker" in known else rng.choice([12, 25, 40])
    for place, role in enumerate(roles):
        _add_column(made, f"c{place}", role, n_rows, rng)
    return made


def _add_column(made: Case, name: str, role: Role, n_rows: int, rng: random.Random) -> None:
    is_typed = made.source == ".parquet" and rng.random() < 0.7
    what = rng.choice(list(TYPED if is_typed else TEXTS))
    values = TYPED[what] if is_typed else pa.array(TEXTS[what])
    if role is Role.TARGET and rng.random() < 0.6:
        is_typed, what, values = False, "two words", pa.array(["n", "y"])
    places: list[int | None] = list(rng.choices(range(len(values)), [rng.choice([1, 4, 10]) for _ in values], k=n_rows))
    if rng.random() < 0.3:
        places = [None if rng.random() < 0.15 else at for at in places]
    made.columns[name] = (("typed " if is_typed else "") + what, role, rng.choice([None, None, None, *Kind]))
    made.cells_of[name] = values.take(pa.array(places, pa.int64()))


def write_original(made: Case, folder: Path) -> Path:
    """Write the table of a case."""
    path, table = folder / f"original{made.source}", pa.table(made.cells_of)
    if made.source == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif made.source == ".jsonl":
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
        path.write_text("".join(lines), encoding="utf-8")
    elif made.source == ".xlsx":
        with xlsxwriter.Workbook(str(path)) as book:
            sheet = book.add_worksheet()
            for place, name in enumerate(table.column_names):
                for row, text in enumerate([name, *table[name].to_pylist()]):
                    if text is not None:
                        sheet.write_string(row, place, text)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if made.source == ".tsv" else ",")
            writer.writerow(table.column_names)
            writer.writerows([cell or "" for cell in row.values()] for row in table.to_pylist())
    return path


def described(made: Case, table: Any) -> Any:
    """Describe the table of a case: with the kinds that it declares, as far as the columns allow them."""
    rng = random.Random(f"description {made.number}")
    for column in table.schema:
        _, role, kind = made.columns[column.name]
        texts = [v for v in table[column.name].values.drop_null().to_pylist() if isinstance(v, str)]
        domain = tuple(rng.sample(texts, len(texts))) if kind is Kind.ORDERED and rng.random() < 0.6 else None
        own = Column(column.name, role, column.kind, confirmed=True, reading=column.reading)
        wanted = own if kind is None else Column(column.name, role, kind, domain=domain or None, confirmed=True)
        for one in (wanted, own):
            try:
                table = table.with_schema(
                    Schema.of([one if c.name == one.name else c for c in table.schema], table.schema.missing)
                )
                break
            except SfumatoError:  # not numbers
                continue
    return table


def outcome(made: Case, folder: Path) -> tuple[str, str]:
    """Release the table of a case and audit what was written again: what became of it, and the words for it.

    Words are empty where all went well, or where nothing was written and a plain error says why.
    """
    path = write_original(made, folder)
    try:
        table = described(made, read_table(path, options=ReadOptions(mixed_as_text=True)))
        mechanism = build_mechanism(made.mechanism, made.parameters)
        mechanism = mechanism.with_cells(made.cells, 1.0 if made.cells == "draws" else None)
        proposed = propose_release(table, mechanism)
        proposed = proposed.with_formulas_escaped() if made.escapes else proposed
        done = publish(proposed, folder / f"released{made.suffix}", original=table)
    except AuditFailedError as error:
        # A bound on what an attacker gains is estimated twice, by other folds: on 60 rows the two may disagree. That is
        # the statistics of the bound, which no spelling changes.
        if all(finding.startswith("breach-bound does not hold") for finding in error.findings):
            return "bound not confirmed", ""
        return "refused", str(error)
    except SfumatoError as error:
        left = [one.name for one in folder.iterdir() if one != path]
        return f"not made: {type(error).__name__}", f"left {left}" if left else ""
    original = read_original(path, DEFAULT_OPTIONS, done.manifest_path)
    for beside in (original, None):
        report = audit_published(done.table_path, done.manifest_path, original=beside)
        if not report.passed:
            return "refused later", "; ".join(map(str, report.failures))
    if isinstance(done.release.table, Table):
        cells, _ = cells_of_release(done.release.manifest.to_dict(), done.release.table)
        for column in cells.columns.values():
            for text in column.values.to_pylist():
                read_cell(text)  # raises where our readers do not understand a cell
    return "confirmed", ""
