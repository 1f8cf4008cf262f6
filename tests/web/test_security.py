"""Every rule at the door of the page, as requests: who is let in, who is not, and what every answer carries."""

import asyncio
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sfumato.errors import InvalidParameterError
from sfumato.web.security import PageSecurity
from sfumato.web.settings import PageSettings, size_in_bytes
from web import asking

TOKEN = "a-secret-of-many-characters"
HOST = "127.0.0.1:8050"
OWN = f"http://{HOST}"
EXPECTED_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
CHANGED = []
FORM, UPLOADS = "/take", ("/open/upload", "/columns/{number:int}/hierarchy")


async def _look(request):
    return PlainTextResponse("seen", headers={"Cache-Control": "public, max-age=9999"})


async def _change(request):
    CHANGED.append(request.method)
    return RedirectResponse("/look", 303)


async def _take(request):
    return PlainTextResponse(str(len(await request.body())))


async def _status(request):
    return PlainTextResponse("so", int(request.path_params["code"]))


async def _fail(request):
    raise ValueError("secret cell 4711")


async def _fail_late(request):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("secret cell 4711")

    return app


def make_app(folder, **changes):
    settings = PageSettings(**{"port": 8050, "token": TOKEN} | changes)
    routes = [
        Route("/", _look),
        Route("/look", _look),
        Route("/change", _change, methods=["POST", "PUT", "PATCH", "DELETE"]),
        *(Route(path, _take, methods=["POST"]) for path in (FORM, *UPLOADS)),
        Route("/status/{code}", _status),
        Route("/fail", _fail),
        Route("/fail-late", _fail_late),
        Mount("/static", StaticFiles(directory=folder)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(PageSecurity, settings=settings)])


@pytest.fixture
def app(tmp_path):
    CHANGED.clear()
    (tmp_path / "page.css").write_text("p {}")
    return make_app(tmp_path)


def ask(app, target="/look", method="GET", headers=(), host=HOST):
    """Send one request with a Host line, or without where it is ``None``."""
    lines = [("host", host)] if host is not None else []
    return asking.ask(app, method, target, headers=[*lines, *dict(headers).items()])


def cookie_of(app, host=HOST):
    _, headers, _ = ask(app, f"/?token={TOKEN}", host=host)
    return {"Cookie": headers["set-cookie"].partition(";")[0]}


def check_headers(headers):
    for name, value in EXPECTED_HEADERS.items():
        assert headers.getlist(name) == [value], name
    assert "permissions-policy" in headers


@pytest.mark.parametrize("host", [HOST, "localhost:8050", "LocalHost:8050", "[::1]:8050"])
def test_own_names_are_answered(app, host):
    assert ask(app, headers=cookie_of(app, host), host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8050",
        "127.0.0.1",
        "127.0.0.1:8051",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:8050",
        "localhost.evil.example:8050",
        "evil@127.0.0.1:8050",
        "0.0.0.0:8050",
        "[::2]:8050",
        "",
    ],
)
def test_other_names_are_refused_even_with_the_token(app, host):
    """DNS rebinding gives an attacker's name our address; the name is what tells."""
    assert ask(app, headers=cookie_of(app), host=host).status == 421
    status, headers, _ = ask(app, f"/?token={TOKEN}", host=host)
    assert status == 421
    assert "set-cookie" not in headers


def test_no_or_two_hosts_are_refused(app):
    assert ask(app, headers=cookie_of(app), host=None).status == 400
    assert ask(app, headers={"Host": HOST, **cookie_of(app)}, host=HOST).status == 400


def test_allowed_names_and_usual_ports(tmp_path):
    app = make_app(tmp_path, allowed_hosts=("Page.Example",), port=80)

    assert ask(app, host="page.example", headers=cookie_of(app, "page.example")).status == 200
    assert ask(app, host="page.example:80", headers=cookie_of(app, "page.example")).status == 200
    assert ask(app, host="page.example:8050", headers=cookie_of(app, "page.example")).status == 421


@pytest.mark.parametrize("target", ["/", "/look", "/static/page.css", "/nowhere", "/look?token=", "/look?token=wrong"])
def test_without_token_nothing_is_shown(app, target):
    status, headers, body = ask(app, target)

    assert status == 403
    assert "seen" not in body
    assert "sfumato serve" in body
    assert "set-cookie" not in headers


def test_token_becomes_a_strict_cookie_and_leaves_the_address(app):
    status, headers, _ = ask(app, f"/look?sort=age&token={TOKEN}&page=2")
    cookie = headers["set-cookie"]

    assert status == 303
    assert headers["location"] == "/look?sort=age&page=2"
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert parts == {"httponly", "samesite=strict", "path=/"}
    assert TOKEN not in cookie
    assert ask(app, headers={"Cookie": cookie.partition(";")[0]}).status == 200


def test_cookie_is_secure_with_tls(tmp_path):
    app = make_app(tmp_path, tls_cert=tmp_path / "a", tls_key=tmp_path / "b")

    assert "secure" in ask(app, f"/?token={TOKEN}").headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example", "/a\r\nX: y"])
