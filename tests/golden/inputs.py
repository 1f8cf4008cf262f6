"""The tables that golden releases are made of, written the same way on every machine.

The demo table comes with the package. A part of Adult and of PU1 needs the folder of the public data sets. Visits, of
which a person has several, are drawn here.
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

import numpy as np
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
VISITS = 360
PATIENTS = 150
STRANGERS = 1_000
"""People of the population table who made none of the visits."""
UNITS = {"row": "identifier", "person": "person"}
"""What is counted, and the role that makes it so of the column which says whose rows they are."""

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
_ILLNESSES = ("asthma", "bronchitis", "cold", "flu", "measles")
_VISITS_KNOWN = ("age", "town", "sex")
_VISITS_FLAGS = ("smoker", "cough", "fever", "fatigue", "rash", "surgery", "allergy", "pain", "insured", "emergency")
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


def _by_unit(name: str, file: str, known: tuple[str, ...]) -> dict[str, Input]:
    outcome = {"quasi-identifier": known, "sensitive": ("illness",), "target": ("better",)}
    return {unit: Input(f"{name}-{unit}", file, {role: ("patient",)} | outcome) for unit, role in UNITS.items()}


VISITS_BY = _by_unit("visits", "visits.csv", _VISITS_KNOWN)
FLAGS_BY = _by_unit("flags", "visits-flags.csv", _VISITS_FLAGS)
POPULATION = "population.csv"


def write_visits(folder: Path) -> None:
    """Write visits with what is known of a patient, the same visits with 0/1 columns, and the population.

    Some patients come often, mostly with the same illness, and what is known of them differs little between visits; two
    visits have no patient. So no promise about persons follows from the one about rows. The population has a person for
    each visit, and strangers.
    """
    draw = np.random.default_rng(34)
    whose = np.minimum(draw.geometric(6 / PATIENTS, VISITS) - 1, PATIENTS - 1)
    people = VISITS + STRANGERS
    ages = np.concatenate([draw.integers(20, 80, PATIENTS)[whose] + draw.integers(0, 2, VISITS), np.zeros(STRANGERS)])
    ages[VISITS:] = draw.integers(20, 81, STRANGERS)
    towns = np.concatenate([draw.integers(0, 4, PATIENTS)[whose], draw.integers(0, 4, STRANGERS)])
    sexes = np.concatenate([draw.integers(0, 2, PATIENTS)[whose], draw.integers(0, 2, STRANGERS)])
    known = [
        (int(ages[i]), ("Bonn", "Jena", "Kiel", "Ulm")[towns[i]], ("female", "male")[sexes[i]]) for i in range(people)
    ]
    usual = draw.integers(0, len(_ILLNESSES), PATIENTS)[whose]
    illness = np.where(draw.random(VISITS) < 0.5, usual, draw.integers(0, len(_ILLNESSES), VISITS))
    likely = draw.random((PATIENTS, len(_VISITS_FLAGS)))[whose] * 0.5 + np.linspace(0, 0.3, len(_VISITS_FLAGS))
    flags = (draw.random(likely.shape) < likely).astype(int)
    flags[:, 2] = whose < 7  # many rows of few persons
    flags[:, 9] |= flags[:, 7]
    better = draw.random(VISITS) < (0.2 + 0.3 * (ages[:VISITS] < 50) + 0.3 * flags[:, 2] + 0.2 * flags[:, 8])
    names = ["" if i in (5, 6) else f"p{whose[i]:03}" for i in range(VISITS)]
    outcome = [(_ILLNESSES[illness[i]], ("no", "yes")[int(better[i])]) for i in range(VISITS)]
    for file, columns, cells in (
        (VISITS_BY["row"].file, _VISITS_KNOWN, known),
        (FLAGS_BY["row"].file, _VISITS_FLAGS, flags.tolist()),
    ):
        rows = ((names[i], *cells[i], *outcome[i]) for i in range(VISITS))
        _write(("patient", *columns, "illness", "better"), rows, folder / file)
    _write(_VISITS_KNOWN, known, folder / POPULATION)


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
