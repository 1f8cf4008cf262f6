"""Files that a frame of Spark reads its rows from: nothing is ever written over them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sfumato.cluster.frames import Frame
from sfumato.cluster.watching import explained


def files_of(frame: Frame) -> list[Path]:
    """Local files that a frame reads, as far as Spark knows them; also of one that is kept in memory.

    Spark does not know them for a frame that was made of an RDD or of a checkpoint.
    """
    with explained():
        urls = {*frame.inputFiles(), *_files_behind_caches(frame)}
    parts = [urlsplit(url) for url in sorted(urls)]
    return [Path(unquote(part.path)) for part in parts if part.scheme in ("", "file")]


def _files_behind_caches(frame: Frame) -> list[str]:
    """Files of the query as the user wrote it, before parts of it are replaced by what is in memory already."""
    plan = getattr(frame, "_jdf", None)  # a frame of Spark Connect has none
    found: list[str] = []
    if plan is not None:
        leaves = plan.queryExecution().analyzed().collectLeaves()
        for i in range(leaves.size()):
            with suppress(Exception):  # a leaf that is no file
                found.extend(leaves.apply(i).relation().location().inputFiles())
    return found
