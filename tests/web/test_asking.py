"""What the tests of the page ask with: it refuses a page that a strict browser would, and runs tasks as jobs do."""

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from sfumato.errors import InputError
from sfumato.web.jobs.process import TaskError
from web.asking import Site, ask
from web.standing_in import JobsAtOnce, small_project, start_for, store_job

REFUSED = {
    "inline script": "<script>go()</script>",
    "style element": "<style>p {}</style>",
    "style attribute": '<p style="color: red">a</p>',
    "style in a drawing": '<svg><rect style="fill: red"/></svg>',
    "handler": '<p onclick="go()">a</p>',
    "handler of a void element": '<img src="x" onerror="go()">',
    "id twice": '<p id="a">a</p><p id="a">b</p>',
    "left open": "<div><p>a</p>",
    "closed out of order": "<div><p>a</div></p>",
    "closed twice": "<p>a</p></p>",
}


def app_of(answer):
    async def answered(request):
        return answer

    return Starlette(routes=[Route("/{path:path}", answered, methods=["GET", "POST"])])


@pytest.mark.parametrize("html", REFUSED.values(), ids=REFUSED)
def test_a_page_that_breaks_the_rules_is_refused(html):
    with pytest.raises(AssertionError):
        ask(app_of(HTMLResponse(html, 422)), "GET", "/")


@pytest.mark.parametrize("html", REFUSED.values(), ids=REFUSED)
def test_what_is_no_page_of_this_site_is_not_looked_at(html):
    saved = HTMLResponse(html, headers={"Content-Disposition": 'attachment; filename="report.html"'})

    assert ask(app_of(saved), "GET", "/").text == ask(app_of(PlainTextResponse(html)), "GET", "/").text == html


def test_fields_and_texts_of_a_page_are_seen():
    html = (
        '<script src="/a.js"></script><form id="f"><input name="a" value="1&amp;2"><select name="b"><option value="x">'
        'x</option><option value="y" selected>y</option></select><input type="radio" name="c" value="1">'
        '<input type="radio" name="c" value="2" checked><p id="p">more &lt;b&gt;<br>\n text</p></form>'
    )
    answer = ask(app_of(HTMLResponse(html)), "GET", "/")

    assert answer.seen.values == {"a": "1&2", "b": "y", "c": "2"}
    assert answer.seen.texts["p"] == "more <b>\n text"
    assert answer.shown == "x y more <b> text"


def test_bytes_and_repeated_headers_arrive_as_they_were_sent():
    body = bytes(range(256))
    answer = Response(body)
    answer.set_cookie("a", "1")
    answer.set_cookie("b", "2")
    found = ask(app_of(answer), "GET", "/")

    assert found.body == body
    assert len(found.headers.getlist("set-cookie")) == 2


def test_address_and_form_arrive_as_a_server_passes_them_on():
    seen = []

    async def take(request):
        seen.append((request.url.path, request.scope["raw_path"], dict(request.query_params)))
        seen.append((await request.form()).multi_items())
        return PlainTextResponse("")

    app = Starlette(routes=[Route("/{path:path}", take, methods=["POST"])])
    ask(app, "POST", "/a%2Fb?c=%20d", form={"e": ["1", "é&"], "f": 2})

    assert seen == [("/a/b", b"/a%2Fb", {"c": " d"}), [("e", "1"), ("e", "é&"), ("f", "2")]]


def test_tasks_run_at_once_or_wait_and_fail_as_jobs_do(tmp_path):
    project = small_project(tmp_path / "work")
    site = Site(tmp_path / "page", jobs=JobsAtOnce(tmp_path / "jobs"))
    done = site.page.jobs.start("opening.open_path", title="t", project=str(project))
    failed = site.page.jobs.start("opening.open_path", title="t", project=str(tmp_path / "p.toml"), data="/nowhere.csv")
    waiting = start_for(site.page, "release")

    assert (done.status, done.result()["n_rows"]) == ("done", 60)
    assert (failed.status, failed.error.kind) == ("failed", InputError.__name__)
    assert (waiting.status, site.page.job("release")) == ("running", waiting)
    site.page.jobs.cancel(waiting.id)
    assert waiting.status == "cancelled"
    assert [task for task, _ in site.page.jobs.started] == ["opening.open_path"] * 2 + ["release.make"]


def test_a_stored_job_is_shown_again(tmp_path):
    error = TaskError("k cannot be met.", hint="take less", exit_code=4)
    store_job(tmp_path / "jobs" / "one", "release.make", result={"a": 1})
    store_job(tmp_path / "jobs" / "two", "release.make", status="failed", error=error)
    jobs = Site(tmp_path).page.jobs

    assert jobs.get("one").result() == {"a": 1}
    assert jobs.get("two").error.facts() == error.facts()
