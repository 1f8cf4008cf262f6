"""Strangers who connect and say nothing, or show wrong tokens, do not keep the page from its user."""

import asyncio
import contextlib
import http.client
import logging
import resource
import socket
import ssl

import pytest

from sfumato.cli.main import in_flag_words
from sfumato.errors import InvalidParameterError
from sfumato.web import door as door_module
from sfumato.web.door import Connection, Door, accept
from sfumato.web.security import WrongTokens
from sfumato.web.settings import PageSettings, guessing_bits
from web.test_serve_command import TOKEN, make_certificate, servers

N_SILENT = 600


@pytest.fixture
def _many_files():
    """Let this process have as many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = N_SILENT + 400
    if soft < wanted:
        if hard < wanted:
            pytest.skip(f"only {hard} files may be open here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def silent_strangers(authority):
    host, _, port = authority.partition(":")
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(N_SILENT)]


@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize("is_tls", [False, True], ids=["http", "https"])
def test_six_hundred_silent_connections_do_not_lock_the_user_out(tmp_path, is_tls):
    """Nor do they end the connection that has shown the cookie; over TLS they do not even shake hands."""
    certificate, key = make_certificate(tmp_path)
    options = ["--tls-cert", str(certificate), "--tls-key", str(key)] if is_tls else []
    trusted = ssl.create_default_context(cafile=str(certificate))

    def connect():
        kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
        return kind(server.authority, timeout=60, **({"context": trusted} if is_tls else {}))

    def asked(connection, target, headers):
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer

    with servers(tmp_path) as start:
        server = start("--no-browser", *options, SFUMATO_TOKEN=TOKEN)
        with contextlib.closing(connect()) as early:
            cookie = asked(early, f"/?token={TOKEN}", {}).getheader("set-cookie").partition(";")[0]
            with silent_strangers(server.authority):
                assert asked(early, "/open", {"Cookie": cookie}).status == 200
                with contextlib.closing(connect()) as late:
                    assert asked(late, "/open", {"Cookie": cookie}).status == 200
                with contextlib.closing(connect()) as late:
                    assert asked(late, f"/?token={TOKEN}", {}).status == 303
        assert "Traceback" not in server.words.read_text()


class TestDoor:
    def test_of_an_address_with_too_many_the_oldest_goes(self):
        door, closed = Door(most=100, most_of_an_address=3), []
        for port in range(6):
            door.arrive(("10.0.0.1", port), lambda port=port: closed.append(port))
        door.arrive(("10.0.0.2", 0), lambda: closed.append("other"))

        assert closed == [0, 1, 2]
        assert door.n_strangers == 4

    def test_of_too_many_one_of_the_address_with_the_most_goes(self):
        door, closed = Door(most=4, most_of_an_address=3), []
        door.arrive(("10.0.0.2", 0), lambda: closed.append("other"))
        for address, port in [("10.0.0.1", 1), ("10.0.0.1", 2), ("10.0.0.3", 3), ("10.0.0.4", 4)]:
            door.arrive((address, port), lambda port=port: closed.append(port))

        assert closed == [1]

    def test_who_has_shown_the_token_is_no_stranger(self):
        door, closed = Door(most_of_an_address=2), []
        door.arrive(("10.0.0.1", 1), lambda: closed.append(1))
        door.admit(("10.0.0.1", 1))
        for port in range(2, 9):
            door.arrive(("10.0.0.1", port), lambda port=port: closed.append(port))
        door.expire(("10.0.0.1", 1))

        assert 1 not in closed
        assert closed == [2, 3, 4, 5, 6]

    def test_who_is_gone_is_forgotten(self):
        door = Door()
        door.arrive(("10.0.0.1", 1), lambda: pytest.fail("closed"))
        door.leave(("10.0.0.1", 1))
        door.expire(("10.0.0.1", 1))
        door.admit(("10.0.0.9", 1))
        door.admit(None)

        assert door.n_strangers == 0


class _Silent(Connection):
    """Takes what comes and answers nothing."""

    def __init__(self):
        pass

    def connection_made(self, transport):
        pass

    def data_received(self, data):
        pass

    def connection_lost(self, exc):
        self.gone.set()


def test_a_stranger_has_a_limit_of_time_whatever_they_send(monkeypatch):
    monkeypatch.setattr(door_module, "SECONDS_FOR_THE_TOKEN", 0.05)

    async def scenario():
        door = Door()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            accepting = asyncio.create_task(accept(listener, door, _Silent, None))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: ")
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()
            accepting.cancel()
            assert door.n_strangers == 0

    asyncio.run(scenario())


class TestWrongTokens:
    def slowed(self, steps):
        """Show wrong tokens at times, from addresses; gives how long each waits."""
        waited, now = [], [0.0]

        async def sleep(seconds):
            waited.append(seconds)

        async def show():
            wrong = WrongTokens(sleep, lambda: now[0])
            for at, address in steps:
                now[0] = at
                await wrong.slow(address)

        asyncio.run(show())
        return waited

    def test_the_delay_grows_for_each_address_alone(self):
        assert self.slowed([(n, "10.0.0.1") for n in range(8)]) == [0.25, 0.5, 1, 2, 4, 8, 8, 8]
        assert self.slowed([(0, "10.0.0.1"), (1, "10.0.0.1"), (2, "10.0.0.2")]) == [0.25, 0.5, 0.25]
        assert self.slowed([(0, "10.0.0.1"), (1, "10.0.0.1"), (1000, "10.0.0.1")]) == [0.25, 0.5, 0.25]

    def test_it_is_less_than_the_door_gives_to_strangers(self):
        assert max(self.slowed([(0, "10.0.0.1")] * 3000)) < door_module.SECONDS_FOR_THE_TOKEN

    def test_each_is_one_line_until_there_are_many(self, caplog):
        with caplog.at_level(logging.WARNING, "sfumato.web"):
            self.slowed([(0, "10.0.0.1")] * 100)

        assert caplog.messages[:2] == ["wrong token from 10.0.0.1 (1 so far)", "wrong token from 10.0.0.1 (2 so far)"]
        assert len(caplog.messages) == 20 + 4


def test_a_wrong_token_is_slowed_and_logged_without_the_token(tmp_path):
    with servers(tmp_path) as start:
        server = start("--no-browser", SFUMATO_TOKEN=TOKEN)
        assert server.ask("/?token=my-guess")[0] == 403
        assert (
            server.ask("/open", headers={"Cookie": f"sfumato-{server.authority.partition(':')[2]}=my-guess"})[0] == 403
        )
        assert server.ask("/open")[0] == 403
        words = server.words.read_text()

    assert words.count("wrong token from 127.0.0.1") == 2
    assert "my-guess" not in words


@pytest.mark.parametrize(
    "weak",
    [
        "a" * 40,
        "abcdefghijklmnopqrstuvwxyz",
        "12345678901234567890",
        "passwordpasswordpassword",
        "passwordpasswordpasswordpa",
        "qwqwqwqwqwqwqwqwqwqwqwqw",
        "98765432109876543210987",
        "aaaaaaaaaabbbbbbbbbbcccccccccc",
        "11111111112222222222",
    ],
)
def test_a_weak_token_is_refused_with_a_hint(weak):
    with pytest.raises(InvalidParameterError, match="weak") as caught:
        PageSettings(token=weak)

    assert str(caught.value).endswith("for other machines let a program draw 32 random bytes")
    assert "openssl rand -base64 32" in in_flag_words(caught.value)
    assert weak not in in_flag_words(caught.value)


def test_random_tokens_are_not_weak():
    for _ in range(300):
        token = PageSettings().token
        assert guessing_bits(token) > 128
        PageSettings(token=token)
        PageSettings(token=token[:22])
