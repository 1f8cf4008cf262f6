"""One party's way to a table of all parties' rows: search together, add up what is released, audit, publish.

Nobody sends rows. When the classes are found, the parties add up how often each class of rows goes with each value of
the target (:class:`~sfumato.collaborate.secure_sum.SecureSum`). These totals are the table: every party writes the same
file from them, sorted, without a word of who had which row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from sfumato.collaborate.session.party import (
    Appear,
    SessionRecord,
    SessionResult,
    StageChannel,
    checked_output,
    greeted,
    publish_nothing,
    published_together,
    terms_of,
)
from sfumato.collaborate.session.transcript import Transcript
from sfumato.collaborate.shared_schema import SharedColumn, SharedSchema
from sfumato.errors import CollaborationError, InvalidParameterError, SchemaError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import draft_manifest
from sfumato.measures.anonymity import anonymity_level
from sfumato.measures.loss import generalized_certainty_penalty
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.publish import staged
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


@dataclass(frozen=True, kw_only=True)
class JointResult(SessionResult):
    """What a party has that made one table together with the others.

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

    k: int
    n_rows: int
    n_classes: int
    own_rows: int
    own_level: int
    certainty_penalty: float

    def figures(self) -> dict[str, Any]:
        """Sizes of the union and of this party's part of it."""
        names = ("k", "n_rows", "n_classes", "own_rows", "own_level", "certainty_penalty")
        return {name: getattr(self, name) for name in names}


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
    record = transcript or Transcript()
    target = checked_output(config, plan, table, output, record.path, force=force)
    task = JointTask(columns, plan.joint_k, plan.max_rows)
    terms = terms_of(config, schema, plan, table)
    terms = replace(terms, parameters={**terms.parameters, "generalization_sha256": digest_of(columns)})
    with greeted(config, terms, record) as (session, who):
        with session.round(STAGE):
            found = divide_together(
                StageChannel(session, STAGE),
                session.me,
                session.roster,
                task,
                places,
                timeout=config.timeout,
                accuse=lambda party, reason: session.accuse(party, STAGE, reason),
            )
        totals = added_up(SecureSum(session, mode=plan.sharing), found, classes, schema.target.n_values, plan.joint_k)
        release = release_of(schema, columns, found, totals, k=plan.joint_k, session=who, missing=table.schema.missing)
        agreed = json.dumps([[[node.label for node in one.nodes] for one in found], totals.tolist()]).encode()
        mine = _staged(release, table, target, force)
        release, published = published_together(session, agreed, mine, is_dry_run=plan.dry_run)
    sizes = totals.sum(axis=1)
    return JointResult.of(
        record,
        session=who,
        release=release,
        published=published,
        k=anonymity_level(sizes),
        n_rows=int(sizes.sum()),
        n_classes=len(found),
        own_rows=table.n_rows,
        own_level=min((len(one.rows) for one in found if len(one.rows)), default=0),
        certainty_penalty=certainty_penalty(columns, found, sizes),
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
def _staged(release: Release, rows: Table, output: Path | None, force: bool) -> Iterator[tuple[Release, Appear]]:
    """Audit the release, with this party's own rows, and have its bytes ready."""
    if output is not None:
        with staged(InMemory(release, rows), output, force=force) as appear:
            yield release, appear
        return
    from sfumato.audit.verify import audit_release

    report = audit_release(
        release.data,
        release.manifest.to_dict(),
        AuditorHas(original=rows, roles=True),
        publisher=PublisherKnows(levels_are_stated=False),
    )
    report.raise_if_failed()
    yield release, publish_nothing


def check_in_memory(table: object) -> Table:
    """Refuse rows that are not in memory: the search counts them again and again."""
    if not isinstance(table, Table):
        problem = "is not in memory, and a joint k needs its rows there"
        raise SchemaError(problem, hint="read the table whole")
    return table
