"""Steps of the way through the page, as a person takes them, and what must hold on each of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

STEPS = ("open", "columns", "goal", "run", "explore", "utility", "risk", "release", "collaborate")
NAMED_ROLES = "button|checkbox|combobox|heading|img|link|progressbar|radio|searchbox|slider|spinbutton|textbox"
LEAST_CONTRAST = 4.5
LONGEST_RUN = 300_000  # milliseconds; bounds a hang
MADE = ("release.csv", "release.csv.manifest.json")

STRUCTURE = """() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const ids = all("[id]").map((element) => element.id);
  const known = new Set(ids);
  const named = ["aria-describedby", "aria-labelledby", "aria-errormessage", "aria-controls", "for", "list"];
  const lost = named.flatMap((name) => all(`[${name}]`)
    .filter((element) => name !== "for" || element.tagName === "LABEL" || element.tagName === "OUTPUT")
    .flatMap((element) => element.getAttribute(name).split(/\\s+/)).filter((id) => id && !known.has(id)));
  return {
    language: document.documentElement.lang,
    title: document.title,
    mains: all("main").length,
    headings: all("h1, h2, h3, h4, h5, h6").map((heading) => Number(heading.tagName[1])),
    repeated: ids.filter((id, place) => ids.indexOf(id) !== place),
    lost,
  };
}"""

FAINT_TEXTS = """(least) => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (channel) => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * light(r / 255) + 0.7152 * light(g / 255) + 0.0722 * light(b / 255);
  const over = (front, share, back) => [0, 1, 2].map((place) => share * front[place] + (1 - share) * back[place]);
  const groundOf = (element) => {
    const [r, g, b, alpha = 1] = numbers(getComputedStyle(element).backgroundColor);
    const below = () => element.parentElement ? groundOf(element.parentElement) : [255, 255, 255];
    return alpha === 1 ? [r, g, b] : over([r, g, b], alpha, below());
  };
  const opacityOf = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement) : 1;
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const isOther = element.closest("svg, script, option, noscript, [disabled], [aria-disabled]");
    if (!own || isOther || !element.checkVisibility()) continue;
    const ground = groundOf(element), ink = numbers(getComputedStyle(element).color);
    const seen = over(ink, (ink[3] ?? 1) * opacityOf(element), ground);
    const [dark, bright] = [luminance(seen), luminance(ground)].sort((a, b) => a - b);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < least) found.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}"""


def wait_for_whole(tab, part: str) -> None:
    """Wait for a part of the page to come, and then until all of the page is there: a part is seen before the end."""
    tab.locator(part).wait_for()
    tab.wait_for_load_state()


def open_demo(tab) -> None:
    """Open the demo table and wait for its columns."""
    tab.get_by_role("button", name="Open the demo table").click()
    wait_for_whole(tab, "#columns-table")


def upload(tab, path: Path) -> None:
    """Choose a file on the step Open and send it."""
    tab.get_by_label("Data file", exact=True).set_input_files(path)
    with tab.expect_navigation():
        tab.get_by_role("button", name="Upload and open").click()


def follow(tab, link) -> None:
    """Press a link and wait until the page it leads to is loaded whole."""
    with tab.expect_navigation():
        link.click()


def go_to_goal(tab) -> None:
    """Go on from the columns and wait until the risk is measured."""
    follow(tab, tab.get_by_role("link", name="Continue to the goal"))
    wait_for_whole(tab, "#goal-form")


def make_release(tab, mechanism: str = "") -> None:
    """Press the button of the goal."""
    if mechanism:
        tab.get_by_role("radio", name=mechanism).check()
        tab.get_by_role("heading", name=f"Settings of {mechanism}").wait_for()
    tab.get_by_role("button", name="Make this release").click()
    tab.wait_for_url("**/run")


def wait_for_end(tab, purpose: str = "release") -> str:
    """Wait until a run is over; gives its status."""
    status = tab.locator(f".card:has(#run-{purpose}) .badge:not(.running)")
    status.wait_for(timeout=LONGEST_RUN)
    return status.inner_text()


def download(tab, name: str, folder: Path) -> Path:
    """Press the link to a file of the release and keep what comes."""
    with tab.expect_download() as coming:
        tab.get_by_role("link", name=name, exact=True).click()
    assert coming.value.suggested_filename == name
    folder.mkdir(exist_ok=True)
    coming.value.save_as(folder / name)
    return folder / name


def made_again(folder: Path, *, by: str, given: list[Path], made: Sequence[str] = MADE) -> dict[str, bytes]:
    """Run what the page shows in a folder with the project file and the data; gives the bytes that it writes."""
    folder.mkdir()
    for path in given:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                packed.extractall(folder)
            continue
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o600)  # as the page asks for the key
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    line = by if by.startswith("sfumato ") else [sys.executable, "-c", by]
    subprocess.run(line, shell=isinstance(line, str), cwd=folder, env=environment, check=True, capture_output=True)
    return {name: (folder / name).read_bytes() for name in made}


def settled_text(tab) -> str:
    """Words of the step, once it is there to its end and its charts are drawn."""
    wait_for_whole(tab, "main")
    for chart in tab.locator(".chart").all():
        chart.and_(tab.locator("[data-state=drawn]")).wait_for()
    return tab.locator("main").inner_text()


def check_reload(tab) -> None:
    """Load the step again: the address and every word stay."""
    before, address = settled_text(tab), tab.url
    tab.reload()
    assert tab.url == address
    assert settled_text(tab) == before


def nameless_controls(tab) -> list[str]:
    """Lines of the accessibility tree without a name; the parts of a picture that has one need none."""
    lines = tab.locator("body").aria_snapshot().splitlines()
    outer = zip(["", *lines], lines, strict=False)
    inside = {line for before, line in outer if before.lstrip(" -'").startswith('img "') and "- img:" in line}
    return [line for line in lines if re.match(rf"\s*- (?:{NAMED_ROLES})(?: \[|:|$)", line) and line not in inside]


def check_accessible(tab) -> None:
    """Names of all controls, headings in order, references that lead somewhere, and texts that can be read."""
    tab.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    nameless = nameless_controls(tab)
    assert not nameless, (tab.url, nameless)
    found = tab.evaluate(STRUCTURE)
    assert (found["language"], found["mains"], found["lost"], found["repeated"]) == ("en", 1, [], []), tab.url
    assert found["title"].endswith(" · sfumato")
    levels = found["headings"]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(lower - upper <= 1 for upper, lower in pairwise(levels)), (tab.url, levels)
    for scheme in ("dark", "light"):
        tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        faint = tab.evaluate(FAINT_TEXTS, LEAST_CONTRAST)
        assert not faint, (tab.url, scheme, faint)


def check_step(tab) -> None:
    """Check everything that holds on every step."""
    check_reload(tab)
    check_accessible(tab)
