"""Persons of every class of rows that are not in memory: counted over all rows, by the cells as they were read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.progress import Progress
from sfumato.rows.database import batches_in_database
from sfumato.rows.out_of_core import LargeTable
from sfumato.table.weighted import CountedTable, OutlinedTable

Counts = NDArray[np.int64]
Find = Callable[[Sequence[NDArray[np.int32]]], NDArray[np.intp]]


def fewest_persons(
    rows: OutlinedTable,
    person: str,
    cells: CountedTable,
    classes: Counts,
    find: Find,
    memory: int,
    progress: Progress | None = None,
) -> int:
    """Count the persons of every class of rows, and give the fewest; 0 if there is no class.

    Parameters
    ----------
    cells : CountedTable
        Distinct rows, without persons.
    classes : int64 array
        Class of each distinct row, -1 for those of none.
    find : callable
        Gives the distinct row of each row of a block.
    """
    if not (classes >= 0).any():
        return 0
    if not isinstance(rows, LargeTable):
        from sfumato.counting.spark import fewest_persons_on_cluster  # Spark is there only where it is asked for

        cluster: Any = rows  # the only other home
        return fewest_persons_on_cluster(cluster, person, cells, classes)
    stored, counted = rows.stored_type(person), cells.together

    def in_classes() -> Iterator[pa.RecordBatch]:
        for block in rows.blocks([*counted, person], progress=progress):
            own = classes[find([np.asarray(block[name]) for name in counted])]
            kept = own >= 0
            persons = pa.array(block[person], stored).filter(pa.array(kept))
            yield pa.record_batch([persons, pa.array(own[kept], pa.int64())], names=["person", "class"])

    schema = pa.schema([("person", stored), ("class", pa.int64())])
    with batches_in_database(schema, in_classes(), memory, rows.place) as (_, every):
        in_each = every.unique("class, person").aggregate("count(*) AS n", "class")
        found = in_each.aggregate("min(n) AS n").to_arrow_table()
    return int(found.column("n")[0].as_py())
