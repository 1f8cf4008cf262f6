"""How every registered mechanism grows over rows: from a table in memory to the proposed release, not audited."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import Outcome
from benchmarks.generated import kept_census, kept_sparse, n_bytes
from benchmarks.growth import Curve, Growth

ROWS = (10_000, 100_000, 1_000_000, 10_000_000)
ZERO_ONE_COLUMNS = 15
MOST_SECONDS = 12.0
AUDITED_ROWS, AUDITED_BYTES = 10_000, 2_500_000
SEARCH_SECONDS = 1.5

PARAMETERS: dict[str, dict[str, Any]] = {
    "anatomy": {"l": 2},
    "breach-aware": {"n_workers": 1, "allow_increase": True},
    "error-risk-tree": {"k": 10},
    "gain-recoding": {"k": 5, "max_seconds": SEARCH_SECONDS},
    "global-recoding": {"k": 5, "max_seconds": SEARCH_SECONDS},
    "mondrian": {"k": 5},
    "slicing": {"k": 5, "l": 2},
    "greedy-containment": {"k": 5, "on_infeasible": "skip"},
    "exact-containment": {"k": 5, "time_budget": SEARCH_SECONDS},
    "maximal-containment": {"k": 5, "time_budget": SEARCH_SECONDS},
    "optimal-containment": {"k": 5, "time_budget": SEARCH_SECONDS},
    "random-flipping": {"k": 5},
    "exponential-dp": {},
    "laplace-dp": {},
}
"""Of every registered mechanism; one that is missing here is run with its defaults."""
ZERO_ONE = (
    "exact-containment",
    "exponential-dp",
    "greedy-containment",
    "laplace-dp",
    "maximal-containment",
    "optimal-containment",
    "random-flipping",
)
"""Mechanisms for 0/1 features."""
SEARCHED_COLUMNS = {"gain-recoding": 6, "global-recoding": 6}
"""Quasi-identifiers for mechanisms whose search would use up its time with ten, whatever the rows."""
OWN_SECONDS = {"error-risk-tree": 30.0}
"""Limits of curves that end at a million rows for want of some seconds."""
OWN_ROWS = {"slicing": (10_000, 100_000, 300_000, 1_000_000)}
"""Rows of curves that have too few points below the limit otherwise."""


def mechanism_names() -> tuple[str, ...]:
    """Names of all registered mechanisms."""
    from sfumato.mechanisms.registry import registered_mechanisms

    return tuple(registered_mechanisms())


def load(name: str, n_rows: int, folder: Path) -> Any:
    """Make the table for a mechanism."""
    if name in ZERO_ONE:
        return name, kept_sparse(n_rows, ZERO_ONE_COLUMNS, folder)
    return name, kept_census(n_rows, SEARCHED_COLUMNS.get(name, 10), folder)


def release(loaded: Any) -> Any:
    """Let the mechanism propose a release."""
    from sfumato.mechanisms.registry import build_mechanism

    name, table = loaded
    return build_mechanism(name, PARAMETERS.get(name, {})).release(table)


def assess(loaded: Any, proposed: Any) -> Outcome:
    """Audit the release of a small table, and say how much there was to read."""
    from sfumato.audit import audit_release
    from sfumato.audit.auditor import AuditorHas, PublisherKnows

    _, table = loaded
    if table.n_rows <= AUDITED_ROWS and n_bytes(table) <= AUDITED_BYTES:
        audit_release(
            proposed.table,
            proposed.manifest.to_dict(),
            AuditorHas(original=table),
            publisher=PublisherKnows(levels_are_stated=False),
        ).raise_if_failed()
    return Outcome(None, {"bytes": n_bytes(table), "columns released": len(proposed.manifest.output["columns"])})


def curve(name: str) -> Curve:
    """Make the curve of one mechanism."""
    sizes, seconds = OWN_ROWS.get(name, ROWS), OWN_SECONDS.get(name)
    return Curve(name, partial(load, name), release, assess, sizes, most_seconds=seconds)


BENCHMARK = Growth(
    title="Release by every mechanism: census of 10 quasi-identifiers (6 for gain- and global-recoding), "
    f"{ZERO_ONE_COLUMNS} columns for the mechanisms of 0/1 features. Releases of up to {AUDITED_ROWS:,} rows are "
    "audited",
    goal="near-linear",
    axis="rows",
    curves=tuple(curve(name) for name in mechanism_names()),
    most_seconds=MOST_SECONDS,
)
