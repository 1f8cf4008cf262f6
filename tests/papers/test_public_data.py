"""Loaders of the public data sets: numbers of rows, checksums, and clear words when a file is not there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reproductions.public_data import (
    data_folder,
    load_adult,
    load_cmc,
    load_diabetes130,
    load_ilpd,
    load_pima,
    load_pu1,
)
from sfumato.errors import InputError, InvalidParameterError
from sfumato.schema import Kind, Role


def test_the_folder_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))

    assert data_folder() == tmp_path


def test_a_folder_that_is_not_there_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path / "nowhere"))

    with pytest.raises(InputError, match=r"nowhere.*does not exist.*set SFUMATO_DATA"):
        data_folder()


def test_a_file_that_is_not_there_or_another_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        load_adult()

    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.data").write_text("canary\n")

    with pytest.raises(InputError, match="is not the file that was expected: md5") as caught:
        load_adult()
    assert "canary" not in str(caught.value)


def test_a_packed_file_that_is_broken_or_another_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    (tmp_path / "diabetes130").mkdir()
    packed = tmp_path / "diabetes130" / "diabetic_data.csv.gz"
    whole = gzip.compress(b"canary\n" * 100)

    for broken in (b"canary", whole[:-10]):
        packed.write_bytes(broken)
        with pytest.raises(InputError, match="cannot be read"):
            load_diabetes130()

    packed.write_bytes(whole)
    with pytest.raises(InputError, match=r"diabetic_data\.csv\.gz.*is not the file that was expected") as caught:
        load_diabetes130()
    assert "canary" not in str(caught.value)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="part must be 'train', 'test' or 'all', got 'half'"):
        load_adult("half")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
@pytest.mark.parametrize(("part", "n_rows", "n_complete"), [("train", 32_561, 30_162), ("all", 48_842, 45_222)])
def test_adult_has_its_known_numbers_of_rows(part: str, n_rows: int, n_complete: int) -> None:
    table = load_adult(part)  # type: ignore[arg-type]
    complete = load_adult(part, complete=True)  # type: ignore[arg-type]

    assert (table.n_rows, complete.n_rows, complete.n_incomplete_dropped) == (n_rows, n_complete, n_rows - n_complete)
    assert table["salary"].values.to_pylist() == ["<=50K", ">50K"]


@pytest.mark.usefixtures("shared_data")
def test_adult_is_described() -> None:
    table = load_adult("test")

    assert table.n_rows == 16_281
    assert table.schema.target == "salary"
    assert table.schema.names(Role.IDENTIFIER) == ("fnlwgt",)
    assert table.schema.names(Role.SENSITIVE) == ("capital-gain", "capital-loss")
    assert table.schema["hours-per-week"].kind is Kind.NUMERIC
    assert table["workclass"].n_missing == 963
    assert table["sex"].values.to_pylist() == ["Female", "Male"]


@pytest.mark.usefixtures("shared_data")
def test_pu1_is_the_papers_email_data() -> None:
    table = load_pu1()

    assert table.matrix.shape == (1_099, 24_604)
    assert round(100 * table.matrix.nnz / (1_099 * 24_604), 2) == 0.91
    assert table.target().values.to_pylist() == ["no", "yes"]
    assert table.target().counts.tolist() == [618, 481]


@pytest.mark.usefixtures("shared_data")
def test_cmc_and_pima_have_their_known_classes() -> None:
    cmc, pima = load_cmc(), load_pima()

    assert (cmc.n_rows, cmc["method"].counts.tolist()) == (1_473, [629, 333, 511])
    assert (pima.n_rows, pima["diabetes"].counts.tolist()) == (768, [500, 268])
    assert cmc.schema.names(Role.TARGET) == ("method",)
    assert [c.name for c in cmc.schema if c.kind is Kind.NUMERIC] == ["wife-age", "children"]


@pytest.mark.usefixtures("shared_data")
def test_ilpd_has_its_known_classes_and_missing_ratios() -> None:
    table = load_ilpd()
    complete = load_ilpd(complete=True)

    assert (table.n_rows, table["patient"].counts.tolist()) == (583, [416, 167])
    assert (complete.n_rows, complete.n_incomplete_dropped) == (579, 4)
    assert {c.name: table[c.name].n_missing for c in table.schema if table[c.name].n_missing} == {
        "albumin-globulin-ratio": 4
    }
    assert table.schema.target == "patient"
    assert [c.name for c in table.schema if c.kind is not Kind.NUMERIC] == ["gender", "patient"]
    assert table["age"].cells().to_pylist()[:3] == ["65", "62", "62"]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_diabetes130_is_described() -> None:
    table = load_diabetes130()

    assert (table.n_rows, len(table.schema), len(table.schema.names(Role.QUASI_IDENTIFIER))) == (101_766, 50, 47)
    assert table.schema.names(Role.IDENTIFIER) == ("encounter_id", "patient_nbr")
    assert table.schema.target == "readmitted"
    assert table["readmitted"].counts.tolist() == [11_357, 35_545, 54_864]
    assert table["weight"].n_missing == 98_569
    assert "None" in table["max_glu_serum"].values.to_pylist()
    assert sum(c.kind is Kind.NUMERIC for c in table.schema) == 8
    assert table.without_incomplete_rows().n_rows == 1_043
