"""The demo: synthetic hospital admissions with a readmission target. No real person or hospital is behind it.

Every column has its own stream of raw PCG64 words, which NumPy promises never to change, so the same arguments give the
same table everywhere, and a longer table begins with the shorter one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InvalidParameterError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

Numbers = NDArray[np.float64]
MOST_ROWS = 1_000_000


class _Logit(NamedTuple):
    """Log-odds of a flag: at age 60, added per ten years of age, for men, in a deprived area, and for other flags."""

    base: float
    decade: float = 0.0
    male: float = 0.0
    deprived: float = 0.0
    flags: Mapping[str, float] = {}


_FLAGS: Mapping[str, _Logit] = {
    "emergency": _Logit(-0.3, 0.10, 0.0, 0.3),
    "smoker": _Logit(-1.9, -0.20, 0.5, 0.9),
    "alcohol_misuse": _Logit(-4.2, -0.15, 1.0, 0.5, {"smoker": 0.9}),
    "obesity": _Logit(-1.6, -0.05, -0.2, 0.5),
    "hypertension": _Logit(-0.7, 0.50, 0.1, 0.1, {"obesity": 0.9}),
    "diabetes": _Logit(-2.1, 0.25, 0.2, 0.4, {"obesity": 1.1, "hypertension": 0.5}),
    "high_cholesterol": _Logit(-1.7, 0.25, 0.1, 0.0, {"obesity": 0.4, "diabetes": 0.7}),
    "angina": _Logit(
        -4.0, 0.45, 0.7, 0.2, {"smoker": 0.7, "hypertension": 0.6, "diabetes": 0.5, "high_cholesterol": 0.8}
    ),
    "heart_failure": _Logit(-3.7, 0.60, 0.2, 0.1, {"angina": 1.3, "hypertension": 0.5, "diabetes": 0.4}),
    "atrial_fibrillation": _Logit(-3.4, 0.60, 0.3, 0.0, {"heart_failure": 1.2, "hypertension": 0.3}),
    "previous_stroke": _Logit(-4.1, 0.45, 0.1, 0.2, {"atrial_fibrillation": 0.9, "hypertension": 0.6, "smoker": 0.3}),
    "copd": _Logit(-3.5, 0.35, 0.1, 0.5, {"smoker": 2.0}),
    "asthma": _Logit(-2.2, -0.15, -0.4, 0.1),
    "kidney_failure": _Logit(-4.0, 0.45, 0.1, 0.1, {"diabetes": 0.9, "hypertension": 0.7, "heart_failure": 0.8}),
    "dialysis": _Logit(-7.0, -0.20, 0.1, 0.1, {"kidney_failure": 5.8}),
    "cirrhosis": _Logit(-4.8, 0.10, 0.3, 0.1, {"alcohol_misuse": 2.6}),
    "tumour": _Logit(-2.5, 0.30, 0.1, 0.0, {"smoker": 0.4}),
    "depression": _Logit(-2.0, -0.10, -0.6, 0.4, {"alcohol_misuse": 0.8, "tumour": 0.3}),
    "dementia": _Logit(-5.6, 1.10, -0.1, 0.0, {"previous_stroke": 0.7}),
    "anaemia": _Logit(-2.6, 0.20, -0.4, 0.1, {"kidney_failure": 1.2, "tumour": 0.9}),
    "insulin": _Logit(-6.0, -0.10, 0.0, 0.0, {"diabetes": 5.3}),
    "metformin": _Logit(-6.0, 0.0, 0.0, 0.0, {"diabetes": 6.2, "kidney_failure": -1.0}),
    "statin": _Logit(-3.0, 0.15, 0.1, 0.0, {"high_cholesterol": 3.2, "angina": 1.2, "diabetes": 0.7}),
    "beta_blocker": _Logit(-3.0, 0.05, 0.0, 0.0, {"angina": 1.6, "heart_failure": 1.4, "atrial_fibrillation": 1.2}),
    "anticoagulant": _Logit(-3.4, 0.10, 0.0, 0.0, {"atrial_fibrillation": 3.2, "previous_stroke": 0.6}),
    "diuretic": _Logit(-2.8, 0.20, 0.0, 0.0, {"heart_failure": 2.4, "hypertension": 0.8, "kidney_failure": 0.6}),
    "opioid": _Logit(-2.7, 0.0, 0.0, 0.2, {"tumour": 1.3, "depression": 0.5}),
    "surgery": _Logit(-0.7, -0.05, 0.0, 0.0, {"emergency": -0.8, "tumour": 0.7}),
    "icu_stay": _Logit(-3.0, 0.10, 0.2, 0.0, {"emergency": 0.8, "heart_failure": 0.4, "surgery": 0.4}),
    "ventilated": _Logit(-6.2, 0.0, 0.0, 0.0, {"icu_stay": 4.6, "copd": 0.6}),
}

_DIAGNOSES: Mapping[str, _Logit] = {
    "pneumonia": _Logit(0.5, 0.15, 0.1, 0.2, {"copd": 1.0, "dementia": 0.5}),
    "heart failure": _Logit(-0.9, 0.20, 0.0, 0.0, {"heart_failure": 2.6, "diuretic": 0.5}),
    "myocardial infarction": _Logit(-0.3, 0.15, 0.5, 0.1, {"angina": 1.6, "smoker": 0.5}),
    "stroke": _Logit(-0.5, 0.30, 0.0, 0.1, {"previous_stroke": 1.0, "atrial_fibrillation": 0.9}),
    "chronic lung failure": _Logit(-1.9, 0.05, 0.0, 0.2, {"copd": 3.2, "asthma": 0.8}),
    "hip fracture": _Logit(-0.6, 0.45, -0.7, 0.0, {"dementia": 0.8, "surgery": 1.4}),
    "joint replacement": _Logit(-0.2, 0.10, -0.2, -0.3, {"surgery": 2.3, "emergency": -2.0}),
    "gastrointestinal bleeding": _Logit(-0.6, 0.05, 0.2, 0.1, {"anticoagulant": 0.8, "cirrhosis": 1.6}),
    "sepsis": _Logit(-0.7, 0.10, 0.1, 0.1, {"icu_stay": 1.2, "dialysis": 1.3}),
    "malignant neoplasm": _Logit(-1.3, 0.05, 0.0, 0.0, {"tumour": 3.0}),
    "alcohol withdrawal": _Logit(-2.6, -0.15, 0.4, 0.2, {"alcohol_misuse": 3.6, "cirrhosis": 0.6}),
    "self-harm": _Logit(-3.4, -0.40, -0.2, 0.2, {"depression": 1.6, "alcohol_misuse": 0.8}),
    "HIV-related illness": _Logit(-3.4, -0.25, 0.8, 0.3),
}

_READMITTED = _Logit(
    base=-2.25,
    decade=0.12,
    male=0.10,
    deprived=0.30,
    flags={
        "emergency": 0.60,
        "smoker": 0.25,
        "alcohol_misuse": 0.60,
        "obesity": 0.10,
        "diabetes": 0.30,
        "angina": 0.25,
        "heart_failure": 0.85,
        "copd": 0.70,
        "kidney_failure": 0.65,
        "dialysis": 1.10,
        "cirrhosis": 0.90,
        "tumour": 0.65,
        "depression": 0.45,
        "dementia": 0.40,
        "anaemia": 0.35,
        "insulin": 0.35,
        "statin": -0.10,
        "diuretic": 0.25,
        "opioid": 0.45,
        "surgery": -0.50,
        "icu_stay": 0.60,
        "ventilated": 0.50,
    },
)
_READMITTED_BY_DIAGNOSIS: Mapping[str, float] = {
    "heart failure": 0.60,
    "chronic lung failure": 0.60,
    "malignant neoplasm": 0.50,
    "sepsis": 0.45,
    "alcohol withdrawal": 0.60,
    "self-harm": 0.40,
    "HIV-related illness": 0.30,
    "joint replacement": -0.90,
    "hip fracture": -0.20,
    "myocardial infarction": -0.10,
}

_AGE_QUANTILES = ((0.0, 0.07, 0.20, 0.40, 0.60, 0.80, 0.95, 1.0), (18, 26, 40, 56, 67, 77, 87, 99))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_AREAS = tuple(f"{letter}{digit}" for letter in "NESW" for digit in range(1, 7))
_FIRST = (
    ("A", "Be", "Ca", "Do", "E", "Fa", "Jo", "Ka", "Li", "Ma", "No", "Ri", "Sa", "Te"),
    ("la", "mi", "ne", "ro", "vi", "zo"),
)
_LAST = (
    ("Bar", "Cor", "Dal", "Fen", "Gar", "Hol", "Kest", "Lor", "Mar", "Pel", "Ren", "Tor", "Ven"),
    ("a", "e", "i", "o"),
)
_LAST_END = ("bury", "dane", "feld", "lin", "mond", "nik", "rova", "sen", "ster", "vale", "wick")


def admissions(n_rows: int = 5000, seed: int = 20) -> Table:
    """Hospital admissions that never happened: identifiers, quasi-identifiers, a diagnosis and a readmission target.

    Thirty 0/1 flags (conditions, medication, procedures), each set in 1 to 45 % of the rows, depend on age, sex, a
    deprived postcode area and each other; the diagnosis (13 values, two of them near 1 %) depends on them, and
    readmission within 30 days (about 25 %) on all of these. Marital status is missing in about 2 % of the rows. A
    linear model on the binarized quasi-identifiers reaches an AUC of 0.75.

    Parameters
    ----------
    n_rows : int
        From 0 to 1,000,000.
    seed : int
        From 0; equal seeds give equal tables.
    """
    for name, given, most in (("n_rows", n_rows, MOST_ROWS), ("seed", seed, 2**32 - 1)):
        if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= most:
            raise InvalidParameterError(name, f"got {given!r}", allowed=f"a whole number from 0 to {most:,}")
    draw = _Draw(n_rows, seed)
    cells: dict[str, Any] = {"patient_id": _patient_ids(n_rows), "name": _names(draw)}
    person = _people(draw, cells)
    flags = _flags(draw, person)
    cells |= {name: flag.astype(np.int64) for name, flag in flags.items()}
    diagnosis = _diagnosis(draw, person, flags)
    cells["discharge_diagnosis"] = np.array(tuple(_DIAGNOSES))[diagnosis]
    effect = np.array([_READMITTED_BY_DIAGNOSIS.get(name, 0.0) for name in _DIAGNOSES])
    log_odds = _log_odds(_READMITTED, person, flags) + effect[diagnosis]
    cells["readmitted"] = np.where(draw("readmitted") < _probability(log_odds), "yes", "no")
    return Table.from_arrow(pa.table(cells), _schema())


class _Draw:
    """Uniform numbers in [0, 1), one stream for every column name."""

    def __init__(self, n_rows: int, seed: int) -> None:
        self.n_rows = n_rows
        self.seed = seed

    def __call__(self, name: str) -> Numbers:
        words = np.random.PCG64(np.random.SeedSequence([self.seed, zlib.crc32(name.encode())])).random_raw(self.n_rows)
        return np.asarray(np.asarray(words, dtype=np.uint64) >> np.uint64(11), dtype=np.float64) * 2.0**-53

    def choice(self, name: str, weights: Sequence[float] | Numbers) -> NDArray[np.intp]:
        """Positions drawn with these weights: one list for all rows, or a row of weights for each."""
        reached = np.cumsum(np.asarray(weights, dtype=np.float64), axis=-1)
        below = self(name)[:, None] * reached[..., -1:] >= reached[..., :-1]
        return np.asarray(below.sum(axis=1), dtype=np.intp)


def _patient_ids(n_rows: int) -> list[str]:
    return [f"P{(7919 * i + 123_457) % 9_000_000 + 1_000_000}" for i in range(n_rows)]


def _names(draw: _Draw) -> list[str]:
    parts = [
        np.array(syllables)[draw.choice(f"name {i}", np.ones(len(syllables)))].tolist()
        for i, syllables in enumerate((*_FIRST, *_LAST, _LAST_END))
    ]
    return [f"{a}{b} {c}{d}{e}" for a, b, c, d, e in zip(*parts, strict=True)]


def _people(draw: _Draw, cells: dict[str, Any]) -> dict[str, Numbers]:
    """Add the columns that describe a person; return what everything else depends on."""
    age = np.floor(np.interp(draw("age"), *_AGE_QUANTILES))
    male = draw("sex") < 0.47
    area = draw.choice("postcode_area", 1.0 / np.arange(2, len(_AREAS) + 2))
    deprived = area % 3 == 1
    old, young = age >= 75, age < 30
    marital = np.column_stack(
        [np.where(young, 6.0, 1.2), 4.0 - 3.6 * young, 1.2 - 1.1 * young, 0.1 + 3.5 * old * (1.4 - male)]
    )
    status = np.array(["single", "married", "divorced", "widowed"])[draw.choice("marital_status", marital)]
    cover = np.column_stack(
        [np.where(age >= 65, 6.0, 3.0), 2.0 - deprived, np.full(len(age), 0.8), 0.5 * (age < 65) + 0.02]
    )
    cells["age"] = age.astype(np.int64)
    cells["sex"] = np.where(male, "male", "female")
    cells["postcode_area"] = np.array(_AREAS)[area]
    cells["marital_status"] = pa.array(status, mask=draw("marital_status missing") < 0.02)
    cells["insurance"] = np.array(["public", "private", "company", "none"])[draw.choice("insurance", cover)]
    cells["admission_month"] = np.array(_MONTHS)[draw.choice("admission_month", [1.3, 1.2, 1.1, *[0.9] * 7, 1.0, 1.2])]
    return {"decade": (age - 60) / 10, "male": male.astype(np.float64), "deprived": deprived.astype(np.float64)}


def _flags(draw: _Draw, person: Mapping[str, Numbers]) -> dict[str, NDArray[np.bool_]]:
    flags: dict[str, NDArray[np.bool_]] = {}
    for name, model in _FLAGS.items():
        flags[name] = draw(name) < _probability(_log_odds(model, person, flags))
    return flags


def _diagnosis(draw: _Draw, person: Mapping[str, Numbers], flags: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.intp]:
    weights = [np.exp(_log_odds(model, person, flags)) for model in _DIAGNOSES.values()]
    return draw.choice("discharge_diagnosis", np.column_stack(weights))


def _log_odds(model: _Logit, person: Mapping[str, Numbers], flags: Mapping[str, NDArray[np.bool_]]) -> Numbers:
    total = model.base + model.decade * person["decade"] + model.male * person["male"]
    total = total + model.deprived * person["deprived"]
    for name, weight in model.flags.items():
        total = total + weight * flags[name]
    return np.asarray(total, dtype=np.float64)


def _probability(log_odds: Numbers) -> Numbers:
    return np.asarray(1.0 / (1.0 + np.exp(-log_odds)), dtype=np.float64)


def _schema() -> Schema:
    known = [
        Column("patient_id", Role.IDENTIFIER),
        Column("name", Role.IDENTIFIER),
        Column("age", kind=Kind.NUMERIC),
        *(Column(name) for name in ("sex", "postcode_area", "marital_status", "insurance")),
        Column("admission_month", kind=Kind.ORDERED, domain=_MONTHS),
        *(Column(name) for name in _FLAGS),
    ]
    return Schema.of([*known, Column("discharge_diagnosis", Role.SENSITIVE), Column("readmitted", Role.TARGET)])
