"""Counts of tokens: the provider's own, or an estimate that says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides_stage import Stage
from tests.loopback import saying, serving, whole_response
from tests.relay.relaying import Door


def _chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "?"}], **more}


_COUNTS: dict[str, tuple[str, Any, str]] = {
    "anthropic": ("/v1/messages/count_tokens", _chat("MODEL"), "input_tokens"),
    "openai_responses": ("/v1/responses/input_tokens", {"model": "MODEL", "input": "one two"}, "input_tokens"),
    "gemini": ("/v1beta/models/MODEL:countTokens", {"contents": [{"parts": [{"text": "one two"}]}]}, "totalTokens"),
    "bedrock": (
        "/model/MODEL/count-tokens",
        {"input": {"converse": {"messages": [{"role": "user", "content": [{"text": "one two"}]}]}}},
        "inputTokens",
    ),
}
_COUNTING = ("anthropic:claude-opus-4-5", "gemini:gemini-3-pro-preview", "openai-responses:gpt-5.2")


@pytest.mark.parametrize("caller", _COUNTS)
@pytest.mark.parametrize("upstream", [*_COUNTING, "bedrock:anthropic.claude-opus-4-5-20251101-v1:0"])
def test_the_providers_own_count(caller: str, upstream: str) -> None:
    path, body, field = _COUNTS[caller]
    with Stage() as stage:
        stage.expect_no_refusals()
        text = msgspec.json.encode(body).decode().replace("MODEL", upstream)
        response = Door(stage).post(path.replace("MODEL", upstream.replace(":", "%3A")), text.encode())
        (received,) = stage.requests
    assert response.status == 200, response.body
    assert received.problem is None
    assert "count" in received.path.lower() or "input_tokens" in received.path
    assert response.json[field] in (1, 2)
    assert "tokens_estimated" not in response.headers.get("x-asides-notice", "")


@pytest.mark.parametrize("caller", _COUNTS)
def test_an_estimate_says_that_it_is_one(caller: str) -> None:
    path, body, field = _COUNTS[caller]
    with Stage() as stage:
        text = msgspec.json.encode(body).decode().replace("MODEL", "openai-compatible:any")
        response = Door(stage).post(path.replace("MODEL", "openai-compatible%3Aany"), text.encode())
        assert not stage.requests
    assert response.json[field] > 5
    assert "tokens_estimated" in response.headers["x-asides-notice"]


def _count(door: Door, caller: str, model: str, **more: Any) -> Any:
    path, body, field = _COUNTS[caller]
    text = msgspec.json.encode(body | more).decode().replace("MODEL", model)
    response = door.post(path.replace("MODEL", model.replace(":", "%3A")), text.encode())
    assert response.status == 200, response.body
    return response.json[field], response.headers.get("x-asides-notice", "")


@pytest.mark.parametrize("answer", [b'{"input_tokens": 0}', b'{"input_tokens": -3}', b'{"tokens": 7}', b"nonsense"])
def test_a_host_that_does_not_count_gives_no_zero(answer: bytes) -> None:
    with serving(saying(whole_response(answer))) as server:
        door = Door(None, options=Options(base_url=server.url, api_key="sk-test"))
        count, notice = _count(door, "openai_responses", "anthropic:claude-opus-4-5")
    assert count > 0
    assert "tokens_estimated" in notice


def test_an_estimate_counts_tools_and_instructions_and_what_was_said() -> None:
    """Claude Code's `/context` asks for each of them alone."""
    words = "word " * 400
    tool = {"name": "write", "description": words, "input_schema": {"type": "object", "properties": {}}}
    said = [{"role": "user", "content": words}]
    with Stage() as stage:
        door = Door(stage)
        model = "openai-compatible:any"
        bare, _ = _count(door, "anthropic", model)
        for more in ({"tools": [tool]}, {"system": words}, {"messages": said}):
            count, _ = _count(door, "anthropic", model, **more)
            assert 250 < count - bare < 1200, more.keys()
    assert bare > 0
