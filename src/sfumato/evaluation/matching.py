"""New rows in the form of a release by the released file alone: each row gets the cells of a class that holds it.

For recipients, who have no original. A recoding divides all values, and released cells show only those of released
rows: so a row may fit no class, or several. Whoever has the original does not need this, see
:mod:`sfumato.publishing.new_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.audit.claims import ClaimedRecoding, read_claims
from sfumato.audit.reading.cells import contained, tokens_of
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.errors import InputError, InvalidParameterError
from sfumato.manifest import Manifest
from sfumato.mechanisms.hierarchies.hierarchy import ROOT
from sfumato.mechanisms.lattice.levels import HIERARCHY, read_interval
from sfumato.mechanisms.recoder import GENERALIZED
from sfumato.publishing.new_rows import UnknownRule, rows_in_words
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable
from sfumato.table.cells import as_text
from sfumato.table.coding import CodedColumn, Table

NONE = -1
"""Class of a row that no released class holds."""
Matrix = NDArray[np.bool_]
Classes = NDArray[np.intp]


def by_released_cells(
    released: Table | BinaryTable, manifest: Manifest, table: Table, unknown: UnknownRule = "refuse"
) -> Table:
    """Give each new row the cells of the released class that holds its values.

    A row that several classes hold gets the narrowest: the one whose cells hold the fewest of the values that the
    release names, added up over the columns as shares; then the one with more rows, then the one that comes first in
    the release. Columns that were not recoded are as they are.

    Parameters
    ----------
    released : Table
        As :func:`sfumato.publishing.reaudit.read_released` reads it.
    table : Table
        New rows with the columns of the release; the target may be missing.
    unknown : {"refuse", "generalize"}
        Rows that no class holds: an error, or ``*`` in all recoded columns.

    Raises
    ------
    InputError
        If the file is not the release of the manifest, or rows fit no class and that is refused.
    InvalidParameterError
        If a column was recoded by a rule that has no cells to be matched.
    """
    source = released.coded_part.source
    if not isinstance(released, Table) or source is None or source.sha256 != manifest.output.get("sha256"):
        problem = "is not the released file that the manifest describes (its SHA-256 differs)"
        hint = "give the file that was published with the manifest"
        raise InputError(problem, path=source.name if source else None, hint=hint)
    recodings = list(read_claims(manifest.to_dict()).recodings.values())
    if any(recoding.rule not in (GENERALIZED, HIERARCHY) for recoding in recodings):
        problem = f"got one of {manifest.mechanism['name']}"
        raise InvalidParameterError("the manifest", problem, allowed="one of a release whose values were coarsened")
    classes = _ReleasedClasses.of(released, recodings)
    found = classes.of_new(table)
    if unknown == "refuse" and (found == NONE).any():
        lost = rows_in_words(np.flatnonzero(found == NONE) + 1)
        problem = f"{lost} fit the cells of no released class (row 1 is the first of data)"
        hint = "leave these rows out, let all their coarsened cells be '*', or apply the recoding with the original"
        remedy = ("unknown_values", "original")
        raise InputError(problem, path=table.source.name if table.source else None, hint=hint, remedy=remedy)
    return _with_cells(classes, manifest, table, found)


@dataclass(frozen=True, eq=False, repr=False)
class _ReleasedClasses:
    """Distinct combinations of recoded cells, the narrowest first.

    Parameters
    ----------
    cells : int array of shape (n_classes, n_columns)
        Codes of released columns.
    """

    released: Table
    recodings: Sequence[ClaimedRecoding]
    cells: NDArray[np.int32]

    @classmethod
    def of(cls, released: Table, recodings: Sequence[ClaimedRecoding]) -> _ReleasedClasses:
        codes = released.codes([recoding.name for recoding in recodings])
        cells, first, counts = np.unique(codes, axis=0, return_index=True, return_counts=True)
        widths = [_shares_held(released[recoding.name], recoding) for recoding in recodings]
        width = sum((own[cells[:, j]] for j, own in enumerate(widths)), np.zeros(len(cells)))
        return cls(released, recodings, cells[np.lexsort((first, -counts, width))])

    def of_new(self, table: Table) -> Classes:
        """First class that holds each row, ``NONE`` where there is none."""
        columns = [table[recoding.column] for recoding in self.recodings]
        holds = [
            _held(self.released[recoding.name].values, recoding, column.values)
            for recoding, column in zip(self.recodings, columns, strict=True)
        ]
        distinct, of_row = np.unique(np.column_stack([c.codes for c in columns]), axis=0, return_inverse=True)
        found = np.full(len(distinct), NONE, dtype=np.intp)
        is_open = np.arange(len(distinct))
        for number, own in enumerate(self.cells):
            fitting = is_open
            for j, held in enumerate(holds):
                fitting = fitting[held[own[j]][distinct[fitting, j]]]
            if len(fitting):
                found[fitting] = number
                is_open = np.flatnonzero(found == NONE)
        return np.asarray(found[of_row.reshape(-1)])


def _held(cells: pa.Array, recoding: ClaimedRecoding, values: pa.Array) -> Matrix:
    """Whether each distinct cell of a released column may mean each distinct value of new rows, as an audit reads it.

    A level that the domain of an ordered column does not have has no place in it, and only ``*`` holds it.
    """
    texts = as_text(values).to_pylist()
    has_place = np.ones(len(values), dtype=np.bool_)
    if recoding.kind is Kind.ORDERED and recoding.domain:
        has_place = np.array([text is None or text in recoding.domain for text in texts], dtype=np.bool_)
    found = np.zeros((len(cells), len(values)), dtype=np.bool_)
    found[[text == ROOT for text in cells.to_pylist()]] = True
    placed = np.flatnonzero(has_place)
    if not len(placed):
        return found
    own = values.take(pa.array(placed))
    if recoding.rule == GENERALIZED:
        read = contained(cells, own, recoding.kind, recoding.domain)
    else:
        read = contained_in_labels(cells, own, recoding.kind, recoding.labels, recoding.domain)
    cell, value = np.divmod(np.arange(len(cells) * len(own)), len(own))
    found[:, placed] = read.holds(value, cell).reshape(len(cells), len(own))
    return found


def _shares_held(column: CodedColumn, recoding: ClaimedRecoding) -> NDArray[np.float64]:
    """Share of the values that a released column names which each of its cells holds."""
    texts = [text for text in column.values.to_pylist() if text is not None and text != ROOT]
    if recoding.rule == GENERALIZED:
        named = tokens_of(column.values)[0]
    else:
        listed = [value for label in texts for value in recoding.labels.get(label, ()) if value]
        intervals = [read_interval(label) for label in texts if label not in recoding.labels]
        ends = [end for one in intervals if one is not None for end in (one.low, one.high) if end is not None]
        named = list(dict.fromkeys([*listed, *ends, *(t for t in texts if t not in recoding.labels and not ends)]))
    if not named:
        return np.ones(len(column.values))
    return np.asarray(_held(column.values, recoding, pa.array(named, pa.string())).mean(axis=1))


def _with_cells(classes: _ReleasedClasses, manifest: Manifest, table: Table, found: Classes) -> Table:
    """Put the cells of classes into new rows, ``*`` where there is none, in the columns of the release."""
    at = {recoding.name: j for j, recoding in enumerate(classes.recodings)}
    columns: dict[str, CodedColumn] = {}
    described: list[Column] = []
    for entry in manifest.output["columns"]:
        name, role = str(entry["name"]), Role(entry["role"])
        if name in at:
            own = classes.released[name].values
            values = pa.array([*own.to_pylist(), ROOT], pa.string())
            codes = np.append(classes.cells[:, at[name]], len(own))[found]  # the last is that of rows without a class
            columns[name] = CodedColumn(codes.astype(np.int32), values).recode(values)
            described.append(Column(name, role))
        elif role is not Role.TARGET or name in table.schema:
            columns[name] = table[name]
            described.append(replace(table.schema[name], role=role))
    return replace(table, schema=Schema.of(described, table.schema.missing), columns=columns)
