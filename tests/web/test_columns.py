"""Step Columns: the table with filter, order and pages, roles, kinds and hierarchies, all in the project file."""

import asyncio
import html
import itertools
import re

import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.making import hierarchy as hierarchy_command
from sfumato.mechanisms.hierarchies import automatic
from sfumato.mechanisms.lattice.recoder import GlobalRecoder
from sfumato.project.file import load_project
from sfumato.schema import Kind, Role
from sfumato.web.describing import ColumnNow, described
from sfumato.web.jobs.jobs import TaskError
from sfumato.web.settings import PageSettings
from sfumato.web.state import Page
from sfumato.web.tasks.hierarchies import safe_name
from sfumato.web.views import column_detail as hierarchy_methods
from sfumato.web.views import columns
from sfumato.web.views.columns import PAGE_SIZE, Listing, Shown
from sizes import IS_FULL
from web.asking import HTMX, MULTIPART, ask, form_of, shown
from web.columns_site import ColumnsSite

JOBS = ("nurse", "cook", "doctor", "waiter")
HEADER = "patient_id,age,postcode,job,ill\n"
STAYS = HEADER + "".join(
    f"p{i},{20 + i % 40},{2139 + i % 3:05},{JOBS[i % 4] if i % 10 else '?'},{'yes' if i % 3 else 'no'}\n"
    for i in range(60)
)


@pytest.fixture
def browser(tmp_path):
    data = tmp_path / "work" / "stays.csv"
    data.parent.mkdir()
    data.write_text(STAYS)
    found = ColumnsSite(tmp_path / "private", data)
    yield found
    found.page.close()


def names_in(text):
    return [html.unescape(name) for name in re.findall(r'<th scope="row"><a [^>]*>(.*?)</a>', text)]


# --- filter, order and pages ------------------------------------------------------------------------------------------


def some_columns():
    one = st.builds(
        ColumnNow,
        number=st.just(0),
        name=st.text("abAB ", min_size=1, max_size=3),
        role=st.sampled_from(list(map(str, Role))),
        kind=st.sampled_from(list(map(str, Kind))),
        hierarchy=st.sampled_from([None, "a.csv", "b.csv"]),
        guessed_role=st.sampled_from(list(map(str, Role))),
        reason=st.just(""),
        n_distinct=st.integers(0, 3),
        n_missing=st.integers(0, 3),
        uniqueness=st.sampled_from([0.0, 0.5, 1.0]),
        withheld=st.just(""),
        is_confirmed=st.just(False),
        is_listed=st.just(True),
        is_feature=st.just(False),
        labels=st.just(()),
        counts=st.lists(st.integers(0, 3), max_size=3),
    )
    return st.lists(one, max_size=8).map(
        lambda found: [ColumnNow(**{**vars(column), "number": i}) for i, column in enumerate(found, start=1)]
    )


ATTRIBUTES = {
    "number": "number",
    "role": "role",
    "kind": "kind",
    "guess": "guessed_role",
    "missing": "n_missing",
    "distinct": "n_distinct",
    "unique": "uniqueness",
}


@given(
    some_columns(),
    st.text("abAB ", max_size=2),
    st.sampled_from(["", *map(str, Role)]),
    st.sampled_from(["", *map(str, Kind)]),
    st.sampled_from(sorted(ATTRIBUTES)),
    st.sampled_from(["asc", "desc"]),
)
def test_filter_and_order_do_what_they_say(found, text, role, kind, sort, order):
    wanted = []
    for column in found:
        fits = text.strip().lower() in column.name.lower()
        if fits and (not role or column.role == role) and (not kind or column.kind == kind):
            wanted.append(column)
    listing = Listing.of({"text": text, "role": role, "kind": kind, "sort": sort, "order": order})

    got = listing.matching(found)

    assert sorted(column.number for column in got) == [column.number for column in wanted]
    keys = [getattr(column, ATTRIBUTES[sort]) for column in got]
    assert keys == sorted(keys, reverse=order == "desc")


@given(some_columns())
def test_every_heading_orders(found):
    for heading in columns.HEADINGS:
        listing = Listing().sorted_by(heading.key)
        turned = listing.sorted_by(heading.key) if heading.key != "number" else Listing(order="desc")
        assert listing.sort == turned.sort == heading.key
        assert {c.number for c in turned.matching(found)} == {c.number for c in found}


