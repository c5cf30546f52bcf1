"""Options of ours in the body of a request, and how they meet its own fields."""

from __future__ import annotations

from typing import Any

import pytest

from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import RelayConfig
from asides.relay.request_options import read_request_options
from asides.settings import Settings
from asides.values.visibility import Visibility
from asides_stage import Stage
from asides_stage.stage import Say
from tests.relay.relaying import Door


def test_options_of_a_request() -> None:
    body = {"model": "openai-compatible:any", "messages": [{"role": "user", "content": "?"}]}
    door = Door(None, options={"base_url": "http://127.0.0.1:1/v1"})
    for asides, words in (
        ({"api_key": "sk-stolen"}, "not allowed"),
        ({"base_url": "http://evil.test"}, "not allowed"),
        ({"nonsense": 1}, "unknown option"),
        ([], "object"),
        ({"fallbacks": [7]}, "list of models"),
        ({"visibility": "everything"}, "raw and summary"),
        ({"timeout": "soon"}, "timeout"),
    ):
        response = door.post("/v1/chat/completions", body | {"asides": asides})
        assert response.status == 400, asides
        assert words in response.json["error"]["message"]
        assert b"sk-stolen" not in response.body
    with Stage(Say(text="Hi")) as stage:
        own = {"base_url": stage.url, "api_key": "sk-own", "max_tokens": 7, "extra": {"top_k": 3}}
        response = Door(None, trusts_callers=True).post("/v1/chat/completions", body | {"asides": own})
        assert response.status == 200
        (received,) = stage.requests
    assert received.headers["authorization"] == "Bearer sk-own"
    assert received.json["max_tokens"] == 7
    assert received.json["top_k"] == 3
    assert "asides" not in received.json


@pytest.mark.parametrize(
    "given",
    [
        {"retries": 11},
        {"max_wait": 1e12},
        {"fallbacks": ["anthropic:a"] * 17},
        {"extra": {"model": "another"}},
        {"extra": {"models": ["another"]}},
        {"reply_limits": {"text": 1}},
        {"timeout": 3601},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"timeout": {"idle": 1e9}},
        {"timeout": {"first_byte": None}},
        {"extra": {"previous_response_id": "resp_1"}},
        {"extra": {"conversation": "conv_1"}},
        {"extra": {"container": "cntr_1"}},
    ],
    ids=str,
)
def test_only_a_trusted_caller_may_ask_for_much(given: dict[str, Any]) -> None:
    with pytest.raises(RelayRefusal) as caught:
        read_request_options(given, RelayConfig())
    assert caught.value.status == 400
    assert str(read_request_options(given, RelayConfig(trusts_callers=True))) == str(given)


def test_what_is_usual_is_allowed() -> None:
    for given in ({"timeout": 60}, {"timeout": {"connect": 5, "total": None}}, {"retries": 3, "max_wait": 30}):
        assert read_request_options(given, RelayConfig()) == given


_TELLS_APART: list[dict[str, Any]] = [
    *({"tags": []}, {"tags": [["<z>", "</z>"]]}, {"tag_position": "leading"}, {"starts_inside": False}),
    *({"heuristics": False}, {"thinking_field": "z"}, {"family": "llama"}),
]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses"])
@pytest.mark.parametrize("given", _TELLS_APART, ids=str)
def test_whoever_may_not_see_thinking_does_not_decide_what_is(given: dict[str, Any], path: str) -> None:
    body = {"model": "vllm:qwen3-8b", "max_tokens": 99, "asides": given}
    body |= {"input": "?"} if path.endswith("responses") else {"messages": [{"role": "user", "content": "?"}]}
    with Stage(lambda _: Say(text="<think>the canary thinks</think>42")) as stage:
        response = Door(stage, sink="gateway").post(path, body)
        assert response.status == 400
        assert b"ask the operator of this relay" in response.body
        # Where all thinking is shown, callers may.
        owner = Door(stage, sink="gateway", settings=Settings(visibility=Visibility(gateway=("raw", "summary"))))
        assert owner.post(path, body).status == 200
        assert Door(stage, sink="gateway", trusts_callers=True).post(path, body).status == 200
