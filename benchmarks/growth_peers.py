"""How tasks that other programs do as well grow over rows, here and there, with the same answer at every size."""

from __future__ import annotations

import csv
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import maximal_itemsets
from benchmarks.contest import Outcome
from benchmarks.growth import Curve, Growth

ROWS, FEWER_ROWS = (1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000)
ITEM_ROWS = (1_000, 3_000, 10_000, 100_000)
N_QUASI, N_ITEMS, K = 4, 16, 5
MOST_SUPPRESSED_PERCENT = 1.5
MOST_SECONDS = 8.0
WARM = 500
BAND = 10
RISK, DIVIDING, RECODING, ITEMSETS = "k, distinct l and t", "all rows in groups of k", "k-anonymous", "largest itemsets"


def prepare(folder: Path) -> None:
    """Write the tables that peers read, and the hierarchies."""
    import pyarrow.csv

    from benchmarks.generated import kept_census, kept_sparse

    for n_rows in (WARM, *FEWER_ROWS):
        table = kept_census(n_rows, N_QUASI, folder)
        pyarrow.csv.write_csv(table.to_arrow(), _census_file(n_rows, folder))
    for n_rows in (WARM, *ITEM_ROWS):
        sparse = kept_sparse(n_rows, N_ITEMS, folder)
        rows = sparse.matrix.tocsr()
        items = [rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
        own = _items_folder(n_rows, folder)
        own.mkdir()
        occupied = [row for row in items if row]
        maximal_itemsets.write_table(own, occupied, [i % 2 for i in range(len(occupied))])
    for name in quasi_identifiers(table):
        values = table[name].values.to_pylist()
        with _hierarchy_file(name, folder).open("w", encoding="ascii", newline="") as lines:
            csv.writer(lines, delimiter=";").writerows(
                [value, f"band {i // BAND}", "*"] for i, value in enumerate(values)
            )


def quasi_identifiers(table: Any) -> tuple[str, ...]:
    """Names of the quasi-identifiers."""
    from sfumato.schema import Role

    return tuple(table.schema.names(Role.QUASI_IDENTIFIER))


def _census_file(n_rows: int, folder: Path) -> Path:
    return folder / f"census-{n_rows}.csv"


def _items_folder(n_rows: int, folder: Path) -> Path:
    return folder / f"items-{n_rows}"


def _hierarchy_file(name: str, folder: Path) -> Path:
    return folder / f"hierarchy-{name}.csv"


def census(n_rows: int, folder: Path) -> Any:
    """Make the census."""
    from benchmarks.generated import kept_census

    return kept_census(n_rows, N_QUASI, folder), folder


def census_frame(n_rows: int, folder: Path) -> Any:
    """Read the census with pandas, and name its quasi-identifiers."""
    import pandas as pd

    frame = pd.read_csv(_census_file(n_rows, folder))
    return frame, list(frame.columns[:N_QUASI]), folder


def levels(loaded: Any) -> Any:
    """Count once, measure three times."""
    from sfumato.counting.classes import class_value_counts
    from sfumato.measures.anonymity import anonymity_level
    from sfumato.measures.diversity import distinct_diversity, t_closeness

    table, _ = loaded
    counts = class_value_counts(table, quasi_identifiers(table), "illness")
    diversity = int(distinct_diversity(counts).min())
    return [anonymity_level(counts.class_sizes), diversity, t_closeness(counts)]


def levels_with_pycanon(loaded: Any) -> Any:
    """Ask pycanon for the three."""
    from pycanon import anonymity

    frame, names, _ = loaded
    return [
        anonymity.k_anonymity(frame, names),
        anonymity.l_diversity(frame, names, ["illness"]),
        anonymity.t_closeness(frame, names, ["illness"]),
    ]


def assess_levels(loaded: Any, found: Any) -> Outcome:
    """Answer with t to nine digits."""
    k, l, t = found  # noqa: E741  # the usual names
    return Outcome([int(k), int(l), round(float(t), 9)])


def divide(loaded: Any) -> list[int]:
    """Divide by Mondrian and write the generalized cells; gives the sizes of the groups."""
    import numpy as np

    from sfumato.mechanisms.axes import axes_of
    from sfumato.mechanisms.mondrian.division import mondrian_partition
    from sfumato.mechanisms.recoder import Cover, generalize

    table, _ = loaded
    axes = axes_of(table, quasi_identifiers(table))
    partition = mondrian_partition(axes, K)
    cover = Cover.of_groups(partition.of_row)
    for generalized in generalize(axes, cover):
        generalized.column(cover.of_row)
    sizes: list[int] = np.bincount(partition.of_row).tolist()
    return sizes


def divide_with_anonypy(loaded: Any) -> list[int]:
    """Anonymize with anonypy; gives the sizes of the groups."""
    from anonypy import Preserver

    frame, names, _ = loaded
    typed = frame.astype({name: "category" for name in frame if frame[name].dtype == object})
    rows = Preserver(typed, names, "illness").anonymize_k_anonymity(K)
    groups = Counter[tuple[str, ...]]()
    for row in rows:
        groups[tuple(str(row[name]) for name in names)] += row["count"]
    return list(groups.values())


def assess_groups(loaded: Any, sizes: list[int]) -> Outcome:
    """Say whether all rows are in groups of at least k."""
    return Outcome([sum(sizes), min(sizes) >= K], {"groups": len(sizes)})


def recode(loaded: Any) -> Any:
    """Search the best levels and write the labels; gives the sizes of the classes."""
    from sfumato import GlobalRecoder
    from sfumato.counting.cells import cell_table

    table, folder = loaded
    names = quasi_identifiers(table)
    mechanism = GlobalRecoder(
        k=K,
        max_suppressed_fraction=MOST_SUPPRESSED_PERCENT / 100,
        hierarchies={name: str(_hierarchy_file(name, folder)) for name in names},
        regroup=False,
    )
    released: Any = mechanism.release(table).table
    return table.n_rows, cell_table(released, names).counts.tolist()


def recode_with_anjana(loaded: Any) -> Any:
    """Generalize column by column until the release is k-anonymous; gives the sizes of the classes."""
    import pandas as pd
    from anjana.anonymity import k_anonymity

    frame, names, folder = loaded
    hierarchies = {}
    for name in names:
        with _hierarchy_file(name, folder).open(encoding="ascii") as lines:
            columns = zip(*csv.reader(lines, delimiter=";"), strict=True)
            hierarchies[name] = {level: pd.Series(labels).values for level, labels in enumerate(columns)}
    released = k_anonymity(frame[names].astype(str), [], names, K, MOST_SUPPRESSED_PERCENT, hierarchies)
    return len(frame), released.groupby(names).size().tolist()


def assess_classes(loaded: Any, found: Any) -> Outcome:
    """Say whether the release is k-anonymous and suppresses no more than allowed."""
    n_rows, sizes = found
    n_suppressed = n_rows - sum(sizes)
    is_within = n_suppressed <= MOST_SUPPRESSED_PERCENT / 100 * n_rows
    return Outcome([min(sizes) >= K, is_within], {"classes": len(sizes), "suppressed": n_suppressed})


def items(load: Any, n_rows: int, folder: Path) -> Any:
    """Read the items as a contender takes them."""
    return load(_items_folder(n_rows, folder))


def assess_items(loaded: Any, found: Any) -> Outcome:
    """Answer with the sizes."""
    return Outcome([int(size) for size in found])


def _itemsets(name: str, run: Any, load: Any, packages: tuple[str, ...], sizes: tuple[int, ...] = FEWER_ROWS) -> Curve:
    return Curve(
        name, partial(items, load), run, assess_items, sizes, packages, ITEMSETS, WARM, "sfumato" not in packages
    )


BENCHMARK = Growth(
    title=f"Tasks that others do too, on generated rows: risk, Mondrian (k = {K}) and global recoding (k = {K}, at "
    f"most {MOST_SUPPRESSED_PERCENT} % suppressed, the same hierarchies) of a census with {N_QUASI} quasi-identifiers, "
    f"and the 20 largest itemsets with {maximal_itemsets.K} rows of {N_ITEMS} features. What the releases lose: see "
    "mondrian and anjana_recoding",
    goal="the same answers, faster than every peer but pyfim (whose few items are little work), and no steeper",
    axis="rows",
    most_seconds=MOST_SECONDS,
    prepare=prepare,
    curves=(
        Curve("risk", census, levels, assess_levels, ROWS, ("sfumato", "duckdb"), RISK, WARM),
        Curve(
            "… pycanon", census_frame, levels_with_pycanon, assess_levels, FEWER_ROWS, ("pycanon",), RISK, WARM, True
        ),
        Curve("Mondrian", census, divide, assess_groups, ROWS, task=DIVIDING, warm_size=WARM),
        Curve(
            "… anonypy",
            census_frame,
            divide_with_anonypy,
            assess_groups,
            FEWER_ROWS,
            ("anonypy",),
            DIVIDING,
            WARM,
            True,
        ),
        Curve("global recoding", census, recode, assess_classes, ROWS, task=RECODING, warm_size=WARM),
        Curve(
            "… anjana", census_frame, recode_with_anjana, assess_classes, FEWER_ROWS, ("anjana",), RECODING, WARM, True
        ),
        _itemsets(
            "largest itemsets",
            maximal_itemsets.find_with_sfumato,
            maximal_itemsets.load_matrix,
            ("sfumato",),
            ITEM_ROWS,
        ),
        _itemsets("… pyfim eclat", maximal_itemsets.list_with_eclat, maximal_itemsets.load_rows, ("pyfim",)),
        _itemsets("… pyfim fpgrowth", maximal_itemsets.list_with_fpgrowth, maximal_itemsets.load_rows, ("pyfim",)),
        _itemsets(
            "… mlxtend fpmax", maximal_itemsets.list_with_mlxtend, maximal_itemsets.load_frame, ("mlxtend",), ITEM_ROWS
        ),
        _itemsets(
            "… scikit-mine", maximal_itemsets.list_with_scikit_mine, maximal_itemsets.load_rows, ("scikit-mine",)
        ),
    ),
)
