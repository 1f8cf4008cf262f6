import json

import pytest

from sfumato.collaborate.session.handshake import greet
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.session.transcript import SessionWatch, Transcript, public_digest
from sfumato.errors import CollaborationError, OutputError
from unit.collaborate.memory_channel import LocalNetwork
from unit.collaborate.sessions import THREE, HeardRounds, add_up, run, terms_for

VECTORS = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}


def recorded(tmp_path, *, mode="seeds", interfere=None, work=None, rounds=None):
    """Outcomes, the lines of every party's file, and every body that was sent."""
    sent = []

    def watch(sender, to, body):
        sent.append((sender, to, body))
        return interfere(sender, to, body) if interfere else (body,)

    network = LocalNetwork(THREE, interfere=watch)

    def take_part(me, channel):
        watch = HeardRounds(rounds.append) if rounds is not None and me == "a" else None
        transcript = Transcript(tmp_path / f"{me}.jsonl", watch=watch)
        with Session(me, THREE, channel, timeout=2.0, transcript=transcript) as session:
            greet(session, terms_for(THREE))
            return (work or add_up(VECTORS, mode=mode))(session)

    outcomes = network.run(take_part)
    files = {name: (tmp_path / f"{name}.jsonl").read_text() for name in THREE}
    return outcomes, {name: [json.loads(line) for line in text.splitlines()] for name, text in files.items()}, sent


@pytest.mark.parametrize("mode", ["seeds", "shares"])
def test_every_byte_that_leaves_is_counted(tmp_path, mode):
    _, files, sent = recorded(tmp_path, mode=mode)

    for name, lines in files.items():
        expected = [(to, len(body)) for sender, to, body in sent if sender == name]
        assert [(line["peer"], line["n_bytes"]) for line in lines[1:-1] if line["direction"] == "sent"] == expected
        assert lines[-1]["bytes_sent"] == sum(n for _, n in expected)
        assert lines[-1]["bytes_received"] == sum(len(body) for _, to, body in sent if to == name)


def test_first_and_last_line_say_what_it_was(tmp_path):
    _, files, _ = recorded(tmp_path)

    assert files["a"][0]["party"] == "a"
    assert files["a"][0]["roster"] == ["a", "b", "c"]
    assert files["a"][0]["session"] == "s-1"
    assert files["a"][0]["binding"] == files["b"][0]["binding"]
    assert files["a"][-1]["outcome"] == "complete"


@pytest.mark.parametrize("mode", ["seeds", "shares"])
def test_only_what_all_parties_get_has_a_digest(tmp_path, mode):
    _, files, _ = recorded(tmp_path, mode=mode)
    secret = {line["stage"] for line in files["a"][1:-1] if line["digest"] is None}
    public = {line["stage"] for line in files["a"][1:-1] if line["digest"] is not None}

    assert secret == {"seeds" if mode == "seeds" else "counts/64/shares"}
    assert public == {"hello", "hello/echo", "counts/64/commit", f"counts/64/{mode}-sum", "counts/64/echo"}


def test_the_digest_is_the_start_of_the_hash():
    assert public_digest(b"abc") == "ba7816bf8f01cfea"


def test_an_aborted_session_leaves_a_whole_transcript(tmp_path):
    def stop(sender, to, body):
        return (b"rubbish",) if (sender, to) == ("c", "b") else (body,)

    outcomes, files, sent = recorded(tmp_path, interfere=stop)

    assert all(isinstance(outcome, CollaborationError) for outcome in outcomes.values())
    for lines in files.values():
        assert lines[-1]["outcome"] == "aborted"
        assert (lines[-1]["culprit"], lines[-1]["stage"], lines[-1]["reason"]) == ("c", "hello", "garbage")
        assert [line["peer"] for line in lines[1:-1] if (line["stage"], line["direction"]) == ("abort", "sent")]
    for name, lines in files.items():
        assert lines[-1]["bytes_sent"] == sum(len(body) for sender, _, body in sent if sender == name)


def test_a_file_that_exists_is_refused_before_the_session_starts(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("old")

    with pytest.raises(OutputError, match="exists"):
        Transcript(path)
    Transcript(path, force=True).end(outcome="complete")

    assert json.loads(path.read_text().splitlines()[-1])["outcome"] == "complete"


def test_a_file_that_cannot_be_written_in_the_end_is_told_and_raises_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    transcript = Transcript(path)
    transcript.open()
    path.write_text("somebody's")

    transcript.end(outcome="complete")

    assert "a.jsonl: exists already" in str(transcript.problem)
    assert path.read_text() == "somebody's"


def test_a_folder_that_cannot_be_written_to_is_found_before_the_session(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    transcript = Transcript(folder / "a.jsonl")
    folder.rmdir()

    with pytest.raises(OutputError, match="folder does not exist"):
        transcript.open()


def test_only_the_first_end_counts(tmp_path):
    path = tmp_path / "a.jsonl"
    transcript = Transcript(path)
    transcript.end(outcome="aborted")
    transcript.end(outcome="complete")

    assert json.loads(path.read_text().splitlines()[-1])["outcome"] == "aborted"


def test_the_watch_hears_of_every_round(tmp_path):
    rounds = []
    recorded(tmp_path, rounds=rounds)

    assert [entry.number for entry in rounds] == [1, 2, 3, 4, 5, 6]
    assert [entry.stage for entry in rounds] == [
        "hello",
        "hello/echo",
        "seeds",
        "counts/64/commit",
        "counts/64/seeds-sum",
        "counts/64/echo",
    ]
    assert [entry.bytes_sent for entry in rounds] == sorted({entry.bytes_sent for entry in rounds})


def test_a_transcript_in_memory_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcomes = run(lambda session: len(session.transcript.entries))

    assert outcomes == {"a": 8, "b": 8, "c": 8}
    assert list(tmp_path.iterdir()) == []


def test_the_watch_hears_of_every_message_at_once_and_in_order():
    heard = []

    class Listener(SessionWatch):
        def noted(self, entry):
            heard.append(entry)

    transcript = Transcript(watch=Listener())
    for number in range(3):
        transcript.note("sent", "counts", "b", number, None)
        assert heard == list(transcript.entries)

    assert [entry.n_bytes for entry in heard] == [0, 1, 2]


def test_a_watch_that_is_interested_in_nothing_is_enough():
    transcript = Transcript(watch=SessionWatch())
    transcript.note("received", "counts", "b", 7, None)
    transcript.watch.connected("b")
    SessionWatch().ended("b", went_well=True)

    assert transcript.bytes_received == 7
