"""One party's way to a table of all parties' rows: search together, add up what is released, audit, publish.

Nobody sends rows. When the classes are found, the parties add up how often each class of rows goes with each value of
the target (:class:`~sfumato.collaborate.secure_sum.SecureSum`). These totals are the table: every party writes the same
file from them, sorted, without a word of who had which row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.collaborate.config import PartyConfig
from sfumato.collaborate.joint.generalization import GeneralizedColumn, digest_of, generalized_columns
from sfumato.collaborate.joint.search import STAGE, ClassOfRows, JointTask, Places, divide_together
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.schema_session import check_tells_nobody_apart
from sfumato.collaborate.secure_sum import SecureSum
from sfumato.collaborate.session.handshake import check_all_have_the_same, greet
from sfumato.collaborate.session.joining import joined
from sfumato.collaborate.session.party import (
    ALL_READY,
    READY,
    RELEASE,
    SessionRecord,
    StageChannel,
    check_paths,
    publish_nothing,
    terms_of,
)
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import SharedColumn, SharedSchema
from sfumato.errors import CollaborationError, InvalidParameterError, SchemaError, SfumatoError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.measures.loss import generalized_certainty_penalty
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.publish import Published, check_targets, staged
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

Totals = NDArray[np.int64]

MECHANISM_NAME = "joint-k"
TOTALS = "rows of the classes"
_INPUT_NAME = "<rows of several parties>"
_WHAT_THIS_IS = (
    "k counts rows of all parties together: a person with rows at several parties counts several times. A party knows "
    "which rows are its own, and all parties but one together know the rest"
)


@dataclass(frozen=True)
class JointResult:
    """What a party has at the end.

    Parameters
    ----------
    k : int
        Rows of the smallest class of the union, as the audit found it.
    n_rows, n_classes : int
        Of the union.
    own_level : int
        Rows of the smallest class of this party's own rows, in the same classes; nobody else knows it.
    certainty_penalty : float
        Mean share of a column's values that a released cell leaves open (GCP over the shared schema's values).
    """

    session: SessionRecord
    k: int
    n_rows: int
    n_classes: int
    own_rows: int
    own_level: int
    certainty_penalty: float
    release: Release
    published: Published | None
    bytes_sent: int
    bytes_received: int
    seconds: float
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what this party alone may know is in it."""
        published = self.published
        figures = ("k", "n_rows", "n_classes", "own_rows", "own_level", "certainty_penalty")
        return {
            "session": self.session.to_dict(),
            "agreed": dict(self.session.agreed),
            **{name: getattr(self, name) for name in figures},
            "table": str(published.table_path) if published else None,
            "manifest": str(published.manifest_path) if published else None,
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
        }


