"""A summary as one HTML file that can be read, printed and filed: no script, no request, no font to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.atomic import check_writable, write_atomically
from sfumato.errors import on_one_line
from sfumato.manifest import AnyTable, Manifest
from sfumato.mechanisms.base import Release
from sfumato.progress import Progress
from sfumato.report.guarantee_texts import NOT_MEASURED, NOTHING, number_in_words, share_in_words
from sfumato.report.pictures import Picture, drawn, pictures_of
from sfumato.report.summarize import summarize

if TYPE_CHECKING:
    from jinja2 import Environment


# The summary for others: what the manifest tells anyway and a few headline figures, no detail of small groups.


WITHHELD = "figures from the original would disclose more than the noise allows"


def for_others(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what only the data holder should see.

    Left out are how much detail of each column is left, single checks, recalls of classes, sizes of groups, risk by few
    columns, the columns to blame, columns that told something before, and the shell line with its paths. Dropped
    columns are named, as the manifest names them (decision 0005). Of a release whose rows were drawn with noise nothing
    that was measured beside the original is told: a promise of differential privacy would not hold for it.
    """
    is_synthetic = summary["done"]["is_synthetic"]
    reproduction = {**summary["reproduction"], "command": None, "notes": []}
    columns = [{**change, "detail_left": None} for change in summary["columns"]["changes"]]
    return {
        **summary,
        "audience": "external",
        "verdict": summary["verdict_for_others"],
        "audit": {**summary["audit"], "checks": []},
        "utility": {NOT_MEASURED: WITHHELD} if is_synthetic else _utility(summary["utility"]),
        "risk": {NOT_MEASURED: WITHHELD} if is_synthetic else _risk(summary["risk"]),
        "columns": {**summary["columns"], "changes": columns},
        "reproduction": reproduction,
    }


def _utility(utility: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_MEASURED in utility:
        return dict(utility)
    return {**utility, "classifiers": [{**entry, "recall": []} for entry in utility["classifiers"]]}


def _risk(risk: Mapping[str, Any]) -> dict[str, Any]:
    if NOT_MEASURED in risk:
        return dict(risk)
    rows = [row for row in risk["rows"] if not row["detail"]]
    return {**risk, "rows": rows, "class_sizes": None, "curves": None, "blame": []}


LONGEST_NAME = 200
LONGEST_SENTENCE = 1_000


def write_report(
    release: Release,
    path: str | Path,
    *,
    original: AnyTable | None = None,
    external: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    **more: Any,
) -> Path:
    """Write the report of a release.

    Parameters
    ----------
    original : Table or BinaryTable or None
        With it utility and risk are measured.
    external : bool
        Whether to write the version for others, which tells less; of a differentially private release nothing that
        depends on the original.
    force : bool
        Whether a file that exists is replaced.
    more
        Passed to :func:`sfumato.report.summarize.summarize`.

    Raises
    ------
    AuditFailedError
        If the audit does not confirm the release.
    OutputError
        If the file exists and ``force`` is off, or cannot be written.
    """
    target = Path(path)
    check_writable(target, force=force)
    if external and release.manifest.is_differentially_private:
        # Nothing for others may depend on the rows: neither the original nor what was found beside it is looked at.
        original, more = None, {name: given for name, given in more.items() if name not in ("audit", "asked")}
    summary = summarize(release, original, progress=progress, **more)
    html = report_html(for_others(summary) if external else summary, release.manifest)
    write_atomically(target, html.encode(), force=force)
    return target


def report_html(summary: Mapping[str, Any], manifest: Manifest, pictures: Sequence[Picture] | None = None) -> str:
    """Render a summary, with its pictures if they are drawn already; the same one gives the same text."""
    from markupsafe import Markup

    inlined = pictures_of(drawn(summary, manifest) if pictures is None else pictures)
    for of_section in inlined.values():
        for picture in of_section:
            picture["svg"] = Markup(picture["svg"])  # our own drawing, with every text in it escaped
    return _environment().get_template("report.html").render(summary=summary, pictures=inlined)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sfumato.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": _name,
        "sentence": _sentence,
        "number": _number,
        "share": share_in_words,
        "score": _score,
        "amount": _amount,
    }
    return environment


def _name(text: str) -> str:
    """Show a column's name on one line, and not without end."""
    shown = on_one_line(text)
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def _sentence(text: str) -> str:
    """Show a sentence, which may hold names, on one line; spaces that hold a number and its unit together stay."""
    shown = "\u00a0".join(on_one_line(part) for part in text.split("\u00a0"))
    return shown if len(shown) <= LONGEST_SENTENCE else shown[: LONGEST_SENTENCE - 1] + "…"


def _number(value: Any) -> str:
    return NOTHING if value is None else number_in_words(value)


def _score(found: Mapping[str, float] | None) -> str:
    r"""Write a mean with its interval, which no line end divides.

    Examples
    --------
    >>> _score({"mean": 0.75, "low": 0.7, "high": 0.8}).replace("\xa0", " ")
    '0.750 (0.700 to 0.800)'
    """
    if found is None or found["mean"] is None:
        return NOTHING
    return f"{found['mean']:.3f} ({found['low']:.3f}\u00a0to\u00a0{found['high']:.3f})"


def _amount(value: float | None, unit: str) -> str:
    return share_in_words(value) if unit == "share" else _number(value)
