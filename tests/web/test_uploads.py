"""Uploads arrive whole, in a private file under a harmless name, or leave nothing behind."""

import asyncio
import contextlib
import http.client
import os
import socket
import stat
import threading
import unicodedata
from pathlib import Path

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sfumato.errors import InputError, OutputError
from sfumato.web.uploads import UploadTooLarge, receive_upload, safe_name
from waiting import until
from web.asking import BOUNDARY, MULTIPART, form_of

KIND = MULTIPART.encode()
FILE = ("table", "people.csv", b"age,sex\r\n31,f\r\n")


def upload(folder, body, *, limit=10**6, chunk=7, kind=KIND, length=None, cut=None):
    """Feed a body in chunks, as a server would; ``cut`` is the number of bytes after which the browser goes away."""
    coming = [body[start : start + chunk] for start in range(0, len(body), chunk)] or [b""]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in coming]
    messages[-1]["more_body"] = False
    if cut is not None:
        messages = [*messages[: cut // chunk], {"type": "http.disconnect"}]

    async def receive():
        return messages.pop(0) if messages else await asyncio.Event().wait()

    headers = [(b"content-type", kind), (b"content-length", str(len(body) if length is None else length).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    return asyncio.run(receive_upload(Request(scope, receive), folder, limit))


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 10**6])
def test_file_and_fields_arrive_unchanged(tmp_path, chunk):
    folder = tmp_path / "data"

    found = upload(folder, form_of(("kind", "größe"), FILE, ("empty", "")), chunk=chunk)

    assert found.path == folder / "people.csv"
    assert found.path.read_bytes() == FILE[2]
    assert found.name == "people.csv"
    assert found.fields == {"kind": "größe", "empty": ""}
    assert (mode_of(folder), mode_of(found.path)) == (0o700, 0o600)
    assert os.listdir(folder) == ["people.csv"]


@given(
    pieces=st.lists(
        st.sampled_from([b"\r\n", b"--", b"\r\n--" + BOUNDARY[:9], BOUNDARY, b"\r", b"a,b\n", b"\x00\xff"]), min_size=1
    ),
    chunk=st.integers(1, 40),
)
def test_content_that_looks_like_a_boundary_is_kept(tmp_path_factory, pieces, chunk):
    content = b"x" + b"".join(pieces)
    boundary = BOUNDARY + b"-not-in-the-content"
    kind = b'multipart/form-data; boundary="' + boundary + b'"'

    body = form_of(("table", "t.csv", content), boundary=boundary)
    found = upload(tmp_path_factory.mktemp("up"), body, chunk=chunk, kind=kind)

    assert found.path.read_bytes() == content


def test_more_than_a_piece_is_written_in_order(tmp_path):
    content = b"".join(b"%d\n" % number for number in range(500_000))

    found = upload(tmp_path, form_of(("table", "t.csv", content)), limit=10**8, chunk=65_536)

    assert found.path.read_bytes() == content


def test_same_name_again_is_another_file(tmp_path):
    names = [upload(tmp_path, form_of(("t", "a.csv.gz", content))).path.name for content in ("1", "2", "3")]

    assert names == ["a.csv.gz", "a-2.csv.gz", "a-3.csv.gz"]
    assert (tmp_path / "a-2.csv.gz").read_text() == "2"


def test_links_are_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("mine")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "people.csv").symlink_to(tmp_path / "elsewhere")

    assert upload(folder, form_of(FILE)).path.name == "people-2.csv"
    assert (tmp_path / "elsewhere").read_text() == "mine"


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_limit_is_exact_for_the_bytes_that_come(tmp_path, size):
    body = form_of(("table", "t.csv", b"x" * size))

    if size <= 1000:
        assert upload(tmp_path, body, limit=1000).path.stat().st_size == size
    else:
        with pytest.raises(UploadTooLarge, match="1,000 bytes"):
            upload(tmp_path, body, limit=1000)
        assert os.listdir(tmp_path) == []


def test_announced_length_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(UploadTooLarge):
        upload(tmp_path / "data", form_of(FILE), limit=1000, length=10**9)

    assert not (tmp_path / "data").exists()


def test_endless_rest_after_the_form_is_refused(tmp_path):
    with pytest.raises(UploadTooLarge):
        upload(tmp_path, form_of(FILE) + b"\x00" * 300_000, limit=1000, chunk=4096, length="")

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("cut", [0, 40, 100, 150])
def test_browser_that_goes_away_leaves_nothing(tmp_path, cut):
    with pytest.raises(ClientDisconnect):
        upload(tmp_path, form_of(FILE, ("x", "y" * 200)), cut=cut)

    assert os.listdir(tmp_path) == []


def test_cancelled_upload_leaves_nothing(tmp_path):
    start = form_of(FILE)[:-40]

    async def give_up():
        messages = [{"type": "http.request", "body": start, "more_body": True}]

        async def receive():
            return messages.pop() if messages else await asyncio.Event().wait()

        headers = [(b"content-type", KIND)]
        request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
        task = asyncio.create_task(receive_upload(request, tmp_path, 1000))
        await asyncio.to_thread(until, lambda: os.listdir(tmp_path) == ["people.csv"])
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(give_up())

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (form_of(), "no file"),
        (form_of(("a", "b")), "no file"),
        (form_of(("table", "", "")), "no file"),
        (form_of(("table", "t.csv", "")), "empty"),
        (form_of(FILE, FILE), "more than one file"),
        (form_of(FILE, ("a", "x" * 70_000)), "65,536"),
        (form_of(FILE, *[("a" * 4000, "b")] * 40), "65,536"),
        (form_of(FILE, *[(f"f{number}", "") for number in range(101)]), "100 fields"),
        (form_of(FILE, boundary=b"another"), "broken"),
        (form_of(FILE)[:-30], "broken"),
        (b"", "broken"),
        (b"age,sex\n1,2\n", "broken"),
        (b"--" + BOUNDARY + b"\r\nX: y\r\n\r\ndata\r\n--" + BOUNDARY + b"--\r\n", "broken"),
        (b"--" + BOUNDARY + b"\r\n" + b"X: y\r\n" * 50 + b"\r\ndata\r\n--" + BOUNDARY + b"--\r\n", "broken"),
        (b"--" + BOUNDARY + b"\r\nX: " + b"y" * 9000 + b"\r\n\r\ndata\r\n--" + BOUNDARY + b"--\r\n", "broken"),
    ],
)
def test_bad_forms_are_explained_and_leave_nothing(tmp_path, body, problem):
    with pytest.raises(InputError, match=problem) as caught:
        upload(tmp_path, body, chunk=4096)

    assert not isinstance(caught.value, UploadTooLarge)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "kind",
    [
        b"",
        b"text/csv",
        b"application/x-www-form-urlencoded",
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b"multipart/form-data; boundary=" + b"x" * 300,
    ],
)
def test_other_kinds_and_bad_boundaries_are_explained(tmp_path, kind):
    with pytest.raises(InputError):
        upload(tmp_path, form_of(FILE), kind=kind)

    assert os.listdir(tmp_path) == []


