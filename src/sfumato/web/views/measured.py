"""Utility and Risk: what a release kept and what it left, against the original. Rows are shown on this page only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from sfumato.web.charts import roc_spec
from sfumato.web.column_store import ColumnStore, Record
from sfumato.web.made_release import MadeRelease, made_release, missing_response
from sfumato.web.rendering import UNPROCESSABLE, page_of, page_response, part_response, redirect

ROWS_A_PAGE = 50
MOST_COLUMNS = 40
MOST_FEATURES = 8
"""Released columns that are shown of one column of the original."""

_FIRST_COLUMNS = 10


async def utility(request: Request) -> Response:
    """Show scores of classifiers, distributions of a column, and rows, before and after."""
    made = made_release(page_of(request))
    if made is None:
        return missing_response(request, step="utility", title="Utility")
    columns, asked = made.columns, request.query_params
    chosen, unknown = _chosen_columns(columns, asked.get("show", ""), asked.get("add", ""))
    if asked.get("add") and not unknown:
        return redirect(f"/utility?{_query(chosen, asked.get('column', ''), 1)}#rows")
    name = asked.get("column") or next(iter(columns.names(n=1)), "")
    shown = columns.named(name)
    return page_response(
        request,
        "utility.html",
        step="utility",
        status=UNPROCESSABLE if unknown or (name and shown is None) else 200,
        summary=made.summary,
        measuring=made.measuring,
        changed=made.changed_since(page_of(request).state.project),
        n_columns=len(columns),
        names=columns.names(),
        column=name,
        distribution=_distribution(shown) if shown else None,
        unknown=unknown,
        rows=_rows(made, columns.numbered(chosen), _whole(asked.get("page", ""), 1)),
        link=lambda numbers=chosen, column=name, page=1: f"/utility?{_query(numbers, column, page)}",
        chosen=chosen,
        most_columns=MOST_COLUMNS,
    )


async def column_names(request: Request) -> Response:
    """Suggest columns whose names contain what was typed."""
    made = made_release(page_of(request))
    typed = request.query_params.get("column") or request.query_params.get("add") or ""
    return part_response(request, "utility_names.html", names=made.columns.names(typed) if made else [])


async def roc_chart(request: Request) -> Response:
    """Give the ROC curves of the best classifier as a chart."""
    made = made_release(page_of(request))
    curves = made.summary["utility"].get("roc") if made else None
    if made is None or curves is None:
        raise HTTPException(404)
    found = made.summary["utility"]
    best = next(entry for entry in found["classifiers"] if entry["name"] == found["best"])
    areas = {when: best[when]["auc"]["mean"] if best[when]["auc"] else None for when in curves}
    return JSONResponse(
        roc_spec({when: {**curve, "auc": areas[when]} for when, curve in curves.items()}, classifier=best["title"])
    )


async def risk(request: Request) -> Response:
    """Show what attackers reach before and after, what is promised, and what is not."""
    made = made_release(page_of(request))
    if made is None:
        return missing_response(request, step="risk", title="Risk")
    attacks = groupby(made.summary["risk"].get("rows", ()), key=itemgetter("group"))
    return page_response(
        request,
        "risk.html",
        step="risk",
        summary=made.summary,
        measuring=made.measuring,
        attacks=[(group, list(rows)) for group, rows in attacks],
        pictures=made.pictures("risk"),
        changed=made.changed_since(page_of(request).state.project),
    )


def _chosen_columns(columns: ColumnStore, listed: str, added: str) -> tuple[list[int], str]:
    """Give the numbers of the columns whose cells are shown, and a name that was to be added and is not known."""
    numbers = [_whole(part, 0) for part in listed.split(",") if part] or columns.first_numbers(_FIRST_COLUMNS)
    record = columns.named(added) if added else None
    if record is not None:
        numbers = [record["number"], *numbers]
    return list(dict.fromkeys(numbers))[:MOST_COLUMNS], added if record is None else ""


def _query(numbers: Sequence[int], column: str, page: int) -> str:
    return urlencode({"column": column, "show": ",".join(map(str, numbers)), "page": page}, safe=",")


def _whole(text: str, otherwise: int) -> int:
    """Read a small whole number above 0 out of an address, which may hold anything."""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 else otherwise


def _distribution(record: Record) -> dict[str, Any]:
    """Lay the released rows over the bars of the original; ranges and sets are spread over the values they cover."""
    before, after, mass = record["before"], record["after"], record.get("mass")
    is_same = before is not None and len(after) == 1 and set(after[0]["labels"]) <= set(before["labels"])
    if mass is None and is_same:  # a 0/1 feature
        counts = dict(zip(after[0]["labels"], after[0]["counts"], strict=True))
        mass = [counts.get(label, 0) for label in before["labels"]]
    paired = []
    if before is not None and mass is not None:
        paired = [
            {"label": label, "before": count, "after": rows}
            for label, count, rows in zip(before["labels"], before["counts"], mass, strict=True)
        ]
    return {
        **{name: record[name] for name in ("name", "role", "change", "is_released")},
        "detail_left": record.get("detail_left"),
        "before": _bars(before) if before is not None else None,
        "after": [_bars(side) for side in after[:MOST_FEATURES]],
        "n_left_out": max(0, len(after) - MOST_FEATURES),
        "paired": paired,
        "is_paired": mass is not None,
        "n_rows": {"before": _n_rows(before), "after": _n_rows(after[0]) if after else 0},
        "n_most": max([rows for row in paired for rows in (row["before"], row["after"])], default=0),
    }


def _bars(side: Record) -> dict[str, Any]:
    bars = [{"label": label, "count": n} for label, n in zip(side["labels"], side["counts"], strict=True)]
    return {**{name: side[name] for name in ("name", "n_missing")}, "bars": bars, "n_rows": _n_rows(side)}


def _n_rows(side: Record | None) -> int:
    return sum(side["counts"]) + side["n_missing"] if side is not None else 0


def _rows(made: MadeRelease, records: Sequence[Record], page: int) -> dict[str, Any]:
    """Cut a page out of the rows that are kept, as the groups of cells that stand under each column."""
    facts = made.result["rows"]
    n_pages = max(1, -(-facts["n_shown"] // ROWS_A_PAGE))
    page = min(page, n_pages)
    first = (page - 1) * ROWS_A_PAGE
    last = min(first + ROWS_A_PAGE, facts["n_shown"])
    suppressed = set(facts["suppressed"])
    return {
        **{name: facts[name] for name in ("n_shown", "n_original", "n_released", "is_matched", "note")},
        "page": page,
        "n_pages": n_pages,
        "first": first,
        "last": last,
        "groups": [_group(record) for record in records],
        "suppressed": [row in suppressed for row in range(first, last)],
    }


def _group(record: Record) -> dict[str, Any]:
    """One column with its released ones; a cell is marked as changed where the two can be compared."""
    after = record["after"][:MOST_FEATURES]
    before = record["before"]["cells"] if record["before"] is not None else None
    is_alone = before is not None and [side["name"] for side in after] == [record["name"]]
    return {
        **{name: record[name] for name in ("number", "name", "change")},
        "before": before,
        "after": [{"name": side["name"], "cells": side["cells"]} for side in after],
        "is_alone": is_alone,
        "n_left_out": max(0, len(record["after"]) - MOST_FEATURES),
    }


# Pictures that a job has left in its folder.


PURPOSES = frozenset({"compare", "release"})
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")


async def picture(request: Request) -> Response:
    """Send one picture of the latest job of a purpose."""
    purpose, name = request.path_params["purpose"], request.path_params["name"]
    job = page_of(request).job(purpose) if purpose in PURPOSES else None
    if job is None or not job.has_result or not _NAME.fullmatch(name):
        raise HTTPException(404)
    path = job.folder / f"{name}.svg"
    if path.is_symlink() or not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, media_type="image/svg+xml")


ROUTES = [
    Route("/utility", utility),
    Route("/utility/names", column_names),
    Route("/utility/roc.json", roc_chart),
    Route("/risk", risk),
    Route("/pictures/{purpose}/{name}.svg", picture),
]
