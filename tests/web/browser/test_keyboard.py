"""The goal by keyboard alone: every control is reached by Tab, a mistake is said beside its field, Enter starts."""

from __future__ import annotations

from playwright.sync_api import expect

from web.browser.walking import go_to_goal, open_demo, wait_for_end, wait_for_whole

CONTROLS = """() => [...document.querySelectorAll("#goal-form :is(input, select, button, summary)")]
  .filter((control) => control.type !== "hidden" && control.checkVisibility() && !control.disabled)
  .map((control) => control.type === "radio" ? control.name : control.id || control.textContent.trim())"""
FOCUSED = """() => {
  const control = document.activeElement;
  const outlined = getComputedStyle(control).outlineStyle !== "none";
  return [control.type === "radio" ? control.name : control.id || control.textContent.trim(), outlined];
}"""
MOST_STOPS = 200


def reached_by_tab(tab, last: str) -> dict[str, bool]:
    """Names of the controls that get the focus, up to the last, and whether that can be seen."""
    found: dict[str, bool] = {}
    for _ in range(MOST_STOPS):
        tab.keyboard.press("Tab")
        name, is_outlined = tab.evaluate(FOCUSED)
        found[name] = is_outlined
        if name == last:
            break
    return found


def test_goal_is_filled_in_and_started_without_a_mouse(serve, open_tab):
    tab = open_tab(serve(), expected=("422",))
    open_demo(tab)
    go_to_goal(tab)
    wanted = set(tab.evaluate(CONTROLS))
    assert {"target", "set-k", "mechanism", "quick"} <= wanted

    tab.locator("main").focus()
    found = reached_by_tab(tab, "What a comparison would try")
    assert wanted <= set(found)
    assert all(found[name] for name in wanted)

    tab.locator("main").focus()
    reached_by_tab(tab, "set-k")
    tab.keyboard.type("0")
    tab.keyboard.press("Enter")
    wait_for_whole(tab, "#problem-k")
    assert tab.locator("#set-k").get_attribute("aria-errormessage") == "problem-k"

    tab.locator("main").focus()
    reached_by_tab(tab, "mechanism")
    before = tab.locator("input[name=mechanism]:checked").input_value()
    tab.keyboard.press("ArrowDown")
    expect(tab.get_by_role("heading", name="Settings of")).not_to_contain_text(before)
    tab.keyboard.press("ArrowUp")
    expect(tab.get_by_role("heading", name="Settings of")).to_contain_text(before)
    tab.locator("main").focus()
    reached_by_tab(tab, "set-k")
    tab.keyboard.type("7")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/run")

    tab.locator("main").focus()
    reached_by_tab(tab, "cancel-release")
    tab.keyboard.press("Enter")
    assert wait_for_end(tab) == "cancelled"
