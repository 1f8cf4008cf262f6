"""The page in a real browser: nothing sticks out, nothing is fetched, and it prints on A4."""

import shutil
import warnings

import pytest

from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.publishing.propose import make_release
from sfumato.report.render import report_html
from sfumato.report.summarize import summarize
from unit.report.releases import hostile_table, page_of

WIDTHS = (1280, 400)


@pytest.fixture(scope="module")
def browser():
    """Start the Chromium of the system; without one these tests are skipped, which is said."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("NOT LOOKED AT IN A BROWSER: there is no Chromium (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="NOT LOOKED AT IN A BROWSER: pip install playwright")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with playwright.sync_playwright() as started:
            chromium = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield chromium
            chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Write a usual report, one with many pictures, and one with hostile names."""
    folder = tmp_path_factory.mktemp("reports")
    table = hostile_table()
    release = make_release(table, Mondrian(k=5))
    texts = {
        "usual": page_of("mondrian", quick=False),
        "pictures": page_of("gain-recoding"),
        "hostile": report_html(summarize(release, table, quick=True), release.manifest),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["usual", "pictures", "hostile"])
def test_nothing_sticks_out_and_nothing_is_fetched(browser, pages, name, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))

    page.goto((pages / f"{name}.html").as_uri())
    widest = page.evaluate("document.scrollingElement.scrollWidth")
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('h1, h2, h3, p, li, .box, figcaption, pre')]"
        ".map(element => element.getBoundingClientRect().right))"
    )
    picture = page.screenshot(full_page=True)
    page.close()

    assert widest <= width
    assert right <= width
    assert asked == [(pages / f"{name}.html").as_uri()]
    assert complaints == []
    assert len(picture) > 20_000


@pytest.mark.slow
def test_pictures_are_drawn_at_their_own_size(browser, pages):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((pages / "usual.html").as_uri())

    boxes = page.evaluate("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().toJSON())")
    page.close()

    assert len(boxes) == 3
    assert all(300 < box["width"] <= 760 and box["height"] > 250 for box in boxes)


@pytest.mark.slow
def test_it_prints_on_a4(browser, pages):
    page = browser.new_page()
    page.goto((pages / "usual.html").as_uri())

    printed = page.pdf(prefer_css_page_size=True)
    page.close()

    assert printed.startswith(b"%PDF")
    assert b"/MediaBox [0 0 594.95996 841.91998]" in printed or b"/MediaBox [0 0 595" in printed
