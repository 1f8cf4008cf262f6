"""Changed cells: what a release does to each cell of the quasi-identifiers, against a count row by row."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sfumato.datasets.admissions import admissions
from sfumato.figures.changed_cells import changed_cells_fraction
from sfumato.mechanisms.baselines.flipping import RandomFlipper
from sfumato.mechanisms.buckets.slicing import Slicer
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.drop_in.typical import in_values
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.mechanisms.microaggregation.mdav import MDAV
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table

NAMES = ["age", "sex", "insurance", "emergency", "discharge_diagnosis", "readmitted"]


def texts(table, name):
    return [None if value is None else str(value) for value in table[name].cells().to_pylist()]


def counted(original, released):
    """Count row by row, for releases that keep every row in its place."""
    names = original.schema.names(Role.QUASI_IDENTIFIER)
    changed = 0
    for name in names:
        before = texts(original, name)
        after = texts(released, name) if name in released.schema else ["?"] * len(before)
        changed += sum(one != other for one, other in zip(before, after, strict=True))
    return changed / (len(names) * original.n_rows)


@pytest.mark.parametrize("mechanism", [Mondrian(k=5), Mondrian(k=20, split="median"), Mondrian(k=3, strict=False)])
def test_generalized_cells_are_counted_as_row_by_row(mechanism):
    table = admissions(n_rows=120).keep(NAMES)
    release = mechanism.release(table)

    assert 0 < changed_cells_fraction(table, release) == pytest.approx(counted(table, release.table))


def test_cells_of_suppressed_rows_count_as_changed():
    table = admissions(n_rows=120).keep(["sex", "insurance", "readmitted"])
    release = GlobalRecoder(k=5, max_suppressed_fraction=0.3).release(table)
    n_suppressed = table.n_rows - release.table.n_rows

    assert changed_cells_fraction(table, release) >= n_suppressed / table.n_rows


def test_flipped_and_dropped_features_count_as_changed():
    matrix = sp.csc_matrix(np.random.default_rng(0).integers(0, 2, (40, 5)).astype(np.uint8))
    target = Table.from_arrow(pa.table({"y": ["0", "1"] * 20}), Schema.of([Column("y", Role.TARGET)]))
    table = BinaryTable(matrix, tuple(Feature(f"f{i}", f"f{i}") for i in range(5)), target)

    flipped = RandomFlipper(k=5, random_state=0).release(table)
    assert changed_cells_fraction(table, flipped) == (flipped.table.matrix != matrix).nnz / 200
    selected = GreedyContainmentSelector(k=3, on_infeasible="skip").release(table)
    assert changed_cells_fraction(table, selected) == 1 - len(selected.table.features) / 5


def test_flipped_columns_of_a_plain_table_are_compared_row_by_row():
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.integers(0, 2, 40) for i in range(4)} | {"y": ["0", "1"] * 20}
    schema = Schema.of(
        [Column(f"c{i}", Role.QUASI_IDENTIFIER, Kind.NUMERIC) for i in range(4)] + [Column("y", Role.TARGET)]
    )
    table = Table.from_arrow(pa.table(columns), schema)
    release = RandomFlipper(k=5, random_state=0).release(table)

    assert changed_cells_fraction(table, release) == release.manifest.perturbation["n_cells_changed"] / 160


def test_moved_columns_count_as_changed():
    table = admissions(n_rows=120).keep(NAMES)
    release = Slicer(k=5, l=2).release(table)
    moved = {name for part in release.manifest.perturbation["slices"] for name in part}
    names = table.schema.names(Role.QUASI_IDENTIFIER)

    assert changed_cells_fraction(table, release) == sum(name in moved for name in names) / len(names)


def test_nothing_is_changed_where_nothing_is_a_quasi_identifier():
    table = admissions(n_rows=30).keep(["sex", "readmitted"])
    release = Mondrian(k=3).release(table)

    assert changed_cells_fraction(table.keep(["readmitted"]), release) == 0.0


def test_typical_values_are_compared_with_those_of_their_own_row():
    table = admissions(n_rows=120).keep(NAMES)
    clusters = MDAV(k=5).release(table)

    assert 0 < changed_cells_fraction(table, clusters) == counted(table, clusters.table)
    table = admissions(n_rows=300).keep(NAMES)
    left_out = in_values(table, GlobalRecoder(k=20, max_suppressed_fraction=0.5).release(table))
    kept = table.take(left_out.kept_rows)
    n_changed = counted(kept, left_out.table) * kept.n_rows + table.n_rows - kept.n_rows
    assert kept.n_rows < table.n_rows
    assert changed_cells_fraction(table, left_out) == pytest.approx(n_changed / table.n_rows)
