"""An accusation keeps its author, and several together tell a party's fault from a line's."""

import json

import pytest

from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.session.session import Session, SignedAccusation, judged
from sfumato.collaborate.transport.keys import make_keys
from sfumato.collaborate.transport.messages import (
    REASONS,
    UNBOUND,
    Accusation,
    CertificateSignatures,
    UnreadableMessageError,
)
from sfumato.errors import CollaborationError, InputError
from unit.collaborate.groups import Group
from unit.collaborate.session.test_session import four_rounds
from unit.collaborate.sessions import HANG, THREE, assert_all_blame

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519  # isort: skip

FOUR = ("a", "b", "c", "d")
BINDING = b"b" * 32
SAID = Accusation("c", "counts", "silent", 4)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Every party's way to sign, by its certificate's key."""
    folder = tmp_path_factory.mktemp("keys")
    files = make_keys(folder, FOUR)
    peers = {name: Peer(name, "127.0.0.1", 7000 + place, files[name].certificate) for place, name in enumerate(FOUR)}

    def signatures_of(name):
        others = tuple(peer for other, peer in peers.items() if other != name)
        return CertificateSignatures.of(Roster(peers[name], files[name].key, others, files["authority"].certificate))

    return {name: signatures_of(name) for name in FOUR}


def read(signed, reader, *, sender, binding=BINDING):
    return SignedAccusation.decode(signed.encode(), sender=sender, binding=binding, roster=FOUR, signatures=reader)


class TestSignatures:
    @pytest.mark.parametrize(
        "key",
        [
            ec.generate_private_key(ec.SECP256R1()),
            rsa.generate_private_key(65537, 2048),
            ed25519.Ed25519PrivateKey.generate(),
        ],
        ids=["elliptic curve", "RSA", "Ed25519"],
    )
    def test_only_the_same_content_of_the_same_party_is_signed(self, key):
        signatures = CertificateSignatures(
            key, {"a": key.public_key(), "b": ed25519.Ed25519PrivateKey.generate().public_key()}
        )
        signature = signatures.sign(b"content")

        assert signatures.is_signed("a", b"content", signature)
        assert not signatures.is_signed("a", b"other content", signature)
        assert not signatures.is_signed("b", b"content", signature)
        assert not signatures.is_signed("nobody", b"content", signature)
        assert not signatures.is_signed("a", b"content", b"")

    def test_a_key_that_cannot_sign_is_refused_at_home(self, tmp_path, monkeypatch):
        config = load_party_config(Group(tmp_path).config("ann"))
        monkeypatch.setattr(
            "sfumato.collaborate.transport.messages.check_key", lambda *_: x25519.X25519PrivateKey.generate()
        )

        with pytest.raises(InputError, match="cannot sign"):
            CertificateSignatures.of(config.roster)


class TestAuthors:
    def test_an_accusation_keeps_its_author_when_another_passes_it_on(self, keys):
        signed = SignedAccusation.by("b", SAID, BINDING, keys["b"])

        for sender in ("b", "d"):
            assert read(signed, keys["a"], sender=sender) == signed

    @pytest.mark.parametrize(
        "change",
        [
            {"author": "a"},
            {"author": "d"},
            {"accusation": Accusation("a", "counts", "silent", 4)},
            {"accusation": Accusation("c", "counts", "garbage", 4)},
            {"accusation": Accusation("c", "counts", "silent", 3)},
            {"signature": b""},
            {"binding": UNBOUND},
        ],
        ids=str,
    )
    def test_one_that_its_author_did_not_sign_so_is_a_forgery(self, keys, change):
        signed = SignedAccusation.by("b", SAID, BINDING, keys["b"])
        forged = SignedAccusation(**{**{name: getattr(signed, name) for name in signed.__dict__}, **change})

        with pytest.raises(UnreadableMessageError) as caught:
            read(forged, keys["a"], sender="d")
        assert caught.value.reason == "forgery"

    def test_one_of_another_session_is_refused(self, keys):
        signed = SignedAccusation.by("b", SAID, b"o" * 32, keys["b"])

        with pytest.raises(UnreadableMessageError) as caught:
            read(signed, keys["a"], sender="d")
        assert caught.value.reason == "other-session"

    @pytest.mark.parametrize(("of", "mine"), [(UNBOUND, BINDING), (BINDING, UNBOUND)])
    def test_before_the_hello_is_over_whoever_tells_it_is_its_author(self, keys, of, mine):
        """It could be one of a former session."""
        signed = SignedAccusation.by("b", SAID, of, keys["b"])

        assert read(signed, keys["a"], sender="d", binding=mine).author == "d"

    @pytest.mark.parametrize(
        "content",
        [
            ["x", "b", "00" * 32, ""],
            [None, "b", "00" * 32, ""],
            ["[]", "b", "00", ""],
            ["[]", 3, "00" * 32, "zz"],
            [],
            1,
        ],
        ids=str,
    )
    def test_another_form_is_garbage(self, keys, content):
        with pytest.raises(UnreadableMessageError) as caught:
            SignedAccusation.decode(
                json.dumps(content).encode(), sender="b", binding=BINDING, roster=FOUR, signatures=keys["a"]
            )
        assert caught.value.reason == "garbage"

    def test_a_party_that_puts_words_into_anothers_mouth_is_named_itself(self, keys):
        """Party d says that b accuses a; b said nothing."""
        forged = SignedAccusation.by("b", Accusation("a", "round 0", "garbage", 1), BINDING, keys["d"])

        with pytest.raises(UnreadableMessageError):
            read(forged, keys["c"], sender="d")


def said(author, culprit, reason="silent", round_number=4):
    return SignedAccusation(Accusation(culprit, "counts", reason, round_number), author, bytes(32), b"")


class TestFindings:
    @pytest.mark.parametrize("me", FOUR)
    def test_of_two_that_accuse_each_other_the_line_between_is_named(self, me):
        for heard in (
            [said("a", "b"), said("b", "a")],
            [said("b", "a"), said("a", "b")],
            [said("a", "b"), said("b", "a", "unheard")],
            [said("b", "a", round_number=5), said("a", "b")],
            [said("a", "b", "gone"), said("b", "a", "gone")],
        ):
            finding = judged(me, heard)
            assert finding.line == ("a", "b")
            words = str(finding.error())
            assert words.startswith("parties 'a' and 'b', stage 'counts': neither gets what the other sends")
            assert "line between them is probably down" in words

    def test_a_party_that_several_miss_is_named_though_it_says_the_same_of_them(self):
        finding = judged("a", [said("a", "c"), said("c", "a", "unheard"), said("b", "c"), said("c", "b", "unheard")])

        assert (finding.line, finding.accusation.culprit, finding.told_by) == (None, "c", None)

    def test_that_party_itself_names_its_own_line(self):
        error = judged("c", [said("a", "c"), said("c", "a", "unheard"), said("b", "c")]).error()

        assert str(error).startswith(
            "party 'c', stage 'counts': is not heard by the others; its own line is probably down"
        )

    def test_what_went_wrong_first_is_named_and_a_fault_before_a_silence(self):
        heard = [said("a", "b", round_number=5), said("d", "c", "garbage"), said("b", "c")]

        assert judged("a", heard).accusation == heard[1].accusation

    def test_the_error_says_whose_word_it_is(self):
        assert "says party 'b'" in str(judged("a", [said("b", "c")]).error())
        assert "says" not in str(judged("b", [said("b", "c")]).error())
        assert "says" not in str(judged("a", [said("c", "c", "stopped")]).error())
        assert "closed" in str(judged("b", [said("b", "c")]).error(detail="closed"))


class Wires:
    """In-memory lines between parties, of which some are cut once every party has begun a stage."""

    def __init__(self, names, stage, cut):
        self.names, self.stage, self.cut, self.begun = names, stage, cut, set()

    def __call__(self, sender, to, body):
        from unit.collaborate.sessions import stage_of

        if stage_of(body) == self.stage:
            self.begun.add(sender)
        is_late = stage_of(body) in (self.stage, "abort") or self.begun == set(self.names)
        return () if is_late and (sender, to) in self.cut else (body,)


def cut_off(names, stage, cut):
    from sfumato.collaborate.session.handshake import greet
    from unit.collaborate.memory_channel import LocalNetwork
    from unit.collaborate.sessions import terms_for

    network = LocalNetwork(names, interfere=Wires(names, stage, set(cut)))

    def take_part(me, channel):
        with Session(me, names, channel, timeout=2.0) as session:
            greet(session, terms_for(names))
            return four_rounds(session)

    return network.run(take_part, time_limit=HANG)


class TestLines:
    @pytest.mark.slow
    @pytest.mark.parametrize("names", [THREE, FOUR], ids=len)
    def test_two_whose_line_is_cut_are_both_named_by_all(self, names):
        outcomes = cut_off(names, "round 1", [("a", "b"), ("b", "a")])

        for outcome in outcomes.values():
            assert isinstance(outcome, CollaborationError)
            assert outcome.line == ("a", "b"), str(outcome)
            assert outcome.stage == "round 1"

    @pytest.mark.slow
    def test_also_if_it_is_cut_one_way(self):
        outcomes = cut_off(FOUR, "round 1", [("a", "b")])

        for outcome in outcomes.values():
            assert outcome.line == ("a", "b"), str(outcome)

    @pytest.mark.slow
    def test_a_party_that_hears_nobody_says_that_its_own_line_is_probably_down(self):
        cut = [(one, two) for one in THREE for two in THREE if "c" in (one, two)]
        outcomes = cut_off(THREE, "round 1", cut)

        assert_all_blame(outcomes, "c", "round 1", problem=REASONS["silent"])
        assert_all_blame(outcomes, "c", "round 1", problem="its own line is probably down", by=("c",))

    @pytest.mark.slow
    def test_a_party_that_nobody_hears_says_so_too(self):
        outcomes = cut_off(THREE, "round 1", [("c", "a"), ("c", "b")])

        assert_all_blame(outcomes, "c", "round 1", problem=REASONS["silent"])
        assert_all_blame(outcomes, "c", "round 1", problem="its own line is probably down", by=("c",))

    @pytest.mark.slow
    def test_a_party_that_only_does_not_hear_says_so_to_all(self):
        outcomes = cut_off(THREE, "round 1", [("a", "c"), ("b", "c")])

        assert_all_blame(outcomes, "c", "round 1", problem="its own line is probably down", by=THREE)
