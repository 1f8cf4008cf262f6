"""Release and audit of a generated file that is larger than the memory given, each in a process of its own.

    python -m benchmarks.out_of_core                          # 10 million rows, Parquet
    python -m benchmarks.out_of_core --rows 100000000         # takes about a quarter of an hour and 2 GB of disk
    python -m benchmarks.out_of_core --rows 10000000 --format csv
    python -m benchmarks.out_of_core --mechanism error-risk-tree -p generalization=uniform
    python -m benchmarks.out_of_core --rows 20000000 --combinations many
    python -m benchmarks.out_of_core --rows 5000000 --persons 2000000

Ten columns: a key, six quasi-identifiers that hang together (1.25 million combinations in 100 million rows), an
illness, a number with decimals and a target. With many combinations: a date of birth and a postcode among the six
(18.95 million combinations in 20 million rows, far more than fit in 1 GB). Peak memory is that of the process as the
system counts it. Beside it stand the same steps written by hand in DuckDB's SQL (:mod:`benchmarks.by_hand`), which
knows the levels in advance. With persons the key is that of one of so many, drawn for each row, whose
quasi-identifiers are those of the person but for the place; beside it stands a query that counts the different persons
of every combination. The ratio is CPU time to reading the bytes of the input once, right before, from wherever
the system holds them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sfumato.errors import CONFIRMED_EXCEPT

QUASI_IDENTIFIERS = {
    "few": "age,sex,district,education,marital,country",
    "many": "born,sex,postcode,education,marital,country",
}
OTHER_ROLES = ("--sensitive=illness", "--other=dose", "--target=readmitted")
COMMAND = (sys.executable, "-c", "from sfumato.__main__ import main; main()")
ROWS_SQL = """
SELECT {patient} AS patient,
    {age},
    CASE WHEN u3 < 0.52 THEN 'f' ELSE 'm' END AS sex,
    {place},
    'level ' || (floor(8 * (0.7 * u5 + 0.3 * u1)))::INT AS education,
    ['single', 'married', 'divorced', 'widowed', 'apart'][1 + (floor(4.99 * u6 * (0.3 + 0.7 * u1)))::INT] AS marital,
    'C' || (floor(8 * u7 * u7 * u7 * u7))::INT AS country,
    'I' || (floor(25 * u8 * u8))::INT AS illness,
    round(100 * u9, 1) AS dose,
    CASE WHEN u10 < 0.1 + 0.3 * u1 * u5 THEN 'yes' ELSE 'no' END AS readmitted
FROM (SELECT i, {uniform} FROM range({first}, {last}) AS rows(i))
"""
AGE_AND_PLACE = {
    "few": (
        "(18 + floor(73 * u1 * (1 - 0.4 * u2)))::SMALLINT AS age",
        "'D' || lpad((floor(40 * u4 * u4))::INT::VARCHAR, 3, '0') AS district",
    ),
    "many": (
        "DATE '1930-01-01' + (floor(29000 * u1 * (1 - 0.4 * u2)))::INT AS born",
        "(10000 + 50 * floor(150 * u4 * u4))::INT::VARCHAR AS postcode",
    ),
}


def generate(n_rows: int, path: Path, combinations: str = "few", n_persons: int | None = None) -> None:
    """Write the rows, the same ones for the same number; text files a part at a time."""
    import duckdb

    # Numbers from 0 to 1 that look random and depend on the row alone.
    # With persons some depend on the person alone: age, sex, education, marital state and country.
    whose = "i" if n_persons is None else f"(hash(i * 16) % {n_persons})"
    patient = "i" if n_persons is None else f"'P' || lpad((hash(i * 16) % {n_persons})::VARCHAR, 9, '0')"
    by = {j: "i" if j in (4, 8, 9, 10) else whose for j in range(1, 11)}
    uniform = ", ".join(f"(hash({own} * 16 + {j}) % 1000003) / 1000003.0 AS u{j}" for j, own in by.items())
    form = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER"
    config: dict[str, Any] = {"memory_limit": "1GB", "threads": 1, "preserve_insertion_order": True}
    with duckdb.connect(":memory:", config=config) as connection:
        age, place = AGE_AND_PLACE[combinations]
        query = ROWS_SQL.format(uniform=uniform, age=age, place=place, patient=patient, first=0, last=n_rows)
        connection.execute(f"COPY ({query}) TO '{path}' ({form})")


PERSONS_SQL = """
import duckdb
with duckdb.connect(":memory:", config={{"memory_limit": "{memory}", "threads": 1}}) as connection:
    counted = "SELECT count(DISTINCT patient) AS n FROM '{path}' GROUP BY {names}"
    print(connection.execute("SELECT min(n), count(*) FROM (" + counted + ")").fetchall())
"""


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds on the wall and of the processors, and peak megabytes, of a command in a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    if os.waitstatus_to_exitcode(status) not in (0, CONFIRMED_EXCEPT):
        raise SystemExit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def seconds_to_read(path: Path) -> float:
    """Read the bytes of a file once."""
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
    return time.perf_counter() - began


def main() -> None:
    """Generate, release, audit, and print a table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=10_000_000)
    asked.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    asked.add_argument("--combinations", choices=tuple(AGE_AND_PLACE), default="few")
    asked.add_argument("--persons", type=int, help="so many persons, of whom each row is one's")
    asked.add_argument("--memory", default="1GB")
    asked.add_argument("--mechanism", default="global-recoding")
    asked.add_argument("-p", "--param", action="append", default=[], help="a parameter of the mechanism, NAME=VALUE")
    asked.add_argument("--folder", help="where the files are written, and removed")
    given = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-benchmark-", dir=given.folder))
    source, output = folder / f"large.{given.format}", folder / f"release.{given.format}"
    try:
        generate(given.rows, source, given.combinations, given.persons)
        key = "--identifiers=patient" if given.persons is None else "--person=patient"
        roles = [key, *OTHER_ROLES, f"--quasi-identifiers={QUASI_IDENTIFIERS[given.combinations]}"]
        reading = seconds_to_read(source)
        release = ["release", str(source), "-m", given.mechanism, "--memory", given.memory, "-o", str(output), *roles]
        release += [f"--param={param}" for param in given.param]
        manifest = ["--manifest", f"{output}.manifest.json"]
        audit = ["audit", str(output), *manifest, "--original", str(source), "--memory", given.memory, *roles]
        size = source.stat().st_size / 1e9
        lines = []
        by_hand = ["-m", "benchmarks.by_hand", str(source), str(folder / "by_hand.parquet"), "--memory", given.memory]
        runs = {"release": [*COMMAND, *release], "audit": [*COMMAND, *audit]}
        if given.persons is not None:
            names = QUASI_IDENTIFIERS[given.combinations]
            query = PERSONS_SQL.format(memory=given.memory, path=source, names=names)
            runs["different persons of every combination, in DuckDB's SQL"] = [sys.executable, "-c", query]
        elif given.combinations == "few" and given.format == "parquet":
            runs["release and audit by hand, in DuckDB's SQL"] = [sys.executable, *by_hand]
        for what, command in runs.items():
            wall, cpu, peak = measured(command)
            lines.append(
                f"| {what} | {given.rows:,} × 10 | {given.format}, {size:.2f} GB | {wall:.0f} | {cpu:.0f} "
                f"| {peak:,.0f} | {reading:.2f} | {cpu / reading:.0f} |"
            )
        heads = "| what | rows | file | seconds | CPU seconds | peak MB | seconds to read the bytes | CPU ratio |"
        sys.stdout.write("\n".join([heads, "| --- " * 3 + "| ---: " * 5 + "|", *lines, ""]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
