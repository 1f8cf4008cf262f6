"""How long work says how far it is: one kind of callback everywhere."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)`` during long work."""
