"""A party's file: read strictly, written so that it reads the same, and clear about what is wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.config import ROUND_SECONDS, START_SECONDS, load_party_config, party_config_text
from sfumato.collaborate.roster import Peer
from sfumato.errors import CollaborationError, InputError

GOOD = """
me = "b"
session = "spring"
ca = "authority.crt"
key = "b.key"

[[party]]
name = "a"
host = "10.0.0.1"
port = 7001
certificate = "a.crt"

[[party]]
name = "b"
host = "10.0.0.2"
port = 7002
certificate = "certificates/b.crt"

[[party]]
name = "c"
host = "c.example"
port = 7003
certificate = "/etc/c.crt"
"""


def written(folder, text):
    path = folder / "party.toml"
    path.write_text(text)
    return path


def test_a_file_says_who_is_who_and_paths_are_those_of_its_folder(tmp_path):
    config = load_party_config(written(tmp_path, GOOD))

    assert (config.me, config.session, config.listen_host) == ("b", "spring", "10.0.0.2")
    assert (config.timeout, config.start_timeout) == (ROUND_SECONDS, START_SECONDS)
    roster = config.roster
    assert roster.me == Peer("b", "10.0.0.2", 7002, tmp_path / "certificates" / "b.crt")
    assert roster.peers == (
        Peer("a", "10.0.0.1", 7001, tmp_path / "a.crt"),
        Peer("c", "c.example", 7003, Path("/etc/c.crt")),
    )
    assert (roster.key, roster.ca) == (tmp_path / "b.key", tmp_path / "authority.crt")


def test_a_party_may_listen_elsewhere_and_have_its_certificate_elsewhere(tmp_path):
    more = 'certificate = "own.crt"\ntimeout = 2\nstart_timeout = 0.5\n[listen]\nhost = "0.0.0.0"\nport = 9\n'
    config = load_party_config(written(tmp_path, GOOD.replace("\n[[party]]", f"{more}\n[[party]]", 1)))

    assert config.listen_host == "0.0.0.0"
    assert config.roster.me == Peer("b", "10.0.0.2", 9, tmp_path / "own.crt")
    assert (config.timeout, config.start_timeout) == (2.0, 0.5)


def test_a_file_may_name_the_schema_and_the_release(tmp_path):
    plain = load_party_config(written(tmp_path, GOOD))
    config = load_party_config(written(tmp_path, 'schema = "s.json"\noutput = "out/r.csv"\n' + GOOD))

    assert (plain.schema, plain.output) == (None, None)
    assert (config.schema, config.output) == (tmp_path / "s.json", tmp_path / "out" / "r.csv")
    assert set(config.files.values()) - set(plain.files.values()) == {tmp_path / "s.json"}
    assert set(plain.files.values()) == {
        *(tmp_path / name for name in ("party.toml", "b.key", "authority.crt", "a.crt", "certificates/b.crt")),
        Path("/etc/c.crt"),
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('me = "b"\n', "", "lacks 'me'"),
        ('key = "b.key"\n', "", "lacks 'key'"),
        ('ca = "authority.crt"\n', "", "lacks 'ca'"),
        ('session = "spring"', 'session = " "', "'session' is empty"),
        ('session = "spring"', "session = 7", "'session' in the file must be text"),
        ('me = "b"', 'me = "d"', "'me' is none of the parties"),
        ('me = "b"', 'me = "b"\nsesion = "x"', "did you mean 'session'?"),
        ('me = "b"', 'me = "b"\nschema = 1', "'schema' in the file must be text"),
        ('me = "b"', 'me = "b"\ntimeout = "soon"', "'timeout' in the file must be a number"),
        ('me = "b"', 'me = "b"\ntimeout = true', "'timeout' in the file must be a number"),
        ('me = "b"', 'me = "b"\ntimeout = 0', "'timeout' must be above 0"),
        ('me = "b"', 'me = "b"\nstart_timeout = inf', "'start_timeout' must be above 0"),
        ('me = "b"', 'me = "b"\nlisten = "0.0.0.0"', "'listen' in the file must be a table"),
        ('me = "b"', 'me = "b"\nlisten = { hosts = "" }', "did you mean 'host'?"),
        ('me = "b"', 'me = "b"\nlisten = { port = 0 }', "[listen]: port must be from 1 to 65535"),
        ("port = 7001", "port = 70010", "[[party]] 'a': port must be from 1 to 65535"),
        ("port = 7001", 'port = "7001"', "'port' in [[party]] 'a' must be a whole number"),
        ("port = 7001\n", "", "[[party]] 'a' lacks 'port'"),
        ('name = "a"\n', "", "a [[party]] lacks 'name'"),
        ('name = "a"', 'name = "../a"', "the name of a party must be"),
        ('name = "a"', 'name = "b"', "two [[party]] have the same name"),
        ('host = "10.0.0.1"\nport = 7001', 'host = "10.0.0.2"\nport = 7002', "hosts and ports must be different"),
        ('me = "b"', "me = b", "is not valid TOML (at line 2"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path, old, new, message):
    assert GOOD.count(old) >= 1
    path = written(tmp_path, GOOD.replace(old, new, 1))

    with pytest.raises(InputError) as caught:
        load_party_config(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_list_of_parties_that_is_no_list_of_tables_is_refused(tmp_path):
    head = GOOD.partition("[[party]]")[0]
    for value in ('"a"', "[1]", "{ name = 'a' }"):
        with pytest.raises(InputError, match=r"'party' in the file must be a list of tables"):
            load_party_config(written(tmp_path, f"{head}party = {value}\n"))


def test_two_parties_are_too_few(tmp_path):
    text = GOOD.rpartition("[[party]]")[0]

    with pytest.raises(CollaborationError, match="at least 3 parties"):
        load_party_config(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_said_to_be_so(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'me = "\xe9"')

    with pytest.raises(InputError, match="there is no such party file"):
        load_party_config(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_party_config(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        load_party_config("a\0b")
    with pytest.raises(InputError, match="not UTF-8"):
        load_party_config(tmp_path / "latin.toml")


NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True), min_size=3, max_size=5, unique=True)


@pytest.mark.slow
@given(names=NAMES, session=st.text().map("s".__add__), port=st.integers(1, 65000), data=st.data())
def test_what_was_written_reads_the_same(tmp_path_factory, names, session, port, data):
    folder = tmp_path_factory.mktemp("written")
    peers = [Peer(name, f"{name}.example", port + i, folder / f"{name}.crt") for i, name in enumerate(names)]
    me = data.draw(st.sampled_from(names))
    text = party_config_text(me, session, peers, key=Path("own.key"), ca=Path("ca.crt"), timeout=2.5, start_timeout=7)

    config = load_party_config(written(folder, text))

    assert (config.me, config.session, config.timeout, config.start_timeout) == (me, session, 2.5, 7.0)
    assert {config.roster.me, *config.roster.peers} == set(peers)
    assert (config.roster.key, config.roster.ca) == (folder / "own.key", folder / "ca.crt")
