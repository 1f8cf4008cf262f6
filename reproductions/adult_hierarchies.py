"""Hierarchies for UCI Adult: nine of the ARX project, from the folder of public data sets, and two of our own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from reproductions.public_data import data_folder
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.mechanisms.hierarchies.hierarchy import ROOT, Hierarchy

_OF_ARX = {
    "age": "age",
    "education": "education",
    "marital-status": "marital-status",
    "native-country": "native-country",
    "occupation": "occupation",
    "race": "race",
    "salary": "salary-class",
    "sex": "sex",
    "workclass": "workclass",
}
_RELATIONSHIP = (
    ("Husband", "Spouse", "In a couple", ROOT),
    ("Wife", "Spouse", "In a couple", ROOT),
    ("Own-child", "Child or relative", "Not in a couple", ROOT),
    ("Other-relative", "Child or relative", "Not in a couple", ROOT),
    ("Not-in-family", "Living without a spouse", "Not in a couple", ROOT),
    ("Unmarried", "Living without a spouse", "Not in a couple", ROOT),
)
_LONGEST_WEEK = 99
_WEEKS_BEGIN = (
    (1, 10, 20, 30, 35, 41, 46, 51, 61, 81),
    (1, 20, 35, 41, 51, 61),
    (1, 35, 41),
)


def adult_hierarchies() -> dict[str, Hierarchy]:
    """Hierarchies of the quasi-identifiers and the target of :func:`reproductions.public_data.load_adult`, by column.

    Hours per week are cut into part time (up to 34), full time (35 to 40) and more, and finer.

    Raises
    ------
    InputError
        If the folder of public data sets, or the folder ``adult-arx`` in it, is not there.
    """
    folder = data_folder() / "adult-arx"
    of_arx = {name: read_hierarchy(folder / f"adult_hierarchy_{stem}.csv") for name, stem in _OF_ARX.items()}
    return of_arx | {"relationship": Hierarchy.from_rows(_RELATIONSHIP), "hours-per-week": _hours_per_week()}


def _hours_per_week() -> Hierarchy:
    hours = range(1, _LONGEST_WEEK + 1)
    rows = [(str(hour), *(_week(hour, begins) for begins in _WEEKS_BEGIN), ROOT) for hour in hours]
    return Hierarchy.from_rows(rows)


def _week(hour: int, begins: Sequence[int]) -> str:
    place = bisect_right(begins, hour)
    last = begins[place] - 1 if place < len(begins) else _LONGEST_WEEK
    return f"[{begins[place - 1]}, {last}]"
