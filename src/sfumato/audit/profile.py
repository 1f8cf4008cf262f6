"""The risk profile of any table, as plain data: what a data holder looks at before choosing a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.audit.levels.anonymity import SMALLEST_CLASS, UNIQUE_CLASSES, containment_level
from sfumato.audit.levels.diversity import DISTINCT, ENTROPY, closeness, recursive_level
from sfumato.audit.levels.persons_at_risk import Risks, highest_of_each, largest_share, named, persons_of_classes
from sfumato.audit.reading.columns import AnyTable, Columns, group_rows
from sfumato.audit.reading.equivalence import classes_of_rows, n_merged_spellings
from sfumato.errors import NotBinaryError
from sfumato.schema import Kind, Role

RISK_LEVELS = (2, 3, 5, 10)
RECURSIVE_C = 3.0
ROWS_BELOW = "SELECT coalesce(sum(size) FILTER (size < $k), 0) FROM classes"


def risk_profile(table: AnyTable) -> dict[str, Any]:
    """Describe how far the rows of a table can be distinguished, and what that would give away.

    The roles come from the table's schema. Without quasi-identifiers all rows are one class. A table without rows has
    level 0, and shares and risks of 0. ``reidentification_risk`` is 1 / class size: the largest, and the mean over
    rows, which is classes / rows. ``containment`` is null unless every quasi-identifier is 0/1.

    Where a column has the role person and some persons have several rows, ``persons`` counts them: how many there are,
    ``k`` (fewest in a class), ``uniques`` (persons with a row in a class of nobody else), the share in classes of fewer
    persons than each level by their most exposed row, and the largest share of a class's rows that one of them has.
    ``reidentification_risk`` is then theirs: 1 / persons of the class at the most exposed row, largest and mean over
    persons; ``any_row``, largest and mean too, is the chance that any of several guesses is right, one in every class.
    """
    columns = Columns(table)
    quasi_identifiers = columns.with_role(Role.QUASI_IDENTIFIER)
    n_rows = max(columns.n_rows, 1)
    with classes_of_rows(columns, quasi_identifiers) as classes:
        k, uniques = int(classes.ask(SMALLEST_CLASS)), int(classes.ask(UNIQUE_CLASSES))
        n_classes = int(classes.ask("SELECT count(*) FROM classes"))
        n_below = {level: classes.ask(ROWS_BELOW, k=level) for level in RISK_LEVELS}
    by_rows: dict[str, Any] = {"largest": 1 / k if k else 0.0, "mean": n_classes / n_rows}
    persons, by_persons = _persons(columns, quasi_identifiers) or ({}, by_rows)
    return {
        "n_rows": columns.n_rows,
        "quasi_identifiers": list(quasi_identifiers),
        "k": k,
        "n_classes": n_classes,
        "sample_uniques": {"count": uniques, "share": uniques / n_rows},
        "share_of_rows_at_risk": {str(level): n / n_rows for level, n in n_below.items()},
        **persons,
        "reidentification_risk": by_persons,
        "sensitive": {
            name: _sensitive(columns, columns.quasi_identifiers_without(name), name)
            for name in columns.with_role(Role.SENSITIVE)
        },
        "target": _target(columns),
        "containment": _containment(columns, quasi_identifiers, uniques / n_rows),
    }


def _persons(columns: Columns, over: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Figures of persons, and their risk; ``None`` where no column identifies them, or each has one row."""
    names = columns.with_role(Role.PERSON)
    if not names or columns.row_counts is not None:
        return None
    people = np.unique(columns.coded(names[0]).codes, return_inverse=True)[1]
    if int(people.max(initial=-1)) + 1 >= columns.n_rows:
        return None
    classes = group_rows(columns, over)
    in_class = persons_of_classes(classes.ids, people)
    risks = highest_of_each(people, 1 / in_class[classes.ids])
    fewest = np.rint(1 / risks)
    n_unique = int((fewest == 1).sum())
    found = {
        "n_persons": len(risks),
        "k": int(in_class.min()),
        "uniques": {"count": n_unique, "share": n_unique / len(risks)},
        "share_at_risk": {str(level): float((fewest < level).mean()) for level in RISK_LEVELS},
        "largest_share_of_a_class": largest_share(classes.ids, people),
    }
    any_row = named(people, classes.ids, 1 / in_class[classes.ids])
    return {"persons": found}, {**_largest_and_mean(risks), "any_row": _largest_and_mean(any_row)}


def _largest_and_mean(risks: Risks) -> dict[str, float]:
    largest = float(risks.max())
    return {"largest": largest, "mean": min(float(risks.mean()), largest)}  # a mean of equal numbers may be rounded up


def _sensitive(columns: Columns, over: Sequence[str], name: str) -> dict[str, Any]:
    has_order, n_merged = columns.describe(name).kind is not Kind.CATEGORICAL, n_merged_spellings(columns, name)
    distances: dict[str, float | None] = {"equal": 0.0, "ordered": 0.0 if has_order else None}
    for spelled in (False, True) if n_merged else (False,):  # the larger one counts: merging values can hide a distance
        with classes_of_rows(columns, over, name, spelled=spelled) as classes:
            distances = {own: None if t is None else max(t, closeness(classes, own)) for own, t in distances.items()}
    with classes_of_rows(columns, over, name) as classes:
        return {
            "distinct_l": int(classes.ask(DISTINCT)),
            "entropy_l": classes.ask(ENTROPY),
            "recursive_l": {"c": RECURSIVE_C, "l": recursive_level(classes, RECURSIVE_C)},
            "t_equal": distances["equal"],
            "t_ordered": distances["ordered"],
            "n_merged_spellings": n_merged,
        }


def _target(columns: Columns) -> dict[str, Any] | None:
    for name in columns.with_role(Role.TARGET):
        with classes_of_rows(columns, (), name) as one_class:
            return {"column": name, "n_classes": int(one_class.ask("SELECT count(*) FROM totals"))}
    return None


def _containment(columns: Columns, quasi_identifiers: tuple[str, ...], unique_share: float) -> dict[str, Any] | None:
    """AC of the quasi-identifiers; a row whose pattern is unique is a sample unique."""
    if not quasi_identifiers:
        return None
    try:
        level = containment_level(columns, quasi_identifiers)
    except NotBinaryError:
        return None
    return {"level": level, "unique_pattern_share": unique_share}
