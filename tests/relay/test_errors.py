"""Errors of providers, of the caller and of the relay, in the caller's dialect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.relay.endpoints import NoEndpoint, find_endpoint
from asides.relay.error_response import RelayRefusal, write_error_response
from asides.relay.relay_request import RelayRequest
from asides.testing import Stage
from asides.testing.stage import Fail, Garbage, Hang, Say
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
from asides.values.messages import Prompt, user
from tests.relay.relaying import CALLERS, Door, read_response, write_request

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


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("caller", CALLERS)
def test_a_refusal_before_the_first_byte(caller: str, stream: bool) -> None:
    with Stage(Fail(status=429, message="slow down", retry_after=0)) as stage:
        response = Door(stage, options={"retries": 1}).send(
            write_request(caller, "openai-compatible:any", Prompt((user("SECRET PROMPT"),), stream=stream))
        )
        assert len(stage.requests) == 2
    assert response.status == 429
    assert b"SECRET PROMPT" not in response.body
    assert b"sk-test" not in response.body
    assert response.headers["content-type"] == "application/json"
    with pytest.raises(RateLimited):
        read_response(caller, "any", response)


@pytest.mark.parametrize("caller", CALLERS)
def test_a_stream_that_breaks_ends_with_the_error_of_the_dialect(caller: str) -> None:
    with Stage(Say(text="A long answer that never ends. " * 9, piece=10, cut_after=2500)) as stage:
        response = Door(stage).send(write_request(caller, "openai-compatible:any", Prompt((user("?"),), stream=True)))
    assert response.status == 200
    assert response.outcome is not None
    assert isinstance(response.outcome.error, ConnectionLost)
    assert response.outcome.reply is not None
    with pytest.raises(AsidesError) as caught:
        read_response(caller, "any", response)
    assert caught.value.partial is not None
    assert caught.value.partial.text.startswith("A long answer")
    assert not isinstance(caught.value, ConnectionLost), "the stream itself says that it failed"


@pytest.mark.parametrize("caller", CALLERS)
def test_a_whole_reply_that_breaks_is_an_error_response(caller: str) -> None:
    with Stage(Say(text="A long answer", cut_after=30)) as stage:
        response = Door(stage, options={"retries": 0}).send(
            write_request(caller, "openai-compatible:any", Prompt((user("?"),)))
        )
    assert response.status == 502


def test_html_in_place_of_a_reply() -> None:
    with Stage(Garbage()) as stage:
        response = Door(stage, options={"retries": 0}).send(
            write_request("anthropic", "openai-compatible:any", Prompt((user("?"),)))
        )
    assert response.status == 502
    assert response.json["type"] == "error"


def test_a_silent_provider() -> None:
    with Stage(Hang()) as stage:
        door = Door(stage, options={"timeout": 0.2, "retries": 0})
        response = door.send(write_request("openai_chat", "openai-compatible:any", Prompt((user("?"),), stream=True)))
    assert response.status == 504
    assert response.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/chat/completions", lambda body: body["error"]["code"] == "model_not_found"),
        ("/v1/responses", lambda body: body["error"]["code"] == "model_not_found"),
        ("/v1/messages", lambda body: body["error"]["type"] == "not_found_error"),
        ("/v1beta/models/nobody%3Ax:generateContent", lambda body: body["error"]["status"] == "NOT_FOUND"),
        ("/model/nobody%3Ax/converse", lambda body: "message" in body),
        ("/v2/chat", lambda body: "message" in body),
        ("/api/chat", lambda body: isinstance(body["error"], str)),
    ],
)
def test_an_unknown_model_is_a_clear_404(path: str, shape: Any) -> None:
    dialect = find_endpoint("POST", path, "", {}).dialect
    prompt = Prompt((user("?"),))
    body = write_request(dialect, "nobody:x", prompt).body
    # The maker's own names are not known either where the maker has no key; here the name has an unknown provider.
    response = Door(None, home="nobody").post(path, body)
    assert response.status == 404, response.body
    assert shape(response.json)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/nothing", "POST", 404),
        ("/v1/messages", "GET", 405),
        ("/v1/models", "POST", 405),
        ("/api/pull", "POST", 501),
        ("/v1/responses/compact", "POST", 501),
        ("/v1/tokenize", "POST", 501),
    ],
)
def test_paths_that_are_not_there(path: str, method: str, status: int) -> None:
    response = Door(None).send(RelayRequest("", method, path, body=b"{}"))
    assert response.status == status
    assert response.json
    if status == 405:
        assert response.headers["allow"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"model": 7}', b'{"model":"a:b","messages":7}', b"\xff"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v2/chat", "/api/chat"])
def test_bad_bodies_are_bad_requests(path: str, body: bytes) -> None:
    response = Door(None).post(path, body)
    assert response.status in (400, 404)
    assert response.json


def test_a_hint_counts_where_dialects_share_a_path() -> None:
    assert find_endpoint("GET", "/v1/models", "", {}, "anthropic").dialect == "anthropic"
    assert find_endpoint("POST", "/v1/responses", "", {}, "openai_chat").dialect == "openai_responses"
    assert find_endpoint("GET", "/v1/responses/resp_1", "", {}, "openai_chat").names == {"response": "resp_1"}
    assert find_endpoint("GET", "/models/openai%3Agpt-5/", "", {}).names == {
        "model": "openai%3Agpt-5".replace("%3A", ":")
    }
    with pytest.raises(NoEndpoint):
        find_endpoint("POST", "/v1/embeddings", "", {}, "openai_chat")


def test_options_of_a_request() -> None:
    body = {"model": "openai-compatible:any", "messages": [{"role": "user", "content": "?"}]}
    door = Door(None, options={"base_url": "http://127.0.0.1:1/v1"})
    for asides, words in (
        ({"api_key": "sk-stolen"}, "not allowed"),
        ({"base_url": "http://evil.test"}, "not allowed"),
        ({"nonsense": 1}, "no option"),
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
