"""The project file: what it may say, and what is said about mistakes."""

import pytest

from sfumato.errors import InputError, SfumatoError
from sfumato.project.file import load_project, toml_text
from sfumato.schema import Kind, Role

DATA = "age,sex,city,y\n30,m,a,1\n40,f,b,0\n30,m,a,0\n?,f,c,1\n"
COLUMNS = """
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
sex = { role = "quasi-identifier" }
city = { role = "other" }
y = { role = "target" }
"""


@pytest.fixture
def write(tmp_path):
    """Write a project beside its data and load it."""

    def load(text, data=DATA):
        (tmp_path / "data.csv").write_text(data)
        (tmp_path / "sfumato.toml").write_text(text)
        return load_project(tmp_path / "sfumato.toml")

    return load


def test_everything_a_project_says_is_taken(write):
    project = write(
        '[data]\npath = "data.csv"\nmissing = ["?"]\nmissing_rows = "drop"\n'
        + COLUMNS
        + '[binarize.columns]\nage = { cuts = [35] }\n[release]\nmechanism = "greedy-containment"\noutput = "out.csv"\n'
        "[release.parameters]\nk = 2\n"
    )
    table = project.read()

    assert table.n_rows == 3
    assert table.n_incomplete_dropped == 1
    assert table.schema["age"].kind is Kind.NUMERIC
    assert table.schema.target == "y"
    assert project.binarize == {"columns": {"age": {"cuts": [35]}}}
    assert (project.mechanism, project.parameters) == ("greedy-containment", {"k": 2})
    assert project.output.name == "out.csv"


def test_a_default_role_serves_columns_that_are_not_listed(write):
    project = write('[data]\npath = "data.csv"\ndefault_role = "other"\n[columns]\ny = { role = "target" }\n')

    assert project.read().schema.names(Role.OTHER) == ("age", "sex", "city")


def test_tokens_of_a_column_win_over_those_of_the_table(write):
    project = write(
        '[data]\npath = "data.csv"\n'
        + COLUMNS.replace('city = { role = "other" }', 'city = { role = "other", missing = ["c"] }')
    )

    assert project.read()["city"].n_missing == 1


def test_files_that_a_project_names_stand_in_its_own_folder(write, tmp_path):
    project = write(
        '[data]\npath = "data.csv"\n'
        + COLUMNS.replace("sex = {", 'sex = { hierarchy = "sex.csv",')
        + '[release.parameters]\nk = 2\nhierarchies = { age = "h/age.csv", city = "/etc/city.csv" }\n'
    )

    assert project.data_path == tmp_path / "data.csv"
    assert project.read().schema["sex"].hierarchy == str(tmp_path / "sex.csv")
    files = {"age": str(tmp_path / "h" / "age.csv"), "city": "/etc/city.csv"}
    assert project.parameters == {"k": 2, "hierarchies": files}


@pytest.mark.parametrize(("written", "taken"), [('"age.csv"', "age.csv"), ("{ age = 3 }", {"age": 3})])
def test_hierarchies_that_are_no_files_by_column_are_left_to_the_mechanism(write, written, taken):
    project = write(f'[data]\npath = "data.csv"\n[release.parameters]\nhierarchies = {written}\n')

    assert project.parameters["hierarchies"] == taken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no path"),
        ("[data]\npath = 3\n", "'path' in .* must be text"),
        ('[data]\npath = "data.csv"\nheader = "no"\n', "must be true or false"),
        ('[data]\npath = "data.csv"\nmissing = [3]\n', "must be a list of texts"),
        ('[data]\npath = "data.csv"\nmissing_rows = "forget"\n', "must be 'keep' or 'drop'"),
        ('[data]\npath = "data.csv"\ndelimeter = ";"\n', "did you mean 'delimiter'"),
        ('[data]\npath = "data.csv"\ndefault_role = "qi"\n', "must be one of"),
        ('[data]\npath = "data.csv"\n[columns]\ny = "target"\n', "must be written as"),
        ('[data]\npath = "data.csv"\n[columns]\ny = { kind = "numeric" }\n', "has no role"),
        ('[data]\npath = "data.csv"\n[columns]\ny = { role = "target", kin = "x" }\n', "did you mean 'kind'"),
        ('[data]\npath = "data.csv"\n[columns]\ny = { role = "target", kind = "number" }\n', "did you mean 'numeric'"),
        ("columns = 3\n", "must be a table"),
        ("\x80", "not valid TOML|not UTF-8"),
    ],
)
def test_mistakes_are_named(write, text, message):
    with pytest.raises(SfumatoError, match=message):
        write(text)


def test_a_folder_or_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InputError, match="not UTF-8"):
        load_project(tmp_path / "bytes.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_project(tmp_path)


@pytest.mark.parametrize("text", ["plain", 'a"b\\c', "tab\tnew\nline", "\x7f\x01", "é → 漢"])
def test_texts_survive_toml(text):
    import tomllib

    assert tomllib.loads(f"a = {toml_text(text)}")["a"] == text


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[data]\npath = "a.csv\n', "fix line 2 of sfumato.toml in a text editor"),
        ('[data]\npath = "a.csv"\n[columns', "fix sfumato.toml in a text editor"),
    ],
)
def test_a_file_that_is_no_toml_is_said_with_the_place_to_mend(tmp_path, text, hint):
    path = tmp_path / "sfumato.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=hint):
        load_project(path)
