"""One of three collaborating parties has a file larger than the memory given; each party is a process of its own.

    python -m benchmarks.large_party                          # 10 million rows, Parquet
    python -m benchmarks.large_party --rows 100000000         # takes some ten minutes and 2 GB of disk

The file is that of ``benchmarks.out_of_core``, whose dose is left out of the session; the other two have 100,000 such
rows each. Measured are agreeing on the schema, and the session: counts, release and audit of the large party.
"""

from __future__ import annotations

import argparse
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.out_of_core import COMMAND, generate, measured

PARTIES = ("large", "second", "third")
FEW_ROWS = 100_000
ROLES = ("--identifiers=patient", "--other=dose")


def free_hosts() -> str:
    """Addresses on this machine that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in PARTIES]
    hosts = ",".join(f"127.0.0.1:{server.getsockname()[1]}" for server in sockets)
    for server in sockets:
        server.close()
    return hosts


def in_step(step: list[str], own: dict[str, list[str]], folder: Path) -> tuple[float, float, float]:
    """Run a step of all parties at once; gives what the large one took."""
    lines = {name: ["collaborate", *step, "--config", str(folder / f"{name}.toml"), *own[name]] for name in PARTIES}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    others = [subprocess.Popen([*COMMAND, *lines[name]], **quiet) for name in PARTIES[1:]]
    found = measured(lines[PARTIES[0]])
    if any(other.wait() for other in others):
        raise SystemExit("another party failed")
    return found


def main() -> None:
    """Generate, agree, take part, and print a table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=10_000_000)
    asked.add_argument("--memory", default="1GB")
    asked.add_argument("--folder", help="where the files are written, and removed")
    given = asked.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sfumato-benchmark-", dir=given.folder))
    try:
        data = {name: folder / f"{name}.parquet" for name in PARTIES}
        for name, path in data.items():
            generate(given.rows if name == PARTIES[0] else FEW_ROWS, path)
        keys = ["keys", "--parties", ",".join(PARTIES), "--hosts", free_hosts(), "-o", str(folder), "--force"]
        subprocess.run([*COMMAND, "collaborate", *keys], check=True, capture_output=True)
        for name in PARTIES:
            config = folder / f"{name}.toml"
            patient = re.sub("timeout = [0-9]+", "timeout = 1800", config.read_text(encoding="utf-8"))
            config.write_text(patient, encoding="utf-8")
        reading = {name: ["--data", str(data[name]), "--memory", given.memory, *ROLES] for name in PARTIES}
        schemas = {name: [*reading[name], "-o", str(folder / f"{name}.schema.json")] for name in PARTIES}
        lines = [("schema", in_step(["schema", "--target=readmitted", "--bins=age=30,45,60,75"], schemas, folder))]
        releases = {
            name: [*reading[name], "--schema", schemas[name][-1], "-o", str(folder / f"{name}-release.parquet")]
            for name in PARTIES
        }
        lines.append(("counts, release and audit", in_step(["party", "--min-privacy-gain=0.02"], releases, folder)))
        heads = "| what | rows of the large party | seconds | CPU seconds | peak MB |"
        table = [f"| {what} | {given.rows:,} × 10 | {w:.0f} | {c:.0f} | {p:,.0f} |" for what, (w, c, p) in lines]
        sys.stdout.write("\n".join([heads, "| --- | --- | ---: | ---: | ---: |", *table, ""]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
