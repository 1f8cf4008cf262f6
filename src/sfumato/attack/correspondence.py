"""An original and its release: what each released cell may mean, and which released row is whose.

Whatever rule a column was recoded by, the attacker's question is the same: which released rows may be this person's?
The rules come from the manifest. Without one every released cell is taken as a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.candidates import Candidates, GridCandidates, MatchedColumn, candidates_in_buckets, candidates_of
from sfumato.audit.checks import Check
from sfumato.audit.claims import FLIPPED, SORTED, SYNTHETIC, ClaimedPerturbation, ClaimedRecoding, read_claims
from sfumato.audit.original.assignment import TooManyPairsError, assigned_rows
from sfumato.audit.original.cell_rules import FittingRule
from sfumato.audit.original.offered_rows import offered_rows
from sfumato.audit.original.typical import check_typical
from sfumato.audit.reading.cells import Containing, contained, unchanged
from sfumato.audit.reading.columns import Classes, Columns, group_rows
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.audit.reading.values import AS_IS, GENERALIZED, HIERARCHY, TYPICAL, evaluate, zero_one
from sfumato.errors import SchemaError
from sfumato.manifest import AnyTable, Manifest
from sfumato.schema import Role
from sfumato.table.persons import may_repeat, person_codes

Ids = NDArray[np.int64]

ABSENT = -1
"""Released row of a person who has none."""

_FEWEST_ROWS, _MOST_ROWS = 64, 65_536
_MOST_KEPT = 1_000  # columns that are read once, however many rows there are
_MOST_KEPT_CELLS = 2**25  # of few rows more columns


class Correspondence:
    """An original and a release of it, read column by column.

    Parameters
    ----------
    original, released : Table or BinaryTable
    manifest : Manifest or None
        Tells how columns were recoded and whether cells were changed, moved or drawn anew.

    Attributes
    ----------
    persons : array or None
        Person of each row of the original; ``None`` where no column tells persons apart, or each has one row.
    may_repeat : bool
        Whether a person may have several rows: rows are not people then.

    Notes
    -----
    Where rows were left out, each released row is given the first row of the original that agrees with it in all
    columns and comes after those given before. If there is no such way, because the rows of a file are sorted, each is
    given a row of the original of its own that agrees with it. Either is one way in which the release may have been
    made.
    """

    def __init__(self, original: AnyTable, released: AnyTable, manifest: Manifest | None) -> None:
        self.original, self.released = Columns(original), Columns(released)
        self.persons, self.may_repeat = person_codes(original), may_repeat(original)
        claims = read_claims(manifest.to_dict()) if manifest is not None else None
        self.recodings: Mapping[str, ClaimedRecoding] = claims.recodings if claims else {}
        self._claims = claims
        self._perturbation: ClaimedPerturbation | None = claims.perturbation if claims else None
        self._is_sorted = claims is not None and claims.output_order == SORTED
        self.rows: Ids = offered_rows(self.original, claims).rows if claims else np.arange(self.original.n_rows)

    @property
    def is_sorted(self) -> bool:
        """Whether the released rows are in an order of their own, which tells nothing of whose they are."""
        return self._is_sorted

    @property
    def is_synthetic(self) -> bool:
        """Whether the released rows were drawn at random, so that none is anybody's."""
        return self._kind == SYNTHETIC

    @property
    def is_flipped(self) -> bool:
        """Whether cells were changed at random."""
        return self._kind == FLIPPED

    @cached_property
    def is_typical(self) -> bool:
        """Whether cells are values that are typical of a class, and may be no value of the person."""
        return any(recoding.rule == TYPICAL for recoding in self.recodings.values())

    @property
    def may_differ(self) -> bool:
        """Whether the cells of a person's own row may be other values than the person's."""
        return self.is_flipped or self.is_typical

    def is_moved(self, name: str) -> bool:
        """Whether the values of a released column were moved within buckets."""
        return name in self._moved

    @property
    def _kind(self) -> str | None:
        return self._perturbation.kind if self._perturbation else None

    @property
    def _moved(self) -> frozenset[str | None]:
        return self._perturbation.moved if self._perturbation else frozenset()

    @cached_property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Released quasi-identifiers."""
        return self.released.with_role(Role.QUASI_IDENTIFIER)

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of the original that an attacker may know, with the released ones that come from each."""
        found: dict[str, tuple[str, ...]] = {}
        for name in self.quasi_identifiers:
            if (source := self.source_of(name)) is not None:
                found[source] = (*found.get(source, ()), name)
        return found

    def source_of(self, name: str) -> str | None:
        """Column of the original that a released one comes from; ``None`` for one that is new."""
        recoding = self.recodings.get(name)
        source = name if recoding is None or self.original.feature(name) else recoding.column
        return source if source in self.original else None

    @cached_property
    def pieces(self) -> tuple[tuple[str, ...], ...]:
        """Released quasi-identifiers whose values are together in a row: all of them, unless slices were moved."""
        slices = [frozenset(part) for part in self._perturbation.slices] if self._perturbation else []
        fixed = frozenset(self.quasi_identifiers) - self._moved
        parts = [tuple(n for n in self.quasi_identifiers if n in part) for part in (fixed, *slices)]
        return tuple(part for part in parts if part) or ((),)

    @property
    def is_in_pieces(self) -> bool:
        """Whether values of one person's quasi-identifiers are in several rows of a bucket."""
        return len(self.pieces) > 1

    @cached_property
    def classes(self) -> Classes:
        """Released rows that an attacker cannot distinguish: with equal cells, or in one bucket of moved slices."""
        return self.buckets if self.is_in_pieces else group_rows(self.released, self.quasi_identifiers)

    @cached_property
    def grid(self) -> GridCandidates | None:
        """Counts of candidates by few columns; ``None`` where values of a person are in several rows."""
        return None if self.is_in_pieces else GridCandidates(self.classes, self.original.n_rows)

    @cached_property
    def buckets(self) -> Classes:
        """Released rows of one bucket; all rows where nothing was moved."""
        return group_rows(self.released, (self._perturbation.bucket or "",) if self._perturbation else ())

    @cached_property
    def own_row(self) -> Ids | None:
        """Released row of each row of the original, or -1; ``None`` where rows do not belong together."""
        if self.is_synthetic or not self._moved.isdisjoint(self.quasi_identifiers):
            return None
        own = np.full(self.original.n_rows, ABSENT, dtype=np.int64)
        if self.is_flipped:
            if len(self.rows) != self.released.n_rows or (self._is_sorted and not self._is_flipped_in_place()):
                return None
            own[self.rows] = np.arange(self.released.n_rows)
            return own
        if self.is_typical:
            if not self._is_typical_in_place():
                return None
            own[self.rows] = np.arange(self.released.n_rows)
            return own
        given = self._subsequence()
        if given is None and self._is_sorted:
            given = self._assigned()
        if given is None:
            return None
        own[self.rows[given]] = np.arange(self.released.n_rows)
        return own

    def _subsequence(self) -> Ids | None:
        """Places in ``rows`` of the released rows, in order; ``None`` if some row has none."""
        columns = self._compared_columns()
        n_original, n_released = len(self.rows), self.released.n_rows
        given = np.zeros(n_released, dtype=np.int64)
        done, left_out, at_once = 0, 0, _FEWEST_ROWS
        while done < n_released and left_out <= n_original - n_released:
            n = min(at_once, n_released - done, n_original - done - left_out)
            released = np.arange(done, done + n)
            originals = self.rows[done + left_out : done + left_out + n]
            agree = np.ones(n, dtype=np.bool_)
            for column in columns:
                agree &= column.holds(originals, released)
            n_first = n if agree.all() else int(np.argmin(agree))
            given[done : done + n_first] = np.arange(done + left_out, done + left_out + n_first)
            done, left_out = done + n_first, left_out + (n_first < n)
            at_once = min(2 * at_once, _MOST_ROWS) if n_first == n else _FEWEST_ROWS
        return given if done == n_released else None

    def _compared_columns(self) -> list[MatchedColumn]:
        """Columns that say which row is whose."""
        named = (name for name in self.released.names if self.source_of(name) is not None)
        return [self.column(name) for name in named if name not in self._moved]

    def _is_flipped_in_place(self) -> bool:
        """Whether the rows of both tables side by side differ in as many cells as were changed."""
        released = np.arange(self.released.n_rows)
        differing = sum(int((~column.holds(self.rows, released)).sum()) for column in self._compared_columns())
        return self._perturbation is not None and differing == self._perturbation.n_cells_changed

    def _is_typical_in_place(self) -> bool:
        """Whether the rows of both tables stand side by side: each class then has its own rows' typical values."""
        if self._claims is None or len(self.rows) != self.released.n_rows:
            return False
        released = np.arange(self.released.n_rows)
        others = [n for n in self.released.names if n not in self.recodings and self.source_of(n) is not None]
        if not all(self.column(name).holds(self.rows, released).all() for name in others):
            return False
        found = check_typical(self.released, self.original, self._claims, self.rows, self.rows)
        return all(isinstance(one, Check) and one.passed for one in found)

    def _assigned(self) -> Ids | None:
        """Places in ``rows`` of the released rows, each of its own; ``None`` if there is no way, or too many."""
        columns = self._compared_columns()
        rules = [
            FittingRule("", "", read=replace(column.containing, places=np.arange(column.containing.n_places)))
            for column in columns
        ]
        try:
            return assigned_rows(
                rules, [column.places[self.rows] for column in columns], [column.cells for column in columns]
            )
        except TooManyPairsError:
            return None

    def column(self, name: str) -> MatchedColumn:
        """Read a released column next to the one that it comes from.

        Raises
        ------
        SchemaError
            If its cells cannot be read, or it comes from no column of the original. No cell is shown.
        """
        if name in self._read:
            return self._read[name]
        found = self._read_column(name)
        n_cells = self.original.n_rows + self.released.n_rows  # of each column
        if len(self._read) < max(_MOST_KEPT, _MOST_KEPT_CELLS // max(n_cells, 1)):
            self._read[name] = found
        return found

    @cached_property
    def _read(self) -> dict[str, MatchedColumn]:
        return {}

    def _read_column(self, name: str) -> MatchedColumn:
        source = self.source_of(name)
        if source is None:
            problem = "comes from no column of the original"
            raise SchemaError(problem, column=name)
        before, after = self.original.coded(source), self.released.coded(name)
        containing = self._containing(name, source)
        if containing is None or containing.n_unreadable:
            problem = "has cells that cannot be compared with the original's values"
            raise SchemaError(problem, column=name, hint="does the manifest belong to this release?")
        places = containing.places.astype(np.int32)[before.codes]
        return MatchedColumn(containing, places, after.codes)

    def _containing(self, name: str, source: str) -> Containing | None:
        before, after = self.original.coded(source).values, self.released.coded(name).values
        recoding = None if self.original.feature(name) else self.recodings.get(name)
        if self.released.feature(name) is None and (recoding is None or recoding.rule == TYPICAL):
            return unchanged(after, before)
        recoding = recoding or ClaimedRecoding(name, source, AS_IS)
        if recoding.rule == GENERALIZED:
            return contained(after, before, recoding.kind, recoding.domain)
        if recoding.rule == HIERARCHY:
            return contained_in_labels(after, before, recoding.kind, recoding.labels, recoding.domain)
        computed, shown = evaluate(recoding, before), zero_one(after)
        if computed is None or shown is None:
            return None
        cells = np.flatnonzero(shown >= 0)
        starts = shown[cells].astype(np.int64)
        return Containing(computed.astype(np.int64), 2, cells, starts, starts + 1, len(after))

    def candidates(self, names: Sequence[str]) -> Candidates:
        """Count who may be whom by some released columns.

        Raises
        ------
        SchemaError
            If cells cannot be read beside the original's.
        """
        n_people = self.original.n_rows
        if not self.is_in_pieces:
            return candidates_of([self.column(name) for name in names], n_people, self.released.n_rows)
        parts = [[self.column(name) for name in piece if name in names] for piece in self.pieces]
        return candidates_in_buckets([part for part in parts if part], self.buckets, n_people)
