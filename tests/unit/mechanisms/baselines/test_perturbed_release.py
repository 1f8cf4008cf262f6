"""Flipped and synthetic releases from the table to the files and back through the audit, and what the audit catches."""

import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from reproductions.public_data import load_adult, load_pu1
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import AuditFailedError, InvalidParameterError, ManifestError, ManifestRefusedError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.baselines.flipping import RandomFlipper
from sfumato.mechanisms.baselines.noisy_counts import ExponentialReleaser, LaplaceReleaser
from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Schema
from sfumato.table.binarize import BinarizePlan, binarize
from sfumato.table.coding import Table
from sfumato.table.io.read import read_table

pytest.importorskip("opendp")

PLAN = {
    "columns": {
        "age": {"cuts": [40, 60, 75]},
        "sex": {"one_of": ["female"], "name": "female"},
        "marital_status": {"one_of": ["married"], "name": "married"},
        "postcode_area": "drop",
        "insurance": "drop",
        "admission_month": "drop",
    },
}


@pytest.fixture(scope="module")
def stays():
    return admissions(n_rows=300)


@pytest.fixture(scope="module")
def releases(stays):
    mechanisms = {
        "flipped": RandomFlipper(k=4),
        "laplace": LaplaceReleaser(epsilon=2.0, n_features=3, binarize=PLAN),
        "exponential": ExponentialReleaser(epsilon=2.0, n_features=3, binarize=PLAN),
        "paper": LaplaceReleaser(epsilon=2.0, n_features=3, calibration="paper", binarize=PLAN),
    }
    return {name: sfumato.release(stays, mechanism) for name, mechanism in mechanisms.items()}


NAMES = ["flipped", "laplace", "exponential", "paper"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "xlsx"])
@pytest.mark.parametrize("name", NAMES)
def test_a_release_on_disk_passes_its_audit(tmp_path, stays, releases, name, suffix):
    done = publish(releases[name], tmp_path / f"out.{suffix}", original=stays)

    for original in (stays, None):
        report = audit_published(done.table_path, done.manifest_path, original=original)
        assert report.passed, report.failures


SPARSE = "+1 1:1 2:1\n-1 1:1\n+1 1:1 2:1 3:1\n-1 2:1\n-1 1:1 2:1\n+1 1:1\n"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [RandomFlipper(k=2), ExponentialReleaser(n_features=2)], ids=["flip", "dp"])
def test_a_sparse_release_passes_its_audit(tmp_path, mechanism):
    (tmp_path / "in.svm").write_text(SPARSE)
    read = read_table(tmp_path / "in.svm")
    # Whoever builds a binary table says which features there are; a sparse file has those that its rows mention.
    original = replace(read, companions=replace(read.companions, source=None))

    done = publish(sfumato.release(original, mechanism), tmp_path / "out.svm", original=original)

    report = audit_published(done.table_path, done.manifest_path, original=original)
    assert report.passed, report.failures


def test_features_that_rows_of_a_sparse_file_mention_are_refused_for_differential_privacy(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.svm").write_text(SPARSE)
    (tmp_path / "stray.svm").write_text(SPARSE.replace("3:1", "3:7"))

    with pytest.raises(InvalidParameterError, match="a sparse file has the features that rows mention"):
        ExponentialReleaser(n_features=2).release(read_table(tmp_path / "in.svm"))
    said = []
    for name in ("in.svm", "stray.svm"):
        assert run(["release", name, "-m", "laplace-dp", "-p", "n_features=2", "-o", "out.csv"]) == 2
        said.append(capsys.readouterr())

    assert said[0] == said[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "exponential", "paper"])
def test_the_audit_says_that_it_cannot_confirm_differential_privacy(stays, releases, name):
    release = releases[name]
    report = sfumato.audit_release(release.table, release.manifest.to_dict(), AuditorHas(original=stays))

    said = [exception for exception in report.unchecked if exception.name == "epsilon"]
    assert len(said) == 1
    assert "no audit of the output can confirm it" in said[0].message
    assert report.verdict == "confirmed except"
    assert not any("holds: promised" in check.message for check in report.checks)
    assert "the released rows are synthetic: no cell was compared" in [check.message for check in report.checks]


def test_the_audit_tells_the_papers_noise_apart(stays, releases):
    release = releases["paper"]
    report = sfumato.audit_release(release.table, release.manifest.to_dict(), AuditorHas(original=stays))

    assert any("too little" in check.message for check in report.checks)


