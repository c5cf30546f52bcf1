"""The relay in this process: what begins for which request, the vault that clients share, and other endpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides import ConfigError
from asides.integrations.in_process_relay import Answered, ClientRequest, Forwarded, InProcessRelay
from asides.relay.relay import RelayExchange
from asides.relay.steps import StoredRecord
from asides.relay.streams.relay_stream import RelayStream
from asides.transports.http_sync import HttpTransport
from asides_stage import OpenStage, Say


def make_request(path: str, body: Any = None, *, origin: str = "https://api.openai.com", **more: Any) -> ClientRequest:
    content = b"" if body is None else json.dumps(body).encode()
    fields: dict[str, Any] = {
        "method": "POST",
        "query": "",
        "headers": {"authorization": "Bearer sk-home"},
        "limits": None,
        **more,
    }
    return ClientRequest(origin=origin, path=path, body=content, **fields)


def run(relay: InProcessRelay, request: ClientRequest) -> tuple[int, Any]:
    stream = RelayStream(relay.begin(request), HttpTransport(), relay.records)
    start = stream.start()
    return start.status, json.loads(b"".join(stream))


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/chat/completions", {"model": "gpt-5"}, RelayExchange),
        ("/v1/responses", {"model": "gpt-5"}, RelayExchange),
        ("/v1/embeddings", {"model": "text-embedding-3-small"}, Forwarded),
        ("/v1/embeddings", {"model": "ft:custom:1"}, Forwarded),
        ("/v1/files", None, Forwarded),
        ("/v1/embeddings", {"model": "gemini:text-embedding-004"}, Answered),
    ],
)
def test_what_begins(path: str, body: Any, kind: type) -> None:
    assert type(InProcessRelay().begin(make_request(path, body))) is kind


def test_another_endpoint_without_a_key_says_which_one_is_missing() -> None:
    status, body = run(InProcessRelay(), make_request("/v1/files", headers={}))
    assert (status, "OPENAI_API_KEY" in body["error"]["message"]) == (401, True)


@pytest.mark.parametrize(
    ("model", "headers", "words"),
    [
        (
            "anthropic:claude-opus-5",
            {"authorization": "Bearer sk-home"},
            'or pass extra_body={"asides": {"api_key": …}}.',
        ),
        ("gpt-5", {}, "or pass api_key=."),
        ("openai:gpt-5", {}, "or pass api_key=."),
    ],
)
def test_a_missing_key_says_where_this_client_takes_it(
    model: str, headers: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    body = {"model": model, "messages": [{"role": "user", "content": "?"}]}
    status, told = run(InProcessRelay(), make_request("/v1/chat/completions", body, headers=headers))
    assert (status, told["error"]["code"]) == (401, "invalid_api_key")
    assert told["error"]["message"].endswith(words)


def test_a_misspelt_provider_is_suggested_where_the_home_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    body = {"model": "anthropc:claude-opus-5", "messages": [{"role": "user", "content": "?"}]}
    status, told = run(InProcessRelay(), make_request("/v1/chat/completions", body, headers={}))
    assert status == 404
    assert "unknown provider 'anthropc'. Did you mean anthropic" in told["error"]["message"]
    assert "OPENAI_API_KEY" in told["error"]["message"]


def test_an_option_that_is_none_is_suggested() -> None:
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}], "asides": {"thinkng": "low"}}
    status, told = run(InProcessRelay(), make_request("/v1/chat/completions", body))
    assert (status, "did you mean thinking?" in told["error"]["message"]) == (400, True)


@pytest.mark.parametrize("word", ["of", "Memory", "sqlite", ""])
def test_a_word_is_no_path_of_a_vault(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="memory, off, carry-only, or the path of a file"):
        InProcessRelay({"vault": word})
    assert list(tmp_path.iterdir()) == []
    InProcessRelay({"vault": Path("vault")})
    InProcessRelay({"vault": "./other"})
    InProcessRelay({"vault": "third.db"})


def test_another_endpoint_goes_out_as_it_came(stage: OpenStage) -> None:
    opened = stage()
    request = make_request(
        "/v1/embeddings", {"model": "m", "input": "a"}, origin=opened.url.removesuffix("/v1"), query="a=1"
    )
    assert run(InProcessRelay(), request)[0] == 404
    [received] = opened.requests
    assert (received.path, received.query, received.body) == ("/v1/embeddings", "a=1", request.body)
    assert received.headers["authorization"] == "Bearer sk-home"


def test_clients_of_one_process_share_their_vault(tmp_path: Path) -> None:
    assert InProcessRelay().records is InProcessRelay({"vault": "memory"}).records is not None
    assert InProcessRelay({"vault": "off"}).records is InProcessRelay({"vault": "carry-only"}).records is None
    stored = InProcessRelay({"vault": tmp_path / "vault.db"}).records
    assert stored is not None
    assert not stored.is_instant
    stored.close()
    with pytest.raises(ConfigError):
        InProcessRelay({"relay_key": "too short"})


def test_clients_of_one_process_share_the_connections_to_a_database(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="ASIDES_RELAY_KEY"):
        InProcessRelay({"vault": postgres_url})
    one, other = (InProcessRelay({"vault": postgres_url, "relay_key": "0c" * 32}).records for _ in range(2))
    assert one is not None
    assert one is other
    monkeypatch.setenv("ASIDES_RELAY_KEY", "0d" * 32)
    assert InProcessRelay({"vault": postgres_url}).records is not one
    one.write("t", StoredRecord("r", ("k",), b"x"))
    assert [record.id for record in one.read("t", ["k"])] == ["r"]
    one.close()


def test_nothing_of_a_request_is_in_its_repr() -> None:
    shown = repr(make_request("/v1/chat/completions", {"messages": "private words"}))
    assert ("private" in shown, "sk-home" in shown) == (False, False)


def test_tenants_do_not_share_state(stage: OpenStage, monkeypatch: pytest.MonkeyPatch) -> None:
    from asides.values.parts import ToolCall

    call = ToolCall("call_0123456789abcdef0123", "f", {})
    opened = stage(Say(thinking="of one tenant", tool_calls=(call,)), Say("done"))
    monkeypatch.setenv("ASIDES_STAGE", opened.url)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    question: Any = {"role": "user", "content": "?"}
    asked = {"model": "deepseek:deepseek-v4-pro", "tools": tools, "messages": [question]}
    run(InProcessRelay({"tenant": "one"}), make_request("/v1/chat/completions", asked))
    turn = {"role": "assistant", "tool_calls": [
        {"id": call.id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]}  # fmt: skip
    result = {"role": "tool", "tool_call_id": call.id, "content": "1"}
    asked["messages"] = [question, turn, result]
    run(InProcessRelay({"tenant": "two"}), make_request("/v1/chat/completions", asked))
    assert b"of one tenant" not in opened.requests[-1].body
    run(InProcessRelay({"tenant": "one"}), make_request("/v1/chat/completions", asked))
    assert b"of one tenant" in opened.requests[-1].body
