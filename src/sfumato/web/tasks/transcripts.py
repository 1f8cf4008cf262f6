"""Transcripts of sessions that are over, as the command line writes them."""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.web.jobs.jobs import Tell
from sfumato.web.sessions import MOST_ROWS

_Kinds = dict[str, type | tuple[type, ...]]

_NUMBER = (int, float)
_LARGEST = 2**60
_LARGEST_FILE, _LONGEST_LINE = 50_000_000, 100_000
_FACTS: _Kinds = {"party": str, "roster": list}
_ENTRY: _Kinds = {"seconds": _NUMBER, "direction": str, "stage": str, "peer": str, "n_bytes": int}
_OUTCOME: _Kinds = {"outcome": str, "bytes_sent": int, "bytes_received": int, "seconds": _NUMBER}


def read(folder: Path, tell: Tell, *, path: str) -> dict[str, Any]:
    """Read the transcript of a session that is over, as the command line writes it: the last messages and the facts.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, or is something else.
    """
    source = Path(path)
    last: deque[dict[str, Any]] = deque(maxlen=MOST_ROWS + 1)
    first: dict[str, Any] = {}
    n_lines = 0
    for n_lines, line in _numbered_lines(source):  # noqa: B007  # tells in the end how many there were
        last.append(_parsed(source, line))
        first = first or last[0]
    outcome = last.pop() if n_lines > 1 else {}
    entries = [entry for entry in last if entry is not first][-MOST_ROWS:]
    if not (_has(first, _FACTS) and _has(outcome, _OUTCOME) and all(_has(entry, _ENTRY) for entry in entries)):
        raise _not_a_transcript(source)
    return {
        "facts": {name: first.get(name) for name in (*_FACTS, "session")},
        "entries": [{name: entry.get(name) for name in (*_ENTRY, "digest")} for entry in entries],
        "n_entries": n_lines - 2,
        "outcome": {name: outcome.get(name) for name in (*_OUTCOME, "culprit", "stage", "reason")},
    }


def _numbered_lines(source: Path) -> Iterator[tuple[int, str]]:
    try:
        path = source.expanduser()
        _check_size(source, path.stat())
        with path.open(encoding="utf-8") as file:
            yield from enumerate(iter(lambda: file.readline(_LONGEST_LINE), ""), start=1)
    except InputError:
        raise
    except RuntimeError:
        raise InputError("names a user that this machine does not know", path=source) from None
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot be read ({reason})", path=source) from None


def _check_size(source: Path, found: os.stat_result) -> None:
    """Refuse what may have no end, such as a device, and what would take long to read."""
    if not stat.S_ISREG(found.st_mode):
        raise InputError("cannot be read (it is not a file)", path=source)
    if found.st_size > _LARGEST_FILE:
        raise InputError(f"is larger than the page reads ({_LARGEST_FILE:,} bytes)", path=source)


def _parsed(source: Path, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _not_a_transcript(source)
    return found


def _has(line: Mapping[str, Any], kinds: _Kinds) -> bool:
    """Whether a line has these fields, each of its kind, and numbers such as sizes and times are."""
    for name, kind in kinds.items():
        value = line.get(name)
        if not isinstance(value, kind) or (isinstance(value, _NUMBER) and not 0 <= value < _LARGEST):
            return False
    return True


def _not_a_transcript(source: Path) -> InputError:
    hint = "a party of a collaboration writes one"
    return InputError("is not a transcript of a session", path=source, hint=hint)
