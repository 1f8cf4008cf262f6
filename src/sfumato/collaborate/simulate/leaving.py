"""What the parties of a simulation do when the simulation has gone: nothing of them is left."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

FOLDER_PREFIX = "sfumato-simulation-"
INPUT = 0
"""Closed by the system when the simulation has gone."""


def leave_nothing(folder: Path, children: Collection[int]) -> NoReturn:
    """End the parties and remove the folder: the simulation has gone."""
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    if folder.name.startswith(FOLDER_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
