"""Who is measured: ``auto``, the fixed list of candidates that it is judged against, and other packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.field.tables import FieldTable
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms

ORIGINAL, AUTO = "original", "auto"
OVER_HIERARCHIES = ("global-recoding", "gain-recoding", "local-recoding")
MOST_SECONDS = 10.0
"""Time limit of a search over hierarchies."""


@dataclass(frozen=True)
class Contender:
    """A mechanism with its settings, or another package.

    Parameters
    ----------
    name : str
        In results; never reused for other settings.
    mechanism : str or None
        Name in the registry; ``None`` for the original and for peers.
    settings : mapping
        Besides k.
    peer : str or None
        Name in :data:`benchmarks.field.peers.PEERS`.
    """

    name: str
    mechanism: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    peer: str | None = None

    def is_there(self) -> bool:
        """Whether this version of sfumato has the mechanism and knows the settings."""
        if self.mechanism is None:
            return True
        info = registered_mechanisms().get(self.mechanism)
        return info is not None and self.settings.keys() <= {parameter.name for parameter in info.parameters}

    def build(self, k: int, table: FieldTable) -> Any:
        """Make the mechanism for a table."""
        settings = {"k": k, **self.settings}
        if self.mechanism in OVER_HIERARCHIES:
            known = {parameter.name for parameter in registered_mechanisms()[self.mechanism].parameters}
            settings |= {"max_seconds": MOST_SECONDS} if "max_seconds" in known else {}
            settings |= {"hierarchies": dict(table.hierarchies)} if table.hierarchies else {}
        return build_mechanism(self.mechanism or "", settings)


CANDIDATES = (
    Contender("mondrian, score", "mondrian", {"split": "score"}),
    Contender("mondrian, gain", "mondrian", {"split": "gain"}),
    Contender("mondrian, penalty", "mondrian", {"split": "penalty"}),
    Contender("tree, uniform", "error-risk-tree", {"generalization": "uniform"}),
    Contender("global recoding", "global-recoding"),
    Contender(
        "target information, limit .5",
        "global-recoding",
        {"loss": "target_information", "max_suppressed_fraction": 0.5},
    ),
    Contender("gain recoding (paper)", "gain-recoding"),
    Contender("local recoding", "local-recoding"),
)
"""The fixed list: mechanisms that promise strict k-anonymity, with settings that won somewhere; regret is to these."""

PEERS = (
    Contender("anonypyx (Mondrian)", peer="anonypyx"),
    Contender("anjana", peer="anjana"),
    Contender("ai-privacy-toolkit", peer="ai-privacy-toolkit"),
)

CONTENDERS = tuple(
    contender
    for contender in (Contender(ORIGINAL), Contender(AUTO, "auto"), *CANDIDATES, *PEERS)
    if contender.is_there()
)
"""``auto`` joins here as soon as the registry has it: this is the only place that names it."""
