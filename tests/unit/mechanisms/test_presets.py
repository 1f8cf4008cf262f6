"""The papers' own systems by name: built with the paper's settings, which nothing can change under that name."""

from __future__ import annotations

import json

import pytest

from reproductions.containment.methods import PAPER_METHODS
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.evaluation.points import grid_for
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.mechanisms.presets import PRESETS, presets_of
from sfumato.mechanisms.registry import build_mechanism, mechanism_info, mechanism_names
from sfumato.project.describe import write_demo

SINGLE = [name for name, preset in PRESETS.items() if preset.mechanism]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo")
    write_demo(path)
    return path


@pytest.mark.parametrize("name", SINGLE)
def test_a_preset_builds_its_mechanism_with_its_settings(name):
    preset = PRESETS[name]
    built = build_mechanism(name, {})

    assert built.mechanism_name == preset.mechanism == mechanism_info(name).name
    assert {key: getattr(built, key) for key in preset.parameters} == preset.parameters
    built.check_parameters()


@pytest.mark.parametrize("name", SINGLE)
def test_what_makes_it_the_papers_system_cannot_be_changed(name):
    for key, value in PRESETS[name].fixed.items():
        with pytest.raises(InvalidParameterError, match=f"{key} of {name}"):
            build_mechanism(name, {key: not value if isinstance(value, bool) else f"{value}x"})
        assert getattr(build_mechanism(name, {key: value}), key) == value


def test_usual_settings_may_be_changed():
    assert build_mechanism("paper:hamdist", {"k": "8"}).k == 8
    assert build_mechanism("paper:erp", {}).k == 10


def test_presets_of_the_containment_paper_are_what_its_reproduction_measures():
    names = {
        "HamDist": "hamdist",
        "DistCnt": "distcnt",
        "CM Greedy": "cm",
        "Maximal": "maximal",
    }
    for method, name in names.items():
        selector = PAPER_METHODS[method].args[0]
        built = build_mechanism(f"paper:{name}", {})

        assert type(built) is type(selector)
        assert built.get_params() == selector.get_params()


def test_no_mechanism_has_the_name_of_a_preset():
    assert not set(PRESETS) & set(mechanism_names())


def test_an_unknown_preset_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidParameterError, match="did you mean 'paper:hamdist'"):
        build_mechanism("paper:hamdits", {})


def test_a_system_of_several_parties_makes_no_release_of_one_table():
    with pytest.raises(InvalidParameterError, match="a system for one table"):
        build_mechanism("paper:collaborate", {})


def test_a_release_under_the_papers_name_is_that_of_the_mechanism(folder, monkeypatch, capsys):
    """The manifest names the mechanism and all settings, so that an auditor needs to know of no preset."""
    monkeypatch.chdir(folder)
    common = ["release", "admissions.csv", "--target", "readmitted", "--sensitive", "discharge_diagnosis", "--force"]
    plain = ["-m", "error-risk-tree"]
    for key, value in PRESETS["paper:erp"].parameters.items():
        plain += ["-p", f"{key}={value}"]

    assert run([*common, "-m", "paper:erp", "-o", "preset.csv"]) == 0
    assert run([*common, *plain, "-o", "plain.csv"]) == 0
    capsys.readouterr()

    assert (folder / "preset.csv").read_bytes() == (folder / "plain.csv").read_bytes()
    stated = [
        json.loads((folder / f"{name}.csv.manifest.json").read_text())["mechanism"] for name in ("preset", "plain")
    ]
    assert stated[0] == stated[1]
    assert stated[0]["name"] == "error-risk-tree"


@pytest.mark.parametrize("name", [*mechanism_names(), *PRESETS])
def test_every_name_is_explained(name, capsys):
    """Promise, needs, cost, paper and an example, whatever it is."""
    assert run(["mechanisms", name]) == 0
    shown = capsys.readouterr().out

    assert shown.splitlines()[0] == name
    assert "example:" in shown
    for own, preset in presets_of(name).items():
        assert own in shown
        assert preset.section.split(",")[0] in shown


def test_a_comparison_takes_the_papers_systems_at_the_asked_levels():
    asked = [AskedGuarantee.parse("k=7")]
    grid = grid_for(admissions(n_rows=60), also=["papers"], asked=asked)
    points = {point.mechanism: point for point in grid.points if point.mechanism in PRESETS}

    assert {*points, *grid.left_out} >= set(SINGLE)
    assert points["paper:erp-tiered"].parameters["k"] == 7
    assert points["paper:erp-tiered"].label == "paper:erp-tiered k=7"
    assert "calibration" not in grid.left_out["paper:laplace-dp"]


def test_a_comparison_of_named_systems_has_these_alone():
    grid = grid_for(admissions(n_rows=60), mechanisms=["paper:erp", "mondrian"])

    assert {point.mechanism for point in grid.points} == {"paper:erp", "mondrian"}
