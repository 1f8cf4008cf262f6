"""The field benchmark: points are kept and continued, peers are read rightly, and the report says what was run."""

import json

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.field import report
from benchmarks.field.contenders import CANDIDATES, CONTENDERS, ORIGINAL, Contender
from benchmarks.field.measuring import ENCODING, FORM, LEAKY, UNTOUCHED, Point, keep, kept_results, measured
from benchmarks.field.peer_recodings import LabelRecoding, PeerFailedError, ValueRecoding, _check, nearest_parts
from benchmarks.field.tables import FieldTable
from sfumato.evaluation.treatment import treated
from sfumato.mechanisms.axes import align, axes_of
from sfumato.mechanisms.recoder import Cover
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table


def people(n_rows=90, seed=1):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(20, 60, n_rows), rng.choice(["x", "y", "z"], n_rows)
    ill = (age > 40) ^ (rng.random(n_rows) < 0.2)
    cells = {"age": [str(a) for a in age], "job": job.tolist(), "ill": np.where(ill, "yes", "no").tolist()}
    columns = [Column("age", kind=Kind.NUMERIC), Column("job"), Column("ill", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))


FIELD = FieldTable("people", people, "made up")


def test_a_point_is_measured_in_both_ways_and_kept(tmp_path):
    file, contender = tmp_path / "results.jsonl", Contender("mondrian, gain", "mondrian", {"split": "gain"})
    point = Point("people", contender.name, 5, 0)

    result = measured(point, contender, FIELD, people())
    keep(file, result)

    assert kept_results(file) == {point.key(): json.loads(json.dumps(result))}
    for scores in result["scores"].values():
        assert set(scores) == {f"{what}, {form}" for what in ("auc", "accuracy") for form in (FORM, UNTOUCHED)}
        assert all(len(folds) == 3 for folds in scores.values())


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    file = tmp_path / "results.jsonl"
    keep(file, {"key": "a", "encoding": ENCODING})
    with file.open("a", encoding="utf-8") as lines:
        lines.write('{"key": "b", "sco')

    assert list(kept_results(file)) == ["a"]


def test_results_of_another_encoding_are_not_mixed_in(tmp_path):
    file = tmp_path / "results.jsonl"
    for result in ({"key": "a", "encoding": "0026"}, {"key": "b"}, {"key": "c", "encoding": ENCODING}):
        keep(file, result)

    assert list(kept_results(file)) == ["c"]


def test_the_original_has_the_same_scores_in_both_ways():
    scores = measured(Point("people", ORIGINAL, 1, 0), Contender(ORIGINAL), FIELD, people())["scores"]

    for of_classifier in scores.values():
        assert of_classifier[f"auc, {FORM}"] == of_classifier[f"auc, {UNTOUCHED}"]


def test_what_gives_no_release_has_its_reason():
    result = measured(Point("people", "mondrian, gain", 50, 0), CANDIDATES[1], FIELD, people(60))

    assert "scores" not in result
    assert "rows" in result["failed"]


def test_every_candidate_promises_strict_anonymity():
    table = people()
    for contender in CONTENDERS:
        if contender.mechanism:
            mechanism = contender.build(5, FIELD)
            release = mechanism.release(table)
            assert "k-anonymity" in [promised.kind for promised in release.manifest.promised()]


@pytest.mark.parametrize("seed", range(3))
def test_new_rows_get_the_part_that_covers_most_of_their_values(seed):
    table, new = people(seed=seed), people(40, seed + 10)
    groups = np.arange(table.n_rows) // 9
    axes = axes_of(table, ("age", "job"))
    aligned = [align(axis, new[axis.name]) for axis in axes]

    found = nearest_parts(axes, Cover.of_groups(groups), aligned)

    ages, jobs = (np.array(table[name].cells().to_pylist()) for name in ("age", "job"))
    for row, part in enumerate(found.tolist()):
        age, job = int(new["age"].cells()[row].as_py()), new["job"].cells()[row].as_py()

        def held(group, age=age, job=job):
            own = ages[groups == group].astype(int)
            return int(own.min() <= age <= own.max()) + int(job in jobs[groups == group])

        assert held(part) == max(held(group) for group in set(groups.tolist()))


