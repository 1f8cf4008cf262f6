"""A release whose rows are not unique on all columns together: tried before it is offered, with what it costs.

k-anonymity covers quasi-identifiers. A sensitive column, another one or the target makes a row of a class unique, and
whoever knows its value of a person finds the row. Where these columns are quasi-identifiers too (or left out), only the
target is left, and larger classes seldom have one row of a target value.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.risk import attacked_rows
from sfumato.audit.reading.columns import Columns
from sfumato.errors import SfumatoError
from sfumato.manifest import AnyTable
from sfumato.mechanisms.auto import Automatic
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.progress import Progress
from sfumato.publishing.propose import make_release
from sfumato.report.detail import mean_detail_left
from sfumato.report.guarantee_texts import share_in_words
from sfumato.report.in_short import MOST_UNIQUE, Prediction, unique_share
from sfumato.report.measured import area_kept
from sfumato.schema import Role
from sfumato.table.coding import Table

MOST_ROWS_TRIED = 20_000
_MOST_TARGET_VALUES = 20
_TIMES_K = (1, 2, 4)


@dataclass(frozen=True)
class Remedy:
    """Roles and k by which few rows are unique, and what it costs: before and with the remedy.

    Parameters
    ----------
    roles : mapping of str to Role
        Of the columns whose role changes.
    k : int
    unique : float
        Share of unique rows with it.
    detail : tuple of two float or None
        Mean share of detail left in the columns, see :mod:`sfumato.report.detail`.
    auc : tuple of two float or None
        Of the classifier that the five lines name; ``None`` where none was trained.
    """

    roles: Mapping[str, Role]
    k: int
    unique: float
    detail: tuple[float, float] | None
    auc: tuple[float, float] | None

    def cost_in_words(self) -> str:
        """Say what it reaches and what it costs on one line."""
        costs = []
        if self.auc is not None:
            costs.append(f"AUC {self.auc[1]:.3f} instead of {self.auc[0]:.3f}")
        if self.detail is not None:
            kept, before = share_in_words(self.detail[1]), share_in_words(self.detail[0])
            costs.append(f"{kept} of the detail left instead of {before}")
        costs.append(f"k = {self.k}")
        return f"tried: {share_in_words(self.unique)} of rows are then unique; it costs: {', '.join(costs)}"


def remedy_for(
    release: Release,
    original: AnyTable,
    mechanism: Mechanism,
    prediction: Prediction | str = "",
    *,
    progress: Progress | None = None,
) -> Remedy | None:
    """Try releases by other roles and a larger k, and give the first one with few unique rows.

    Parameters
    ----------
    mechanism : Mechanism
        What made the release. Only ``auto`` is tried with other settings.
    prediction : Prediction or str
        Of the release; its classifier is measured with the remedy too.

    Returns
    -------
    Remedy or None
        ``None`` where nothing has to be removed, none of the releases that were tried removes it, or the table is large
        (above 20,000 rows, or 20 values of the target): then nothing is tried.
    """
    if not isinstance(mechanism, Automatic) or not isinstance(original, Table):
        return None
    shown, target = Columns(release.table), original.schema.target
    n_target_values = 0 if target is None else original[target].n_distinct
    if original.n_rows > MOST_ROWS_TRIED or n_target_values > _MOST_TARGET_VALUES:
        return None
    if unique_share(shown, shown.names) <= MOST_UNIQUE:
        return None
    for roles, k in _ways(shown, mechanism.k):
        again = copy.copy(mechanism)
        again.k = k
        table = original.with_schema(roles)
        try:
            made = make_release(table, again, progress=progress)
        except SfumatoError:
            continue
        unique = unique_share(Columns(made.table), Columns(made.table).names)
        if unique > MOST_UNIQUE:
            continue
        return Remedy(roles, k, unique, _details(original, release, made), _areas(table, made, again, prediction))
    return None


def _ways(shown: Columns, k: int) -> Iterator[tuple[dict[str, Role], int]]:
    """Roles and k to try, the least change first: columns become quasi-identifiers, or are left out."""
    covered = shown.with_role(Role.QUASI_IDENTIFIER)
    sensitive = dict.fromkeys(shown.with_role(Role.SENSITIVE), Role.SENSITIVE_QUASI_IDENTIFIER)
    known = sensitive | dict.fromkeys(shown.with_role(Role.OTHER), Role.QUASI_IDENTIFIER)
    beside = {name: role for name, role in known.items() if name not in covered}
    by_target = unique_share(shown, (*covered, *shown.with_role(Role.TARGET)))
    sizes = [times * k for times in _TIMES_K if times > 1 or (beside and by_target <= MOST_UNIQUE)]
    yield from ((beside, size) for size in sizes)
    if beside:
        yield from ((dict.fromkeys(beside, Role.IDENTIFIER), size) for size in sizes)


def _details(original: Table, *releases: Release) -> tuple[float, float] | None:
    """Mean detail left in the columns of the original, in its own roles, before and with the remedy."""
    before, after = (
        mean_detail_left(Correspondence(attacked_rows(original, made.manifest), made.table, made.manifest))
        for made in releases
    )
    return None if before is None or after is None else (before, after)


def _areas(
    table: Table, made: Release, mechanism: Mechanism, prediction: Prediction | str
) -> tuple[float, float] | None:
    if isinstance(prediction, str) or prediction.auc_after is None:
        return None
    kept = area_kept(made, table, mechanism, prediction.name)
    return None if kept is None else (prediction.auc_after["mean"], kept)
