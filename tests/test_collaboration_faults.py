"""One party of three misbehaves, as a real process: it is named, the others leave with code 6, nobody publishes."""

import json
import os
import selectors
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import sfumato
from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.session.party import ALL_READY, READY
from sfumato.collaborate.transport.keys import make_keys
from sfumato.publishing.reaudit import audit_published
from unit.collaborate.groups import Group, Nursery, make_party

BAD = "cid"
HONEST = ("ann", "bob")
MAY_BE_PUBLISHED = "The others may have published; this party did not."

STAGES = (
    "hello",
    "hello/echo",
    "seeds",
    "counts/64/commit",
    "counts/64/seeds-sum",
    "counts/64/echo",
    "removal order/61/commit",
    "removal order/61/seeds-sum",
    "removal order/61/echo",
    "not yet/61/commit",
    "not yet/61/seeds-sum",
    "not yet/61/echo",
    READY,
    ALL_READY,
)


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started


@pytest.fixture(scope="module")
def keyed_group(tmp_path_factory):
    return Group(tmp_path_factory.mktemp("group"))


@pytest.fixture
def group(keyed_group):
    """Make sure that nothing of a former session stands in the folder."""
    for path in [*keyed_group.folder.glob("*-release*"), *keyed_group.folder.glob("*.jsonl")]:
        path.unlink()
    for name in keyed_group.names:
        keyed_group.write_config(name)
    return keyed_group


def run(nursery, group, *bad, options=()):
    return nursery.run(group, {name: group.command(name, *options) for name in group.names}, {BAD: bad or None})


def assert_named(outcomes, group, stage, problem="", *, by=HONEST):
    """Honest parties left with exit code 6, those of ``by`` name the bad one and the stage; nothing is published."""
    for name in HONEST:
        assert outcomes[name].code == 6, (name, outcomes[name].said)
    last_lines = {name: outcomes[name].said.splitlines()[-1] for name in HONEST}
    end = MAY_BE_PUBLISHED if stage == ALL_READY else "Nothing was released."
    for name in by:
        assert f"party '{BAD}', stage '{stage}': " in last_lines[name], last_lines
        assert end in last_lines[name]
    assert any(problem in line for line in last_lines.values()), last_lines
    assert outcomes[BAD].code != 0
    assert group.releases() == set()
    assert not list(group.folder.glob(".*"))


def is_confirmed(group, name):
    original = sfumato.read_table(group.data(name))
    return audit_published(group.output(name), f"{group.output(name)}.manifest.json", original=original).passed


def test_honest_parties_publish_releases_that_the_audit_confirms(nursery, group):
    outcomes = run(nursery, group)

    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0], outcomes
    assert group.releases() == set(group.names)
    for name in group.names:
        assert is_confirmed(group, name)
    lines = [json.loads(line) for line in group.transcript("ann").read_text().splitlines()]
    assert tuple(dict.fromkeys(line["stage"] for line in lines[1:-1])) == STAGES
    assert lines[-1]["outcome"] == "complete"


@pytest.mark.parametrize("stage", STAGES)
def test_a_party_that_dies_in_any_round_is_named_and_nobody_publishes(nursery, group, stage):
    dies = ["dies_at", stage] if stage != STAGES[0] else ["dies_when_told_at", stage, *HONEST]

    outcomes = run(nursery, group, *dies)

    assert outcomes[BAD].code == -9
    assert_named(outcomes, group, stage, "is not connected any more")


def run_all(nursery, group, **bad):
    return nursery.run(group, {name: group.command(name) for name in group.names}, bad)


def test_a_party_that_dies_while_the_others_connect_is_named_with_that_stage(nursery, group):
    """To itself it was in the first round, of which the others know nothing: it has sent them nothing."""
    late = ["connects_until_gone", BAD]

    outcomes = run_all(nursery, group, ann=late, bob=late, cid=["dies_at", "hello"])

    assert outcomes[BAD].code == -9
    assert_named(outcomes, group, "connect", "closed the connection")


def test_nobody_is_named_for_giving_up_because_of_another(nursery, group):
    """Bob is in the first round when Ann, who still connects, leaves because Cid died."""
    outcomes = run_all(nursery, group, ann=["connects_until_gone", BAD], cid=["dies_when_told_at", "hello", "bob"])

    assert_named(outcomes, group, "connect", "closed the connection", by=["ann"])
    assert_named(outcomes, group, "connect", "made another give up while the parties connected (says party 'ann')")


