"""The readers on docs/guide/reading-a-release.md, taken from the page, beside our own reader of cells."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.datasets.admissions import admissions
from sfumato.evaluation.encoding import cells_of_release
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish
from sfumato.schema import Kind
from sfumato.table.generalized import read_cell

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "reading-a-release.md"
KEPT = ["age", "sex", "postcode_area", "insurance", "discharge_diagnosis", "readmitted"]
MOST_LINES = 40
CASES = {
    "ranges": ("mondrian", {"k": 5}, "ranges"),
    "tiered": ("error-risk-tree", {"k": 5}, "ranges"),
    "labels": ("gain-recoding", {"k": 5}, "ranges"),
    "values": ("mondrian", {"k": 5}, "values"),
}


def reader(language):
    found = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(found) == 1
    return found[0]


def original():
    """Give a table with missing cells and values that must be escaped."""
    frame = admissions(n_rows=300).keep(KEPT).to_arrow().to_pandas()
    frame.loc[::17, "insurance"] = None
    frame.loc[::23, "age"] = None
    frame["insurance"] = frame["insurance"].replace({"private": "a|b, {c}", "public": "[1, 2]"})
    return frame


@pytest.fixture(scope="module", params=CASES, ids=list(CASES))
def released(request, tmp_path_factory):
    name, settings, cells = CASES[request.param]
    roles = dict.fromkeys(KEPT[:4], "quasi-identifier")
    table = sfumato.read_table(original())
    described = table.with_schema({**roles, "discharge_diagnosis": "sensitive", "readmitted": "target"})
    path = tmp_path_factory.mktemp("read") / "release.csv"
    release = propose_release(described, build_mechanism(name, settings).with_cells(cells))
    return path, publish(release, path, original=described).release


def by_our_reader(release):
    """Say of every cell what the page says, from the cells as our own reader understands them."""
    cells, described = cells_of_release(release.manifest.to_dict(), release.data)
    made = {}
    for name, column in described.items():
        own = [read_cell(text) for text in cells[name].cells().to_pylist()]
        named = [[*cell.values, *(cell.bounds or ())] for cell in own]
        if column.kind is Kind.NUMERIC:
            every = [float(value) for values in named for value in values]
            for end, pick in (("low", min), ("high", max)):
                made[f"{name}_{end}"] = [
                    pick(every, default=np.nan) if cell.is_any else pick(map(float, values), default=np.nan)
                    for cell, values in zip(own, named, strict=True)
                ]
            continue
        known = sorted({value for values in named for value in values})
        for value in known:
            made[f"{name}={value}"] = [
                1 / len(known) if cell.is_any else values.count(value) / max(len(values) + cell.may_be_missing, 1)
                for cell, values in zip(own, named, strict=True)
            ]
    return pd.DataFrame(made, dtype=float)


@pytest.mark.parametrize("language", ["python", "r"])
def test_the_readers_are_short(language):
    written = [line for line in reader(language).splitlines() if line.strip()]
    assert len(written) <= MOST_LINES


def test_the_reader_for_pandas_says_what_ours_says(released):
    path, release = released
    scope = {}
    exec(compile(reader("python"), str(PAGE), "exec"), scope)

    pd.testing.assert_frame_equal(scope["read_release"](str(path)), by_our_reader(release), check_like=False)


@pytest.mark.slow
def test_the_reader_for_r_says_what_ours_says(released, tmp_path):
    path, release = released
    if shutil.which("Rscript") is None:
        pytest.skip("R IS NOT INSTALLED (no Rscript): the reader for R was not run; install r-base-core")
    has_json = subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True, check=False).returncode == 0
    if not has_json:
        pytest.skip("R HAS NO jsonlite: the reader for R was not run; install r-cran-jsonlite")
    script, written = tmp_path / "reader.R", tmp_path / "read.csv"
    call = f'write.csv(read_release("{path}"), "{written}", row.names = FALSE)\n'
    script.write_text('options(encoding = "UTF-8")\n' + reader("r") + call, encoding="utf-8")
    done = subprocess.run(["Rscript", "--vanilla", str(script)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(pd.read_csv(written, dtype=float), by_our_reader(release), check_like=False)
