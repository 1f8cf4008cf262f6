"""``init --update``: changed data are read again, and what people wrote into the project file stays."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.errors import ColumnNotFoundError, DataChangedError
from sfumato.project.describe import describe_to_project, update_project
from sfumato.project.file import load_project
from sfumato.schema import Kind, Role

ROWS = [f"{20 + i % 9},{'fm'[i % 2]},{'yn'[i % 3 == 0]}" for i in range(40)]


def write_data(folder: Path, header: str, rows: list[str], name: str = "people.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a project whose roles were reviewed by hand."""
    data = write_data(tmp_path, "age,sex,outcome", ROWS)
    path = tmp_path / "sfumato.toml"
    describe_to_project(data, path)
    text = path.read_text()
    reviewed = text.replace(
        '"sex" = { role = "quasi-identifier", kind = "categorical" }',
        '# the board, 3 May\n"sex" = { role = "other", kind = "categorical" }',
    )
    assert reviewed != text
    path.write_text(reviewed)
    return path


def test_reviewed_roles_and_comments_stay_and_the_hash_follows(project: Path) -> None:
    write_data(project.parent, "age,sex,outcome", [*ROWS, "77,f,y"])
    with pytest.raises(DataChangedError) as changed:
        load_project(project).read()
    before = project.read_text()

    updated = update_project(project)

    assert changed.value.remedy == ("update",)
    assert (updated.n_rows, updated.new, updated.gone) == (41, (), ())
    assert load_project(project).read().n_rows == 41
    after = project.read_text()
    differing = [(a, b) for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert [a.partition(" ")[0] for a, _ in differing] == ["sha256"]


def test_new_columns_are_added_with_guesses_and_gone_ones_become_comments(project: Path) -> None:
    rows = [f"{row.partition(',')[2]},{1000 + i},{'ab'[i % 2]}" for i, row in enumerate(ROWS)]
    write_data(project.parent, "sex,outcome,patient id,target", rows)

    updated = update_project(project)

    text = project.read_text()
    columns = tomllib.loads(text)["columns"]
    assert updated.gone == ("age",)
    assert list(columns) == ["sex", "outcome", "patient id", "target"]
    assert columns["sex"]["role"] == "other"
    assert columns["patient id"]["role"] == "identifier"
    assert columns["target"]["role"] == "quasi-identifier", "one target is enough, and it was reviewed"
    assert '# no longer in the data: "age" = { role = "quasi-identifier", kind = "numeric" }' in text
    assert "# the board, 3 May" in text
    assert '"patient id" = { role = "identifier", kind = "numeric" }  # name says patient id' in text
    assert load_project(project).read().n_rows == 40


def test_a_column_that_comes_back_is_new_again(project: Path) -> None:
    data = project.parent / "people.csv"
    first = data.read_bytes()
    write_data(project.parent, "sex,outcome", [row.partition(",")[2] for row in ROWS])
    update_project(project)
    data.write_bytes(first)

    updated = update_project(project)

    assert [guess.column.name for guess in updated.new] == ["age"]
    assert load_project(project).read().n_rows == 40


@pytest.mark.parametrize(
    "columns",
    [
        '[columns.age]\nrole = "quasi-identifier"\nkind = "numeric"\n[columns.outcome]\nrole = "target"\n',
        '[columns]\nage.role = "quasi-identifier"\nage.kind = "numeric"\noutcome.role = "target"\n',
        '[columns]\nage = { role = "quasi-identifier", kind = "numeric" }\noutcome = { role = "target" }\n',
    ],
)
def test_other_forms_of_toml(tmp_path: Path, columns: str) -> None:
    write_data(tmp_path, "sex,outcome", [row.partition(",")[2] for row in ROWS])
    path = tmp_path / "sfumato.toml"
    path.write_text(f'# mine\n[data]\npath = "people.csv"\nsha256 = "0"\n\n{columns}')

    updated = update_project(path)

    found = tomllib.loads(path.read_text())["columns"]
    assert (set(found), updated.gone) == ({"sex", "outcome"}, ("age",))
    assert found["outcome"]["role"] == "target"
    assert "no longer in the data: age" in path.read_text()
    assert path.read_text().startswith("# mine\n")


def test_a_kind_that_no_longer_fits_is_told(project: Path) -> None:
    write_data(project.parent, "age,sex,outcome", ["young,f,y", *ROWS])

    updated = update_project(project)

    assert updated.unfit == {"age": Kind.CATEGORICAL}
    assert tomllib.loads(project.read_text())["columns"]["age"]["kind"] == "numeric"


def test_roles_and_data_that_are_given_win(project: Path) -> None:
    write_data(project.parent, "age,sex,outcome", ROWS[:30], name="newer.csv")

    updated = update_project(project, data=project.parent / "newer.csv", roles={"sex": Role.TARGET})

    roles = {column.name: column.role for column in updated.project.columns}
    assert roles == {"age": Role.QUASI_IDENTIFIER, "sex": Role.TARGET, "outcome": Role.QUASI_IDENTIFIER}
    assert (updated.project.data_path.name, updated.project.read().n_rows) == ("newer.csv", 30)
    with pytest.raises(ColumnNotFoundError):
        update_project(project, roles={"agge": Role.OTHER})


class TestCommand:
    @pytest.mark.slow
    def test_the_hint_of_changed_data_names_it_and_it_works(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(project.parent)
        write_data(project.parent, "age,sex,outcome,town", [f"{row},{'xyz'[i % 3]}" for i, row in enumerate(ROWS)])
        assert run(["release", "-k", "2", "--dry-run"]) == 3
        first = capsys.readouterr().err

        assert run(["init", "--update"]) == 0
        second = capsys.readouterr().err

        assert "(sfumato init --update)" in first
        assert "new: 'town' = quasi-identifier" in second
        assert run(["release", "-k", "2", "--dry-run", "--quick"]) == 0

    def test_changed_rows_alone(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(project.parent)
        write_data(project.parent, "age,sex,outcome", ROWS[:-1])

        assert run(["release", "--dry-run"]) == 3
        assert "update sfumato.toml; reviewed roles are kept (sfumato init --update)" in (capsys.readouterr().err)

    @pytest.mark.parametrize(
        ("arguments", "code"), [(["--update", "--sheet", "x"], 2), (["--update", "-o", "-"], 2), ([], 2)]
    )
    def test_what_does_not_go_together(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
    ) -> None:
        monkeypatch.chdir(project.parent)

        assert run(["init", *arguments]) == code

    def test_init_says_what_release_will_need(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path, "age,town", [f"{20 + i % 9},{'abc'[i % 3]}" for i in range(40)])

        assert run(["init", "people.csv"]) == 0
        err = capsys.readouterr().err

        assert "no target column was found" in err
        assert '--target COLUMN, or write role = "target" in sfumato.toml' in err
        assert "# No target column was found" in (tmp_path / "sfumato.toml").read_text()
        assert run(["init", "people.csv", "--force", "--target", "town"]) == 0
        assert "no target column was found" not in capsys.readouterr().err
