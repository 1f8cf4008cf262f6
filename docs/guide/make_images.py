"""Make the pictures of page.md: the real page in Chromium, on the demo table.

::

    python docs/guide/make_images.py                # all, into docs/guide/images: some minutes
    python docs/guide/make_images.py FOLDER --width 400 --dark
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START = "import sys; from sfumato.__main__ import main; main(sys.argv[1:])"
HEIGHTS = {"open": 700, "columns": 900, "goal": 1000, "run": 620, "explore": 1050, "utility": 1240, "risk": 900}
HEIGHTS |= {"release": 1000, "collaborate": 1000, "column": 760}
BELOW = {"release": ".card:has(#files)", "collaborate": "#session", "column": "#reading"}
"""What a picture begins with, where that is not the top of the step."""
LONGEST = 900_000  # milliseconds


def main() -> None:
    """Go through all steps once and take a picture of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        parser.exit(1, "no Chromium is installed\n")
    with served() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme="dark" if given.dark else "light", reduced_motion="reduce")
        tab.set_default_timeout(LONGEST)
        tab.goto(url)
        walk(tab, Camera(tab, given.folder, given.width))
        browser.close()


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Run a server in an empty folder; gives the address that it printed."""
    with tempfile.TemporaryDirectory(prefix="sfumato-images-") as folder:
        command = [sys.executable, "-c", START, "serve", "--no-browser"]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            yield server.stdout.readline().strip() if server.stdout else ""
        finally:
            server.terminate()
            server.wait()


class Camera:
    """Takes the upper part of a step, as wide as asked."""

    def __init__(self, tab: Page, folder: Path, width: int) -> None:
        self.tab, self.folder, self.width = tab, folder, width

    def take(self, step: str) -> None:
        """Write page-STEP.png."""
        self.tab.set_viewport_size({"width": self.width, "height": HEIGHTS[step]})
        for chart in self.tab.locator(".chart").all():
            chart.and_(self.tab.locator("[data-state=drawn]")).wait_for()
        begin = self.tab.locator(BELOW.get(step, "body"))
        begin.evaluate("(element) => scrollTo(0, Math.max(element.offsetTop - 64, 0))")
        self.tab.screenshot(path=self.folder / f"page-{step}.png", caret="initial")


def walk(tab: Page, camera: Camera) -> None:
    """Open, columns, one column, goal, a comparison, a release and a simulated session."""
    camera.take("open")
    press(tab, "Open the demo table")
    tab.locator("#columns-table").wait_for()
    camera.take("columns")
    tab.locator("#columns-table").get_by_role("link", name="age", exact=True).click()
    tab.locator("#preparing summary").first.click()
    tab.get_by_role("radio", name="Limit or round numbers").check()
    camera.take("column")

    go(tab, "goal")
    tab.locator("#goal-form").wait_for()
    camera.take("goal")
    press(tab, "Compare mechanisms")
    tab.locator(".run-log li").nth(5).wait_for()
    camera.take("run")
    tab.locator(".run.done").wait_for()

    go(tab, "explore")
    tab.locator("tr:has(.badge.good) .star").click()
    tab.locator("[aria-labelledby=short-list-title] li").wait_for()
    choose = tab.get_by_role("button", name="Make it the candidate")
    if choose.count():
        choose.click()
        choose.wait_for(state="detached")
    camera.take("explore")

    press(tab, "Make this release")
    tab.locator(".card:has(#run-release) .badge.done").wait_for()
    for step in ("utility", "risk", "release"):
        go(tab, step)
        camera.take(step)
    go(tab, "collaborate")
    press(tab, "Propose some")
    press(tab, "Simulate")
    tab.locator(".session-outcome").wait_for()
    camera.take("collaborate")


def press(tab: Page, name: str) -> None:
    """Press the first button of a name."""
    tab.get_by_role("button", name=name).first.click()


def go(tab: Page, step: str) -> Any:
    """Load a step."""
    parts = urlsplit(tab.url)
    return tab.goto(f"{parts.scheme}://{parts.netloc}/{step}")


if __name__ == "__main__":
    main()
