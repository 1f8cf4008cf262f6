"""The three data sets: Adult with 19 binary features, the PU1 e-mail corpus, and a stand-in for the Entity data."""

from __future__ import annotations

import re
import tarfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sfumato.datasets.public import data_folder, load_adult, load_pu1
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.binary import as_binary_matrix

FIRST_RANK, LAST_RANK = 260, 811  # document-frequency ranks whose words become features
N_NAMES = 74


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
    return DataSet("Adult", table.matrix, table.target().codes)


def email() -> DataSet:
    """1,099 messages × 24,604 words."""
    mail = load_pu1()
    return DataSet("Email", mail.matrix, mail.target().codes)


def entity() -> DataSet:
    """Build a stand-in: 74 names of several persons and 74 of one, by the words of their papers' titles."""
    counted: list[tuple[str, int, int, set[str]]] = []
    with tarfile.open(data_folder() / "entity" / "raw-data.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.name.endswith(".xml") else None
            if file is not None:
                counted.extend(_people(member.name, file.read().decode("utf-8", "replace")))
    several = sorted((c for c in counted if c[1] > 1), key=lambda c: (-c[2], c[0]))[:N_NAMES]
    single = sorted((c for c in counted if c[1] == 1 and c[2] >= 20), key=lambda c: (-c[2], c[0]))[:N_NAMES]
    rows = several + single
    frequency = Counter(word for row in rows for word in row[3])
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))[FIRST_RANK - 1 : LAST_RANK]
    dense = np.array([[word in row[3] for word in ranked] for row in rows], dtype=np.uint8)
    classes = np.array([1] * len(several) + [0] * len(single), dtype=np.int32)
    return DataSet("Entity stand-in", as_binary_matrix(dense), classes)


def _people(name: str, text: str) -> list[tuple[str, int, int, set[str]]]:
    """Names with their number of persons, number of papers and title words: the file's name, and each person in it."""
    papers = [
        (entry.findtext("label", ""), entry.findtext("title", ""))
        for entry in ElementTree.fromstring(text.replace("&", "&amp;")).iter("publication")
    ]
    n_people = len({label for label, _ in papers})
    found = [(name, n_people, len(papers), _words([title for _, title in papers]))] if n_people > 1 else []
    for label in sorted({label for label, _ in papers}):
        titles = [title for own, title in papers if own == label]
        found.append((f"{name}#{label}", 1, len(titles), _words(titles)))
    return found


def _words(titles: list[str]) -> set[str]:
    return {word for title in titles for word in re.findall(r"[a-z][a-z-]{3,}", title.lower())}
