"""Every block "Run it" of a paper's page, typed as it stands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sfumato.project.describe import write_demo
from shell_lines import run_line

PAGES = sorted((Path(__file__).parents[2] / "docs" / "papers").glob("*.md"))
BLOCK = re.compile(r"^## Run it\n.*?^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    found = BLOCK.search(page.read_text(encoding="utf-8"))
    return re.findall(r"^\$ (sfumato .*)$", found[1], re.MULTILINE) if found else []


def test_every_system_has_such_a_block():
    assert {page.stem for page in PAGES if commands(page)} >= {"containment", "breach", "tree", "gain", "collaborate"}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_the_block_runs(page, shared_data, tmp_path):
    write_demo(tmp_path)
    shutil.copy(shared_data / "primary-tumor" / "primary-tumor.arff", tmp_path)
    for line in commands(page):
        run_line(line, tmp_path)


@pytest.mark.slow
def test_all_parties_of_the_joint_release_write_the_same_table(shared_data, tmp_path):
    shutil.copy(shared_data / "primary-tumor" / "primary-tumor.arff", tmp_path)
    (page,) = (page for page in PAGES if page.stem == "collaborate")
    (line,) = (line for line in commands(page) if "--joint-k" in line)
    run_line(line, tmp_path)

    assert len({(tmp_path / "joint" / f"party-{i}.csv").read_bytes() for i in (1, 2, 3)}) == 1
