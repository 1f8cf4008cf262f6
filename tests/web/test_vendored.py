"""Scripts of others are what they claim to be, their licences are kept, and nothing is fetched from elsewhere."""

import hashlib
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sfumato.web

WEB = Path(sfumato.web.__file__).parent
VENDOR = WEB / "static" / "vendor"
ROW = re.compile(
    r"\| `(?P<file>[^`]+)` \| (?P<name>[^|]+) \| [^|]*`(?P<licence>LICENSE[^`]+)`\) \| `(?P<sha>[0-9a-f]{64})` \|"
)
LISTED = {row["file"]: row for row in ROW.finditer((VENDOR / "README.md").read_text(encoding="utf-8"))}
SCRIPTS = sorted(path.name for path in VENDOR.glob("*.js"))
OWN = sorted(
    path
    for folder in ("static", "templates")
    for path in (WEB / folder).rglob("*")
    if path.is_file() and VENDOR not in path.parents
)
NAMED_NOT_FETCHED = {
    "www.w3.org",  # names of XML languages
    "vega.github.io",  # the name of the specification's version
    "github.com",  # in the text of a warning
}
ADDRESS = re.compile(r"""(?:https?:)?//[a-z0-9-]+\.[a-z0-9.-]+[^\s"'`)<>]*""", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$|\{#.*?#\}", re.DOTALL | re.MULTILINE)


def test_every_script_is_listed_and_every_listed_one_is_there():
    assert sorted(LISTED) == SCRIPTS
    assert set(SCRIPTS) == {"htmx.min.js", "vega.min.js", "vega-lite.min.js", "vega-interpreter.min.js"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_the_published_one(name):
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == LISTED[name]["sha"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_licence_of_a_script_is_kept(name):
    text = (VENDOR / LISTED[name]["licence"]).read_text(encoding="utf-8")
    assert "PROVIDED" in text
    assert "WARRANTIES" in text


@pytest.mark.parametrize("name", ["htmx.min.js", "vega-lite.min.js"])  # the others do not say theirs
def test_a_script_has_the_version_that_is_listed(name):
    version = LISTED[name]["name"].split()[-1]
    assert f'"{version}"' in (VENDOR / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "package", ["d3-array", "d3-geo", "topojson-client", "delaunator", "robust-predicates", "esprima"]
)
def test_licences_of_what_is_bundled_are_kept(package):
    text = (VENDOR / "LICENSE.vega-bundled.txt").read_text(encoding="utf-8")
    assert re.search(rf"^-+\n(.*, )?{package}(,.*)?\n-+$", text, re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_vendored_script_names_no_address_to_fetch(name):
    text = (VENDOR / name).read_text(encoding="utf-8")
    assert {urlsplit(found).hostname for found in ADDRESS.findall(text)} <= NAMED_NOT_FETCHED


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_an_own_file_names_no_address_outside(path):
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    hosts = {urlsplit(found).hostname for found in ADDRESS.findall(text)}
    assert hosts <= ({"www.w3.org"} if path.suffix == ".svg" else set())


def test_addresses_are_found():
    """Keep the pattern above honest."""
    text = 'fetch("https://cdn.example/x.js"); import "//other.example/y"; <img src=http://third.example>'
    assert [urlsplit(found).hostname for found in ADDRESS.findall(text)] == [
        "cdn.example",
        "other.example",
        "third.example",
    ]
