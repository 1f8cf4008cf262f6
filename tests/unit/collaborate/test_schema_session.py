"""Parties come to one schema: the same columns, and the union of their values."""

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import sfumato
from sfumato.collaborate import schema_session
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.schema_session import (
    agree_on_schema,
    check_columns,
    numbers_as_categories,
    private_union,
    united_columns,
)
from sfumato.collaborate.session.transcript import Transcript
from sfumato.errors import CollaborationError, SchemaError
from unit.collaborate.groups import NAMES, Group

PARTS = {
    "ann": {"sex": ["f", "m", "f"], "age": [31, 44, None], "site": ["north", "north", "?"], "ill": ["n", "y", "n"]},
    "bob": {"age": [20, 25, 70], "sex": ["f", "f", "f"], "site": ["south", "north", "south"], "ill": ["n", "n", "n"]},
    "cid": {"sex": ["m", "x", "m"], "age": [52, 53, 54], "site": ["west", "west", "west"], "ill": ["y", "y", "?"]},
}


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    return Group(tmp_path_factory.mktemp("group"))


def for_all(cuts):
    return {name: {"age": cuts} for name in NAMES}


def described(columns):
    table = sfumato.read_table(pa.table(columns))
    return table.with_schema(table.schema.with_roles({"ill": sfumato.Role.TARGET}))


def together(group, parts, cuts):
    def one(name):
        try:
            return agree_on_schema(
                load_party_config(group.config(name)),
                described(parts[name]),
                cuts=cuts[name],
                transcript=Transcript(group.transcript(name), force=True),
            )
        except Exception as exc:
            return exc

    with ThreadPoolExecutor(len(NAMES)) as threads:
        return dict(zip(NAMES, threads.map(one, NAMES), strict=True))


@pytest.mark.slow
def test_all_come_to_the_union_of_the_values_in_the_order_of_the_first(group):
    found = together(group, PARTS, for_all([30, 50]))

    assert found["ann"] == found["bob"] == found["cid"]
    assert found["ann"].to_dict() == {
        "features": [
            {"name": "sex", "values": ["f", "m", "x"], "missing": False},
            {"name": "age", "cuts": [30.0, 50.0], "missing": True},
            {"name": "site", "values": ["north", "south", "west"], "missing": True},
        ],
        "target": {"name": "ill", "values": ["n", "y"], "missing": True},
    }
    for name in NAMES:
        assert found["ann"].counts(described(PARTS[name])).sum() == 9


def test_no_value_of_a_column_that_is_cut_takes_part(group, monkeypatch):
    put_in = []

    def spied_union(sums, values, **settings):
        put_in.append(values)
        return private_union(sums, values, **settings)

    monkeypatch.setattr(schema_session, "private_union", spied_union)
    together(group, PARTS, for_all([30, 50]))

    assert sorted((values["age"] for values in put_in), key=len) == [(), (), (None,)]


def test_a_long_list_of_columns_is_refused_before_it_is_read(group, monkeypatch):
    monkeypatch.setattr(schema_session, "_MOST_BYTES_OF_NAMES", 34)
    found = together(group, PARTS | {"cid": PARTS["cid"] | {"x" * 30: ["1", "1", "1"]}}, for_all([30]))

    for name in ("ann", "bob"):
        assert (found[name].party, found[name].stage) == ("cid", "columns")
        assert "wrong length" in str(found[name])


@pytest.mark.slow
def test_a_transcript_of_it_shows_no_value(group):
    together(group, PARTS, for_all([30, 50]))

    text = group.transcript("ann").read_text()
    assert json.loads(text.splitlines()[-1])["outcome"] == "complete"
    assert "north" not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns: {name: cells for name, cells in columns.items() if name != "sex"}, "'sex' is missing there"),
        (lambda columns: columns | {"extra": columns["sex"]}, "'extra' is there only"),
    ],
)
def test_a_party_with_other_columns_is_named(group, change, message):
    found = together(group, PARTS | {"bob": change(PARTS["bob"])}, for_all([30]))

    for name in ("ann", "cid"):
        assert isinstance(found[name], CollaborationError)
        assert (found[name].party, found[name].stage) == ("bob", "columns")
        assert message in str(found[name]) or "says party" in str(found[name])
    assert any(message in str(error) for error in found.values())


