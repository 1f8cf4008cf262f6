"""How far a search is, counted in trainings, so that a bar can tell the time left."""

from __future__ import annotations

from sfumato.contract import Progress


class TrainingCount:
    """Counts trainings done of those that a search still needs at most.

    Sets that were scored before, or need no attacker because they lose performance, come off the total.

    Parameters
    ----------
    progress : callable
        Called as ``progress(done, total, "models trained")``; ``total`` may shrink.
    per_set : int
        Trainings for one set of columns: folds times learners that are trained.
    n_columns, n_lists : int
        The baseline, the sets without one column, and a walk along each list are expected.

    Examples
    --------
    >>> calls = []
    >>> count = TrainingCount(lambda *call: calls.append(call), per_set=10, n_columns=3, n_lists=1)
    >>> count.trained(1, 10, "trees")
    >>> count.tried(2, 3, "columns tried")
    >>> calls
    [(1, 60, 'models trained'), (1, 11, 'models trained')]
    """

    def __init__(self, progress: Progress, per_set: int, n_columns: int, n_lists: int) -> None:
        self._progress = progress
        self._per_set = per_set
        self._done = 0
        self._total = per_set * (1 + n_columns + n_lists * (n_columns - 1))  # a walk's first set is known

    def trained(self, done: int, total: int, what: str) -> None:
        """Count one training; the numbers given are those of one set and are not used."""
        self._done += 1
        self._report(max(self._total, self._done))

    def tried(self, done: int, total: int, what: str) -> None:
        """Expect trainings for the columns that are still to be tried."""
        self._report(min(self._total, self._done + self._per_set * (total - done)))

    def _report(self, total: int) -> None:
        self._total = total
        self._progress(self._done, total, "models trained")
