"""Recoders as transformers: new rows by the same recoding, as the evaluation treats test rows."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import sfumato
from sfumato.errors import (
    ColumnNotFoundError,
    InputError,
    InvalidParameterError,
    PrivacyNotAchievableError,
    SchemaError,
)
from sfumato.evaluation.treatment import learned_from, recoded_cells, treated
from sfumato.guarantees import LDiversity
from sfumato.mechanisms.axes import axis_of, unknown_on
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import build_mechanism
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table

RECODERS = {
    "mondrian": {},
    "mondrian relaxed": {"strict": False},
    "mondrian gain": {"split": "gain"},
    "error-risk-tree": {},
    "error-risk-tree uniform": {"generalization": "uniform"},
    "global-recoding": {"max_suppressed_fraction": 0.4},
    "gain-recoding": {"max_suppressed_fraction": 0.4},
    "local-recoding": {},
    "auto": {},
}
EACH = [pytest.param(name, marks=() if name == "mondrian" else pytest.mark.slow) for name in RECODERS]


def recoder(name, **more):
    return build_mechanism(name.split()[0], {"k": 3, **RECODERS[name], **more})


@st.composite
def two_tables(draw):
    """Draw rows to fit and new rows, which may have values that the first do not: unknown jobs, ages out of range."""
    ages, jobs, levels = st.integers(20, 60), st.sampled_from("abcd"), st.sampled_from(["low", "mid", "high"])
    n_rows = draw(st.integers(8, 30))
    rows = draw(st.lists(st.tuples(ages, st.none() | jobs, levels), min_size=n_rows, max_size=n_rows))
    ages, jobs = st.integers(10, 70), st.sampled_from("abcdxy")
    new = draw(st.lists(st.tuples(ages, st.none() | jobs, levels), min_size=1, max_size=12))
    return table_of(rows), table_of(new)


def table_of(rows):
    ages, jobs, levels = zip(*rows, strict=True)
    cells = {
        "name": [f"p{i}" for i in range(len(rows))],
        "age": [str(age) for age in ages],
        "job": pa.array(jobs, pa.string()),
        "level": levels,
        "ill": ["yes" if i % 3 else "no" for i in range(len(rows))],
    }
    columns = [
        Column("name", Role.IDENTIFIER),
        Column("age", kind=Kind.NUMERIC),
        Column("job"),
        Column("level", kind=Kind.ORDERED, domain=("low", "mid", "high")),
        Column("ill", Role.TARGET),
    ]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
@given(tables=two_tables())
def test_transform_is_the_treatment_of_test_rows(name, tables):
    train, test = tables
    names = learned_from(train.schema)
    try:
        expected = treated(recoder(name), train, test).test
    except PrivacyNotAchievableError:
        return
    fitted = recoder(name).fit(train)
    found = fitted.transform(test)

    assert found.schema.names() == ("age", "job", "level", "ill")
    assert recoded_cells(fitted.recoding_, found.keep(names), names).to_arrow().equals(expected.to_arrow())
    assert found["ill"].cells().equals(test["ill"].cells())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mondrian", "mondrian gain", "error-risk-tree uniform", "auto"])
@given(tables=two_tables())
def test_released_rows_that_come_again_get_the_cells_they_were_released_with(name, tables):
    """Groups of these recoders are functions of the row alone."""
    train, _ = tables
    fitted = recoder(name).fit(train)
    released = sfumato.release(train, recoder(name)).table

    again = fitted.transform(train)

    assert again.to_arrow().equals(released.to_arrow())


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
@given(tables=two_tables())
def test_unknown_are_values_out_of_sight(name, tables):
    """By the definition: categories and missing that no fitted row has, numbers and levels outside their range."""
    train, new = tables
    try:
        found = recoder(name).fit(train).recoding_.unknown(new)
    except PrivacyNotAchievableError:
        return
    own, others = train.to_arrow().to_pydict(), new.to_arrow().to_pydict()
    ages, level = [int(age) for age in own["age"]], {"low": 0, "mid": 1, "high": 2}
    levels = [level[one] for one in own["level"]]

    assert found["job"].tolist() == [job not in own["job"] for job in others["job"]]
    if "recoding" not in name:  # built intervals may hold more than the values that occur
        assert found["age"].tolist() == [not min(ages) <= int(age) <= max(ages) for age in others["age"]]
        assert found["level"].tolist() == [not min(levels) <= level[one] <= max(levels) for one in others["level"]]


def test_numbers_in_an_interval_of_a_hierarchy_are_known_and_others_beyond_it_are_not():
    ages = Hierarchy.from_rows([("20", "[20, 29]", "*"), ("25", "[20, 29]", "*"), ("31", "≥ 30", "*")])
    table = table_of([(20, "a", "low"), (25, "a", "low"), (31, "a", "low")] * 3)
    fitted = recoder("global-recoding", hierarchies={"age": ages}).fit(table)
    new = table_of([(age, "a", "low") for age in (19, 20, 24, 27, 29, 30, 31, 70)])

    assert fitted.recoding_.unknown(new)["age"].tolist() == [True] + 7 * [False]


def test_an_axis_without_values_knows_none():
    axis = axis_of(Column("age", kind=Kind.NUMERIC), CodedColumn.encode(pa.array([None], pa.string())))

    assert unknown_on(axis, CodedColumn.encode(pa.array(["7", None]))).tolist() == [True, False]


@pytest.mark.parametrize("name", RECODERS)
def test_a_fitted_recoder_can_be_pickled(name):
    table = table_of([(20 + i % 7, "abc"[i % 3], ("low", "high")[i % 2]) for i in range(40)])
    fitted = recoder(name).fit(table)

    assert pickle.loads(pickle.dumps(fitted)).transform(table).to_arrow().equals(fitted.transform(table).to_arrow())
    assert not hasattr(clone(fitted), "recoding_")


def test_a_recoder_with_a_sensitive_quasi_identifier_can_be_pickled():
    table = table_of([(20 + i % 7, "abcd"[i % 4], "low") for i in range(60)])
    table = table.with_schema({"job": Role.SENSITIVE_QUASI_IDENTIFIER})
    fitted = Mondrian(k=3, privacy=[LDiversity(2)]).fit(table)

    assert pickle.loads(pickle.dumps(fitted)).transform(table).to_arrow().equals(fitted.transform(table).to_arrow())


FRAME = pd.DataFrame({"age": [20, 21, 35, 36, 50, 51] * 3, "job": list("aabbcc") * 3}, index=range(100, 118))
CLASSES = ["y", "n"] * 9


def test_a_frame_gives_a_frame_of_its_library():
    fitted = Mondrian(k=3, split="gain").fit(FRAME, CLASSES)
    pandas, polars = fitted.transform(FRAME), fitted.transform(pl.from_pandas(FRAME))
    arrow = fitted.transform(pa.Table.from_pandas(FRAME, preserve_index=False))

    assert pandas.index.tolist() == FRAME.index.tolist()
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dict(as_series=False) == arrow.to_pydict() == {k: v.tolist() for k, v in pandas.items()}
    assert fitted.get_feature_names_out()[:2] == list(pandas.columns) == ["age", "job"]


def test_an_array_gives_an_array():
    numbers = FRAME[["age"]].to_numpy()
    found = Mondrian(k=3).fit_transform(numbers)

    assert found.shape == (18, 1)
    assert found.dtype == object


def test_a_recoder_is_a_step_of_a_pipeline():
    """The target is what the pipeline gets as y."""
    pipeline = make_pipeline(Mondrian(k=3, split="gain"), Mondrian(k=3)).fit(FRAME, CLASSES)

    assert len(pipeline.transform(FRAME)) == len(FRAME)


def test_the_target_of_a_frame_gets_a_name_of_its_own_and_must_have_a_class_for_each_row():
    frame = FRAME.rename(columns={"job": "target"})

    assert Mondrian(k=3, split="gain").fit(frame, CLASSES).schema_.target == "target_"
    with pytest.raises(InvalidParameterError, match="got 2 classes of 18 rows"):
        Mondrian(k=3).fit(FRAME, ["y", "n"])


def test_only_the_target_may_be_missing_in_new_rows():
    table = table_of([(20 + i, "ab"[i % 2], "low") for i in range(20)])
    fitted = recoder("mondrian").fit(table)

    assert fitted.transform(table.keep(["age", "job", "level"])).schema.names() == ("age", "job", "level")
    assert fitted.transform(table.keep(["ill", "level", "job", "age"])).schema.names() == ("age", "job", "level", "ill")
    with pytest.raises(ColumnNotFoundError, match="'job'"):
        fitted.transform(table.keep(["age", "level", "ill"]))


def test_new_rows_with_text_among_numbers_are_refused_without_the_text():
    table = table_of([(20 + i, "ab"[i % 2], "low") for i in range(20)])
    fitted = recoder("mondrian").fit(table)
    new = pa.table({"age": ["canary"], "job": ["a"], "level": ["low"]})

    with pytest.raises(InputError, match="age") as refused:
        fitted.transform(new)
    assert "canary" not in str(refused.value)


def test_what_cannot_be_transformed_says_so():
    with pytest.raises(NotFittedError, match="call fit first"):
        Mondrian().transform(FRAME)
    with pytest.raises(SchemaError, match="sparse 0/1"):
        Mondrian(k=3).fit(FRAME).transform(sp.csr_matrix(np.eye(3)))
    ones = Table.from_arrow(
        pa.table({"a": ["0", "1"] * 5, "y": ["u", "v"] * 5}), Schema.of([Column("a"), Column("y", Role.TARGET)])
    )
    with pytest.raises(SchemaError, match="selects features"):
        build_mechanism("auto", {"k": 2, "attacker_knows": "ones"}).fit(ones)