def test_nobody_is_named_for_ending_the_session_while_another_connects(nursery, group):
    """Bob finds in the first round what Cid sent, and leaves before Ann has noticed that the round has begun."""
    outcomes = run_all(nursery, group, ann=["connects_until_gone", "bob"], cid=["sends_garbage_at", "hello"])

    assert_named(outcomes, group, "hello", "is not a message of this protocol (says party 'bob')", by=["ann"])
    assert_named(outcomes, group, "hello", "is not a message of this protocol. ")


@pytest.mark.parametrize("stage", ["hello", "counts/64/seeds-sum", "not yet/61/echo"])
def test_a_party_that_dies_between_two_messages_of_a_round_is_named(nursery, group, stage):
    outcomes = run(nursery, group, "dies_within", stage)

    assert outcomes[BAD].code == -9
    for name in HONEST:
        assert outcomes[name].code == 6
        assert f"party '{BAD}', stage '" in outcomes[name].said.splitlines()[-1]
    assert group.releases() == set()


def test_a_party_that_dies_before_it_connects_is_named(nursery, group):
    for name in HONEST:
        group.write_config(name, start_timeout=1.0)
    ann, bob = (["waits_for", other, "connect"] for other in ("bob", "ann"))

    outcomes = run_all(nursery, group, ann=ann, bob=bob, cid=["dies_before_it_connects"])

    assert_named(outcomes, group, "connect", "could not be reached within 1 s")


def test_a_party_that_dies_in_the_mode_that_opens_the_selection_only_is_named(nursery, group):
    outcomes = run(nursery, group, "dies_at", "selection", options=["--mode", "selection-only", "--max-rows", "100"])

    assert_named(outcomes, group, "selection", "is not connected any more")


def test_a_party_that_dies_after_all_were_ready_takes_only_its_own_release_with_it(nursery, group):
    group.output(BAD).write_text("an older release\n")
    group.folder.joinpath(f"{BAD}-release.csv.manifest.json").write_text("{}")

    outcomes = run(nursery, group, "dies_when_it_publishes", options=["--force"])

    assert [outcomes[name].code for name in HONEST] == [0, 0]
    assert outcomes[BAD].code == -9
    assert group.output(BAD).read_text() == "an older release\n"
    for name in HONEST:
        assert is_confirmed(group, name)


def test_a_party_that_stays_connected_and_silent_is_named(nursery, group):
    for name in HONEST:
        group.write_config(name, timeout=1.0)
    stage = "removal order"
    ann, bob = (["waits_for", other, stage] for other in ("bob", "ann"))

    outcomes = run_all(nursery, group, ann=ann, bob=bob, cid=["falls_silent_at", stage])

    assert_named(outcomes, group, "removal order/61/commit", "sent nothing within the time limit")


@pytest.mark.parametrize("stage", ["hello", "seeds", "counts/64/seeds-sum", "counts/64/echo"])
def test_a_message_of_the_wrong_length_is_named(nursery, group, stage):
    outcomes = run(nursery, group, "sends_wrong_length_at", stage)

    assert_named(outcomes, group, stage, "sent a message of the wrong length")


def test_a_share_of_the_wrong_length_is_named(nursery, group):
    stage = "counts/64/shares"

    outcomes = run(nursery, group, "sends_wrong_length_at", stage, options=["--sharing", "shares"])

    assert_named(outcomes, group, stage, "sent a message of the wrong length")


@pytest.mark.parametrize("stage", ["hello", "counts/64/seeds-sum", READY])
def test_bytes_that_are_no_message_are_named(nursery, group, stage):
    outcomes = run(nursery, group, "sends_garbage_at", stage)

    assert_named(outcomes, group, stage, "is not a message of this protocol")


@pytest.mark.parametrize(
    ("stage", "found_at", "problem"),
    [
        ("counts/64/commit", "counts/64/seeds-sum", "something else than it had committed to"),
        ("counts/64/seeds-sum", "counts/64/seeds-sum", "something else than it had committed to"),
        ("hello", "hello/echo", "sent different parties different things"),
    ],
)
def test_a_party_that_tells_others_different_things_is_named(nursery, group, stage, found_at, problem):
    outcomes = run(nursery, group, "equivocates_at", stage, "bob")

    assert_named(outcomes, group, found_at, problem)


