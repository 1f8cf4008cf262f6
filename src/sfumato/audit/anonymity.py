"""k-anonymity: how many rows share a row's values."""

from __future__ import annotations

from sfumato.audit.columns import AnyTable, Columns
from sfumato.audit.counting import Classes, group_rows
from sfumato.audit.kinds import CROWD, LEFT_OUT, Judging, judge
from sfumato.guarantees import KAnonymity, UniquePatterns


def anonymity_level(classes: Classes) -> int:
    """Size of the smallest class; 0 for a table without rows, which keeps no promise."""
    return int(classes.sizes.min()) if len(classes.sizes) else 0


def sample_uniques(classes: Classes) -> int:
    """Count the rows that share their values with no other row."""
    return int((classes.sizes == 1).sum())


def rows_below(classes: Classes, k: int) -> int:
    """Count the rows in classes smaller than k."""
    return int(classes.sizes[classes.sizes < k].sum())


def share_below(classes: Classes, k: int) -> float:
    """Share of the rows in classes smaller than k, from 0 to 1; 0 for a table without rows."""
    return rows_below(classes, k) / max(int(classes.sizes.sum()), 1)


def measure(guarantee: KAnonymity, released: AnyTable) -> float:
    """Largest k that holds on the guarantee's columns; no columns gives the number of rows."""
    return anonymity_level(group_rows(Columns(released), guarantee.over))


def measure_uniques(guarantee: UniquePatterns, released: AnyTable) -> float:
    """Share of the rows that are unique on the guarantee's columns; 1 for a table without rows, which keeps nothing."""
    classes = group_rows(Columns(released), guarantee.columns)
    return sample_uniques(classes) / int(classes.sizes.sum()) if len(classes.ids) else 1.0


judge(
    KAnonymity.kind,
    Judging(form={**CROWD, **LEFT_OUT}, parameters=("k",), on_release=measure, by_counts=True),
)
judge(
    UniquePatterns.kind,
    Judging(
        form={"max_unique_fraction": "share", "columns": ["text"]},
        parameters=("max_unique_fraction",),
        on_release=measure_uniques,
        by_counts=True,
    ),
)
