"""What cannot be counted together, said in words: columns with too many values, and too many combinations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError, SchemaError
from sfumato.table.coding import Table
from sfumato.table.weighted import OpenColumn

_MOST_PAIRS = 10**7


class TooManyCellsError(InputError):
    """There are more distinct rows than fit in memory."""


def too_many_cells(names: Sequence[str], most: int, place: str) -> TooManyCellsError:
    """Error for columns of which there are more combinations than fit."""
    listed = ", ".join(f"'{name}'" for name in names)
    problem = (
        f"the columns {listed} have more than {most:,} distinct combinations, "
        "which is all that fits in the memory given"
    )
    hint = "take fewer quasi-identifiers, coarser values in the file, or more memory"
    return TooManyCellsError(problem, path=place, hint=hint, remedy=("memory",))


def refuse_open(outline: Table, names: Sequence[str]) -> None:
    """Refuse columns whose distinct values are too many to be listed."""
    for name in names:
        if isinstance(outline[name], OpenColumn):
            problem = f"has too many distinct values for a column with the role {outline.schema[name].role}"
            hint = "round or group its values in the file first, or give it the role other or identifier"
            raise SchemaError(problem, column=name, hint=hint)


def no_pairs(outline: Table, name: str, second: str) -> NDArray[np.int64]:
    """Begin to count the values of two columns two by two, all 0; refused where there would be too many."""
    shape = outline[name].n_distinct, outline[second].n_distinct
    if shape[0] * shape[1] > _MOST_PAIRS:
        problem = f"has too many distinct values to be counted with those of '{name}'"
        hint = "round or group its values in the file first, or give it the role other"
        raise SchemaError(problem, column=second, hint=hint)
    return np.zeros(shape, dtype=np.int64)
