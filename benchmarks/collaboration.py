"""Secure sums and whole sessions of several parties, each a process of its own with TLS over loopback."""

from __future__ import annotations

import json
import multiprocessing
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import DATA, Benchmark, Contender, Outcome

TUMOR = DATA / "primary-tumor" / "primary-tumor.arff"
FEW, MANY = 3_740, 1_000_000
N_SUMS = 7
N_FEATURES, N_VALUES, N_CLASSES = 17, 10, 22
"""Of the generated table: 17 × 10 × 22 = 3,740 counts."""

MPYC_PROGRAM = """
import json, sys, time
import numpy as np
from mpyc.runtime import mpc

n_numbers, n_sums = json.loads(sys.argv[-1])
numbers = mpc.SecFld(2**61 - 1)

async def main():
    await mpc.start()
    own = np.random.default_rng(mpc.pid).integers(0, 1000, n_numbers)
    seconds = []
    for _ in range(n_sums):
        begun = time.perf_counter()
        shared = mpc.input(numbers.array(numbers.field.array(own.astype(object))))
        total = await mpc.output(sum(shared[1:], shared[0]))
        seconds.append(time.perf_counter() - begun)
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps([seconds, int(sum(total.value))]))

mpc.run(main())
"""


def own_numbers(place: int, n_numbers: int) -> Any:
    """Numbers of one party."""
    import numpy as np

    return np.random.default_rng(place).integers(0, 1000, n_numbers)


