"""One party's whole way through a session: connect, greet, agree, and publish when everybody is ready."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.claims import read_claims
from sfumato.audit.levels.entropy import measure
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.reading.columns import Columns
from sfumato.collaborate.config import PartyConfig
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.schema_session import check_tells_nobody_apart
from sfumato.collaborate.scores import FeatureScore, gains_of_removal
from sfumato.collaborate.secure_sum import SecureSum
from sfumato.collaborate.session.agreement import agree, check_threshold, shown_counts
from sfumato.collaborate.session.handshake import Plain, Terms, check_all_have_the_same, greet
from sfumato.collaborate.session.joining import check_outputs, joined
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import Counts, SharedColumn, SharedSchema
from sfumato.collaborate.transport.channel import Words
from sfumato.collaborate.transport.messages import SIZE_LIMIT, size_limit_of_counts
from sfumato.counting.cells import TooManyCellsError
from sfumato.engines.memory_limit import Memory, give_back
from sfumato.engines.protocol import Rows
from sfumato.errors import (
    CollaborationError,
    InvalidParameterError,
    PrivacyNotAchievableError,
    SchemaError,
    SfumatoError,
)
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.manifest import AnyTable, draft_manifest, with_audited
from sfumato.measures.anonymity import anonymity_level
from sfumato.mechanisms.base import Mechanism, Release
from sfumato.progress import Progress
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.proposals.sampled import ColumnProposal
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import Published, check_output, staged
from sfumato.schema import Kind, Role
from sfumato.table.coding import Table
from sfumato.table.weighted import CountedTable

if TYPE_CHECKING:
    from sfumato.collaborate.selection_only import Prepared


# Channel inside a session, for a protocol that brings its own rounds: same binding, numbers and transcript.


class StageChannel:
    """Channel whose messages all belong to one stage of a session; implements ``Channel``.

    Use it in place of the session's own channel, of which the session may have read ahead. Each peer's messages may
    be received by a thread of their own. Besides the errors of a channel, ``receive`` raises ``CollaborationError``
    when a party ends the session or breaks the protocol.

    Parameters
    ----------
    session : Session
        Session after the hello.
    stage : str
        Name of the stage, for errors and the transcript.
    """

    def __init__(self, session: Session, stage: str) -> None:
        self._session = session
        self._stage = stage

    def send(self, to: str, body: bytes) -> None:
        """Hand over a message to a party."""
        self._session.send(to, self._stage, body)

    def receive(self, sender: str, timeout: float) -> bytes:
        """Return the next message of a party."""
        return self._session.next_within(sender, self._stage, timeout)


# A party's own release: its rows without the columns that the group removed.


MECHANISM_NAME = "collaboration"

_INTERVALS = {"rule": "hierarchy", "kind": str(Kind.NUMERIC)}
_WHAT_THIS_IS = "a measure of what was dropped; nothing is promised about the columns that are released"

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
    roles_are_agreed: ClassVar[bool] = True
    """Every party has seen them before anybody connected: nobody is asked about a column again."""

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
            problem = "is a sparse 0/1 table; parties can only agree on columns of a plain table"
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
        level = (
            anonymity_level(np.unique(released.codes(promise.columns), axis=0, return_counts=True)[1])
            if smallest_class is None
            else smallest_class(promise.columns, cut)
        )
        left_out = "the combinations are too many to be counted"
        agreed = {"agreed": dict(self.session.agreed), "shared_schema_sha256": self.schema.hash()}
        manifest = draft_manifest(
            table,
            released,
            mechanism=self.mechanism_name,
            parameters={"min_privacy_gain": self.min_privacy_gain, **agreed, "session": self.session.to_dict()},
            guarantees=[promise],
            evidence={
                "utility": {"n_columns_offered": len(promise.n_values), "n_columns_released": len(promise.columns)},
                "risk": {
                    **({"anonymity_level_left_out": left_out} if level is None else {"anonymity_level": level}),
                    "what_this_is": _WHAT_THIS_IS,
                },
            },
            recodings=[{"name": column.name, "column": column.name, **_INTERVALS, "labels": {}} for column in cut],
        )
        return Release(released, manifest)

    def _promise(self, table: Table) -> PrivacyGain:
        removed = tuple(self.removed)
        check_threshold(self.min_privacy_gain)
        if not removed or len(set(removed)) < len(removed) or not set(removed) < set(self.schema.names):
            raise InvalidParameterError(
                "removed", "but these are not", allowed="some of the shared features, once each"
            )
        counts = dict(zip(self.schema.names, self.schema.matrices(self.schema.counts(table)), strict=True))
        gain = gains_of_removal(removed, counts)[-1]
        if gain < self.min_privacy_gain:
            wanted = f"a privacy gain of at least {self.min_privacy_gain:g} by removing {len(removed)} features"
            raise PrivacyNotAchievableError(wanted, best_level=gain)
        kept = tuple(n for n in table.schema.names() if n in counts and n not in removed)
        return PrivacyGain(self.min_privacy_gain, kept, removed, self.schema.n_values, self.schema.cuts)


def in_intervals(table: Table, cut: Sequence[SharedColumn]) -> Table:
    """Put labels of intervals in the place of numbers."""
    columns, described = dict(table.columns), dict(table.schema.columns)
    for column in cut:
        own, labels = table[column.name], pa.array([*column.labels, None], pa.string())
        columns[column.name] = own.recode(labels.take(pa.array(column.places(own))))
        described[column.name] = replace(described[column.name], kind=Kind.CATEGORICAL, domain=None, hierarchy=None)
    return replace(table, schema=replace(table.schema, columns=described), columns=columns)


_MEMORY = "1GB"
RELEASE, READY, ALL_READY = "release", "ready to publish", "all are ready"

ShownCounts = list[list[int | str]]


@dataclass(frozen=True)
class Selection:
    """Which features go, and what else this party learned.

    Parameters
    ----------
    removed : tuple of str
        In the order of removal.
    own_gains : tuple of float
        This party's gain after each removal; nobody else knows it.
    scores : tuple of FeatureScore
        Of all features; empty where only the selection was opened.
    totals : mapping of str to list
        Counts of all parties by feature, value and class, small ones hidden; empty unless they are to be shown.
    """

    removed: tuple[str, ...]
    own_gains: tuple[float, ...]
    scores: tuple[FeatureScore, ...]
    totals: Mapping[str, ShownCounts]


@dataclass(frozen=True, kw_only=True)
class SessionResult(ABC):
    """What a party has at the end of a session, whatever the parties made in it."""

    session: SessionRecord
    release: Release
    published: Published | None
    bytes_sent: int
    bytes_received: int
    seconds: float
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, record: Transcript, **found: Any) -> Self:
        """Add to what was found what it took."""
        warnings = (str(record.problem),) if record.problem else ()
        found |= {"bytes_sent": record.bytes_sent, "bytes_received": record.bytes_received}
        return cls(**found, seconds=record.seconds, warnings=warnings)

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Give what the parties made as plain data."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what this party alone may know is in it."""
        published = self.published
        return {
            "session": self.session.to_dict(),
            "agreed": dict(self.session.agreed),
            **self.figures(),
            "table": str(published.table_path) if published else None,
            "manifest": str(published.manifest_path) if published else None,
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, kw_only=True)
class PartyResult(SessionResult):
    """What a party has that removed features together with the others."""

    selection: Selection

    def figures(self) -> dict[str, Any]:
        """Features that went, scores, gains and totals."""
        chosen = self.selection
        return {
            "removed": list(chosen.removed),
            "own_gains": list(chosen.own_gains),
            "scores": [score._asdict() for score in chosen.scores],
            "totals": dict(chosen.totals),
            "audited_gain": self.release.manifest.guarantees[0]["audited"],
        }


