"""How often an ordinary column is taken for one that names people: at most one in a hundred."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pytest
from sklearn import datasets

import sfumato
from identifiers import ordinary, words
from identifiers.ordinary import Ordinary
from sfumato.schema import WITHHELD
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.roles import ColumnGuess, describe_columns

MOST_WITHHELD = 0.01


def guess_of(column: Ordinary) -> ColumnGuess:
    """Describe a column in a table with another one after it, so that it is not the last."""
    other = ["a", "b", "c"] * ordinary.N_ROWS
    cells = pa.table({column.name: pa.array(column.cells, pa.string()), "q": other[: ordinary.N_ROWS]})
    return describe_columns(read_table(cells, options=ReadOptions(mixed_as_text=True)))[0]


@pytest.mark.slow
def test_at_most_one_made_column_in_a_hundred_is_withheld() -> None:
    """Categories, codes, numbers and dates of eight languages keep a role that releases them."""
    columns = list(ordinary.columns())
    withheld = [(c.id, guess.reason) for c in columns if (guess := guess_of(c)).column.role in WITHHELD]
    print(f"{len(columns)} columns, withheld: {withheld}")  # noqa: T201

    assert len(columns) >= 600
    assert len(withheld) <= MOST_WITHHELD * len(columns), withheld


def tables_of(columns: list[Ordinary], width: int = 4) -> Iterator[dict[str, tuple[str | None, ...]]]:
    """Put columns of one language together; of two with the same name only the first is taken."""
    named = list({column.name: column.cells for column in columns}.items())
    for start in range(0, len(named), width):
        y = ("yes", "no", "no") * ordinary.N_ROWS
        yield {**dict(named[start : start + width]), "age": AGES, "y": y[: ordinary.N_ROWS]}


AGES = tuple(str(18 + n * 7 % 71) for n in range(ordinary.N_ROWS))


@pytest.mark.slow
def test_released_files_keep_them() -> None:
    """At most one ordinary column in a hundred is missing in the files that are released."""
    n_columns, missing = 0, []
    categories = [c for c in ordinary.columns() if c.what in {*ordinary.CATEGORIES, *ordinary.CODES, *ordinary.WORDS}]
    categories.sort(key=lambda column: column.language)
    for language, of_language in groupby(categories, key=lambda column: column.language):
        for table in tables_of(list(of_language)):
            made = sfumato.release(pa.table(table), "mondrian", k=5, target="y")
            n_columns += len(table) - 2
            missing += [(language, name) for name in table if name not in made.table.schema]
    print(f"{n_columns} columns, missing: {missing}")  # noqa: T201

    assert len(missing) <= MOST_WITHHELD * n_columns, missing


# Public tables: what is an identifier in them by their own documentation.


PUBLIC: dict[str, set[str]] = {
    "adult/adult.data": set(),
    "adult-arx/adult.csv": set(),
    "arx-wide/creditcard.csv.gz": set(),
    "arx-wide/mach2019.csv.gz": set(),
    "cmc/cmc.named.csv": set(),
    "diabetes130/diabetic_data.csv.gz": {"encounter_id", "patient_nbr"},
    "ilpd/ilpd.csv": set(),
    "k-anonml/cahousing.csv.gz": {"ID"},
    "k-anonml/cmc.csv.gz": {"ID"},
    "k-anonml/mgm.csv.gz": {"ID"},
    "k-anonml/published.csv.gz": set(),
    "pima/pima-indians-diabetes.csv": set(),
    "primary-tumor/primary-tumor.arff": set(),
}
_WITHOUT_HEADER = ("adult/adult.data", "pima/pima-indians-diabetes.csv")


@pytest.mark.slow
def test_at_most_one_column_in_a_hundred_of_public_tables_is_withheld(shared_data: Path) -> None:
    """Of all columns of the public tables, and those that number rows or people are withheld."""
    n_columns, withheld, missed = 0, [], []
    for name, identifiers in PUBLIC.items():
        is_text = name.endswith(".data")
        options = ReadOptions(format="csv" if is_text else None, header=name not in _WITHOUT_HEADER, mixed_as_text=True)
        for guess in describe_columns(read_table(shared_data / name, options=options)):
            n_columns += 1
            is_found, is_one = guess.column.role in WITHHELD, guess.column.name in identifiers
            withheld += [(name, guess.column.name, guess.reason)] if is_found and not is_one else []
            missed += [(name, guess.column.name)] if is_one and not is_found else []
    print(f"{n_columns} columns, withheld: {withheld}")  # noqa: T201

    assert not missed
    assert len(withheld) <= MOST_WITHHELD * n_columns, withheld


RELEASED = {
    "adult-arx/adult.csv": "salary-class",
    "cmc/cmc.named.csv": None,
    "ilpd/ilpd.csv": None,
    "k-anonml/mgm.csv.gz": None,
    "k-anonml/published.csv.gz": None,
    "primary-tumor/primary-tumor.arff": None,
}
"""Public tables with a header, small enough to be released here, and their targets; None: the last column."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASED)
def test_a_release_of_a_public_table_has_all_its_ordinary_columns(shared_data: Path, name: str) -> None:
    """The default roles leave out nothing but what numbers rows."""
    names = read_table(shared_data / name).schema.names()
    made = sfumato.release(shared_data / name, "mondrian", k=5, target=RELEASED[name] or names[-1])

    assert [column for column in names if column not in made.table.schema] == sorted(PUBLIC[name])


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "linnerud"])
def test_measurements_of_scikit_learn_are_not_withheld(name: str) -> None:
    """Columns of decimals and whole numbers that differ in nearly every row are measurements."""
    bunch = getattr(datasets, f"load_{name}")()
    columns = {str(column): bunch.data[:, n] for n, column in enumerate(bunch.feature_names)}
    guesses = describe_columns(read_table(pa.table({**columns, "q": [f"{n % 2}" for n in range(len(bunch.data))]})))

    assert [(g.column.name, g.reason) for g in guesses if g.column.role in WITHHELD] == []


@pytest.mark.slow
def test_every_language_has_its_ordinary_columns() -> None:
    columns = list(ordinary.columns())
    counts = {language: sum(c.language == language for c in columns) for language in words.LANGUAGES}

    assert min(counts.values()) >= 60, counts
    assert sum(c.what in {*ordinary.CATEGORIES, *ordinary.CODES} for c in columns) >= 100
