"""A session with a joint k on this machine, beside the same search over all rows in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.collaborate.joint.generalization import generalized_columns
from sfumato.collaborate.joint.party import certainty_penalty, places_of_rows
from sfumato.collaborate.joint.search import divide_pooled
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.transcript import SessionWatch
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.simulate.simulation import run_all, split_rows
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.table.coding import Table


@dataclass(frozen=True)
class JointSimulation:
    """What all parties came to, side by side.

    Parameters
    ----------
    k : int
        Rows of the smallest class of the union.
    own_levels : mapping of str to int
        Rows of the smallest class of each party's own rows in the same classes, which only the party itself knows.
    certainty_penalty, pooled_certainty_penalty : float
        Information loss of the parties' table, and of the same search over all rows in one place.
    """

    k: int
    n_rows: dict[str, int]
    n_classes: int
    own_levels: dict[str, int]
    certainty_penalty: float
    pooled_certainty_penalty: float
    parties: dict[str, dict[str, Any]]
    warnings: tuple[str, ...]
    cpu_seconds: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def simulate_jointly(
    table: Table,
    plan: Plan,
    *,
    parties: int = 3,
    sizes: Sequence[int] | None = None,
    seed: int = 0,
    schema: SharedSchema | None = None,
    hierarchies: Mapping[str, Path] | None = None,
    output_dir: Path | None = None,
    force: bool = False,
    watch: SessionWatch | None = None,
) -> JointSimulation:
    """Split a table among parties and let them publish one k-anonymous table of all their rows.

    Parameters
    ----------
    hierarchies : mapping of str to Path
        Hierarchy files by column.

    Other parameters and errors are those of :func:`sfumato.collaborate.simulate.simulation.simulate`.
    """
    if plan.joint_k is None:
        raise InvalidParameterError("joint_k", "got none", allowed="given")
    shared = schema or SharedSchema.of_table(table)
    files = dict(hierarchies or {})
    columns = generalized_columns(shared, {name: read_hierarchy(path) for name, path in files.items()})
    parts = split_rows(table.n_rows, parties=parties, sizes=sizes, seed=seed)
    ran = run_all(table, plan, shared, parts, hierarchies=files, output_dir=output_dir, force=force, watch=watch)
    first = next(iter(ran.found.values()))
    dealt = table.take(np.sort(np.concatenate(list(parts.values()))))
    pooled = divide_pooled(columns, places_of_rows(dealt, shared.features), plan.joint_k)
    return JointSimulation(
        k=first["k"],
        n_rows={name: len(rows) for name, rows in parts.items()},
        n_classes=first["n_classes"],
        own_levels={name: result["own_level"] for name, result in ran.found.items()},
        certainty_penalty=first["certainty_penalty"],
        pooled_certainty_penalty=certainty_penalty(columns, pooled, [len(one.rows) for one in pooled]),
        parties=ran.found,
        warnings=ran.warnings,
        cpu_seconds=ran.cpu_seconds,
        seconds=ran.seconds,
    )