def test_the_flipped_release_promises_k_and_states_the_cells(stays, releases):
    """Its publisher knows which row is whose; a recipient of sorted rows is told that cells were not compared."""
    release = releases["flipped"]
    entries, own = release.manifest.to_dict(), np.arange(release.table.n_rows)
    report = sfumato.audit_release(
        release.table, entries, AuditorHas(original=stays), publisher=PublisherKnows(places=own)
    )
    assert "cells" in {
        one.name for one in sfumato.audit_release(release.table, entries, AuditorHas(original=stays)).unchecked
    }

    stated = release.manifest.perturbation["n_cells_changed"]
    assert stated > 0
    assert any(
        check.message.startswith(f"{stated:,} flipped cells are stated, as many differ") for check in report.checks
    )
    assert release.manifest.guarantees[0]["audited"] >= 4


def flip_a_cell(manifest):
    manifest["perturbation"]["n_cells_changed"] += 1


def hide_the_flipping(manifest):
    manifest["perturbation"] = None


def call_it_synthetic(manifest):
    manifest["perturbation"] = {"kind": "synthetic", "budget": []}


def suppress_rows_too(manifest):
    manifest["suppressed_rows"] = 1
    manifest["input"]["rows"] += 1


def promise_a_smaller_epsilon(manifest):
    entry = manifest["guarantees"][0]
    entry["epsilon"] = 0.1
    entry["statement"] = re.sub(r"exp\([^)]*\)", "exp(0.1)", entry["statement"])
    manifest["mechanism"]["parameters"]["epsilon"] = 0.1


def promise_it_in_the_budget_as_well(manifest):
    promise_a_smaller_epsilon(manifest)
    for part in manifest["perturbation"]["budget"]:
        part["epsilon"] = 0.05


def add_less_noise(manifest):
    manifest["perturbation"]["budget"][1]["scale"] /= 3


def no_noise_at_all(manifest):
    manifest["perturbation"]["budget"][0]["scale"] = 0


def understate_the_sensitivity(manifest):
    part = manifest["perturbation"]["budget"][0]
    part["sensitivity"] //= 2
    part["scale"] /= 2


def choose_fewer_times(manifest):
    part = manifest["perturbation"]["budget"][0]
    part["n_choices"] = 1
    part["scale"] /= 3


def leave_out_a_step(manifest):
    del manifest["perturbation"]["budget"][0]


def forget_the_budget(manifest):
    manifest["perturbation"] = None


def ask_for_no_epsilon(manifest):
    manifest["mechanism"]["parameters"]["epsilon"] = None


def name_the_original_by_its_hash(manifest):
    commitment = {"scheme": "hmac-sha256", "release": "ab" * 16, "value": "ab" * 32}
    manifest["input"] = {"name": None, "commitment": commitment, "format": "csv", "rows": 300, "columns": 9}


def name_the_original(manifest):
    manifest["input"] = {"name": "in.csv", "commitment": None, "format": "csv", "rows": 300, "columns": 9}


def name_the_project_by_its_hash(manifest):
    manifest["project_sha256"] = "ab" * 32


def say_that_no_row_was_dropped(manifest):
    manifest["missing"] |= {"rows": "kept", "n_dropped": 0}


def state_a_figure_of_the_original(manifest):
    manifest["evidence"]["utility"]["hamming_separation"] = 0.5


def state_a_risk(manifest):
    manifest["evidence"]["risk"] = {"anonymity_level": 1}


def count_the_cells_that_were_kept(manifest):
    manifest["perturbation"]["n_cells_kept"] = 7


def add_an_entry(manifest):
    manifest["note"] = "from the tables of ward 3"


def move_the_last_digit_of_a_figure(manifest):
    utility = manifest["evidence"]["utility"]
    name = "hamming_separation_of_synthetic_rows"
    utility[name] = float(np.nextafter(utility[name], 9))


def move_the_last_digit_of_a_scale(manifest):
    part = manifest["perturbation"]["budget"][1]
    part["scale"] = float(np.nextafter(part["scale"], 9))


def raise_the_threshold(manifest):
    manifest["perturbation"]["threshold"] += 1


def lower_the_threshold(manifest):
    manifest["perturbation"]["threshold"] -= 1


def offer_more_features(manifest):
    manifest["evidence"]["utility"]["n_features_offered"] += 1


def shift_an_edge(manifest):
    bands = [r for r in manifest["recodings"] if r["rule"] == "interval"]
    values = [r for r in manifest["recodings"] if r["rule"] == "one-of"]
    if bands:
        bands[0]["upto" if "upto" in bands[0] else "above"] += 1
    else:
        values[0]["values"].append("x")


def make_a_rule_of_the_rows(manifest):
    manifest["mechanism"]["parameters"]["binarize"]["columns"]["age"] = {"bands": 4}


def warn_of_nothing(manifest):
    manifest["evidence"]["calibration"] = {"asked_epsilon": 2.0, "proven_epsilon": 2.0, "warning": "41 rows"}


def suppress_a_row(manifest):
    manifest["suppressed_rows"] = 1


def call_the_noise_something_else(manifest):
    manifest["perturbation"]["budget"][1]["noise"] = "Laplace, 41"


