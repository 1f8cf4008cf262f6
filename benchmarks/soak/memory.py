"""Little memory: a limit on the address space (RLIMIT_AS) at a random height."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from benchmarks.soak.nursery import Nursery
from benchmarks.soak.orders import MECHANISMS, SUFFIXES, release_order, write_original
from benchmarks.soak.outcome import Effort, Outcome

FULL_COUNT = 60
N_ROWS = 20_000
LEAST, MOST = 1 << 20, 400 << 20
"""Bytes beyond what the imported modules take."""
_REFUSED = 3


def run(effort: Effort, folder: Path) -> Outcome:
    """Run releases and audits with little memory; they succeed, or say so and leave nothing."""
    outcome, ends = Outcome("memory limit", "commands"), Counter[str]()
    random_ = random.Random(effort.seed)
    original = write_original(folder, N_ROWS)
    work = folder / "work"
    with Nursery(folder) as nursery:
        for turn in range(effort.times(FULL_COUNT)):
            work.mkdir()
            order = release_order(original, random_.choice(MECHANISMS), random_.choice(SUFFIXES))
            name, arguments = (order.name, order.arguments) if turn % 4 else ("audit", ["audit", str(original)])
            memory = int(LEAST * (MOST / LEAST) ** random_.random())
            ended = nursery.run(arguments, folder=work, memory=memory)
            left = {path.name for path in work.iterdir()}
            last = "".join(ended.said.strip().splitlines()[-1:])
            if ended.code not in (0, _REFUSED) or "Traceback" in ended.said:
                outcome.found(f"{name} with {memory >> 20} MB ended with {ended.code}: {last}")
            if ended.code and left:
                outcome.found(f"{name} failed and left {len(left)} files")
            if ended.code == 0 and name != "audit" and not order.is_whole(work):
                outcome.found(f"{name} ended well and the audit does not confirm it")
            ends["done" if ended.code == 0 else "refused"] += 1
            shutil.rmtree(work)
            outcome.n_done += 1
    outcome.count(ends)
    return outcome
