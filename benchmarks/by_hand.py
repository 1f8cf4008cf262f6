"""The steps of a release out of core and its audit, written by hand in plain DuckDB SQL for one table.

    python -m benchmarks.by_hand LARGE.parquet OUT.parquet --memory 1GB

It knows in advance what a program for any table must find out: the columns, their types, and the levels that the
release has (ages in tens, districts in groups of ten, the other quasi-identifiers as ``*``). The steps: hash the file;
count the distinct values of every column; count the combinations of the quasi-identifiers; write the recoded rows of
classes of at least five; hash both files; read what was written, count its classes; and compare the bag of
released rows with the original's. :mod:`benchmarks.out_of_core` runs it beside ``sfumato release``.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import duckdb

K = 5
COLUMNS = ("patient", "age", "sex", "district", "education", "marital", "country", "illness", "dose", "readmitted")
QUASI_IDENTIFIERS = ("age", "sex", "district", "education", "marital", "country")
RECODED = {
    "age": "(age // 10 * 10) || '-' || (age // 10 * 10 + 9)",
    "district": "left(district, 3) || '*'",
    **dict.fromkeys(("sex", "education", "marital", "country"), "'*'"),
}
AS_THEY_ARE = ("illness", "dose", "readmitted")


def sha256(path: Path) -> str:
    """Hash the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def released(source: Path) -> str:
    """Give the query of the recoded rows of classes that are large enough, in the order of the file."""
    labels = ", ".join(f"{rule} AS {name}" for name, rule in RECODED.items())
    keys = ", ".join(QUASI_IDENTIFIERS)
    return f"""
        WITH recoded AS (SELECT {labels}, {", ".join(AS_THEY_ARE)} FROM read_parquet('{source}')),
        classes AS (SELECT {keys} FROM recoded GROUP BY {keys} HAVING count(*) >= {K})
        SELECT {keys}, {", ".join(AS_THEY_ARE)} FROM recoded SEMI JOIN classes USING ({keys})
    """


def main() -> None:
    """Do all steps, and say what came of them."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("source", type=Path)
    asked.add_argument("output", type=Path)
    asked.add_argument("--memory", default="1GB")
    given = asked.parse_args()
    before = sha256(given.source)
    config: dict[str, Any] = {"memory_limit": given.memory, "temp_directory": str(given.output.parent)}
    keys = ", ".join(QUASI_IDENTIFIERS)
    with duckdb.connect(":memory:", config=config) as connection:
        for name in COLUMNS:
            grouped = f"SELECT {name}, count(*) AS n FROM read_parquet('{given.source}') GROUP BY {name}"
            connection.execute(f"SELECT count(*), sum(n) FROM ({grouped})").fetchall()
        combinations = f"SELECT {keys}, count(*) AS n FROM read_parquet('{given.source}') GROUP BY {keys}"
        (n_combinations,) = connection.execute(f"SELECT count(*) FROM ({combinations})").fetchall()[0]
        connection.execute(f"COPY ({released(given.source)}) TO '{given.output}' (FORMAT parquet)")
        if sha256(given.source) != before:
            raise SystemExit("the input changed")
        digest = sha256(given.output)
        classes = f"SELECT count(*) AS n FROM read_parquet('{given.output}') GROUP BY {keys}"
        (smallest,) = connection.execute(f"SELECT min(n) FROM ({classes})").fetchall()[0]
        written = f"SELECT {keys}, {', '.join(AS_THEY_ARE)} FROM read_parquet('{given.output}')"
        differing = f"SELECT count(*) FROM (({released(given.source)}) EXCEPT ALL ({written}))"
        (n_differing,) = connection.execute(differing).fetchall()[0]
    print(f"{n_combinations:,} combinations; smallest class {smallest}; {n_differing} rows differ; {digest[:12]}")


if __name__ == "__main__":
    main()
