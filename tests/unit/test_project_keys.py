"""Keys of projects and releases: made once, private, and told apart by purpose."""

import hashlib
import hmac
import os
import stat
from pathlib import Path

import pytest

from sfumato.errors import InputError, OutputError
from sfumato.project.keys import KEY_NAME, ProjectKey, ReleaseKey, key_of_manifest

OTHERS_MAY_READ = [0o644, 0o640, 0o604, 0o660, 0o606]
posix_only = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    made = ProjectKey.load_or_create(tmp_path)
    path = tmp_path / KEY_NAME

    assert ProjectKey.load_or_create(tmp_path) == made == ProjectKey.load(tmp_path)
    assert len(made.secret) == 32
    assert path.read_text() == made.secret.hex() + "\n"
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_projects_have_two_keys(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()

    assert ProjectKey.load_or_create(tmp_path / "one") != ProjectKey.load_or_create(tmp_path / "other")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "sfumato.key\n"),
        ("", "sfumato.key\n"),
        ("*.csv\n", "*.csv\nsfumato.key\n"),
        ("*.csv", "*.csv\nsfumato.key\n"),
        ("sfumato.key\n*.csv\n", "sfumato.key\n*.csv\n"),
    ],
)
def test_git_ignores_the_key(tmp_path, before, after):
    if before is not None:
        (tmp_path / ".gitignore").write_text(before)
    for _ in range(2):
        ProjectKey.load_or_create(tmp_path)

    assert (tmp_path / ".gitignore").read_text() == after


def test_a_project_without_a_key_has_none(tmp_path):
    assert ProjectKey.load(tmp_path) is None


def test_no_representation_shows_a_secret(tmp_path):
    key = ProjectKey.load_or_create(tmp_path)
    own = key.subkey("0" * 32)

    for shown in (repr(key), str(key), repr(own), f"{own}"):
        assert key.secret.hex() not in shown
        assert own.secret.hex() not in shown
        assert repr(key.secret) not in shown
        assert repr(own.secret) not in shown


@posix_only
@pytest.mark.parametrize("mode", OTHERS_MAY_READ, ids=oct)
def test_a_key_that_others_may_read_is_refused(tmp_path, mode):
    ProjectKey.load_or_create(tmp_path)
    path = tmp_path / KEY_NAME
    path.chmod(mode)

    with pytest.raises(InputError, match="others on this machine") as caught:
        ProjectKey.load_or_create(tmp_path)
    assert f"chmod 600 {path}" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"\xff" * 64, b"0" * 10_000])
