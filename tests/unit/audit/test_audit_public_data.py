"""The audit on public tables; values of Adult agree with pycanon 1.3.6, see the numbers."""

import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest
import scipy.sparse as sp

from sfumato.audit import audit_release, measured_level, risk_profile
from sfumato.audit.auditor import AuditorHas
from sfumato.guarantees import Containment, KAnonymity, LDiversity, TCloseness
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from unit.audit.audit_oracles import manifest_of, table_of

DATA = Path(os.environ.get("SFUMATO_DATA", Path(__file__).parents[4] / "shared" / "data"))
ADULT = DATA / "adult-arx" / "adult.csv"
EMAIL = DATA / "pu1" / "pu1_bare_body.svm.gz"


@pytest.fixture(scope="module")
def adult() -> Table:
    if not ADULT.exists():
        pytest.skip(f"{ADULT} is not there")
    cells = pacsv.read_csv(ADULT, parse_options=pacsv.ParseOptions(delimiter=";"))
    described = [
        Column(
            name,
            Role.SENSITIVE if name == "occupation" else Role.QUASI_IDENTIFIER,
            Kind.NUMERIC if name == "age" else Kind.CATEGORICAL,
        )
        for name in cells.column_names
    ]
    return Table.from_arrow(cells, Schema.of(described))


def test_profile_of_adult(adult):
    profile = risk_profile(adult)

    assert (profile["n_rows"], len(profile["quasi_identifiers"])) == (30_162, 8)
    assert (profile["k"], profile["n_classes"], profile["sample_uniques"]["count"]) == (1, 12_458, 8_841)
    assert profile["sensitive"]["occupation"]["t_equal"] == pytest.approx(0.9997016112989857)  # pycanon's number


@pytest.mark.parametrize(
    ("columns", "k", "l", "t"),
    [(("sex", "race"), 87, 10, 0.3249624441807344), (("sex", "race", "education"), 1, 1, 0.8935083880379285)],
    ids=["2 columns", "3 columns"],
)
def test_levels_of_adult_agree_with_pycanon(adult, columns, k, l, t):  # noqa: E741
    assert measured_level(KAnonymity(2, columns), adult) == k
    assert measured_level(LDiversity(2, "occupation", columns), adult) == l
    assert measured_level(TCloseness(0.5, "occupation", columns), adult) == pytest.approx(t)


def test_ordered_distance_of_adult_agrees_with_pycanon(adult):
    guarantee = TCloseness(0.5, "age", ("sex", "race", "education"), "ordered")

    assert measured_level(guarantee, adult) == pytest.approx(0.3549818905475821)


@pytest.mark.slow
def test_a_selection_from_24604_sparse_features_is_audited():
    if not EMAIL.exists():
        pytest.skip(f"{EMAIL} is not there")
    labels, rows, columns = [], [], []
    with gzip.open(EMAIL, "rt") as lines:
        for row, line in enumerate(lines):
            label, *entries = line.partition("#")[0].split()
            labels.append(label)
            rows.extend([row] * len(entries))
            columns.extend(int(entry.split(":")[0]) - 1 for entry in entries)
    matrix = sp.csc_matrix((np.ones(len(rows), dtype=np.uint8), (rows, columns)), shape=(len(labels), 24_604))
    features = tuple(Feature(str(i + 1), str(i + 1)) for i in range(24_604))
    original = BinaryTable(matrix, features, table_of({"class": labels}, {"class": Role.TARGET}))
    frequent = np.argsort(-np.diff(matrix.indptr), kind="stable")[:12]
    part = original.select(np.sort(frequent))
    level = measured_level(Containment(2, part.feature_names), part)
    manifest = manifest_of(part, [(Containment(int(level), part.feature_names), level)], original)

    assert part.n_rows == 1_099
    assert audit_release(part, manifest, AuditorHas(original=original, roles=True)).passed
    assert audit_release(part.to_table(), manifest, AuditorHas(original=original)).passed
    assert measured_level(Containment(2, original.feature_names), original) == 1
