"""The public tables of the field: every column but the target is a quasi-identifier."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.contest import DATA
from reproductions.public_data import load_diabetes130, load_ilpd, load_pima
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

SAMPLE_SEED = 0
MOST_ROWS = 10_000
SMALL = 2_000
"""Tables of at most so many rows are measured with more seeds, and with a support vector machine."""
DIABETES_COLUMNS = (
    "race",
    "gender",
    "age",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "payer_code",
    "medical_specialty",
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_inpatient",
    "number_emergency",
    "number_diagnoses",
)
HOUSING_COLUMNS = (
    "longitude",
    "latitude",
    "housing_median_age",
    "mean_rooms",
    "mean_bedrooms",
    "population",
    "households",
    "median_income",
    "median_house_value",
)
CREDIT_COLUMNS = ("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", *(f"PAY_{i}" for i in (0, 2, 3, 4, 5, 6)))
ADULT_COLUMNS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


@dataclass(frozen=True)
class FieldTable:
    """A table, what is known about it, and hierarchies that somebody wrote for it.

    Parameters
    ----------
    name : str
    load : callable
        Gives the table, sampled.
    note : str
        What it holds, for FIELD.md.
    hierarchies : mapping of str to str
        Files by column; a column without one gets hierarchies that are built from its values.
    """

    name: str
    load: Callable[[], Table]
    note: str
    hierarchies: Mapping[str, str] = field(default_factory=dict)


def _read(path: Path, delimiter: str, target: str, names: Sequence[str], numeric: Sequence[str]) -> Table:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    texts = csv.ConvertOptions(column_types=dict.fromkeys([*names, target], pa.string()))
    cells = csv.read_csv(BytesIO(content), parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=texts)
    kinds = {name: Kind.NUMERIC if name in numeric else Kind.CATEGORICAL for name in names}
    columns = [Column(name, kind=kind) for name, kind in kinds.items()]
    return _sampled(
        Table.from_arrow(cells.select([*names, target]), Schema.of([*columns, Column(target, Role.TARGET)]))
    )


def _sampled(table: Table) -> Table:
    if table.n_rows <= MOST_ROWS:
        return table
    return table.take(np.sort(np.random.default_rng(SAMPLE_SEED).choice(table.n_rows, MOST_ROWS, replace=False)))


def _diabetes() -> Table:
    """First stay of each patient; the target is whether there was another one."""
    table = load_diabetes130()
    patients = np.array(table["patient_nbr"].cells().to_pylist())
    first = np.sort(np.unique(patients, return_index=True)[1])
    table = table.take(first)
    target = table["readmitted"]
    answers = pa.array(["no" if value == "NO" else "yes" for value in target.values.to_pylist()])
    table = replace(table, columns=table.columns | {"readmitted": target.recode(answers)})
    return _sampled(table.keep([*DIABETES_COLUMNS, "readmitted"]))


def _all_quasi_identifiers(load: Callable[..., Table], **options: Any) -> Table:
    table = load(**options)
    columns = [c if c.role is Role.TARGET else replace(c, role=Role.QUASI_IDENTIFIER) for c in table.schema]
    return table.with_schema(Schema.of(columns, table.schema.missing))


def _k_anonml(name: str, target: str, names: Sequence[str], numeric: Sequence[str]) -> Callable[[], Table]:
    return partial(_read, DATA / "k-anonml" / f"{name}.csv.gz", ";", target, names, numeric)


CMC_COLUMNS = (
    "age",
    "Weducation",
    "Heducation",
    "children",
    "religion",
    "working",
    "occupation",
    "solindex",
    "exposure",
)
TABLES = {
    table.name: table
    for table in (
        FieldTable(
            "mgm",
            _k_anonml("mgm", "severity", ("bi_rads_assessment", "age", "shape", "margin", "density"), ("age",)),
            "mammographic masses, k-AnonML's copy; age is numeric",
        ),
        FieldTable("pima", partial(_all_quasi_identifiers, load_pima), "Pima diabetes; all numeric"),
        FieldTable(
            "ilpd", partial(_all_quasi_identifiers, load_ilpd, complete=True), "Indian liver patients, complete rows"
        ),
        FieldTable(
            "cmc",
            _k_anonml("cmc", "method", CMC_COLUMNS, ("age", "children")),
            "contraceptive method choice, k-AnonML's copy; age and children are numeric",
        ),
        FieldTable(
            "adult",
            partial(_read, DATA / "adult-arx" / "adult.csv", ";", "salary-class", ADULT_COLUMNS, ("age",)),
            "complete rows of Adult; age is numeric; ARX's hierarchies",
            {name: str(DATA / "adult-arx" / f"adult_hierarchy_{name}.csv") for name in ADULT_COLUMNS},
        ),
        FieldTable(
            "cahousing",
            _k_anonml("cahousing", "ocean_proximity", HOUSING_COLUMNS, HOUSING_COLUMNS),
            "California housing, k-AnonML's copy; all numeric",
        ),
        FieldTable(
            "diabetes130", _diabetes, "first stay of each patient, 15 columns; target: readmitted or not (any time)"
        ),
        FieldTable(
            "creditcard",
            partial(
                _read,
                DATA / "arx-wide" / "creditcard.csv.gz",
                ";",
                "default-payment-next-month",
                CREDIT_COLUMNS,
                (),
            ),
            "credit card clients, 11 columns as categories: ARX's copy numbers values by appearance, so the twelve "
            "columns of amounts have lost their order and are left out",
        ),
    )
}
