"""One party's whole way through a session: connect, greet, agree, and publish when everybody is ready."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.collaboration.agreement import agree
from sfumato.collaboration.config import PartyConfig
from sfumato.collaboration.contract import Words
from sfumato.collaboration.echo import check_all_have_the_same
from sfumato.collaboration.hello import Plain, Terms, greet
from sfumato.collaboration.joining import check_outputs, joined
from sfumato.collaboration.messages import SIZE_LIMIT, size_limit_of_counts
from sfumato.collaboration.plan import Plan
from sfumato.collaboration.release import ProjectionReleaser, SessionRecord
from sfumato.collaboration.schema_session import check_tells_nobody_apart
from sfumato.collaboration.scores import FeatureScore, gains_of_removal
from sfumato.collaboration.session import Session
from sfumato.collaboration.shared_schema import Counts, SharedSchema
from sfumato.collaboration.small_counts import shown_counts
from sfumato.collaboration.stage_channel import StageChannel
from sfumato.collaboration.sums import SecureSum
from sfumato.collaboration.transcript import RoundProgress, Transcript
from sfumato.contract import Release
from sfumato.errors import CollaborationError, InvalidParameterError, SfumatoError
from sfumato.publishing import Published, check_targets, make_release, manifest_path_for, staged
from sfumato.table.coding import Table
from sfumato.table.large import LargeTable

if TYPE_CHECKING:
    from sfumato.collaboration.large_party import LargeRows
    from sfumato.collaboration.selection_tables import Prepared
    from sfumato.large.memory import Memory

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


@dataclass(frozen=True)
class PartyResult:
    """What a party has at the end of a session."""

    session: SessionRecord
    selection: Selection
    release: Release
    published: Published | None
    bytes_sent: int
    bytes_received: int
    seconds: float
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what this party alone may know is in it."""
        chosen, published = self.selection, self.published
        audited = [entry["audited"] for entry in self.release.manifest.guarantees]
        return {
            "session": self.session.to_dict(),
            "agreed": dict(self.session.agreed),
            "removed": list(chosen.removed),
            "own_gains": list(chosen.own_gains),
            "scores": [score._asdict() for score in chosen.scores],
            "totals": dict(chosen.totals),
            "audited_gain": audited[0],
            "table": str(published.table_path) if published else None,
            "manifest": str(published.manifest_path) if published else None,
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }


def take_part(
    config: PartyConfig,
    table: Table | LargeTable,
    schema: SharedSchema,
    plan: Plan,
    *,
    memory: Memory | None = None,
    output: Path | None = None,
    transcript: Transcript | None = None,
    progress: RoundProgress | None = None,
    force: bool = False,
) -> PartyResult:
    """Take part in a session from the first connection to this party's own release.

    Nothing appears before every party has said that its own release is written and audited, and that it heard so from
    all others. After any failure before that nobody publishes anything; a party that is cut off during these very last
    messages says that the others may have published, and its transcript is marked so. A transcript that cannot be
    written in the end is a warning of the result, since the release stands by then.

    Parameters
    ----------
    table : Table or LargeTable
        This party's rows, in the roles of the shared schema. A large file is counted in one pass, and its release is
        written and audited in blocks.
    memory : Memory or None
        What may be used for a large file; 1 GB if None.
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
    target = None if plan.dry_run else output
    own = _counted(table, schema, memory, target) if isinstance(table, LargeTable) else table
    rows = own if isinstance(own, Table) else own.counted
    schema.check_table(rows)
    check_tells_nobody_apart(rows, schema.cuts)
    own_counts = schema.counts(rows)
    if target is not None:
        check_targets(target, manifest_path_for(target), rows.source, force=force)
    elif not plan.dry_run:
        hint = "name a file such as release.csv"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint, remedy=("output",))
    record = transcript or Transcript()
    _check_paths(config, rows, target, record.path)
    choose = _chooser(schema, own_counts, plan, config.timeout)
    with joined(config, transcript=record, progress=progress, size_limit=_size_limit(schema, plan)) as session:
        terms = _terms(config, schema, plan, rows)
        binding = greet(session, terms)
        who = SessionRecord(f"{config.session}/{binding.hex()[:16]}", terms.mode, terms.fingerprints, terms.parameters)
        selection = choose(session)
        releaser = ProjectionReleaser(schema, selection.removed, plan.min_privacy_gain, who)
        with _staged(session, releaser, own, target, force) as (release, publish):
            removed = json.dumps(selection.removed).encode()
            check_all_have_the_same(session, READY, removed)
            if not plan.dry_run:
                session.let_others_publish()
            check_all_have_the_same(session, ALL_READY, removed)
            published = publish()
    final = published.release if published else release
    warnings = (str(record.problem),) if record.problem else ()
    sizes = record.bytes_sent, record.bytes_received
    return PartyResult(who, selection, final, published, *sizes, record.seconds, warnings)


def _counted(table: LargeTable, schema: SharedSchema, memory: Memory | None, target: Path | None) -> LargeRows:
    from sfumato.collaboration.large_party import LargeRows
    from sfumato.large.memory import Memory
    from sfumato.large.release import check_output_format

    if target is not None:
        check_output_format(target)
    return LargeRows.of(table, schema, memory or Memory.of(_MEMORY))


def _check_paths(config: PartyConfig, table: Table, target: Path | None, transcript: Path | None) -> None:
    data = {"data": Path(table.source.name)} if table.source else {}
    outputs = {"transcript": transcript, "release": target, "manifest": manifest_path_for(target) if target else None}
    check_outputs({what: path for what, path in outputs.items() if path is not None}, data | config.files)


def _size_limit(schema: SharedSchema, plan: Plan) -> int:
    """Largest message of a session: where counts are added up, a party's masked counts."""
    return SIZE_LIMIT if plan.mode == "selection-only" else size_limit_of_counts(schema.n_counts)


