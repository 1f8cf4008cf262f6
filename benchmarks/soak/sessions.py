"""Sessions of three parties with random faults: most in one process over queues, some as real processes over TLS.

::

    python -m benchmarks.soak.sessions FOLDER SEED IN_MEMORY REAL
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import ROOT, environment, json_lines, tell

IN_MEMORY, REAL = 185, 20
HONEST, BAD = ("ann", "bob"), "cid"
FAULTS = ("none", "dies", "falls silent", "garbage", "bit flipped", "cut short", "doubled", "late")
REAL_FAULTS = ("dies_at", "dies_within", "sends_garbage_at", "sends_wrong_length_at", "is_interrupted_at", "killed")
STAGES = (
    "hello",
    "seeds",
    "counts/64/commit",
    "counts/64/seeds-sum",
    "counts/64/echo",
    "removal order",
    "not yet/61/echo",
)
N_MESSAGES = 30
"""What the bad party sends in a whole session, and a few more."""
_TIMEOUT = 0.6
_HANG = 20.0
_REFUSED = 6


def run(effort: Effort, folder: Path) -> Outcome:
    """Run sessions in a process that has the tests' tools at hand."""
    outcome = Outcome("faulty sessions", "sessions")
    given = (folder, effort.seed, effort.times(IN_MEMORY), effort.times(REAL, least=2))
    command = [sys.executable, "-m", "benchmarks.soak.sessions", *map(str, given)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=False)
    for line in json_lines(done.stdout):
        if "finding" in line:
            outcome.found(line["finding"])
        else:
            outcome.n_done += line["n_done"]
            outcome.count(line["counts"])
    if done.returncode:
        outcome.found(f"the sessions' process ended with {done.returncode}")
    return outcome


def main() -> None:
    """Run sessions and tell counts and findings."""
    folder, random_ = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    n_in_memory, n_real = int(sys.argv[3]), int(sys.argv[4])
    counts: Counter[str] = Counter({"in one process": n_in_memory, "as real processes": n_real})
    from unit.collaborate.groups import Group, Nursery

    group = Group(folder, timeout=_TIMEOUT)
    for _ in range(n_in_memory):
        fault, place = random_.choice(FAULTS), random_.randrange(N_MESSAGES)
        counts[_in_memory(group, fault, place, random_)] += 1
        _check_folder(group, f"{fault} at message {place}")
    real = Group(_made(folder / "real"), timeout=3.0)
    with Nursery() as nursery:
        for _ in range(n_real):
            counts[_as_processes(real, nursery, random_)] += 1
            _check_folder(real, "real processes")
    tell(n_done=n_in_memory + n_real, counts=counts)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


class _Fault:
    """Interferes with what the bad party sends, from some message on."""

    def __init__(self, kind: str, place: int, random_: random.Random) -> None:
        self.kind = kind
        self.place = place
        self.random = random_
        self.n_sent = 0
        self.network: Any = None
        self.stage = ""

    def __call__(self, sender: str, to: str, body: bytes) -> Sequence[bytes]:
        if sender != BAD or self.kind == "none":
            return (body,)
        self.n_sent += 1
        if self.n_sent <= self.place:
            return (body,)
        self.stage = self.stage or _stage_of(body)
        if self.kind == "dies":
            self.network.disconnect(BAD)
            raise ConnectionError
        if self.kind == "falls silent":
            return ()
        return self._changed(body) if self.n_sent == self.place + 1 else (body,)

    def _changed(self, body: bytes) -> Sequence[bytes]:
        if self.kind == "garbage":
            return (self.random.randbytes(len(body)),)
        if self.kind == "cut short":
            return (body[: self.random.randrange(len(body))],)
        if self.kind == "doubled":
            return (body, body)
        if self.kind == "late":
            time.sleep(_TIMEOUT / 2)
            return (body,)
        changed = bytearray(body)
        changed[self.random.randrange(len(body))] ^= 1 << self.random.randrange(8)
        return (bytes(changed),)