def test_a_file_that_holds_no_key_is_refused_and_kept(tmp_path, content):
    path = tmp_path / KEY_NAME
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(InputError, match="does not hold the key of a project"):
        ProjectKey.load_or_create(tmp_path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_refused_in_words(tmp_path):
    (tmp_path / KEY_NAME).mkdir()

    with pytest.raises(InputError, match=r"sfumato\.key: cannot be read"):
        ProjectKey.load_or_create(tmp_path)


def test_a_folder_that_is_not_there_is_refused_in_words(tmp_path):
    with pytest.raises(OutputError):
        ProjectKey.load_or_create(tmp_path / "nowhere")


def test_a_key_made_by_another_process_in_the_meantime_is_taken(tmp_path, monkeypatch):
    other = ProjectKey.ephemeral()
    seen = iter([None, other])
    monkeypatch.setattr(ProjectKey, "load", classmethod(lambda cls, folder: next(seen)))
    (tmp_path / KEY_NAME).write_text("of the other process")

    assert ProjectKey.load_or_create(tmp_path) == other


def test_what_is_derived_depends_on_key_purpose_and_every_part():
    one, other = ProjectKey(bytes(32)), ProjectKey(bytes(31) + b"\1")
    asked = [
        one.derive("a"),
        other.derive("a"),
        one.derive("b"),
        one.derive("a", b""),
        one.derive("a", b"", b""),
        one.derive("a", b"xy"),
        one.derive("a", b"x", b"y"),
        one.derive("ax", b"y"),
    ]

    assert len(set(asked)) == len(asked)
    assert asked[0] == one.derive("a")


def test_derivation_is_the_hmac_that_is_written_down():
    """Decision 37: HMAC-SHA256 over "sfumato", the purpose and the parts, each after its length in 8 bytes."""
    message = b"".join(len(part).to_bytes(8, "big") + part for part in (b"sfumato", b"key of a release", b"ab" * 16))
    own = ProjectKey(b"k" * 32).subkey("ab" * 16)

    assert own.secret == hmac.new(b"k" * 32, message, hashlib.sha256).digest()


def test_a_release_has_the_same_number_only_if_all_that_determines_it_is_the_same():
    key = ProjectKey(b"k" * 32)
    number = key.release_number(b"input", b"settings")

    assert len(number) == 32
    assert number == key.release_number(b"input", b"settings")
    assert number not in {
        key.release_number(b"another input", b"settings"),
        key.release_number(b"input", b"other settings"),
        ProjectKey(b"l" * 32).release_number(b"input", b"settings"),
    }


def test_equal_inputs_give_other_commitments_in_other_releases():
    key, content = ProjectKey(b"k" * 32), hashlib.sha256(b"rows").hexdigest()
    one, other = (key.subkey(number).commitment(content) for number in ("00" * 16, "01" * 16))

    assert one["value"] != other["value"]
    assert one == key.subkey("00" * 16).commitment(content)
    assert one["value"] != key.subkey("00" * 16).commitment(hashlib.sha256(b"row").hexdigest())["value"]
    assert content not in one.values()


def test_keys_of_releases_and_their_purposes_are_different():
    key = ProjectKey(b"k" * 32)
    one, other = key.subkey("00" * 16), key.subkey("01" * 16)

    assert len({key.secret, one.secret, other.secret, one.choices, other.choices}) == 5


class TestFileForAnAuditor:
    def test_it_holds_the_key_of_one_release_and_is_private(self, tmp_path):
        own, path = ProjectKey(b"k" * 32).subkey("ab" * 16), tmp_path / "audit.key"
        own.save(path)

        assert ReleaseKey.load(path) == own
        assert (b"k" * 32).hex() not in path.read_text()
        assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(OutputError, match="exists already"):
            own.save(path)

    @posix_only
    def test_one_that_others_may_read_is_refused(self, tmp_path):
        path = tmp_path / "audit.key"
        ProjectKey(b"k" * 32).subkey("ab" * 16).save(path)
        path.chmod(0o644)

        with pytest.raises(InputError, match="others on this machine"):
            ReleaseKey.load(path)

    def test_the_key_of_a_project_is_refused_by_name(self, tmp_path):
        key = ProjectKey.load_or_create(tmp_path)

        with pytest.raises(InputError, match="is the key of a project") as caught:
            ReleaseKey.load(tmp_path / KEY_NAME)
        assert key.secret.hex() not in str(caught.value)

    @pytest.mark.parametrize("content", [b"", b"sfumato-release-key", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----"])
    def test_another_file_is_refused(self, tmp_path, content):
        path = tmp_path / "audit.key"
        path.write_bytes(content)
        path.chmod(0o600)

        with pytest.raises(InputError, match="is not the key of a release"):
            ReleaseKey.load(path)

    def test_one_that_is_not_there_is_refused_in_words(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            ReleaseKey.load(tmp_path / "nothing")


def test_the_key_of_a_manifest_is_that_of_its_number(tmp_path):
    commitment = {"scheme": "hmac-sha256", "release": "ab" * 16, "value": "cd" * 32}
    manifest = {"input": {"commitment": commitment}}

    assert key_of_manifest(tmp_path, manifest) is None
    key = ProjectKey.load_or_create(tmp_path)
    assert key_of_manifest(tmp_path, manifest) == key.subkey("ab" * 16)
    for without in ({"input": None}, {"input": {"commitment": None}}, {}, {"input": {"sha256": "ab" * 32}}):
        assert key_of_manifest(Path(tmp_path), without) is None
