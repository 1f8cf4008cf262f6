"""What is to be released of a table, whatever way it was found and wherever its rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.auditor import AuditorHas
from sfumato.audit.checks import AuditReport
from sfumato.audit.in_blocks import audit_rows, n_unique_in_blocks
from sfumato.audit.verify import measured_level
from sfumato.engines.blocks.sorting import RowSorter
from sfumato.engines.memory_limit import Memory, give_back
from sfumato.engines.protocol import Rows
from sfumato.manifest import AnyTable, declared_formats, describe_column, stating_unique_rows, with_audited
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.publishing.reaudit import open_released
from sfumato.schema import WITHHELD, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.io.write import BlockWriter
from sfumato.table.row_order import AS_READ
from sfumato.table.weighted import Block

DEFAULT_MEMORY = Memory.of("1GB")


@dataclass(frozen=True, repr=False, eq=False)
class Proposal(ABC):
    """What is to be released, which nobody has audited yet.

    Parameters
    ----------
    release : Release
        Its manifest describes all columns that are to be written.
    original : Table, BinaryTable or Rows
        What it is made of.
    """

    release: Release
    original: AnyTable | Rows

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.release.manifest.mechanism['name']})"

    def with_order_kept(self) -> Self:
        """Return the same proposal with its rows in the order of the original, which the manifest says."""
        return replace(self, release=self.release.with_order_kept())

    def with_formulas_escaped(self) -> Self:
        """Return the same proposal, of which texts that a spreadsheet program would run get an apostrophe."""
        return replace(self, release=self.release.with_formulas_escaped())

    @property
    @abstractmethod
    def person(self) -> str | None:
        """Column of the original that tells persons apart."""

    @abstractmethod
    def for_format(self, output_format: str) -> Self:
        """Give the proposal as it is written in a format that its output may have (see ``publish.check_output``)."""

    @abstractmethod
    def write(self, file: BinaryIO, output_format: str, memory: Memory, progress: Progress | None = None) -> None:
        """Write the released rows, in their canonical order unless that of the original is kept."""

    @abstractmethod
    def judged(
        self, written: Path, release: Release, digest: str | None, memory: Memory, progress: Progress | None = None
    ) -> tuple[Release, AuditReport]:
        """Audit the bytes that were written; gives the release with what they show, and the audit's report.

        Parameters
        ----------
        written : path
            The file, or the folder of part files.
        release : Release
            Its manifest names the file and its format.
        digest : str or None
            SHA-256 of the file; ``None``: as a reader of it finds.
        """


@dataclass(frozen=True, repr=False, eq=False)
class RowsProposal(Proposal):
    """A release that is written in one pass over rows; its table holds what the mechanism looked at.

    A file is written in one pass over the blocks; a cluster writes what :mod:`sfumato.publishing.cluster_folder`
    makes of the proposal.
    """

    original: Rows

    @property
    def person(self) -> str | None:
        """Column of the original that tells persons apart."""
        return self.original.schema.person

    @property
    def released(self) -> Table:
        """Table of the release."""
        if not isinstance(self.release.table, Table):
            raise AssertionError
        return self.release.table

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """Description of the columns that are written."""

    @abstractmethod
    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent, of every column that is written."""

    @abstractmethod
    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Released rows, block by block: codes, or cells of columns that are open in the original."""

    def for_format(self, output_format: str) -> Self:
        """Give it as it is: nothing but the rows depends on the format."""
        return self

    def write(self, file: BinaryIO, output_format: str, memory: Memory, progress: Progress | None = None) -> None:
        """Write the released rows in one pass over the original, in their canonical order unless that is kept."""
        telling = in_rows(progress, self.original.n_rows, "rows written")
        columns = self.columns()
        blocks = self.blocks(telling)
        if self.release.manifest.output.get("order") != AS_READ:
            kinds = {entry["name"]: Kind(entry["kind"]) for entry in self.release.manifest.output["columns"]}
            blocks = RowSorter(columns, kinds, output_format, memory.n_bytes).sorted(lambda: self.blocks(telling))
        with BlockWriter(file, output_format, self.schema, columns) as writer:
            for block in blocks:
                writer.write(block)
        self.original.ensure_unchanged()

    def judged(
        self, written: Path, release: Release, digest: str | None, memory: Memory, progress: Progress | None = None
    ) -> tuple[Release, AuditReport]:
        """Audit the bytes in blocks; the release's table describes each column by itself then."""
        give_back()
        manifest = release.manifest
        telling = in_rows(progress, int(manifest.output["rows"]), "rows audited")
        released = open_released(written, manifest, memory.n_bytes, progress=telling)
        n_unique = n_unique_in_blocks(released, memory.n_bytes, telling)
        stated = release.with_manifest(
            output={**manifest.output, "sha256": digest or released.source.sha256},
            evidence=stating_unique_rows(manifest.evidence, n_unique, released.n_rows),
        )
        source = self.original.source
        has = AuditorHas(
            original=self.original,
            original_sha256=None if source is None else source.sha256,
            key=release.audit_key,
            roles=True,
        )
        report = audit_rows(
            released,
            stated.manifest.to_dict(),
            has,
            memory=memory.n_bytes,
            progress=telling,
            released_sha256=stated.manifest.output["sha256"],
            file=written,
            levels_are_stated=stated.manifest.states_levels,
        )
        return replace(stated, table=released.outline), report

    def blocks_with(self, person: str) -> Iterator[Block]:
        """Released rows with the column that tells persons apart."""
        return self.showing(person).blocks()

    def showing(self, person: str) -> Self:
        """Give the same proposal with the column that tells persons apart among those that are published unchanged."""
        return replace(self, original=self.original.with_schema({person: Role.OTHER}))


