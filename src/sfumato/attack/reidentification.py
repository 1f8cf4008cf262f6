r"""Re-identification risk of prosecutor, journalist and marketer, and the sizes of the classes behind it.

An attacker knows all quasi-identifiers of somebody.

- The *prosecutor* knows that the person is in the release: the risk of a row is :math:`1/f_j`, where :math:`f_j` is the
  number of released rows in its class :math:`j`.
- The *journalist* does not, and wants to name anybody: the risk is :math:`1/F_j`, where :math:`F_j` is the number of
  people in the population who would be in that class.
- The *marketer* wants to name as many as possible: the share that comes out right is the mean of the prosecutor's risks
  over everybody, those who were left out counting 0. It is never above the highest of them.

Definitions of [ED08]_; highest and mean as in [E13]_, Chapter 16 (pRb, pRc, jRb, jRc and mR), which ARX shows too.
Classes are those of equal released cells. Beside the original the same risks are taken over *candidates* instead: a
person's candidates are the released rows in which every cell may stand for the person's value. Where ranges and sets
overlap, an attacker has to reckon with all of them and not with one class.

References
----------
.. [ED08] El Emam, Dankar: Protecting Privacy Using k-Anonymity. JAMIA 15(5) (2008) 627-637.
.. [E13] El Emam: Guide to the De-Identification of Personal Health Information. CRC Press 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.candidates import Candidates, nearest_candidates, stands_for_one_value
from sfumato.attack.class_risk import highest_and_mean, mean_risk, risks_of_classes
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.attack.person_risk import person_risks

Ids = NDArray[np.int64]

PEOPLE, ROWS = "people", "rows"
"""What risks are shares of: rows, where persons may have several and nothing tells whose each released row is."""


def risks_of_candidates(found: Candidates, own_row: Ids | None) -> dict[str, Any]:
    """Risks by the number of candidates, the original being the population.

    Parameters
    ----------
    found : Candidates
    own_row : array or None
        Released row of each person, -1 for those who were left out. ``None`` where rows do not belong together one by
        one: then everybody with candidates is taken to be among them.

    Returns
    -------
    dict
        As :func:`risks_of_classes`. The prosecutor's mean is over people in the release. The marketer's share is of all
        people: who was left out, or whose own row is not a candidate because cells were changed, is not found. The
        journalist picks a released row and names one of the people whom it fits.
    """
    per_person = np.where(found.per_person > 0, 1 / np.maximum(found.per_person, 1), 0.0)
    per_row = np.where(found.per_row > 0, 1 / np.maximum(found.per_row, 1), 0.0)
    is_there = found.per_person > 0 if own_row is None else own_row != ABSENT
    return {
        "prosecutor": highest_and_mean(per_person[is_there]),
        "journalist": highest_and_mean(per_row),
        "marketer": mean_risk(per_person[is_there], len(per_person)),
    }


def reidentification_risk(tables: Correspondence, *, sample_fraction: float | None = None) -> dict[str, Any]:
    """Risks of a release against its original.

    Where a column of the original tells persons apart and some have several rows, persons are counted, see
    :mod:`sfumato.attack.person_risk`.

    Returns
    -------
    dict
        ``counted``, what the figures are shares of: ``people``, or ``rows`` where persons may have several rows and
        cannot be counted. The risks by candidates; ``by_classes`` with those that the release shows by itself, where
        ``sample_fraction`` (the share of the population that was released) counts for the journalist and the marketer;
        ``n_people`` (rows, where these are counted), ``n_released`` rows and ``n_found``, the people with a single
        candidate, which is theirs; and a ``note``. Of persons with several rows ``any_row`` and ``largest_share`` too,
        and ``by_rows``.

    Raises
    ------
    SchemaError
        If released cells cannot be read beside the original's.
    """
    by_persons = None
    if tables.persons is not None:
        by_persons = person_risks(tables, tables.persons, sample_fraction=sample_fraction)
    counted = ROWS if tables.may_repeat else PEOPLE
    by_rows = {"counted": counted, **_row_risks(tables, sample_fraction), "n_released": tables.released.n_rows}
    if by_persons is None:
        return by_rows
    return {"counted": PEOPLE, **by_persons, "n_released": tables.released.n_rows, "by_rows": by_rows}


def _row_risks(tables: Correspondence, sample_fraction: float | None) -> dict[str, Any]:
    names = tuple(name for name in tables.quasi_identifiers if tables.source_of(name) is not None)
    found, own = own_candidates(tables, names)
    return risks_of_candidates(found, own) | {
        "n_people": tables.original.n_rows,
        "n_found": n_found(found.per_person, own),
        "by_classes": risks_of_classes(tables.classes.sizes, sample_fraction=sample_fraction),
        "note": _note(tables),
    }


def own_candidates(tables: Correspondence, names: tuple[str, ...]) -> tuple[Candidates, Ids | None]:
    """Count candidates by some released columns, and tell whose own row is one of them.

    Where cells were changed, the candidates are the rows that differ least, or (with too many rows for that) those that
    do not differ. A person whose own row is not among them has none, and such a row is nobody's for the journalist.
    """
    own = tables.own_row
    if own is None or not tables.may_differ:
        return tables.candidates(names), own
    nearest = nearest_candidates([tables.column(name) for name in names], own)
    if nearest is not None:
        return nearest, own
    found = tables.candidates(names)
    people = np.flatnonzero(own != ABSENT)
    fits = np.ones(len(people), dtype=np.bool_)
    for name in names:
        fits &= tables.column(name).holds(people, own[people])
    is_own = np.zeros(tables.released.n_rows, dtype=np.bool_)
    is_own[own[people[fits]]] = True
    per_person = found.per_person.copy()
    per_person[people[~fits]] = 0
    return Candidates(per_person, np.where(is_own, found.per_row, 0)), own


def candidates_per_person(tables: Correspondence, names: tuple[str, ...]) -> tuple[Ids, Ids | None]:
    """Count the candidates of people alone, as :func:`own_candidates` does; faster by columns of few values."""
    own, columns = tables.own_row, [tables.column(name) for name in names]
    is_of_use = not (tables.may_differ and own is not None) and not all(map(stands_for_one_value, columns))
    if tables.grid is not None and is_of_use:
        found = tables.grid.per_person(columns)
        if found is not None:
            return found, own
    return own_candidates(tables, names)[0].per_person, own


def n_found(per_person: Ids, own_row: Ids | None) -> int:
    """Count the people with a single candidate, which is theirs."""
    is_single = per_person == 1
    return int(np.count_nonzero(is_single if own_row is None else is_single & (own_row != ABSENT)))


def _note(tables: Correspondence) -> str:
    if tables.is_in_pieces:
        return "values were moved within buckets: a person may be any row of a bucket that fits"
    if tables.is_flipped and tables.own_row is None:
        said = "cells were changed at random, and sorted rows do not tell whose they are"
        return f"{said}: each person counts as one of the rows that fit"
    if tables.is_flipped:
        return "cells were changed at random: a person may be one of the rows that differ least"
    if tables.is_typical and tables.own_row is not None:
        return "cells are typical of a class: a person may be one of the rows that differ least"
    if tables.own_row is None:
        return "rows cannot be matched one by one: each person counts as one of the rows that fit"
    return ""
