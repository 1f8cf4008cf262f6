"""What a person says of columns and of the file, from a doubtful date to a release that the command makes again."""

from __future__ import annotations

import json
import tomllib
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sfumato.datasets.admissions import admissions
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from web.browser.walking import (
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

PLACES = ("FR", "DE", "BR", "JP")
VISITS = "born,visit,paid,country,ill\n" + "".join(
    f"{1950 + i % 40}-0{1 + i % 9}-1{i % 9},0{1 + i % 9}/0{1 + i % 7}/2021,"
    f'"{1 + i % 8}.{100 + i},50",{PLACES[i % 4]},{"yes" if i % 3 else "no"}\n'
    for i in range(1, 121)
)


def open_column(tab, name: str) -> None:
    """Go to the page of a column."""
    follow(tab, tab.get_by_role("link", name="Columns", exact=True))
    wait_for_whole(tab, "#columns-table")
    follow(tab, tab.locator("#columns-table").get_by_role("link", name=name, exact=True))
    wait_for_whole(tab, "#preparing")


def save(tab, button: str) -> None:
    """Press a button of a form, and wait for the page that answers."""
    with tab.expect_navigation():
        tab.get_by_role("button", name=button, exact=True).click()
    wait_for_whole(tab, "#preparing")


def give_role(tab, role: str) -> None:
    tab.get_by_label("Role", exact=True).select_option(role)
    save(tab, "Save")


@pytest.mark.soak
def test_settings_of_columns_and_file_are_in_the_release_and_the_command_makes_it_again(
    shared_server, open_tab, tmp_path
):
    given = tmp_path / "visits.csv"
    given.write_text(VISITS, encoding="utf-8")
    tab = open_tab(shared_server, expected=("422",))
    tab.goto(f"{shared_server.origin}/open")
    upload(tab, given)
    wait_for_whole(tab, "#columns-table")
    expect(tab.locator("#guessed-formats")).to_contain_text("visit (DD/MM/YYYY)")

    follow(tab, tab.locator("#guessed-formats").get_by_role("link", name="visit"))
    expect(tab.locator("#doubt")).to_contain_text("it may mean 4 March 2021")
    tab.get_by_label("Format", exact=True).select_option("MM/DD/YYYY")
    save(tab, "Save the format")
    expect(tab.locator("#doubt")).to_have_count(0)
    give_role(tab, "quasi-identifier")

    open_column(tab, "born")
    expect(tab.locator("#prepared")).to_contain_text("turned into the age in whole years on 2022-01-01")
    expect(tab.get_by_role("radio", name="Turn dates into ages")).to_be_checked()
    tab.get_by_label("Age on this day").fill("New Year")
    save(tab, "Save the preparation")
    expect(tab.locator("#problem-age-age_at")).to_contain_text("no date such as 2026-01-01")
    expect(tab.get_by_label("Age on this day")).to_be_focused()
    tab.get_by_label("Age on this day").fill("2026-01-01")
    save(tab, "Save the preparation")
    expect(tab.locator("#prepared")).to_contain_text("turned into the age in whole years on 2026-01-01")
    check_step(tab)

    open_column(tab, "country")
    tab.get_by_role("radio", name="Ready-made").check()
    tab.get_by_label("What the values are").select_option("country")
    tab.get_by_role("button", name="Build and use").click()
    expect(tab.locator("#hierarchy")).to_contain_text("Western Europe")

    open_column(tab, "paid")
    give_role(tab, "sensitive")
    tab.get_by_text("Prepare it first").click()
    tab.get_by_role("radio", name="Limit or round numbers").check()
    tab.get_by_label("Top: largest value").first.fill("5000")
    save(tab, "Save the preparation")
    expect(tab.locator("#prepared")).to_contain_text("coded as 5000 where it is more")
    follow(tab, tab.get_by_role("link", name="Columns", exact=True))
    go_to_goal(tab)
    tab.get_by_text("Format and form of the cells").click()
    tab.get_by_label("File format").select_option(".jsonl")
    tab.get_by_label("What coarsened cells hold").select_option("values")
    tab.get_by_label("Train no classifiers").check()
    make_release(tab, "global-recoding")
    assert wait_for_end(tab) == "done"
    tab.goto(f"{shared_server.origin}/release")

    names = ("release.jsonl", "release.jsonl.manifest.json")
    table, manifest, project, key = (
        download(tab, name, tmp_path / "downloads") for name in (*names, "sfumato.zip", "sfumato.key")
    )
    with zipfile.ZipFile(project) as packed:
        described = tomllib.loads(packed.read("sfumato.toml").decode())
    assert described["columns"]["visit"]["date_format"] == "MM/DD/YYYY"
    assert described["columns"]["born"]["prepare"] == {"age_at": "2026-01-01"}
    assert described["columns"]["paid"]["prepare"] == {"top": 5000}
    assert (described["release"]["cells"], described["release"]["output"]) == ("values", "release.jsonl")
    rows = [json.loads(line) for line in table.read_text(encoding="utf-8").splitlines()]
    assert all(20 < int(row["born"]) < 90 for row in rows)
    by = tab.locator("#as-command").inner_text()
    again = made_again(tmp_path / "again", by=by, given=[project, given, key], made=names)
    assert again == {path.name: path.read_bytes() for path in (table, manifest)}


@pytest.mark.soak
@pytest.mark.parametrize("name", ["survey.sav", "survey.jsonl"])
def test_an_upload_of_a_survey_comes_back_in_its_own_format(shared_server, open_tab, tmp_path, name):
    given, suffix = tmp_path / name, Path(name).suffix
    kept = admissions(n_rows=120).keep(["age", "sex", "insurance", "readmitted"])
    with given.open("w+b") as file:
        write_table(kept, file, suffix.removeprefix("."))
    tab = open_tab(shared_server)
    tab.goto(f"{shared_server.origin}/open")
    upload(tab, given)
    wait_for_whole(tab, "#columns-table")
    go_to_goal(tab)
    tab.get_by_text("Format and form of the cells").click()
    tab.get_by_label("File format").select_option(suffix)
    tab.get_by_label("Train no classifiers").check()
    make_release(tab, "mondrian")
    assert wait_for_end(tab) == "done"
    tab.goto(f"{shared_server.origin}/release")
    released = read_table(download(tab, f"release{suffix}", tmp_path / "downloads"))
    assert (released.n_rows, set(released.schema.names())) == (120, set(kept.schema.names()))
