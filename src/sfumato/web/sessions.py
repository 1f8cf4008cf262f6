"""What is known of a session of several parties while it runs and afterwards, for people to see.

The task appends to files in its folder; the server reads their ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from sfumato.web.jobs.jobs import Job

MOST_ROWS = 200
"""So many messages or rounds are shown, the last ones."""
_MOST_BYTES = 2**17

_STATUS_WORDS = {
    "here": "this party",
    "waiting": "waited for",
    "connected": "connected",
    "done": "done",
    "stopped": "ended early",
    "cut off": "cut off from another party",
    "failed": "failed",
}
_STATUS_KINDS = {"connected": "mark", "done": "good", "stopped": "warn", "cut off": "warn", "failed": "bad"}


def known_of(job: Job | None) -> dict[str, Any]:
    """Gather what is known of a session, running or over."""
    if job is None:
        return {"job": None}
    rounds, messages = _tail(job.folder / "rounds.jsonl"), _tail(job.folder / "transcript.jsonl")
    parties = _parties(_tail(job.folder / "parties.jsonl"))
    return {
        "job": job,
        "is_simulation": job.task == "collaborate.simulate",
        "parties": parties,
        "culprit": next((party for party in parties if party["status"] == "failed"), None),
        "rounds": _by_round(rounds),
        "totals": rounds[-1] if rounds else None,
        "entries": messages[-MOST_ROWS:],
        "found": _found(job.result()) if job.status == "done" else None,
    }


def _tail(path: Path) -> list[dict[str, Any]]:
    """Read the last lines of a file that another process is appending to; its last line counts once it is whole."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MOST_BYTES))
            *lines, _ = file.read().split(b"\n")
    except OSError:
        return []
    return [json.loads(line) for line in (lines[1:] if size > _MOST_BYTES else lines)]


def _parties(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tell where every party stands: what was heard of it last."""
    standing = {event["party"]: event for event in events}
    return [
        {**event, "words": _STATUS_WORDS[event["status"]], "kind": _STATUS_KINDS.get(event["status"], "")}
        for event in standing.values()
    ]


def _by_round(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn sums up to the end of each round into the bytes and the time of the round itself."""
    sums = ("bytes_sent", "bytes_received", "seconds")
    begun = [dict.fromkeys(sums, 0)] if rounds and rounds[0]["number"] == 1 else []
    shown = [
        {**done, **{name: done[name] - before[name] for name in sums}} for before, done in pairwise([*begun, *rounds])
    ]
    return shown[-MOST_ROWS:]


def _found(result: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the results of a session and of a simulation into one form."""
    removed = result["removed"]
    order = {name: place for place, name in enumerate(removed, start=1)}
    scores = result["table_1"] if "table_1" in result else result["scores"]
    parties = result["parties"] if "parties" in result else {result["me"]: result}
    gains = result["table_2"] if "table_2" in result else {result["me"]: result["own_gains"]}
    return {
        "removed": removed,
        "scores": [{**score, "removed_as": order.get(score["name"])} for score in scores],
        "gains": gains,
        "whole_table_gains": result.get("whole_table_gains"),
        "n_rows": result.get("n_rows", {}),
        "releases": [
            {"party": name, **{key: one[key] for key in ("audited_gain", "table", "manifest")}}
            for name, one in parties.items()
        ],
        "warnings": result["warnings"],
        "seconds": result["seconds"],
    }