def test_first_visit_never_leads_elsewhere(app, path):
    location = ask(app, f"{path}?token={TOKEN}").headers["location"]

    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))
    assert "\n" not in location


def test_link_from_another_site_leads_on_by_a_page_of_ours(app):
    """A redirect would still count as the other site's request, and browsers would send no strict cookie with it."""
    status, headers, body = ask(app, f"/look?a=1&token={TOKEN}&b=2", headers={"Sec-Fetch-Site": "cross-site"})

    assert status == 200
    assert 'content="0; url=/look?a=1&amp;b=2"' in body
    assert TOKEN not in body
    assert "set-cookie" in headers
    check_headers(headers)


@pytest.mark.parametrize("change", [str.upper, lambda v: v[:-1], lambda v: v + "0", lambda v: "é" + v, lambda v: ""])
def test_changed_cookie_is_refused(app, change):
    name, _, value = cookie_of(app)["Cookie"].partition("=")

    assert ask(app, headers={"Cookie": f"{name}={change(value)}"}).status == 403


def test_cookie_is_found_among_odd_ones(app):
    assert ask(app, headers={"Cookie": f'other="x y; {{[}}; a=1; {cookie_of(app)["Cookie"]}; =; b'}).status == 200


def test_cookie_of_another_server_or_port_is_refused(app, tmp_path):
    other_token = make_app(tmp_path, token="another-secret-of-many-characters")
    other_port = make_app(tmp_path, port=8051)

    assert ask(other_token, headers=cookie_of(app)).status == 403
    assert ask(other_port, headers=cookie_of(app), host="127.0.0.1:8051").status == 403


def test_token_itself_is_no_cookie_and_opens_no_change(app):
    name = cookie_of(app)["Cookie"].partition("=")[0]

    assert ask(app, headers={"Cookie": f"{name}={TOKEN}"}).status == 403
    assert ask(app, f"/change?token={TOKEN}", "POST", {"Sec-Fetch-Site": "same-origin"}).status == 403
    assert not CHANGED


def test_ticket_opens_the_door_once(tmp_path):
    """The browser's address is in the list of processes: whoever reads it there comes too late."""
    app = make_app(tmp_path, ticket="a-ticket")

    assert ask(app, "/?token=a-ticket", "HEAD").status == 403
    status, headers, _ = ask(app, "/?token=a-ticket")
    assert status == 303
    assert ask(app, headers={"Cookie": headers["set-cookie"].partition(";")[0]}).status == 200
    assert ask(app, "/?token=a-ticket").status == 403
    assert ask(app, "/?token=").status == 403
    assert ask(app, f"/?token={TOKEN}").status == 303


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        {"Sec-Fetch-Site": "same-origin", "Origin": OWN},
        {"Sec-Fetch-Site": "same-origin", "Origin": "null"},  # a browser that hides where our own forms are
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": OWN},
    ],
)
def test_own_changes_pass(app, method, origin):
    assert ask(app, "/change", method, {**cookie_of(app), **origin}).status == 303
    assert [method] == CHANGED


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": OWN},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8051"},
        {"Origin": "https://127.0.0.1:8050"},
        {"Origin": "http://localhost:8050"},
        {"Origin": f"{OWN}.evil.example"},
        {"Referer": f"{OWN}/look"},
        {},
    ],
)
def test_changes_from_elsewhere_are_refused(app, method, origin):
    assert ask(app, "/change", method, {**cookie_of(app), **origin}).status == 403
    assert not CHANGED


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "CONNECT", "PROPFIND", "get", "FOO"])
def test_other_methods_are_refused(app, method):
    headers = {**cookie_of(app), "Sec-Fetch-Site": "same-origin"}

    status, answered, _ = ask(app, "/change", method, headers)

    assert status == 405
    assert "POST" in answered["allow"]
    assert not CHANGED


@pytest.mark.parametrize("is_announced", [True, False])
@pytest.mark.parametrize(
    ("path", "kind", "size", "status"),
    [
        (FORM, asking.FORM, 1_000_000, 200),
        (FORM, asking.FORM, 1_000_001, 413),
        (FORM, asking.MULTIPART, 1_000_001, 413),
        ("/open/upload", asking.MULTIPART, 3_000_000, 200),
        ("/open/upload", asking.FORM, 1_000_001, 413),
        ("/columns/12/hierarchy", asking.MULTIPART, 3_000_000, 200),
        ("/columns/12/hierarchy", asking.FORM, 1_000_001, 413),
        ("/columns/12/hierarchy", asking.MULTIPART.title(), 1_000_001, 413),
    ],
)
def test_what_is_sent_has_a_limit_but_for_uploads(app, path, kind, size, status, is_announced):
    headers = [("host", HOST), ("origin", OWN), ("content-type", kind), *cookie_of(app).items()]
    length = [("content-length", str(size))] if is_announced else []

    answer = asking.ask(app, "POST", path, body=b"x" * size, headers=[*headers, *length])

    assert answer.status == status
    assert answer.text == str(size) if status == 200 else "larger than the page takes" in answer.text
    check_headers(answer.headers)


