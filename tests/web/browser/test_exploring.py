"""A comparison of a few mechanisms on a small table, and what is chosen from it."""

from __future__ import annotations

import contextlib
import random
import tomllib
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from web.browser.walking import check_step, follow, go_to_goal, wait_for_end, wait_for_whole

PROJECT = """
[data]
path = "people.csv"
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier", kind = "categorical" }
town = { role = "quasi-identifier", kind = "categorical" }
bought = { role = "target", kind = "categorical" }
[compare]
classifiers = ["naive-bayes"]
[compare.grid.mondrian]
k = [3, 20]
[compare.grid.error-risk-tree]
k = 5
"""
RANK, UTILITY, RISK = 1, 5, 7  # columns of the table
MOVE = """(slider, value) => {
  slider.value = value;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
}"""


def write_people(folder) -> None:
    drawn = random.Random(11)
    lines = ["age,sex,town,bought"]
    for _ in range(240):
        age, town = drawn.randint(18, 90), drawn.choice("ABCD")
        bought = "yes" if drawn.random() < (0.8 if age > 50 else 0.25) else "no"
        lines.append(f"{age},{drawn.choice('fm')},{town},{bought}")
    folder.mkdir()
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "sfumato.toml").write_text(PROJECT, encoding="utf-8")


def asked(folder) -> dict:
    return tomllib.loads((folder / "sfumato.toml").read_text(encoding="utf-8"))["release"]


def cells(tab, column: int) -> list[str]:
    """Texts of a column of the table of releases, group by group."""
    rows = "#explore-table tbody tr:not(.as-it-is):not(.group)"
    return tab.locator(f"{rows} > :nth-child({column})").all_inner_texts()


@contextlib.contextmanager
def renewed(tab) -> Iterator[None]:
    """Wait until the picture is a new one, and drawn."""
    tab.locator("#frontier[data-state=drawn]").evaluate("(picture) => { picture.dataset.old = 'yes'; }")
    yield
    tab.locator("#frontier[data-state=drawn]:not([data-old])").wait_for()


def set_weight(tab, name: str, value: int) -> None:
    """Move a slider as a person does, and wait for what it changes."""
    with renewed(tab):
        tab.get_by_role("slider", name=name).evaluate(MOVE, value)


def figures(tab, column: int) -> list[float]:
    """Numbers of a column, the best rank first."""
    by_rank = sorted(zip(map(int, cells(tab, RANK)), cells(tab, column), strict=True))
    return [float(text.rstrip(" %")) for _, text in by_rank]


@pytest.mark.soak
def test_point_becomes_the_candidate_sliders_rank_anew_and_the_short_list_stays(shared_server, open_tab, tmp_path):
    folder = tmp_path / "work"
    write_people(folder)
    tab = open_tab(shared_server)
    tab.goto(f"{shared_server.origin}/open")
    tab.get_by_label("Path of the data file").fill(str(folder / "sfumato.toml"))
    tab.get_by_role("button", name="Open", exact=True).click()
    wait_for_whole(tab, "#columns-table")
    go_to_goal(tab)
    tab.locator("#promise-k-anonymity").fill("3")
    tab.get_by_role("button", name="Compare mechanisms").click()
    assert wait_for_end(tab, "compare") == "done"
    follow(tab, tab.get_by_role("link", name="See the comparison"))
    check_step(tab)

    marks = tab.locator("#frontier .mark-symbol path[aria-roledescription]")
    candidates = set()
    for number in range(marks.count()):
        with renewed(tab):
            marks.nth(number).click(force=True)
        decide = tab.locator("#choose-selected")
        if decide.count():  # the candidate itself needs no button
            with renewed(tab):
                decide.click()
        expect(tab.locator("tr.chosen")).to_have_count(1)
        release = asked(folder)
        candidates.add((release["mechanism"], release["parameters"]["k"]))
    assert candidates == {("mondrian", 3), ("mondrian", 20), ("error-risk-tree", 5)}

    for name, value in (("Utility", 100), ("Privacy", 0), ("Few columns", 0)):
        set_weight(tab, name, value)
    by_utility = figures(tab, UTILITY)
    assert by_utility == sorted(by_utility, reverse=True)
    for name, value in (("Privacy", 100), ("Utility", 0)):
        set_weight(tab, name, value)
    assert figures(tab, RISK) == sorted(figures(tab, RISK))
    assert figures(tab, UTILITY) != by_utility

    with renewed(tab):
        tab.get_by_role("button", name="on the short list").first.click()
    listed = tab.locator("[aria-labelledby=short-list-title] li")
    expect(listed).to_have_count(1)
    words, order = listed.inner_text(), cells(tab, RISK)
    tab.reload()
    assert (listed.inner_text(), cells(tab, RISK)) == (words, order)
    assert tab.get_by_role("slider", name="Privacy").input_value() == "100"
