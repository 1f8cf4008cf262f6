"""Releases of binary features: searched on their distinct patterns, written column by column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.counting.cells import TooManyCellsError
from sfumato.engines.counting import count_merged
from sfumato.engines.memory_limit import Memory, give_back
from sfumato.engines.protocol import Rows
from sfumato.errors import SchemaError
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress, in_rows
from sfumato.publishing.proposals.base import RowsProposal, with_measured_levels
from sfumato.schema import Schema
from sfumato.table.binarize import Binarization
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.weighted import Block, CountedTable

_ZERO_ONE = pa.array([0, 1], type=pa.int8())
_MOST_STEPS = 256
"""Steps at most in which features are left out."""


class PatternMechanism(Protocol):
    """A mechanism that chooses among binary features and treats rows alike that are equal in them and in the target.

    This is what ``needs = Needs.FEATURE_COUNTS`` asks of it.
    """

    def binarization(self, outline: Table) -> Binarization:
        """Find the features, given the columns each by itself."""
        ...

    def release_patterns(
        self,
        outline: Table,
        patterns: BinaryTable,
        *,
        offered: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release distinct rows that represent many; ``offered`` are the features to choose from, where not all are."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class FeatureProposal(RowsProposal):
    """Some features of every row, and the columns that are published unchanged.

    ``places`` is the original with places of features in its quasi-identifiers (see
    :class:`~sfumato.table.binarize.Binarization`), so that each row's features follow from its own codes.
    """

    places: Rows
    chosen: tuple[tuple[Feature, int], ...]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.released.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks represent."""
        return {f.name: _ZERO_ONE for f, _ in self.chosen} | {n: self.released[n].values for n in self.beside}

    @property
    def beside(self) -> list[str]:
        """Columns that travel along."""
        features = {feature.name for feature, _ in self.chosen}
        return [name for name in self.released.columns if name not in features]

    def blocks_with(self, person: str) -> Iterator[Block]:
        """All rows are released, in their order."""
        for block, beside in zip(self.blocks(), self.original.blocks([person]), strict=True):
            yield {**block, **beside}

    def blocks(self, progress: Progress | None = None) -> Iterator[Block]:
        """All rows, block by block, in the order of the file."""
        beside = self.beside
        used = list(dict.fromkeys(feature.column for feature, _ in self.chosen))
        for block in self.places.blocks([*used, *beside], progress=progress):
            features = {f.name: np.asarray(block[f.column] == place, dtype=np.int32) for f, place in self.chosen}
            yield features | {name: block[name] for name in beside}


def propose_features(
    original: Rows, mechanism: PatternMechanism, memory: Memory, progress: Progress | None
) -> FeatureProposal:
    """Count the distinct patterns of a table, let a mechanism choose features, and measure what it promises."""
    outline = original.outline
    target = outline.schema.target
    if target is None:
        problem = "no column has the role target"
        raise SchemaError(problem, hint="name the target column", remedy=("target",))
    outline.schema.check_quasi_identifiers("to make features of")
    binarization = mechanism.binarization(outline)
    places = replace(original, outline=binarization.places(outline))
    counted, offered = _counted_patterns(places, binarization, (*binarization.columns, target), memory, progress)
    give_back()
    patterns = binarization.applied_to_places(counted, outline)
    if offered is None:
        release = mechanism.release_patterns(outline, patterns, progress=progress)
    else:
        release = mechanism.release_patterns(outline, patterns, offered=offered, progress=progress)
    give_back()
    by_name = {feature.name: (feature, binarization.place(feature)) for feature in binarization.features}
    chosen = tuple(by_name[c["name"]] for c in release.manifest.output["columns"] if c["name"] in by_name)
    return FeatureProposal(with_measured_levels(release), original, places, chosen)


def _counted_patterns(
    places: Rows, binarization: Binarization, names: tuple[str, ...], memory: Memory, progress: Progress | None
) -> tuple[CountedTable, Sequence[int] | None]:
    """Count the distinct patterns, without the rarest features where not all fit; says which features are in them.

    A choice among some of the features is as exact from the patterns of these as from those of all features.
    """
    most, n_rows = memory.most_cells(len(names)), places.n_rows
    try:
        return places.distinct(names, most_cells=most, progress=in_rows(progress, n_rows, "rows counted")), None
    except TooManyCellsError:
        if places.is_on_cluster:
            raise  # merged values are counted block by block
        give_back()
    left_out = _rarest_first(places.outline, binarization)
    steps = [_merged_places(binarization, features) for features in left_out]
    counting = in_rows(progress, n_rows, "rows counted with fewer features")
    try:
        counted, step = count_merged(places, names, steps, pairs={}, most_cells=most, progress=counting)
    except TooManyCellsError:
        problem = f"has too many distinct values to be counted with even one feature: more than {most:,} do not fit"
        hint = "round or group its values in the file first, name another target, or give more memory"
        raise SchemaError(problem, column=names[-1], hint=hint, remedy=("target", "memory")) from None
    return counted, [i for i in range(len(binarization.features)) if i not in left_out[step]]


def _rarest_first(outline: Table, binarization: Binarization) -> list[set[int]]:
    """Ever more features to leave out, those with the fewest ones first; the last step leaves one."""
    features = binarization.features
    ones = [outline[feature.column].counts[binarization.place(feature)] for feature in features]
    order = np.argsort(ones, kind="stable").tolist()
    stride = -(-len(features) // _MOST_STEPS)
    return [set(order[:n]) for n in [*range(0, len(features) - 1, stride), len(features) - 1]]


def _merged_places(binarization: Binarization, left_out: Collection[int]) -> dict[str, NDArray[np.int32]]:
    """Give features that are left out the place of their column that has none."""
    merged = {name: np.arange(len(binarization.assignments[name].features) + 1) for name in binarization.columns}
    for i in left_out:
        feature = binarization.features[i]
        merged[feature.column][binarization.place(feature)] = len(merged[feature.column]) - 1
    return {name: own.astype(np.int32) for name, own in merged.items()}