def test_looking_changes_nothing(app):
    assert ask(app, "/change", headers=cookie_of(app)).status == 405
    assert not CHANGED


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        ("/look", "GET", 200),
        ("/look", "HEAD", 200),
        ("/static/page.css", "GET", 200),
        (f"/?token={TOKEN}", "GET", 303),
        ("/change", "POST", 303),
        ("/change", "TRACE", 405),
        ("/nowhere", "GET", 404),
        ("/static/nowhere.css", "GET", 404),
        ("/look", "POST", 405),
        ("/status/413", "GET", 413),
        ("/status/422", "GET", 422),
        ("/fail", "GET", 500),
    ],
)
def test_every_answer_carries_the_headers_once(app, target, method, status):
    found, headers, _ = ask(app, target, method, {**cookie_of(app), "Sec-Fetch-Site": "same-origin"})

    assert found == status
    check_headers(headers)


def test_refusals_carry_the_headers_too(app):
    for answer in (ask(app), ask(app, host="evil.example"), ask(app, host=None), ask(app, "/change", "POST")):
        assert answer.status in (400, 403, 421)
        check_headers(answer.headers)


def test_unexpected_errors_keep_their_text_to_themselves(app, caplog):
    with caplog.at_level(logging.DEBUG):
        _, _, body = ask(app, "/fail", headers=cookie_of(app))
        ask(app, "/fail-late", headers=cookie_of(app))

    assert "4711" not in body + caplog.text
    assert "ValueError in test_security.py" in caplog.text
    assert TOKEN not in caplog.text


def test_page_for_bugs_can_be_given_and_may_fail(tmp_path, caplog):
    async def words(request, error):
        return PlainTextResponse(f"sorry {type(error).__name__} {request.url.path}", 500)

    async def broken(request, error):
        raise KeyError("secret cell 4711")

    settings = PageSettings(port=8050, token=TOKEN)
    for page, expected in ((words, "sorry ValueError /x"), (broken, "bug in sfumato")):
        app = PageSecurity(_raise, settings, page)
        status, headers, body = ask(app, "/x", headers=cookie_of(app))

        assert status == 500
        assert expected in body
        check_headers(headers)
    assert "4711" not in caplog.text


async def _raise(scope, receive, send):
    raise ValueError("secret cell 4711")


def test_web_sockets_are_closed(app):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(PageSecurity(_raise, PageSettings(port=8050))({"type": "websocket"}, None, send))

    assert [message["type"] for message in sent] == ["websocket.close"]


def test_settings_hide_and_make_the_token():
    first, second = PageSettings(), PageSettings()

    assert len(first.token) >= 40
    assert first.token != second.token
    assert first.token not in repr(first)
    assert first.ticket not in repr(first)
    assert len({first.ticket, second.ticket, first.token, ""}) == 4


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.3", "page.example", "localhost.example"])
def test_reachable_addresses_need_token_tls_and_a_folder(tmp_path, host):
    tls = {"tls_cert": tmp_path / "a", "tls_key": tmp_path / "b"}
    root = {"root": tmp_path}
    for changes in ({}, {"token": TOKEN}, tls, {"token": TOKEN, **tls}, {"token": TOKEN, **root}, {**tls, **root}):
        with pytest.raises(InvalidParameterError, match="host must be"):
            PageSettings(host=host, **changes)

    settings = PageSettings(host=host, token=TOKEN, allowed_hosts=("page.example",), port=9, **tls, **root)

    assert "page.example:9" in settings.authorities
    assert not {"127.0.0.1:9", "localhost:9", "0.0.0.0:9"} & settings.authorities


@pytest.mark.parametrize(
    "changes",
    [
        {"port": -1},
        {"port": 65536},
        {"token": "short"},
        {"token": "é" * 30},
        {"token": "a b\n" * 10},
        {"upload_limit": 0},
        {"tls_cert": "a"},
        {"tls_key": "a"},
        {"host": "http://127.0.0.1"},
        {"host": ""},
        {"host": "127.0.0.1:80"},
        {"allowed_hosts": ("a b",)},
        {"allowed_hosts": ("*",)},
        {"allowed_hosts": ("evil.example:80",)},
    ],
)
def test_bad_settings_are_refused_when_made(changes):
    with pytest.raises(InvalidParameterError):
        PageSettings(**changes)


def test_every_address_needs_a_name_for_browsers(tmp_path):
    with pytest.raises(InvalidParameterError, match="allowed_hosts must be"):
        PageSettings(host="0.0.0.0", token=TOKEN, tls_cert=tmp_path / "a", tls_key=tmp_path / "b", root=tmp_path)


@given(st.integers(1, 10**6), st.sampled_from([("", 1), ("kB", 1000), ("MB", 1000**2), ("GiB", 1024**3)]))
def test_sizes_are_read(amount, unit):
    name, factor = unit

    assert size_in_bytes(f"{amount}{name}") == size_in_bytes(f" {amount} {name.lower()} ") == amount * factor


@pytest.mark.parametrize("text", ["", "GB", "-1", "1e9", "2 XB", "1,5GB", "٣GB", "nan", "9" * 400])
def test_bad_sizes_are_refused(text):
    with pytest.raises(InvalidParameterError):
        size_in_bytes(text)
