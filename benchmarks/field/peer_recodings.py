"""What a peer made of training rows, as the evaluation reads it: their cells, and cells of new rows in that form."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.contest import ROOT
from benchmarks.field.tables import FieldTable
from benchmarks.run import peers_python
from sfumato.mechanisms.axes import Axis, axes_of, cell_of_values
from sfumato.mechanisms.hierarchies.automatic import hierarchy_for
from sfumato.mechanisms.recoder import Cover, Recoding
from sfumato.schema import Column, Kind, Role
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.generalized import write_value

MOST_SECONDS = 300


class PeerFailedError(RuntimeError):
    """A peer gave no release: it failed, or took too long."""


@dataclass(frozen=True)
class PeerRecoder:
    """A peer as a mechanism that recodes training rows."""

    peer: str
    k: int
    field_table: FieldTable

    def recode(self, table: Table) -> Any:
        """Let the peer release the rows, and check that what it gives is k-anonymous."""
        names = table.schema.names(Role.QUASI_IDENTIFIER)
        answer, hierarchies = self._answer(table, names)
        if "groups" in answer:
            groups = np.array(answer["groups"])
            _check(np.unique(groups, return_counts=True)[1], self.k)
            axes = axes_of(table, names)
            cover = Cover.of_groups(groups)
            return Recoding(axes, cover, lambda new: nearest_parts(axes, cover, new))
        if "labels" in answer:
            _check(_class_sizes(answer["labels"]), self.k)
            return LabelRecoding(table, names, answer["rows"], answer["labels"], hierarchies)
        _check(_class_sizes(answer["values"]), self.k)
        return ValueRecoding(table, names, answer["values"])

    def _answer(self, table: Table, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[list[str]]]]:
        numeric = [name for name in names if table.schema[name].kind is Kind.NUMERIC]
        hierarchies = {name: self._hierarchy(table, name) for name in names} if self.peer == "anjana" else {}
        asked = {"k": self.k, "columns": list(names), "numeric": numeric, "hierarchies": hierarchies}
        with tempfile.TemporaryDirectory(prefix="sfumato-field-") as temporary:
            folder = Path(temporary)
            (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
            with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
                written = [*names, table.schema.target or ""]
                csv.writer(file).writerow(written)
                csv.writer(file).writerows(zip(*(_texts(table, name) for name in written), strict=True))
            command = [str(peers_python()), "-m", "benchmarks.field.peers", self.peer, str(folder)]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS, cwd=ROOT, text=True)
            except subprocess.TimeoutExpired:
                problem = f"took more than {MOST_SECONDS} s"
                raise PeerFailedError(problem) from None
            except subprocess.CalledProcessError as error:
                problem = f"failed: {error.stderr.strip().splitlines()[-1][:200] if error.stderr else 'no message'}"
                raise PeerFailedError(problem) from None
            return json.loads((folder / "answer.json").read_text(encoding="utf-8")), hierarchies

    def _hierarchy(self, table: Table, name: str) -> list[list[str]]:
        if name in self.field_table.hierarchies:
            with Path(self.field_table.hierarchies[name]).open(encoding="utf-8") as lines:
                return list(csv.reader(lines, delimiter=";"))
        # anjana compares texts: a value must be written as in its rows
        return [list(row) for row in hierarchy_for(table, name).with_root().rows()]


def _texts(table: Table, name: str) -> list[str]:
    return ["missing" if text is None else str(text) for text in table[name].cells().to_pylist()]


def _class_sizes(cells: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    rows = np.array(list(cells.values()), dtype=object).T
    return np.array([*_counted(map(tuple, rows.tolist())).values()], dtype=np.int64)


def _counted(rows: Any) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    return found


def _check(sizes: NDArray[np.int64], k: int) -> None:
    if len(sizes) == 0 or sizes.min() < k:
        problem = f"its release is not {k}-anonymous: a class of {sizes.min() if len(sizes) else 0}"
        raise PeerFailedError(problem)


def nearest_parts(axes: Sequence[Axis], cover: Cover, new: Sequence[Axis]) -> NDArray[np.int32]:
    """Give each new row the part that covers most of its values; of several the one that covers least else."""
    n_parts = cover.members.shape[0]
    part_of_row = cover.home
    held = np.zeros((len(new[0].codes), n_parts), dtype=np.int16)
    extent = np.zeros(n_parts)
    for axis, other in zip(axes, new, strict=True):
        if axis.positions is not None and other.positions is not None:
            low, high = np.full(n_parts, np.inf), np.full(n_parts, -np.inf)
            np.minimum.at(low, part_of_row, axis.positions[axis.codes])
            np.maximum.at(high, part_of_row, axis.positions[axis.codes])
            place = np.append(other.positions, np.nan)[other.codes]
            held += (place[:, None] >= low) & (place[:, None] <= high)
            extent += (high - low) / (axis.span or 1.0)
        else:
            is_member = np.zeros((n_parts, axis.n_values + 1), dtype=np.bool_)
            is_member[part_of_row, axis.codes] = True
            held += is_member.T[other.codes]
            extent += is_member.sum(axis=1) / max(axis.n_values, 1)
    tie = -extent / (2 * max(float(extent.max()), 1.0))
    return np.argmax(held + tie, axis=1).astype(np.int32)


class _CellRecoding:
    """Cells of some columns by row: what the evaluation needs of a recoding."""

    certainty_penalty = float("nan")

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._described = {name: table.schema[name] for name in names}

    def as_cells(self, table: Table) -> Table:
        """Return the table: its columns hold cells already."""
        return table

    def encodable(self) -> dict[str, Column]:
        """Describe the columns by the kind of their original values."""
        return dict(self._described)


class ValueRecoding(_CellRecoding):
    """Every row has the values of a row that stands for its class; new rows keep theirs."""

    def __init__(self, table: Table, names: Sequence[str], values: Mapping[str, Sequence[str]]) -> None:
        super().__init__(table, names)
        self._values = values

    def recoded(self, table: Table) -> Table:
        """Put the released values into the table."""
        cells = {name: pa.array([write_value(text) for text in self._values[name]]) for name in self.names}
        return _with_texts(table, cells)

    def generalized(self, table: Table) -> Table:
        """Write the values as cells."""
        return _with_texts(table, {n: pa.array([write_value(text) for text in _texts(table, n)]) for n in self.names})


class LabelRecoding(_CellRecoding):
    """Full-domain generalization: every value of a column has the label of one level."""

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        rows: Sequence[int],
        labels: Mapping[str, Sequence[str]],
        hierarchies: Mapping[str, list[list[str]]],
    ) -> None:
        super().__init__(table, names)
        self.is_released = np.isin(np.arange(table.n_rows), rows)
        self._cell_of: dict[str, dict[str, str | None]] = {}
        for name in names:
            texts, own = _texts(table, name), set(labels[name])
            rows_of = hierarchies[name]
            level = next(i for i in range(len(rows_of[0])) if own <= {row[i] for row in rows_of})
            known = set(texts)
            members: dict[str, list[str | None]] = {}
            for row in rows_of:
                if row[0] in known:
                    members.setdefault(row[level], []).append(row[0])
            cells = {label: cell_of_values(table.schema[name], values) for label, values in members.items()}
            self._cell_of[name] = {row[0]: cells.get(row[level], "*") for row in rows_of}

    def recoded(self, table: Table) -> Table:
        """Put the cells of the labels into the table."""
        return self.generalized(table)

    def generalized(self, table: Table) -> Table:
        """Give each value the cell of its label; one that no hierarchy has is any value."""
        cells = {
            name: pa.array([self._cell_of[name].get(text, "*") for text in _texts(table, name)], pa.string())
            for name in self.names
        }
        return _with_texts(table, cells)


def _with_texts(table: Table, cells: Mapping[str, pa.Array]) -> Table:
    columns = dict(table.columns) | {name: CodedColumn.encode(array) for name, array in cells.items()}
    return replace(table, columns=columns)


def peer_versions() -> str:
    """Versions of the peers, for FIELD.md."""
    names = ("anonypyx", "anjana", "ai-privacy-toolkit")
    asked = f"import importlib.metadata as m\nfor n in {names!r}: print(n, m.version(n))"
    found = subprocess.run([str(peers_python()), "-c", asked], check=False, capture_output=True, text=True)
    print(found.stderr, file=sys.stderr, end="")
    return ", ".join(found.stdout.splitlines())
