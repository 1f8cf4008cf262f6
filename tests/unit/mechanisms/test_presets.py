"""The papers' own systems by name: built with the paper's settings, which nothing can change under that name."""

from __future__ import annotations

import json
import shlex

import pytest

from reproductions.containment.methods import PAPER_METHODS
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError
from sfumato.evaluation.points import grid_for
from sfumato.evaluation.requested_guarantees import AskedGuarantee
from sfumato.mechanisms.base import settings_of
from sfumato.mechanisms.presets import PRESETS, presets_of
from sfumato.mechanisms.registry import build_mechanism, mechanism_info, mechanism_names
from sfumato.project.describe import write_demo

SINGLE = [name for name, preset in PRESETS.items() if preset.mechanism]
N_ROWS = 600
SLOW = {  # names whose examples take seconds, with as few rows of the demo table as they need to run
    "auto": N_ROWS,
    "breach-aware": N_ROWS,
    "error-risk-tree": N_ROWS,
    "exact-containment": N_ROWS,
    "paper:collaborate": N_ROWS,
    "paper:pbi": 5000,
    "paper:wrapper": N_ROWS,
    "gain-recoding": 40,
    "global-recoding": 40,
    "local-recoding": 40,
    "paper:gain-slicing": 40,
    "paper:recoding-without-gain": 40,
}


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
    assert preset.parameters.items() <= settings_of(built).items()
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
        "k-anonymity HamDist": "k-anonymity-hamdist",
        "k-anonymity DistCnt": "k-anonymity-distcnt",
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*mechanism_names(), *PRESETS])
def test_every_printed_example_runs_as_it_is_printed(name, tmp_path, monkeypatch, capsys):
    """On the first rows of the demo table."""
    monkeypatch.chdir(tmp_path)
    write_demo(tmp_path)
    demo, n_rows = tmp_path / "admissions.csv", SLOW.get(name, N_ROWS)
    lines = demo.read_text(encoding="utf-8").splitlines(keepends=True)
    demo.write_text("".join(lines[: n_rows + 1]), encoding="utf-8")
    run(["mechanisms", name])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  example:")]
    command = shlex.split(line.partition(":")[2])

    assert command[0] == "sfumato"
    assert run(command[1:]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "idle"),
    [
        ("paper:erp", {"max_added_error"}),
        ("paper:erp-tiered", {"max_added_error", "min_disclosure_bits", "l", "t", "sensitive"}),
        ("ours:erp-lowest", {"max_added_error"}),
        ("paper:mondrian", {"penalty_weight"}),
    ],
)
def test_a_preset_offers_no_parameter_that_has_no_effect(name, idle, capsys):
    """Neither in words nor to programs; and one that is given is refused."""
    run(["mechanisms", name])
    shown = [line.split(" = ")[0].strip() for line in capsys.readouterr().out.splitlines()]
    run(["mechanisms", name, "--json"])
    listed = {parameter["name"] for parameter in json.loads(capsys.readouterr().out)["parameters"]}

    assert not idle & {*shown, *listed}
    assert {parameter.name for parameter in mechanism_info(name).parameters} >= idle


def test_a_parameter_without_effect_is_refused():
    with pytest.raises(InvalidParameterError, match=r"max_added_error must be left out unless rule=ratio, got 0\.5"):
        build_mechanism("paper:erp", {"max_added_error": 0.5}).release(admissions(n_rows=60))


@pytest.mark.slow
def test_tiered_cells_are_the_same_whatever_rule_prunes():
    """Hence only uniform cells have a preset with a rule of ours."""
    table = admissions(n_rows=400)
    settings = {**PRESETS["paper:erp-tiered"].parameters, "k": 5}
    printed, lowest = (
        build_mechanism("error-risk-tree", {**settings, "rule": rule}).release(table).table
        for rule in ("literal", "lowest")
    )

    for name in printed.schema.names():
        assert printed[name].values.equals(lowest[name].values)
        assert (printed[name].codes == lowest[name].codes).all()


def test_a_comparison_takes_the_papers_systems_at_the_asked_levels():
    asked = [AskedGuarantee.parse("k=7")]
    grid = grid_for(admissions(n_rows=60), also=["papers"], asked=asked)
    points = {point.mechanism: point for point in grid.points if point.mechanism in PRESETS}

    assert {*points, *grid.left_out} >= {name for name in SINGLE if name.startswith("paper:")}
    assert "ours:erp-lowest" not in {*points, *grid.left_out}
    assert points["paper:erp-tiered"].parameters["k"] == 7
    assert points["paper:erp-tiered"].label == "paper:erp-tiered k=7"
    assert "calibration" not in grid.left_out["paper:laplace-dp"]


def test_a_comparison_of_named_systems_has_these_alone():
    grid = grid_for(admissions(n_rows=60), mechanisms=["paper:erp", "mondrian"])

    assert {point.mechanism for point in grid.points} == {"paper:erp", "mondrian"}
