"""The watch itself: it notices what it is there for."""

from __future__ import annotations

import pytest

from waiting import until
from web.browser.walking import check_accessible
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

    def is_noticed():
        tab.evaluate("() => 0")  # Playwright tells what has happened while it is asked something
        return any(problem.startswith(WRONG[script]) for problem in watch.problems)

    until(is_noticed)


def test_port_that_begins_with_the_same_digits_is_another_place(watched):
    tab, watch = watched
    tab.evaluate("() => fetch('http://127.0.0.1:10/').catch(() => null)")
    assert any(problem.startswith("request to") for problem in watch.problems)


def test_policy_of_the_page_stops_what_would_leave_it(shared_server, chromium):
    served = shared_server
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


SOUND = """<!doctype html><html lang="en"><title>Step · sfumato</title><main><h1>Step</h1><h2>Part</h2>
<p>Text</p><label for="name">Name</label><input id="name"><button>Go</button></main></html>"""
FLAWS = {
    "no language": (' lang="en"', ""),
    "no title": ("Step · sfumato", ""),
    "field without a label": ('for="name"', ""),
    "label of no field": ('id="name"', 'id="other" aria-label="Name"'),
    "button without words": ("<button>Go", "<button>"),
    "level of heading left out": ("h2", "h3"),
    "two first headings": ("h2", "h1"),
    "an id twice": ("<p>", '<p id="name">'),
    "faint text": ("<p>", '<p style="color: #999999">'),
    "text made faint": ("<p>", '<p style="opacity: 0.5">'),
    "faint on its ground": ("<p>", '<p style="background: #555555">'),
}


def test_sound_page_passes(watched):
    tab, _ = watched
    tab.set_content(SOUND)
    check_accessible(tab)


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaw_is_noticed(watched, flaw):
    tab, _ = watched
    tab.set_content(SOUND.replace(*FLAWS[flaw]))
    with pytest.raises(AssertionError):
        check_accessible(tab)
