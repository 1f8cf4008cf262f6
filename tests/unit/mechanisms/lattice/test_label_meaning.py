"""Labels that are listed in the manifest: those that the audit's reading of their text would take for other values."""

from itertools import cycle, islice

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.audit.reading.labels import contained_in_labels
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered
from sfumato.mechanisms.lattice.levels import listed_labels
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table


def listed(rows, values, kind=Kind.CATEGORICAL, level=1, domain=None):
    hierarchy = Hierarchy.from_rows(rows)
    fitted = covered(hierarchy, CodedColumn.encode(pa.array(values, pa.string())), "q", kind)
    used = {label: {level} for label in fitted.labels[level] if label is not None}
    every = np.ones(hierarchy.n_values, dtype=np.bool_)
    return listed_labels(hierarchy, used, Column("q", kind=kind, domain=domain), fitted, every)


@pytest.mark.parametrize("token", ["", "?", "NA"])
def test_missing_is_listed_as_the_empty_text_however_it_is_written(token):
    rows = [("cook", "kitchen", "*"), (token, "kitchen", "*"), ("nurse", "health", "*")]

    assert listed(rows, ["cook", None, "nurse"]) == {"kitchen": ["cook", ""], "health": ["nurse"]}


def test_an_interval_that_missing_joins_is_listed_and_its_neighbours_are_not():
    rows = [("1", "[1, 2]", "*"), ("2", "[1, 2]", "*"), ("?", "[1, 2]", "*"), ("3", "[3, 4]", "*")]

    assert listed(rows, ["1", None, "3"], Kind.NUMERIC) == {"[1, 2]": ["1", "2", ""]}


def test_a_mask_of_numbers_is_listed_where_the_column_writes_them_otherwise():
    rows = [("10", "1*", "*"), ("11", "1*", "*"), ("20", "2*", "*")]

    assert listed(rows, ["10", "11", "20"], Kind.NUMERIC) == {}
    assert listed(rows, ["10", "10.0", "20"], Kind.NUMERIC) == {"1*": ["10", "11"], "2*": ["20"]}
    assert listed(rows, ["10.0", "20.0"], Kind.NUMERIC) == {"1*": ["10", "11"], "2*": ["20"]}


def test_a_label_that_is_also_a_value_is_listed():
    rows = [("[0, 9]", "[0, 9]", "*"), ("[10, 19]", "[0, 9]", "*")]

    assert listed(rows, ["[0, 9]"], Kind.ORDERED, domain=("[0, 9]", "[10, 19]")) == {"[0, 9]": ["[0, 9]", "[10, 19]"]}
    assert listed([("12", "1*", "*"), ("1*", "1*", "*")], ["12"]) == {"1*": ["12", "1*"]}


def test_intervals_of_long_numbers_are_exact():
    low, high = str(2**53), str(2**53 + 1)
    joined = [(low, f"[{low}, {low}]", "*"), (high, f"[{low}, {low}]", "*")]
    apart = [(low, f"[{low}, {high}[", "*"), (high, f"[{high}, {high}]", "*")]

    assert listed(joined, [low, high], Kind.NUMERIC) == {f"[{low}, {low}]": [low, high]}
    assert listed(apart, [low, high], Kind.NUMERIC) == {}


def test_a_label_of_two_levels_lists_the_value_of_level_0_too():
    hierarchy = Hierarchy.from_rows([("1", "3.0", "*"), ("2", "3.0", "*"), ("3", "4", "*")])
    fitted = covered(hierarchy, CodedColumn.encode(pa.array(["1", "3.0"])), "q", Kind.NUMERIC)

    found = listed_labels(hierarchy, {"3.0": {0, 1}}, Column("q", kind=Kind.NUMERIC), fitted, np.array([1, 1, 1]) > 0)
    assert found == {"3.0": ["1", "2", "3.0"]}


LABELS = st.sampled_from(["[1, 2]", "[1, 3[", "1*", "2", "10", "low", "[10, 11]", "1**"])
SPELLINGS = st.sampled_from(["1", "2", "3", "10", "11", "10.0", "1.0", "?"])


@given(
    given=st.lists(
        st.tuples(SPELLINGS, LABELS), min_size=1, max_size=6, unique_by=lambda row: row[0].removesuffix(".0")
    ),
    spelled=st.lists(st.booleans(), min_size=6, max_size=6),
    kind=st.sampled_from([Kind.NUMERIC, Kind.CATEGORICAL]),
)
def test_the_audit_reads_every_label_as_the_hierarchy_means_it(given, spelled, kind):
    """Labels that look like other things than they stand for, numbers in two spellings, and missing."""
    values, labels = [], []
    for (text, label), twice in zip(given, spelled, strict=False):
        another = (
            [f"{text}0" if "." in text else f"{text}.00"] if kind is Kind.NUMERIC and twice and text != "?" else []
        )
        values += [None if text == "?" else text, *another]
        labels += [label] * (1 + len(another))
    tell = listed([(text, label, "*") for text, label in given], values, kind)

    order = sorted(set(labels))
    found = contained_in_labels(pa.array(order), pa.array(values, pa.string()), kind, tell)
    assert not found.n_unreadable
    for i, label in enumerate(order):
        held = found.holds(np.arange(len(values)), np.full(len(values), i))
        assert held.tolist() == [own == label for own in labels], (label, tell)


def table_of(cells, kind, domain=None):
    n = 120
    columns = [Column("q", Role.QUASI_IDENTIFIER, kind, domain=domain), Column("r"), Column("y", Role.TARGET)]
    repeated = pa.array(list(islice(cycle(cells), n)), cells.type)
    others = {"r": ["abc"[i // 4 % 3] for i in range(n)], "y": ["jn"[i % 2] for i in range(n)]}
    return Table.from_arrow(pa.table({"q": repeated, **others}), Schema.of(columns))


BINNED = ("[0, 10]", "[10, 20]", "[20, 30]")
JOBS = [("cook", "kitchen", "*"), ("?", "kitchen", "*"), ("nurse", "health", "*")]
MASKS = [("10", "1*", "*"), ("11", "1*", "*"), ("20", "2*", "*")]
RELEASED = {
    "single precision": (pa.array([0.1, 0.2, 3.0], pa.float32()), Kind.NUMERIC, None, None),
    "decimal": (pa.array(["0.10", "1.25"]).cast(pa.decimal128(10, 2)), Kind.NUMERIC, None, None),
    "levels like intervals": (pa.array(BINNED), Kind.ORDERED, BINNED, None),
    "long numbers": (pa.array(["9007199254740993", "9007199254740993.0", "4"]), Kind.NUMERIC, None, None),
    "missing listed": (pa.array(["cook", None, "nurse", "nurse"]), Kind.CATEGORICAL, None, JOBS),
    "masks": (pa.array(["10", "10.0", "11", "20", "20"]), Kind.NUMERIC, None, MASKS),
}


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 30, 45])
@pytest.mark.parametrize("case", RELEASED)
def test_what_is_released_is_confirmed(tmp_path, case, k):
    cells, kind, domain, rows = RELEASED[case]
    original = table_of(cells, kind, domain)
    given = {"q": Hierarchy.from_rows(rows)} if rows else None
    mechanism = GlobalRecoder(k=k, hierarchies=given, max_suppressed_fraction=0.0)

    published = publish(sfumato.release(original, mechanism), tmp_path / "out.csv", original=original)
    report = audit_published(published.table_path, published.manifest_path, original=original, check_roles=True)
    assert report.passed, report.failures
