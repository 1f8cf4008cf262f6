"""Whether the labels in a released file are those of the original's codebook: a label is a text that is free."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.checks import Check, listed
from sfumato.audit.claims import Claims
from sfumato.table.coding import Source

NAME = "labels"
HOLD_LABELS = ("sav", "zsav", "dta", "xpt")


def check_labels(source: Source | None, claims: Claims) -> Iterator[Check]:
    """Compare the stated labels with those of the file that the release was made of.

    The label of a column may be cut at its end, where a format cannot hold all of it. Codes and labels of values must
    be the original's, one for one.
    """
    labelled = [column for column in claims.columns if column.label is not None or column.value_labels]
    if not labelled:
        return
    if claims.output_format not in HOLD_LABELS:
        yield Check(
            NAME, False, "the manifest states labels of columns or values, which a file of this format cannot hold"
        )
        return
    wrong = []
    for column in labelled:
        own = None if source is None else source.labels.get(column.name)
        is_own = own is not None and (column.label is None or (own.label or "").startswith(column.label))
        if own is None or not is_own or not set(column.value_labels) <= set(own.values):
            wrong.append(column.name)
    said = f"the labels of {len(labelled):,} columns are those of the original"
    if wrong:
        said = f"labels of {listed(wrong)} are not those of the original"
    yield Check(NAME, not wrong, said)
