"""The whole way from a table to its release, which a command and Python lines then make again."""

from __future__ import annotations

import json
import logging
import random
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sfumato.datasets.admissions import admissions
from sfumato.table.io.write import write_table
from web.browser.walking import (
    MADE,
    STEPS,
    check_reload,
    check_step,
    download,
    follow,
    go_to_goal,
    made_again,
    make_release,
    upload,
    wait_for_end,
    wait_for_whole,
)

N_ROWS = 400
N_COLUMNS = 25_000


@pytest.mark.slow
def test_table_from_upload_to_files_that_command_and_python_make_again(shared_server, open_tab, tmp_path):
    """The demo's columns with fewer rows: what takes time is the training, and the way is the same."""
    given = tmp_path / "admissions.csv"
    with given.open("wb") as file:
        write_table(admissions(n_rows=N_ROWS), file, "csv")
    served = shared_server
    tab = open_tab(served)
    assert "token" not in tab.url
    tab.goto(f"{served.origin}/open")
    check_step(tab)
    upload(tab, given)
    wait_for_whole(tab, "#columns-table")
    check_step(tab)
    go_to_goal(tab)
    check_step(tab)
    make_release(tab, "mondrian")
    assert wait_for_end(tab) == "done"
    for step in (*STEPS, "columns/3", "definitions", "explore/release"):
        tab.goto(f"{served.origin}/{step}")
        check_step(tab)
    tab.goto(f"{served.origin}/")
    assert tab.url == f"{served.origin}/release"

    downloads = tmp_path / "downloads"
    table, manifest, report, project, original, key = (
        download(tab, name, downloads)
        for name in (*MADE, "report.html", "sfumato.toml", "admissions.csv", "sfumato.key")
    )
    assert table.read_text(encoding="utf-8").count("\n") == N_ROWS + 1
    assert b"<html" in report.read_bytes()
    expected = {path.name: path.read_bytes() for path in (table, manifest)}
    for number, shown in enumerate(("#as-command", "#as-python")):
        by = tab.locator(shown).inner_text()
        assert made_again(tmp_path / f"again-{number}", by=by, given=[project, original, key]) == expected


def sparse_file(path: Path) -> Path:
    """Write 400 rows of zeros and ones: each one is rare but for the first 40, which the class decides."""
    drawn = random.Random(5)
    lines = []
    for row in range(400):
        common = {column for column in range(1, 41) if drawn.random() < (0.6 if row % 2 and column <= 20 else 0.3)}
        columns = sorted(common | set(range(row + 1, N_COLUMNS + 1, 400)))
        lines.append(f"{'+1' if row % 2 else '-1'} " + " ".join(f"{column}:1" for column in columns))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


class Times:
    """Seconds of each part of the way, for whoever asks pytest for them (``--log-cli-level=INFO``)."""

    def __init__(self) -> None:
        self.since = time.perf_counter()

    def note(self, what: str) -> None:
        now = time.perf_counter()
        logging.getLogger(__name__).info("%s: %.2f s", what, now - self.since)
        self.since = now


@pytest.mark.soak
def test_sparse_file_of_many_columns_from_upload_to_download(shared_server, open_tab, tmp_path):
    n_all, tenth = f"{N_COLUMNS + 1:,}", f"f{N_COLUMNS // 10 - 1}"
    tab = open_tab(shared_server, expected=("422",))
    tab.goto(f"{shared_server.origin}/open")
    table = tab.locator("#columns-table")
    caption, rows = table.locator("caption"), table.locator("tbody tr")
    original = sparse_file(tmp_path / "words.libsvm")
    times = Times()
    upload(tab, original)
    expect(caption).to_contain_text(f"Columns 1 to 100 of {n_all}")
    times.note("upload and columns")
    check_step(tab)

    tab.get_by_label("Name contains").fill(tenth)
    expect(caption).to_contain_text("1 to 11 of 11 that match")
    times.note("filter")
    expect(rows.locator("th")).to_have_text([tenth, *(f"{tenth}{digit}" for digit in range(10))])
    check_reload(tab)
    follow(tab, tab.get_by_role("link", name="Show all"))
    table.get_by_role("link", name="Name", exact=True).click()
    expect(table.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    times.note("order")
    expect(rows.locator("th").nth(2)).to_have_text("f100")
    table.get_by_role("link", name="Last").click()
    expect(caption).to_contain_text(f"Columns {n_all} to {n_all} of {n_all}")
    expect(rows.locator("th")).to_have_text(["target"])
    check_reload(tab)

    table.get_by_label("New role").select_option("sensitive")
    table.get_by_role("button", name=f"Set for all {n_all} that match").click()
    expect(table.get_by_role("status")).to_contain_text(
        f"{N_COLUMNS:,} features of the 0/1 table stay quasi-identifiers"
    )
    times.note("a role for all that match")
    expect(tab.locator("#columns-summary")).to_contain_text("No column is the target")
    table.get_by_role("checkbox", name="Select target").check()
    table.get_by_label("New role").select_option("target")
    table.get_by_role("button", name="Set for the selected").click()
    expect(table.get_by_role("status")).to_contain_text("“target” is now target")

    go_to_goal(tab)
    times.note("risk today")
    tab.get_by_label("Train no classifiers").check()
    make_release(tab)
    assert wait_for_end(tab) == "done"
    times.note("release")
    follow(tab, tab.get_by_role("link", name="See what it did to utility and risk"))
    for step in ("Utility", "Risk", "Release"):
        follow(tab, tab.get_by_role("navigation", name="Steps").get_by_role("link", name=step))
        check_step(tab)

    released, manifest, project, key = (
        download(tab, name, tmp_path / "downloads") for name in (*MADE, "sfumato.toml", "sfumato.key")
    )
    assert json.loads(manifest.read_bytes())["mechanism"]["name"] == "greedy-containment"
    assert len(released.read_text(encoding="utf-8").splitlines()) == 401
    again = made_again(tmp_path / "again", by=tab.locator("#as-command").inner_text(), given=[project, original, key])
    assert again == {path.name: path.read_bytes() for path in (released, manifest)}
