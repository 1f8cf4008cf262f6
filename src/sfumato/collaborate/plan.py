"""What a party asks of a session: its own threshold, and the settings that all parties must share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from sfumato.collaborate.scores import Combining, Ranking
from sfumato.collaborate.secure_sum import SumMode
from sfumato.collaborate.session.agreement import LEAST_MINIMUM, AgreementRule, PrivacyBy, check_threshold
from sfumato.collaborate.session.handshake import Plain
from sfumato.errors import InvalidParameterError

Mode = Literal["totals", "selection-only"]

_ANY_NUMBER = "mode totals has no such limit"
_UNUSED_WITH_JOINT_K = ("mode", "weights", "privacy", "epsilon", "min_count", "ranking", "tradeoff", "drop_incomplete")
_NO_FEATURES_GO = "no features are removed and no scores computed there, and a missing value is a value of its own"
_UNUSED_WITHOUT_TOTALS = ("sharing", "privacy", "epsilon", "min_count", "ranking", "tradeoff")
_NOTHING_ADDED_UP = (
    "nothing is added up there, so there are no totals, no noise on them, no averages and no other scores"
)
MAX_ROWS = 10_000
LEAST_K = 2
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
    weights, privacy, epsilon, ranking, tradeoff
        See :class:`~sfumato.collaborate.session.agreement.AgreementRule`.
    min_count : int or None
        Show the totals, with smaller counts hidden; ``None`` shows no totals.
    max_rows : int
        With selection-only: at least the number of all parties' rows together, at most 100,000. More takes longer.
    drop_incomplete : bool
        Rows with missing values were left out when the table was read; all parties must do the same.
    dry_run : bool
        Everything, the audit included, but nobody writes a release.
    joint_k : int or None
        Instead of removing features: publish one table of all parties' rows in which every class has so many rows, see
        :mod:`sfumato.collaborate.joint.search`. Neither θ nor the trade-off is used then.

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
    joint_k: int | None = None
    ranking: Ranking = "mutual-information"
    tradeoff: Combining = "mean"

    def __post_init__(self) -> None:
        check_threshold(self.min_privacy_gain)
        _check_choice("mode", self.mode, get_args(Mode))
        _check_choice("sharing", self.sharing, get_args(SumMode))
        _check_choice("ranking", self.ranking, get_args(Ranking))
        _check_choice("tradeoff", self.tradeoff, get_args(Combining))
        self.rule()
        if self.min_count is not None and self.min_count < LEAST_MINIMUM:
            raise InvalidParameterError("min_count", f"got {self.min_count}", allowed=f"at least {LEAST_MINIMUM}")
        if self.max_rows < 1:
            raise InvalidParameterError("max_rows", f"got {self.max_rows}", allowed="at least 1")
        if (k := self.joint_k) is not None:
            if isinstance(k, bool) or not isinstance(k, int) or k < LEAST_K:
                raise InvalidParameterError("joint_k", f"got {k!r}", allowed=f"a whole number of at least {LEAST_K}")
            self._check_left_out(_UNUSED_WITH_JOINT_K, "with a joint k", _NO_FEATURES_GO)
        if self.is_on_secrets and self.max_rows > MOST_ROWS:
            allowed = f"at most {MOST_ROWS:,} {self._on_secrets}"
            raise InvalidParameterError("max_rows", f"got {self.max_rows:,}", allowed=allowed, hint=_ANY_NUMBER)
        if self.mode == "selection-only":
            self._check_left_out(_UNUSED_WITHOUT_TOTALS, "with mode selection-only", _NOTHING_ADDED_UP)

    @property
    def is_on_secrets(self) -> bool:
        """Whether the parties compute on shared secrets, which bounds their number and that of their rows."""
        return self.mode == "selection-only" or self.joint_k is not None

    @property
    def _on_secrets(self) -> str:
        return "with mode selection-only" if self.joint_k is None else "with a joint k"

    def _check_left_out(self, names: Sequence[str], where: str, hint: str) -> None:
        for name in names:
            if getattr(self, name) != Plan.__dataclass_fields__[name].default:
                raise InvalidParameterError(name, "got one", allowed=f"left out {where}", hint=hint)

    def check_group(self, n_parties: int, n_rows: int) -> None:
        """Refuse more parties, or more rows of those that are known, than the mode can take."""
        if not self.is_on_secrets:
            return
        if n_parties > MOST_PARTIES:
            allowed = f"at most {MOST_PARTIES} {self._on_secrets}"
            raise InvalidParameterError("the number of parties", f"got {n_parties}", allowed=allowed, hint=_ANY_NUMBER)
        if n_rows > self.max_rows:
            allowed = "at least the number of all parties' rows together"
            raise InvalidParameterError("max_rows", f"got {self.max_rows:,} for {n_rows:,} rows", allowed=allowed)

    def rule(self) -> AgreementRule:
        """Parameters of the trade-off."""
        return AgreementRule(self.weights, self.privacy, self.epsilon, self.ranking, self.tradeoff)

    def shared(self) -> dict[str, Plain]:
        """Return what all parties must have in common, as plain data for the greeting and the manifest."""
        if self.joint_k is not None:
            names = ("sharing", "max_rows", "drop_incomplete", "dry_run", "joint_k")
            return {name: getattr(self, name) for name in names}
        shared = {name: value for name, value in asdict(self).items() if name != "min_privacy_gain"}
        if self.mode != "selection-only":
            del shared["max_rows"]
        for name in ("joint_k", "ranking", "tradeoff"):  # left out where they are the paper's
            if shared[name] == Plan.__dataclass_fields__[name].default:
                del shared[name]
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