def take_part_jointly(
    config: PartyConfig,
    table: Table,
    schema: SharedSchema,
    plan: Plan,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    output: Path | None = None,
    transcript: Transcript | None = None,
    force: bool = False,
) -> JointResult:
    """Take part in a session that publishes one k-anonymous table of all parties' rows.

    As in :func:`sfumato.collaborate.session.party.take_part` nothing appears before every party has said that its file
    is written and audited; all parties' files have the same bytes.

    Parameters
    ----------
    table : Table
        This party's rows, in the roles of the shared schema. Columns that are no feature and not the target are kept
        back, whatever their roles.
    hierarchies : mapping of str to Hierarchy
        By column; the same for all parties.

    Raises
    ------
    PrivacyNotAchievableError
        If all parties together have fewer than k rows.
    CollaborationError
        If a party, named with the stage, failed.
    AuditFailedError
        If the audit does not confirm the release, or that this party's rows are in it.
    """
    if plan.joint_k is None:
        raise InvalidParameterError("joint_k", "got none", allowed="given")
    plan.check_group(len(config.roster.names), table.n_rows)
    schema.check_table(table)
    check_tells_nobody_apart(table, schema.cuts)
    columns = generalized_columns(schema, hierarchies)
    places = places_of_rows(table, schema.features)
    classes = places_of_rows(table, [schema.target])[0]
    target = None if plan.dry_run else output
    if target is not None:
        check_targets(target, manifest_path_for(target), table.source, force=force)
    elif not plan.dry_run:
        hint = "name a file such as release.csv"
        raise InvalidParameterError("output", "got none", allowed="given", hint=hint, remedy=("output",))
    record = transcript or Transcript()
    check_paths(config, table, target, record.path)
    task = JointTask(columns, plan.joint_k, plan.max_rows)
    with joined(config, transcript=record) as session:
        terms = terms_of(config, schema, plan, table)
        terms = replace(terms, parameters={**terms.parameters, "generalization_sha256": digest_of(columns)})
        binding = greet(session, terms)
        who = SessionRecord(f"{config.session}/{binding.hex()[:16]}", terms.mode, terms.fingerprints, terms.parameters)
        found = _divided(session, task, places, config.timeout)
        totals = added_up(SecureSum(session, mode=plan.sharing), found, classes, schema.target.n_values, plan.joint_k)
        release = release_of(schema, columns, found, totals, k=plan.joint_k, session=who, missing=table.schema.missing)
        with _staged(session, release, table, target, force) as publish:
            labels = [[node.label for node in one.nodes] for one in found]
            agreed = json.dumps([labels, totals.tolist()]).encode()
            check_all_have_the_same(session, READY, agreed)
            if not plan.dry_run:
                session.let_others_publish()
            check_all_have_the_same(session, ALL_READY, agreed)
            published = publish()
    sizes = totals.sum(axis=1)
    own = [len(one.rows) for one in found if len(one.rows)]
    return JointResult(
        who,
        k=anonymity_level(sizes),
        n_rows=int(sizes.sum()),
        n_classes=len(found),
        own_rows=table.n_rows,
        own_level=min(own, default=0),
        certainty_penalty=certainty_penalty(columns, found, sizes),
        release=published.release if published else release,
        published=published,
        bytes_sent=record.bytes_sent,
        bytes_received=record.bytes_received,
        seconds=record.seconds,
        warnings=(str(record.problem),) if record.problem else (),
    )


def places_of_rows(table: Table, columns: Sequence[SharedColumn]) -> list[Places]:
    """Place of every row's value in each shared column."""
    return [column.places(table[column.name])[table[column.name].codes] for column in columns]


def certainty_penalty(
    columns: Sequence[GeneralizedColumn], classes: Sequence[ClassOfRows], sizes: Sequence[int] | Totals
) -> float:
    """Global certainty penalty of classes with so many rows, over the values of the shared schema."""
    penalties = [[c.penalty(node) for c, node in zip(columns, one.nodes, strict=True)] for one in classes]
    return generalized_certainty_penalty(penalties, sizes)


def _divided(session: Session, task: JointTask, places: Sequence[Places], timeout: float) -> list[ClassOfRows]:
    def accuse(party: str, reason: str) -> None:
        session.accuse(party, STAGE, reason)

    with session.round(STAGE):
        channel = StageChannel(session, STAGE)
        return divide_together(channel, session.me, session.roster, task, places, timeout=timeout, accuse=accuse)


def added_up(sums: SecureSum, classes: Sequence[ClassOfRows], targets: Places, n_targets: int, k: int) -> Totals:
    """Rows of the union by class and value of the target; the only counts that anybody sees.

    Raises
    ------
    CollaborationError
        If a class has fewer than k rows, which only happens if somebody did not keep to the protocol.
    """
    own = np.array([np.bincount(targets[one.rows], minlength=n_targets) for one in classes], dtype=np.uint64)
    totals = sums.total(own.reshape(-1), stage=TOTALS).astype(np.int64).reshape(own.shape)
    if (totals < 0).any() or (totals.sum(axis=1) < k).any():
        problem = "gave other numbers to the sum than to the search"
        raise CollaborationError(problem, party="one of the parties", stage=TOTALS)
    return totals


