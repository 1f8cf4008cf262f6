"""Thousands of damaged files through every reader; runs as a process of its own, which a reader may take down.

::

    python -m benchmarks.soak.reader_fuzz FOLDER SEED COUNT SECONDS
"""

from __future__ import annotations

import random
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak.hanging import HungError, no_longer_than
from benchmarks.soak.outcome import Effort, Outcome
from benchmarks.soak.processes import Restarted, tell
from benchmarks.soak.specimens import Specimen, specimens

FULL_COUNT = 20_500
LONGEST = 20.0
"""Seconds after which a reader hangs."""
MEMORY = 4 << 30
"""Address space of the readers; a small file that needs more is a finding."""
KEPT = "current"


def run(effort: Effort, folder: Path, seconds: float) -> Outcome:
    """Fuzz until the count and the time are reached; a process that a file takes down is started again."""
    outcome = Outcome("fuzzed files", "files")
    fuzz = Restarted("benchmarks.soak.reader_fuzz", folder, effort.seed)
    fuzz.run(outcome, effort.times(FULL_COUNT), seconds)
    return outcome


def main() -> None:
    """Fuzz in this process and tell findings and counts as lines of JSON."""
    fuzz(specimens)


def fuzz(made: Callable[[Path], list[Specimen]]) -> None:
    """Fuzz specimens as the command line says: FOLDER SEED COUNT SECONDS."""
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    count, until = int(sys.argv[3]), time.monotonic() + float(sys.argv[4])
    good = folder / "good"
    good.mkdir()
    kinds = made(good)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    warnings.simplefilter("error")
    for kind in kinds:
        _check_good(kind, good)
    random_ = random.Random(seed)
    counts: Counter[str] = Counter()
    n_done = 0
    while n_done < count or time.monotonic() < until:
        kind = random_.choice(kinds)
        content = kind.damage(random_, random_.choice(kind.examples), _of_others(kinds))
        ended = fuzz_once(kind, content, good)
        counts[f"{kind.name}: {ended}"] += 1
        if ended not in ("read", "refused"):
            _keep(folder, n_done, kind, content)
            tell(finding=f"{kind.name}: {ended}")
        n_done += 1
    tell(n_done=n_done, counts=counts)


def fuzz_once(kind: Specimen, content: bytes, folder: Path) -> str:
    """Read a damaged file; say whether it was read, refused, or what else came of it."""
    from sfumato.errors import SfumatoError

    path = folder / f"{KEPT}{kind.suffix}"
    path.write_bytes(content)
    try:
        with no_longer_than(LONGEST):
            kind.read(path)
    except (SfumatoError, *kind.allowed):
        return "refused"
    except HungError:
        return f"took more than {LONGEST:g} s"
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "sfumato" in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        return f"{type(error).__name__} in {place}"
    return "read"


def _check_good(kind: Specimen, folder: Path) -> None:
    for example in kind.examples:
        ended = fuzz_once(kind, example, folder)
        if ended != "read":
            raise RuntimeError(f"a good file of the kind {kind.name} is not read: {ended}")


def _of_others(kinds: list[Specimen]) -> list[bytes]:
    return [example for kind in kinds for example in kind.examples]


def _keep(folder: Path, number: int, kind: Specimen, content: bytes) -> None:
    (folder / f"finding-{number}{kind.suffix}").write_bytes(content)


if __name__ == "__main__":
    main()
