"""The watch itself: it notices what it is there for."""

from __future__ import annotations

import pytest
from web.browser.watching import Watch

WRONG = {
    "console.error('as a script would')": "console error",
    "console.warn('as a script would')": "console warning",
    "setTimeout(() => { throw new Error('as a script would'); })": "script error",
    "fetch('http://127.0.0.1:9/elsewhere').catch(() => null)": "request to http://127.0.0.1:9/elsewhere",
}


@pytest.fixture
def watched(chromium):
    context = chromium.new_context()
    tab = context.new_page()
    yield tab, Watch.over(tab, "http://127.0.0.1:1")
    context.close()


@pytest.mark.parametrize("script", WRONG)
def test_wrong_is_noticed(watched, script):
    tab, watch = watched
    tab.evaluate(f"() => {{ {script} }}")
    tab.wait_for_timeout(200)
    assert any(problem.startswith(WRONG[script]) for problem in watch.problems)


def test_port_that_begins_with_the_same_digits_is_another_place(watched):
    tab, watch = watched
    tab.evaluate("() => fetch('http://127.0.0.1:10/').catch(() => null)")
    assert any(problem.startswith("request to") for problem in watch.problems)


def test_policy_of_the_page_stops_what_would_leave_it(serve, chromium):
    served = serve()
    context = chromium.new_context()
    tab = context.new_page()
    watch = Watch.over(tab, served.origin)
    tab.goto(served.url)
    assert not watch.problems
    gone = tab.evaluate("() => fetch('http://127.0.0.1:9/elsewhere').then(() => true, () => false)")
    tab.evaluate("() => { document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\" onclick=\"x()\">') }")
    context.close()
    assert not gone
    assert any("connect-src" in problem for problem in watch.problems)
    assert any("style-src" in problem for problem in watch.problems)
