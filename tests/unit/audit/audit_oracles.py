"""Definitions as plain loops, and small tables and manifests, for the tests of the audit."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.audit.levels.anonymity import Patterns
from sfumato.guarantees import Guarantee
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Table

CANARY = "CANARY-7f3a"

GOLDEN_ROWS = ["10101", "10101", "10011", "10101", "11101", "11011"]
GOLDEN_CLASSES = ["+", "-", "+", "+", "-", "-"]


def table_of(
    columns: dict[str, Any], roles: dict[str, Role] | None = None, kinds: dict[str, Kind] | None = None
) -> Table:
    """Code Python lists (or Arrow arrays) as a table; columns are quasi-identifiers unless a role is given."""
    cells = pa.table({name: c if isinstance(c, pa.Array) else pa.array(c) for name, c in columns.items()})
    described = [
        Column(name, (roles or {}).get(name, Role.QUASI_IDENTIFIER), (kinds or {}).get(name, Kind.CATEGORICAL))
        for name in columns
    ]
    return Table.from_arrow(cells, Schema.of(described))


def binary_table(rows: list[list[int]], n_columns: int, companions: Table | None = None) -> BinaryTable:
    """Sparse features f0, f1, … taken as they are."""
    matrix = as_binary_matrix(np.array(rows, dtype=np.int8).reshape(len(rows), n_columns))
    features = tuple(Feature(f"f{i}", f"f{i}") for i in range(n_columns))
    return BinaryTable(matrix, features, companions or Table(Schema.of([]), {}, len(rows)))


def golden_table() -> Table:
    """Table 1 of the containment paper."""
    columns: dict[str, Any] = {f"x{i + 1}": [row[i] for row in GOLDEN_ROWS] for i in range(5)}
    return table_of(columns | {"class": GOLDEN_CLASSES}, {"class": Role.TARGET})


def small_rows(max_value: int = 2) -> st.SearchStrategy[list[list[int | None]]]:
    """Up to 7 rows × 4 columns of few values, with missing ones; often empty, constant or with repeated rows."""
    cell = st.one_of(st.none(), st.integers(0, max_value))
    return st.integers(0, 4).flatmap(
        lambda width: st.lists(st.lists(cell, min_size=width, max_size=width), min_size=0, max_size=7)
    )


def small_binary_rows() -> st.SearchStrategy[tuple[int, list[list[int]]]]:
    """Draw a width up to 4 and up to 7 rows of zeros and ones."""
    return st.integers(0, 4).flatmap(
        lambda width: st.tuples(
            st.just(width),
            st.lists(st.lists(st.integers(0, 1), min_size=width, max_size=width), min_size=0, max_size=7),
        )
    )


def table_from_rows(rows: list[list[int | None]], sensitive: list[int | None] | None = None) -> Table:
    """Quasi-identifiers q0, q1, … and, when given, a sensitive column s of numbers."""
    width = len(rows[0]) if rows else 0
    columns: dict[str, Any] = {f"q{i}": pa.array([row[i] for row in rows], pa.int64()) for i in range(width)}
    if sensitive is None:
        return Table(Schema.of([]), {}, len(rows)) if not columns else table_of(columns)
    columns["s"] = pa.array(sensitive, pa.int64())
    return table_of(columns, {"s": Role.SENSITIVE}, {"s": Kind.NUMERIC})


# --- definitions -----------------------------------------------------------------------------------------------------


def oracle_class_sizes(rows: list[list[Any]]) -> list[int]:
    return [sum(1 for other in rows if other == row) for row in rows]


def oracle_containment(rows: list[list[int]]) -> list[int]:
    counts = []
    for row in rows:
        ones = {i for i, cell in enumerate(row) if cell == 1}
        counts.append(sum(1 for other in rows if ones <= {i for i, cell in enumerate(other) if cell == 1}))
    return counts


def oracle_groups(rows: list[list[Any]], sensitive: list[Any]) -> list[list[Any]]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row, value in zip(rows, sensitive, strict=True):
        groups.setdefault(tuple(row), []).append(value)
    return list(groups.values())


def oracle_distinct(rows: list[list[Any]], sensitive: list[Any]) -> int:
    return min((len(set(group)) for group in oracle_groups(rows, sensitive)), default=0)


def oracle_entropy(rows: list[list[Any]], sensitive: list[Any]) -> float:
    levels = []
    for group in oracle_groups(rows, sensitive):
        shares = [n / len(group) for n in Counter(group).values()]
        levels.append(2 ** -sum(p * math.log2(p) for p in shares))
    return min(levels, default=0.0)


def oracle_satisfies_recursive(group: list[Any], c: Fraction, length: int) -> bool:
    counts = sorted(Counter(group).values(), reverse=True)
    return counts[0] < c * sum(counts[length - 1 :])


def oracle_recursive(rows: list[list[Any]], sensitive: list[Any], c: Fraction) -> int:
    groups = oracle_groups(rows, sensitive)
    if not groups:
        return 0
    holding = [n for n in range(1, len(sensitive) + 2) if all(oracle_satisfies_recursive(g, c, n) for g in groups)]
    return max(holding, default=0)


def oracle_equal_distance(rows: list[list[Any]], sensitive: list[Any]) -> float:
    whole = Counter(sensitive)
    distances = []
    for group in oracle_groups(rows, sensitive):
        own = Counter(group)
        distances.append(sum(abs(own[v] / len(group) - n / len(sensitive)) for v, n in whole.items()) / 2)
    return max(distances, default=1.0)


def oracle_ordered_distance(rows: list[list[Any]], sensitive: list[Any]) -> float:
    values = sorted(set(sensitive), key=lambda v: (v is None, v if v is not None else 0))
    distances = []
    for group in oracle_groups(rows, sensitive):
        total = 0.0
        for i in range(1, len(values) + 1):
            head = values[:i]
            total += abs(
                sum(v in head for v in group) / len(group) - sum(v in head for v in sensitive) / len(sensitive)
            )
        distances.append(total / (len(values) - 1) if len(values) > 1 else 0.0)
    return max(distances, default=1.0)


# --- manifests -------------------------------------------------------------------------------------------------------


def columns_of(table: Table | BinaryTable) -> list[dict[str, str]]:
    companions = table.coded_part
    features = table.feature_names if isinstance(table, BinaryTable) else ()
    listed = [{"name": n, "role": "quasi-identifier", "kind": "categorical"} for n in features]
    return listed + [{"name": c.name, "role": str(c.role), "kind": str(c.kind)} for c in companions.schema]


def sources_of(table: Table | BinaryTable) -> list[str]:
    companions = table.coded_part
    features = table.features if isinstance(table, BinaryTable) else ()
    return list(dict.fromkeys([*(f.column for f in features), *companions.schema.names()]))


def _described(table: Table | BinaryTable) -> Table:
    return table.coded_part


def manifest_of(
    released: Table | BinaryTable,
    guarantees: list[tuple[Guarantee, float]],
    original: Table | BinaryTable | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Write an honest manifest of a release by columns, with some entries replaced."""
    original = original if original is not None else released
    names = [c["name"] for c in columns_of(released)]
    sources = {r["column"] for r in changes.get("recodings", ())}
    manifest: dict[str, Any] = {
        "sfumato_manifest": 3,
        "input": {
            "name": "original.csv",
            "commitment": None,
            "format": "csv",
            "rows": original.n_rows,
            "columns": len(sources_of(original)),
        },
        "output": {
            "name": "released.csv",
            "sha256": None,
            "format": "csv",
            "rows": released.n_rows,
            "order": "as-read",
            "columns": columns_of(released),
        },
        "mechanism": {"name": "test", "parameters": {}, "seed": None},
        "missing": {"tokens": list(_described(original).schema.missing), "rows": "kept", "n_dropped": 0},
        "dropped_columns": [name for name in sources_of(original) if name not in {*names, *sources}],
        "recodings": [],
        "suppressed_rows": 0,
        "guarantees": [g.to_dict() | {"statement": g.describe(), "audited": level} for g, level in guarantees],
        "evidence": {},
        "versions": {"sfumato": "0.1.0"},
        "perturbation": None,
    }
    return sealed(manifest | changes)


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Give a manifest, as it comes back from a file, the digest that fits."""
    body = {key: value for key, value in json.loads(json.dumps(manifest)).items() if key != "digest"}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return body | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def row_containment(columns, names):
    """AC(e) of every row, from the patterns that the audit takes the least of."""
    patterns = Patterns(columns.ones(names), columns.row_counts)
    levels = [patterns.n_rows_in(patterns.including(p)) for p in range(len(patterns.n_rows_with))]
    return np.array(levels, dtype=np.int64)[patterns.of_row]