def publish_a_seed(manifest):
    manifest["mechanism"]["seed"] = 0


def claim_an_audited_level(manifest):
    manifest["guarantees"][0]["audited"] = 2.0


def promise_k_instead(manifest):
    columns = manifest["guarantees"][0]["columns"]
    manifest["guarantees"] = [{"kind": "k-anonymity", "k": 2, "columns": columns, "audited": 2.0}]


def invent_a_column(manifest):
    manifest["recodings"][0]["column"] = "income"


def call_a_feature_sensitive(manifest):
    """Outside the promise, and with the choices counted without it."""
    manifest["output"]["columns"][0]["role"] = "sensitive"
    part = manifest["perturbation"]["budget"][0]
    part["n_choices"] -= 1
    part["scale"] *= 2 / 3


FLIPPED_LIES = [flip_a_cell, hide_the_flipping, call_it_synthetic, suppress_rows_too]
SYNTHETIC_LIES = [
    promise_a_smaller_epsilon,
    promise_it_in_the_budget_as_well,
    add_less_noise,
    no_noise_at_all,
    understate_the_sensitivity,
    choose_fewer_times,
    leave_out_a_step,
    forget_the_budget,
    ask_for_no_epsilon,
    name_the_original_by_its_hash,
    name_the_original,
    name_the_project_by_its_hash,
    say_that_no_row_was_dropped,
    state_a_figure_of_the_original,
    state_a_risk,
    count_the_cells_that_were_kept,
    add_an_entry,
    move_the_last_digit_of_a_figure,
    move_the_last_digit_of_a_scale,
    raise_the_threshold,
    lower_the_threshold,
    offer_more_features,
    shift_an_edge,
    make_a_rule_of_the_rows,
    warn_of_nothing,
    suppress_a_row,
    call_the_noise_something_else,
    publish_a_seed,
    claim_an_audited_level,
    promise_k_instead,
    invent_a_column,
    call_a_feature_sensitive,
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "lie"),
    [("flipped", lie) for lie in FLIPPED_LIES] + [("laplace", lie) for lie in SYNTHETIC_LIES],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_lies_are_caught_even_with_a_repaired_digest(stays, releases, name, lie):
    release = releases[name]
    manifest = json.loads(release.manifest.to_json())
    lie(manifest)
    manifest["digest"] = manifest_digest(manifest)

    for original in (stays, None) if name == "laplace" and lie is not invent_a_column else (stays,):
        assert is_caught(release, manifest, original)


def is_caught(release, manifest, original):
    try:
        return not sfumato.audit_release(release.table, manifest, AuditorHas(original=original)).passed
    except ManifestRefusedError:
        return True


@pytest.mark.parametrize(
    "perturbation",
    [
        [],
        {},
        {"kind": "blurred"},
        {"kind": "flipped"},
        {"kind": "flipped", "n_cells_changed": -1},
        {"kind": "synthetic"},
        {"kind": "synthetic", "budget": [{"step": "counts"}]},
        {
            "kind": "synthetic",
            "budget": [{"step": "counts", "scale": -1, "epsilon": 1, "n_choices": 1, "sensitivity": 2}],
        },
        {
            "kind": "synthetic",
            "budget": [{"step": "magic", "scale": 1, "epsilon": 1, "n_choices": 1, "sensitivity": 2}],
        },
    ],
)
def test_a_malformed_perturbation_is_refused(releases, perturbation):
    release = releases["flipped"]
    manifest = json.loads(release.manifest.to_json()) | {"perturbation": perturbation}

    with pytest.raises(ManifestError):
        sfumato.audit_release(release.table, manifest)


def test_a_changed_target_is_caught(stays, releases):
    """Flipping may change features only."""
    release = releases["flipped"]
    target = release.table.target()
    codes = target.codes.copy()
    codes[0] = 1 - codes[0]
    name = release.table.companions.schema.target
    companions = type(release.table.companions)(
        release.table.companions.schema,
        {**release.table.companions.columns, name: type(target)(codes, target.values)},
        release.table.n_rows,
    )
    changed = type(release.table)(release.table.matrix, release.table.features, companions)

    own = np.arange(changed.n_rows)
    report = sfumato.audit_release(
        changed, release.manifest.to_dict(), AuditorHas(original=stays), publisher=PublisherKnows(places=own)
    )
    assert any(f"'{name}' differs in 1 rows" in failure for failure in report.failures)

    as_a_bag = sfumato.audit_release(changed, release.manifest.to_dict(), AuditorHas(original=stays))
    assert any("the other columns are not those of the original" in failure for failure in as_a_bag.failures)


