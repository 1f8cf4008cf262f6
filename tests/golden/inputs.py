"""The tables that golden releases are made of, written the same way on every machine.

The demo table comes with the package. A part of Adult and of PU1 needs the folder of the public data sets.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

from sfumato.datasets.admissions import admissions

DATA = Path(os.environ.get("SFUMATO_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
DEMO_ROWS = 600
ADULT_ROWS = 2_000
PU1_ROWS = 300
PU1_WORDS = 300
PU1_COLUMNS = 12
"""Words of PU1 that are columns of a table, for mechanisms that take no sparse features."""

_ADULT_PLACES = {
    "age": 0,
    "workclass": 1,
    "education": 3,
    "marital-status": 5,
    "occupation": 6,
    "race": 8,
    "sex": 9,
    "hours-per-week": 12,
    "salary": 14,
}
_SPAM = {"+1": "yes", "-1": "no"}
_DEMO_FLAGS = ("emergency", "smoker", "hypertension", "diabetes", "heart_failure", "surgery")
_DEMO_PERSON = ("age", "sex", "marital_status", "insurance")


@dataclass(frozen=True)
class Input:
    """A table to release: its name among the goldens, its file, and its columns by role; no roles are guessed."""

    name: str
    file: str
    columns: Mapping[str, tuple[str, ...]]

    @property
    def options(self) -> list[str]:
        """Roles as options of the command line."""
        flags = {role: f"--{role}" + ("s" if role.endswith("identifier") else "") for role in self.columns}
        return [part for role, names in self.columns.items() for part in (flags[role], ",".join(names))]

    @property
    def roles(self) -> dict[str, str]:
        """Roles by column."""
        return {name: role for role, names in self.columns.items() for name in names}


_OUTCOME = {"sensitive": ("discharge_diagnosis",), "target": ("readmitted",)}
_KNOWN_OF_ADULT = tuple(name for name in _ADULT_PLACES if name not in ("occupation", "salary"))
_WORDS = tuple(f"w{i}" for i in range(PU1_COLUMNS))
DEMO = Input(
    "demo",
    "demo.csv",
    {"quasi-identifier": (*_DEMO_PERSON, *_DEMO_FLAGS), "identifier": ("patient_id",)} | _OUTCOME,
)
DEMO_FLAGS = Input("demo-flags", "demo-flags.csv", {"quasi-identifier": _DEMO_FLAGS} | _OUTCOME)
ADULT = Input(
    "adult",
    "adult.csv",
    {"quasi-identifier": _KNOWN_OF_ADULT, "sensitive": ("occupation",), "target": ("salary",)},
)
PU1 = Input("pu1", "pu1.svm", {})
PU1_TABLE = Input("pu1-table", "pu1.csv", {"quasi-identifier": _WORDS, "sensitive": ("asked",), "target": ("spam",)})


def write_demo(folder: Path) -> None:
    """Write the demo table, and its 0/1 columns alone."""
    table = admissions(n_rows=DEMO_ROWS).to_arrow()
    flags = (*_DEMO_FLAGS, "discharge_diagnosis", "readmitted")
    for file, names in ((DEMO.file, ("patient_id", *_DEMO_PERSON, *flags)), (DEMO_FLAGS.file, flags)):
        _write(names, (row.values() for row in table.select(names).to_pylist()), folder / file)


def write_adult(folder: Path) -> None:
    """Write the first rows of Adult with a few of its columns."""
    with (DATA / "adult" / "adult.data").open(encoding="ascii", newline="") as file:
        rows = islice(csv.reader(file, skipinitialspace=True), ADULT_ROWS)
        _write(_ADULT_PLACES, ([row[i] for i in _ADULT_PLACES.values()] for row in rows), folder / ADULT.file)


def write_pu1(folder: Path) -> None:
    """Write messages of PU1 with their most frequent words: as sparse features, and a few words as columns."""
    with gzip.open(DATA / "pu1" / "pu1_bare_body.svm.gz", "rt", encoding="ascii") as file:
        lines = [line.partition("#")[0].split() for line in islice(file, PU1_ROWS)]
    messages = [(line[0], {int(word.partition(":")[0]) for word in line[1:]}) for line in lines]
    frequency = Counter(word for _, words in messages for word in words)
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))[:PU1_WORDS]
    places = {word: place for place, word in enumerate(ranked, 1)}
    text = []
    for label, words in messages:
        present = sorted(places[word] for word in words if word in places)
        text.append(" ".join([label, *(f"{place}:1" for place in present)]) + "\n")
    (folder / PU1.file).write_text("".join(text), encoding="ascii")
    *taken, first, second = ranked[40 : 40 + PU1_COLUMNS + 2]  # in about half of the messages: no value is rare
    sensitive = {(True, True): "both", (True, False): "first", (False, True): "second", (False, False): "none"}
    rows = (
        (*(int(word in words) for word in taken), sensitive[first in words, second in words], _SPAM[label])
        for label, words in messages
    )
    _write((*_WORDS, "asked", "spam"), rows, folder / PU1_TABLE.file)


def _write(names: Iterable[str], rows: Iterable[Iterable[object]], path: Path) -> None:
    """Write a table as CSV, and as Parquet for Spark, which reads no other format."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path, convert_options=options), path.with_suffix(".parquet"))
