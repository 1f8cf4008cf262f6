"""Attribute inference on tables of which the answer is known, and against classifiers trained by hand."""

import json

import numpy as np
import pyarrow as pa
import pytest

from sfumato.attack.correspondence import Correspondence
from sfumato.attack.inference import attribute_inference
from sfumato.errors import InvalidParameterError
from sfumato.learning.fold_scores import folds
from sfumato.manifest import draft_manifest
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

AGE, JOB = Column("age", kind=Kind.NUMERIC), Column("job")
ILL, TARGET = Column("ill", Role.SENSITIVE), Column("y", Role.TARGET)


def table(columns, **cells):
    types = {Kind.NUMERIC: pa.int64()}
    arrays = {c.name: pa.array(cells[c.name], types.get(c.kind, pa.string())) for c in columns}
    return Table.from_arrow(pa.table(arrays), Schema.of(columns))


def people(n=120, seed=0):
    """Rows in which the illness follows from the job, and the target from nothing."""
    rng = np.random.default_rng(seed)
    jobs = rng.integers(0, 3, n)
    cells = {
        "age": rng.integers(20, 60, n).tolist(),
        "job": [f"job{j}" for j in jobs],
        "ill": [f"ill{j}" for j in jobs],
        "y": [f"y{v}" for v in rng.integers(0, 2, n)],
    }
    return table([AGE, JOB, ILL, TARGET], **cells)


def beside(original, released, *, recodings=(), perturbation=None, suppressed=0):
    manifest = draft_manifest(
        original,
        released,
        mechanism="test",
        parameters={},
        guarantees=[],
        evidence={},
        recodings=recodings,
        suppressed_rows=suppressed,
    )
    object.__setattr__(manifest, "perturbation", perturbation)
    return Correspondence(original, released, manifest)


def with_cells(original, **cells):
    """Replace cells of some columns by texts."""
    arrow = original.to_arrow()
    kinds = dict(original.schema.columns)
    for name, texts in cells.items():
        arrow = arrow.set_column(arrow.column_names.index(name), name, pa.array(texts, pa.string()))
        kinds[name] = Column(name, kinds[name].role)
    return Table.from_arrow(arrow, Schema.of(kinds.values()))


def generalized(name, kind="categorical"):
    return {"name": name, "column": name, "rule": "generalized", "kind": kind}


def test_a_column_that_follows_from_another_is_inferred_until_that_one_is_hidden():
    original = people()
    hidden = with_cells(original, job=["*"] * 120)

    (before,) = attribute_inference(Correspondence(original, original, None))
    (after,) = attribute_inference(beside(original, hidden, recodings=[generalized("job")]))

    assert before["with_original"] == before["with_release"] == 1.0
    assert before["breach_increase_percent"] == 0
    assert before["interval"] == [0, 0]
    assert after["with_original"] == 1.0
    assert after["with_release"] < 0.5
    assert after["breach_increase_percent"] == pytest.approx(100 * (after["with_release"] - 1), abs=1e-5)
    assert after["interval"][0] < after["breach_increase_percent"] < after["interval"][1] < 0
    assert after["majority"] == pytest.approx(original["ill"].counts.max() / 120)
    json.dumps(after)


def test_scores_are_those_of_a_table_of_counts_in_each_fold():
    rng = np.random.default_rng(3)
    jobs = rng.integers(0, 4, 200)
    ill = (jobs + (rng.random(200) < 0.4)) % 3
    original = table([JOB, ILL], job=[str(j) for j in jobs], ill=[str(i) for i in ill])

    (found,) = attribute_inference(Correspondence(original, original, None), attackers=["naive-bayes"])

    fold_of_row = folds(ill, 10, 0)
    shares = []
    for fold in range(10):
        train, test = fold_of_row != fold, np.flatnonzero(fold_of_row == fold)
        right = 0
        for row in test:
            posterior = []
            for value in range(3):
                n_class = np.sum(train & (ill == value))
                n_both = np.sum(train & (ill == value) & (jobs == jobs[row]))
                posterior.append((n_class + 1) / (train.sum() + 3) * (n_both + 1) / (n_class + 4))
            right += int(np.argmax(posterior)) == ill[row]
        shares.append(right / len(test))
    assert found["with_release"] == pytest.approx(np.mean(shares))
    assert found["attackers"] == {"with_original": "naive-bayes", "with_release": "naive-bayes"}


def test_ranges_of_numbers_are_learned_from_by_their_middle():
    n = 200
    ages = np.arange(n)
    original = table([AGE, ILL], age=ages.tolist(), ill=["high" if age >= 90 else "low" for age in ages])
    cells = [f"[{age - 1}, {age + 1}]" for age in ages]  # all different: as categories they tell nothing of others
    released = with_cells(original, age=cells)

    (found,) = attribute_inference(beside(original, released, recodings=[generalized("age", "numeric")]))

    assert found["with_release"] > 0.97


