"""What releases of trees say of BIG, ICR, TIDI and ω, the floor of TIDI, and an audit that refuses other figures."""

import json

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.audit.auditor import PublisherKnows
from sfumato.displays.base import display_of_manifest, registered_displays
from sfumato.displays.tree_disclosure import TreeDisclosureDisplay
from sfumato.errors import InvalidParameterError, ManifestRefusedError, PrivacyNotAchievableError
from sfumato.mechanisms.registry import build_mechanism
from sfumato.report.summarize import summarize
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table

UNIFORM = {"generalization": "uniform", "refine": False}
N_ROWS = 300


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    age, job = rng.integers(18, 80, N_ROWS), rng.choice(["clerk", "cook", "judge", "smith"], N_ROWS)
    target = np.where(age + 15 * (job == "cook") + rng.normal(0, 12, N_ROWS) > 55, "yes", "no")
    columns = [Column("age", kind=Kind.NUMERIC), Column("job"), Column("target", Role.TARGET)]
    return Table.from_arrow(pa.table({"age": age, "job": job, "target": target}), Schema.of(columns))


def released(table, **parameters):
    return sfumato.release(table, build_mechanism("error-risk-tree", {"k": 10, **parameters}))


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, {"generalization": "uniform"}, UNIFORM, {**UNIFORM, "rule": "ratio"}])
def test_every_release_of_a_tree_says_what_it_discloses(table, parameters):
    release = released(table, **parameters)
    stated = release.manifest.evidence["disclosure"]

    assert stated["least_icr_bits_of_leaves"] < np.log2(10) <= stated["least_icr_bits_of_groups"] + 0.005
    assert stated["least_tidi_bits_of_leaves"] <= stated["least_tidi_bits_of_groups"]  # Lemma 3: splits are binary
    assert stated["mean_tidi_bits_of_leaves"] >= stated["mean_tidi_bits_of_groups"]
    assert 1 <= stated["n_branches_pruned"] <= stated["n_groups"] <= stated["n_leaves"]
    assert all(float(f"{figure:.3g}") == figure for figure in stated.values() if isinstance(figure, float))
    assert (stated["groups_are"] == "those that are released") == (parameters.get("refine") is False)
    assert sfumato.audit_release(release.table, release.manifest.to_dict()).passed


def test_sizes_of_released_groups_are_the_ones_stated(table):
    release = released(table, **UNIFORM)
    cells = zip(*(release.table[name].cells().to_pylist() for name in ("age", "job")), strict=True)
    sizes = np.unique([f"{age}/{job}" for age, job in cells], return_counts=True)[1]
    stated = release.manifest.evidence["disclosure"]

    assert stated["n_groups"] == len(sizes)
    assert stated["least_icr_bits_of_groups"] == pytest.approx(np.log2(sizes.min()), rel=0.005)
    assert stated["mean_icr_bits_of_groups"] == pytest.approx((sizes * np.log2(sizes)).sum() / N_ROWS, rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("splits", ["binary", "multiway"])
def test_groups_are_classes_of_equal_cells_with_missing_values_too(seed, splits):
    """Groups differ in a column that was split, and rows without a value there are all on one side."""
    rng = np.random.default_rng(seed)
    n_rows = 120
    cells = {
        "age": [None if rng.random() < 0.2 else int(age) for age in rng.integers(0, 12, n_rows)],
        "job": [None if rng.random() < 0.2 else str(job) for job in rng.choice(list("abcde"), n_rows)],
        "target": rng.choice(["no", "yes"], n_rows),
    }
    columns = [Column("age", kind=Kind.NUMERIC), Column("job"), Column("target", Role.TARGET)]
    drawn = Table.from_arrow(pa.table(cells), Schema.of(columns))

    release = sfumato.release(drawn, build_mechanism("error-risk-tree", {"k": 3, "splits": splits, **UNIFORM}))

    utility, stated = release.manifest.evidence["utility"], release.manifest.evidence["disclosure"]
    assert stated["n_groups"] == utility["n_classes_of_cells"] > 1
    assert sfumato.audit_release(release.table, release.manifest.to_dict()).passed


@pytest.mark.slow
def test_the_report_shows_the_figures(table):
    release = released(table)

    rows = summarize(release, quick=True)["done"]["stated"]

    names = {row["name"] for row in rows}
    assert {"least tidi bits of groups", "mean big bits of leaves", "largest error risk ratio"} <= names


def forged(release, **figures):
    """Names of the checks that fail once the manifest states other figures, that of its digest left out."""
    manifest = json.loads(json.dumps(release.manifest.to_dict()))
    manifest["evidence"]["disclosure"] |= figures
    report = sfumato.audit_release(release.table, manifest, publisher=PublisherKnows(levels_are_stated=False))
    return [check.name for check in report.checks if not check.passed and check.name != "manifest digest"]


@pytest.mark.slow
def test_the_audit_refuses_other_sizes_of_groups(table):
    release = released(table, **UNIFORM)
    stated = release.manifest.evidence["disclosure"]

    assert forged(release) == []
    assert "disclosure: ICR" in forged(release, n_groups=stated["n_groups"] + 1)
    assert "disclosure: ICR" in forged(release, least_icr_bits_of_groups=stated["least_icr_bits_of_groups"] - 0.1)
    assert "disclosure: ICR" in forged(release, mean_icr_bits_of_groups=stated["mean_icr_bits_of_groups"] + 0.2)


@pytest.mark.slow
def test_the_audit_refuses_groups_smaller_than_their_parts(table):
    release = released(table, generalization="uniform")

    assert "disclosure: ICR" in forged(release, least_icr_bits_of_groups=1.0, n_groups=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{}, UNIFORM])
