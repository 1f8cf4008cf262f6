"""Utility and Risk: what the files say is what the pages show, whatever the columns are called and the URL asks."""

import csv
import json
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.web.column_store import STORE_NAME, ColumnStore, write_columns
from sfumato.web.jobs.process import TaskError
from web.release_pages import JOB, NAMES, Pages, make, write_project
from web.standing_in import store_job


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Pages over a release by mondrian, with trained classifiers."""
    folder = tmp_path_factory.mktemp("measured")
    project = write_project(folder, "mondrian", "k = 5", n_rows=120)
    make(project, folder / "server" / "jobs" / JOB, quick=False)
    return Pages(folder / "server", project)


@pytest.fixture(scope="module")
def sliced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sliced")
    project = write_project(folder, "slicing", "k = 4", n_rows=80)
    make(project, folder / "server" / "jobs" / JOB)
    return Pages(folder / "server", project)


def result_of(pages):
    return pages.page.job("release").result()


def test_scores_before_and_after_stand_in_one_row(served):
    answer = served.get("/utility")
    assert answer.status == 200
    utility = result_of(served)["summary"]["utility"]
    for entry in utility["classifiers"]:
        figures = [f"{entry[when]['auc']['mean']:.3f}" for when in ("before", "after")]
        row = re.search(rf"<tr[^>]*>\s*<th scope=\"row\">{re.escape(entry['title'])}.*?</tr>", answer.text, re.S)[0]
        assert re.findall(r"<td class=\"num(?: after)?\">([\d.]+)", row)[:2] == figures
    guessing = f"{utility['majority_accuracy']:.3f}"
    assert f"Guessing 0.500 {guessing}" in answer.shown


def test_roc_chart_has_the_curves_of_the_report(served):
    spec = json.loads(served.get("/utility/roc.json").body)
    curves = result_of(served)["summary"]["utility"]["roc"]
    assert len(spec["data"]["values"]) == sum(len(curve["false_positive"]) for curve in curves.values())
    assert "/utility/roc.json" in served.get("/utility").text


def test_no_chart_where_utility_was_not_measured(sliced):
    assert sliced.get("/utility/roc.json").status == 404
    page = sliced.get("/utility")
    assert "roc.json" not in page.text
    assert "Not measured: skipped on request" in page.shown


def test_original_and_released_cells_stand_side_by_side(served):
    folder = Path(served.page.state.project).parent
    with (folder / "stays.csv").open(newline="") as file:
        original = list(csv.DictReader(file))
    with (served.page.job("release").folder / "release.csv").open(newline="") as file:
        released = list(csv.DictReader(file))
    number, shown = 1 + NAMES.index("age"), []
    for page in (1, 2, 3):
        text = served.get(f"/utility?show={number}&page={page}").text
        cells = re.findall(r'<td class="of-original">(.*?)</td>\s*<td class="of-release[^"]*">(.*?)</td>', text, re.S)
        shown += [tuple(cell.strip() for cell in pair) for pair in cells]
    assert [before for before, _ in shown] == [row["age"] for row in original]
    assert sorted(after for _, after in shown) == sorted(row["age"] for row in released)  # the file's rows are sorted
    for before, after in shown:
        low, _, high = after.strip("[]").partition(", ")
        assert not after.startswith("[") or float(low) <= float(before) <= float(high)
    assert "Page 3 of 3" in served.get(f"/utility?show={number}&page=9999").shown


def test_dropped_columns_are_marked(served):
    page = served.get(f"/utility?show={1 + NAMES.index('name')}&column=name")
    assert "name dropped" in page.shown
    assert "This column is not in the release." in page.shown


def test_a_column_is_added_and_taken_away_by_addresses_that_can_be_reloaded(served):
    added = served.get("/utility?show=2,3&add=diabetes&column=age")
    assert added.status == 303
    where = added.headers["location"]
    assert where.endswith("#rows")
    page = served.get(where.partition("#")[0])
    shown = re.findall(r'<th scope="colgroup" colspan="\d">\s*<span class="name">(.*?)</span>', page.text)
    assert shown == ["diabetes", "age", "sex"]
    away = re.search(r'class="away" href="([^"#]*)#rows"[^>]*aria-label="Do not show age"', page.text)[1]
    again = served.get(away.replace("&amp;", "&"))
    shown = re.findall(r'<th scope="colgroup" colspan="\d">\s*<span class="name">(.*?)</span>', again.text)
    assert shown == ["diabetes", "sex"]


def test_what_is_chosen_in_one_part_of_the_page_stays_in_the_other(served):
    page = served.get("/utility?column=sex&show=2,4&page=2")
    hidden = re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', page.text)
    assert hidden == [("show", "2,4"), ("page", "2"), ("column", "sex"), ("show", "2,4")]
    assert 'href="/utility?column=sex&amp;show=2,4&amp;page=3#rows"' in page.text
    assert set(re.findall(r'hx-select="(.*?)"', page.text)) == {"#beside", "unset"}


def test_bars_of_a_kept_column_stand_beside_each_other(served):
    folder = Path(served.page.state.project).parent
    with (folder / "stays.csv").open(newline="") as file:
        counts = Counter(row["readmitted"] for row in csv.DictReader(file))
    page = served.get("/utility?column=readmitted")
    bars = re.search(r'<table class="bars">.*?</table>', page.text, re.S)[0]
    rows = re.findall(
        r'<th scope="row" class="name">(.*?)</th><td class="num">(\d+)</td><td class="num">(\d+)</td>', bars
    )
    assert rows == [(value, str(n), str(n)) for value, n in sorted(counts.items())]
    widest = max(counts.values())
    widths = [float(width) for width in re.findall(r'<rect class="\w+" width="([\d.]+)"', bars)]
    assert widths == [round(100 * n / widest, 2) for _, n in sorted(counts.items()) for _ in range(2)]


def test_ranges_are_laid_over_the_bars_of_the_original_and_never_counted_as_values(served):
    """Of the ages, whole numbers, each range has its rows evenly on the ages that it covers."""
    folder = Path(served.page.state.project).parent
    with (folder / "stays.csv").open(newline="") as file:
        ages = [int(row["age"]) for row in csv.DictReader(file)]
    with (served.page.job("release").folder / "release.csv").open(newline="") as file:
        cells = [row["age"] for row in csv.DictReader(file)]
    page = served.get("/utility?column=age")
    rows = re.findall(r'class="name">(.*?) – (.*?)</th><td class="num">(\d+)</td><td class="num">(\d+)</td>', page.text)
    expected = dict.fromkeys([(int(low), int(high)) for low, high, _, _ in rows], 0.0)
    for cell in cells:
        low, _, high = cell.strip("[]").partition(", ")
        covered = [age for age in sorted(set(ages)) if int(low) <= age <= int(high or low)]
        width = max(covered) - min(covered) + 1
        for first, stop in expected:
            expected[first, stop] += max(0, min(stop, max(covered) + 1) - max(first, min(covered))) / width

    assert len(rows) > 3
    assert [int(n) for _, _, n, _ in rows] == [sum(low <= age < high for age in ages) for low, high in expected]
    assert [int(n) for _, _, _, n in rows] == pytest.approx(list(expected.values()), abs=0.51)
    assert "different value" not in page.shown
    kept = next(c["detail_left"] for c in result_of(served)["summary"]["columns"]["changes"] if c["name"] == "age")
    assert 0 < kept < 1
    assert "of the detail is left" in page.shown


def test_an_unknown_column_is_said_beside_its_field(served):
    page = served.get("/utility?add=nowhere")
    assert page.status == 422
    assert 'aria-describedby="problem-add"' in page.text
    assert 'value="nowhere"' in page.text
    page = served.get("/utility?column=%3Cscript%3E")
    assert page.status == 422
    assert 'aria-describedby="problem-column"' in page.text
    assert "<script>" not in page.text


@pytest.mark.parametrize(
    "query", ["page=-1", "page=x", "page=0", "show=,,,", "show=0", "show=99999999999999999999", "show=1;DROP", "page=²"]
)
def test_odd_addresses_show_a_page(served, query):
    assert served.get(f"/utility?{query}").status == 200


def test_at_most_40_columns_are_shown(served):
    store = ColumnStore(served.page.job("release").folder / STORE_NAME)
    assert len(store) < 40
    everything = ",".join(str(number) for number in range(1, 100))
    shown = re.findall(
        r'<th scope="colgroup" colspan="\d">\s*<span class="name">', served.get(f"/utility?show={everything}").text
    )
    assert len(shown) == len(store)


def test_names_are_suggested_by_what_they_contain(served):
    answer = served.get("/utility/names?column=DIA")
    assert re.findall(r'value="(.*?)"', answer.text) == ["diabetes", "discharge_diagnosis"]
    assert served.get("/utility/names?add=%25").text.strip() == ""


def test_rows_that_do_not_belong_together_are_not_shown_as_if(sliced):
    page = sliced.get("/utility")
    assert "do not belong to rows of the original" in page.shown
    assert 'class="of-release' not in page.text
    assert "in their own order" in page.shown


def test_risk_shows_every_figure_before_and_after(served):
    page = served.get("/risk")
    assert page.status == 200
    risk = result_of(served)["summary"]["risk"]
    assert risk["rows"]
    for row in risk["rows"]:
        assert " ".join(row["what"].split()) in page.shown
    for who in ("marketer", "prosecutor", "journalist"):
        assert who in page.shown
    first = next(row for row in risk["rows"] if "marketer" in row["what"])
    percent = [f"{100 * first[when]:.2f}".rstrip("0").rstrip(".") + " %" for when in ("before", "after")]
    assert f"{first['what']} {percent[0]} {percent[1]}" in page.shown


def test_risk_says_what_is_promised_found_and_not_protected(served):
    shown, summary = served.get("/risk").shown, result_of(served)["summary"]
    for promise in summary["guarantees"]:
        assert promise["found"] in shown
        assert all(gap in shown for gap in promise["not_promised"])
    assert all(" ".join(assumption.split()) in shown for assumption in summary["assumptions"])
    assert all(check in shown for check in summary["audit"]["checks"])
    assert "/pictures/release/class-sizes.svg" in served.get("/risk").text
    assert all(entry["column"] in shown for entry in summary["risk"]["blame"])


def test_columns_under_no_guarantee_are_warned_of_near_the_top(served):
    said = result_of(served)["summary"]["not_promised"]
    assert any("no guarantee covers it: 'discharge_diagnosis'" in sentence for sentence in said)
    for url in ("/risk", "/release"):
        page = served.get(url)
        for sentence in said:
            assert sentence[1:] in page.seen.texts["left-open"]
        sections = re.findall(r'<section[^>]*aria-labelledby="([^"]+)"', page.text[: page.text.index('id="left-open"')])
        # The audit of this release leaves nothing unchecked, so that no exceptions come first.
        assert sections == (["verdict"] if url == "/release" else [])


@pytest.mark.parametrize("url", ["/utility", "/risk", "/release"])
def test_without_a_release_the_pages_say_how_to_get_one(tmp_path, url):
    nothing = Pages(tmp_path / "a", None, job=None).get(url)
    assert (nothing.status, 'href="/open"' in nothing.text) == (200, True)
    opened = Pages(tmp_path / "b", tmp_path / "sfumato.toml", job=None).get(url)
    assert "There is no release yet." in opened.shown
    assert 'class="button primary" href="/goal"' in opened.text


@pytest.mark.parametrize(("status", "words"), [("failed", "was not made"), ("cancelled", "it was cancelled")])
def test_a_release_that_failed_is_not_shown_as_one(tmp_path, status, words):
    error = TaskError("k cannot be met.", hint="take less", exit_code=4, kind="X") if status == "failed" else None
    store_job(tmp_path / "jobs" / JOB, "release.make", status=status, error=error)
    page = Pages(tmp_path, tmp_path / "sfumato.toml").get("/utility")
    assert words in page.shown
    assert ("k cannot be met." in page.shown) == (status == "failed")


def test_changed_settings_and_data_are_noticed(served, tmp_path):
    assert "Made with earlier settings" not in served.get("/utility").shown
    project = Path(served.page.state.project)
    text, other = project.read_text(), tmp_path / "sfumato.toml"
    shutil.copy(project, other)
    try:
        project.write_text(text + "# a remark\n")
        for url in ("/utility", "/risk", "/release"):
            assert "Made with earlier settings. Changed since: project file." in served.get(url).shown
    finally:
        project.write_text(text)
    assert "Made with earlier settings" not in served.get("/risk").shown
    served.page.state.update(project=str(other))
    try:
        assert "Changed since: project file." in served.get("/risk").shown
    finally:
        served.page.state.update(project=str(project))
    data = project.parent / "stays.csv"
    data.write_bytes(data.read_bytes() + b"\n")
    assert "Changed since: data." in served.get("/risk").shown


HOSTILE = [
    "<script>alert(1)</script>",
    "\"quoted\" 'name' & more",
    "{{ 7 * 7 }}",
    "a,b&page=2#x",
    "100%_\\",
    "line\nend",
]


def test_hostile_names_and_cells_stay_text(served, tmp_path):
    folder = tmp_path / "server" / "jobs" / JOB
    shutil.copytree(served.page.job("release").folder, folder)
    (folder / STORE_NAME).unlink()
    facts = json.loads((folder / "result.json").read_text())
    n = facts["rows"]["n_shown"]

    def side(name):
        bars = {"labels": [name, "</td><b>"], "counts": [n - 1, 1], "n_missing": 0, "n_distinct": 2}
        return {"name": name, **bars, "cells": [name] * n}

    columns = [
        {"number": i, "name": name, "role": "other", "change": "kept unchanged", "is_released": True}
        | {"before": side(name), "after": [side(name)]}
        for i, name in enumerate(HOSTILE, start=1)
    ]
    write_columns(folder / STORE_NAME, columns)
    pages = Pages(tmp_path / "server", Path(served.page.state.project))
    for name in HOSTILE:
        where = pages.get("/utility?" + "add=" + "".join(f"%{byte:02x}" for byte in name.encode())).headers["location"]
        page = pages.get(where.partition("#")[0])
        assert page.status == 200
        assert "<script>alert" not in page.text
        assert "</td><b>" not in page.text
        assert " ".join(name.split()) in page.shown


def test_store_finds_columns_by_name_number_and_part(tmp_path):
    names = [f"f{number}" for number in range(1, 3001)]
    records = [{"number": i, "name": name, "is_released": i % 1000 == 0} for i, name in enumerate(names, start=1)]
    write_columns(tmp_path / STORE_NAME, records)
    store = ColumnStore(tmp_path / STORE_NAME)
    assert len(store) == 3000
    assert store.named("f77") == records[76]
    assert store.named("F77") is None
    assert [record["name"] for record in store.numbered([3, 1, 9999])] == ["f3", "f1"]
    assert store.first_numbers(5) == [1, 2, 1000, 2000, 3000]
    assert store.names("00", n=4) == ["f1000", "f2000", "f3000", "f100"]
    assert store.names("_") == []
    assert store.names("f" * 100_000) == []


@given(
    names=st.lists(st.text(st.sampled_from("aAb%_\\é "), min_size=1, max_size=4), unique=True, min_size=1, max_size=8),
    part=st.text(st.sampled_from("aAb%_\\é "), max_size=2),
    n_released=st.integers(0, 8),
)
def test_names_are_found_as_a_plain_search_finds_them(names, part, n_released):
    with tempfile.TemporaryDirectory() as folder:
        records = [{"number": i, "name": name, "is_released": i <= n_released} for i, name in enumerate(names, start=1)]
        write_columns(Path(folder) / STORE_NAME, records)
        found = ColumnStore(Path(folder) / STORE_NAME).names(part)
    lower = str.maketrans("AB", "ab")
    places = [i for i, name in enumerate(names) if part.translate(lower) in name.translate(lower)]
    assert found == [names[i] for i in sorted(places, key=lambda i: (i >= n_released, len(names[i]), i))]
