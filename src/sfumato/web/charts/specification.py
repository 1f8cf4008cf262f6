"""What all charts share."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

HEIGHT = 380


def table_columns(*named: tuple[str, str]) -> list[dict[str, str]]:
    """Columns of the table beside a chart: fields of the data and what they are called.

    Examples
    --------
    >>> table_columns(("risk", "share at risk"))
    [{'field': 'risk', 'title': 'share at risk'}]
    """
    return [{"field": field, "title": title} for field, title in named]
