"""What a party asks of a session: its own threshold, and the settings that all parties must share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from sfumato.collaborate.secure_sum import SumMode
from sfumato.collaborate.session.agreement import LEAST_MINIMUM, AgreementRule, PrivacyBy, check_threshold
from sfumato.collaborate.session.handshake import Plain
from sfumato.errors import InvalidParameterError

Mode = Literal["totals", "selection-only"]

_ANY_NUMBER = "mode totals has no such limit"
MAX_ROWS = 10_000
MOST_ROWS, MOST_PARTIES = 100_000, 7
"""Limits of selection-only, known without loading what computes it."""


@dataclass(frozen=True)
class Plan:
    """Settings of one party; all but the threshold are public and the same for everybody.

    Parameters
    ----------
    min_privacy_gain : float
        θ of this party. The others learn no more of it than when everybody is content.
    mode : {"totals", "selection-only"}
        Add up the counts, or open nothing but which features go.
    sharing : {"seeds", "shares"}
        How counts are hidden, see :class:`~sfumato.collaborate.secure_sum.SecureSum`.
    weights, privacy, epsilon
        See :class:`~sfumato.collaborate.session.agreement.AgreementRule`.
    min_count : int or None
        Show the totals, with smaller counts hidden; ``None`` shows no totals.
    max_rows : int
        With selection-only: at least the number of all parties' rows together, at most 100,000. More takes longer.
    drop_incomplete : bool
        Rows with missing values were left out when the table was read; all parties must do the same.
    dry_run : bool
        Everything, the audit included, but nobody writes a release.

    Examples
    --------
    >>> Plan(0.2).shared()["mode"], "min_privacy_gain" in Plan(0.2).shared()
    ('totals', False)
    """

    min_privacy_gain: float
    mode: Mode = "totals"
    sharing: SumMode = "seeds"
    weights: tuple[float, float] = (0.5, 0.5)
    privacy: PrivacyBy = "pooled"
    epsilon: float | None = None
    min_count: int | None = None
    max_rows: int = MAX_ROWS
    drop_incomplete: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_threshold(self.min_privacy_gain)
        _check_choice("mode", self.mode, get_args(Mode))
        _check_choice("sharing", self.sharing, get_args(SumMode))
        self.rule()
        if self.min_count is not None and self.min_count < LEAST_MINIMUM:
            raise InvalidParameterError("min_count", f"got {self.min_count}", allowed=f"at least {LEAST_MINIMUM}")
        if self.max_rows < 1:
            raise InvalidParameterError("max_rows", f"got {self.max_rows}", allowed="at least 1")
        if self.mode == "selection-only":
            if self.max_rows > MOST_ROWS:
                allowed = f"at most {MOST_ROWS:,} with mode selection-only"
                raise InvalidParameterError("max_rows", f"got {self.max_rows:,}", allowed=allowed, hint=_ANY_NUMBER)
            self._check_nothing_is_added_up()

    def _check_nothing_is_added_up(self) -> None:
        hint = "nothing is added up there, so there are no totals, no noise on them and no averages"
        for name, default in [("sharing", "seeds"), ("privacy", "pooled"), ("epsilon", None), ("min_count", None)]:
            if getattr(self, name) != default:
                raise InvalidParameterError(name, "got one", allowed="left out with mode selection-only", hint=hint)

    def check_group(self, n_parties: int, n_rows: int) -> None:
        """Refuse more parties, or more rows of those that are known, than the mode can take."""
        if self.mode != "selection-only":
            return
        if n_parties > MOST_PARTIES:
            allowed = f"at most {MOST_PARTIES} with mode selection-only"
            raise InvalidParameterError("the number of parties", f"got {n_parties}", allowed=allowed, hint=_ANY_NUMBER)
        if n_rows > self.max_rows:
            allowed = "at least the number of all parties' rows together"
            raise InvalidParameterError("max_rows", f"got {self.max_rows:,} for {n_rows:,} rows", allowed=allowed)

    def rule(self) -> AgreementRule:
        """Parameters of the trade-off."""
        return AgreementRule(self.weights, self.privacy, self.epsilon)

    def shared(self) -> dict[str, Plain]:
        """Return what all parties must have in common, as plain data for the greeting and the manifest."""
        shared = {name: value for name, value in asdict(self).items() if name != "min_privacy_gain"}
        if self.mode != "selection-only":
            del shared["max_rows"]
        return {**shared, "weights": [float(weight) for weight in self.weights]}

    def to_dict(self) -> dict[str, Any]:
        """All settings as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Build a plan from plain data."""
        return cls(**{**data, "weights": tuple(data["weights"])})


def _check_choice(name: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise InvalidParameterError(name, f"got {given!r}", allowed=f"one of {', '.join(choices)}")
