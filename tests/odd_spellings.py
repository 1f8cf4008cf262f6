"""Made tables of odd spellings, released by every mechanism, in every form of cells, into every format.

A case is a number: the table, what is said of its columns, the mechanism, the form and the file all follow from it.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from sfumato.errors import AuditFailedError, SfumatoError
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.publish import propose_release, publish
from sfumato.publishing.reaudit import audit_published, read_original
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.io.formats import _WRITABLE_SUFFIXES
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
TYPED: dict[str, pa.Array] = {
    "int64": pa.array([1, -2, 3, 10**15, 0]),
    "int8": pa.array([0, 1, 2, -128], pa.int8()),
    "uint64": pa.array([2**64 - 1, 2**63, 1, 0], pa.uint64()),
    "float64": pa.array([0.1, -0.0, 1e22, 1e-7, 2.0]),
    "float64 endless": pa.array([float("inf"), float("-inf"), 1.0, 2.5]),
    "float64 not a number": pa.array([float("nan"), 1.0, 2.5]),
    "float64 whole": pa.array([1.0, 2.0, 3.0]),
    "float32": pa.array([0.1, 16777217.0, 3.0, 1e-7], pa.float32()),
    "float16": pa.array([0.1, 2.0, 65504.0], pa.float32()).cast(pa.float16()),
    "decimal": pa.array([Decimal("1.50"), Decimal("-2.00"), Decimal("0.00")]),
    "decimal whole": pa.array([Decimal(1), Decimal(2), Decimal(30)], pa.decimal128(5, 0)),
    "decimal small": pa.array([Decimal("0.0000001"), Decimal("2.5000000")], pa.decimal128(12, 7)),
    "bool": pa.array([True, False]),
    "date32": pa.array([_DAY.date(), datetime.date(1999, 12, 31)]),
    "timestamp": pa.array([_DAY, _DAY.replace(hour=3, microsecond=500), _DAY.replace(hour=4)], pa.timestamp("us")),
    "timestamp s": pa.array([_DAY, _DAY.replace(hour=3), _DAY.replace(hour=4)], pa.timestamp("s")),
    "timestamp ns": pa.array([1577934245000000001, 1577934245000000000, 0], pa.timestamp("ns")),
    "timestamp midnight": pa.array([_DAY, _DAY.replace(day=3)], pa.timestamp("ms")),
    "timestamp UTC": pa.array(
        [_DAY.replace(tzinfo=_UTC), _DAY.replace(hour=3, tzinfo=_UTC)], pa.timestamp("us", "UTC")
    ),
    "timestamp Berlin": pa.array([_DAY.replace(tzinfo=_UTC)] * 2, pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([datetime.time(3, 4), datetime.time(3, 4, 5), datetime.time(0)], pa.time64("us")),
    "text": pa.array(["1", "01", "a"]),
    "coded": pa.array(["x", "y", "07"]).dictionary_encode(),
}
"""Values of a typed column."""
SUFFIXES = sorted(_WRITABLE_SUFFIXES)
CELLS = ("ranges", "values", "draws")
_FEW = {"k": (2, 3), "n_features": (2, 3)}


@dataclass
class Case:
    """What follows from a number."""

    number: int
    mechanism: str
    parameters: dict[str, Any]
    cells: str
    suffix: str
    source: str
    columns: dict[str, tuple[str, Role, Kind | None]] = field(default_factory=dict)
    cells_of: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        columns = "; ".join(f"{n}: {what}, {role}, {kind}" for n, (what, role, kind) in self.columns.items())
        return (
            f"{self.number}: {self.mechanism} {self.parameters} {self.cells} {self.source}->{self.suffix} [{columns}]"
        )


def case(number: int) -> Case:
    """Draw a case."""
    rng = random.Random(f"odd spelling {number}")
    names = list(registered_mechanisms())
    mechanism = names[number % len(names)]
    info = registered_mechanisms()[mechanism]
    known = {parameter.name for parameter in info.parameters}
    parameters: dict[str, Any] = {name: rng.choice(few) for name, few in _FEW.items() if name in known}
    if "max_suppressed_fraction" in known:
        parameters["max_suppressed_fraction"] = rng.choice([0, 0.1, 0.4])
    if "on_infeasible" in known:
        parameters["on_infeasible"] = "skip"
    takes = getattr(info.build, "takes_cells", False)
    cells = rng.choice(CELLS) if takes else "ranges"
    source = rng.choice([".csv", ".csv", ".tsv", ".parquet", ".parquet", ".jsonl", ".xlsx"])
    made = Case(number, mechanism, parameters, cells, rng.choice(SUFFIXES), source)
    n_rows = rng.choice([12, 25, 40])
    roles = [Role.QUASI_IDENTIFIER, Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET]
    roles += rng.choice([[], [Role.QUASI_IDENTIFIER], [Role.OTHER], [Role.QUASI_IDENTIFIER, Role.OTHER]])
    for place, role in enumerate(roles):
        is_typed = source == ".parquet" and rng.random() < 0.7
        what = rng.choice(list(TYPED if is_typed else TEXTS))
        values = TYPED[what].to_pylist() if is_typed else TEXTS[what]
        if TYPED.get(what) is not None and is_typed and pa.types.is_timestamp(TYPED[what].type):
            values = list(range(len(values)))
        if role is Role.TARGET and rng.random() < 0.6:
            is_typed, what, values = False, "words", ["n", "y"]
        weights = [rng.choice([1, 4, 10]) for _ in values]
        drawn: list[Any] = rng.choices(values, weights, k=n_rows)
        if rng.random() < 0.3:
            drawn = [None if rng.random() < 0.15 else value for value in drawn]
        kind = rng.choice([None, None, None, *Kind])
        made.columns[f"c{place}"] = (("typed " if is_typed else "") + what, role, kind)
        made.cells_of[f"c{place}"] = drawn
    return made


def write_original(made: Case, folder: Path) -> Path:
    """Write the table of a case."""
    path = folder / f"original{made.source}"
    columns = {}
    for name, cells in made.cells_of.items():
        what = made.columns[name][0]
        typed = TYPED.get(what.removeprefix("typed ")) if what.startswith("typed ") else None
        if typed is None:
            columns[name] = pa.array(cells, pa.string())
        elif pa.types.is_timestamp(typed.type):
            columns[name] = typed.take(pa.array(cells, pa.int64()))
        elif pa.types.is_float16(typed.type):
            columns[name] = pa.array(cells, pa.float32()).cast(pa.float16())
        else:
            columns[name] = pa.array(cells, typed.type.value_type if pa.types.is_dictionary(typed.type) else typed.type)
    if made.source == ".parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif made.source == ".jsonl":
        import json

        rows = pa.table(columns).to_pylist()
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif made.source == ".xlsx":
        import xlsxwriter

        with xlsxwriter.Workbook(str(path)) as book:
            sheet = book.add_worksheet()
            for place, (name, cells) in enumerate(columns.items()):
                sheet.write_string(0, place, name)
                for row, cell in enumerate(cells.to_pylist(), start=1):
                    if cell is not None:
                        sheet.write_string(row, place, cell)
    else:
        import csv

        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if made.source == ".tsv" else ",")
            writer.writerow(columns)
            writer.writerows(zip(*([c or "" for c in cells.to_pylist()] for cells in columns.values()), strict=True))
    return path


def described(made: Case, table: Any) -> Any:
    """Describe the table of a case as far as that is possible."""
    columns = []
    rng = random.Random(f"description {made.number}")
    for column in table.schema:
        _, role, kind = made.columns[column.name]
        texts = [v for v in table[column.name].values.drop_null().to_pylist() if isinstance(v, str)]
        domain = None
        if kind is Kind.ORDERED and rng.random() < 0.6 and texts:
            domain = tuple(rng.sample(texts, len(texts)))
        own = Column(
            column.name,
            role,
            kind or column.kind,
            domain=domain,
            confirmed=True,
            reading=column.reading if kind is None else None,
        )
        try:
            table.with_schema(Schema.of([own if c.name == own.name else c for c in table.schema], table.schema.missing))
        except SfumatoError:
            own = Column(column.name, role, column.kind, confirmed=True, reading=column.reading)
        columns.append(own)
    return table.with_schema(Schema.of(columns, table.schema.missing))


def outcome(made: Case, folder: Path) -> tuple[str, str]:
    """Release the table of a case and audit what was written again: what became of it, and the audit's words."""
    path = write_original(made, folder)
    try:
        table = described(made, read_table(path, options=ReadOptions(mixed_as_text=True)))
    except SfumatoError as error:
        return f"unread {type(error).__name__}", str(error)
    try:
        mechanism = build_mechanism(made.mechanism, made.parameters).with_cells(
            made.cells, 1.0 if made.cells == "draws" else None
        )
        proposed = propose_release(table, mechanism)
        done = publish(proposed, folder / f"released{made.suffix}", original=table, force=True)
    except AuditFailedError as error:
        return "REFUSED", str(error)
    except SfumatoError as error:
        return f"not made {type(error).__name__}", str(error)
    original = read_original(path, DEFAULT_OPTIONS, done.manifest_path)
    report = audit_published(done.table_path, done.manifest_path, original=original)
    if not report.passed:
        return "REFUSED LATER", "; ".join(map(str, report.failures))
    alone = audit_published(done.table_path, done.manifest_path)
    if not alone.passed:
        return "REFUSED ALONE", "; ".join(map(str, alone.failures))
    return "confirmed", ""


def main() -> None:
    """Run cases from one number up to another, and print what was refused."""
    import collections
    import sys
    import tempfile
    import traceback

    first, last = map(int, sys.argv[1:3])
    counts: collections.Counter[str] = collections.Counter()
    for number in range(first, last):
        with tempfile.TemporaryDirectory() as folder:
            made = case(number)
            try:
                what, words = outcome(made, Path(folder))
            except Exception:
                what, words = "BUG", traceback.format_exc().replace("\n", " | ")[-400:]
        counts[what] += 1
        if what[0] == "R" or what == "BUG" or "-v" in sys.argv:
            print(what, made, words, sep=" :: ", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
