"""Small releases for the tests of the report."""

from functools import cache

import pyarrow as pa

from sfumato.datasets.admissions import admissions
from sfumato.mechanisms.registry import build_mechanism
from sfumato.publishing.propose import make_release
from sfumato.report.render import for_others, report_html
from sfumato.report.summarize import summarize
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table

NAMES = ["name", "age", "sex", "insurance", "smoker", "diabetes", "discharge_diagnosis", "readmitted"]
DP_PLAN = {
    "unlisted": "drop",
    "columns": dict.fromkeys(("smoker", "diabetes"), "as-is"),
}
PARAMETERS = {
    "laplace-dp": {"binarize": DP_PLAN, "n_features": 2, "epsilon": 2.0},
    "exponential-dp": {"binarize": DP_PLAN, "n_features": 2, "epsilon": 2.0},
}


@cache
def stays():
    return admissions(n_rows=160).keep(NAMES)


@cache
def made(mechanism):
    return make_release(stays(), build_mechanism(mechanism, PARAMETERS.get(mechanism, {})))


@cache
def summary_of(mechanism, quick=True):
    return summarize(made(mechanism), stays(), quick=quick)


@cache
def page_of(mechanism, *, quick=True, external=False):
    """Render a page once for all tests that read it: most of the time goes into its pictures."""
    summary = summary_of(mechanism, quick)
    return report_html(for_others(summary) if external else summary, made(mechanism).manifest)


HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" 'name' & more",
    "\u202eabc \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "x" * 200,
    "</style><b>",
    "{{ 7 * 7 }}",
    "line\nend\ttab",
)


def hostile_table():
    """Make a table whose column names try to break a page."""
    n = 60
    cells = {name: [str((row * (place + 2)) % 3) for row in range(n)] for place, name in enumerate(HOSTILE)}
    cells["who"] = [f"canary {row}" for row in range(n)]
    cells["ill"] = ["yes" if row % 3 else "no" for row in range(n)]
    columns = [Column(name, Role.QUASI_IDENTIFIER) for name in HOSTILE]
    columns += [Column("who", Role.IDENTIFIER), Column("ill", Role.TARGET)]
    return Table.from_arrow(pa.table(cells), Schema.of(columns))
