"""Everything that tasks use, imported once in the process that theirs are forked from.

What cannot be imported is left out here: the task that needs it says so.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

from sfumato.web import tasks

_MODULES = (
    "sfumato.cli.main",
    "sfumato.project.file",
    "sfumato.project.edit",
    "sfumato.publishing.from_project",
    "sfumato.datasets",
    "sfumato.table.io.read",
    "sfumato.publishing.publish",
    "sfumato.evaluation.compare",
    "sfumato.evaluation.scores",
    "sfumato.attack.risk",
    "sfumato.displays.base",
    "sfumato.report.render",
    "sfumato.web.jobs.process",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
    "duckdb",
)


def preload() -> None:
    """Import all."""
    found = [module.name for module in pkgutil.iter_modules(tasks.__path__, f"{tasks.__name__}.")]
    for name in (*_MODULES, *found):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        importlib.import_module("sfumato.mechanisms.registry").registered_mechanisms()


preload()
