r"""Re-identification of persons who have several rows: who is behind the rows that fit, not how many rows fit.

Two hundred rows of one patient are no crowd to hide in. For a row of a person the attacker has candidates, the released
rows that fit what is known; :math:`d` different persons are behind them, which the original tells.

- The risk of a *row* is :math:`1/d`: the attacker names one of these persons, and each is as likely as any other.
- The risk of a *person* is that of the person's most exposed row: whoever wants to find somebody begins where it is
  easiest. It is the one risk of a person: *highest* is the largest of them, *mean* their mean, and the *marketer's*
  share (one guess a person, at that row) their mean over everybody, those who were left out counting 0.
- ``any_row`` is another question, and named so: the attacker guesses once in every group of equal released rows that
  holds rows of a person, and is asked whether *any* guess was right. With rows in the groups :math:`j` that has the
  probability :math:`1 - \prod_j (1 - 1/d_j)`; if all ways in which the rows of a group may belong to its persons are
  equally likely, whatever those of other groups are, no attacker does better. Which guess was right stays unknown.

With one row a person these are the risks of :mod:`sfumato.attack.reidentification`. Assumed is that an attacker does
not know how many rows somebody has. Who does, and picks a row of a group at random, hits a person with many rows there
more often than one time in d: ``largest_share`` is the largest share of a group's rows that one person has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.attack.candidates import fitting_kinds
from sfumato.attack.class_risk import expected_inverse_population_size, highest_and_mean, mean_risk
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.audit.levels.persons_at_risk import highest_of_each, largest_share, named, persons_of_classes

Ids = NDArray[np.int64]

_MOST_PRODUCTS = 1 << 30  # of pairs of kinds and the persons of one
_AT_ONCE = 1 << 24
_SEVERAL_WAYS = "some rows fit several groups, and count as those of one that fits: persons of a group may be others"


def person_risks(
    tables: Correspondence, persons: NDArray[np.integer], *, sample_fraction: float | None = None
) -> dict[str, Any] | None:
    """Risks of persons, as :func:`sfumato.attack.reidentification.reidentification_risk` gives those of rows.

    Parameters
    ----------
    persons : array
        Code of the person of each row of the original.
    sample_fraction : float or None
        Share of the population's persons that was released, all rows of each.

    Returns
    -------
    dict or None
        ``None`` where it is not known whose the released rows are (values were moved or changed at random, or sorted
        rows do not tell), or the rows that fit are too many to be listed.
    """
    people_of: Ids = np.unique(persons, return_inverse=True)[1]
    own, owner = tables.own_row, owners(tables, people_of)
    if own is None or owner is None:
        return None
    names = [name for name in tables.quasi_identifiers if tables.source_of(name) is not None]
    columns = [tables.column(name) for name in names]
    kinds = fitting_kinds(columns, tables.original.n_rows, tables.released.n_rows)
    if kinds is None:
        return None
    n_persons = int(people_of.max(initial=-1)) + 1
    is_there = own != ABSENT
    who = people_of[is_there]
    tells_all = not tables.is_sorted and len(who) == tables.original.n_rows
    people, rows = kinds.pairs
    n_kinds, n_rows = int(kinds.of_person.max(initial=-1)) + 1, int(kinds.of_row.max(initial=-1)) + 1
    behind = _distinct_behind((people, rows), (kinds.of_row, owner), (max(n_kinds, n_rows), n_persons))
    fitting = _distinct_behind((rows, people), (kinds.of_person, people_of), (max(n_kinds, n_rows), n_persons))
    if behind is None or fitting is None:
        return None
    risks, group = 1 / behind[kinds.of_person[is_there]], kinds.of_row[own[is_there]]
    of_persons = highest_of_each(who, risks)
    return {
        "prosecutor": highest_and_mean(of_persons),
        "journalist": highest_and_mean(highest_of_each(who, 1 / fitting[group])),
        "marketer": mean_risk(of_persons, n_persons),
        "any_row": highest_and_mean(named(who, group, risks)),
        "n_people": n_persons,
        "n_found": len(np.unique(who[risks == 1])),
        "largest_share": largest_share(tables.classes.ids, owner),
        "by_classes": risks_of_person_classes(tables.classes.ids, owner, sample_fraction=sample_fraction),
        "note": _SEVERAL_WAYS if not tells_all and np.bincount(people).max(initial=0) > 1 else "",
    }


def owners(tables: Correspondence, persons: NDArray[np.integer]) -> Ids | None:
    """Person of each released row; ``None`` where values were moved or changed, or nothing tells whose a row is."""
    own = None if tables.is_in_pieces or tables.may_differ else tables.own_row
    if own is None:
        return None
    found = np.zeros(tables.released.n_rows, dtype=np.int64)
    found[own[own != ABSENT]] = persons[own != ABSENT]
    return found


def risks_of_person_classes(
    classes: NDArray[np.integer], persons: NDArray[np.integer], *, sample_fraction: float | None = None
) -> dict[str, Any]:
    """Risks by classes and persons of rows alone, as :func:`sfumato.attack.class_risk.risks_of_classes`.

    Parameters
    ----------
    classes, persons : array of int
        Class and person of each row.
    sample_fraction : float or None
        Share of the population's persons that the rows are of; ``None`` takes them for the population.

    Examples
    --------
    >>> risks_of_person_classes([0, 0, 0, 1, 1], [7, 7, 8, 8, 8])["prosecutor"]
    {'highest': 1.0, 'mean': 0.75}
    """
    groups, people = np.asarray(classes, dtype=np.int64), np.unique(persons, return_inverse=True)[1]
    sizes = persons_of_classes(groups, people)
    inverse = 1 / np.maximum(sizes, 1)
    wider = inverse if sample_fraction is None else expected_inverse_population_size(sizes, sample_fraction)
    journalist = highest_and_mean(highest_of_each(people, wider[groups]))
    return {
        "prosecutor": highest_and_mean(highest_of_each(people, inverse[groups])),
        "journalist": journalist,
        "marketer": journalist["mean"],
    }


def _distinct_behind(pairs: tuple[Ids, Ids], members: tuple[Ids, Ids], shape: tuple[int, int]) -> Ids | None:
    """For each kind on the left of the pairs, how many different persons are in the kinds on its right.

    ``members`` are kinds of the right side and persons in them. ``None`` where that takes too long.
    """
    n_kinds, n_persons = shape
    each = np.unique(np.column_stack(members), axis=0)
    inside = sp.csr_array((np.ones(len(each), dtype=np.int32), (each[:, 0], each[:, 1])), shape=(n_kinds, n_persons))
    fits = sp.csr_array((np.ones(len(pairs[0]), dtype=np.int32), pairs), shape=(n_kinds, n_kinds))
    work = np.zeros(n_kinds, dtype=np.int64)
    np.add.at(work, pairs[0], np.diff(inside.indptr)[pairs[1]])
    if work.sum() > _MOST_PRODUCTS:
        return None
    found, done = np.zeros(n_kinds, dtype=np.int64), np.cumsum(work)
    start = 0
    while start < n_kinds:
        before = int(done[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(done, before + _AT_ONCE, side="right")))
        found[start:stop] = np.diff((fits[start:stop] @ inside).indptr)
        start = stop
    return found
