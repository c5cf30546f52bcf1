"""The end of a gateway's connections: whole for whoever was being answered, at once for whoever was not."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from asides_gateway import drain, web
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.http_server import GatewayServer
from asides_gateway.listen import open_sockets
from asides_stage import Say, Stage
from tests.gateway.served import PATIENCE, serve, stream_many, write_settings

_WORDS = " ".join(f"word{number}" for number in range(60))


def test_while_it_drains_nobody_connects_and_idle_connections_are_closed(tmp_path: Path) -> None:
    with Stage(Say(text=_WORDS, pause=0.05)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            idle = socket.create_connection((address.hostname or "", address.port or 0), PATIENCE)

            def end() -> None:
                served.process.send_signal(signal.SIGTERM)
                assert idle.recv(1) == b"", "an idle connection stays open"
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((address.hostname or "", address.port or 0), PATIENCE).close()

            (text,) = asyncio.run(stream_many(served.url, 1, end))
            idle.close()
            assert text == _WORDS
            assert served.process.wait(PATIENCE) == 0


def test_whoever_has_connected_is_answered(tmp_path: Path) -> None:
    """A proxy connects and sends its request a moment later. On a busy machine the end may come in between."""
    with Stage(Say(text=_WORDS)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            with socket.create_connection((address.hostname or "", address.port or 0), PATIENCE) as connection:
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("stops after")
                time.sleep(0.1)
                body = json.dumps({"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            assert answer.startswith(b"HTTP/1.1 200")
            assert _WORDS.encode() in answer
            assert served.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_whoever_came_since_the_event_loop_last_looked_is_answered(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "_LOOKS", 0)  # The event loop does not look again.
    factory = asyncio.new_event_loop if loop == "asyncio" else pytest.importorskip("uvloop").new_event_loop

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="whole")

    async def run() -> list[bytes]:
        app = web.Application(answer, {}, lambda _: web.Response(status=500))
        ready = asyncio.Event()
        server = GatewayServer(app, GatewaySettings(drain_seconds=5), ready.set)
        listening = open_sockets("127.0.0.1", 0)
        serving = asyncio.create_task(server.serve(listening))
        await ready.wait()
        clients = [socket.create_connection(listening[0].getsockname(), PATIENCE) for _ in range(5)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        server.stop()
        answers = await asyncio.gather(*(asyncio.to_thread(read_all, client) for client in clients))
        await serving
        return answers

    with asyncio.Runner(loop_factory=factory) as running:
        answers = running.run(run())
    assert all(each.startswith(b"HTTP/1.1 200") and each.endswith(b"whole") for each in answers)


def read_all(client: socket.socket) -> bytes:
    with client:
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def test_a_reply_that_takes_longer_than_the_drain_is_cut_and_counted(tmp_path: Path) -> None:
    with Stage(Say(text=_WORDS, pause=0.5)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, "--drain", "0.3") as served:
            # The reply would take half a minute.
            (text,) = asyncio.run(stream_many(served.url, 1, lambda: served.process.send_signal(signal.SIGTERM)))
            assert isinstance(text, BaseException)
            assert served.process.wait(PATIENCE) == 0
            assert "1 replies did not end within 0.3 s and are cut" in served.log


def test_a_slow_reader_gets_what_was_written_before_the_end(tmp_path: Path) -> None:
    """The last bytes of a reply may wait in the process when its handler is done."""
    long = "x" * 3_000_000
    with Stage(Say(text=long)) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            with socket.socket() as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.settimeout(PATIENCE)
                connection.connect((address.hostname or "", address.port or 0))
                body = json.dumps({"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                data = connection.recv(100)
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("stops after")
                time.sleep(0.3)
                while part := connection.recv(1 << 20):
                    data += part
            assert served.process.wait(PATIENCE) == 0
    assert data.count(b"x") >= len(long)
    assert data.rstrip().endswith(b"}}}"), "the end is missing"


def test_nobody_who_only_watches_is_waited_for(tmp_path: Path) -> None:
    with serve(tmp_path) as served, urlopen(f"{served.url}/ui/api/requests/events", timeout=PATIENCE) as events:
        assert events.status == 200
        # Replies may take longer than this waits.
        assert served.end() == 0


def test_a_request_that_is_still_arriving_is_answered(tmp_path: Path) -> None:
    with Stage(Say(text="42")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            address = urlsplit(served.url)
            with socket.create_connection((address.hostname or "", address.port or 0), PATIENCE) as connection:
                body = json.dumps({"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}).encode()
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body[:20])
                time.sleep(0.2)
                served.process.send_signal(signal.SIGTERM)
                served.wait_for_log("stops after")
                time.sleep(0.2)
                connection.sendall(body[20:])
                data = b""
                while part := connection.recv(1 << 20):
                    data += part
            assert served.process.wait(PATIENCE) == 0
    assert data.startswith(b"HTTP/1.1 200 ")
    assert b'"42"' in data