def test_unchosen_file_beside_a_chosen_one_is_fine(tmp_path):
    found = upload(tmp_path, form_of(("hierarchy", "", ""), FILE))

    assert found.name == "people.csv"
    assert found.fields == {}


def test_folder_that_cannot_be_made_is_explained():
    with pytest.raises(OutputError):
        upload(Path("/proc/nowhere"), form_of(FILE))


def test_full_disk_is_explained(tmp_path, monkeypatch):
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr("sfumato.web.uploads.os.open", lambda *arguments: full)

    with pytest.raises(OutputError, match="disk is full"):
        upload(tmp_path, form_of(FILE))


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("people.csv", "people.csv"),
        ("my table (2).csv.gz", "my table (2).csv.gz"),
        ("größe.csv", "größe.csv"),
        ("../../etc/passwd", "passwd"),
        ("/etc/shadow", "shadow"),
        ("C:\\Users\\me\\t.xlsx", "t.xlsx"),
        ("..", "upload"),
        (".", "upload"),
        ("/", "upload"),
        ("", "upload"),
        (".hidden.csv", "hidden.csv"),
        ("...csv", "csv"),
        ("-rf.csv", "rf.csv"),
        ("~root.csv", "root.csv"),
        ("a\x00b\n.csv", "ab.csv"),
        ("a\u202egpj.csv", "agpj.csv"),
        ("t.csv. . ", "t.csv"),
        ("x" * 300 + ".csv", "x" * 96 + ".csv"),
        ("x" * 300 + ".v" + "1" * 30 + ".csv", "x" * 96 + ".csv"),
        ("x." + "y" * 300, "x." + "y" * 98),
    ],
)
def test_hostile_names(given_name, kept):
    assert safe_name(given_name) == kept


