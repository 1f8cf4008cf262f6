"""Figures of risk: what each attack on a release reaches, see :data:`sfumato.attack.risk.ATTACKS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _columns_of_uniques(attacked: Attacked) -> Mapping[Case, Value]:
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


_ALL, _SIZES = ATTACKS["reidentification"].title, "Rows by the size of their equivalence class"
_UNIQUES, _GUESSED = ATTACKS["uniques"].title, ATTACKS["inference"].title
_LINKED, _MATCHED = ATTACKS["linkage"].title, ATTACKS["containment"].title
_FEW_CANDIDATES = "{known} with fewer than {0} candidates when {1} of their 1-values are known"

FIGURES: tuple[Figure[Attacked], ...] = (
    Figure(
        name="marketer",
        words="share of {counted} re-identified (marketer attack)",
        unit=Unit.SHARE,
        compute=_reidentified("marketer"),
        group=_ALL,
    ),
    Figure(
        name="highest_prosecutor",
        words="highest risk of a {one}, known to be in the table (prosecutor)",
        unit=Unit.SHARE,
        compute=_reidentified("prosecutor", "highest"),
        group=_ALL,
    ),
    Figure(
        name="mean_prosecutor",
        words="mean risk of a {one}, known to be in the table (prosecutor)",
        unit=Unit.SHARE,
        compute=_reidentified("prosecutor", "mean"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="highest_journalist",
        words="highest risk of a {one}, not known to be in it (journalist)",
        unit=Unit.SHARE,
        compute=_reidentified("journalist", "highest"),
        group=_ALL,
    ),
    Figure(
        name="mean_journalist",
        words="mean risk of a {one}, not known to be in it (journalist)",
        unit=Unit.SHARE,
        compute=_reidentified("journalist", "mean"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="n_found",
        words="{whose} found with certainty",
        unit=Unit.COUNT,
        compute=_reidentified("n_found"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="highest_any_row",
        words="any of a person's rows named right, one guess a group: highest",
        unit=Unit.SHARE,
        compute=_reidentified("any_row", "highest"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="mean_any_row",
        words="any of a person's rows named right, one guess a group: mean",
        unit=Unit.SHARE,
        compute=_reidentified("any_row", "mean"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="largest_share",
        words="largest share of one person in the rows of a group",
        unit=Unit.SHARE,
        compute=_reidentified("largest_share"),
        group=_ALL,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="rows_by_class_size",
        words="rows in groups of {0}",
        unit=Unit.COUNT,
        compute=_by_class_size,
        group=_SIZES,
        audience=Audience.ATTACKER,
    ),
    Figure(
        name="unique_rows",
        words="rows that are unique on {0} or fewer columns",
        unit=Unit.COUNT,
        compute=_of_uniques("n_rows_with"),
        group=_UNIQUES,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="minimal_uniques",
        words="minimal sample uniques of {0} or fewer columns",
        unit=Unit.COUNT,
        compute=_of_uniques("n_minimal"),
        group=_UNIQUES,
        audience=Audience.ATTACKER,
    ),
    Figure(
        name="minimal_uniques_with",
        words="of these with '{0}'",
        unit=Unit.SHARE,
        compute=_columns_of_uniques,
        group=_UNIQUES,
        audience=Audience.ATTACKER,
    ),
    Figure(
        name="guessed_right",
        words="'{0}' guessed right (majority value: {1})",
        unit=Unit.SHARE,
        compute=_by_column("with_release"),
        group=_GUESSED,
        baseline=_by_column("with_original"),
    ),
    Figure(
        name="breach_increase",
        words="'{0}': breach increase in % (95 %: {1} to {2})",
        unit=Unit.NUMBER,
        compute=_of_each("inference", _breach_increase),
        group=_GUESSED,
        audience=Audience.ATTACKER,
        baseline=lambda _: {},
    ),
    Figure(
        name="linked",
        words="{known} found by the worst {0}",
        unit=Unit.COUNT,
        compute=_by_background("n_reidentified"),
        group=_LINKED,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="linked_by",
        words="the worst {0}",
        unit=Unit.NAMES,
        compute=_by_background("columns"),
        group=_LINKED,
        audience=Audience.ATTACKER,
    ),
    Figure(
        name="fewest_candidates",
        words=_FEW_CANDIDATES,
        unit=Unit.SHARE,
        compute=_fewest_candidates,
        group=_MATCHED,
        audience=Audience.HOLDER,
    ),
    Figure(
        name="few_candidates",
        words=_FEW_CANDIDATES,
        unit=Unit.SHARE,
        compute=_few_candidates,
        group=_MATCHED,
        audience=Audience.ATTACKER,
    ),
)
