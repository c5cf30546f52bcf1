"""No request breaks a server half: whatever stands in a field, the answer is a reply or the dialect's own 400."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.values.errors import ConfigError
from asides_stage import improvise
from asides_stage.stage.http_requests import Request
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.request_router import Routes

Place = tuple[str | int, ...]

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 2}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"b": {"enum": ["x"]}},
}
PICTURE = "data:image/png;base64,aGk="

MESSAGES: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 4000,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "stream": False,
    "temperature": 1.0,
    "stop_sequences": ["x"],
    "metadata": {"user_id": "u"},
    "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
    "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "tools": [
        {"name": "call", "description": "d", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "call it"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "t"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "yes"},
                {"type": "tool_use", "id": "c1", "name": "call", "input": {"a": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "r"}],
                    "is_error": True,
                },
                {"type": "text", "text": "call it"},
            ],
        },
        {"role": "system", "content": "note"},
    ],
}
CHAT: dict[str, Any] = {
    # No host takes the spellings of all.
    "model": "any",
    "stream": False,
    "stream_options": {"include_usage": True},
    "temperature": 1.0,
    "seed": 1,
    "stop": ["x"],
    "max_tokens": 500,
    "max_completion_tokens": 600,
    "user": "u",
    "metadata": {"a": "b"},
    "reasoning_effort": "high",
    "reasoning": {"effort": "high", "max_tokens": 5, "exclude": False},
    "thinking": {"type": "enabled", "budget_tokens": 10},
    "enable_thinking": True,
    "chat_template_kwargs": {"enable_thinking": True},
    "thinking_budget": 5,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
    "tool_choice": {"type": "function", "function": {"name": "call"}},
    "parallel_tool_calls": True,
    "logit_bias": {"1": 1},
    "functions": [{"name": "older"}],
    "tools": [{"type": "function", "function": {"name": "call", "parameters": SCHEMA, "strict": True}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "text", "text": "d"}]},
        {
            "role": "user",
            "name": "bob",
            "content": [
                {"type": "text", "text": "call it"},
                {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "f"}},
            ],
        },
        {
            "role": "assistant",
            "content": "yes",
            "reasoning_content": "r",
            "reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s", "index": 0}],
            "tool_calls": [
                {
                    "id": "callcall1",
                    "type": "function",
                    "function": {"name": "call", "arguments": '{"a":1}'},
                    "extra_content": {"google": {"thought_signature": "x"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "callcall1", "content": [{"type": "text", "text": "r"}]},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "user", "content": "call it"},
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "instructions": "i",
    "stream": False,
    "store": True,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
    "tool_choice": {"type": "function", "name": "call"},
    "parallel_tool_calls": True,
    "max_output_tokens": 500,
    "temperature": 1.0,
    "metadata": {"a": "b"},
    "truncation": "auto",
    "conversation": {"id": "c"},
    "client_metadata": {"a": "b"},
    "tools": [
        {"type": "function", "name": "call", "description": "d", "parameters": SCHEMA, "strict": True},
        {"type": "web_search"},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
    ],
    "input": [
        {"type": "message", "id": "msg_0", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "call it"},
                {"type": "input_image", "image_url": PICTURE, "detail": "low"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "f"},
            ],
        },
        {"type": "custom_tool_call", "call_id": "c2", "name": "p", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "y"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "call", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "r"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "x"}],
            "encrypted_content": "e.f",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "yes", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"role": "user", "content": "call it"},
    ],
}


def without_seals(request: dict[str, Any]) -> dict[str, Any]:
    """The same request without state of a server: the strict stage accepts it."""
    plain = copy.deepcopy(request)
    if "input" in plain:
        plain["input"] = [item for item in plain["input"] if item.get("type") != "reasoning"]
        return plain
    for message in plain["messages"]:
        if message["role"] == "assistant" and isinstance(message["content"], list):
            message["content"] = [part for part in message["content"] if "thinking" not in part["type"]]
    if "max_completion_tokens" not in plain:
        plain["thinking"] = {"type": "disabled"}
    return plain


# Every dialect, with and without state; and models whose hosts have rules of their own.
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "messages": ("anthropic", "/v1/messages", MESSAGES),
    "messages without thinking": ("anthropic", "/v1/messages", without_seals(MESSAGES)),
    "chat": ("openai_chat", "/v1/chat/completions", CHAT),
    "responses": ("openai_responses", "/v1/responses", RESPONSES),
    "responses without reasoning": ("openai_responses", "/v1/responses", without_seals(RESPONSES)),
    **{
        f"chat with {model}": ("openai_chat", "/v1/chat/completions", {"model": model, "messages": CHAT["messages"]})
        for model in ("deepseek-v4", "magistral-medium", "anthropic/claude-sonnet-4.5", "gemini-3-pro", "kimi-k2.5")
    },
}
# What takes the place of every field: JSON of each kind, and numbers, texts and depths that readers stumble over.
MARK = "@intruder@"
INTRUDERS = [
    *("null", "true", "-1", "1.5", '"x"', "[1]", "[null]", '["x"]', "[{}]", '{"x":1}', '[{"type":"text"}]'),
    *("1e999", "9" * 5000, '"\\ud800"', "[" * 900 + "]" * 900),
]


def list_places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place in a document, the deepest too."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from list_places(inner, (*place, name))


def open_place(document: Any, place: Place) -> tuple[bytes, str]:
    """The document without what stands at a place; and with a mark there."""
    changed = copy.deepcopy(document)
    holder = changed
    for name in place[:-1]:
        holder = holder[name]
    holder[place[-1]] = MARK
    marked = json.dumps(changed)
    del holder[place[-1]]
    return json.dumps(changed).encode(), marked


def spoil(document: Any) -> Iterator[bytes]:
    """The document with each of its fields taken out, and replaced by each intruder."""
    for place in list_places(document):
        if place:
            without, marked = open_place(document, place)
            yield without
            yield from (marked.replace(f'"{MARK}"', intruder).encode() for intruder in INTRUDERS)
    yield from (intruder.encode() for intruder in INTRUDERS)
    yield from (b"", b"{", b"\xff", b"[" * 200_000)


def has_words(body: Any) -> bool:
    """Whether an error says what is wrong, in the form of any host."""
    told = body[0] if isinstance(body, list) else body
    told = told.get("error", told)
    return bool(told if isinstance(told, str) else told.get("message") or told.get("detail"))


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("dialect", "path", "document"), REQUESTS.values(), ids=REQUESTS.keys())
def test_no_request_breaks_a_server_half(dialect: str, path: str, document: dict[str, Any], step: int) -> None:
    """Every third intruder at a place, another third at the next; all of them with the marker `thorough`."""
    log = RequestLog()
    routes = Routes(improvise, log, key=None, models=("any",))
    statuses: set[int | None] = set()
    for body in islice(spoil(document), 0, None, step):
        with contextlib.suppress(ConfigError):
            find_dialect(dialect).read(body, path)
        plan = routes.answer(Request("POST", path, "", {}, body))
        statuses.add(plan.status)
        if plan.status != 200:
            assert has_words(json.loads(b"".join(plan.pieces)))
    assert statuses <= {200, 400, 404, 422}
    assert log.problems == []


@pytest.mark.parametrize("name", [name for name in REQUESTS if "without" in name] + ["chat"])
def test_the_request_itself_is_accepted(name: str) -> None:
    _, path, document = REQUESTS[name]
    routes = Routes(improvise, RequestLog(), key=None, models=("any",))
    plan = routes.answer(Request("POST", path, "", {}, json.dumps(document).encode()))
    assert plan.status == 200, b"".join(plan.pieces)