def _terms(config: PartyConfig, schema: SharedSchema, plan: Plan, table: Table) -> Terms:
    mode = plan.mode if plan.mode == "selection-only" else f"{plan.mode} by {plan.sharing}"
    parameters: dict[str, Plain] = {**plan.shared(), "missing": [*sorted(set(table.schema.missing))]}
    return Terms(config.session, config.roster.fingerprints, schema.hash(), mode, parameters)


def _chooser(schema: SharedSchema, own_counts: Words, plan: Plan, timeout: float) -> Callable[[Session], Selection]:
    """Compute all that needs no other party; what is returned does the rest in the session."""
    if plan.mode != "selection-only":
        return partial(_selected, schema=schema, own_counts=own_counts, plan=plan)
    from sfumato.collaboration.selection_only import prepare

    counts = schema.matrices(own_counts)
    prepared = prepare(counts, max_rows=plan.max_rows, weights=plan.weights)
    return partial(_selected_only, schema=schema, counts=counts, plan=plan, prepared=prepared, timeout=timeout)


def _selected(session: Session, *, schema: SharedSchema, own_counts: Words, plan: Plan) -> Selection:
    sums = SecureSum(session, mode=plan.sharing)
    found = agree(sums, schema, own_counts, min_privacy_gain=plan.min_privacy_gain, rule=plan.rule())
    totals = {} if plan.min_count is None else {n: shown_counts(c, plan.min_count) for n, c in found.totals.items()}
    return Selection(found.removed, found.own_gains, found.scores, totals)


def _selected_only(
    session: Session,
    *,
    schema: SharedSchema,
    counts: Sequence[Counts],
    plan: Plan,
    prepared: Prepared,
    timeout: float,
) -> Selection:
    from sfumato.collaboration.mpyc_channel import STAGE
    from sfumato.collaboration.selection_only import select_only

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
    session: Session, releaser: ProjectionReleaser, rows: Table | LargeRows, output: Path | None, force: bool
) -> Iterator[tuple[Release, Callable[[], Published | None]]]:
    """Audit this party's release and have its bytes ready; the others are told if that fails."""
    with ExitStack() as stack:
        try:
            publish: Callable[[], Published | None] = _publish_nothing
            if not isinstance(rows, Table):
                release, publish = stack.enter_context(rows.staged(releaser, output, force=force))
            else:
                release = make_release(rows, releaser)
                if output is not None:
                    publish = stack.enter_context(staged(release, output, original=rows, force=force))
        except SfumatoError:
            with suppress(CollaborationError):
                session.accuse(session.me, RELEASE, "stopped")
            raise
        yield release, publish


def _publish_nothing() -> None:
    """Publish nothing, in a dry run."""
