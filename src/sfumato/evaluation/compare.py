"""Run of a comparison: points in parallel processes, finished ones kept in a folder, so that a killed run goes on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sfumato.contract import Progress
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.evaluation.asked import AskedGuarantee
from sfumato.evaluation.comparison import Comparison
from sfumato.evaluation.folds import class_column, stratified_folds
from sfumato.evaluation.grid import ORIGINAL, Grid, Point, grid_for
from sfumato.evaluation.points import Measuring, Status, unmeasured
from sfumato.evaluation.processes import measure_in_processes
from sfumato.evaluation.run_folder import RunFolder, table_fingerprint
from sfumato.manifest import AnyTable
from sfumato.selection.tradeoff import EvaluationWeights, evaluation_scores

RUN_FOLDER = "sfumato-compare"
TIMEOUT = 300.0


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
) -> Comparison:
    """Compare mechanisms on a table.

    Every point is released, audited, attacked and cross-validated in a process of its own. One that fails, cannot be
    met or takes too long is a marked result. In a script, call this under ``if __name__ == "__main__":``, for new
    processes import it.

    Parameters
    ----------
    grid : Grid or None
        ``None`` takes what the mechanisms propose, see :func:`sfumato.evaluation.grid.grid_for`.
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

    Raises
    ------
    SchemaError
        If the table has no target with two classes or more.
    InvalidParameterError
        If a parameter is out of its range, or there is no point.
    """
    measuring = measuring or Measuring()
    grid = grid or grid_for(table, asked=asked)
    _check(table, grid, measuring, workers, timeout)
    evaluation_scores([0.0], [0.0], [0], weights)
    folder = RunFolder(Path(run_folder), table_fingerprint(table), measuring)
    folder.prepare()
    if fresh:
        folder.scores.clear()
    points = _without_doubles([Point(ORIGINAL), *grid.points])
    pending = [point for point in points if fresh or not folder.is_finished(point, timeout)]
    n_done = len(points) - len(pending)

    def finished(point: Point) -> None:
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(n_done, len(points), point.label)

    if progress is not None:
        progress(n_done, len(points), "comparing")
    n_at_once = workers or os.cpu_count() or 1
    measure_in_processes(table, pending, folder, workers=n_at_once, timeout=timeout, finished=finished)
    results = [folder.load(point) or unmeasured(point, Status.FAILED, "its result was lost") for point in points]
    return Comparison(
        tuple(results[1:]), results[0], grid.left_out, measuring, EvaluationWeights(*weights), tuple(asked)
    )


def _check(table: AnyTable, grid: Grid, measuring: Measuring, workers: int | None, timeout: float | None) -> None:
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InvalidParameterError("workers", f"got {workers!r}", allowed="a whole number of at least 1")
    if timeout is not None and not 0 < timeout < float("inf"):
        raise InvalidParameterError("timeout", f"got {timeout!r}", allowed="a number of seconds above 0")
    target = class_column(table)
    if target.n_distinct < 2:
        problem = "the target has one class only, so that there is nothing to predict"
        raise SchemaError(problem, hint="choose another target column, or more rows")
    stratified_folds(target.codes, measuring.n_folds, measuring.seed)
    if not grid.points:
        reasons = "; ".join(f"{name}: {why}" for name, why in grid.left_out.items())
        raise InvalidParameterError("the grid", "got no point", allowed="of one or more points", hint=reasons)


def _without_doubles(points: Sequence[Point]) -> list[Point]:
    unique: list[Point] = []
    for point in points:
        if point not in unique:
            unique.append(point)
    return unique
