"""Measure the field and write FIELD.md; finished points are kept, so that it can be ended and continued at any time.

::

    python -m benchmarks.field                   # all tables: some hours on two cores
    python -m benchmarks.field --only adult      # one table
    python -m benchmarks.field --quick           # small tables, k = 5 and 50, one seed
    python -m benchmarks.field --write           # measure nothing; write FIELD.md and its picture of what there is
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from benchmarks.field.contenders import CONTENDERS, ORIGINAL, Contender
from benchmarks.field.measuring import HONEST, LEAKY, Point, keep, kept_results, measured
from benchmarks.field.report import LEVELS, write_report
from benchmarks.field.tables import SMALL, TABLES

RESULTS = Path(__file__).parent / "results.jsonl"
QUICK_LEVELS = (5, 50)
SEEDS_OF_SMALL_TABLES = 3
"""Larger tables are measured with one seed."""
LEAKY_TABLES = ("mgm", "cmc", "adult", "cahousing")
"""Tables of the open benchmark whose protocol leaks; ours is shown under it as well."""
LEAKY_CONTENDERS = ("mondrian, gain", "mondrian, score", "auto")


def main() -> int:
    """Measure what is asked for and not there, then write the report."""
    asked = arguments()
    names = [name for name in TABLES if not asked.only or name in asked.only]
    done = kept_results(RESULTS)
    tables = {} if asked.write else {name: TABLES[name].load() for name in names}
    for seed, (name, table) in product(range(asked.seeds), tables.items()):
        if (seed or asked.quick) and (table.n_rows > SMALL or (asked.quick and seed)):
            continue
        for point, contender in points(name, seed, is_quick=asked.quick):
            if point.key() in done or (asked.contender and contender.name not in asked.contender):
                continue
            result = measured(point, contender, TABLES[name], table)
            keep(RESULTS, result)
            done[point.key()] = result
            said = result.get("failed") or f"{result['seconds']} s"
            print(f"{point.key()}: {said}", flush=True)
    write_report(kept_results(RESULTS))
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(TABLES), help="measure this table; may be repeated")
    parser.add_argument(
        "--contender",
        action="append",
        choices=[contender.name for contender in CONTENDERS],
        help="measure this one; may be repeated",
    )
    parser.add_argument("--seeds", type=int, default=SEEDS_OF_SMALL_TABLES, help="of small tables; others have one")
    parser.add_argument("--quick", action="store_true", help="small tables, k = 5 and 50, one seed")
    parser.add_argument("--write", action="store_true", help="measure nothing, write the report")
    return parser.parse_args()


def points(name: str, seed: int, *, is_quick: bool) -> Iterator[tuple[Point, Contender]]:
    """All points of a table with one seed; the original once, whatever k."""
    for k, contender in product(QUICK_LEVELS if is_quick else LEVELS, CONTENDERS):
        if contender.name == ORIGINAL:
            yield Point(name, contender.name, 1, seed), contender
        elif not (contender.peer and seed):  # peers take long: one seed
            yield Point(name, contender.name, k, seed, HONEST), contender
    if name in LEAKY_TABLES and not is_quick:
        for k, contender in product(LEVELS, CONTENDERS):
            if contender.name in LEAKY_CONTENDERS:
                yield Point(name, contender.name, k, seed, LEAKY), contender


if __name__ == "__main__":
    sys.exit(main())
