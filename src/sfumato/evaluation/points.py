"""One point of a comparison: the release with its audit, the risk that is left and the utility that is kept."""

from __future__ import annotations

import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.attack.risk import Attacked
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError, SfumatoError
from sfumato.evaluation.classifiers import checked_classifiers
from sfumato.evaluation.promises import checked_kinds, declared_kind, kind_title
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.evaluation.scores import MOST_SEED, Utility, evaluate
from sfumato.evaluation.treatment import class_column, learned_from, repeatable
from sfumato.figures import COMPARED, SCORES
from sfumato.manifest import AnyTable
from sfumato.mechanisms.auto import Automatic
from sfumato.mechanisms.base import Mechanism, MechanismInfo, combinations
from sfumato.mechanisms.presets import PAPERS_OWN, PRESETS
from sfumato.mechanisms.registry import build_mechanism, find_mechanism, mechanism_info, registered_mechanisms
from sfumato.publishing.propose import make_release
from sfumato.schema import Role
from sfumato.table.binary import BinaryTable
from sfumato.table.persons import person_codes

# Points of a comparison: which mechanisms with which parameters are tried on a table, and which are left out.


ORIGINAL = "original"
"""Name of the table as it is, where it stands among the points."""
MOST_POINTS = 10_000
USUAL_K, USUAL_L = 5, 2
ON_REQUEST = ", which is tried on request"
PAPERS = "papers"
"""Asks a comparison for the papers' own systems, beside kinds of promises."""
Proposals = dict[str, tuple[MechanismInfo, Sequence[Mapping[str, Any]]]]
TIME_LIMITS = frozenset({"max_seconds", "time_budget"})
_NOT_SHOWN = TIME_LIMITS | {"binarize", "n_workers"}


@dataclass(frozen=True)
class Point:
    """A mechanism with its parameters, or the original table.

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
        """Parameters in a line; limits of time, rules for features and what a preset fixes are left out."""
        hidden = {*_NOT_SHOWN, *(PRESETS[self.mechanism].fixed if self.mechanism in PRESETS else ())}
        shown = {name: value for name, value in self.parameters.items() if name not in hidden}
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
    also: Sequence[str] = (),
) -> Grid:
    """Lay out the points of a comparison, cheap ones first.

    Every mechanism proposes its own for the table (``compared`` of its
    :class:`sfumato.mechanisms.base.MechanismInfo`), or says why it has none here. One without a proposal is tried with
    its defaults. Of the proposals those are taken that promise what is asked for.

    Parameters
    ----------
    chosen : mapping or None
        By mechanism its parameters, each a value or a list of values; all combinations are tried, instead of what
        mechanisms propose, and other mechanisms are not.
    mechanisms : sequence of str
        Only these, with all that they propose; empty means all that promise what is asked for.
    binarize : mapping or None
        How mixed columns become binary features, for mechanisms that need them and have no plan of their own.
    asked : sequence of AskedGuarantee
        What a release must promise: proposals with a less safe value get this one. Empty asks for what
        :func:`usual_guarantees` says. ``chosen`` is taken as it is.
    also : sequence of str
        Kinds of promises to try beside those that are asked for, see :mod:`sfumato.evaluation.promises`; ``papers``
        adds the papers' own systems (:mod:`sfumato.mechanisms.presets`), whatever they promise.

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
        proposed, left_out = _proposed(table, asked or usual_guarantees(table), mechanisms, also)
    wanted = {name: found for name, found in proposed.items() if not mechanisms or name in mechanisms}
    points = [
        _checked(Point(name, _with_plan(info, settings, binarize)))
        for name, (info, each) in wanted.items()
        for settings in each
    ]
    if not chosen:
        points = cheap_first(_without_doubles_of_auto(points, table), asked or usual_guarantees(table))
    return Grid(tuple(points), {name: why for name, why in left_out.items() if not mechanisms or name in mechanisms})


