"""With ``--root`` no path that the page takes leads out of that folder, and refusals do not say what is outside."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.errors import InputError
from sfumato.web.confinement import checked_path, is_inside
from sfumato.web.jobs.jobs import Jobs, TaskError
from sfumato.web.views import collaborate, opening
from sfumato.web.views import opening as opening_form
from web.asking import Site
from web.standing_in import PROJECT, JobsAtOnce, people, small_project

CANARY = "canary4711"
OUTSIDE_WORDS = "this path is outside the folder that the page may use"
OPEN_PATHS = {"path", "project"}
OPEN_OTHERS = {"format", "delimiter", "encoding", "sheet", "skip_rows", "missing", "no_header", "complete_rows_only"}
PARTY_PATHS = {"config", "data", "schema", "output", "transcript"}
PARTY_OTHERS = {"rows", "kept_back", "released", "dry_run", "force", "min_privacy_gain", "mode"}
SIMULATION_PATHS = {"output_dir"}
SIMULATION_OTHERS = {"parties", "seed", "cuts", "force", "min_privacy_gain", "mode"}

HOSTILE = {
    "absolute": "{outside}/secret.csv",
    "absolute, not there": "{outside}/nothing.csv",
    "absolute, nearly there": "{outside}/secret.cs",
    "upwards": "{root}/../outside/secret.csv",
    "upwards, not there": "{root}/../outside/nothing.csv",
    "upwards from here": "../outside/secret.csv",
    "upwards through a folder": "{root}/folder/../../outside/secret.csv",
    "link to a file": "{root}/link.csv",
    "link to a folder": "{root}/linked/secret.csv",
    "link to a folder, not there": "{root}/linked/nothing.csv",
    "link that leads nowhere": "{root}/broken/nothing.csv",
    "a folder beside with the same beginning": "{root}-beside/secret.csv",
    "NUL": "{root}/a\0b.csv",
    "NUL and outside": "{outside}/secret.csv\0.csv",
    "home of the system": "~root/secret.csv",
    "of this process": "/proc/self/environ",
    "root of the file system": "/",
}
ENCODED = ["%2e%2e/outside/secret.csv", "..%2foutside%2fsecret.csv", "%2Fetc%2Fpasswd"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    root, outside, beside = tmp_path / "root", tmp_path / "outside", tmp_path / "root-beside"
    for folder in (root / "folder", outside, beside):
        folder.mkdir(parents=True)
    for folder in (outside, beside):
        (folder / "secret.csv").write_text(f"{CANARY},b\n" + "1,2\n" * 20)
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "linked").symlink_to(outside)
    (root / "broken").symlink_to(tmp_path / "nowhere")
    (root / "people.csv").write_text(people())
    (root / "party.toml").write_text("")
    monkeypatch.chdir(root)
    return tmp_path


def tree(folder):
    """List all files under a folder with their contents; links are not followed."""
    paths = [Path(base) / name for base, _, names in os.walk(folder) for name in names]
    return {str(path): path.read_bytes() for path in paths if not path.is_symlink()}


@pytest.fixture
def site(place):
    started = JobsAtOnce(place / "jobs")
    return Site(place / "page", opening, collaborate, jobs=started, root=place / "root")


def typed(place, how):
    return HOSTILE[how].format(root=place / "root", outside=place / "outside")


def test_every_field_of_every_form_is_known_here():
    """A new field is a path, and is then tried below, or is none."""
    assert set(opening_form.FIELDS) == OPEN_PATHS | OPEN_OTHERS
    assert set(collaborate._DEFAULTS["take-part"]) == PARTY_PATHS | PARTY_OTHERS
    assert set(collaborate._DEFAULTS["simulate"]) == SIMULATION_PATHS | SIMULATION_OTHERS


@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.parametrize("field", sorted(OPEN_PATHS))
def test_a_table_outside_is_not_opened(site, place, field, how):
    before, fields = tree(place), {"path": str(place / "root" / "people.csv"), "project": ""}

    site.post("/open", how="path", **{**fields, field: typed(place, how)})

    answer = site.get("/open")
    assert OUTSIDE_WORDS in answer.shown
    assert CANARY not in answer.text
    assert {path: content for path, content in tree(place).items() if "/page/" not in path} == before


@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.parametrize("field", sorted(PARTY_PATHS))
def test_a_party_uses_no_file_outside(site, place, field, how):
    fields = {"config": "party.toml", "data": "people.csv", "rows": "file", "min_privacy_gain": "0.1"}

    answer = site.post("/collaborate/take-part", **{**fields, field: typed(place, how)})

    assert answer.status == 422
    assert OUTSIDE_WORDS in answer.shown
    assert CANARY not in answer.text


@pytest.mark.parametrize("how", HOSTILE)
def test_a_simulation_writes_nothing_outside(site, place, how):
    site.page.state.update(project=str(small_project(place / "root")))
    before = tree(place / "outside")

    answer = site.post(
        "/collaborate/simulate", parties="3", seed="0", min_privacy_gain="0.1", output_dir=typed(place, how)
    )

    assert (answer.status, OUTSIDE_WORDS in answer.shown) == (422, True)
    assert tree(place / "outside") == before


@pytest.mark.parametrize("how", HOSTILE)
def test_a_transcript_outside_is_not_shown(site, place, how):
    answer = site.get("/collaborate/transcript", path=typed(place, how))

    assert (answer.status, OUTSIDE_WORDS in answer.shown) == (422, True)
    assert CANARY not in answer.text


@pytest.mark.parametrize("text", ENCODED)
def test_a_path_is_decoded_once_only(site, place, text):
    """What is still encoded after that is a name like any other, inside the folder."""
    site.post("/open", how="path", path=text, project="")

    answer = site.get("/open")
    assert CANARY not in answer.text
    assert "does not exist" in answer.shown
    assert is_inside(place / "root", text)


def test_all_refusals_are_the_same_words(place):
    found = set()
    for how in HOSTILE:
        with pytest.raises(InputError) as caught:
            checked_path(place / "root", typed(place, how))
        found.add(str(caught.value))

    assert len(found) == 1


def test_without_a_folder_everything_is_as_before(place):
    for how in HOSTILE:
        checked_path(None, typed(place, how))


@pytest.mark.parametrize("name", ["people.csv", "folder/../people.csv", "folder/new.csv", "{root}/people.csv", ""])
def test_paths_inside_pass(place, name):
    found = checked_path(place / "root", name.format(root=place / "root"))

    assert found == "" if not name else Path(found).is_absolute()


def call(place, task, **arguments):
    """Run a task in a process as the page does."""
    (place / "page").mkdir(exist_ok=True)
    jobs = Jobs(place / "page" / "jobs", root=place / "root")
    try:
        return asyncio.run(jobs.call(task, seconds=300.0, **arguments))
    finally:
        jobs.close()


@pytest.mark.parametrize("data", ["../outside/secret.csv", "{outside}/secret.csv", "{outside}/nothing.csv", "link.csv"])
def test_a_project_file_that_names_data_outside_is_refused_when_they_are_opened(place, data):
    text = PROJECT.replace("people.csv", data.format(outside=place / "outside"))
    project = small_project(place / "root", text)

    with pytest.raises(TaskError) as caught:
        call(place, "opening.open_path", project=str(project))

    assert "permission denied" in str(caught.value)
    assert CANARY not in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_work_inside_goes_on_as_before(place, monkeypatch):
    """From the table to an audited release, in processes that are confined."""
    root = place / "root"
    opened = call(place, "opening.open_path", project=str(root / "sfumato.toml"), data=str(root / "people.csv"))
    assert opened["n_rows"] == 60
    few = '[compare]\nclassifiers = ["naive-bayes"]\n[compare.grid.mondrian]\nk = [3, 5]\n'
    small_project(root, PROJECT + few)
    monkeypatch.chdir("/")
    made = call(place, "release.make", project=str(root / "sfumato.toml"), quick=True)
    compared = call(place, "explore.compare", project=str(root / "sfumato.toml"), asked=[])

    assert made["summary"]
    assert compared


PROGRAM = """
import os, sys
from pathlib import Path
from sfumato.web.confinement import confine_this_process
root, outside = Path(sys.argv[1]), Path(sys.argv[2])
confine_this_process([root])

