"""Certificates: what is made can be used, and what another party would refuse is said with its reason."""

import hashlib
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.transport.certificates import (
    check_authority,
    check_certificate,
    check_key,
    check_name,
    fingerprint,
    read_certificate,
)
from sfumato.collaborate.transport.keys import make_keys
from sfumato.errors import InputError, InvalidParameterError, OutputError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"), ["ann", "bob"], hosts={"ann": ["ann.example.org", "10.1.2.3"]})


@pytest.fixture(scope="module")
def authority(files):
    return check_authority(files["authority"].certificate)


def roster_of(files, *, ann_host="127.0.0.1", bob_host="127.0.0.1", **changes):
    ann = Peer("ann", ann_host, 4001, files["ann"].certificate)
    bob = Peer("bob", bob_host, 4002, files["bob"].certificate)
    given = {"me": ann, "key": files["ann"].key, "peers": (bob,), "ca": files["authority"].certificate}
    return Roster(**(given | changes))


class TestMaking:
    def test_private_keys_are_for_their_owner_only_whatever_the_umask(self, tmp_path):
        before = os.umask(0)
        try:
            made = make_keys(tmp_path, ["ann"])
        finally:
            os.umask(before)

        assert {stat.S_IMODE(pair.key.stat().st_mode) for pair in made.values()} == {0o600}
        assert b"PRIVATE" in made["ann"].key.read_bytes()
        assert b"PRIVATE" not in made["ann"].certificate.read_bytes()

    def test_only_the_named_files_are_left(self, tmp_path):
        make_keys(tmp_path, ["ann"])

        assert sorted(os.listdir(tmp_path)) == ["ann.crt", "ann.key", "authority.crt", "authority.key"]

    def test_an_existing_file_stops_it_before_anything_is_written(self, tmp_path):
        (tmp_path / "bob.key").write_text("mine")

        with pytest.raises(OutputError, match="exists already"):
            make_keys(tmp_path, ["ann", "bob"])
        assert os.listdir(tmp_path) == ["bob.key"]
        assert (tmp_path / "bob.key").read_text() == "mine"

    def test_force_replaces_everything(self, tmp_path):
        old = make_keys(tmp_path, ["ann"])["ann"].certificate.read_bytes()
        new = make_keys(tmp_path, ["ann"], force=True)

        assert new["ann"].certificate.read_bytes() != old
        check_certificate(
            new["ann"].certificate,
            authority=check_authority(new["authority"].certificate),
            name="ann",
            host="localhost",
        )

    def test_subject_of_the_authority_starts_with_its_common_name(self, authority):
        assert next(iter(authority.subject)).oid == NameOID.COMMON_NAME

    @pytest.mark.parametrize("names", [["ann", "ann"], ["authority"]], ids=["twice", "the authority's"])
    def test_names_that_clash_are_refused(self, tmp_path, names):
        with pytest.raises(InvalidParameterError, match="names"):
            make_keys(tmp_path, names)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize("valid_days", [0, -1, 4000])
    def test_days_of_validity_have_bounds(self, tmp_path, valid_days):
        with pytest.raises(InvalidParameterError, match="valid_days"):
            make_keys(tmp_path, ["ann"], valid_days=valid_days)

    def test_a_host_that_cannot_stand_in_a_certificate_is_refused_without_being_shown(self, tmp_path):
        with pytest.raises(InvalidParameterError, match="hosts") as caught:
            make_keys(tmp_path, ["ann"], hosts={"ann": ["häuschen"]})
        assert "häuschen" not in str(caught.value)
        assert os.listdir(tmp_path) == []

    @pytest.mark.slow
    @given(st.text(max_size=80))
    def test_a_name_that_is_accepted_is_a_plain_file_name(self, name):
        plain = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        fits = 1 <= len(name) <= 64 and set(name) <= plain and name[0] not in "._-"
        if fits:
            check_name(name)
        else:
            with pytest.raises(InvalidParameterError):
                check_name(name)


