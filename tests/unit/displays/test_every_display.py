"""What holds for every display: the same bytes each time, given axes are used, texts stand apart."""

import itertools
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sfumato.displays.base import rendered
from sfumato.displays.class_sizes import ClassSizeDisplay
from sfumato.displays.drawing import LONGEST_NAME, MOST_ROWS, shortened
from sfumato.displays.frontier import FrontierDisplay
from sfumato.displays.information_gain import InformationGainDisplay
from sfumato.displays.lattice import LatticeDisplay
from sfumato.displays.risk import RiskCurve, RiskDisplay
from sfumato.displays.roc import RocDisplay
from sfumato.displays.tree import TreeDisplay
from sfumato.displays.tree_disclosure import TreeDisclosureDisplay

ROC = {"false_positive": [0.0, 0.3, 1.0], "true_positive": [0.0, 0.7, 1.0]}


def names_of(n_columns):
    return tuple(f"$a_{{rather}}_long name of column number {number}\n" for number in range(n_columns))


def gains(n_columns):
    return InformationGainDisplay(names_of(n_columns), tuple(i / 40 for i in range(n_columns)), threshold=0.3)


def levels(n_columns):
    tops = tuple(1 + number % 5 for number in range(n_columns))
    return LatticeDisplay(names_of(n_columns), tuple(top // 2 for top in tops), tops, tuple((top,) for top in tops))


def tree(n_nodes):
    parents = (-1, *((node - 1) // 3 for node in range(1, n_nodes)))
    columns = tuple(names_of(40)[node % 40] if node in parents else "" for node in range(n_nodes))
    information = tuple(node / 7 for node in range(n_nodes))
    return TreeDisplay(parents, columns, (54_321,) * n_nodes, information, tuple(node > 9 for node in range(n_nodes)))


def frontier(n_points):
    points = [
        {
            "utility": 0.6 + (number * 37 % 101) / 500,
            "risk": (number * 53 % 97) / 97,
            "n_columns": number,
            "mechanism": f"mechanism-{number % 14}",
            "on_front": number % 5 == 0,
            "recommended": number == 0,
        }
        for number in range(n_points)
    ]
    return FrontierDisplay.from_points(points, original_utility=0.9, majority_utility=0.5)


DISPLAYS = {
    "gains": gains(12),
    "levels": levels(12),
    "tree": tree(20),
    "disclosure": TreeDisclosureDisplay((2, 2.4, 1, 1.5, 3, 4), (1, 1.6, 2, 2.2, 3.3, 3.9), 5, 3, 2, 0, 0.445, 3.2),
    "frontier": frontier(30),
    "risk": RiskDisplay(RiskCurve.from_class_sizes([5, 8, 30]), RiskCurve.from_class_sizes([1, 1, 41]), 5),
    "class sizes": ClassSizeDisplay.from_class_sizes([5, 8, 30], [1, 1, 41], 5),
    "ROC": RocDisplay.from_curves(ROC, ROC, classifier="naive Bayes"),
}


@pytest.fixture(params=DISPLAYS, name="display")
def fixture_display(request):
    return DISPLAYS[request.param]


def boxes_of(texts, figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    return [text.get_window_extent(renderer) for text in texts if text.get_text() and text.get_visible()]


def overlap(one, other, slack=0.5):
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    return across > slack and min(one.y1, other.y1) - max(one.y0, other.y0) > slack


@pytest.mark.slow
def test_the_same_numbers_give_the_same_svg_with_a_title(display):
    first = rendered(display, "svg")

    assert rendered(display, "svg") == first
    assert ElementTree.fromstring(first).find("{http://www.w3.org/2000/svg}title").text == display.title
    assert b"<image" not in first
    assert len(first) < 200_000
    assert display._repr_svg_().encode() == first


@pytest.mark.slow
def test_given_axes_are_used_and_remembered(display):
    axes = Figure(figsize=(6, 4)).add_subplot()

    assert display.plot(axes) is axes
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert display.plot() is not axes
    assert display.plot().figure.canvas.manager is None


def test_a_display_is_hashable_data_and_frozen(display):
    assert hash(display) == hash(display)
    with pytest.raises(AttributeError):
        display.title = "other"


@pytest.mark.slow
@pytest.mark.parametrize("make", [gains, levels])
@pytest.mark.parametrize("n_columns", [1, 12, 40, 200])
@pytest.mark.parametrize("is_given", [True, False])
def test_names_of_bars_do_not_overlap_however_many_there_are(make, n_columns, is_given):
    axes = make(n_columns).plot(Figure(figsize=(6, 4)).add_subplot() if is_given else None)

    axes.figure.draw_without_rendering()  # places everything; no pixel is looked at
    labels = axes.get_yticklabels()
    boxes = boxes_of(labels, axes.figure)
    assert 1 <= len(boxes) <= n_columns
    assert (n_columns <= len(boxes)) or "are shown" in axes.texts[-1].get_text()
    assert all(len(label.get_text()) <= LONGEST_NAME for label in labels)
    for one, other in itertools.pairwise(boxes):
        assert not overlap(one, other)
    if not is_given:
        assert n_columns > MOST_ROWS or len(boxes) == n_columns
        assert all(box.x0 >= 0 for box in boxes)


@pytest.mark.slow
@pytest.mark.parametrize("n_nodes", [1, 5, 20, 60, 61, 400])
@pytest.mark.parametrize("size", [None, (6, 4), (3, 2)])
def test_boxes_of_a_tree_do_not_overlap_and_hold_their_text(n_nodes, size):
    axes = tree(n_nodes).plot(None if size is None else Figure(figsize=size).add_subplot())

    axes.figure.draw_without_rendering()  # places everything; no pixel is looked at
    boxes = [patch.get_window_extent() for patch in axes.patches]
    texts = boxes_of(axes.texts[:-1], axes.figure)
    assert len(boxes) == len(texts)
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    for box, text in zip(boxes, texts, strict=True):
        slack = 2.0
        assert box.x0 - slack <= text.x0 <= text.x1 <= box.x1 + slack
        assert box.y0 - slack <= text.y0 <= text.y1 <= box.y1 + slack


def test_a_long_name_keeps_its_beginning_and_its_end():
    assert shortened("abcdefghijkl", 12) == "abcdefghijkl"
    assert shortened("abcdefghijklm", 12) == "abcdefg…jklm"
    assert shortened("a\nb", 12) == "a b"


def test_a_note_starts_with_words():
    for make in (gains, levels):
        axes = make(40).plot(Figure(figsize=(6, 4)).add_subplot())
        assert axes.texts[-1].get_text()[0].isalnum()
