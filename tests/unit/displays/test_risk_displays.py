"""Risk curves, class sizes and ROC curves: counted by hand, and drawn as counted."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attack.risk import risk_of
from sfumato.datasets.admissions import admissions
from sfumato.displays.class_sizes import ClassSizeDisplay
from sfumato.displays.risk import RiskCurve, RiskDisplay
from sfumato.displays.roc import RocDisplay, RocLine
from sfumato.errors import InvalidParameterError
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.schema import Role
from sizes import examples

RANGES = ((1, 1), (2, 4), (5, 9), (10, 19), (20, 49), (50, 10**9))

sizes = st.lists(st.integers(1, 120), min_size=1, max_size=25)


def line(ax, label):
    (found,) = [one for one in ax.lines if str(one.get_label()).startswith(label)]
    return found


@examples(25)
@given(sizes, st.integers(1, 150))
def test_a_curve_counts_the_people_in_classes_that_are_small_enough(counts, one_in):
    curve = RiskCurve.from_class_sizes(counts)

    people = [1 / count for count in counts for _ in range(count)]
    assert curve.n_people == len(people)
    assert list(curve.risks) == sorted(set(people))
    expected = sum(risk >= 1 / one_in for risk in people) / len(people)
    at_least = [share for risk, share in zip(curve.risks, curve.shares, strict=True) if risk >= 1 / one_in]
    assert max(at_least, default=0.0) == pytest.approx(expected)


@pytest.mark.slow
@examples(20)
@given(sizes, st.none() | sizes, st.none() | st.integers(2, 200))
def test_steps_of_a_risk_curve_are_its_numbers(after, before, k):
    before_too = None if before is None else RiskCurve.from_class_sizes(before)
    display = RiskDisplay(RiskCurve.from_class_sizes(after), before_too, k)

    ax = display.plot()

    curves = {"after": after} | ({} if before is None else {"before": before})
    assert len([one for one in ax.lines if not str(one.get_label()).startswith("_")]) == len(curves) + (k is not None)
    for label, counts in curves.items():
        drawn = line(ax, f"{label}: {sum(counts):,} people")
        x, y = (np.asarray(part, dtype=float) for part in drawn.get_data())
        assert drawn.get_drawstyle() == "steps-pre"
        people = np.array([1 / count for count in counts for _ in range(count)])
        for risk, share in zip(x[1:-1], y[1:-1], strict=True):
            assert share == pytest.approx(100 * (people >= risk).mean())
        assert (x[-1], y[-1]) == (people.max(), 0)
        assert ax.get_xlim()[0] == x[0] < people.min()
        assert y[0] == 100
    if k is not None:
        assert set(line(ax, f"k = {k}").get_xdata()) == {1 / k}


def test_risks_are_named_as_one_in_so_many():
    ax = RiskDisplay(RiskCurve.from_class_sizes([2, 50])).plot()

    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["1", "1/2", "1/5", "1/10", "1/20", "1/50"]
    assert "highest risk 1/2" in line(ax, "after").get_label()
    huge = RiskDisplay(RiskCurve.from_class_sizes([10**6])).plot()
    assert len(huge.get_xticklabels()) <= 10


@pytest.mark.slow
@examples(25)
@given(sizes, st.none() | sizes, st.none() | st.integers(1, 200))
def test_bars_of_class_sizes_are_shares_of_the_rows(after, before, k):
    display = ClassSizeDisplay.from_class_sizes(after, before, k)

    ax = display.plot()

    series = [after] if before is None else [before, after]
    assert len(ax.containers) == len(series)
    for bars, counts in zip(ax.containers, series, strict=True):
        rows = [count for count in counts for _ in range(count)]
        expected = [100 * sum(low <= size <= high for size in rows) / len(rows) for low, high in RANGES]
        assert [bar.get_height() for bar in bars] == pytest.approx(expected)
        assert f"({len(rows):,} rows)" in bars.get_label()
    if k is not None:
        (x, _) = line(ax, f"k = {k}").get_xdata()
        for place, (low, high) in enumerate(RANGES):
            assert high >= k or x >= place + 0.5 - 1e-9
            assert low < k or x <= place - 0.5 + 1e-9
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["1", "2–4", "5–9", "10–19", "20–49", "50+"]


def test_only_nothing_is_0_and_only_all_is_100():
    ax = ClassSizeDisplay((1, 0, 0, 0, 0, 99_999)).plot()

    shown = [text.get_text() for text in ax.texts[:6]]
    assert shown == ["<.1", "0", "0", "0", "0", ">99.9"]
    assert [text.get_text() for text in ClassSizeDisplay((0, 0, 7, 0, 0, 0)).plot().texts[:6]][2] == "100"


def test_a_release_without_rows_has_empty_bars():
    ax = ClassSizeDisplay((0,) * 6, (3, 0, 0, 0, 0, 0)).plot()

    assert [bar.get_height() for bar in ax.containers[1]] == [0] * 6


def test_tables_and_the_risk_of_them_give_the_same_picture():
    table = admissions(n_rows=200).keep(["age", "sex", "insurance", "readmitted"])
    release = Mondrian(k=4).release(table)

    shown = ClassSizeDisplay.from_tables(table, release.table, release.manifest, 4)

    parts = [
        risk_of(table, released, papers)["class_sizes"]
        for released, papers in ((release.table, release.manifest), (table, None))
    ]
    assert shown == ClassSizeDisplay.from_distributions(*parts, 4)
    assert sum(shown.after) == release.table.n_rows
    assert shown.after[0] == 0
    assert shown.before[0] > 0
    columns = table.schema.names(Role.QUASI_IDENTIFIER)
    counts = np.unique(release.table.codes(columns), axis=0, return_counts=True)[1]
    assert RiskDisplay.from_tables(table, release.table, release.manifest).after == RiskCurve.from_class_sizes(counts)


@pytest.mark.parametrize("kind", [ClassSizeDisplay, RiskDisplay])
def test_rows_that_were_drawn_anew_have_no_classes_of_people(kind):
    table = admissions(n_rows=200).keep(["age", "sex", "insurance", "readmitted"])
    manifest = Mondrian(k=4).release(table).manifest
    synthetic = dataclasses.replace(
        manifest,
        perturbation={"kind": "synthetic", "threshold": 1, "budget": []},
        recodings=(),
    )

    with pytest.raises(InvalidParameterError, match="its rows are synthetic"):
        kind.from_tables(table, table, synthetic)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RiskCurve.from_class_sizes([]),
        lambda: RiskCurve.from_class_sizes([0, 2]),
        lambda: RiskCurve((0.5, 0.2), (1.0, 0.5), 3),
        lambda: RiskCurve((0.2, 0.5), (0.5, 1.0), 3),
        lambda: RiskCurve((0.2, 1.5), (1.0, 0.5), 3),
        lambda: RiskDisplay(RiskCurve.from_class_sizes([3]), k=0),
        lambda: ClassSizeDisplay((1, 2)),
        lambda: ClassSizeDisplay((-1, 0, 0, 0, 0, 0)),
        lambda: ClassSizeDisplay((1,) * 6, k=0),
        lambda: ClassSizeDisplay((1, 1), ranges=((5, 9), (1, None))),
        lambda: ClassSizeDisplay.from_distributions({"not_applicable": "synthetic"}),
        lambda: ClassSizeDisplay.from_distributions([{"from": 1, "to": 1}]),
        lambda: ClassSizeDisplay.from_distributions(
            [{"from": 1, "to": None, "n_rows": 2}], [{"from": 1, "to": 2, "n_rows": 2}]
        ),
        lambda: RocLine((), ()),
        lambda: RocLine((0.0, 1.0), (0.0,)),
        lambda: RocLine((0.5, 0.0), (0.0, 1.0)),
        lambda: RocLine((0.0, 1.0), (0.0, 1.5)),
        lambda: RocLine((0.0, 1.0), (0.0, 1.0), auc=float("nan")),
        lambda: RocDisplay.from_curves({"false_positive": [0, 1]}),
        lambda: RocDisplay.from_curves({"false_positive": 0, "true_positive": 1}),
    ],
)
def test_what_cannot_be_drawn_is_refused(make):
    with pytest.raises(InvalidParameterError):
        make()


@st.composite
def curves(draw):
    n_points = draw(st.integers(0, 30))
    rates = st.lists(st.integers(0, 100).map(lambda n: n / 100), min_size=n_points, max_size=n_points)
    return {"false_positive": [0.0, *sorted(draw(rates)), 1.0], "true_positive": [0.0, *sorted(draw(rates)), 1.0]}


@pytest.mark.slow
@examples(20)
@given(curves(), st.none() | curves(), st.none() | st.just(0.77))
def test_curves_are_drawn_with_their_area(after, before, measured):
    display = RocDisplay.from_curves(after, before, auc_after=measured)

    ax = display.plot()

    for label, curve in (("after", after), ("before", before)):
        if curve is None:
            assert not [one for one in ax.lines if str(one.get_label()).startswith(label)]
            continue
        drawn = line(ax, label)
        assert list(drawn.get_xdata()) == curve["false_positive"]
        assert list(drawn.get_ydata()) == curve["true_positive"]
        area = np.trapezoid(curve["true_positive"], curve["false_positive"])
        shown = measured if label == "after" and measured is not None else area
        assert float(drawn.get_label().split("AUC ")[1]) == pytest.approx(shown, abs=6e-4)
    assert list(line(ax, "guessing").get_ydata()) == [0, 1]
    assert len(ax.lines) == 2 + (before is not None)
