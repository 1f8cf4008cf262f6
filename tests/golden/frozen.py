"""The frozen results on disk, and how new ones are compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PUBLIC_NAMES = "public_names"
GUARANTEES = "guarantees_"
"""Begins the names of files of releases by guarantee; the home follows."""


def read(name: str) -> dict[str, Any]:
    """Read a file of frozen results."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def write(name: str, results: Mapping[str, Any]) -> None:
    """Freeze results; each guarantee of a release on one line."""
    if name.startswith(GUARANTEES):
        text = _laid_out(results, levels=3)
    else:
        text = json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _laid_out(value: Any, levels: int, indent: int = 1) -> str:
    """Write JSON with so many levels on lines of their own."""
    if levels == 0 or not value or not isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if isinstance(value, Mapping):
        parts = [f"{json.dumps(name)}: {_laid_out(value[name], levels - 1, indent + 1)}" for name in sorted(value)]
    else:
        parts = [_laid_out(one, levels - 1, indent + 1) for one in value]
    first, last = "{}" if isinstance(value, Mapping) else "[]"
    lines = ",\n".join(" " * indent + part for part in parts)
    return f"{first}\n{lines}\n{' ' * (indent - 1)}{last}"


def differences(frozen: Any, found: Any, where: str = "") -> list[str]:
    """Say what differs, one line each, with the way to it.

    Examples
    --------
    >>> differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}})
    ['a / b: frozen 1, found 3', 'c: gone']
    """
    if isinstance(frozen, Mapping) and isinstance(found, Mapping):
        lines = []
        for name in sorted({*frozen, *found}):
            place = f"{where} / {name}" if where else str(name)
            if name not in found:
                lines.append(f"{place}: gone")
            elif name not in frozen:
                lines.append(f"{place}: new")
            else:
                lines += differences(frozen[name], found[name], place)
        return lines
    return [] if frozen == found else [f"{where}: frozen {frozen!r}, found {found!r}"]
