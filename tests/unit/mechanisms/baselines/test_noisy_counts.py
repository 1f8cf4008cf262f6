"""The differentially private releasers: parameters, budget, what they tell and what they keep to themselves."""

import json
import time

import numpy as np
import pyarrow as pa
import pytest

from sfumato.cli.main import in_flag_words
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.mechanisms.baselines.features import fixed_plan
from sfumato.mechanisms.baselines.noisy_counts import (
    EXPONENTIAL_DECLARATION,
    LAPLACE_DECLARATION,
    ExponentialReleaser,
    LaplaceReleaser,
    divide_budget,
    noise_threshold,
)
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binarize import TRUE_TEXTS, BinarizePlan
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from sfumato.table.coding import Source, Table

pytest.importorskip("opendp")

RELEASERS = [LaplaceReleaser, ExponentialReleaser]


def labelled(n_rows=400, n_features=12, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    X = rng.random((n_rows, n_features)) < np.where(np.arange(n_features) % 3 == 0, 0.15 + 0.7 * (y[:, None] == 1), 0.3)
    schema = Schema.of([Column("y", Role.TARGET), Column("illness", Role.SENSITIVE)])
    cells = pa.table({"y": [f"c{c}" for c in y], "illness": ["flu"] * n_rows})
    companions = Table.from_arrow(cells, schema, Source("people.csv", "ab" * 32, "csv"))
    features = tuple(Feature(f"x{i}", f"x{i}") for i in range(n_features))
    return BinaryTable(as_binary_matrix(X.astype(int)), features, companions)


def mixed(n_rows=60):
    rng = np.random.default_rng(1)
    cells = pa.table(
        {
            "age": rng.integers(20, 80, n_rows),
            "sex": rng.choice(["m", "f"], n_rows),
            "smokes": rng.choice(["yes", "no"], n_rows),
            "flag": rng.integers(0, 2, n_rows),
            "y": rng.choice(["a", "b"], n_rows),
        }
    )
    roles = [
        Column("age", kind=Kind.NUMERIC),
        Column("sex"),
        Column("smokes"),
        Column("flag"),
        Column("y", Role.TARGET),
    ]
    return Table.from_arrow(cells, Schema.of(roles))


@pytest.mark.parametrize("releaser", RELEASERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_and_class_sizes_are_those_of_the_original(releaser, n_classes):
    table = labelled(n_classes=n_classes)

    release = releaser(epsilon=2.0, n_features=4).release(table)

    assert release.table.matrix.shape == (400, 4)
    assert release.table.target().counts.tolist() == table.target().counts.tolist()
    assert release.table.target().values.equals(table.target().values)
    assert set(release.table.feature_names) <= set(table.feature_names)


@pytest.mark.parametrize("releaser", RELEASERS)
def test_rows_are_sorted_so_that_their_order_tells_nothing(releaser):
    released = releaser(n_features=5).release(labelled()).table

    rows = [
        (*bits, label) for bits, label in zip(released.matrix.toarray().tolist(), released.target().codes, strict=True)
    ]
    assert rows == sorted(rows)


@pytest.mark.parametrize("releaser", RELEASERS)
def test_with_hardly_any_noise_the_release_is_the_table(releaser):
    """ε = 100 leaves the best features and all counts as they are (fails with a probability below exp(-20))."""
    table = labelled(n_rows=2000)

    released = releaser(epsilon=100.0, n_features=3, max_false_fraction=1.0).release(table).table

    chosen = [table.position(name) for name in released.feature_names]
    assert set(chosen) < {0, 3, 6, 9}
    original = np.column_stack([table.matrix[:, chosen].toarray(), table.target().codes])
    synthetic = np.column_stack([released.matrix.toarray(), released.target().codes])
    assert sorted(map(tuple, original.tolist())) == sorted(map(tuple, synthetic.tolist()))


@pytest.mark.parametrize("releaser", RELEASERS)
def test_the_manifest_accounts_for_epsilon_and_gives_nothing_away(releaser):
    table = labelled()

    manifest = releaser(epsilon=1.5, n_features=4).release(table).manifest

    parts = manifest.perturbation["budget"]
    assert [part["step"] for part in parts] == ["feature selection", "counts"]
    assert sum(part["epsilon"] for part in parts) == 1.5
    outside_smallest = 400 - int(table.target().counts.min())
    assert parts[0]["scale"] == pytest.approx(2 * 4 * outside_smallest / 0.75)
    assert parts[1]["scale"] == pytest.approx(2 / 0.75)
    assert manifest.promised()[0].epsilon == 1.5
    assert manifest.input is None
    assert set(manifest.missing) == {"tokens"}
    assert manifest.mechanism["seed"] is None
    assert manifest.dropped_columns[-1] == "illness"
    assert "opendp" in manifest.versions
    assert "ab" * 32 not in manifest.to_json()


@pytest.mark.parametrize(("releaser", "factor"), [(LaplaceReleaser, 2.0), (ExponentialReleaser, 1.5)])
def test_the_papers_noise_promises_what_it_gives_and_warns(releaser, factor):
    manifest = releaser(epsilon=1.0, n_features=4, calibration="paper").release(labelled()).manifest

    assert manifest.promised()[0].epsilon == factor
    assert manifest.evidence["calibration"]["proven_epsilon"] == factor
    assert "not differentially private at the epsilon" in manifest.evidence["calibration"]["warning"]
    assert manifest.perturbation["budget"][1]["scale"] == 2.0  # Lap(1 / (ε/2))


def test_the_papers_scales_are_the_printed_ones():
    """Lap(ΔH/ε′) with ΔH = 1/min(n1, n2) and ε′ = ε/2/N, times the n1·n2 pairs."""
    sizes = np.array([40, 60])
    budget = divide_budget(1.0, 5, sizes, noise="", calibration="paper", paper_changes=1)

    assert budget.selection.scale == pytest.approx(1 / 40 / (0.5 / 5) * 40 * 60)


def test_27_features_need_no_list_of_cells():
    table = labelled(n_rows=1000, n_features=40)
    LaplaceReleaser(n_features=2).release(table)
    start = time.process_time()  # not the clock on the wall: others may be using the machine

    release = LaplaceReleaser(epsilon=0.5, n_features=27).release(table)

    assert time.process_time() - start < 20
    assert release.table.matrix.shape == (1000, 27)
    assert release.manifest.perturbation["threshold"] == noise_threshold(2**28, 8.0, 30)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"n_features": 0}, "n_features"),
        ({"n_features": 2.0}, "n_features"),
        ({"n_features": 6}, "n_features"),
        ({"calibration": "loose"}, "calibration"),
        ({"max_false_fraction": 0}, "max_false_fraction"),
        ({"max_false_fraction": 1.5}, "max_false_fraction"),
    ],
)
@pytest.mark.parametrize("releaser", RELEASERS)
def test_bad_parameters_are_named(releaser, parameters, name):
    with pytest.raises(InvalidParameterError) as caught:
        releaser(**({"n_features": 3} | parameters)).release(toy_containment_table())

    assert caught.value.name == name


