"""Figures of what a release keeps of the table: columns, rows, and cells that are published unchanged."""

from __future__ import annotations

from sfumato.attack.risk import Attacked
from sfumato.figures.base import Direction, Figure, Unit
from sfumato.figures.changed_cells import changed_cells_fraction
from sfumato.manifest import AnyTable
from sfumato.mechanisms.base import Release
from sfumato.schema import WITHHELD, Role
from sfumato.table.binary import BinaryTable

_NOT_LEARNED_FROM = (*WITHHELD, Role.TARGET)


def _changed(attacked: Attacked) -> float:
    if attacked.manifest is None:
        return 0.0
    made = Release(attacked.released, attacked.manifest, kept_rows=attacked.kept_rows)
    return changed_cells_fraction(attacked.original, made)


def _n_columns(attacked: Attacked) -> int:
    """Count the columns of the original that something is released of, and a classifier could learn from."""
    inputs = _input_columns(attacked.original)
    if attacked.manifest is None:
        return len(inputs)
    source_of = {str(entry["name"]): str(entry["column"]) for entry in attacked.manifest.recodings}
    shown = {source_of.get(column["name"], column["name"]) for column in attacked.manifest.output["columns"]}
    return len(shown & inputs)


def _input_columns(table: AnyTable) -> set[str]:
    plain = {column.name for column in table.coded_part.schema if column.role not in _NOT_LEARNED_FROM}
    return plain | ({feature.column for feature in table.features} if isinstance(table, BinaryTable) else set())


FIGURES: tuple[Figure[Attacked], ...] = (
    Figure(
        name="changed_cells_fraction",
        words="share of the quasi-identifying cells that are not published unchanged",
        unit=Unit.SHARE,
        compute=_changed,
        heading="changed",
    ),
    Figure(
        name="n_columns",
        words="columns of the original that something was released of",
        unit=Unit.COUNT,
        compute=_n_columns,
        direction=Direction.HIGHER,
        heading="columns",
    ),
    Figure(
        name="n_rows",
        words="rows released",
        unit=Unit.COUNT,
        compute=lambda attacked: attacked.released.n_rows,
        direction=Direction.HIGHER,
        heading="rows",
    ),
)
