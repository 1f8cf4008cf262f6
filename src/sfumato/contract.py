"""The contract between mechanisms and everything around them: what one takes, gives and says about itself."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.errors import SchemaError, on_one_line
from sfumato.manifest import AnyTable, Manifest
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn
from sfumato.table.describe import ColumnGuess

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS_A_SECOND = 5_000
_MOST_SECONDS = 10

Progress = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)`` during long work."""


@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A released table and its manifest.

    Parameters
    ----------
    table : Table or BinaryTable
    manifest : Manifest
    description : tuple of ColumnGuess
        What each column of the original was taken for, if it was no described table. It is never published.
    """

    table: AnyTable
    manifest: Manifest
    description: tuple[ColumnGuess, ...] = ()

    @property
    def guesses(self) -> tuple[ColumnGuess, ...]:
        """Columns of the original whose roles were guessed, each with the reason."""
        return tuple(guess for guess in self.description if not guess.is_given)

    def __repr__(self) -> str:
        promises = "; ".join(g.describe() for g in self.manifest.promised())
        return f"Release({self.table!r}, {self.manifest.mechanism['name']}: {promises})"

    def _repr_html_(self) -> str:
        """Short table for notebooks: sizes, what is promised and what the audit found, never a cell."""
        manifest = self.manifest
        rows = [
            ("mechanism", str(manifest.mechanism["name"])),
            ("rows", f"{manifest.output['rows']:,}" + (f" of {manifest.input['rows']:,}" if manifest.input else "")),
            ("columns", f"{len(manifest.output['columns']):,} ({len(manifest.dropped_columns):,} dropped)"),
        ]
        for entry, promise in zip(manifest.guarantees, manifest.promised(), strict=True):
            found = entry.get("audited")
            level = f"{found:.4g}" if isinstance(found, int | float) else "no level was measured"
            rows.append((promise.kind, f"{promise.describe()} (audit: {level})"))
        if self.guesses:
            rows.append(("guessed roles", f"{len(self.guesses):,} (see .guesses)"))
        cells = "".join(
            f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(on_one_line(text))}</td></tr>'
            for name, text in rows
        )
        return f"<table><caption>sfumato release</caption><tbody>{cells}</tbody></table>"

    def plot(self, kind: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw what the manifest has evidence for; ``kind`` says which picture where there are several."""
        displays = importlib.import_module("sfumato.displays.base")  # a later layer, which is loaded on demand
        axes: Axes = displays.display_of_manifest(self.manifest, kind).plot(ax)
        return axes

    def report(self, path: str | Path, *, original: AnyTable | None = None, **more: Any) -> Path:
        """Write a report of this release as one HTML file.

        Parameters
        ----------
        original : Table or BinaryTable or None
            With it utility and risk are measured.
        more
            ``external``, ``quick``, ``force``, ``progress`` and ``mechanism``, see
            :func:`sfumato.report.render.write_report`.
        """
        reports = importlib.import_module("sfumato.report.render")  # a later layer, which is loaded on demand
        written: Path = reports.write_report(self, path, original=original, **more)
        return written

    def with_manifest(self, **changes: Any) -> Release:
        """Return the same release with some manifest entries replaced."""
        return replace(self, manifest=replace(self.manifest, **changes))


class Needs(StrEnum):
    """What a mechanism must be given of the rows to find a release.

    A mechanism that does with less than all rows can release tables that are larger than memory; what it must offer
    for that is in the protocol named here.
    """

    ALL_ROWS = "all rows"
    """The whole table in memory."""
    COUNTS = "counts"
    """Distinct rows with how often each occurs: :class:`sfumato.large.cells.CellMechanism`. Enough on a cluster too."""
    COUNTS_OR_SAMPLE = "counts or a sample"
    """Distinct rows or, where these are too many, a sample: :class:`sfumato.large.fitted.FittedMechanism`."""
    SAMPLE = "a sample"
    """A sample of the rows: :class:`sfumato.large.sampled.SampleMechanism`."""
    FEATURE_COUNTS = "counts of features"
    """Distinct rows of binary features: :class:`sfumato.large.features.PatternMechanism`."""


