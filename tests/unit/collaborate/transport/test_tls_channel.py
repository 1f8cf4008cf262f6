"""Messages over TLS: complete, once, in order, from whom they say, and within their size; else a clear end."""

import contextlib
import errno
import gc
import os
import pickle
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.transport.channel import UnexpectedSizeError
from sfumato.collaborate.transport.door import TURNED_AWAY, Door, SeldomWarning, _group_of, _Guest
from sfumato.collaborate.transport.keys import make_keys
from sfumato.collaborate.transport.tls import TlsChannel
from sfumato.errors import CollaborationError, InputError, InvalidParameterError
from sizes import examples
from unit.collaborate.groups import make_party
from waiting import until

NAMES = ("ann", "bob", "cid")
PATIENCE = 20.0  # bounds a hang; nothing that works takes so long


def free_ports(n):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Group:
    """Parties with keys in a folder, each with a free port."""

    def __init__(self, folder, names):
        self.folder = folder
        self.files = make_keys(folder, names)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.peers = {name: Peer(name, "127.0.0.1", ports[name], self.files[name].certificate) for name in names}

    def roster(self, me):
        others = tuple(peer for name, peer in self.peers.items() if name != me)
        return Roster(self.peers[me], self.files[me].key, others, self.files["authority"].certificate)

    def channel(self, me, **options):
        return TlsChannel(self.roster(me), **({"start_timeout": PATIENCE, "send_timeout": PATIENCE} | options))

    @contextlib.contextmanager
    def channels(self, **options):
        """Open channels of all parties, closed at the end."""
        opened = {name: self.channel(name, **options) for name in self.peers}
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(opened)) as threads:
            for channel in opened.values():
                stack.callback(channel.close)
            list(threads.map(TlsChannel.open, opened.values()))
            yield opened

    def foreign(self, tmp_path, name):
        """Files for a name that another authority signed."""
        folder = tmp_path / "foreign"
        folder.mkdir()
        return make_keys(folder, [name])[name]

    def expired(self, tmp_path, name):
        """Files for a name that the right authority signed, but long ago."""
        folder = tmp_path / "expired"
        folder.mkdir()
        long_ago = datetime.now(UTC) - timedelta(days=30)
        return make_party(folder, name, authority=self.files["authority"], starts=long_ago, valid_days=2)

    def anew(self, tmp_path, name):
        """Files for a name that the right authority signed a second time, for another key."""
        folder = tmp_path / "anew"
        folder.mkdir()
        return make_party(folder, name, authority=self.files["authority"])


class RawPeer:
    """Somebody who speaks TLS by hand: listens where a party should be, and connects to another."""

    def __init__(self, group, name, *, answers_with=None, reads=True):
        self.group = group
        self.answers_with = answers_with or group.files[name]
        self.own = group.files[name]
        self.reads = reads
        self.accepted = None
        self._listener = socket.create_server(("127.0.0.1", group.peers[name].port))
        self._listener.settimeout(PATIENCE)
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _context(self, protocol, files):
        context = ssl.SSLContext(protocol)
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(self.group.files["authority"].certificate)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _accept(self):
        with contextlib.suppress(OSError):
            plain, _ = self._listener.accept()
            plain.settimeout(PATIENCE)
            self.accepted = self._context(ssl.PROTOCOL_TLS_SERVER, self.answers_with).wrap_socket(
                plain, server_side=True
            )
            self.accepted.sendall(b"+")
            while self.reads and self.accepted.recv(2**16):
                pass
            if self.reads:
                self.accepted.unwrap()

    def connect(self, to, files=None):
        """Connect to a party that may not be up yet, and return the connection and the answer."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                plain = socket.create_connection(("127.0.0.1", self.group.peers[to].port), timeout=PATIENCE)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.01)  # between two attempts; nothing depends on its length
        connection = self._context(ssl.PROTOCOL_TLS_CLIENT, files or self.own).wrap_socket(plain)
        try:
            return connection, connection.recv(1)
        except OSError:  # an alert or a reset
            return connection, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        if self.accepted:
            self.accepted.close()


def careless_roster(group, files):
    """Bob's roster with other files of his own, unchecked."""
    honest = group.roster("bob")
    me = Peer("bob", "127.0.0.1", group.peers["bob"].port, files.certificate)
    roster = Roster(me, files.key, honest.peers, honest.ca)
    roster.__dict__["fingerprints"] = honest.fingerprints
    return roster


