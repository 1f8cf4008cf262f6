"""What the audit asks of a release and of its original, wherever their rows are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.checks import Check, Unchecked
from sfumato.audit.claims import Claims
from sfumato.audit.evidence import MEASURED
from sfumato.audit.kinds import FindDetermining
from sfumato.audit.levels.persons import Losses, check_person_suppression, losses_of_persons
from sfumato.audit.levels.registry import level_of
from sfumato.audit.levels.row_promises import check_row_promises
from sfumato.audit.original.fidelity import check_description, check_fidelity
from sfumato.audit.original.preparation import with_original_prepared
from sfumato.audit.original.release_vs_original import ReleaseVsOriginal
from sfumato.audit.population_table import GivenPopulation
from sfumato.audit.reading.columns import AnyTable, Columns, Declared
from sfumato.audit.reading.formulas import without_apostrophes
from sfumato.audit.reading.row_order import check_row_order, is_sorted
from sfumato.audit.reading.spelling import check_spelling
from sfumato.errors import InvalidParameterError
from sfumato.guarantees import Guarantee, KAnonymity
from sfumato.schema import Schema
from sfumato.table.coding import Source
from sfumato.table.weighted import OpenColumn


class AuditedRows:
    """A release and, where it is given, its original: the verbs that the one sequence of checks is made of.

    They answer from tables in memory; rows that are elsewhere answer otherwise.

    Attributes
    ----------
    claims : Claims
        What the manifest says, with the columns that cannot be checked without a key.
    released : Table or BinaryTable
        The cells of the release: rows, or distinct rows with their counts.
    as_written : Columns
        The cells of the release as they are in the file, where its rows are in memory.
    given : Columns or None
        The original, prepared as the manifest says.
    pair : ReleaseVsOriginal or None
        Both, where their rows can be compared.
    source : Source or None
        File of the original.
    population : GivenPopulation or None
        The table of the population.
    prepared : list of Check and Unchecked
        What was found when the tables were made ready.
    find_determining : callable or None
        Finds the columns of the original that determine another one, where these are not looked up in ``given``.
    """

    claims: Claims
    released: AnyTable
    as_written: Columns
    given: Columns | None = None
    pair: ReleaseVsOriginal | None = None
    source: Source | None = None
    population: GivenPopulation | None = None
    prepared: list[Check | Unchecked]
    find_determining: FindDetermining | None = None

    @cached_property
    def described(self) -> AnyTable:
        """The released columns with the roles, kinds and domains of the manifest; a feature needs none."""
        coded = self.released.coded_part
        stated = {c.name: c for c in self.claims.columns}
        columns = [
            replace(column, role=claim.role, kind=claim.kind, domain=claim.domain or column.domain)
            if (claim := stated.get(column.name)) is not None
            else column
            for column in coded.schema
        ]
        table = replace(coded, schema=Schema({c.name: c for c in columns}, coded.schema.missing))
        return self.released.with_coded_part(table)

    @cached_property
    def columns(self) -> Columns:
        """Columns of :attr:`described`."""
        return Columns(self.described)

    @property
    def n_offered(self) -> int | None:
        """Rows of the original that may be released; ``None`` where rows cannot be compared."""
        return None if self.pair is None else len(self.pair.rows)

    def values(self) -> Mapping[str, Iterable[pa.Array]]:
        """Released values, column by column; a feature has no spelling."""
        return values_of(Columns(self.released))

    def check_spelling(self) -> Iterator[Check | Unchecked]:
        """Whether values have one spelling each."""
        types = None if self.pair is None else types_of(self.pair.original)
        return check_spelling(values_of(self.as_written), self.claims, types)

    def check_row_order(self) -> Check | Unchecked:
        """Whether released rows are in their canonical order."""
        return check_row_order(self.as_written, self.claims)

    def check_kinds(self) -> Iterator[Check]:
        """Whether columns hold numbers where they are stated to, so far as their values are not listed."""
        return iter(())

    def level(self, guarantee: Guarantee) -> float:
        """Measure what is promised.

        Raises
        ------
        SchemaError, InvalidParameterError
            If it cannot be measured, and therefore not be kept.
        UndecidableError
            If it cannot be measured here.
        """
        return level_of(guarantee, self.described, self.pair, self.population)

    def figure(self, name: str) -> float | Unchecked:
        """Measure a stated figure on the release alone, or say why that cannot be done here."""
        return MEASURED[name](self.columns, self.claims)

    def check_person_suppression(self) -> Iterator[Check | Unchecked]:
        """Whether no larger share of the persons lost a row than may be suppressed."""
        return check_person_suppression(self.claims, None if self.pair is None else self.losses)

    def losses(self, promise: KAnonymity) -> Losses:
        """Count the persons who lost a row."""
        if self.pair is None:
            raise AssertionError
        return losses_of_persons(promise, self.pair)

    def check_row_promises(self) -> Iterator[Check | Unchecked]:
        """Count by persons what is promised of rows, if some persons have several."""
        return check_row_promises(self.claims, self.given, self.pair)

    def check_penalty(self) -> Iterator[Check | Unchecked]:
        """Compare the stated certainty penalty with that of the released cells."""
        return iter(()) if self.pair is None else self.pair.check_stated_penalty()

    def check_fidelity(self, roles: Declared) -> Iterator[Check | Unchecked]:
        """Compare the release with the original that it claims to come from, where rows can be compared."""
        return iter(()) if self.pair is None else check_fidelity(self.pair, roles)


class RowsInMemory(AuditedRows):
    """Tables in memory.

    Raises
    ------
    InvalidParameterError
        If the publisher's places do not name each row of the release once.
    """

    def __init__(
        self, released: AnyTable, claims: Claims, has: AuditorHas[AnyTable], publisher: PublisherKnows
    ) -> None:
        self.claims = claims
        self.released, unmarked = without_apostrophes(released, claims)
        self.prepared = [*unmarked]
        self.as_written = Columns(self.released)
        places = publisher.places
        if places is not None:
            if not np.array_equal(np.sort(places), np.arange(released.n_rows)):
                raise InvalidParameterError("places", "some rows come twice", allowed="each row of the release once")
            self.released = self.released.take(places)  # in the original's order
        before = self._with_original(has)
        if before is not None:
            own_rows = None if places is None else publisher.own_rows
            has_order = places is not None or not is_sorted(self.claims)
            self.pair = ReleaseVsOriginal(
                self.columns,
                before,
                self.claims,
                in_original_order=has_order and (own_rows is not None or not self.claims.suppressed_rows),
                own_rows=own_rows,
            )

    def _with_original(self, has: AuditorHas[AnyTable]) -> Columns | None:
        """Prepare the original, and give it if its rows can be compared with the release."""
        original, is_comparable = has.original, True
        if original is not None:
            as_read = original.with_coded_part(original.coded_part.as_read)
            original, self.claims, done, is_comparable = with_original_prepared(
                as_read, self.claims, has.key, has.project_key
            )
            self.prepared.extend(done)
            self.given, self.source = Columns(original), original.coded_part.source
            if not is_comparable:
                self.prepared.extend(check_description(self.given, self.claims, has.roles))
        if has.register is not None:
            self.population = GivenPopulation(self.described, has.register, self.claims, original, has.key)
        return self.given if is_comparable and self.claims.input_parties is None else None


def values_of(columns: Columns) -> dict[str, list[pa.Array]]:
    """Distinct values of the columns that list them; a feature has no spelling."""
    coded = [name for name in columns.names if columns.feature(name) is None]
    return {name: [columns.coded(name).values] for name in coded if not isinstance(columns.coded(name), OpenColumn)}


def types_of(columns: Columns) -> dict[str, pa.DataType]:
    """Arrow types of the columns; a feature holds whole numbers."""
    return {name: columns.type_of(name) for name in columns.names}
