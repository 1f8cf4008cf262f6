"""k-map and δ-presence: how many people of a population table fit released rows, by the audit's own reading of cells.

A promise is about one table of the population. Another one, even a newer edition, is not what it is about: the number
of its people must be the one stated and, where there is a commitment to it, its bytes must be those.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Iterator

import numpy as np

from sfumato.audit.checks import GIVE_KEY, Check, Unchecked
from sfumato.audit.kinds import Evidence, Judging, judge
from sfumato.audit.original.preparation import keyed
from sfumato.audit.population_table import GivenPopulation, InPopulation, in_population
from sfumato.audit.reading.columns import AnyTable, Columns
from sfumato.audit.reading.values import HIERARCHY
from sfumato.errors import SchemaError
from sfumato.guarantees import ROUNDING, AboutPopulation, KMap, Presence
from sfumato.schema import WITHHELD, Role


def check_register(guarantee: AboutPopulation, evidence: Evidence) -> Iterator[Check | Unchecked]:
    """Whether the table of the population is the one that the promise is about."""
    given = evidence.population
    if given is None:
        return
    kind, n_people = guarantee.kind, given.table.n_rows
    said = f"{n_people:,} people, the promise is about {guarantee.people:,}"
    message = f"{kind}: the population table has {said}"
    yield Check(f"{kind}: people", n_people == guarantee.people, message, guarantee.people, n_people)
    yield from _check_lists(guarantee, given)
    yield from _check_once_each(kind, given)
    if guarantee.register:
        yield _check_commitment(guarantee, given)


def _check_lists(guarantee: AboutPopulation, given: GivenPopulation) -> Iterator[Check]:
    """Whether lists of labels can mean what they say: no value in two of them, and no value as the label of others.

    How many people fit a cell follows from these lists, which are the manifest's word. A cell that shows a value, or a
    label of its own for it, would fit all people if its list named all values.
    """
    for name in guarantee.columns:
        recoding = given.claims.recodings.get(name)
        if recoding is None or recoding.rule != HIERARCHY:
            continue
        cells = {cell for cell in Columns(given.released).coded(name).values.to_pylist() if cell is not None}
        listed = {label: set(members) for label, members in recoding.labels.items() if label in cells}
        tables = [given.table] if given.original is None else [given.table, given.original]
        values = {str(v) for t in tables for v in Columns(t).coded(recoding.column).values.to_pylist() if v is not None}
        n_values = sum(label in {*values, *members} and members != {label} for label, members in listed.items())
        n_shared = sum(map(len, listed.values())) - len(set().union(*listed.values()))
        said = "name each value once, and no value stands for others"
        if n_values or n_shared:
            said = f"name {n_shared:,} values more than once, and {n_values:,} values stand for others"
        yield Check(f"{guarantee.kind}: labels", not n_values and not n_shared, f"'{name}': its listed labels {said}")


def _check_once_each(kind: str, given: GivenPopulation) -> Iterator[Check]:
    """Whether nobody is in the population table twice, as far as a column of persons shows it."""
    known = () if given.original is None else Columns(given.original).with_role(*WITHHELD)
    register = Columns(given.table)
    for name in (name for name in known if name in register):
        n_people = len(np.unique(register.coded(name).codes))
        said = f"{n_people:,} people in {register.n_rows:,} rows of the population table, by '{name}'"
        yield Check(f"{kind}: one row a person", n_people == register.n_rows, f"{kind}: {said}")


def _check_commitment(guarantee: AboutPopulation, given: GivenPopulation) -> Check | Unchecked:
    kind = guarantee.kind
    if given.key is None or given.sha256 is None:
        said = f"whether the population table is the one that {kind} is about, which needs the key of the release"
        return Unchecked("commitment", said, GIVE_KEY)
    found = keyed(keyed(given.key, "sfumato", "commitment"), "sfumato", "population", given.sha256.lower()).hex()
    passed = hmac.compare_digest(found.encode(), guarantee.register.encode("utf-8", "replace"))
    said = "is to this population table" if passed else "is not to this population table under this key"
    return Check(f"{kind}: commitment", passed, f"{kind}: the commitment in the manifest {said}")


def check_presence(guarantee: Presence, evidence: Evidence) -> Iterator[Check | Unchecked]:
    """Whether δ-presence is defined with this table, and nobody is in the release with less than δ_min."""
    yield from check_register(guarantee, evidence)
    given, kind = evidence.population, guarantee.kind
    if given is None:
        return
    try:
        found = given.found
    except SchemaError:
        return  # said where the level is measured
    yield Check(f"{kind}: classes", found.is_disjoint, f"{kind}: {_overlap_words(found)}")
    if found.presence is not None:
        least = found.presence[0]
        message = f"{kind}: promised delta_min = {guarantee.delta_min:g}, found {least:.6g}"
        passed = least >= guarantee.delta_min - ROUNDING
        yield Check(f"{kind}: delta_min", passed, message, guarantee.delta_min, least)
    if given.original is not None:
        yield _check_included(given, given.original, kind)


def _overlap_words(found: InPopulation) -> str:
    return "nobody fits two classes of rows" if found.is_disjoint else "some people fit two classes of rows"


def _check_included(given: GivenPopulation, original: AnyTable, kind: str) -> Check:
    """Whether everybody in the original is in the population table, as far as quasi-identifiers tell."""
    recodings, released = given.claims.recodings, given.claims.names(Role.QUASI_IDENTIFIER)
    names = [recodings[name].column if name in recodings else name for name in released]
    n_without = in_population(original, given.table, columns=names).n_rows_without_people
    said = f"{n_without:,} rows of the original have values of too few people of the population table"
    message = f"{kind}: {said if n_without else 'everybody in the original is in the population table'}"
    return Check(f"{kind}: sample of the population", not n_without, message)


judge(
    KMap.kind,
    Judging(
        parameters=("k_map",),
        in_population=lambda _, found: found.k_map,
        further=check_register,
    ),
)
judge(
    Presence.kind,
    Judging(
        parameters=("delta_max", "delta_min"),
        in_population=lambda _, found: math.inf if found.presence is None else found.presence[1],
        further=check_presence,
    ),
)
