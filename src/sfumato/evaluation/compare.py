"""Run of a comparison: points in parallel processes, finished ones kept in a folder, so that a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing.connection
import os
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import NoneType
from typing import Any

from sfumato.atomic import explained_writing, write_atomically
from sfumato.errors import InvalidParameterError, OutputError, SchemaError
from sfumato.evaluation.comparison import Comparison
from sfumato.evaluation.points import (
    ORIGINAL,
    Grid,
    Measuring,
    Point,
    Status,
    grid_for,
    measure_point,
    quick_classifiers,
    unmeasured,
)
from sfumato.evaluation.requested_guarantees import AskedGuarantee, is_readable
from sfumato.evaluation.treatment import class_column, stratified_folds
from sfumato.figures import COMPARED, SCORES, Unit
from sfumato.manifest import AnyTable, tool_versions
from sfumato.mechanisms.breach.tradeoff import EvaluationWeights, evaluation_scores
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.processes import (
    cause_of_death,
    forking_context,
    interruptions_held_back,
    kill_with_group,
    one_thread_each,
    stand_alone,
)
from sfumato.progress import Progress
from sfumato.schema import COMPARISON_NAME, RUN_FOLDER, Column
from sfumato.table.binary import BinaryTable
from sfumato.table.coding import CodedColumn
from sfumato.table.identifiers.text_columns import check_text_columns
from sfumato.table.persons import person_codes

# Run folder: one JSON file for every finished point, so that a comparison that was ended goes on where it was.


RESULT_VERSION = 6
_NUMBER = (int, float)
_TYPES: Mapping[Unit, tuple[type, ...]] = {Unit.SHARE: _NUMBER, Unit.COUNT: (int,), Unit.NUMBER: _NUMBER}
_FIELDS: Mapping[str, tuple[type, ...]] = {
    "status": (str,),
    "reason": (str, NoneType),
    "best_level": (*_NUMBER, NoneType),
    "guarantees": (list,),
    "perturbation": (str, NoneType),
    **{figure.name: (*_TYPES[figure.unit], NoneType) for figure in COMPARED},
    "risk": (dict, NoneType),
    "utility": (dict, NoneType),
    "fold_utility": (dict, NoneType),
    "seconds": (*_NUMBER, NoneType),
    "cpu_seconds": (*_NUMBER, NoneType),
    "peak_memory_bytes": (int, NoneType),
}
_IF_DONE = ("n_columns", "n_rows", "risk", "utility", "seconds", "cpu_seconds")


def table_fingerprint(table: AnyTable) -> str:
    """SHA-256 over everything in a table that a result depends on: cells in their order, names, roles and kinds.

    Hierarchy files count by their contents. A table that is read again from the same file has the same fingerprint.
    """
    plain = table.coded_part
    digest = hashlib.sha256()
    for column in plain.schema:
        digest.update(_line("column", _described(column)))
        _add_cells(digest, plain[column.name])
    if isinstance(table, BinaryTable):
        for feature in table.features:
            digest.update(_line("feature", feature.to_dict()))
        for part in (table.matrix.indptr, table.matrix.indices):
            digest.update(part.astype("<i8").tobytes())
    digest.update(_line("missing", list(plain.schema.missing)))
    return digest.hexdigest()


def _described(column: Column) -> dict[str, Any]:
    domain, own = column.domain, column.missing
    return {
        "name": column.name,
        "role": column.role,
        "kind": column.kind,
        "domain": None if domain is None else [str(value) for value in domain],
        "missing": None if own is None else list(own),
        "hierarchy": _file_digest(column.hierarchy) if column.hierarchy else None,
    }


def _add_cells(digest: Any, column: CodedColumn) -> None:
    for value in column.values.to_pylist():
        text = repr(value).encode()
        digest.update(len(text).to_bytes(8, "little") + text)
    digest.update(_line("rows", len(column.codes)))
    digest.update(column.codes.astype("<i4").tobytes())


def _line(what: str, content: Any) -> bytes:
    return json.dumps([what, content], sort_keys=True, default=str).encode() + b"\n"


def _file_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return "unreadable"


@dataclass(frozen=True)
class RunFolder:
    """A folder of results.

    Parameters
    ----------
    path : Path
        Made when the first result is written. Other files in it are left alone.
    fingerprint : str
        Of the table, see :func:`table_fingerprint`.
    measuring : Measuring
    """

    path: Path
    fingerprint: str
    measuring: Measuring

    def key(self, point: Point) -> str:
        """SHA-256 over all that a result depends on: data, mechanism, parameters, measuring and versions."""
        parameters = {name: _with_contents(name, value) for name, value in point.parameters.items()}
        depends_on = {
            "result": RESULT_VERSION,
            "table": self.fingerprint,
            "mechanism": point.mechanism,
            "parameters": parameters,
            "measuring": self.measuring.to_dict(),
            "versions": tool_versions(),
        }
        return hashlib.sha256(_line("point", depends_on)).hexdigest()

    def path_of(self, point: Point) -> Path:
        """File of a point's result."""
        return self.path / f"{point.mechanism.replace(':', '-')}-{self.key(point)[:16]}.json"

    def prepare(self) -> None:
        """Make the folder, or refuse what cannot be one."""
        if self.path.exists() and not self.path.is_dir():
            problem = "is a file, not a folder"
            raise OutputError(problem, path=self.path, hint="name another folder", remedy=("run_folder",))
        with explained_writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def load(self, point: Point) -> dict[str, Any] | None:
        """Read the result of a point; ``None`` if there is none, or the file is not one of ours or was changed."""
        try:
            found = json.loads(self.path_of(point).read_bytes(), parse_constant=_no_number)
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.pop("key", None) != self.key(point):
            return None
        found |= {"mechanism": point.mechanism, "parameters": dict(point.parameters)}
        return found if _is_whole(found, self.measuring) else None

    def is_finished(self, point: Point, timeout: float | None) -> bool:
        """Whether a point need not be tried again: it is done, cannot be met, or needs more time than there is."""
        found = self.load(point)
        if found is None or found["status"] == Status.FAILED:
            return False
        if found["status"] != Status.TIMED_OUT:
            return True
        return timeout is not None and found["timeout"] >= timeout

    def save(self, point: Point, result: Mapping[str, Any]) -> None:
        """Write a result, whole or not at all."""
        content = json.dumps({"key": self.key(point), **result}, indent=1, allow_nan=False)
        write_atomically(self.path_of(point), content.encode() + b"\n", force=True)

    def keep(self, found: Comparison) -> None:
        """Write down what the comparison has found so far, so that it can be shown however it ends."""
        content = json.dumps({"table": self.fingerprint, **found.to_kept()}, allow_nan=False)
        write_atomically(self.path / COMPARISON_NAME, content.encode() + b"\n", force=True)