def _in_memory(group: Any, kind: str, place: int, random_: random.Random) -> str:
    """Run a session of threads with a fault; gives how it ended."""
    from sfumato.collaborate.config import load_party_config
    from sfumato.collaborate.plan import Plan
    from sfumato.collaborate.session import party
    from sfumato.collaborate.session.session import Session
    from sfumato.errors import SfumatoError
    from unit.collaborate.memory_channel import LocalNetwork

    fault = _Fault(kind, place, random_)
    network = fault.network = LocalNetwork(group.names, interfere=fault)
    tables = {name: _table_of(group, name) for name in group.names}
    plan = Plan(min_privacy_gain=0.05)

    @contextlib.contextmanager
    def joined(config: Any, **given: Any) -> Iterator[Session]:
        with Session(config.me, config.roster.names, network.channel(config.me), timeout=config.timeout) as session:
            yield session

    def take_part(name: str, _: object) -> object:
        return party.take_part(
            load_party_config(group.config(name)), tables[name], group.schema, plan, output=group.output(name)
        )

    real, party.joined = party.joined, joined  # type: ignore[attr-defined]
    try:
        outcomes = network.run(take_part, time_limit=_HANG)
    finally:
        party.joined = real  # type: ignore[attr-defined]
    for name, ended in outcomes.items():
        is_own_fault = name == BAD and isinstance(ended, ConnectionError)
        if isinstance(ended, Exception) and not isinstance(ended, SfumatoError) and not is_own_fault:
            tell(finding=f"session with '{kind}': {'the bad party' if name == BAD else name} {type(ended).__name__}")
    n_published = sum(not isinstance(ended, Exception) for ended in outcomes.values())
    if kind == "none" and n_published < len(outcomes):
        tell(finding="a session without a fault failed")
    if n_published in (0, len(outcomes)):
        return "all published" if n_published else "nobody published"
    is_read_in_the_last_round = kind == "doubled" and fault.stage == party.READY
    if fault.stage != party.ALL_READY and not is_read_in_the_last_round:
        tell(finding=f"session with '{kind}' at stage '{fault.stage}': {n_published} of {len(outcomes)} published")
    return "fault seen in the very last round: some published"


def _stage_of(body: bytes) -> str:
    from sfumato.collaborate.transport.messages import decode

    return decode(body).stage


def _table_of(group: Any, name: str) -> Any:
    import sfumato
    from sfumato.collaborate.session.joining import in_shared_roles

    return in_shared_roles(sfumato.read_table(group.data(name)), group.schema)


def _as_processes(group: Any, nursery: Any, random_: random.Random) -> str:
    """Run a session of processes, of which one misbehaves or is killed at a random moment; gives how it ended."""
    fault, stage = random_.choice(REAL_FAULTS), random_.choice(STAGES)
    commands = {name: group.command(name, "--min-privacy-gain", "0.05", "--force") for name in group.names}
    bad = {BAD: [fault, stage]} if fault != "killed" else {BAD: ["dies_after", random_.uniform(0.0, 0.6)]}
    outcomes = nursery.run(group, commands, bad, time_limit=_HANG)
    for name in HONEST:
        ended = outcomes[name]
        if ended.code not in (0, _REFUSED) or "Traceback" in ended.said:
            tell(finding=f"real session, {fault} at {stage}: {name} ended with {ended.code}")
    n_published = sum(outcomes[name].code == 0 for name in HONEST)
    return {2: "real: honest parties published", 0: "real: nobody published"}.get(n_published, "real: one published")


def _check_folder(group: Any, what: str) -> None:
    """Audit every release that stands, look for what is no release, and remove all of it."""
    import sfumato
    from sfumato.publishing.reaudit import audit_published

    for name in group.names:
        manifest = group.output(name).with_name(f"{group.output(name).name}.manifest.json")
        if group.output(name).exists():
            original = sfumato.read_table(group.data(name))
            if not audit_published(group.output(name), manifest, original=original).passed:
                tell(finding=f"{what}: the audit does not confirm a release")
        for path in (group.output(name), manifest, group.transcript(name)):
            path.unlink(missing_ok=True)
    if list(group.folder.glob(".*")) or list(group.folder.glob("*-release*")):
        tell(finding=f"{what}: a temporary file was left")


if __name__ == "__main__":
    threading.stack_size(1 << 20)
    main()