def frame(number, body):
    packet = number.to_bytes(8) + body
    return len(packet).to_bytes(8) + packet


@contextlib.contextmanager
def ann_and_raw_bob(group, *, reads=True, **options):
    """Ann's open channel, and the connection on which a hand-made Bob sends to her."""
    ann = group.channel("ann", **options)
    with RawPeer(group, "bob", reads=reads) as raw, ThreadPoolExecutor(1) as thread:
        opening = thread.submit(ann.open)
        connection, answer = raw.connect("ann")
        with connection:
            assert answer == b"+"
            opening.result()
            try:
                yield ann, connection, raw
            finally:
                ann.close()


@contextlib.contextmanager
def ann_waits(group):
    """Ann, who listens and waits for Bob; Bob, who must open his channel; and where Ann listens."""
    ann, bob = group.channel("ann"), group.channel("bob")
    address = ("127.0.0.1", group.peers["ann"].port)
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(1) as thread:
        stack.callback(bob.close)
        stack.callback(ann.close)
        opening = thread.submit(ann.open)
        while not is_up(address):
            assert not opening.done()
        yield ann, bob, address
        opening.result()


def is_up(address):
    try:
        with socket.create_connection(address, timeout=PATIENCE) as connection:
            return connection.getpeername() != connection.getsockname()
    except OSError:
        return False


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def client_hello():
    """First bytes of a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def is_open(connection):
    """Whether the other end has not closed, after what it has sent so far."""
    connection.setblocking(False)
    try:
        while connection.recv(2**16):
            pass
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


@pytest.fixture
def pair(tmp_path):
    return Group(tmp_path, ["ann", "bob"])


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    with Group(tmp_path_factory.mktemp("three"), NAMES).channels() as channels:
        yield channels


class TestMessages:
    @examples(15)
    @given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.binary(max_size=300)), max_size=12))
    def test_all_arrive_once_and_in_the_order_of_their_sender(self, three, messages):
        expected = {}
        for sender, to, body in messages:
            if sender != to:
                three[sender].send(to, body)
                expected.setdefault((sender, to), []).append(body)

        for (sender, to), bodies in expected.items():
            assert [three[to].receive(sender, PATIENCE) for _ in bodies] == bodies
            with pytest.raises(TimeoutError):
                three[to].receive(sender, 0)

    @pytest.mark.slow
    def test_large_bodies_cross_each_other(self, three):
        bodies = {name: os.urandom(3_000_000) for name in NAMES}

        def exchange(name):
            others = [other for other in NAMES if other != name]
            for other in others:
                three[name].send(other, bodies[name])
            return all(three[name].receive(other, PATIENCE) == bodies[other] for other in others)

        with ThreadPoolExecutor(3) as threads:
            assert list(threads.map(exchange, NAMES)) == [True] * 3

    def test_threads_that_send_at_once_do_not_mix_their_messages(self, three):
        bodies = [bytes([n]) * 100_000 for n in range(20)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda body: three["ann"].send("bob", body), bodies))

        assert sorted(three["bob"].receive("ann", PATIENCE) for _ in bodies) == bodies

    def test_a_message_that_comes_after_a_timeout_is_not_lost(self, three):
        for _ in range(3):
            with pytest.raises(TimeoutError, match=r"no message within 0\.01 s"):
                three["ann"].receive("cid", 0.01)
        three["cid"].send("ann", b"first")
        three["cid"].send("ann", b"second")

        assert [three["ann"].receive("cid", PATIENCE) for _ in range(2)] == [b"first", b"second"]

    def test_what_a_party_sent_before_it_left_still_arrives(self, pair):
        bodies = [os.urandom(n) for n in (0, 10, 2_000_000, 5)]
        with pair.channels() as channels:
            for body in bodies:
                channels["ann"].send("bob", body)
            channels["ann"].close()

            assert [channels["bob"].receive("ann", PATIENCE) for _ in bodies] == bodies
            with pytest.raises(ConnectionError, match="closed the connection"):
                channels["bob"].receive("ann", PATIENCE)
            with pytest.raises(ConnectionError, match="closed"):
                channels["bob"].send("ann", b"too late")

    @pytest.mark.parametrize("name", ["ann", "nobody"])
    def test_only_other_parties_can_be_spoken_with(self, three, name):
        with pytest.raises(InvalidParameterError, match="other parties"):
            three["ann"].send(name, b"")
        with pytest.raises(InvalidParameterError, match="other parties"):
            three["ann"].receive(name, 1)


class TestStarting:
    def test_a_peer_that_is_not_up_yet_is_waited_for(self, pair):
        ann, bob = pair.channel("ann"), pair.channel("bob")
        with ThreadPoolExecutor(1) as thread:
            opening = thread.submit(ann.open)
            with pytest.raises(TimeoutError):  # it waits
                opening.result(timeout=0.3)
            with bob:
                opening.result()
                ann.send("bob", b"at last")
                assert bob.receive("ann", PATIENCE) == b"at last"
                ann.close()

    @pytest.mark.slow
    def test_peers_are_told_as_they_come(self, tmp_path):
        """Bob is there, and Cid never comes."""
        group, heard = Group(tmp_path, NAMES), []
        with ThreadPoolExecutor(1) as thread:
            bob = thread.submit(group.channel("bob", start_timeout=2.0).open)
            with pytest.raises(CollaborationError):
                group.channel("ann", start_timeout=2.0, on_connected=heard.append).open()
            with pytest.raises(CollaborationError):
                bob.result()

        assert heard == ["bob"]

    def test_a_peer_that_is_there_but_does_not_connect_is_not_told(self, pair):
        heard = []
        with RawPeer(pair, "bob"), pytest.raises(CollaborationError):
            pair.channel("ann", start_timeout=1.0, on_connected=heard.append).open()

        assert heard == []

    def test_a_peer_that_never_comes_is_named(self, pair):
        with pytest.raises(CollaborationError, match=r"could not be reached within 0\.2 s") as caught:
            pair.channel("ann", start_timeout=0.2).open()
        assert (caught.value.party, caught.value.stage) == ("bob", "connect")

    def test_a_peer_that_is_there_but_does_not_connect_is_named(self, pair):
        with RawPeer(pair, "bob"), pytest.raises(CollaborationError, match="did not connect to us") as caught:
            pair.channel("ann", start_timeout=1.0).open()
        assert caught.value.party == "bob"

    @pytest.mark.slow
    def test_others_learn_for_whom_a_party_gave_up(self, tmp_path):
        """Ann has less patience for Cid, who never comes, than Bob."""
        group = Group(tmp_path, NAMES)
        with ThreadPoolExecutor(1) as thread:
            impatient = thread.submit(group.channel("ann", start_timeout=2.0).open)
            with pytest.raises(CollaborationError, match="party 'ann' gave up because of it") as caught:
                group.channel("bob").open()

            assert caught.value.party == "cid"
            with pytest.raises(CollaborationError, match="could not be reached") as caught:
                impatient.result()
            assert caught.value.party == "cid"

    def test_all_who_are_missing_are_named(self, tmp_path):
        with pytest.raises(CollaborationError, match=r"party 'bob'.*nor did all go well with: cid"):
            Group(tmp_path, NAMES).channel("ann", start_timeout=0.1).open()

    def test_a_port_in_use_is_told(self, pair):
        with socket.create_server(("127.0.0.1", pair.peers["ann"].port)):
            with pytest.raises(CollaborationError, match="cannot listen on port") as caught:
                pair.channel("ann").open()
            assert caught.value.party == "ann"

    @pytest.mark.parametrize("option", ["start_timeout", "send_timeout", "max_body_bytes"])
    def test_limits_are_positive(self, pair, option):
        with pytest.raises(InvalidParameterError, match=option):
            pair.channel("ann", **{option: 0})

    @pytest.mark.slow
    def test_a_channel_serves_once(self, pair):
        with pair.channels() as channels:
            channels["ann"].close()
            with pytest.raises(InvalidParameterError, match="opened once"):
                channels["ann"].open()


class TestIdentity:
    def test_every_party_speaks_only_as_itself(self, tmp_path):
        """Cid's certificate is valid, but whatever is sent with it comes from Cid, also where Bob is expected."""
        group = Group(tmp_path, NAMES)
        with group.channels() as channels:
            channels["cid"].send("ann", b"I am Bob")

            assert channels["ann"].receive("cid", PATIENCE) == b"I am Bob"
            with pytest.raises(TimeoutError):
                channels["ann"].receive("bob", 0.1)

    def test_a_second_connection_with_a_partys_own_certificate_is_refused(self, tmp_path):
        """Bob is there, and somebody with his files comes while Ann still waits for Cid."""
        group, bob_is_there = Group(tmp_path, NAMES), threading.Event()
        channels = {name: group.channel(name) for name in NAMES}
        channels["ann"] = group.channel("ann", on_connected=lambda _: bob_is_there.set())
        group.peers["elsewhere"] = Peer("elsewhere", "127.0.0.1", *free_ports(1), group.files["bob"].certificate)
        group.files["elsewhere"] = group.files["bob"]
        with contextlib.ExitStack() as stack, ThreadPoolExecutor(3) as threads:
            opening = [threads.submit(channels[name].open) for name in ("ann", "bob")]
            for channel in channels.values():
                stack.callback(channel.close)
            assert bob_is_there.wait(PATIENCE)
            with RawPeer(group, "elsewhere") as raw:
                connection, answer = raw.connect("ann")
                connection.close()
            channels["cid"].open()
            for one in opening:
                one.result()

            assert answer == b"-"
            channels["bob"].send("ann", b"still here")
            assert channels["ann"].receive("bob", PATIENCE) == b"still here"

    def test_nobody_listens_any_more_when_all_are_there(self, pair):
        with pair.channels() as channels:
            for name in pair.peers:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", pair.peers[name].port), timeout=PATIENCE)
            channels["bob"].send("ann", b"undisturbed")

            assert channels["ann"].receive("bob", PATIENCE) == b"undisturbed"

    @pytest.mark.parametrize(
        ("kind", "name", "answer"),
        [
            ("anew", "mallory", b"-"),
            ("anew", "bob", b"-"),
            ("foreign", "bob", b""),
            ("expired", "bob", b""),
        ],
        ids=["a stranger of the same authority", "a second one for Bob", "a foreign authority's", "an expired one"],
    )
    def test_whoever_connects_without_a_certificate_of_the_roster_is_turned_away(
        self, pair, tmp_path, kind, name, answer
    ):
        ann = pair.channel("ann")
        with RawPeer(pair, "bob") as raw, ThreadPoolExecutor(1) as thread:
            opening = thread.submit(ann.open)
            wrong, got = raw.connect("ann", getattr(pair, kind)(tmp_path, name))
            with wrong:
                assert got == answer
                assert not opening.done()
            right, got = raw.connect("ann")
            with right:
                assert got == b"+"
                opening.result()
                right.sendall(frame(0, b"the real Bob"))
                assert ann.receive("bob", PATIENCE) == b"the real Bob"
                ann.close()

    @pytest.mark.parametrize(
        ("kind", "name", "reason"),
        [
            ("foreign", "bob", "its certificate is not accepted"),
            ("expired", "bob", "certificate has expired"),
            ("anew", "bob", "another certificate than the one configured"),
            ("anew", "cid", "another certificate than the one configured"),
        ],
        ids=["a foreign authority's", "an expired one", "a second one for Bob", "another party's"],
    )
    def test_whoever_answers_for_a_party_must_have_its_certificate(self, pair, tmp_path, kind, name, reason):
        files = getattr(pair, kind)(tmp_path, name)
        with RawPeer(pair, "bob", answers_with=files), pytest.raises(CollaborationError, match=reason) as caught:
            pair.channel("ann").open()
        assert (caught.value.party, caught.value.stage) == ("bob", "connect")
        assert str(tmp_path) not in str(caught.value)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["foreign", "expired"])
    def test_a_party_that_skips_its_own_checks_gets_no_further(self, pair, tmp_path, kind):
        """Whoever is first tells the reason; the other then finds nobody."""
        bob = TlsChannel(careless_roster(pair, getattr(pair, kind)(tmp_path, "bob")), start_timeout=2.0)
        with ThreadPoolExecutor(1) as thread:
            of_bob = thread.submit(bob.open)
            with pytest.raises(
                CollaborationError, match=r"its certificate is not accepted|could not be reached"
            ) as of_ann:
                pair.channel("ann", start_timeout=2.0).open()

            assert of_ann.value.party == "bob"
            with pytest.raises(
                CollaborationError, match=r"closed the connection at once|could not be reached"
            ) as caught:
                of_bob.result()
            assert caught.value.party == "ann"

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["foreign", "expired", "anew"])
    def test_all_honest_parties_name_the_one_whose_certificate_is_wrong(self, tmp_path, kind):
        """Also Dan, who comes when Ann has given up already, and is told by her."""
        group = Group(tmp_path, [*NAMES, "dan"])
        dan = group.channel("dan")
        with (
            RawPeer(group, "bob", answers_with=getattr(group, kind)(tmp_path, "bob")),
            ThreadPoolExecutor(3) as threads,
        ):
            opening = [threads.submit(group.channel(name).open) for name in ("ann", "cid")]
            wait(opening, timeout=0.3)  # at any moment the three name the same; after Ann is what is meant
            opening.append(threads.submit(dan.open))

            culprits = []
            for one in opening:
                with pytest.raises(CollaborationError) as caught:
                    one.result()
                culprits.append(caught.value.party)
            assert culprits == ["bob"] * 3

    @pytest.mark.parametrize(("kind", "reason"), [("foreign", "unknown ca"), ("expired", "certificate expired")])
    def test_the_reason_that_the_other_side_gives_is_told(self, pair, tmp_path, kind, reason):
        careless = careless_roster(pair, getattr(pair, kind)(tmp_path, "bob"))
        with RawPeer(pair, "ann"), pytest.raises(CollaborationError, match=f"not accept our certificate .*{reason}"):
            TlsChannel(careless, start_timeout=PATIENCE).open()

    def test_files_are_checked_before_anybody_connects(self, pair, tmp_path):
        roster = pair.roster("ann")
        expired = Peer("bob", "127.0.0.1", pair.peers["bob"].port, pair.expired(tmp_path, "bob").certificate)
        with pytest.raises(InputError, match="expired on"):
            TlsChannel(Roster(roster.me, roster.key, (expired,), roster.ca))
        with pytest.raises(InputError, match="expired on"):
            TlsChannel(Roster(expired, roster.key, (roster.me,), roster.ca))

    def test_without_a_certificate_or_without_tls_nobody_gets_in(self, pair):
        with ann_waits(pair) as (ann, bob, address):
            anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
            with anonymous.wrap_socket(socket.create_connection(address, timeout=PATIENCE)) as connection:
                assert connection.recv(1) == b""
            with socket.create_connection(address, timeout=PATIENCE) as plain:
                plain.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
                with contextlib.suppress(ConnectionResetError):
                    while plain.recv(100):
                        pass
            bob.open()
            bob.send("ann", b"undisturbed")

            assert ann.receive("bob", PATIENCE) == b"undisturbed"

    def test_old_tls_is_refused(self, pair):
        """Also with the certificate of a party."""
        with ann_waits(pair) as (_, bob, address):
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.load_cert_chain(pair.files["bob"].certificate, pair.files["bob"].key)
            old.maximum_version = ssl.TLSVersion.TLSv1_2
            with (
                socket.create_connection(address, timeout=PATIENCE) as plain,
                pytest.raises(ssl.SSLError, match=r"alert|EOF"),
            ):
                old.wrap_socket(plain)
            bob.open()