@pytest.mark.parametrize(("stage", "problem"), [("hello", "not sent in this session"), ("seeds", "another session")])
def test_messages_of_a_former_session_are_refused(nursery, group, stage, problem):
    tape = str(group.folder / "tape")
    assert {outcome.code for outcome in run(nursery, group, "records", tape, options=["--dry-run"]).values()} == {0}
    for path in group.folder.glob("*.jsonl"):
        path.unlink()

    outcomes = run(nursery, group, "replays_from", stage, tape, options=["--dry-run"])

    assert_named(outcomes, group, {"hello": "hello/echo"}.get(stage, stage), problem)


def test_a_body_of_one_gigabyte_is_refused_before_it_is_read(nursery, group):
    outcomes = run(nursery, group, "floods_at", "counts/64/seeds-sum")

    assert_named(outcomes, group, "counts/64/seeds-sum", "1,073,741,824 bytes", by=("ann",))
    assert f"party '{BAD}'" in outcomes["bob"].said.splitlines()[-1]
    assert max(outcomes[name].megabytes for name in HONEST) < 500


def bloated(nursery, group, command, stage, problem):
    outcomes = nursery.run(group, {name: command(name) for name in group.names}, {BAD: ["sends_megabytes_at", stage]})
    for name in HONEST:
        assert outcomes[name].code == 6, outcomes[name].said
        assert f"party '{BAD}', stage '{stage}': " in outcomes[name].said.splitlines()[-1]
    assert problem in outcomes["ann"].said + outcomes["bob"].said


@pytest.mark.parametrize("stage", STAGES)
def test_a_message_of_megabytes_is_read_in_no_stage_of_a_session(nursery, group, stage):
    bloated(nursery, group, group.command, stage, "bytes; at most 65,")


SCHEMA_STAGES = (
    "hello",
    "hello/echo",
    "columns",
    "columns/echo",
    "seeds",
    "union 1/61/commit",
    "union 1/61/seeds-sum",
    "union 1/61/echo",
    "union 1: anything left/61/seeds-sum",
    "shared schema",
)


@pytest.mark.parametrize("stage", SCHEMA_STAGES)
def test_nor_in_any_stage_of_an_agreement_on_a_schema(nursery, group, stage):
    def command(name):
        given = ["--config", str(group.config(name)), "--data", str(group.data(name)), "--target", "ill", "--yes"]
        return ["collaborate", "schema", *given, "-o", str(group.folder / f"{name}-agreed.json"), "--force"]

    bloated(nursery, group, command, stage, "sent a message above the size limit (a message of 2,")


def test_a_party_twice_as_slow_is_waited_for(nursery, group):
    outcomes = run(nursery, group, "is_slow", 0.02)

    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0]
    assert group.releases() == set(group.names)


class Stranger:
    """Somebody without a key who keeps hundreds of half-open connections to every party, and opens more when cut."""

    def __init__(self, ports, n_each=300):
        self._selector = selectors.DefaultSelector()
        self._missing = dict.fromkeys(ports, n_each)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._bother)
        self.n_opened = 0
        self.is_in_full_swing = threading.Event()

    def _bother(self):
        while not self._is_over.is_set():
            for port, n_missing in self._missing.items():
                for _ in range(n_missing):
                    self._open(port)
            for key, _ in self._selector.select(0.01):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()
                self._missing[key.data] += 1
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()

    def _open(self, port):
        connection = socket.socket()
        try:
            connection.connect(("127.0.0.1", port))
        except OSError:  # nobody listens, yet or any more
            connection.close()
            return
        self._missing[port] -= 1
        self.n_opened += 1
        if self.n_opened > 3 * 300:
            self.is_in_full_swing.set()
        self._selector.register(connection, selectors.EVENT_READ, port)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()


def test_a_stranger_with_half_open_connections_stops_nothing(nursery, group, tmp_path):
    """The last party comes when the stranger has opened hundreds of connections to the others."""
    os.mkfifo(tmp_path / "fifo")
    few_files = {name: ["has_few_files", 128] for name in HONEST} | {
        BAD: ["has_few_files", 128, str(tmp_path / "fifo")]
    }
    commands = {name: group.command(name) for name in group.names}

    with Stranger([peer.port for peer in group.peers]) as stranger, ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: stranger.is_in_full_swing.wait(60) and (tmp_path / "fifo").write_bytes(b"come"))
        outcomes = nursery.run(group, commands, few_files)

    assert [outcome.code for outcome in outcomes.values()] == [0, 0, 0], outcomes
    assert group.releases() == set(group.names)
    for outcome in outcomes.values():
        assert "Traceback" not in outcome.said
        assert len(outcome.said.splitlines()) < 100
    for name in HONEST:
        assert 1 <= outcomes[name].said.count("turned away") <= 8


