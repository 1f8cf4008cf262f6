"""A release and a comparison with figures that nothing of the program knows: one of the release, one of classifiers.

Run by ``test_adding_a_figure.py`` with a copy of the package that declares them; prints what every front shows.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from sfumato.cli.main import run
from sfumato.web.project_files import run_folder_of
from sfumato.web.views import explore
from web.asking import Site, shown
from web.release_pages import JOB, Pages, make, write_project
from web.standing_in import JobsAtOnce

COMPARED = """
[compare]
classifiers = ["naive-bayes"]
[compare.grid.mondrian]
k = [5]
"""


def command(*words: str) -> str:
    """Run a command, and give what it prints on stdout."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run(list(words)) == 0, words
    return out.getvalue()


def main() -> dict[str, Any]:
    """Release, compare, attack and report, by commands and pages."""
    here = Path.cwd() / "work"
    here.mkdir()
    project = write_project(here, "mondrian", "k = 5", n_rows=120)
    project.write_text(project.read_text() + COMPARED)
    made = make(project, here / "server" / "jobs" / JOB, quick=False)
    pages = Pages(here / "server", project)
    asked = ("compare", "--project", str(project), "--run-folder", str(run_folder_of(project)))
    files = {what: here / "server" / "jobs" / JOB / entry["name"] for what, entry in made["files"].items()}
    attack = ("attack", str(here / "stays.csv"), str(files["table"]), "--manifest", str(files["manifest"]))
    table = command(*asked)
    exploring = Site(here / "page", explore, project=project, jobs=JobsAtOnce(here / "page" / "jobs"))
    return {
        "table": table,
        "compared": json.loads(command(*asked, "--json")),
        "explore": exploring.get("/explore").shown,
        "attack": command(*attack),
        "attacked": json.loads(command(*attack, "--json"))["figures"],
        "report": shown(files["report"].read_text(encoding="utf-8")),
        "utility": pages.get("/utility").shown,
        "risk": pages.get("/risk").shown,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()))
