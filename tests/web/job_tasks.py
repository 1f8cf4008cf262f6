"""Tasks that the tests of jobs run; each is called as those of the page are."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path  # also a name that is no task

from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError
from sfumato.processes import forking_context, stand_alone
from tests.waiting import until

CANARY = "CANARY-7f3a"


def echo(folder, tell, **arguments):
    (folder / "made.txt").write_text("x")
    return {
        "arguments": arguments,
        "folder": str(folder),
        "folder_mode": stat.S_IMODE(folder.stat().st_mode),
        "file_mode": stat.S_IMODE((folder / "made.txt").stat().st_mode),
        "pid": os.getpid(),
        "session": os.getsid(0),
        "forkserver": os.getppid(),
        "interrupt_is_ignored": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
    }


def sleeps(folder, tell, pause):
    begin = time.monotonic()
    time.sleep(pause)  # so long it lasts
    return {"from": begin, "to": time.monotonic()}


def meets_another(folder, tell, signs, pause):
    """Begin, last until another has begun, however late that is, and a while longer."""
    begin = time.monotonic()
    (Path(signs) / f"{os.getpid()}.begun").touch()
    until(lambda: len(list(Path(signs).glob("*.begun"))) > 1)
    time.sleep(pause)  # so long it lasts
    return {"from": begin, "to": time.monotonic()}


def steps(folder, tell, count):
    tell.log("begun")
    for number in range(count):
        tell.progress(number + 1, count, "counting")
    tell.log("all\ncounted")
    return {"count": count}


def waits(folder, tell, signs=None):
    (folder / "deeper").mkdir()
    (folder / "deeper" / "half.csv").write_text(CANARY)
    (Path(signs or folder) / "pid.json").write_text(str(os.getpid()))
    tell.log("waiting")
    tell.progress(1, 2, "waiting")
    time.sleep(600)  # until it is killed


def finds_and_waits(folder, tell):
    (folder / "made.txt").write_text("x")
    (folder / "first-result.json").write_text(json.dumps({"found": "first", "to_come": ["utility"]}))
    tell.first_result()
    time.sleep(600)  # until it is killed


def finds_all_and_waits(folder, tell):
    """Do as a task that is stopped after its last result was written, and before its end is told."""
    (folder / "first-result.json").write_text(json.dumps({"found": "first"}))
    (folder / "result.json").write_text(json.dumps({"found": "last"}))
    tell.first_result()
    time.sleep(600)  # until it is killed


def hogs_the_interpreter(folder, tell):
    """Hold the interpreter's lock, so that no Python thread of this process can act."""
    tell.progress(1, 2, str(os.getpid()))
    tell.finish()  # its thread could not pass it on afterwards
    return {"never": len(str(7 ** (10**9)))}


def refuses(folder, tell):
    raise InvalidParameterError("k", "got 1", allowed="at least 2", hint="take 5")


def cannot(folder, tell):
    (folder / "half.csv").write_text(CANARY)
    (folder / "rounds.jsonl").write_text("{}")
    raise PrivacyNotAchievableError("k-anonymity with k=5", best_level=3)


def breaks(folder, tell):
    raise ValueError(CANARY)


def leaves(folder, tell):
    sys.exit(CANARY)


def gives_no_json(folder, tell):
    return {"value": {CANARY}}


def chatters(folder, tell):
    print(CANARY)  # noqa: T201 # the point of it
    print(CANARY, file=sys.stderr, flush=True)  # noqa: T201
    os.write(1, CANARY.encode())
    os.write(2, CANARY.encode())
    return {}


def dies(folder, tell, number):
    os.kill(os.getpid(), number)
    time.sleep(600)  # until it is killed


def ends_early(folder, tell):
    os._exit(3)


def leaves_a_process(folder, tell):
    return {"pid": subprocess.Popen(["sleep", "600"]).pid}


def forks_again(folder, tell, signs, hog):
    """Start a process as a comparison does, and wait for it."""
    context = forking_context(["sfumato.evaluation.compare"])
    process = context.Process(target=_grandchild, args=(str(Path(signs) / "grandchild.json"), hog))
    process.start()
    process.join()
    return json.loads((Path(signs) / "grandchild.json").read_text()) | {"forkserver": os.getppid()}


def _grandchild(path, hog):
    stand_alone()
    part = Path(path + ".part")
    part.write_text(json.dumps({"pid": os.getpid(), "parent": os.getppid()}))
    part.replace(path)
    if hog:
        len(str(7 ** (10**9)))
