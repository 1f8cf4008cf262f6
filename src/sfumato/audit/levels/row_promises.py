"""Promises that count rows, where several rows are one person's: each is counted by persons as well.

k rows are k people only if each person has one. Who declares a column that identifies persons asks about people, and
so does a manifest that names one. A promise by rows that also holds by persons passes. One that does not is true of
rows, and is the exception ``persons`` with the level that holds of people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.audit.checks import GIVE_ORIGINAL, Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.kinds import JUDGED, UndecidableError
from sfumato.audit.levels.persons import level_by_persons, released_rows
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Columns
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees import DifferentialPrivacy, Guarantee, KAnonymity, KMap, LDiversity, PrivacyGain, UniquePatterns
from sfumato.schema import Role

Level = Callable[[Guarantee], float]

NAME = "persons"
NOT_OF_ROWS = frozenset({KMap.kind, PrivacyGain.kind})
"""Promises that no number of released rows makes larger: people of a population, and entropies of what was dropped."""


def person_column(claims: Claims, original: Columns | None) -> str | None:
    """Column that identifies persons: as the holder of the original declared it, or else as the manifest says."""
    declared = original.with_role(Role.PERSON) if original is not None else ()  # which no column is by default
    stated = [promise.guarantee.unit for promise in claims.promises if promise.guarantee.by_persons]
    stated += [claims.persons.column] if claims.persons is not None else []
    return next((name for name in (*declared, *stated) if name), None)


def promises_of_rows(claims: Claims, person: str) -> list[Guarantee]:
    """Promises that count rows, and which no promise by persons of at least the same level goes with."""
    every = [promise.guarantee for promise in claims.promises]
    of_rows = [own for own in every if not own.by_persons and own.kind not in NOT_OF_ROWS]
    return [own for own in of_rows if not any(_implies(other, own, person) for other in every)]


def _implies(stated: Guarantee, guarantee: Guarantee, person: str) -> bool:
    """Whether a promise that was made says that another one also holds by persons.

    Rows of k persons with two different values have two values of two persons, whatever person has which.
    """
    wanted = by_persons(guarantee, person)
    if wanted is None or stated.unit != person:
        return False
    if isinstance(stated, KAnonymity) and set(wanted.columns) <= set(stated.over):
        if isinstance(wanted, KAnonymity):
            return stated.k >= wanted.k
        if isinstance(wanted, LDiversity) and wanted.variant == "distinct" and wanted.l <= 2:
            return True
    return _covers(stated, wanted)


def by_persons(guarantee: Guarantee, person: str) -> Guarantee | None:
    """Give the same promise counted by persons; ``None`` where there is none."""
    if not guarantee.counts_persons:
        return None
    over: dict[str, Any] = {}
    if getattr(guarantee, "protected", ()):
        over = {"columns": getattr(guarantee, "protected", ()), "protected": ()}
    return replace(guarantee, unit=person, **over)


def _covers(stated: Guarantee, wanted: Guarantee) -> bool:
    """Whether a promise is another one, or that with a level at least as safe."""
    if stated.kind != wanted.kind:
        return False
    name = wanted.level.name
    is_same = replace(stated, **{name: getattr(wanted, name)}) == wanted
    return is_same and wanted.is_met_by(getattr(stated, name))


def check_row_promises(
    claims: Claims, original: Columns | None, pair: ReleaseVsOriginal | None
) -> Iterator[Check | Unchecked]:
    """Count by persons what is promised of rows, if some persons have several.

    Where the original was not given, or rows cannot be compared with it, it is only said that rows were counted.
    """
    person = person_column(claims, original)
    if person is None or not (of_rows := promises_of_rows(claims, person)):
        return
    if original is None:
        if claims.persons is None or claims.persons.column != person:
            yield from (said_without_original(own, person) for own in of_rows)
        return
    if person not in original:
        return  # said where the promise that names it is judged
    persons = original.coded(person).codes
    persons = persons if pair is None else persons[pair.rows]
    most = int(np.bincount(persons).max(initial=0))
    if most > 1:
        yield from (said_of_rows(own, person, most, _level_of(own, pair, person)) for own in of_rows)


def said_without_original(guarantee: Guarantee, person: str) -> Unchecked:
    """Say that rows were counted where the manifest itself names a column of persons."""
    said = f"{guarantee.kind} counts rows, and the manifest tells persons apart ('{person}'), who may have several"
    return Unchecked(NAME, said, GIVE_ORIGINAL)


def said_of_rows(
    guarantee: Guarantee, person: str, most: int | None, level: Level | None, remedy: str = ""
) -> Check | Unchecked:
    """Say whether a promise by rows also holds by persons, some of whom have several rows.

    Parameters
    ----------
    most : int or None
        Rows of the person who has most, if that is known.
    level : callable or None
        Measures the promise that counts persons; ``None``: it cannot be measured.
    remedy : str
        What makes it possible to measure it.
    """
    kind, own = guarantee.kind, by_persons(guarantee, person) or guarantee
    counts = f"{kind} counts rows, and some persons ('{person}') have several"
    if isinstance(guarantee, DifferentialPrivacy):
        times = f"up to {most:,} times as large" if most is not None else "larger"
        said = f"{kind} is about one row, and some persons ('{person}') have several: for a person ε is {times}"
        return Unchecked(NAME, said)
    if level is None:
        return Unchecked(NAME, f"{counts}. By persons it was not measured: nothing is known of people", remedy)
    name, at_least = guarantee.level.name, ""
    promised = getattr(guarantee, name)
    try:
        found = level(own)
    except UndecidableError as exc:
        if not guarantee.is_met_by(exc.at_least):
            return Unchecked(NAME, f"{counts}. By persons it was not measured: {exc}", exc.remedy)
        found, at_least = exc.at_least, "at least "
    except (SchemaError, InvalidParameterError) as exc:
        return Unchecked(NAME, f"{counts}. By persons it was not measured: {str(exc).removesuffix('.')}", remedy)
    if guarantee.is_met_by(found):
        said = f"{counts}; counted by persons it holds too: promised {name} = {promised:g}, found {at_least}{found:.6g}"
        return Check(f"{kind}: by persons", True, said, promised, found)
    return Unchecked(NAME, f"{counts}. Counted by persons, {name} = {found:.6g}; promised is {promised:g}")


def _level_of(guarantee: Guarantee, pair: ReleaseVsOriginal | None, person: str) -> Level | None:
    """How a promise is counted by persons, by the original; ``None`` where it cannot be."""
    if pair is None:
        return None
    if isinstance(guarantee, UniquePatterns):
        return lambda own: share_of_one_person(own.columns, pair, person)
    if not guarantee.counts_persons or guarantee.kind not in JUDGED:
        return None
    if getattr(guarantee, "sensitive", None) in pair.claims.recodings:
        return None  # by persons the values of the original are counted, not coarser cells
    return lambda own: level_by_persons(own, pair)


def share_of_one_person(columns: tuple[str, ...], pair: ReleaseVsOriginal, person: str) -> float:
    """Share of the released rows whose values only rows of one person have; 1 for a table without rows."""
    try:
        rows = released_rows(columns, pair)
    except UndecidableError as exc:
        raise UndecidableError(str(exc), at_least=1) from None  # the largest share is the worst
    persons = pair.original.coded(person).codes[rows.places]
    pairs, n_rows = np.unique(np.column_stack([rows.groups, persons]), axis=0, return_counts=True)
    is_alone = np.bincount(pairs[:, 0])[pairs[:, 0]] == 1
    return float(n_rows[is_alone].sum() / n_rows.sum()) if len(n_rows) else 1.0
