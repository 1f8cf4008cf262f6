"""What is said of a column beyond its role: format, preparation and a ready hierarchy, all in the project file."""

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms.hierarchies.ready import READY, UNKNOWN
from sfumato.project.file import load_project
from sfumato.schema import Kind
from sfumato.table.preparing.declared import Preparation
from sfumato.table.reading.columns import format_named
from sfumato.web.describing import ColumnNow
from sfumato.web.tasks.columns import _numbered
from sfumato.web.views.column_forms import (
    METHODS,
    WAYS,
    doubt_in_words,
    format_choices,
    meaning,
    turned,
    typed_preparation,
    way_named,
    why_not,
    written_preparation,
)
from web.asking import shown
from web.columns_site import ColumnsSite
from web.standing_in import JobsAtOnce

CANARY = "zyx98765"
PLACES = ("FR", "DE", "BR", "JP", CANARY)
VISITS = "case,born,visit,paid,code,country,ill\n" + "".join(
    f"{CANARY}{i:03},{1950 + i % 40}-0{1 + i % 9}-1{i % 9},0{1 + i % 9}/0{1 + i % 7}/2021,"
    f'"{i}.{100 + i},50",{2139 + i % 3:05},{PLACES[i % 5]},{"yes" if i % 3 else "no"}\n'
    for i in range(1, 61)
)
NUMBERS = {name: number for number, name in enumerate(VISITS.partition("\n")[0].split(","), start=1)}


@pytest.fixture
def site(tmp_path):
    data = tmp_path / "work" / "visits.csv"
    data.parent.mkdir()
    data.write_text(VISITS)
    found = ColumnsSite(tmp_path / "private", data, jobs=JobsAtOnce)
    roles = {"born": "quasi-identifier", "visit": "quasi-identifier", "paid": "sensitive", "case": "identifier"}
    for name, role in roles.items():
        assert found.post(f"/columns/{NUMBERS[name]}", role=role).status == 303
    assert entry(found, "born")["prepare"].keys() == {"age_at"}  # as every new project file has it
    assert found.post(f"/columns/{NUMBERS['born']}/preparation", way="as-it-is").status == 303
    yield found
    found.page.close()


def entry(site, name):
    return tomllib.loads(site.project.read_text())["columns"][name]


def problem_at(answer, place):
    """Words beside a field; the page answers 422 and marks the field."""
    assert answer.status == 422
    found = re.search(rf'<div class="problem" role="alert" id="problem-{place}">(.*?)</div>', answer.text, re.DOTALL)
    assert found, answer.shown
    assert CANARY not in found[1]
    if place in answer.seen.by_id:
        assert answer.seen.by_id[place]["aria-invalid"] == "true"
    return shown(found[1])


def column_now(**more):
    facts = {"number": 1, "name": "c", "role": "quasi-identifier", "kind": "date", "hierarchy": None, "reason": ""}
    facts |= {"guessed_role": "other", "n_distinct": 1, "n_missing": 0, "uniqueness": 0.0, "withheld": ""}
    facts |= {"is_confirmed": False, "is_listed": True, "is_feature": False, "labels": (), "counts": ()}
    return ColumnNow(**(facts | more))


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["date", "numeric", "categorical"])
def test_every_format_that_is_offered_can_be_read(kind):
    offered = [one for some in format_choices(column_now(kind=kind)).values() for one in some]

    for one in offered:
        found = format_named(one.name)
        assert one.name == ("text" if found is None else found.name)
        if found is not None and found.kind is Kind.DATE:
            assert found.name == format_named(found.name.lower(), Kind.DATE).name


@pytest.mark.parametrize("name", ["DD/MM/YYYY", "MM-DD-YYYY", "DD/MM/YY from 1925", "MM/DD/YYYY HH:MM"])
def test_day_and_month_change_places_and_back(name):
    assert format_named(turned(name)).name == turned(name)
    assert turned(turned(name)) == name


@pytest.mark.parametrize("name", ["DD MMM YYYY", "YYYY/MM/DD", "YYYYMMDD", "1.234,56", "text", "", "excel"])
def test_where_nothing_can_change_places_there_is_no_rival(name):
    assert turned(name) == ""


