"""Charts say what they were given, and are drawn under the page's content-security policy without a complaint."""

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sfumato.web.charts import frontier_spec, roc_spec
from web.real_browser import STATIC, PolicyHeaders, opened_eyes, served

HOSTILE = "<img src=x onerror=alert(1)> \"'&"

shares = st.one_of(st.just(0.0), st.floats(1e-5, 1, allow_nan=False))
points = st.lists(
    st.fixed_dictionaries(
        {
            "utility": st.one_of(st.none(), st.floats(0.3, 1)),
            "risk": shares,
            "n_columns": st.integers(0, 40),
            "mechanism": st.sampled_from("abcdefghijklmnop"),
            "on_front": st.booleans(),
        }
    ),
    max_size=12,
)


def as_points(drawn, recommended=None):
    return [
        {**one, "key": f"key{place}", "label": f"{one['mechanism']} k={place}", "recommended": place == recommended}
        for place, one in enumerate(drawn)
    ]


def marks(spec, kind):
    """Layers with a mark of a kind, at whatever depth."""
    found = [spec] if isinstance(spec.get("mark"), dict) and spec["mark"]["type"] == kind else []
    return found + [one for layer in spec.get("layer", []) for one in marks(layer, kind)]


# ---- what is in the specifications


@given(points, st.data())
def test_the_frontier_has_every_measured_release_once(drawn, data):
    chosen = data.draw(st.sampled_from([None, *(f"key{place}" for place in range(len(drawn)))]))
    recommended = data.draw(st.one_of(st.none(), st.integers(0, len(drawn))))
    spec = frontier_spec(as_points(drawn, recommended), chosen=chosen, original_utility=0.9)
    rows = {row["key"]: row for row in spec["data"]["values"]}
    assert set(rows) == {f"key{place}" for place, one in enumerate(drawn) if one["utility"] is not None}
    for key, row in rows.items():
        expected = (key == f"key{recommended}") * ["recommended"] + (key == chosen) * ["candidate"]
        assert row["mark"].split(" and ") == (expected or [""])


@given(points)
def test_the_line_is_the_most_utility_up_to_each_risk(drawn):
    measured = [one for one in drawn if one["utility"] is not None]
    (line,) = marks(frontier_spec(as_points(drawn)), "line")
    corners = line["data"]["values"]
    for one in measured:
        reached = max(other["utility"] for other in measured if other["risk"] <= one["risk"])
        height = [corner["utility"] for corner in corners if corner["risk"] <= one["risk"]][-1]
        assert height == reached
    assert bool(corners) == bool(measured)


@given(points)
def test_every_point_lies_on_the_axis_of_risks(drawn):
    risks = [one["risk"] for one in drawn if one["utility"] is not None]
    x = frontier_spec(as_points(drawn))["encoding"]["x"]
    low, high = x["scale"]["domain"]
    assert low < high
    assert all(low <= risk <= high for risk in risks)
    if x["scale"].get("type") == "log":
        assert low > 0
        assert "log scale" in x["title"]
    assert all(low <= tick <= high for tick in x["axis"].get("values", []))


def test_mechanisms_differ_in_colour_and_shape_together():
    drawn = [
        {"utility": 0.5, "risk": 0.1, "n_columns": 1, "mechanism": f"m{number:02}", "on_front": True}
        for number in range(50)
    ]
    (layer,) = [one for one in marks(frontier_spec(as_points(drawn)), "point") if "encoding" in one]
    looks = zip(*(layer["encoding"][part]["scale"]["range"] for part in ("stroke", "shape")), strict=True)
    assert len(set(looks)) == 50


def test_roc_curves_keep_the_order_of_their_points():
    """Points with the same rate of false positives form an upright line, which sorting by the rate could tangle."""
    curve = {"false_positive": [0, 0, 0.5, 1], "true_positive": [0, 0.4, 0.9, 1]}
    spec = roc_spec({"before": {**curve, "auc": 0.8125}, "after": curve})
    rows = spec["data"]["values"]
    assert [row["true_positive"] for row in rows if row["when"] == "before"] == curve["true_positive"]
    assert [row["place"] for row in rows] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert {row["curve"] for row in rows} == {"before: AUC 0.812", "after"}


# ---- drawn in a real browser

MANY = as_points(
    [
        {
            "utility": 0.6 + 0.01 * number,
            "risk": 0.0 if number == 0 else 10 ** (-number / 5),
            "n_columns": number,
            "mechanism": f"mechanism-{number % 9}",
            "on_front": number % 2 == 0,
        }
        for number in range(18)
    ],
    recommended=4,
)
ROC = {
    "before": {"false_positive": [0, 0, 0.3, 1], "true_positive": [0, 0.5, 0.9, 1], "auc": 0.86},
    "after": {"false_positive": [0, 0.4, 1], "true_positive": [0, 0.8, 1], "auc": 0.7},
}
SPECS = {
    "frontier": frontier_spec(MANY, original_utility=0.8, chosen="key7"),
    "one": frontier_spec(MANY[3:4]),
    "none": frontier_spec([]),
    "roc": roc_spec(ROC, classifier="naive Bayes"),
    "hostile": frontier_spec([{**MANY[3], "label": HOSTILE}]),
}
CONFIG = '{"allowEval": false, "includeIndicatorStyles": false, "selfRequestsOnly": true}'
HEAD = f"""<!doctype html><html lang="en"><head><title>charts</title><meta name="htmx-config" content='{CONFIG}'>
<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/page.css">
<script src="/static/vendor/htmx.min.js" defer></script><script src="/static/charts.js" defer></script></head><body>"""
OVER = "[...document.querySelectorAll('.chart')].every(chart => chart.dataset.state)"
STATES = (
    "() => Object.fromEntries([...document.querySelectorAll('.chart')].map(chart => [chart.id, chart.dataset.state]))"
)


