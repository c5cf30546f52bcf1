"""The web servers that the docs put before a gateway, with the settings of that page: they hold nothing back."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from asides.options import Options
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from tests.loopback import ReceivedRequest, serving, whole_response

_PAGE = Path(__file__).resolve().parents[4] / "docs" / "operations.md"
_KEY = "gateway-key-of-this-test"
_WORDS = [f"word{number} " for number in range(12)]


def _find_block(language: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.+?)^```", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(blocks[0])


def _pick_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Provider:
    """Writes the next word when the client has got the one before."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(1)

    def answer(self, request: ReceivedRequest, connection: socket.socket) -> bool:
        if not json.loads(request.body).get("stream"):
            message = {"role": "assistant", "content": "".join(_WORDS)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            connection.sendall(whole_response(json.dumps({"id": "x", "choices": [choice]}).encode()))
            return True
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for number, word in enumerate(_WORDS, 1):
            if not self.arrived.acquire(timeout=40):
                return False
            end = "stop" if number == len(_WORDS) else None
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": end}
            event = {"id": "x", "choices": [choice]}
            connection.sendall(f"data: {json.dumps(event)}\n\n".encode())
        connection.sendall(b"data: [DONE]\n\n")
        return False


@pytest.fixture
def provider() -> _Provider:
    return _Provider()


@pytest.fixture
def gateway(provider: _Provider) -> Iterator[str]:
    with serving(provider.answer) as server:
        options = Options(base_url=server.url, api_key="any")
        own = GatewaySettings(port=0, keys=(_KEY,))
        with Gateway(own, load_settings(environ={}, files=[]), options=options) as gateway:
            yield gateway.url.removeprefix("http://")


@contextmanager
def _run(words: list[str], port: int) -> Generator[int]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(400):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, gateway: str, tmp_path: Path) -> Iterator[int]:
    name = str(request.param)
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if program is None:
        pytest.skip(f"{name} is not installed")
    port = _pick_port()
    if name == "nginx":
        server = _find_block("nginx").replace("127.0.0.1:8080", f"127.0.0.1:{port}").replace("127.0.0.1:4242", gateway)
        places = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy"))
        file = tmp_path / "nginx.conf"
        file.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log stderr; worker_processes 1;\n"
            f"events {{}}\nhttp {{ access_log off; {places}\n{server}\n}}\n"
        )
        words = [program, "-c", str(file), "-p", str(tmp_path), "-e", "stderr"]
    else:
        site = _find_block("text").replace("127.0.0.1:8081", f"127.0.0.1:{port}").replace("127.0.0.1:4242", gateway)
        file = tmp_path / "Caddyfile"
        file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + site)
        words = [program, "run", "--adapter", "caddyfile", "--config", str(file)]
    with _run(words, port) as port:
        yield port


@contextmanager
def _ask(port: int, body: Mapping[str, object]) -> Generator[http.client.HTTPResponse]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {_KEY}"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=50)) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
        with connection.getresponse() as response:
            yield response


def test_a_stream_arrives_as_it_is_written(proxy: int, provider: _Provider) -> None:
    question = {"role": "user", "content": "Say twelve words."}
    body = {"model": "openai-compatible:any", "stream": True, "messages": [question]}
    with _ask(proxy, body) as response:
        assert response.status == 200
        text = ""
        while line := response.readline():
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                if choices and (said := choices[0]["delta"].get("content")):
                    text += said
                    provider.arrived.release()
    # Held back, the first word would never have arrived.
    assert text == "".join(_WORDS)


def test_a_large_request_passes(proxy: int) -> None:
    question = {"role": "user", "content": "x" * 8_000_000}
    with _ask(proxy, {"model": "openai-compatible:any", "messages": [question]}) as response:
        assert response.status == 200
        assert json.loads(response.read())["choices"][0]["message"]["content"].startswith("word0 word1")


def test_a_request_without_the_key_is_refused(proxy: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", proxy, timeout=50)) as connection:
        connection.request("GET", "/v1/models")
        with connection.getresponse() as response:
            assert response.status == 401
