import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.transport.messages import (
    REASONS,
    UNBOUND,
    Accusation,
    Kind,
    Message,
    UnreadableMessageError,
    decode,
    encode,
)
from sfumato.errors import InvalidParameterError

ROSTER = ("a", "b", "c")
messages = st.builds(
    Message,
    kind=st.sampled_from(Kind),
    binding=st.binary(min_size=32, max_size=32),
    number=st.integers(0, 2**32 - 1),
    stage=st.text(st.characters(codec="utf-8"), max_size=50),
    payload=st.binary(max_size=100),
)


@given(messages)
def test_what_is_encoded_is_decoded(message):
    body = encode(message)

    assert decode(body) == message
    assert len(body) == message.n_bytes


@given(messages, st.data())
def test_a_cut_or_lengthened_message_is_refused(message, data):
    body = encode(message)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]

    for wrong in (cut, body + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(UnreadableMessageError) as caught:
            decode(wrong)
        assert caught.value.reason == "garbage"


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(body):
    with pytest.raises(UnreadableMessageError):
        decode(body)


def header(*, magic=b"sfumato\x01", kind=0, stage=b"s", payload=b"p", stage_length=None):
    n = len(stage) if stage_length is None else stage_length
    return struct.pack("<8sB32sIHQ", magic, kind, UNBOUND, 0, n, len(payload)) + stage + payload


def test_the_wire_format_is_the_stated_one():
    assert encode(Message(Kind.DATA, UNBOUND, 0, "s", b"p")) == header()


@pytest.mark.parametrize(
    "body",
    [
        header(magic=b"sfumato\x02"),
        header(kind=2),
        header(stage=b"\xff"),
        header(stage=b"s" * 201),
        header(stage_length=2),
        b"",
    ],
    ids=["magic", "kind", "utf-8", "stage too long", "lengths", "empty"],
)
def test_every_field_is_checked(body):
    with pytest.raises(UnreadableMessageError):
        decode(body)


def test_a_message_above_the_size_limit_is_refused_before_it_is_read():
    body = encode(Message(Kind.DATA, UNBOUND, 0, "s", bytes(100)))

    assert decode(body, size_limit=len(body)).payload == bytes(100)
    with pytest.raises(UnreadableMessageError) as caught:
        decode(body, size_limit=len(body) - 1)
    assert caught.value.reason == "too-large"


def test_a_stage_that_nobody_would_read_is_not_sent():
    with pytest.raises(InvalidParameterError, match="stage"):
        encode(Message(Kind.DATA, UNBOUND, 0, "s" * 201, b""))


def test_the_representation_shows_no_content():
    assert "canary" not in repr(Message(Kind.DATA, b"canary" + bytes(26), 0, "s", b"canary"))


@given(st.sampled_from(ROSTER), st.text(max_size=20), st.sampled_from(sorted(REASONS)), st.integers(0, 10**9))
def test_an_accusation_survives_the_way(culprit, stage, reason, number):
    accusation = Accusation(culprit, stage, reason, number, "weights" if reason == "parameter" else "")

    assert Accusation.decode(accusation.encode(), ROSTER) == accusation


@pytest.mark.parametrize(
    "content",
    [
        ["z", "s", "silent", 1, ""],
        ["a", "s", "because", 1, ""],
        ["a", 5, "silent", 1, ""],
        ["a", "s" * 201, "silent", 1, ""],
        ["a", "s", "silent", -1, ""],
        ["a", "s", "silent", True, ""],
        ["a", "s", "silent", "1", ""],
        ["a", "s", ["silent"], 1, ""],
        ["a", "s", "silent", 1],
        ["a", "s", "silent", 1, "weights"],
        ["a", "s", "parameter", 1, ""],
        ["a", "s", "parameter", 1, "a b"],
        ["a", "s", "parameter", 1, "x" * 65],
        ["a", "s", "parameter", 1, 7],
        {"a": 1},
        None,
    ],
    ids=str,
)
def test_an_accusation_of_another_form_is_refused(content):
    with pytest.raises(UnreadableMessageError):
        Accusation.decode(json.dumps(content).encode(), ROSTER)


@pytest.mark.parametrize("payload", [b"", b"\xff", b"[" * 9000, b"[" * 10**6], ids=["empty", "bytes", "deep", "long"])
def test_an_accusation_that_is_no_json_is_refused(payload):
    with pytest.raises(UnreadableMessageError):
        Accusation.decode(payload, ROSTER)
