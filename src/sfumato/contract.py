"""The contract between mechanisms and everything around them: what one takes, gives and says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sfumato.manifest import AnyTable, Manifest

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)`` during long work."""


@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A released table and its manifest."""

    table: AnyTable
    manifest: Manifest

    def __repr__(self) -> str:
        promises = "; ".join(g.describe() for g in self.manifest.promised())
        return f"Release({self.table!r}, {self.manifest.mechanism['name']}: {promises})"

    def with_manifest(self, **changes: Any) -> Release:
        """Return the same release with some manifest entries replaced."""
        return replace(self, manifest=replace(self.manifest, **changes))


class Mechanism(Protocol):
    """Turns a table into a release, or raises ``PrivacyNotAchievableError``."""

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Propose a release; whether it keeps its promise is audited elsewhere."""
        ...


@dataclass(frozen=True)
class Parameter:
    """One parameter of a mechanism, as the command line, the project file and the page offer it."""

    name: str
    type: type | tuple[type, ...]
    default: Any
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class MechanismInfo:
    """How a mechanism presents itself. A module that puts these in ``MECHANISMS`` is found by the registry."""

    name: str
    build: Callable[..., Mechanism]
    why: str
    promises: str
    parameters: tuple[Parameter, ...]