@given(st.text(max_size=5), st.text("0123456789x-", max_size=12))
def test_an_address_says_the_whole_listing(text, page):
    listing = Listing.of({"text": text, "sort": "name", "order": "desc", "page": page})
    query = dict(re.findall(r"([a-z]+)=([^&]*)", listing.query))

    assert listing.page >= 1
    assert query["sort"] == "name"
    assert ("text" in query) == bool(text.strip())


@given(st.integers(0, 450), st.integers(1, 9))
def test_pages_part_the_columns(n_columns, page):
    shown = Shown(Listing(page=page), list(range(n_columns)))
    parts = [Shown(Listing(page=one), list(range(n_columns))).columns for one in range(1, shown.n_pages + 1)]

    assert [number for part in parts for number in part] == list(range(n_columns))
    assert all(len(part) == PAGE_SIZE for part in parts[:-1])
    assert shown.columns == parts[min(page, shown.n_pages) - 1]


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_shows_every_column_with_its_guess(browser):
    status, _, text = browser.get("/columns")

    assert status == 200
    assert names_in(text) == ["patient_id", "age", "postcode", "job", "ill"]
    assert "60 rows, 5 columns" in shown(text)
    assert "1 identifier 3 quasi-identifier 1 target" in shown(text)
    assert "name says patient id" in shown(text)
    assert text.count('<svg class="tiny-bars"') == 5


def test_every_control_has_a_name_and_one_heading_says_how_it_is_ordered(browser):
    for path in ("/columns?sort=name&order=desc", "/columns/2"):
        text = browser.get(path).text
        labelled = set(re.findall(r'<label for="([^"]*)"', text))
        for control in re.findall(r"<(?:input|select|textarea)\b[^>]*>", text):
            has_own = re.search(r'type="(hidden|radio)"|aria-label="[^"]+"', control)
            identity = re.search(r'\bid="([^"]*)"', control)
            assert has_own or (identity and identity[1] in labelled), control
        assert "<caption" in text

    text = browser.get("/columns?sort=name&order=desc").text
    assert re.findall(r'aria-sort="(\w+)"', text).count("descending") == 1
    assert names_in(text) == ["postcode", "patient_id", "job", "ill", "age"]


def test_filter_and_order_survive_a_reload(browser):
    query = "?text=O&sort=distinct&order=desc"
    asked = {**HTMX, "hx-trigger": "columns-filter"}
    _, headers, part = ask(browser.app, "GET", f"/columns/table{query}", headers=asked)
    whole = browser.get(f"/columns{query}").text

    assert headers["hx-replace-url"] == "/columns?text=O&sort=distinct&order=desc"
    assert "<html" not in part
    assert names_in(part) == names_in(whole) == ["job", "postcode"]
    assert 'name="text" value="O"' in whole
    assert browser.get(f"/columns/table{query}").headers["location"] == f"/columns{query}"


def test_names_are_text_and_not_markup(tmp_path):
    data = tmp_path / "work" / "odd.csv"
    data.parent.mkdir()
    data.write_text('"<b onclick=x>",\'"\n1,2\n3,4\n')
    found = ColumnsSite(tmp_path / "private", data)

    text = found.get("/columns").text + found.get("/columns/1").text

    assert "<b onclick" not in text
    assert "&lt;b onclick=x&gt;" in text
    found.page.close()


@pytest.mark.parametrize("path", ["/columns/0", "/columns/6", "/columns/99999999999"])
def test_there_is_no_other_column(browser, path):
    assert browser.get(path).status == 404


# --- roles ------------------------------------------------------------------------------------------------------------