def take_part(
    config: PartyConfig,
    table: Table | Rows,
    schema: SharedSchema,
    plan: Plan,
    *,
    memory: Memory | None = None,
    output: Path | None = None,
    transcript: Transcript | None = None,
    force: bool = False,
) -> PartyResult:
    """Take part in a session from the first connection to this party's own release.

    Nothing appears before every party has said that its own release is written and audited, and that it heard so from
    all others. After any failure before that nobody publishes anything; a party that is cut off during these very last
    messages says that the others may have published, and its transcript is marked so. A transcript that cannot be
    written in the end is a warning of the result, since the release stands by then.

    Parameters
    ----------
    table : Table, LargeTable or ClusterTable
        This party's rows, in the roles of the shared schema. A large file is counted in one pass, and its release is
        written and audited in blocks; a cluster counts, writes and audits its rows itself.
    memory : Memory or None
        What may be used for rows that are not in memory; 1 GB if None.
    output : Path or None
        Release to write; may be left out in a dry run.
    force : bool
        Replace a release that exists.

    Raises
    ------
    CollaborationError
        If a party, named with the stage, failed.
    PrivacyNotAchievableError
        If removing half of the features is not enough for everybody.
    AuditFailedError
        If the audit does not confirm this party's release.
    OutputError
        If the release or the transcript cannot be written, or is a file that this party reads.

    Notes
    -----
    A failure while the very last messages are under way can leave one party with everybody's word and another without;
    no protocol can rule that out. The first then publishes a release that is audited and that all had agreed to.
    """
    plan.check_group(len(config.roster.names), table.n_rows)
    if not isinstance(table, Table) and output is not None and not plan.dry_run:
        check_output(table, output, manifest_path_for(output), force=force)  # before anything is counted
    own = table if isinstance(table, Table) else LargeRows.of(table, schema, memory or Memory.of(_MEMORY))
    rows = own if isinstance(own, Table) else own.counted
    schema.check_table(rows)
    check_tells_nobody_apart(rows, schema.cuts)
    own_counts = schema.counts(rows)
    record = transcript or Transcript()
    target = checked_output(config, plan, table, output, record.path, force=force)
    prepared = _prepared(schema.matrices(own_counts), plan)
    # where counts are added up, the largest message is a party's masked counts
    limit = SIZE_LIMIT if plan.mode == "selection-only" else size_limit_of_counts(schema.n_counts)
    with greeted(config, terms_of(config, schema, plan, rows), record, size_limit=limit) as (session, who):
        selection = _selected(session, schema, own_counts, plan, prepared, config.timeout)
        releaser = ProjectionReleaser(schema, selection.removed, plan.min_privacy_gain, who)
        mine = _staged(own, releaser, target, force)
        agreed = json.dumps(selection.removed).encode()
        release, published = published_together(session, agreed, mine, is_dry_run=plan.dry_run)
    return PartyResult.of(record, session=who, release=release, published=published, selection=selection)


