"""The Goal step: today's risk, a form that keeps what was typed, and a choice that lands in the project file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ColumnNotFoundError, InputError, InvalidParameterError
from sfumato.guarantees import GUARANTEES
from sfumato.mechanisms.base import Cells
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.project.file import load_project
from sfumato.schema import Role
from sfumato.table.io.read import read_table
from sfumato.table.io.write import write_table
from sfumato.web.goal_guarantees import goal_guarantees, level_names
from sfumato.web.jobs.jobs import Jobs
from sfumato.web.jobs.process import TaskError
from sfumato.web.project_files import OUTPUT_FORMATS
from sfumato.web.tasks import goal
from sfumato.web.tasks import goal as goal_form
from sfumato.web.tasks.goal_levels import levels_of
from sfumato.web.views import goal as view
from sfumato.web.views import run
from sfumato.web.views.goal import as_text, read_written
from waiting import until
from web.asking import Site
from web.standing_in import PROJECT, JobsAtOnce, Told, end, people, small_project

SPARSE = "".join(f"{number % 2} {number % 3 + 1}:1 {number % 5 + 4}:1\n" for number in range(40))
SPARSE_PROJECT = """[data]
path = "people.svm"
default_role = "quasi-identifier"

[columns]
"target" = { role = "target", kind = "categorical" }
"""
PARAMETERS = [
    (name, parameter)
    for name, info in registered_mechanisms().items()
    for parameter in info.parameters
    if parameter.name not in goal_form.SET_ELSEWHERE
]


class Silent(Told):
    """Fails where a task of this step logs: there is nothing to say."""

    def log(self, text):
        raise AssertionError(text)


def site_of(folder, project, jobs=None):
    at_once = jobs or JobsAtOnce(folder / "jobs", Silent)
    return Site(folder / "page", view, run, project=project, jobs=at_once)


@pytest.fixture
def project(tmp_path):
    return small_project(tmp_path / "work")


@pytest.fixture
def site(tmp_path, project):
    return site_of(tmp_path, project)


@pytest.fixture
def sparse_project(tmp_path):
    (tmp_path / "people.svm").write_text(SPARSE)
    path = tmp_path / "sparse.toml"
    path.write_text(SPARSE_PROJECT)
    return path


def choices_of(path):
    return goal.risk_today(path.parent, Silent(), project=str(path))["choices"]


def check(path, mechanism, purpose="release", target="paid", **given):
    """Check what is typed for parameters; levels are those of the kinds that the mechanism promises by default."""
    taken = levels_of(registered_mechanisms()[mechanism], {}) if mechanism in registered_mechanisms() else {}
    kinds = {one.parameter: one.kind for one in reversed(goal_guarantees())} | {v: k for k, v in taken.items()}
    typed = {
        "levels": {kinds[name]: text for name, text in given.items() if name in kinds},
        "values": {name: text for name, text in given.items() if name not in kinds},
    }
    task, project = goal_form.check, {"project": str(path), "mechanism": mechanism, "target": target}
    return task(path.parent, Silent(), **project, **typed, purpose=purpose)


def choose(path, **choice):
    return goal.choose(path.parent, Silent(), project=str(path), **choice)


def written(path):
    return tomllib.loads(path.read_text())


def filled(site, **changes):
    """Fields of the form as the page shows it, with some changed."""
    return {**site.get("/goal").seen.values, **changes}


def filled_for(site, mechanism, **changes):
    """Fields of the form after a mechanism was chosen, with some changed."""
    own = site.get("/goal/fields", mechanism=mechanism, shown=mechanism).seen.values
    return {**filled(site), **own, "mechanism": mechanism, **changes}


# ---- tasks


def test_todays_risk_is_that_of_groups_counted_by_hand(project):
    found = goal.risk_today(project.parent, Silent(), project=str(project))

    rows = [tuple(line.split(",")[:3]) for line in people().splitlines()[1:]]
    groups = Counter(rows)
    uniques = sum(size == 1 for size in groups.values())
    assert found["profile"]["k"] == min(groups.values())
    assert found["profile"]["sample_uniques"]["count"] == uniques > 0
    assert found["profile"]["n_quasi_identifiers"] == 3
    assert found["words"][0].startswith(f"{uniques} of {len(rows)} rows are unique.")
    assert f"{100 * len(groups) / len(rows):.0f}\u00a0%" in found["words"][1]


def test_words_tell_of_a_sensitive_value_that_a_group_shares(project):
    words = goal.risk_today(project.parent, Silent(), project=str(project))["words"]

    assert any("'illness'" in text and "learns it" in text for text in words)


def test_a_table_without_unique_rows_is_not_said_to_have_some(tmp_path):
    table = "age,sex,town,illness,paid\n" + "30,f,a,x,y\n30,f,a,y,n\n" * 4
    found = goal.risk_today(tmp_path, Silent(), project=str(small_project(tmp_path / "work", table=table)))

    assert found["words"][0].startswith(
        "No row is unique: everybody shares all quasi-identifying values with at least 7 "
    )
    assert found["blame"] == []


def test_a_table_without_quasi_identifiers_is_told_to_check_the_roles(tmp_path):
    text = PROJECT.replace("quasi-identifier", "other")
    found = goal.risk_today(tmp_path, Silent(), project=str(small_project(tmp_path / "work", text)))

    assert len(found["words"]) == 1
    assert "Check the roles" in found["words"][0]


def test_columns_to_blame_are_those_in_sets_on_which_a_row_is_unique(tmp_path):
    rows = [("1", "f", "a"), ("2", "f", "a"), *[("3", "f", "a"), ("3", "m", "b")] * 2]
    table = "age,sex,town,illness,paid\n" + "".join(",".join(row) + ",x,y\n" for row in rows)
    blame = goal.risk_today(tmp_path, Silent(), project=str(small_project(tmp_path / "work", table=table)))["blame"]

    assert [one["column"] for one in blame] == ["age"]


def test_every_mechanism_is_offered_or_refused_with_the_reason_that_compare_gives(project, sparse_project):
    for path in (project, sparse_project):
        table = load_project(path).read()
        offered = {one["name"]: one["unavailable"] for one in choices_of(path)["mechanisms"]}
        assert set(offered) == set(registered_mechanisms())
        for name, info in registered_mechanisms().items():
            try:
                if info.compared is not None:
                    info.compared(table)
                reason = None
            except ValueError as exc:
                reason = str(exc)
            assert offered[name] == reason
    assert offered["mondrian"] is not None, "no mechanism was refused"


def test_every_mechanism_and_guarantee_leads_to_a_definition_that_exists(project):
    choices = choices_of(project)

    assert {one["definition"] for one in choices["mechanisms"]} <= set(GUARANTEES)
    assert {one["kind"] for one in choices["guarantees"]} <= set(GUARANTEES)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("", "the target stays as predictable as possible"),
        ('"paid" = { role = "other"', "Without a target"),
    ],
)
def test_auto_is_recommended_and_why_follows_from_the_target(tmp_path, change, why):
    text = PROJECT.replace('"paid" = { role = "target"', change) if change else PROJECT

    recommended = choices_of(small_project(tmp_path / "work", text))["recommended"]
    assert recommended["mechanism"] == "auto"
    assert why in recommended["why"]


def test_sparse_tables_are_recommended_a_selection_and_offer_the_class_alone_as_target(sparse_project):
    choices = choices_of(sparse_project)

    assert choices["recommended"]["mechanism"] == "auto"
    assert "Keeps those 0/1 columns that separate the classes best" in choices["recommended"]["why"]
    assert [one["name"] for one in choices["targets"]] == ["target"]


def test_a_target_among_very_many_columns_is_typed(tmp_path):
    names = [f"c{number}" for number in range(goal_form.MOST_TARGETS + 1)]
    rows = "".join(",".join("01"[n % 2] for _ in names) + "\n" for n in range(4))
    columns = "".join(f'"{name}" = {{ role = "quasi-identifier", kind = "categorical" }}\n' for name in names)
    text = f'[data]\npath = "people.csv"\n[columns]\n{columns}'
    path = small_project(tmp_path / "work", text, ",".join(names) + "\n" + rows)
    assert choices_of(path)["targets"] is None
    site = site_of(tmp_path, path)
    seen = site.get("/goal").seen
    assert ("input", seen.by_id["target"]) in seen.elements
    assert site.post("/goal/compare", {**seen.values, "target": "c7"}).status == 303

    assert read_written(path).target == "c7"
    assert site.get("/goal").seen.values["target"] == "c7"


def test_identifiers_and_constant_columns_cannot_be_the_target(tmp_path):
    table = "age,sex,town,illness,paid\n" + "".join(f"{n},f,a,{'xy'[n % 2]},{'yn'[n % 2]}\n" for n in range(6))
    text = PROJECT.replace('"age" = { role = "quasi-identifier"', '"age" = { role = "identifier"')
    targets = choices_of(small_project(tmp_path / "work", text, table))["targets"]

    assert [(one["name"], one["n_distinct"]) for one in targets] == [("illness", 2), ("paid", 2)]


@pytest.mark.parametrize(("mechanism", "parameter"), PARAMETERS, ids=lambda one: getattr(one, "name", one))
def test_a_shown_default_is_accepted_and_not_written(project, mechanism, parameter):
    shown = next(
        field
        for one in choices_of(project)["mechanisms"]
        if one["name"] == mechanism
        for field in one["parameters"]
        if field["name"] == parameter.name
    )
    found = check(project, mechanism, **{parameter.name: as_text(shown["default"])})

    levels = level_names()
    own = {kind for kind, name in levels_of(registered_mechanisms()[mechanism], {}).items() if name != parameter.name}
    assert set(found["problems"]) <= own, "only levels that were left empty"
    if parameter.name in levels and parameter.default is not None:
        assert found["parameters"][parameter.name] == parameter.default
    else:
        assert parameter.name not in found["parameters"]


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"variant": "entropy"}, "variant", "'distinct' where l is not given"),
        ({"l": "2", "variant": "recursive"}, "c", "given for recursive l-diversity"),
        ({"likeness": "enhanced"}, "likeness", "'basic' where beta is not given"),
    ],
)
def test_settings_that_do_not_go_together_are_said_at_their_field(project, given, field, said):
    """Each is right by itself."""
    problems = check(project, "mondrian", k="5", **given)["problems"]

    assert set(problems) == {field}
    assert said in problems[field]


@given(k=st.integers(2, 50), fraction=st.floats(0, 1), is_strict=st.booleans())
def test_typed_values_become_the_numbers_they_stand_for(tmp_path_factory, k, fraction, is_strict):
    path = small_project(tmp_path_factory.mktemp("w"))
    found = check(
        path, "global-recoding", k=f" {k} ", max_suppressed_fraction=repr(fraction), regroup=as_text(is_strict)
    )

    expected = {"k": k, "max_suppressed_fraction": fraction, "regroup": is_strict}
    defaults = {"max_suppressed_fraction": 0.015, "regroup": True}
    kept = {name: value for name, value in expected.items() if defaults.get(name) != value}
    assert found == {"parameters": kept, "asked": [], "problems": {}}


@pytest.mark.parametrize(
    ("mechanism", "values", "field", "words"),
    [
        ("mondrian", {"k": "many"}, "k-anonymity", "a whole number"),
        ("mondrian", {"k": "1"}, "k-anonymity", "of at least 2"),
        ("mondrian", {"k": "2.5"}, "k-anonymity", "a whole number"),
        ("mondrian", {"k": "5", "split": "sideways"}, "split", "one of"),
        ("gain-recoding", {"k": "5", "t": "7"}, "t-closeness", "from 0"),
        ("gain-recoding", {"k": "5", "max_suppressed_fraction": "half"}, "max_suppressed_fraction", "a number"),
        ("gain-recoding", {"k": "5", "max_suppressed_fraction": "7"}, "max_suppressed_fraction", "from 0 to 1"),
        ("greedy-containment", {"k": "5", "max_unique_fraction": "2"}, "unique-patterns", "1"),
        ("slicing", {"k": "5", "l": "2", "t": "0.2"}, "t-closeness", "slicing does not promise this"),
        ("no-such", {}, "mechanism", "Choose a mechanism"),
    ],
)
def test_wrong_values_are_named_by_field(project, mechanism, values, field, words):
    problems = check(project, mechanism, **values)["problems"]

    assert list(problems) == [field]
    assert words in problems[field]


def test_all_wrong_values_are_named_at_once(project):
    problems = check(project, "mondrian", k="x", l="y", t="far", split="z")["problems"]

    assert set(problems) == {"k-anonymity", "l-diversity", "t-closeness", "split"}


def test_entries_by_name_become_a_table(project):
    weights = {"performance": 0.5, "privacy": 0.25, "size": 0.25}
    found = check(project, "breach-aware", max_breach_increase="0", weights=as_text(weights))

    assert found["problems"] == {}
    assert found["parameters"] == {"max_breach_increase": 0, "weights": weights}


def test_a_comparison_is_asked_for_all_levels_that_it_knows(project):
    found = check(project, "", "compare", k="5", l="2", t="0.3", max_breach_increase="0", epsilon="1", strict="true")

    assert found["problems"] == {}
    assert found["asked"] == ["k=5", "l=2", "t=0.3", "breach-bound=0", "epsilon=1"]


@pytest.mark.parametrize(("name", "text"), [("max_unique_fraction", "0.1"), ("k", "x"), ("k", "0"), ("t", "nan")])
def test_a_comparison_refuses_what_it_cannot_ask_for(project, name, text):
    found = check(project, "", "compare", **{name: text})

    kinds = {"max_unique_fraction": "unique-patterns", "k": "k-anonymity", "t": "t-closeness"}
    assert set(found["problems"]) == {kinds[name]}
    assert name == "max_unique_fraction" or found["asked"] == []


def test_a_choice_lands_in_the_project_file_and_comments_stay(project):
    choose(project, mechanism="mondrian", parameters={"k": 7, "strict": False})

    assert written(project)["release"]["mechanism"] == "mondrian"
    assert written(project)["release"]["parameters"] == {"k": 7, "strict": False}
    assert "# mine" in project.read_text()
    assert "# why" in project.read_text()


def test_a_new_target_makes_a_quasi_identifier_of_the_former_one(project):
    choose(project, target="sex")
    roles = {column.name: column.role for column in load_project(project).columns}

    assert roles["sex"] is Role.TARGET
    assert roles["paid"] is Role.QUASI_IDENTIFIER
    assert written(project)["release"] == tomllib.loads(PROJECT)["release"]
    load_project(project).read()


def test_no_target_is_a_choice_too(project):
    choose(project, target="")

    assert load_project(project).read().schema.names(Role.TARGET) == ()


def test_a_refused_choice_leaves_the_file_as_it_was(project):
    before = project.read_bytes()
    with pytest.raises(ColumnNotFoundError):
        choose(project, mechanism="mondrian", parameters={"k": 7}, target="nobody")
    for wrong in ({"depth": 7}, {"k": 1}):
        with pytest.raises(InvalidParameterError):
            choose(project, mechanism="mondrian", parameters=wrong)

    assert project.read_bytes() == before


def test_hierarchies_and_binarize_stay_as_the_file_has_them(tmp_path):
    text = (
        PROJECT.replace("k = 5", 'k = 5\nhierarchies = { age = "h/age.csv" }')
        + "\n[binarize.columns]\nage = { cuts = [25] }\n"
    )
    path = small_project(tmp_path / "work", text)
    kept = check(path, "global-recoding", k="9")["parameters"]
    choose(path, mechanism="global-recoding", parameters=kept)

    assert written(path)["release"]["parameters"] == {"hierarchies": {"age": "h/age.csv"}, "k": 9}
    plan = {"columns": {"age": {"cuts": [25]}}}
    choose(path, mechanism="greedy-containment", parameters={"k": 3, "binarize": plan})
    assert written(path)["release"]["parameters"] == {"k": 3}
    assert written(path)["binarize"] == plan


def test_the_grid_lists_the_points_of_the_comparison_with_what_is_asked(project):
    found = goal.grid(project.parent, Silent(), project=str(project), asked=["k=17"])

    assert "mondrian k=17" in " ".join(found["points"])
    assert not any(re.search(r"\bk=(3|5|10)\b", label) for label in found["points"])
    assert "laplace-dp" in found["left_out"]


def test_a_project_file_that_cannot_be_read_is_said_in_words(tmp_path):
    with pytest.raises(InputError, match="there is no such project file"):
        check(tmp_path / "none.toml", "mondrian", k="5")


# ---- what the project file says


def test_the_signature_follows_data_and_columns_but_not_the_choice(project):
    before = read_written(project).signature
    choose(project, mechanism="mondrian", parameters={"k": 7})
    assert read_written(project).signature == before
    assert read_written(project).mechanism == "mondrian"

    choose(project, target="sex")
    changed = read_written(project).signature
    assert changed != before
    data = project.parent / "people.csv"
    os.utime(data, ns=(1, 1))
    assert read_written(project).signature != changed


def test_the_signature_follows_hierarchy_files(tmp_path):
    files = PROJECT.replace('"town" = {', '"town" = { hierarchy = "town.csv",')
    path = small_project(tmp_path / "work", files)
    file = path.parent / "town.csv"
    file.write_text("a,*\n")
    before = read_written(path).signature
    file.write_text("a,+\n")
    assert read_written(path).signature != before


@pytest.mark.parametrize("text", ["[data", "data = 3", "", "[data]\npath = 3", "[columns]\na = 3\n[data]\npath = 'x'"])
def test_a_broken_project_file_is_left_to_the_task_that_explains_it(tmp_path, text):
    path = small_project(tmp_path / "work", text)

    assert read_written(path).mechanism == ""
    assert read_written(path) == read_written(path)


def test_the_server_side_imports_no_heavy_library():
    code = (
        "import sys; import sfumato.web.views.goal, sfumato.web.views.run; import sfumato.report.guarantee_texts; "
        "print([m for m in ('numpy', 'pyarrow', 'scipy', 'sklearn', 'duckdb', 'matplotlib') if m in sys.modules])"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ---- the page


def test_without_a_project_every_address_leads_to_the_first_step(tmp_path):
    site = site_of(tmp_path, None)

    assert site.get("/goal").headers["location"] == "/open"
    for path in ("/goal/compare", "/goal/release"):
        assert (site.post(path).status, site.post(path).headers["location"]) == (303, "/open")
    for path in ("/goal/today", "/goal/fields"):
        assert site.get(path).headers["hx-redirect"] == "/open"


def test_the_risk_is_measured_once_while_the_table_is_the_same(site, project):
    for _ in range(3):
        assert "24 of 60 rows are unique" in site.get("/goal").seen.texts["goal-body"]
    choose(project, mechanism="mondrian", parameters={"k": 7})
    site.get("/goal")
    assert [task for task, _ in site.page.jobs.started] == ["goal.risk_today"]

    choose(project, target="sex")
    assert "Measured over 3" in site.get("/goal").text
    assert [task for task, _ in site.page.jobs.started] == ["goal.risk_today"] * 2


def test_progress_is_polled_while_the_risk_is_measured_and_then_no_more(site):
    site.page.jobs.waits.add("goal.risk_today")
    first = site.get("/goal")
    assert first.seen.by_id["goal-body"]["hx-get"] == "/goal/today"
    assert "goal-form" not in first.seen.by_id

    site.page.jobs.waits.clear()
    job = site.page.job("risk")
    end(job, result=goal.risk_today(job.folder, Silent(), project=str(site.page.state.project)))
    fragment = site.get("/goal/today")
    assert "hx-get" not in fragment.seen.by_id["goal-body"]
    assert "goal-form" in fragment.seen.by_id
    assert "<html" not in fragment.text
    assert len(site.page.jobs.started) == 1


def test_a_newer_table_ends_the_measuring_of_the_older_one(site, project):
    site.page.jobs.waits.add("goal.risk_today")
    site.get("/goal")
    older = site.page.job("risk")
    choose(project, target="sex")
    site.get("/goal")

    until(lambda: older.status == "cancelled")
    assert site.page.job("risk").status == "running"


def test_a_table_that_cannot_be_read_is_explained_and_can_be_tried_again(site, project):
    data = project.parent / "people.csv"
    data.rename(data.with_suffix(".away"))
    answer = site.get("/goal")
    assert "goal-form" not in answer.seen.by_id
    assert "people.csv" in answer.seen.texts["goal-body"]
    site.get("/goal")
    assert len(site.page.jobs.started) == 1

    data.with_suffix(".away").rename(data)
    assert site.post("/goal/risk").headers["location"] == "/goal"
    assert "goal-form" in site.get("/goal").seen.by_id


def test_a_new_project_starts_with_the_recommended_mechanism(site):
    assert site.get("/goal").seen.values["mechanism"] == "auto"


def test_fields_begin_with_what_a_comparison_would_try(site, project):
    proposed = {one["name"]: one["proposed"] for one in choices_of(project)["mechanisms"]}
    assert proposed["greedy-containment"] == {"k": 5, "on_infeasible": "skip"}
    assert proposed["breach-aware"] == {"sensitive": "illness"}
    assert proposed["laplace-dp"] == {}
    for name, settings in proposed.items():
        values = site.get("/goal/fields", mechanism=name, shown=name).seen.values
        kinds = {parameter: kind for kind, parameter in levels_of(registered_mechanisms()[name], {}).items()}
        fields = {key: f"promise-{kinds[key]}" if key in kinds else f"set-{key}" for key in settings}
        assert {fields[key]: as_text(value) for key, value in settings.items()}.items() <= values.items()


def test_fine_tuning_is_open_only_where_somebody_tuned(site, project):
    def is_open(answer):
        place = next(
            number for number, (_, found) in enumerate(answer.seen.elements) if found.get("id") == "goal-settings"
        )
        tag, found = answer.seen.elements[place + 1]
        assert tag == "details"
        return "open" in found

    assert not is_open(site.get("/goal"))
    assert is_open(site.post("/goal/release", filled_for(site, "gain-recoding", **{"set-threshold": "x"})))
    choose(project, mechanism="mondrian", parameters={"k": 7, "strict": False})
    assert is_open(site.get("/goal"))


def test_a_choice_of_ones_own_is_shown_again(site, project):
    choose(project, mechanism="mondrian", parameters={"k": 7, "strict": False})
    values = site.get("/goal").seen.values

    assert (values["mechanism"], values["promise-k-anonymity"], values["set-strict"]) == ("mondrian", "7", "false")
    assert values["promise-l-diversity"] == ""


@pytest.mark.parametrize("mechanism", ["auto", "greedy-containment"])
def test_a_chosen_first_choice_is_shown_again(site, mechanism):
    level = "promise-containment" if "containment" in mechanism else "promise-k-anonymity"
    fields = {"mechanism": mechanism, "target": "paid", level: "5", "promise-l-diversity": "2"}
    if "containment" in mechanism:
        del fields["promise-l-diversity"]
    assert site.post("/goal/release", fields).status == 303

    assert site.get("/goal").seen.values["mechanism"] == mechanism


def test_the_comparison_of_this_table_recommends_with_its_settings(site, project):
    site.post("/goal/compare", filled(site))
    found = {"mechanism": "mondrian", "parameters": {"k": 8}, "why": "Recommended: mondrian k=8. It is the best."}
    end(site.page.job("compare"), result={"recommended": found})
    answer = site.get("/goal")
    assert found["why"] in answer.text
    assert (answer.seen.values["mechanism"], answer.seen.values["promise-k-anonymity"]) == ("mondrian", "8")

    choose(project, target="sex")
    assert found["why"] not in site.get("/goal").text


def test_another_mechanism_brings_its_own_fields_and_keeps_the_levels_it_takes(site):
    shown = filled_for(
        site, "gain-recoding", **{"promise-k-anonymity": "12", "promise-l-diversity": "3", "set-max_seconds": "5"}
    )
    answer = site.get("/goal/fields", **{**shown, "mechanism": "mondrian"})
    values = answer.seen.values
    assert values["shown"] == "mondrian"
    assert [values[f"promise-{kind}"] for kind in ("k-anonymity", "l-diversity", "t-closeness")] == ["12", "3", ""]
    assert "set-max_seconds" not in values
    assert values["set-strict"] == "true"
    assert answer.seen.by_id["goal-guarantees"]["hx-swap-oob"] == "true"


def test_a_k_of_one_kind_is_not_taken_for_a_k_of_another(site):
    """Twelve people who look alike are not asked for as buckets of twelve, nor as (12,12)-anonymity."""
    shown = filled_for(site, "mondrian", **{"promise-k-anonymity": "12", "promise-l-diversity": "3"})
    for mechanism, kind, other in (
        ("slicing", "bucket-size", "bucket-diversity"),
        ("error-risk-tree", "kk-anonymity", "l-diversity"),
        ("greedy-containment", "containment", "unique-patterns"),
    ):
        values = site.get("/goal/fields", **{**shown, "mechanism": mechanism}).seen.values
        assert (values["promise-k-anonymity"], values[f"promise-{kind}"]) == ("", "5")
        assert f"promise-{other}" in values


@pytest.mark.parametrize(
    ("mechanism", "setting", "kind", "other"),
    [
        ("error-risk-tree", {"set-generalization": "uniform"}, "k-anonymity", "kk-anonymity"),
        ("greedy-containment", {"set-reveals": "both"}, "k-anonymity", "containment"),
        ("auto", {"set-attacker_knows": "ones"}, "containment", "k-anonymity"),
    ],
)
def test_a_setting_that_makes_another_promise_of_k_brings_its_field(site, project, mechanism, setting, kind, other):
    before = filled_for(site, mechanism, **{f"promise-{other}": "7"})
    (name,) = setting
    assert site.get("/goal/fields", **before).seen.by_id[name]["hx-get"] == "/goal/fields"
    shown = site.get("/goal/fields", **{**before, **setting}).seen.values
    assert (shown[f"promise-{kind}"], shown[f"promise-{other}"]) == ("5", "")

    assert site.post("/goal/release", {**before, **setting}).status == 422, "taken for a level of another kind"
    if mechanism != "auto":  # which refuses ones for this table
        assert site.post("/goal/release", {**before, **shown, f"promise-{kind}": "6"}).status == 303
        assert written(project)["release"]["parameters"]["k"] == 6
        again = site.get("/goal").seen.values
        assert (again[f"promise-{kind}"], again[f"promise-{other}"]) == ("6", "")


def test_every_level_is_called_by_its_own_name(site):
    texts = site.get("/goal").seen.texts["goal-guarantees"]
    for one in goal_guarantees():
        assert f"{one.name} ({one.symbol}): " in texts
    assert len({one.name for one in goal_guarantees()}) == len({one.why for one in goal_guarantees()}) > 8


def test_an_emptied_level_is_refused_where_the_mechanism_would_promise_its_own(site, project):
    before = project.read_bytes()
    answer = site.post("/goal/release", filled(site, **{"promise-k-anonymity": " "}))
    assert answer.status == 422
    assert "auto always promises k-anonymity" in answer.seen.texts["problem-k-anonymity"]
    assert project.read_bytes() == before


def test_an_emptied_l_is_not_promised_and_the_page_says_so(site, project):
    about = site.get("/goal").seen.texts["about-promise-l-diversity"]
    assert "Left empty, it is not promised. All people of a group may share one sensitive value" in about
    assert "Left empty" not in site.get("/goal").seen.texts["about-promise-k-anonymity"]
    assert site.post("/goal/release", filled(site, **{"promise-l-diversity": ""})).status == 303
    assert written(project)["release"]["parameters"] == {"k": 5, "l": 1}
    made = build_mechanism("auto", written(project)["release"]["parameters"])
    assert made.for_table(load_project(project).read()).privacy == ()

    end(site.page.job("release"))
    fields = filled(site, **{"promise-l-diversity": "1"})
    assert site.post("/goal/release", fields).status == 303, "what the file says is refused"


def test_without_a_sensitive_column_nothing_is_asked_of_one(tmp_path):
    """The l = 2 of auto stayed when another mechanism was chosen, which then refused it."""
    project = small_project(tmp_path / "work", PROJECT.replace('"sensitive"', '"other"'))
    site = site_of(tmp_path, project)
    seen = site.get("/goal").seen
    assert seen.values["promise-l-diversity"] == ""
    assert "No column is sensitive" in seen.texts["about-promise-l-diversity"]
    assert site.post("/goal/release", seen.values).status == 303
    assert written(project)["release"]["parameters"] == {"k": 5}, "l = 1 would hold for columns that become sensitive"

    end(site.page.job("release"))
    typed = {**seen.values, "promise-l-diversity": "2"}
    assert site.get("/goal/fields", **{**typed, "mechanism": "mondrian"}).seen.values["promise-l-diversity"] == ""
    answer = site.post("/goal/release", {**typed, "mechanism": "mondrian"})
    assert "No column is sensitive" in answer.seen.texts["problem-l-diversity"]
    assert site.post("/goal/compare", typed).status == 422


def test_with_a_sensitive_column_the_l_of_auto_is_promised_by_the_next_mechanism_too(site):
    values = site.get("/goal/fields", **filled(site, mechanism="mondrian")).seen.values
    assert values["promise-l-diversity"] == "2"


def test_the_first_wrong_field_is_focused_and_told_what_is_wrong(site):
    typed = {"promise-l-diversity": "x", "set-max_suppressed_fraction": "7", "target": "nobody"}
    seen = site.post("/goal/release", filled_for(site, "gain-recoding", **typed)).seen
    assert [found["id"] for _, found in seen.elements if "autofocus" in found] == ["target"]
    seen = site.post("/goal/release", filled_for(site, "gain-recoding", **{**typed, "target": "sex"})).seen
    assert [found["id"] for _, found in seen.elements if "autofocus" in found] == ["promise-l-diversity"]
    for prefix, name in (("promise-", "l-diversity"), ("set-", "max_suppressed_fraction")):
        field = f"{prefix}{name}"
        assert seen.by_id[field]["aria-describedby"].split()[0] == f"problem-{name}"
        assert seen.by_id[f"problem-{name}"]["role"] == "alert"
    assert not [found for _, found in site.get("/goal").seen.elements if "autofocus" in found]


@pytest.mark.parametrize("mechanism", ["gain-recoding", "error-risk-tree", "greedy-containment", "breach-aware"])
def test_no_target_is_refused_at_once_where_one_is_needed(site, project, mechanism):
    before = project.read_bytes()
    answer = site.post("/goal/release", filled_for(site, mechanism, target=""))
    assert (answer.status, answer.seen.values["target"]) == (422, "")
    assert "Choose one" in answer.seen.texts["problem-target"]
    assert project.read_bytes() == before
    assert site.page.job("release") is None


def test_without_a_target_auto_lets_the_loss_of_detail_decide_and_the_page_says_so(site, project):
    assert "Without a target the loss of detail decides" in site.get("/goal").seen.texts["about-target"]
    assert site.post("/goal/release", filled(site, target="")).status == 303
    table = load_project(project).read()
    assert build_mechanism("auto", load_project(project).parameters).for_table(table).split == "penalty"
    assert "Without a target" in site.get("/goal").text


def test_a_table_of_features_needs_a_target_for_auto(tmp_path, sparse_project):
    site = site_of(tmp_path, sparse_project)
    answer = site.post("/goal/release", filled(site, target=""))
    assert "needs a target" in answer.seen.texts["problem-target"]
    assert site.page.job("release") is None


def test_making_a_release_writes_the_choice_and_goes_to_the_run(site, project):
    changes = {
        "promise-k-anonymity": "6",
        "promise-l-diversity": "2",
        "target": "sex",
        "set-regroup": "false",
        "quick": "yes",
    }
    fields = filled_for(site, "gain-recoding", **changes)
    answer = site.post("/goal/release", fields)

    assert (answer.status, answer.headers["location"]) == (303, "/run")
    assert written(project)["release"]["mechanism"] == "gain-recoding"
    assert written(project)["release"]["parameters"] == {"k": 6, "l": 2, "regroup": False, "max_seconds": 1.0}
    assert read_written(project).target == "sex"
    assert site.page.jobs.started[-1] == ("release.make", {"project": str(project), "quick": True})
    assert site.page.job("release").title == "Make the release with gain-recoding"


def test_a_release_without_a_form_is_made_as_the_file_says(site, project):
    project.write_text(project.read_text(encoding="utf-8").replace('"auto"', '"mondrian"'), encoding="utf-8")
    before = project.read_bytes()
    assert site.post("/goal/release").status == 303

    assert site.page.jobs.started == [("release.make", {"project": str(project), "quick": False})]
    assert project.read_bytes() == before


def test_what_nobody_chose_is_not_released(site, project):
    """A new project file comes with a mechanism, which nobody has chosen."""
    answer = site.post("/goal/release")
    assert answer.status == 422
    assert "Nothing was chosen yet." in answer.text
    assert [task for task, _ in site.page.jobs.started if task == "release.make"] == []

    site.page.state.update(goal_chosen=str(project))
    assert site.post("/goal/release").status == 303


def test_settings_of_a_mechanism_that_was_not_chosen_are_not_taken(site, project):
    changes = {"promise-k-anonymity": "6", "promise-l-diversity": "", "set-attacker_knows": "ones"}
    fields = filled(site, mechanism="mondrian", **changes)
    assert fields["shown"] == "auto"
    assert site.post("/goal/release", fields).status == 303

    assert written(project)["release"]["parameters"] == {"k": 6}


def test_wrong_values_are_shown_beside_their_fields_and_stay(site, project):
    before = project.read_bytes()
    typed = {
        "promise-k-anonymity": 'a"<b>',
        "promise-l-diversity": "3",
        "promise-differential-privacy": "1",
        "set-threshold": "low",
        "target": "sex",
    }
    answer = site.post("/goal/release", filled_for(site, "gain-recoding", **typed))
    seen = answer.seen
    assert answer.status == 422
    assert {name: seen.values[name] for name in typed} == typed
    fields = {"k-anonymity": "promise-", "differential-privacy": "promise-", "threshold": "set-"}
    for name, prefix in fields.items():
        field = seen.by_id[f"{prefix}{name}"]
        assert (field["aria-invalid"], field["aria-errormessage"]) == ("true", f"problem-{name}")
        assert seen.texts[f"problem-{name}"].strip()
    assert "a whole number" in seen.texts["problem-k-anonymity"]
    assert "problem-l-diversity" not in seen.by_id
    assert "<b>" not in answer.text
    assert project.read_bytes() == before
    assert site.page.job("release") is None


def test_a_target_that_has_gone_is_a_problem_and_not_a_crash(site):
    for path in ("/goal/release", "/goal/compare"):
        answer = site.post(path, filled(site, target="nobody"))
        assert answer.status == 422
        assert "not found in the project file" in answer.text
    assert site.page.job("compare") is None


def test_a_comparison_needs_a_target(site):
    answer = site.post("/goal/compare", filled(site, target=""))

    assert answer.status == 422
    assert "needs a target" in answer.seen.texts["problem-target"]
    assert answer.seen.values["target"] == ""


def test_a_comparison_asks_for_what_was_typed_and_goes_to_the_run(site, project):
    answer = site.post(
        "/goal/compare", filled(site, **{"promise-k-anonymity": "4", "promise-l-diversity": "2", "target": "sex"})
    )

    assert (answer.status, answer.headers["location"]) == (303, "/run")
    wanted = {"project": str(project), "asked": ["k=4", "l=2"], "also": []}
    assert site.page.jobs.started[-1] == ("explore.compare", wanted)
    assert site.page.state.get("asked") == ["k=4", "l=2"]
    assert read_written(project).target == "sex"
    assert written(project)["release"] == tomllib.loads(PROJECT)["release"]


def test_kinds_of_promises_that_are_ticked_are_compared_as_well_and_stay_ticked(site, project):
    assert not any("checked" in field for name, field in site.get("/goal").seen.by_id.items() if "also-" in name)
    ticked = ["containment", "buckets"]
    assert site.post("/goal/compare", filled(site, **{"promise-k-anonymity": "4", "also": ticked})).status == 303

    assert site.page.jobs.started[-1][1]["also"] == ticked
    shown = site.get("/goal").seen.by_id
    assert {name for name, field in shown.items() if "also-" in name and "checked" in field} == {
        "also-containment",
        "also-buckets",
    }


def test_the_list_of_points_takes_ticked_kinds(site):
    assert "maximal-containment" not in points_listed(site.get("/goal/grid", **{"promise-k-anonymity": "5"}))
    assert "maximal-containment" in points_listed(
        site.get("/goal/grid", **{"promise-k-anonymity": "5", "also": "containment"})
    )


def points_listed(answer):
    """Give what is listed before the mechanisms that are left out."""
    return answer.text.partition("Left out")[0]


@pytest.mark.parametrize("purpose", ["release", "compare"])
def test_a_second_run_of_a_kind_is_refused_while_the_first_goes_on(site, project, purpose):
    fields = filled(site, **{"promise-k-anonymity": "6"})
    assert site.post(f"/goal/{purpose}", fields).status == 303
    before = project.read_bytes()
    answer = site.post(f"/goal/{purpose}", {**fields, "promise-k-anonymity": "7"})
    assert answer.status == 409
    assert 'href="/run"' in answer.text
    assert answer.seen.values["promise-k-anonymity"] == "7"
    assert project.read_bytes() == before

    end(site.page.job(purpose))
    assert site.post(f"/goal/{purpose}", fields).status == 303


@pytest.mark.parametrize("purpose", ["release", "compare"])
def test_two_tabs_at_the_same_moment_start_one_run(site, purpose):
    answers = site.post_twice(f"/goal/{purpose}", filled(site))

    assert sorted(answer.status for answer in answers) == [303, 409]
    assert len([task for task, _ in site.page.jobs.started if task != "goal.risk_today"]) == 1


def test_a_setting_for_which_the_release_was_refused_is_shown_beside_its_field(site, project):
    parameters = "[release.parameters]\nmax_unique_fraction = 2.0\n"
    text = project.read_text().replace('"auto"', '"greedy-containment"')
    project.write_text(text.replace("[release.parameters]\n", parameters))
    site.post("/goal/release")
    error = InvalidParameterError("max_unique_fraction", "got 2.0", allowed="between 0 and 1, or None")
    end(site.page.job("release"), "failed", error=TaskError.of(error))
    seen = site.get("/goal").seen

    assert "between 0 and 1" in seen.texts["problem-unique-patterns"]
    assert seen.values["promise-unique-patterns"] == "2.0"


def test_the_points_of_a_comparison_are_listed_on_request(site):
    answer = site.get("/goal/grid", **filled(site, **{"promise-k-anonymity": "17"}))
    assert "mondrian k=17" in answer.text
    count = int(re.search(r"<p>(\d+) releases", answer.text)[1])
    assert answer.text.count("<code>") == count > 3

    assert "must be a number" in site.get("/goal/grid", **{"promise-k-anonymity": "x"}).text


def test_mechanisms_that_do_not_fit_are_listed_with_the_reason_and_cannot_be_chosen(site):
    answer = site.get("/goal")
    radios = [found["value"] for tag, found in answer.seen.elements if found.get("type") == "radio"]

    assert "laplace-dp" not in radios
    assert "not all quasi-identifiers are 0/1" in answer.text
    assert sorted({*radios, "laplace-dp", "exponential-dp"}) == sorted(registered_mechanisms())


def test_every_control_has_a_label_and_every_description_exists(site):
    for name in registered_mechanisms():
        seen = (
            site.get(
                "/goal",
            ).seen
            if name == "gain-recoding"
            else site.get("/goal/fields", mechanism=name).seen
        )
        labelled = {found.get("for") for tag, found in seen.elements if tag == "label"}
        for tag, found in seen.elements:
            if tag in ("input", "select") and found.get("type") not in ("hidden", "radio"):
                assert found["id"] in labelled
            for described in found.get("aria-describedby", "").split():
                assert described in seen.by_id


def test_pages_need_no_inline_script_or_style(site):
    for path in ("/goal", "/definitions", "/run"):
        for tag, found in site.get(path).seen.elements:
            assert not any(name.startswith("on") or name == "style" for name in found)
            assert tag != "style"
            assert tag != "script" or "src" in found


def test_definitions_cover_every_guarantee_and_every_link_to_them(site):
    definitions = site.get("/definitions").seen
    assert set(GUARANTEES) <= set(definitions.by_id)
    for kind, guarantee in GUARANTEES.items():
        words = guarantee.words
        assert words.title in definitions.texts[kind]
        assert all(text in definitions.texts[kind] for text in (words.meaning, *words.not_promised))
    links = [found["href"] for tag, found in site.get("/goal").seen.elements if tag == "a"]
    anchors = [link.partition("#")[2] for link in links if link.startswith("/definitions")]

    assert len(anchors) > 10
    assert set(anchors) <= set(definitions.by_id)


def test_a_column_with_a_hostile_name_is_text(tmp_path):
    name = '<img src=x onerror="a()">'
    table = people().replace("town", '"' + name.replace('"', '""') + '"', 1)
    text = PROJECT.replace('"town"', "'" + name + "'")
    site = site_of(tmp_path, small_project(tmp_path / "work", text, table))
    answer = site.get("/goal")

    assert answer.status == 200
    assert "<img" not in answer.text
    assert site.post("/goal/compare", {**answer.seen.values, "target": name}).status == 303


def test_the_chosen_settings_are_those_that_the_release_is_built_with(site, project):
    site.post("/goal/release", filled_for(site, "mondrian", **{"promise-k-anonymity": "9", "set-strict": "false"}))
    found = load_project(project)

    assert repr(build_mechanism(found.mechanism, found.parameters)) == "Mondrian(k=9, strict=False, split='score')"


def test_the_step_works_with_real_processes(tmp_path, project):
    site = site_of(tmp_path, project, Jobs(tmp_path / "jobs"))
    try:
        site.get("/goal")
        job = site.page.job("risk")
        assert job._has_ended.wait(120)
        assert "24 of 60 rows are unique" in site.get("/goal").text
        assert site.post("/goal/release", filled(site, **{"promise-k-anonymity": "x"})).status == 422
    finally:
        site.page.jobs.close()


# ---- the form of the file


def test_the_forms_of_cells_are_those_of_the_mechanisms(site, project):
    offered = [one["name"] for one in choices_of(project)["cells"]]
    listed = site.get("/goal").text.partition('id="cells"')[2].partition("</select>")[0]
    shown = re.findall(r'<option value="(\w*)"', listed)

    assert offered == list(get_args(Cells))
    assert shown == ["", *offered]


def test_the_form_of_the_file_lands_in_the_project_file_and_is_shown_again(site, project):
    form = filled_for(site, "mondrian", cells="values", format=".tsv", escape="yes")

    assert site.post("/goal/release", form).status == 303
    assert written(project)["release"] | {"parameters": {}} == {
        "mechanism": "mondrian",
        "output": "release.tsv",
        "cells": "values",
        "escape_formulas": True,
        "parameters": {},
    }
    end(site.page.job("release"))
    values = site.get("/goal").seen.values
    assert {name: values[name] for name in ("cells", "format", "escape")} == {
        "cells": "values",
        "format": ".tsv",
        "escape": "yes",
    }

    form = {**filled(site), "cells": "", "format": ".csv"}
    del form["escape"]
    assert site.post("/goal/release", form).status == 303
    assert written(project)["release"].keys() == {"mechanism", "output", "parameters"}
    assert written(project)["release"]["output"] == "release.csv"


def test_a_form_without_these_fields_leaves_the_file_as_it_is(site, project):
    choose(project, cells="values", escape_formulas=True, output="kept.csv")
    form = {key: value for key, value in filled(site).items() if key not in ("cells", "format", "escape")}

    assert site.post("/goal/release", form).status == 303
    assert written(project)["release"]["cells"] == "values"
    assert written(project)["release"]["output"] == "kept.csv"


@pytest.mark.parametrize(
    ("mechanism", "changes", "place", "said"),
    [
        ("slicing", {"cells": "values"}, "cells", "does not make classes of rows by coarsening values"),
        ("mondrian", {"cells": "dots"}, "cells", "cells must be one of ranges, values"),
        ("mondrian", {"format": ".parquet", "escape": "yes"}, "escape", "used with CSV and TSV files"),
        ("mondrian", {"format": "/../x.csv"}, "format", "one of the formats in the list"),
    ],
)
def test_a_form_of_the_file_that_cannot_be_is_said_beside_it(site, project, mechanism, changes, place, said):
    before = project.read_bytes()

    answer = site.post("/goal/release", filled_for(site, mechanism, **changes))

    assert answer.status == 422
    assert said in answer.seen.texts[f"problem-{place}"]
    assert answer.seen.by_id[place]["aria-invalid"] == "true"
    assert project.read_bytes() == before


def test_the_format_of_the_original_comes_first(tmp_path, site):
    offered = re.findall(r'<option value="(\.[\w.]+)"', site.get("/goal").text)
    assert offered == list(OUTPUT_FORMATS)

    with (tmp_path / "people.sav").open("w+b") as file:
        write_table(read_table(tmp_path / "work" / "people.csv"), file, "sav")
    path = tmp_path / "survey.toml"
    path.write_text(PROJECT.replace("people.csv", "people.sav").replace("release.csv", "release.ndjson"))
    text = site_of(tmp_path / "other", path).get("/goal").text

    assert re.findall(r'<option value="(\.[\w.]+)"', text)[:2] == [".sav", ".ndjson"]
    assert "SPSS, as the original (.sav)" in text
    assert '<option value=".ndjson" selected>as the project file says' in text


def test_a_release_that_was_refused_for_its_output_is_said_at_the_format(site):
    site.post("/goal/release", filled(site))
    error = TaskError("output must be another", kind="InvalidParameterError", field="output", exit_code=2)
    end(site.page.job("release"), "failed", error=error)

    assert site.get("/goal").seen.texts["problem-format"] == "output must be another"
