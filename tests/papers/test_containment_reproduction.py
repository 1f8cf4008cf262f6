"""The containment reproduction selects in the fold where it says so, for every classifier."""

import numpy as np
import pytest
import scipy.sparse as sp

from reproductions.containment import measuring, run
from reproductions.containment.data import DataSet
from reproductions.containment.scoring import Prepared


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    matrix = sp.csc_matrix((rng.random((60, 24)) < 0.4).astype(np.int8))
    return DataSet("Entity, made up", matrix, np.arange(60, dtype=np.int32) % 2)


@pytest.mark.parametrize("name", ["Entity, made up", "Adult, made up"])
def test_every_fold_selects_from_its_own_training_rows(name, data, monkeypatch):
    asked = []

    def method(matrix, classes, k):
        """Keep the columns that are frequent in the given rows, which differ from fold to fold."""
        asked.append(matrix.shape[0])
        columns = np.sort(np.argsort(-np.asarray(matrix.sum(axis=0)).ravel(), kind="stable")[:8])
        return Prepared(matrix[:, columns].tocsr(), classes, columns)

    monkeypatch.setitem(measuring.METHODS, "frequent", method)
    monkeypatch.setattr(measuring, "LEVELS", (5,))
    found = measuring.run_method(DataSet(name, data.matrix, data.classes), "frequent").scores[0]

    assert sorted(asked) == [48] * 5 + [60]
    assert found.honest != found.as_in_paper


def test_the_two_columns_of_the_entity_table_are_two_figures():
    lines = (run.FOLDER / "RESULTS.md").read_text().split("## Entity")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")][2:]

    assert len(cells) == len(run.METHODS)
    assert all(row[3] != row[4] for row in cells)
