"""Files appear whole or not at all."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from sfumato.atomic import PendingFile, alone_in, appear_together, exchange, write_atomically
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

    with pytest.raises(OutputError, match=r"exists already.*allow replacing it"):
        write_atomically(target, b"second")
    assert target.read_bytes() == b"first"
    write_atomically(target, b"second", force=True)
    assert target.read_bytes() == b"second"


def test_somebody_elses_file_is_never_overwritten(tmp_path):
    """A file that appears between the check and the end is kept."""
    with PendingFile(tmp_path / "out.csv") as pending:
        pending.complete()
        (tmp_path / "out.csv").write_text("theirs")
        with pytest.raises(OutputError, match="created by another program in the meantime"):
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


@pytest.mark.slow
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


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture(params=["unnamed files", "no unnamed files", "unnamed files are refused"])
def file_system(request, monkeypatch):
    """One that has files without a name, a system that knows none, and a file system that refuses them."""
    system_open = os.open

    def refuse(path, flags, *more, **other):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return system_open(path, flags, *more, **other)

    if request.param == "no unnamed files":
        monkeypatch.delattr(os, "O_TMPFILE")
    elif request.param == "unnamed files are refused":
        monkeypatch.setattr(os, "open", refuse)
    return request.param


def test_only_this_user_can_read_a_file_before_it_has_its_name(tmp_path, monkeypatch, umask, file_system):
    """From the moment it is created, on every file system and whatever the umask; then the umask decides as usual."""
    asked, system_open = [], os.open

    def watched(path, flags, permissions=0o777, **other):
        if flags & os.O_CREAT or (hasattr(os, "O_TMPFILE") and flags & os.O_TMPFILE == os.O_TMPFILE):
            asked.append(permissions)
        return system_open(path, flags, permissions, **other)

    monkeypatch.setattr(os, "open", watched)
    with PendingFile(tmp_path / "out.csv") as pending:
        assert set(asked) == {0o600}, "mode at the very creation"
        assert stat.S_IMODE(os.fstat(pending.file.fileno()).st_mode) == 0o600
        pending.file.write(b"abc")
        pending.complete()
        assert stat.S_IMODE(os.fstat(pending.file.fileno()).st_mode) == 0o600
        assert pending.readable_path.read_bytes() == b"abc"
        pending.appear()

    assert mode(tmp_path / "out.csv") == 0o666 & ~umask


def test_a_file_of_a_given_mode_has_it_whatever_the_umask(tmp_path, umask, file_system):
    write_atomically(tmp_path / "secret.key", b"abc", mode=0o600)
    write_atomically(tmp_path / "secret.key", b"abcd", mode=0o600, force=True)

    assert mode(tmp_path / "secret.key") == 0o600


class Moments:
    """Looks at a folder before and after every call that changes a name in it."""

    def __init__(self, monkeypatch, look):
        for name in ("link", "rename", "replace", "unlink", "remove"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name), look))

    def _watched(self, change, look):
        def changed(*arguments, **named):
            look()
            result = change(*arguments, **named)
            look()
            return result

        return changed


def test_a_file_that_is_replaced_is_there_at_every_moment(tmp_path, monkeypatch, file_system):
    target, seen = tmp_path / "out.csv", []
    write_atomically(target, b"old")
    with monkeypatch.context() as patch:
        Moments(patch, lambda: seen.append(target.read_bytes()))
        write_atomically(target, b"new", force=True)

    assert set(seen) == {b"old", b"new"}
    assert seen == sorted(seen, reverse=True), "first the old, then the new"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_is_replaced_where_there_are_no_second_names(tmp_path, monkeypatch):
    """As on FAT."""

    def refuse(*_, **__):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.delattr(os, "O_TMPFILE")
    monkeypatch.setattr(os, "link", refuse)
    write_atomically(tmp_path / "out.csv", b"old")
    write_atomically(tmp_path / "out.csv", b"new", force=True)

    assert (tmp_path / "out.csv").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out.csv"]


def pending_pair(folder):
    pair = [PendingFile(folder / name) for name in ("one", "two")]
    for pending in pair:
        pending.file.write(b"new")
        pending.complete()
    return pair


@pytest.mark.parametrize("stood", [True, False], ids=["over old ones", "where nothing was"])
def test_two_files_of_which_one_cannot_be_named_leave_what_was_there(tmp_path, monkeypatch, stood, file_system):
    if stood:
        for name in ("one", "two"):
            (tmp_path / name).write_bytes(b"old")
    one, two = pending_pair(tmp_path)
    monkeypatch.setattr(two, "appear", lambda **_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt), one, two, alone_in(tmp_path):
        appear_together([one, two], [one.target, two.target])

    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == ({"one": b"old", "two": b"old"} if stood else {})


def test_hidden_names_that_a_kill_left_go_when_the_file_is_replaced_again(tmp_path):
    target = tmp_path / "out.csv"
    left, others = (".out.csv.0123456789ab.new", ".out.csv.0123456789ab.old"), (".out.csv.mine.old", ".other.new")
    for name in ("out.csv", *left, *others):
        (tmp_path / name).write_bytes(b"old")

    write_atomically(target, b"new", force=True)

    assert sorted(os.listdir(tmp_path)) == sorted(["out.csv", *others])
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step on Linux only")
def test_a_file_and_a_folder_exchange_their_names(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "folder").mkdir()

    assert exchange(tmp_path / "file", tmp_path / "folder")
    assert (tmp_path / "file").is_dir()
    assert (tmp_path / "folder").read_bytes() == b"x"
    assert not exchange(tmp_path / "file", tmp_path / "absent")
