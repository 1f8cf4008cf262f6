"""The audit of releases on a cluster: the same checks, on counts that the cluster makes and on whole rows as a bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.bytes.files import check_file
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import Claims, read_claims
from sfumato.audit.levels.breach import FIGURE_NAMES, FIGURES, counts_tell, figures_tell
from sfumato.audit.original.cell_rules import CellRule, FittingRule, cell_rules
from sfumato.audit.original.fidelity import check_description, check_rows
from sfumato.audit.original.matching import ImpossibleError, TooManyLayersError, UnmatchedError, matched_rows
from sfumato.audit.original.release_vs_original import PENALTY
from sfumato.audit.out_of_core import (
    COMPARED,
    PATTERNS,
    beyond_counts,
    check_open_kinds,
    judged_beside,
    judged_together,
)
from sfumato.audit.profile import risk_profile
from sfumato.audit.reading.columns import Columns, Declared
from sfumato.audit.reading.spelling import NAME as SPELLING
from sfumato.audit.reading.spelling import SPELLED, check_spelling
from sfumato.audit.reading.values import is_text
from sfumato.audit.verify import (
    audit_release,
    has_all_roles,
    open_questions,
    types_of,
    values_of,
    without_open_questions,
)
from sfumato.errors import InputError, SchemaError
from sfumato.schema import Role
from sfumato.table.weighted import CountedTable, RowsOnCluster

# Whether the rows of a release on a cluster are those of its original, as a bag: every whole row, as often as it is.
#
# The cells of a released row are compared with what the stated rules make of the original's, all columns of a row at a
# time, by counts of equal rows. Nothing is sampled, and no row comes to the driver.


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
        return _cells_not_checked("; ".join(long[:5]))
    try:
        are_same = _are_same(released, counted, original, rules, claims.suppressed_rows, most_cells)
    except TooManyRowsError:
        return _cells_not_checked(f"more than {most_cells:,} distinct rows do not fit in the memory given")
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


_NAME = "on a cluster"


def audit_cluster(
    released: RowsOnCluster,
    manifest: Mapping[str, Any],
    *,
    most_cells: int,
    original: RowsOnCluster | None = None,
    released_sha256: str | None = None,
    original_sha256: str | None = None,
    file: str | Path | None = None,
    check_roles: Declared = False,
) -> AuditReport:
    """Check a release against its manifest and its original as :func:`audit_release` does, with the rows on a cluster.

    What cannot be judged on a cluster is an exception; where that is a promise, or how the release came about, a check
    named ``on a cluster`` fails.

    Parameters
    ----------
    most_cells : int
        Number of distinct rows that fit in the driver's memory.

    Raises
    ------
    InputError
        If a file changed while it was being read, or a released folder holds more than its part files.
    """
    released.ensure_alone()
    claims = read_claims(manifest)
    names = [name for name in judged_together(claims, COMPARED) if name in released.outline.columns]
    beyond = list(beyond_counts(claims, (*PATTERNS, *COMPARED)))
    beyond += [f"'{name}', which has too many distinct values" for name in names if released.is_open(name)]
    if beyond:
        return _refused("; ".join(beyond))
    try:
        counted = _counted(released, names, most_cells)
    except TooManyRowsError:
        return _refused(f"more than {most_cells:,} distinct rows of {listed(names)} do not fit in the memory given")
    found = audit_release(
        counted, manifest, released_sha256=released_sha256, original_sha256=original_sha256, check_audited_values=True
    )
    more: list[Check | Unchecked] = [*check_open_kinds(released.outline, claims)]
    if file is not None:
        more.extend(_check_bytes(file, released_sha256, released, original, claims))
    if original is not None:
        found = without_open_questions(found)
        before = Columns(original.outline)

        def telling(names: Sequence[str], sensitive: str) -> list[str]:
            return [name for name in names if _tells(original, name, sensitive, most_cells)]

        found = judged_beside(found, claims, released, original, telling, has_roles=has_all_roles(before, check_roles))
        more.extend(_check_beside(released, counted, original, claims, check_roles, most_cells))
        more.extend(_not_checked(released, original, claims))
        more.extend(open_questions(claims, before, check_roles))
    for table in (released, original):
        if table is not None:
            table.ensure_unchanged()
    return AuditReport.of([*found.checks, *found.unchecked, *more], found.levels)


def cluster_risk_profile(table: RowsOnCluster, most_cells: int) -> dict[str, Any]:
    """Describe how far the rows of a table on a cluster can be distinguished, as :func:`risk_profile` does.

    Raises
    ------
    InputError
        If a column has too many distinct values, or there are more distinct rows than fit.
    """
    names = table.schema.names(Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET)
    long = [name for name in names if table.is_open(name)]
    if long:
        problem = "has too many distinct values to be counted with other columns"
        raise SchemaError(problem, column=long[0], hint="give it the role other or identifier")
    try:
        return risk_profile(_counted(table, names, most_cells))
    except TooManyRowsError:
        problem = f"there are more than {most_cells:,} distinct rows, which do not fit in the memory given"
        raise InputError(problem, path=table.place, hint="give more memory", remedy=("memory",)) from None


def _check_bytes(
    file: str | Path, sha256: str | None, released: RowsOnCluster, original: RowsOnCluster | None, claims: Claims
) -> Iterator[Check | Unchecked]:
    """Account for every byte; the driver reads the files, which it sees as the workers do."""
    yield from check_file(file, claims, sha256)
    before = None if original is None else types_of(Columns(original.outline))
    columns = Columns(released.outline)
    yield from check_spelling(values_of(columns), claims, before)
    long = [c.name for c in claims.columns if c.kind in SPELLED and c.name in columns and released.is_open(c.name)]
    texts = [name for name in long if is_text(columns.type_of(name))]
    if texts:
        message = f"whether numbers or dates in {listed(texts)}, which has very many values, have one spelling each"
        yield Unchecked(SPELLING, message, "audit it in blocks on one machine, with a limit of memory")


def _refused(said: str) -> AuditReport:
    return AuditReport((Check(_NAME, False, f"NOT CHECKED on a cluster: {said}"),))


def _counted(table: RowsOnCluster, names: Sequence[str], most_cells: int) -> CountedTable:
    """Count distinct rows by the audit's own group-by."""
    if not names:
        return CountedTable.of(table.outline, (), (), np.array([table.outline.n_rows], dtype=np.int64))
    found, counts = grouped_rows(table.rows([(name, _codes_of(table, name)) for name in names]), len(names), most_cells)
    if any((column < 0).any() for column in found):
        problem = "changed while it was being read"
        raise InputError(problem, path="the release", hint="read it again when no program is writing to it")
    return CountedTable.of(table.outline, names, [column.astype(np.int32) for column in found], counts)