# What every kind of session begins and ends with.


def checked_output(
    config: PartyConfig,
    plan: Plan,
    table: Table | Rows,
    output: Path | None,
    transcript: Path | None,
    *,
    force: bool,
) -> Path | None:
    """Refuse to write over what this party reads, or what exists; gives the release to write, none in a dry run."""
    target = None if plan.dry_run else output
    if target is None and not plan.dry_run:
        hint = "name a file such as release.csv"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint, remedy=("output",))
    source = table.source if isinstance(table, Table) else table.outline.source
    if target is not None and isinstance(table, Table):  # that of other rows was checked before they were counted
        check_output(table, target, manifest_path_for(target), force=force)
    outputs = {"transcript": transcript, "release": target, "manifest": manifest_path_for(target) if target else None}
    data = {"data": Path(source.name)} if source else {}
    check_outputs({what: path for what, path in outputs.items() if path is not None}, data | config.files)
    return target


@contextmanager
def greeted(
    config: PartyConfig, terms: Terms, record: Transcript, *, size_limit: int = SIZE_LIMIT
) -> Iterator[tuple[Session, SessionRecord]]:
    """Connect with all parties and find that all agree on the terms; gives the session, and what of it is published."""
    with joined(config, transcript=record, size_limit=size_limit) as session:
        name = f"{config.session}/{greet(session, terms).hex()[:16]}"
        yield session, SessionRecord(name, terms.mode, terms.fingerprints, terms.parameters)


Appear = Callable[[], Published | None]


def published_together(
    session: Session, agreed: bytes, staged_release: AbstractContextManager[tuple[Release, Appear]], *, is_dry_run: bool
) -> tuple[Release, Published | None]:
    """Have this party's release audited, and let it appear once all parties have theirs and each knows so of all.

    The others hear of it if the audit fails. ``agreed`` is what all parties must have come to.
    """
    with ExitStack() as stack:
        try:
            release, appear = stack.enter_context(staged_release)
        except SfumatoError:
            with suppress(CollaborationError):
                session.accuse(session.me, RELEASE, "stopped")
            raise
        check_all_have_the_same(session, READY, agreed)
        if not is_dry_run:
            session.let_others_publish()
        check_all_have_the_same(session, ALL_READY, agreed)
        published = appear()
    return (published.release if published else release), published


def terms_of(config: PartyConfig, schema: SharedSchema, plan: Plan, table: Table) -> Terms:
    """Give what all parties must have in common, for the greeting."""
    kind = plan.mode if plan.joint_k is None else "joint-k"
    mode = kind if kind == "selection-only" else f"{kind} by {plan.sharing}"
    parameters: dict[str, Plain] = {**plan.shared(), "missing": [*sorted(set(table.schema.missing))]}
    return Terms(config.session, config.roster.fingerprints, schema.hash(), mode, parameters)


def _prepared(counts: Sequence[Counts], plan: Plan) -> Prepared | None:
    """Compute all that takes long and needs no other party, before anybody waits."""
    if plan.mode != "selection-only":
        return None
    from sfumato.collaborate.selection_only import prepare

    return prepare(counts, max_rows=plan.max_rows, weights=plan.weights)


