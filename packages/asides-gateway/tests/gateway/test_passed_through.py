"""Embeddings and completions of plain text: passed through, with keys, limits, allow-lists and counted usage."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.access.limited_gateway import Limited, PlayedStage, limited
from tests.gateway.http_client import Answer
from tests.loopback import ReceivedRequest, serving, whole_response

_EMBEDDED = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": "AACAPw=="}], "x": 1}


class _Host:
    """A host with both endpoints. It keeps what it got."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.usage: dict[str, int] | None = {"prompt_tokens": 1_000, "total_tokens": 1_000}
        self.url = ""

    @property
    def last(self) -> Any:
        return json.loads(self.got[-1][2])


@contextmanager
def _serve() -> Generator[_Host]:
    host = _Host()

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        path = request.line.split(" ")[1]
        host.got.append((path, request.headers, request.body))
        usage = {} if host.usage is None else {"usage": host.usage}
        if path == "/v1/embeddings":
            response = whole_response(json.dumps({**_EMBEDDED, **usage}).encode())
        elif path == "/v1/completions" and json.loads(request.body).get("stream"):
            texts = [{"choices": [{"index": 0, "text": text}]} for text in ("one ", "two")]
            events = [*texts, {"choices": [], **usage}]
            lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            response = whole_response(lines.encode(), "text/event-stream")
        elif path == "/v1/completions":
            response = whole_response(json.dumps({"choices": [{"text": "one"}], **usage}).encode())
        else:
            response = whole_response(b"<h1>nothing here</h1>", "text/html", "404 Not Found")
        connection.sendall(response)
        return True

    with serving(answer) as server:
        host.url = f"http://127.0.0.1:{server.port}"
        yield host


@contextmanager
def _gateway(host: _Host, folder: Path) -> Generator[Limited]:
    row = '[providers.acme]\nbase_url = "{}"\nprices = "openai"\nkey = "optional"\n'
    rows = row.format(f"{host.url}/v1") + row.replace("acme", "bare").format(f"{host.url}/other")
    toml = rows + '[aliases]\nsmall = "acme:text-embedding-3-small"\n'
    stage = PlayedStage()
    with stage.stage, limited(stage, str(folder), toml=toml) as gateway:
        yield gateway


@pytest.fixture
def host() -> Generator[_Host]:
    with _serve() as opened:
        yield opened


def _code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["error"]["code"]


def test_bytes_go_through_with_the_model_replaced(host: _Host, tmp_path: Path) -> None:
    with _gateway(host, tmp_path) as gateway:
        key = gateway.add_key()
        body = b'{"model": "small", "input": ["a", "b"], "encoding_format": "base64", "own": {"x": 1.50}}'
        answer = gateway.ask(key, "/v1/embeddings", body)
        assert (answer.status, answer.json) == (200, {**_EMBEDDED, "usage": host.usage})
        path, headers, sent = host.got[-1]
        assert (path, sent) == ("/v1/embeddings", body.replace(b"small", b"text-embedding-3-small"))
        assert headers["authorization"] == "Bearer sk-upstream"
        assert key.key not in str(host.got)
        completed = gateway.ask(key, "/v1/completions", {"model": "acme:m", "prompt": "Once", "max_tokens": 5})
        assert completed.json["choices"] == [{"text": "one"}]
        assert (host.got[-1][0], host.last["model"]) == ("/v1/completions", "m")


@pytest.mark.parametrize("given", [{}, {"input": ""}, {"input": []}, {"input": None}])
def test_an_embedding_of_nothing_is_refused_in_words_about_its_input(
    given: dict[str, object], host: _Host, tmp_path: Path
) -> None:
    with _gateway(host, tmp_path) as gateway:
        answer = gateway.ask(gateway.add_key(), "/v1/embeddings", {"model": "small", **given})
    assert answer.status == 400
    assert answer.json["error"]["param"] == "input"
    assert answer.json["error"]["message"] == "input is missing. Send a text, or a list of texts."
    assert not host.got


@pytest.mark.parametrize("given", [{}, {"prompt": ""}, {"prompt": "\n"}])
def test_a_completion_may_continue_nothing(given: dict[str, object], host: _Host, tmp_path: Path) -> None:
    with _gateway(host, tmp_path) as gateway:
        assert gateway.ask(gateway.add_key(), "/v1/completions", {"model": "acme:m", **given}).status == 200


def test_a_stream_comes_as_it_was_sent(host: _Host, tmp_path: Path) -> None:
    with _gateway(host, tmp_path) as gateway:
        body = {"model": "acme:m", "prompt": "Once", "stream": True}
        answer = gateway.ask(gateway.add_key(), "/v1/completions", body)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    assert answer.body.count(b"data: ") == 4
    assert answer.body.endswith(b"data: [DONE]\n\n")


def test_a_key_asks_only_its_models(host: _Host, tmp_path: Path) -> None:
    with _gateway(host, tmp_path) as gateway:
        key = gateway.add_key(models=("acme:m",))
        assert _code(gateway.ask(key, "/v1/embeddings", {"model": "small", "input": "a"})) == (403, "model_not_found")
        assert gateway.ask(key, "/v1/embeddings", {"model": "acme:m", "input": "a"}).status == 200
        assert len(host.got) == 1


def test_requests_and_money_count(host: _Host, tmp_path: Path) -> None:
    with _gateway(host, tmp_path) as gateway:
        rated = gateway.add_key(rpm=1)
        asked = [gateway.ask(rated, "/v1/embeddings", {"model": "small", "input": "a"}).status for _ in range(2)]
        assert asked == [200, 429]
        paid = gateway.add_key(name="paid", budget_day="1")
        gateway.ask(paid, "/v1/embeddings", {"model": "small", "input": "a"})
        spent = gateway.spending(paid).day
        assert spent == 20_000, "1,000 tokens at 0.02 dollars for a million"
        host.usage = None
        gateway.ask(paid, "/v1/embeddings", {"model": "small", "input": "a" * 30_000})
        assert gateway.spending(paid).day - spent >= 200_000, "estimated from what was sent"
        poor = gateway.add_key(name="poor", budget_day="0.0000001")
        assert gateway.ask(poor, "/v1/embeddings", {"model": "small", "input": "a" * 3_000}).status == 429


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"input": "a"}', b'{"model": 3}', b'{"model": " "}'])
def test_a_body_that_names_no_model_is_refused(host: _Host, tmp_path: Path, body: bytes) -> None:
    with _gateway(host, tmp_path) as gateway:
        assert gateway.ask(gateway.add_key(), "/v1/embeddings", body).status == 400
    assert not host.got


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "bare:m"])
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions"])
def test_a_host_without_them_is_named(host: _Host, tmp_path: Path, model: str, path: str) -> None:
    with _gateway(host, tmp_path) as gateway:
        answer = gateway.ask(gateway.add_key(), path, {"model": model, "input": "a", "prompt": "a"})
    assert _code(answer) == (501, "unsupported_endpoint")
    assert "provider:model" in answer.json["error"]["message"]
    assert [asked for asked, *_ in host.got] == ([path.replace("/v1", "/other")] if model == "bare:m" else [])
