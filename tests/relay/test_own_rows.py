"""Rows of the user's own: they are asked where their dialect says, and a good status alone is no reply."""

from __future__ import annotations

import pytest

from asides.dialects.dialect import ServedRequest
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.providers.find import find_provider
from asides.providers.provider import Provider
from asides.providers.user_rows import read_row
from asides.relay.endpoints import find_endpoint
from asides.relay.known_calls import KnownCalls
from asides.relay.relay_config import Caller, RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.relay.request_options import RequestOptions
from asides.relay.target_calls import build_calls
from asides.settings import Settings
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
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


def _move(address: str, name: str = "openai") -> Settings:
    """Settings whose table gives OpenAI's row another address, under its own name or another."""
    table = {"base_url": address, **({} if name == "openai" else {"like": "openai"})}
    return load(providers=[read_row(name, table, "asides.toml", find_provider)])


@pytest.mark.parametrize("name", ["openai", "mine"])
@pytest.mark.parametrize("model", ["gpt-5", "gpt-4o", "a-model"])
def test_a_row_of_ours_that_a_table_moved_is_asked_as_its_client_asks(name: str, model: str) -> None:
    scenes: list[Scene] = [Fail(status=404, body='{"detail":"Not Found"}'), Say(text="Hi"), Say(text="Again")]
    with Stage(Say(text="Hi"), rules="lenient") as has, Stage(scenes, rules="lenient") as lacks:
        for stage, ends in ((has, ["responses"] * 2), (lacks, ["responses", "chat/completions", "chat/completions"])):
            settings = _move(_find_address(stage), name)
            door = Door(None, settings=settings, options=Options(api_key="sk-test"))
            body = {"model": f"{name}:{model}", "input": "?", "store": False}
            assert [door.post("/v1/responses", body).status for _ in range(2)] == [200, 200]
            assert [received.path for received in stage.requests] == [f"/v1/{end}" for end in ends]


@pytest.mark.parametrize("name", ["openai", "mine"])
def test_an_address_of_https_is_asked_like_one_of_http(name: str) -> None:
    """Its scheme does not say what a server has."""
    for scheme in ("http", "https"):
        builder = CallBuilder(Options(api_key="sk-test"), settings=_move(f"{scheme}://llm.example.com/v1", name))
        endpoint = find_endpoint("POST", "/v1/responses", "", {})
        caller = Caller(
            RelayRequest("", "POST", "/v1/responses"), endpoint, builder, RelayConfig(), known_calls=KnownCalls()
        )
        for model in (f"{name}:gpt-5", f"{name}:gpt-4o"):
            asked = ServedRequest(Prompt((user("?"),)), model, False)
            call = build_calls(caller, asked, RequestOptions(Options(on_conflict="adjust"), (model,), False))
            assert caller.other_call is not None
            assert (call.target.dialect, caller.other_call.target.dialect) == ("openai_responses", "openai_chat")
        chat = builder.build(
            f"{name}:gpt-5", Prompt((user("?"),), thinking=Thinking(effort="high")), Options(), stream=False
        )
        assert chat.target.dialect == "openai_chat"


def test_a_model_that_neither_endpoint_has_is_not_found() -> None:
    missing = '{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}'
    with Stage([Fail(status=404, body=missing)] * 4, rules="lenient") as stage:
        door = Door(stage)
        statuses = [door.post("/v1/responses", {"model": "openai:a-model", "input": "?"}).status for _ in range(2)]
        paths = [received.path for received in stage.requests]
    assert statuses == [404, 404]
    assert paths == ["/v1/responses", "/v1/chat/completions"] * 2
