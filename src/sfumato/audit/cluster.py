"""The audit of releases on a cluster: the same checks, on counts that the cluster makes and on whole rows as a bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.audit.beside import PENALTY
from sfumato.audit.cell_rules import cell_rules
from sfumato.audit.checks import IN_MEMORY, AuditReport, Check, Unchecked, listed
from sfumato.audit.claims import Claims, read_claims
from sfumato.audit.cluster_rows import Frame, TooManyRowsError, check_whole_rows, grouped_rows
from sfumato.audit.columns import Columns, Declared
from sfumato.audit.counted_claims import beyond_counts, check_open_kinds, judged_together
from sfumato.audit.fidelity import check_description, check_rows
from sfumato.audit.file_bytes import check_file
from sfumato.audit.spelling import NAME as SPELLING
from sfumato.audit.spelling import SPELLED, check_spelling
from sfumato.audit.values import is_text
from sfumato.audit.verify import audit_release, open_questions, types_of, values_of, without_open_questions
from sfumato.errors import InputError
from sfumato.schema import Schema
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable

_NAME = "on a cluster"


class RowsOnCluster(Protocol):
    """A table whose rows are on a cluster, read as any table is."""

    @property
    def outline(self) -> Table:
        """Every column by itself: distinct values with counts, or an :class:`OpenColumn`."""
        ...

    @property
    def schema(self) -> Schema:
        """Description of the columns."""
        ...

    def is_open(self, name: str) -> bool:
        """Whether a column has too many distinct values to be listed."""
        ...

    def rows(self, wanted: Sequence[tuple[str, pa.Array | None]]) -> Frame:
        """Frame of columns ``c0``, ``c1``, …: what an array has for the codes of the cells, or the cells themselves."""
        ...

    def ensure_alone(self) -> None:
        """Refuse a folder in which more stands than the files that were read."""
        ...

    def ensure_unchanged(self) -> None:
        """Refuse a file that is another one now."""
        ...


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
    names = [name for name in judged_together(claims) if name in released.outline.columns]
    beyond = list(beyond_counts(claims, ()))
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
        more.extend(_check_beside(released, counted, original, claims, check_roles, most_cells))
        more.extend(_not_checked(released, original, claims))
        more.extend(open_questions(claims, Columns(original.outline), check_roles))
    for table in (released, original):
        if table is not None:
            table.ensure_unchanged()
    return AuditReport.of([*found.checks, *found.unchecked, *more], found.levels)


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
    codes = [(name, pa.array(np.arange(len(table.outline[name].values)), pa.int64())) for name in names]
    found, counts = grouped_rows(table.rows(codes), len(names), most_cells)
    if any((column < 0).any() for column in found):
        problem = "changed while it was being read"
        raise InputError(problem, path="the release", hint="read it again when nobody writes to it")
    return CountedTable.of(table.outline, names, [column.astype(np.int32) for column in found], counts)


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
    yield Unchecked("row-order", "the order of the rows, which a cluster does not keep", IN_MEMORY)
    if long:
        yield Unchecked("spelling", f"whether one value has two spellings in {listed(long)}", IN_MEMORY)
    if PENALTY in claims.stated_utility:
        yield Unchecked("figures", "the stated certainty penalty", IN_MEMORY)