def usual_guarantees(table: AnyTable, *, with_l: bool = True) -> tuple[AskedGuarantee, ...]:
    """Ask for what a release must promise where nobody says: k = 5 and, where a column is sensitive, l = 2.

    It depends on the roles of the columns alone, never on what the rows allow. l is about every sensitive column. A
    mechanism that promises it of one column only fails where there are several, and its point says so.

    Examples
    --------
    >>> from sfumato.datasets.admissions import admissions
    >>> [str(guarantee) for guarantee in usual_guarantees(admissions(n_rows=20))]
    ['k >= 5', 'l >= 2']
    """
    plain = table.coded_part
    has_any = bool(plain.schema.names(Role.SENSITIVE))
    return (AskedGuarantee("k", USUAL_K), *([AskedGuarantee("l", USUAL_L)] if with_l and has_any else []))


def _without_doubles_of_auto(points: Sequence[Point], table: AnyTable) -> list[Point]:
    """Leave out points that make the release of auto under the name of the mechanism that it takes."""
    taken = []
    for point in points:
        mechanism = build_mechanism(point.mechanism, point.parameters)
        if isinstance(mechanism, Automatic):
            with suppress(SfumatoError):  # where it makes nothing, the point itself will say why
                taken.append(_made_by(mechanism.for_table(table)))
    return [point for point in points if _made_by(build_mechanism(point.mechanism, point.parameters)) not in taken]


def _made_by(mechanism: Mechanism) -> tuple[str, dict[str, Any]]:
    names = [parameter.name for parameter in mechanism_info(mechanism.mechanism_name).parameters]
    return mechanism.mechanism_name, {name: getattr(mechanism, name, None) for name in names}


def cheap_first(points: Sequence[Point], asked: Sequence[AskedGuarantee]) -> list[Point]:
    """Order points: first those at the very levels that are asked for, then by what their mechanisms say they cost."""

    def place(point: Point) -> tuple[bool, float]:
        info = find_mechanism(point.mechanism)
        levels = [(one.value, point.parameters.get(one.parameter)) for one in asked]
        is_other = any(level is not None and level != value for value, level in levels)
        return is_other, 1.0 if info is None else info.cost_of(point.parameters)

    return sorted(points, key=place)


def _proposed(
    table: AnyTable, asked: Sequence[AskedGuarantee], named: Sequence[str], also: Sequence[str]
) -> tuple[Proposals, dict[str, str]]:
    """Give by mechanism the proposals that promise what is asked for; all of those that are named, and presets."""
    kinds = checked_kinds(kind for kind in also if kind != PAPERS)
    presets = {
        name: mechanism_info(name)
        for name, preset in PRESETS.items()
        if preset.mechanism and ((PAPERS in also and name.startswith(PAPERS_OWN)) or name in named)
    }
    proposed: Proposals = {}
    left_out: dict[str, str] = {}
    for name, info in {**registered_mechanisms(), **presets}.items():
        try:
            raised = _raised(info, _suited(name, info, table, asked), asked)
            wanted = raised if name in (*named, *presets) else _wanted(info, raised, asked, kinds)
            proposed[name] = info, _protecting_all(info, wanted, table)
        except SchemaError as reason:
            left_out[name] = str(reason).removesuffix(".")
    return proposed, left_out


def _suited(
    name: str, info: MechanismInfo, table: AnyTable, asked: Sequence[AskedGuarantee]
) -> Sequence[Mapping[str, Any]]:
    """Give the settings that a mechanism proposes for a table, or those of a preset at the levels that are asked for.

    Raises
    ------
    SchemaError
        If it has none, with the reason.
    """
    repeats = person_codes(table) is not None
    if repeats and not info.build.counts_persons:
        problem = "it counts rows, and some persons have several"
        raise SchemaError(problem)
    if table.coded_part.schema.names(Role.SENSITIVE_QUASI_IDENTIFIER) and not info.build.takes_both_roles:
        problem = "a column is sensitive and a quasi-identifier, and it cannot treat a column as both"
        raise SchemaError(problem)
    settings = info.compared(table) if info.compared is not None else ({},)
    if name in PRESETS:
        preset = PRESETS[name]
        levels = {
            one.parameter: type(preset.usual[one.parameter])(one.value)
            for one in asked
            if one.parameter in preset.usual
        }
        settings = ({**preset.parameters, **levels},)
    if repeats:
        settings = [one for one in settings if not build_mechanism(name, one).why_rows_count()]
    return settings


