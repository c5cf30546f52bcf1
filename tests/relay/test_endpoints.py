"""What a caller asks for beside replies: models, counts of tokens, stored responses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay_keys import RelayKeys
from asides.relay.relay_request import RelayRequest
from asides.relay.vault.memory_vault import MemoryVault
from asides.settings import Settings, load_settings
from asides.testing import Stage
from asides.testing.stage import Fail, Say
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from tests.relay.relaying import Door

_ROUTES = {
    "best": {"targets": ["openai-compatible:big", "openai-compatible:small"], "thinking": "low", "max_tokens": 99},
    "claude-*": {"targets": "openai-compatible:any"},
}


def _load(**tables: Any) -> Settings:
    return load_settings(environ={}, files=[], **tables)


# --- routes -------------------------------------------------------------------------------------------------------


def _chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "?"}], **more}


def test_a_route_asks_its_targets_in_order_with_its_defaults() -> None:
    with Stage([Fail(status=500), Say(text="Hi")]) as stage:
        door = Door(stage, settings=_load(routes=_ROUTES, retries=0))
        response = door.post("/v1/chat/completions", _chat("best"))
        first, second = stage.requests
    assert response.status == 200
    assert response.json["model"] == "best"
    assert (first.json["model"], second.json["model"]) == ("big", "small")
    assert second.json["max_tokens"] == 99
    assert second.json["reasoning_effort"] == "low"
    assert "fell_back" in response.headers["x-asides-notice"]


def test_what_the_request_says_wins_over_the_route() -> None:
    with Stage(Say(text="Hi")) as stage:
        door = Door(stage, settings=_load(routes=_ROUTES, max_tokens=5), options=Options(temperature=0.9))
        door.post("/v1/chat/completions", _chat("best", max_tokens=7, reasoning_effort="high", temperature=0.1))
        (received,) = stage.requests
    assert received.json["max_tokens"] == 7
    assert received.json["reasoning_effort"] == "high"
    assert received.json["temperature"] == 0.1


def test_names_that_fit_a_pattern_and_aliases() -> None:
    with Stage(Say(text="Hi")) as stage:
        settings = _load(routes=_ROUTES, aliases={"mine": "openai-compatible:any"})
        door = Door(stage, settings=settings)
        for model in ("claude-haiku-9", "mine"):
            body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
            response = door.post("/v1/messages", body)
            assert response.status == 200
            assert response.json["model"] == model
        assert {received.json["model"] for received in stage.requests} == {"any"}


def test_a_bare_name_belongs_to_the_home_and_else_to_the_maker() -> None:
    with Stage(Say(text="Hi")) as stage:
        Door(stage, home="openai-compatible").post("/v1/chat/completions", _chat("llama3:8b"))
        Door(stage).post("/v2/chat", _chat("command-a-03-2025"))
        first, second = stage.requests
    assert (first.path, first.json["model"]) == ("/v1/chat/completions", "llama3:8b")
    assert (second.path, second.json["model"]) == ("/v1/chat", "command-a-03-2025")


def test_two_replies_are_never_spliced() -> None:
    cut = Say(text="A long answer that never ends. " * 9, piece=10, cut_after=2000)
    with Stage([cut, Say(text="other")]) as stage:
        response = Door(stage, settings=_load(routes=_ROUTES)).post("/v1/chat/completions", _chat("best", stream=True))
        assert len(stage.requests) == 1
    assert b"other" not in response.body
    assert b'"error"' in response.body


@pytest.mark.parametrize(
    "table",
    [{"x": 7}, {"x": {"targets": []}}, {"x": {"targets": ["a:b"], "api_key": "k"}}, {"a:b": {"targets": "c:d"}}, 7],
)
def test_routes_are_checked(table: Any) -> None:
    with pytest.raises(ConfigError, match="routes"):
        _load(routes=table)


# --- models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "headers", "names"),
    [
        ("/v1/models", {}, lambda body: [model["id"] for model in body["data"]]),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, lambda body: [model["id"] for model in body["data"]]),
        ("/v1beta/models", {}, lambda body: [model["name"].removeprefix("models/") for model in body["models"]]),
        ("/api/tags", {}, lambda body: [model["model"] for model in body["models"]]),
        ("/v1/models", {"x-fern-sdk-name": "cohere"}, lambda body: [model["name"] for model in body["models"]]),
    ],
)
def test_lists_in_the_shape_of_the_caller(path: str, headers: dict[str, str], names: Any) -> None:
    settings = _load(routes=_ROUTES, aliases={"mine": "openai-compatible:any"})
    with Stage(models=["one", "two"]) as stage:
        home = Options(base_url=stage.url, api_key="sk-test")
        door = Door(None, settings=settings, home="openai-compatible", home_options=home)
        response = door.get(path, headers=headers)
        assert response.status == 200
        assert names(response.json) == ["one", "two", "best", "mine"]
        assert door.get(path, headers=headers, method="HEAD").status == 200
    unlisted = door.get(path, headers=headers)
    assert names(unlisted.json) == ["best", "mine"]
    assert "models_not_listed" in unlisted.headers["x-asides-notice"]


def test_one_model() -> None:
    settings = _load(routes=_ROUTES)
    door = Door(None, settings=settings)
    for name in ("best", "anthropic:claude-opus-4-5", "openai/gpt-5"):
        response = door.get(f"/v1/models/{name.replace(':', '%3A')}")
        assert (response.status, response.json["id"]) == (200, name)
    response = door.get("/v1/models/nobody%3Ax")
    assert response.status == 404
    assert response.json["error"]["code"] == "model_not_found"


def test_what_ollama_clients_ask_first() -> None:
    door = Door(None, settings=_load(routes=_ROUTES))
    assert door.get("/").body == b"Ollama is running"
    assert door.get("/", method="HEAD").status == 200
    assert door.get("/api/version").json["version"]
    assert door.get("/api/ps").json == {"models": []}
    shown = door.post("/api/show", {"model": "best"})
    assert "thinking" in shown.json["capabilities"]
    assert door.post("/api/show", {"model": "nobody:x"}).status == 404


# --- counts -------------------------------------------------------------------------------------------------------

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


# --- stored responses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "upstream", ["anthropic:claude-opus-4-5", "gemini:gemini-3-pro-preview", "deepseek:deepseek-v4-pro"]
)
def test_a_conversation_continues_from_a_stored_response(upstream: str, stream: bool) -> None:
    call = ToolCall("call_aB3dE5fG7h", "get_weather", {"city": "Rome"})
    scenes = [Say(thinking="t1", tool_calls=(call,)), Say(thinking="t2", text="Sunny."), Say(text="You asked.")]
    tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    common = {"model": upstream, "tools": [tool], "stream": stream, "reasoning": {"effort": "high", "summary": "auto"}}
    with Stage(scenes) as stage:
        stage.expect_no_refusals()
        door = Door(stage)
        first = _response(door.post("/v1/responses", {**common, "input": "Weather?"}).body)
        called = next(item for item in first["output"] if item["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": called["call_id"], "output": "sunny"}
        second = _response(
            door.post("/v1/responses", {**common, "previous_response_id": first["id"], "input": [output]}).body
        )
        assert second["output"][-1]["content"][0]["text"] == "Sunny."
        third = _response(
            door.post(
                "/v1/responses", {**common, "previous_response_id": second["id"], "input": "What did I ask?"}
            ).body
        )
        last = stage.requests[-1].served
    assert third["output"][-1]["content"][0]["text"] == "You asked."
    assert last is not None
    roles = [message.role for message in last.prompt.messages]
    assert roles.count("assistant") == 2
    assert "Weather?" in last.prompt.messages[0].text
    shown = door.get(f"/v1/responses/{second['id']}")
    assert shown.json["output"][-1]["content"][0]["text"] == "Sunny."
    assert shown.json["id"] == second["id"]
    items = door.get(f"/v1/responses/{second['id']}/input_items", query="order=asc").json
    assert items["data"][0]["call_id"] == called["call_id"]
    assert items["data"][0]["id"]
    assert door.post(f"/v1/responses/{second['id']}/cancel", b"").status == 400
    deleted = door.get(f"/v1/responses/{second['id']}", method="DELETE")
    assert deleted.json == {"id": second["id"], "object": "response", "deleted": True}
    assert door.get(f"/v1/responses/{second['id']}").status == 404


def _response(body: bytes) -> dict[str, Any]:
    if body.startswith(b"{"):
        return msgspec.json.decode(body)  # type: ignore[no-any-return]
    events = [msgspec.json.decode(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    assert events[-1]["type"] == "response.completed", events[-1]
    return events[-1]["response"]  # type: ignore[no-any-return]


def test_responses_of_others_are_not_there() -> None:
    body = {"model": "openai-compatible:any", "input": "?"}
    with Stage(Say(text="Hi")) as stage:
        vault, keys = MemoryVault(), RelayKeys.generate()
        door = Door(stage, records=vault, keys=keys)
        first = door.post("/v1/responses", body, tenant="a").json
        later = {**body, "previous_response_id": first["id"]}
        assert door.post("/v1/responses", later, tenant="a").status == 200
        other = Door(stage, records=vault, keys=keys).post("/v1/responses", later, tenant="b")
        assert other.status == 400
        assert other.json["error"]["code"] == "previous_response_not_found"
        assert other.json["error"]["param"] == "previous_response_id"
        assert other.json["error"]["message"] == f"Previous response with id '{first['id']}' not found."
        assert door.get(f"/v1/responses/{first['id']}", tenant="b").status == 404
        unstored = door.post("/v1/responses", {**body, "store": False}, tenant="a").json
        assert door.get(f"/v1/responses/{unstored['id']}", tenant="a").status == 404
        restarted = Door(stage, records=vault, keys=keys)
        assert restarted.post("/v1/responses", later, tenant="a").status == 200


def test_a_provider_that_stores_itself_is_asked() -> None:
    with Stage() as stage:
        home = Options(base_url=stage.url, api_key="sk-test")
        door = Door(None, home="openai-responses", home_options=home)
        first = door.post("/v1/responses", {"model": "gpt-5.2", "input": "6*7?", "store": True})
        assert first.outcome is not None
        assert first.outcome.mode == "forward"
        again = door.post(
            "/v1/responses",
            {"model": "gpt-5.2", "input": "And?", "store": True, "previous_response_id": first.json["id"]},
        )
        assert again.status == 200
        assert stage.requests[-1].json["previous_response_id"] == first.json["id"]
        shown = door.get(f"/v1/responses/{first.json['id']}")
        assert shown.json["id"] == first.json["id"]
        assert door.get(f"/v1/responses/{first.json['id']}", method="DELETE").json["deleted"] is True


class _Broken:
    is_instant = True

    def read(self, tenant: str, keys: Any) -> Any:
        raise OSError

    write = delete = read

    def close(self) -> None: ...


def test_a_store_that_fails_costs_no_answer() -> None:
    with Stage(Say(thinking="t", text="Hi")) as stage:
        door = Door(stage, records=_Broken())
        response = door.send(
            RelayRequest("", "POST", "/v1/responses", body=b'{"model":"deepseek:deepseek-v4-pro","input":"?"}')
        )
    assert response.status == 200
    assert response.json["output"][-1]["content"][0]["text"] == "Hi"
    assert response.outcome is not None
    assert any(notice.code == "relay_store_failed" for notice in response.outcome.notices)
    assert "relay_store_failed" in response.headers["x-asides-notice"]
