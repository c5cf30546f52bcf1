"""What all connections of a gateway take together: heads that never end, open files, clients that do not read."""

from __future__ import annotations

import json
import re
import resource
import selectors
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from asides.options import Options
from asides.settings import load_settings
from asides_gateway import http_server
from asides_gateway.client_connection import MAX_HEAD
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Hang, Say, Stage
from tests.gateway.gateway_process import GatewayProcess, gateway_process
from tests.gateway.http_client import Client, ask, chat, gateway_before, wait_for
from tests.gateway.served import serve, write_settings
from tests.gateway.test_faults import MEGABYTE, Flood
from tests.loopback import serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory and limits processes from /proc")

# --- heads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["headers", "one-header", "request-line"])
def test_heads_without_an_end_take_no_memory(name: str) -> None:
    """60 clients without a key send what they can of a head."""
    begins = b"POST /v1/messages" + (b"?" if name == "request-line" else b" HTTP/1.1\r\nx-a: ")
    piece = b"v" * 60 + b"\r\nx-b: " if name == "headers" else b"v" * 66
    with Stage([Say(text="42")]) as stage, gateway_process(stage.url, keys=("sk-0123456789abcdef",)) as gateway:
        assert ask(gateway, "GET", "/healthz").status == 200
        before = gateway.measure_memory()
        sent = _send_endlessly(gateway, begins, piece * 1000)
        grown = gateway.measure_memory() - before
        assert ask(gateway, "GET", "/healthz").status == 200
    assert grown < 20 * MEGABYTE, f"{grown / MEGABYTE:.1f} MB for {sent / MEGABYTE:.0f} MB of heads"


CHUNKED = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begins", "piece"),
    [
        (b"5;", b"a=b;" * 16_000),
        (b"5;a=", b"v" * 66_000),
        (b"0", b"0" * 66_000),
        (b"0\r\n", b"x-a: v\r\n" * 8_000),
        (b"0\r\nx-a: ", b"v" * 66_000),
        (b"1\r\na\r\n0\r\n", b"x-a: v\r\n" * 8_000),
    ],
    ids=["chunk-extensions", "chunk-extension", "chunk-size", "trailers", "trailer", "trailers-after-a-chunk"],
)
def test_what_frames_a_body_takes_no_memory(begins: bytes, piece: bytes) -> None:
    """60 clients without a key send what they can of it, and are cut off."""
    with Stage([Say(text="42")]) as stage, gateway_process(stage.url, keys=("sk-0123456789abcdef",)) as gateway:
        assert ask(gateway, "GET", "/healthz").status == 200
        before = gateway.measure_memory()
        sent = _send_endlessly(gateway, CHUNKED + begins, piece, seconds=20)
        grown = gateway.measure_memory() - before
        assert ask(gateway, "GET", "/healthz").status == 200
    assert grown < 20 * MEGABYTE, f"{grown / MEGABYTE:.1f} MB for {sent / MEGABYTE:.0f} MB"
    # Sockets hold some megabytes on their way.
    assert sent < 60 * 6 * MEGABYTE


def test_a_body_of_small_chunks_may_have_more_frame_than_body() -> None:
    text = json.dumps(chat()).encode()
    body = b"".join(b"1;%b\r\n%c\r\n" % (b"e" * 4096, each) for each in text) + b"0\r\n\r\n"
    head = CHUNKED.replace(b"messages", b"chat/completions").replace(b": a", b": 127.0.0.1")
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.write(head + body)
        assert client.read().status == 200
    assert len(body) > 2 * MAX_HEAD


def _send_endlessly(gateway: GatewayProcess, begins: bytes, piece: bytes, seconds: float = 3.0) -> int:
    """Send on 60 connections until all are closed or the time is over. Returns the bytes that were taken."""
    sent = 0
    host, _, port = gateway.url.removeprefix("http://").rpartition(":")
    with selectors.DefaultSelector() as selector, ExitStack() as opened:
        for _ in range(60):
            connection = opened.enter_context(socket.create_connection((host, int(port)), 20))
            connection.sendall(begins)
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_WRITE)
        until = time.monotonic() + seconds
        while selector.get_map() and time.monotonic() < until:
            for key, _ in selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    sent += key.fileobj.send(piece)
                except BlockingIOError:
                    pass
                except OSError:
                    selector.unregister(key.fileobj)
    return sent


