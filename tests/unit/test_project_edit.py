"""Editing a project file changes what was asked and nothing else."""

import multiprocessing
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError, InvalidParameterError, SchemaError
from sfumato.project.edit import ProjectChanges, _edited, doubts_in, edit_project, guess_comment, project_with
from sfumato.project.file import _formats, load_project, parse_toml, project_of, toml_text
from sfumato.schema import Column, Kind, Reading, Role
from sfumato.table.preparing.declared import Preparation

PROJECT = """# first line, by hand
[data]
path = "data.csv"  # the table

[columns]
# roles: many
age = { role = "quasi-identifier", kind = "numeric" }  # name says age
'sex' = {role="quasi-identifier",kind="categorical"}
"zip code" = { role = "identifier", kind = "categorical", domain = ["a # b", "c = d"] }  # by hand

# the answer
y = { role = "target", kind = "categorical", hierarchy = "h/y.csv" }

[release]
mechanism = "greedy-containment"  # 'sfumato mechanisms' lists them
output = "release.csv"

[release.parameters]
# as agreed
k = 5  # the board's wish
on_infeasible = "skip"

# How columns become binary:
# [binarize.columns]
# age = { cuts = [25] }
"""
FORMS = {
    "lines": PROJECT,
    "windows": PROJECT.replace("\n", "\r\n"),
    "no last line end": PROJECT + "# end",
    "a table for each column": """[data]
path = "data.csv"
[columns.age]
role = "quasi-identifier"  # name says age
kind = "numeric"
[columns.sex]
# about sex
role = "quasi-identifier"
kind = "categorical"
[columns."zip code"]
role = "identifier"
kind = "categorical"
domain = ["a # b", "c = d"]
[columns.y]
role = "target"
kind = "categorical"
hierarchy = "h/y.csv"
[release]
mechanism = "greedy-containment"
output = "release.csv"
parameters = { k = 5, on_infeasible = "skip" }
""",
    "over several lines and dotted": """[release]
parameters.k = 5
parameters.on_infeasible = "skip"
mechanism = "greedy-containment"
output = "release.csv"
[data]
path = "data.csv"
[columns]
age.role = "quasi-identifier"  # name says age
age.kind = "numeric"
sex = { role = "quasi-identifier", kind = "categorical" }
"zip code" = { role = "identifier", kind = "categorical", domain = [
  "a # b",  # first
  "c = d",
] }
y = { role = "target", kind = "categorical", hierarchy = "h/y.csv" }
""",
    "a text that looks like a section": '''[data]
path = "data.csv"
[compare.grid.mondrian]
note = """
[columns]
age = 3
"""
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier", kind = "categorical" }
"zip code" = { role = "identifier", kind = "categorical", domain = ["a # b", "c = d"] }
y = { role = "target", kind = "categorical", hierarchy = "h/y.csv" }
[release]
mechanism = "greedy-containment"
output = "release.csv"
[release.parameters]
k = 5
on_infeasible = "skip"
''',
}
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["a b", "a.b", 'a"b', "a'b", "a=b", "a#b", "[a]", "漢字", "", "a\nb", "\\", "\x7f", "\u2028", "role", "true", "1"]
)
ROLES, KINDS = st.sampled_from([role for role in Role if role is not Role.TARGET]), st.sampled_from(list(Kind))
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


def edited(text, changes):
    """Text of a project file with changes."""
    return _edited(Path("the project file"), text.encode(), changes)[0]


def loaded(text, tmp_path):
    path = tmp_path / "sfumato.toml"
    return replace(project_of(path, b"", parse_toml(path, text.encode())), sha256="")


def comments(text):
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_project_takes_every_change(form, tmp_path):
    text = FORMS[form]
    before = loaded(text, tmp_path)

    result = edited(
        text,
        ProjectChanges(
            roles={"age": Role.OTHER, "sex": Role.SENSITIVE},
            kinds={"zip code": Kind.ORDERED},
            hierarchies={"age": "h/age.csv", "y": None},
            mechanism="mondrian",
            parameters={"k": 10, "strict": False, "c": None},
            output="out.parquet",
            weights=[0.5, 0.25, 0.25],
            data_sha256="0f" * 32,
        ),
    )

    age, sex, place, y = before.columns
    assert loaded(result, tmp_path) == replace(
        before,
        data_sha256="0f" * 32,
        columns=(
            replace(age, role=Role.OTHER, hierarchy=str(tmp_path / "h/age.csv")),
            replace(sex, role=Role.SENSITIVE),
            replace(place, kind=Kind.ORDERED),
            replace(y, hierarchy=None),
        ),
        mechanism="mondrian",
        parameters={"k": 10, "strict": False},
        output=tmp_path / "out.parquet",
        compare={**before.compare, "weights": [0.5, 0.25, 0.25]},
    )
    assert comments(result) == comments(text)
    assert (result.count("\r\n") == result.count("\n")) == ("\r" in text), "new lines end as the others do"


