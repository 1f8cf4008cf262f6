"""No planted identifier is in a released file: of the made tables, in the languages looked at and in those held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stdnum import iban, imei, luhn
from stdnum.de import idnr
from stdnum.es import dni
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.pt import nif
from stdnum.us import ssn

from identifiers import formats, planted, words
from identifiers.planted import Run, held, leaks
from sfumato.cli.main import run as sfumato
from sizes import IS_FULL

MIXED_PLACEMENTS = [name for name in planted.PLACEMENTS if name != "own column"]

Release = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def release(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Release:
    """Release a run by the command; give the exit code, the released file (or ""), and manifest and messages."""

    def released(run: Run, *options: str, target: str = "y") -> tuple[int, str, str]:
        (tmp_path / "table.csv").write_bytes(run.csv())
        output, manifest = tmp_path / "release.csv", tmp_path / "release.csv.manifest.json"
        output.unlink(missing_ok=True)
        manifest.unlink(missing_ok=True)
        capfd.readouterr()
        code = sfumato(
            ["release", str(tmp_path / "table.csv"), "--target", target, "--quick", "-o", str(output), *options]
        )
        said = "".join(capfd.readouterr())
        if not output.exists():
            return code, "", said
        return code, output.read_text("utf-8"), said + manifest.read_text("utf-8")

    return released


def judged(release: Release, runs: Iterator[Run], *options: str) -> list[str]:
    """Say of each run that leaks, or that ends in no release, what was wrong."""
    wrong = []
    for run in runs:
        code, table, said = release(run, *options)
        n_leaks = leaks(table, run.identifiers)
        wrong += [f"{run.id}: {n_leaks} cells"] if n_leaks else []
        wrong += [f"{run.id}: exit {code}"] if code else []
        # the counts of a manifest are numbers, as some keys are
        n_held = held(said, run.identifiers) if run.kind != "number key" else 0
        wrong += [f"{run.id}: {n_held} in manifest or messages"] if n_held else []
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("languages", [planted.LANGUAGES, planted.HELD_OUT], ids=["looked at", "held out"])
@pytest.mark.parametrize("kind", planted.KINDS)
def test_no_planted_identifier_is_released(release: Release, kind: str, languages: tuple[str, ...]) -> None:
    """Released file, manifest and messages hold no identifier, wherever in the table it was planted."""
    if IS_FULL:
        runs = planted.runs(languages, [kind])
    else:
        sample, first = list(planted.sample(languages, [kind])), list(planted.KINDS).index(kind)
        runs = (sample[(first + step) % len(sample)] for step in (0, 2))

    assert judged(release, runs, "-m", "mondrian") == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(planted.KINDS) if IS_FULL else list(planted.KINDS)[::3])
def test_the_default_mechanism_releases_none_either(release: Release, kind: str) -> None:
    """The shortest command, which lets ``auto`` choose, leaks no identifier."""
    runs = list(planted.sample(kinds=[kind]))
    first = list(planted.KINDS).index(kind) % len(runs)

    assert judged(release, iter(runs if IS_FULL else runs[first : first + 1])) == []


@pytest.mark.slow
@pytest.mark.parametrize("role", ["quasi-identifiers", "sensitive", "other"])
def test_a_role_that_is_given_confirms_nothing(release: Release, role: str) -> None:
    """Whoever gives a role without confirming the column gets no identifiers released, or no release."""
    wrong = []
    for n, kind in enumerate(planted.KINDS):
        run = list(planted.sample(kinds=[kind]))[n % len(planted.PLACEMENTS)]
        age = next(iter(run.columns))
        given = [f"--{role}", run.column, *(["--quasi-identifiers", age] if role == "quasi-identifiers" else [])]
        _, table, _ = release(run, "-m", "mondrian", *given)
        n_leaks = leaks(table, run.identifiers)
        wrong += [f"{run.id}: {n_leaks} cells"] if n_leaks else []

    assert wrong == []


def one_of(kind: str, placement: str, header: str = "misleading", language: str = "de") -> Run:
    return next(run for run in planted.runs([language], [kind]) if run.placement == placement and run.header == header)


@pytest.mark.parametrize("placement", planted.PLACEMENTS)
def test_what_is_withheld_is_named_with_how_to_keep_it(release: Release, placement: str) -> None:
    """The output names the withheld column and the option that keeps it."""
    run = one_of("phone", placement)
    code, table, said = release(run, "-m", "mondrian")

    assert code == 0
    assert run.column not in table.splitlines()[0].split(",")
    assert run.column in said
    assert "--confirm" in said


@pytest.mark.parametrize("placement", MIXED_PLACEMENTS)
def test_a_confirmed_column_is_released(release: Release, placement: str) -> None:
    """Confirming beats every rule: the column is in the released file."""
    run = one_of("full name", placement)
    code, table, _ = release(run, "-m", "mondrian", "--confirm", run.column)

    assert code == 0
    assert run.column in table.splitlines()[0].split(",")


@pytest.mark.parametrize("placement", ["30 % among phrases", "repeated among codes"])
def test_a_target_that_would_be_withheld_ends_with_the_reason(release: Release, placement: str) -> None:
    """A target full of identifiers ends in exit 3, names the column and shows no cell."""
    run = one_of("phone", placement)
    code, table, said = release(run, "-m", "mondrian", target=run.column)

    assert (code, table) == (3, "")
    assert run.column in said
    assert held(said, run.identifiers) == 0


# The corpus and its judge.


@pytest.mark.slow
def test_there_are_920_runs_of_600_rows_and_all_are_different() -> None:
    runs = list(planted.runs())

    assert len({run.id for run in runs}) == len({run.csv() for run in runs}) == 920
    assert {len(cells) for run in runs for cells in run.columns.values()} == {600}
    assert len(planted.KINDS) == 23
    assert set(planted.LANGUAGES) | set(planted.HELD_OUT) == set(words.LANGUAGES)


@pytest.mark.slow
def test_every_run_holds_what_its_placement_says() -> None:
    """The judge finds the identifiers of the original, as many cells as the placement has."""
    expected = {"own column": 600, "30 % among phrases": 180, "2 % of the cells": 12, "in sentences": 210}
    counts: dict[str, Counter[int]] = {name: Counter() for name in planted.PLACEMENTS}
    for run in planted.sample((*planted.LANGUAGES, *planted.HELD_OUT)):
        counts[run.placement][leaks(run.csv().decode(), run.identifiers)] += 1

    assert {name: set(found) for name, found in counts.items() if name in expected} == {
        name: {n} for name, n in expected.items()
    }
    assert set(counts["repeated among codes"]) <= {240, 241, 242}


@pytest.mark.slow
def test_the_judge_finds_nothing_in_the_columns_around() -> None:
    """A release without the column is no leak: no ordinary cell or header holds an identifier by chance."""
    for run in planted.sample((*planted.LANGUAGES, *planted.HELD_OUT)):
        around = {name: cells for name, cells in run.columns.items() if name != run.column}

        assert leaks(replace(run, columns=around).csv().decode(), run.identifiers) == 0, run.id


@pytest.mark.parametrize(
    ("cell", "is_leak"),
    [
        ("Anna Meier", True),
        ("{Anna Meier|Uwe Ott}", True),
        ("call anna  meier back", True),
        ('"Anna" Meier', True),
        ("Hanna Meier", False),
        ("Anna Meiers", False),
        ("C:\\\\Users\\\\ott\\\\a.jpg", True),
        ("2023-04-12T10:15:32", True),
        ("[12345, 12400)", True),
        ("112345", False),
        ("{o.B.|verlegt}", False),
    ],
)
def test_the_judge_finds_identifiers_in_cells_sets_ranges_and_texts(cell: str, is_leak: bool) -> None:
    identifiers = ["Anna Meier", "C:\\Users\\ott\\a.jpg", "2023-04-12 10:15:32", "12345"]
    quoted = '"' + cell.replace('"', '""') + '"'

    assert leaks(f"age,x\n4,{quoted}\n", identifiers) == int(is_leak)


VALIDATORS = {
    (formats.national_number_with_word, "en"): ssn,
    (formats.insurance_number, "en"): nhs,
    (formats.national_number, "de"): idnr,
    (formats.national_number, "fr"): nir,
    (formats.national_number, "es"): dni,
    (formats.national_number, "it"): codicefiscale,
    (formats.national_number, "pt"): nif,
    (formats.national_number, "nl"): bsn,
    (formats.national_number, "pl"): pesel,
    **{(formats.iban, language): iban for language in words.LANGUAGES},
    (formats.card, "en"): luhn,
    (formats.imei, "en"): imei,
}


@pytest.mark.parametrize(("made", "validator"), VALIDATORS.items(), ids=[f"{m.__name__} {t}" for m, t in VALIDATORS])
def test_check_digits_are_valid(made: tuple[formats.Maker, str], validator: object) -> None:
    """A library that had no part in making them accepts the numbers."""
    maker, language = made
    draw = formats.Random(7)
    numbers = [maker(draw, language).removeprefix("SSN ").replace("-", "").replace(" ", "") for _ in range(40)]

    assert [number for number in numbers if not validator.is_valid(number)] == []  # type: ignore[attr-defined]
