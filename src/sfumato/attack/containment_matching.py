"""Containment matching on sparse 0/1 tables: an attacker knows some ones of a person, and looks for rows with them all.

The attacker of k-anonymity by containment [kAC17]_ knows items that a person bought, words used or conditions had, and
nothing of what the person did not. Items that were not released are of no use. The candidates are the released rows
that have all the known items which were released.

References
----------
.. [kAC17] Zhang, Wang, Cheng, Liu, Zhu, Wang: Feature selection for classification under anonymity constraint.
   Transactions on Data Privacy 10 (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.attack.correspondence import Correspondence
from sfumato.audit.bit_rows import packed
from sfumato.audit.columns import Columns
from sfumato.audit.rules import INTERVAL, KNOWN_RULES, MISSING, ONE_OF
from sfumato.errors import InvalidParameterError, NotBinaryError
from sfumato.schema import Role

Ids = NDArray[np.int64]
Words = NDArray[np.uint64]

ITEMS_KNOWN = (1, 2, 3, 5)
CROWDS = (2, 5, 10)
MOST_PEOPLE = 2_000


class ContainmentAttack:
    """People's ones, and the released rows that have them.

    Parameters
    ----------
    ones : sparse matrix
        People × items.
    released : sparse matrix
        Released rows × released items.
    place : sequence of int
        For each item its column in the release, -1 for one that was not released.

    Examples
    --------
    >>> people = sp.csr_matrix([[1, 1], [1, 0]])
    >>> attack = ContainmentAttack(people, people, [0, 1])
    >>> attack.candidates(np.array([[0, 1], [0, 0]])).tolist()
    [1, 2]
    """

    def __init__(self, ones: sp.spmatrix, released: sp.spmatrix, place: Sequence[int]) -> None:
        self._ones = sp.csr_matrix(ones)
        by_item = sp.csc_matrix(released)
        self._n_released = by_item.shape[0]
        self._place = np.asarray(place, dtype=np.int64)
        self._bits = np.vstack([*(_bits(by_item, item) for item in range(by_item.shape[1])), self._every()])

    def _every(self) -> Words:
        return packed(np.ones(self._n_released, dtype=np.bool_))

    @property
    def n_items(self) -> Ids:
        """Number of ones of each person."""
        return np.asarray(np.diff(self._ones.indptr), dtype=np.int64)

    def known_items(self, people: Ids, n_known: int, random: np.random.Generator) -> Ids:
        """Draw some different ones of each of these people, who have so many: one row a person."""
        starts, lengths = self._ones.indptr[people], self.n_items[people]
        drawn = np.empty((len(people), n_known), dtype=np.int64)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            drawn[number] = self._ones.indices[start + random.choice(length, n_known, replace=False)]
        return drawn

    def candidates(self, known: Ids) -> Ids:
        """Count the released rows that have all known items; items that were not released are passed over."""
        places = self._place[known]
        found = np.zeros(len(known), dtype=np.int64)
        for number, row in enumerate(places):
            common = np.bitwise_and.reduce(self._bits[row], axis=0)  # place -1 is the last row: all bits
            found[number] = np.bitwise_count(common).sum(dtype=np.int64)
        return found


def _bits(by_item: sp.csc_matrix, item: int) -> Words:
    flags = np.zeros(by_item.shape[0], dtype=np.bool_)
    flags[by_item.indices[by_item.indptr[item] : by_item.indptr[item + 1]]] = True
    return packed(flags)


def containment_attack(tables: Correspondence) -> ContainmentAttack | None:
    """Prepare the attack; ``None`` where the released quasi-identifiers are not all 0/1.

    The items are the original's quasi-identifiers where all of them are 0/1 and released as they are or not at all;
    else the released features, which are evaluated on the original.
    """
    released = tables.quasi_identifiers
    try:
        shown = tables.released.ones(released)
    except NotBinaryError:
        return None
    if not released:
        return None
    items = tables.original.with_role(Role.QUASI_IDENTIFIER)
    rules = {tables.recodings[name].rule for name in released if name in tables.recodings}
    ones = _ones(tables.original, items)
    if ones is not None and rules.isdisjoint((ONE_OF, INTERVAL, MISSING)):
        place_of = {tables.source_of(name): place for place, name in enumerate(released)}
        return ContainmentAttack(ones, shown, [place_of.get(item, -1) for item in items])
    if any(tables.source_of(name) is None for name in released):
        return None
    features = _features(tables, released)
    return None if features is None else ContainmentAttack(features, shown, list(range(len(released))))


def _features(tables: Correspondence, released: Sequence[str]) -> sp.csr_matrix | None:
    """Evaluate released 0/1 columns on the original; ``None`` where one of them is not 0/1 there."""
    found = sp.lil_matrix((tables.original.n_rows, len(released)), dtype=np.int8)
    for place, name in enumerate(released):
        recoding = tables.recodings.get(name)
        if tables.released.feature(name) is not None or (recoding is not None and recoding.rule in KNOWN_RULES):
            rows = np.flatnonzero(tables.column(name).places == 1)
        else:
            try:
                rows = tables.original.rows_with_one(tables.source_of(name) or name)
            except NotBinaryError:
                return None
        found[rows, place] = 1
    return found.tocsr()


def _ones(columns: Columns, names: Sequence[str]) -> sp.csr_matrix | None:
    try:
        return columns.ones(names) if names else None
    except NotBinaryError:
        return None


def containment_matching(
    attack: ContainmentAttack,
    *,
    items_known: Sequence[int] = ITEMS_KNOWN,
    crowds: Sequence[int] = CROWDS,
    seed: int = 0,
    most_people: int = MOST_PEOPLE,
) -> list[dict[str, Any]]:
    """Match people of whom a few random ones are known.

    Parameters
    ----------
    items_known : sequence of int
        How many ones the attacker knows.
    crowds : sequence of int
        Numbers k; counted are the people with fewer than k candidates, but at least one.
    most_people : int
        People drawn at random, each with random ones; the same seed draws the same.

    Returns
    -------
    list of dict
        For each number of items: ``n_known``, ``n_people`` (drawn; people with fewer ones are not), ``least`` and
        ``mean`` candidates, ``n_without`` candidates, ``below`` with the share of people for each k, and ``expected``,
        the share found when one candidate is picked at random.
    """
    for name, numbers in (("items_known", items_known), ("crowds", crowds)):
        if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 for n in numbers):
            raise InvalidParameterError(name, "some are not", allowed="whole numbers of at least 1")
    return [_matched(attack, int(n), crowds, np.random.default_rng([seed, int(n)]), most_people) for n in items_known]


def _matched(
    attack: ContainmentAttack, n_known: int, crowds: Sequence[int], random: np.random.Generator, most_people: int
) -> dict[str, Any]:
    people = np.flatnonzero(attack.n_items >= n_known)
    if len(people) > most_people:
        people = np.sort(random.choice(people, most_people, replace=False))
    found = attack.candidates(attack.known_items(people, n_known, random))
    matched = found[found > 0]
    n_people = max(len(people), 1)
    return {
        "n_known": n_known,
        "n_people": len(people),
        "n_without": len(found) - len(matched),
        "least": int(matched.min()) if len(matched) else None,
        "mean": float(matched.mean()) if len(matched) else None,
        "below": {str(crowd): float(np.count_nonzero(matched < crowd) / n_people) for crowd in crowds},
        "expected": float((1 / matched).sum() / n_people),
    }
