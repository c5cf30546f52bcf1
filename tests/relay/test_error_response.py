"""Our errors in every dialect: statuses, words, codes and headers."""

from __future__ import annotations

import json

import msgspec
import pytest

from asides.dialects import find_dialect
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
from tests.relay.relaying import CALLERS, Door
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