def test_a_doubt_is_said_with_an_example():
    column = column_now(format="DD/MM/YYYY", doubt="day first; no value above 12 decides")

    said = doubt_in_words(column)
    assert said.startswith("A guess: day first; no value above 12 decides. ")
    assert said.endswith("So 03/04/2021 is read as 3 April 2021; it may mean 4 March 2021.")
    assert "it may mean" not in doubt_in_words(column_now(format="DD.MM.YY from 1969", doubt="two-digit years"))
    assert doubt_in_words(column_now(format="DD/MM/YYYY")) == ""
    assert meaning("excel") == "serial numbers of a spreadsheet"


def test_the_step_shows_formats_and_asks_to_confirm_guesses(site):
    answer = site.get("/columns")

    assert "visit (DD/MM/YYYY)" in shown(answer.seen.texts["guessed-formats"])
    assert "date DD/MM/YYYY a guess" in answer.shown
    assert "numeric 1.234,56" in answer.shown
    assert "it may mean 4 March 2021" in site.get(f"/columns/{NUMBERS['visit']}").seen.texts["doubt"]


def test_saving_the_guessed_format_confirms_it(site):
    assert "date_format is a guess" in site.project.read_text()

    answer = site.post(f"/columns/{NUMBERS['visit']}/format", format="DD/MM/YYYY", own_format="")

    assert (answer.status, answer.headers["location"]) == (303, f"/columns/{NUMBERS['visit']}#reading")
    assert entry(site, "visit")["date_format"] == "DD/MM/YYYY"
    assert "is a guess" not in site.project.read_text()
    assert "guessed-formats" not in site.get("/columns").seen.by_id


def test_another_format_gives_other_values(site):
    path = f"/columns/{NUMBERS['visit']}"
    before = site.get(path).shown

    site.post(f"{path}/format", format="MM/DD/YYYY", own_format="")

    after = site.get(path)
    assert entry(site, "visit") == {"role": entry(site, "visit")["role"], "kind": "date", "date_format": "MM/DD/YYYY"}
    assert "doubt" not in after.seen.by_id
    assert re.findall(r"2021-0\d-0\d –", before) != re.findall(r"2021-0\d-0\d –", after.shown)
    read = load_project(site.project).read()["visit"].values.to_pylist()
    assert {text[5:7] for text in read} == {f"0{month}" for month in range(1, 10)}


def test_a_typed_format_goes_before_the_list_and_may_change_the_kind(site):
    answer = site.post(f"/columns/{NUMBERS['visit']}/format", format="DD/MM/YYYY", own_format="text")

    assert answer.status == 303
    assert entry(site, "visit")["kind"] == "categorical"
    assert "date_format" not in entry(site, "visit")
    assert load_project(site.project).read()["visit"].values.to_pylist()[0].endswith("/2021")


@pytest.mark.parametrize(
    ("name", "typed", "place", "said"),
    [
        ("visit", {"own_format": "day first"}, "own_format", "got 'day first'"),
        ("visit", {"format": "1.234,56"}, "format", "rows"),
        ("country", {"format": "DD.MM.YYYY"}, "format", "rows"),
    ],
)
def test_a_format_that_does_not_fit_is_said_beside_it_and_not_written(site, name, typed, place, said):
    before = site.project.read_bytes()

    answer = site.post(f"/columns/{NUMBERS[name]}/format", {"format": "", "own_format": "", **typed})

    assert said in problem_at(answer, place)
    assert site.project.read_bytes() == before


def test_another_kind_takes_a_format_of_the_former_kind_along(site):
    path = f"/columns/{NUMBERS['paid']}"
    assert entry(site, "paid")["number_format"] == "1.234,56"

    assert site.post(path, kind="categorical").status == 303
    assert entry(site, "paid") == {"role": "sensitive", "kind": "categorical"}
    assert site.post(path, kind="numeric").status == 303  # found again: no format was declared to be text
    assert load_project(site.project).read()["paid"].numbers().min() > 1000


# --- preparations -----------------------------------------------------------------------------------------------------


