"""kill -9 at random moments of commands that write: nothing stands, or everything, and no file is left behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

from benchmarks.soak.nursery import Nursery, group_of
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
from sfumato.private_folders import remove_leftovers

FULL_COUNT = 220
_PATIENCE = 5.0
_PRIVATE = ("count", "audit")
_WITH_PICTURES = MECHANISMS.index("gain-recoding")


def run(effort: Effort, folder: Path) -> Outcome:
    """Kill commands, new and replacing ones, and look at what they leave."""
    outcome, ends = Outcome("kill -9", "kills"), Counter[str]()
    random_ = random.Random(effort.seed)
    work = folder / "work"
    with Nursery(folder) as nursery:
        orders = _orders(nursery, folder)
        durations = {order.name: _seconds_without_a_kill(nursery, order, folder) for order in orders}
        n_large = 0
        for turn in range(effort.times(FULL_COUNT)):
            order, is_replacing = random_.choice(orders), turn % 2 == 0
            n_large += "--memory" in order.arguments
            if is_replacing:
                shutil.copytree(folder / order.name, work)
            else:
                work.mkdir()
            place = random_.uniform(0, 1) if turn % 3 else random_.uniform(0.8, 1.2)
            ends[_killed(nursery, order, work, durations[order.name] * place, is_replacing, outcome)] += 1
            shutil.rmtree(work)
            outcome.n_done += 1
    outcome.count(ends | Counter({"of them out of core": n_large}))
    return outcome


def _seconds_without_a_kill(nursery: Nursery, order: Order, folder: Path) -> float:
    """Run a command to its end in a folder of its own, which is kept, and say how long it takes."""
    own = folder / order.name
    own.mkdir()
    ended = nursery.run(order.arguments, folder=own)
    if ended.code or not order.is_whole(own):
        raise RuntimeError(f"{order.name} does not work without a kill: {ended.said}")
    return ended.seconds


def _orders(nursery: Nursery, folder: Path) -> list[Order]:
    """Releases of several mechanisms in several formats, in memory and out of core, and other commands that write."""
    original = write_original(folder)
    releases = [release_order(original, name, SUFFIXES[i % len(SUFFIXES)]) for i, name in enumerate(MECHANISMS)]
    made = nursery.run(releases[_WITH_PICTURES].arguments, folder=folder)
    if made.code:
        raise RuntimeError(made.said)
    small = small_orders(original, folder / releases[_WITH_PICTURES].outputs[1])
    return [*releases, *large_release_orders(original), *small]


def _killed(nursery: Nursery, order: Order, work: Path, seconds: float, is_replacing: bool, outcome: Outcome) -> str:
    """Kill a command after some seconds; gives what stood afterwards."""
    process = nursery.start([*order.arguments, *(["--force"] if is_replacing else [])], folder=work)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    ended = nursery.ended()
    if ended.code not in (0, -signal.SIGKILL):
        outcome.found(f"{order.name} ended with {ended.code} before it was killed")
    _check_no_orphans(process, order, outcome)
    for purpose in _PRIVATE:
        if any(work.glob(f"sfumato-{purpose}-*")):
            outcome.count_one("left a folder that the next command removes")
            remove_leftovers(work, purpose)
    left = {path.name for path in work.iterdir()}
    if left - set(order.outputs):
        outcome.found(f"{order.name} left a temporary file or folder behind")
    if order.outputs[0] not in left:
        return "left a manifest alone" if order.outputs[-1] in left else "left nothing"
    try:
        is_whole = order.is_whole(work)
    except Exception as error:
        is_whole = False
        outcome.found(f"{order.name}: what stood could not be read ({type(error).__name__})")
    if not is_whole:
        outcome.found(f"{order.name} left something partial")
    return "left everything, whole"


def _check_no_orphans(process: int, order: Order, outcome: Outcome) -> None:
    until = time.monotonic() + _PATIENCE
    while group_of(process):
        if time.monotonic() > until:
            outcome.found(f"{order.name} left processes running")
            return
        time.sleep(0.05)
