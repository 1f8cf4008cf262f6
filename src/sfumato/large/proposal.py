"""What is to be released of a large file, whatever way it was found: rows in blocks, written in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.verify import measured_level
from sfumato.contract import Progress, Release
from sfumato.manifest import describe_column, with_audited
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.large import LargeTable, Told
from sfumato.table.write import BlockWriter

Block = Mapping[str, NDArray[np.int32] | pa.Array]


@dataclass(frozen=True, repr=False, eq=False)
class Proposal(ABC):
    """What is to be released of a large file.

    Parameters
    ----------
    original : LargeTable
    release : Release
        Its manifest describes all columns that are to be written; its table holds what the mechanism looked at.
    """

    original: LargeTable
    release: Release

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.original!r}, {self.release.manifest.mechanism['name']})"

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
        """Values that the codes of the blocks stand for, of every column that is written."""

    @abstractmethod
    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """Released rows, block by block: codes, or cells of columns that are open in the original."""

    def write(self, file: BinaryIO, output_format: str, told: Told | None = None) -> None:
        """Write the released rows in one pass over the original."""
        with BlockWriter(file, output_format, self.schema, self.columns()) as writer:
            for block in self.blocks(told):
                writer.write(block)
        self.original.ensure_unchanged()


def kept_rows(cells: NDArray[np.int32] | pa.Array, kept: NDArray[np.bool_]) -> NDArray[np.int32] | pa.Array:
    """Cells of some rows of a block."""
    return cells.filter(pa.array(kept)) if isinstance(cells, pa.Array) else cells[kept]


def names_but_identifiers(schema: Schema) -> list[str]:
    """Columns that do not name people."""
    return [column.name for column in schema if column.role is not Role.IDENTIFIER]


def with_measured_levels(release: Release) -> Release:
    """State what the guarantees reach, measured by the audit on the release's table of distinct rows or groups."""
    levels = [measured_level(promised, release.table) for promised in release.manifest.promised()]
    return release.with_manifest(guarantees=with_audited(release.manifest.guarantees, levels))


def with_all_columns(release: Release, schema: Schema) -> Release:
    """Describe the columns too that the mechanism did not look at: released as they are, or dropped."""
    manifest = release.manifest
    described = {entry["name"]: entry for entry in manifest.output["columns"]}
    kept = names_but_identifiers(schema)
    columns = [described.get(name) or describe_column(schema[name]) for name in kept]
    own = {c.name: list(c.missing) for c in schema if c.missing is not None}
    return release.with_manifest(
        input={**(manifest.input or {}), "columns": len(schema)},
        output={**manifest.output, "columns": columns},
        missing={**manifest.missing, **({"columns": own} if own else {})},
        dropped_columns=tuple(name for name in schema.names() if name not in kept),
    )


def telling(progress: Progress | None, n_rows: int, what: str) -> Told | None:
    """Tell progress in rows."""
    if progress is None:
        return None

    def told(n_read: int) -> None:
        progress(n_read, n_rows, f"{n_read:,} of {n_rows:,} {what}")

    return told