def _with_contents(name: str, value: Any) -> Any:
    """Hierarchy files by their contents, everything else as it is."""
    if name == "hierarchies" and isinstance(value, Mapping):
        return {key: _file_digest(str(file)) for key, file in value.items()}
    return value


def _no_number(text: str) -> None:
    raise ValueError(text)


def _is_whole(found: Mapping[str, Any], measuring: Measuring) -> bool:
    """Whether all that a comparison reads of a result is there and of its type."""
    if not all(name in found and _is_of(found[name], types) for name, types in _FIELDS.items()):
        return False
    if found["status"] not in set(Status) or not all(map(_is_guarantee, found["guarantees"])):
        return False
    if found["status"] == Status.TIMED_OUT and not _is_of(found.get("timeout"), _NUMBER):
        return False
    if found["status"] == Status.DONE and any(found[name] is None for name in _IF_DONE):
        return False
    has_folds = _has_fold_scores(found["fold_utility"])
    return has_folds and _has_headline(found["risk"]) and _has_scores(found["utility"], measuring.classifiers)


def _has_fold_scores(found: Mapping[str, Any] | None) -> bool:
    folds = [] if found is None else list(found.values())
    return all(isinstance(one, list) and all(_is_of(score, (*_NUMBER, NoneType)) for score in one) for one in folds)


def _is_of(value: Any, types: tuple[type, ...]) -> bool:
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return isinstance(value, types) and not isinstance(value, bool) and is_finite


def _is_guarantee(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("kind"), str)
        and isinstance(entry.get("is_partial"), bool)
        and is_readable(entry)
    )


def _has_headline(risk: Mapping[str, Any] | None) -> bool:
    if risk is None:
        return True
    headline = risk.get("headline")
    return isinstance(headline, dict) and _is_of(headline.get("marketer", ""), (*_NUMBER, NoneType))


def _has_scores(utility: Mapping[str, Any] | None, classifiers: Sequence[str]) -> bool:
    if utility is None:
        return True
    found = utility.get("classifiers")
    if not isinstance(found, dict) or set(found) != set(classifiers):
        return False
    return all(isinstance(scores, dict) and _has_means(scores) for scores in found.values())


def _has_means(scores: Mapping[str, Any]) -> bool:
    means = [scores.get(score.name, "") for score in SCORES]
    return all(one is None or (isinstance(one, dict) and _is_of(one.get("mean"), _NUMBER)) for one in means)


# Points in processes of their own, a few at a time, each with one thread and a time limit.
#
# A process that hangs, crashes or eats all memory costs its own point and no other. Each writes its result itself.


_SECONDS_TO_DIE = 5.0


