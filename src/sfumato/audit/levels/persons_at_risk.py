r"""Persons of classes of equal rows, and the risk of a person who may have rows in several.

In a class of :math:`d_j` different persons a row's risk is :math:`1/d_j`, a person's highest risk that of the most
exposed row. Who names one person in every class is right about a person at least once with probability
:math:`1 - \prod_j (1 - 1/d_j)`. All rows without a person count as those of one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Risks = NDArray[np.float64]


def persons_of_classes(classes: Ids, persons: NDArray[np.integer]) -> Ids:
    """Count the different persons of each class.

    Examples
    --------
    >>> persons_of_classes(np.array([0, 0, 0, 1, 1]), np.array([7, 7, 8, 8, 8])).tolist()
    [2, 1]
    """
    pairs = np.unique(np.column_stack([classes, persons]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(np.max(classes, initial=-1)) + 1)


def highest_of_persons(classes: Ids, persons: NDArray[np.integer]) -> Risks:
    """Risk of each person by the most exposed row: one in the persons of its class."""
    people = np.unique(persons, return_inverse=True)[1]
    return highest_of_each(people, 1 / persons_of_classes(classes, people)[classes])


def highest_of_each(who: Ids, risks: Risks) -> Risks:
    """Give the highest risk of each person who has one."""
    found = np.zeros(int(who.max(initial=-1)) + 1)
    np.maximum.at(found, who, risks)
    return found[found > 0]


def named(who: Ids, groups: Ids, risks: Risks) -> Risks:
    """Probability that any guess about a person is right: one guess a group, at its most exposed row.

    Of those who have rows, as :func:`highest_of_each` gives them.
    """
    pairs, place = np.unique(np.column_stack([who, groups]), axis=0, return_inverse=True)
    in_group = np.zeros(len(pairs))
    np.maximum.at(in_group, place.ravel(), risks)
    missed = np.ones(int(who.max(initial=-1)) + 1)
    np.multiply.at(missed, pairs[:, 0], 1 - in_group)
    return (1 - missed)[np.unique(who)]


def largest_share(classes: Ids, owner: Ids) -> float:
    """Largest share of the rows of a class that one person has; 0 without rows."""
    if not len(classes):
        return 0.0
    pairs, n_rows = np.unique(np.column_stack([classes, owner]), axis=0, return_counts=True)
    return float((n_rows / np.bincount(classes)[pairs[:, 0]]).max())
