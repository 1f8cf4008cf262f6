"""How exact a selection over secret shares is: what :mod:`sfumato.collaborate.selection_only` states in words."""

from __future__ import annotations

from sfumato.collaborate.selection_only import TABLE_BITS


def tradeoff_error(n_values: int, n_classes: int, n_rows: int) -> float:
    """Largest error of a feature's trade-off.

    Examples
    --------
    >>> tradeoff_error(n_values=3, n_classes=22, n_rows=339) < 1e-10
    True
    """
    n_rounded = n_values * n_classes + 2 * n_values + 1
    return n_rounded / 2.0 ** (TABLE_BITS + 1) / n_rows
