"""Figures of risk: what each attack on a release reaches, see :data:`sfumato.attack.risk.ATTACKS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sfumato.attack.risk import ATTACKS, Attacked
from sfumato.figures.base import Audience, Case, Figure, Unit, Value

_COLUMNS_TO_BLAME = 5


def _reidentified(*path: str) -> Callable[[Attacked], Value]:
    """Read one number of re-identification, which has some of persons alone."""

    def read(attacked: Attacked) -> Value:
        found: Any = attacked.applied("reidentification")
        for name in path:
            found = None if found is None else found.get(name)
        value: Value = found
        return value

    return read


def _of_each(attack: str, read: Callable[[Mapping[str, Any]], tuple[Case, Value]]) -> Callable[[Attacked], Any]:
    """Read one number of each entry that an attack lists; entries that do not apply have none."""

    def values(attacked: Attacked) -> Mapping[Case, Value]:
        entries = attacked.applied(attack) or ()
        return dict(read(entry) for entry in entries if "not_applicable" not in entry)

    return values


def _by_column(name: str) -> Callable[[Attacked], Any]:
    return _of_each("inference", lambda entry: ((entry["column"], entry["majority"]), entry[name]))


def _breach_increase(entry: Mapping[str, Any]) -> tuple[Case, Value]:
    low, high = (f"{end:.1f}" for end in entry["interval"])
    return (entry["column"], low, high), entry["breach_increase_percent"]


def _by_background(name: str) -> Callable[[Attacked], Any]:
    def read(entry: Mapping[str, Any]) -> tuple[Case, Value]:
        size, found = entry["n_background"], entry[name]
        return (f"{size} columns" if size > 1 else "column",), tuple(found) if isinstance(found, list) else found

    return _of_each("linkage", read)


def _by_class_size(attacked: Attacked) -> Mapping[Case, Value]:
    found: dict[Case, Value] = {}
    for entry in attacked.applied("class_sizes") or ():
        low, high = entry["from"], entry["to"]
        size = f"{low} or more" if high is None else f"{low}" if low == high else f"{low} to {high}"
        found[(size,)] = entry["n_rows"]
    return found


def _of_uniques(name: str) -> Callable[[Attacked], Mapping[Case, Value]]:
    def read(attacked: Attacked) -> Mapping[Case, Value]:
        found = attacked.applied("uniques")
        return {} if found is None else {(found["largest_set"],): found[name]}

    return read


def _blamed(attacked: Attacked) -> Mapping[Case, Value]:
    columns = (attacked.applied("uniques") or {}).get("columns", ())
    return {(entry["column"],): entry["share"] for entry in columns[:_COLUMNS_TO_BLAME] if entry["n_minimal"]}


def _by_known_ones(attacked: Attacked) -> list[tuple[tuple[str, int], float]]:
    entries = attacked.applied("containment") or ()
    return [((crowd, entry["n_known"]), share) for entry in entries for crowd, share in entry["below"].items()]


def _fewest_candidates(attacked: Attacked) -> Mapping[Case, Value]:
    found = _by_known_ones(attacked)
    return {case: share for case, share in found if case[0] == found[0][0][0]}


def _few_candidates(attacked: Attacked) -> Mapping[Case, Value]:
    found = _by_known_ones(attacked)
    return {case: share for case, share in found if case[0] != found[0][0][0]}


def _by_all(name: str, words: str, *path: str, unit: Unit = Unit.SHARE, **more: Any) -> Figure[Attacked]:
    return Figure(name, words, unit, _reidentified(*path), **more)


def _under(group: str, *figures: Figure[Attacked]) -> tuple[Figure[Attacked], ...]:
    return tuple(replace(figure, group=group) for figure in figures)


_HOLDER, _ATTACKER = Audience.HOLDER, Audience.ATTACKER
_IN_TABLE, _NOT_IN_IT = "known to be in the table (prosecutor)", "not known to be in it (journalist)"
_ANY_ROW = "any of a person's rows named right, one guess a group"
_FEW = "{known} with fewer than {0} candidates when {1} of their 1-values are known"

MARKETER = _by_all("marketer", "share of {counted} re-identified (marketer attack)", "marketer")
"""Risk by which a comparison ranks."""

FIGURES: tuple[Figure[Attacked], ...] = (
    *_under(
        ATTACKS["reidentification"].title,
        MARKETER,
        _by_all("highest_prosecutor", f"highest risk of a {{one}}, {_IN_TABLE}", "prosecutor", "highest"),
        _by_all("mean_prosecutor", f"mean risk of a {{one}}, {_IN_TABLE}", "prosecutor", "mean", audience=_HOLDER),
        _by_all("highest_journalist", f"highest risk of a {{one}}, {_NOT_IN_IT}", "journalist", "highest"),
        _by_all("mean_journalist", f"mean risk of a {{one}}, {_NOT_IN_IT}", "journalist", "mean", audience=_HOLDER),
        _by_all("n_found", "{whose} found with certainty", "n_found", unit=Unit.COUNT, audience=_HOLDER),
        _by_all("highest_any_row", f"{_ANY_ROW}: highest", "any_row", "highest", audience=_HOLDER),
        _by_all("mean_any_row", f"{_ANY_ROW}: mean", "any_row", "mean", audience=_HOLDER),
        _by_all(
            "largest_share", "largest share of one person in the rows of a group", "largest_share", audience=_HOLDER
        ),
    ),
    *_under(
        "Rows by the size of their equivalence class",
        Figure("rows_in_groups", "rows in groups of {0}", Unit.COUNT, _by_class_size, audience=_ATTACKER),
    ),
    *_under(
        ATTACKS["uniques"].title,
        Figure(
            "unique_rows",
            "rows that are unique on {0} or fewer columns",
            Unit.COUNT,
            _of_uniques("n_rows_with"),
            audience=_HOLDER,
        ),
        Figure(
            "minimal_uniques",
            "minimal sample uniques of {0} or fewer columns",
            Unit.COUNT,
            _of_uniques("n_minimal"),
            audience=_ATTACKER,
        ),
        Figure("uniques_with", "of these with '{0}'", Unit.SHARE, _blamed, audience=_ATTACKER),
    ),
    *_under(
        ATTACKS["inference"].title,
        Figure(
            "guessed_right",
            "'{0}' guessed right (majority value: {1})",
            Unit.SHARE,
            _by_column("with_release"),
            baseline=_by_column("with_original"),
        ),
        Figure(
            "breach_increase",
            "'{0}': breach increase in % (95 %: {1} to {2})",
            Unit.NUMBER,
            _of_each("inference", _breach_increase),
            audience=_ATTACKER,
            baseline=lambda _: {},
        ),
    ),
    *_under(
        ATTACKS["linkage"].title,
        Figure(
            "linked", "{known} found by the worst {0}", Unit.COUNT, _by_background("n_reidentified"), audience=_HOLDER
        ),
        Figure("linked_by", "the worst {0}", Unit.NAMES, _by_background("columns"), audience=_ATTACKER),
    ),
    *_under(
        ATTACKS["containment"].title,
        Figure("fewest_candidates", _FEW, Unit.SHARE, _fewest_candidates, audience=_HOLDER),
        Figure("few_candidates", _FEW, Unit.SHARE, _few_candidates, audience=_ATTACKER),
    ),
)