def preparations():
    bounds = st.fixed_dictionaries(
        {}, optional={"top": st.integers(50, 90), "bottom": st.integers(-5, 5), "round": st.just(1)}
    )
    scopes = st.sampled_from([{}, {"scope": "project"}])
    kept = st.fixed_dictionaries(
        {},
        optional={
            "keep_first": st.integers(0, 9),
            "keep_last": st.integers(0, 9),
            "character": st.sampled_from("#5x"),
        },
    )
    return st.one_of(
        bounds.filter(bool),
        bounds.map(lambda some: {**some, "age_at": "2026-01-01"}),
        kept.map(lambda some: {"mask": some}),
        scopes.map(lambda scope: {"pseudonym": True, **scope}),
        st.tuples(st.integers(1, 400), scopes).map(lambda pair: {"shift_days": pair[0], **pair[1]}),
        st.just({"drop": True}),
    ).map(lambda written: Preparation.of("c", written))


@given(preparations())
def test_what_a_project_file_says_is_what_the_form_shows_and_sends_back(asked):
    form = typed_preparation(asked.written())

    sent = written_preparation(way_named(form["way"]), form)

    assert Preparation.of("c", _numbered(sent)) == asked
    assert Preparation.of("c", asked.written()) == asked


@pytest.mark.parametrize(
    ("role", "kind", "fitting"),
    [
        ("quasi-identifier", "numeric", ["numbers", "masked", "drop"]),
        ("sensitive", "date", ["age", "shift", "masked", "drop"]),
        ("quasi-identifier", "categorical", ["masked", "drop"]),
        ("identifier", "categorical", ["pseudonym", "drop"]),
        ("person", "categorical", []),
    ],
)
def test_only_what_fits_role_and_kind_is_offered(role, kind, fitting):
    column = column_now(role=role, kind=kind)

    assert [way.name for way in WAYS if not why_not(column, way)] == fitting


@pytest.mark.parametrize(
    ("name", "fields", "written"),
    [
        ("paid", {"way": "numbers", "numbers-top": "50000", "numbers-round": "500"}, {"top": 50000, "round": 500}),
        ("born", {"way": "age", "age-age_at": "2026-01-01", "age-top": "90"}, {"top": 90, "age_at": "2026-01-01"}),
        ("code", {"way": "masked", "masked-keep_first": "2"}, {"mask": {"keep_first": 2, "keep_last": 0}}),
        ("case", {"way": "pseudonym", "pseudonym-scope": "release"}, {"pseudonym": True}),
        ("visit", {"way": "shift", "shift-shift_days": "20"}, {"shift_days": 20}),
        ("country", {"way": "drop"}, {"drop": True}),
    ],
)
def test_a_preparation_lands_in_the_project_file_and_can_be_taken_back(site, name, fields, written):
    path = f"/columns/{NUMBERS[name]}"

    answer = site.post(f"{path}/preparation", fields)

    assert answer.status == 303, answer.shown
    assert (answer.status, answer.headers["location"]) == (303, f"{path}#preparing")
    found = dict(entry(site, name)["prepare"])
    if "mask" in found:
        assert found["mask"].pop("character") == "#"
    assert found == written
    asked = load_project(site.project).preparations
    assert [one.column for one in asked] == [name]
    page = site.get(path)
    assert asked[0].in_words() in shown(page.seen.texts["prepared"])
    assert {key: page.seen.values[key] for key in fields} == fields
    assert "prepared" in site.get("/columns").shown

    assert site.post(f"{path}/preparation", way="as-it-is").status == 303
    assert "prepare" not in entry(site, name)
    assert "prepared" not in site.get(path).seen.by_id


@pytest.mark.parametrize(
    ("name", "fields", "place", "said"),
    [
        ("paid", {"way": "numbers"}, "way", "nothing was filled in"),
        ("paid", {"way": "numbers", "numbers-top": "a lot"}, "numbers-top", "no finite number"),
        ("paid", {"way": "numbers", "numbers-round": "-1"}, "numbers-round", "not above 0"),
        ("paid", {"way": "numbers", "numbers-top": "1", "numbers-bottom": "2"}, "numbers-bottom", "not below its top"),
        ("paid", {"way": "numbers", "numbers-top": "7", "numbers-round": "5"}, "numbers-top", "no multiple"),
        ("born", {"way": "age", "age-age_at": "1 May"}, "age-age_at", "no date such as 2026-01-01"),
        ("visit", {"way": "shift", "shift-shift_days": "0"}, "shift-shift_days", "whole number from 1"),
        ("code", {"way": "masked", "masked-keep_first": "-2"}, "masked-keep_first", "whole number from 0"),
        ("code", {"way": "masked", "masked-character": "ab"}, "masked-character", "one that can be seen"),
        ("country", {"way": "pseudonym"}, "way", "pseudonyms are for an identifier only"),
        ("country", {"way": "numbers", "numbers-top": "5"}, "way", "is of the kind categorical"),
    ],
)
def test_what_is_wrong_with_a_preparation_stands_beside_its_field(site, name, fields, place, said):
    before = site.project.read_bytes()

    answer = site.post(f"/columns/{NUMBERS[name]}/preparation", fields)

    assert said in problem_at(answer, place)
    assert answer.seen.values["way"] == fields["way"]
    assert site.project.read_bytes() == before


