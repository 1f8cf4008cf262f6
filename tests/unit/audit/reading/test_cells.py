"""Reading generalized cells: every form, every kind of column, escapes, and cells that cannot be read."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.audit.reading.cells import contained, unchanged
from sfumato.schema import Kind

AGES = pa.array([29, 38, 42, 57, 61, None])
DAYS = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), datetime.date(2024, 12, 24)]
SPECIAL = "\\|{}[],*"


def held(found, cell=0):
    """Numbers of the distinct originals that a distinct released cell may stand for."""
    n = len(found.places)
    return np.flatnonzero(found.holds(np.arange(n), np.full(n, cell))).tolist()


def read(cell, original, kind, domain=None):
    return contained(pa.array([cell], pa.string()), original, kind, domain)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("[29, 42]", [0, 1, 2]),
        ("[42, 42]", [2]),
        ("[29.0, 4.2e1]", [0, 1, 2]),
        ("{29|57}", [0, 3]),
        ("{57|29|38}", [0, 1, 3]),
        (r"{29|\N}", [0, 5]),
        (r"{[38, 57]|\N}", [1, 2, 3, 5]),
        ("*", [0, 1, 2, 3, 4, 5]),
        ("57", [3]),
        (None, [5]),
    ],
)
@pytest.mark.parametrize("stored", [pa.int64(), pa.float32(), pa.decimal128(22, 1), pa.string()])
def test_forms_in_a_numeric_column(cell, expected, stored):
    found = read(cell, AGES.cast(stored), Kind.NUMERIC)

    assert held(found) == expected
    assert (found.n_unreadable, found.n_foreign, found.n_repeated) == (0, 0, 0)


BROKEN_RANGES = [
    "[29, 42",
    "[29]",
    "[29,42]",
    "[29, 42, 57]",
    "[",
    "[42, 29]",
    r"[\N, 42]",
    "[a, 42]",
    "[29, nan]",
    "[, ]",
]
BROKEN_SETS = [
    "{29",
    "{29}",
    "{}",
    "{[29, 42]",
    "{57|[29, 42]}",
    "{29|42}x",
    "{*|29}",
    "{29|\\}",
    "{29|\\",
    "{",
    "{{29|38}|4}",
]
BROKEN_VALUES = ["[29, nan]", "{{29|38}|4}", "29|42", "2*", "**", "\\", "29\\", r"\N", r"\2", "2]", "2}"]


@pytest.mark.parametrize("cell", [*BROKEN_RANGES, *BROKEN_SETS, *BROKEN_VALUES])
def test_a_broken_cell_is_counted_and_contains_nothing(cell):
    found = contained(pa.array(["29", cell]), AGES, Kind.NUMERIC)

    assert (found.n_unreadable, held(found, 0), held(found, 1)) == (1, [0], [])


@pytest.mark.parametrize("cell", ["30", "{29|30}", "[29, 43]", "[28, 42]", "x", "{29|}"])
def test_a_cell_that_names_what_the_original_lacks_is_counted(cell):
    found = read(cell, AGES, Kind.NUMERIC)

    assert (found.n_unreadable, found.n_foreign) == (0, 1)


def test_bounds_that_the_original_lacks_still_bound():
    assert held(read("[30, 60]", AGES, Kind.NUMERIC)) == [1, 2, 3]
    assert held(read("[30, 37]", AGES, Kind.NUMERIC)) == []


@pytest.mark.parametrize("cell", [None, r"{a|\N}"])
def test_missing_is_foreign_where_nothing_is_missing(cell):
    assert read(cell, pa.array(["a", "b"]), Kind.CATEGORICAL).n_foreign == 1
    assert read(cell, pa.array(["a", "b", None]), Kind.CATEGORICAL).n_foreign == 0


def test_a_categorical_column_has_no_ranges():
    found = read("[a, b]", pa.array(["a", "b"]), Kind.CATEGORICAL)

    assert (found.n_unreadable, held(found)) == (1, [])


def test_a_numeric_column_that_holds_texts_has_no_ranges():
    assert read("[1, 2]", pa.array(["1", "2", "x"]), Kind.NUMERIC).n_unreadable == 1
    assert held(read("{1|x}", pa.array(["1", "2", "x"]), Kind.NUMERIC)) == [0, 2]


def test_spellings_of_one_number_are_one_value():
    found = read("[1, 2]", pa.array(["1", "1.0", " 2", "3"]), Kind.NUMERIC)

    assert (held(found), found.n_places) == ([0, 1, 2], 3)


def test_not_a_number_is_a_value_outside_every_range():
    original = pa.array([1.0, float("inf"), float("nan"), None])

    assert held(read("[1, inf]", original, Kind.NUMERIC)) == [0, 1]
    assert held(read("{1|nan}", original, Kind.NUMERIC)) == [0, 2]
    assert held(read("*", original, Kind.NUMERIC)) == [0, 1, 2, 3]


def test_large_whole_numbers_are_told_apart():
    original = pa.array([2**53, 2**53 + 1, 2**53 + 2])

    assert held(read(f"[{2**53 + 1}, {2**53 + 2}]", original, Kind.NUMERIC)) == [1, 2]
    assert held(read(str(2**53), original, Kind.NUMERIC)) == [0]


def test_decimal_bounds_are_exact():
    original = pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("0.30")])

    assert held(read("[0.1, 0.2]", original, Kind.NUMERIC)) == [0, 1]


@pytest.mark.parametrize(
    "original",
    [
        pa.array(DAYS),
        pa.array(DAYS).cast(pa.timestamp("ns")),
        pa.array([day.isoformat() for day in DAYS]),
        pa.array([f"{day.isoformat()}T00:00:00" for day in DAYS]),
    ],
)
def test_ranges_of_dates(original):
    found = read("[2024-01-31, 2024-02-01]", original, Kind.DATE)

    assert (held(found), found.n_foreign) == ([0, 1], 0)
    assert read("[2024-02-01, 2024-01-31]", original, Kind.DATE).n_unreadable == 1


def test_an_ordered_column_follows_its_domain():
    domain = ("none", "low", "mid", "high")
    original = pa.array(["high", "low", "none", None])

    found = read("[low, high]", original, Kind.ORDERED, domain)

    assert (held(found), found.n_foreign) == ([0, 1], 0)
    assert held(read("[none, mid]", original, Kind.ORDERED, domain)) == [1, 2]
    assert read("[none, mid]", original, Kind.ORDERED, domain).n_foreign == 1  # declared, and in no row
    assert read("[high, low]", original, Kind.ORDERED, domain).n_unreadable == 1
    assert read("[low, top]", original, Kind.ORDERED, domain).n_unreadable == 1
    assert read("{low|top}", original, Kind.ORDERED, domain).n_foreign == 1


def test_a_number_outside_the_domain_is_not_taken_for_a_place_in_it():
    found = read("{10|1}", pa.array([10, 20]), Kind.ORDERED, ("10", "20"))

    assert (held(found), found.n_foreign) == ([0], 1)


def test_an_ordered_column_without_a_domain_is_ordered_as_it_is():
    assert held(read("[a, b]", pa.array(["a", "b", "c"]), Kind.ORDERED)) == [0, 1]


def test_no_range_holds_a_value_that_the_domain_lacks():
    original = pa.array(["a", "b", "c"])

    assert held(read("[c, a]", original, Kind.ORDERED, ("c", "a"))) == [0, 2]
    assert read("[a, c]", original, Kind.ORDERED, ("c", "a")).n_unreadable == 1
    assert held(read("b", original, Kind.ORDERED, ("c", "a"))) == [1]
    assert held(read("*", original, Kind.ORDERED, ("c", "a"))) == [0, 1, 2]


def test_second_spellings_are_counted():
    cells = ["{29|38}", "{38|29}", "42", "[42, 42]", "42.0", "[29, 38]"]

    assert contained(pa.array(cells), AGES, Kind.NUMERIC).n_repeated == 4


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize(
    "cell",
    ["[29, 42.0]", "[+29, 42]", "[029, 42]", "[ 29, 42]", "[29,  42]", "[29e0, 42]", "42.0", "[42, 42]", r"{\N|29}"],
)
def test_a_cell_in_another_spelling_than_its_values_have_is_counted(cell, stored):
    """Each distinct cell could carry as many bits as it has spellings."""
    assert read(cell, AGES.cast(stored), Kind.NUMERIC).n_misspelled == 1


@pytest.mark.parametrize("cell", ["{b|a}", "{c|a}", r"{a|\N|b}", r"{a|b|c|\N}"])
def test_a_set_has_one_order_and_one_of_all_values_is_a_star(cell):
    assert read(cell, pa.array(["a", "b", "c", None]), Kind.CATEGORICAL).n_misspelled == 1


def test_a_value_that_the_original_spells_in_two_ways_has_one_of_them_in_a_column():
    original = pa.array(["7", "7.0", "9"])

    assert contained(pa.array(["[7, 9]", "7"]), original, Kind.NUMERIC).n_misspelled == 0
    assert contained(pa.array(["[7, 9]", "7.0"]), original, Kind.NUMERIC).n_misspelled == 1


def test_cells_as_they_are_written_have_their_one_spelling():
    cells = pa.array(["[29, 42]", "57", r"{[29, 42]|\N}", "*", None])

    assert contained(cells, AGES, Kind.NUMERIC).n_misspelled == 0
    assert (
        contained(pa.array(["{a|b}", r"{a|\N}", "c"]), pa.array(["a", "b", "c", None]), Kind.ORDERED).n_misspelled == 0
    )


@pytest.mark.parametrize("cell", ["{29|29}", "{[29, 42]|42}", "{[29, 42]|57}", "{29|38|29|42}", r"{29|\N|\N}"])
def test_a_cell_that_says_something_twice_or_besides_a_range_is_not_read(cell):
    """Whoever is named once more in a cell would be told from the others in it."""
    assert read(cell, pa.array([29, 38, 42, 57, None]), Kind.NUMERIC).n_unreadable == 1


def test_all_values_of_a_column_beside_a_star_are_a_second_spelling():
    assert contained(pa.array(["*", "{a|b}"]), pa.array(["a", "b"]), Kind.CATEGORICAL).n_repeated == 1


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64(), pa.large_string()])
def test_released_cells_of_any_type(stored):
    found = contained(pa.array([29, 57]).cast(stored), AGES, Kind.NUMERIC)

    assert (held(found, 0), held(found, 1)) == ([0], [3])


def test_truth_values_and_empty_columns():
    assert held(read("{true|false}", pa.array([False, True]), Kind.CATEGORICAL)) == [0, 1]
    assert held(read("*", pa.array([None], pa.null()), Kind.CATEGORICAL)) == [0]
    nothing = contained(pa.array([], pa.string()), pa.array([], pa.string()), Kind.NUMERIC)
    assert (nothing.n_cells, nothing.n_places, len(nothing.cells)) == (0, 0, 0)


def test_a_long_broken_set_is_read_quickly_enough_to_finish():
    """Reading must not take time quadratic in the length of a cell that never ends."""
    assert read("{" + "a" * 200_000 + "\\}", pa.array(["a"]), Kind.CATEGORICAL).n_unreadable == 1


def escaped(value):
    return "".join("\\" + c if c in SPECIAL else c for c in value)


values = st.text(st.sampled_from([*SPECIAL, "N", "a", " ", "\n", "é"]), max_size=5)


@pytest.mark.slow
@given(st.lists(values, min_size=1, max_size=6, unique=True), st.data())
@example(["*"], None)
@example(["\\N", "N"], None)
def test_any_value_can_be_written_alone_and_in_sets(distinct, data):
    chosen = data.draw(st.sets(st.sampled_from(distinct), min_size=1)) if data else set(distinct)
    members = [escaped(value) for value in chosen]
    cell = members[0] if len(members) == 1 else "{" + "|".join(members) + "}"

    found = read(cell, pa.array(distinct), Kind.CATEGORICAL)

    assert [distinct[i] for i in held(found)] == [value for value in distinct if value in chosen]
    assert (found.n_unreadable, found.n_foreign) == (0, 0)


@given(st.text(st.sampled_from([*SPECIAL, "1", "2", " ", "N"]), max_size=12), st.sampled_from(Kind))
def test_no_text_breaks_the_reader(cell, kind):
    found = read(cell, pa.array(["1", "2", None]), kind)

    assert found.n_unreadable in (0, 1)
    assert held(found) == [] if found.n_unreadable else set(held(found)) <= {0, 1, 2}


def test_unchanged_cells_stand_for_equal_values_only():
    found = unchanged(pa.array(["1", "1.0", "3", None]), pa.array([1, 2, None]))

    assert [held(found, cell) for cell in range(4)] == [[0], [], [], [2]]
    assert found.n_foreign == 2


def test_the_repr_shows_no_value():
    assert "29" not in repr(read("[29, 42]", AGES, Kind.NUMERIC))


SOME_CELLS = st.lists(st.sets(st.integers(0, 8), min_size=1), max_size=6, unique_by=frozenset)


@given(SOME_CELLS, st.booleans())
def test_values_that_the_same_cells_may_mean_share_a_place(sets, neighbours_only):
    """Told apart or not, cells hold the same values; no place too many is left, one for each set of cells."""
    members = ["|".join(str(value) for value in sorted(own)) for own in sets]
    texts = [{1: own, 9: "*"}.get(own.count("|") + 1, f"{{{own}}}") for own in members]
    read = contained(pa.array(texts, pa.string()), pa.array([str(i) for i in range(9)]), Kind.CATEGORICAL)
    with pytest.MonkeyPatch.context() as patch:
        if neighbours_only:
            patch.setattr("sfumato.audit.reading.cells._MOST_MEANT", -1)
        told = read.separated()

    signs = [frozenset(i for i, own in enumerate(sets) if value in own) for value in range(9)]
    assert [held(told, i) for i in range(len(sets))] == [sorted(own) for own in sets]
    assert [held(read, i) for i in range(len(sets))] == [sorted(own) for own in sets]
    for first, second in itertools.combinations(range(9), 2):
        if told.places[first] == told.places[second]:
            assert signs[first] == signs[second]
    if not neighbours_only:
        assert told.n_places == len(set(signs))
