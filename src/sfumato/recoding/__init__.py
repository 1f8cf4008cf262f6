"""Mechanisms that coarsen values: a tree, a recursive division or a search over hierarchies makes classes of rows."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.recoding.anatomy import Anatomy
    from sfumato.recoding.gain import GainRecoder
    from sfumato.recoding.global_recoding import GlobalRecoder
    from sfumato.recoding.hierarchy import Hierarchy
    from sfumato.recoding.hierarchy_files import read_hierarchy, write_hierarchy
    from sfumato.recoding.mondrian_mechanism import Mondrian
    from sfumato.recoding.slicing import Slicer
    from sfumato.recoding.tree import ErrorRiskTree

_HOMES = {
    "Anatomy": "anatomy",
    "ErrorRiskTree": "tree",
    "GainRecoder": "gain",
    "GlobalRecoder": "global_recoding",
    "Hierarchy": "hierarchy",
    "Mondrian": "mondrian_mechanism",
    "Slicer": "slicing",
    "read_hierarchy": "hierarchy_files",
    "write_hierarchy": "hierarchy_files",
}

__all__ = [
    "Anatomy",
    "ErrorRiskTree",
    "GainRecoder",
    "GlobalRecoder",
    "Hierarchy",
    "Mondrian",
    "Slicer",
    "read_hierarchy",
    "write_hierarchy",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module 'sfumato.recoding' has no attribute '{name}'"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"sfumato.recoding.{_HOMES[name]}"), name)
