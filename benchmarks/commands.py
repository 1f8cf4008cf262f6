"""CPU seconds of whole commands, imports included, of this checkout beside the sources of another.

    python -m benchmarks.commands
    python -m benchmarks.commands --others ../before/src --only auto_10000

Each command releases and audits generated rows (``generated.make_census``) in a process of its own, with one thread
and without measuring prediction. The checkouts take turns, and the least of the repeats counts, so that other work on
the machine matters less. A released file that differs between two checkouts makes the run fail.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.generated import make_census
from benchmarks.out_of_core import COMMAND
from sfumato.errors import CONFIRMED_EXCEPT

ROLES = ("--target", "target", "--sensitive", "illness", "--quick")
COMMANDS = {
    "mondrian_100000": (100_000, "csv", ("-m", "mondrian")),
    "auto_10000": (10_000, "csv", ()),
    "auto_1000000": (1_000_000, "parquet", ()),
}
"""Rows, format and mechanism."""


def write_census(n_rows: int, path: Path) -> None:
    """Write generated rows in the format of the suffix."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    columns = make_census(n_rows).columns
    table = pa.table({name: column.values.take(pa.array(column.codes)) for name, column in columns.items()})
    write = pyarrow.csv.write_csv if path.suffix == ".csv" else pyarrow.parquet.write_table
    write(table, path)


def cpu_seconds(command: list[str], source: Path) -> float:
    """User and system seconds of a command, and of the processes that it starts, run by the sources of a checkout."""
    before = os.times()
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode not in (0, CONFIRMED_EXCEPT):
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}")
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def main() -> None:
    """Print a line of each command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--others", type=Path, help="folder src of another checkout")
    asked.add_argument("--only", choices=COMMANDS)
    asked.add_argument("--repeats", type=int, default=3)
    given = asked.parse_args()
    sources = [source.resolve() for source in (given.others, Path("src")) if source is not None]
    with tempfile.TemporaryDirectory(prefix="sfumato-commands-") as folder:
        for name, (n_rows, format, mechanism) in COMMANDS.items():
            if given.only not in (None, name):
                continue
            path = Path(folder) / f"{name}.{format}"
            write_census(n_rows, path)
            released = [path.with_stem(f"{name}-{number}") for number in range(len(sources))]
            least = [float("inf")] * len(sources)
            for _ in range(given.repeats):
                for number, source in enumerate(sources):
                    output = ["-o", str(released[number]), "--force"]
                    command = [*COMMAND, "release", str(path), *mechanism, *ROLES, *output]
                    least[number] = min(least[number], cpu_seconds(command, source))
            if len({file.read_bytes() for file in released}) > 1:
                sys.exit(f"{name}: the checkouts release different files")
            print(name, *(f"{seconds:.2f}" for seconds in least), "CPU seconds", flush=True)


if __name__ == "__main__":
    main()
