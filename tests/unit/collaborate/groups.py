"""Small groups of parties with keys, files and rows in a folder, and processes that run them, well or badly behaved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato
from sfumato.collaborate.config import party_config_text
from sfumato.collaborate.roster import Peer
from sfumato.collaborate.shared_schema import SharedSchema, write_shared_schema
from sfumato.collaborate.simulate.simulation import free_ports
from sfumato.collaborate.transport import keys
from sfumato.collaborate.transport.certificates import check_authority, check_key
from sfumato.collaborate.transport.keys import make_keys
from sfumato.table.io.write import write_table

NAMES = ("ann", "bob", "cid")
PYTHON_PATH = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
"""Lets a program import what the tests do, from the same checkout."""
PATIENCE = 60.0  # seconds; bounds a hang: where nobody is to be late nothing waits so long, on however busy a machine


def make_party(folder, name, *, authority, starts=None, valid_days=90):
    """Make a certificate for one more party, or a second one for a party, with an authority that exists."""
    begin = starts or datetime.now(UTC)
    period = begin - timedelta(hours=1), begin + timedelta(days=valid_days)
    files = keys._free_files(folder, name, force=False)
    signer = check_authority(authority.certificate)
    key, hosts = ec.generate_private_key(ec.SECP256R1()), keys._host_names(())
    issuer_key = check_key(authority.key, signer)
    certificate = keys._certificate(name, key, period, issuer=signer, issuer_key=issuer_key, hosts=hosts)
    keys._write(files, certificate, key, force=False)
    return files


def small_table(n_rows=90, seed=3):
    """Six features of two or three values, of which some depend on the class."""
    rng = np.random.default_rng(seed)
    ill = rng.integers(0, 2, n_rows)
    columns = {
        "rare": rng.random(n_rows) < 0.05,
        "coin": rng.random(n_rows) < 0.5,
        "close": (rng.random(n_rows) < 0.1) ^ ill.astype(bool),
        "site": rng.integers(0, 3, n_rows),
        "grade": np.minimum(2, ill + rng.integers(0, 2, n_rows)),
        "few": rng.random(n_rows) < 0.15,
    }
    texts = {name: pa.array([f"{name[0]}{int(cell)}" for cell in cells]) for name, cells in columns.items()}
    table = sfumato.read_table(pa.table({**texts, "ill": pa.array(["yes" if one else "no" for one in ill])}))
    return table.with_schema(table.schema.with_roles({"ill": sfumato.Role.TARGET}))


class Group:
    """Parties with keys, each with a free port, a part of a table and a file to start from."""

    def __init__(self, folder, names=NAMES, *, table=None, timeout=PATIENCE, start_timeout=PATIENCE):
        self.folder = folder
        self.names = names
        self.table = small_table() if table is None else table
        self.files = make_keys(folder, names)
        ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.peers = [Peer(name, "127.0.0.1", ports[name], self.files[name].certificate) for name in names]
        self.timeouts = {"timeout": timeout, "start_timeout": start_timeout}
        self.schema = SharedSchema.of_table(self.table)
        self.schema_path = folder / "schema.json"
        write_shared_schema(self.schema, self.schema_path)
        for place, name in enumerate(names):
            with self.data(name).open("wb") as file:
                write_table(self.table.take(np.arange(self.table.n_rows) % len(names) == place), file, "csv")
            self.write_config(name)

    def write_config(self, name, *, files=None, **changes):
        own = files or self.files[name]
        peers = [
            peer if peer.name != name else Peer(name, peer.host, peer.port, own.certificate) for peer in self.peers
        ]
        given = {"key": own.key, "ca": self.files["authority"].certificate, **self.timeouts, **changes}
        self.config(name).write_text(party_config_text(name, "trial", peers, **given))

    def config(self, name):
        return self.folder / f"{name}.toml"

    def data(self, name):
        return self.folder / f"{name}.csv"

    def output(self, name):
        return self.folder / f"{name}-release.csv"

    def transcript(self, name):
        return self.folder / f"{name}.jsonl"

    def command(self, name, *more):
        """Arguments of ``sfumato`` for a party."""
        given = ["--config", self.config(name), "--data", self.data(name), "--schema", self.schema_path]
        written = ["-o", self.output(name), "--transcript", self.transcript(name)]
        return [str(part) for part in ("collaborate", "party", *given, *written, *more)]

    def releases(self):
        """Whose release, or manifest of one, stands in the folder."""
        return {name for name in self.names for path in self.folder.glob(f"{name}-release*") if path.exists()}


@dataclass(frozen=True)
class Outcome:
    """How a party's process ended."""

    code: int
    said: str
    megabytes: float


# Imports everything once; for each line of its input it runs all parties of a scenario as processes of their own.
NURSERY = """
import json, os, signal, sys, time
import sfumato.cli.making.collaborate, sfumato.cli.making.collaborate, sfumato.cli.speaking.summary
import sfumato.collaborate.mpyc_channel, sfumato.collaborate.session.party, sfumato.collaborate.schema_session
import sfumato.collaborate.selection_only, sfumato.publishing.publish
from sfumato.cli.main import run
from unit.collaborate import misbehaviour

def start(party):
    child = os.fork()
    if child:
        return child
    said = os.open(party["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1), os.dup2(said, 2)
    if party["bad"]:
        getattr(misbehaviour, party["bad"][0])(*party["bad"][1:])
    code = run(party["arguments"])
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)

for line in sys.stdin:
    order = json.loads(line)
    running = {start(party): name for name, party in order["parties"].items()}
    ends, deadline = {}, time.monotonic() + order["time_limit"]
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if pid:
            ends[running.pop(pid)] = [os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024]
        else:
            time.sleep(0.01)  # between two looks; nothing depends on its length
        is_over = {(order["parties"][name]["bad"] or [""])[0] for name in running.values()} <= misbehaviour.NOT_AWAITED
        if time.monotonic() > deadline or is_over:
            for late in running:
                os.kill(late, signal.SIGKILL)
            deadline = float("inf")
    print(json.dumps(ends), flush=True)
"""


class Nursery:
    """Runs the parties of one scenario after the other, each as a process of its own."""

    def __init__(self):
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
        environment = os.environ | {"PYTHONPATH": PYTHON_PATH, **one_thread}
        command = [sys.executable, "-W", "error", "-c", NURSERY]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, group, commands, bad=None, *, time_limit=3 * PATIENCE):
        """Run commands of parties at the same time; gives how each ended. A hang ends with the code -9."""
        said = {name: group.folder / f"{name}.said" for name in commands}
        parties = {
            name: {"arguments": arguments, "bad": (bad or {}).get(name), "said": str(said[name])}
            for name, arguments in commands.items()
        }
        self._process.stdin.write(json.dumps({"parties": parties, "time_limit": time_limit}) + "\n")
        self._process.stdin.flush()
        ends = json.loads(self._process.stdout.readline())
        return {name: Outcome(code, said[name].read_text(), size) for name, (code, size) in ends.items()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate()
