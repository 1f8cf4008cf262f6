"""Parties on machines of their own: network namespaces, joined by a switch in the test that delays, loses and cuts.

Every party's process has its own network namespace, with one TUN device. The test holds the other ends and passes IP
packets on, so that it decides which arrive, and when. Nothing leaves the machine, and nothing is left of it when the
processes have ended. (Many kernels lack netem; this needs root and /dev/net/tun only.)
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from sfumato.collaborate.roster import Peer
from sfumato.collaborate.transport.keys import make_keys
from sfumato.collaborate.transport.tls import TlsChannel
from unit.collaborate.groups import PATIENCE, PYTHON_PATH, Group
from unit.collaborate.misbehaviour import stage_of

PORT = 7443
MTU = 1500
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x891C, 0x8914, 0x1


def enter_new_network(address):
    """Put this process into a network of its own with one address; gives the other end of its only line."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespaces")
    line = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(line, TUNSETIFF, struct.pack("16sH22x", b"line", IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, text in ((SIOCSIFADDR, address), (SIOCSIFNETMASK, "255.255.255.0")):
            packed = struct.pack("16sHH4s8x", b"line", socket.AF_INET, 0, socket.inet_aton(text))
            fcntl.ioctl(control, request, packed)
        for name in (b"line", b"lo"):
            fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH22x", name, IFF_UP))
    return line


def why_not():
    """Why machines cannot be made here; empty if they can."""
    if os.geteuid() != 0:
        return "NO NETWORK NAMESPACES: only root can make them; parties on machines of their own are not tested"
    program = "from unit.collaborate.machines import enter_new_network; enter_new_network('10.77.0.1')"
    tried = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": PYTHON_PATH}, capture_output=True, check=False
    )
    if tried.returncode:
        return "NO NETWORK NAMESPACES or no /dev/net/tun here: parties on machines of their own are not tested"
    return ""


class Switch:
    """Passes packets between lines, late, not all, and none between those who are cut off.

    Parameters
    ----------
    delay : float
        Seconds that each packet takes.
    loss : float
        Share of the packets that get lost.
    """

    def __init__(self, *, delay=0.0, loss=0.0, seed=1):
        self.cut = set()
        self._delay, self._loss, self._random = delay, loss, random.Random(seed)
        self._lines, self._on_the_way, self._n_packets = {}, [], 0
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def attach(self, name, address, line):
        os.set_blocking(line, False)
        self._lines[line] = name, socket.inet_aton(address)

    def cut_way(self, sender, to):
        """Pass on nothing any more from one to another, not even what is on the way."""
        self.cut.add((sender, to))

    def _run(self):
        by_address = {address: (name, line) for line, (name, address) in self._lines.items()}
        while True:
            due = self._on_the_way[0][0] - time.monotonic() if self._on_the_way else None
            ready, _, _ = select.select([*self._lines, self._wake], [], [], None if due is None else max(0.0, due))
            if self._wake in ready:
                return
            for line in ready:
                self._take(line, by_address)
            while self._on_the_way and self._on_the_way[0][0] <= time.monotonic():
                _, _, way, line, packet = heapq.heappop(self._on_the_way)
                if way not in self.cut:
                    with contextlib.suppress(OSError):
                        os.write(line, packet)

    def _take(self, line, by_address):
        with contextlib.suppress(OSError):
            packet = os.read(line, 2 * MTU)
            if packet[0] >> 4 == 4 and packet[16:20] in by_address and self._random.random() >= self._loss:
                to, its_line = by_address[packet[16:20]]
                self._n_packets += 1
                way = self._lines[line][0], to
                heapq.heappush(
                    self._on_the_way, (time.monotonic() + self._delay, self._n_packets, way, its_line, packet)
                )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        os.write(self._waker, b"x")
        self._thread.join()
        for line in (*self._lines, self._wake, self._waker):
            os.close(line)


def move_to(address, meeting_place, stops_at):
    """Put this party on a machine of its own. Hands over its line, and waits for the test's word before a stage."""
    to_test = socket.socket(socket.AF_UNIX)
    to_test.connect(meeting_place)
    line = enter_new_network(address)
    socket.send_fds(to_test, [address.encode()], [line])
    os.close(line)
    honest_send, asked = TlsChannel.send, set()

    def send(channel, to, body):
        stage = stage_of(body)
        if stage == stops_at and stage not in asked:
            asked.add(stage)
            to_test.sendall(stage.encode())
            assert to_test.recv(1) == b"+"
        honest_send(channel, to, body)

    TlsChannel.send = send
    assert to_test.recv(1) == b"+"


class Machines:
    """A group whose parties run on machines of their own.

    Parameters
    ----------
    delay, loss : float
        See :class:`Switch`.
    """

    def __init__(self, folder, *, timeout=PATIENCE, delay=0.0, loss=0.0):
        self.group = Group(folder, timeout=timeout)
        names = self.group.names
        self.addresses = {name: f"10.77.0.{place}" for place, name in enumerate(names, start=1)}
        (folder / "machines").mkdir()
        hosts = {name: [address] for name, address in self.addresses.items()}
        self.group.files = make_keys(folder / "machines", names, hosts=hosts)
        self.group.peers = [
            Peer(name, self.addresses[name], PORT, self.group.files[name].certificate) for name in names
        ]
        for name in names:
            self.group.write_config(name)
        self._switch = Switch(delay=delay, loss=loss)

    def cut(self, *ways):
        """Cut ways, each from a party to another."""
        for sender, to in ways:
            self._switch.cut_way(sender, to)

    def run(self, nursery, *, stops_at=None, then=None):
        """Run a session; when every party is about to send in a stage, call ``then`` before any of them does."""
        commands = {name: self.group.command(name) for name in self.group.names}
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())  # near the root: a socket's path must be short
            place = f"{folder}/place"
            listener = stack.enter_context(socket.create_server(place, family=socket.AF_UNIX))
            moves = {name: ["is_on_a_machine", self.addresses[name], place, stops_at] for name in commands}
            outcomes = stack.enter_context(ThreadPoolExecutor(1)).submit(nursery.run, self.group, commands, moves)
            parties = [self._met(stack, listener) for _ in commands]
            stack.enter_context(self._switch)
            _give_word(parties)
            if stops_at:
                for party in parties:
                    assert party.recv(2**10) == stops_at.encode()
                then()
                _give_word(parties)
            return outcomes.result()

    def _met(self, stack, listener):
        """Let a party come and fasten its line to the switch."""
        listener.settimeout(PATIENCE)
        party = stack.enter_context(listener.accept()[0])
        party.settimeout(PATIENCE)
        address, (line,), _, _ = socket.recv_fds(party, 2**10, 1)
        names = {address: name for name, address in self.addresses.items()}
        self._switch.attach(names[address.decode()], address.decode(), line)
        return party


def _give_word(parties):
    for party in parties:
        party.sendall(b"+")
