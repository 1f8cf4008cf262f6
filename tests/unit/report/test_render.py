"""The page: its structure, that it stands alone, and that no name can break it."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from sfumato.displays.base import rendered
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.mechanisms.registry import registered_mechanisms
from sfumato.publishing.propose import make_release
from sfumato.report.pictures import drawn, inline_svg, pictures_of
from sfumato.report.render import for_others, report_html
from sfumato.report.summarize import summarize
from unit.report.releases import hostile_table, made, page_of, stays, summary_of

STRUCTURE = [
    ("h1", "Report on a release"),
    ("section", "verdict"),
    ("section", "in-short"),
    ("section", "left-open"),
    ("section", "asked"),
    ("h2", "What was asked"),
    ("section", "done"),
    ("h2", "What was done"),
    ("section", "guarantees"),
    ("h2", "What is promised, and what is not"),
    ("h3", "k-anonymity"),
    ("h3", "All of this assumes"),
    ("section", "utility"),
    ("h2", "Utility kept"),
    ("section", "risk"),
    ("h2", "Risk left"),
    ("section", "columns"),
    ("h2", "What happened to the columns"),
    ("section", "reproduction"),
    ("h2", "How to check and reproduce it"),
    ("section", "checks"),
    ("h2", "Every check of the audit"),
]
VOID = {"meta", "br", "img", "hr", "input", "link"}
OF_TEXT = {
    "dl",
    "dt",
    "dd",
    "p",
    "ul",
    "li",
    "strong",
    "bdi",
    "a",
    "pre",
    "code",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
OF_PAGE = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "main",
    "section",
    "div",
    "h1",
    "h2",
    "h3",
    "footer",
}
OF_PICTURES = {"figure", "figcaption", "svg", "defs", "g", "path", "use", "rect", "clippath", "pattern"}
KNOWN = OF_TEXT | OF_PAGE | OF_PICTURES


class Page(HTMLParser):
    """Everything in a page that a test asks for; fails on a tag that is not closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.outline, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "section":
            self.outline.append((tag, attributes["id"]))
        if tag in ("h1", "h2", "h3"):
            self.outline.append((tag, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.outline and {"h1", "h2", "h3"} & set(self.open):
            tag, text = self.outline[-1]
            self.outline[-1] = (tag, text + data)

    def of(self, tag):
        return [attributes for found, attributes in self.tags if found == tag]


@pytest.mark.slow
def test_structure():
    page = Page(page_of("mondrian", quick=False))

    assert page.outline == STRUCTURE
    assert Page(page_of("greedy-containment")).outline[2] == ("section", "exceptions")  # mondrian has none
    assert [figure["id"] for figure in page.of("figure")] == [
        "picture-roc",
        "picture-class-sizes",
        "picture-risk-curve",
    ]


@pytest.mark.slow
def test_the_structure_for_others_has_no_pictures_of_groups_and_no_checks():
    page = Page(page_of("mondrian", quick=False, external=True))

    assert page.outline == [entry for entry in STRUCTURE if entry not in (STRUCTURE[-1], STRUCTURE[-2])]
    assert [figure["id"] for figure in page.of("figure")] == ["picture-roc"]
    assert "values before" not in " ".join(page.words)
    assert "Recall" not in " ".join(page.words)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(registered_mechanisms()))
@pytest.mark.parametrize("external", [False, True], ids=["internal", "external"])
def test_a_page_stands_alone_and_is_small(mechanism, external):
    text = page_of(mechanism, external=external)
    page = Page(text)

    assert len(text.encode()) < 500_000
    assert {tag for tag, _ in page.tags} <= KNOWN
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
        assert all(value.startswith("#") for name, value in attributes.items() if name.endswith("href"))
    assert set(re.findall(r"https?://[^\"'<\s]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", text))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["mondrian", "gain-recoding", "greedy-containment"])
def test_ids_are_unique_and_everything_referred_to_is_there(mechanism):
    text = page_of(mechanism)
    page = Page(text)

    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    referred = {value[1:] for _, attributes in page.tags for name, value in attributes.items() if name == "href"}
    referred |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert not [name for name, n in ids.items() if n > 1]
    assert referred <= set(ids)
    assert len(referred) > 10


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["mondrian", "gain-recoding"])
def test_pictures_and_tables_can_be_read_without_seeing_them(mechanism):
    page = Page(page_of(mechanism, quick=mechanism != "mondrian"))

    assert page.of("svg")
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in page.of("svg"))
    assert all(cell["scope"] in ("col", "row", "rowgroup") for cell in page.of("th"))
    assert len(page.of("caption")) == len(page.of("table"))
    assert page.of("html") == [{"lang": "en"}]