def test_a_column_that_was_not_released_is_trained_with_the_originals_values():
    original = people()

    (found,) = attribute_inference(beside(original, original.keep(["age", "job", "y"])))

    assert found["with_release"] == 1.0
    assert "were not released" in found["trained_on"]


def test_rows_left_out_are_not_tested():
    original = people()
    is_kept = np.arange(120) % 4 > 0

    (found,) = attribute_inference(beside(original, original.take(is_kept), suppressed=30))

    assert found["n_people"] == 90
    assert found["with_release"] == 1.0


def test_the_target_is_inferred_when_asked():
    found = attribute_inference(Correspondence(people(), people(), None), include_target=True)

    assert [entry["column"] for entry in found] == ["ill", "y"]
    assert found[1]["with_release"] < 0.7


def test_many_numbers_are_inferred_by_quarters():
    n = 200
    pay = Column("pay", Role.SENSITIVE, Kind.NUMERIC)
    levels = [str(i % 4) for i in range(n)]
    original = table([JOB, pay], job=levels, pay=[100 * (i % 4) + i // 4 % 25 for i in range(n)])

    (found,) = attribute_inference(Correspondence(original, original, None))

    assert found["n_values"] == 4
    assert found["with_release"] > 0.9
    assert "quarters" in found["note"]


def test_moved_values_are_learned_from_the_rows_as_they_stand():
    original = people()
    ill = original["ill"].cells().to_pylist()
    group = Column("group", Role.OTHER)
    columns = [AGE, JOB, ILL, TARGET, group]
    cells = {name: original[name].cells().to_pylist() for name in ("age", "job", "y")}
    released = table(columns, **cells, ill=ill[1:] + ill[:1], group=["1"] * 120)
    moved = {"kind": "bucketed", "bucket": "group", "slices": [["ill"]]}

    (found,) = attribute_inference(beside(original, released, perturbation=moved))
    (same,) = attribute_inference(
        beside(original, table(columns, **cells, ill=ill, group=["1"] * 120), perturbation=moved)
    )

    assert same["with_release"] == 1.0
    assert found["with_release"] < 0.7
    assert "released rows; tested on the people of the original" in found["trained_on"]
    assert found["interval"][0] < found["breach_increase_percent"] < found["interval"][1]


def test_rows_drawn_anew_are_learned_from_where_they_have_the_column():
    original = people()
    drawn = original.take(np.random.default_rng(1).permutation(120)[:90])
    synthetic = {"kind": "synthetic", "threshold": 1, "budget": []}

    (found,) = attribute_inference(beside(original, drawn, perturbation=synthetic))
    (without,) = attribute_inference(beside(original, drawn.keep(["age", "job"]), perturbation=synthetic))

    assert found["with_release"] == 1.0
    assert found["n_people"] == 120
    assert "not in the release" in without["not_applicable"]


def test_what_the_release_lacks_is_not_learned_from_it():
    original = people()
    jobs = np.array(original["job"].cells().to_pylist())
    drawn = original.take(jobs != "job2")

    (found,) = attribute_inference(
        beside(
            original,
            drawn,
            perturbation={"kind": "synthetic", "threshold": 1, "budget": []},
        )
    )

    assert found["with_original"] == 1.0
    assert found["with_release"] == pytest.approx(np.mean(jobs != "job2"))


@pytest.mark.parametrize(
    ("n", "ill", "reason"),
    [
        (10, ["a", "b"] * 5, "fewer than 20"),
        (40, ["a"] * 40, "one value only"),
        (40, [f"v{i}" for i in range(40)], "ever right"),
        (202, [f"v{i}" for i in range(202)], "more than 200 values"),
    ],
)
def test_nothing_to_infer_is_said(n, ill, reason):
    original = table([JOB, ILL], job=["x", "y"] * (n // 2), ill=ill)

    (found,) = attribute_inference(Correspondence(original, original, None))

    assert reason in found["not_applicable"]


def test_no_released_column_leaves_the_most_frequent_value():
    original = people()

    (found,) = attribute_inference(beside(original, original.keep(["ill"])))

    assert found["with_release"] == pytest.approx(found["majority"], abs=0.02)


def test_people_are_drawn_by_the_seed():
    original = people(300)
    tables = beside(original, with_cells(original, job=["*"] * 300), recodings=[generalized("job")])

    def run(seed):
        return attribute_inference(tables, seed=seed, most_rows=100)

    assert run(0) == run(0)
    assert run(0)[0]["n_people"] == 100
    assert run(0) != run(1)


@pytest.mark.parametrize("attackers", [[], ["oracle"]])
def test_unknown_attackers_are_refused(attackers):
    with pytest.raises(InvalidParameterError, match="attackers"):
        attribute_inference(Correspondence(people(), people(), None), attackers=attackers)
