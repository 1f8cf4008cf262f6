"""Points in processes of their own, a few at a time, each with one thread and a time limit.

A process that hangs, crashes or eats all memory costs its own point and no other. Each writes its result itself.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

from sfumato.child_processes import (
    cause_of_death,
    forking_context,
    interruptions_held_back,
    kill_with_group,
    one_thread_each,
    stand_alone,
)
from sfumato.evaluation.grid import Point
from sfumato.evaluation.points import Status, measure_point, unmeasured
from sfumato.evaluation.run_folder import RunFolder
from sfumato.manifest import AnyTable
from sfumato.mechanisms import registered_mechanisms

_SECONDS_TO_DIE = 5.0


@dataclass(frozen=True, eq=False)
class _Running:
    point: Point
    process: BaseProcess
    started: float
    earlier: Mapping[str, Any] | None = None

    def seconds_left(self, timeout: float | None) -> float | None:
        return None if timeout is None else max(self.started + timeout - time.monotonic(), 0.0)


def measure_in_processes(
    table: AnyTable,
    points: Sequence[Point],
    folder: RunFolder,
    *,
    workers: int,
    timeout: float | None,
    finished: Callable[[Point], None],
) -> None:
    """Measure points and leave the results in the run folder; whatever ends this ends all processes.

    Parameters
    ----------
    workers : int
        How many run at once.
    timeout : float or None
        Seconds after which a point is given up.
    finished : callable
        Called with every point that has a result.
    """
    waiting, running = deque(points), list[_Running]()
    with one_thread_each():
        context = _context()
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    running.append(_started(context, table, waiting.popleft(), folder))
                _wait(running, timeout)
                for one in [one for one in running if _is_over(one, folder, timeout)]:
                    running.remove(one)
                    finished(one.point)
        finally:
            for one in running:
                _kill(one.process)


def _context() -> Any:
    families = {info.build.__module__ for info in registered_mechanisms().values()}
    return forking_context([__name__, *sorted(families)])


def _started(context: Any, table: AnyTable, point: Point, folder: RunFolder) -> _Running:
    given = (table, point, folder, tempfile.gettempdir())
    process = context.Process(target=_measure_and_save, args=given, name=f"sfumato {point.mechanism}")
    earlier = folder.load(point)
    with interruptions_held_back():
        process.start()
    return _Running(point, process, time.monotonic(), earlier)


def _measure_and_save(table: AnyTable, point: Point, folder: RunFolder, temporary: str) -> None:
    """Measure one point, in a process that nobody interrupts and that ends when its parent does."""
    stand_alone()
    tempfile.tempdir = temporary  # the parent's: who kills both removes what both leave
    warnings.simplefilter("ignore")
    folder.save(point, measure_point(table, point, folder.measuring, folder.scores))


def _wait(running: Sequence[_Running], timeout: float | None) -> None:
    left = [one.seconds_left(timeout) for one in running]
    known = [seconds for seconds in left if seconds is not None]
    multiprocessing.connection.wait([one.process.sentinel for one in running], min(known) if known else None)


def _is_over(one: _Running, folder: RunFolder, timeout: float | None) -> bool:
    """Whether a point has a result; one that took too long or died gets one that says so."""
    if not one.process.is_alive():
        one.process.join()
        if not _has_saved(one, folder):
            folder.save(one.point, unmeasured(one.point, Status.FAILED, cause_of_death(one.process.exitcode)))
        return True
    if timeout is None or one.seconds_left(timeout):
        return False
    _kill(one.process)
    if not _has_saved(one, folder):
        reason = f"took longer than {timeout:g} seconds"
        folder.save(one.point, unmeasured(one.point, Status.TIMED_OUT, reason) | {"timeout": timeout})
    return True


def _has_saved(one: _Running, folder: RunFolder) -> bool:
    """Whether there is a result that was not there before; no two have the same seconds."""
    found = folder.load(one.point)
    return found is not None and found != one.earlier


def _kill(process: BaseProcess) -> None:
    """End a process and those it has started."""
    kill_with_group(process)
    process.join(_SECONDS_TO_DIE)
