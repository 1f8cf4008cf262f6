"""``sfumato plot`` as a user types it."""

import dataclasses
import os

import pytest

from sfumato.cli.main import run
from sfumato.displays.base import rendered
from sfumato.displays.breach_plane import BreachPlaneDisplay
from unit.displays.breach_planes import TWO, manifest_of


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a working folder with a manifest that has candidates and one that has nothing to draw."""
    monkeypatch.chdir(tmp_path)
    manifest = manifest_of(TWO)
    (tmp_path / "m.json").write_text(manifest.to_json())
    (tmp_path / "bare.json").write_text(dataclasses.replace(manifest, evidence={}).to_json())
    return tmp_path


def pictures(folder):
    return sorted(name for name in os.listdir(folder) if not name.endswith(".json"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plane.svg", "plane.png", "plane.PDF"])
def test_a_manifest_becomes_a_picture(folder, name, capsys):
    assert run(["plot", "m.json", "-o", name]) == 0

    drawn = rendered(BreachPlaneDisplay.from_manifest(manifest_of(TWO)), name[-3:].lower())
    assert (folder / name).read_bytes() == drawn
    assert pictures(folder) == [name]
    assert capsys.readouterr().err == f"wrote {name}\n"


@pytest.mark.slow
def test_a_picture_that_exists_needs_force(folder, capsys):
    (folder / "plane.svg").write_text("mine")

    assert run(["plot", "m.json", "-o", "plane.svg"]) == 3
    assert "--force" in capsys.readouterr().err
    assert (folder / "plane.svg").read_text() == "mine"
    assert run(["plot", "m.json", "-o", "plane.svg", "--force", "--kind", "breach-plane"]) == 0
    assert (folder / "plane.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["bare.json", "-o", "p.svg"], 3, "breach-plane for breach-aware"),
        (["bare.json", "-o", "p.svg", "--kind", "breach-plane"], 3, "breach-plane for breach-aware"),
        (["m.json", "-o", "p.svg", "--kind", "pie"], 2, "--kind must be one of"),
        (["m.json", "-o", "p.gif"], 2, ".svg, .png, .pdf"),
        (["m.json", "-o", "p"], 2, "without a suffix"),
        (["m.json", "-o", "no/p.svg"], 3, "folder does not exist"),
        (["none.json", "-o", "p.svg"], 3, "cannot be read"),
        (["m.json"], 2, "--output"),
    ],
)
def test_what_goes_wrong_is_said_in_one_line_and_nothing_is_written(folder, capsys, arguments, code, message):
    assert run(["plot", *arguments]) == code

    assert message in capsys.readouterr().err
    assert pictures(folder) == []


def test_a_broken_list_of_candidates_is_bad_input(folder, capsys):
    manifest = manifest_of([{"columns": "CANARY"}])
    (folder / "broken.json").write_text(manifest.to_json())

    assert run(["plot", "broken.json", "-o", "p.svg"]) == 3

    shown = capsys.readouterr().err
    assert "broken.json: evidence.choice.candidates[0]" in shown
    assert "CANARY" not in shown
    assert pictures(folder) == []


def test_a_manifest_that_was_changed_after_it_was_written_is_not_drawn(folder, capsys):
    text = (folder / "m.json").read_text()
    (folder / "m.json").write_text(text.replace("0.76", "0.99"))

    assert run(["plot", "m.json", "-o", "p.svg"]) == 3

    assert "m.json: was changed after it was written" in capsys.readouterr().err
    assert pictures(folder) == []
