"""Waiting for what another process or thread does: for the thing itself, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

HANGS = 300.0  # seconds after which a test gives up; nothing here takes so long, on a machine however busy
_BETWEEN_LOOKS = 0.01


def until(condition: Callable[[], Any], seconds: float = HANGS) -> Any:
    """Wait until a condition holds; gives what it gave."""
    limit = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < limit, f"it did not happen within {seconds:g} seconds"
        time.sleep(_BETWEEN_LOOKS)
    return found