def _protecting_all(
    info: MechanismInfo, settings: Sequence[Mapping[str, Any]], table: AnyTable
) -> Sequence[Mapping[str, Any]]:
    """Leave out settings that promise something of a sensitive column where there are several and it protects one.

    Raises
    ------
    SchemaError
        If there is no other.
    """
    plain = table.coded_part
    n_sensitive = len(plain.schema.names(Role.SENSITIVE))
    if not info.protects_one or n_sensitive < 2:
        return settings
    kept = [one for one in settings if all(one.get(asked.name) is None for asked in info.asked_parameters)]
    if not kept:
        problem = f"{n_sensitive:,} columns are sensitive, and it protects one"
        raise SchemaError(problem)
    return kept


def _raised(
    info: MechanismInfo, settings: Sequence[Mapping[str, Any]], asked: Sequence[AskedGuarantee]
) -> list[Mapping[str, Any]]:
    unique: list[Mapping[str, Any]] = []
    for one in settings:
        for guarantee in asked:
            one = _with_level(info, guarantee.raised_in(one), guarantee)
        if one not in unique:
            unique.append(one)
    return unique


def _with_level(info: MechanismInfo, settings: Mapping[str, Any], asked: AskedGuarantee) -> Mapping[str, Any]:
    """Add the asked level where a mechanism that can promise it would not by its default."""
    defaults = {parameter.name: parameter.default for parameter in info.parameters}
    if asked.parameter in settings or asked.parameter not in defaults:
        return settings
    default = defaults[asked.parameter]
    is_kept = default is not None and asked.allows(default)
    if is_kept or declared_kind(info, settings) != asked.kind:
        return settings
    return {**settings, asked.parameter: int(asked.value) if asked.value == int(asked.value) else asked.value}


