"""The 20 largest itemsets that 5 rows have in common, beside listing all maximal ones; here of mushroom.

``maximal_itemsets_a9a``, ``maximal_itemsets_adult`` and ``maximal_itemsets_retail`` do the same on other tables.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender

K, R = 5, 20
ROWS, CLASSES = "rows.txt", "classes.txt"
SCIKIT_MINE_ENDS = ("adult",)
"""Where scikit-mine comes to an end; on the other tables it takes more than a minute."""
MLXTEND = "mlxtend takes 20 s on adult and more than a minute on the others, and stands in growth_peers"


def benchmark_of(dataset: str) -> Benchmark:
    """Make the benchmark of one table."""
    write, source = _TABLES[dataset]
    slower = Contender("scikit-mine LCMMax", list_with_scikit_mine, load_rows, ("scikit-mine",), repeats=3, peer=True)
    slower_ones = (slower,) if dataset in SCIKIT_MINE_ENDS else ()
    return Benchmark(
        title=f"Sizes of the {R} largest itemsets with {K} rows of {dataset}; {MLXTEND}",
        goal="at least 10 × faster than the fastest peer lists all maximal itemsets",
        needs=(source,),
        prepare=write,
        contenders=(
            Contender("sfumato top 20", find_with_sfumato, load_matrix, ("sfumato", "numpy", "scipy"), repeats=5),
            Contender("pyfim eclat", list_with_eclat, load_rows, ("pyfim",), repeats=2, peer=True),
            Contender("pyfim fpgrowth", list_with_fpgrowth, load_rows, ("pyfim",), repeats=2, peer=True),
            *slower_ones,
        ),
    )


# The tables, as rows of item numbers and classes ------------------------------------------------------------------


def write_table(folder: Path, rows: list[list[int]], classes: list[int]) -> None:
    """Write one row of item numbers a line, and the classes beside it."""
    (folder / ROWS).write_text("\n".join(" ".join(map(str, row)) for row in rows), encoding="ascii")
    (folder / CLASSES).write_text("\n".join(map(str, classes)), encoding="ascii")


def write_mushroom(folder: Path) -> None:
    """Write the rows without their first item, which is the class."""
    rows = _fimi("mushroom.dat.gz")
    write_table(folder, [[item for item in row if item > 2] for row in rows], [row[0] - 1 for row in rows])


def write_retail(folder: Path) -> None:
    """Write the rows; the table has no classes, so every other row is in one."""
    rows = _fimi("retail.dat.gz")
    write_table(folder, rows, [i % 2 for i in range(len(rows))])


def write_a9a(folder: Path) -> None:
    """Write the rows of a libsvm file."""
    with gzip.open(DATA / "sparse" / "a9a.gz", "rt") as lines:
        fields = [line.split() for line in lines]
    rows = [[int(field.split(":")[0]) for field in line[1:]] for line in fields]
    write_table(folder, rows, [int(line[0].startswith("+")) for line in fields])


def write_adult(folder: Path) -> None:
    """Write the 19 binary features of the paper."""
    from reproductions.public_data import load_adult
    from sfumato.table.binarize import BinarizePlan, binarize

    table = binarize(load_adult(), BinarizePlan.from_dict({"recipe": "adult-19"}))
    rows = table.matrix.tocsr()
    items = [rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
    write_table(folder, items, table.target().codes.tolist())


def _fimi(name: str) -> list[list[int]]:
    with gzip.open(DATA / "sparse" / name, "rt") as lines:
        return [[int(item) for item in line.split()] for line in lines]


_TABLES: dict[str, tuple[Callable[[Path], None], Path]] = {
    "mushroom": (write_mushroom, DATA / "sparse" / "mushroom.dat.gz"),
    "retail": (write_retail, DATA / "sparse" / "retail.dat.gz"),
    "a9a": (write_a9a, DATA / "sparse" / "a9a.gz"),
    "adult": (write_adult, DATA / "adult" / "adult.data"),
}


# The contenders ---------------------------------------------------------------------------------------------------


def load_rows(folder: Path) -> list[list[int]]:
    """Read lists of item numbers."""
    lines = (folder / ROWS).read_text(encoding="ascii").split("\n")
    return [[int(item) for item in line.split()] for line in lines]


def load_matrix(folder: Path) -> Any:
    """Read a sparse matrix and the classes."""
    import numpy as np
    import scipy.sparse as sp

    from sfumato.table.binary import as_binary_matrix

    rows = load_rows(folder)
    starts = np.cumsum([0, *map(len, rows)])
    items = np.concatenate([np.array(row, dtype=np.int32) for row in rows])
    matrix = as_binary_matrix(sp.csr_matrix((np.ones(len(items)), items, starts)))
    return matrix, np.loadtxt(folder / CLASSES, dtype=np.int32)


def find_with_sfumato(loaded: Any) -> list[int]:
    """Find the largest, ties by HamDist, with the proof that none is larger."""
    import numpy as np

    from sfumato.counting.bitsets import ones_by_class
    from sfumato.measures.separation import separated_pairs
    from sfumato.mechanisms.containment.itemsets import largest_itemsets

    matrix, classes = loaded
    ones = ones_by_class(matrix, classes, 2).T
    found = largest_itemsets(matrix, separated_pairs(ones, np.bincount(classes) - ones), K, R)
    return found.worths if found.proven else []


def list_with_eclat(rows: Any) -> list[int]:
    """List all maximal itemsets with pyfim's Eclat."""
    import fim

    return _largest(fim.eclat(rows, target="m", supp=-K, zmin=1))


def list_with_fpgrowth(rows: Any) -> list[int]:
    """List all maximal itemsets with pyfim's FP-growth."""
    import fim

    return _largest(fim.fpgrowth(rows, target="m", supp=-K, zmin=1))


def list_with_scikit_mine(rows: Any) -> list[int]:
    """List all maximal itemsets with scikit-mine's LCM."""
    from skmine.itemsets.lcm import LCMMax

    return _largest(LCMMax(min_supp=K).fit_transform(rows)[["itemset"]].to_numpy().tolist())


def load_frame(folder: Path) -> Any:
    """Read a data frame of booleans."""
    import numpy as np
    import pandas as pd

    rows = load_rows(folder)
    cells = np.zeros((len(rows), max(map(max, rows)) + 1), dtype=bool)
    for cell_row, row in zip(cells, rows, strict=True):
        cell_row[row] = True
    return pd.DataFrame(cells)


def list_with_mlxtend(frame: Any) -> list[int]:
    """List all maximal itemsets with mlxtend's FP-max."""
    from mlxtend.frequent_patterns import fpmax

    return _largest(fpmax(frame, min_support=(K - 0.5) / len(frame))[["itemsets"]].to_numpy().tolist())


def _largest(found: list[Any]) -> list[int]:
    return sorted((len(entry[0]) for entry in found), reverse=True)[:R]


BENCHMARK = benchmark_of("mushroom")