class Mechanism(ABC):
    """Turns a table into a release, or raises ``PrivacyNotAchievableError``.

    The one base of all mechanisms. A subclass says by class attributes what others have to know of it; nobody asks of
    which class it is. Its constructor takes parameters by name and only stores them, as scikit-learn has it.

    Attributes
    ----------
    mechanism_name : str
        As the command line and manifests have it.
    needs : Needs
        What it must be given of the rows.
    is_differentially_private : bool
        Whether it promises differential privacy: what it is given must be read and described without a look at the
        rows.
    """

    mechanism_name: ClassVar[str]
    needs: ClassVar[Needs] = Needs.ALL_ROWS
    is_differentially_private: ClassVar[bool] = False

    @abstractmethod
    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Propose a release; whether it keeps its promise is audited elsewhere."""


def needs_of(mechanism: object) -> Needs:
    """Say what a mechanism needs of the rows; an object that declares nothing needs them all."""
    return Needs(getattr(mechanism, "needs", Needs.ALL_ROWS))


@dataclass(frozen=True)
class Parameter:
    """One parameter of a mechanism, as the command line, the project file and the page offer it."""

    name: str
    type: type | tuple[type, ...]
    default: Any
    help: str
    choices: tuple[str, ...] = ()


def combinations(choices: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], ...]:
    """All settings that take one value of every list.

    Examples
    --------
    >>> combinations({"k": [5, 10], "l": [2]})
    ({'k': 5, 'l': 2}, {'k': 10, 'l': 2})
    """
    return tuple(dict(zip(choices, values, strict=True)) for values in product(*choices.values()))


@dataclass(frozen=True)
class Compared:
    """Settings of a mechanism that are compared with others where nobody says which, and what a table needs for them.

    Parameters
    ----------
    settings : sequence of mapping
        Parameters of each.
    needs_sensitive : bool
        Whether just one column must be sensitive.
    for_each_sensitive : str or None
        Parameter that gets the name of every sensitive column in turn, of which there must be some.
    most_columns : int or None
        Quasi-identifiers from which the mechanism is left out, as are tables of sparse 0/1 features.
    needs_binary : bool
        Whether every quasi-identifier must be 0/1.
    package : str or None
        Optional package that must be installed.
    time_limit : str or None
        Parameter that gets a time limit in seconds by the number of rows: 1 for 5,000 of them, at most 10.
    """

    settings: Sequence[Mapping[str, Any]]
    needs_sensitive: bool = False
    for_each_sensitive: str | None = None
    most_columns: int | None = None
    needs_binary: bool = False
    package: str | None = None
    time_limit: str | None = None

    def __call__(self, table: AnyTable) -> Sequence[Mapping[str, Any]]:
        """Give the settings for a table, or say by a ``SchemaError`` why there are none."""
        plain = table.companions if isinstance(table, BinaryTable) else table
        names, sensitive = plain.schema.names(Role.QUASI_IDENTIFIER), plain.schema.names(Role.SENSITIVE)
        problem = ""
        if self.package is not None and find_spec(self.package) is None:
            problem = f"the package {self.package} is not installed"
        elif (self.needs_sensitive or self.for_each_sensitive) and not sensitive:
            problem = "no column is sensitive"
        elif self.needs_sensitive and len(sensitive) > 1:
            problem = f"{len(sensitive):,} columns are sensitive, and it protects one"
        elif self.most_columns is not None and isinstance(table, BinaryTable):
            problem = "the table holds sparse 0/1 features, which are not recoded"
        elif self.most_columns is not None and len(names) > self.most_columns:
            problem = f"{len(names):,} quasi-identifiers are more than {self.most_columns:,}"
        elif self.needs_binary and not all(_is_zero_one(plain[name]) for name in names):
            problem = "not all quasi-identifiers are 0/1, and rules by which they become so must be given"
        if problem:
            raise SchemaError(problem)
        return self._completed(table.n_rows, sensitive)

    def _completed(self, n_rows: int, sensitive: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Add the names and limits that depend on the table."""
        settings = self.settings
        if self.for_each_sensitive is not None:
            settings = [{**setting, self.for_each_sensitive: name} for setting in settings for name in sensitive]
        if self.time_limit is not None:
            seconds = float(min(max(round(n_rows / _ROWS_A_SECOND), 1), _MOST_SECONDS))
            settings = [{**setting, self.time_limit: seconds} for setting in settings]
        return settings


def _is_zero_one(column: CodedColumn) -> bool:
    return column.n_distinct <= 2 and {str(value) for value in column.values.to_pylist()} <= {"0", "1"}


@dataclass(frozen=True)
class MechanismInfo:
    """How a mechanism presents itself. A module that puts these in ``MECHANISMS`` is found by the registry.

    ``compared`` proposes settings for a comparison on a table, or raises ``SchemaError`` with the reason why there are
    none. A mechanism without it is compared with its defaults.
    """

    name: str
    build: type[Mechanism]
    why: str
    promises: str
    parameters: tuple[Parameter, ...]
    compared: Callable[[AnyTable], Sequence[Mapping[str, Any]]] | None = None

    @property
    def needs(self) -> Needs:
        """What the mechanism must be given of the rows."""
        return self.build.needs

    @property
    def is_differentially_private(self) -> bool:
        """Whether it promises differential privacy."""
        return self.build.is_differentially_private
