"""Ways in which a party's program can be wrong; each changes the program in which it is called."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import math
import os
import pickle
import resource
import signal
import threading
import time
from pathlib import Path

from sfumato.collaborate.roster import Roster
from sfumato.collaborate.session.session import Session
from sfumato.collaborate.transport.messages import Kind, UnreadableMessageError, decode, encode
from sfumato.collaborate.transport.tls import TlsChannel, TlsCommunicator
from sfumato.publishing import publish as publishing
from sfumato.publishing.proposals import in_memory

LONG = 600.0  # seconds, for what ends by an event; only a hang takes so long

honest_send = TlsChannel.send
honest_meet = TlsCommunicator._meet
honest_until_all_met = TlsCommunicator._until_all_met
honest_await = Session._await


def stage_of(body):
    try:
        message = decode(body)
    except UnreadableMessageError:
        return ""
    return message.stage if message.kind is Kind.DATA else ""


def _tamper(stage, change):
    """Let ``change(channel, to, body)`` send in place of the honest program, in stages that begin so."""

    def send(channel, to, body):
        if stage_of(body).startswith(stage):
            change(channel, to, body)
        else:
            honest_send(channel, to, body)

    TlsChannel.send = send


def _altered(body, change):
    message = decode(body)
    return encode(dataclasses.replace(message, payload=change(message.payload)))


def _end_at_once(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def dies_at(stage):
    """End before anything is sent in a stage."""
    _tamper(stage, _end_at_once)


def dies_when_told_at(stage, *others):
    """End before anything is sent in a stage, once others have sent something in it."""

    def change(channel, _to, _body):
        for other in others:
            assert stage_of(channel.receive(other, LONG)) == stage
        _end_at_once()

    _tamper(stage, change)


def connects_until_gone(other):
    """Be connected with all, and notice it only when another one has gone."""

    async def meet(communicator, peer):
        await honest_meet(communicator, peer)
        await communicator.incoming[other].gone.wait()

    TlsCommunicator._meet = meet


def _limit_time_in(stage, *, but_not_for=None):
    def wait(session, sender, where, deadline):
        is_limited = where.startswith(stage) and sender != but_not_for
        honest_await(session, sender, where, deadline if is_limited else math.inf)

    Session._await = wait


def waits_for(other, stage):
    """Let time limits run only in one stage, and there not for another party: for who is late on purpose.

    While the parties connect they begin to run once that other party is met.
    """

    async def until_all_met(communicator, meetings, watches):
        await asyncio.wait([meetings[other]])
        await honest_until_all_met(communicator, meetings, watches)

    TlsCommunicator._until_all_met = until_all_met
    _limit_time_in(stage, but_not_for=other)


def dies_within(stage):
    """End after one of the others got its message."""
    sent = []

    def change(channel, to, body):
        if sent:
            _end_at_once()
        sent.append(to)
        honest_send(channel, to, body)

    _tamper(stage, change)


def dies_before_it_connects():
    """End before listening."""
    TlsChannel.open = _end_at_once


def dies_when_it_publishes():
    """End after everybody has said to be ready."""
    publishing.appear_together = _end_at_once


def is_interrupted_at(stage):
    """Be interrupted from the keyboard."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it would be ignored
    _tamper(stage, lambda *_: os.kill(os.getpid(), signal.SIGINT))


def _stay(*_):
    """Do nothing more until the nursery ends this process, which it does when all others have ended."""
    while True:
        signal.pause()


def falls_silent_at(stage):
    """Stay connected and send nothing more."""
    _tamper(stage, _stay)


def sends_wrong_length_at(stage):
    """Send one byte too many."""
    _tamper(stage, lambda channel, to, body: honest_send(channel, to, _altered(body, lambda payload: payload + b"\0")))


def sends_megabytes_at(stage):
    """Send a body of some megabytes, past the own limit."""

    def change(channel, to, body):
        if stage_of(body) == stage:
            channel._max_body_bytes = 2**30
            body = _altered(body, lambda payload: payload + bytes(2**21))
        with contextlib.suppress(OSError):
            honest_send(channel, to, body)

    _tamper("", change)


def sends_garbage_at(stage):
    """Send bytes that are no message."""
    _tamper(stage, lambda channel, to, body: honest_send(channel, to, os.urandom(len(body))))


def equivocates_at(stage, victim):
    """Tell one party something else than the others."""

    def change(channel, to, body):
        lie = _altered(body, lambda payload: bytes([payload[0] ^ 1]) + payload[1:])
        honest_send(channel, to, lie if to == victim else body)

    _tamper(stage, change)


def is_slow(seconds):
    """Take some time before every message."""

    def change(channel, to, body):
        time.sleep(seconds)  # its slowness is the case
        honest_send(channel, to, body)

    _tamper("", change)


def records(path):
    """Keep all that is sent."""
    sent = []

    def change(channel, to, body):
        sent.append((to, body))
        Path(path).write_bytes(pickle.dumps(sent))
        honest_send(channel, to, body)

    _tamper("", change)


def replays_from(stage, path):
    """Send what was sent in a former session."""
    former = {(to, stage_of(body)): body for to, body in pickle.loads(Path(path).read_bytes())}
    is_on = []

    def change(channel, to, body):
        if is_on or stage_of(body).startswith(stage):
            is_on.append(True)
            body = former[to, stage_of(body)]
        honest_send(channel, to, body)

    _tamper("", change)


def floods_at(stage):
    """Send a body of 1 GB, past the own limit."""

    async def flood(writer):
        writer.write((2**30).to_bytes(8))
        for _ in range(2**12):
            writer.write(bytes(2**18))
            await writer.drain()

    def change(channel, to, body):
        _, writer = channel._communicator._outgoing[to]
        try:
            asyncio.run_coroutine_threadsafe(flood(writer), channel._loop).result()
        except OSError:
            _stay()

    _tamper(stage, change)


def checks_no_certificate(fingerprints):
    """Look at no own files, which the honest program would refuse."""
    Roster.fingerprints = fingerprints


def finds_a_file_at(stage, path):
    """Have somebody else write a file meanwhile."""

    def change(channel, to, body):
        Path(path).write_text("mine")
        honest_send(channel, to, body)

    _tamper(stage, change)


def cannot_write():
    """Have no room on the disk."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "no space")

    in_memory.write_table = fail


def has_few_files(n_files, fifo=None):
    """Run where the system allows few open files; come when somebody writes to the named pipe."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))
    if fifo:
        honest_open = TlsChannel.open
        TlsChannel.open = lambda channel: Path(fifo).read_bytes() and honest_open(channel)


def is_on_a_machine(address, meeting_place, stops_at):
    """Be on a machine of its own; time limits run only in the stage before which it stops."""
    from unit.collaborate.machines import move_to

    move_to(address, meeting_place, stops_at)
    if stops_at:
        _limit_time_in(stops_at)


def dies_after(seconds):
    """End at a moment that has nothing to do with what is sent."""
    threading.Timer(seconds, _end_at_once).start()


NOT_AWAITED = frozenset({"falls_silent_at", "floods_at", "checks_no_certificate"})
"""Ways after which a party's program does not end by itself, or only with its time limit: it is ended after the rest.

All others are waited for, however they were changed: how they end is part of what is tested.
"""
