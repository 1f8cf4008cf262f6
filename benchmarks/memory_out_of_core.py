"""Peak memory of a whole release out of core, of the command and all processes that it starts.

    python -m benchmarks.memory_out_of_core                                   # 12.5 million rows: 2 GB of .sav
    python -m benchmarks.memory_out_of_core --format parquet --memory 1GB
    python -m benchmarks.memory_out_of_core --rows 300000 --format jsonl

Twenty columns: a key, six quasi-identifiers, an illness, a number with decimals, a target, and ten answers of a survey;
in SPSS files all but three of them have value labels. The resident memory of all processes of the tree is summed five
times a second (from ``/proc``; pages that several of them map count several times). The ratio is that peak to the
memory given: at most 1 is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.out_of_core import COMMAND
from sfumato.errors import CONFIRMED_EXCEPT

ROLES = (
    *("-m", "global-recoding", "-k", "5", "--identifiers", "patient", "--sensitive", "illness"),
    *("--quasi-identifiers", "age,sex,district,education,marital,country", "--target", "readmitted"),
    *("--other", ",".join(["dose", *(f"q{i}" for i in range(1, 11))])),
)
LABELS: dict[str, list[str]] = {
    "sex": ["m", "f"],
    "district": [f"D{i:03}" for i in range(1, 41)],
    "education": [f"level {i}" for i in range(1, 10)],
    "marital": ["single", "married", "divorced", "widowed", "apart"],
    "country": [f"C{i}" for i in range(1, 9)],
    "illness": [f"I{i}" for i in range(1, 26)],
    "readmitted": ["no", "yes"],
    **{f"q{i}": ["never", "rarely", "sometimes", "often", "always"] for i in range(1, 11)},
}


def numbers(n_rows: int, seed: int = 7) -> dict[str, Any]:
    """Make the columns as numbers; those with labels from 1 on."""
    rng = np.random.default_rng(seed)
    old, learned = rng.random(n_rows), rng.random(n_rows)
    found = {
        "patient": np.arange(n_rows, dtype=np.float64),
        "age": 18 + np.floor(73 * old * (1 - 0.4 * rng.random(n_rows))),
        "sex": (rng.random(n_rows) < 0.52) + 1.0,
        "district": 1 + np.floor(40 * rng.random(n_rows) ** 2),
        "education": 1 + np.floor(8 * (0.7 * learned + 0.3 * old)),
        "marital": 1 + np.floor(4.99 * rng.random(n_rows) * (0.3 + 0.7 * old)),
        "country": 1 + np.floor(8 * rng.random(n_rows) ** 4),
        "illness": 1 + np.floor(25 * rng.random(n_rows) ** 2),
        "dose": np.round(100 * rng.random(n_rows), 1),
        "readmitted": (rng.random(n_rows) < 0.1 + 0.3 * old * learned) + 1.0,
    }
    return found | {f"q{i}": 1 + np.floor(5 * rng.random(n_rows)) for i in range(1, 11)}


def generate(n_rows: int, path: Path) -> None:
    """Write the rows in the format of the suffix."""
    columns = numbers(n_rows)
    if path.suffix == ".sav":
        import pandas as pd
        import pyreadstat

        labels = {name: dict(enumerate(texts, start=1)) for name, texts in LABELS.items()}
        pyreadstat.write_sav(pd.DataFrame(columns, copy=False), str(path), variable_value_labels=labels)
        return
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    cells = {}
    for name, own in columns.items():
        if name in LABELS:
            codes = pa.array(own.astype(np.int32) - 1)
            cells[name] = pa.DictionaryArray.from_arrays(codes, pa.array(LABELS[name])).cast(pa.string())
        else:
            cells[name] = pa.array(own if name == "dose" else own.astype(np.int64))
    table = pa.table(cells)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(quoting_style="none"))
    else:
        with path.open("w", encoding="utf-8") as file:
            for batch in table.to_batches(max_chunksize=100_000):
                file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


def measured(command: list[str]) -> tuple[float, float, float]:
    """Seconds on the wall and of the processors, and the peak of the tree's resident megabytes."""
    began, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(command)
    while process.poll() is None:
        peak = max(peak, sum(map(_resident, _tree(process.pid))))
        time.sleep(0.2)
    if process.returncode not in (0, CONFIRMED_EXCEPT):
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}")
    used = os.times()
    return time.perf_counter() - began, used.children_user + used.children_system, peak


def _tree(process: int) -> list[int]:
    found = [process]
    for one in found:
        try:
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        except OSError:  # it has ended
            continue
    return found


def _resident(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Generate, release, and print a line."""
    from sfumato.engines.memory_limit import Memory

    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=12_500_000)
    asked.add_argument("--format", choices=("sav", "parquet", "csv", "jsonl"), default="sav")
    asked.add_argument("--memory", default="600MB")
    given = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-memory-"))
    try:
        path = folder / f"large.{given.format}"
        generate(given.rows, path)
        size = path.stat().st_size / 1e9
        command = [*COMMAND, "release", str(path), *ROLES, "--memory", given.memory, "-o", str(folder / "out.parquet")]
        seconds, cpu, peak = measured(command)
    finally:
        shutil.rmtree(folder)
    ratio = peak / (Memory.of(given.memory).n_bytes / 1e6)
    print("| format | rows | file | memory given | peak of all processes | ratio | CPU seconds | seconds on the wall |")
    print(
        f"| {given.format} | {given.rows:,} × 20 | {size:.2f} GB | {given.memory} | {peak:.0f} MB | {ratio:.2f} | ",
        end="",
    )
    print(f"{cpu:.0f} | {seconds:.0f} |")


if __name__ == "__main__":
    sys.exit(main())
