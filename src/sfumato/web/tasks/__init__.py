"""Tasks of the page: each a plain function that runs in a process of its own.

A task is called ``name(folder, tell, **arguments)`` and gives a dictionary. Arguments and result can be written as
JSON. ``folder`` is its own private folder. ``tell`` takes progress and lines of a log.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

PACKAGE = __name__
_NAME = re.compile(r"([a-z][a-z0-9_]*)\.([a-z][a-z0-9_]*)")

Task = Callable[..., Mapping[str, Any]]


def task_named(name: str, package: str = PACKAGE) -> Task:
    """Find the function of a task, such as ``columns.set_roles``.

    Only public functions that are defined in a module of the package are tasks.

    Raises
    ------
    LookupError
        If there is no such task.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise LookupError(name)
    module = importlib.import_module(f"{package}.{found[1]}")
    function = getattr(module, found[2], None)
    if not inspect.isfunction(function) or function.__module__ != module.__name__:
        raise LookupError(name)
    return function
