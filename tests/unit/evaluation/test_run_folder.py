"""Run folder: a result is found again exactly where everything it depends on is the same."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import OutputError
from sfumato.evaluation import compare as run_folder
from sfumato.evaluation.compare import RunFolder, table_fingerprint
from sfumato.evaluation.points import Measuring, Point, Status, unmeasured
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table

POINT = Point("mondrian", {"k": 5})
CELLS = {"age": ["30", "40", "40"], "y": ["a", "b", "a"]}
COLUMNS = [Column("age", kind=Kind.NUMERIC), Column("y", Role.TARGET)]


def table_of(cells=CELLS, columns=COLUMNS):
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "runs", "f", Measuring())
    made.prepare()
    return made


MEAN = {"mean": 0.5}
SCORES = {name: {"auc": MEAN, "accuracy": MEAN, "balanced_accuracy": MEAN} for name in Measuring().classifiers}
GUARANTEE = {"kind": "k-anonymity", "k": 5, "is_partial": False}


def done(point=POINT, **more):
    measured = {
        "guarantees": [GUARANTEE],
        "n_columns": 2,
        "n_rows": 3,
        "risk": {"headline": {"marketer": 0.1}},
        "utility": {"classifiers": SCORES},
        "seconds": 1.0,
        "cpu_seconds": 1.0,
    }
    return unmeasured(point, Status.DONE) | measured | more


def test_a_result_comes_back_as_it_was_saved(folder):
    result = done(seconds=1.5)
    folder.save(POINT, result)

    assert folder.load(POINT) == result
    assert [path.name for path in folder.path.iterdir()] == [folder.path_of(POINT).name]
    assert folder.path_of(POINT).name.startswith("mondrian-")


def test_saving_again_replaces(folder):
    folder.save(POINT, done(seconds=1.0))
    folder.save(POINT, done(seconds=2.0))

    assert folder.load(POINT)["seconds"] == 2.0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"key": "other"}', b"\xff\xfe", b"[" * 100_000])
def test_a_file_that_is_no_result_of_ours_is_no_result(folder, content):
    folder.path_of(POINT).write_bytes(content)

    assert folder.load(POINT) is None
    assert not folder.is_finished(POINT, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in done() if name not in ("mechanism", "parameters")])
def test_a_result_without_one_of_its_fields_is_no_result(folder, name):
    folder.save(POINT, {field: value for field, value in done().items() if field != name})

    assert folder.load(POINT) is None
    assert not folder.is_finished(POINT, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd",
    [
        {"status": "fine"},
        {"status": ["done"]},
        {"status": "timed out"},
        {"status": "timed out", "timeout": "long"},
        {"reason": 3},
        {"n_rows": "3"},
        {"n_columns": None},
        {"n_columns": True},
        {"seconds": None},
        {"risk": None},
        {"risk": {}},
        {"risk": {"headline": {}}},
        {"risk": {"headline": {"marketer": "all"}}},
        {"utility": None},
        {"utility": {}},
        {"utility": {"classifiers": {}}},
        {"utility": {"classifiers": SCORES | {"naive-bayes": {}}}},
        {"utility": {"classifiers": SCORES | {"naive-bayes": {"auc": 0.5, "accuracy": MEAN}}}},
        {"utility": {"classifiers": SCORES | {"naive-bayes": {"auc": {"mean": None}, "accuracy": MEAN}}}},
        {"guarantees": {}},
        {"guarantees": ["k"]},
        {"guarantees": [{"kind": "k-anonymity", "is_partial": False}]},
        {"guarantees": [GUARANTEE | {"k": "5"}]},
        {"guarantees": [{"kind": "k-anonymity", "k": 5}]},
    ],
)
def test_a_result_with_an_odd_field_is_no_result(folder, odd):
    folder.save(POINT, done(**odd))

    assert folder.load(POINT) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_result_with_what_is_no_number_is_no_result(folder, number):
    folder.save(POINT, done(seconds=123.5))
    file = folder.path_of(POINT)
    file.write_text(file.read_text().replace("123.5", number))

    assert folder.load(POINT) is None


def test_mechanism_and_parameters_are_those_of_the_point(folder):
    folder.save(POINT, done() | {"mechanism": 3, "parameters": None})

    assert folder.load(POINT) == done()


def test_a_file_under_anothers_name_is_no_result(folder):
    other = Point("mondrian", {"k": 6})
    folder.save(other, done(other))
    folder.path_of(other).rename(folder.path_of(POINT))

    assert folder.load(POINT) is None


def test_keys_differ_with_everything_a_result_depends_on(folder, monkeypatch):
    keys = {folder.key(POINT)}
    others = [
        (folder, Point("mondrian", {"k": 6})),
        (folder, Point("anatomy", {"k": 5})),
        (replace(folder, fingerprint="g"), POINT),
        (replace(folder, measuring=Measuring(seed=1)), POINT),
        (replace(folder, measuring=Measuring(("c45",))), POINT),
        (replace(folder, measuring=Measuring(n_folds=4)), POINT),
        (replace(folder, measuring=Measuring(max_rows=None)), POINT),
    ]
    keys |= {where.key(point) for where, point in others}
    monkeypatch.setattr(run_folder, "tool_versions", lambda: {"sfumato": "0"})
    keys.add(folder.key(POINT))

    assert len(keys) == len(others) + 2
    assert folder.key(POINT) == folder.key(Point("mondrian", {"k": 5}))


def test_hierarchy_files_count_by_their_contents(folder, tmp_path):
    file = tmp_path / "age.csv"
    point = Point("global-recoding", {"hierarchies": {"age": str(file)}})
    hierarchical = [replace(COLUMNS[0], hierarchy=str(file)), COLUMNS[1]]

    found = set()
    for text in ("1;*", "2;*"):
        file.write_text(text)
        found.add((folder.key(point), table_fingerprint(table_of(columns=hierarchical))))
    file.unlink()
    found.add((folder.key(point), table_fingerprint(table_of(columns=hierarchical))))
    assert len({key for key, _ in found}) == len({fingerprint for _, fingerprint in found}) == 3


@pytest.mark.parametrize(
    ("result", "timeout", "is_finished"),
    [
        (done(), 1.0, True),
        (done() | {"status": "infeasible"}, 1.0, True),
        (done() | {"status": Status.RELEASED, "utility": None}, 1.0, True),
        (done() | {"status": "failed"}, 1.0, False),
        (done() | {"status": "timed out", "timeout": 5.0}, 5.0, True),
        (done() | {"status": "timed out", "timeout": 5.0}, 4.0, True),
        (done() | {"status": "timed out", "timeout": 5.0}, 6.0, False),
        (done() | {"status": "timed out", "timeout": 5.0}, None, False),
    ],
)
def test_only_what_may_end_otherwise_is_tried_again(folder, result, timeout, is_finished):
    folder.save(POINT, result)

    assert folder.is_finished(POINT, timeout) is is_finished


def test_a_file_cannot_be_the_folder(tmp_path):
    (tmp_path / "runs").write_text("mine")

    with pytest.raises(OutputError, match="is a file"):
        RunFolder(tmp_path / "runs", "f", Measuring()).prepare()
    assert (tmp_path / "runs").read_text() == "mine"


cells = st.lists(st.sampled_from(["", "a", "b", "ab", "\0", None]), min_size=3, max_size=3)


@given(cells, cells, cells, cells)
def test_fingerprints_are_equal_exactly_for_equal_cells(a, b, c, d):
    columns = [Column("p"), Column("q")]
    first, second = {"p": a, "q": b}, {"p": c, "q": d}

    same = table_fingerprint(table_of(first, columns)) == table_fingerprint(table_of(second, columns))
    assert same == (first == second)


@pytest.mark.parametrize(
    "columns",
    [
        [replace(COLUMNS[0], role=Role.SENSITIVE), COLUMNS[1]],
        [replace(COLUMNS[0], kind=Kind.CATEGORICAL), COLUMNS[1]],
        [replace(COLUMNS[0], domain=("30", "40", "50")), COLUMNS[1]],
        [replace(COLUMNS[0], missing=("?",)), COLUMNS[1]],
    ],
)
def test_fingerprints_differ_with_the_description(columns):
    assert table_fingerprint(table_of(columns=columns)) != table_fingerprint(table_of())


def test_fingerprints_of_sparse_tables_see_every_one():
    beside = table_of({"y": ["a", "b", "a"]}, [Column("y", Role.TARGET)])
    features = (Feature("f", "f"), Feature("g", "g"))
    matrix = np.array([[0, 1], [1, 0], [0, 1]], dtype=np.uint8)
    found = set()
    for place in ((0, 0), (0, 1), (1, 0), (2, 1)):
        changed = matrix.copy()
        changed[place] ^= 1
        found.add(table_fingerprint(BinaryTable(sp.csc_matrix(changed), features, beside)))
    found.add(table_fingerprint(BinaryTable(sp.csc_matrix(matrix), features, beside)))

    assert len(found) == 5


def test_a_file_read_twice_has_one_fingerprint(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,y\n")

    assert table_fingerprint(read_table(path)) == table_fingerprint(read_table(path))


def test_nothing_but_results_is_in_the_folder(folder):
    folder.save(POINT, done())

    assert json.loads(folder.path_of(POINT).read_text())["key"] == folder.key(POINT)
    assert len(list(folder.path.iterdir())) == 1
