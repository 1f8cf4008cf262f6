"""Nothing is published that the audit does not confirm, and what is published can be audited."""

import json
import os

import numpy as np
import pytest

import sfumato
from sfumato.datasets.admissions import admissions
from sfumato.datasets.papers import toy_containment_table
from sfumato.errors import AuditFailedError, OutputError, PrivacyNotAchievableError
from sfumato.mechanisms.base import Release
from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.manifest_file import manifest_path_for
from sfumato.publishing.propose import make_release, propose_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.table.io.read import read_table

FORMATS = ["csv", "csv.gz", "tsv", "parquet", "xlsx"]


@pytest.fixture(scope="module")
def stays():
    return admissions(n_rows=400)


@pytest.fixture
def toy_release():
    return sfumato.release(toy_containment_table(), GreedyContainmentSelector(k=2, on_infeasible="skip"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_release_in_every_format_can_be_audited_from_disk(tmp_path, stays, suffix):
    release = sfumato.release(stays, GreedyContainmentSelector(k=3, on_infeasible="skip"))

    done = publish(release, tmp_path / f"out.{suffix}", original=stays)

    report = audit_published(done.table_path, done.manifest_path, original=stays)
    assert report.passed, report.failures
    assert sorted(os.listdir(tmp_path)) == [f"out.{suffix}", f"out.{suffix}.manifest.json"]


@pytest.mark.slow
def test_a_sparse_release_can_be_written_as_libsvm(tmp_path):
    content = "+1 1:1 2:1\n-1 1:1\n+1 1:1 2:1 3:1\n-1 2:1\n-1 1:1 2:1\n+1 1:1\n"
    (tmp_path / "in.svm").write_text(content)
    original = read_table(tmp_path / "in.svm")
    release = sfumato.release(original, GreedyContainmentSelector(k=2, on_infeasible="skip"))

    done = publish(release, tmp_path / "out.svm", original=original)

    assert audit_published(done.table_path, done.manifest_path, original=original).passed


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
def test_two_runs_are_byte_identical(tmp_path, stays, suffix):
    contents = []
    for run in ("first", "second"):
        (tmp_path / run).mkdir()
        release = sfumato.release(stays, GreedyContainmentSelector(k=3))
        done = publish(release, tmp_path / run / f"out.{suffix}", original=stays)
        contents.append((done.table_path.read_bytes(), done.manifest_path.read_bytes()))

    assert contents[0] == contents[1]


LEVELS = {
    "k and l": ("mondrian", {"k": 4, "l": 2}),
    "(k,k), which needs the original": ("mondrian", {"k": 4, "split": "median", "strict": False}),
    "a bound, which needs the original": ("breach-aware", {}),
    "containment": ("greedy-containment", {"k": 4}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEVELS)
def test_a_proposal_that_is_published_at_once_states_what_the_one_audit_found(tmp_path, stays, kind):
    """The bytes are those of a release that was audited in memory before."""
    name, parameters = LEVELS[kind]
    few = stays.keep(["age", "sex", "insurance", "emergency", "discharge_diagnosis", "readmitted"])
    for way, folder in ((make_release, "audited"), (propose_release, "proposed")):
        (tmp_path / folder).mkdir()
        made = way(few, build_mechanism(name, parameters))
        assert all((entry["audited"] is None) == (way is propose_release) for entry in made.manifest.guarantees)
        done = publish(made, tmp_path / folder / "out.csv", original=few)

    for file in ("out.csv", "out.csv.manifest.json"):
        assert (tmp_path / "audited" / file).read_bytes() == (tmp_path / "proposed" / file).read_bytes()
    found = [entry["audited"] for entry in json.loads(done.manifest_path.read_bytes())["guarantees"]]
    assert found
    assert None not in found


def test_a_proposal_that_does_not_keep_its_promise_is_not_published(tmp_path, stays):
    few = stays.keep(["age", "sex", "insurance", "readmitted"])
    proposed = propose_release(few, build_mechanism("mondrian", {"k": 4}))
    broken = Release(proposed.table.take(np.arange(proposed.table.n_rows)[1:]), proposed.manifest)

    with pytest.raises(AuditFailedError):
        publish(broken, tmp_path / "out.csv", original=few)

    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_output_that_exists_needs_force(tmp_path, toy_release):
    original = toy_containment_table()
    first = publish(toy_release, tmp_path / "out.csv", original=original)
    before = first.manifest_path.read_bytes()

    with pytest.raises(OutputError, match="exists already"):
        publish(toy_release, tmp_path / "out.csv", original=original)
    publish(toy_release, tmp_path / "out.csv", original=original, force=True)
    assert first.manifest_path.read_bytes() == before


def test_the_input_is_never_written_to(tmp_path, stays):
    path = tmp_path / "in.csv"
    path.write_text("a,y\n1,p\n1,q\n0,p\n0,q\n")
    table = read_table(path)
    table = table.with_schema(table.schema.with_roles({"y": sfumato.Role.TARGET}))
    release = sfumato.release(table, GreedyContainmentSelector(k=2))

    with pytest.raises(OutputError, match="is the input"):
        publish(release, path, original=table, force=True)
    assert path.read_text() == "a,y\n1,p\n1,q\n0,p\n0,q\n"


@pytest.mark.slow
def test_a_manifest_left_alone_by_a_kill_is_replaced(tmp_path, toy_release):
    done = publish(toy_release, tmp_path / "out.csv", original=toy_containment_table())
    done.table_path.unlink()

    publish(toy_release, tmp_path / "out.csv", original=toy_containment_table())

    assert audit_published(done.table_path, done.manifest_path).passed


def test_a_file_that_is_no_manifest_is_not_replaced(tmp_path, toy_release):
    manifest_path_for(tmp_path / "out.csv").write_text("{}")

    with pytest.raises(OutputError, match="exists already"):
        publish(toy_release, tmp_path / "out.csv", original=toy_containment_table())


class Liar:
    """A mechanism that promises more than it does."""

    def __init__(self, cheat):
        self.cheat = cheat

    def release(self, table, *, progress=None):
        return self.cheat(GreedyContainmentSelector(k=2, on_infeasible="skip").release(table))


def promises_more(release):
    (entry,) = release.manifest.guarantees
    return release.with_manifest(guarantees=({**entry, "k": 5},))


def releases_all_features(release):
    return Release(toy_containment_table(), release.manifest)


def swaps_rows(release):
    table = release.table
    order = np.array([5, 1, 2, 3, 4, 0])
    shuffled = type(table)(table.matrix[order], table.features, table.companions)
    return Release(shuffled, release.manifest)


def promises_nothing(release):
    return release.with_manifest(guarantees=())


def leaves_a_column_out_of_the_promise(release):
    (entry,) = release.manifest.guarantees
    return release.with_manifest(guarantees=({**entry, "columns": ["x1", "x2"]},))


@pytest.mark.parametrize(
    "cheat",
    [promises_more, releases_all_features, swaps_rows, promises_nothing, leaves_a_column_out_of_the_promise],
    ids=lambda cheat: cheat.__name__,
)
def test_a_mechanism_that_lies_is_refused(cheat):
    with pytest.raises(AuditFailedError):
        sfumato.release(toy_containment_table(), Liar(cheat))


@pytest.mark.slow
def test_a_lie_told_after_the_first_audit_is_caught_before_anything_is_written(tmp_path, toy_release):
    for cheat in (promises_more, releases_all_features, swaps_rows):
        with pytest.raises(AuditFailedError):
            publish(cheat(toy_release), tmp_path / "out.csv", original=toy_containment_table())
        assert os.listdir(tmp_path) == []


def test_a_guarantee_out_of_reach_says_what_can_be_had(stays):
    with pytest.raises(PrivacyNotAchievableError) as caught:
        sfumato.release(stays, GreedyContainmentSelector(k=401))

    assert caught.value.best_level == 400


@pytest.mark.slow
def test_the_manifest_says_what_was_done(tmp_path, stays):
    release = sfumato.release(stays, GreedyContainmentSelector(k=3))
    done = publish(release, tmp_path / "out.csv", original=stays)
    manifest = json.loads(done.manifest_path.read_text())

    assert manifest["sfumato_manifest"] == 3
    assert manifest["output"]["order"] == "sorted"
    assert manifest["mechanism"]["name"] == "greedy-containment"
    assert manifest["mechanism"]["parameters"]["k"] == 3
    assert manifest["guarantees"][0]["audited"] >= 3
    assert "patient_id" in manifest["dropped_columns"]
    assert manifest["output"]["rows"] == 400
    assert manifest["evidence"]["risk"]["unique_pattern_fraction"] >= 0
    assert manifest["missing"]["rows"] == "kept"
