"""Points of a comparison: which mechanisms with which parameters are tried on a table, and which are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.contract import MechanismInfo, combinations
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.asked import AskedGuarantee
from sfumato.manifest import AnyTable
from sfumato.mechanisms import build_mechanism, mechanism_info, registered_mechanisms

ORIGINAL = "original"
"""Name of the table as it is, where it stands among the points."""
MOST_POINTS = 10_000
Proposals = dict[str, tuple[MechanismInfo, Sequence[Mapping[str, Any]]]]
TIME_LIMITS = frozenset({"max_seconds", "time_budget"})
_NOT_SHOWN = TIME_LIMITS | {"binarize", "n_workers"}


@dataclass(frozen=True)
class Point:
    """A mechanism with its parameters, or the table as it is.

    Examples
    --------
    >>> Point("mondrian", {"k": 5, "strict": False}).label
    'mondrian k=5 strict=false'
    """

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Mechanism and parameters in a line."""
        return " ".join([self.mechanism, *([self.settings] if self.settings else [])])

    @property
    def settings(self) -> str:
        """Parameters in a line; limits of time and rules for features are left out."""
        shown = {name: value for name, value in self.parameters.items() if name not in _NOT_SHOWN}
        return " ".join(f"{name}={_shown(value)}" for name, value in shown.items())


@dataclass(frozen=True)
class Grid:
    """Points to compare, and by name the reason why a mechanism is not among them."""

    points: tuple[Point, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "+".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def grid_for(
    table: AnyTable,
    chosen: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    mechanisms: Sequence[str] = (),
    binarize: Mapping[str, Any] | None = None,
    asked: Sequence[AskedGuarantee] = (),
) -> Grid:
    """Lay out the points of a comparison.

    Every mechanism proposes its own for the table (``compared`` of its :class:`sfumato.contract.MechanismInfo`), or
    says why it has none here. One without a proposal is tried with its defaults.

    Parameters
    ----------
    chosen : mapping or None
        By mechanism its parameters, each a value or a list of values; all combinations are tried, instead of what
        mechanisms propose, and other mechanisms are not.
    mechanisms : sequence of str
        Only these; empty means all.
    binarize : mapping or None
        How mixed columns become binary features, for mechanisms that need them and have no plan of their own.
    asked : sequence of AskedGuarantee
        What a release must promise: proposals with a less safe value get this one. ``chosen`` is taken as it is.

    Raises
    ------
    InvalidParameterError
        If there is no such mechanism or parameter, or a value that it does not take.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> grid = grid_for(admissions(n_rows=50), {"mondrian": {"k": [5, 10]}, "anatomy": {}})
    >>> [point.label for point in grid.points]
    ['mondrian k=5', 'mondrian k=10', 'anatomy']
    """
    for name in mechanisms:
        mechanism_info(name)
    proposed: Proposals
    left_out: dict[str, str] = {}
    if chosen:
        known = {name: mechanism_info(name) for name in chosen}
        listed = {name: {key: _values(key, value) for key, value in chosen[name].items()} for name in chosen}
        _check_number(listed)
        proposed = {name: (info, combinations(listed[name])) for name, info in known.items()}
    else:
        proposed, left_out = _proposed(table, asked)
    wanted = {name: found for name, found in proposed.items() if not mechanisms or name in mechanisms}
    points = tuple(
        _checked(Point(name, _with_plan(info, settings, binarize)))
        for name, (info, each) in wanted.items()
        for settings in each
    )
    return Grid(points, {name: why for name, why in left_out.items() if not mechanisms or name in mechanisms})


def _proposed(table: AnyTable, asked: Sequence[AskedGuarantee]) -> tuple[Proposals, dict[str, str]]:
    proposed: Proposals = {}
    left_out: dict[str, str] = {}
    for name, info in registered_mechanisms().items():
        try:
            settings = info.compared(table) if info.compared is not None else ({},)
            proposed[name] = info, _raised(settings, asked)
        except SchemaError as reason:
            left_out[name] = str(reason).removesuffix(".")
    return proposed, left_out


def _raised(settings: Sequence[Mapping[str, Any]], asked: Sequence[AskedGuarantee]) -> list[Mapping[str, Any]]:
    unique: list[Mapping[str, Any]] = []
    for one in settings:
        for guarantee in asked:
            one = guarantee.raised_in(one)
        if one not in unique:
            unique.append(one)
    return unique


def _values(name: str, value: Any) -> Sequence[Any]:
    values = value if isinstance(value, list | tuple) else [value]
    if not values:
        raise InvalidParameterError(name, "got an empty list", allowed="a value or a list of values")
    return values


def _check_number(listed: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
    total = 0
    for lists in listed.values():
        n_points = 1
        for values in lists.values():
            n_points *= len(values)
        total += n_points
    if total > MOST_POINTS:
        raise InvalidParameterError("the grid", f"got {total:,} points", allowed=f"of at most {MOST_POINTS:,} points")


def _with_plan(
    info: MechanismInfo, settings: Mapping[str, Any], binarize: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    takes_plan = "binarize" in {parameter.name for parameter in info.parameters}
    return (
        {**settings, "binarize": dict(binarize)} if binarize and takes_plan and "binarize" not in settings else settings
    )


def _checked(point: Point) -> Point:
    build_mechanism(point.mechanism, point.parameters)
    return point
