"""A staged release is what publishing writes, and leaves nothing behind until it is told to appear."""

import contextlib
import os
import threading
import time

import pytest

import sfumato
from sfumato.collaborate.session.party import ProjectionReleaser, SessionRecord
from sfumato.collaborate.shared_schema import SharedSchema
from sfumato.errors import AuditFailedError, OutputError
from sfumato.publishing import publish as publishing
from sfumato.publishing.proposals import in_memory
from sfumato.publishing.proposals.in_memory import InMemory
from sfumato.publishing.reaudit import audit_published
from unit.collaborate.groups import small_table


@pytest.fixture
def original():
    return small_table()


@pytest.fixture
def release(original):
    schema = SharedSchema.of_table(original)
    session = SessionRecord("s", "totals", {"a": "00"})
    return sfumato.release(original, ProjectionReleaser(schema, ["site"], 0.05, session))


@pytest.mark.slow
def test_nothing_is_there_until_it_appears_and_then_it_is_what_publish_writes(tmp_path, original, release):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    path = tmp_path / "one" / "r.csv"

    with publishing.staged(InMemory(release, original), path) as appear:
        assert os.listdir(tmp_path / "one") == []
        published = appear()
    expected = sfumato.publish(release, tmp_path / "two" / "r.csv", original=original)

    assert sorted(os.listdir(tmp_path / "one")) == ["r.csv", "r.csv.manifest.json"]
    assert published.table_path.read_bytes() == expected.table_path.read_bytes()
    assert published.manifest_path.read_bytes() == expected.manifest_path.read_bytes()
    assert published.audit.passed


@pytest.mark.slow
def test_leaving_without_appearing_leaves_no_trace(tmp_path, original, release):
    with publishing.staged(InMemory(release, original), tmp_path / "r.csv"):
        pass
    with pytest.raises(KeyboardInterrupt), publishing.staged(InMemory(release, original), tmp_path / "r.csv"):
        raise KeyboardInterrupt

    assert os.listdir(tmp_path) == []


def test_a_file_that_somebody_made_meanwhile_is_not_replaced(tmp_path, original, release):
    path = tmp_path / "r.csv"

    with publishing.staged(InMemory(release, original), path) as appear:
        path.write_text("theirs\n")
        with pytest.raises(OutputError, match="exists already"):
            appear()

    assert path.read_text() == "theirs\n"
    assert os.listdir(tmp_path) == ["r.csv"]


def test_force_replaces_both_files(tmp_path, original, release):
    path = tmp_path / "r.csv"
    path.write_text("old\n")
    (tmp_path / "r.csv.manifest.json").write_text("old\n")

    with publishing.staged(InMemory(release, original), path, force=True) as appear:
        assert path.read_text() == "old\n"
        appear()

    assert path.read_text().startswith("rare,coin,")
    assert '"sfumato_manifest"' in (tmp_path / "r.csv.manifest.json").read_text()


def test_bytes_that_the_audit_does_not_confirm_never_appear(tmp_path, original, release, monkeypatch):
    def write_another_table(table, file, output_format, labels, *, escape_formulas):
        written_before(original.keep(table.schema.names()[::-1]), file, output_format)

    written_before = in_memory.write_table
    monkeypatch.setattr(in_memory, "write_table", write_another_table)

    with pytest.raises(AuditFailedError), publishing.staged(InMemory(release, original), tmp_path / "r.csv") as appear:
        appear()

    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True], ids=["new", "replacing"])
def test_two_releases_that_appear_at_the_same_time_under_one_name_are_not_mixed(tmp_path, original, monkeypatch, force):
    schema, session = SharedSchema.of_table(original), SessionRecord("s", "totals", {"a": "00"})
    one, other = (sfumato.release(original, ProjectionReleaser(schema, [n], 0.05, session)) for n in ("site", "grade"))
    path = tmp_path / "r.csv"
    manifest_is_named = threading.Event()
    name_file = publishing.PendingFile.appear

    def appear_slowly(pending, **how):
        name_file(pending, **how)
        if threading.current_thread() is first:
            manifest_is_named.set()
            time.sleep(0.3)

    with (
        publishing.staged(InMemory(one, original), path, force=force) as appear_first,
        publishing.staged(InMemory(other, original), path, force=force) as appear,
    ):
        first = threading.Thread(target=appear_first)
        monkeypatch.setattr(publishing.PendingFile, "appear", appear_slowly)
        first.start()
        assert manifest_is_named.wait(60)
        with contextlib.nullcontext() if force else pytest.raises(OutputError, match="exists already"):
            appear()
        first.join()

    assert audit_published(path, tmp_path / "r.csv.manifest.json", original=original).passed
