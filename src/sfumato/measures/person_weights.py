r"""Sensitive values counted by persons: matchings of values to persons, and weights of values.

Where a person has several rows, counts of rows say too much: five rows of one patient are one patient. Two senses:

- *Matched* diversity of a class: the largest number of different values that as many different persons carry, each one
  of them. It is the size of a maximum matching in the bipartite graph of the values and persons of the class, with an
  edge where a person has a row with a value. With one row a person it is the number of different values. It never
  falls when a class grows, because a matching stays one. Whoever is taken out takes one pair of a matching along at
  most: a matching of size l leaves one of size l - 1.
- *Weights*: in a class each person weighs 1, shared equally over the person's rows there, so that value v of person p
  weighs :math:`n_{pv}/n_p`. The weight of a value is the sum over persons. With one row a person weights are counts.
  Weights do not add up over classes: a person in two classes weighs 1 in each and 1 in their union. So a union of
  classes can be less diverse, and further from the table, than each of them, and what is monotone for rows is not for
  persons. Example: classes {p: a; q: b} and {p: a, ninety-nine times; r: b} have both values by half; their union has
  a by a third.

Weights are sums of fractions. They are compared with a slack of :data:`sfumato.guarantees.base.ROUNDING`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.counting.classes import ClassValueCounts
from sfumato.guarantees import ROUNDING

Levels = NDArray[np.float64]
Ids = NDArray[np.integer]


def matched_diversity_by_class(
    class_index: Ids, person: Ids, value: Ids, n_classes: int, enough: float = np.inf
) -> Levels:
    """Largest number of values of each class that as many different persons carry.

    One call of Hopcroft and Karp's algorithm for all classes: their graphs are apart from each other.

    Parameters
    ----------
    class_index, person, value : arrays of the same length
        What occurs: a person with a value in a class, once or more often.
    enough : float
        A class for which simple bounds show on which side of this number it is gets the bound. Values that a person has
        who has no other in the class can all be matched at once; no more can be than there are values, or persons.

    Examples
    --------
    >>> of_class, person, value = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 0, 1]), np.array([0, 1, 2, 0, 0])
    >>> matched_diversity_by_class(of_class, person, value, 2).tolist()
    [2.0, 1.0]
    """
    of_value, class_of_value = _numbered(class_index, value)
    of_person, class_of_person = _numbered(class_index, person)
    found = np.minimum(*(np.bincount(classes, minlength=n_classes) for classes in (class_of_value, class_of_person)))
    if not np.isinf(enough):
        edges = np.unique(of_value * len(class_of_person) + of_person)
        values, persons = np.divmod(edges, max(len(class_of_person), 1))
        has_no_other = np.bincount(persons, minlength=len(class_of_person)) == 1
        surely = np.bincount(class_of_value[np.unique(values[has_no_other[persons]])], minlength=n_classes)
        is_open = (found >= enough - ROUNDING) & (surely < enough - ROUNDING)
        found = np.where(is_open, found, np.where(found < enough - ROUNDING, found, surely))
        is_edge = is_open[class_of_value[values]]
        of_value, of_person = values[is_edge], persons[is_edge]
    else:
        is_open = np.ones(n_classes, dtype=np.bool_)
    if len(of_value):
        matched = _matched(of_value, of_person, (len(class_of_value), len(class_of_person)))
        found = np.where(is_open, np.bincount(class_of_value[matched], minlength=n_classes), found)
    return found.astype(np.float64)


def _matched(left: Ids, right: Ids, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Which left nodes of a bipartite graph have a partner in a maximum matching."""
    from scipy.sparse import csr_matrix  # heavy, and needed where persons repeat only
    from scipy.sparse.csgraph import maximum_bipartite_matching

    edges = csr_matrix((np.ones(len(left), dtype=np.int32), (left, right)), shape=shape)
    edges.sum_duplicates()
    return np.asarray(maximum_bipartite_matching(edges, perm_type="column") >= 0)


def _numbered(class_index: Ids, other: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each entry the number of its pair of a class and something, and each pair its class."""
    n_other = int(other.max(initial=0)) + 1
    keys, numbers = np.unique(class_index.astype(np.int64) * n_other + other, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), keys // n_other


def value_weights(persons: Ids, values: Ids, n_values: int) -> Levels:
    """Weight of each value in a whole table, whose rows have these persons and values.

    Examples
    --------
    >>> value_weights(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
    [0.5, 1.5]
    """
    of_row = 1.0 / np.bincount(persons)[persons]
    return np.asarray(np.bincount(values, of_row, n_values), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PersonPairs:
    """Pairs of a person and a value, numbered, so that they can be counted as the values of one column.

    Parameters
    ----------
    person, value : int arrays
        Person and value of each pair; both are numbered from 0.
    """

    person: Ids
    value: Ids

    @classmethod
    def of(cls, persons: Ids, values: Ids) -> PersonPairs:
        """Find the pairs that occur; they are numbered by person, then by value."""
        n_values = int(values.max(initial=0)) + 1
        keys = np.unique(persons.astype(np.int64) * n_values + values)
        return cls(keys // n_values, keys % n_values)

    def find(self, persons: Ids, values: Ids) -> NDArray[np.int64]:
        """Numbers of pairs, all of which occur.

        Examples
        --------
        >>> PersonPairs.of(np.array([0, 0, 1]), np.array([0, 1, 1])).find(np.array([1, 0]), np.array([1, 1])).tolist()
        [2, 1]
        """
        n_values = int(self.value.max(initial=0)) + 1
        known = self.person.astype(np.int64) * n_values + self.value
        return np.searchsorted(known, persons.astype(np.int64) * n_values + values)

    def matched_diversity(self, counts: ClassValueCounts, enough: float = np.inf) -> Levels:
        """:func:`matched_diversity_by_class` of classes whose pairs were counted."""
        person, value = self.person[counts.value_code], self.value[counts.value_code]
        return matched_diversity_by_class(counts.class_index, person, value, counts.n_classes, enough)

    def weighed(self, counts: ClassValueCounts) -> ClassValueCounts:
        """Weights of values in classes, and in the rows that these are compared with, from counts of pairs.

        Examples
        --------
        >>> pairs = PersonPairs.of(np.array([0, 0, 1]), np.array([0, 1, 1]))
        >>> counts = ClassValueCounts.from_contingency([[3], [1], [5]])
        >>> pairs.weighed(counts).count.tolist()
        [0.75, 1.25]
        """
        code, index = counts.value_code, counts.class_index
        in_class, _ = _numbered(index, self.person[code])
        weights = counts.count / np.bincount(in_class, counts.count)[in_class]
        n_values = int(self.value.max(initial=-1)) + 1
        keys, places = np.unique(index * n_values + self.value[code], return_inverse=True)
        of_class = np.bincount(places.reshape(-1), weights, len(keys))
        classes, values = np.divmod(keys, n_values)
        sizes = np.bincount(classes, of_class, counts.n_classes)
        compared = counts.value_totals  # of the pairs up to the last that occurs
        person, value = self.person[: len(compared)], self.value[: len(compared)]
        of_person = np.bincount(person, compared, minlength=1)
        totals = np.bincount(value, compared / np.maximum(of_person, 1)[person], n_values)
        return replace(
            counts, class_index=classes, value_code=values, count=of_class, class_sizes=sizes, value_totals=totals
        )
