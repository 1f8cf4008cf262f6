"""Counting on a Spark cluster, by the same expressions as on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import pyarrow as pa

from sfumato.cluster.frames import exact_settings, numbered_columns, parquet_frame
from sfumato.cluster.watching import watching
from sfumato.counting.engine import Countable, Engine
from sfumato.counting.files import is_path
from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.coding import Table
from sfumato.table.parquet_folder import StoredParquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkEngine(Engine):
    """Counts by a Spark cluster, for every function of :mod:`sfumato.counting` that takes an engine.

    Sources are Spark DataFrames of the session, and paths of Parquet files (or of folders of such) that driver and
    workers see under the same path. Only the counts come to the driver.

    Parameters
    ----------
    session : SparkSession
        From :func:`sfumato.cluster.session.spark_session`, or the caller's own. It stays the caller's to stop.

    Notes
    -----
    Codes and counts are those of DuckDB, bit for bit. So are the types of the values, but for those that Spark does not
    have: whole numbers without a sign become wider ones, moments are in microseconds, and a column of missing values
    alone is one of texts. Moments in nanoseconds or in other time zones than UTC and times of day are refused.

    Examples
    --------
    ::

        with spark_session("spark://node1:7077") as session:
            cells = cell_table("stays.parquet", ["age", "sex"], SparkEngine(session))
    """

    def __init__(self, session: SparkSession) -> None:  # no DuckDB is opened
        self._session = session

    def close(self) -> None:
        """Do nothing: the session is the caller's."""

    def frame(self, source: Countable, columns: Sequence[str] | None = None) -> nw.LazyFrame[Any]:
        """Open a source as a lazy frame under its own column names.

        Parameters
        ----------
        source : path or Spark DataFrame
        columns : sequence of str or None
            Only these columns; ``None`` gives all.
        """
        wanted = list(self._open(source, None)[0] if columns is None else columns)
        opened = self.keys(source, wanted)
        return opened.select(*(nw.col(f"c{i}").alias(name) for i, name in enumerate(wanted)))

    def collect(self, frame: nw.LazyFrame[Any]) -> pa.Table:
        """Run a query on the cluster and return its result as an Arrow table.

        Raises
        ------
        InputError
            If the cluster cannot read the rows, or texts are not UTF-8.
        ClusterError
            If it fails, or is lost.
        """
        with watching(self._session), exact_settings(self._session):
            found = frame.collect().to_arrow()
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            problem = "the cluster has read texts that are not UTF-8"
            raise InputError(problem, hint="write the table anew in UTF-8") from None
        return found

    def _open(self, source: Countable, columns: Sequence[str] | None) -> tuple[Sequence[str], nw.LazyFrame[Any]]:
        if isinstance(source, Table | pa.Table):
            hint = "what is in memory is counted there: leave the engine out"
            allowed = "a Spark DataFrame or the path of Parquet files"
            raise InvalidParameterError("source", "got a table in memory", allowed=allowed, hint=hint)
        with watching(self._session), exact_settings(self._session):
            rows = self._read(Path(source)) if is_path(source) else source
            return rows.columns, nw.from_native(numbered_columns(rows)).lazy()

    def _read(self, path: Path) -> Any:
        if not path.exists():
            raise InputError(problem="does not exist", path=path)
        return parquet_frame(self._session, StoredParquet(path, sha256=""))