@given(st.text(max_size=300))
def test_any_name_becomes_a_harmless_one(name):
    safe = safe_name(name)

    assert 0 < len(safe) <= 100
    assert len(safe.encode()) <= 200
    assert not set(safe) & set("/\\\x00")
    assert not any(unicodedata.category(character).startswith("C") for character in safe)
    assert safe[0] not in ".-~ "
    assert safe_name(safe) == safe


def test_hostile_names_stay_in_the_folder(tmp_path):
    folder = tmp_path / "deep" / "data"

    found = upload(folder, form_of(("table", "../../../outside.csv", "1")))

    assert found.path == folder / "outside.csv"
    assert os.listdir(tmp_path) == ["deep"]


@pytest.fixture
def port(tmp_path):
    """Real server with one route that takes uploads of up to 100 kB."""

    async def take(request):
        try:
            found = await receive_upload(request, tmp_path / "data", 100_000)
        except InputError as error:
            return JSONResponse(str(error), 413 if isinstance(error, UploadTooLarge) else 422)
        except ClientDisconnect:
            return JSONResponse("nobody reads this")
        return JSONResponse(found.name)

    config = uvicorn.Config(Starlette(routes=[Route("/", take, methods=["POST"])]), log_level="warning", http="h11")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(120)


def post(port, body, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    kind = {"Content-Type": MULTIPART}
    with contextlib.closing(connection):
        connection.request("POST", "/", body, {**kind, **dict(headers)}, encode_chunked=True)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_real_browser_that_sends_too_much_still_sees_the_answer(port, tmp_path):
    """Without reading on for a while the connection would be reset, and the message lost."""
    large = form_of(("table", "t.csv", b"x" * 30_000_000))

    assert post(port, form_of(FILE)) == (200, '"people.csv"')
    assert post(port, large)[0] == 413
    assert post(port, iter([large]), {"Transfer-Encoding": "chunked"})[0] == 413
    assert post(port, form_of(FILE, ("two", "b.csv", b"x" * 90_000)))[0] == 422
    assert os.listdir(tmp_path / "data") == ["people.csv"]


def test_real_browser_that_waits_for_a_word_is_refused_at_once(port):
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\nExpect: 100-continue\r\n"
        connection.sendall(head + b"Content-Type: " + KIND + b"\r\n\r\n")

        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_real_browser_that_vanishes_leaves_nothing(port, tmp_path):
    body = form_of(("table", "t.csv", b"x" * 90_000))
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % len(body)
        head += b"Content-Type: " + KIND + b"\r\n\r\n"
        connection.sendall(head + body[:50_000])
        until(lambda: (tmp_path / "data" / "t.csv").exists())

    until(lambda: not (tmp_path / "data" / "t.csv").exists())
