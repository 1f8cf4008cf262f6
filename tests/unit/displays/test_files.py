"""Pictures on disk: the same bytes every time, whole or not at all, without a window and without lasting settings."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from sfumato.displays.base import FORMATS, picture_format_of, rendered, save
from sfumato.errors import InvalidParameterError, OutputError
from unit.displays.breach_planes import pima_plane, plane_of

FIRST_BYTES = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.slow
@pytest.mark.parametrize("picture_format", FORMATS)
def test_the_same_numbers_give_the_same_bytes_under_any_settings(picture_format, monkeypatch):
    first = rendered(pima_plane(), picture_format)
    monkeypatch.setitem(mpl.rcParams, "font.size", 30.0)
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "black")

    assert rendered(pima_plane(), picture_format) == first
    assert first.startswith(FIRST_BYTES[picture_format])
    assert b"CreationDate" not in first
    assert rendered(pima_plane(chosen=3), picture_format) != first


@pytest.mark.slow
def test_settings_are_as_before(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "svg.hashsalt", "mine")
    before = dict(mpl.rcParams)

    rendered(pima_plane(), "svg")

    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_threads_do_not_disturb_one_another():
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: rendered(pima_plane(), "svg"), range(4)))

    assert set(drawn) == {rendered(pima_plane(), "svg")}


@pytest.mark.slow
def test_an_svg_has_a_title_and_no_date_and_fetches_nothing(tmp_path):
    save(pima_plane(), tmp_path / "plane.svg")

    text = (tmp_path / "plane.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.find("{http://www.w3.org/2000/svg}title").text == pima_plane().title
    assert "date" not in text
    assert "<image" not in text
    links = [value for node in root.iter() for name, value in node.items() if name.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)


@pytest.mark.slow
def test_letters_that_the_font_lacks_are_no_warning(tmp_path):
    plane = plane_of([0.7, 0.72], [0.0, -1.0], [2, 1], chosen=1, labels=("a", "年齢"))

    save(plane, tmp_path / "plane.png")

    assert (tmp_path / "plane.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_file_that_exists_is_replaced_only_by_force(tmp_path):
    path = tmp_path / "plane.png"
    path.write_text("mine")

    with pytest.raises(OutputError, match="move it, or allow replacing it"):
        save(pima_plane(), path)
    assert path.read_text() == "mine"
    save(pima_plane(), path, force=True)
    assert path.read_bytes().startswith(FIRST_BYTES["png"])


@pytest.mark.parametrize("name", ["plane", "plane.jpg", "plane.svg.gz", ".svg", "plane."])
def test_an_unknown_suffix_is_refused_and_nothing_written(tmp_path, name):
    with pytest.raises(InvalidParameterError, match=r"\.svg, \.png, \.pdf"):
        save(pima_plane(), tmp_path / name)

    assert os.listdir(tmp_path) == []


def test_letter_case_of_a_suffix_does_not_matter():
    assert [picture_format_of(f"a.{name.upper()}") for name in FORMATS] == list(FORMATS)


def test_a_drawing_that_fails_leaves_nothing_and_resets_the_settings(tmp_path):
    class Broken:
        title = "broken"

        def plot(self, ax=None):
            raise RuntimeError

    before = dict(mpl.rcParams)
    with pytest.raises(RuntimeError):
        save(Broken(), tmp_path / "plane.svg")

    assert os.listdir(tmp_path) == []
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_pyplot_is_never_loaded(tmp_path):
    code = f"""
import sys
from sfumato.displays.breach_plane import BreachPlaneDisplay
from sfumato.displays.base import save
assert "matplotlib" not in sys.modules
plane = BreachPlaneDisplay((0.7,), (0.0,), (3,), (True,), 0.7)
for name in ("svg", "png", "pdf"):
    save(plane, {str(tmp_path)!r} + "/plane." + name)
assert "matplotlib.figure" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

    assert sorted(os.listdir(tmp_path)) == ["plane.pdf", "plane.png", "plane.svg"]
