"""Two tabs of one page: both write the same project file, and neither undoes what the other did."""

from __future__ import annotations

import tomllib
from pathlib import Path

from playwright.sync_api import expect

from web.browser.walking import open_demo


def give_role(tab, column: str, role: str) -> None:
    tab.get_by_label(f"Role of {column}", exact=True).select_option(role)
    expect(tab.locator("#columns-table").get_by_role("status")).to_contain_text(f"“{column}” is now {role}")


def roles(served) -> dict[str, str]:
    columns = tomllib.loads(Path(served.state["project"]).read_text(encoding="utf-8"))["columns"]
    return {name: column["role"] for name, column in columns.items()}


def test_stale_tab_does_not_undo_what_another_changed(serve, open_tab):
    served = serve()
    first = open_tab(served)
    open_demo(first)
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