def test_one_role_is_saved_at_once_and_comments_stay(browser):
    before = browser.project.read_text().splitlines()

    status, _, text = browser.post("/columns/roles", {"only": "4", "role-4": "sensitive"}, htmx=True)

    assert status == 200
    assert browser.roles()["job"] == "sensitive"
    assert 'id="columns-summary" hx-swap-oob="true"' in text
    assert "“job” is now sensitive." in shown(text)
    changed = [(a, b) for a, b in zip(before, browser.project.read_text().splitlines(), strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0][1] == changed[0][0].replace("quasi-identifier", "sensitive", 1)


def test_ticked_columns_get_a_role_and_stay_ticked(browser):
    fields = {"number": ["2", "4"], "new_role": "other", "scope": "selected"}
    text = browser.post("/columns/roles", fields, htmx=True).text

    assert (browser.roles()["age"], browser.roles()["job"]) == ("other", "other")
    assert re.findall(r'name="number" value="(\d)"[^>]* checked', text) == ["2", "4"]


def test_all_that_match_get_a_role(browser):
    fields = {"text": "o", "new_role": "other", "scope": "matching", "number": "1"}
    status, headers, _ = browser.post("/columns/roles", fields)

    assert (status, headers["location"]) == (303, "/columns?text=o")
    assert [name for name, role in browser.roles().items() if role == "other"] == ["postcode", "job"]


def test_a_new_target_takes_the_role_from_the_former_one(browser):
    text = browser.post("/columns/roles", {"only": "4", "role-4": "target"}, htmx=True).text

    assert browser.roles() == {
        "patient_id": "identifier",
        "age": "quasi-identifier",
        "postcode": "quasi-identifier",
        "job": "target",
        "ill": "quasi-identifier",
    }
    assert "“ill” was the target; it is now a quasi-identifier." in shown(text)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"number": ["2", "4"], "new_role": "target", "scope": "selected"}, "2 columns cannot all be the target"),
        ({"number": ["2"], "new_role": "", "scope": "selected"}, "no role was chosen"),
        ({"number": ["2"], "new_role": "king", "scope": "selected"}, "role must be one of identifier"),
        ({"new_role": "other", "scope": "selected"}, "no column was selected"),
        ({"number": ["77", "x"], "new_role": "other", "scope": "selected"}, "no column was selected"),
        ({"only": "77", "role-77": "other"}, "no column was selected"),
    ],
)
@pytest.mark.parametrize("is_htmx", [True, False])
def test_what_cannot_be_is_said_beside_the_field_and_changes_nothing(browser, fields, said, is_htmx):
    before = browser.project.read_bytes()

    status, _, text = browser.post("/columns/roles", fields, htmx=is_htmx)

    assert status == 422
    assert said in shown(text)
    assert 'id="columns-table"' in text
    assert browser.project.read_bytes() == before


def test_columns_that_share_a_role_by_default_are_listed_when_they_get_their_own(browser):
    lines = browser.project.read_text().splitlines()
    listed = [line for line in lines if not line.startswith(('"age"', '"job"'))]
    shared = "\n".join(listed).replace("[data]", '[data]\ndefault_role = "sensitive"')
    browser.project.write_text(shared + "\n")
    assert "2 sensitive" in browser.get("/columns").shown

    browser.post("/columns/roles", {"only": "2", "role-2": "other"})

    added = load_project(browser.project).columns[-1]
    assert (added.name, added.role, added.kind) == ("age", Role.OTHER, Kind.NUMERIC)
    assert build(browser, 4, "build", "auto").status == 200
    assert load_project(browser.project).columns[-1].hierarchy.endswith("hierarchies/job.csv")
    assert browser.post("/columns/2", {"kind": "ordered"}).status == 303
    assert load_project(browser.project).read().schema["age"].kind is Kind.ORDERED


def test_missing_roles_are_warned_of(browser):
    browser.post("/columns/roles", {"new_role": "other", "scope": "matching"})
    text = browser.get("/columns").shown

    assert "No column is the target." in text
    assert "No column is a quasi-identifier." in text
    assert "One column looks like an identifier, but would be released: patient_id" in text


def test_an_identifier_that_repeats_is_asked_about(browser):
    """The job of a person repeats; once it tells persons apart, nothing is asked."""
    browser.post("/columns/roles", {"only": "1", "role-1": "other"})
    for role, is_asked in (("identifier", True), ("person", False)):
        browser.post("/columns/roles", {"only": "4", "role-4": role})
        assert ("'job' repeats: " in browser.get("/columns").shown) is is_asked


def test_a_column_that_is_nearly_a_key_is_confirmed_by_a_tick(browser):
    """It is asked about while it would be released; the decision stands in the project file and can be taken back."""
    asked = "A release is refused until you decide about a column that may name people: patient_id"
    assert asked not in browser.get("/columns").shown
    assert "may name people" not in browser.get("/columns/1").shown
    browser.post("/columns/roles", {"only": "1", "role-1": "other"})
    assert asked in browser.get("/columns").shown
    assert "A release is refused until you decide." in browser.get("/columns/1").shown

    status, headers, _ = browser.post("/columns/1/confirmed", {"confirmed": "yes"})
    assert (status, headers["location"]) == (303, "/columns/1")
    assert load_project(browser.project).columns[0].confirmed
    assert asked not in browser.get("/columns").shown
    assert "You have confirmed that it names nobody" in browser.get("/columns/1").shown

    browser.post("/columns/1/confirmed", {})
    assert not load_project(browser.project).columns[0].confirmed
    assert asked in browser.get("/columns").shown