@pytest.mark.slow
def test_the_same_release_gives_the_same_page():
    summary = summarize(made("mondrian"), stays(), quick=True)

    assert report_html(summary, made("mondrian").manifest) == page_of("mondrian")


@pytest.mark.slow
@pytest.mark.parametrize("external", [False, True], ids=["internal", "external"])
def test_hostile_names_stay_text(external):
    table = hostile_table()
    release = make_release(table, Mondrian(k=5))
    summary = summarize(release, table, quick=True)
    named = {**summary, "name": "<img src=x onerror=alert(1)>.csv"}

    text = report_html(for_others(named) if external else named, release.manifest)

    page = Page(text)
    shown = " ".join(page.words)
    assert {tag for tag, _ in page.tags} <= KNOWN
    assert "<script>alert(1)</script>" in shown
    assert "{{ 7 * 7 }}" in shown
    assert "x" * 200 in shown
    assert "\u202e" not in text
    assert "<img src=x onerror=alert(1)>.csv" in shown
    assert "canary" not in text


@pytest.mark.slow
def test_a_name_without_end_is_cut():
    table = hostile_table()
    release = make_release(table, Mondrian(k=5))
    summary = summarize(release, quick=True)
    summary["columns"]["changes"][0]["name"] = "y" * 5000

    text = report_html(summary, release.manifest)

    assert "y" * 199 + "…" in text
    assert "y" * 200 not in text


@pytest.mark.slow
def test_pictures_beyond_the_limit_are_left_out_and_said_to_be(monkeypatch):
    monkeypatch.setattr("sfumato.report.pictures.MOST_BYTES", 30_000)

    found = pictures_of(drawn(summary_of("gain-recoding"), made("gain-recoding").manifest))

    inlined = [picture for section in found.values() for picture in section]
    assert sum(len(picture["svg"].encode()) for picture in inlined) <= 30_000
    assert all("too large" in picture["alt"] for picture in inlined if not picture["svg"])
    assert not all(picture["svg"] for picture in inlined)


@pytest.mark.slow
def test_rounding_moves_nothing_by_more_than_a_hundredth():
    """Coordinates of the inlined picture are those of the file, in order, up to the rounding."""
    from unit.displays.breach_planes import pima_plane

    svg = rendered(pima_plane(), "svg")

    def places(text):
        found = re.findall(r'(?<=\s)(?:d|x|y)="([^"]*)"', text)
        return [float(number) for path in found for number in re.findall(r"-?\d+(?:\.\d+)?", path)]

    exact, short = places(svg.decode()), places(inline_svg(svg, prefix="p-", label="plane"))
    assert len(exact) == len(short) > 1000
    assert max(abs(a - b) for a, b in zip(exact, short, strict=True)) <= 0.005 + 1e-9


def test_notebooks_show_a_short_table():
    release = make_release(hostile_table(), Mondrian(k=5))

    page = Page(release._repr_html_())

    shown = " ".join(page.words)
    assert {tag for tag, _ in page.tags} == {"table", "caption", "tbody", "tr", "th", "td"}
    assert "60 of 60" in shown
    assert "1 dropped" in shown
    assert f"audit found k = {release.manifest.guarantees[0]['audited']}" in shown
    assert {"Promised", "Prediction", "Lost columns", "Re-identified", "Not covered"} <= set(page.words)


def test_a_release_plots_what_its_manifest_has_evidence_for():
    axes = made("gain-recoding").plot("information-gain")

    assert axes.get_title(loc="left").startswith("Information gain")


@pytest.mark.slow
def test_a_release_writes_its_own_report(tmp_path):
    written = made("mondrian").report(tmp_path / "report.html", original=stays(), quick=True)

    assert written.read_text(encoding="utf-8") == page_of("mondrian")
    with pytest.raises(OSError, match="exists already"):
        made("mondrian").report(tmp_path / "report.html", original=stays(), quick=True)
    made("mondrian").report(tmp_path / "report.html", original=stays(), quick=True, external=True, force=True)
    assert written.read_text(encoding="utf-8") == page_of("mondrian", external=True)
