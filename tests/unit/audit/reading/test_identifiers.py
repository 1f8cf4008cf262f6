"""The audit sees what looks like a person's name, number or address in a column that nobody confirmed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sfumato.cli.main import run
from tests.unit.audit.audit_oracles import sealed

REMARKS = ["o.B.", "unverändert", "Kontrolle", "verlegt"]
NAMING = {
    "e-mail": "schreiben an a.meier@example.org",
    "phone": "Tel. 030 1234567",
    "phone from abroad": "+49 171 5550123",
    "web": "https://example.org/in/anna",
    "user": "@anna_m89",
    "device": "00:1b:44:11:3a:b7",
    "account": "DE89 3704 0044 0532 0130 00",
    "social security": "SSN 123-45-6789",
    "office": "4901542032375",
    "place": "52.52001, 13.40495",
    "file": "IMG_2034.JPG",
    "title": "Frau Schmidt rief an",
}
N = 120


def written(folder: Path, remark: str) -> Path:
    """Write a table whose remarks hold one that names somebody, in rows enough to be released."""
    draw, path = Random(3), folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "sex", "status", "y"])
        for n in range(N):
            said = remark if n % 10 == 0 else draw.choice(REMARKS)
            rows.writerow([20 + n % 30, draw.choice("mf"), said, draw.choice(["yes", "no"])])
    return path


def confirmed(folder: Path, remark: str, *options: str) -> dict[str, Any]:
    """Release the table with the remarks confirmed; the manifest."""
    path = written(folder, remark)
    given = ["--target", "y", "-m", "mondrian", "--sensitive", "status", "--confirm", "status", *options]

    assert run(["release", str(path), "-k", "5", *given, "-o", str(folder / "r.csv"), "--force"]) == 0
    return json.loads((folder / "r.csv.manifest.json").read_text("utf-8"))


def audited(folder: Path, manifest: dict[str, Any], *options: str) -> int:
    stated = folder / "forged.json"
    stated.write_text(json.dumps(sealed(manifest), indent=2, ensure_ascii=False) + "\n", "utf-8")
    given = ["--manifest", str(stated), "--original", str(folder / "table.csv"), "--accept", "roles,figures,order"]
    return run(["audit", str(folder / "r.csv"), *given, *options])


def without_confirmation(manifest: dict[str, Any]) -> dict[str, Any]:
    columns = [{k: v for k, v in entry.items() if k != "confirmed"} for entry in manifest["output"]["columns"]]
    return {**manifest, "output": {**manifest["output"], "columns": columns}}


@pytest.mark.slow
@pytest.mark.parametrize("what", NAMING)
def test_a_released_identifier_that_nobody_confirmed_is_an_exception(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """Exit 8 with the count, and no cell in the message."""
    manifest = confirmed(tmp_path, NAMING[what])
    code = audited(tmp_path, without_confirmation(manifest))
    said = capsys.readouterr().out

    assert code == 8
    assert "NOT COVERED (identifiers)" in said
    assert "1 in 'status'" in said
    assert NAMING[what] not in said


def test_a_confirmed_column_is_stated_and_no_exception(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest says of each column whether somebody confirmed it."""
    manifest = confirmed(tmp_path, NAMING["phone"])
    stated = {entry["name"]: entry.get("confirmed", False) for entry in manifest["output"]["columns"]}

    assert stated == {"age": False, "sex": False, "status": True, "y": False}
    assert audited(tmp_path, manifest) == 0
    assert "(identifiers)" not in capsys.readouterr().out


def test_categories_are_no_identifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check passes where nothing has such a form, also where ranges hold long numbers and decimals."""
    manifest = without_confirmation(confirmed(tmp_path, "Grad 2, 250.01"))
    audited(tmp_path, manifest)

    assert "ok   no released text has the form of an identifier" in capsys.readouterr().out


@pytest.mark.slow
def test_an_audit_out_of_core_sees_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns that are not counted with the others are looked through as well."""
    manifest = without_confirmation(confirmed(tmp_path, NAMING["phone"]))

    assert audited(tmp_path, manifest, "--memory", "600MB") == 8
    assert capsys.readouterr().out.count("1 in 'status'") == 1
