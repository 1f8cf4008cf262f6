"""Columns, values and classes that all parties share, the counts made by them, and the file that holds them."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.shared_schema import (
    MOST_COUNTS,
    MOST_VALUES,
    SharedColumn,
    SharedSchema,
    read_shared_schema,
    read_shared_schema_and_digest,
    write_shared_schema,
)
from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError, OutputError, SchemaError
from sfumato.schema import Role
from unit.collaborate.plain_sums import table_of

CANARY = "CANARY-7f3a"
TABLE = table_of(
    {"sex": ["m", "f", None, "m"], "age": [1.5, 40.0, None, 70.0], "y": ["n", "j", "n", "n"]}, numeric=("age",)
)
SCHEMA = SharedSchema.of_table(TABLE, {"age": [30, 60]})


def column(name="sex", **changes):
    return {"name": name, "values": ["f", "m"], "missing": True} | changes


def document(**changes):
    target = {"name": "y", "values": ["j", "n"], "missing": False}
    return {"sfumato_shared_schema": 1, "features": [column()], "target": target} | changes


@st.composite
def rows_and_domains(draw):
    values = [None, "", "a", "b", "ä"]
    width = draw(st.integers(1, 3))
    row = st.tuples(*[st.sampled_from(values)] * width, st.sampled_from(["n", "j"]))
    return draw(st.lists(row, min_size=1, max_size=12)), values


@given(rows_and_domains())
def test_counts_are_those_of_a_loop_over_rows_and_cells(drawn):
    rows, values = drawn
    names = [f"q{i}" for i in range(len(rows[0]) - 1)]
    table = table_of({name: [row[i] for row in rows] for i, name in enumerate([*names, "y"])})
    schema = SharedSchema.of_values(dict.fromkeys(names, values), {"y": ["j", "n", "never"]})

    counts = schema.counts(table)

    assert counts.dtype == np.uint64
    matrices = schema.matrices(counts)
    for place, (feature, matrix) in enumerate(zip(schema.features, matrices, strict=True)):
        for i, value in enumerate([*feature.values, None]):
            for j, label in enumerate(schema.target.values):
                assert matrix[i, j] == sum(row[place] == value and row[-1] == label for row in rows)


def test_numbers_are_counted_by_interval_with_its_upper_end():
    table = table_of({"x": [1.0, 2.0, 2.5, 3.0, 9.0, None], "y": list("aaaaab")})
    schema = SharedSchema.of_values({"x": [None]}, {"y": ["a", "b"]}, {"x": [2, 3]})

    assert schema.matrices(schema.counts(table))[0].tolist() == [[2, 0], [2, 0], [1, 0], [0, 1]]
    assert schema.n_values == {"x": 4}


def test_texts_that_spell_numbers_are_cut_as_well():
    table = table_of({"x": ["1", "10", "9"], "y": ["a", "a", "a"]})
    schema = SharedSchema.of_values({"x": []}, {"y": ["a"]}, {"x": [9.0]})

    assert schema.matrices(schema.counts(table))[0].tolist() == [[2], [1]]


@pytest.mark.parametrize(
    ("cells", "classes"), [(["m", CANARY], ["n", "j"]), (["m", None], ["n", "j"]), (["m", "m"], ["n", CANARY])]
)
def test_what_is_not_agreed_on_is_refused_without_being_shown(cells, classes):
    schema = SharedSchema.of_values({"sex": ["m", "f"]}, {"y": ["n", "j"]})

    with pytest.raises(SchemaError, match="1 value that the shared schema does not list") as caught:
        schema.counts(table_of({"sex": cells, "y": classes}))

    assert CANARY not in str(caught.value)


def test_text_in_a_column_that_is_cut_is_refused():
    schema = SharedSchema.of_values({"x": []}, {"y": ["n"]}, {"x": [1.0]})

    with pytest.raises(SchemaError, match="not all its values are numbers"):
        schema.counts(table_of({"x": ["1", CANARY], "y": ["n", "n"]}))


def test_a_table_without_a_column_is_refused():
    with pytest.raises(ColumnNotFoundError):
        SCHEMA.counts(table_of({"sex": ["m"], "y": ["n"]}))


@pytest.mark.parametrize(
    ("columns", "roles", "match"),
    [
        ({"sex": ["m"], "more": ["1"], "y": ["n"]}, {}, "'more'.*not among the features"),
        ({"sex": ["m"], "y": ["n"]}, {"sex": Role.OTHER}, "'sex'.*not among the quasi-identifiers"),
        ({"sex": ["m"], "z": ["1"], "y": ["n"]}, {"y": Role.OTHER, "z": Role.TARGET}, "target"),
    ],
)
def test_roles_must_be_those_of_the_schema(columns, roles, match):
    schema = SharedSchema.of_values({"sex": ["m"]}, {"y": ["n"]})
    target = "z" if roles.get("z") is Role.TARGET else "y"

    with pytest.raises(SchemaError, match=match):
        schema.check_table(table_of(columns, target, **{n: r for n, r in roles.items() if n != target}))


def test_counts_of_another_length_are_refused():
    with pytest.raises(InvalidParameterError, match="14 numbers"):
        SCHEMA.matrices(np.zeros(13, dtype=np.uint64))


def test_limits_on_values_and_counts():
    SharedColumn("x", tuple(map(str, range(MOST_VALUES))))
    with pytest.raises(SchemaError, match=f"{MOST_VALUES:,} values"):
        SharedColumn("x", tuple(map(str, range(MOST_VALUES))), has_missing=True)
    with pytest.raises(SchemaError, match=f"more than {MOST_COUNTS:,}"):
        SharedSchema.of_values({"x": map(str, range(9999))}, {"y": map(str, range(1001))})


@pytest.mark.parametrize(
    "fields",
    [
        {"values": ("a", "a")},
        {"values": ()},
        {"values": ("a",), "cuts": (1.0,)},
        {"cuts": ()},
        {"cuts": (2.0, 1.0)},
        {"cuts": (1.0, 1.0)},
        {"cuts": (float("nan"),)},
        {"cuts": (float("inf"),)},
    ],
)
def test_columns_that_make_no_sense_are_refused(fields):
    with pytest.raises(SchemaError):
        SharedColumn("x", **fields)


def test_schemas_that_make_no_sense_are_refused():
    x, y = SharedColumn("x", ("a",)), SharedColumn("y", ("a",))
    for features, target in [((), y), ((x, x), y), ((x, y), y), ((x,), SharedColumn("y", cuts=(1.0,)))]:
        with pytest.raises(SchemaError):
            SharedSchema(features, target)
    with pytest.raises(InvalidParameterError):
        SharedSchema.of_values({"x": ["a"]}, {"y": ["b"], "z": ["c"]})
    with pytest.raises(InvalidParameterError):
        SharedSchema.of_values({"x": ["a"]}, {"y": ["b"]}, {"z": [1.0]})


def test_a_file_gives_the_schema_back_and_hashes_tell_schemas_apart(tmp_path):
    write_shared_schema(SCHEMA, tmp_path / "schema.json")

    assert read_shared_schema(tmp_path / "schema.json") == SCHEMA
    assert read_shared_schema(tmp_path / "schema.json").hash() == SCHEMA.hash()
    others = [SharedSchema.of_table(TABLE), SharedSchema.of_table(TABLE, {"age": [30, 61]})]
    assert len({schema.hash() for schema in [SCHEMA, *others]}) == 3
    with pytest.raises(OutputError):
        write_shared_schema(SCHEMA, tmp_path / "schema.json")
    write_shared_schema(others[0], tmp_path / "schema.json", force=True)
    assert read_shared_schema(tmp_path / "schema.json") == others[0]


def test_no_repr_shows_a_value():
    schema = SharedSchema.of_values({"x": [CANARY]}, {"y": [CANARY]})

    assert CANARY not in repr(schema) + repr(schema.features) + str(schema.target)


def test_a_document_of_the_format_is_read(tmp_path):
    """The other half of the next test: the base document is a good one."""
    (tmp_path / "s.json").write_text(json.dumps(document()))

    assert read_shared_schema(tmp_path / "s.json").names == ("sex",)


def test_a_file_holds_the_roles_of_columns_outside_and_they_change_no_hash(tmp_path):
    roles = {"name": Role.IDENTIFIER, "note": Role.OTHER, "illness": Role.SENSITIVE}
    schema = dataclasses.replace(SCHEMA, roles=roles)
    write_shared_schema(schema, tmp_path / "one.json")
    write_shared_schema(dataclasses.replace(SCHEMA, roles=dict(reversed(roles.items()))), tmp_path / "two.json")

    found, digest = read_shared_schema_and_digest(tmp_path / "one.json")
    assert (found, found.hash()) == (schema, SCHEMA.hash())
    assert digest == hashlib.sha256((tmp_path / "two.json").read_bytes()).hexdigest()


def test_a_file_of_the_first_version_is_read(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(document(sfumato_shared_schema=1)))

    assert read_shared_schema(tmp_path / "s.json").roles == {}


@pytest.mark.parametrize(
    "broken",
    [
        document(sfumato_shared_schema=2),
        document(sfumato_shared_schema=3),
        document(roles={}),
        document(sfumato_shared_schema=2, roles=[]),
        document(sfumato_shared_schema=2, roles={"name": "target"}),
        document(sfumato_shared_schema=2, roles={"name": "quasi-identifier"}),
        document(sfumato_shared_schema=2, roles={"name": CANARY}),
        document(sfumato_shared_schema=2, roles={"sex": "identifier"}),
        document(sfumato_shared_schema=True),
        document(features={}),
        document(features=[]),
        document(more=1),
        document(features=[column(cuts=[1.0])]),
        document(features=[column(extra=1)]),
        document(features=[column(name=3)]),
        document(features=[column(missing="no")]),
        document(features=[column(values="fm")]),
        document(features=[column(values=["f", None])]),
        document(features=[column(values=["f", CANARY, CANARY])]),
        document(features=[{"name": "x", "cuts": [1, "2"], "missing": False}]),
        document(features=[{"name": "x", "cuts": [True], "missing": False}]),
        document(features=[{"name": "x", "cuts": [10**400], "missing": False}]),
        document(features=[{"name": "x", "missing": False}]),
        document(target=None),
        [],
        3,
    ],
    ids=lambda broken: json.dumps(broken)[:60],
)
def test_files_that_are_not_exactly_of_the_format_are_refused(tmp_path, broken):
    (tmp_path / "s.json").write_text(json.dumps(broken))

    with pytest.raises(InputError) as caught:
        read_shared_schema(tmp_path / "s.json")

    assert "s.json" in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        json.dumps(document()).replace('"missing": true', '"missing": true, "missing": true').encode(),
        json.dumps(document(features=[{"name": "x", "cuts": [float("nan")], "missing": False}])).encode(),
    ],
    ids=["empty", "half", "no text", "deep", "twice", "nan"],
)
def test_what_is_not_strict_json_is_refused(tmp_path, content):
    (tmp_path / "s.json").write_bytes(content)

    with pytest.raises(InputError, match="not JSON"):
        read_shared_schema(tmp_path / "s.json")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_shared_schema(tmp_path / "none.json")
