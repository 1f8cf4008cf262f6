"""The demo table in one server: many loads, two tabs, the keyboard alone, and a run without its tab.

Each test opens the table anew; what another left behind does no harm.
"""

from __future__ import annotations

import http.client
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from waiting import until
from web.browser.walking import go_to_goal, make_release, open_demo, wait_for_end, wait_for_whole


@pytest.fixture
def demo_tab(shared_server, open_tab):
    """Open a tab with the demo table as it was written."""

    def opened(**settings):
        tab = open_tab(shared_server, **settings)
        tab.goto(f"{shared_server.origin}/open")
        open_demo(tab)
        return tab

    return opened


# ---- fifty loads of the widest step, none of which fails

LOADS = 50
LONGEST = 120.0  # seconds; bounds a hang


def asked(place: str, path: str, cookie: str = "", method: str = "GET", body: str = ""):
    connection = http.client.HTTPConnection(place, timeout=LONGEST)
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"} if cookie else {}
    if body:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content, answer.getheader("set-cookie") or ""


def test_fifty_loads_at_once_are_all_answered(shared_server):
    parts = urlsplit(shared_server.url)
    cookie = asked(parts.netloc, f"{parts.path}?{parts.query}")[2].partition(";")[0]
    assert asked(parts.netloc, "/open", cookie, "POST", "how=demo")[0] == 303
    until(lambda: "columns-table" in asked(parts.netloc, "/columns", cookie)[1], LONGEST)

    with ThreadPoolExecutor(LOADS) as tabs:
        answers = list(tabs.map(lambda _: asked(parts.netloc, "/columns", cookie), range(LOADS)))
    assert {status for status, _, _ in answers} == {200}
    assert len({content for _, content, _ in answers}) == 1
    assert "readmitted" in answers[0][1]


# ---- two tabs write the same project file, and neither undoes what the other did


def give_role(tab, column: str, role: str) -> None:
    tab.get_by_label(f"Role of {column}", exact=True).select_option(role)
    expect(tab.locator("#columns-table").get_by_role("status")).to_contain_text(f"“{column}” is now {role}")


def roles(served) -> dict[str, str]:
    columns = tomllib.loads(Path(served.state["project"]).read_text(encoding="utf-8"))["columns"]
    return {name: column["role"] for name, column in columns.items()}


@pytest.mark.soak
def test_stale_tab_does_not_undo_what_another_changed(shared_server, demo_tab, open_tab):
    served = shared_server
    first = demo_tab()
    second = open_tab(served, context=first.context)
    assert second.url == f"{served.origin}/columns"
    before = roles(served)

    give_role(first, "age", "sensitive")
    expect(second.get_by_label("Role of age", exact=True)).to_have_value("quasi-identifier")
    give_role(second, "sex", "other")
    assert roles(served) == {**before, "age": "sensitive", "sex": "other"}

    for tab in (first, second):
        tab.reload()
        expect(tab.get_by_label("Role of age", exact=True)).to_have_value("sensitive")
        expect(tab.get_by_label("Role of sex", exact=True)).to_have_value("other")


# ---- a run goes on without its tab, and is stopped while utility is measured


def files_of(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.soak
def test_run_outlives_its_tab_and_leaves_the_audited_release_when_stopped(shared_server, demo_tab, open_tab):
    served = shared_server
    tab = demo_tab()
    go_to_goal(tab)
    before, quiet = files_of(served.private), set(served.processes())
    assert quiet

    make_release(tab)
    expect(tab.locator(".run-log")).to_contain_text("Measuring risk")  # the audit was before it
    context = tab.context
    tab.close()
    working = set(served.processes()) - quiet
    assert working

    tab = open_tab(served, context=context)
    assert tab.url == f"{served.origin}/run"
    expect(tab.locator(".run .badge")).to_have_text("running")
    expect(tab.get_by_role("progressbar")).to_be_visible()
    job = served.state["jobs"]["release"]
    assert files_of(served.private / "jobs" / job) > {"job.json"}

    tab.get_by_role("link", name="see the release").click()
    expect(tab.locator(".verdict")).to_contain_text("is being measured")
    with tab.expect_download() as coming:
        tab.get_by_role("link", name="release.csv", exact=True).click()
    assert coming.value.suggested_filename == "release.csv"
    tab.goto(f"{served.origin}/run")
    tab.get_by_role("button", name="Stop measuring").click()
    assert wait_for_end(tab) == "done"
    expect(tab.locator(".run")).to_contain_text("not measured: it was stopped")
    until(lambda: not working & set(served.processes()))
    assert files_of(served.private) > before | {f"jobs/{job}/job.json", f"jobs/{job}/first-result.json"}
    assert not any(served.folder.iterdir())
    tab.goto(f"{served.origin}/release")
    expect(tab.locator(".verdict")).to_contain_text("measuring ended before")


# ---- every control of the goal is reached by Tab, a mistake is said beside its field, Enter starts

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


@pytest.mark.soak
def test_goal_is_filled_in_and_started_without_a_mouse(demo_tab):
    tab = demo_tab(expected=("422",))
    go_to_goal(tab)
    wanted = set(tab.evaluate(CONTROLS))
    assert {"target", "promise-k-anonymity", "mechanism", "quick"} <= wanted

    tab.locator("main").focus()
    found = reached_by_tab(tab, "What a comparison would try")
    assert wanted <= set(found)
    assert all(found[name] for name in wanted)

    tab.locator("main").focus()
    reached_by_tab(tab, "promise-k-anonymity")
    tab.keyboard.type("0")
    tab.keyboard.press("Enter")
    wait_for_whole(tab, "#problem-k-anonymity")
    assert tab.locator("#promise-k-anonymity").get_attribute("aria-errormessage") == "problem-k-anonymity"
    expect(tab.locator("#promise-k-anonymity")).to_be_focused()

    tab.locator("main").focus()
    reached_by_tab(tab, "mechanism")
    before = tab.locator("input[name=mechanism]:checked").input_value()
    tab.keyboard.press("ArrowDown")
    expect(tab.get_by_role("heading", name="Settings of")).not_to_contain_text(before)
    tab.keyboard.press("ArrowUp")
    expect(tab.get_by_role("heading", name="Settings of")).to_contain_text(before)
    tab.locator("main").focus()
    reached_by_tab(tab, "promise-k-anonymity")
    tab.keyboard.type("7")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/run")

    tab.locator("main").focus()
    reached_by_tab(tab, "cancel-release")
    tab.keyboard.press("Enter")
    wait_for_end(tab)
    # Whether the audit had come to its end by then is a matter of time: the release then stays, without utility.
    expect(tab.locator(".run")).to_contain_text(re.compile("Cancelled|it was stopped"))