def test_a_preparation_that_the_cells_do_not_allow_is_refused_without_naming_one(site):
    path = f"/columns/{NUMBERS['country']}"
    site.post(path, role="identifier")
    before = site.project.read_bytes()

    answer = site.post(f"{path}/preparation", way="pseudonym")

    assert "5 of its values stand in several rows" in problem_at(answer, "way")
    assert site.project.read_bytes() == before


def test_a_role_or_kind_that_a_preparation_is_not_for_is_refused(site):
    site.post(f"/columns/{NUMBERS['case']}/preparation", way="pseudonym")
    site.post(f"/columns/{NUMBERS['paid']}/preparation", {"way": "numbers", "numbers-top": "50000"})

    role = site.post(f"/columns/{NUMBERS['case']}", role="quasi-identifier")
    kind = site.post(f"/columns/{NUMBERS['paid']}", kind="categorical")
    several = site.post("/columns/roles", {"only": "1", "role-1": "sensitive"}, htmx=True)

    assert "pseudonyms are for an identifier only" in problem_at(role, "role")
    assert "is of the kind categorical" in problem_at(kind, "kind")
    assert several.status == 422
    assert (entry(site, "case")["role"], entry(site, "paid")["kind"]) == ("identifier", "numeric")


def test_a_column_that_is_nearly_a_key_is_not_asked_about_once_it_is_replaced(site):
    path = f"/columns/{NUMBERS['case']}"
    site.post(path, role="other")
    assert "near-keys" in site.get("/columns").seen.by_id

    site.post(f"{path}/preparation", way="masked")  # every cell is then the same
    assert "near-keys" not in site.get("/columns").seen.by_id
    site.post(f"{path}/preparation", way="drop")
    assert "near-keys" not in site.get("/columns").seen.by_id
    site.post(f"{path}/preparation", way="as-it-is")
    assert "near-keys" in site.get("/columns").seen.by_id


@pytest.mark.parametrize("fields", [{}, {"way": "grow"}])
def test_there_is_no_other_way(site, fields):
    assert site.post(f"/columns/{NUMBERS['paid']}/preparation", fields).status == 422


# --- ready hierarchies ------------------------------------------------------------------------------------------------


def test_the_page_knows_the_ready_hierarchies():
    fields = {field.name: field for method in METHODS if method.name == "ready" for field in method.fields}

    assert {name for name, _ in fields["ready"].choices} == set(READY)
    assert {name for name, _ in fields["unknown"].choices} == set(UNKNOWN)


def test_a_ready_hierarchy_is_used_and_one_that_does_not_know_the_values_is_refused(site):
    path = f"/columns/{NUMBERS['country']}/hierarchy"
    form = {"act": "build", "method": "ready", "ready-ready": "country", "ready-unknown": "refuse"}

    refused = site.post(path, form, htmx=True)
    assert "1 of 5 values are no countries of ISO 3166" in problem_at(refused, "method")
    assert "hierarchy" not in entry(site, "country")

    made = site.post(path, {**form, "ready-unknown": "other"}, htmx=True)
    assert made.status == 200
    text = (site.project.parent / entry(site, "country")["hierarchy"]).read_text()
    assert "FR;Western Europe" in text
    assert f"{CANARY};other" in text


def test_a_hierarchy_is_built_of_the_prepared_values(site):
    site.post(f"/columns/{NUMBERS['born']}/preparation", {"way": "age", "age-age_at": "2026-01-01"})
    form = {"act": "build", "method": "ready", "ready-ready": "age", "ready-unknown": "refuse", "ready-country": ""}

    assert site.post(f"/columns/{NUMBERS['born']}/hierarchy", form, htmx=True).status == 200
    assert "[40, 44]" in (site.project.parent / entry(site, "born")["hierarchy"]).read_text()
