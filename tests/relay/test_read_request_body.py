"""A body that our reader refuses still says which model it asks, whether it streams, and what it continues."""

from __future__ import annotations

import msgspec
import pytest

from asides.flows.build_call import CallBuilder
from asides.relay.endpoints import find_endpoint, find_reply_form
from asides.relay.error_response import RelayRefusal
from asides.relay.read_request_body import (
    MAX_MESSAGES,
    MAX_OBJECTS,
    MAX_VALUES,
    read_request,
    read_shallow,
    refuse_many,
)
from asides.relay.relay_config import Caller, RelayConfig
from asides.relay.relay_request import RelayRequest
from asides.settings import Settings
from asides.values.errors import ConfigError
from asides_stage import Say, Stage
from tests.relay.relaying import Door


def make_caller(path: str, body: bytes) -> Caller:
    request = RelayRequest("", "POST", path, body=body)
    return Caller(request, find_endpoint("POST", path, "", {}), CallBuilder(settings=Settings()), RelayConfig())


def test_what_can_be_read_is_read() -> None:
    caller = make_caller("/v1/responses", b'{"model": "m", "input": "hi"}')
    served, problem = read_request(find_reply_form("openai_responses", "/v1/responses", {})[0], caller)
    assert served is not None
    assert (served.model, problem) == ("m", None)


def test_what_cannot_be_read_is_told_unless_it_could_be_forwarded() -> None:
    read = find_reply_form("openai_responses", "/v1/responses", {})[0]
    served, problem = read_request(read, make_caller("/v1/responses", b'{"model": "m", "input": "hi", "metadata": 1}'))
    assert served is None
    assert "metadata" in str(problem)
    for body in (b"[", b"[]", b'{"model": "m", "model": "n", "metadata": 1}'):
        with pytest.raises(ConfigError):
            read_request(read, make_caller("/v1/responses", body))


@pytest.mark.parametrize(
    ("path", "body", "found"),
    [
        ("/v1/responses", b'{"model":"m","stream":true}', ("m", True, None, None)),
        ("/v1/responses", b'{"model":"m","previous_response_id":"resp_1"}', ("m", False, "resp_1", None)),
        ("/v1/responses", b'{"model":"m","previous_response_id":["resp_1"]}', ("m", False, "['resp_1']", None)),
        ("/v1/responses", b'{"model":"m","conversation":{"id":"conv_1"}}', ("m", False, None, "conv_1")),
        ("/v1/responses", b'{"model":"m","conversation":"conv_1"}', ("m", False, None, "conv_1")),
        ("/v1beta/models/openai:gpt-5:streamGenerateContent", b"{}", ("openai:gpt-5", True, None, None)),
        ("/model/us.amazon%3Anova/converse-stream", b"{}", ("us.amazon:nova", True, None, None)),
    ],
)
def test_what_decides_where_it_goes(path: str, body: bytes, found: tuple[object, ...]) -> None:
    asked = read_shallow(make_caller(path, body))
    state = asked.prompt.state
    assert (asked.model, asked.stream, state.previous_response_id, state.conversation) == found


def test_no_model_is_told() -> None:
    with pytest.raises(RelayRefusal, match="model is missing"):
        read_shallow(make_caller("/v1/responses", b'{"model": 7}'))


def _write(dialect: str, items: str, more: str = "") -> tuple[str, bytes]:
    path, start = {
        "openai_chat": ("/v1/chat/completions", '"model": "openai:gpt-4o", "messages"'),
        "openai_responses": ("/v1/responses", '"model": "openai:gpt-4o", "input"'),
        "anthropic": ("/v1/messages", '"model": "anthropic:claude-sonnet-4-5", "max_tokens": 9, "messages"'),
        "gemini": ("/v1beta/models/gemini-2.5-flash:generateContent", '"contents"'),
    }[dialect]
    return path, f"{{{more}{start}: {items}}}".encode()


_MANY = "[" + ",".join(['{"role": "user", "content": "a"}'] * (MAX_MESSAGES + 1)) + "]"
_PARTS = "[" + ",".join(['{"type": "text", "text": "a"}'] * (MAX_OBJECTS + 1)) + "]"


_FIELDS = "".join(f'"k{number}": 1, ' for number in range(MAX_VALUES + 1))


@pytest.mark.parametrize("tenant", ["", "a"])
@pytest.mark.parametrize(
    ("dialect", "items", "more"),
    [
        *((dialect, _MANY, "") for dialect in ("openai_chat", "openai_responses", "anthropic", "gemini")),
        ("openai_chat", _MANY, '"input": 5, '),
        ("openai_chat", _MANY, '"x": 1, "x": 2, '),
        ("openai_chat", _MANY, '"messages": [], '),
        ("openai_chat", f'[{{"role": "user", "content": {_PARTS}}}]', ""),
        ("openai_chat", "[]", f'"tools": {_PARTS}, '),
        ("openai_responses", f'[{{"role": "user", "content": {_PARTS}}}]', ""),
        ("openai_chat", "[]", _FIELDS),
        ("openai_chat", "[]", f'"metadata": {{{_FIELDS}"x": 1}}, '),
        ("openai_chat", "[]", '"stop": [' + "1," * MAX_VALUES + "1], "),
        ("openai_chat", "[]", '"stop": [' + '"", ' * 3 * MAX_VALUES + '""], '),
        ("openai_chat", "[]", '"model": "a", ' * (MAX_VALUES + 1)),
    ],
)
def test_a_request_of_many_messages_or_values_is_not_planned(dialect: str, items: str, more: str, tenant: str) -> None:
    path, body = _write(dialect, items, more)
    response = Door(None).send(RelayRequest("", "POST", path, body=body, tenant=tenant))
    assert response.status == 413
    assert any(str(most) in response.body.decode() for most in (MAX_MESSAGES, MAX_OBJECTS, MAX_VALUES))


@pytest.mark.parametrize("text", ['{"[\\"{', "a, b", '"', '\\"\\,', "\\\\"])
def test_what_is_in_texts_is_no_value(text: str) -> None:
    refuse_many(msgspec.json.encode({"messages": [{"content": [text * MAX_VALUES, ","]}]}))


def test_a_request_for_embeddings_has_many_values() -> None:
    refuse_many(msgspec.json.encode({"model": "m", "input": [list(range(3000))] * 100}))


def test_a_program_has_no_bound() -> None:
    refuse_many(f'{{"messages": {_MANY.replace("}, {", "", 1)[: _MANY.rindex(",")]}]}}'.encode())
    path, body = _write("openai_chat", _MANY)
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        assert Door(stage, trusts_callers=True).post(path, body).status == 200


def test_stored_turns_count_too() -> None:
    body = {"model": "anthropic:claude-sonnet-4-5", "input": [{"role": "user", "content": "a"}] * (MAX_MESSAGES - 9)}
    with Stage(Say(text="Hi"), rules="lenient") as stage:
        door = Door(stage)
        first = door.post("/v1/responses", body, tenant="a")
        assert first.status == 200
        more = {**body, "input": [{"role": "user", "content": "a"}] * 9, "previous_response_id": first.json["id"]}
        assert door.post("/v1/responses", more, tenant="a").status == 413
