"""What stands in the axes is what the display holds, wherever the points lie."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from sfumato.displays.base import new_axes
from sfumato.displays.breach_plane import BreachPlaneDisplay, has_candidates
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.manifest import Manifest, in_three_digits
from sfumato.mechanisms.breach.search import AcceptanceRule, CandidateSearch
from sfumato.mechanisms.breach.selector import BreachAwareSelector
from sfumato.mechanisms.breach.subset_evaluation import Candidate
from sfumato.schema import Kind, Role
from sizes import examples
from unit.audit.audit_oracles import table_of
from unit.displays.breach_planes import BREACH, PERFORMANCE, TWO, entry, is_beaten, manifest_of, pima_plane, plane_of


@st.composite
def planes(draw, max_sets=30):
    n_sets = draw(st.integers(1, max_sets))
    performance = draw(st.lists(st.integers(600, 800).map(lambda n: n / 1000), min_size=n_sets, max_size=n_sets))
    breach = draw(st.lists(st.integers(-50, 50).map(lambda n: n / 10), min_size=n_sets, max_size=n_sets))
    sizes = draw(st.lists(st.integers(1, 40), min_size=n_sets, max_size=n_sets))
    return plane_of(
        performance,
        breach,
        sizes,
        baseline=draw(st.integers(600, 800)) / 1000,
        max_breach_increase=draw(st.none() | st.integers(-300, 300).map(lambda n: n / 10)),
        chosen=draw(st.none() | st.integers(0, n_sets - 1)),
        floor=draw(st.none() | st.integers(-300, 0).map(lambda n: n / 10)),
    )


def points(ax, label):
    """Points of the scatter with a label, or of the one whose label is hidden."""
    (found,) = [collection for collection in ax.collections if collection.get_label().lstrip("_") == label]
    return [tuple(point) for point in np.asarray(found.get_offsets()).tolist()]


def line(ax, label):
    (found,) = [one for one in ax.lines if str(one.get_label()).lstrip("_").startswith(label)]
    return found


def numbers(ax):
    """Texts beside points; the names of regions and the note stand at fractions of the axes."""
    return [text for text in ax.texts if isinstance(text, Annotation) and text.xycoords == "data"]


def region_of(performance, breach, baseline):
    if breach > 0:
        return "II" if performance >= baseline else "I"
    return "IV" if performance >= baseline else "III"


def check_every_set_is_drawn_once_and_the_front_and_the_choice_are_marked(plane, ax):
    both = list(zip(plane.performance, plane.breach_increase, strict=True))
    front = [point for point, on_front in zip(both, plane.on_front, strict=True) if on_front]
    assert points(ax, "unbeaten in performance, PBI and size") == front
    assert sorted(points(ax, "other set") + front) == sorted(both)
    assert points(ax, "all columns (the baseline)") == [(plane.baseline_performance, 0.0)]
    chosen = [c for c in ax.collections if c.get_label() == "the chosen set"]
    assert len(chosen) == (plane.chosen is not None)
    if chosen:
        assert points(ax, "the chosen set") == [both[plane.chosen]]


def check_every_set_is_in_view_and_in_the_tint_of_its_region(plane, ax):
    tinted = {patch.get_label().removeprefix("_region "): patch.get_bbox() for patch in ax.patches}
    assert sorted(tinted) == ["I", "II", "III", "IV"]
    for x, y in zip(plane.performance, plane.breach_increase, strict=True):
        box = tinted[region_of(x, y, plane.baseline_performance)]
        assert box.x0 <= x <= box.x1
        assert box.y0 <= y <= box.y1
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert (tinted["I"].x0, tinted["I"].y1, tinted["IV"].x1, tinted["IV"].y0) == (left, top, right, bottom)
    for box in tinted.values():
        assert box.width > 0.15 * (right - left)
        assert box.height > 0.1 * (top - bottom)


def check_the_front_line_is_the_least_breach_at_every_performance(plane, ax):
    drawn = line(ax, "least PBI")
    x, y = (np.asarray(values, dtype=float).tolist() for values in drawn.get_data())
    both = list(zip(plane.performance, plane.breach_increase, strict=True))
    lost = [-value for value in plane.performance]
    unbeaten = {both[place] for place in range(len(both)) if not is_beaten(place, lost, plane.breach_increase)}
    assert drawn.get_drawstyle() == "steps-pre"
    assert list(zip(x, y, strict=True)) == sorted(unbeaten)
    for before, after, height in zip(x, x[1:], y[1:], strict=False):
        between = (before + after) / 2
        assert height == min(breach for performance, breach in both if performance >= between)


def check_lines_stand_where_they_belong_and_one_out_of_view_says_so(plane, ax):
    assert set(line(ax, "baseline performance").get_xdata()) == {plane.baseline_performance}
    assert set(line(ax, "baseline breach").get_ydata()) == {0.0}
    for height, label in ((plane.max_breach_increase, "largest PBI allowed"), (plane.floor, "PBI of mere guessing")):
        drawn = [one for one in ax.lines if str(one.get_label()).startswith(label)]
        assert len(drawn) == (height is not None)
        if drawn:
            assert set(drawn[0].get_ydata()) == {height}
            bottom, top = ax.get_ylim()
            assert ("out of view" in drawn[0].get_label()) == (not bottom <= height <= top)


@pytest.mark.slow
@examples(20)
@given(planes())
def test_what_is_drawn_is_what_the_plane_holds(plane):
    """One drawing for all four: it takes the time."""
    ax = plane.plot()

    check_every_set_is_drawn_once_and_the_front_and_the_choice_are_marked(plane, ax)
    check_every_set_is_in_view_and_in_the_tint_of_its_region(plane, ax)
    check_the_front_line_is_the_least_breach_at_every_performance(plane, ax)
    check_lines_stand_where_they_belong_and_one_out_of_view_says_so(plane, ax)


def overlap(one, other, slack=1.0):
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    return across > slack and min(one.y1, other.y1) - max(one.y0, other.y0) > slack


@pytest.mark.slow
@examples(20)
@given(planes(max_sets=60))
def test_labels_lie_on_no_other_label_and_inside_the_axes(plane):
    plane = dataclasses.replace(plane, labels=("age, sex, postcode",) * len(plane.performance))
    ax = plane.plot()
    renderer = FigureCanvasAgg(ax.figure).get_renderer()

    note = ax.texts[-1]
    for text in ax.texts:
        text.update_positions(renderer)
    boxes = [Text.get_window_extent(text, renderer) for text in ax.texts if text is not note]
    for one, other in itertools.combinations(boxes, 2):
        assert not overlap(one, other)
    for box in boxes:
        assert ax.bbox.x0 - 1 <= box.x0 <= box.x1 <= ax.bbox.x1 + 1
        assert ax.bbox.y0 - 1 <= box.y0 <= box.y1 <= ax.bbox.y1 + 1
    for x, y in ax.transData.transform(list(zip(plane.performance, plane.breach_increase, strict=True))):
        assert not any(box.x0 + 1 < x < box.x1 - 1 and box.y0 + 1 < y < box.y1 - 1 for box in boxes)


def test_the_papers_candidates_are_numbered_by_their_columns():
    texts = [text.get_text() for text in numbers(pima_plane(labels=("plas",) * 14).plot())]

    assert sorted(texts) == sorted(["8", "7", "6", "2, 5", "3, 4", "1, 2", "3", "6", "4, 5", "7", "chosen:\nplas"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "n_columns", "shown"),
    [
        ("plas", 1, "chosen:\nplas"),
        ("", 1, "chosen: 1 column"),
        (", ".join(f"column_{place}" for place in range(40)), 40, "chosen: 40 columns"),
        ("x" * 300, 2, "chosen: 2 columns"),
        ("$a$b_$, {c", 2, "chosen:\n$a$b_$, {c"),
    ],
)
def test_the_choice_is_named_if_its_columns_fit(label, n_columns, shown):
    plane = plane_of([0.7, 0.72], [0.0, -1.0], [50, n_columns], chosen=1, labels=("all", label))

    ax = plane.plot()
    FigureCanvasAgg(ax.figure).draw()

    assert shown in [text.get_text() for text in numbers(ax)]


def test_one_set_and_many_at_one_place_have_one_number():
    alone = plane_of([0.75], [0.0], [8]).plot()
    together = plane_of([0.75] * 12, [0.0] * 12, range(12, 0, -1)).plot()

    assert [text.get_text() for text in numbers(alone)] == ["8"]
    assert [text.get_text() for text in numbers(together)] == ["1–12 (12 sets)"]


def test_in_a_crowd_only_the_front_is_numbered():
    rng = np.random.default_rng(0)
    crowd = plane_of(rng.normal(0.7, 0.02, 500), rng.normal(0, 2, 500), rng.integers(1, 40, 500).tolist())

    ax = crowd.plot()

    shown = {text.xy for text in numbers(ax)}
    both = zip(crowd.performance, crowd.breach_increase, strict=True)
    assert shown
    assert shown <= {point for point, on_front in zip(both, crowd.on_front, strict=True) if on_front}
    assert "filled point" in ax.texts[-1].get_text()


def test_given_axes_are_used_and_remembered():
    axes = Figure().add_subplot()
    plane = pima_plane()

    assert plane.plot(axes) is axes
    assert plane.ax_ is axes
    assert plane.figure_ is axes.figure
    assert plane.plot() is not axes
    assert plane == pima_plane()


def test_new_axes_belong_to_no_window():
    assert new_axes().figure.canvas.manager is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"performance": ()}, "the lists"),
        ({"n_columns": (1,)}, "the lists"),
        ({"labels": ("a",)}, "the lists"),
        ({"breach_increase": (float("nan"), *BREACH[1:])}, "performance and breach"),
        ({"performance": (1e300, *PERFORMANCE[1:])}, "performance and breach"),
        ({"max_breach_increase": float("nan")}, "max_breach_increase"),
        ({"floor": float("inf")}, "floor"),
        ({"chosen": 14}, "chosen"),
        ({"chosen": -1}, "chosen"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        dataclasses.replace(pima_plane(), **changes)


def candidate(columns, performance, breach):
    return Candidate(columns, (performance,) * 3, performance, 1.0, breach)


def test_a_search_is_shown_with_its_baseline_first():
    baseline, good = candidate((0, 1, 2), 0.7, 0.0), candidate((1,), 0.72, -2.0)
    bad = candidate((0, 1), 0.69, -1.0)
    search = CandidateSearch(baseline, (bad, good), (), AcceptanceRule(-0.5))

    plane = BreachPlaneDisplay.from_search(search, ["a", "b", "c\n"])

    assert plane == BreachPlaneDisplay(
        (0.7, 0.69, 0.72), (0.0, -1.0, -2.0), (3, 2, 1), (False, False, True), 0.7, -0.5, 2, ("a, b, c ", "a, b", "b")
    )
    assert BreachPlaneDisplay.from_search(search, chosen=bad).chosen == 1
    assert BreachPlaneDisplay.from_search(search).labels == ()


def test_a_search_without_a_safe_set_has_no_choice():
    search = CandidateSearch(candidate((0,), 0.7, 0.0), (), (), AcceptanceRule(-0.5))

    assert BreachPlaneDisplay.from_search(search).chosen is None


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    y, secret = rng.integers(2, size=200), rng.integers(2, size=200)
    noise = rng.normal(size=(3, 200)) / 3
    return pd.DataFrame({"telling": secret + noise[0], "useful": y + noise[1], "noise": noise[2], "secret": secret}), y


def test_a_selector_shows_its_search_under_the_names_of_its_columns(people):
    X, y = people
    selector = BreachAwareSelector(sensitive="secret", n_folds=3).fit(X, y)

    plane = BreachPlaneDisplay.from_selector(selector, majority_fraction=0.5)

    assert plane.labels[0] == "telling, useful, noise"
    assert plane.labels[plane.chosen] == ", ".join(selector.get_feature_names_out())
    assert plane.performance[plane.chosen] == selector.chosen_.performance
    assert plane.floor == pytest.approx(100 * (0.5 / selector.breach_.attack_with_all - 1))
    assert plane.performance_name == "accuracy"
    assert BreachPlaneDisplay.from_selector(selector).floor is None


def test_an_array_without_names_counts_its_columns(people):
    X, y = people
    selector = BreachAwareSelector(n_folds=3, metric="auc").fit(X[["telling", "useful"]].to_numpy(), y, X["secret"])

    plane = BreachPlaneDisplay.from_selector(selector, majority_fraction=0.5)

    assert plane.labels[0] == "x0, x1"
    assert plane.floor is None


def rows(plane):
    lists = (plane.performance, plane.breach_increase, plane.n_columns, plane.on_front, plane.labels)
    return list(zip(*lists, strict=True))


def test_a_release_and_its_manifest_on_disk_show_the_same(people):
    X, y = people
    columns = {name: X[name].round(2).tolist() for name in ("telling", "useful", "noise")}
    columns |= {"secret": X["secret"].map({0: "no", 1: "yes"}).tolist(), "y": [f"c{value}" for value in y]}
    kinds = dict.fromkeys(("telling", "useful", "noise"), Kind.NUMERIC)
    selector = BreachAwareSelector(n_folds=3)
    manifest = selector.release(table_of(columns, {"secret": Role.SENSITIVE, "y": Role.TARGET}, kinds)).manifest

    read = BreachPlaneDisplay.from_manifest(Manifest.from_json(manifest.to_json()))

    share = manifest.evidence["risk"]["share_of_the_most_frequent_value"]
    direct = BreachPlaneDisplay.from_selector(selector, majority_fraction=share)
    assert sorted(rows(read)) == sorted(tuple(in_three_digits(row)) for row in rows(direct))
    assert read.labels[read.chosen] == direct.labels[direct.chosen]
    for field in ("baseline_performance", "max_breach_increase", "performance_name", "n_left_out"):
        assert getattr(read, field) == in_three_digits(getattr(direct, field))
    attack_with_all = in_three_digits(float(selector.breach_.attack_with_all))
    assert read.floor == pytest.approx(100 * (share / attack_with_all - 1))


def test_a_manifest_shows_what_it_lists():
    plane = BreachPlaneDisplay.from_manifest(manifest_of(TWO, n_candidates=9))

    assert plane == BreachPlaneDisplay(
        (0.75, 0.76),
        (0.0, -2.0),
        (2, 1),
        (False, True),
        0.75,
        -0.5,
        1,
        ("age, sex", "sex"),
        100 * (0.6 / 0.8 - 1),
        "accuracy",
        8,
    )
    assert "8 more left out" in plane.plot().texts[-1].get_text()


def test_the_share_of_the_most_frequent_value_is_no_floor_for_other_measures():
    plane = BreachPlaneDisplay.from_manifest(manifest_of(TWO, metric="auc"))

    assert plane.floor is None
    assert plane.performance_name == "area under the ROC curve"


@pytest.mark.parametrize(
    "entries",
    [
        [3],
        "text",
        {"a": 1},
        [entry(["a"], None, 0.0)],
        [entry(["a"], "x", 0.0)],
        [entry(["a"], float("inf"), 0.0)],
        [entry([1], 0.5, 0.0)],
        [{"columns": ["a"]}],
        [entry(["a"], 0.5, 0.0, n_columns=float("inf"))],
    ],
)
def test_a_list_that_is_not_ours_is_refused(entries):
    manifest = manifest_of(TWO)
    manifest.evidence["choice"]["candidates"] = entries

    assert has_candidates(manifest)
    with pytest.raises(ManifestError, match="list of candidates"):
        BreachPlaneDisplay.from_manifest(manifest)


@pytest.mark.parametrize("evidence", [{}, {"choice": {}}, {"choice": {"candidates": []}}])
def test_a_manifest_without_candidates_cannot_be_drawn(evidence):
    assert not has_candidates(dataclasses.replace(manifest_of(TWO), evidence=evidence))
    assert has_candidates(manifest_of(TWO))
