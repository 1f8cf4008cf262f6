"""Start of the program that runs the parties of a simulation, so light that it can end while the rest is imported.

Run as ``python -m sfumato.collaborate.simulate.start FOLDER``. Importing everything takes a second or two, and the
simulation may go away meanwhile; then the folder, which holds private keys, is removed at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.collaborate.simulate.leaving import INPUT, leave_nothing
from sfumato.processes import is_closed, signal_when_closed


def main(folder: Path) -> None:
    """Import everything, then run the parties of a folder."""
    with _leaving_when_alone(folder):
        from sfumato.collaborate.simulate import parties as simulated_parties
    simulated_parties.run_parties(folder)


@contextmanager
def _leaving_when_alone(folder: Path) -> Iterator[None]:
    """Have the system tell when something happens to the input, and leave if it was closed."""
    import fcntl

    def look(*_: object) -> None:
        if is_closed(INPUT):
            leave_nothing(folder, ())

    flags = fcntl.fcntl(INPUT, fcntl.F_GETFL)
    signal_when_closed(INPUT, look)
    yield
    fcntl.fcntl(INPUT, fcntl.F_SETFL, flags)
    signal.signal(signal.SIGIO, signal.SIG_DFL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
