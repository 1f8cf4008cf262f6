r"""Mass linkage: a reference table is matched with a release, person by person, on columns that both have.

Whoever holds a reference table (a voter list) knows some *background* columns of the people in it. The released rows
that are *consistent* with a reference row - every released cell may stand for its value - are its candidates.

- confidence is 1 over the number of candidates; a single candidate is a re-identification, and a record without any
  is not in the release, or one of the two tables is wrong about it;
- ICR :math:`= \log_2` of the number of candidates, Definition 2 of [ERP19]_;
- BIG :math:`= -\sum_j \log_2 P_j` over the background columns, Definition 1, where :math:`P_j` is the share of the
  column's domain that a candidate's cell stands for (see :func:`sfumato.attack.background.background_column`). A record
  has the least one among its candidates;
- TIDI = BIG + ICR, Definition 3: the bits that it takes to disclose the person. Small values are risky.

A column that all candidates agree on is learned without knowing which one is the person's.

References
----------
.. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity Disclosure
   Risks. ICIS 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.background import BackgroundColumn, background_column
from sfumato.attack.matching import match
from sfumato.audit.values import ranks
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, ManifestError
from sfumato.manifest import AnyTable
from sfumato.measures.disclosure import information_for_reidentification, total_information
from sfumato.recoding.base import GENERALIZED
from sfumato.schema import Column, Kind, Role
from sfumato.table.coding import Table

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

ABSENT = -1
"""Released row of a person who is not in the release."""

_CROWDS = (1, 2, 5, 10)


@dataclass(frozen=True, repr=False, eq=False)
class Linkage:
    """What a reference table and some background columns tell about the people in it, one entry a reference row.

    Parameters
    ----------
    background : tuple of str
    n_released : int
        Rows of the release.
    candidates : array
        Released rows that are consistent with the reference row.
    granularity : array
        Least background information granularity (BIG) among the candidates, in bits; infinite where there are none.
    learned : mapping of str to array
        For each sensitive or target column outside of the background, whether all candidates agree on it.
    is_true_candidate : array or None
        Whether the person's own row is among the candidates; ``None`` where the truth is not known.
    k : int or None
        Crowd that the release promises; adds the confidence 1/k to the summary.
    """

    background: tuple[str, ...]
    n_released: int
    candidates: Ids
    granularity: Numbers
    learned: Mapping[str, Flags] = field(default_factory=dict)
    is_true_candidate: Flags | None = None
    k: int | None = None

    def __repr__(self) -> str:
        return f"Linkage({len(self.background)} columns, {self.n_reidentified:,} of {len(self.candidates):,} records)"

    @cached_property
    def confidence(self) -> Numbers:
        """1 over the number of candidates; 0 where there are none."""
        return np.where(self.candidates > 0, 1 / np.maximum(self.candidates, 1), 0.0)

    @cached_property
    def reidentification(self) -> Numbers:
        """Information for conditional re-identification (ICR), in bits; infinite where there are no candidates."""
        return information_for_reidentification(self.candidates)

    @property
    def information(self) -> Numbers:
        """Total information for disclosing the person (TIDI), in bits; small is risky."""
        return total_information(self.granularity, self.candidates)

    @property
    def n_reidentified(self) -> int:
        """Records with a single candidate."""
        return int(np.count_nonzero(self.candidates == 1))

    @property
    def n_expected(self) -> float:
        """Right identifications that are expected when one candidate of each record is picked at random.

        Where the truth is not known, each record with candidates is taken to have its own row among them.
        """
        known = self.is_true_candidate
        return float(self.confidence.sum() if known is None else self.confidence[known].sum())

    def summary(self) -> dict[str, Any]:
        """Plain counts and bits, fit for JSON; no cell value is in it."""
        matched = self.candidates > 0
        crowds = sorted({*_CROWDS, *([self.k] if self.k else [])})
        return {
            "background": list(self.background),
            "n_records": len(self.candidates),
            "n_released": self.n_released,
            "n_without_candidates": int(np.count_nonzero(~matched)),
            "n_reidentified": self.n_reidentified,
            "n_expected": self.n_expected,
            "highest_confidence": float(self.confidence.max(initial=0.0)),
            "by_confidence": [
                {"at_least": "1" if crowd == 1 else f"1/{crowd}", "n_records": self._n_at_most(crowd)}
                for crowd in crowds
            ],
            "truth": self._truth(),
            "granularity_bits": _least_and_mean(self.granularity[matched]),
            "reidentification_bits": _least_and_mean(self.reidentification[matched]),
            "information_bits": _least_and_mean(self.information[matched]),
            "n_learned": {name: int(np.count_nonzero(found)) for name, found in self.learned.items()},
        }

    def _n_at_most(self, crowd: int) -> int:
        return int(np.count_nonzero((self.candidates > 0) & (self.candidates <= crowd)))

    def _truth(self) -> dict[str, int] | None:
        known = self.is_true_candidate
        if known is None:
            return None
        return {
            "n_own_row_among_candidates": int(np.count_nonzero(known)),
            "n_reidentified_rightly": int(np.count_nonzero(known & (self.candidates == 1))),
        }


def _least_and_mean(bits: Numbers) -> dict[str, float] | None:
    return {"least": float(bits.min()), "mean": float(bits.mean())} if len(bits) else None


def link(
    reference: AnyTable,
    released: AnyTable,
    background: Sequence[str],
    *,
    columns: Mapping[str, Column],
    truth: ArrayLike | None = None,
    k: int | None = None,
) -> Linkage:
    """Match a reference table with a release on some background columns.

    Parameters
    ----------
    background : sequence of str
        Names of columns that both tables have, with the same meaning.
    columns : mapping of str to Column
        Kind and order of the original values of those columns whose released cells are generalized (ranges and sets);
        see :func:`generalized_columns`. Cells of all other columns are taken as single values.
    truth : array_like of int or None
        For each reference row the number of the person's released row, or -1 for a person who is not in the release.
    k : int or None
        Crowd that the release promises, for the summary.

    Raises
    ------
    InvalidParameterError
        If there is no background column, one is named twice, or the truth does not fit the tables.
    ColumnNotFoundError
        If a table lacks a background column.
    SchemaError
        If released cells cannot be read, or a numeric column of the reference holds something else.

    Notes
    -----
    A missing value is a value of its own: it is consistent with cells that may be missing and with ``*`` only. An
    attacker who does not know a value should leave the column out for that record.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.schema import Kind, Schema
    >>> voters = Table.from_arrow(pa.table({"age": [30, 40, 70]}), Schema.of([Column("age", kind=Kind.NUMERIC)]))
    >>> cells = pa.table({"age": ["[29, 42]", "[29, 42]", "70"], "ill": ["y", "y", "n"]})
    >>> public = Table.from_arrow(cells, Schema.of([Column("age"), Column("ill", Role.SENSITIVE)]))
    >>> found = link(voters, public, ["age"], columns={"age": Column("age", kind=Kind.NUMERIC)})
    >>> found.candidates.tolist(), found.learned["ill"].tolist()
    ([2, 2, 1], [True, True, True])
    """
    return LinkageAttack(reference, released, background, columns=columns, truth=truth, k=k).on(background)


def generalized_columns(recodings: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """Describe the original values of a release's generalized columns by the recodings in its manifest.

    Raises
    ------
    ManifestError
        If an entry has no name, or no kind that is known.

    Examples
    --------
    >>> list(generalized_columns([{"name": "age", "column": "age", "rule": "generalized", "kind": "numeric"}]))
    ['age']
    """
    try:
        return {
            str(entry["name"]): Column(
                str(entry["name"]),
                kind=Kind(entry.get("kind", Kind.CATEGORICAL)),
                domain=tuple(map(str, entry.get("domain") or ())) or None,
            )
            for entry in recodings
            if entry.get("rule") == GENERALIZED
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "does not say how the released columns were recoded"
        raise ManifestError(problem) from None


class LinkageAttack:
    """A reference table and a release, read once, to be matched on several sets of the background columns.

    Parameters are those of :func:`link`.
    """

    def __init__(
        self,
        reference: AnyTable,
        released: AnyTable,
        background: Sequence[str],
        *,
        columns: Mapping[str, Column],
        truth: ArrayLike | None = None,
        k: int | None = None,
    ) -> None:
        known = reference if isinstance(reference, Table) else reference.to_table()
        public = released if isinstance(released, Table) else released.to_table()
        _check_background(background, known, public)
        self._n_released, self._k = public.n_rows, k
        self._truth = None if truth is None else _checked_truth(truth, known.n_rows, public.n_rows)
        self._columns = {name: _read(name, known, public, columns.get(name)) for name in background}
        self._values = {
            column.name: ranks(public[column.name].values, column.kind, column.domain)[public[column.name].codes]
            for column in public.schema
            if column.role in (Role.SENSITIVE, Role.TARGET)
        }

    def on(self, background: Sequence[str]) -> Linkage:
        """Match on some of the columns."""
        columns = [self._columns[name] for name in background]
        learned = {name: values for name, values in self._values.items() if name not in background}
        found = match(columns, learned)
        is_true = None if self._truth is None else _own_row_is_consistent(columns, self._truth)
        names = tuple(background)
        return Linkage(names, self._n_released, found.candidates, found.granularity, found.agreeing, is_true, self._k)


def _check_background(background: Sequence[str], known: Table, public: Table) -> None:
    if not background or len(set(background)) < len(background):
        problem = "got none" if not background else "got one twice"
        raise InvalidParameterError("background", problem, allowed="some columns, each named once")
    for name in background:
        for table, where in ((known, "the reference table"), (public, "the release")):
            if name not in table.schema:
                raise ColumnNotFoundError(name, table.schema.names(), where=where)


def _checked_truth(truth: ArrayLike, n_records: int, n_released: int) -> Ids:
    rows = np.asarray(truth)
    if rows.shape != (n_records,) or (n_records and rows.dtype.kind not in "iu"):
        problem = f"got shape {rows.shape} for {n_records:,} records"
        raise InvalidParameterError("truth", problem, allowed="one whole number for each reference row")
    if ((rows < ABSENT) | (rows >= n_released)).any():
        raise InvalidParameterError("truth", "some are not", allowed=f"from 0 to {n_released - 1}, or {ABSENT}")
    return rows.astype(np.int64)


def _read(name: str, known: Table, public: Table, generalized: Column | None) -> BackgroundColumn:
    described = public.schema[name] if generalized is None else generalized
    return background_column(known[name], public[name], described, generalized=generalized is not None)


def _own_row_is_consistent(columns: Sequence[BackgroundColumn], truth: Ids) -> Flags:
    rows = np.flatnonzero(truth != ABSENT)
    holds = np.zeros(len(truth), dtype=np.bool_)
    holds[rows] = np.logical_and.reduce([column.holds(rows, truth[rows]) for column in columns])
    return holds
