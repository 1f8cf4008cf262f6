"""Persons in every group: the original says whose rows they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.audit.checks import Check
from sfumato.audit.kinds import CROWD, Around, Judging, judge
from sfumato.audit.original.release_vs_original import Beside
from sfumato.audit.reading.columns import group_rows
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.persons import PersonAnonymity
from sfumato.schema import Role


def measure(guarantee: PersonAnonymity, beside: Beside) -> float:
    """Fewest persons of a group of equal released rows; 0 for a table without rows.

    Released rows are those of the original in its order, which another check compares. All rows without a person count
    as those of one.

    Raises
    ------
    SchemaError
        If a column is in neither table.
    InvalidParameterError
        If rows were left out, so that it is not known whose are released.
    """
    if len(beside.rows) != beside.released.n_rows:
        raise InvalidParameterError("rows", "the numbers differ", allowed="one released row for each original one")
    classes = group_rows(beside.released, guarantee.columns)
    persons = beside.original.coded(guarantee.person).codes[beside.rows]
    pairs = np.unique(np.column_stack([classes.ids, persons]), axis=0)
    return int(np.bincount(pairs[:, 0]).min()) if len(pairs) else 0


def check_person_promise(guarantee: PersonAnonymity, around: Around) -> Iterator[Check]:
    """Whether the column that tells persons apart is the one that the holder declared, and is not released."""
    claims, name = around.claims, guarantee.person
    sources = {recoding.column for recoding in claims.recodings.values()}
    is_shown = name in claims.names() or name in sources
    problems = [f"'{name}', which tells persons apart, is released"] if is_shown else []
    declared = around.original.with_role(Role.PERSON) if around.original is not None else ()
    if declared and name not in declared:
        problems.append(f"'{name}' is not the column that was declared to tell persons apart")
    said = "; ".join(problems) or "the column that tells persons apart is not released"
    yield Check(f"{guarantee.kind}: persons", not problems, f"{guarantee.kind}: {said}")


judge(
    PersonAnonymity.kind,
    Judging(
        form={**CROWD, "person": "text"},
        parameters=("k",),
        beside_original=measure,
        further=check_person_promise,
    ),
)
