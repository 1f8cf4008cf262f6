"""Lattice of hierarchy levels: every column of a table is taken to one of its levels, and each way is a node.

A node is above another one when it is at least as high on every column; its classes are made up of whole classes of the
other one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError

if TYPE_CHECKING:
    from sfumato.recoding.lattice_models import ClassModel

Codes = NDArray[np.integer]
Counts = NDArray[np.int64]
Places = NDArray[np.intp]
Levels = tuple[int, ...]


@dataclass(frozen=True, repr=False, eq=False)
class LatticeProblem:
    """Cells of a table, the levels its quasi-identifiers may be taken to, and what the result must satisfy.

    Parameters
    ----------
    codes : int array of shape (n_cells, n_columns)
        Value number of each quasi-identifier. Cells are distinct over quasi-identifiers, sensitive columns and target.
    counts : int64 array of shape (n_cells,)
        Rows that each cell stands for, at least 1.
    level_maps : for each column, for each level, an int array
        Label number of each value; level 0 is the identity, and levels are nested.
    shares : for each column, for each level, a float array
        Share of the hierarchy's values that each label stands for.
    k : int
        Rows that a class needs.
    max_suppressed_fraction : float
        Largest share of the rows, in [0, 1], whose classes may be left out. One row at least stays, even with 1.
    models : tuple of ClassModel
        What every class must satisfy besides its size.
    loss : str
        Name in :data:`sfumato.recoding.lattice_class_losses.LOSSES`.
    weights : sequence of float or None
        Weight of each column in the loss; equal ones if left out.
    sensitive : tuple of int arrays of shape (n_cells,)
        Value number of each sensitive column.
    target : int array of shape (n_cells,) or None
        Class number of each cell, for losses that ask for it.
    """

    codes: Codes
    counts: Counts
    level_maps: tuple[tuple[Codes, ...], ...]
    shares: tuple[tuple[NDArray[np.float64], ...], ...]
    k: int = 1
    max_suppressed_fraction: float = 0.0
    models: tuple[ClassModel, ...] = ()
    loss: str = "loss"
    weights: Sequence[float] | None = None
    sensitive: tuple[Codes, ...] = ()
    target: Codes | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameterError("k", f"got {self.k}", allowed="at least 1")
        check_suppression_limit(self.max_suppressed_fraction)
        wrong = [m for m in self.models if not 0 <= m.column < len(self.sensitive)]
        if wrong:
            allowed = f"the place of one of the {len(self.sensitive)} sensitive columns"
            raise InvalidParameterError("column", f"a model has {wrong[0].column}", allowed=allowed)
        if len(self.counts) == 0 or self.counts.min() < 1:
            problem = "got none" if len(self.counts) == 0 else "some are less"
            raise InvalidParameterError("counts", problem, allowed="at least 1 for each of one or more cells")
        if self.codes.shape[1] == 0:
            raise InvalidParameterError("codes", "got no column", allowed="of at least one column")
        if len(self.level_maps) != self.codes.shape[1] or len(self.shares) != self.codes.shape[1]:
            problem = f"got {len(self.level_maps)} and {len(self.shares)}"
            raise InvalidParameterError("level_maps and shares", problem, allowed="given for every column of the codes")

    def __repr__(self) -> str:
        return f"LatticeProblem({len(self.counts):,} cells, {self.n_nodes:,} nodes, k={self.k}, loss={self.loss!r})"

    @cached_property
    def n_rows(self) -> int:
        """Rows that the cells stand for."""
        return int(self.counts.sum())

    @cached_property
    def max_suppressed(self) -> int:
        """Most rows that may be left out, never all; the fraction is taken as the decimal number it is written as."""
        return min(math.floor(Fraction(str(float(self.max_suppressed_fraction))) * self.n_rows), self.n_rows - 1)

    @property
    def n_columns(self) -> int:
        """Number of quasi-identifiers."""
        return int(self.codes.shape[1])

    @cached_property
    def shape(self) -> Levels:
        """Number of levels of each column."""
        return tuple(len(maps) for maps in self.level_maps)

    @cached_property
    def n_nodes(self) -> int:
        """Number of level combinations."""
        total = 1
        for n_levels in self.shape:
            total *= n_levels
        return total

    @cached_property
    def top(self) -> Levels:
        """Highest level of every column."""
        return tuple(n - 1 for n in self.shape)

    def value_counts(self, column: int) -> Counts:
        """Rows that have each value of a quasi-identifier."""
        n_values = len(self.level_maps[column][0])
        return bincount(self.codes[:, column], self.counts, n_values)


def bincount(codes: NDArray[np.integer], counts: Counts, n: int) -> Counts:
    """Add up the counts of each code, in whole numbers."""
    return np.asarray(np.bincount(codes, weights=counts, minlength=n)).astype(np.int64)


def check_suppression_limit(fraction: float) -> None:
    """Refuse a share of rows that is none."""
    if not 0 <= fraction <= 1:
        hint = "it is a fraction, not a percentage; 1.5 % is 0.015"
        raise InvalidParameterError("max_suppressed_fraction", f"got {fraction!r}", allowed="from 0 to 1", hint=hint)