@pytest.mark.parametrize("form", FORMS)
def test_formats_preparations_and_the_form_of_the_file_come_and_go(form, tmp_path):
    text = FORMS[form]
    before = loaded(text, tmp_path)
    prepare = {"top": 90, "round": 0.5, "age_at": "2026-01-01"}
    masked = {"mask": {"keep_first": 2, "keep_last": 0, "character": "#"}}
    told = ProjectChanges(
        kinds={"age": Kind.DATE},
        formats={"age": {"date_format": "DD/MM/YYYY"}},
        preparations={"age": prepare, "sex": masked},
        cells="values",
        escape_formulas=True,
    )

    result = edited(text, told)

    age, *others = before.columns
    found = loaded(result, tmp_path)
    assert found.columns == (replace(age, kind=Kind.DATE, reading=Reading("DD/MM/YYYY")), *others)
    assert set(found.preparations) == {Preparation.of("age", prepare), Preparation.of("sex", masked)}
    assert (found.cells, found.escape_formulas) == ("values", True)
    assert comments(result) == comments(text)
    if "age.role" in text:  # several edits of dotted entries one after the other may be refused
        return

    again = edited(result, ProjectChanges(kinds={"age": Kind.NUMERIC}, formats={"age": {"number_format": "1.234,56"}}))
    assert loaded(again, tmp_path).columns[0].reading == Reading("1.234,56")
    gone = edited(
        again,
        ProjectChanges(formats={"age": None}, preparations={"age": None, "sex": None}, cells="", escape_formulas=False),
    )
    assert loaded(gone, tmp_path) == before


def test_a_comment_no_longer_calls_a_format_a_guess_once_it_is_said(tmp_path):
    reason = f"name says date{guess_comment('date_format', 'day first; no value (above 12) decides')}"
    text = f"""[data]
path = "data.csv"
[columns]
seen = {{ role = "other", kind = "date", date_format = "DD/MM/YYYY" }}  # {reason}
paid = {{ role = "other", kind = "date", date_format = "DD/MM/YYYY" }}  # {reason}
"""
    result = edited(text, ProjectChanges(formats={"seen": {"date_format": "DD/MM/YYYY"}}))

    (tmp_path / "before.toml").write_text(text)
    (tmp_path / "after.toml").write_text(result)
    assert set(doubts_in(tmp_path / "before.toml")) == {"seen", "paid"}
    assert doubts_in(tmp_path / "after.toml") == {"paid": "day first; no value (above 12) decides"}
    assert doubts_in(tmp_path / "nowhere.toml") == {}
    (tmp_path / "after.toml").write_text(result.replace("DD/MM/YYYY", "MM/DD/YYYY"))  # by hand, the comment left
    assert doubts_in(tmp_path / "after.toml") == {}
    lines = result.splitlines()
    assert lines[3].endswith('date_format = "DD/MM/YYYY" }  # name says date')
    assert lines[4] == text.splitlines()[4]


def test_a_project_with_changes_can_be_looked_at_and_nothing_is_written(tmp_path):
    path = tmp_path / "sfumato.toml"
    path.write_text(PROJECT)

    found = project_with(path, ProjectChanges(preparations={"age": {"top": 90}}))

    assert found.preparations == (Preparation.of("age", {"top": 90}),)
    assert path.read_text() == PROJECT
    with pytest.raises(InputError, match="no finite number"):
        project_with(path, ProjectChanges(preparations={"age": {"top": "many"}}))


def test_lines_that_nothing_changes_for_stay_to_the_letter():
    result = edited(PROJECT, ProjectChanges(roles={"sex": Role.OTHER}, parameters={"k": 7, "l": 2}, weights=(1, 2, 3)))

    assert result == PROJECT.replace("""'sex' = {role="quasi-identifier\"""", """'sex' = {role="other\"""").replace(
        'k = 5  # the board\'s wish\non_infeasible = "skip"\n', "k = 7  # the board's wish\nl = 2\n"
    ) + ("\n[compare]\nweights = [1, 2, 3]\n")


