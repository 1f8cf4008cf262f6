"""What the codebook in a data file says of a column: its label, and the labels of its codes."""

from __future__ import annotations

from dataclasses import dataclass

Code = float | str
"""A number or text that is stored in place of a label."""


@dataclass(frozen=True, repr=False)
class ColumnLabels:
    """Labels of one column.

    Parameters
    ----------
    label : str or None
        What the column is about, for people.
    values : tuple of (code, text)
        Labels of the codes that are no missing codes, ascending by code.
    are_cells : bool
        Whether the column was read as these texts, because every code that occurs has one.

    Examples
    --------
    >>> ColumnLabels("Sex", ((1.0, "male"), (2.0, "female")), are_cells=True).codes()
    {'male': 1.0, 'female': 2.0}
    """

    label: str | None = None
    values: tuple[tuple[Code, str], ...] = ()
    are_cells: bool = False

    def __repr__(self) -> str:
        return f"ColumnLabels({len(self.values):,} value labels)"

    def codes(self) -> dict[str, Code]:
        """Give the code of each label."""
        return {text: code for code, text in self.values}
