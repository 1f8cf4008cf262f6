"""How far a job is, and how long it will still take."""

from __future__ import annotations

from dataclasses import dataclass, replace

_LEAST_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """Steps done within the phase that is under way; times are seconds since the job's start.

    Parameters
    ----------
    first_done, first_at
        When the phase began.
    at
        When the latest news came.
    """

    done: int
    total: int
    what: str
    at: float
    first_done: int
    first_at: float

    @classmethod
    def none(cls) -> Progress:
        """Nothing known yet."""
        return cls(0, 0, "", 0.0, 0, 0.0)

    def then(self, done: int, total: int, what: str, at: float) -> Progress:
        """Take in news. A phase begins where the steps start anew, or both the total and what is done change.

        Examples
        --------
        >>> counting = Progress.none().then(0, 10, "counting", 1.0).then(8, 10, "counting", 2.0)
        >>> counting.then(2, 30, "searching", 3.0).first_at
        3.0
        """
        is_new = done < self.done or (total != self.total and what != self.what)
        begun = (done, at) if is_new else (self.first_done, self.first_at)
        return replace(self, done=done, total=total, what=what, at=at, first_done=begun[0], first_at=begun[1])

    def seconds_left(self, now: float) -> float | None:
        """Estimate how long the phase still takes, from its rate so far; ``None`` where that tells nothing.

        A step that takes longer than those before it slows the rate down.

        Examples
        --------
        >>> Progress(done=3, total=10, what="folds", at=6.0, first_done=0, first_at=0.0).seconds_left(now=7.0)
        13.0
        """
        completed, remaining = self.done - self.first_done, self.total - self.done
        if completed <= 0 or remaining <= 0 or now - self.first_at < _LEAST_SECONDS:
            return None
        each = max((self.at - self.first_at) / completed, (now - self.first_at) / (completed + 1))
        return each * remaining - min(now - self.at, each)
