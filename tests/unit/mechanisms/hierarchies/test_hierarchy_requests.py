"""Hierarchies asked for by the name of a method, with settings as people write them."""

import pyarrow as pa
import pytest

from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.mechanisms.hierarchies.automatic import METHODS, build_hierarchy, cover_column
from sfumato.schema import Column, Kind, Schema
from sfumato.table.coding import Table

CELLS = {"age": [17, 25, 39, 64], "size": ["S", "M", "L", None], "day": ["2024-01-05", "2024-02-05", None, None]}
KINDS = {"age": Kind.NUMERIC, "day": Kind.DATE}
COLUMNS = [Column(name, kind=KINDS.get(name, Kind.CATEGORICAL)) for name in CELLS]
TABLE = Table.from_arrow(pa.table(CELLS), Schema.of(COLUMNS))


@pytest.mark.parametrize(
    ("column", "method", "settings"),
    [
        ("age", "width", {"width": 10, "start": 5, "merge": "2,2"}),
        ("age", "quantile", {"intervals": 2}),
        ("age", "mask", {"step": 2}),
        ("size", "groups", {"order": "S, M, L", "sizes": "2"}),
        ("day", "dates", {}),
        ("size", "auto", {"target": "age"}),
    ],
)
def test_numbers_may_be_written_as_text(column, method, settings):
    found = build_hierarchy(TABLE, column, method, settings)
    again = build_hierarchy(TABLE, column, method, {name: str(value) for name, value in settings.items()})

    assert found.labels == again.labels
    assert cover_column(found, TABLE, column).labels[-1] == ("*",)


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_is_none_is_not_given(method):
    needed = {
        "width": {"width": 5},
        "cuts": {"cuts": "0,30"},
        "groups": {"order": "17,25,39,64"},
        "ready": {"ready": "age"},
    }.get(method, {})
    nothing = dict.fromkeys(("width", "start", "intervals", "cuts", "merge", "step", "order", "sizes", "target"))
    column = "day" if method == "dates" else "age"

    found = build_hierarchy(TABLE, column, method, {**nothing, **needed})

    assert found.labels == build_hierarchy(TABLE, column, method, needed).labels


@pytest.mark.parametrize(
    ("column", "method", "settings", "error", "said"),
    [
        ("age", "guess", {}, InvalidParameterError, "--method must be one of auto, width"),
        ("age", "width", {"width": "wide"}, InvalidParameterError, "--width must be a number"),
        ("age", "mask", {"step": "1.5"}, InvalidParameterError, "--step must be a whole number"),
        ("age", "cuts", {}, InvalidParameterError, "--cuts must be given with --method cuts"),
        ("size", "groups", {"order": "S,M", "sizes": "x"}, InvalidParameterError, "--sizes must be whole numbers"),
        ("size", "groups", {"order": "S,M"}, SchemaError, "does not cover 1 of 4 values"),
        ("aeg", "auto", {}, ColumnNotFoundError, "did you mean 'age'"),
    ],
)
def test_what_cannot_be_built_is_said_with_the_name_of_the_setting(column, method, settings, error, said):
    with pytest.raises(error, match=said):
        build_hierarchy(TABLE, column, method, settings, mark="--")
