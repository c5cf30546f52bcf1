"""Counts of tokens: the provider's own, or an estimate that says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.testing import Stage
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