def _selected(
    session: Session, schema: SharedSchema, own_counts: Words, plan: Plan, prepared: Prepared | None, timeout: float
) -> Selection:
    """Choose features with the others, by totals or with nothing opened but the choice."""
    if prepared is None:
        sums = SecureSum(session, mode=plan.sharing)
        found = agree(sums, schema, own_counts, min_privacy_gain=plan.min_privacy_gain, rule=plan.rule())
        totals = {} if plan.min_count is None else {n: shown_counts(c, plan.min_count) for n, c in found.totals.items()}
        return Selection(found.removed, found.own_gains, found.scores, totals)
    from sfumato.collaborate.mpyc_channel import STAGE
    from sfumato.collaborate.selection_only import select_only

    counts = schema.matrices(own_counts)
    with session.round(STAGE):
        places = select_only(
            StageChannel(session, STAGE),
            session.me,
            session.roster,
            counts,
            min_privacy_gain=plan.min_privacy_gain,
            max_rows=plan.max_rows,
            weights=plan.weights,
            prepared=prepared,
            timeout=timeout,
            accuse=lambda party, reason: session.accuse(party, STAGE, reason),
        )
    removed = tuple(schema.names[place] for place in places)
    gains = gains_of_removal(removed, dict(zip(schema.names, counts, strict=True)))
    return Selection(removed, gains, (), {})


@contextmanager
def _staged(
    rows: Table | LargeRows, releaser: ProjectionReleaser, output: Path | None, force: bool
) -> Iterator[tuple[Release, Appear]]:
    """Audit this party's release and have its bytes ready; without an output nothing is written."""
    if isinstance(rows, Table):
        release = (make_release if output is None else propose_release)(rows, releaser)
        appearing = None if output is None else staged(InMemory(release, rows), output, force=force)
    else:
        proposal = propose_projection(rows, releaser)
        release = proposal.release
        appearing = None if output is None else staged(proposal, output, force=force, memory=rows.memory)
    with appearing or nullcontext(publish_nothing) as appear:
        yield release, appear


def publish_nothing() -> None:
    """Publish nothing, in a dry run."""


# A party whose rows are not in memory: their counts in one pass, and its release in another.


@dataclass(frozen=True, repr=False, eq=False)
class LargeRows:
    """A party's rows, in a file that is read in blocks or on a cluster, and what one pass over them counted.

    Parameters
    ----------
    counted : CountedTable
        Every column by itself, and every feature's values with the classes.
    """

    original: Rows
    counted: CountedTable
    memory: Memory

    @classmethod
    def of(cls, original: Rows, schema: SharedSchema, memory: Memory) -> LargeRows:
        """Count, in one pass, how often each value of a feature occurs with each class.

        Raises
        ------
        SchemaError
            If a column of the shared schema is missing, in another role, or has too many distinct values.
        """
        schema.check_table(original.outline)
        target = schema.target.name
        found = original.distinct([target], beside=schema.names, most_cells=memory.most_cells(1))
        pairs = {(feature, by): counts.T for (by, feature), counts in found.pairs.items()}
        whole = CountedTable.of(original.outline, (), (), np.array([original.n_rows], dtype=np.int64))
        return cls(original, replace(whole, pairs=pairs), memory)


@dataclass(frozen=True, repr=False, eq=False)
class ProjectionProposal(ColumnProposal):
    """All rows of the columns that the group left, with intervals in the place of numbers that are cut."""

    def recoded(self) -> Mapping[str, NDArray[np.int32]]:
        """Label of each value of the columns that are cut."""
        found = {}
        for name in (str(entry["name"]) for entry in self.release.manifest.recodings):
            before, after = self.original.outline[name], self.release.table.columns[name]  # type: ignore[union-attr]
            found[name] = np.zeros(before.n_distinct, dtype=np.int32)
            found[name][before.codes] = after.codes  # both columns list the same stored values
        return found


def propose_projection(rows: LargeRows, releaser: ProjectionReleaser) -> ProjectionProposal:
    """Propose a party's release; the gain is measured again on the counts of the original's columns."""
    release = releaser.propose(rows.counted, partial(_smallest_class, rows))
    give_back()
    (promise,) = release.manifest.promised()
    if not isinstance(promise, PrivacyGain):
        raise AssertionError
    claims = read_claims(release.manifest.to_dict())
    level = measure(promise, ReleaseVsOriginal(Columns(rows.counted), Columns(rows.original.outline), claims))
    audited = with_audited(release.manifest.guarantees, [level])
    return ProjectionProposal(release.with_manifest(guarantees=audited), rows.original)


def _smallest_class(rows: LargeRows, names: Sequence[str], cut: Sequence[SharedColumn]) -> int | None:
    """Rows of the rarest combination of what is released; ``None`` where there are too many to be counted."""
    try:
        cells = rows.original.distinct(names, most_cells=rows.memory.most_cells(len(names)))
    except (TooManyCellsError, SchemaError):
        return None
    _, classes = np.unique(in_intervals(cells, cut).codes(names), axis=0, return_inverse=True)
    return int(np.bincount(classes.ravel(), weights=cells.row_counts).min())
