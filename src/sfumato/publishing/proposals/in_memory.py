"""A release of a table that is held in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.checks import AuditReport
from sfumato.audit.claims import read_claims
from sfumato.audit.together.appearances import NamedRows, Promised, named_rows
from sfumato.audit.verify import audit_release
from sfumato.engines.memory_limit import Memory
from sfumato.engines.protocol import Rows
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.manifest import AnyTable, stated_labels, stated_versions, with_audited
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress
from sfumato.publishing.proposals.base import Proposal
from sfumato.publishing.reaudit import read_as_written
from sfumato.table.coding import Source
from sfumato.table.io.formats import STATISTICS
from sfumato.table.io.statistics.write import written_labels
from sfumato.table.io.write import write_table
from sfumato.table.labels import ColumnLabels


@dataclass(frozen=True, repr=False, eq=False)
class InMemory(Proposal):
    """A release whose rows are all in memory, with the table that it was made of.

    Parameters
    ----------
    original : Table or BinaryTable
    read_from : Rows or None
        What the table was taken from, if its rows are elsewhere as well.
    labels, order : dict and array, or None
        Labels and order of the rows in a file of the format that it is written in, see :meth:`for_format`.
    """

    original: AnyTable
    read_from: Rows | None = None
    labels: dict[str, ColumnLabels] | None = None
    order: NDArray[np.intp] | None = None

    @property
    def person(self) -> str | None:
        """Column of the original that tells persons apart."""
        return self.original.coded_part.schema.person

    def for_format(self, output_format: str) -> Self:
        """State the labels that a file of a statistics package will hold; refuse to escape formulas elsewhere."""
        if self.release.manifest.output.get("escaped_formulas", False):
            check_escapes(self.release.table.coded_part.schema.names(), output_format)
        release, labels = with_labels(self.release, self.original.source, output_format)
        return replace(self, release=release, labels=labels, order=release.order(output_format))

    def write(self, file: BinaryIO, output_format: str, memory: Memory, progress: Progress | None = None) -> None:
        """Write the released rows."""
        rows = self.release.table if self.order is None else self.release.table.take(self.order)
        is_escaped = self.release.manifest.output.get("escaped_formulas", False)
        write_table(rows, file, output_format, self.labels or {}, escape_formulas=is_escaped)
        if self.read_from is not None:
            self.read_from.ensure_unchanged()

    def judged(
        self, written: Path, release: Release, digest: str | None, memory: Memory, progress: Progress | None = None
    ) -> tuple[Release, AuditReport]:
        """Read the bytes again and audit them."""
        order = np.arange(release.table.n_rows) if self.order is None else self.order
        reread = read_as_written(written, release.manifest)
        report = audit_release(
            reread,
            release.manifest.to_dict(),
            self.auditor_has,
            released_sha256=digest,
            file=written,
            publisher=PublisherKnows(
                levels_are_stated=release.manifest.states_levels,
                places=np.argsort(order) if reread.n_rows == len(order) else None,
                own_rows=release.kept_rows,
            ),
        )
        return release, report

    def audited_in_memory(self) -> Release:
        """Audit the rows as they are in memory, and state the levels that the audit found.

        Raises
        ------
        AuditFailedError
            If the audit does not confirm the proposal.
        """
        release = self.release
        report = audit_release(
            release.table,
            release.manifest.to_dict(),
            self.auditor_has,
            publisher=PublisherKnows(
                levels_are_stated=False, places=np.arange(release.table.n_rows), own_rows=release.kept_rows
            ),
        )
        report.raise_if_failed()
        return release.with_manifest(guarantees=with_audited(release.manifest.guarantees, report.levels))

    @property
    def auditor_has(self) -> AuditorHas[AnyTable]:
        """All that the publisher has.

        Without the original where the release is differentially private: what appears must not depend on a look at
        the rows.
        """
        release, keys, source = self.release, self.release.preparation_keys, self.original.source
        # Secret by which commitments, pseudonyms and shifts are checked; without a project it is nobody else's.
        is_own = release.audit_key is not None or keys is None
        return AuditorHas(
            original=None if release.manifest.is_differentially_private else self.original,
            original_sha256=None if source is None else source.sha256,
            key=release.audit_key if is_own or keys is None else keys.release,
            project_key=None if keys is None else keys.project,
            register=None if release.population is None else release.population.table,
            roles=True,
        )

    def named_rows(self, promised: Promised, person: str) -> NamedRows:
        """Say whose row is in which class, by which row each was made of."""
        release = self.release
        claims = read_claims(release.manifest.to_dict())
        places = release.kept_rows if release.kept_rows is not None else np.arange(self.original.n_rows)
        is_known = len(places) == release.table.n_rows
        return named_rows(release.table, self.original, claims, person, rows=places if is_known else None)


def with_labels(release: Release, source: Source | None, format: str) -> tuple[Release, dict[str, ColumnLabels]]:
    """State the labels that a file of a statistics package will hold; of differentially private rows there are none."""
    if format not in STATISTICS:
        return release, {}
    manifest = release.manifest
    given = source.labels if source is not None and not manifest.is_differentially_private else {}
    hidden = {recoding["name"] for recoding in manifest.recodings if recoding["rule"] == "hierarchy"}
    labels = written_labels(release.table, format, given, hidden)
    columns = [
        {**entry, **stated_labels(labels[entry["name"]])} if entry["name"] in labels else entry
        for entry in manifest.output["columns"]
    ]
    versions = stated_versions(format, "pyreadstat")
    return release.with_manifest(output={**manifest.output, "columns": columns}, versions=versions), labels


def check_escapes(names: Iterable[str], output_format: str) -> None:
    """Refuse to escape formulas where nothing has to be, or where it cannot be done.

    Raises
    ------
    InvalidParameterError
        If the format marks texts itself.
    SchemaError
        If the name of a column would be run: names are never altered.
    """
    if not output_format.startswith(("csv", "tsv")):
        allowed = "used with CSV and TSV files, which cannot mark a cell as text"
        raise InvalidParameterError("escaping of formulas", f"got {output_format}", allowed=allowed)
    for name in names:
        if name[:1] in tuple("=+-@"):
            problem = "begins with a character that spreadsheet programs take for a formula"
            raise SchemaError(problem, column=name, hint="rename the column")
