"""Whether an attacker gains by the choice of columns of a file that is larger than memory.

The bound is estimated anew on a sample of the original's rows that the audit draws itself. Columns that give the
protected one away are looked for in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.audit.block_counting import spilling_connection
from sfumato.audit.breach import check_breach_promise, counts_tell, estimate, figures_tell, sampled_rows
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.columns import Columns
from sfumato.audit.kinds import Around
from sfumato.errors import InputError
from sfumato.guarantees import BreachBound
from sfumato.table.coding import CodedColumn
from sfumato.table.large import LargeTable, Told

_SHARE_OF_PAIRS = 16
_BYTES_A_PAIR = 8
_NAMES = ("n_rows", "n_values", "n_wanted", "n_pairs", "n_right", "n_common")
_PAIRS = "CREATE TEMP TABLE pairs AS SELECT c, w, count(*) AS n FROM cells GROUP BY c, w"
_FIGURES = """
WITH wanted AS (SELECT w, sum(n) AS n FROM pairs GROUP BY w),
common AS (SELECT w, n FROM wanted ORDER BY n DESC, w LIMIT 1),
by_value AS (
    SELECT count(*) AS n_pairs, sum(n) AS n, max(n) AS known,
        sum(CASE WHEN w IS NOT DISTINCT FROM common_w THEN n ELSE 0 END) AS guessed
    FROM pairs, (SELECT w AS common_w FROM common) GROUP BY c
)
SELECT sum(n)::BIGINT, count(*), (SELECT count(*) FROM wanted), sum(n_pairs)::BIGINT,
    sum(CASE WHEN n > 1 THEN known ELSE guessed END)::BIGINT, (SELECT n::BIGINT FROM common)
FROM by_value
"""


def check_large_breach(
    claims: Claims, original: LargeTable, has_roles: bool, memory: int, told: Told | None
) -> Iterator[Check | Unchecked]:
    """Check what a bound compares with and what it protects, with columns that give it away looked for in all rows."""

    def telling(names: Sequence[str], sensitive: str) -> list[str]:
        return telling_columns(original, names, sensitive, memory, told)

    around = Around(claims, Columns(original.outline), None, has_roles)
    for promise in claims.promises:
        if isinstance(promise.guarantee, BreachBound):
            yield from check_breach_promise(promise.guarantee, around, telling)


def measure_large(guarantee: BreachBound, original: LargeTable, told: Told | None = None) -> float:
    """Lower end of the interval around the privacy breach increase in percent, on the audit's own sample of rows.

    Raises
    ------
    SchemaError
        If a column is not in the original, or the sensitive one has fewer than two values.
    InvalidParameterError
        If there is nothing to compare with.
    """
    names = list(dict.fromkeys([*guarantee.baseline, guarantee.sensitive]))
    drawn = sampled_rows(original.n_rows, len(names))
    parts: dict[str, list[NDArray[np.int32] | pa.Array]] = {name: [] for name in names}
    n_read = 0
    for block in original.blocks(names, told=told):
        n_rows = len(block[names[0]])
        own = drawn[np.searchsorted(drawn, n_read) : np.searchsorted(drawn, n_read + n_rows)] - n_read
        n_read += n_rows
        for name, cells in block.items():
            parts[name].append(cells.take(pa.array(own)) if isinstance(cells, pa.Array) else cells[own])
    columns = {name: _column(original, name, parts[name]) for name in names}
    return estimate(guarantee, columns, np.arange(len(drawn)))


def _column(original: LargeTable, name: str, parts: Sequence[NDArray[np.int32] | pa.Array]) -> CodedColumn:
    values, kind = original.outline[name].values, original.schema[name].kind
    if original.is_open(name):
        return CodedColumn.encode(pa.chunked_array(parts, values.type), kind)
    codes = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
    return CodedColumn(codes, values).take(np.arange(len(codes)), kind)


def telling_columns(
    original: LargeTable, names: Sequence[str], sensitive: str, memory: int, told: Told | None = None
) -> list[str]:
    """Columns that equal or determine another one in all rows: counted in one pass, long ones by DuckDB.

    Raises
    ------
    InputError
        If a file changed while it was being read, or values cannot be counted in the memory given.
    """
    if not original.n_rows:
        return []
    few = _with_few_pairs(original, names, sensitive, memory)
    n_wanted = original.outline[sensitive].n_distinct
    counts = {name: np.zeros(original.outline[name].n_distinct * n_wanted, dtype=np.int64) for name in few}
    for block in original.blocks([*few, sensitive], told=told) if few else ():
        for name, counted in counts.items():
            counted += np.bincount(np.asarray(block[name]) * np.int64(n_wanted) + block[sensitive], None, len(counted))
    found = {name for name, counted in counts.items() if counts_tell(sp.csr_array(counted.reshape(-1, n_wanted)))}
    found |= {name for name in names if name not in counts and _tells(original, name, sensitive, memory)}
    return [name for name in names if name in found]


def _with_few_pairs(original: LargeTable, names: Sequence[str], sensitive: str, memory: int) -> list[str]:
    """Columns whose pairs of values take a small share of the memory together; long ones are not listed."""
    if original.is_open(sensitive):
        return []
    n_pairs = {n: original.outline[n].n_distinct * original.outline[sensitive].n_distinct for n in names}
    found, left = [], memory // _SHARE_OF_PAIRS // _BYTES_A_PAIR
    for name in sorted(names, key=n_pairs.__getitem__):
        if not original.is_open(name) and n_pairs[name] <= left:
            found.append(name)
            left -= n_pairs[name]
    return found


def _tells(original: LargeTable, name: str, sensitive: str, memory: int) -> bool:
    """Count pairs of one column by DuckDB, which spills them."""
    failures: list[Exception] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for block in original.blocks([name, sensitive]):
                yield pa.record_batch([pa.array(block[name]), pa.array(block[sensitive])], names=["c", "w"])
        except Exception as exc:  # kept, for the engine hides it
            failures.append(exc)
            raise

    types = [_stored_type(original, column) for column in (name, sensitive)]
    reader = pa.RecordBatchReader.from_batches(pa.schema(list(zip("cw", types, strict=True))), batches())
    try:
        with spilling_connection(memory) as connection:
            connection.register("cells", reader)
            connection.execute(_PAIRS)
            (figures,) = connection.execute(_FIGURES).fetchall()
    except (duckdb.Error, pa.ArrowException):
        if failures:
            raise failures[0] from None
        problem = "its values cannot be counted in the memory given"
        hint = "give more memory, or free space for spilling"
        raise InputError(problem, path=original.source.name, column=name, hint=hint, remedy=("memory",)) from None
    return figures_tell(**dict(zip(_NAMES, figures, strict=True)))


def _stored_type(original: LargeTable, name: str) -> pa.DataType:
    return original.outline[name].values.type if original.is_open(name) else pa.int32()
