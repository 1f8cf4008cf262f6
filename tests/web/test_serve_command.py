"""``sfumato serve`` as a process: what it prints, whom it answers, what it leaves behind, and what it refuses."""

import asyncio
import contextlib
import datetime
import fcntl
import http.client
import logging
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.cli.making import serve as serve_command
from sfumato.errors import InputError, InvalidParameterError, OutputError
from sfumato.private_folders import remove_leftovers
from sfumato.web.server import FOLDER_PURPOSE, listening, private_folder, tls_context, without_text
from sfumato.web.settings import PageSettings
from waiting import until

TOKEN = "a-secret-of-many-characters"
COMMAND = [sys.executable, "-c", "from sfumato.__main__ import main; main()", "serve"]
DEAD = 2**22 + 1  # above the largest process id that Linux gives


@dataclass
class Running:
    """A server that runs, and its printed address."""

    process: subprocess.Popen
    address: str
    words: Path

    @property
    def authority(self):
        return re.fullmatch(r"https?://([^/]+)/\?token=[A-Za-z0-9_-]{20,}", self.address)[1]

    def ask(self, target, method="GET", headers=(), body=None):
        connection = http.client.HTTPConnection(self.authority, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    def cookie(self):
        _, headers, _ = self.ask("/" + self.address.rpartition("/")[2])
        return {"Cookie": headers["set-cookie"].partition(";")[0]}

    def end(self, number):
        """Send a signal; returns exit code and words."""
        self.process.send_signal(number)
        return self.process.wait(120), self.words.read_text()


def _hear_signals():
    """Undo that they are ignored: the one under nohup, the other in the background."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def servers(folder):
    """Start servers whose private folders stand in ``folder``; they and what they started are killed at the end.

    Their words go to files: a pipe stays open as long as a process that they started.
    """
    started = []

    def begin(*arguments, **environment):
        said, words = (folder / f"{len(started)}.{name}" for name in ("out", "err"))
        with said.open("w") as out, words.open("w") as err:
            process = subprocess.Popen(
                [*COMMAND, *arguments],
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**os.environ, "TMPDIR": str(folder), **environment},
                start_new_session=True,
                preexec_fn=_hear_signals,
            )
        started.append(process)
        until(lambda: said.read_text().endswith("\n") or process.poll() is not None)
        (address,) = said.read_text().splitlines()
        return Running(process, address, words)

    try:
        yield begin
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(120)


@pytest.fixture
def start(tmp_path):
    with servers(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Run one server for all tests that only ask it."""
    with servers(tmp_path_factory.mktemp("server")) as begin:
        yield begin("--no-browser", SFUMATO_TOKEN=TOKEN)


def folders(path):
    return sorted(path.glob("sfumato-page-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_server_prints_one_address_answers_and_ends_without_a_trace(start, tmp_path, number):
    server = start("--no-browser")
    (folder,) = folders(tmp_path)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.name.startswith(f"sfumato-page-{server.process.pid}-")
    assert server.address.startswith("http://127.0.0.1:")
    status, headers, body = server.ask("/open", headers=server.cookie())
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert "server" not in {name.lower() for name in headers}
    assert "sfumato" in body

    code, words = server.end(number)

    assert code == 0
    assert folders(tmp_path) == []
    assert server.address.partition("token=")[2] not in words
    assert "Traceback" not in words


def test_no_process_is_left_when_the_server_ends_while_libraries_are_being_loaded(start):
    server = start("--no-browser")
    until(lambda: any("forkserver" in words for words in processes_of_session(server.process.pid)))

    code, _ = server.end(signal.SIGTERM)

    assert code == 0
    assert not any("forkserver" in words for words in processes_of_session(server.process.pid))
    until(lambda: not processes_of_session(server.process.pid))


def processes_of_session(leader):
    """Command lines of the processes that a server has started, but for tasks, which stand alone."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append((folder / "cmdline").read_text())
    return found


def test_every_answer_of_the_real_page_carries_the_headers(server):
    cookie = server.cookie()

    for target, method, extra, expected in (
        ("/open", "GET", {}, 200),
        ("/static/page.css", "GET", {}, 200),
        ("/nowhere", "GET", {}, 404),
        ("/static/nowhere", "GET", {}, 404),
        ("/open", "POST", {}, 403),
        ("/open", "POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/open", "POST", {"Origin": "http://evil.example"}, 403),
        ("/open", "POST", {"Origin": "null"}, 403),
        ("/open", "DELETE", {"Sec-Fetch-Site": "same-origin"}, 405),
        ("/open", "TRACE", {}, 405),
        ("/open", "GET", {"Host": "evil.example"}, 421),
        ("/open", "GET", {"Host": "127.0.0.1:1"}, 421),
        ("/open", "GET", {"Cookie": "a=b"}, 403),
        ("/open?token=wrong", "GET", {}, 403),
    ):
        status, headers, body = server.ask(target, method, {**cookie, **extra})
        assert status == expected, (target, method, extra)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert TOKEN not in body


@pytest.mark.parametrize("head", [b"GET /?token=hush HTTP/1.1", b"GET /?token=hush HTTP/1.0", b"\x16\x03 hush"])
def test_requests_without_a_host_or_sense_are_refused_and_not_logged(server, head):
    host, _, port = server.authority.partition(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(head + b"\r\n\r\n")
        answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 400")
    assert "hush" not in server.words.read_text()


def test_end_in_the_middle_of_an_upload(start, tmp_path):
    server = start("--no-browser")
    cookie = server.cookie()["Cookie"]
    host, _, port = server.authority.partition(":")
    head = f"POST /open/upload HTTP/1.1\r\nHost: {server.authority}\r\nCookie: {cookie}\r\n"
    head += "Sec-Fetch-Site: same-origin\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"
    part = '--b\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\nage\n4711\n'
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall((head + part).encode())
        until(lambda: list(tmp_path.rglob("t.csv")))

        code, words = server.end(signal.SIGINT)

    assert code == 0
    assert folders(tmp_path) == []
    assert "4711" not in words
    assert "Traceback" not in words


def test_killed_server_leaves_a_folder_that_the_next_one_removes(start, tmp_path):
    first = start("--no-browser")
    first.process.kill()
    first.process.wait(120)
    (left,) = folders(tmp_path)

    second = start("--no-browser")

    assert left not in folders(tmp_path)
    assert len(folders(tmp_path)) == 1
    assert second.end(signal.SIGTERM)[0] == 0


def test_two_servers_leave_each_other_alone(start, tmp_path):
    first, second = start("--no-browser"), start("--no-browser")

    assert len(folders(tmp_path)) == 2
    assert second.end(signal.SIGTERM)[0] == 0
    assert first.ask("/open", headers=first.cookie())[0] == 200


def test_browser_is_opened_with_a_ticket_and_not_the_token(start, tmp_path):
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened.part\nmv {tmp_path}/opened.part {tmp_path}/opened\n')
    script.chmod(0o700)
    server = start(BROWSER=f"{script} %s")
    until((tmp_path / "opened").exists)
    opened = (tmp_path / "opened").read_text().strip()

    assert opened.startswith(f"http://{server.authority}/?token=")
    assert opened != server.address
    assert server.ask("/" + opened.rpartition("/")[2])[0] == 303


def test_browser_that_cannot_be_opened_is_no_problem(start):
    server = start(BROWSER="/nowhere/browser %s")

    assert server.ask("/open", headers=server.cookie())[0] == 200
    assert server.end(signal.SIGTERM)[0] == 0


def test_given_token_opens_the_page_and_is_taken_from_the_environment(server):
    assert server.address.endswith(f"/?token={TOKEN}")
    assert server.ask("/open", headers=server.cookie())[0] == 200


def test_port_in_use_is_said_with_a_remedy(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", "--no-browser", "--port", str(port)]) == 3

    assert "--port" in capsys.readouterr().err


def make_certificate(folder, name="page", passphrase=None):
    """Make a self-signed certificate for 127.0.0.1."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "page")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    locked = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))
    return paths


def test_tls_gives_https_and_a_secure_cookie(start, tmp_path):
    certificate, key = make_certificate(tmp_path)
    server = start("--no-browser", "--tls-cert", str(certificate), "--tls-key", str(key), "--host", "127.0.0.1")
    trusted = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection(server.authority, timeout=120, context=trusted)
    with contextlib.closing(connection):
        connection.request("GET", "/" + server.address.rpartition("/")[2])
        answer = connection.getresponse()

        assert server.address.startswith("https://127.0.0.1:")
        assert answer.status == 303
        assert "secure" in answer.getheader("set-cookie").lower()
    assert server.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
def test_only_tls_1_3_is_spoken(tmp_path, version):
    certificate, key = make_certificate(tmp_path)
    theirs = ssl.create_default_context(cafile=str(certificate))
    theirs.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = theirs.wrap_bio(outgoing, incoming, server_hostname="127.0.0.1")
    server = tls_context(certificate, key).wrap_bio(incoming, outgoing, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()

    with pytest.raises(ssl.SSLWantReadError if version is ssl.TLSVersion.TLSv1_3 else ssl.SSLError) as caught:
        server.do_handshake()

    assert version is ssl.TLSVersion.TLSv1_3 or caught.value.reason == "UNSUPPORTED_PROTOCOL"


def test_tls_files_are_checked_first(tmp_path):
    certificate, key = make_certificate(tmp_path)
    _, other_key = make_certificate(tmp_path, "other")
    locked_certificate, locked_key = make_certificate(tmp_path, "locked", b"hush")
    (tmp_path / "junk").write_bytes(b"no pem")

    tls_context(certificate, key)
    for first, second, problem in (
        (tmp_path / "nowhere", key, "cannot be read"),
        (certificate, tmp_path / "nowhere", "cannot be read"),
        (certificate, tmp_path, "cannot be read"),
        (tmp_path / "junk", key, "does not|is not"),
        (certificate, tmp_path / "junk", "does not|is not"),
        (certificate, other_key, "does not|is not"),
        (locked_certificate, locked_key, "passphrase"),
    ):
        with pytest.raises(InputError, match=problem):
            tls_context(first, second)


def test_leftovers_of_the_dead_are_removed_and_nothing_else(tmp_path):
    kept = [
        tmp_path / f"sfumato-page-{os.getpid()}-alive",
        tmp_path / "sfumato-page-notes",
        tmp_path / f"sfumato-page-{DEAD}-held",
        tmp_path / f"other-{DEAD}-abc",
    ]
    dead = [tmp_path / f"sfumato-page-{DEAD}-abc_1", tmp_path / f"sfumato-page-{10**9}-x"]
    for folder in (*kept, *dead):
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "t.csv").write_text("1")
    link = tmp_path / f"sfumato-page-{DEAD}-link"
    link.symlink_to(tmp_path / f"other-{DEAD}-abc")
    held = os.open(kept[2], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)

    remove_leftovers(tmp_path, FOLDER_PURPOSE)
    os.close(held)

    assert sorted(tmp_path.iterdir()) == sorted([*kept, link])
    assert all((folder / "data" / "t.csv").exists() for folder in kept)


def test_private_folder_is_gone_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with contextlib.suppress(ZeroDivisionError), private_folder() as folder:
        (folder / "x").write_text("1")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        raise ZeroDivisionError

    assert list(tmp_path.iterdir()) == []


def test_unknown_and_foreign_hosts_are_explained(tmp_path):
    tls = {"tls_cert": tmp_path / "a", "tls_key": tmp_path / "b", "token": TOKEN, "root": tmp_path}
    with (
        pytest.raises(OutputError, match="give an address of this machine"),
        listening(PageSettings(host="192.0.2.1", **tls)),
    ):
        pass
    with (
        pytest.raises(InvalidParameterError, match="host must be an address"),
        listening(PageSettings(host="no.invalid", **tls)),
    ):
        pass


def test_log_records_lose_the_text_of_errors():
    try:
        raise ValueError("secret cell 4711")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed %s", ("4711",), sys.exc_info())

    assert without_text(record)
    shown = logging.Formatter().format(record)
    assert "4711" not in shown
    assert "ValueError in test_serve_command.py" in shown
    assert without_text(logging.LogRecord("x", logging.ERROR, "x.py", 1, "plain", (), None))
    ended = (asyncio.CancelledError, asyncio.CancelledError(), None)
    assert not without_text(logging.LogRecord("x", logging.ERROR, "x.py", 1, "cut", (), ended))


@pytest.fixture
def given_settings(monkeypatch):
    """Collect what the command hands to the server, which does not start."""
    handed = []
    monkeypatch.setattr("sfumato.web.server.serve", handed.append)
    return handed


def test_options_become_settings(given_settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a\n1\n")

    arguments = ["--port", "8050", "--upload-limit", "500MB", "--allow-host", "page.example", "--no-browser"]
    assert run(["serve", "t.csv", "--project", "p.toml", *arguments]) == 0

    (settings,) = given_settings
    assert (settings.data, settings.project) == (tmp_path / "t.csv", tmp_path / "p.toml")
    assert (settings.host, settings.port, settings.upload_limit) == ("127.0.0.1", 8050, 500_000_000)
    assert (settings.allowed_hosts, settings.open_browser) == (("page.example",), False)


def test_defaults_are_this_machine_only(given_settings):
    assert run(["serve"]) == 0

    (settings,) = given_settings
    assert (settings.host, settings.port, settings.upload_limit) == ("127.0.0.1", 0, 2_000_000_000)
    assert (settings.data, settings.project, settings.is_tls) == (None, None, False)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere.csv"], 3, "nowhere.csv: does not exist"),
        (["."], 3, "not a file"),
        (["-"], 3, "standard input"),
        (["a\0b"], 3, "paths"),
        (["--project", "nowhere.toml"], 3, "nowhere.toml"),
        (["t.csv", "--project", "nowhere/p.toml"], 3, "folder"),
        (["--host", "0.0.0.0"], 2, "--token"),
        (["--host", "10.0.0.3", "--token", TOKEN], 2, "--tls-cert"),
        (["--host", "10.0.0.3", "--token", TOKEN, "--tls-cert", "a", "--tls-key", "b"], 2, "--root"),
        (["--root", "nowhere"], 3, "not a folder"),
        (["--root", "t.csv"], 3, "not a folder"),
        (
            ["t.csv", "--root", "inside"],
            3,
            "is outside the folder that the page may use. Hint: name a folder that holds it (--root)",
        ),
        (["--token", "short"], 2, "20"),
        (["--token", "aaaaaaaaaaaaaaaaaaaaaaaa"], 2, "openssl rand"),
        (["--tls-cert", "a.crt"], 2, "--tls-key"),
        (["--port", "70000"], 2, "65535"),
        (["--port", "x"], 2, "--port"),
        (["--upload-limit", "much"], 2, "2GB"),
        (["--allow-host", "*"], 2, "--allow-host"),
    ],
)
def test_bad_options_end_before_anything_starts(given_settings, tmp_path, monkeypatch, capsys, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a\n1\n")
    Path("inside").mkdir()

    assert run(["serve", *arguments]) == code

    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    assert given_settings == []


def test_token_is_not_repeated_in_an_error(given_settings, capsys):
    assert run(["serve", "--token", "hush"]) == 2
    assert "hush" not in capsys.readouterr().err


def test_lacking_extra_is_explained(monkeypatch, capsys):
    monkeypatch.setattr(serve_command, "find_spec", lambda name: None)

    assert run(["serve"]) == 2
    assert "pip install 'sfumato[web]'" in capsys.readouterr().err
