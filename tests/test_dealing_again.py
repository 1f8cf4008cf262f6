"""The code on docs/guide/drop-in-releases.md, taken from the page: it keeps buckets, and needs no sfumato."""

import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from sfumato.datasets.admissions import admissions
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.publish import propose_release, publish

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "drop-in-releases.md"
QUASI = ["age", "sex", "insurance", "postcode_area"]


def code(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    table = admissions(n_rows=300).keep([*QUASI, "discharge_diagnosis", "readmitted"])
    release = propose_release(table, build_mechanism("mondrian", {"k": 20}).with_cells("draws", 1.0))
    return publish(release, tmp_path_factory.mktemp("drawn") / "drawn.csv", original=table).table_path


def check_dealt(table, dealt):
    """Each of the three copies has the buckets' values, other columns row by row, and another arrangement."""
    copies = [dealt.iloc[i * 300 : (i + 1) * 300].reset_index(drop=True) for i in range(3)]
    others = [name for name in table.columns if name not in QUASI]
    for copy in copies:
        assert copy[others].equals(table[others])
        for name in QUASI:
            held = [frame.groupby("bucket")[name].agg(sorted).tolist() for frame in (table, copy)]
            assert held[0] == held[1]
    assert copies[0].equals(table)
    assert len({tuple(copy["age"]) for copy in copies}) == 3
    combinations = [sorted(copy[QUASI].itertuples(index=False, name=None)) for copy in copies]
    assert combinations[0] != combinations[1] != combinations[2]  # columns move by themselves


def test_pandas(path):
    names = {}
    exec(code("python"), names)
    table = pd.read_csv(path)

    check_dealt(table, names["dealt_again"](table, QUASI, times=3))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r(path, tmp_path):
    quasi = ", ".join(f'"{name}"' for name in QUASI)
    script = (
        f'{code("r")}\ntable <- read.csv("{path}", check.names = FALSE)\n'
        f'write.csv(dealt_again(table, c({quasi}), times = 3), "{tmp_path}/dealt.csv", row.names = FALSE)\n'
    )
    (tmp_path / "deal.R").write_text(script, encoding="utf-8")
    subprocess.run(["Rscript", "--vanilla", str(tmp_path / "deal.R")], check=True, capture_output=True)

    check_dealt(pd.read_csv(path), pd.read_csv(tmp_path / "dealt.csv"))
