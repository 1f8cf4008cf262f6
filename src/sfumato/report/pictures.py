"""Pictures of a report as inline SVG: no script, no metadata, nothing fetched, and ids that are unique in the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from sfumato.displays.base import Display, registered_displays, rendered
from sfumato.displays.class_sizes import ClassSizeDisplay
from sfumato.displays.risk import RiskCurve, RiskDisplay
from sfumato.displays.roc import RocDisplay
from sfumato.errors import SfumatoError
from sfumato.guarantees import KAnonymity
from sfumato.manifest import Manifest
from sfumato.report.guarantee_texts import NOT_MEASURED, share_in_words

MOST_BYTES = 260_000
"""Of all pictures, so that a report stays below 500 kB whatever the names in it."""

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_UNWANTED = ("metadata", "style", "title")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_TRANSLATION = re.compile(r"translate\([^)]*\)")
_PIXELS_PER_POINT = 4 / 3
_LEAST_WIDTH = 480


class Picture(NamedTuple):
    """A display as it was drawn; ``alt`` is the picture in a sentence, for those who do not see it."""

    section: str
    name: str
    title: str
    alt: str
    svg: bytes


def drawn(summary: Mapping[str, Any], manifest: Manifest) -> list[Picture]:
    """Draw what a summary and its manifest have figures for."""
    return [
        Picture(section, name, display.title, alt, rendered(display, "svg"))
        for section, name, alt, display in displays_of(summary, manifest)
    ]


def pictures_of(pictures: Sequence[Picture]) -> dict[str, list[dict[str, str]]]:
    """Make drawn pictures parts of a page, by section: ``utility``, ``risk`` and ``done``.

    Each picture has ``id``, ``title``, ``alt`` (the picture in a sentence, for those who do not see it) and ``svg``.
    One with which all would have more than 260 kB is left out, with its title and the reason in ``alt``.
    """
    n_left = MOST_BYTES
    found: dict[str, list[dict[str, str]]] = {"utility": [], "risk": [], "done": []}
    for number, (section, name, title, alt, whole) in enumerate(pictures):
        svg = inline_svg(whole, prefix=f"s{number}-", label=f"{title}. {alt}")
        if len(svg.encode()) > n_left:
            svg, alt = "", "This picture is too large for the report."
        n_left -= len(svg.encode())
        found[section].append({"id": f"picture-{name}", "title": title, "alt": alt, "svg": svg})
    return found


def displays_of(summary: Mapping[str, Any], manifest: Manifest) -> Iterator[tuple[str, str, str, Display]]:
    """Give section, name, sentence and display of every picture there are figures for."""
    utility, risk = summary["utility"], summary["risk"]
    if NOT_MEASURED not in utility and utility["roc"]:
        yield "utility", "roc", _roc_in_words(utility), _roc(utility)
    if NOT_MEASURED not in risk and risk["class_sizes"]:
        sizes, k = risk["class_sizes"], _promised_k(manifest)
        alt = f"Rows in groups of one: {_in_ones(sizes['before'])} before, {_in_ones(sizes['after'])} after."
        yield "risk", "class-sizes", alt, ClassSizeDisplay.from_distributions(sizes["after"], sizes["before"], k)
    if NOT_MEASURED not in risk and risk["curves"]:
        before, after = (_curve(risk["curves"][when]) for when in ("before", "after"))
        highest = [share_in_words(curve.risks[-1]) for curve in (before, after)]
        whose = "row, by the size of its" if after.counted == "rows" else "person, by the size of the person's"
        alt = f"Highest risk of a {whose} group: {highest[0]} before, {highest[1]} after."
        yield "risk", "risk-curve", alt, RiskDisplay(after, before, _promised_k(manifest))
    for name, kind in registered_displays().items():
        if kind.can_draw(manifest) and not kind.by_name_only:
            try:
                yield "done", name, f"{kind.shows[:1].upper()}{kind.shows[1:]}.", kind.from_manifest(manifest)
            except SfumatoError:
                continue  # another package's mechanism may state what the picture cannot show: it is left out


def _roc(utility: Mapping[str, Any]) -> RocDisplay:
    best = next(entry for entry in utility["classifiers"] if entry["name"] == utility["best"])
    areas = {when: best[when]["auc"]["mean"] if best[when]["auc"] else None for when in ("before", "after")}
    return RocDisplay.from_curves(
        utility["roc"]["after"],
        utility["roc"]["before"],
        auc_after=areas["after"],
        auc_before=areas["before"],
        classifier=best["title"],
    )


def _roc_in_words(utility: Mapping[str, Any]) -> str:
    best = next(entry for entry in utility["classifiers"] if entry["name"] == utility["best"])
    return f"Curves of {best['title']}, the classifier with the largest area before; the areas are in the table above."


def _curve(curve: Mapping[str, Any]) -> RiskCurve:
    return RiskCurve(tuple(curve["risks"]), tuple(curve["shares"]), curve["n_people"], curve["counted"])


def _in_ones(sizes: list[dict[str, Any]]) -> str:
    return f"{sum(entry['n_rows'] for entry in sizes if entry['to'] == 1):,}"


def _promised_k(manifest: Manifest) -> int | None:
    """Rows that a class of equal rows was promised to have."""
    return next((entry["k"] for entry in manifest.guarantees if entry.get("kind") == KAnonymity.kind), None)


def inline_svg(svg: bytes, *, prefix: str, label: str) -> str:
    """Make an SVG file fit for a place inside a page.

    Parameters
    ----------
    prefix : str
        Put before every id, so that two pictures in a page do not take each other's parts.
    label : str
        What a screen reader says.

    Examples
    --------
    >>> picture = b'<svg xmlns="http://www.w3.org/2000/svg"><g id="dot"/><g id="line" clip-path="url(#dot)"/></svg>'
    >>> inline_svg(picture, prefix="p", label="Dot")
    '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Dot"><g id="p0" /><g clip-path="url(#p0)" /></svg>'
    """
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in {f"{{{_SVG}}}{name}" for name in _UNWANTED}]:
            parent.remove(child)
    has_style = b"stroke-linejoin: round" in svg
    _rename_parts(root, prefix)
    for element in root.iter():
        _shorten_numbers(element)
    width = float(root.attrib.get("width", "0").removesuffix("pt")) * _PIXELS_PER_POINT
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    if width:
        root.set("style", f"width: min(100%, {width:.0f}px); min-width: {min(width, _LEAST_WIDTH):.0f}px")
    if has_style:
        root.set("stroke-linejoin", "round")
        root.set("stroke-linecap", "butt")
    root.set("role", "img")
    root.set("aria-label", label)
    return _as_html(root)


def _rename_parts(root: ET.Element, prefix: str) -> None:
    """Give parts that others refer to short ids under the prefix; all other ids go."""
    links = {element.attrib[_LINK].removeprefix("#") for element in root.iter() if _LINK in element.attrib}
    styles = {
        name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)
    }
    short = {name: f"{prefix}{number}" for number, name in enumerate(sorted(links | styles))}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in short:
            element.set("id", short[own])
        if _LINK in element.attrib:
            element.set("href", "#" + short[element.attrib.pop(_LINK).removeprefix("#")])
        for name, value in element.attrib.items():
            if "url(#" in value:
                element.set(name, _REFERENCE.sub(lambda found: f"url(#{short[found[1]]})", value))


def _shorten_numbers(element: ET.Element) -> None:
    """Round places to a hundredth of a point, which halves the picture; scales stay exact."""
    for name in ("d", "x", "y"):
        if name in element.attrib:
            element.set(name, _LONG_NUMBER.sub(_rounded, element.attrib[name]))
    if "transform" in element.attrib:
        whole = element.attrib["transform"]
        element.set("transform", _TRANSLATION.sub(lambda found: _LONG_NUMBER.sub(_rounded, found[0]), whole))


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _as_html(root: ET.Element) -> str:
    """Write elements without a prefix, as HTML wants them."""
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    attributes = dict(root.attrib)
    root.attrib.clear()
    root.attrib.update({"xmlns": _SVG} | attributes)
    return ET.tostring(root, encoding="unicode")