def refused(work):
    try:
        work()
    except PermissionError:
        return True
    return False

print([
    refused(lambda: open(outside / "secret.csv").read()),
    refused(lambda: open(outside / "nothing.csv").read()),
    refused(lambda: open(root / "link.csv").read()),
    refused(lambda: os.open(outside / "new", os.O_CREAT | os.O_WRONLY)),
    refused(lambda: os.listdir(outside)),
    refused(lambda: os.scandir(outside)),
    refused(lambda: (outside / "new").mkdir()),
    refused(lambda: (outside / "secret.csv").unlink()),
    refused(lambda: os.rename(root / "people.csv", outside / "stolen.csv")),
    refused(lambda: os.link(outside / "secret.csv", root / "linked.csv")),
    refused(lambda: open("/proc/self/environ").read()),
    refused(lambda: open("/etc/passwd").read()),
    refused(lambda: open(sys.prefix + "/written", "w")),
].count(True))
open(root / "people.csv").read(), (root / "new").mkdir(), open(root / "new" / "file", "w").close()
os.fdopen(os.open(root, os.O_TMPFILE | os.O_RDWR, 0o600)).close() if hasattr(os, "O_TMPFILE") else None
import decimal, json.tool
print("fine")
"""


def test_a_confined_process_opens_nothing_else(place):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, place / "root", place / "outside"], capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines() == ["13", "fine"], done.stderr
    assert sorted(os.listdir(place / "outside")) == ["secret.csv"]
