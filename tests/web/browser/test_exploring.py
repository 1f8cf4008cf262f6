"""A comparison of a few mechanisms on a small table, and what is chosen from it."""

from __future__ import annotations

import random
import tomllib

from playwright.sync_api import expect
from web.browser.walking import check_step, go_to_goal, settled_text, wait_for_end

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


def ranked(tab) -> list[str]:
    """Releases as the table lists them, best first."""
    rows = tab.locator("#explore-table tbody tr")
    return [" ".join(row.locator("th, td").all_inner_texts()[1:3]) for row in rows.all()]


def set_weight(tab, name: str, value: int) -> None:
    """Move a slider as a person does, and wait for the new order."""
    with tab.expect_response("**/explore/rank"):
        tab.get_by_label(name).evaluate(
            "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input', {bubbles: true})); }",
            value,
        )


def test_point_becomes_the_candidate_sliders_rank_anew_and_the_short_list_stays(serve, open_tab, tmp_path):
    folder = tmp_path / "work"
    write_people(folder)
    tab = open_tab(serve("people.csv", folder=folder))
    tab.locator("#columns-table").wait_for()
    go_to_goal(tab)
    tab.get_by_label("People who look alike").fill("3")
    tab.get_by_role("button", name="Compare mechanisms").click()
    assert wait_for_end(tab, "compare") == "done"
    tab.get_by_role("link", name="See the comparison").click()
    check_step(tab)

    settled_text(tab)
    marks = tab.locator("#frontier .mark-symbol path[aria-roledescription]")
    candidates = set()
    for number in range(marks.count()):
        settled_text(tab)
        with tab.expect_response("**/explore/candidate"):
            marks.nth(number).click(force=True)
        expect(tab.locator("tr.chosen")).to_have_count(1)
        release = asked(folder)
        candidates.add((release["mechanism"], release["parameters"]["k"]))
    assert candidates == {("mondrian", 3), ("mondrian", 20), ("error-risk-tree", 5)}

    for name in ("Utility", "Privacy", "Few columns"):
        set_weight(tab, name, 0)
    set_weight(tab, "Utility", 100)
    by_utility = ranked(tab)
    set_weight(tab, "Utility", 0)
    set_weight(tab, "Privacy", 100)
    expect(tab.locator("#explore-table tbody tr").first).to_contain_text("mondrian")
    assert by_utility != ranked(tab)

    tab.get_by_role("button", name="on the short list").first.click()
    listed = tab.locator("[aria-labelledby=short-list-title] li")
    expect(listed).to_have_count(1)
    words, order = listed.inner_text(), ranked(tab)
    tab.reload()
    assert (listed.inner_text(), ranked(tab)) == (words, order)
    assert tab.get_by_label("Privacy").input_value() == "100"
