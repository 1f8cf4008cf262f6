"""Runs that go on without a tab, and that are cancelled in the middle."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from web.browser.walking import go_to_goal, make_release, open_demo, wait_for_end

LONGEST = 10.0  # seconds until a killed process must have gone; bounds a hang


def files_of(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_run_outlives_its_tab_and_leaves_nothing_when_cancelled(serve, open_tab):
    served = serve()
    tab = open_tab(served)
    open_demo(tab)
    go_to_goal(tab)
    before, quiet = files_of(served.private), set(served.processes())
    assert quiet

    make_release(tab)
    expect(tab.locator(".run-log")).to_contain_text("Measuring utility and risk")
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

    tab.get_by_role("button", name="Cancel").click()
    assert wait_for_end(tab) == "cancelled"
    expect(tab.locator(".run")).to_contain_text("Nothing was released")
    end = time.monotonic() + LONGEST
    while working & set(served.processes()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not working & set(served.processes())
    assert files_of(served.private) == before | {f"jobs/{job}/job.json"}
    assert not any(served.folder.iterdir())
    tab.reload()
    assert wait_for_end(tab) == "cancelled"