def _wanted(
    info: MechanismInfo, settings: Sequence[Mapping[str, Any]], asked: Sequence[AskedGuarantee], also: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Keep the settings of a kind that is asked for.

    Raises
    ------
    SchemaError
        If there is none, with the reason.
    """
    kinds = {guarantee.kind for guarantee in asked}
    taken = {parameter.name for parameter in info.parameters}
    of_kind = [one for one in settings if declared_kind(info, one) in {*kinds, *also}]
    found = [one for one in of_kind if declared_kind(info, one) in also or _can_keep(info, one, asked, taken)]
    if found:
        return found
    if of_kind:
        missing = next(guarantee for guarantee in asked if guarantee.parameter not in taken)
        problem = f"it cannot promise {missing}"
        raise SchemaError(problem)
    own = dict.fromkeys(declared_kind(info, one) for one in settings)
    problem = f"it promises {' or '.join(kind_title(kind) for kind in own)}{ON_REQUEST}"
    raise SchemaError(problem)


def _can_keep(
    info: MechanismInfo, settings: Mapping[str, Any], asked: Sequence[AskedGuarantee], taken: Collection[str]
) -> bool:
    own = [guarantee for guarantee in asked if guarantee.kind == declared_kind(info, settings)]
    return all(guarantee.parameter in taken for guarantee in own)


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
MOST_ROWS = 20_000
MOST_CLASSES_BOOSTED = 50
MOST_LEVELS_BOOSTED = 150_000
_BINS = 255


def n_levels(table: AnyTable) -> int:
    """Count the different values of the columns that are learned from, 255 of each at most, which boosting tells apart.

    What training takes on a wide table grows with them: 25,000 columns of 0 and 1 are quick, 2,500 quantities are not.
    """
    coded = table.coded_part
    n_of_features = 2 * len(table.features) if isinstance(table, BinaryTable) else 0
    return n_of_features + sum(min(coded[name].n_distinct, _BINS) for name in learned_from(coded.schema))


def quick_classifiers(table: AnyTable) -> tuple[str, ...]:
    """Give the classifiers that a table is measured with where nobody names others.

    Boosting grows a tree for every class in each of its rounds, and looks at every level of every column for each
    branch: with more than 50 classes or 150,000 levels (see :func:`n_levels`) it is left out.

    Raises
    ------
    SchemaError
        If there is no target, or it is a quantity.
    """
    if class_column(table).n_distinct <= MOST_CLASSES_BOOSTED and n_levels(table) <= MOST_LEVELS_BOOSTED:
        return QUICK_CLASSIFIERS
    return tuple(name for name in QUICK_CLASSIFIERS if name != "gradient-boosting")


class Status(StrEnum):
    """What became of a point."""

    DONE = "done"
    RELEASED = "released, utility not measured"
    INFEASIBLE = "infeasible"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Measuring:
    """How utility and risk of every point are measured.

    Parameters
    ----------
    classifiers : tuple of str
        Names in :data:`sfumato.evaluation.classifiers.CLASSIFIERS`.
    n_folds, seed : int
        Of the cross-validation.
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


def measure_point(table: AnyTable, point: Point, measuring: Measuring) -> dict[str, Any]:
    """Release, audit, re-identify and cross-validate; what goes wrong is part of the result and not raised.

    In the cross-validation the mechanism is fitted on the training rows of each fold alone, so that the same k is
    harder to reach there than on all rows. Where it cannot be reached there, the release stands without utility.
    Of the attacks only the one whose figure is compared is made, see
    :meth:`sfumato.attack.risk.Attacked.reidentified`.

    Returns
    -------
    dict
        ``mechanism``, ``parameters``, ``status`` (of :class:`Status`), ``reason``, ``best_level``,
        ``guarantees`` as audited, ``perturbation`` (how cells were changed, as the manifest names it), every figure of
        :data:`sfumato.figures.COMPARED` by its name, ``risk``, ``utility``, ``fold_utility`` (by measure one number a
        fold, the mean over the classifiers), ``seconds``, ``cpu_seconds`` and ``peak_memory_bytes``. Fit for JSON; no
        cell value is in it.

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
        _release_and_attack(found, table, point)
    if found["risk"] is not None:
        with _outcome_in(found, "on the training rows of a fold: "):
            mechanism = None if point.mechanism == ORIGINAL else build_mechanism(point.mechanism, point.parameters)
            utility = evaluate(table, mechanism, **asdict(measuring))
            found |= {"utility": utility.to_dict(), "fold_utility": _fold_utility(utility), "status": Status.DONE}
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
        "perturbation": None,
        **{figure.name: None for figure in COMPARED},
        "risk": None,
        "utility": None,
        "fold_utility": None,
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


def _release_and_attack(found: dict[str, Any], table: AnyTable, point: Point) -> None:
    if point.mechanism == ORIGINAL:
        attacked = Attacked(table, table)
    else:
        release = make_release(table, repeatable(build_mechanism(point.mechanism, point.parameters)))
        found |= {
            "guarantees": [_plain(entry) for entry in release.manifest.guarantees],
            "perturbation": (release.manifest.perturbation or {}).get("kind"),
        }
        attacked = Attacked(table, release.table, release.manifest, kept_rows=release.kept_rows)
    found |= {figure.name: figure.value(attacked) for figure in COMPARED}
    found["risk"] = attacked.reidentified()


def _fold_utility(utility: Utility) -> dict[str, list[float | None]]:
    """Average each measure over the classifiers, fold by fold; ``None`` for a fold in which one has no number."""
    measured = {score.name: [scores.scores[score.name] for scores in utility.classifiers.values()] for score in SCORES}
    return {
        name: [_mean_of(numbers) for numbers in zip(*(one.folds for one in found if one), strict=True)]
        for name, found in measured.items()
        if all(found)
    }


def _mean_of(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if len(known) == len(numbers) else None


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Guarantee without its lists of columns, which may be thousands; ``is_partial`` where it is not over all."""
    is_partial = bool(entry.get("protected")) and set(entry["protected"]) != set(entry["columns"])
    shown = {name: value for name, value in entry.items() if not isinstance(value, list | tuple)}
    return shown | {"is_partial": is_partial}


def _peak_memory_bytes() -> int | None:
    """Most memory that this process ever held; ``None`` where the system does not say."""
    try:
        import resource
        import sys
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