def test_nothing_asked_changes_nothing():
    same = {"k": 5, "on_infeasible": "skip"}

    assert edited(PROJECT, ProjectChanges()) == PROJECT
    assert edited(PROJECT, ProjectChanges(roles={"age": Role.QUASI_IDENTIFIER}, parameters=same)) == PROJECT


def test_a_whole_number_is_not_the_same_as_a_decimal_or_a_truth():
    texts = [edited(PROJECT, ProjectChanges(parameters={"k": k})) for k in (5.0, True)]

    assert [tomllib.loads(text)["release"]["parameters"]["k"] for text in texts] == [5.0, True]
    assert ["k = 5.0 " in texts[0], "k = true " in texts[1]] == [True, True]


@pytest.mark.slow
@given(st.data())
def test_any_columns_and_any_changes(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    drawn = data.draw(st.lists(NAMES, min_size=1, max_size=7, unique=True))
    names, new = drawn[:5], drawn[5:]
    reasons = data.draw(st.lists(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"])), min_size=5))
    columns = [Column(name, data.draw(ROLES), data.draw(KINDS)) for name in names]
    lines = [
        f'{toml_text(c.name)} = {{ role = "{c.role}", kind = "{c.kind}" }}  # {reason}'
        for c, reason in zip(columns, reasons, strict=False)
    ]
    text = "\n".join(["# head", "[data]", 'path = "d"', "[columns]", "# here", *lines, "", "# rest", ""])
    changed = data.draw(st.lists(st.sampled_from(names), unique=True)) + new
    roles = {name: data.draw(ROLES) for name in changed}
    kinds = {name: data.draw(KINDS) for name in changed}
    hierarchies = data.draw(st.dictionaries(st.sampled_from(names), NAMES | st.none()))
    parameters = data.draw(st.none() | st.dictionaries(NAMES, VALUES))

    result = edited(text, ProjectChanges(roles, kinds, hierarchies, parameters=parameters))

    before = loaded(text, folder)
    expected = [
        replace(
            c,
            role=roles.get(c.name, c.role),
            kind=kinds.get(c.name, c.kind),
            hierarchy=str(folder / hierarchies[c.name]) if hierarchies.get(c.name) is not None else None,
        )
        for c in [*before.columns, *(Column(name) for name in new)]
    ]
    options = replace(before.options, formats=_formats(expected))  # kinds say how texts are read
    described = replace(before, columns=tuple(expected), parameters=parameters or {}, options=options)
    assert loaded(result, folder) == described
    assert comments(result) == comments(text)
    for line, name in zip(lines, names, strict=True):
        assert (line in result.split("\n")) >= (name not in {*changed, *hierarchies})


def test_a_column_that_is_not_listed_is_added_with_the_default_role_or_its_own():
    text = '[data]\npath = "d"\ndefault_role = "other"\n[columns]\ny = { role = "target" }\n'

    result = edited(text, ProjectChanges(roles={"a b": Role.SENSITIVE}, kinds={"a b": Kind.DATE, "c": Kind.NUMERIC}))

    assert result == text + '"a b" = { role = "sensitive", kind = "date" }\nc = { role = "other", kind = "numeric" }\n'
    with pytest.raises(SchemaError, match=r"'d': is not listed .* both its role and its kind"):
        edited(text, ProjectChanges(roles={"d": Role.OTHER}))


def test_a_second_target_is_refused_unless_the_first_gives_its_role_up():
    new = {"sex": Role.TARGET}

    with pytest.raises(SchemaError, match=r"2 columns have the role target \('sex', 'y'\)"):
        edited(PROJECT, ProjectChanges(roles=new))
    result = tomllib.loads(edited(PROJECT, ProjectChanges(roles=new, former_target=Role.SENSITIVE)))["columns"]
    by_hand = tomllib.loads(edited(PROJECT, ProjectChanges(roles=new | {"y": Role.OTHER})))["columns"]

    assert (result["sex"]["role"], result["y"]["role"]) == ("target", "sensitive")
    assert (by_hand["sex"]["role"], by_hand["y"]["role"]) == ("target", "other")
    assert edited(PROJECT, ProjectChanges(roles={"y": Role.TARGET}, former_target=Role.OTHER)) == PROJECT


def test_a_plan_for_binary_features_is_said_once():
    text = PROJECT + "[binarize.columns]\nage = { cuts = [30] }\n"
    plan = {"columns": {"age": {"cuts": [30]}}}
    same, other = ({"k": 5, "on_infeasible": "skip", "binarize": p} for p in (plan, {"recipe": "adult-19"}))

    assert edited(text, ProjectChanges(parameters=same)) == text
    assert 'binarize = { recipe = "adult-19" }' in edited(text, ProjectChanges(parameters=other))


@pytest.mark.parametrize("value", [object(), [None], {"a": {1}}])
def test_values_that_toml_cannot_hold_are_refused(value):
    with pytest.raises(InvalidParameterError, match="must be text, a number"):
        edited(PROJECT, ProjectChanges(parameters={"k": value}))


@pytest.mark.parametrize("text", ["[columns", "columns = 3", '[columns]\na = "other"', "release = []"])
def test_what_is_no_project_is_refused(text):
    with pytest.raises(InputError, match=r"not valid TOML|must be tables"):
        edited(text, ProjectChanges(roles={"a": Role.OTHER}))


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "sfumato.toml"
    path.write_text(PROJECT)
    path.chmod(0o640)
    link = tmp_path / "link.toml"
    link.symlink_to(path)

    project = edit_project(link, ProjectChanges(mechanism="mondrian"))

    assert project.mechanism == load_project(path).mechanism == "mondrian"
    assert project.sha256 == load_project(path).sha256
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.toml", "sfumato.toml"]


@pytest.mark.parametrize(
    "changes",
    [
        ProjectChanges(roles={"age": "quasi"}),
        ProjectChanges(weights=[1.0]),
        ProjectChanges(roles={"age": Role.TARGET}),
        ProjectChanges(parameters={"k": object()}),
    ],
)
def test_a_bad_edit_never_lands(changes, tmp_path):
    path = tmp_path / "sfumato.toml"
    path.write_text(PROJECT)

    with pytest.raises((InputError, SchemaError, InvalidParameterError)):
        edit_project(path, changes)

    assert path.read_text() == PROJECT
    assert [file.name for file in tmp_path.iterdir()] == ["sfumato.toml"]


def test_a_file_that_is_not_there_or_no_project_is_refused(tmp_path):
    (tmp_path / "bad.toml").write_text("[columns]\n")

    with pytest.raises(InputError, match="no such project file"):
        edit_project(tmp_path / "absent.toml", ProjectChanges(mechanism="mondrian"))
    with pytest.raises(InputError, match="names no path"):
        edit_project(tmp_path / "bad.toml", ProjectChanges(mechanism="mondrian"))


def test_parameters_of_a_loaded_project_can_be_written_back(tmp_path):
    path = tmp_path / "sfumato.toml"
    files = 'hierarchies = { age = "h/age.csv", sex = "/elsewhere/sex.csv" }\n'
    path.write_text(PROJECT.replace("# as agreed\n", files))

    edit_project(path, ProjectChanges(parameters=load_project(path).parameters | {"k": 9}))

    assert path.read_text() == PROJECT.replace("# as agreed\n", files).replace("k = 5", "k = 9")


def _set_role(path, name):
    edit_project(path, ProjectChanges(roles={name: Role.OTHER}))


@pytest.mark.slow
def test_edits_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "sfumato.toml"
    names = [f"c{number}" for number in range(12)]
    lines = "".join(f'{name} = {{ role = "sensitive", kind = "numeric" }}\n' for name in names)
    path.write_text('[data]\npath = "d"\n[columns]\n' + lines)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_set_role, args=(path, name)) for name in names]

    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * len(names)
    assert {column.role for column in load_project(path).columns} == {Role.OTHER}


@pytest.mark.parametrize(
    ("line", "hierarchy", "expected"),
    [
        (
            'age = { role = "other", kind = "numeric" }  # mine',
            "h/age.csv",
            'age = { role = "other", kind = "numeric", hierarchy = "h/age.csv" }  # mine',
        ),
        (
            'age = {role="other",kind="numeric"}',
            "h/age.csv",
            'age = { role = "other", kind = "numeric", hierarchy = "h/age.csv" }',
        ),
        (
            'age = { role = "other", kind = "numeric", hierarchy = "h/age.csv" }  # mine',
            None,
            'age = { role = "other", kind = "numeric" }  # mine',
        ),
        (
            'age = { role = "other", hierarchy = "h/age.csv", kind = "numeric" }',
            "h/b.csv",
            'age = { role = "other", hierarchy = "h/b.csv", kind = "numeric" }',
        ),
    ],
)
def test_a_column_on_one_line_stays_well_spaced(line, hierarchy, expected):
    assert edited(f"[columns]\n{line}\n", ProjectChanges(hierarchies={"age": hierarchy})) == f"[columns]\n{expected}\n"
