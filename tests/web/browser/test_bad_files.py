"""Files that cannot be opened: words beside the field, no traceback, and a good file afterwards works."""

from __future__ import annotations

import random

import pytest
from playwright.sync_api import expect

from web.browser.walking import check_accessible, check_reload, upload

GARBAGE = random.Random(3).randbytes(4_000)
BAD = {
    "empty.csv": b"",
    "ragged.csv": b"age,sex,illness\n31,f,asthma\n44,m\n52,f,gout,extra,cells\n",
    "garbage.csv": GARBAGE,
    "no-excel.xlsx": b"age,sex\n31,f\n",
    "large.csv": b"age,sex\n" + b"31,f\n" * 300_000,
}
GOOD = b"age,sex,illness\n" + b"".join(b"%d,%s,asthma\n" % (20 + row, b"fm"[row % 2 :][:1]) for row in range(60))


def check_problem(tab, way: str) -> str:
    """Words beside the field, which points to them; gives the words."""
    problem = tab.locator(f"#problem-{way}")
    problem.wait_for()
    field = tab.locator(f"#open-{way}")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert f"problem-{way}" in field.get_attribute("aria-describedby").split()
    assert problem.evaluate("(problem, field) => problem.parentElement.contains(field)", field.element_handle())
    words = problem.inner_text()
    assert len(words.split()) >= 3
    body = tab.locator("body").inner_text()
    assert "Traceback" not in body
    assert "bug in sfumato" not in body
    return words


@pytest.mark.soak
def test_words_stand_beside_the_field_and_a_good_file_works_afterwards(serve, open_tab, tmp_path):
    tab = open_tab(serve("--upload-limit", "1MB"), expected=("413",))
    said = {}
    for name, content in BAD.items():
        path = tmp_path / name
        path.write_bytes(content)
        upload(tab, path)
        said[name] = check_problem(tab, "upload")
        check_reload(tab)
        check_accessible(tab)
    assert len(set(said.values())) == len(BAD)
    assert "1,000,000 bytes" in said["large.csv"]

    absent = tmp_path / "nowhere" / "table.csv"
    tab.get_by_label("Path of the data file").fill(str(absent))
    tab.get_by_role("button", name="Open", exact=True).click()
    assert "does not exist" in check_problem(tab, "path")
    assert tab.get_by_label("Path of the data file").input_value() == str(absent)

    good = tmp_path / "good.csv"
    good.write_bytes(GOOD)
    upload(tab, good)
    expect(tab.locator("#columns-summary")).to_contain_text("60 rows, 3 columns")