def chart(name, spec, more=""):
    said = html.escape(json.dumps(spec))
    return f'<div class="chart" id="{name}" data-spec="{said}" aria-label="Chart {name}" {more}></div>'


@pytest.fixture(scope="module")
def origin():
    posted = []

    async def page(request):
        click = 'data-click-url="/clicked" data-click-target="#answer"'
        body = "".join(chart(name, spec, click) for name, spec in SPECS.items())
        by_url = '<div class="chart" id="fetched" data-spec-url="/spec.json"></div>'
        swap = '<button hx-get="/part" hx-target="#part">Swap</button><div id="part"></div><p id="answer"></p>'
        return HTMLResponse(f"{HEAD}{body}{by_url}{swap}")

    async def faulty(request):
        return HTMLResponse(f"{HEAD}{chart('faulty', {'mark': 'nothing'})}")

    async def part(request):
        return HTMLResponse(chart("swapped", frontier_spec(MANY, chosen=f"key{len(posted)}")))

    async def clicked(request):
        posted.append((await request.form())["key"])
        return HTMLResponse(f"chosen: {html.escape(posted[-1])}")

    async def spec(request):
        return JSONResponse(SPECS["roc"])

    routes = [
        Route("/", page),
        Route("/faulty", faulty),
        Route("/part", part),
        Route("/clicked", clicked, methods=["POST"]),
        Route("/spec.json", spec),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    with served(Starlette(routes=routes, middleware=[Middleware(PolicyHeaders)])) as where:
        yield where


@pytest.fixture(scope="module")
def look_at():
    with opened_eyes() as eyes:
        yield eyes.look_at


def test_all_charts_are_drawn_without_a_complaint(origin, look_at):
    def look(tab):
        tab.wait_for_function(OVER)
        assert set(tab.evaluate(STATES).values()) == {"drawn"}
        assert tab.locator("#frontier .mark-symbol.role-mark.layer_3_marks path").count() == len(MANY)
        assert tab.locator("#fetched path").count() == tab.locator("#roc path").count() > 0
        assert tab.locator("#none .mark-symbol.role-mark path").count() == 0

    look_at(origin, "/", look)


def test_charts_have_words_for_those_who_do_not_see_them(origin, look_at):
    def look(tab):
        tab.wait_for_function(OVER)
        drawing = tab.get_by_role("img", name="Chart roc")
        assert drawing.locator("svg").count() == 1
        assert tab.get_by_role("img", name="ROC of naive Bayes").count() == 1
        details = tab.locator("#roc details")
        details.locator("summary").click()
        lines = [line.split("\t") for line in details.locator("table").inner_text().splitlines()]
        assert [line[0] for line in lines[1:]] == ["before"] * 4 + ["after"] * 3
        assert [[float(cell) for cell in line[1:]] for line in lines[5:]] == [[0, 0], [0.4, 0.8], [1, 1]]

    look_at(origin, "/", look)


def test_a_tip_shows_and_a_click_sends_the_key(origin, look_at):
    def look(tab):
        tab.wait_for_function(OVER)
        point = tab.locator("#frontier .mark-symbol.role-mark path[aria-label*='k=11']").first
        point.hover()
        tip = tab.locator(".chart-tip")
        tip.wait_for(state="visible")
        assert "mechanism-2 k=11" in tip.inner_text()
        point.click()
        tab.get_by_text("chosen: key11").wait_for()
        tab.mouse.move(1, 1)
        tip.wait_for(state="hidden")
        tab.locator("#hostile .mark-symbol.role-mark path").first.hover()
        tip.wait_for(state="visible")
        assert HOSTILE in tip.inner_text()
        assert tip.locator("img").count() == 0

    look_at(origin, "/", look)


def test_a_chart_that_is_swapped_in_is_drawn_each_time(origin, look_at):
    def look(tab):
        tab.wait_for_function(OVER)
        for _ in range(3):
            tab.get_by_role("button", name="Swap").click()
            tab.locator("#swapped[data-state=drawn]").wait_for()
            assert tab.locator("#part svg").count() == 1
            tab.evaluate("document.querySelector('#swapped').id = 'old'")

    look_at(origin, "/", look)


def test_colours_follow_the_scheme_without_a_new_drawing(origin, look_at):
    colour = "() => getComputedStyle(document.querySelector('#frontier .mark-symbol.role-mark path')).stroke"

    def look(tab):
        tab.emulate_media(color_scheme="light")
        tab.wait_for_function(OVER)
        tab.evaluate("document.querySelector('#frontier svg').dataset.same = 'yes'")
        light = tab.evaluate(colour)
        tab.emulate_media(color_scheme="dark")
        assert tab.locator("#frontier svg[data-same]").count() == 1
        return light, tab.evaluate(colour)

    light, dark = look_at(origin, "/", look)
    assert light == "rgb(0, 114, 178)"
    assert dark != light


def test_a_chart_that_cannot_be_drawn_says_so(origin, look_at):
    def look(tab):
        tab.wait_for_function(OVER)
        assert "could not be drawn" in tab.locator("#faulty").inner_text()

    look_at(origin, "/faulty", look)
