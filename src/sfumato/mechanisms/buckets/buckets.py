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
from numpy.typing import NDArray

from sfumato.counting.same_values import value_numbers
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.mechanisms.base import Release
from sfumato.schema import WITHHELD, Column, Kind, Role, Schema
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.row_order import packed_keys, value_ranks

Ids = NDArray[np.int32]
Rows = NDArray[np.intp]
Ranks = NDArray[np.int64]
Slices = Sequence[tuple[str, ...]]

BUCKETED = "bucketed"
LINKS_ROWS = "counts rows, and publishes quasi-identifiers by which those of one person can be linked"
MOST_SEED = 2**63
NO_SEED = 0
"""Public seed of the order within buckets where a manifest states none."""
_SHORT = 2**16


def arrange(ranks: Ranks, bucket_of_row: Ids, place_of_row: Rows, seed: Sequence[int]) -> Rows:
    """Row from which each row takes the values of a slice: one of its own bucket.

    The values of a bucket, ascending, go to its rows in the order of the raw words of PCG64 with this seed, of which
    each row has the one at its place.

    Parameters
    ----------
    ranks : array
        Rank of each row's values of the slice.
    place_of_row : array
        See :func:`canonical_buckets`.
    """
    words = np.random.PCG64(np.random.SeedSequence(list(seed))).random_raw(len(ranks))[place_of_row]
    source = np.empty(len(ranks), dtype=np.intp)
    source[_order([bucket_of_row, words])] = _order([bucket_of_row, ranks])
    return source


def canonical_buckets(bucket_of_row: Ids, pieces: Sequence[Ranks]) -> tuple[Ids, Rows]:
    """Give buckets numbers by what they hold, and rows places, so that neither depends on the order of rows.

    Buckets are numbered from 1 by how many rows they hold, then by the values of the first piece, ascending, then of
    the next. Rows are counted through: bucket by bucket, within it by the first piece. Rows that this leaves equal are
    equal in that piece, and buckets that it leaves equal hold the same.

    Parameters
    ----------
    pieces : sequence of array
        Rank of each row by the columns of no slice, then by those of each slice.

    Examples
    --------
    >>> number, place = canonical_buckets(np.array([0, 1, 0, 1]), [np.array([2, 0, 1, 3]), np.array([0, 0, 1, 1])])
    >>> number.tolist(), place.tolist()
    ([2, 1, 2, 1], [3, 0, 2, 1])
    """
    _, of_row, sizes = np.unique(bucket_of_row, return_inverse=True, return_counts=True)
    starts = np.cumsum(sizes) - sizes
    held = [piece[_order([of_row, piece])].astype(">u8").tobytes() for piece in pieces]  # bytes ascend as numbers do
    keys = [
        (size, *(own[8 * start : 8 * (start + size)] for own in held))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
    number = np.empty(len(keys), dtype=np.int32)
    number[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(1, len(keys) + 1)
    found = number[of_row.reshape(-1)]
    place = np.empty(len(found), dtype=np.intp)
    place[_order([found, pieces[0]])] = np.arange(len(found))
    return found, place


def piece_ranks(table: Table, names: Sequence[str]) -> Ranks:
    """Rank of each row by some columns, the first one first, whose values go by their texts, missing first."""
    columns = []
    for name in names:
        ranks = value_ranks(as_text(table[name].values), Kind.CATEGORICAL)
        columns.append((ranks[table[name].codes], int(ranks.max(initial=0)) + 1))
    return np.unique(packed_keys(columns, table.n_rows), return_inverse=True)[1].reshape(-1)


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

    Columns of no slice keep their rows; identifiers are left out. Buckets are numbered by what they hold. ``seed`` is
    public; ``None`` takes a fixed one, and the manifest states none.
    """
    columns = dict(table.columns)
    moved = {name for names in slices for name in names}
    rest = [c.name for c in table.schema if c.role not in WITHHELD and c.name not in moved]
    pieces = [piece_ranks(table, names) for names in (rest, *slices)]
    number, place = canonical_buckets(bucket_of_row, pieces)
    for i, names in enumerate(slices):
        source = arrange(pieces[i + 1], number, place, (NO_SEED if seed is None else seed, i))
        columns |= {name: replace(table[name], codes=table[name].codes[source]) for name in names}
    kept = replace(table, columns=columns).keep(c.name for c in table.schema if c.role not in WITHHELD)
    described = Column(bucket, Role.OTHER, Kind.CATEGORICAL, missing=())
    released = replace(
        kept,
        schema=Schema.of([*kept.schema, described], kept.schema.missing),
        columns={**kept.columns, bucket: CodedColumn.encode(pa.array(number).cast(pa.string()))},
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
    if table.schema[name].role.is_one_of((Role.QUASI_IDENTIFIER, *WITHHELD)):
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
