"""Labels find free places, and none where there is none."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sfumato.displays.base import HEIGHT, WIDTH, new_axes
from sfumato.displays.drawing import FreePlaces, in_points, size_in_points, text_size
from sizes import examples

LENGTHS = st.floats(1, 40)
PLACES = st.tuples(st.floats(0, 200), st.floats(0, 100))


@given(st.lists(st.tuples(PLACES, LENGTHS, LENGTHS), max_size=25))
def test_boxes_that_were_placed_share_no_room_and_stay_inside(wanted):
    free = FreePlaces(200, 100)
    placed = []
    for (x, y), width, height in wanted:
        shift = free.place((x, y), (width, height), (2.0, 5.0))
        if shift is not None:
            centre = (x + shift[0], y + shift[1])
            placed.append(
                (centre[0] - width / 2, centre[1] - height / 2, centre[0] + width / 2, centre[1] + height / 2)
            )

    for left, bottom, right, top in placed:
        assert -1e-9 <= left < right <= 200 + 1e-9
        assert -1e-9 <= bottom < top <= 100 + 1e-9
    for one, other in itertools.combinations(placed, 2):
        across = min(one[2], other[2]) - max(one[0], other[0])
        up = min(one[3], other[3]) - max(one[1], other[1])
        assert min(across, up) <= 1e-9


def test_the_first_label_stands_beside_its_point_and_a_full_page_has_no_place():
    free = FreePlaces(100, 100)

    assert free.place((50, 50), (20, 10), (3.0,)) == (13, 8)
    free.take((0, 0, 100, 100))
    assert free.place((50, 50), (20, 10), (3.0, 30.0)) is None


@examples(20)
@given(st.text("abcdefgh $_\n0123456789", min_size=1, max_size=30))
def test_a_text_is_measured_at_least_as_large_as_it_is_drawn(text):
    ax = new_axes()
    drawn = ax.annotate(text, (0.5, 0.5), fontsize=8, parse_math=False)

    box = drawn.get_window_extent(FigureCanvasAgg(ax.figure).get_renderer())
    scale = 72 / ax.figure.dpi
    width, height = text_size(text, 8)
    assert width >= scale * box.width - 2
    assert height >= scale * box.height - 2


def test_data_are_placed_in_points_of_print():
    ax = new_axes(left=0.1, right=0.9, bottom=0.2, top=0.8)

    width, height = size_in_points(ax)
    assert (round(width, 6), round(height, 6)) == (round(0.8 * WIDTH * 72, 6), round(0.6 * HEIGHT * 72, 6))
    assert in_points(ax, [0, 1], [0, 0.5]).round(6).tolist() == [[0, 0], [round(width, 6), round(height / 2, 6)]]