def kept_rows(cells: NDArray[np.int32] | pa.Array, kept: NDArray[np.bool_]) -> NDArray[np.int32] | pa.Array:
    """Cells of some rows of a block."""
    return cells.filter(pa.array(kept)) if isinstance(cells, pa.Array) else cells[kept]


def names_but_identifiers(schema: Schema) -> list[str]:
    """Columns that do not name people."""
    return [column.name for column in schema if column.role not in WITHHELD]


def with_measured_levels(release: Release, fewest_persons: int | None = None) -> Release:
    """State what the guarantees reach, measured by the audit on the release's table of distinct rows or groups.

    The fewest persons of a class, whom that table does not hold, were counted before.
    """
    levels = [
        fewest_persons if promised.by_persons else measured_level(promised, release.table)
        for promised in release.manifest.promised()
    ]
    return release.with_manifest(guarantees=with_audited(release.manifest.guarantees, levels))


def with_all_columns(release: Release, schema: Schema) -> Release:
    """Describe the columns too that the mechanism did not look at: published unchanged, or dropped."""
    manifest = release.manifest
    described = {entry["name"]: entry for entry in manifest.output["columns"]}
    kept = names_but_identifiers(schema)
    # which values released rows have is not counted here, so that an order that was recognised is not stated
    columns = [described.get(name) or describe_column(schema[name].restricted_to(())) for name in kept]
    own = {c.name: list(c.missing) for c in schema if c.missing is not None}
    return release.with_manifest(
        input={**(manifest.input or {}), "columns": len(schema)} | declared_formats(schema),
        output={**manifest.output, "columns": columns},
        missing={**manifest.missing, **({"columns": own} if own else {})},
        dropped_columns=tuple(name for name in schema.names() if name not in kept),
    )


def completed(release: Release, schema: Schema, fewest_persons: int | None = None) -> Release:
    """Measure what is promised on the release's distinct rows, and describe all columns."""
    give_back()
    return with_all_columns(with_measured_levels(release, fewest_persons), schema)
