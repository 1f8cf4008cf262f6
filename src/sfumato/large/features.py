"""Releases of binary features of a large file: searched on its distinct patterns, written column by column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from sfumato.contract import Progress, Release
from sfumato.counting.blocks import count_blocks
from sfumato.errors import SchemaError
from sfumato.large.memory import Memory, give_back
from sfumato.large.proposal import Block, Proposal, telling, with_measured_levels
from sfumato.schema import Schema
from sfumato.table.binarize import Binarization
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.large import LargeTable, Told

_ZERO_ONE = pa.array([0, 1], type=pa.int8())


class PatternMechanism(Protocol):
    """A mechanism that chooses among binary features and treats rows alike that are equal in them and in the target.

    This is what ``needs = Needs.FEATURE_COUNTS`` asks of it.
    """

    def binarization(self, outline: Table) -> Binarization:
        """Find the features, given the columns each by itself."""
        ...

    def release_patterns(self, outline: Table, patterns: BinaryTable, *, progress: Progress | None = None) -> Release:
        """Release distinct rows that stand for many."""
        ...


@dataclass(frozen=True, repr=False, eq=False)
class FeatureProposal(Proposal):
    """Some features of every row, and the columns that travel along as they are.

    ``_places`` is the original with places of features in its quasi-identifiers (see
    :class:`~sfumato.table.binarize.Binarization`), so that each row's features follow from its own codes.
    """

    _places: LargeTable
    _chosen: tuple[tuple[Feature, int], ...]

    @property
    def schema(self) -> Schema:
        """Description of the columns that are written."""
        return self.released.schema

    def columns(self) -> dict[str, pa.Array]:
        """Values that the codes of the blocks stand for."""
        return {f.name: _ZERO_ONE for f, _ in self._chosen} | {n: self.released[n].values for n in self._beside()}

    def _beside(self) -> list[str]:
        features = {feature.name for feature, _ in self._chosen}
        return [name for name in self.released.columns if name not in features]

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """All rows, block by block, in the order of the file."""
        beside = self._beside()
        used = list(dict.fromkeys(feature.column for feature, _ in self._chosen))
        for block in self._places.blocks([*used, *beside], told=told):
            features = {f.name: np.asarray(block[f.column] == place, dtype=np.int32) for f, place in self._chosen}
            yield features | {name: block[name] for name in beside}


def propose_features(
    original: LargeTable, mechanism: PatternMechanism, memory: Memory, progress: Progress | None
) -> FeatureProposal:
    """Count the distinct patterns of a large file, let a mechanism choose features, and measure what it promises."""
    outline = original.outline
    target = outline.schema.target
    if target is None:
        problem = "no column has the role target"
        raise SchemaError(problem, hint="name the target column", remedy=("target",))
    outline.schema.check_quasi_identifiers("to make features of")
    binarization = mechanism.binarization(outline)
    places = replace(original, outline=binarization.places(outline))
    names = (*binarization.columns, target)
    counted = count_blocks(
        places,
        names,
        most_cells=memory.most_cells(len(names)),
        told=telling(progress, original.n_rows, "rows counted"),
    )
    give_back()
    release = mechanism.release_patterns(outline, binarization.applied_to_places(counted, outline), progress=progress)
    give_back()
    by_name = {feature.name: (feature, binarization.place(feature)) for feature in binarization.features}
    chosen = tuple(by_name[c["name"]] for c in release.manifest.output["columns"] if c["name"] in by_name)
    return FeatureProposal(original, with_measured_levels(release), places, chosen)