class TestStrangers:
    """Half-open handshakes, which need no key."""

    @pytest.mark.slow
    def test_few_unfinished_connections_are_kept_and_the_parties_meet(self, pair, caplog):
        with contextlib.ExitStack() as stack, ann_waits(pair) as (ann, bob, address):
            door = ann._communicator._door
            held = []
            for _ in range(300):
                stranger = stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
                held.append(stranger)
                assert len(door._guests) <= door.most_of_an_address
            cut_off = [one for one in held[: -door.most_of_an_address] if is_closed(one)]
            bob.open()
            bob.send("ann", b"undisturbed")

            assert ann.receive("bob", PATIENCE) == b"undisturbed"
            assert len(cut_off) == 300 - door.most_of_an_address
            until(lambda: not door._guests)  # those that never began are cut off by the door's own loop
        assert len(caplog.records) == 1, caplog.messages
        assert "turned away 1 connections, the last from 127.0.0.1: too many unfinished" in caplog.text

    def test_one_that_began_a_handshake_is_kept_before_those_that_say_nothing(self, pair):
        hello = client_hello()
        with contextlib.ExitStack() as stack, ann_waits(pair) as (_, bob, address):
            begun = stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
            begun.sendall(hello)
            assert begun.recv(1)
            for _ in range(100):
                stack.enter_context(socket.create_connection(address, timeout=PATIENCE))

            assert is_open(begun)
            bob.open()

    def test_an_unfinished_connection_is_cut_off_in_time(self, pair, monkeypatch):
        """In a crowd soon, else after a while: here both are short."""
        monkeypatch.setattr("sfumato.collaborate.transport.door.HANDSHAKE_SECONDS", 0.1)
        monkeypatch.setattr("sfumato.collaborate.transport.door.PATIENT_SECONDS", 0.2)
        with ann_waits(pair) as (_, bob, address):
            with contextlib.ExitStack() as stack:
                silent, begun = (stack.enter_context(socket.create_connection(address, timeout=PATIENCE)) for _ in "ab")
                begun.sendall(client_hello())
                while begun.recv(2**16):
                    pass

                assert silent.recv(1) == b""
            bob.open()

    def test_a_stranger_with_many_connections_takes_nobody_elses_place(self, monkeypatch):
        """Of the addresses the one with the most connections gives way."""
        away = []
        door = Door(None, 2, None)
        monkeypatch.setattr(door, "_turn_away", lambda guest, _: (away.append(guest.group), door._guests.pop(guest)))
        for address in [*["10.0.0.1"] * 10, *["10.0.0.2"] * 2, *[f"2001:db8::{n}" for n in range(9)]]:
            door._make_room(_group_of(address))
            door._guests[_Guest(None, address, _group_of(address))] = None

        assert door.most_of_an_address == 10
        assert door.most == 20
        assert away == ["10.0.0.1"]

    def test_what_is_turned_away_is_said_in_one_line_and_seldom(self, caplog):
        now = [0.0]
        turned_away = SeldomWarning(TURNED_AWAY, clock=lambda: now[0])
        for _ in range(1000):
            turned_away.note("10.0.0.9", "no TLS")
            now[0] += 1 / 32

        assert caplog.messages == [
            "turned away 1 connections, the last from 10.0.0.9: no TLS",
            "turned away 320 connections, the last from 10.0.0.9: no TLS",
            "turned away 320 connections, the last from 10.0.0.9: no TLS",
            "turned away 320 connections, the last from 10.0.0.9: no TLS",
        ]

    def test_connections_that_are_cut_off_at_any_moment_leave_no_number_in_use(self, pair):
        """A socket closed behind the back of its transport gives its number to another, which then fails."""
        with contextlib.ExitStack() as stack, ann_waits(pair) as (ann, bob, address):
            hello, problems = client_hello(), []
            ann._loop.call_soon_threadsafe(ann._loop.set_exception_handler, lambda _, context: problems.append(context))
            for _ in range(200):
                stranger = stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
                stranger.sendall(hello)
            bob.open()
            bob.send("ann", b"undisturbed")

            assert ann.receive("bob", PATIENCE) == b"undisturbed"
            assert problems == []

    def test_a_machine_without_room_rests_and_goes_on(self, pair, monkeypatch, caplog):
        accept, n_failures = socket.socket.accept, []

        def fails_at_first(listener):
            if len(n_failures) < 3:
                n_failures.append(1)
                raise OSError(errno.EMFILE, "too many open files")
            return accept(listener)

        monkeypatch.setattr(socket.socket, "accept", fails_at_first)
        with pair.channels() as channels:
            channels["bob"].send("ann", b"at last")
            assert channels["ann"].receive("bob", PATIENCE) == b"at last"

        assert len(n_failures) == 3
        assert {"EMFILE" in message for message in caplog.messages} == {True}


