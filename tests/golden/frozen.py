"""The frozen results on disk, and how new ones are compared with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PUBLIC_NAMES = "public_names"


def read(name: str) -> dict[str, Any]:
    """Read a file of frozen results."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def write(name: str, results: Mapping[str, Any]) -> None:
    """Freeze results."""
    text = json.dumps(results, indent=1, ensure_ascii=False, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


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
