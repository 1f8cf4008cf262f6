"""Texts that mean "missing" in the eight languages of column names, without anybody saying so."""

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.cli.main import run
from sfumato.engines.blocks.rows import open_large
from sfumato.schema import Kind
from sfumato.table.io.read import read_table

MISSING = {
    "English": ["n/a", "N/A", "n.a.", "not available", "Not stated"],
    "German": ["k.A.", "k. A.", "K.A.", "keine Angabe", "Keine Angaben", "o.A."],
    "French": ["non renseigné", "Non renseignée", "n.d.", "non disponible"],
    "Spanish": ["s/d", "S/D", "sin datos", "No consta"],
    "Italian": ["N.D.", "non disponibile", "dato mancante"],
    "Portuguese": ["n/d", "sem dados", "Não informado", "s/i"],
    "Dutch": ["n.b.", "niet beschikbaar", "Geen opgave"],
    "Polish": ["b.d.", "brak danych", "Nie podano"],
}


@pytest.mark.parametrize("language", MISSING)
def test_not_stated_is_missing_and_the_numbers_beside_it_are_numbers(tmp_path: Path, language: str) -> None:
    """In memory, from a frame and out of core."""
    cells = [text for token in MISSING[language] for text in (token, "12", " 7")]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y", *(f"{cell};a" for cell in cells), ""]), encoding="utf-8")

    for table in (read_table(path), read_table(pa.table({"x": cells})), open_large(path, memory=1 << 30).outline):
        assert table.coded_part.schema["x"].kind is Kind.NUMERIC
        assert table.coded_part["x"].n_missing == len(MISSING[language])


def test_unknown_and_none_are_answers() -> None:
    values = ["unknown", "unbekannt", "none", "None", "keine", "nein", "ninguno", "-", "ND", "NR"]

    assert read_table(pa.table({"x": values}))["x"].n_missing == 0  # type: ignore[union-attr]


def test_the_project_file_lists_the_texts_and_who_says_others_gets_those(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "k.A.,a\n3,b\n-99,a\n" * 5, encoding="utf-8")

    assert run(["init", str(path), "-o", str(tmp_path / "a.toml")]) == 0
    assert run(["init", str(path), "-o", str(tmp_path / "b.toml"), "--missing", "-99"]) == 0

    assert '"k.A.", ' in (tmp_path / "a.toml").read_text()
    assert 'missing = ["-99"]' in (tmp_path / "b.toml").read_text()
