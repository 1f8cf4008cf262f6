"""Reproductions are run one way: finished jobs are kept, nothing tracked changes unasked, figures are classed."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from reproductions import figures, running
from reproductions.figures import Figure, Reason, reason_for
from reproductions.public_data import data_folder
from reproductions.running import Reproduction

ROOT = Path(__file__).parents[2]
PAPERS = sorted(path.parent.name for path in (ROOT / "reproductions").glob("*/run.py"))
WITH_FIGURES = [
    paper for paper in PAPERS if hasattr(importlib.import_module(f"reproductions.{paper}.run"), "reproduction")
]


@dataclass(frozen=True)
class Job:
    name: str
    number: int


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Reproductions in a folder of their own, beside a package that is one file."""
    (tmp_path / "src" / "sfumato").mkdir(parents=True)
    (tmp_path / "src" / "sfumato" / "code.py").write_text("first = 1\n")
    (tmp_path / "reproductions" / "toy").mkdir(parents=True)
    for module in (running, figures):
        monkeypatch.setattr(module, "HERE", tmp_path / "reproductions")
    running.code_digest.cache_clear()
    yield tmp_path
    running.code_digest.cache_clear()


def toy(done: list[str], *, fails: str = "") -> Reproduction[Job, int]:
    def measure(job: Job) -> int:
        if job.name == fails:
            problem = "killed"
            raise RuntimeError(problem)
        done.append(job.name)
        return 2 * job.number

    return Reproduction(
        "toy",
        [Job("one", 1), Job("two", 2)],
        measure,
        label=lambda job: f"job {job.name}",
        is_quick=lambda job: job.name == "one",
        figures=lambda found: (Figure(f"Table, {job.name}", 2.0, value, 0, 1) for job, value in found.items()),
        report=lambda found: iter([f"sum {sum(found.values())}"]),
        misses=lambda found: iter(()),
    )


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Jobs in this process, so that a test sees which ones were done."""
    monkeypatch.setattr(running, "Parallel", lambda **_: lambda calls: (f(*args) for f, args, _ in calls))


def test_a_run_that_was_killed_goes_on(place, capsys):
    done: list[str] = []
    with pytest.raises(RuntimeError, match="killed"):
        running.run(toy(done, fails="two"), [])

    assert running.run(toy(done), []) == 0
    assert done == ["one", "two"]
    assert "sum 6" in capsys.readouterr().out


def test_other_code_takes_no_outcome_of_an_earlier_run(place, capsys):
    done: list[str] = []
    running.run(toy(done), ["--quick"])
    (place / "src" / "sfumato" / "code.py").write_text("first = 2\n")
    running.code_digest.cache_clear()
    running.run(toy(done), ["--quick"])

    assert done == ["one", "one"]


def test_a_fresh_run_does_all_jobs_again(place, capsys):
    done: list[str] = []
    running.run(toy(done), ["--only", "TWO"])
    running.run(toy(done), ["--only", "two", "--fresh"])

    assert done == ["two", "two"]


def test_tracked_files_change_only_when_asked(place, capsys, tmp_path):
    results = place / "reproductions" / "toy" / "RESULTS.md"
    running.run(toy([]), [])

    assert not results.exists()
    assert running.run(toy([]), ["-o", str(tmp_path / "out.md")]) == 0
    assert (tmp_path / "out.md").read_text() == "sum 6\n"
    assert running.run(toy([]), ["-o", str(tmp_path / "out.md")]) == 3
    assert not results.exists()
    assert running.run(toy([]), ["--update"]) == 0
    assert results.read_text() == "sum 6\n"
    assert running.run(toy([]), ["--update", "--quick"]) == 2


def test_a_partial_run_is_compared_with_the_last_whole_one(place, capsys):
    running.run(toy([]), ["--update"])
    kept = place / "reproductions" / "toy" / "figures.csv"

    assert running.run(toy([]), ["--quick"]) == 0
    kept.write_text(kept.read_text().replace("Table, one", "x").replace("Table, two", "Table, one"))
    assert running.run(toy([]), ["--quick"]) == 1
    assert "Table, one: 2, and 4 in the last whole run" in capsys.readouterr().err


def test_jobs_that_are_not_there_are_refused(place, capsys):
    assert running.run(toy([]), ["--only", "three"]) == 2
    assert running.run(toy([]), ["--list"]) == 0
    assert capsys.readouterr().out == "job one\njob two\n"


@pytest.mark.parametrize(
    ("ours", "state"), [(0.774, "exact"), (0.775, "exact"), (0.776, "near"), (0.79, "near"), (0.7901, "not")]
)
def test_a_figure_is_exact_near_or_not(ours, state):
    assert Figure("Table", 0.77, ours, 2, 0.02).state == state


def test_ours_is_behind_only_if_all_of_ours_are():
    assert Figure("Table", 0.77, 0.70, 2, 0.02, "higher").is_worse
    assert not Figure("Table", 0.77, 0.70, 2, 0.02, "higher", best=0.79).is_worse
    assert not Figure("Table", 0.30, 0.28, 2, 0.02, "lower").is_worse
    assert not Figure("Table", 9, 7, 0, 1).is_worse


def test_the_first_reason_that_fits_is_taken():
    reasons = [Reason("Table 4*", "data", "not public"), Reason("*", "settings", "not said")]

    assert reason_for(Figure("Table 4, x", 1, 2, 0, 0), reasons).kind == "data"
    assert reason_for(Figure("Table 5, x", 1, 2, 0, 0), reasons).kind == "settings"
    assert reason_for(Figure("Table 5, x", 1, 2, 0, 0), reasons[:1]).kind == "open"


@pytest.mark.parametrize("paper", PAPERS)
def test_reasons_are_of_a_known_class_and_name_tests_that_exist(paper):
    for reason in figures.reasons_of(paper):
        assert reason.kind in figures.REASONS
        assert bool(reason.test) == (reason.kind not in ("open", "machine"))
        if reason.test:
            path, _, name = reason.test.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("paper", "n"), [("containment", 168), ("breach", 133), ("tree", 56), ("gain", 44), ("collaborate", 76)]
)
def test_every_printed_figure_is_counted(paper, n):
    """Among them gain's Tables 3 to 5, the seconds of tree's Table 2, containment's Table 3 and RF's deviations."""
    places = [one.where for one in figures.kept_figures(paper)]

    assert len(places) == len(set(places)) == n
    counted = {
        "gain": ("Table 5", 12),
        "tree": ("seconds", 18),
        "containment": ("Table 3", 15),
    }
    if paper in counted:
        what, how_many = counted[paper]
        assert sum(what in place for place in places) == how_many
    if paper == "containment":
        assert sum("AUC ±" in place for place in places) == 9


@pytest.mark.parametrize("paper", ["tree", "gain"])
def test_no_tolerance_reaches_the_effect_that_a_paper_claims(paper):
    """The methods that are compared differ by more than twice what counts as near."""
    for one in figures.kept_figures(paper):
        rivals = [other for other in figures.kept_figures(paper) if is_rival(one.where, other.where)]
        effects = [abs(one.printed - other.printed) for other in rivals if other.printed != one.printed]
        assert one.tolerance <= min(effects, default=math.inf) / 2 + 1e-9


def is_rival(where, other):
    """Whether two figures are of the same table, data, measure and k, by different methods."""
    own, others = where.split(", "), other.split(", ")
    if where.startswith("Table 2"):  # Table 2, data, method, k, measure
        return len(own) == len(others) == 5 and own[1] == others[1] and own[3:] == others[3:] and own[2] != others[2]
    if where.startswith(("Table 3", "Table 4")):  # Table, classifier, class, data
        return own[1:3] == others[1:3] and others[0] in ("Table 3", "Table 4") and {own[3], others[3]} != {"input data"}
    return where.startswith("Table 5") and others[0] == "Table 5" and own[1:3] == others[1:3]


def test_figures_by_a_reading_that_was_fitted_are_marked():
    """Each pattern fits a figure, and the scoreboard counts and names them."""
    shown = (ROOT / "reproductions" / "README.md").read_text(encoding="utf-8")
    for paper in PAPERS:
        kept = figures.kept_figures(paper)
        for reading in figures.fitted_of(paper):
            assert any(figures.is_fitted(one, [reading]) for one in kept)
            assert f"- Fitted ({reading.figures}): {reading.why}" in shown
    assert {paper for paper in PAPERS if figures.fitted_of(paper)} == {"containment", "tree", "gain"}


def test_the_scoreboard_is_that_of_the_kept_figures():
    assert (ROOT / "reproductions" / "README.md").read_text(encoding="utf-8") == "\n".join(figures.scoreboard()) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("paper", WITH_FIGURES)
def test_a_quick_run_gives_the_figures_of_the_last_whole_run(paper, tmp_path, monkeypatch):
    """Nobody noticed for weeks that a reproduction could not even start; now somebody does."""
    try:
        data_folder()
    except Exception as exc:
        pytest.skip(f"needs the public data: {exc}")
    monkeypatch.undo()
    reproduction = importlib.import_module(f"reproductions.{paper}.run").reproduction()

    assert running.run(reproduction, ["--quick", "--fresh", "--workers=1", "-o", str(tmp_path / "figures.md")]) == 0
    assert "| Table" in (tmp_path / "figures.md").read_text()