class TestChecking:
    def test_fingerprint_is_the_digest_of_the_certificate_as_openssl_reads_it(self, files):
        encoded = ssl.PEM_cert_to_DER_cert(files["ann"].certificate.read_text())

        assert fingerprint(read_certificate(files["ann"].certificate)) == hashlib.sha256(encoded).hexdigest()

    @pytest.mark.parametrize(
        "host", [None, "localhost", "127.0.0.1", "::1", "ann.example.org", "ANN.example.org.", "10.1.2.3"]
    )
    def test_a_certificate_fits_its_party_and_hosts(self, files, authority, host):
        check_certificate(files["ann"].certificate, authority=authority, name="ann", host=host)

    @pytest.mark.parametrize("host", ["bob.example.org", "10.1.2.4", "example.org", ""])
    def test_another_host_is_refused(self, files, authority, host):
        with pytest.raises(InputError, match="does not cover its host"):
            check_certificate(files["ann"].certificate, authority=authority, name="ann", host=host)

    @pytest.mark.parametrize(
        ("host", "covered"), [("a.example.org", True), ("example.org", False), ("a.b.example.org", False)]
    )
    def test_a_star_stands_for_one_part_of_a_host_name(self, tmp_path, host, covered):
        made = make_keys(tmp_path, ["ann"], hosts={"ann": ["*.example.org"]})
        authority = check_authority(made["authority"].certificate)
        if covered:
            check_certificate(made["ann"].certificate, authority=authority, name="ann", host=host)
        else:
            with pytest.raises(InputError, match="does not cover"):
                check_certificate(made["ann"].certificate, authority=authority, name="ann", host=host)

    def test_another_partys_certificate_is_refused(self, files, authority):
        with pytest.raises(InputError, match="does not name party 'ann'"):
            check_certificate(files["bob"].certificate, authority=authority, name="ann")

    def test_another_authority_of_the_same_name_is_told(self, files, tmp_path):
        foreign = check_authority(make_keys(tmp_path, [])["authority"].certificate)

        with pytest.raises(InputError, match="signed by another authority"):
            check_certificate(files["ann"].certificate, authority=foreign, name="ann")

    def test_a_certificate_signed_by_a_party_is_signed_by_another_authority(self, files, authority):
        """A party's certificate cannot stand in for the authority's."""
        with pytest.raises(InputError, match="signed by another authority"):
            check_certificate(
                files["ann"].certificate, authority=read_certificate(files["bob"].certificate), name="ann"
            )
        with pytest.raises(InputError, match="not the certificate of an authority"):
            check_authority(files["bob"].certificate)

    @pytest.mark.parametrize(("days", "reason"), [(91, "expired on"), (-1, "not valid before")])
    def test_a_certificate_has_its_time(self, files, authority, days, reason):
        then = datetime.now(UTC) + timedelta(days=days)

        with pytest.raises(InputError, match=reason):
            check_certificate(files["ann"].certificate, authority=authority, name="ann", now=then)
        with pytest.raises(InputError, match=reason):
            check_authority(files["authority"].certificate, now=then)

    def test_clocks_may_differ_a_little(self, files, authority):
        then = datetime.now(UTC) - timedelta(minutes=1)

        check_certificate(files["ann"].certificate, authority=authority, name="ann", now=then)

    @pytest.mark.parametrize(
        "content", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    )
    def test_what_is_no_certificate_is_told(self, tmp_path, content):
        path = tmp_path / "x.crt"
        path.write_bytes(content)

        with pytest.raises(InputError, match="is not a certificate"):
            read_certificate(path)

    def test_a_missing_file_is_told(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_certificate(tmp_path / "none.crt")
        with pytest.raises(InputError, match="cannot be read"):
            check_key(tmp_path / "none.key", None)

    def test_a_bundle_of_authorities_is_refused(self, files, tmp_path):
        """Exactly one authority is trusted."""
        bundle = tmp_path / "bundle.crt"
        bundle.write_bytes(files["authority"].certificate.read_bytes() + files["ann"].certificate.read_bytes())

        with pytest.raises(InputError, match="holds 2 certificates"):
            check_authority(bundle)

    def test_a_key_must_belong_to_its_certificate(self, files):
        mine = read_certificate(files["ann"].certificate)

        check_key(files["ann"].key, mine)
        with pytest.raises(InputError, match="does not belong"):
            check_key(files["bob"].key, mine)
        with pytest.raises(InputError, match="not a private key"):
            check_key(files["ann"].certificate, mine)

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
    def test_a_key_that_others_can_use_is_refused(self, files, tmp_path, mode):
        mine = read_certificate(files["ann"].certificate)
        copy = tmp_path / "my own.key"
        copy.write_bytes(files["ann"].key.read_bytes())
        copy.chmod(mode)

        with pytest.raises(InputError, match="open to other users") as caught:
            check_key(copy, mine)

        assert f"chmod 600 '{copy}'" in str(caught.value)
        copy.chmod(0o400)
        check_key(copy, mine)


class TestRoster:
    def test_names_and_fingerprints_are_the_same_for_every_party(self, files):
        of_ann = roster_of(files)
        of_bob = Roster(of_ann.peers[0], files["bob"].key, (of_ann.me,), of_ann.ca)

        assert of_ann.names == of_bob.names == ("ann", "bob")
        assert list(of_ann.fingerprints.items()) == list(of_bob.fingerprints.items())
        assert of_ann.fingerprints["bob"] == fingerprint(read_certificate(files["bob"].certificate))

    def test_a_peers_host_must_be_covered_but_not_my_own(self, files):
        assert len(roster_of(files, ann_host="0.0.0.0").fingerprints) == 2
        with pytest.raises(InputError, match="party 'bob' does not cover its host"):
            _ = roster_of(files, bob_host="bob.example.org").fingerprints

    def test_somebody_elses_key_is_refused(self, files):
        with pytest.raises(InputError, match="does not belong"):
            _ = roster_of(files, key=files["bob"].key).fingerprints

    def test_parties_must_differ_in_name_and_place(self, files):
        ann = Peer("ann", "127.0.0.1", 4001, files["ann"].certificate)
        with pytest.raises(InvalidParameterError, match="names"):
            roster_of(files, peers=(Peer("ann", "127.0.0.1", 4002, files["bob"].certificate),))
        with pytest.raises(InvalidParameterError, match="hosts and ports"):
            roster_of(files, peers=(Peer("bob", ann.host, ann.port, files["bob"].certificate),))

    @pytest.mark.parametrize("port", [0, -1, 65536])
    def test_a_port_is_a_port(self, files, port):
        with pytest.raises(InvalidParameterError, match="port"):
            Peer("ann", "127.0.0.1", port, files["ann"].certificate)
