"""Columns that are chosen on a sample of the rows of a table that is not in memory, and released of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.levels.breach import measure_large
from sfumato.counting.cells import TooManyCellsError
from sfumato.engines.memory_limit import LEAST_BYTES, Memory, give_back
from sfumato.engines.protocol import Rows
from sfumato.errors import AuditFailedError, InvalidParameterError, SchemaError
from sfumato.guarantees import AboutValues, Guarantee
from sfumato.guarantees.estimated import BreachBound
from sfumato.manifest import with_audited
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.publishing.proposals.base import (
    RowsProposal,
    names_but_identifiers,
    with_all_columns,
    with_measured_levels,
)
from sfumato.publishing.proposals.counted import CellMechanism, propose_cells
from sfumato.schema import Role, Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import Block, Counts

SAMPLE_ROWS = 200_000
"""Rows on which columns are chosen. In ten folds the error of a share is then below 0.4 percentage points a fold, which
is less than the loss that is put up with; and the release does not depend on the memory."""
_SAMPLE_CELLS = 20 * 10**6
_SEED = 20_261_116
_MOST_PAIRS = 8 * 10**6


class SampleMechanism(Protocol):
    """A mechanism that chooses columns by estimates, for which a sample of the rows is enough.

    This is what ``needs = Needs.SAMPLE`` asks of it.
    """

    def sampled_pairs(self, schema: Schema) -> tuple[tuple[str, ...], str]:
        """Columns to be counted on all rows with another one, and that one."""
        ...

    def release_sample(self, sample: Table, whole: Whole, *, progress: Progress | None = None) -> Release:
        """Choose columns; the table of the release is their part of the file's outline."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class Whole:
    """What is known of all rows besides a sample."""

    original: Rows
    pairs: Mapping[str, Counts]
    memory: Memory
    progress: Progress | None = None

    @property
    def outline(self) -> Table:
        """Every column by itself."""
        return self.original.outline

    def anonymity_level(self, names: Sequence[str]) -> int | None:
        """Rows of the rarest combination; ``None`` where the combinations are too many to be counted."""
        most = self.memory.most_cells(len(names))
        counting = in_rows(self.progress, self.original.n_rows, "rows counted")
        try:
            return int(self.original.distinct(names, most_cells=most, progress=counting).row_counts.min())
        except (TooManyCellsError, SchemaError):
            return None


