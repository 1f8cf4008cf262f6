"""A release of a file that is larger than memory: searched on its distinct rows, written in one pass over the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.checks import AuditReport
from sfumato.audit.large import audit_large
from sfumato.audit.verify import measured_level
from sfumato.contract import Progress, Release
from sfumato.counting.blocks import count_blocks
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.large.finding import RowFinder
from sfumato.large.memory import Memory, give_back
from sfumato.manifest import Manifest, describe_column
from sfumato.mechanisms import registered_mechanisms
from sfumato.publishing import Published, staged_files
from sfumato.reaudit import open_released, read_manifest
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.formats import writable_format_of
from sfumato.table.large import LargeTable, Told
from sfumato.table.weighted import CountedTable
from sfumato.table.write import BLOCK_FORMATS, BlockWriter

Block = Mapping[str, NDArray[np.int32] | pa.Array]


@runtime_checkable
class CellMechanism(Protocol):
    """A mechanism that treats equal rows alike and so needs only the distinct ones, with how often each occurs."""

    def counted_columns(self, schema: Schema) -> tuple[str, ...]:
        """Columns that have to be counted together."""
        ...

    def counted_beside(self, schema: Schema) -> tuple[str, ...]:
        """Columns that have to be counted with each of these by itself."""
        ...

    def release_cells(
        self, cells: CountedTable, *, progress: Progress | None = None
    ) -> tuple[Release, NDArray[np.bool_]]:
        """Release distinct rows, and say which of them are released, in their order."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class Proposal:
    """What is to be released of a large file.

    Parameters
    ----------
    release : Release
        Its table holds the distinct rows of the columns that were counted, as they are released.
    """

    original: LargeTable
    release: Release
    _cells: CountedTable
    _is_released: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"Proposal({self.original!r}, {self.release.manifest.mechanism['name']})"

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """Released rows, block by block, in the order of the file."""
        counted, released = self._cells.together, self.release.table
        if not isinstance(released, Table):
            raise AssertionError
        finder = RowFinder([self._cells[n].codes for n in counted], [self._cells[n].n_distinct for n in counted])
        place_of_cell = np.cumsum(self._is_released) - 1
        names = _released_names(self.original.schema)
        recoded = {name: released[name].codes for name in names if name in released.columns}
        as_they_are = [name for name in names if name not in recoded]
        for block in self.original.blocks([*counted, *as_they_are], told=told):
            cells = finder.find([np.asarray(block[name]) for name in counted])
            kept = self._is_released[cells]
            places = place_of_cell[cells[kept]]
            yield {n: recoded[n][places] if n in recoded else _kept(block[n], kept) for n in names}

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks stand for."""
        released, outline = self.release.table.columns, self.original.outline  # type: ignore[union-attr]
        return {n: (released[n] if n in released else outline[n]).values for n in _released_names(outline.schema)}

    def write(self, file: BinaryIO, output_format: str, told: Told | None = None) -> None:
        """Write the released rows in one pass over the original."""
        with BlockWriter(file, output_format, self.original.schema, self.columns()) as writer:
            for block in self.blocks(told):
                writer.write(block)
        self.original.ensure_unchanged()


def _kept(cells: NDArray[np.int32] | pa.Array, kept: NDArray[np.bool_]) -> NDArray[np.int32] | pa.Array:
    return cells.filter(pa.array(kept)) if isinstance(cells, pa.Array) else cells[kept]


def _released_names(schema: Schema) -> list[str]:
    return [column.name for column in schema if column.role is not Role.IDENTIFIER]


def able_mechanisms() -> list[str]:
    """Names of the mechanisms that can release files larger than memory."""
    found = registered_mechanisms().items()
    return [name for name, info in found if isinstance(info.build, type) and issubclass(info.build, CellMechanism)]


def check_able(mechanism: object) -> CellMechanism:
    """Refuse a mechanism that needs all rows in memory, and name those that do not."""
    if not isinstance(mechanism, CellMechanism):
        hint = "choose another one with -m, or leave --memory out"
        allowed = f"one that needs only distinct rows ({', '.join(able_mechanisms())})"
        raise InvalidParameterError("a mechanism with --memory", "got another", allowed=allowed, hint=hint)
    return mechanism


def propose(original: LargeTable, mechanism: object, memory: Memory, *, progress: Progress | None = None) -> Proposal:
    """Count the distinct rows of a large file, let a mechanism release them, and measure what it promises on them.

    Raises
    ------
    InvalidParameterError
        If the mechanism needs all rows in memory.
    SchemaError
        If there is no quasi-identifier.
    InputError
        If the distinct rows do not fit.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    """
    able = check_able(mechanism)
    give_back()
    names = able.counted_columns(original.schema)
    if not original.schema.names(Role.QUASI_IDENTIFIER):
        problem = "the table has no quasi-identifier to coarsen"
        raise SchemaError(problem, hint="give a column the role quasi-identifier")
    most = memory.most_cells(len(names))
    cells = count_blocks(
        original,
        names,
        beside=able.counted_beside(original.schema),
        most_cells=most,
        told=telling(progress, original.n_rows, "rows counted"),
    )
    give_back()
    release, is_released = able.release_cells(cells, progress=progress)
    give_back()
    released = release.table
    guarantees = [
        {**entry, "audited": measured_level(promised, released)}
        for entry, promised in zip(release.manifest.guarantees, release.manifest.promised(), strict=True)
    ]
    completed = _with_all_columns(release, original.schema).with_manifest(guarantees=tuple(guarantees))
    return Proposal(original, completed, cells, is_released)


def _with_all_columns(release: Release, schema: Schema) -> Release:
    """Describe the columns too that were not counted: released as they are, or dropped."""
    manifest = release.manifest
    described = {entry["name"]: entry for entry in manifest.output["columns"]}
    kept = _released_names(schema)
    columns = [described.get(name) or describe_column(schema[name]) for name in kept]
    own = {c.name: list(c.missing) for c in schema if c.missing is not None}
    return release.with_manifest(
        input={**manifest.input, "columns": len(schema)},
        output={**manifest.output, "columns": columns},
        missing={**manifest.missing, **({"columns": own} if own else {})},
        dropped_columns=tuple(name for name in schema.names() if name not in kept),
    )


def publish_large(
    proposal: Proposal, path: str | Path, memory: Memory, *, force: bool = False, progress: Progress | None = None
) -> Published:
    """Write a release in one pass over the original, audit the very bytes, and let the files appear.

    As :func:`sfumato.publishing.publish`, with the rows never held in memory: the table of the release that is returned
    describes each column by itself, with its distinct values and their counts.
    """
    original = proposal.original
    if writable_format_of(path) not in BLOCK_FORMATS:
        allowed = f"a file of one of the formats that are written row by row ({', '.join(BLOCK_FORMATS)})"
        raise InvalidParameterError("output with --memory", "got another", allowed=allowed)

    def write(file: BinaryIO, output_format: str) -> None:
        proposal.write(file, output_format, telling(progress, original.n_rows, "rows written"))

    outlines: list[Table] = []

    def audit(written: Path, manifest: Manifest, digest: str) -> AuditReport:
        give_back()
        told = telling(progress, int(manifest.output["rows"]), "rows audited")
        released = open_released(written, manifest, memory.n_bytes, told=told)
        outlines.append(released.outline)
        return audit_large(
            released,
            manifest.to_dict(),
            memory=memory.n_bytes,
            original=original,
            released_sha256=digest,
            check_roles=True,
            told=told,
        )

    with staged_files(proposal.release, path, original.source, write, audit, force=force) as appear:
        published = appear()
    return replace(published, release=replace(published.release, table=outlines[0]))


def audit_large_file(
    path: str | Path,
    manifest_path: str | Path,
    memory: Memory,
    *,
    original: LargeTable | None = None,
    check_roles: bool = False,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a release that stands on disk, as :func:`sfumato.reaudit.audit_published`, with no table in memory."""
    manifest, entries = read_manifest(Path(manifest_path))
    told = telling(progress, _stated_rows(manifest), "rows audited")
    released = open_released(path, manifest, memory.n_bytes, told=told)
    return audit_large(
        released,
        entries,
        memory=memory.n_bytes,
        original=original,
        released_sha256=released.source.sha256,
        original_sha256=original.source.sha256 if original is not None else None,
        check_roles=check_roles,
        told=told,
    )


def _stated_rows(manifest: Manifest) -> int:
    rows = manifest.output.get("rows")
    return rows if isinstance(rows, int) else 0


def telling(progress: Progress | None, n_rows: int, what: str) -> Told | None:
    """Tell progress in rows."""
    if progress is None:
        return None

    def told(n_read: int) -> None:
        progress(n_read, n_rows, f"{n_read:,} of {n_rows:,} {what}")

    return told
