"""The code on docs/guide/drop-in-releases.md, taken from the page: it keeps buckets, and needs no sfumato."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.datasets.admissions import admissions
from sfumato.evaluation.encoding import GeneralizedEncoder, cells_of_release, values_as_cells
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import propose_release
from sfumato.publishing.publish import publish

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


LEARNED = ["age", "sex", "insurance", "emergency", "smoker", "diabetes", "heart_failure", "copd"]
BAR = 0.01


@pytest.mark.slow
def test_a_file_dealt_again_is_as_good_to_learn_from_as_ranges_through_our_encoder():
    table = admissions(n_rows=1500).keep([*LEARNED, "readmitted"])
    train, test = table.take(np.arange(750)), table.take(np.arange(750, 1500))
    mechanism = build_mechanism("mondrian", {"k": 5, "split": "score"})
    truth = np.array(test["readmitted"].cells().to_pylist()) == "yes"

    ranges = propose_release(train, mechanism)
    cells, columns = cells_of_release(ranges.manifest.to_dict(), ranges.table)
    del columns["readmitted"]
    encoder = GeneralizedEncoder().fit(cells, columns)
    rows, classes, weights = encoder.training_rows(cells, ranges.table["readmitted"].codes)
    positive = ranges.table["readmitted"].values.to_pylist().index("yes")
    asked = encoder.transform(values_as_cells(test.keep(LEARNED), LEARNED))
    ours = roc_auc_score(truth, learner().fit(rows, classes, sample_weight=weights).predict_proba(asked)[:, positive])

    names = {}
    exec(code("python"), names)
    drawn = propose_release(train, mechanism.with_cells("draws", 1.0)).data.to_arrow().to_pandas()
    dealt = names["dealt_again"](drawn, LEARNED, times=5)
    both = pd.concat([dealt, test.to_arrow().to_pandas()])[LEARNED].assign(age=lambda own: pd.to_numeric(own["age"]))
    wide = pd.get_dummies(both, dtype=float)
    fitted = learner().fit(wide[: len(dealt)], dealt["readmitted"] == "yes", sample_weight=np.full(len(dealt), 0.2))
    theirs = roc_auc_score(truth, fitted.predict_proba(wide[len(dealt) :])[:, 1])

    assert theirs >= ours - BAR


def learner():
    return HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8, random_state=0)
