"""What is to be released of a table on a cluster: searched on the driver over distinct rows, written by the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.cluster.counting import count_on_cluster
from sfumato.cluster.frames import Frame, type_name
from sfumato.cluster.table import ClusterTable
from sfumato.contract import Needs, Progress, Release, needs_of
from sfumato.errors import InvalidParameterError
from sfumato.large.cells import CellMechanism, columns_to_count, release_of_cells
from sfumato.large.memory import Memory
from sfumato.large.proposal import names_but_identifiers
from sfumato.mechanisms import mechanisms_in_need_of
from sfumato.table.coding import CodedColumn
from sfumato.table.weighted import CountedTable

MOST_BYTES_BESIDE = 2**24
"""Labels that take more beside the distinct rows, such as long sets, are sent to the workers once each."""


@dataclass(frozen=True, repr=False, eq=False)
class ClusterProposal:
    """Rows that are released as the distinct rows they are equal to.

    Parameters
    ----------
    original : ClusterTable
    release : Release
        Its manifest describes all columns that are to be written; its table holds the distinct rows that are released.
    """

    original: ClusterTable
    release: Release
    _cells: CountedTable
    _is_released: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.original!r}, {self.release.manifest.mechanism['name']})"

    def frame(self) -> Frame:
        """Released rows as a frame of Spark; nothing is computed before it is written."""
        from pyspark.sql import functions as sf

        counted, released = self._cells.together, self.release.table.columns  # type: ignore[union-attr]
        names = names_but_identifiers(self.original.schema)
        as_they_are = [name for name in names if name not in released]
        codes = [(n, pa.array(np.arange(self._cells[n].n_distinct, dtype=np.int32))) for n in counted]
        rows = self.original.rows([*codes, *((name, None) for name in as_they_are)])
        keys = [f"c{i}" for i in range(len(counted))]
        recoded = {name: f"l{i}" for i, name in enumerate(names) if name in released}
        far = {label for name, label in recoded.items() if _bytes_beside(released[name]) > MOST_BYTES_BESIDE}
        frame = rows.join(sf.broadcast(self._released_cells(recoded, far)), keys, "inner")
        for name, label in recoded.items():
            frame = self._labelled(frame, label, released[name]) if label in far else frame
        cells = recoded | {name: f"c{len(counted) + i}" for i, name in enumerate(as_they_are)}
        return frame.select(*(sf.col(cells[name]).alias(name, metadata={}) for name in names))

    def _released_cells(self, recoded: dict[str, str], far: set[str]) -> Frame:
        """Codes of the distinct rows that are released, beside their labels, or the codes of those that are far."""
        released = self.release.table.columns  # type: ignore[union-attr]
        columns = {
            f"c{i}": pa.array(self._cells[n].codes[self._is_released], pa.int32())
            for i, n in enumerate(self._cells.together)
        }
        for name, label in recoded.items():
            codes = pa.array(released[name].codes, pa.int32())
            columns |= {f"{label}_code": codes} if label in far else {label: released[name].values.take(codes)}
        schema = ", ".join(f"{name} {type_name(column.type)}" for name, column in columns.items())
        return self.original.session.createDataFrame(pa.table(columns), schema=schema)

    def _labelled(self, frame: Frame, label: str, column: CodedColumn) -> Frame:
        from pyspark.sql import functions as sf

        labels = pa.table({f"{label}_code": pa.array(np.arange(column.n_distinct), pa.int32()), label: column.values})
        schema = f"{label}_code int, {label} {type_name(column.values.type)}"
        return frame.join(sf.broadcast(self.original.session.createDataFrame(labels, schema=schema)), f"{label}_code")


def _bytes_beside(column: CodedColumn) -> int:
    """Bytes of a column's labels if each stands beside all of its distinct rows."""
    if not pa.types.is_string(column.values.type):
        return 0
    lengths = pc.binary_length(column.values).fill_null(0).to_numpy()
    return int(lengths @ np.bincount(column.codes, minlength=len(lengths)))


def check_able_on_cluster(mechanism: object) -> CellMechanism:
    """Refuse a mechanism that cannot do with counts of distinct rows."""
    if needs_of(mechanism) is not Needs.COUNTS:
        allowed = f"{' or '.join(mechanisms_in_need_of(Needs.COUNTS))}, which need no more than counts"
        raise InvalidParameterError("a mechanism on a cluster", "got another", allowed=allowed)
    return cast("CellMechanism", mechanism)


def propose_on_cluster(
    table: ClusterTable, mechanism: object, memory: Memory, *, progress: Progress | None = None
) -> ClusterProposal:
    """Let a cluster count the distinct rows of a table, and find out on the driver what a mechanism releases of them.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot do with counts of distinct rows.
    SchemaError
        If there is no quasi-identifier, or one has too many values.
    InputError
        If there are more distinct rows than fit in the memory.
    PrivacyNotAchievableError
        If the mechanism cannot keep its promise.
    ClusterError
        If the cluster cannot do it.
    """
    recoder = check_able_on_cluster(mechanism)
    names = columns_to_count(recoder, table.schema)
    if progress is not None:
        progress(0, table.n_rows, f"{table.n_rows:,} rows are counted by the cluster")
    beside, most = recoder.counted_beside(table.schema), memory.most_cells(len(names))
    cells = count_on_cluster(table, names, beside=beside, most_cells=most)
    release, is_released = release_of_cells(recoder, cells, table.schema, progress)
    return ClusterProposal(table, release, cells, is_released)
