"""A party's own release: its rows without the columns that the group removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.collaboration.agreement import check_threshold
from sfumato.collaboration.scores import gains_of_removal
from sfumato.collaboration.shared_schema import SharedColumn, SharedSchema
from sfumato.contract import Mechanism, Progress, Release
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.manifest import AnyTable, draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.schema import Kind, Role
from sfumato.table.coding import CodedColumn, Table

MECHANISM_NAME = "collaboration"

_HIERARCHY = "hierarchy"

SmallestClass = Callable[[Sequence[str], Sequence[SharedColumn]], int | None]
"""Rows of the rarest combination of some columns, of which some are cut, if that can be counted."""


@dataclass(frozen=True)
class SessionRecord:
    """What of a session may be published: its id, how numbers were added up, and who took part.

    Parameters
    ----------
    fingerprints : mapping of str to str
        SHA-256 of each party's certificate, by the party's name.
    agreed : mapping
        Parameters that all parties shared.
    """

    session_id: str
    mode: str
    fingerprints: Mapping[str, str]
    agreed: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the manifest."""
        return {"id": self.session_id, "mode": self.mode, "parties": dict(sorted(self.fingerprints.items()))}


@dataclass(frozen=True)
class ProjectionReleaser(Mechanism):
    """Releases a party's table without the removed features; a mechanism like others, once the parties agreed.

    Parameters
    ----------
    removed : sequence of str
        Features in the order of their removal.
    min_privacy_gain : float
        This party's own threshold, which the manifest then shows.

    Notes
    -----
    Kept features, the target and columns of the role other are released; identifiers and sensitive columns are not.
    Of a kept feature that the shared schema cuts the intervals are released: the gain counts these, not the numbers.
    Scores and totals of the group are not in the manifest: they tell about other parties' rows. The audited gain is,
    and tells a little about the columns that were dropped.
    """

    mechanism_name: ClassVar[str] = MECHANISM_NAME

    schema: SharedSchema
    removed: Sequence[str]
    min_privacy_gain: float
    session: SessionRecord

    def release(self, table: AnyTable, *, progress: Progress | None = None) -> Release:
        """Propose this party's release.

        Raises
        ------
        SchemaError
            If the table is not one of the shared schema.
        PrivacyNotAchievableError
            If removing these features gains this party less than its threshold.
        """
        if not isinstance(table, Table):
            problem = "is a sparse 0/1 table, of which the parties cannot agree on columns"
            raise SchemaError(problem)
        return self.propose(table, None)

    def propose(self, table: Table, smallest_class: SmallestClass | None) -> Release:
        """As :meth:`release`; ``smallest_class`` counts combinations where the table does not hold the rows."""
        self.schema.check_table(table)
        promise = self._promise(table)
        travelling = table.schema.names(Role.TARGET, Role.OTHER)
        kept = table.keep(n for n in table.schema.names() if n in promise.columns or n in travelling)
        cut = [column for column in self.schema.features if column.cuts is not None and column.name in promise.columns]
        released = in_intervals(kept, cut)
        level = _level_of_rows(released, promise) if smallest_class is None else smallest_class(promise.columns, cut)
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters=self._parameters(),
            guarantees=[promise],
            evidence=_evidence(promise, level),
            recodings=[_interval_entry(column.name) for column in cut],
        )
        return Release(released, manifest)

    def _promise(self, table: Table) -> PrivacyGain:
        removed = tuple(self.removed)
        check_threshold(self.min_privacy_gain)
        if not removed or len(set(removed)) < len(removed) or not set(removed) < set(self.schema.names):
            raise InvalidParameterError("removed", "got another list", allowed="some of the shared features, once each")
        counts = dict(zip(self.schema.names, self.schema.matrices(self.schema.counts(table)), strict=True))
        gain = gains_of_removal(removed, counts)[-1]
        if gain < self.min_privacy_gain:
            wanted = f"a privacy gain of at least {self.min_privacy_gain:g} by removing {len(removed)} features"
            raise PrivacyNotAchievableError(wanted, best_level=gain)
        kept = tuple(n for n in table.schema.names() if n in counts and n not in removed)
        return PrivacyGain(self.min_privacy_gain, kept, removed, self.schema.n_values, self.schema.cuts)

    def _parameters(self) -> dict[str, Any]:
        return {
            "min_privacy_gain": self.min_privacy_gain,
            "agreed": dict(self.session.agreed),
            "shared_schema_sha256": self.schema.hash(),
            "session": self.session.to_dict(),
        }


def in_intervals(table: Table, cut: Sequence[SharedColumn]) -> Table:
    """Put labels of intervals in the place of numbers."""
    columns, described = dict(table.columns), dict(table.schema.columns)
    for column in cut:
        columns[column.name] = _labelled(column, table[column.name])
        described[column.name] = replace(described[column.name], kind=Kind.CATEGORICAL, domain=None, hierarchy=None)
    return replace(table, schema=replace(table.schema, columns=described), columns=columns)


def _labelled(column: SharedColumn, own: CodedColumn) -> CodedColumn:
    labels = pa.array([*column.labels, None], pa.string())
    return own.recode(labels.take(pa.array(column.places(own))))


def _interval_entry(name: str) -> dict[str, Any]:
    return {"name": name, "column": name, "rule": _HIERARCHY, "kind": str(Kind.NUMERIC), "labels": {}}


def _level_of_rows(released: Table, promise: PrivacyGain) -> int:
    _, class_sizes = np.unique(released.codes(promise.columns), axis=0, return_counts=True)
    return anonymity_level(class_sizes)


def _evidence(promise: PrivacyGain, level: int | None) -> dict[str, Any]:
    left_out = {"anonymity_level_left_out": "the combinations are too many to be counted"}
    return {
        "utility": {"n_columns_offered": len(promise.n_values), "n_columns_released": len(promise.columns)},
        "risk": {
            **(left_out if level is None else {"anonymity_level": level}),
            "what_this_is": "a measure of what was dropped; nothing is promised about the columns that are released",
        },
    }
