"""A party whose file is larger than memory: its counts in one pass, and its release in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.beside import Beside
from sfumato.audit.claims import read_claims
from sfumato.audit.columns import Columns
from sfumato.audit.entropy import measure
from sfumato.collaboration.release import ProjectionReleaser, in_intervals
from sfumato.collaboration.shared_schema import SharedColumn, SharedSchema
from sfumato.contract import Release
from sfumato.counting.blocks import count_blocks
from sfumato.counting.cell_limits import TooManyCellsError
from sfumato.errors import SchemaError
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.large.memory import Memory, give_back
from sfumato.large.proposal import Block
from sfumato.large.release import staged_large
from sfumato.large.sampled import ColumnProposal
from sfumato.manifest import with_audited
from sfumato.publishing import Published
from sfumato.table.large import LargeTable, Told
from sfumato.table.weighted import CountedTable


@dataclass(frozen=True, repr=False, eq=False)
class LargeRows:
    """A party's file and what one pass over it counted.

    Parameters
    ----------
    counted : CountedTable
        Every column by itself, and every feature's values with the classes.
    """

    original: LargeTable
    counted: CountedTable
    memory: Memory

    @classmethod
    def of(cls, original: LargeTable, schema: SharedSchema, memory: Memory) -> LargeRows:
        """Count, in one pass, how often each value of a feature occurs with each class.

        Raises
        ------
        SchemaError
            If a column of the shared schema is missing, in another role, or has too many distinct values.
        """
        schema.check_table(original.outline)
        target = schema.target.name
        found = count_blocks(original, [target], beside=schema.names, most_cells=memory.most_cells(1))
        pairs = {(feature, by): counts.T for (by, feature), counts in found.pairs.items()}
        whole = CountedTable.of(original.outline, (), (), np.array([original.n_rows], dtype=np.int64))
        return cls(original, replace(whole, pairs=pairs), memory)

    @contextmanager
    def staged(
        self, releaser: ProjectionReleaser, output: Path | None, *, force: bool
    ) -> Iterator[tuple[Release, Callable[[], Published | None]]]:
        """Write this party's release in one pass, audit it, and hand out what lets it appear; None writes nothing."""
        proposal = propose_projection(self, releaser)
        if output is None:
            yield proposal.release, _publish_nothing
            return
        with staged_large(proposal, output, self.memory, force=force) as appear:
            yield proposal.release, appear


@dataclass(frozen=True, repr=False, eq=False)
class ProjectionProposal(ColumnProposal):
    """All rows of the columns that the group left, with intervals in the place of numbers that are cut."""

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """All rows, block by block."""
        places = {name: self._places(name) for name in self._cut_names}
        for block in super().blocks(told):
            yield {name: places[name][cells] if name in places else cells for name, cells in block.items()}

    @property
    def _cut_names(self) -> tuple[str, ...]:
        return tuple(str(recoding["name"]) for recoding in self.release.manifest.recodings)

    def _places(self, name: str) -> NDArray[np.int32]:
        """Label of each value: both columns list the same stored values."""
        before, after = self.original.outline[name], self.release.table.columns[name]  # type: ignore[union-attr]
        places = np.zeros(before.n_distinct, dtype=np.int32)
        places[before.codes] = after.codes
        return places


def propose_projection(rows: LargeRows, releaser: ProjectionReleaser) -> ProjectionProposal:
    """Propose a party's release; the gain is measured anew on the counts of the original's columns."""

    def smallest_class(names: Sequence[str], cut: Sequence[SharedColumn]) -> int | None:
        return _smallest_class(rows, names, cut)

    release = releaser.propose(rows.counted, smallest_class)
    give_back()
    (promise,) = release.manifest.promised()
    if not isinstance(promise, PrivacyGain):
        raise AssertionError
    claims = read_claims(release.manifest.to_dict())
    level = measure(promise, Beside(Columns(rows.counted), Columns(rows.original.outline), claims))
    audited = with_audited(release.manifest.guarantees, [level])
    return ProjectionProposal(rows.original, release.with_manifest(guarantees=audited))


def _smallest_class(rows: LargeRows, names: Sequence[str], cut: Sequence[SharedColumn]) -> int | None:
    """Rows of the rarest combination of what is released; ``None`` where there are too many to be counted."""
    try:
        cells = count_blocks(rows.original, names, most_cells=rows.memory.most_cells(len(names)))
    except (TooManyCellsError, SchemaError):
        return None
    _, classes = np.unique(in_intervals(cells, cut).codes(names), axis=0, return_inverse=True)
    return int(np.bincount(classes.ravel(), weights=cells.row_counts).min())


def _publish_nothing() -> None:
    """Publish nothing, in a dry run."""
