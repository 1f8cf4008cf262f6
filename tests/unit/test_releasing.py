"""``sfumato.release`` takes what people have: a frame, as many roles as they know, a mechanism by name or object."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import ColumnNotFoundError, InvalidParameterError, SchemaError
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table

N = 120
CELLS: dict[str, list[Any]] = {
    "sex": ["f", "m"] * 60,
    "smokes": ["y", "y", "n", "n"] * 30,
    "mixed": [1, 2, "other", 3] * 30,
    "ill": ["y", "n", "n", "n"] * 30,
}


def frames() -> list[Any]:
    plain = {name: [str(value) for value in values] for name, values in CELLS.items()}
    return [
        pytest.param(pd.DataFrame(CELLS), id="pandas"),
        pytest.param(pl.DataFrame(plain), id="polars"),
        pytest.param(pl.LazyFrame(plain), id="lazy polars"),
        pytest.param(pa.table(plain), id="pyarrow"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("frame", frames())
def test_a_frame_and_a_target_are_enough(frame: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = sfumato.release(frame, target="ill", k=5)

    assert made.manifest.mechanism["name"] == "mondrian"
    assert made.manifest.mechanism["parameters"]["split"] == "score"
    assert made.manifest.mechanism["parameters"]["k"] == 5
    assert {g.column.name: g.column.role for g in made.guesses} == dict.fromkeys(
        ("sex", "smokes", "mixed"), Role.QUASI_IDENTIFIER
    )
    assert all(guess.reason for guess in made.guesses)
    published = sfumato.publish(made, tmp_path / "release.csv", original=frame)
    assert published.audit.passed


@pytest.mark.slow
def test_it_is_the_release_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(CELLS)
    frame.to_csv("people.csv", index=False)
    assert run(["release", "people.csv", "--target", "ill", "--quick", "-o", "a.csv"]) == 0

    sfumato.publish(sfumato.release("people.csv", target="ill"), "b.csv", original="people.csv")

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("roles", [{"smokes": "sensitive"}, {"smokes": Role.SENSITIVE}])
def test_roles_are_words_or_roles(roles: dict[str, Any]) -> None:
    made = sfumato.release(pd.DataFrame(CELLS), "mondrian", target="ill", roles=roles, k=3)

    described = {guess.column.name: guess.column.role for guess in made.description}
    assert described == {
        "sex": Role.QUASI_IDENTIFIER,
        "smokes": Role.SENSITIVE,
        "mixed": Role.QUASI_IDENTIFIER,
        "ill": Role.TARGET,
    }
    assert {guess.column.name for guess in made.guesses} == {"sex", "mixed"}
    assert "Guessed roles" in made._repr_html_()


@pytest.mark.slow
def test_a_mechanism_by_name_takes_its_parameters() -> None:
    frame = pd.DataFrame(CELLS)
    by_name = sfumato.release(frame, "greedy-containment", target="ill", k=4, on_infeasible="skip")
    by_object = sfumato.release(frame, sfumato.GreedyContainmentSelector(k=4, on_infeasible="skip"), target="ill")

    assert by_name.manifest.mechanism == by_object.manifest.mechanism
    assert by_name.table.n_rows == by_object.table.n_rows == N


@pytest.mark.slow
def test_the_old_form_still_works() -> None:
    table = admissions(n_rows=300)

    made = sfumato.release(table, sfumato.Mondrian(k=5))

    assert made.description == made.guesses == ()
    assert made.manifest.mechanism["name"] == "mondrian"


@pytest.mark.slow
def test_a_table_keeps_its_roles_but_for_those_given() -> None:
    table = admissions(n_rows=300)
    target = table.schema.target
    other = table.schema.names(Role.QUASI_IDENTIFIER)[0]

    made = sfumato.release(table, sfumato.Mondrian(k=5), roles={other: "other"})

    released = {column["name"]: column["role"] for column in made.manifest.output["columns"]}
    assert (released[other], released[str(target)]) == ("other", "target")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target": "il"}, ColumnNotFoundError, "did you mean 'ill'?"),
        ({"roles": {"sax": "other"}, "target": "ill"}, ColumnNotFoundError, "did you mean 'sex'?"),
        ({"roles": {"sex": "quasi_identifier"}}, SchemaError, "did you mean 'quasi-identifier'?"),
        ({"roles": {"sex": 7}}, SchemaError, "'7' is not a role"),
        ({"roles": ["sex"]}, SchemaError, "roles must be a mapping"),
        ({"target": "ill", "roles": {"sex": "target"}}, InvalidParameterError, "target must be given once"),
        ({"target": "ill", "roles": {"ill": "other"}}, InvalidParameterError, "target must be given once"),
        ({"mechanism": "mondrain", "target": "ill"}, InvalidParameterError, "did you mean 'mondrian'?"),
        ({"mechanism": object(), "target": "ill"}, InvalidParameterError, "a mechanism or the name of one"),
        ({"mechanism": sfumato.Mondrian(), "k": 3}, InvalidParameterError, "given with a mechanism by name only"),
        ({"kay": 3, "target": "ill"}, InvalidParameterError, "got 'kay'"),
    ],
)
def test_mistakes_are_explained(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        sfumato.release(pd.DataFrame(CELLS), **arguments)

    assert message in str(caught.value)
    assert "--" not in str(caught.value)


def test_no_target_is_said_without_an_option() -> None:
    frame = pd.DataFrame({name: CELLS[name] for name in ("sex", "smokes", "mixed")})

    with pytest.raises(SchemaError, match=r"no column has the role target\. Hint: name the target column$"):
        sfumato.release(frame, "greedy-containment")


@pytest.mark.slow
def test_a_release_of_a_table_needs_a_table_to_be_published(tmp_path: Path) -> None:
    made = sfumato.release(admissions(n_rows=300), sfumato.Mondrian(k=5))

    with pytest.raises(InvalidParameterError, match="original must be a Table or BinaryTable, got a DataFrame"):
        sfumato.publish(made, tmp_path / "release.csv", original=pd.DataFrame(CELLS))


@pytest.mark.slow
def test_another_frame_is_not_the_original(tmp_path: Path) -> None:
    made = sfumato.release(pd.DataFrame(CELLS), target="ill", k=5)
    other = pd.DataFrame({**CELLS, "sex": ["m", "f"] * 60})

    with pytest.raises(sfumato.errors.AuditFailedError):
        sfumato.publish(made, tmp_path / "release.csv", original=other)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_was_described_is_not_in_the_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({**CELLS, "patient id": [f"CANARY {i}" for i in range(N)]})
    made = sfumato.release(frame, target="ill", k=5)
    published = sfumato.publish(made, tmp_path / "release.csv", original=frame)

    assert "name says" not in published.manifest_path.read_text()
    assert "CANARY" not in published.table_path.read_text() + published.manifest_path.read_text() + repr(made)
    table = sfumato.read_table(frame, options=sfumato.ReadOptions(mixed_as_text=True))
    table = table.with_schema({guess.column.name: guess.column.role for guess in made.description})  # type: ignore[union-attr]
    assert audit_published(published.table_path, published.manifest_path, original=table, check_roles=True).passed


class TestWithSchema:
    def table(self) -> Table:
        return Table.from_arrow(
            pa.table({"age": [1, 2], "sex": ["f", "m"]}), Schema.of([Column("age"), Column("sex", Role.OTHER)])
        )

    @pytest.mark.parametrize("role", ["target", Role.TARGET])
    def test_takes_roles(self, role: Any) -> None:
        described = self.table().with_schema({"age": role})

        assert (described.schema["age"].role, described.schema["sex"].role) == (Role.TARGET, Role.OTHER)

    def test_explains_mistakes(self) -> None:
        with pytest.raises(ColumnNotFoundError, match="did you mean 'age'"):
            self.table().with_schema({"agge": "target"})
        with pytest.raises(
            SchemaError, match=r"column 'age': 'sensitiv' is not a role\. Hint: did you mean 'sensitive'\?"
        ):
            self.table().with_schema({"age": "sensitiv"})

    def test_of_a_large_table(self, tmp_path: Path) -> None:
        from sfumato.engines.blocks.rows import open_large

        (tmp_path / "t.csv").write_text("age,sex\n1,f\n2,m\n")
        opened = open_large(tmp_path / "t.csv", memory=1 << 30).with_schema({"sex": "target"})

        assert opened.schema.target == "sex"