class TestLimits:
    def test_the_largest_message_passes_and_a_larger_one_is_not_sent(self, pair):
        with pair.channels(max_body_bytes=1000) as channels:
            channels["ann"].send("bob", b"x" * 1000)
            with pytest.raises(InvalidParameterError, match="at most 1,000 bytes"):
                channels["ann"].send("bob", b"x" * 1001)

            assert channels["bob"].receive("ann", PATIENCE) == b"x" * 1000

    def test_a_peer_that_sends_a_larger_one_is_cut_off(self, pair):
        with ann_and_raw_bob(pair, max_body_bytes=1000) as (ann, connection, _):
            connection.sendall(frame(0, b"x" * 1000) + frame(1, b"x" * 1001))

            assert ann.receive("bob", PATIENCE) == b"x" * 1000
            with pytest.raises(ConnectionError, match="announced 1,009 bytes; at most 1,008 are accepted"):
                ann.receive("bob", PATIENCE)

    def test_a_message_larger_than_expected_now_is_not_read_until_it_is(self, pair):
        """It is refused at once, not after a time limit; and whoever is only ahead loses nothing."""
        with pair.channels() as channels:
            channels["bob"].expect_at_most(100)
            channels["ann"].send("bob", b"x" * 100)
            channels["ann"].send("bob", b"y" * 101)
            channels["ann"].send("bob", b"z")

            assert channels["bob"].receive("ann", PATIENCE) == b"x" * 100
            for _ in range(2):
                with pytest.raises(UnexpectedSizeError, match="a message of 101 bytes is not expected now"):
                    channels["bob"].receive("ann", 1000 * PATIENCE)
            assert channels["bob"]._communicator.incoming["ann"].unread_bytes == 0
            channels["bob"].expect_at_most(101)
            assert channels["bob"].receive("ann", PATIENCE) == b"y" * 101
            channels["bob"].expect_at_most(None)
            assert channels["bob"].receive("ann", PATIENCE) == b"z"

    def test_what_is_expected_can_be_said_before_anybody_connects(self, pair):
        with ann_waits(pair) as (ann, bob, _):
            bob.expect_at_most(100)
            bob.open()
            ann.send("bob", b"y" * 101)

            with pytest.raises(UnexpectedSizeError, match="a message of 101 bytes is not expected now"):
                bob.receive("ann", 1000 * PATIENCE)

    @pytest.mark.parametrize(
        ("sent", "reason"),
        [
            (frame(2, b"skipped one"), "not its next message"),
            (frame(0, b"twice"), "not its next message"),
            ((3).to_bytes(8) + b"abc", "not its next message"),
            (b"garbage" * 999, "at most"),
        ],
        ids=["skipped", "replayed", "no number", "garbage"],
    )
    def test_a_peer_that_breaks_the_order_is_cut_off(self, pair, sent, reason):
        with ann_and_raw_bob(pair) as (ann, connection, _):
            connection.sendall(frame(0, b"good") + sent)
            assert ann.receive("bob", PATIENCE) == b"good"
            with pytest.raises(ConnectionError, match=reason):
                ann.receive("bob", PATIENCE)

    def test_half_a_message_is_never_returned(self, pair):
        with ann_and_raw_bob(pair) as (ann, connection, _):
            connection.sendall(frame(0, b"x" * 5000)[:3000])
            connection.close()
            with pytest.raises(ConnectionError, match="closed the connection"):
                ann.receive("bob", PATIENCE)

    def test_a_peer_that_takes_nothing_is_given_up(self, pair):
        with ann_and_raw_bob(pair, reads=False, send_timeout=0.5) as (ann, _, _):
            with pytest.raises(TimeoutError, match=r"not taken within 0\.5 s"):
                ann.send("bob", bytes(50_000_000))
            with pytest.raises(ConnectionError, match="closed"):
                ann.send("bob", b"")

    @pytest.mark.slow
    def test_a_sender_that_is_far_ahead_waits_and_loses_nothing(self, pair):
        """Unread messages are not heaped up: their sender is held until some are read."""
        bodies = [bytes([n]) * 500_000 for n in range(100)]
        with pair.channels(max_body_bytes=1_000_000) as channels, ThreadPoolExecutor(1) as thread:
            sending = thread.submit(lambda: [channels["ann"].send("bob", body) for body in bodies])
            with pytest.raises(TimeoutError):  # it is held
                sending.result(timeout=0.5)

            assert [channels["bob"].receive("ann", PATIENCE) for _ in bodies] == bodies
            sending.result()

    def test_what_a_peer_sends_stays_bytes(self, three):
        class Bomb:
            def __reduce__(self):
                return os._exit, (1,)

        three["ann"].send("bob", pickle.dumps(Bomb()))

        assert three["bob"].receive("ann", PATIENCE) == pickle.dumps(Bomb())