@dataclass(frozen=True, repr=False, eq=False)
class ColumnProposal(RowsProposal):
    """All rows of some columns; the release's table is their part of the outline."""

    def recoded(self) -> Mapping[str, NDArray[np.int32]]:
        """Code in the release for each code of the original, of the columns whose values are recoded: here of none."""
        return {}

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.released.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent."""
        return {name: column.values for name, column in self.released.columns.items()}

    def blocks_with(self, person: str) -> Iterator[Block]:
        """All rows are released, in their order."""
        for block, beside in zip(self.blocks(), self.original.blocks([person]), strict=True):
            yield {**block, **beside}

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """All rows, block by block."""
        codes = self.recoded()
        for block in self.original.blocks(self.schema.names(), progress=progress):
            yield {name: codes[name][cells] if name in codes else cells for name, cells in block.items()}


def propose_sampled(
    original: Rows, mechanism: SampleMechanism, memory: Memory, progress: Progress | None
) -> ColumnProposal:
    """Let a mechanism choose columns on a sample of rows; what it promises is estimated on the audit's own sample.

    A table that fits in the sample is treated as in memory.

    Raises
    ------
    SchemaError
        If roles are missing, or a column of the choice has too many distinct values.
    AuditFailedError
        If the audit's sample shows nothing of what is promised, as where the attacker is never right.
    """
    names, second = mechanism.sampled_pairs(original.schema)
    _refuse_open(original, (*original.schema.names(Role.TARGET), second))
    n_sampled = _sample_size(len(names_but_identifiers(original.schema)))
    counted = {} if original.n_rows <= n_sampled else _no_pairs(original, names, second)
    sample = _sampled(original, n_sampled, second, counted, in_rows(progress, original.n_rows, "rows counted"))
    give_back()
    release = mechanism.release_sample(sample, Whole(original, counted, memory, progress), progress=progress)
    give_back()
    levels = [_level(promised, original) for promised in release.manifest.promised()]
    audited = with_audited(release.manifest.guarantees, levels)
    return ColumnProposal(release.with_manifest(guarantees=audited), original)


def _level(promised: Guarantee, original: Rows) -> float:
    if not isinstance(promised, BreachBound):
        raise AssertionError
    try:
        return measure_large(promised, original)
    except (SchemaError, InvalidParameterError) as exc:
        raise AuditFailedError((f"{promised.kind} cannot be measured: {exc}",)) from None


def _refuse_open(original: Rows, names: Sequence[str]) -> None:
    for name in names:
        if original.is_open(name):
            problem = f"has too many distinct values for a column with the role {original.schema[name].role}"
            raise SchemaError(problem, column=name, hint="round or group its values in the file first")


def _sample_size(n_columns: int) -> int:
    """Rows of the sample: of very many columns fewer rows fit."""
    return min(SAMPLE_ROWS, max(_SAMPLE_CELLS // n_columns, 1))


def _no_pairs(original: Rows, names: Sequence[str], second: str) -> dict[str, Counts]:
    """Tables for the pairs of values, of as many columns as fit; the audit judges the others on all rows."""
    found: dict[str, Counts] = {}
    shapes = {n: (original.outline[n].n_distinct, original.outline[second].n_distinct) for n in names}
    for name in sorted((n for n in names if not original.is_open(n)), key=lambda n: shapes[n][0]):
        if sum(table.size for table in found.values()) + shapes[name][0] * shapes[name][1] <= _MOST_PAIRS:
            found[name] = np.zeros(shapes[name], dtype=np.int64)
    return found


def _sampled(
    original: Rows, n_sampled: int, second: str, pairs: Mapping[str, Counts], progress: Progress | None
) -> Table:
    """Draw rows without replacement, each set of rows as likely as any other, and count pairs of values in all rows."""
    schema = original.schema.keep(names_but_identifiers(original.schema))
    drawn = _drawn_rows(original.n_rows, n_sampled)
    counted = {(name, second): own for name, own in pairs.items()}
    columns = original.taken(schema.names(), drawn, pairs=counted, progress=progress)
    return Table(schema, columns, len(drawn), original.outline.source)


def _drawn_rows(n_rows: int, n_sampled: int) -> NDArray[np.int64]:
    if n_rows <= n_sampled:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SEED).choice(n_rows, n_sampled, replace=False, shuffle=False))


# Groups that are found on a sample of a large file's rows, where its distinct rows do not fit, and counted on all.


FITTED_SAMPLE_ROWS = 500_000
"""Rows of a sample; fewer where these do not fit."""
SEED = 20_261_116

Codes = NDArray[np.int32]
Pass = Callable[[str], Iterable[Mapping[str, Any]]]
"""Starts a pass over all rows in blocks of codes; takes what is done with its rows, for the progress."""


class Groups(Protocol):
    """Groups of rows, known by a rule."""

    def groups_of(self, block: Mapping[str, Any]) -> Codes:
        """Group of every row of a block."""
        ...


class FittedMechanism(CellMechanism, Protocol):
    """A mechanism that finds its groups on distinct rows or, where these are too many, on a sample of the rows.

    This is what ``needs = Needs.COUNTS_OR_SAMPLE`` asks of it.
    """

    def release_by_sample(
        self, whole: Table, sample: Mapping[str, Codes], blocks: Pass, seed: int, *, progress: Progress | None = None
    ) -> tuple[Release, Groups]:
        """Release groups, found on a sample and counted on all rows; the release's table holds the groups."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class FittedProposal(RowsProposal):
    """Rows that are released as the groups that they belong to; the release's table holds those, with their sizes."""

    _groups: Groups
    _recoded: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.original.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent."""
        outline = self.original.outline
        names = names_but_identifiers(outline.schema)
        return {n: (self.released[n] if n in self._recoded else outline[n]).values for n in names}

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """Released rows, block by block, in the order of the file."""
        names = names_but_identifiers(self.original.schema)
        cells = {name: self.released[name].codes for name in self._recoded}
        for block in self.original.blocks(names, progress=progress):
            groups = self._groups.groups_of(block)
            yield {name: cells[name][groups] if name in cells else block[name] for name in names}


def propose_fitted(
    original: Rows, mechanism: FittedMechanism, memory: Memory, progress: Progress | None
) -> RowsProposal:
    """Let a mechanism group the distinct rows of a large file or, if these do not fit, a sample of its rows.

    With a sample the manifest states on how many rows the groups were found, out of how many, and the seed. What is
    promised was counted on all rows all the same.

    Raises
    ------
    SchemaError
        If there is no quasi-identifier, or a column has too many distinct values.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    """
    names = mechanism.counted_columns(original.schema)
    for_rows = Memory((3 * memory.n_bytes + LEAST_BYTES) // 4)  # the rest is for the search, which sorts by each column
    try:
        return propose_cells(original, mechanism, for_rows, progress)
    except TooManyCellsError:
        if original.is_on_cluster:
            raise  # a rule by which each row finds its group is not known to a cluster
        give_back()
    n_sampled = sample_size(for_rows, len(names))
    sample = drawn_rows(original, names, n_sampled, in_rows(progress, original.n_rows, "rows drawn from"))

    def blocks(what: str) -> Iterator[Block]:
        give_back()
        return original.blocks(names, progress=in_rows(progress, original.n_rows, what))

    whole = original.outline.keep(names)
    release, groups = mechanism.release_by_sample(whole, sample, blocks, SEED, progress=progress)
    give_back()
    recoded = tuple(entry["column"] for entry in release.manifest.recodings)
    if all(set(own.columns) <= {*recoded} and not isinstance(own, AboutValues) for own in release.manifest.promised()):
        release = with_measured_levels(release)  # else the audit of the written rows finds the levels
    return FittedProposal(with_all_columns(release, original.schema), original, groups, recoded)


def sample_size(memory: Memory, n_columns: int) -> int:
    """Rows that are drawn: as many as fit, up to a limit."""
    return min(FITTED_SAMPLE_ROWS, memory.most_cells(n_columns))


def drawn_rows(
    original: Rows, names: Sequence[str], n_drawn: int, progress: Progress | None = None
) -> dict[str, Codes]:
    """Draw rows without replacement in one pass, each set of so many rows as likely as any other.

    Every row gets a random number, the same ones whatever the blocks, and those with the smallest are taken, in the
    order of the file.
    """
    random = np.random.default_rng(SEED)
    kept: list[Codes] = [np.zeros(0, dtype=np.int32) for _ in names]
    lots = np.zeros(0)
    for block in original.blocks(names, progress=progress):
        new = random.random(len(block[names[0]]))
        is_low = np.flatnonzero(new <= (lots.max() if len(lots) == n_drawn else 1.0))
        lots = np.concatenate([lots, new[is_low]])
        kept = [np.concatenate([own, np.asarray(block[n])[is_low]]) for own, n in zip(kept, names, strict=True)]
        if len(lots) > n_drawn:
            lowest = np.sort(np.argpartition(lots, n_drawn - 1)[:n_drawn])
            lots, kept = lots[lowest], [own[lowest] for own in kept]
    return dict(zip(names, kept, strict=True))
