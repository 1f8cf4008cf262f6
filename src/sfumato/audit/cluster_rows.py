"""Whether the rows of a release on a cluster are those of its original, as a bag: every whole row, as often as it is.

The cells of a released row are compared with what the stated rules make of the original's, all columns of a row at a
time, by counts of equal rows. Nothing is sampled, and no row comes to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.cell_rules import CellRule, FittingRule
from sfumato.audit.checks import IN_MEMORY, Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.count_matching import ImpossibleError, UnmatchedError
from sfumato.audit.label_matching import TooManyLayersError, matched_rows
from sfumato.table.weighted import CountedTable

if TYPE_CHECKING:
    from sfumato.audit.cluster import RowsOnCluster

Frame: TypeAlias = Any
"""A Spark DataFrame."""
Counts = NDArray[np.int64]
Wanted = list[tuple[str, pa.Array | None]]


class TooManyRowsError(Exception):
    """There are more distinct rows than the driver can hold."""


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
        raise TooManyRowsError
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
        return _not_checked("; ".join(long[:5]))
    try:
        are_same = _are_same(released, counted, original, rules, claims.suppressed_rows, most_cells)
    except TooManyRowsError:
        return _not_checked(f"more than {most_cells:,} distinct rows do not fit in the memory given")
    except TooManyLayersError:
        return _not_checked("cells overlap in too many ways for a cluster")
    except UnmatchedError:
        return _not_checked("cells overlap, and counts do not tell which rows became which")
    except ImpossibleError:
        are_same = False
    if are_same:
        return Check("cells", True, f"the cells of {len(rules):,} released columns follow from the original")
    said = "released rows are not rows of the original"
    return Check("cells", False, f"cells do not follow from the original: {said}")


def _not_checked(reason: str) -> Unchecked:
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