@dataclass(frozen=True, eq=False)
class _Running:
    point: Point
    process: BaseProcess
    started: float
    earlier: Mapping[str, Any] | None = None

    def seconds_left(self, timeout: float | None) -> float | None:
        return None if timeout is None else max(self.started + timeout - time.monotonic(), 0.0)


def measure_in_processes(
    table: AnyTable,
    points: Sequence[Point],
    folder: RunFolder,
    *,
    workers: int,
    timeout: float | None,
    finished: Callable[[Point], None],
    ends_at: float | None = None,
) -> None:
    """Measure points in their order and leave the results in the run folder; whatever ends this ends all processes.

    Parameters
    ----------
    workers : int
        How many run at once.
    timeout : float or None
        Seconds after which a point is given up.
    finished : callable
        Called with every point that has a result.
    ends_at : float or None
        Time on the monotonic clock at which all of it ends; points that are not finished then have no result.
    """
    waiting, running = deque(points), list[_Running]()
    with one_thread_each():
        context = _context()
        try:
            while (waiting or running) and not _is_past(ends_at):
                while waiting and len(running) < workers:
                    running.append(_started(context, table, waiting.popleft(), folder))
                _wait(running, timeout, ends_at)
                for one in [one for one in running if _is_over(one, folder, timeout)]:
                    running.remove(one)
                    finished(one.point)
        finally:
            for one in running:
                _kill(one.process)


def _context() -> Any:
    families = {info.build.__module__ for info in registered_mechanisms().values()}
    return forking_context([__name__, *sorted(families)])


def _started(context: Any, table: AnyTable, point: Point, folder: RunFolder) -> _Running:
    given = (table, point, folder, tempfile.gettempdir())
    process = context.Process(target=_measure_and_save, args=given, name=f"sfumato {point.mechanism}")
    earlier = folder.load(point)
    with interruptions_held_back():
        process.start()
    return _Running(point, process, time.monotonic(), earlier)


def _measure_and_save(table: AnyTable, point: Point, folder: RunFolder, temporary: str) -> None:
    """Measure one point, in a process that nobody interrupts and that ends when its parent does."""
    stand_alone()
    tempfile.tempdir = temporary  # the parent's: who kills both removes what both leave
    warnings.simplefilter("ignore")
    folder.save(point, measure_point(table, point, folder.measuring))


def _is_past(ends_at: float | None) -> bool:
    return ends_at is not None and time.monotonic() >= ends_at


def _wait(running: Sequence[_Running], timeout: float | None, ends_at: float | None) -> None:
    left = [one.seconds_left(timeout) for one in running]
    left.append(None if ends_at is None else max(ends_at - time.monotonic(), 0.0))
    known = [seconds for seconds in left if seconds is not None]
    multiprocessing.connection.wait([one.process.sentinel for one in running], min(known) if known else None)


def _is_over(one: _Running, folder: RunFolder, timeout: float | None) -> bool:
    """Whether a point has a result; one that took too long or died gets one that says so."""
    if not one.process.is_alive():
        one.process.join()
        if not _has_saved(one, folder):
            folder.save(one.point, unmeasured(one.point, Status.FAILED, cause_of_death(one.process.exitcode)))
        return True
    if timeout is None or one.seconds_left(timeout):
        return False
    _kill(one.process)
    if not _has_saved(one, folder):
        reason = f"took longer than {timeout:g} seconds"
        folder.save(one.point, unmeasured(one.point, Status.TIMED_OUT, reason) | {"timeout": timeout})
    return True


def _has_saved(one: _Running, folder: RunFolder) -> bool:
    """Whether there is a result that was not there before; no two have the same seconds."""
    found = folder.load(one.point)
    return found is not None and found != one.earlier


def _kill(process: BaseProcess) -> None:
    """End a process and those it has started."""
    kill_with_group(process)
    process.join(_SECONDS_TO_DIE)


TIMEOUT = 300.0


_STILL_RUNNING = "the comparison had not reached this point yet"


class ComparisonInterrupted(KeyboardInterrupt):
    """Somebody ended a comparison; ``found`` holds what was finished, and says what is missing."""

    def __init__(self, found: Comparison) -> None:
        super().__init__()
        self.found = found


