"""How the audit reads rows on a cluster: counts that the cluster makes, and whole rows as a bag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.checks import IN_MEMORY, Check, Unchecked
from sfumato.audit.claims import ClaimedPersons, Claims
from sfumato.audit.kinds import TooManyRowsError
from sfumato.audit.levels.breach import FIGURE_NAMES, FIGURES, counts_determine, figures_determine
from sfumato.audit.not_in_memory import RowReader
from sfumato.audit.original.cell_rules import CellRule, FittingRule
from sfumato.audit.original.matching import ImpossibleError, TooManyLayersError, UnmatchedError, matched_rows
from sfumato.audit.original.offered_rows import ranks_of_rule
from sfumato.audit.reading.block_counting import GroupKeys
from sfumato.audit.reading.row_order import RowOrder, are_all_numbers, keys_of, said_of
from sfumato.audit.reading.values import ranks
from sfumato.errors import InputError
from sfumato.schema import Kind
from sfumato.table.weighted import CountedTable, RowsOnCluster

Frame: TypeAlias = Any
"""A Spark DataFrame."""
Counts = NDArray[np.int64]
Wanted = list[tuple[str, pa.Array | None]]


@dataclass(frozen=True)
class ClusterReader(RowReader[RowsOnCluster]):
    """Rows on a cluster, of which none comes to the driver.

    Parameters
    ----------
    most_cells : int
        Number of distinct rows that fit in the driver's memory.
    """

    most_cells: int
    where = "on a cluster"
    keeps_order = False

    def counted(self, table: RowsOnCluster, names: Sequence[str]) -> CountedTable:
        """Count distinct rows by the audit's own group-by."""
        if not names:
            return CountedTable.of(table.outline, (), (), np.array([table.outline.n_rows], dtype=np.int64))
        frame = table.rows([(name, _codes_of(table, name)) for name in names])
        found, counts = grouped_rows(frame, len(names), self.most_cells)
        if any((column < 0).any() for column in found):
            problem = "changed while it was being read"
            raise InputError(problem, path="the release", hint="read it again when no program is writing to it")
        return CountedTable.of(table.outline, names, [column.astype(np.int32) for column in found], counts)

    def least_different_values(self, table: RowsOnCluster, over: Sequence[str], name: str) -> int:
        """Have the cluster count, so that no combination comes to the driver."""
        from pyspark.sql import functions as sf

        described = table.schema[name]
        same = ranks(table.outline[name].values, described.kind, described.domain)
        wanted: Wanted = [(own, _codes_of(table, own)) for own in over]
        pairs = table.rows([*wanted, (name, pa.array(same, pa.int64()))]).distinct()
        in_classes = pairs.groupBy(*(f"c{i}" for i in range(len(over)))).agg(sf.count(sf.lit(1)).alias("n"))
        return int(in_classes.agg(sf.min("n").alias("n")).toArrow().column("n")[0].as_py() or 0)

    def n_unique_rows(self, table: RowsOnCluster) -> int:
        """Have the cluster count; only the number comes to the driver."""
        from pyspark.sql import functions as sf

        names = table.schema.names()
        frame = table.rows([(name, _codes_of(table, name)) for name in names])
        alike = frame.groupBy(*(f"c{i}" for i in range(len(names)))).agg(sf.count(sf.lit(1)).alias("n"))
        return int(alike.where(sf.col("n") == 1).count())

    def determining(self, original: RowsOnCluster, names: Sequence[str], sensitive: str) -> list[str]:
        """Count pairs of values; where they are many, the cluster judges them."""
        return [name for name in names if self._determines(original, name, sensitive)]

    def _determines(self, original: RowsOnCluster, name: str, sensitive: str) -> bool:
        frame = original.rows([(column, _codes_of(original, column)) for column in (name, sensitive)])
        if not (original.is_open(name) or original.is_open(sensitive)):
            with suppress(TooManyRowsError):
                (values, wanted), counts = grouped_rows(frame, 2, self.most_cells)
                return counts_determine(sp.coo_array((counts, (values, wanted))).tocsr())
        return figures_determine(**figures_on_cluster(frame))

    def persons_of_groups(
        self, original: RowsOnCluster, known: GroupKeys, person: str
    ) -> tuple[Counts, Counts, Counts]:
        """Have the cluster count pairs of a group and a person, so that no person comes to the driver."""
        from pyspark.sql import functions as sf

        wanted: Wanted = [(n, pa.array(own, pa.int64())) for n, own in zip(known.columns, known.numbers, strict=True)]
        rows = original.rows([*wanted, (person, _codes_of(original, person))])
        pairs = _numbered(rows, known.keys, known.groups).groupBy("number", f"c{len(wanted)}")
        in_groups = pairs.agg(sf.count(sf.lit(1)).alias("n")).groupBy("number")
        found = in_groups.agg(sf.sum("n").alias("n"), sf.count(sf.lit(1)).alias("persons")).toArrow()
        groups, n_rows, n_persons = (found.column(i).to_numpy().astype(np.int64) for i in range(3))
        return groups, n_rows, n_persons

    def place_of_each_person(self, original: RowsOnCluster, stated: ClaimedPersons) -> Counts:
        """Have the cluster order the rows of each person; the places come to the driver."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sf

        rows = original.placed([(stated.column, _codes_of(original, stated.column))]).withColumn(
            "rank", sf.col("place")
        )
        ranks = ranks_of_rule(original.n_rows, stated)
        if ranks is not None:
            listed = pa.table({"place": pa.array(np.arange(len(ranks))), "rank": pa.array(ranks)})
            known = rows.sparkSession.createDataFrame(listed, schema="place bigint, rank bigint")
            rows = rows.drop("rank").join(known, "place")
        by_rank = sf.col("rank").desc() if stated.rule == "last" else sf.col("rank")
        numbered = rows.withColumn("n", sf.row_number().over(Window.partitionBy("c0").orderBy(by_rank)))
        found = numbered.where(sf.col("n") == 1).select("place").toArrow()
        return np.sort(found.column("place").to_numpy().astype(np.int64))

    def long_cells(self, table: RowsOnCluster, name: str) -> None:
        """Read none: they do not fit in the driver."""

    def check_row_order(self, released: RowsOnCluster, claims: Claims) -> Check | Unchecked:
        """Read the part files one after the other, as the check of their bytes does, and compare neighbours."""
        return check_order_of_files(Path(released.place), claims)

    def check_cells(
        self,
        released: RowsOnCluster,
        counted: CountedTable,
        original: RowsOnCluster,
        rules: Sequence[CellRule],
        claims: Claims,
    ) -> Iterator[Check | Unchecked]:
        """Compare whole rows as a bag."""
        yield check_whole_rows(released, counted, original, rules, claims, self.most_cells)


def _codes_of(table: RowsOnCluster, name: str) -> pa.Array | None:
    return None if table.is_open(name) else pa.array(np.arange(len(table.outline[name].values)), pa.int64())


def figures_on_cluster(frame: Frame) -> dict[str, int]:
    """Figures of the pairs of two columns, ``c0`` and ``c1``, by which one determines the other."""
    from pyspark.sql import functions as sf

    pairs = frame.groupBy(sf.col("c0").alias("c"), sf.col("c1").alias("w")).agg(sf.count(sf.lit(1)).alias("n"))
    kept = pairs.persist()  # the query reads them three times
    try:
        (found,) = frame.sparkSession.sql(FIGURES, pairs=kept).toArrow().to_pylist()
    finally:
        kept.unpersist()
    return dict(zip(FIGURE_NAMES, found.values(), strict=True))


_ROWS_AT_ONCE = 1 << 16


def check_order_of_files(path: Path, claims: Claims) -> Check:
    """Whether the rows of a Parquet file, or of part files in the order of their names, are in canonical order."""
    kinds = {column.name: column.kind for column in claims.columns}
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    numeric = [name for name, kind in kinds.items() if kind is Kind.NUMERIC]
    are_numbers = {
        name: all(are_all_numbers(batch.column(0)) for file in files for batch in _batches(file, [name]))
        for name in numeric
    }
    order = RowOrder()
    for file in files:
        for batch in _batches(file, list(kinds)):
            order.add(
                key for name in kinds for key in keys_of(batch.column(name), are_numbers=are_numbers.get(name, False))
            )
    return said_of(order)


def _batches(file: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    yield from pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, columns=list(names))


# Whether the rows of a release on a cluster are those of its original, as a bag: every whole row, as often as it is.
#
# The cells of a released row are compared with what the stated rules make of the original's, all columns of a row at a
# time, by counts of equal rows. Nothing is sampled, and no row comes to the driver.


def grouped_rows(frame: Frame, n_columns: int, most: int) -> tuple[list[Counts], Counts]:
    """Distinct rows of the numbers ``c0``, ``c1``, … with how often each occurs; -1 for an unknown cell.

    Raises
    ------
    TooManyRowsError
        If there are more than so many; they are not fetched then.
    """
    from pyspark.sql import functions as sf

    keys = [f"c{i}" for i in range(n_columns)]
    found = frame.groupBy(*keys).agg(sf.count(sf.lit(1)).alias("n")).limit(most + 1).toArrow()
    if found.num_rows > most:
        raise TooManyRowsError(f"more than {most:,} distinct rows")
    return [found.column(key).fill_null(-1).to_numpy().astype(np.int64) for key in keys], found.column("n").to_numpy()


def check_whole_rows(
    released: RowsOnCluster,
    counted: CountedTable,
    original: RowsOnCluster,
    rules: Sequence[CellRule],
    claims: Claims,
    most_cells: int,
) -> Check | Unchecked:
    """Whether the released rows follow from as many rows of the original, all but those stated as suppressed.

    Parameters
    ----------
    counted : CountedTable
        Distinct rows of some columns of the release, which the audit has counted already.
    """
    problems = [f"'{rule.name}' {rule.problem}" for rule in rules if rule.problem]
    if problems:
        more = f" and {len(problems) - 5:,} more" if len(problems) > 5 else ""
        return Check("cells", False, f"cells do not follow from the original: {'; '.join(problems[:5])}{more}")
    long = [f"'{rule.name}' {problem}" for rule in rules if (problem := _too_long(rule, released, original, claims))]
    if long:
        return _cells_not_checked("; ".join(long[:5]))
    try:
        are_same = _are_same(released, counted, original, rules, claims.suppressed_rows, most_cells)
    except TooManyRowsError as exc:
        return _cells_not_checked(f"{exc} do not fit in the memory given")
    except TooManyLayersError:
        return _cells_not_checked("cells overlap in too many ways for a cluster")
    except UnmatchedError:
        return _cells_not_checked("cells overlap, and counts do not show which rows became which")
    except ImpossibleError:
        are_same = False
    if are_same:
        return Check("cells", True, f"the cells of {len(rules):,} released columns follow from the original")
    said = "released rows are not rows of the original"
    return Check("cells", False, f"cells do not follow from the original: {said}")


def _cells_not_checked(reason: str) -> Unchecked:
    return Unchecked("cells", f"whether cells follow from the original: {reason}", IN_MEMORY)


def _too_long(rule: CellRule, released: RowsOnCluster, original: RowsOnCluster, claims: Claims) -> str:
    """Say why a column cannot be compared."""
    if not _is_open(rule, released, original):
        return ""
    if rule.name in claims.recodings:
        return "has too many distinct values for its recoding to be checked on a cluster"
    types = released.outline[rule.name].values.type, original.outline[rule.column].values.type
    return "" if types[0] == types[1] else "has too many distinct values, of another type than the original's"


def _is_open(rule: CellRule, released: RowsOnCluster, original: RowsOnCluster) -> bool:
    return released.is_open(rule.name) or original.is_open(rule.column)


def _are_same(
    released: RowsOnCluster,
    counted: CountedTable,
    original: RowsOnCluster,
    rules: Sequence[CellRule],
    n_suppressed: int,
    most_cells: int,
) -> bool:
    fitting = [rule for rule in rules if isinstance(rule, FittingRule)]
    exact = [rule for rule in rules if not isinstance(rule, FittingRule)]
    before: Wanted = [(rule.column, pa.array(rule.read.places, pa.int64())) for rule in fitting if rule.read]
    after: Wanted = [(rule.name, pa.array(np.arange(rule.read.n_cells), pa.int64())) for rule in fitting if rule.read]
    n_left_out, is_sure = n_suppressed, True
    numbers = None
    if fitting:
        places, n_before = grouped_rows(original.rows(before), len(before), most_cells)
        cells, n_after = cells_of_release(released, counted, after, most_cells)
        matched = matched_rows([rule.read for rule in fitting if rule.read], places, n_before, cells, n_after)
        kept, is_sure = matched.became >= 0, matched.is_sure
        n_left_out -= int(n_before[~kept].sum())
        numbers = [place[kept] for place in places], matched.became[kept], cells
    for rule in exact:
        by_cells = _is_open(rule, released, original)
        before.append((rule.column, None if by_cells else pa.array(rule.expected, pa.int64())))
        after.append((rule.name, None if by_cells else pa.array(rule.found, pa.int64())))
    expected, found = original.rows(before), released.rows(after)
    if numbers is not None:
        expected = _numbered(expected, *numbers[:2])
        found = _numbered(found, numbers[2], np.arange(len(numbers[2][0])))
    are_same = n_left_out >= 0 and _are_in(found, expected, n_left_out)
    if not are_same and not is_sure:
        raise UnmatchedError  # another answer might be the right one
    return are_same


def cells_of_release(
    released: RowsOnCluster, counted: CountedTable, after: Wanted, most_cells: int
) -> tuple[list[Counts], Counts]:
    """Distinct rows of some columns of the release: added up from what is counted if they are among it."""
    names = [name for name, _ in after]
    if not set(names) <= set(counted.together):
        return grouped_rows(released.rows(after), len(after), most_cells)
    codes = np.stack([counted[name].codes for name in names], axis=1).astype(np.int64)
    cells, numbers = np.unique(codes, axis=0, return_inverse=True)
    counts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(counts, numbers.ravel(), counted.row_counts)
    return list(cells.T), counts


def _numbered(frame: Frame, keys: Sequence[Counts], numbers: Counts) -> Frame:
    """Replace the first columns by a number of theirs; rows that have none are left out."""
    from pyspark.sql import functions as sf

    names = [f"c{i}" for i in range(len(keys))]
    columns = dict(zip(names, keys, strict=True)) | {"number": numbers}
    listed = pa.table({name: pa.array(column, pa.int64()) for name, column in columns.items()})
    schema = ", ".join(f"{name} bigint" for name in columns)
    return frame.join(sf.broadcast(frame.sparkSession.createDataFrame(listed, schema=schema)), names).drop(*names)


def _are_in(found: Frame, expected: Frame, n_left_out: int) -> bool:
    """Whether every row occurs at most as often as expected, and all of them together so many times less."""
    from pyspark.sql import functions as sf

    keys = expected.columns
    both = expected.withColumn("sign", sf.lit(1)).unionByName(found.withColumn("sign", sf.lit(-1)))
    more = both.groupBy(*keys).agg(sf.sum("sign").alias("more"))
    said = (
        more.agg(sf.count_if(sf.col("more") < 0).alias("wrong"), sf.sum("more").alias("rest")).toArrow().to_pylist()[0]
    )
    return said["wrong"] == 0 and (said["rest"] or 0) == n_left_out