class TestCertificates:
    def run_with(self, nursery, group, files):
        """Let the bad party use other files than the ones that the others know it by."""
        group.write_config(BAD, files=files)
        fingerprints = load_party_config(group.config("ann")).roster.fingerprints
        return run(nursery, group, "checks_no_certificate", fingerprints)

    @pytest.fixture
    def folder(self, tmp_path):
        folder = tmp_path / "others"
        folder.mkdir()
        return folder

    def test_one_of_a_foreign_authority_is_refused(self, nursery, group, folder):
        outcomes = self.run_with(nursery, group, make_keys(folder, [BAD])[BAD])

        assert_named(outcomes, group, "connect", "certificate is not accepted")

    def test_an_expired_one_is_refused(self, nursery, group, folder):
        long_ago = datetime.now(UTC) - timedelta(days=30)
        expired = make_party(folder, BAD, authority=group.files["authority"], starts=long_ago, valid_days=2)

        outcomes = self.run_with(nursery, group, expired)

        assert_named(outcomes, group, "connect", "expired")

    def test_one_of_another_party_is_refused(self, nursery, group):
        outcomes = self.run_with(nursery, group, group.files["bob"])

        assert_named(outcomes, group, "connect", "another certificate", by=("ann",))
        assert "stage 'connect'" in outcomes["bob"].said.splitlines()[-1]

    def test_a_second_one_for_the_same_name_is_refused(self, nursery, group, folder):
        outcomes = self.run_with(nursery, group, make_party(folder, BAD, authority=group.files["authority"]))

        assert_named(outcomes, group, "connect", "certificate")

    @pytest.mark.parametrize("what", ["foreign", "expired"])
    def test_the_honest_program_refuses_to_start_with_it(self, nursery, group, folder, what):
        if what == "foreign":
            files, problem = make_keys(folder, [BAD])[BAD], "signed by another authority"
        else:
            long_ago = datetime.now(UTC) - timedelta(days=30)
            files = make_party(folder, BAD, authority=group.files["authority"], starts=long_ago, valid_days=2)
            problem = "expired"
        group.write_config(BAD, files=files)

        outcomes = nursery.run(group, {BAD: group.command(BAD)})

        assert outcomes[BAD].code == 3
        assert problem in outcomes[BAD].said
        assert str(folder) in outcomes[BAD].said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sharing", "shares"], "the mode differs"),
        (["--weights", "1,2"], "another value of the parameter 'weights'"),
        (["--dry-run"], "another value of the parameter 'dry_run'"),
    ],
)
def test_a_party_with_other_settings_is_named(nursery, group, options, problem):
    commands = {name: group.command(name, *(options if name == BAD else ())) for name in group.names}

    assert_named(nursery.run(group, commands), group, "hello", problem)


def test_a_party_with_another_schema_is_named(nursery, group, tmp_path):
    shutil.copy(group.schema_path, tmp_path / "schema.json")
    text = (tmp_path / "schema.json").read_text()
    (tmp_path / "schema.json").write_text(text.replace('"yes"', '"yes",\n   "zzz"'))
    commands = {name: group.command(name) for name in group.names}
    commands[BAD][commands[BAD].index("--schema") + 1] = str(tmp_path / "schema.json")

    assert_named(nursery.run(group, commands), group, "hello", "the schema differs")


def test_a_party_that_fails_by_itself_says_why_and_the_others_hear_that_it_stopped(nursery, group):
    commands = {name: group.command(name) for name in group.names}
    bad = {BAD: ["cannot_write"]}

    outcomes = nursery.run(group, commands, bad)

    assert outcomes[BAD].code == 3
    assert "the disk is full" in outcomes[BAD].said
    assert_named(outcomes, group, "release", "stopped because of a failure of its own")


def test_an_interrupted_party_tells_the_others(nursery, group):
    outcomes = run(nursery, group, "is_interrupted_at", "counts/64/echo")

    assert outcomes[BAD].code == 130
    assert_named(outcomes, group, "counts/64/echo", "stopped because of a failure of its own")
    for name in HONEST:
        last = json.loads(group.transcript(name).read_text().splitlines()[-1])
        assert (last["outcome"], last["culprit"], last["stage"]) == ("aborted", BAD, "counts/64/echo")
