"""Errors for clients of a server: whose key was refused, and no words of Python."""

from __future__ import annotations

import os
from typing import Any

import pytest

from asides.options import Options
from asides.relay.client_errors import explain_to_client
from asides.values.errors import (
    AsidesError,
    ConfigError,
    ConnectionLost,
    ProtocolError,
    ReplayRejected,
    Unsupported,
)
from asides_stage import Stage
from asides_stage.stage import Fail
from tests.relay.relaying import Door

_QUESTION = [{"role": "user", "content": "?"}]
_PATHS: dict[str, dict[str, Any]] = {
    "/v1/messages": {"messages": _QUESTION, "max_tokens": 9},
    "/v1/chat/completions": {"messages": _QUESTION},
    "/v1/responses": {"input": "?"},
    "/v2/chat": {"messages": _QUESTION},
    "/api/chat": {"messages": _QUESTION},
}


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("path", _PATHS)
def test_a_key_that_the_provider_refuses_is_not_the_login_of_the_client(path: str, status: int) -> None:
    """Forwarded (Messages) and translated alike."""
    with Stage(Fail(status=status, message="invalid x-api-key"), rules="lenient") as stage:
        response = Door(stage).post(path, {"model": "anthropic:claude-opus-4-5", **_PATHS[path]})
    assert response.status == 502
    assert b"refused the key of this gateway" in response.body
    assert b"anthropic" in response.body
    assert b"authentication_error" not in response.body.replace(b"(authentication_error)", b"")
    assert response.headers["x-should-retry"] == "false"
    assert response.outcome is not None
    assert response.outcome.error is not None


@pytest.mark.parametrize(
    "message",
    [
        "google/gemma requires moderation on Chutes. Your input was flagged for 'violence'. No credits were charged.",
        "The request was blocked by the content filter.",
    ],
)
@pytest.mark.parametrize("path", _PATHS)
def test_a_request_that_a_moderation_refuses_is_the_matter_of_its_client(path: str, message: str) -> None:
    with Stage(Fail(status=403, message=message), rules="lenient") as stage:
        response = Door(stage).post(path, {"model": "openrouter:x/y", **_PATHS[path]})
    assert response.status in (400, 403)
    assert b"key of this gateway" not in response.body
    assert message[:40].encode() in response.body


def test_a_client_in_this_process_holds_the_key_itself() -> None:
    with Stage(Fail(status=401, message="invalid x-api-key"), rules="lenient") as stage:
        door = Door(stage, trusts_callers=True)
        statuses = [door.post(path, {"model": "anthropic:claude-opus-4-5", **_PATHS[path]}).status for path in _PATHS]
    assert set(statuses) == {401}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Unsupported("an image has no data; give Image(data=…)."), "an image has no data."),
        (ConnectionLost("it ended; try again (.partial has the reply so far)."), "it ended; try again."),
        (
            ProtocolError("too much, the limit for one. Set reply_limits= if you expect more."),
            "too much, the limit for one. Ask the operator of this gateway.",
        ),
        (
            ReplayRejected(
                "x answered 400: temperature='hot' is wrong. Send the conversation without earlier thinking "
                "(Thinking(replay='never')), or start a new one.",
                status=400,
            ),
            "x answered 400: temperature='hot' is wrong. Start a new one.",
        ),
        (ConfigError("give Image(data=…)."), "the request cannot be sent as it is."),
        (ConfigError("a plain problem. Leave it out."), "a plain problem. Leave it out."),
        (ConfigError("it has no home: set X_HOME, or pass home=."), "it has no home: set X_HOME."),
        (ConfigError("pass home=, or set X_HOME."), "set X_HOME."),
        (ConfigError("too long; pass size=, or wait."), "too long, or wait."),
        (ConfigError("a: Expected `array`, got `int`."), "a: Expected `array`, got `integer`."),
        (
            ConfigError("it is wrong: Expected `float | bool | null`, got `str` - at `$.int`."),
            "it is wrong: Expected `number | boolean | null`, got `string` - at `$.int`.",
        ),
    ],
)
def test_errors_do_not_mention_names_of_python(error: AsidesError, words: str) -> None:
    explained = explain_to_client(error)
    assert str(explained) == words
    assert type(explained) is type(error)


@pytest.mark.parametrize("path", _PATHS)
def test_types_have_their_names_of_json(path: str) -> None:
    wrong = {name: 5 if name in ("messages", "input") else value for name, value in _PATHS[path].items()}
    response = Door(None, options=Options(api_key="sk-test")).post(path, {"model": "mistral:m", **wrong})
    assert response.status == 400
    assert b"`int`" not in response.body
    assert path == "/v1/responses" or b"messages: Expected `array`, got `integer`" in response.body


@pytest.mark.parametrize("path", _PATHS)
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("azure:m", b"AZURE_OPENAI_ENDPOINT"),
        ("bedrock:m", b"AWS_REGION"),
        ("vertex:m", b"GOOGLE_CLOUD_LOCATION"),
        ("databricks:m", b"DATABRICKS"),
        ("cloudflare:m", b"CLOUDFLARE"),
        ("openai-compatible:m", b"has no address of its own"),
    ],
)
def test_an_address_that_is_missing_is_named(
    model: str, words: bytes, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*os.environ,):
        if name.startswith(("AZURE", "AWS", "GOOGLE", "DATABRICKS", "CLOUDFLARE", "OPENAI")):
            monkeypatch.delenv(name)
    response = Door(None, options=Options(api_key="sk-test")).post(path, {"model": model, **_PATHS[path]})
    assert response.status == 502
    assert words in response.body, response.body
    assert b"base_url" not in response.body
    assert response.outcome is not None
    error = response.outcome.error
    assert "base_url=" in str(error)
