"""What every file parser hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato.schema import Kind
from sfumato.table.coding import CodedColumn


@dataclass(frozen=True, repr=False)
class Parsed:
    """Coded columns with their kinds, and the physical line of a data row where lines exist."""

    columns: Mapping[str, CodedColumn]
    kinds: Mapping[str, Kind]
    n_rows: int
    line_of: Callable[[int], int | None] | None = None
