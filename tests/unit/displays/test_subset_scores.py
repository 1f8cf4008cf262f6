"""E(S) of sets of columns from a manifest, for any weights, without training anything again."""

import dataclasses
import itertools

import pytest

from sfumato.cli.main import run
from sfumato.displays.base import display_of_manifest, registered_displays
from sfumato.displays.subset_scores import MOST_NAMED, SubsetScoresDisplay
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.mechanisms.breach.tradeoff import evaluation_scores
from unit.displays.breach_planes import BREACH, N_COLUMNS, PERFORMANCE, TWO, entry, manifest_of

# Table 6 of the paper: E(S) of the 14 subsets of Pima by three weightings.
TABLE_6 = {
    (0.333, 0.333, 0.333): "5.328 5.661 6.327 6.993 7.326 7.992 8.991 9.324 5.661 6.327 6.993 7.659 8.325 8.658",
    (0.5, 0.25, 0.25): "6 7.75 8 8.25 7.75 8.25 9.5 8 4.5 6.5 6 6.25 7.75 7.5",
    (0.2, 0.6, 0.2): "6 3.8 4.6 5.4 6.4 6.8 7 9.6 9 7 9 9.8 8.6 9.2",
}


def pima_manifest():
    ranks = evaluation_scores(PERFORMANCE, BREACH, N_COLUMNS).ranks
    entries = [
        entry(
            [f"set{place}", *(f"c{i}" for i in range(size - 1))],
            performance,
            breach,
            region="baseline" if place == 0 else "IV",
            chosen=place == 7,
            ranks={name: int(of[place]) for name, of in ranks.items()},
        )
        for place, (performance, breach, size) in enumerate(zip(PERFORMANCE, BREACH, N_COLUMNS, strict=True))
    ]
    manifest = manifest_of(entries)
    choice = manifest.evidence["choice"]
    weights = {"performance": 0.5, "privacy": 0.25, "size": 0.25}
    first_by = {"topsis": entries[7]["columns"], "lexicographic": entries[1]["columns"]}
    evidence = {**manifest.evidence, "choice": {**choice, "weights": weights, "first_by": first_by}}
    given = {**manifest.mechanism["parameters"], "max_breach_increase": 2.0}
    return dataclasses.replace(manifest, evidence=evidence, mechanism={**manifest.mechanism, "parameters": given})


def test_figures_9_to_16_follow_from_the_manifest():
    """Sets are shown from the largest to the smallest; E(S) is that of Table 6, and so are the choices."""
    shown = SubsetScoresDisplay.from_manifest(pima_manifest(), list(TABLE_6))

    order = sorted(range(14), key=lambda place: -N_COLUMNS[place])
    for own, printed in zip(shown.scores, TABLE_6.values(), strict=True):
        figures = [float(figure) for figure in printed.split()]
        assert list(own) == pytest.approx([figures[place] for place in order], abs=5e-4)
    assert [order[place] for place in shown.best] == [7, 6, 11]
    assert dict(shown.firsts) == {"topsis": order.index(7), "lexicographic": order.index(1)}


def test_without_weights_those_of_the_release_are_shown():
    shown = SubsetScoresDisplay.from_manifest(pima_manifest())

    assert shown.weightings == ((0.5, 0.25, 0.25),)


def test_weights_are_divided_by_their_sum_and_sets_above_alpha_are_not_chosen():
    manifest = pima_manifest()
    given = {**manifest.mechanism["parameters"], "max_breach_increase": 0.0}
    strict = dataclasses.replace(manifest, mechanism={**manifest.mechanism, "parameters": given})
    shown = SubsetScoresDisplay.from_manifest(strict, [(2, 1, 1)])

    assert shown.weightings == ((0.5, 0.25, 0.25),)
    assert N_COLUMNS[sorted(range(14), key=lambda place: -N_COLUMNS[place])[shown.best[0]]] == 1  # plas, 8; not 9.5


def test_it_is_drawn_by_name_only_and_takes_weights_that_others_do_not():
    manifest = pima_manifest()

    assert type(display_of_manifest(manifest)).__name__ == "BreachPlaneDisplay"
    assert registered_displays()["scores"].by_name_only
    assert display_of_manifest(manifest, "scores", weights=[(1, 0, 0)]).weightings == ((1.0, 0.0, 0.0),)
    with pytest.raises(InvalidParameterError, match="for scores only"):
        display_of_manifest(manifest, "breach-plane", weights=[(1, 0, 0)])


@pytest.mark.parametrize("weights", [[(1, 0)], [(1, 0, 0, 1)], [(0, 0, 0)], [(-1, 1, 1)], [(1, 1, 1)] * 8])
def test_weights_that_say_nothing_are_refused(weights):
    with pytest.raises(InvalidParameterError, match="weights"):
        SubsetScoresDisplay.from_manifest(pima_manifest(), weights)


def test_a_list_of_another_form_is_refused():
    broken = dataclasses.replace(pima_manifest(), evidence={"choice": {"candidates": [{"columns": 3}]}})
    with pytest.raises(ManifestError):
        SubsetScoresDisplay.from_manifest(broken)


def test_it_draws_a_line_for_each_weighting_and_names_the_sets():
    axes = SubsetScoresDisplay.from_manifest(pima_manifest(), list(TABLE_6)).plot()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]

    assert {"weights 0.333 / 0.333 / 0.333", "first by TOPSIS", "chosen by a weighting"} <= set(labels)
    assert axes.get_xticklabels()[0].get_text() == "all 8 columns"


def test_many_sets_have_their_numbers_of_columns_only():
    n_sets = MOST_NAMED + 40
    shown = SubsetScoresDisplay(
        tuple(f"s{i}" for i in range(n_sets)),
        tuple(range(n_sets, 0, -1)),
        ((1.0, 0.0, 0.0),),
        (tuple(map(float, range(n_sets))),),
    )
    ticks = shown.plot().get_xticks()

    assert len(ticks) <= MOST_NAMED
    assert min(b - a for a, b in itertools.pairwise(ticks)) >= n_sets / MOST_NAMED


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--weights", ".5,.25,.25", "--weights", "(.2, .6, .2)"], 0, "wrote p.svg"),
        (["--kind", "scores"], 0, "wrote p.svg"),
        (["--weights", "a,b,c"], 2, "numbers, joined by commas"),
        (["--kind", "breach-plane", "--weights", "1,0,0"], 2, "for scores only"),
    ],
)
def test_the_command(tmp_path, monkeypatch, capsys, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text(manifest_of(TWO).to_json())

    assert run(["plot", "m.json", "-o", "p.svg", *arguments]) == code
    assert said in capsys.readouterr().err
