"""Information gains, levels and trade-offs as bars: each bar is a number of the display, in the order it promises."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.datasets.admissions import admissions
from sfumato.displays.base import display_of_manifest
from sfumato.displays.information_gain import InformationGainDisplay
from sfumato.displays.lattice import LatticeDisplay
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.mechanisms.lattice.gain import GainRecoder
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sizes import examples

COLUMNS = ["age", "sex", "postcode_area", "insurance", "readmitted"]


@pytest.fixture(scope="module", name="table")
def fixture_table():
    return admissions(n_rows=400).keep(COLUMNS)


def labels_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def widths(ax, label):
    """Width of every bar of one series by its row."""
    (bars,) = [container for container in ax.containers if container.get_label() == label]
    return {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in bars}


def line_at(ax, label):
    (found,) = [line for line in ax.lines if str(line.get_label()).startswith(label)]
    return found


numbers = st.integers(0, 1000).map(lambda number: number / 1000)


@pytest.mark.slow
@examples(15)
@given(st.lists(numbers, min_size=1, max_size=12), numbers)
def test_gains_stand_from_the_largest_down_and_the_line_divides_them(gains, threshold):
    names = [f"c{number:02}" for number in range(len(gains))]

    ax = InformationGainDisplay(tuple(names), tuple(gains), threshold).plot()

    order = sorted(names, key=lambda name: (-gains[names.index(name)], name))
    assert labels_of(ax) == order
    drawn = {}
    for container in ax.containers:
        for row, width in widths(ax, container.get_label()).items():
            drawn[order[row]] = (width, container.get_label())
    for name, gain in zip(names, gains, strict=True):
        expected = "coarsened" if gain < threshold else "unchanged, unprotected"
        assert drawn[name] == (gain, expected)
    assert set(line_at(ax, "slice line").get_xdata()) == {threshold}
    assert ax.get_xlim()[1] > max(*gains, threshold) - 1e-12


def test_without_slicing_there_is_no_line_and_no_legend():
    ax = InformationGainDisplay(("a", "b"), (0.1, 0.2)).plot()

    assert not ax.lines
    assert ax.get_legend() is None


def test_what_the_gain_is_about_is_never_called_coarsened():
    ax = InformationGainDisplay(("a", "b"), (0.1, 0.0), 0.5, target="b").plot()

    assert widths(ax, "unchanged, unprotected") == {1: 0.0}
    assert "about b" in ax.get_xlabel()


def test_gains_of_a_manifest(table):
    sliced = GainRecoder(k=3, max_suppressed_fraction=0.1, slicing=True, threshold=0.03, max_seconds=5)
    whole = GainRecoder(k=3, max_suppressed_fraction=0.1, max_seconds=5)
    manifests = [recoder.release(table).manifest for recoder in (sliced, whole)]

    shown = [InformationGainDisplay.from_manifest(manifest) for manifest in manifests]

    stated = {name: float(f"{gain:.3g}") for name, gain in sliced.gains_.items()}
    assert shown[0] == InformationGainDisplay(tuple(stated), tuple(stated.values()), 0.03)
    assert shown[1].threshold is None
    assert display_of_manifest(manifests[0], "information-gain") == shown[0]
    with pytest.raises(InvalidParameterError, match="information-gain, levels"):
        display_of_manifest(manifests[0])


def test_levels_of_a_search_and_of_its_manifest(table):
    recoder = GlobalRecoder(k=5, max_suppressed_fraction=0.05, max_seconds=5)
    manifest = recoder.release(table).manifest

    found, stated = LatticeDisplay.from_recoder(recoder), LatticeDisplay.from_manifest(manifest)

    assert dict(zip(found.names, found.levels, strict=True)) == recoder.levels_
    assert dict(zip(stated.names, stated.levels, strict=True)) == recoder.levels_
    assert found.highest == tuple(len(next(hierarchy.rows())) - 1 for hierarchy in recoder.recoding_.hierarchies)
    assert found.regrouped == stated.regrouped
    assert any(found.regrouped)
    assert stated.highest is None
    assert found.n_checked == recoder.search_.n_checked
    assert found.is_proven is stated.is_proven is recoder.search_.proven
    assert display_of_manifest(manifest) == stated


@st.composite
def lattices(draw):
    tops = draw(st.lists(st.integers(0, 6), min_size=1, max_size=10))
    levels = [draw(st.integers(0, top)) for top in tops]
    others = [draw(st.sets(st.integers(0, top), max_size=2)) - {level} for top, level in zip(tops, levels, strict=True)]
    names = tuple(f"c{number}" for number in range(len(tops)))
    return LatticeDisplay(names, tuple(levels), tuple(tops), tuple(tuple(sorted(part)) for part in others))


@pytest.mark.slow
@examples(15)
@given(lattices())
def test_levels_are_drawn_in_the_order_of_the_columns(display):
    ax = display.plot()

    assert labels_of(ax) == list(display.names)
    assert list(widths(ax, "level of most rows").values()) == list(display.levels)
    assert list(widths(ax, "levels that there are").values()) == list(display.highest)
    diamonds = [line for line in ax.lines if str(line.get_label()).startswith("other levels")]
    drawn = {(x, y) for line in diamonds for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert drawn == {(level, row) for row, part in enumerate(display.regrouped) for level in part}
    kept = [row for row, level in enumerate(display.levels) if level == 0]
    dots = [list(line.get_ydata()) for line in ax.lines if line.get_label() == "kept unchanged"]
    assert dots == ([kept] if kept else [])


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ({}, ""),
        ({"is_proven": False}, "another one may lose less"),
        ({"n_checked": 3}, "3 of 12 combinations of levels were looked at"),
        ({"n_checked": 3, "highest": None}, "3 combinations of levels were looked at"),
    ],
)
def test_how_far_a_search_went_is_said(more, note):
    display = LatticeDisplay(("a", "b"), (1, 0), (3, 2))

    assert dataclasses.replace(display, **more).note == note


def test_a_huge_number_of_combinations_is_a_power_of_ten():
    names = tuple(f"c{number}" for number in range(40))

    assert "of about 1 × 10¹² comb" in LatticeDisplay(names[:12], (0,) * 12, (9,) * 12, n_checked=1).note
    assert "of about 1.2 × 10¹⁹ comb" in LatticeDisplay(names, (0,) * 40, (2,) * 40, n_checked=1).note


@pytest.mark.parametrize(
    "make",
    [
        lambda: InformationGainDisplay((), ()),
        lambda: InformationGainDisplay(("a",), (0.1, 0.2)),
        lambda: InformationGainDisplay(("a",), (float("nan"),)),
        lambda: InformationGainDisplay(("a",), (0.1,), threshold=-1.0),
        lambda: LatticeDisplay((), ()),
        lambda: LatticeDisplay(("a",), (2,), (1,)),
        lambda: LatticeDisplay(("a",), (-1,)),
        lambda: LatticeDisplay(("a",), (1,), regrouped=((1,), (2,))),
    ],
)
def test_what_cannot_be_drawn_is_refused(make):
    with pytest.raises(InvalidParameterError):
        make()


@pytest.mark.parametrize(
    ("kind", "utility"),
    [
        ("information-gain", {"information_gain_bits": ["a"]}),
        ("information-gain", {"information_gain_bits": {"a": "much"}}),
        ("information-gain", {"information_gain_bits": {"a": float("nan")}}),
        ("levels", {"levels": {"a": "top"}}),
        ("levels", {"levels": [1, 2]}),
    ],
)
def test_a_manifest_that_was_tampered_with_is_refused(table, kind, utility):
    manifest = GainRecoder(k=3, max_suppressed_fraction=0.1, max_seconds=5).release(table).manifest

    with pytest.raises(ManifestError):
        display_of_manifest(dataclasses.replace(manifest, evidence={"utility": utility}), kind)