def test_more_features_than_can_be_counted_are_refused():
    with pytest.raises(InvalidParameterError, match="n_features must be at most 59"):
        LaplaceReleaser(n_features=60).release(labelled(n_features=70))


def test_a_small_table_says_how_many_features_to_choose():
    with pytest.raises(InvalidParameterError, match="choose 2 or fewer") as caught:
        LaplaceReleaser().release(labelled(n_features=2))

    assert in_flag_words(caught.value).endswith("choose 2 or fewer (-p n_features=VALUE)")


def test_one_class_is_refused():
    table = labelled()
    codes = np.zeros(400, dtype=np.int32)
    alone = table.companions["y"]
    companions = Table(table.companions.schema.keep(["y"]), {"y": type(alone)(codes, alone.values[:1])}, 400)

    with pytest.raises(SchemaError, match="one class only"):
        LaplaceReleaser(n_features=2).release(BinaryTable(table.matrix, table.features, companions))


def test_a_missing_target_is_named():
    table = toy_containment_table()
    bare = Table(Schema.of([]), {}, table.n_rows)

    with pytest.raises(SchemaError, match="role target"):
        ExponentialReleaser(n_features=2).release(BinaryTable(table.matrix, table.features, bare))


FIXED = {"columns": {"age": {"cuts": [40, 60]}, "sex": {"one_of": ["f"], "name": "female"}}}


