"""Our errors in every dialect: statuses, words, codes and headers."""

from __future__ import annotations

import json

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.options import Options
from asides.providers.find import find_target
from asides.relay.error_response import RelayRefusal, write_error_response
from asides.relay.relay_request import RelayRequest
from asides.relay.translate.translate_fields import UntranslatableField
from asides.values.errors import (
    AsidesError,
    AuthError,
    ConfigError,
    ConnectionLost,
    ConnectTimeout,
    ContextTooLong,
    IdleTimeout,
    MissingKey,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
    UnknownModel,
)
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, TextDelta, ThinkingDelta
from asides.values.messages import Prompt, user
from tests.loopback import saying, serving, whole_response
from tests.relay.relaying import CALLERS, UPSTREAMS, Door, Response, write_request
from tests.relay.translated import BASES, translate

_STATUSES: list[tuple[AsidesError, int]] = [
    (RateLimited("too many", status=429, retry_after=2.2), 429),
    (AuthError("wrong key", status=401), 401),
    (AuthError("not allowed", status=403), 403),
    (ContextTooLong("too long", status=400), 400),
    (UnknownModel("no such model"), 404),
    (MissingKey("x", ("X_API_KEY",)), 401),
    (ConnectTimeout("slow"), 504),
    (IdleTimeout("silent"), 504),
    (ConnectionLost("cut"), 502),
    (ProtocolError("no JSON"), 502),
    (ProviderError("moved", status=302), 502),
    (ConfigError("wrong"), 400),
    (RelayRefusal("not here", status=501), 501),
    (AsidesError("else"), 500),
]


@pytest.mark.parametrize("dialect", CALLERS)
@pytest.mark.parametrize(("error", "status"), _STATUSES, ids=lambda each: getattr(type(each), "__name__", str(each)))
def test_each_error_has_its_status(error: AsidesError, status: int, dialect: str) -> None:
    response = write_error_response(error, dialect)
    assert response.status == status
    assert str(error) in msgspec.json.encode(msgspec.json.decode(response.body)).decode()
    read = find_dialect(dialect).error(
        status, response.headers, response.body, Door(None).relay.begin(RelayRequest(dialect, "POST", "/")).call.target
    )
    assert read.status == status
    if isinstance(error, RateLimited):
        assert response.headers["retry-after"] == "3"


def test_an_overloaded_provider_is_that_in_every_dialect() -> None:
    error = Overloaded("busy", status=503)
    assert write_error_response(error, "anthropic").status == 529
    assert write_error_response(error, "openai_chat").status == 503
    assert write_error_response(Overloaded("broken", status=500), "anthropic").status == 500
    body = msgspec.json.decode(write_error_response(error, "anthropic").body)
    assert body["error"]["type"] == "overloaded_error"


def test_codes_that_clients_match_on() -> None:
    too_long = ContextTooLong("the conversation is too long", status=400)
    openai = msgspec.json.decode(write_error_response(too_long, "openai_responses").body)["error"]
    assert openai["code"] == "context_length_exceeded"
    anthropic = msgspec.json.decode(write_error_response(too_long, "anthropic").body)["error"]
    assert anthropic["message"].startswith("prompt is too long")
    assert anthropic["type"] == "invalid_request_error"
    quota = RateLimited("no credit", status=402)
    assert msgspec.json.decode(write_error_response(quota, "openai_chat").body)["error"]["code"] == "insufficient_quota"
    assert "x-amzn-errortype" in write_error_response(quota, "bedrock").headers


def test_a_field_that_cannot_be_translated_is_named_as_clients_look_for_it() -> None:
    with pytest.raises(UntranslatableField) as refused:
        translate("anthropic", {**BASES["anthropic"], "thread": {"type": "create"}}, "openai_chat")
    error = json.loads(write_error_response(refused.value, "anthropic").body)["error"]
    assert error["details"]["error_code"] == "thread_unsupported_request"
    assert error["type"] == "invalid_request_error"
    with pytest.raises(UntranslatableField) as refused:
        translate("openai_chat", {**BASES["openai_chat"], "n": 2}, "gemini")
    for caller in CALLERS:
        response = write_error_response(refused.value, caller)
        assert response.status == 400
        assert b"one reply" in response.body
        if caller in ("openai_chat", "openai_responses"):
            assert json.loads(response.body)["error"]["param"] == "n"


# --- odd responses of providers ---------------------------------------------------------------------------------------


def _ask_odd(upstream: str, caller: str, response: bytes) -> Response:
    with serving(saying(response)) as server:
        door = Door(None, options=Options(base_url=server.url, api_key="sk-test", retries=0))
        return door.send(write_request(caller, upstream, Prompt((user("hi"),), max_tokens=50)))


@pytest.mark.parametrize("status", ["199 Odd", "304 Not Modified", "600 Odd", "999 Odd"])
@pytest.mark.parametrize(
    ("upstream", "caller"),
    [
        ("deepseek:deepseek-v4-pro", "anthropic"),
        ("anthropic:claude-opus-4-5", "anthropic"),
        ("openai-responses:gpt-5.2", "openai_responses"),
        ("gemini:gemini-3-pro-preview", "ollama"),
    ],
)
def test_a_status_that_no_client_expects_is_a_bad_gateway(status: str, upstream: str, caller: str) -> None:
    response = _ask_odd(upstream, caller, whole_response(b'{"a": 1}', status=status))
    assert response.status == 502
    assert "error" in response.json


def test_so_is_one_about_a_stored_response() -> None:
    with serving(saying(whole_response(b"{}", status="999 Odd"))) as server:
        home = Options(base_url=server.url, api_key="sk-test")
        door = Door(None, home="openai-responses", home_options=home)
        assert door.get("/v1/responses/resp_1").status == 502


_REPLY: list[Event] = [
    ReplyStarted("m", "id1"),
    ThinkingDelta("the kumquat is secret", 0),
    TextDelta("An answer.", 1),
    ReplyEnded(StopReason("stop")),
]


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_an_error_does_not_quote_the_reply_in_its_body(upstream: str, stream: bool, long: bool) -> None:
    """Some gateways fail after they have begun to answer, and send what they have under a bad status."""
    dialect = find_target(upstream, base_url="http://127.0.0.1:9").dialect
    writer = find_dialect(dialect).writer(model="m", stream=stream)
    more: list[Event] = [ThinkingDelta("kumquat " * 20_000, 0)] if long else []
    body = writer.write([_REPLY[0], *more, *_REPLY[1:]])
    asked_by = "cohere" if dialect != "cohere" else "anthropic"
    response = _ask_odd(upstream, asked_by, whole_response(body, writer.content_type, status="500 Oops"))
    assert response.status >= 500
    assert b"kumquat" not in response.body
    assert b"An answer" not in response.body
    assert response.outcome is not None
    assert "kumquat" not in str(response.outcome.error)


def test_the_error_in_a_stream_is_told() -> None:
    body = b'data: {"choices":[{"delta":{"content":"kumquat"}}]}\n\ndata: {"error":{"message":"out of memory"}}\n\n'
    response = _ask_odd("deepseek:deepseek-v4-pro", "anthropic", whole_response(body, status="500 Oops"))
    assert b"out of memory" in response.body
    assert b"kumquat" not in response.body