class TestClosing:
    @pytest.mark.slow
    def test_nothing_is_left(self, pair):
        gc.collect()
        threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
        with pair.channels() as channels:
            channels["ann"].send("bob", b"never read")
            with pytest.raises(TimeoutError):
                channels["ann"].receive("bob", 0)
        gc.collect()

        assert set(threading.enumerate()) == threads
        assert len(os.listdir("/proc/self/fd")) == descriptors

    @pytest.mark.slow
    def test_a_failed_start_leaves_nothing(self, pair):
        gc.collect()
        threads, descriptors = set(threading.enumerate()), len(os.listdir("/proc/self/fd"))
        with pytest.raises(CollaborationError):
            pair.channel("ann", start_timeout=0.1).open()
        gc.collect()

        assert set(threading.enumerate()) == threads
        assert len(os.listdir("/proc/self/fd")) == descriptors

    def test_closing_twice_or_unopened_does_no_harm(self, pair):
        pair.channel("ann").close()
        with pair.channels() as channels:
            channels["ann"].close()
            channels["ann"].close()

    def test_a_closed_channel_says_so(self, pair):
        with pytest.raises(ConnectionError, match="not open"):
            pair.channel("ann").send("bob", b"")
        with pair.channels() as channels:
            channels["ann"].close()
            with pytest.raises(ConnectionError, match="not open"):
                channels["ann"].receive("bob", 1)

    def test_closing_ends_a_wait(self, pair):
        with pair.channels() as channels, ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(channels["ann"].receive, "bob", PATIENCE)
            with pytest.raises(TimeoutError):  # it waits
                waiting.result(timeout=0.1)
            channels["ann"].close()
            with pytest.raises(ConnectionError, match="closed"):
                waiting.result()

    @pytest.mark.slow
    def test_a_peer_that_does_not_say_goodbye_does_not_hold_us(self, pair):
        with ann_and_raw_bob(pair, reads=False) as (ann, _, raw):
            assert raw.accepted is not None
            ann.close()


