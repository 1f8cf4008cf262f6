"""Mondrian: worked examples, new rows, bad input, and the public figures on Adult."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.guarantees import LDiversity
from sfumato.learning.c45.criteria import Entropy
from sfumato.mechanisms.axes import Axis
from sfumato.mechanisms.constraints import Limit, Promised
from sfumato.mechanisms.mondrian.division import mondrian_partition
from sfumato.mechanisms.recoder import Cover, generalize

ADULT = {0: True, 1: False, 4: True, 5: False, 6: False, 8: False, 9: False, 13: False}
"""Columns of adult.data that the public reference takes as quasi-identifiers, and whether they are numbers."""


def numbers(cells, name="n"):
    """Axis of numbers; ``None`` is missing."""
    known = sorted({cell for cell in cells if cell is not None})
    codes = [-1 if cell is None else known.index(cell) for cell in cells]
    return Axis(name, np.array(codes, dtype=np.int32), tuple(map(str, known)), np.array(known, dtype=np.float64))


def words(cells, name="w"):
    """Axis of categories in alphabetical order."""
    known = sorted({cell for cell in cells if cell is not None})
    codes = [-1 if cell is None else known.index(cell) for cell in cells]
    return Axis(name, np.array(codes, dtype=np.int32), tuple(known))


def diverse(level, variant="distinct", c=None):
    """Constraint of l-diversity."""
    return Promised(LDiversity(level, "illness", (), variant, c))


def groups(axes, k, **options):
    return mondrian_partition(axes, k, **options).of_row.tolist()


def test_median_rule_by_hand():
    """Ages are cut in the middle; the young then differ in sex most, the old in nothing that may be cut.

    Groups are numbered as leaves, depth by depth: the old first, then the more frequent sex.
    """
    age = numbers([20, 20, 21, 21, 60, 61, 61], "age")
    sex = words(["f", "m", "f", "m", "m", "m", "m"], "sex")

    assert groups([age, sex], 2, split="median") == [2, 1, 2, 1, 0, 0, 0]


def test_penalty_rule_takes_the_wide_gap_rather_than_the_median():
    """One far pair makes every range wide; taking it away saves more than halving does."""
    age = numbers([20, 21, 22, 23, 24, 25, 90, 90])

    assert groups([age], 2, split="penalty") == [1, 1, 1, 2, 2, 2, 0, 0]
    assert groups([age], 2, split="median") == [0, 0, 1, 1, 2, 2, 3, 3]


def test_median_cut_moves_to_the_nearest_allowed_place():
    """Half of the rows have the lowest value, so the median itself separates nothing."""
    assert groups([numbers([1, 1, 1, 1, 1, 2, 3])], 2, split="median") == [0, 0, 0, 0, 0, 1, 1]


def test_relaxed_cuts_divide_equal_values():
    """Halving goes on where strict cuts end; equal rows go by row number, others by their other values."""
    constant_but_two = numbers([5, 5, 5, 5, 5, 9])

    assert groups([constant_but_two], 3) == [0] * 6
    assert groups([constant_but_two], 3, strict=False) == [0, 0, 0, 1, 1, 1]
    assert groups([constant_but_two, words(["b", "a", "b", "a", "b", "b"])], 3, strict=False, split="median") == [
        0,
        1,
        0,
        1,
        0,
        1,
    ]


def test_relaxed_penalty_keeps_equal_values_together_where_it_can():
    """The halving rule alone would put a 1 beside the 9s."""
    axis = numbers([1, 1, 1, 1, 9, 9])

    assert groups([axis], 2, strict=False) == [0, 0, 0, 0, 1, 1]
    assert groups([axis], 2, strict=False, split="median") == [0, 0, 0, 1, 1, 1]


def test_of_an_odd_number_of_rows_the_right_half_has_one_more():
    """Halving must not depend on more than the order of the rows along the axis."""
    assert groups([numbers([1, 2, 3, 4, 5])], 2, strict=False, split="median") == [0, 0, 1, 1, 1]


def test_gain_rule_separates_the_classes():
    """The target follows the second column, which is the narrower one."""
    wide, telling = numbers([1, 2, 3, 4, 5, 6, 7, 8]), words(list("abababab"))
    criterion = Entropy(2)
    statistics = criterion.statistics([0, 1] * 4)

    assert groups([wide, telling], 4, split="gain", statistics=statistics, criterion=criterion) == [0, 1] * 4


def test_missing_values_are_an_end_of_their_axis():
    """They may be cut off; new numbers of any size then go to the other side, and new missing values to them."""
    axis = numbers([1, 2, None, None])
    partition = mondrian_partition([axis], 2)

    assert partition.of_row.tolist() == [0, 0, 1, 1]
    assert partition.groups_of([numbers([1e300, None, -5.0])]).tolist() == [0, 1, 0]


def test_new_numbers_go_by_the_threshold_and_unknown_values_to_the_larger_side():
    """The threshold is a number of the table, so one between two parts goes right of it."""
    partition = mondrian_partition([numbers([1, 1, 5, 9, 9, 9])], 3)
    by_word = mondrian_partition([words(["a", "a", "a", "b", "b"])], 2)
    unknown = Axis("w", np.array([-1, 1], dtype=np.int32), ("a", "b"))

    assert partition.of_row.tolist() == [0, 0, 0, 1, 1, 1]
    assert partition.groups_of([numbers([5.0, 5.1, 7.1])]).tolist() == [0, 1, 1]
    assert partition.tree.cut[0] == 7.0
    assert by_word.groups_of([unknown]).tolist() == [0, 1]


def test_a_threshold_is_a_number_of_the_data_up_to_half_way():
    """As in C4.5, numbers of other parts count: 4 lies half way between the 2 and 6 of the part that is cut."""
    axes = [numbers([2, 2, 6, 6, 4, 4, 4, 4]), numbers([0, 0, 0, 0, 9, 9, 9, 9])]
    partition = mondrian_partition(axes[::-1], 2, split="median")
    tree = partition.tree

    assert tree.threshold[tree.attribute == 1].tolist() == [4.0]
    assert partition.groups_of(axes[::-1]).tolist() == partition.of_row.tolist()


def test_neighbouring_floating_point_numbers_are_told_apart():
    """Half way between two neighbours is one of them; the cut must still separate."""
    low = 1.0
    high = float(np.nextafter(low, 2.0))
    for pair in [(low, high), (high, float(np.nextafter(high, 2.0)))]:
        axis = numbers([pair[0], pair[1]])
        partition = mondrian_partition([axis], 1)

        assert partition.groups_of([axis]).tolist() == [0, 1]


def test_categories_are_cut_in_order_of_frequency():
    """The most frequent value stands first, whatever its name, and is kept apart from the rare ones."""
    axis = words(["z"] * 4 + ["a", "m"])

    assert groups([axis], 2) == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("split", ["penalty", "median"])
def test_nothing_to_cut_gives_one_group(strict, split):
    """Constant and all-missing columns have no cut, alone or together."""
    constant, missing = words(["x"] * 6), numbers([None] * 6)

    assert groups([constant, missing], 2, strict=strict, split=split) == [0] * 6
    assert groups([missing], 2, strict=strict, split=split) == [0] * 6


def test_a_value_for_each_row_gives_groups_of_about_k():
    """Numbers and categories that are all different are cut down to fewer than twice k rows."""
    n_rows = 64
    for axis in (numbers(list(range(n_rows))), words([f"{i:03}" for i in range(n_rows)])):
        for split in ("median", "penalty"):
            sizes = np.bincount(groups([axis], 4, split=split))

            assert sizes.min() >= 4
            assert sizes.max() < 8


def test_k_of_all_rows_and_of_one():
    """All rows make one group; k = 1 separates all rows that differ."""
    axis = numbers([1, 2, 2, 3])

    assert groups([axis], 4) == [0] * 4
    assert len(set(groups([axis], 1))) == 3


def test_more_than_there_are_rows_cannot_be_met():
    """The error says how many rows there are, and shows none."""
    with pytest.raises(PrivacyNotAchievableError, match="groups of at least 5 of 3 rows") as raised:
        mondrian_partition([numbers([1, 2, 3])], 5)

    assert raised.value.best_level == 3


@pytest.mark.parametrize("asked", [(2,), (1.5, "entropy"), (2, "recursive", 3)], ids=str)
def test_a_table_that_is_not_diverse_cannot_be_divided(asked):
    """One sensitive value only: nothing can be met but level 1."""
    with pytest.raises(PrivacyNotAchievableError, match="diversity of the sensitive column") as raised:
        mondrian_partition([numbers([1, 2])], 1, limits=[Limit(diverse(*asked), np.zeros(2, dtype=np.int32))])

    assert raised.value.best_level == 1


def test_diversity_stops_a_cut():
    """Size would allow to separate the two halves; each has one sensitive value only."""
    axis, sensitive = numbers([1, 1, 2, 2]), np.array([0, 0, 1, 1], dtype=np.int32)

    assert groups([axis], 2) == [0, 0, 1, 1]
    assert groups([axis], 2, limits=[Limit(diverse(2), sensitive)]) == [0] * 4


@pytest.mark.parametrize(
    ("axes", "k", "options", "name"),
    [
        ([], 2, {}, "axes"),
        ([numbers([1, 2])], 0, {}, "k"),
        ([numbers([1, 2])], True, {}, "k"),
        ([numbers([1, 2])], 1.5, {}, "k"),
        ([numbers([1, 2])], 1, {"split": "mean"}, "split"),
        ([numbers([1, 2])], 1, {"split": "gain"}, "statistics"),
    ],
)
def test_bad_parameters_are_named(axes, k, options, name):
    """Every refused parameter is named in the error."""
    with pytest.raises(InvalidParameterError) as raised:
        mondrian_partition(axes, k, **options)

    assert raised.value.name == name


def test_progress_ends_with_all_rows():
    """Rows are counted as their groups are final."""
    calls = []
    mondrian_partition([numbers(list(range(20)))], 2, progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]

    assert done == sorted(done)
    assert calls[-1] == (20, 20, "dividing rows")


def test_reprs_show_sizes_only():
    """Neither values nor labels are printed."""
    partition = mondrian_partition([words(["secret", "secret", "hidden", "hidden"])], 2)

    assert repr(partition) == "Partition(4 rows, 2 groups)"
    assert repr(partition.scales) == "Scales(1 axes, 2 values)"


@pytest.fixture(scope="module")
def adult(shared_data):
    """Eight axes of the 30,162 complete rows of adult.data, categories coded in the order in which they appear."""
    lines = (shared_data / "adult" / "adult.data").read_text(encoding="ascii").replace(" ", "").splitlines()
    rows = [line.split(",") for line in lines if line and "?" not in line]
    axes = []
    for place, is_number in ADULT.items():
        cells = [row[place] for row in rows]
        values = sorted(set(cells), key=int) if is_number else list(dict.fromkeys(cells))
        code_of = {value: code for code, value in enumerate(values)}
        positions = np.array(values, dtype=np.float64) if is_number else None
        codes = np.array([code_of[cell] for cell in cells], dtype=np.int32)
        axes.append(Axis(str(place), codes, tuple(values), positions))
    return axes


def released_penalty(axes, of_row):
    """Global certainty penalty as we charge it."""
    cover = Cover.of_groups(of_row)
    return np.mean([generalized.penalties[cover.of_row].mean() for generalized in generalize(axes, cover)])


def index_range_penalty(axes, of_row):
    """Global certainty penalty as the reference charges it: a set costs the range of its values' numbers."""
    shares = []
    for axis in axes:
        places = np.arange(axis.n_values) if axis.positions is None else axis.positions
        order = np.argsort(of_row, kind="stable")
        starts = np.searchsorted(of_row[order], np.arange(of_row.max() + 1))
        held = places[axis.codes[order]]
        width = np.maximum.reduceat(held, starts) - np.minimum.reduceat(held, starts)
        shares.append(width[of_row].mean() / (places[-1] - places[0]))
    return np.mean(shares)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "strict", "reference"), [(5, True, 0.0830), (10, True, 0.1124), (10, False, 0.1585)], ids=str
)
@pytest.mark.parametrize("split", ["penalty", "median"])
def test_adult_loses_no_more_than_the_public_reference(adult, k, strict, reference, split):
    """Figures of qiyuangong/Mondrian on the same rows and columns, charged our way and its own way."""
    of_row = mondrian_partition(adult, k, strict=strict, split=split).of_row

    assert np.bincount(of_row).min() >= k
    assert released_penalty(adult, of_row) < reference
    assert index_range_penalty(adult, of_row) < reference