def test_releases_of_peers_that_break_their_promise_are_refused():
    with pytest.raises(PeerFailedError, match="not 5-anonymous: a class of 3"):
        _check(np.array([7, 3]), 5)


class _Released:
    def __init__(self, recoding):
        self.recoding = recoding

    def recode(self, table):
        return self.recoding


def test_labels_and_values_of_peers_are_read_as_cells():
    table = people(6)
    texts = {name: table[name].cells().to_pylist() for name in ("age", "job")}
    ages = [[age, "young" if int(age) < 40 else "old", "*"] for age in sorted(set(texts["age"]))]
    jobs = [[job, "*"] for job in sorted(set(texts["job"]))]
    labels = {"age": [{row[0]: row[1] for row in ages}[age] for age in texts["age"][:5]], "job": ["*"] * 5}
    recoding = LabelRecoding(table, ("age", "job"), range(5), labels, {"age": ages, "job": jobs})

    found = treated(_Released(recoding), table, table)

    assert found.rows.tolist() == [0, 1, 2, 3, 4]
    young = sorted(int(age) for age in set(texts["age"]) if int(age) < 40)
    expected = {f"[{young[0]}, {young[-1]}]", str(young[0])}
    assert expected & set(found.test["age"].values.to_pylist())

    values = {"age": ["33.0"] * 6, "job": ["x"] * 6}
    found = treated(_Released(ValueRecoding(table, ("age", "job"), values)), table, table)
    assert found.train["age"].values.to_pylist() == ["33.0"]
    assert found.test["age"].cells().to_pylist() == texts["age"]


def test_the_report_says_what_was_run_and_where_ours_is_behind(tmp_path, monkeypatch):
    def result(contender, k, auc, protocol="honest", **more):
        scores = {f"{what}, {form}": [auc] * 3 for what in ("auc", "accuracy") for form in (FORM, UNTOUCHED)}
        point = Point("mgm", contender, k, 0, protocol)
        names = ("logistic-regression", "gradient-boosting", "random-forest", "linear-svm")
        about = {"n_rows": 830, "n_constant": 0, "n_columns": 5, "suppressed": 0, "cpu_seconds": 1, "majority": 0.5}
        return {"key": point.key(), **vars(point), "scores": dict.fromkeys(names, scores), **about, **more}

    found = [result(ORIGINAL, 1, 0.9)]
    found += [result("mondrian, score", k, 0.89) for k in report.LEVELS]
    found += [result("mondrian, score", k, 0.95, LEAKY) for k in report.LEVELS]
    found += [result("anjana", k, 0.895 if k == 10 else 0.8) for k in report.LEVELS]
    monkeypatch.setattr(report, "REPORT", tmp_path / "FIELD.md")
    monkeypatch.setattr(report, "PICTURE", tmp_path / "images" / "field.svg")
    monkeypatch.setattr(
        report, "published_figures", lambda: {("mgm", "rf", 5): (83.5, "ola"), ("adult", "rf", 5): (82.1, "ola")}
    )
    monkeypatch.setattr(report, "peer_versions", lambda: "anjana 1")

    report.write_report({one["key"]: one for one in found})

    text = (tmp_path / "FIELD.md").read_text(encoding="utf-8")
    assert "| mgm | 830 | 5 | 1 | 13 | — |" in text
    assert "| pima | not run |" in text
    assert "| mondrian, score | 10.0 / 10.0 |" in text
    behind = "mgm k = 10 (form) -5 ± 0; mgm k = 10 (original rows) -5 ± 0"
    assert f"| anjana | 8 | 6 (75%) | 0 | 2 | 2 | {behind} |" in text
    assert "| mgm | random forest | 5 | 83.5 | ola | 89.0 / 89.0 | 95.0 | 90.0 | yes |" in text
    assert (tmp_path / "images" / "field.svg").read_text(encoding="utf-8").startswith("<?xml")