def test_the_project_file_is_read_again_only_when_it_changed(browser, monkeypatch):
    asked = []
    call = browser.page.jobs.call

    async def counted(task, /, **arguments):
        asked.append(task)
        return await call(task, **arguments)

    monkeypatch.setattr(browser.page.jobs, "call", counted)
    for _ in range(3):
        browser.get("/columns")
    assert asked == ["columns.roles"]

    browser.post("/columns/roles", {"only": "2", "role-2": "other"})
    assert "1 other" in browser.get("/columns").shown
    assert asked == ["columns.roles", "columns.set_roles"]

    browser.project.write_text(browser.project.read_text().replace('"target"', '"sensitive"'))
    text = browser.get("/columns").text
    assert asked == ["columns.roles", "columns.set_roles", "columns.roles"]
    assert "1 sensitive" in shown(text)


def test_a_change_by_hand_right_after_a_new_role_is_seen(browser, monkeypatch):
    call = browser.page.jobs.call

    async def overtaken(task, /, **arguments):
        result = await call(task, **arguments)
        if task == "columns.set_roles":
            browser.project.write_text(browser.project.read_text().replace('"target"', '"sensitive"'))
        return result

    monkeypatch.setattr(browser.page.jobs, "call", overtaken)
    browser.get("/columns")
    browser.post("/columns/roles", {"only": "2", "role-2": "other"})

    assert "1 sensitive" in browser.get("/columns").shown


def test_a_table_that_is_not_read_yet_is_not_shown(browser):
    browser.page.job("open").status = "running"

    code, _, text = browser.get("/columns")

    assert code == 200
    assert names_in(text) == []
    assert browser.get("/columns/2").headers["location"] == "/columns"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_table_that_could_not_be_read_leads_to_open_which_says_why(browser, status):
    browser.page.job("open").status = status

    assert browser.get("/columns").headers["location"] == "/open"


def test_the_page_names_the_data_however_fast_they_were_read(browser):
    browser.page.state.update(data_name="sfumato.toml")

    browser.get("/columns")

    assert browser.page.state.get("data_name") == browser.page.job("open").result()["data_name"]


def test_without_a_table_the_way_leads_to_open(browser):
    browser.page.state.update(jobs={})

    assert browser.get("/columns").headers["location"] == "/open"


def test_without_a_table_there_are_no_columns(tmp_path):
    page = Page(PageSettings(), tmp_path)

    with pytest.raises(TaskError, match="no table is open"):
        asyncio.run(described(page))
    page.close()


# --- a sparse table ---------------------------------------------------------------------------------------------------


@pytest.fixture
def sparse(tmp_path):
    data = tmp_path / "work" / "wide.libsvm"
    data.parent.mkdir()
    n_columns = 25_000 if IS_FULL else 2500
    matrix = sp.random(40, n_columns, 0.01, format="csr", random_state=0)
    rows = [" ".join(f"{i + 1}:1" for i in sorted(matrix.indices[a:b])) for a, b in itertools.pairwise(matrix.indptr)]
    data.write_text("".join(f"{'+1' if i % 2 else '-1'} {row}\n" for i, row in enumerate(rows)))
    found = ColumnsSite(tmp_path / "private", data)
    yield found
    found.page.close()


def test_a_sparse_table_of_many_features_is_shown_in_pages(sparse):
    text = sparse.get("/columns").text
    now = asyncio.run(described(sparse.page))

    assert len(names_in(text)) == PAGE_SIZE
    assert not now.columns[0].is_feature
    assert len(re.findall(r"<select id=\"role-", text)) == sum(not column.is_feature for column in now.columns)
    assert "always quasi-identifiers" in shown(text)
    last = sparse.get("/columns?page=9999").text
    assert names_in(last)[-1] == now.columns[-1].name


