"""Releases in buckets: within each bucket the values of some columns lose the rows that they came from.

A *slice* is a list of columns whose values stay together. The rows of a slice are put into an order that depends only
on which values a bucket holds and on a public seed, never on whose they were, so that nothing rests on a secret.

References
----------
.. [XT06] Xiao, Tao: Anatomy: Simple and Effective Privacy Preservation. VLDB (2006).
.. [LLZM12] Li, Li, Zhang, Molloy: Slicing: A New Approach for Privacy Preserving Data Publishing.
   IEEE TKDE 24(3) (2012).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.counting.same_values import value_numbers
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.mechanisms.base import Release
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table

Ids = NDArray[np.int32]
Rows = NDArray[np.intp]
Slices = Sequence[tuple[str, ...]]

BUCKETED = "bucketed"
MOST_SEED = 2**63
NO_SEED = 0
"""Public seed of the order within buckets where a manifest states none."""
_SHORT = 2**16


def arrange(table: Table, bucket_of_row: Ids, names: Sequence[str], seed: Sequence[int]) -> Rows:
    """Row from which each row takes the values of a slice: one of its own bucket.

    The values of a bucket, ascending as Arrow orders them (missing last; by the first column, then the next), go to its
    rows in the order of the raw words of PCG64 with this seed, one word a row.
    """
    words = np.random.PCG64(np.random.SeedSequence(list(seed))).random_raw(table.n_rows)
    by_column = [_ranks(table[name])[table[name].codes] for name in names]
    source = np.empty(table.n_rows, dtype=np.intp)
    source[_order([bucket_of_row, words])] = _order([bucket_of_row, *by_column])
    return source


def _order(keys: Sequence[NDArray[np.integer]]) -> Rows:
    """Rows by the first key, then the next, then as they stand; keys of up to 2^16 numbers are sorted in linear time.

    Examples
    --------
    >>> _order([np.array([1, 0, 1]), np.array([5, 9, 3])]).tolist()
    [1, 2, 0]
    """
    order = np.arange(len(keys[0]))
    for key in reversed(keys):
        is_small = key.dtype.kind == "i" and key.min(initial=0) >= 0 and key.max(initial=0) < _SHORT
        short = key.astype(np.uint16) if is_small else key
        order = order[np.argsort(short[order], kind="stable")]
    return order


def _ranks(column: CodedColumn) -> NDArray[np.int64]:
    ranks = np.empty(column.n_distinct, dtype=np.int64)
    ranks[pc.sort_indices(column.values).to_numpy()] = np.arange(column.n_distinct)
    return ranks


def bucketed_release(
    table: Table,
    bucket_of_row: Ids,
    slices: Slices,
    *,
    bucket: str,
    seed: int | None,
    mechanism: str,
    parameters: Mapping[str, Any],
    guarantees: Sequence[BucketSize | BucketDiversity],
    evidence: Mapping[str, Any],
) -> Release:
    """Arrange every slice again within the buckets, name the bucket of each row, and describe the result.

    Columns of no slice keep their rows; identifiers are left out. Buckets are numbered from 1 in the order in which
    they come up. ``seed`` is public; ``None`` takes a fixed one, and the manifest states none.
    """
    columns = dict(table.columns)
    for i, names in enumerate(slices):
        source = arrange(table, bucket_of_row, names, (NO_SEED if seed is None else seed, i))
        columns |= {name: replace(table[name], codes=table[name].codes[source]) for name in names}
    kept = replace(table, columns=columns).keep(c.name for c in table.schema if c.role not in WITHHELD)
    described = Column(bucket, Role.OTHER, Kind.CATEGORICAL, missing=())
    released = replace(
        kept,
        schema=Schema.of([*kept.schema, described], kept.schema.missing),
        columns={**kept.columns, bucket: _bucket_column(bucket_of_row)},
    )
    manifest = draft_manifest(
        table,
        released,
        mechanism=mechanism,
        parameters=parameters,
        guarantees=guarantees,
        evidence=evidence,
        seed=seed,
    )
    done = {"kind": BUCKETED, "bucket": bucket, "slices": [list(names) for names in slices]}
    return Release(released, replace(manifest, perturbation=done))


def _bucket_column(bucket_of_row: Ids) -> CodedColumn:
    _, first, ids = np.unique(bucket_of_row, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(1, len(first) + 1)
    return CodedColumn.encode(pa.array(number[ids]).cast(pa.string()))


def free_name(wanted: str, table: Table) -> str:
    """Name for a new column: the wanted one, or with the first number that makes it new.

    Examples
    --------
    >>> free_name("group", Table.from_arrow(pa.table({"group": [1]}), Schema.of([Column("group")])))
    'group_2'
    """
    numbered = (f"{wanted}_{i}" for i in range(2, len(table.schema) + 3))
    return next(name for name in (wanted, *numbered) if name not in table.schema)


def checked_table(table: AnyTable, sensitive: str | None) -> tuple[Table, str]:
    """Refuse a table that cannot be put into buckets; give it back with the name of its sensitive column.

    Raises
    ------
    SchemaError
        If it is sparse, has no quasi-identifier, or not exactly one sensitive column.
    """
    if not isinstance(table, Table):
        problem = "is a sparse 0/1 table, which has no sensitive column apart from its features"
        raise SchemaError(problem, hint="use a mechanism that selects features", remedy=("mechanism",))
    table.schema.check_quasi_identifiers("from which to part the sensitive value")
    named = list(dict.fromkeys([*([sensitive] if sensitive else []), *table.schema.names(Role.SENSITIVE)]))
    if len(named) != 1:
        problem = f"buckets protect one sensitive column, and the table has {len(named)}"
        hint = "give one column the role sensitive, and others the role identifier, which leaves them out"
        raise SchemaError(problem, hint=hint)
    (name,) = named
    if table.schema[name].role in (Role.QUASI_IDENTIFIER, *WITHHELD):
        problem = f"'{name}' is a {table.schema[name].role}"
        raise InvalidParameterError("sensitive", problem, allowed="a column that attackers do not know")
    return table, name


def sensitive_codes(table: Table, name: str) -> Ids:
    """Code the values of a sensitive column from 0; several spellings of one value are one, and so is missing."""
    column = table[name]
    return value_numbers(column.values, table.schema[name]).merged[column.codes]


def check_seed(seed: object) -> None:
    """Refuse a seed that a manifest could not hold."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_SEED:
        raise InvalidParameterError("random_state", f"got {seed!r}", allowed="a whole number from 0")