@pytest.mark.parametrize(("size", "status"), [(MAX_HEAD - 4096, 200), (MAX_HEAD + 4096, 431)])
def test_the_bound_is_that_of_the_whole_head(size: int, status: int) -> None:
    headers = [(f"x-{number}", "v" * (size // 100)) for number in range(100)]
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.send("POST", "/v1/messages", {}, headers)
        answer = client.read()
    # The request itself is not valid.
    assert answer.status == (400 if status == 200 else status)
    assert answer.json["type"] == "error"
    assert ("headers of the request" in answer.json["error"]["message"]) is (status != 200)


@pytest.mark.parametrize("hosts", [b"", b"host: 127.0.0.1\r\nhost: stranger.example\r\n"], ids=["none", "two"])
def test_a_head_has_one_host(hosts: bytes) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway, Client(gateway) as client:
        client.write(b"GET /v1/models HTTP/1.1\r\n" + hosts + b"\r\n")
        assert client.read().status == 400


# --- connections and files --------------------------------------------------------------------------------------------


def test_the_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        with _soft_limit(256), serve(tmp_path) as served:
            limits = Path(f"/proc/{served.process.pid}/limits").read_text(encoding="ascii")
    found = re.search(r"Max open files +(\d+)", limits)
    assert found is not None
    assert int(found[1]) == min(hard, 65_536)


def _soft_limit(files: int) -> ExitStack:
    """Lower the limit of this process, which those that it starts inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    restoring = ExitStack()
    restoring.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    return restoring


def test_more_connections_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "count_connections", lambda: 5)
    with Stage(Say(text="42")) as stage, gateway_before(stage) as gateway, ExitStack() as opened:
        clients = [opened.enter_context(Client(gateway)) for _ in range(5)]
        for client in clients:
            assert client.ask("GET", "/healthz").status == 200
        with Client(gateway) as late:
            answer = late.read()
            assert (answer.status, late.is_closed()) == (503, True)
            assert re.search(r"\. [A-Z]", answer.json["error"]["message"])
        assert clients[0].ask("POST", "/v1/chat/completions", chat()).status == 200
        clients.pop().close()
        assert wait_for(lambda: _is_accepted(gateway))


def _is_accepted(gateway: Gateway) -> bool:
    with Client(gateway) as client:
        return client.ask("GET", "/healthz").status == 200


_WITHOUT_FILES = """
import resource, sys
from asides_gateway import http_server
http_server.count_connections = lambda: 10_000
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
with Gateway(GatewaySettings(port=0), load_settings(environ={}, files=[])) as gateway:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    print(gateway.url, flush=True)
    sys.stdin.read()
"""


def test_without_files_there_is_one_line_and_not_a_flood(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", _WITHOUT_FILES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        ) as process,
        ExitStack() as opened,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        host, _, port = url.removeprefix("http://").rpartition(":")
        served = GatewayProcess(process, url)  # type: ignore[arg-type] # its pipes are of bytes
        first = opened.enter_context(Client(served))
        assert first.ask("GET", "/healthz").status == 200
        for _ in range(100):
            opened.enter_context(socket.create_connection((host, int(port)), 20))
        time.sleep(2.5)
        assert first.ask("GET", "/healthz").status == 200
        opened.close()
        # The event loop listens again after a second.
        assert wait_for(lambda: _answers(served))
        process.stdin.close()
        assert process.wait(20) == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 1, lines[:5]
    assert "cannot be accepted: Too many open files. Raise the limit" in lines[0]


def _answers(served: GatewayProcess) -> bool:
    with suppress(OSError):
        return ask(served, "GET", "/healthz").status == 200
    return False


# --- clients that do not read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["openai:gpt-4.1", "openrouter:any"], ids=["forwarded", "translated"])
def test_clients_that_do_not_read_take_little_memory(model: str) -> None:
    """A provider that sends as fast as it is read, and 40 clients that never read: about a megabyte for each."""
    flood = Flood()
    with serving(flood.answer) as server, gateway_process(server.url) as gateway, ExitStack() as opened:
        opened.callback(flood.stopped.set)
        ask(gateway, "GET", "/healthz")
        before = gateway.measure_memory()
        for _ in range(40):
            client = opened.enter_context(Client(gateway))
            client.send("POST", "/v1/chat/completions", chat(True, model=model))
        assert wait_for(lambda: _stands_still(flood), 60)
        grown = (gateway.measure_memory() - before) / 40
        began = time.monotonic()
        assert ask(gateway, "GET", "/healthz").status == 200
        waited = time.monotonic() - began
    assert grown < 1.8 * MEGABYTE, f"{grown / MEGABYTE:.2f} MB for each"
    assert waited < 2, f"another request waited for {waited:.1f} s"


def _stands_still(flood: Flood) -> bool:
    before = flood.written
    time.sleep(0.5)
    return before == flood.written > 0


def test_when_too_much_waits_the_largest_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole answer of 20 MB for a client that does not read, and others that are not touched."""
    monkeypatch.setattr(http_server, "MAX_UNSENT", 8 * MEGABYTE)
    monkeypatch.setattr(http_server, "_LOOK_SECONDS", 0.2)
    with (
        Stage([Hang(), Say(text="x" * 20 * MEGABYTE)]) as stage,
        gateway_before(stage) as gateway,
        Client(gateway) as other,
        Client(gateway) as client,
    ):
        other.send("POST", "/v1/chat/completions", chat(True))
        assert stage.wait_until(lambda: len(stage.requests) == 1, 30)
        client.send("POST", "/v1/chat/completions", chat())
        assert stage.wait_until(lambda: len(stage.requests) == 2, 30)
        assert wait_for(lambda: gateway.service.open_requests == 1)
        time.sleep(1)
        with suppress(ConnectionResetError):
            assert not client.read().is_complete
        assert gateway.service.open_requests == 1


def test_a_whole_answer_that_nobody_takes_is_given_up() -> None:
    """The handler is done; what it wrote waits in the process."""
    with Stage([Say(text="x" * 10 * MEGABYTE)]) as stage:
        options = Options(base_url=stage.url, api_key="sk-upstream")
        settings = GatewaySettings(port=0, stall_seconds=0.5)
        opening = Gateway(settings, load_settings(environ={}, files=[]), options=options)
        with opening as gateway, Client(gateway) as client:
            client.send("POST", "/v1/chat/completions", chat())
            assert stage.wait_until(lambda: len(stage.requests) == 1, 30)
            assert wait_for(lambda: gateway.service.open_requests == 0)
            time.sleep(2)
            with suppress(ConnectionResetError):
                assert not client.read().is_complete