def test_features_keep_their_role(sparse):
    before = sparse.project.read_bytes()
    status, _, text = sparse.post("/columns/roles", {"number": "2", "new_role": "other", "scope": "selected"})

    assert status == 422
    assert "features of a 0/1 table are always quasi-identifiers" in shown(text)
    assert sparse.project.read_bytes() == before

    fields = {"new_role": "other", "scope": "matching"}
    text = sparse.post("/columns/roles", fields, htmx=True).text
    assert set(sparse.roles().values()) == {"other"}
    assert "features of the 0/1 table stay quasi-identifiers" in shown(text)
    assert sparse.get("/columns/2").status == 200
    assert sparse.post("/columns/2/hierarchy", {"act": "preview", "method": "auto"}).status == 404


# --- one column -------------------------------------------------------------------------------------------------------


def test_a_column_shows_its_values_and_counts(browser):
    text = browser.get("/columns/4").shown

    assert "cook 15 25 %" in text
    assert "missing 6 10 %" in text


def test_a_kind_is_changed_only_if_the_cells_allow_it(browser):
    status, _, text = browser.post("/columns/4", {"role": "quasi-identifier", "kind": "numeric"})
    assert status == 422
    assert re.search(r'id="problem-kind">\s*<p>[^<]*is declared numeric, but 54 of 60 rows', html.unescape(text))

    status, headers, _ = browser.post("/columns/2", {"role": "sensitive", "kind": "ordered"})
    assert (status, headers["location"]) == (303, "/columns/2")
    changed = load_project(browser.project).columns[1]
    assert (changed.name, changed.role, changed.kind) == ("age", Role.SENSITIVE, Kind.ORDERED)


# --- hierarchies ------------------------------------------------------------------------------------------------------


def build(browser, number, act, method, **fields):
    form = {"act": act, "method": method, **{f"{method}-{name}": value for name, value in fields.items()}}
    return browser.post(f"/columns/{number}/hierarchy", form, htmx=True)


def test_the_page_knows_the_methods_of_the_command_line():
    shown = tuple(method.name for method in hierarchy_methods.METHODS)
    assert sorted(shown) == sorted(automatic.METHODS) == sorted(hierarchy_command._METHODS)


@pytest.mark.parametrize(
    ("number", "method", "fields", "label"),
    [
        (2, "width", {"width": "10"}, "[20, 39]"),
        (2, "quantile", {"intervals": "2"}, "≥ 35"),
        (2, "cuts", {"cuts": "0,40,50,65", "merge": "2"}, "[40, 49]"),
        (3, "mask", {"step": "1"}, "0214*"),
        (4, "groups", {"order": "nurse,doctor,cook,waiter"}, "[nurse, doctor]"),
        (4, "auto", {}, "cook"),
    ],
)
def test_a_preview_shows_levels_and_writes_nothing(browser, number, method, fields, label):
    before = browser.project.read_bytes()

    status, _, text = build(browser, number, "preview", method, **fields)

    assert status == 200
    assert "Preview, not saved" in shown(text)
    assert label in shown(text)
    assert browser.project.read_bytes() == before
    assert not (browser.project.parent / "hierarchies").exists()


def test_a_built_hierarchy_is_what_global_recoding_uses(browser):
    browser.post("/columns/roles", {"number": ["3", "4"], "new_role": "other", "scope": "selected"})

    status, _, text = build(browser, 2, "build", "cuts", cuts="0,33,65")
    released = GlobalRecoder(k=15).release(load_project(browser.project).read()).table

    assert status == 200
    assert "hierarchies/age.csv" in shown(text)
    assert 'hierarchy = "hierarchies/age.csv"' in browser.project.read_text()
    assert set(released["age"].values.to_pylist()) == {"[0, 32]", "[33, 64]"}
    assert "file" in browser.get("/columns?text=age").shown


@pytest.mark.parametrize(
    ("number", "method", "fields", "place", "said"),
    [
        (2, "width", {}, "width-width", "width must be given with method width"),
        (2, "cuts", {"cuts": "a,b"}, "cuts-cuts", "cuts must be numbers separated by commas"),
        (2, "quantile", {"intervals": "1"}, "quantile-intervals", "a whole number above 1"),
        (2, "quantile", {"intervals": "many"}, "quantile-intervals", "intervals must be a whole number"),
        (4, "groups", {"order": "nurse,cook"}, "method", "does not cover 2 of 5 values"),
        (4, "dates", {}, "method", "values are not dates"),
    ],
)
def test_what_is_wrong_with_a_setting_stands_beside_it(browser, number, method, fields, place, said):
    status, _, text = build(browser, number, "build", method, **fields)

    assert status == 422
    problem = re.search(rf'<div class="problem" role="alert" id="problem-{place}">(.*?)</div>', text, re.DOTALL)
    assert problem, shown(text)
    assert said in shown(problem[1])
    assert f'value="{method}" checked' in text
    assert not (browser.project.parent / "hierarchies").exists()


