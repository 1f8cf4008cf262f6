"""Persons in every group: the original says whose rows they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.checks import Check
from sfumato.audit.kinds import CROWD, Around, Judging, NotToldError, judge
from sfumato.audit.original.assignment import Pairs, TooManyPairsError
from sfumato.audit.original.cell_rules import CellRule, FittingRule, cell_rules, codes_of
from sfumato.audit.original.release_vs_original import Beside
from sfumato.audit.reading.columns import Classes, group_rows
from sfumato.errors import InvalidParameterError
from sfumato.guarantees.persons import PersonAnonymity
from sfumato.schema import Role

Ids = NDArray[np.int64]
_NO_CELL = -1


def measure(guarantee: PersonAnonymity, beside: Beside) -> float:
    """Fewest persons of a group of equal released rows; 0 for a table without rows.

    Where every row is released in the order of the original, which another check compares, rows tell whose they are.
    Else the rows of a group are all rows of the original that fit its cells, if each fits one group only and none of
    them is missing. All rows without a person count as those of one.

    Raises
    ------
    SchemaError
        If a column is in neither table.
    InvalidParameterError
        If it cannot be known whose rows a group holds.
    NotToldError
        If sorted rows do not tell it: some original rows fit several groups.
    """
    persons = beside.original.coded(guarantee.person).codes[beside.rows]
    classes = group_rows(beside.released, guarantee.columns)
    if not beside.knows_rows:
        of_row = None if beside.fitting is None else beside.fitting.group_of_originals(classes.ids)
        if of_row is None:
            problem = "rows are sorted, and some original rows fit several groups"
            raise NotToldError(problem, _fewest_persons(beside.fitting, classes, persons))
        _require_whole(of_row, classes.sizes)
        persons, of_row = persons[of_row >= 0], of_row[of_row >= 0]
    elif len(beside.rows) == beside.released.n_rows:
        of_row = classes.ids
    else:
        of_row = _groups_that_fit(guarantee, beside, classes.ids)
        _require_whole(of_row, classes.sizes)
        persons, of_row = persons[of_row >= 0], of_row[of_row >= 0]
    pairs = np.unique(np.column_stack([of_row, persons]), axis=0)
    return int(np.bincount(pairs[:, 0]).min()) if len(pairs) else 0


def _fewest_persons(fitting: Pairs | None, classes: Classes, persons: NDArray[np.int32]) -> int:
    """Fewest persons that a group can have: those with the most rows that fit it, until it is full; 0 if unknown."""
    if fitting is None:
        return 0
    try:
        groups, rows = fitting.rows_of_groups(classes.ids)
    except TooManyPairsError:
        return 0
    pairs, n_rows = np.unique(np.column_stack([groups, persons[rows]]), axis=0, return_counts=True)
    order = np.lexsort((-n_rows, pairs[:, 0]))
    of_group, n_rows = pairs[order, 0], n_rows[order]
    starts = np.searchsorted(of_group, np.arange(len(classes.sizes)))
    before = np.cumsum(n_rows) - n_rows
    filled = before - before[np.minimum(starts, len(before) - 1)][of_group]
    needed = np.bincount(of_group[filled < classes.sizes[of_group]], minlength=len(classes.sizes))
    return int(needed.min(initial=len(persons)))


def _require_whole(of_row: Ids, sizes: Ids) -> None:
    if not np.array_equal(np.bincount(of_row[of_row >= 0], minlength=len(sizes)), sizes):
        problem = "some rows of a group were left out, and others not"
        raise InvalidParameterError("rows", problem, allowed="released or left out group by group")


def _groups_that_fit(guarantee: PersonAnonymity, beside: Beside, of_released: Ids) -> Ids:
    """Group of released rows whose cells each offered row of the original fits; -1 where there is none."""
    rules = {rule.name: rule for rule in cell_rules(beside.released, beside.original, beside.claims, beside.read)}
    width = len(guarantee.columns)
    released = np.zeros((len(of_released), width), dtype=np.int64)
    fitting = np.zeros((len(beside.rows), width), dtype=np.int64)
    for i, name in enumerate(guarantee.columns):
        rule, cells = rules[name], codes_of(beside.released, name)
        released[:, i] = cells if isinstance(rule, FittingRule) else rule.found[cells]
        fitting[:, i] = _cell_of_value(rule)[codes_of(beside.original, rule.column)[beside.rows]]
    both = np.concatenate([released, fitting])
    numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    group_of = np.full(int(numbers.max(initial=-1)) + 1, _NO_CELL)
    group_of[numbers[: len(released)]] = of_released
    return np.asarray(group_of[numbers[len(released) :]])


def _cell_of_value(rule: CellRule) -> Ids:
    """Released cell that each value of the original fits, where it fits one only; -1 where none does."""
    if rule.problem:
        raise InvalidParameterError("cells", f"'{rule.name}' {rule.problem}", allowed="those of the original")
    if not isinstance(rule, FittingRule) or rule.read is None:
        return np.asarray(rule.expected, dtype=np.int64)
    read = rule.read
    at_place = np.full(read.n_places + 1, _NO_CELL)
    for cell, start, stop in zip(read.cells.tolist(), read.starts.tolist(), read.stops.tolist(), strict=True):
        if (at_place[start:stop] != _NO_CELL).any():
            problem = f"cells of '{rule.name}' overlap, and rows were left out"
            raise InvalidParameterError("cells", problem, allowed="such that each value fits one of them")
        at_place[start:stop] = cell
    return np.asarray(at_place[read.places], dtype=np.int64)


def check_person_promise(guarantee: PersonAnonymity, around: Around) -> Iterator[Check]:
    """Whether the column that tells persons apart is the one that the holder declared, and is not released."""
    claims, name = around.claims, guarantee.person
    sources = {recoding.column for recoding in claims.recodings.values()}
    is_shown = name in claims.names() or name in sources
    problems = [f"'{name}', which tells persons apart, is released"] if is_shown else []
    declared = around.original.with_role(Role.PERSON) if around.original is not None else ()
    if (declared or around.has_roles) and name not in declared:
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