def _tells(original: RowsOnCluster, name: str, sensitive: str, most_cells: int) -> bool:
    """Whether a column equals or determines another one in all rows; where pairs are many, the cluster judges them."""
    both: Wanted = [(column, _codes_of(original, column)) for column in (name, sensitive)]
    frame = original.rows(both)
    if not (original.is_open(name) or original.is_open(sensitive)):
        with suppress(TooManyRowsError):
            (values, wanted), counts = grouped_rows(frame, 2, most_cells)
            return counts_tell(sp.coo_array((counts, (values, wanted))).tocsr())
    return figures_tell(**figures_on_cluster(frame))


def _codes_of(table: RowsOnCluster, name: str) -> pa.Array | None:
    return None if table.is_open(name) else pa.array(np.arange(len(table.outline[name].values)), pa.int64())


def figures_on_cluster(frame: Frame) -> dict[str, int]:
    """Figures of the pairs of two columns, ``c0`` and ``c1``, by which one tells the other."""
    from pyspark.sql import functions as sf

    pairs = frame.groupBy(sf.col("c0").alias("c"), sf.col("c1").alias("w")).agg(sf.count(sf.lit(1)).alias("n"))
    kept = pairs.persist()  # the query reads them three times
    try:
        (found,) = frame.sparkSession.sql(FIGURES, pairs=kept).toArrow().to_pylist()
    finally:
        kept.unpersist()
    return dict(zip(FIGURE_NAMES, found.values(), strict=True))


def _check_beside(
    released: RowsOnCluster,
    counted: CountedTable,
    original: RowsOnCluster,
    claims: Claims,
    check_roles: Declared,
    most_cells: int,
) -> Iterator[Check | Unchecked]:
    before, after = Columns(original.outline), Columns(released.outline)
    yield from check_description(before, claims, check_roles)
    rows = check_rows(after, before, claims, 0)
    yield rows
    if not rows.passed:
        yield Check("cells", False, "cells were not compared, because the numbers of rows do not fit")
        return
    rules = list(cell_rules(after, before, claims))
    yield check_whole_rows(released, counted, original, rules, claims, most_cells)


def _not_checked(released: RowsOnCluster, original: RowsOnCluster, claims: Claims) -> Iterator[Unchecked]:
    """Name what the audit in memory checks and this one does not."""
    tables = (released, original)
    long = [n for n in claims.names() if any(n in table.schema and table.is_open(n) for table in tables)]
    yield Unchecked("row-order", "the order of the rows: a cluster does not keep it", IN_MEMORY)
    if long:
        yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)
    if PENALTY in claims.stated_utility:
        yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)
