"""Guessing roles: each rule, their order, and that no cell value is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sfumato.datasets.admissions import admissions
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import ColumnNotFoundError, SchemaError
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.binary import BinaryTable, Feature
from sfumato.table.coding import Table
from sfumato.table.column_names import split_name
from sfumato.table.io.read import read_table
from sfumato.table.roles import ColumnGuess, describe_columns
from unit.table.call_counts import n_calls

N = 100
MANY = [f"v{i}" for i in range(N)]
FEW = ["a", "b", "c", "d", "e"] * 20
TWO = ["a", "b"] * 50


def table_of(cells: dict[str, Any], **kinds: Kind) -> Table:
    arrow = pa.table(cells)
    return Table.from_arrow(
        arrow, Schema.of(Column(n, kind=kinds.get(n, Kind.CATEGORICAL)) for n in arrow.column_names)
    )


def guess_of(name: str, cells: Any, kind: Kind = Kind.CATEGORICAL) -> ColumnGuess:
    """Describe one column; another one stands after it, so that it is not the last."""
    return describe_columns(table_of({name: cells, "age": FEW}, **{name: kind}))[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("patientID", " patient id "),
        ("patient-id", " patient id "),
        ("PatientIDNumber", " patient id number "),
        ("paid", " paid "),
        ("diag_1", " diag 1 "),
        ("e-mail", " e mail "),
        ("x12y", " x 12 y "),
        ("Größe (cm)", " größe cm "),
        ("?", "  "),
    ],
)
def test_names_are_split_into_words(name: str, words: str) -> None:
    assert split_name(name) == words


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "Name",
        "e-mail",
        "Email",
        "phone",
        "SSN",
        "mrn",
        "first_name",
        "lastName",
        "patient_nbr",
        "customerId",
        "address",
    ],
)
def test_identifying_names_are_identifiers(name: str) -> None:
    """One that numbers people and repeats tells them apart; it is never released either."""
    cells = [f"v{i % 30}" for i in range(N)]
    numbers_people = name in ("SSN", "mrn", "patient_nbr", "customerId")

    assert guess_of(name, cells).column.role is (Role.PERSON if numbers_people else Role.IDENTIFIER)


@pytest.mark.parametrize("name", ["paid", "valid", "drug_name", "idea", "zip", "admission_type_id"])
def test_names_that_only_look_identifying_are_not(name: str) -> None:
    cells = [f"v{i % 4}" for i in range(N)]

    assert guess_of(name, cells).column.role is Role.QUASI_IDENTIFIER


def test_a_yes_no_column_named_phone_is_no_phone_number() -> None:
    assert guess_of("own_telephone", TWO).column.role is Role.QUASI_IDENTIFIER


def test_unique_values_make_an_identifier_and_the_reason_counts_them() -> None:
    cells = [*MANY[:98], "v0", "v1"]

    assert guess_of("ticket", MANY).reason == "unique in 100.0 % of rows → identifier"
    assert guess_of("ticket", cells).reason == "unique in 96.0 % of rows → identifier"
    assert guess_of("ticket", [*MANY[:90], *MANY[:10]]).reason.startswith(
        "80 of 90 values are in fewer than 2 rows each"
    )


def test_a_unique_decimal_measurement_is_no_identifier_but_a_unique_whole_number_is() -> None:
    decimals = [f"{i}.5" for i in range(N)]
    whole = [f"{i}.0" for i in range(N)]

    assert guess_of("ratio", decimals, Kind.NUMERIC).column.role is Role.QUASI_IDENTIFIER
    assert guess_of("ratio", decimals).column.role is Role.IDENTIFIER
    assert guess_of("ticket", whole, Kind.NUMERIC).column.role is Role.IDENTIFIER


def test_a_few_rows_say_nothing_about_uniqueness() -> None:
    table = table_of({"height": ["1", "2", "3"], "class": ["a", "b", "a"]})

    assert [g.column.role for g in describe_columns(table)] == [Role.QUASI_IDENTIFIER, Role.TARGET]


@pytest.mark.parametrize("name", ["target", "class", "label", "Outcome", "readmitted", "y", "salary-class", "income"])
def test_target_names_with_few_values_are_the_target(name: str) -> None:
    guess = guess_of(name, TWO)

    assert guess.column.role is Role.TARGET
    assert guess.reason == f"2 values and the name '{name}' → target"


def test_a_target_needs_two_to_twenty_values() -> None:
    assert guess_of("label", ["a"] * N).column.role is Role.OTHER
    assert guess_of("label", [f"v{i % 21}" for i in range(N)]).column.role is Role.QUASI_IDENTIFIER


@pytest.mark.parametrize("name", ["workclass", "work_class", "passenger class", "classy"])
def test_other_classes_are_no_targets(name: str) -> None:
    assert guess_of(name, TWO).column.role is Role.QUASI_IDENTIFIER


def test_of_several_targets_the_plainest_name_wins_then_two_values_then_the_rightmost() -> None:
    def target_of(**cells: Any) -> str | None:
        return next((g.column.name for g in describe_columns(table_of(cells)) if g.column.role is Role.TARGET), None)

    assert target_of(outcome=FEW, income=TWO, age=FEW) == "outcome"
    assert target_of(label=TWO, outcome=FEW, age=FEW) == "label"
    assert target_of(label=TWO, outcome=TWO, age=FEW) == "outcome"
    assert target_of(age=FEW, sex=FEW) is None


def test_income_that_is_not_the_target_is_sensitive() -> None:
    guesses = describe_columns(table_of({"income": TWO, "class": TWO}))

    assert [g.column.role for g in guesses] == [Role.SENSITIVE, Role.TARGET]


@pytest.mark.parametrize(
    "name", ["diagnosis", "discharge_diagnosis", "diag_1", "HIV", "religion", "monthly_salary", "disease"]
)
def test_sensitive_names_are_sensitive(name: str) -> None:
    assert guess_of(name, FEW).column.role is Role.SENSITIVE


def test_religion_as_a_yes_or_no_is_what_others_know() -> None:
    """As in CMC (wife-religion), which [ERP19] protects as one of nine quasi-identifiers."""
    assert guess_of("wife-religion", TWO).column.role is Role.QUASI_IDENTIFIER
    assert guess_of("HIV", TWO).column.role is Role.SENSITIVE


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("age", "age"),
        ("Gender", "gender"),
        ("zipCode", "zip code"),
        ("date_of_birth", "date of birth"),
        ("birthDate", "birth date"),
        ("native-country", "native country"),
        ("marital-status", "marital status"),
    ],
)
def test_names_of_what_others_know_are_quasi_identifiers(name: str, says: str) -> None:
    assert guess_of(name, FEW).reason == f"name says {says} → quasi-identifier"


def test_a_constant_column_is_other() -> None:
    assert guess_of("x", ["a"] * N).reason == "one value only → other"
    assert guess_of("x", pa.array([None] * N, pa.string())).reason == "no value at all → other"
    assert guess_of("x", ["a", None] * 50).column.role is Role.QUASI_IDENTIFIER


def test_what_is_not_known_is_a_quasi_identifier() -> None:
    guess = guess_of("x", FEW)

    assert guess.column.role is Role.QUASI_IDENTIFIER
    assert guess.reason == "not recognised: please decide"


def test_a_two_valued_last_column_is_the_target_when_nothing_else_is_and_its_name_says_nothing() -> None:
    taken = describe_columns(table_of({"age": FEW, "q": TWO}))[-1]

    assert taken.column.role is Role.TARGET
    assert taken.reason == "no column is named like a target; the last one has 2 values → target"
    for last, cells in {"sex": TWO, "hiv": TWO, "q": FEW}.items():
        assert describe_columns(table_of({"age": FEW, last: cells}))[-1].column.role is not Role.TARGET
    assert describe_columns(table_of({"class": TWO, "q": TWO}))[-1].column.role is Role.QUASI_IDENTIFIER


def test_overrides_come_first() -> None:
    table = table_of({"id": MANY, "class": TWO, "q": TWO})

    guesses = describe_columns(table, overrides={"id": Role.OTHER, "q": Role.TARGET})

    assert [g.column.role for g in guesses] == [Role.OTHER, Role.QUASI_IDENTIFIER, Role.TARGET]
    assert guesses[0].reason == "as given → other"
    with pytest.raises(ColumnNotFoundError, match="did you mean 'class'"):
        describe_columns(table, overrides={"clas": Role.TARGET})
    with pytest.raises(SchemaError, match="2 columns have the role target"):
        describe_columns(table, overrides={"q": Role.TARGET, "class": Role.TARGET})


def test_an_overridden_last_column_is_not_taken_as_the_target() -> None:
    guesses = describe_columns(table_of({"age": FEW, "q": TWO}), overrides={"q": Role.QUASI_IDENTIFIER})

    assert [g.column.role for g in guesses] == [Role.QUASI_IDENTIFIER, Role.QUASI_IDENTIFIER]


def test_kinds_are_kept_and_missing_cells_counted_apart() -> None:
    guess = guess_of("x", ["1", "2", None, "2"] * 25, Kind.NUMERIC)

    assert (guess.column.kind, guess.n_distinct, guess.n_missing) == (Kind.NUMERIC, 2, 25)


def test_reasons_hold_no_cell_value() -> None:
    cells = ["canary", "canary2"] * 50
    names = ["id", "ticket", "age", "class", "diagnosis", "x", "q"]

    guesses = describe_columns(table_of({**dict.fromkeys(names, cells), "key": [f"canary{i}" for i in range(N)]}))

    assert not any("canary" in guess.reason for guess in guesses)


def test_an_empty_table_is_described() -> None:
    guesses = describe_columns(table_of({"age": pa.array([], pa.string()), "x": pa.array([], pa.string())}))

    assert [g.column.role for g in guesses] == [Role.QUASI_IDENTIFIER, Role.OTHER]
    assert describe_columns(Table(Schema.of([]), {}, 0)) == []


def test_features_of_a_binary_table_are_quasi_identifiers() -> None:
    guesses = describe_columns(toy_containment_table())

    assert [g.column.role for g in guesses] == [Role.QUASI_IDENTIFIER] * 5 + [Role.TARGET]
    assert guesses[0].reason == "binary feature with 6 ones → quasi-identifier"
    assert [g.n_distinct for g in guesses] == [1, 2, 2, 2, 1, 2]
    with pytest.raises(SchemaError, match="'x1': is a binary feature"):
        describe_columns(toy_containment_table(), overrides={"x1": Role.IDENTIFIER})


def test_the_demo_table_is_described_as_its_own_schema_says() -> None:
    table = admissions(2000)

    guesses = describe_columns(table)

    assert {g.column.name: g.column.role for g in guesses} == {c.name: c.role for c in table.schema}


@pytest.mark.slow
def test_work_grows_with_the_columns_and_not_with_their_square() -> None:
    calls = {}
    for n_columns in (500, 2_000):
        names = [f"token_{i}" for i in range(n_columns)]
        matrix = sp.random(500, n_columns, 0.01, "csc", rng=np.random.default_rng(0), data_rvs=np.ones)
        target = table_of({"class": ["a", "b"] * 250})
        binary = BinaryTable(matrix, tuple(Feature(name, name) for name in names), target)
        arrow = pa.table([pa.array([0, 1] * 250, pa.int8())] * len(names), names=names)
        plain = Table.from_arrow(arrow, Schema.of(map(Column, names)))

        assert len([*describe_columns(binary), *describe_columns(plain)]) == 2 * n_columns + 1
        calls[n_columns] = n_calls(lambda both=(binary, plain): [describe_columns(table) for table in both])
    assert calls[2_000] <= 4.2 * calls[500]


def test_a_column_of_numbers_with_a_few_others_says_why_it_is_categorical() -> None:
    cells = [str(i // 2) for i in range(60)] + ["canary", None]

    guess = describe_columns(table_of({"score": cells, "age": ["a", "b"] * 31}))[0]

    assert guess.reason.endswith("; 60 of 61 rows are numbers, kind categorical because of the others")
    assert guess.column.kind is Kind.CATEGORICAL


def test_a_mixture_in_the_last_column_does_not_change_the_guess() -> None:
    guesses = describe_columns(table_of({"x": ["a", "b"] * 30, "score": ["1"] * 30 + ["2"] * 30}))

    assert guesses[-1].column.role is Role.TARGET
    assert "numbers" not in guesses[-1].reason


class TestLastAttributeOfArff:
    def guesses(self, folder: Any, last: str, values: list[str], first: str = "x") -> dict[str, ColumnGuess]:
        declared = ",".join(dict.fromkeys(values))
        rows = "".join(f"{i % 7},{value}\n" for i, value in enumerate(values))
        path = folder / "t.arff"
        path.write_text(f"@relation r\n@attribute {first} numeric\n@attribute {last} {{{declared}}}\n@data\n{rows}")
        return {guess.column.name: guess for guess in describe_columns(read_table(path))}

    @pytest.mark.parametrize("n_classes", [2, 3, 25])
    def test_is_the_target_by_convention(self, tmp_path: Any, n_classes: int) -> None:
        found = self.guesses(tmp_path, "q7", [f"v{i % n_classes}" for i in range(200)])["q7"]

        assert found.column.role is Role.TARGET
        assert "the last attribute of an ARFF file is the class by convention" in found.reason

    @pytest.mark.parametrize(("last", "role"), [("sex", Role.QUASI_IDENTIFIER), ("religion", Role.SENSITIVE)])
    def test_unless_its_name_says_otherwise(self, tmp_path: Any, last: str, role: Role) -> None:
        assert self.guesses(tmp_path, last, ["a", "b", "c"] * 20)[last].column.role is role

    def test_unless_another_is_named_like_a_target(self, tmp_path: Any) -> None:
        found = self.guesses(tmp_path, "q7", ["a", "b", "c"] * 20, first="outcome")

        assert [guess.column.role for guess in found.values()] == [Role.TARGET, Role.QUASI_IDENTIFIER]

    def test_not_of_another_format_nor_with_very_many_values(self, tmp_path: Any) -> None:
        assert self.guesses(tmp_path, "q7", [f"v{i % 150}" for i in range(900)])["q7"].column.role is not Role.TARGET
        path = tmp_path / "t.csv"
        path.write_text("x,q7\n" + "".join(f"{i % 7},{'abc'[i % 3]}\n" for i in range(60)))
        assert all(guess.column.role is not Role.TARGET for guess in describe_columns(read_table(path)))