OWN = "nurse;health;*\ndoctor;health;*\ncook;kitchen;*\nwaiter;kitchen;*\n"


def upload(browser, content, act):
    return browser.upload("/columns/4/hierarchy", "own.csv", content, htmx=True, act=act)


def test_a_file_is_checked_and_then_used(browser):
    text = upload(browser, OWN, "check").text
    assert "own.csv: 3 levels, nested; it covers every value of the column." in shown(text)
    assert load_project(browser.project).columns[3].hierarchy is None

    status, _, text = upload(browser, OWN, "use")
    assert status == 200
    assert (browser.project.parent / "hierarchies" / "job.csv").read_text() == OWN
    assert "health" in shown(text)
    assert list((browser.page.folder / "uploads").iterdir()) == []
    text = build(browser, 4, "check", "auto").text
    assert "The hierarchy in use: 3 levels, nested" in shown(text)


def test_faults_of_a_file_are_listed_and_name_no_value(browser):
    before = browser.project.read_bytes()
    content = "nurse;health;*\ndoctor;health;other\ncook;;*\ncook;kitchen;*\n"

    status, _, text = upload(browser, content, "use")

    assert status == 422
    assert "own.csv: 4 faults found. Nothing was changed." in shown(text)
    assert "line 3 of a hierarchy has no label on level 1" in shown(text)
    assert text.index('id="hierarchy-file"') < text.index("4 faults found")
    assert str(browser.page.folder) not in text
    assert browser.project.read_bytes() == before

    text = upload(browser, "nurse;*\ncook;*\n", "use").text
    assert "does not cover 2 of 5 values" in shown(text)
    assert "doctor" not in shown(text)


def test_a_form_without_a_file_is_told_beside_the_field(browser):
    headers = {"content-type": MULTIPART, **HTMX}

    status, _, text = ask(browser.app, "POST", "/columns/4/hierarchy", body=form_of(("act", "use")), headers=headers)

    assert status == 422
    assert re.search(r'id="problem-file"><p>no file was chosen', text)


def test_a_hierarchy_is_removed_from_the_project_and_its_file_stays(browser):
    upload(browser, OWN, "use")

    text = build(browser, 4, "remove", "auto").text

    assert load_project(browser.project).columns[3].hierarchy is None
    assert (browser.project.parent / "hierarchies" / "job.csv").exists()
    assert "No hierarchy file" in shown(text)


def test_a_file_of_the_user_is_not_replaced(browser):
    folder = browser.project.parent / "hierarchies"
    folder.mkdir()
    (folder / "job.csv").write_text("my own work\n")

    upload(browser, OWN, "use")
    upload(browser, OWN.replace("health", "care"), "use")

    assert (folder / "job.csv").read_text() == "my own work\n"
    assert sorted(path.name for path in folder.iterdir()) == ["job-2.csv", "job.csv"]
    assert "care" in (folder / "job-2.csv").read_text()


def test_a_hierarchy_among_the_parameters_gives_way(browser):
    (browser.project.parent / "old.csv").write_text(OWN)
    written = browser.project.read_text().replace("k = 5\n", 'k = 5\nhierarchies = { job = "old.csv" }\n', 1)
    browser.project.write_text(written)
    assert "old.csv" in browser.get("/columns/4").shown

    upload(browser, OWN.replace("health", "care"), "use")

    project = load_project(browser.project)
    assert dict(project.parameters) == {"k": 5}
    assert project.columns[3].hierarchy.endswith("hierarchies/job.csv")


def test_a_hierarchy_file_that_is_broken_is_told(browser):
    upload(browser, OWN, "use")
    (browser.project.parent / "hierarchies" / "job.csv").write_text("a;b\na;c\n")

    status, _, text = browser.get("/columns/4")

    assert status == 200
    assert "The hierarchy in use cannot be read." in shown(text)


@given(st.lists(st.text(min_size=1, max_size=80), min_size=2, max_size=6, unique=True))
def test_names_of_files_are_harmless_and_different(names):
    found = [safe_name(name) for name in names]

    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,80}", name) for name in found)
    assert len(set(found)) == len(names)
