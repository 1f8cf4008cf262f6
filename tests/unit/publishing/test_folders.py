"""A folder replaces another whole or not at all, and only one that holds nothing of the user's."""

import os
import stat
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from sfumato.atomic import PendingFile
from sfumato.errors import OutputError
from sfumato.publishing.cluster_folder import check_folder_targets, name_both, pending_folder

OLD = {"out.parquet/part-00000.parquet": "old", "out.parquet.manifest.json": "old manifest"}
NEW = {"out.parquet/part-00000.parquet": "new", "out.parquet.manifest.json": "new manifest"}
TRACED = {"folders.py", "atomic.py"}


def write_old(folder):
    for name, content in OLD.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def replace_by_new(folder, *, force=True, before=lambda: None):
    target = folder / "out.parquet"
    with pending_folder(target) as pending, PendingFile(folder / "out.parquet.manifest.json") as manifest:
        pending.rows.mkdir()
        (pending.rows / "some.parquet").write_text("new")
        pending.complete()
        manifest.file.write(b"new manifest")
        manifest.complete()
        before()
        name_both(pending, manifest, [], force=force)


class Interruption:
    """Ctrl-C before a line of those that name files, counted from 1."""

    def __init__(self, line):
        self._left, self.did_happen = line, False

    def start(self):
        sys.settrace(self._enter)

    def _enter(self, frame, event, argument):
        is_traced = Path(frame.f_code.co_filename).name in TRACED and frame.f_code.co_name != "__exit__"
        return self._step if is_traced else None

    def _step(self, frame, event, argument):
        if event == "line" and not self.did_happen:
            self._left -= 1
            if self._left == 0:
                self.did_happen = True
                raise KeyboardInterrupt
        return self._step


@pytest.fixture(params=["exchanged", "moved away"])
def system(request, monkeypatch):
    """One that can exchange two names in one step, and one that cannot."""
    if request.param == "moved away":
        monkeypatch.setattr("sfumato.publishing.cluster_folder.exchange", lambda *_: False)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("stood", [True, False], ids=["over an old one", "where nothing was"])
def test_an_interruption_at_any_line_leaves_the_old_or_the_new(tmp_path, monkeypatch, stood, system):
    """Never a part of one, and never nothing where something was."""
    monkeypatch.setattr("sfumato.publishing.cluster_folder._GLANCE_SECONDS", 0.0)
    tracing, seen, line = sys.gettrace(), [], 0
    while True:
        line += 1
        folder = tmp_path / str(line)
        folder.mkdir()
        if stood:
            write_old(folder)
        interruption = Interruption(line)
        try:
            replace_by_new(folder, before=interruption.start)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(tracing)
        if not interruption.did_happen:
            break
        seen.append(contents(folder))
        assert seen[-1] in (OLD if stood else {}, NEW), f"interrupted before line {line}"
        assert sorted(path.name for path in folder.iterdir()) == sorted({name.split("/")[0] for name in seen[-1]})

    assert contents(folder) == NEW
    assert seen.count(OLD if stood else {}) > 20  # interrupted before the names were exchanged, and while they were


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutputError("the disk is full", path="x"), MemoryError])
@pytest.mark.parametrize("step", ["atomic.PendingFile.appear", "publishing.cluster_folder.PendingFolder.appear"])
def test_a_failure_at_a_step_brings_the_old_back(tmp_path, monkeypatch, step, error, system):
    monkeypatch.setattr("sfumato.publishing.cluster_folder._GLANCE_SECONDS", 0.0)
    write_old(tmp_path)
    with patch(f"sfumato.{step}", side_effect=error), pytest.raises(BaseException, match=r".*"):
        replace_by_new(tmp_path)

    assert contents(tmp_path) == OLD


def test_a_folder_that_is_replaced_is_there_at_every_moment(tmp_path, monkeypatch):
    write_old(tmp_path)
    part, seen = tmp_path / "out.parquet" / "part-00000.parquet", []
    monkeypatch.setattr("sfumato.publishing.cluster_folder._GLANCE_SECONDS", 0.0)

    def look(frame, event, argument):
        if Path(frame.f_code.co_filename).name in TRACED:
            seen.append(part.read_text())
            return look
        return None

    tracing = sys.gettrace()
    try:
        replace_by_new(tmp_path, before=lambda: sys.settrace(look))
    finally:
        sys.settrace(tracing)

    assert sorted(set(seen)) == ["new", "old"]
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids=oct)
def test_only_this_user_can_enter_a_folder_before_it_has_its_name(tmp_path, umask):
    before = os.umask(umask)
    try:
        with pending_folder(tmp_path / "out.parquet") as pending:
            (hidden,) = tmp_path.iterdir()
            assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
            assert pending.rows.parent == hidden
    finally:
        os.umask(before)


def test_what_somebody_else_names_meanwhile_stays(tmp_path, monkeypatch):
    """It is not taken for ours when ours is taken back."""
    monkeypatch.setattr("sfumato.publishing.cluster_folder._GLANCE_SECONDS", 0.0)
    manifest = tmp_path / "out.parquet.manifest.json"
    with (
        patch("sfumato.publishing.cluster_folder.check_folder_targets", lambda *_, **__: manifest.write_text("theirs")),
        pytest.raises(OutputError, match="created by another program in the meantime"),
    ):
        replace_by_new(tmp_path, force=False)

    assert contents(tmp_path) == {"out.parquet.manifest.json": "theirs"}


def checked(folder, inputs=()):
    target = folder / "out.parquet"
    check_folder_targets(target, folder / "out.parquet.manifest.json", inputs, force=True)


@pytest.mark.parametrize("name", ["_SUCCESS", "_metadata", "_common_metadata", ".part-0.parquet.crc", "x.parquet"])
def test_force_replaces_what_spark_puts_beside_parts(tmp_path, name):
    write_old(tmp_path)
    (tmp_path / "out.parquet" / name).write_text("")
    checked(tmp_path)


@pytest.mark.parametrize("name", [".git", "_notes", ".crc", "sex=f", "x.parquet"])
def test_force_replaces_no_folder_in_it(tmp_path, name):
    write_old(tmp_path)
    (tmp_path / "out.parquet" / name).mkdir()
    with pytest.raises(OutputError, match="holds more than Parquet files"):
        checked(tmp_path)


@pytest.mark.parametrize("name", [".gitignore", "_notes", "_delta_log", ".x.parquet", "_x.parquet", "x.crc", "x.csv"])
def test_force_replaces_no_file_of_the_users(tmp_path, name):
    write_old(tmp_path)
    (tmp_path / "out.parquet" / name).write_text("mine")
    with pytest.raises(OutputError, match="holds more than Parquet files"):
        checked(tmp_path)


@pytest.mark.parametrize("name", ["out.parquet", "out.parquet/part-00000.parquet", "."])
def test_an_output_is_neither_an_input_nor_around_nor_in_one(tmp_path, name):
    """Of several inputs, any."""
    write_old(tmp_path)
    with pytest.raises(OutputError, match="is the input, inside it, or contains it"):
        checked(tmp_path, [tmp_path / "elsewhere", tmp_path / name])
    checked(tmp_path, [tmp_path / "elsewhere", tmp_path / "out.parquet.csv"])