def release_of(
    schema: SharedSchema,
    columns: Sequence[GeneralizedColumn],
    classes: Sequence[ClassOfRows],
    totals: Totals,
    *,
    k: int,
    session: SessionRecord,
    missing: Sequence[str],
) -> Release:
    """Write the table from the totals, with its manifest; the same for every party."""
    cells = [(one, target) for one in range(len(classes)) for target in range(totals.shape[1])]
    counts = totals.reshape(-1)
    texts: dict[str, list[str | None]] = {
        column.name: [classes[one].nodes[place].label for one, _ in cells] for place, column in enumerate(columns)
    }
    labels = [*schema.target.labels, *([None] if schema.target.has_missing else [])]
    texts[schema.target.name] = [labels[target] for _, target in cells]
    repeated = np.repeat(np.arange(len(cells)), counts)
    described = [Column(column.name, Role.QUASI_IDENTIFIER, Kind.CATEGORICAL) for column in columns]
    described.append(Column(schema.target.name, Role.TARGET, Kind.CATEGORICAL))
    cells_by_name = {name: pa.array(own, pa.string()).take(pa.array(repeated)) for name, own in texts.items()}
    released = Table.from_arrow(pa.table(cells_by_name), Schema({c.name: c for c in described}, tuple(missing)))
    manifest = draft_manifest(
        released,
        released,
        mechanism=MECHANISM_NAME,
        parameters={
            "k": k,
            "agreed": dict(session.agreed),
            "shared_schema_sha256": schema.hash(),
            "session": session.to_dict(),
        },
        guarantees=[KAnonymity(k, tuple(column.name for column in columns))],
        evidence={
            "utility": {"n_classes_of_cells": len(classes)},
            "risk": {"anonymity_level": anonymity_level(totals.sum(axis=1)), "what_this_is": _WHAT_THIS_IS},
        },
        recodings=[_entry(column, set(texts[column.name])) for column in columns],
    )
    union = {**(manifest.input or {}), "name": _INPUT_NAME, "parties": len(session.fingerprints)}
    return Release(released, replace(manifest, input=union))


def _entry(column: GeneralizedColumn, occurring: set[str | None]) -> dict[str, Any]:
    listed = {label: values for label, values in column.listed_labels().items() if label in occurring}
    entry = {"name": column.name, "column": column.name, "rule": "hierarchy", "kind": str(column.kind)}
    return {**entry, "labels": {label: listed[label] for label in sorted(listed)}}


@contextmanager
def _staged(
    session: Session, release: Release, rows: Table, output: Path | None, force: bool
) -> Iterator[Callable[[], Published | None]]:
    """Audit the release, with this party's own rows, and have its bytes ready; the others are told if that fails."""
    with ExitStack() as stack:
        try:
            publish: Callable[[], Published | None] = publish_nothing
            if output is None:
                _audited(release, rows)
            else:
                publish = stack.enter_context(staged(InMemory(release, rows), output, force=force))
        except SfumatoError:
            with suppress(CollaborationError):
                session.accuse(session.me, RELEASE, "stopped")
            raise
        yield publish


def _audited(release: Release, rows: Table) -> None:
    """Audit a release that is not written."""
    from sfumato.audit.verify import audit_release

    entries = release.manifest.to_dict()
    audit_release(
        release.data, entries, AuditorHas(original=rows, roles=True), publisher=PublisherKnows(levels_are_stated=False)
    ).raise_if_failed()


def check_in_memory(table: object) -> Table:
    """Refuse rows that are not in memory: the search counts them again and again."""
    if not isinstance(table, Table):
        problem = "is not in memory, and a joint k needs its rows there"
        raise SchemaError(problem, hint="read the table whole")
    return table
