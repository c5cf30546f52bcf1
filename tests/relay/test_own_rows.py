"""Rows of the user's own: they are asked where their dialect says, and a good status alone is no reply."""

from __future__ import annotations

import pytest

from asides.options import Options
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.providers.user_rows import read_row
from asides_stage import Stage
from asides_stage.stage import Fail, Raw, Say, Scene
from tests.relay.relaying import Door, Response, load

_PATHS = {
    "anthropic": "/v1/messages",
    "bedrock": "/v1/model/m/converse",
    "cohere": "/v1/chat",
    "gemini": "/v1/models/m:generateContent",
    "ollama": "/api/chat",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}


def _ask(row: Provider) -> Response:
    door = Door(None, settings=load(providers=[row]), options=Options(api_key="sk-test"))
    body = {"model": "mine:m", "messages": [{"role": "user", "content": "?"}]}
    return door.post("/v1/chat/completions", body)


def _find_address(stage: Stage) -> str:
    return f"{stage.url.removesuffix('/v1')}/v1"


@pytest.mark.parametrize("dialect", _PATHS)
def test_a_row_with_a_dialect_and_an_address_is_enough(dialect: str) -> None:
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        table = {"dialect": dialect, "base_url": _find_address(stage)}
        response = _ask(read_row("mine", table, "asides.toml", find_provider))
        paths = [received.path for received in stage.requests]
    assert response.status == 200, response.body
    assert paths == [_PATHS[dialect]]
    assert response.json["choices"][0]["message"]["content"] == "Hi"


@pytest.mark.parametrize("dialect", _PATHS)
def test_a_row_in_code_is_asked_where_its_dialect_says(dialect: str) -> None:
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        _ask(Provider(name="mine", dialect=dialect, base_url=_find_address(stage)))
        paths = [received.path for received in stage.requests]
    assert paths == [_PATHS[dialect]]


@pytest.mark.parametrize("body", ['{"detail":"x"}', "{}", "[]", "<html>hi</html>", ""])
@pytest.mark.parametrize("dialect", _PATHS)
def test_a_good_status_without_a_reply_is_an_error(dialect: str, body: str) -> None:
    with Stage(Raw(text=body), rules="lenient", dialect=None) as stage:
        table = {"dialect": dialect, "base_url": _find_address(stage)}
        response = _ask(read_row("mine", table, "asides.toml", find_provider))
    assert response.status == 502, response.body


@pytest.mark.parametrize("stream", [False, True])
def test_a_responses_client_is_asked_for_at_another_address_as_it_asks(stream: bool) -> None:
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        body = {"model": "openai:a-model", "input": "?", "stream": stream}
        response = Door(stage).post("/v1/responses", body)
        paths = [received.path for received in stage.requests]
    assert response.status == 200, response.body
    assert paths == ["/v1/responses"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_without_responses_is_asked_for_chat_completions(stream: bool) -> None:
    scenes: list[Scene] = [Fail(status=404, body='{"detail":"Not Found"}'), Say(text="Hi"), Say(text="Again")]
    with Stage(scenes, rules="lenient") as stage:
        door = Door(stage)
        body = {"model": "openai:a-model", "input": "?", "stream": stream}
        first, second = door.post("/v1/responses", body), door.post("/v1/responses", body)
        paths = [received.path for received in stage.requests]
    assert (first.status, second.status) == (200, 200), first.body
    assert paths == ["/v1/responses", "/v1/chat/completions", "/v1/chat/completions"]
    assert b"Again" in second.body


def test_a_model_that_neither_endpoint_has_is_not_found() -> None:
    missing = '{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}'
    with Stage([Fail(status=404, body=missing)] * 4, rules="lenient") as stage:
        door = Door(stage)
        statuses = [door.post("/v1/responses", {"model": "openai:a-model", "input": "?"}).status for _ in range(2)]
        paths = [received.path for received in stage.requests]
    assert statuses == [404, 404]
    assert paths == ["/v1/responses", "/v1/chat/completions"] * 2
