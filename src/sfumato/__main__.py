"""Start of the command, and of ``python -m sfumato``: Ctrl-C is one line and exit code 130.

Nothing but what Python itself has loaded is imported at the top, for an interruption before :func:`main` runs is
Python's own and shows a traceback.
"""

from __future__ import annotations

import os
import signal
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    What was registered for the end is run, and then the process ends at once: threads of native libraries that are
    still waiting for work would now and then abort it (exit code 134) while the interpreter is taken down. Where memory
    is limited, the command runs in a child of this process.
    """
    try:
        from sfumato.cli.limited_memory import go_on_in_a_child

        go_on_in_a_child()
        from sfumato.cli.main import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while modules were imported; run takes every later one
        os.write(2, b"sfumato: interrupted\n")
        code = 130  # INTERRUPTED, of a module that may not be loaded yet
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not keep private files from being removed
    _tidy_up()
    os._exit(code)


def _tidy_up() -> None:
    import atexit
    import contextlib

    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


if __name__ == "__main__":
    main()
