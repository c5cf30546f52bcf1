"""`Client.models` and `AsyncClient.models` over real sockets: every dialect, pages, a wrong key, garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import asides
from asides import ModelInfo, ThinkingInfo
from asides_stage.stage import OpenStage
from tests.loopback import saying, serving, whole_response

KEY = "sk-canary-3141592653589793"

Lists = Callable[..., tuple[ModelInfo, ...]]


def blocking(provider: str, **options: Any) -> tuple[ModelInfo, ...]:
    with asides.Client() as client:
        return client.models(provider, **options)


def awaiting(provider: str, **options: Any) -> tuple[ModelInfo, ...]:
    async def run() -> tuple[ModelInfo, ...]:
        async with asides.AsyncClient() as client:
            return await client.models(provider, **options)

    return asyncio.run(run())


both = pytest.mark.parametrize("lists", [blocking, awaiting])


@both
@pytest.mark.parametrize(
    ("provider", "path", "key_header", "pages"),
    [
        ("openai", "/v1/models", "authorization", 1),
        ("openai-responses", "/v1/models", "authorization", 1),
        ("anthropic", "/v1/models", "x-api-key", 2),
        ("google", "/v1/models", "x-goog-api-key", 2),
        ("ollama", "/api/tags", "authorization", 1),
        ("cohere", "/v1/models", "authorization", 2),
    ],
)
def test_every_page_of_every_dialect_comes_with_the_key_in_its_header(
    lists: Lists, provider: str, path: str, key_header: str, pages: int, stage: OpenStage
) -> None:
    names = [f"m-{number}" for number in range(1001)]
    opened = stage(key=KEY, models=names)
    models = lists(provider, base_url=opened.url, api_key=KEY)
    assert [model.id for model in models] == names
    assert [(received.method, received.path, received.body) for received in opened.requests] == [
        ("GET", path, b"")
    ] * pages
    assert all(received.headers[key_header].endswith(KEY) for received in opened.requests)
    about_a_body = {"content-type", "content-length", "transfer-encoding"}
    assert all(about_a_body.isdisjoint(received.headers) for received in opened.requests)


@both
def test_what_a_provider_says_of_its_models_arrives(lists: Lists, stage: OpenStage) -> None:
    told = ModelInfo("m", "M", 1_700_000_000, 200_000, 64_000, ThinkingInfo(True, None, ("enabled",), ("low", "high")))
    (model,) = lists("anthropic", base_url=stage(models=[told]).url, api_key=KEY)
    assert msgspec.structs.replace(model, raw={}) == told
    assert model.raw["capabilities"]["thinking"]["types"] == {"enabled": {"supported": True}}


@both
@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "cohere"])
def test_a_wrong_key_is_an_auth_error_without_the_key(lists: Lists, provider: str, stage: OpenStage) -> None:
    opened = stage(key="another")
    with pytest.raises(asides.AuthError) as caught:
        lists(provider, base_url=opened.url, api_key=KEY)
    assert caught.value.status == 401
    assert KEY not in str(caught.value)
    assert len(opened.requests) == 1


@both
def test_garbage_and_a_server_that_recovers(lists: Lists) -> None:
    garbage = whole_response(b"<html>It works!</html>", "text/html")
    with serving(saying(garbage)) as server, pytest.raises(asides.ProtocolError, match="not a list of models"):
        lists("openai-compatible", base_url=server.url)
    busy = whole_response(b"{}", status="503 Service Unavailable", Retry_After="0")
    good = whole_response(b'{"data":[{"id":"a"}]}')
    with serving(saying(busy, good)) as server:
        assert [model.id for model in lists("openai-compatible", base_url=server.url)] == ["a"]
        assert [heard.line for heard in server.heard] == ["GET /v1/models HTTP/1.1"] * 2
    with serving(saying(busy)) as server, pytest.raises(asides.Overloaded):
        lists("openai-compatible", base_url=server.url, retries=0)


@both
def test_a_server_that_falls_silent(lists: Lists) -> None:
    half = whole_response(b'{"data":[{"id":"a"}]}')[:-4]
    with serving(saying(half)) as server, pytest.raises(asides.IdleTimeout):
        lists("openai-compatible", base_url=server.url, timeout=0.2)
    with serving(saying(half)) as server, pytest.raises(asides.TransportError):
        lists("openai-compatible", base_url=server.url, timeout=asides.Timeout(total=0.2))


@both
def test_what_is_wrong_before_a_byte_is_sent(lists: Lists) -> None:
    with pytest.raises(asides.MissingKey):
        lists("groq")
    with pytest.raises(asides.UnknownProvider, match="Did you mean groq"):
        lists("groqq", base_url="http://127.0.0.1:9")
    with pytest.raises(TypeError, match="models\\(\\) has no option 'system'"):
        lists("groq", system="x")
    with pytest.raises(asides.Unsupported, match="list-foundation-models"):
        lists("bedrock", base_url="http://127.0.0.1:9", api_key=KEY)


def test_the_connection_is_kept_for_the_next_question(stage: OpenStage) -> None:
    opened = stage()
    with asides.Client(base_url=opened.url, api_key=KEY) as client:
        client.models("groq")
        client.models("groq")
        client.ask("groq:made-up", "?")
    assert opened.connections == 1
