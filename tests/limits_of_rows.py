"""Writes what cannot be done with rows that are not in memory into the docs: ``python -m tests.limits_of_rows``."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from sfumato.engines.limits import LIMITS

PAGE = Path(__file__).parents[1] / "docs" / "known-limitations.md"
BEGIN, END = "<!-- made by python -m tests.limits_of_rows -->\n", "<!-- end -->\n"


def listed() -> str:
    """Give the limits as a list."""
    lines = [
        textwrap.fill(f"- {limit.sentence()}", 119, subsequent_indent="  ", break_on_hyphens=False) for limit in LIMITS
    ]
    return "\n".join([*lines, ""])


def with_limits(text: str) -> str:
    """Put the list into the page."""
    found = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    return found.sub(lambda _: BEGIN + "\n" + listed() + "\n" + END, text)


if __name__ == "__main__":
    PAGE.write_text(with_limits(PAGE.read_text("utf-8")), "utf-8")
