"""One point of a comparison: the release with its audit, the risk that is left and the utility that is kept."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.attack.kept_scores import KeptScores
from sfumato.attack.risk import risk_of
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SfumatoError
from sfumato.evaluation.classifiers import checked_classifiers
from sfumato.evaluation.grid import ORIGINAL, Point
from sfumato.evaluation.scores import MOST_SEED, evaluate
from sfumato.evaluation.treatment import learned_from
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms import build_mechanism
from sfumato.publishing import make_release
from sfumato.table.binary import BinaryTable

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
