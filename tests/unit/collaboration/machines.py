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
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from sfumato.collaboration.keys import make_keys
from sfumato.collaboration.roster import Peer
from unit.collaboration.groups import TESTS, Group, Outcome

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
    program = "from unit.collaboration.machines import enter_new_network; enter_new_network('10.77.0.1')"
    tried = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(TESTS)}, capture_output=True, check=False
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


# Runs one party in a network of its own. Hands over its line, and waits for the test's word before some messages.
PARTY = """
import json, os, socket, sys, array
from unit.collaboration.machines import enter_new_network
order = json.loads(sys.argv[1])
line = enter_new_network(order["address"])
to_test = socket.socket(fileno=order["to_test"])
socket.send_fds(to_test, [b"+"], [line])
os.close(line)
from sfumato.cli.main import run
from sfumato.collaboration.tls_channel import TlsChannel
from unit.collaboration.misbehaviour import stage_of
honest_send, asked = TlsChannel.send, set()

def send(channel, to, body):
    stage = stage_of(body)
    if stage in order["stops_at"] and stage not in asked:
        asked.add(stage)
        to_test.sendall(stage.encode() + b"\\n")
        assert to_test.recv(1) == b"+"
    honest_send(channel, to, body)

TlsChannel.send = send
assert to_test.recv(1) == b"+"
code = run(order["arguments"])
sys.stdout.flush(), sys.stderr.flush()
os._exit(code)
"""


class Machines:
    """A group whose parties run on machines of their own.

    Parameters
    ----------
    delay, loss : float
        See :class:`Switch`.
    """

    def __init__(self, folder, *, timeout, delay=0.0, loss=0.0):
        self.group = Group(folder, timeout=timeout, start_timeout=60.0)
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

    def run(self, *, stops_at=None, then=None, time_limit=120.0):
        """Run a session; when every party is about to send in a stage, call ``then`` before any of them does."""
        with contextlib.ExitStack() as stack:
            parties, lines = {}, {}
            for name in self.group.names:
                ours, theirs = socket.socketpair()
                stack.enter_context(ours)
                with theirs:
                    parties[name] = self._started(stack, name, theirs, [stops_at] if stops_at else [])
                ours.settimeout(time_limit)
                _, (line,), _, _ = socket.recv_fds(ours, 1, 1)
                self._switch.attach(name, self.addresses[name], line)
                lines[name] = ours
            stack.enter_context(self._switch)
            for ours in lines.values():
                ours.sendall(b"+")
            if stops_at:
                for ours in lines.values():
                    assert ours.recv(2**10) == stops_at.encode() + b"\n"
                then()
                for ours in lines.values():
                    ours.sendall(b"+")
            ends = {name: party.wait(time_limit) for name, party in parties.items()}
        return {name: Outcome(code, self._said(name).read_text(), 0.0) for name, code in ends.items()}

    def _started(self, stack, name, theirs, stops_at):
        order = {
            "address": self.addresses[name],
            "arguments": self.group.command(name),
            "stops_at": stops_at,
            "to_test": theirs.fileno(),
        }
        said = stack.enter_context(self._said(name).open("wb"))
        party = subprocess.Popen(
            [sys.executable, "-c", PARTY, json.dumps(order)],
            env=os.environ | {"PYTHONPATH": str(TESTS), "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=[theirs.fileno()],
        )
        stack.callback(_ended, party)
        return party

    def _said(self, name):
        return Path(self.group.folder, f"{name}.said")


def _ended(party):
    if party.poll() is None:
        party.send_signal(signal.SIGKILL)
    party.wait()
