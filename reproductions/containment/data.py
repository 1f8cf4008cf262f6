"""The public data sets: Adult with 19 binary features by two recipes, and the PU1 e-mail corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from reproductions.public_data import load_adult, load_pu1
from sfumato.table.binarize import RECIPES, BinarizePlan, binarize
from sfumato.table.binary import BinaryTable

LEVELS = (5, 8, 11)
"""The paper's k."""


@dataclass(frozen=True)
class DataSet:
    """A binary matrix with classes 0 and 1."""

    name: str
    matrix: sp.csc_matrix
    classes: NDArray[np.int32]

    @property
    def density(self) -> float:
        """Share of ones."""
        return float(self.matrix.nnz / np.prod(self.matrix.shape))


def adult() -> DataSet:
    """All 32,561 rows of adult.data with the recipe adult-19."""
    table = binarize(load_adult(), BinarizePlan.from_dict({"recipe": "adult-19"}))
    return _as_data_set("Adult", table, table.matrix)


def adult_again() -> DataSet:
    """Read the same rows by a second recipe of the printed density: male, not private, professional or technical.

    A missing work class counts as not private, which no rule of a plan says: the column *private* is turned round.
    """
    columns = RECIPES["adult-19"]["columns"] | {
        "workclass": {"one_of": ["Private"], "name": "private"},
        "occupation": {"one_of": ["Prof-specialty", "Tech-support"], "name": "professional or technical"},
        "education-num": {"cuts": [10, 12, 13]},
        "hours-per-week": {"cuts": [10, 20, 50, 60]},
    }
    table = binarize(load_adult(), BinarizePlan.from_dict({**RECIPES["adult-19"], "columns": columns}))
    cells = table.matrix.toarray()
    private = table.feature_names.index("private")
    cells[:, private] = 1 - cells[:, private]
    return _as_data_set("Adult, second recipe", table, sp.csc_matrix(cells))


def email() -> DataSet:
    """1,099 messages × 24,604 words."""
    mail = load_pu1()
    return _as_data_set("Email", mail, mail.matrix)


def _as_data_set(name: str, table: BinaryTable, matrix: sp.csc_matrix) -> DataSet:
    return DataSet(name, matrix, table.target().codes)
