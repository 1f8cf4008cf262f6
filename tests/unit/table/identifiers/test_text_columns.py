"""Text is released only if its values look like categories, or somebody has confirmed it, in every home and way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.errors import SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import CodedColumn, Table
from sfumato.table.identifiers.text_columns import check_text_columns, why_withheld
from sfumato.table.weighted import OpenColumn

N = 120
TICKETS = [f"T-{7 * i:03d}" for i in range(N)]
DAYS = [f"2023-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(N)]


def frame(**columns: Any) -> pa.Table:
    return pa.table({"age": [20 + i % 40 for i in range(N)], "ill": ["no", "yes", "no"] * 40, **columns})


def table_of(cells: list[Any], role: Role, kind: Kind = Kind.CATEGORICAL, *, confirmed: bool = False) -> Table:
    return Table.from_arrow(pa.table({"x": cells}), Schema.of([Column("x", role, kind, confirmed=confirmed)]))


@pytest.mark.parametrize("role", [Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.OTHER, Role.TARGET])
def test_a_text_of_its_own_in_every_row_has_to_be_confirmed(role: Role) -> None:
    with pytest.raises(SchemaError, match=f"'x' may name people and would be released with the role {role} ") as said:
        check_text_columns(table_of(TICKETS, role))

    assert "a letter, a hyphen and three digits, unique in 100.0 % of rows" in str(said.value)
    assert not [ticket for ticket in TICKETS if ticket in str(said.value)]
    check_text_columns(table_of(TICKETS, role, confirmed=True))


def test_what_is_not_released_has_not() -> None:
    check_text_columns(table_of(TICKETS, Role.IDENTIFIER))


def test_numbers_and_dates_have_not_for_they_become_ranges() -> None:
    measured = [f"{i * 0.137:.3f}" for i in range(N)]

    check_text_columns(table_of(measured, Role.QUASI_IDENTIFIER, Kind.NUMERIC))
    check_text_columns(table_of(DAYS, Role.QUASI_IDENTIFIER, Kind.DATE))


@pytest.mark.parametrize(("cells", "kind"), [(list(range(N)), Kind.NUMERIC), (DAYS, Kind.DATE)])
def test_numbers_and_days_of_their_own_in_every_row_are_not_passed_through(cells: list[Any], kind: Kind) -> None:
    """As ranges, or as what recipients want to learn, they are released; unchanged and unprotected they are not."""
    with pytest.raises(SchemaError, match="may name people and would be released with the role other"):
        check_text_columns(table_of(cells, Role.OTHER, kind))

    check_text_columns(table_of(cells, Role.SENSITIVE, kind))
    check_text_columns(table_of(cells[:10] * 12, Role.OTHER, kind))


def test_values_that_many_rows_share_have_not() -> None:
    check_text_columns(table_of([f"T-{i % 20:03d}" for i in range(N)], Role.QUASI_IDENTIFIER))
    check_text_columns(table_of(TICKETS[:19], Role.QUASI_IDENTIFIER))


def test_a_record_number_with_a_few_rows_a_person_has() -> None:
    cells = [f"P{100253 + i // 3}" for i in range(N)]

    assert why_withheld(Column("x"), CodedColumn.encode(pa.array(cells))).startswith(
        "looks like codes (a letter and six"
    )


def test_a_text_with_too_many_values_to_list_has() -> None:
    column = OpenColumn(np.zeros(0, dtype=np.int32), pa.array([], pa.string()), 10_000_000, 0, Kind.CATEGORICAL)

    assert why_withheld(Column("x"), column) == "a text with too many distinct values to list"
    assert why_withheld(Column("x", kind=Kind.NUMERIC), column) == ""


def test_all_of_them_are_named() -> None:
    described = Schema.of([Column("x", Role.OTHER), Column("y", Role.QUASI_IDENTIFIER)])
    with pytest.raises(SchemaError, match=r"column 'x' may name people .*; so would 'y'\."):
        check_text_columns(Table.from_arrow(pa.table({"x": TICKETS, "y": TICKETS}), described))


def test_python_asks_and_takes_the_decision() -> None:
    roles = {"ticket": "quasi-identifier", "ill": "target"}
    with pytest.raises(SchemaError, match="may name people"):
        sfumato.release(frame(ticket=TICKETS), "mondrian", roles=roles, k=5)

    made = sfumato.release(frame(ticket=TICKETS), "mondrian", roles=roles, k=5, confirmed=["ticket"])

    assert "ticket" in made.table.schema
    with pytest.raises(SchemaError, match="'tickt': not found"):
        sfumato.release(frame(ticket=TICKETS), "mondrian", roles=roles, k=5, confirmed=["tickt"])


@pytest.mark.slow
def test_out_of_core_asks_and_takes_the_decision(tmp_path: Path) -> None:
    given: dict[str, Any] = {"roles": {"ticket": "other", "ill": "target"}}
    mechanism = sfumato.GlobalRecoder(k=5)
    with pytest.raises(SchemaError, match="may name people"):
        sfumato.release_large(frame(ticket=TICKETS), mechanism, tmp_path / "a.csv", **given)
    assert list(tmp_path.iterdir()) == []

    done = sfumato.release_large(frame(ticket=TICKETS), mechanism, tmp_path / "a.csv", confirmed=["ticket"], **given)

    assert done.audit.passed


def test_a_differentially_private_release_does_not_look_at_the_rows_for_it() -> None:
    roles = {"ticket": "quasi-identifier", "ill": "target"}

    made = sfumato.release(frame(ticket=TICKETS), "laplace-dp", roles=roles, epsilon=1.0, n_features=1)

    assert made.manifest.is_differentially_private


@pytest.fixture
def data(tmp_path: Path) -> Path:
    from pyarrow import csv

    path = tmp_path / "people.csv"
    csv.write_csv(frame(ticket=TICKETS), path)
    return path


@pytest.mark.slow
def test_the_command_line_asks_and_takes_the_decision(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = data.with_name("release.csv")
    arguments = ["release", str(data), "-m", "mondrian", "--target", "ill", "--other", "ticket", "-o", str(output)]

    assert run(arguments) == 3
    said = capsys.readouterr().err
    assert "column 'ticket' may name people and would be released with the role other" in said
    assert "--confirm" in said
    assert not output.exists()
    assert run([*arguments, "--confirm", "ticket"]) == 0
    assert "T-007" in output.read_text(encoding="utf-8")


@pytest.mark.slow
def test_so_does_a_release_out_of_core(data: Path) -> None:
    output = data.with_name("release.csv")
    arguments = [
        "release",
        str(data),
        "-m",
        "global-recoding",
        "--memory",
        "1GB",
        "--target",
        "ill",
        "--other",
        "ticket",
    ]
    arguments += ["-o", str(output)]

    assert run(arguments) == 3
    assert run([*arguments, "--confirm", "ticket"]) == 0


@pytest.mark.slow
def test_the_project_file_takes_the_decision(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = data.with_name("sfumato.toml")
    assert run(["init", str(data), "-o", str(project), "--target", "ill", "--other", "ticket"]) == 0
    written = project.read_text(encoding="utf-8")

    assert run(["release", "--project", str(project), "-m", "mondrian"]) == 3
    assert "confirmed = true" in capsys.readouterr().err
    project.write_text(written.replace('role = "other"', 'role = "other", confirmed = true'), encoding="utf-8")
    assert run(["release", "--project", str(project), "-m", "mondrian"]) == 0
    assert run(["release", "--project", str(project), "--confirm", "ticket", "--force"]) == 2


def test_a_confirmation_must_be_true_or_false(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = data.with_name("sfumato.toml")
    assert run(["init", str(data), "-o", str(project), "--target", "ill", "--other", "ticket"]) == 0
    written = project.read_text(encoding="utf-8")
    project.write_text(written.replace('role = "other"', 'role = "other", confirmed = "yes"'), encoding="utf-8")

    assert run(["release", "--project", str(project)]) == 3
    assert "'confirmed' in column 'ticket' must be true or false" in capsys.readouterr().err


@pytest.mark.slow
def test_the_audit_claims_no_more_than_the_roles_say(tmp_path: Path) -> None:
    people = frame(ticket=TICKETS)
    made = sfumato.release(people, "mondrian", roles={"ticket": "other", "ill": "target"}, k=5, confirmed=["ticket"])

    published = sfumato.publish(made, tmp_path / "release.csv", original=people)

    said = {check.name: check.message for check in published.audit.checks}
    assert said["roles"] == "no released column has the role identifier"
    assert said["identifiers"] == "no column with the role identifier is released"


def test_a_comparison_asks_before_it_measures_anything(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data.with_name("run")

    assert run(["compare", str(data), "--target", "ill", "--other", "ticket", "--run-folder", str(folder)]) == 3
    assert "column 'ticket' may name people" in capsys.readouterr().err
    assert not folder.exists()
