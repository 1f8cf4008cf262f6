"""Parties of a simulation, each a process of its own, started by a program that has imported everything once.

The program ends them when the simulation goes away, however that happens, and then removes the folder, which holds
private keys. It begins in :mod:`sfumato.collaborate.simulate.start`.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sfumato.collaborate.config import load_party_config
from sfumato.collaborate.plan import Plan
from sfumato.collaborate.session.joining import in_shared_roles
from sfumato.collaborate.session.party import take_part
from sfumato.collaborate.session.transcript import Entry, Round, SessionWatch, Transcript
from sfumato.collaborate.shared_schema import read_shared_schema
from sfumato.collaborate.simulate.leaving import INPUT, leave_nothing
from sfumato.errors import SfumatoError
from sfumato.mechanisms.hierarchies.files import read_hierarchy
from sfumato.private_folders import write_private
from sfumato.schema import Role
from sfumato.table.io.read import ReadOptions, read_table

ORDERS_NAME = "orders.json"

_GLANCE = 0.02
_GRACE = 5.0  # seconds in which the others hear of a party's failure


@dataclass(frozen=True)
class PartyOrder:
    """What one party of a simulation is to do; paths are texts, so that it can be written as JSON."""

    name: str
    config: str
    data: str
    schema: str
    result: str
    plan: dict[str, Any]
    roles: dict[str, str]
    missing: list[str]
    output: str | None
    transcript: str | None
    force: bool
    says_progress: bool
    hierarchies: dict[str, str] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Take part; gives the party's result as plain data."""
        schema = read_shared_schema(self.schema)
        table = read_table(self.data, options=ReadOptions(missing=tuple(self.missing)))
        path = Path(self.transcript) if self.transcript else None
        own = in_shared_roles(table, schema, {name: Role(role) for name, role in self.roles.items()})
        given: dict[str, Any] = {
            "output": Path(self.output) if self.output else None,
            "transcript": Transcript(path, force=self.force, watch=_Teller() if self.says_progress else None),
            "force": self.force,
        }
        config, plan = load_party_config(self.config), Plan.from_dict(self.plan)
        if plan.joint_k is None:
            return take_part(config, own, schema, plan, **given).to_dict()
        from sfumato.collaborate.joint.party import take_part_jointly

        hierarchies = {name: read_hierarchy(file) for name, file in self.hierarchies.items()}
        return take_part_jointly(config, own, schema, plan, hierarchies=hierarchies, **given).to_dict()


def write_orders(folder: Path, orders: list[PartyOrder]) -> None:
    """Write down what the parties are to do."""
    write_private(folder / ORDERS_NAME, json.dumps([asdict(order) for order in orders]))


def run_parties(folder: Path) -> None:
    """Wait for a sign, start all parties of a folder and wait for them, or for the end of the simulation."""
    if not os.read(INPUT, 1):
        leave_nothing(folder, ())
    orders = [PartyOrder(**entry) for entry in json.loads((folder / ORDERS_NAME).read_text(encoding="utf-8"))]
    children = {_start(order): order.name for order in orders}
    deadline = math.inf
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            _tell(ended=children.pop(pid), went_well=status == 0)
        if pid and status:
            deadline = min(deadline, time.monotonic() + _GRACE)
        if pid == 0 and select.select([INPUT], [], [], _GLANCE)[0] and not os.read(INPUT, 1):
            leave_nothing(folder, children)
        if time.monotonic() > deadline:
            for child in children:
                os.kill(child, signal.SIGKILL)
            deadline = math.inf


def _start(order: PartyOrder) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    with suppress(BaseException):
        answer = _answer(order)
        path = Path(order.result)
        write_private(path, json.dumps(answer))
        code = 0 if "result" in answer else 1
    os._exit(code)


def _answer(order: PartyOrder) -> dict[str, Any]:
    """Give the result of a party, or what it failed with."""
    try:
        return {"result": order.run()}
    except SfumatoError as exc:
        fields = ("party", "stage", "problem", "line", "may_be_published", "guarantee", "best_level")
        known = {name: getattr(exc, name) for name in fields if hasattr(exc, name)}
        return {"error": type(exc).__name__, "exit_code": exc.exit_code, "message": str(exc), **known}
    except Exception as exc:  # its text may quote a cell, so only its place is told
        frame = traceback.extract_tb(exc.__traceback__)[-1]
        place = f"{type(exc).__name__} in {Path(frame.filename).name}:{frame.lineno}"
        return {"error": "bug", "exit_code": 1, "message": f"party '{order.name}' met a bug in sfumato ({place})"}


class _Teller(SessionWatch):
    """Tells the simulation what a party hears of its session."""

    def connected(self, peer: str) -> None:
        _tell(connected=peer)

    def noted(self, entry: Entry) -> None:
        _tell(entry=asdict(entry))

    def round_over(self, done: Round) -> None:
        _tell(round=asdict(done))


def _tell(**event: object) -> None:
    """Write one line, short enough not to be mixed with another process's; nobody may be there to read it."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), (json.dumps(event) + "\n").encode())
