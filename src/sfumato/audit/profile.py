"""The risk profile of any table, as plain data: what a data holder looks at before choosing a mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.audit.levels.anonymity import anonymity_level, containment_level, sample_uniques, share_below
from sfumato.audit.levels.diversity import closeness_level, distinct_level, entropy_level, recursive_level
from sfumato.audit.levels.persons_at_risk import Risks, highest_of_each, largest_share, named, persons_of_classes
from sfumato.audit.reading.columns import (
    AnyTable,
    Classes,
    Columns,
    classes_without,
    group_rows,
    joint_counts,
    n_merged_spellings,
)
from sfumato.errors import NotBinaryError
from sfumato.schema import Kind, Role

RISK_LEVELS = (2, 3, 5, 10)
RECURSIVE_C = 3.0


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
    classes = group_rows(columns, quasi_identifiers)
    k, uniques = anonymity_level(classes), sample_uniques(classes)
    n_rows = max(columns.n_rows, 1)
    by_rows: dict[str, Any] = {"largest": 1 / k if k else 0.0, "mean": len(classes.sizes) / n_rows}
    persons, by_persons = _persons(columns, classes) or ({}, by_rows)
    return {
        "n_rows": columns.n_rows,
        "quasi_identifiers": list(quasi_identifiers),
        "k": k,
        "n_classes": len(classes.sizes),
        "sample_uniques": {"count": uniques, "share": uniques / n_rows},
        "share_of_rows_at_risk": {str(level): share_below(classes, level) for level in RISK_LEVELS},
        **persons,
        "reidentification_risk": by_persons,
        "sensitive": {
            name: _sensitive(columns, classes_without(columns, name), name)
            for name in columns.with_role(Role.SENSITIVE)
        },
        "target": _target(columns),
        "containment": _containment(columns, quasi_identifiers, uniques / n_rows),
    }


def _persons(columns: Columns, classes: Classes) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Figures of persons, and their risk; ``None`` where no column identifies them, or each has one row."""
    names = columns.with_role(Role.PERSON)
    if not names or columns.row_counts is not None:
        return None
    people = np.unique(columns.coded(names[0]).codes, return_inverse=True)[1]
    if int(people.max(initial=-1)) + 1 >= columns.n_rows:
        return None
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


def _sensitive(columns: Columns, classes: Classes, name: str) -> dict[str, Any]:
    joint = joint_counts(columns, classes, name)
    has_order = columns.describe(name).kind is not Kind.CATEGORICAL
    return {
        "distinct_l": distinct_level(joint),
        "entropy_l": entropy_level(joint),
        "recursive_l": {"c": RECURSIVE_C, "l": recursive_level(joint, RECURSIVE_C)},
        "t_equal": closeness_level(columns, classes, name, "equal"),
        "t_ordered": closeness_level(columns, classes, name, "ordered") if has_order else None,
        "n_merged_spellings": n_merged_spellings(columns, name),
    }


def _target(columns: Columns) -> dict[str, Any] | None:
    for name in columns.with_role(Role.TARGET):
        one_class = group_rows(columns, ())
        return {"column": name, "n_classes": len(joint_counts(columns, one_class, name).totals)}
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