def test_a_party_with_other_cut_points_is_named(group):
    found = together(group, PARTS, for_all([30]) | {"cid": {"age": [31]}})

    for name in ("ann", "bob"):
        assert (found[name].party, found[name].stage) == ("cid", "hello")
        assert "has another value of the parameter 'cuts'" in str(found[name])


class TestColumns:
    def numbers(self, n_rows, n_values):
        return described(
            {"dose": [i % n_values for i in range(n_rows)], "ill": ["n", "y"] * (n_rows // 2)},
        )

    def test_numbers_with_many_values_need_cut_points(self):
        with pytest.raises(SchemaError, match="such as 10,20,30") as caught:
            check_columns(self.numbers(100, 30), {})
        assert caught.value.remedy == ("bins",)
        check_columns(self.numbers(100, 30), {"dose": [10.0, 20.0]})

    def test_numbers_with_few_values_are_categories(self):
        table = self.numbers(100, 5)

        check_columns(table, {})
        assert numbers_as_categories(table, {}) == ("dose",)
        assert numbers_as_categories(self.numbers(100, 3), {}) == ("dose",)
        assert numbers_as_categories(self.numbers(100, 2), {}) == ()
        assert numbers_as_categories(table, {"dose": [2.0]}) == ()

    def codes(self, n_rows, n_values, **more):
        codes = [f"c{i % n_values}" for i in range(n_rows)]
        return described({"code": codes, "ill": ["n", "y"] * (n_rows // 2)} | more)

    @pytest.mark.parametrize(("n_rows", "n_values"), [(6, 6), (20, 19), (30, 29), (100, 21), (1000, 101), (1000, 999)])
    def test_a_column_with_many_values_for_its_rows_is_not_told_to_all(self, n_rows, n_values):
        with pytest.raises(SchemaError, match=f"'code': has {n_values} values in {n_rows:,} rows") as caught:
            check_columns(self.codes(n_rows, n_values), {})

        assert "give it the role identifier" in caught.value.hint
        assert caught.value.remedy[:2] == ("identifiers", "bins")

    @pytest.mark.parametrize(("n_rows", "n_values"), [(4, 3), (20, 10), (40, 20), (100, 20), (1000, 100)])
    def test_a_column_with_few_values_for_its_rows_is(self, n_rows, n_values):
        table = self.codes(n_rows, n_values)

        check_columns(table, {})
        assert united_columns(table, {}) == {"code": n_values, "ill": 2}

    def test_who_names_a_column_may_tell_more_of_it_but_not_who_is_who(self):
        check_columns(self.codes(100, 50), {}, named=["code"])
        with pytest.raises(SchemaError, match="has 51 values in 100 rows"):
            check_columns(self.codes(100, 51), {}, named=["code"])
        with pytest.raises(SchemaError, match="list all features as quasi-identifiers"):
            check_columns(self.codes(100, 50), {}, named=["other"])

    def test_a_target_that_names_people_is_refused(self):
        table = described({"sex": ["f", "m"] * 20, "ill": [f"c{i}" for i in range(40)]})

        with pytest.raises(SchemaError, match="'ill': has 40 values in 40 rows"):
            check_columns(table, {})

    def test_of_cut_columns_no_value_is_told(self):
        table = self.codes(40, 2, age=[float(i) for i in range(40)])

        check_columns(table, {"age": [10.0]})
        assert united_columns(table, {"age": [10.0]}) == {"code": 2, "ill": 2}

    def test_cut_points_are_for_numeric_features(self):
        table = described({"sex": ["f", "m"], "ill": ["n", "y"]})

        with pytest.raises(SchemaError, match="not all its values are numbers"):
            check_columns(table, {"sex": [1.0]})
        with pytest.raises(SchemaError, match="has cut points but is not a feature"):
            check_columns(table, {"ill": [1.0]})

    def test_there_is_a_target(self, group):
        table = sfumato.read_table(pa.table({"sex": ["f", "m"]}))

        with pytest.raises(SchemaError, match="role target"):
            agree_on_schema(load_party_config(group.config("ann")), table)