def test_synthetic_rows_with_other_class_sizes_are_caught(stays, releases):
    release = releases["exponential"]
    target = release.table.target()
    name = release.table.companions.schema.target
    companions = type(release.table.companions)(
        release.table.companions.schema,
        {name: type(target)(np.sort(1 - target.codes).astype(np.int32), target.values)},
        release.table.n_rows,
    )
    changed = type(release.table)(release.table.matrix, release.table.features, companions)

    report = sfumato.audit_release(changed, release.manifest.to_dict(), AuditorHas(original=stays))

    assert "the class sizes of the synthetic rows are not those of the original" in report.failures


def sealed(manifest):
    return manifest | {"digest": manifest_digest(manifest)}


def test_suppressed_rows_are_not_told_from_flipped_ones(stays, releases):
    release = releases["flipped"]
    kept = np.arange(release.table.n_rows - 1)
    shorter = type(release.table)(
        release.table.matrix[kept], release.table.features, release.table.companions.take(kept)
    )
    manifest = json.loads(release.manifest.to_json())
    manifest["suppressed_rows"] = 1
    manifest["output"]["rows"] -= 1

    report = sfumato.audit_release(
        shorter, sealed(manifest), AuditorHas(original=stays), publisher=PublisherKnows(places=kept)
    )

    assert any(
        "suppressed rows, which cannot be distinguished from flipped ones" in failure for failure in report.failures
    )


def test_a_synthetic_feature_that_is_not_binary_is_caught(releases):
    release = releases["laplace"]
    table = release.table.to_table()
    name = release.table.feature_names[0]
    column = table[name]
    odd = type(column)(column.codes, pa.array([7, 8][: column.n_distinct]))
    changed = type(table)(table.schema, {**table.columns, name: odd}, table.n_rows)

    report = sfumato.audit_release(changed, release.manifest.to_dict())

    assert any("a released feature is not 0/1" in failure for failure in report.failures)


def test_synthetic_rows_without_their_target_are_caught(stays, releases):
    release = releases["laplace"]
    bare = Table(Schema.of([]), {}, release.table.n_rows)
    changed = type(release.table)(release.table.matrix, release.table.features, bare)

    report = sfumato.audit_release(changed, release.manifest.to_dict(), AuditorHas(original=stays))

    assert "the target is not a column of both tables" in report.failures


def test_a_tampered_cell_is_not_published(tmp_path, stays, releases):
    release = releases["flipped"]
    matrix = release.table.matrix.tolil()
    matrix[0, 0] = 1 - matrix[0, 0]
    tampered = type(release)(
        type(release.table)(matrix.tocsc(), release.table.features, release.table.companions), release.manifest
    )

    with pytest.raises(AuditFailedError):
        publish(tampered, tmp_path / "out.csv", original=stays)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["random-flipping", "laplace-dp", "exponential-dp"])
def test_the_registry_builds_it_from_text(name):
    assert name in registered_mechanisms()
    given = {"k": "3"} if name == "random-flipping" else {"epsilon": "0.5", "n_features": "7"}

    built = build_mechanism(name, given)

    assert built.get_params().items() >= {key: float(value) for key, value in given.items()}.items()


def test_the_command_line_does_not_call_it_audited(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{i // 2 % 2},{'ab'[i % 3 > 0]}\n" for i in range(60))
    (tmp_path / "in.csv").write_text("smokes,drinks,y\n" + rows)

    roles = ["--target", "y", "--quasi-identifiers", "smokes,drinks"]
    code = run(["release", "in.csv", *roles, "-m", "laplace-dp", "-p", "n_features=2", "-o", "out.csv"])
    shown = capsys.readouterr().err

    assert code == 0
    assert audit_published("out.csv", "out.csv.manifest.json", original=read_table("in.csv")).passed
    assert "promised by construction of the mechanism; no audit can confirm it" in shown
    assert "promised and audited" not in shown


@pytest.mark.slow
def test_adult_and_pu1_are_flipped_about_as_much_as_in_the_paper(shared_data):
    """Table 5 of kAC17 has 0.60 % of Adult's cells at k = 5, Table 6 has 1.30 % of PU1's; ours are fewer."""
    adult, pu1 = RandomFlipper(k=5, binarize={"recipe": "adult-19"}), RandomFlipper(k=5)

    adult.release(load_adult())
    pu1.release(load_pu1())

    assert 0.003 < adult.flipped_fraction_ < 0.008
    assert 0.005 < pu1.flipped_fraction_ < 0.016


@pytest.mark.slow
def test_adult_is_released_with_noise_at_all_19_features(shared_data):
    table = load_adult()

    release = LaplaceReleaser(epsilon=0.5, n_features=19, binarize={"recipe": "adult-19"}).release(table)

    assert release.table.n_rows == table.n_rows
    assert release.manifest.recodings[0]["rule"] == "interval"
    offered = binarize(table, BinarizePlan.from_dict({"recipe": "adult-19"})).feature_names
    assert release.table.feature_names == offered
