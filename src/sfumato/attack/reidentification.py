r"""Re-identification risk of prosecutor, journalist and marketer, and the sizes of the classes behind it.

An attacker knows all quasi-identifiers of somebody.

- The *prosecutor* knows that the person is in the release: the risk of a row is :math:`1/f_j`, where :math:`f_j` is the
  number of released rows in its class :math:`j`.
- The *journalist* does not, and wants to name anybody: the risk is :math:`1/F_j`, where :math:`F_j` is the number of
  people in the population who would be in that class.
- The *marketer* wants to name as many as possible, and counts the share that comes out right.

Definitions of [ED08]_; highest and mean as in [E13]_, Chapter 16 (pRb, pRc, jRb, jRc and mR), which ARX shows too.
Classes are those of equal released cells. Beside the original the same risks are taken over *candidates* instead: a
person's candidates are the released rows in which every cell may stand for the person's value. Where ranges and sets
overlap, an attacker has to reckon with all of them and not with one class.

References
----------
.. [ED08] El Emam, Dankar: Protecting Privacy Using k-Anonymity. JAMIA 15(5) (2008) 627-637.
.. [E13] El Emam: Guide to the De-Identification of Personal Health Information. CRC Press 2013.
.. [BF98] Benedetti, Franconi: Statistical and technological solutions for controlled data dissemination. NTTS 1998.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import hyp2f1

from sfumato.attack.candidates import Candidates, nearest_candidates, stands_for_one_value
from sfumato.attack.correspondence import ABSENT, Correspondence
from sfumato.errors import InvalidParameterError

Ids = NDArray[np.int64]
Risks = NDArray[np.float64]

CLASS_SIZES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 49), (50, None))
"""From and to, for the distribution of class sizes."""

_DECIMALS = 12
_FEW = 50  # with larger parameters the library's function gives up, and so many terms of the series are exact


def class_size_distribution(sizes: ArrayLike) -> list[dict[str, int | None]]:
    """Count the rows and classes by the size of the class.

    Examples
    --------
    >>> class_size_distribution([1, 3, 4])[:2]
    [{'from': 1, 'to': 1, 'n_rows': 1, 'n_classes': 1}, {'from': 2, 'to': 4, 'n_rows': 7, 'n_classes': 2}]
    """
    counts = np.asarray(sizes, dtype=np.int64)
    found: list[dict[str, int | None]] = []
    for low, high in CLASS_SIZES:
        inside = counts[(counts >= low) & (counts <= (high if high is not None else counts.max(initial=low)))]
        found.append({"from": low, "to": high, "n_rows": int(inside.sum()), "n_classes": len(inside)})
    return found


def risks_of_classes(
    sizes: ArrayLike, population_sizes: ArrayLike | None = None, *, sample_fraction: float | None = None
) -> dict[str, Any]:
    r"""Risks by the sizes of classes alone.

    Parameters
    ----------
    sizes : array_like of int
        Released rows of each class, :math:`f_j`.
    population_sizes : array_like of int or None
        People of the population in each class, :math:`F_j \ge f_j`. ``None`` takes the release for the population.
    sample_fraction : float or None
        Instead of the sizes, the share of the population that was released. :math:`F_j` is then unknown, and
        :math:`E[1/F_j \mid f_j]` takes the place of :math:`1/F_j`, see :func:`expected_inverse_population_size`.

    Returns
    -------
    dict
        ``prosecutor`` and ``journalist`` with ``highest`` and ``mean`` (over released rows), and ``marketer``: the
        share of rows expected to be named rightly when each is given one of the population's people in its class.

    Examples
    --------
    >>> found = risks_of_classes([1, 3], [2, 6])
    >>> found["prosecutor"], found["marketer"]
    ({'highest': 1.0, 'mean': 0.5}, 0.25)
    >>> found["journalist"]
    {'highest': 0.5, 'mean': 0.25}
    """
    released = np.asarray(sizes, dtype=np.int64)
    if (released < 1).any():
        raise InvalidParameterError("sizes", "some are not", allowed="at least 1")
    if sample_fraction is not None:
        inverse = expected_inverse_population_size(released, sample_fraction)
    else:
        inverse = 1 / _checked_population(released, population_sizes)
    journalist = _highest_and_mean(np.repeat(inverse, released))
    return {
        "prosecutor": _highest_and_mean(np.repeat(1 / released, released)),
        "journalist": journalist,
        "marketer": journalist["mean"],
    }


def _checked_population(released: Ids, population_sizes: ArrayLike | None) -> Ids:
    if population_sizes is None:
        return released
    population = np.asarray(population_sizes, dtype=np.int64)
    if population.shape != released.shape or (population < released).any():
        allowed = "one for each class, none below the released rows"
        raise InvalidParameterError("population_sizes", "they are not", allowed=allowed)
    return population


def expected_inverse_population_size(sizes: ArrayLike, sample_fraction: float) -> Risks:
    r"""Risk :math:`E[1/F \mid f]` of a row whose class has f rows in a sample of a known fraction p.

    With a negative binomial F, as in [BF98]_ and mu-Argus:
    :math:`\sum_{F \ge f} \binom{F-1}{f-1} p^f (1-p)^{F-f} / F = (p/f)\; {}_2F_1(1, 1; f + 1; 1 - p)`. For p = 1 it is
    1/f. It is above p/f: a class that is small in the sample may be small in the population.

    Raises
    ------
    InvalidParameterError
        If the fraction is not above 0 and at most 1.

    Examples
    --------
    >>> expected_inverse_population_size([1, 2], 0.5).round(3).tolist()
    [0.693, 0.307]
    """
    if isinstance(sample_fraction, bool) or not 0 < sample_fraction <= 1:
        problem = f"got {sample_fraction!r}"
        raise InvalidParameterError("sample_fraction", problem, allowed="a number above 0 and at most 1")
    counts, rest = np.asarray(sizes, dtype=np.float64), 1 - sample_fraction
    few = hyp2f1(1.0, 1.0, np.minimum(counts, _FEW) + 1, rest)
    many, term = np.ones_like(counts), np.ones_like(counts)
    for n in range(_FEW):
        term = term * (n + 1) * rest / (np.maximum(counts, _FEW) + 1 + n)
        many = many + term
    return np.asarray(sample_fraction / counts * np.where(counts <= _FEW, few, many), dtype=np.float64)


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
        "prosecutor": _highest_and_mean(per_person[is_there]),
        "journalist": _highest_and_mean(per_row),
        "marketer": round(float(per_person[is_there].sum() / max(len(per_person), 1)), _DECIMALS),
    }


def reidentification_risk(tables: Correspondence, *, sample_fraction: float | None = None) -> dict[str, Any]:
    """Risks of a release against its original.

    Returns
    -------
    dict
        The risks by candidates; ``by_classes`` with those that the release shows by itself, where ``sample_fraction``
        (the share of the population that was released) counts for the journalist and the marketer; ``n_people``,
        ``n_released`` and ``n_found``, the people with a single candidate, which is theirs; and a ``note``.

    Raises
    ------
    SchemaError
        If released cells cannot be read beside the original's.
    """
    names = tuple(name for name in tables.quasi_identifiers if tables.source_of(name) is not None)
    found, own = own_candidates(tables, names)
    risks = risks_of_candidates(found, own)
    sizes = tables.classes.sizes
    return risks | {
        "n_people": tables.original.n_rows,
        "n_released": tables.released.n_rows,
        "n_found": n_found(found.per_person, own),
        "by_classes": risks_of_classes(sizes, sample_fraction=sample_fraction),
        "note": _note(tables),
    }


def own_candidates(tables: Correspondence, names: tuple[str, ...]) -> tuple[Candidates, Ids | None]:
    """Count candidates by some released columns, and tell whose own row is one of them.

    Where cells were changed, the candidates are the rows that differ least, or (with too many rows for that) those that
    do not differ. A person whose own row is not among them has none, and such a row is nobody's for the journalist.
    """
    own = tables.own_row
    if own is None or not tables.is_flipped:
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
    is_of_use = not (tables.is_flipped and own is not None) and not all(map(stands_for_one_value, columns))
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
    if tables.own_row is None:
        return "rows cannot be matched one by one: each person counts as one of the rows that fit"
    return ""


def _highest_and_mean(risks: Risks) -> dict[str, float]:
    if not len(risks):
        return {"highest": 0.0, "mean": 0.0}
    return {"highest": float(risks.max()), "mean": round(float(risks.mean()), _DECIMALS)}
