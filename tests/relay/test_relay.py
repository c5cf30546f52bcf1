"""Requests that end in an error, in the caller's dialect, and paths that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides.options import Options, Timeout
from asides.relay.endpoints import find_endpoint
from asides.relay.relay_request import RelayRequest
from asides.values.errors import (
    AsidesError,
    ConnectionLost,
    RateLimited,
)
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought
from asides.values.tools import Tool
from asides_stage import Stage
from asides_stage.stage import Fail, Garbage, Hang, Say
from tests.loopback import saying, serving, whole_response
from tests.relay.relaying import CALLERS, Door, read_response, write_request


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
        ("/v1/tokenize", "POST", 501),
    ],
)
def test_paths_that_are_not_there(path: str, method: str, status: int) -> None:
    response = Door(None).send(RelayRequest("", method, path, body=b"{}"))
    assert response.status == status
    assert response.json
    if status == 405:
        assert response.headers["allow"]


_ODD: tuple[Any, ...] = (None, 7, "x", [], {}, [7], {"type": 7})


def _mutate(value: Any) -> Iterator[Any]:
    """The document with one of its values replaced by an odd one."""
    yield from _ODD
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: changed} for changed in _mutate(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in _mutate(inner))


class _NobodyThere:
    """A transport that reaches nobody."""

    def open(self, request: HttpRequest, timeout: Timeout) -> NoReturn:
        raise ConnectionLost("nobody is there")

    def close(self) -> None: ...


@pytest.mark.parametrize("caller", CALLERS)
def test_odd_values_never_break_the_relay(caller: str) -> None:
    call = ToolCall("call_aB3dE5fG7h", "look", {"at": "x"})
    prompt = Prompt(
        (
            user("?"),
            Message("assistant", (Thought("so", source="block"), Text("Hm."), call)),
            Message("tool", (ToolResult(call.id, "seen", name="look"),)),
            user("And?"),
        ),
        system="Be brief.",
        tools=(Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}}),),
        output=OutputSchema("answer", {"type": "object", "properties": {}}),
        thinking=Thinking(effort="high"),
    )
    request = write_request(caller, "openai-compatible:any", prompt)
    door = Door(None, options={"retries": 0, "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-test"})
    door.transport = _NobodyThere()
    seen: set[int] = set()
    for document in _mutate(msgspec.json.decode(request.body)):
        response = door.send(msgspec.structs.replace(request, body=msgspec.json.encode(document)))
        assert response.json, document
        seen.add(response.status)
    # A request without messages only loads a model of Ollama.
    assert seen - {200 if caller == "ollama" else 0} <= {400, 401, 404, 502}, seen
    assert {400, 502} <= seen


def test_a_websocket_is_refused_with_the_status_that_makes_clients_use_http() -> None:
    response = Door(None).get("/v1/responses", headers={"upgrade": "websocket", "connection": "Upgrade"})
    assert response.status == 426


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"model": 7}', b'{"model":"a:b","messages":7}', b"\xff"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v2/chat", "/api/chat"])
def test_bad_bodies_are_bad_requests(path: str, body: bytes) -> None:
    response = Door(None).post(path, body)
    assert response.status in (400, 404)
    assert response.json


_DEEP = '{"a":' * 5000 + "1" + "}" * 5000
_CALL_OF_CHAT = msgspec.json.encode(
    {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "call_1a2b3c4d5e", "type": "function", "function": {"name": "look", "arguments": _DEEP}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
    }
)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("caller", CALLERS)
def test_arguments_of_any_depth_reach_the_caller(caller: str, stream: bool) -> None:
    prompt = Prompt((user("?"),), max_tokens=99, stream=stream)
    with serving(saying(whole_response(_CALL_OF_CHAT))) as server:
        door = Door(None, options=Options(base_url=server.url, api_key="sk-test"))
        response = door.send(write_request(caller, "deepseek:deepseek-v4-pro", prompt))
    assert (response.status, response.outcome and response.outcome.error) == (200, None)
    assert b"look" in response.body


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_cannot_be_written_ends_in_an_error_of_the_dialect(
    stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise TypeError("kumquat")

    monkeypatch.setattr("asides.dialects.anthropic.server.write_reply.MessagesWriter.write", fail)
    with Stage(Say(text="Hi")) as stage:
        body = {"model": "deepseek:deepseek-v4-pro", "max_tokens": 9, "stream": stream, "messages": [_QUESTION]}
        response = Door(stage).post("/v1/messages", body)
    assert response.status == 502
    assert response.json["type"] == "error"
    assert b"kumquat" not in response.body


_QUESTION = {"role": "user", "content": "?"}
