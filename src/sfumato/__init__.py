"""Task-aware privacy-preserving publishing of labelled tables.

``__init__.pyi`` lists the public names, each with its module. Names and subpackages are imported when they are first
used, so that ``import sfumato`` is instant.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from typing import Any

_TABLE = __spec__.loader.get_data(__file__ + "i").decode()
_HOMES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+) as", _TABLE, re.M)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sfumato")
    if name not in _HOMES and not name.startswith("_") and importlib.util.find_spec(f"sfumato.{name}"):
        return importlib.import_module(f"sfumato.{name}")
    if name not in _HOMES:
        message = f"module 'sfumato' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
