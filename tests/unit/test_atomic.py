"""Files appear whole or not at all."""

import errno
import os
import subprocess
import sys

import pytest

from sfumato.atomic import PendingFile, write_atomically
from sfumato.errors import OutputError


def test_content_appears_under_its_name_only_at_the_end(tmp_path):
    target = tmp_path / "out.csv"
    with PendingFile(target) as pending:
        pending.file.write(b"abc")
        pending.complete()
        assert not target.exists()
        assert pending.readable_path.read_bytes() == b"abc"
        pending.appear()

    assert target.read_bytes() == b"abc"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_leaving_early_leaves_no_trace(tmp_path):
    with PendingFile(tmp_path / "out.csv") as pending:
        pending.file.write(b"abc")

    assert os.listdir(tmp_path) == []


def test_works_without_unnamed_files(tmp_path, monkeypatch):
    """Where the file system knows no unnamed files a hidden one is used, and goes away."""
    monkeypatch.delattr(os, "O_TMPFILE")
    with PendingFile(tmp_path / "out.csv") as pending:
        pending.file.write(b"abc")
        pending.complete()
        assert pending.readable_path.read_bytes() == b"abc"
        pending.appear()

    assert os.listdir(tmp_path) == ["out.csv"]
    with PendingFile(tmp_path / "second.csv"):
        pass
    assert os.listdir(tmp_path) == ["out.csv"]


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    target = tmp_path / "out.toml"
    write_atomically(target, b"first")

    with pytest.raises(OutputError, match=r"exists already.*--force"):
        write_atomically(target, b"second")
    assert target.read_bytes() == b"first"
    write_atomically(target, b"second", force=True)
    assert target.read_bytes() == b"second"


def test_somebody_elses_file_is_never_overwritten(tmp_path):
    """A file that appears between the check and the end is kept."""
    with PendingFile(tmp_path / "out.csv") as pending:
        pending.complete()
        (tmp_path / "out.csv").write_text("theirs")
        with pytest.raises(OutputError, match="somebody else"):
            pending.appear()

    assert (tmp_path / "out.csv").read_text() == "theirs"


@pytest.mark.parametrize(
    ("path", "problem"),
    [("missing/out.csv", "folder does not exist"), (".", "is a folder")],
    ids=["no folder", "folder"],
)
def test_impossible_targets_are_refused_before_any_work(tmp_path, path, problem):
    with pytest.raises(OutputError, match=problem):
        write_atomically(tmp_path / path, b"x")


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "cannot"),
    ],
)
def test_refusals_of_the_system_become_one_clear_line(tmp_path, monkeypatch, number, problem):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError, match=problem):
        write_atomically(tmp_path / "out.csv", b"x")

    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path):
    """A real limit on the file size makes the write fail half-way."""
    code = (
        "import resource, sys; from pathlib import Path; from sfumato.atomic import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "write_atomically(Path(sys.argv[1]), b'x' * 100_000)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "out.csv"], capture_output=True, text=True, check=False
    )

    assert "OutputError" in done.stderr
    assert os.listdir(tmp_path) == []
