"""A release in five lines: counted by hand, with warnings exactly when they should come, and no cell in any line."""

from dataclasses import replace

import pyarrow as pa
import pytest

import sfumato
from sfumato.attack import reidentification
from sfumato.mechanisms.auto import Automatic
from sfumato.report import measured
from sfumato.report.in_short import MOST_NAMED, InShort, Prediction, in_short
from sfumato.report.summarize import summarize
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table
from unit.report.releases import HOSTILE, hostile_table, made, stays

HEADINGS = ["Promised:", "Prediction:", "Lost columns:", "Re-identified:", "Not covered:"]
CANARY = "CANARY-7f3a"


def area(mean, margin=0.01):
    return {"mean": mean, "low": mean - margin, "high": min(mean + margin, 1.0)}


def prediction(before=0.9, after=0.85, accuracy=0.75, margin=0.01):
    return Prediction("trees", "trees", area(before, margin), area(after, margin), 0.8, accuracy, 0.6)


def short(**changes):
    """Make a verdict that nobody has to be warned of."""
    plain = InShort(("k rows look alike",), prediction(), (), 9, 0.1, 0.2, 0.0)
    return replace(plain, **changes)


def people(**more):
    """Make 40 rows whose groups of five, of equal ages, are known."""
    columns = {
        "age": (Role.QUASI_IDENTIFIER, [20 + i // 5 for i in range(40)]),
        "same": (Role.QUASI_IDENTIFIER, ["x"] * 40),
        "ill": (Role.TARGET, ["y" if i < 10 else "yn"[i % 2] for i in range(40)]),
        **more,
    }
    arrays = {name: pa.array(values) for name, (_, values) in columns.items()}
    return Table.from_arrow(pa.table(arrays), Schema.of(Column(name, role) for name, (role, _) in columns.items()))


@pytest.mark.slow
def test_five_lines_that_say_what_is_counted_by_hand():
    table = people(ward=(Role.OTHER, [i % 5 for i in range(40)]))
    found = in_short(sfumato.release(table, Automatic(k=5)), table, quick=True)

    assert [line[:15].strip() for line in found.lines()] == HEADINGS
    assert (found.n_columns, found.lost_columns) == (2, ())  # 'same' told nothing before
    assert found.one_class == 10 / 40
    assert found.unique == 1.0
    assert found.reidentified == pytest.approx(1 / 5)
    assert found.promises[0].startswith("k-anonymity: every row shares its values")
    assert found.promises[0].endswith("(audit found k = 5)")
    assert "not measured: skipped on request" in found.lines()[1]


def test_columns_that_tell_nothing_any_more_are_named():
    table = people(rare=(Role.QUASI_IDENTIFIER, list(range(40))))
    found = in_short(sfumato.release(table, sfumato.Mondrian(k=40), confirmed=["rare"]), table, quick=True)

    assert found.lost_columns == ("age", "rare")
    assert found.lines()[2].endswith("2 of 2 columns were dropped or made constant: 'age', 'rare'")


def test_columns_that_were_left_out_are_lost_and_identifiers_are_not_missed():
    found = in_short(made("greedy-containment"), stays(), quick=True)

    released = {column["name"] for column in made("greedy-containment").manifest.output["columns"]}
    assert "name" not in found.lost_columns
    assert set(found.lost_columns).isdisjoint(released)


def test_many_names_are_cut_and_all_is_on_one_line():
    names = tuple(f"column\n{i}" for i in range(MOST_NAMED + 3))
    lines = short(lost_columns=names, n_columns=50).lines()

    assert all("\n" not in line for line in lines)
    assert lines[2].endswith(" and 3 more")


# ---- warnings


def test_nothing_is_said_of_a_good_release():
    assert short().warnings() == []


@pytest.mark.parametrize(
    ("after", "margin", "is_warned"), [(0.49, 0.005, True), (0.6, 0.1, True), (0.6, 0.2, True), (0.6, 0.09, False)]
)
def test_no_better_than_guessing_is_judged_by_the_interval_of_the_auc(after, margin, is_warned):
    said = short(prediction=prediction(after=after, margin=margin)).warnings()

    assert [sentence.startswith("this release is not shown to predict better") for sentence in said] == [
        True
    ] * is_warned
    assert not any("neither is the original" in sentence for sentence in said)


@pytest.mark.parametrize("accuracy", [0.55, 0.6, 0.65])
def test_an_accuracy_below_the_majority_class_is_no_reason_to_warn_where_the_auc_is_good(accuracy):
    """An AUC of .740 of .728 was printed with a red warning: at its threshold the classifier named one class only."""
    assert short(prediction=prediction(0.728, 0.740, accuracy, margin=0.02)).warnings() == []


def test_an_original_that_does_no_better_either_is_mentioned():
    (sentence,) = short(prediction=prediction(before=0.52, after=0.51, margin=0.03)).warnings()

    assert sentence.endswith("is 0.480 to 0.540, and neither is the original")


def test_a_margin_is_that_of_the_end_that_is_not_cut():
    words = short(prediction=prediction(after=0.95, margin=0.2)).headed()["Prediction"]

    assert words.startswith("AUC 0.950 ± 0.200 (original 0.900)")


def test_what_was_not_measured_is_no_reason_to_warn():
    assert short(prediction="skipped on request").warnings() == []


@pytest.mark.parametrize(("n_lost", "is_warned"), [(3, False), (4, True)])
def test_more_than_a_third_of_the_columns(n_lost, is_warned):
    said = short(lost_columns=tuple("abcd"[:n_lost])).warnings()

    assert said == [f"{n_lost} of 9 columns were dropped or made constant"] * is_warned


@pytest.mark.parametrize(("unique", "is_warned"), [(0.05, False), (0.051, True), (1.0, True)])
def test_more_than_five_percent_unique_in_all_columns_together(unique, is_warned):
    said = short(unique=unique).warnings()

    assert ["unique on all released columns together" in sentence for sentence in said] == [True] * is_warned


@pytest.mark.slow
def test_the_warning_of_uniqueness_is_about_columns_beside_the_quasi_identifiers():
    release = sfumato.release(people(), Automatic(k=5))
    beside = sfumato.release(people(pay=(Role.SENSITIVE, list(range(40)))), Automatic(k=5), confirmed=["pay"])

    constant = "1 of 2 columns has one value in all rows"  # whether it was so before is not known here
    assert in_short(release).warnings() == [constant]
    (sentence,) = in_short(beside).warnings()
    assert sentence.startswith(
        "100 % of rows are unique on all released columns together: an attacker who knows 'ill' and 'pay' of such a "
        "person besides the quasi-identifiers, which alone are covered, finds the row"
    )


# ---- what is not looked at


@pytest.mark.slow
def test_no_line_holds_a_cell():
    cells = [CANARY if i % 3 else "b" for i in range(40)]
    table = people(secret=(Role.SENSITIVE, cells), town=(Role.QUASI_IDENTIFIER, cells), ill=(Role.TARGET, cells))
    found = in_short(sfumato.release(table, Automatic(k=5)), table, quick=True)

    assert CANARY not in " ".join([*found.lines(), *found.warnings(), str(found.to_dict())])


@pytest.mark.slow
def test_names_that_try_to_break_out_stay_on_their_line():
    table = hostile_table()
    found = in_short(sfumato.release(table, sfumato.Mondrian(k=60)), table, quick=True)

    assert found.lost_columns
    assert set(found.lost_columns) <= set(HOSTILE)
    assert all(len(line.splitlines()) == 1 for line in found.lines())


class Untouchable:
    """An original that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"the original was asked for {name}")


@pytest.mark.parametrize("name", ["laplace-dp", "exponential-dp"])
def test_of_a_differentially_private_release_no_original_is_looked_at(name):
    release = made(name)

    found = in_short(release, Untouchable(), Automatic())
    assert found == in_short(release)
    assert "differentially private" in found.headed()["Prediction"]
    assert found.headed()["Re-identified"].startswith("not measured: the released rows were drawn from noisy counts")


@pytest.mark.slow
def test_quick_trains_nothing(monkeypatch):
    def explode(*_, **__):
        raise AssertionError("a classifier was trained")

    monkeypatch.setattr(measured, "evaluate", explode)
    table = people()
    in_short(sfumato.release(table, Automatic(k=5)), table, Automatic(k=5), quick=True)


@pytest.mark.slow
def test_a_table_that_is_too_wide_to_train_on_unasked_is_released_and_the_reason_said(monkeypatch):
    def explode(*_, **__):
        raise AssertionError("a classifier was trained")

    monkeypatch.setattr(measured, "evaluate", explode)
    monkeypatch.setattr(measured, "MOST_LEVELS", 8)
    table = people()
    found = in_short(sfumato.release(table, Automatic(k=5)), table, Automatic(k=5))

    assert found.headed()["Prediction"] == (
        "not measured: training classifiers would take long: the columns have 9 different values in all, "
        "more than 8; a comparison trains them anyway"
    )


@pytest.mark.slow
def test_prediction_is_that_of_the_model_that_is_best_on_the_original(monkeypatch):
    monkeypatch.setattr(measured, "quick_classifiers", lambda _: ("naive-bayes",))
    table = people()
    found = in_short(sfumato.release(table, Automatic(k=5)), table, Automatic(k=5))

    assert found.prediction.classifier == "naive Bayes"
    assert found.prediction.majority == pytest.approx(25 / 40)
    assert found.lines()[1].startswith("Prediction:    AUC ")


@pytest.mark.slow
def test_the_report_of_the_same_release_has_the_same_five_lines(monkeypatch):
    """Measured apart, as by ``sfumato release`` and ``sfumato report``: same classifiers, folds and rows.

    The report measures every classifier after too, the five lines only the one that is best before.
    """
    monkeypatch.setattr(measured, "quick_classifiers", lambda _: ("naive-bayes", "logistic-regression"))
    release = sfumato.release(people(), Automatic(k=5))

    found = in_short(release, people(), Automatic(k=5))
    assert found.to_dict() == summarize(release, people())["verdict"]


@pytest.mark.slow
def test_what_was_measured_is_not_measured_again(monkeypatch):
    table = people()
    release = sfumato.release(table, Automatic(k=5))
    utility = measured.utility_kept(release, table, Automatic(k=5), quick=True)
    risk = measured.risk_section(measured.risk_left(release, table))
    expected = in_short(release, table, quick=True)

    monkeypatch.setattr(reidentification, "reidentification_risk", None)
    assert in_short(release, table, Automatic(k=5), utility=utility, risk=risk) == expected


@pytest.mark.parametrize("ill", [(Role.OTHER, ["y", "n"] * 20), (Role.TARGET, ["y"] * 40)], ids=["none", "one class"])
def test_without_something_to_predict_the_reason_is_said(ill):
    table = people(ill=ill)
    found = in_short(sfumato.release(table, Automatic(k=5)), table, Automatic(k=5))

    assert found.lines()[1].startswith("Prediction:    not measured: ")
    assert (found.one_class is None) == (ill[0] is Role.OTHER)
    assert not found.warnings()