def median(values: list[float]) -> float:
    """Middle value."""
    return sorted(values)[len(values) // 2]


def cpu_of_children() -> float:
    """Processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def add_up(config_path: str, place: int, n_numbers: int, sharing: str) -> tuple[list[float], list[int], int]:
    """Be one party: add up several times; gives the seconds and the bytes sent of each sum but the first."""
    import numpy as np

    from sfumato.collaborate.config import load_party_config
    from sfumato.collaborate.secure_sum import SecureSum
    from sfumato.collaborate.session.handshake import Terms, greet
    from sfumato.collaborate.session.joining import joined

    config = load_party_config(config_path)
    own = own_numbers(place, n_numbers).astype(np.uint64)
    seconds, sent = [], []
    with joined(config) as session:
        greet(session, Terms(config.session, config.roster.fingerprints, "", sharing))
        adder = SecureSum(session, mode=sharing)  # type: ignore[arg-type]
        for number in range(N_SUMS):
            begun, before = time.perf_counter(), session.transcript.bytes_sent
            total = adder.total(own, stage=f"sum {number}")
            seconds.append(time.perf_counter() - begun)
            sent.append(session.transcript.bytes_sent - before)
    return seconds[1:], sent[1:], int(total.sum())


def sum_of_parties(n_parties: int, n_numbers: int, sharing: str, folder: Path) -> dict[str, Any]:
    """Make keys, start the parties, add up several times."""
    from sfumato.collaborate.simulate.simulation import free_ports
    from sfumato.collaborate.transport.keys import make_key_folder

    names = [f"party-{place:02}" for place in range(n_parties)]
    make_key_folder(folder / "keys", names, [f"127.0.0.1:{p}" for p in free_ports(n_parties)], force=True)
    before = cpu_of_children()
    with ProcessPoolExecutor(n_parties, multiprocessing.get_context("spawn")) as parties:
        waiting = [
            parties.submit(add_up, str(folder / "keys" / f"{name}.toml"), place, n_numbers, sharing)
            for place, name in enumerate(names)
        ]
        found = [party.result() for party in waiting]
    return {
        "total": found[0][2],
        "figures": {
            "a sum, warm, s": median(found[0][0]),
            "bytes a party and sum": found[0][1][-1],
            "CPU s, all parties": cpu_of_children() - before,
        },
    }


def sum_of_mpyc(n_parties: int, n_numbers: int, folder: Path) -> dict[str, Any]:
    """Add up the same with MPyC as it comes: Shamir shares, sockets of its own, no TLS."""
    program = folder / "mpyc_sum.py"
    program.write_text(MPYC_PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), f"-M{n_parties}", "--no-log", json.dumps([n_numbers, N_SUMS])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, total = json.loads(done.stdout.splitlines()[-1])
    return {"total": total, "figures": {"a sum, warm, s": median(seconds[1:])}}


def generated_table(folder: Path) -> Any:
    """3,000 rows of 17 features with 10 values each and 22 classes: 3,740 counts."""
    import numpy as np
    import pyarrow as pa

    import sfumato

    rng = np.random.default_rng(0)
    cells = rng.integers(0, N_VALUES, (N_FEATURES, 3_000))
    columns = {f"feature {place}": [f"v{cell}" for cell in row] for place, row in enumerate(cells)}
    classes = [f"c{label}" for label in rng.permutation(np.arange(3_000) % N_CLASSES)]
    table: Any = sfumato.read_table(pa.table({**columns, "class": classes}))
    return table.with_schema(table.schema.with_roles({"class": sfumato.Role.TARGET}))


def tumor_table(folder: Path) -> Any:
    """Primary Tumor: 17 features, 21 classes, 882 counts."""
    import sfumato

    table: Any = sfumato.read_table(TUMOR)
    return table.with_schema(table.schema.with_roles({"class": sfumato.Role.TARGET}))


def session_of(parties: int, mode: str, table: Any) -> dict[str, Any]:
    """Run a whole session, from keys to every party's audited release, which is not kept."""
    from sfumato.collaborate.plan import Plan
    from sfumato.collaborate.simulate.simulation import simulate

    plan = Plan(0.1, mode=mode, max_rows=table.n_rows)  # type: ignore[arg-type]
    found = simulate(table, plan, parties=parties)
    sent = max(party["bytes_sent"] for party in found.parties.values())
    return {
        "total": None,
        "figures": {
            "removed": len(found.removed),
            "bytes a party, session": sent,
            "CPU s, all parties": found.cpu_seconds,
            "CPU s a party": found.cpu_seconds / parties,
        },
    }


def assess(loaded: Any, result: dict[str, Any]) -> Outcome:
    """Return the sum of the totals, which is to be the same for all that added up 3,740 numbers."""
    return Outcome(result["total"], result["figures"])


def assess_other(loaded: Any, result: dict[str, Any]) -> Outcome:
    """Describe what nobody else was asked."""
    return Outcome(None, result["figures"])


OURS = ("sfumato", "cryptography")
BENCHMARK = Benchmark(
    title="Parties are processes with TLS 1.3 over loopback. Sums: the numbers of all parties added up seven times in "
    "one session, the first sum (which exchanges seeds) left out of the median; wall seconds include new interpreters, "
    "keys and connections. Sessions: from keys to the audited release of every party. The first CPU seconds leave out "
    "the parties; MPyC encrypts nothing",
    goal="3,740 counts: a sum under 0.1 s, a session under 4 CPU s in all; 20 parties under 5 s; 10^6 counts under 3 s "
    "and 20 MB a party; selection-only at 17 features under 3 CPU s a party",
    needs=(TUMOR,),
    contenders=(
        Contender("sum, 3 parties", partial(sum_of_parties, 3, FEW, "seeds"), packages=OURS, repeats=1, assess=assess),
        Contender("… shares", partial(sum_of_parties, 3, FEW, "shares"), packages=OURS, repeats=1, assess=assess),
        Contender("… MPyC, plain sockets", partial(sum_of_mpyc, 3, FEW), packages=("mpyc",), repeats=1, assess=assess),
        Contender(
            "10^6, seeds", partial(sum_of_parties, 3, MANY, "seeds"), packages=OURS, assess=assess_other, repeats=1
        ),
        Contender(
            "10^6, shares", partial(sum_of_parties, 3, MANY, "shares"), packages=OURS, assess=assess_other, repeats=1
        ),
        Contender(
            "session, 3 parties", partial(session_of, 3, "totals"), generated_table, OURS, 2, assess=assess_other
        ),
        Contender(
            "session, 20 parties", partial(session_of, 20, "totals"), generated_table, OURS, 1, assess=assess_other
        ),
        Contender(
            "selection-only, 3 parties, Primary Tumor",
            partial(session_of, 3, "selection-only"),
            tumor_table,
            ("sfumato", "mpyc"),
            1,
            assess=assess_other,
        ),
    ),
)
