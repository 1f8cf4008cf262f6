"""Releases by risk and utility: every point is drawn, the front is the best utility up to each risk, one is named."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.text import Annotation, Text

from sfumato.displays.base import WHITE
from sfumato.displays.frontier import CHOICE, FrontierDisplay
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.registry import registered_mechanisms
from sizes import examples

NAMES = ("anatomy", "mondrian", "slicing")


def point(utility, risk, mechanism="mondrian", **more):
    return {"utility": utility, "risk": risk, "n_columns": 3, "mechanism": mechanism, "on_front": False} | more


@st.composite
def frontiers(draw):
    n_points = draw(st.integers(1, 25))

    def several(strategy):
        return tuple(draw(st.lists(strategy, min_size=n_points, max_size=n_points)))

    return FrontierDisplay(
        several(st.integers(500, 900).map(lambda n: n / 1000)),
        several(st.one_of(st.just(0.0), st.integers(1, 1000).map(lambda n: (n / 1000) ** 3))),
        several(st.integers(1, 40)),
        several(st.sampled_from(NAMES)),
        several(st.booleans()),
        recommended=draw(st.none() | st.integers(0, n_points - 1)),
        original_utility=draw(st.none() | st.just(0.88)),
    )


def points_of(ax, label):
    found = [part for part in ax.collections if part.get_label() == f"_{label}"]
    return found[0] if found else None


@pytest.mark.slow
@examples(25)
@given(frontiers())
def test_every_release_is_drawn_in_the_colour_of_its_mechanism_and_filled_on_the_front(display):
    ax = display.plot()

    for name in NAMES:
        members = [place for place, mechanism in enumerate(display.mechanism) if mechanism == name]
        drawn = points_of(ax, name)
        assert (drawn is None) == (not members)
        if members:
            assert np.asarray(drawn.get_offsets()).tolist() == [[display.risk[p], display.utility[p]] for p in members]
            edge = to_hex(drawn.get_edgecolors()[0])
            faces = np.broadcast_to(drawn.get_facecolors(), (len(members), 4))
            expected = [edge if display.on_front[place] else WHITE.lower() for place in members]
            assert [to_hex(face) for face in faces] == expected


@pytest.mark.slow
@examples(25)
@given(frontiers())
def test_everything_is_in_view_and_the_front_is_the_best_utility_up_to_a_risk(display):
    ax = display.plot()

    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    (front,) = [line for line in ax.lines if line.get_label() == "most utility up to a risk"]
    steps = list(zip(*(np.asarray(part, dtype=float).tolist() for part in front.get_data()), strict=True))
    assert front.get_drawstyle() == "steps-post"
    assert steps[-1][0] == right
    for x, y in zip(display.risk, display.utility, strict=True):
        assert left <= x <= right
        assert bottom <= y <= top
        best = max(utility for risk, utility in zip(display.risk, display.utility, strict=True) if risk <= x)
        assert [height for risk, height in steps if risk <= x][-1] == best


@pytest.mark.slow
@examples(25)
@given(frontiers())
def test_the_choice_is_ringed_and_named_without_hiding_a_point(display):
    ax = display.plot()

    rings = [part for part in ax.collections if str(part.get_label()).startswith(CHOICE)]
    assert len(rings) == (display.recommended is not None)
    if not rings:
        return
    at = (display.risk[display.recommended], display.utility[display.recommended])
    assert np.asarray(rings[0].get_offsets()).tolist() == [list(at)]
    named = [text for text in ax.texts if isinstance(text, Annotation) and text.xycoords == "data"]
    assert (len(named) == 1) == (rings[0].get_label() == CHOICE)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    for text in named:
        assert display.mechanism[display.recommended] in text.get_text()
        text.update_positions(renderer)
        box = Text.get_window_extent(text, renderer)
        for x, y in ax.transData.transform(list(zip(display.risk, display.utility, strict=True))):
            assert not (box.x0 < x < box.x1 and box.y0 < y < box.y1)


@pytest.mark.slow
def test_points_of_a_comparison():
    points = [
        point(0.8, 0.2, recommended=True, on_front=True, label="mondrian\nk=5"),
        point(None, None, "slicing", failed="out of time"),
        point(0.7, None, "laplace-dp"),
        point(0.75, 0.0),
    ]

    display = FrontierDisplay.from_points(points, utility_name="AUC", majority_utility=0.5)

    assert display == FrontierDisplay(
        (0.8, 0.75),
        (0.2, 0.0),
        (3, 3),
        ("mondrian", "mondrian"),
        (True, False),
        ("mondrian k=5", "mondrian"),
        0,
        majority_utility=0.5,
        utility_name="AUC",
        n_left_out=2,
    )
    assert "(2 more failed)" in display.plot().texts[0].get_text()
    assert display.plot().get_ylabel() == "AUC (higher is better)"


@pytest.mark.parametrize(
    ("risks", "scale", "words"),
    [
        ((0.1, 0.5), "linear", "(lower is better)"),
        ((0.0, 0.5), "linear", "(lower is better)"),
        ((0.0, 0.0), "linear", "(lower is better)"),
        ((0.001, 0.5), "log", "log scale"),
        ((0.0, 0.001, 0.5), "symlog", "log scale"),
    ],
)
def test_risks_over_a_wide_range_have_a_logarithmic_axis(risks, scale, words):
    ax = FrontierDisplay.from_points([point(0.7, risk) for risk in risks]).plot()

    assert ax.get_xscale() == scale
    assert words in ax.get_xlabel()


@pytest.mark.slow
def test_every_mechanism_has_a_marker_of_its_own():
    names = tuple(registered_mechanisms())
    ax = FrontierDisplay.from_points([point(0.7, 0.1, name) for name in names]).plot()

    entries = [line for line in ax.get_legend().get_lines() if line.get_marker() not in ("None", "", None)]
    styles = [(line.get_marker(), line.get_color()) for line in entries]
    assert len(styles) == len(names)
    assert len({marker for marker, _ in styles}) == len(names)
    assert not any(one == other for one, other in itertools.combinations(styles, 2))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "the lists"),
        ([point(None, 0.1)], "the lists"),
        ([point(0.7, 0.1, recommended=True)] * 2, "one recommended at most"),
        ([{"utility": 0.7, "risk": 0.1}], "one lacks n_columns"),
        ([point(0.7, -0.1)], "risk"),
        ([point(float("nan"), 0.1)], "utility"),
    ],
)
def test_what_cannot_be_drawn_is_refused(points, message):
    with pytest.raises(InvalidParameterError, match=message):
        FrontierDisplay.from_points(points)


def test_a_recommendation_must_be_one_of_the_points():
    display = FrontierDisplay.from_points([point(0.7, 0.1)])

    with pytest.raises(InvalidParameterError, match="recommended"):
        dataclasses.replace(display, recommended=1)


def test_the_line_is_that_of_releases_with_the_promise_of_the_recommended_one():
    shown = FrontierDisplay.from_points(
        [
            point(0.70, 0.2, group="k-anonymity", recommended=True),
            point(0.90, 0.1, group="containment"),
            point(0.65, 0.1, group="k-anonymity"),
        ]
    ).plot()

    line = next(one for one in shown.get_lines() if one.get_label() == "most utility up to a risk")
    assert line.get_ydata().tolist()[:2] == [0.65, 0.70]


def test_intervals_are_drawn_within_the_picture():
    display = FrontierDisplay.from_points([point(0.7, 0.2, low=0.4, high=0.95), point(0.6, 0.1)])
    shown = display.plot()

    assert display.intervals == ((0.4, 0.95), None)
    assert shown.get_ylim()[0] < 0.4
    assert shown.get_ylim()[1] > 0.95
    with pytest.raises(InvalidParameterError):
        FrontierDisplay((0.7,), (0.2,), (3,), ("mondrian",), (True,), intervals=((float("nan"), 1.0),))