def test_the_audit_refuses_figures_that_do_not_add_up(table, parameters):
    release = released(table, **parameters)
    stated = release.manifest.evidence["disclosure"]

    assert forged(release, mean_tidi_bits_of_groups=round(1.2 * stated["mean_tidi_bits_of_groups"], 1)) == [
        "disclosure: figures"
    ]
    assert "disclosure: figures" in forged(release, least_big_bits_of_leaves=99.0)
    assert "disclosure: figures" in forged(release, least_tidi_bits_of_leaves=-1.0)


@pytest.mark.slow
def test_a_floor_is_kept_and_stated(table):
    low, high = released(table, **UNIFORM), released(table, **UNIFORM, min_disclosure_bits=7.9)

    assert "min_disclosure_bits" not in low.manifest.mechanism["parameters"]
    assert low.manifest.evidence["disclosure"]["least_tidi_bits_of_groups"] < 7.9
    assert high.manifest.mechanism["parameters"]["min_disclosure_bits"] == 7.9
    assert high.manifest.evidence["disclosure"]["least_tidi_bits_of_groups"] >= 7.9
    assert "disclosure: floor" in forged(high, least_tidi_bits_of_groups=7.7)


@pytest.mark.slow
def test_the_audit_refuses_a_floor_without_figures(table):
    manifest = json.loads(json.dumps(released(table, **UNIFORM, min_disclosure_bits=7.9).manifest.to_dict()))
    del manifest["evidence"]["disclosure"]

    report = sfumato.audit_release(
        released(table, **UNIFORM).table, manifest, publisher=PublisherKnows(levels_are_stated=False)
    )

    assert "disclosure: figures" in [check.name for check in report.checks if not check.passed]


def test_figures_of_another_type_are_refused(table):
    with pytest.raises(ManifestRefusedError, match=r"evidence\.disclosure"):
        forged(released(table), least_tidi_bits_of_groups="many")


@pytest.mark.parametrize("parameters", [{}, {"generalization": "uniform"}, {"refine": False}])
def test_a_floor_is_refused_where_released_cells_are_finer(table, parameters):
    with pytest.raises(InvalidParameterError, match="min_disclosure_bits must be left out unless"):
        released(table, **parameters, min_disclosure_bits=5)


@pytest.mark.parametrize("rule", ["lowest", "ratio", "literal"])
def test_a_floor_that_no_group_can_have_is_refused_with_the_best(table, rule):
    with pytest.raises(PrivacyNotAchievableError, match="at least 9 bits") as caught:
        released(table, **UNIFORM, rule=rule, min_disclosure_bits=9)

    assert caught.value.best_level == 8.22


@pytest.mark.slow
def test_the_allowance_is_stated_where_it_counts(table):
    assert "max_added_error" not in released(table).manifest.mechanism["parameters"]
    assert released(table, rule="ratio", max_added_error=0.5).manifest.mechanism["parameters"]["max_added_error"] == 0.5


@pytest.mark.slow
def test_a_manifest_of_a_tree_can_be_drawn(table):
    manifest = released(table, **UNIFORM, min_disclosure_bits=7.9).manifest
    stated = manifest.evidence["disclosure"]

    display = display_of_manifest(manifest, "tree")
    axes = display.plot()

    assert isinstance(display, TreeDisclosureDisplay)
    assert display.floor == 7.9
    assert [label.get_text() for label in axes.get_yticklabels()][-2:] == ["least TIDI", "mean TIDI"]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths[4] == stated["least_tidi_bits_of_leaves"]
    assert widths[6 + 4] == stated["least_tidi_bits_of_groups"]


def test_other_manifests_have_no_such_picture(table):
    other = sfumato.release(table, sfumato.Mondrian(k=10)).manifest

    assert not registered_displays()["tree"].can_draw(other)
