"""One point of a comparison: the release with its audit, the risk that is left and the utility that is kept."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.attack.inference import KeptScores
from sfumato.attack.risk import risk_of
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError, SfumatoError
from sfumato.evaluation.classifiers import checked_classifiers
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.evaluation.scores import MOST_SEED, evaluate
from sfumato.evaluation.treatment import learned_from
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import MechanismInfo, combinations
from sfumato.mechanisms.registry import build_mechanism, mechanism_info, registered_mechanisms
from sfumato.publishing.publish import make_release
from sfumato.table.binary import BinaryTable

# Points of a comparison: which mechanisms with which parameters are tried on a table, and which are left out.


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

    Every mechanism proposes its own for the table (``compared`` of its
    :class:`sfumato.mechanisms.base.MechanismInfo`), or says why it has none here. One without a proposal is tried with
    its defaults.

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


QUICK_CLASSIFIERS = ("logistic-regression", "naive-bayes", "gradient-boosting")
MOST_ROWS = 50_000


class Status(StrEnum):
    """What became of a point."""

    DONE = "done"
    RELEASED = "released, utility not measured"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class Measuring:
    """How utility and risk of every point are measured.

    Parameters
    ----------
    classifiers : tuple of str
        Names in :data:`sfumato.evaluation.classifiers.CLASSIFIERS`.
    n_folds, seed : int
        Of the cross-validation; the seed is also that of the attacks.
    max_rows : int or None
        Utility is measured on so many rows at most, drawn at random; release and risk are of all rows.
    """

    classifiers: tuple[str, ...] = QUICK_CLASSIFIERS
    n_folds: int = 3
    seed: int = 0
    max_rows: int | None = MOST_ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "classifiers", checked_classifiers(self.classifiers))
        if isinstance(self.n_folds, bool) or not isinstance(self.n_folds, int) or self.n_folds < 2:
            raise InvalidParameterError("n_folds", f"got {self.n_folds!r}", allowed="a whole number of at least 2")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or not 0 <= self.seed < MOST_SEED:
            raise InvalidParameterError("seed", f"got {self.seed!r}", allowed="a whole number from 0 and below 2^32")
        if self.max_rows is not None and (not isinstance(self.max_rows, int) or self.max_rows < 2):
            raise InvalidParameterError("max_rows", f"got {self.max_rows!r}", allowed="at least 2, or None")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "classifiers": list(self.classifiers)}


def measure_point(
    table: AnyTable, point: Point, measuring: Measuring, kept: KeptScores | None = None
) -> dict[str, Any]:
    """Release, audit, attack and cross-validate; what goes wrong is part of the result and not raised.

    In the cross-validation the mechanism is fitted on the training rows of each fold alone, so that the same k is
    harder to reach there than on all rows. Where it cannot be reached there, the release stands without utility.
    ``kept`` are the attackers' scores with the original from other points, see :func:`sfumato.attack.risk.risk_of`.

    Returns
    -------
    dict
        ``mechanism``, ``parameters``, ``status`` (of :class:`Status`), ``reason``, ``best_level``,
        ``guarantees`` as audited, ``n_columns`` of the original that something was released of, ``n_rows`` released,
        ``risk``, ``utility``, ``seconds``, ``cpu_seconds`` and ``peak_memory_bytes``. Fit for JSON; no cell value is in
        it.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=120).keep(["age", "sex", "readmitted"])
    >>> found = measure_point(table, Point("mondrian", {"k": 5}), Measuring(("naive-bayes",), n_folds=2))
    >>> str(found["status"]), found["guarantees"][0]["k"], found["n_columns"]
    ('done', 5, 2)
    """
    started, cpu_started = time.perf_counter(), time.process_time()
    found = unmeasured(point, Status.FAILED)
    with _outcome_in(found):
        _release_and_attack(found, table, point, measuring.seed, kept)
    if found["risk"] is not None:
        with _outcome_in(found, "on the training rows of a fold: "):
            mechanism = None if point.mechanism == ORIGINAL else build_mechanism(point.mechanism, point.parameters)
            found["utility"] = evaluate(table, mechanism, **asdict(measuring)).to_dict()
            found["status"] = Status.DONE
        if found["status"] == Status.INFEASIBLE:
            reason = found["reason"].replace(" Nothing was released.", "")
            found |= {"status": Status.RELEASED, "reason": reason, "best_level": None}
    return found | {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu_started,
        "peak_memory_bytes": _peak_memory_bytes(),
    }


def unmeasured(point: Point, status: Status, reason: str | None = None) -> dict[str, Any]:
    """Make the result of a point of which nothing was measured."""
    return {
        "mechanism": point.mechanism,
        "parameters": dict(point.parameters),
        "status": status,
        "reason": reason,
        "best_level": None,
        "guarantees": [],
        "n_columns": None,
        "n_rows": None,
        "risk": None,
        "utility": None,
        "seconds": None,
        "cpu_seconds": None,
        "peak_memory_bytes": None,
    }


@contextmanager
def _outcome_in(found: dict[str, Any], place: str = "") -> Iterator[None]:
    """Write down what goes wrong; the text of an error that is not ours may quote a cell and is left out."""
    try:
        yield
    except PrivacyNotAchievableError as error:
        found |= {"status": Status.INFEASIBLE, "reason": place + str(error), "best_level": error.best_level}
    except SfumatoError as error:
        found |= {"reason": place + str(error)}
    except MemoryError:
        found |= {"reason": place + "not enough memory"}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        found |= {"reason": f"{place}{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}"}


def _release_and_attack(
    found: dict[str, Any], table: AnyTable, point: Point, seed: int, kept: KeptScores | None
) -> None:
    inputs = _input_columns(table)
    if point.mechanism == ORIGINAL:
        found |= {"n_columns": len(inputs), "n_rows": table.n_rows}
        found["risk"] = risk_of(table, table, seed=seed, kept=kept)
        return
    release = make_release(table, build_mechanism(point.mechanism, point.parameters))
    found |= {
        "guarantees": [_plain(entry) for entry in release.manifest.guarantees],
        "n_columns": len(_source_columns(release.manifest) & inputs),
        "n_rows": release.table.n_rows,
    }
    found["risk"] = risk_of(table, release.table, release.manifest, seed=seed, kept=kept)


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Guarantee without its lists of columns, which may be thousands; ``is_partial`` where it is not over all."""
    is_partial = bool(entry.get("protected")) and set(entry["protected"]) != set(entry["columns"])
    shown = {name: value for name, value in entry.items() if not isinstance(value, list | tuple)}
    return shown | {"is_partial": is_partial}


def _source_columns(manifest: Manifest) -> set[str]:
    """Columns of the original that something was released of."""
    source_of = {str(entry["name"]): str(entry["column"]) for entry in manifest.recodings}
    return {source_of.get(column["name"], column["name"]) for column in manifest.output["columns"]}


def _input_columns(table: AnyTable) -> set[str]:
    """Columns that a classifier could learn from."""
    if isinstance(table, BinaryTable):
        return {feature.column for feature in table.features} | set(learned_from(table.companions.schema))
    return set(learned_from(table.schema))


def _peak_memory_bytes() -> int | None:
    """Most memory that this process ever held; ``None`` where the system does not say."""
    try:
        import resource
        import sys
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