PARTY = """
import resource, sys
from pathlib import Path
from sfumato.collaborate.roster import Peer, Roster
from sfumato.collaborate.transport.tls import TlsChannel

folder, me, *places = sys.argv[1:]
peers = {name: Peer(name, "127.0.0.1", int(port), Path(folder, f"{name}.crt")) for name, port in
         (place.split(":") for place in places)}
others = tuple(peer for name, peer in peers.items() if name != me)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with TlsChannel(Roster(peers[me], Path(folder, f"{me}.key"), others, Path(folder, "authority.crt"))) as channel:
    for peer in others:
        channel.send(peer.name, me.encode())
    for peer in others:
        assert channel.receive(peer.name, 20) == peer.name.encode()
    print("met", flush=True)
    try:
        channel.receive(others[0].name, 20)
    except ConnectionError as exc:
        print(others[0].name, exc, flush=True)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
print(sorted(set(sys.modules) & {"aiohttp", "duckdb", "pandas", "pyarrow", "scipy", "sklearn", "torch"}))
"""


def start_party(group, name):
    places = [f"{peer.name}:{peer.port}" for peer in group.peers.values()]
    command = [sys.executable, "-c", PARTY, str(group.folder), name, *places]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process):
    process.kill()
    process.communicate()


class TestProcesses:
    @pytest.mark.slow
    def test_a_party_that_is_killed_is_noticed_at_once(self, tmp_path):
        """The others need not wait for their time limit; and no party loads what the network does not need."""
        group = Group(tmp_path, NAMES)
        with contextlib.ExitStack() as stack:
            parties = {name: start_party(group, name) for name in NAMES}
            for process in parties.values():
                stack.callback(end, process)
            assert [process.stdout.readline() for process in parties.values()] == ["met\n"] * 3
            parties["ann"].send_signal(signal.SIGKILL)
            told, errors = parties["bob"].communicate(timeout=PATIENCE)

            noticed, _, loaded = told.splitlines()
            assert noticed == "ann closed the connection"
            assert loaded == "[]"
            assert errors == ""

    @pytest.mark.slow
    def test_a_body_of_one_gigabyte_is_refused_with_little_memory(self, pair):
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(RawPeer(pair, "bob"))
            ann = start_party(pair, "ann")
            stack.callback(end, ann)
            connection, answer = raw.connect("ann")
            stack.enter_context(connection)
            assert answer == b"+"
            connection.sendall(frame(0, b"bob"))
            assert ann.stdout.readline() == "met\n"
            sent = 0
            with contextlib.suppress(OSError):
                connection.sendall((2**30).to_bytes(8))
                while sent < 2**30:
                    connection.sendall(bytes(2**20))
                    sent += 2**20
            told, errors = ann.communicate(timeout=PATIENCE)

            refused, megabytes, *_ = told.splitlines()
            assert refused == f"bob announced {2**30:,} bytes; at most {2**28 + 8:,} are accepted"
            assert int(megabytes) < 30
            assert sent < 2**26
            assert errors == ""
