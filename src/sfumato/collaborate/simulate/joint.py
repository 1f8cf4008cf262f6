"""A session with a joint k on this machine, beside the same search over all rows in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.collaborate.joint.generalization import generalized_columns
from sfumato.collaborate.joint.party import certainty_penalty, places_of_rows
from sfumato.collaborate.joint.search import divide_pooled
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.transcript import SessionWatch
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.collaborate.simulate.simulation import SimulatedSession, dealt_rows, run_all, split_rows
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.table.coding import Table


@dataclass(frozen=True, kw_only=True)
class JointSimulation(SimulatedSession):
    """What all parties came to that made one table together.

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
    n_classes: int
    own_levels: dict[str, int]
    certainty_penalty: float
    pooled_certainty_penalty: float

    def figures(self) -> dict[str, Any]:
        """Sizes of classes and information loss."""
        names = ("k", "n_rows", "n_classes", "own_levels", "certainty_penalty", "pooled_certainty_penalty")
        return {name: getattr(self, name) for name in names}


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
    first = next(iter(ran["parties"].values()))
    pooled = divide_pooled(columns, places_of_rows(dealt_rows(table, parts), shared.features), plan.joint_k)
    return JointSimulation(
        k=first["k"],
        n_classes=first["n_classes"],
        own_levels={name: result["own_level"] for name, result in ran["parties"].items()},
        certainty_penalty=first["certainty_penalty"],
        pooled_certainty_penalty=certainty_penalty(columns, pooled, [len(one.rows) for one in pooled]),
        **ran,
    )