def test_fixed_rules_are_written_without_what_occurs_in_the_rows():
    release = ExponentialReleaser(epsilon=50.0, n_features=6, binarize=FIXED).release(mixed())

    described = {recoding["name"]: recoding for recoding in release.manifest.recodings}
    assert described["female"] == {"name": "female", "column": "sex", "rule": "one-of", "values": ["f"]}
    assert described["smokes"] == {"name": "smokes", "column": "smokes", "rule": "one-of", "values": list(TRUE_TEXTS)}
    assert described["age<=40"]["upto"] == 40
    assert release.manifest.mechanism["parameters"]["binarize"]["columns"]["flag"] == "as-is"
    json.loads(release.manifest.to_json())


@pytest.mark.parametrize(
    ("plan", "column"),
    [
        ({"columns": {"age": {"bands": 3}, "sex": "values"}}, "age"),
        ({"columns": {"age": {"cuts": [50]}, "sex": "values"}}, "sex"),
    ],
)
def test_rules_that_look_at_the_rows_are_refused(plan, column):
    with pytest.raises(InvalidParameterError, match="taken from people's rows") as caught:
        LaplaceReleaser(n_features=2, binarize=plan).release(mixed())

    assert caught.value.name == f"binarize.columns.{column}"


def test_the_fixed_plan_has_no_missing_features_and_drops_what_the_plan_drops():
    plan = BinarizePlan.from_dict(FIXED | {"unlisted": "drop"})

    fixed = fixed_plan(mixed(), plan)

    assert not fixed.missing_features
    assert set(fixed.columns) == {"age", "sex"}


def test_progress_is_told():
    told = []

    LaplaceReleaser(n_features=2).release(labelled(), progress=lambda *state: told.append(state))

    assert told == [(1, 2, "features chosen")]


@pytest.mark.parametrize("info", [LAPLACE_DECLARATION, EXPONENTIAL_DECLARATION], ids=lambda info: info.name)
@pytest.mark.parametrize(("n_features", "proposed"), [(1, 1), (4, 4), (10, 10), (12, 10)])
def test_no_more_features_are_proposed_than_there_are(info, n_features, proposed):
    sparse = labelled(n_features=n_features)
    cells = {f"x{i}": [str(int(cell)) for cell in sparse.matrix[:, [i]].toarray()[:, 0]] for i in range(n_features)}
    columns = [*(Column(name) for name in cells), Column("y", Role.TARGET)]
    y = sparse.companions["y"]
    plain = Table.from_arrow(pa.table(cells | {"y": y.values.take(pa.array(y.codes))}), Schema.of(columns))

    for table in (sparse, plain):
        settings = info.compared(table)
        assert [(s["epsilon"], s["n_features"]) for s in settings] == [(1.0, proposed), (2.0, proposed)]
        assert info.build(**settings[0]).release(table).table.n_rows == 400


def test_without_quasi_identifiers_nothing_is_proposed():
    table = Table.from_arrow(pa.table({"y": ["a", "b"]}), Schema.of([Column("y", Role.TARGET)]))

    with pytest.raises(SchemaError, match="no column is a quasi-identifier"):
        LAPLACE_DECLARATION.compared(table)
