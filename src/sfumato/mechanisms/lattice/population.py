r"""People of a population table who fit the classes of a node.

A class of a node above holds whole classes of the node, and so do the people who fit it. Hence k-map is monotone with
suppression: a class satisfies it as soon as one of the classes that make it up does. A share of rows among people in a
joined class is a mean of those in its parts, weighted by people, with share 0 where no row is; so both limits of
δ-presence are monotone where nothing is suppressed, and not otherwise, see :mod:`.conditions`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Covered
from sfumato.mechanisms.lattice.lattice import ClassTable, Codes, Ints, LatticeProblem, PeopleOfNodes, RollUp
from sfumato.mechanisms.population import PopulationPromises, different_people
from sfumato.table.coding import Table

Flags = NDArray[np.bool_]
_MAX_KEY = 2**62


@dataclass(frozen=True, repr=False, eq=False)
class LatticePeople:
    """People by their values on the quasi-identifiers, and what every class must satisfy.

    Parameters
    ----------
    codes : int array of shape (n_different, n_columns)
        Value numbers as in the codes of a problem; a value that nobody in the table has is the number after the last.
    counts : int64 array
        How many people are alike.
    has_star : tuple of bool
        Of each column whether its highest level is ``*``, which means values that nobody in the table has too. On other
        levels a label may mean them, or not: people with such values fit no row there, as far as is counted.
    """

    codes: Codes
    counts: Ints
    has_star: tuple[bool, ...]
    k_map: int = 1
    delta_max: float = math.inf
    delta_min: float = 0.0

    @classmethod
    def of(
        cls, table: Table, names: Sequence[str], fitted: Sequence[Covered], promised: PopulationPromises
    ) -> LatticePeople | None:
        """Put the people of a population beside the values of a table; ``None`` where nothing is promised of them."""
        if not promised.about or promised.population is None:
            return None
        codes = []
        for own, column in zip(fitted, promised.population.beside(table, names), strict=True):
            code_at = np.full(column.missing + 2, -1, dtype=np.int64)
            code_at[column.of_values[::-1]] = np.arange(len(column.of_values))[::-1]
            found = code_at[column.of_people]
            codes.append(np.where(found < 0, len(own.labels[0]), own.level_codes[0][found]))
        stars = tuple(own.labels[-1] == (ROOT,) for own in fitted)
        different, counts = different_people(codes)
        k_map = 1 if promised.k_map is None else promised.k_map.k_map
        if promised.presence is None:
            return cls(different, counts, stars, k_map)
        return cls(different, counts, stars, k_map, promised.presence.delta_max, promised.presence.delta_min)

    def of_nodes(self, problem: LatticeProblem) -> PeopleOfNodes:
        """Count them in the nodes of a problem."""
        return _RolledUp(self, problem)


class _RolledUp:
    """People of nodes, rolled up as the rows are."""

    def __init__(self, people: LatticePeople, problem: LatticeProblem) -> None:
        self._people = people
        own = tuple(map(_with_foreign_value, problem.level_maps, people.has_star))
        self._n_labels = [[int(labels.max()) + 1 for labels in maps] for maps in own]
        self._roll_up = RollUp(LatticeProblem(people.codes, people.counts, own, problem.shares))

    @property
    def asks_for_shares(self) -> bool:
        return self._people.delta_max < math.inf or self._people.delta_min > 0

    def fits_enough(self, table: ClassTable) -> Flags:
        return np.asarray(self._of_classes(table) >= self._people.k_map)

    def has_right_shares(self, table: ClassTable) -> Flags:
        own, people = self._people, self._of_classes(table)
        is_somebody_left = int(people.sum()) < int(own.counts.sum())
        if own.delta_min > 0 and is_somebody_left:  # who fits no class is in the release with probability 0
            return np.zeros(table.n_classes, dtype=np.bool_)
        return np.asarray((table.sizes <= own.delta_max * people) & (table.sizes >= own.delta_min * people))

    def worst(self, table: ClassTable) -> list[tuple[str, float, bool]]:
        people = self._of_classes(table)
        least = int(people.min())
        found = [(f"{self._people.k_map}-map", float(least), least >= self._people.k_map)]
        if self.asks_for_shares:
            largest = float((table.sizes / np.maximum(people, 1)).max())
            asked = f"presence from {self._people.delta_min:g} to {self._people.delta_max:g}"
            found.append((asked, largest, bool(self.has_right_shares(table).all())))
        return found

    def _of_classes(self, table: ClassTable) -> Ints:
        """People who fit each class."""
        people = self._roll_up.table(table.levels)
        n_classes, every, each = table.n_classes, np.arange(table.n_classes), np.arange(people.n_classes)
        key, span = np.zeros(n_classes + people.n_classes, dtype=np.int64), 1
        for column, level in enumerate(table.levels):
            radix = self._n_labels[column][level]
            if span > _MAX_KEY // radix:
                present, key = np.unique(key, return_inverse=True)
                span = len(present)
            labels = [table.class_labels(column, every), people.class_labels(column, each)]
            key = key.reshape(-1) * radix + np.concatenate(labels)
            span *= radix
        order = np.argsort(key[n_classes:])
        ordered = key[n_classes:][order]
        at = np.minimum(np.searchsorted(ordered, key[:n_classes]), len(ordered) - 1)
        return np.where(ordered[at] == key[:n_classes], people.sizes[order][at], 0)


def _with_foreign_value(maps: tuple[Codes, ...], has_star: bool) -> tuple[Codes, ...]:
    """Add a value that the table lacks: with a label of its own on every level, but for ``*`` on the highest."""
    foreign = [int(labels.max()) + 1 for labels in maps]
    if has_star:
        foreign[-1] = 0
    return tuple(np.append(labels, own) for labels, own in zip(maps, foreign, strict=True))