def compare(
    table: AnyTable,
    grid: Grid | None = None,
    *,
    measuring: Measuring | None = None,
    weights: Sequence[float] = EvaluationWeights(),
    asked: Sequence[AskedGuarantee] = (),
    run_folder: str | Path = RUN_FOLDER,
    fresh: bool = False,
    workers: int | None = None,
    timeout: float | None = TIMEOUT,
    progress: Progress | None = None,
    also: Sequence[str] = (),
    time_limit: float | None = None,
    on_result: Callable[[Mapping[str, Any]], None] | None = None,
) -> Comparison:
    """Compare mechanisms on a table.

    Every point is released, audited, re-identified and cross-validated in a process of its own. One that fails, cannot
    be met or takes too long is a marked result. In a script, call this under ``if __name__ == "__main__":``, for new
    processes import it.

    Parameters
    ----------
    grid : Grid or None
        ``None`` takes what the mechanisms propose, see :func:`sfumato.evaluation.points.grid_for`.
    measuring : Measuring or None
        How utility and risk are measured.
    weights : sequence of 3 float
        Of utility, privacy and size in E(S).
    asked : sequence of AskedGuarantee
        What a recommended release must promise.
    run_folder : str or Path
        For the results. Those of an earlier run on the same table with the same settings and versions are used.
    fresh : bool
        Measure all points again.
    workers : int or None
        Processes at once; ``None`` for the number of cores.
    timeout : float or None
        Seconds for each point; ``None`` waits for ever.
    also : sequence of str
        Kinds of promises to try beside strict k-anonymity, where ``grid`` is not given; see
        :func:`sfumato.evaluation.points.grid_for`.
    time_limit : float or None
        Seconds for the whole comparison. Points that are not finished then are listed as not run; the next comparison
        with the same run folder goes on with them.
    on_result : callable or None
        Called with every result as it comes, those of the run folder first.

    Raises
    ------
    ComparisonInterrupted
        On Ctrl-C, with everything that was finished. It is a ``KeyboardInterrupt``.
    SchemaError
        If the table has no target with two classes or more, or a column may name people and nobody has confirmed it.
    InvalidParameterError
        If a parameter is out of its range, or there is no point.
    """
    check_text_columns(table)  # every release of it would be refused
    measuring = measuring or Measuring(quick_classifiers(table))
    grid = grid or grid_for(table, asked=asked, also=also)
    _check(table, grid, measuring, workers, {"timeout": timeout, "time_limit": time_limit})
    evaluation_scores([0.0], [0.0], [0], weights)
    folder = RunFolder(Path(run_folder), table_fingerprint(table), measuring)
    folder.prepare()
    points = _without_doubles([Point(ORIGINAL), *grid.points])
    pending = [point for point in points if fresh or not folder.is_finished(point, timeout)]
    results: dict[int, Mapping[str, Any]] = {}

    def finished(point: Point) -> None:
        result = folder.load(point) or unmeasured(point, Status.FAILED, "its result was lost")
        results[points.index(point)] = result
        folder.keep(found(_STILL_RUNNING))
        if progress is not None:
            progress(len(results), len(points), point.label)
        if on_result is not None:
            on_result(result)

    def found(why_not: str) -> Comparison:
        missing = (unmeasured(point, Status.NOT_RUN, why_not) for point in points)
        whole = [results.get(place, not_run) for place, not_run in enumerate(missing)]
        facts = (grid.left_out, measuring, EvaluationWeights(*weights), tuple(asked))
        return Comparison(tuple(whole[1:]), whole[0], *facts)

    ends_at = None if time_limit is None else time.monotonic() + time_limit
    n_at_once = workers or os.cpu_count() or 1
    limits: Any = {"workers": n_at_once, "timeout": timeout, "ends_at": ends_at}
    if progress is not None:
        progress(0, len(points), "comparing")
    try:
        for point in (point for point in points if point not in pending):
            finished(point)
        measure_in_processes(table, pending, folder, finished=finished, **limits)
    except KeyboardInterrupt:
        ended = found("the comparison was interrupted")
        folder.keep(ended)
        raise ComparisonInterrupted(ended) from None
    whole = found(f"not finished within {time_limit:g} seconds" if time_limit else "")
    folder.keep(whole)
    return whole


def _check(
    table: AnyTable, grid: Grid, measuring: Measuring, workers: int | None, limits: Mapping[str, float | None]
) -> None:
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InvalidParameterError("workers", f"got {workers!r}", allowed="a whole number of at least 1")
    for name, seconds in limits.items():
        if seconds is not None and not 0 < seconds < float("inf"):
            raise InvalidParameterError(name, f"got {seconds!r}", allowed="a number of seconds above 0")
    target = class_column(table)
    if target.n_distinct < 2:
        problem = "the target has one class only, so there is nothing to predict"
        raise SchemaError(problem, hint="choose another target column, or more rows")
    stratified_folds(target.codes, measuring.n_folds, measuring.seed, person_codes(table))
    if not grid.points:
        reasons = "; ".join(f"{name}: {why}" for name, why in grid.left_out.items())
        raise InvalidParameterError("the grid", "got no point", allowed="of one or more points", hint=reasons)


def _without_doubles(points: Sequence[Point]) -> list[Point]:
    unique: list[Point] = []
    for point in points:
        if point not in unique:
            unique.append(point)
    return unique
