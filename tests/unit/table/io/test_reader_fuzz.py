"""A seeded sample of the soak: damaged files of every format are read or refused, and nothing else comes of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.soak.format_specimens import format_specimens
from benchmarks.soak.reader_fuzz import fuzz_once
from benchmarks.soak.specimens import Specimen

IN_A_PROCESS = ("sav", "zsav", "por", "dta", "xpt", "sas7bdat", "Excel")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> list[Specimen]:
    return format_specimens(tmp_path_factory.mktemp("good"))


def test_good_files_of_every_format_are_read(kinds: list[Specimen], tmp_path: Path) -> None:
    assert {kind.name for kind in kinds} >= {*IN_A_PROCESS, "JSON lines", "SQLite", "DuckDB"}
    assert {kind.name: fuzz_once(kind, example, tmp_path) for kind in kinds for example in kind.examples} == {
        kind.name: "read" for kind in kinds
    }


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_read_or_refused(kinds: list[Specimen], tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    others = [example for kind in kinds for example in kind.examples]
    ended = [
        (kind.name, fuzz_once(kind, kind.damage(random_, random_.choice(kind.examples), others), tmp_path))
        for kind in kinds
        for _ in range(2 if kind.name in IN_A_PROCESS else 12)
    ]

    assert [own for own in ended if own[1] not in ("read", "refused")] == []
