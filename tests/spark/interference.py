"""Something that happens in the middle of what a cluster does."""

from __future__ import annotations

import contextlib
import threading
from unittest.mock import patch

from sfumato.publishing import cluster_folder as publishing


@contextlib.contextmanager
def in_the_middle(session, act):
    """Do something as soon as a part of the work in the block is done and another part is being worked on."""
    over, done = threading.Event(), threading.Event()
    status = session.sparkContext.statusTracker()

    def is_in_the_middle():
        stages = [status.getStageInfo(number) for number in status.getActiveStageIds()]
        return any(stage and stage.numCompletedTasks and stage.numActiveTasks for stage in stages)

    def wait_and_act():
        while not over.wait(0.05):
            if is_in_the_middle():
                act()
                done.set()
                return

    waiting = threading.Thread(target=wait_and_act)
    waiting.start()
    try:
        yield done
    finally:
        over.set()
        waiting.join()


@contextlib.contextmanager
def slow_writing(milliseconds=50):
    """Make writing a release slow, so many milliseconds a row."""
    rows = publishing.frame_of

    def slow(proposal):
        frame = rows(proposal)
        cell = f"CAST(`{frame.columns[0]}` AS STRING)"
        sleep = f"java_method('java.lang.Thread', 'sleep', bigint({milliseconds} + 0 * coalesce(length({cell}), 0)))"
        return frame.where(f"{sleep} IS NULL OR {cell} IS NULL OR {cell} <> ''")

    with patch.object(publishing, "frame_of", slow):
        yield
