"""A disk that fills up: output and temporary files on a small file system in memory."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.soak.nursery import Ended, Nursery
from benchmarks.soak.orders import (
    MECHANISMS,
    SUFFIXES,
    Order,
    large_release_orders,
    release_order,
    small_orders,
    write_original,
)
from benchmarks.soak.outcome import Effort, Outcome

FULL_COUNT = 60
SIZE = 1 << 20
MOST_FREE = 150_000
_REFUSED = 3
_WITH_PICTURES = MECHANISMS.index("gain-recoding")


def run(effort: Effort, folder: Path) -> Outcome:
    """Run commands that write with a random number of free bytes; all or nothing must stand afterwards."""
    outcome, ends = Outcome("disk full", "commands"), Counter[str]()
    if os.getuid() != 0:
        outcome.skipped = "NOT DONE: a small file system can be mounted by root only"
        return outcome
    random_ = random.Random(effort.seed)
    original = write_original(folder)
    releases = [release_order(original, name, suffix) for name in MECHANISMS for suffix in SUFFIXES]
    with Nursery(folder) as nursery, _small_file_system(folder / "small") as small:
        made = release_order(original, MECHANISMS[_WITH_PICTURES], ".csv")
        nursery.run(made.arguments, folder=folder)
        kinds = [releases, large_release_orders(original), small_orders(original, folder / made.outputs[1])]
        for turn in range(effort.times(FULL_COUNT)):
            order = random_.choice(kinds[turn % len(kinds)])
            ends["of them out of core"] += "--memory" in order.arguments
            filler = small / "filler"
            filler.write_bytes(bytes(SIZE - random_.randrange(MOST_FREE)))
            ended = nursery.run(order.arguments, folder=small)
            filler.unlink()
            ends[_judged(order, ended, small, outcome)] += 1
            for left in small.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            outcome.n_done += 1
    outcome.count(ends)
    return outcome


@contextmanager
def _small_file_system(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _judged(order: Order, ended: Ended, small: Path, outcome: Outcome) -> str:
    """Compare what stands with how the command ended; gives that in words."""
    left = {path.name for path in small.iterdir()}
    last = ended.said.strip().splitlines()[-1:]
    if "Traceback" in ended.said:
        outcome.found(f"{order.name} showed a traceback")
    if ended.code == 0:
        if left != set(order.outputs) or not order.is_whole(small):
            outcome.found(f"{order.name} ended well and did not leave everything, whole")
        return "written, whole"
    if ended.code != _REFUSED:
        outcome.found(f"{order.name} ended with {ended.code}: {''.join(last)}")
    if left:
        outcome.found(f"{order.name} failed and left {len(left)} files")
    return "refused (the disk is full)" if "disk is full" in ended.said else "refused in other words"
