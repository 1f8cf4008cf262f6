"""The role weight: never released, and its sum estimates the population."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from sfumato import Mondrian, release
from sfumato.errors import InvalidParameterError, SchemaError
from sfumato.measures.population import population_uniques, size_by_fraction
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.survey_weights import size_by_weights, weights_of

ROWS = [("30", "m", "2.5"), ("30", "m", "1"), ("41", "f", "7.25"), ("41", "f", "1")]


def _table(rows=ROWS):
    cells = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(("age", "sex", "w"))}
    columns = [Column("age", kind=Kind.NUMERIC), Column("sex"), Column("w", Role.WEIGHT, Kind.NUMERIC)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


def test_the_sum_of_weights_is_the_size_of_the_population():
    assert weights_of(_table(), "w").tolist() == [2.5, 1.0, 7.25, 1.0]
    assert size_by_weights(_table()) == 12  # 11.75
    assert size_by_weights(_table().keep(["age", "sex"])) is None
    assert size_by_weights(_table([("30", "m", "0.1")] * 5)) == 5  # no population is smaller than its sample


@pytest.mark.parametrize(
    ("cell", "said"),
    [(None, "no weight in 1 rows"), ("0", "not above 0"), ("-3", "not above 0"), ("many", "not numbers")],
)
def test_weights_that_are_none_are_refused_in_one_line(cell, said):
    with pytest.raises(SchemaError, match=said) as caught:
        size_by_weights(_table([*ROWS, ("30", "m", cell)]))
    assert "many" not in str(caught.value)


def test_weights_are_never_released():
    made = release(_table(), Mondrian(k=2))
    assert "w" not in made.table.schema
    assert made.manifest.dropped_columns == ("w",)


def test_there_is_one_column_of_weights():
    with pytest.raises(SchemaError, match="2 columns have the role weight"):
        Schema.of([Column("v", Role.WEIGHT), Column("w", Role.WEIGHT)])


def test_a_share_of_the_population_gives_its_size():
    assert [size_by_fraction(100, fraction) for fraction in (1.0, 0.5, 0.03)] == [100, 200, 3333]
    with pytest.raises(InvalidParameterError):
        size_by_fraction(100, 0.0)


@pytest.fixture
def survey(tmp_path):
    lines = ["age,sex,w"] + [f"{20 + i % 17},{'mf'[i % 2]},{1 + i % 4}" for i in range(120)]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "survey.csv"


def _profiled(capsys, *arguments):
    from sfumato.cli.main import run

    code = run(["audit", *arguments, "--json"])
    return code, capsys.readouterr().out


def test_the_command_takes_weights_a_fraction_or_a_size(survey, capsys):
    columns = ["--quasi-identifiers", "age,sex"]
    sizes = {}
    for row in range(120):
        key = (20 + row % 17, row % 2)
        sizes[key] = sizes.get(key, 0) + 1
    classes: dict[int, int] = {}
    for size in sizes.values():
        classes[size] = classes.get(size, 0) + 1
    for given, people in (
        (["--weight", "w"], 300),
        (["--sampling-fraction", "0.25"], 480),
        (["--population", "900"], 900),
    ):
        code, out = _profiled(capsys, str(survey), *columns, *given)
        assert code == 0
        assert json.loads(out)["unique_in_the_population"] == pytest.approx(
            population_uniques(classes, people), abs=1e-6
        )


def test_two_sizes_are_refused(survey, capsys):
    given = ["--quasi-identifiers", "age,sex", "--population", "900", "--sampling-fraction", "0.1"]
    assert _profiled(capsys, str(survey), *given)[0] == 2


@pytest.mark.slow
def test_a_population_table_is_compared_with_a_release(survey, tmp_path, capsys):
    from sfumato.cli.main import run

    lines = survey.read_text(encoding="utf-8").splitlines()
    (tmp_path / "sample.csv").write_text("\n".join(lines[:61]) + "\n", encoding="utf-8")
    made = ["release", str(tmp_path / "sample.csv"), "-m", "mondrian", "-p", "k=3", "--weight", "w"]
    columns = ["--quasi-identifiers", "age,sex"]
    assert run([*made, *columns, "-o", str(tmp_path / "r.csv")]) == 0
    capsys.readouterr()
    manifest = ["--manifest", str(tmp_path / "r.csv.manifest.json")]
    code, out = _profiled(capsys, str(tmp_path / "r.csv"), *manifest, "--population-table", str(survey))
    found = json.loads(out)["population"]
    assert code == 8  # as without the figures: they are no checks
    assert found["people"] == 120
    assert found["k_map"] >= 3
    assert 0 <= found["presence"]["delta_min"] <= found["presence"]["delta_max"] <= 1
    assert run(["audit", str(tmp_path / "r.csv"), *manifest, "--population-table", str(survey)]) == 8
    assert "k map" in capsys.readouterr().out
