"""Verbatim unless changed: a request that was read comes out as it went in, or a notice says what changed."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import find_dialect
from asides.dialects.rulebook import WireRequest, find_rulebook
from asides.history.document import from_document, to_document
from asides.history.export import export_messages
from asides.history.plan import encode_plan, plan
from asides.intake.documents import import_messages
from asides.providers.find import find_provider, find_row, list_providers
from asides.providers.provider import Provider, Target
from asides.providers.table import plain_row
from asides.values.errors import AsidesError
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from tests.laws.accepted_requests import ACCEPTED, list_accepted, list_requests, simplify
from tests.laws.likely_messages import ASKED, LIKELY


class Judged(NamedTuple):
    """A change of accepted requests that is made on purpose and without a notice."""

    dialect: str
    path: str
    """Where it is, as a regular expression of the whole path: "-name" is a field left out, "+name" one added."""
    reason: str
    provider: str = ".*"


JUDGED = (
    Judged("openai_chat", r"/\+model", "the address named it, as a deployment", "azure"),
    Judged(
        "openai_chat",
        r"/messages/\[\](/tool_calls/\[\]/id|/tool_call_id)",
        "only ids of nine letters and digits are accepted there; these recordings have longer words in their place",
        "mistral",
    ),
    Judged(
        "openai_chat",
        r"/messages/\[\]/([-+]reasoning(_content)?|-content)",
        "the row names the field of thinking that the host's servers read; they ignore the other",
        "doubleword",
    ),
    Judged(
        "bedrock",
        r"/messages/\[\]/content/\[\]/document/name",
        "the host refuses other signs in names of documents; in this recording, the name was replaced",
    ),
)
_HISTORIES = ("messages", "contents", "input")


def find_target(provider: str, dialect: str, model: str) -> Target:
    found = find_row(provider, ())
    row: Provider = (found and found.with_dialect(dialect)) or plain_row(dialect)
    return Target(row, model, row.base_url or "http://127.0.0.1:9/v1", row.rule(model))


class Finding(NamedTuple):
    """A notice, or a decision about a part of the history."""

    code: str
    """The code of the notice; of a decision its action and the kind of the part."""
    words: str


# By code of a finding about the messages, the paths that it explains, as a regular expression of the whole path.
EXPLAINED = {
    "drop thought": r".*(reasoning|thought|thinking)[^/]*|/(messages|contents)/\[\](/content|/parts)",
    "drop message": "/input",
    "reasoning_not_sent": "/input",
    "turn_added": "/messages",
    "result_part_not_sent": r"/messages/\[\]/content",
    "cache_not_sent": r".*cache_control|/messages/\[\]/content(/\[\]/-type)?",
    "schema_not_sent": "/-(outputConfig|response_format|text/format)",
    **dict.fromkeys(("effort_chosen", "effort_mapped", "budget_mapped"), "/[-+]reasoning(_effort)?"),
}


def is_explained(path: str, findings: list[Finding]) -> bool:
    """Whether a finding names what changed: the field at the end of the path, or the kind of change."""
    name = path.rpartition("/")[2].lstrip("+-").lower()
    return any(
        name in re.split(r"[^a-z_]+", finding.words.lower())
        or ("thinking" in name and "thinking" in finding.words.split())
        or re.fullmatch(EXPLAINED.get(finding.code, "-"), path)
        for finding in findings
    )


def send(dialect: str, body: bytes, path: str, provider: str = "") -> tuple[Any, list[Finding]]:
    """Read a request, plan and encode it. Returns the new body, and what tells of changes."""
    served = find_dialect(dialect).read(body, path)
    target = find_target(provider or dialect, dialect, served.model)
    planned = plan(served.prompt, target, on_conflict="adjust")
    request, notices = encode_plan(planned, target, find_dialect(dialect), on_conflict="adjust")
    told = [
        Finding(each.code, f"{each.setting} {each.asked} {each.sent} {each.detail}")
        for each in (*planned.notices, *notices)
        if each.code != "unknown_model"
    ]
    decided = [decision for decision in planned.decisions if decision.action != "keep"]
    return json.loads(request.body), [*told, *(Finding(f"{each.action} {each.what}", each.why) for each in decided)]


def list_changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """List the paths of what differs between two requests."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if name not in after or name not in before:
                yield f"{path}/{'-' if name in before else '+'}{name}"
            else:
                yield from list_changes(before[name], after[name], f"{path}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from list_changes(one, other, f"{path}/[]")
    elif before != after:
        yield path


def is_judged(row: dict[str, Any], path: str) -> bool:
    return any(
        judged.dialect == row["dialect"]
        and re.fullmatch(judged.path, path)
        and re.fullmatch(judged.provider, row["provider"] or "")
        for judged in JUDGED
    )


@pytest.mark.parametrize("provider", ["", "openai-compatible"])
@pytest.mark.skipif(not ACCEPTED.exists(), reason="the recordings are not here")
def test_accepted_requests_come_out_as_they_went_in(provider: str) -> None:
    """At the host that accepted them, and at an unknown one of the dialect: it may be the same behind a proxy."""
    silent, refused = Counter[str](), Counter[str]()
    for row in list_accepted():
        dialect = row["dialect"]
        if provider and find_provider(provider).with_dialect(dialect) is None:
            continue
        body, path = json.dumps(row["body"]).encode(), urlsplit(row["url"]).path
        try:
            sent, findings = send(dialect, body, path, provider or row["provider"])
        except AsidesError as problem:
            refused[str(problem)] += 1
            continue
        before, after = simplify(row["body"], dialect), simplify(sent, dialect)
        changes = {each for each in list_changes(before, after) if not is_judged(row, each)}
        changes = {each for each in changes if not is_explained(each, findings)}
        silent.update(f"{dialect} {row['provider']} {each}" for each in changes)
    assert silent == {}
    assert refused == {}


@pytest.mark.skipif(not ACCEPTED.exists(), reason="the recordings are not here")
def test_accepted_requests_are_not_refused_before_they_are_sent() -> None:
    refused: list[str] = []
    for row in list_accepted():
        dialect, path = find_dialect(row["dialect"]), urlsplit(row["url"]).path
        try:
            served = dialect.read(json.dumps(row["body"]).encode(), path)
            target = find_target(row["provider"] or row["dialect"], row["dialect"], served.model)
            encode_plan(plan(served.prompt, target), target, dialect)
        except AsidesError as problem:
            refused.append(str(problem))
    assert refused == []


# What no rule of a history or of settings says: models, keys and lengths, and words of one server each.
UNCHECKED = re.compile(
    "does not exist|on-demand throughput|API key|API_KEY_INVALID|exceeds the available context|Input Tokens Exceeded"
    # The reader of JSON at llama.cpp, and a range at a host whose row has no rules.
    "|type must be number|Temperature must be between"
    # Before 2026-11 this model read no pictures.
    "|unknown variant `image_url`"
    # A system tool beside a history with calls, and a schema inside the schema of a strict tool.
    r"|extraneous key \[toolResult\]|property 'properties' is not supported"
)


@pytest.mark.skipif(not ACCEPTED.exists(), reason="the recordings are not here")
def test_the_rulebook_agrees_with_the_servers() -> None:
    wrong, missed = Counter[str](), list[str]()
    for row in list_requests():
        try:
            model = find_dialect(row["dialect"]).read(json.dumps(row["body"]).encode(), urlsplit(row["url"]).path).model
        except AsidesError:
            model = str(row["body"].get("model"))
        target = find_target(row["provider"] or row["dialect"], row["dialect"], model)
        rules = find_rulebook(target.dialect)
        assert rules is not None
        broken = list(rules.check(WireRequest(row["body"], path=urlsplit(row["url"]).path), target))
        if row["status"] != 200 and not broken and not UNCHECKED.search(str(row["error"])):
            missed.append(str(row["error"]))
        elif row["status"] == 200:
            # In these recordings, ids have longer words in their place.
            wrong.update(f"{target} {each.text}" for each in broken if "call_REDACTED_" not in each.text)
    assert (wrong, missed) == ({}, [])


# --- the same in a plain clone ----------------------------------------------------------------------------------------

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at":  "sea"}', "x_f": 1},
    "x_c": 2,
}
CALL_OF_OLLAMA = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": {"at": "sea"}, "x": 1}}
REQUESTS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "made-up",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look.", "x_part": {"a": 1}}], "x_message": [1]},
            {"role": "assistant", "content": "So.", "tool_calls": [CALL], "x_message": "y"},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "a"}], "x_result": True},
        ],
    },
    "anthropic": {
        "model": "made-up",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look.", "x_part": {"a": 1}}], "x_turn": 1},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "sea"}, "x_part": 2}],
                "x_turn": 2,
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "tool_reference", "tool_name": "look"}],
                        "x_part": 3,
                    },
                    {"type": "text", "text": "And?", "x_part": 4},
                ],
                "x_turn": 3,
            },
        ],
    },
    "openai_responses": {
        "model": "made-up",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look.", "x_part": 1}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":  "sea"}', "x_item": 2},
            {"type": "function_call_output", "call_id": "c1", "output": "blue", "x_item": 3},
        ],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Look.", "x": {"a": 1}}], "xTurn": 1},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "sea"}, "xCall": 1}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"deep": {"blue": [1, 2]}}}}]},
        ]
    },
    "bedrock": {
        "messages": [
            {"role": "user", "content": [{"text": "Look."}], "xTurn": 1},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "sea"}, "xCall": 1}}],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c1", "content": [{"json": {"blue": [1, 2]}}], "status": "success"}}
                ],
            },
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]},
    },
    "gemini_interactions": {
        "model": "made-up",
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "Look.", "x_part": {"a": 1}}], "x_step": 1},
            {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm", "x": 1}], "x_step": 2},
            {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": "sea"}, "x_step": 3},
            {"type": "function_result", "call_id": "c1", "result": {"blue": [1, 2]}, "x_step": 4},
            {"type": "model_output", "content": [{"type": "text", "text": "Blue.", "x_part": 1}], "x_step": 5},
            {"type": "function_call", "id": "c2", "name": "look", "arguments": {"at": "land"}, "x_step": 6},
            {
                "type": "user_input",
                "content": [{"type": "function_result", "call_id": "c2", "name": "look", "result": {"sum": 18.0}}],
            },
        ],
    },
    "cohere": {
        "model": "made-up",
        "stream": True,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look.", "x_part": {"a": 1}}], "x_message": 1},
            {"role": "assistant", "tool_calls": [CALL], "tool_plan": "Look there.", "x_message": 2},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "blue", "x_part": 3}]},
        ],
    },
    "ollama": {
        "model": "made-up",
        "stream": True,
        "messages": [
            {"role": "user", "content": "Look.", "x_message": {"a": 1}},
            {"role": "assistant", "content": "", "tool_calls": [CALL_OF_OLLAMA]},
            {"role": "tool", "content": "blue", "tool_name": "look", "tool_call_id": "c1", "x_message": 3},
        ],
    },
}
PATHS = {"gemini": "/v1beta/models/made-up:generateContent", "bedrock": "/model/made-up/converse"}


def read_messages(dialect: str) -> tuple[Message, ...]:
    body = json.dumps(REQUESTS[dialect]).encode()
    return find_dialect(dialect).read(body, PATHS.get(dialect, "/")).prompt.messages


@pytest.mark.parametrize("dialect", REQUESTS)
def test_unknown_fields_and_structured_results_survive(dialect: str) -> None:
    body = REQUESTS[dialect]
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    served = find_dialect(dialect).read(json.dumps(body).encode(), PATHS.get(dialect, "/"))
    for messages in (
        served.prompt.messages,
        from_document(to_document(served.prompt.messages, keep_thinking=True)).messages,
    ):
        prompt = msgspec.structs.replace(served.prompt, messages=messages)
        planned = plan(prompt, target, on_conflict="adjust")
        request, _ = encode_plan(planned, target, find_dialect(dialect), on_conflict="adjust")
        sent = json.loads(request.body)
        name = next(name for name in _HISTORIES if name in body)
        assert sent[name] == body[name]


@pytest.mark.parametrize("dialect", REQUESTS)
def test_a_message_that_was_changed_is_encoded_anew(dialect: str) -> None:
    for message in read_messages(dialect):
        assert message.source is not None
        assert "x" not in repr(message.source).removeprefix("Source(")
        assert message.source.json not in repr(message)
        assert pickle.loads(pickle.dumps(message)).source.json == message.source.json
        assert msgspec.structs.replace(message, parts=message.parts).source is not None
        assert msgspec.structs.replace(message, parts=(*message.parts, Text("more"))).source is None
        assert message == msgspec.structs.replace(message, source=None), "it never makes messages unequal"
        assert "source" not in message.to_dict() or message.to_dict()["source"] is None


SCHEMA = {"type": "object", "properties": {"at": {"type": "string", "x_schema": 1}}}
GEMINI_SCHEMA = {
    "type": "OBJECT",
    "properties": {"at": {"type": "STRING", "nullable": True}, "up": {"type": "INTEGER", "minimum": 1}},
    "propertyOrdering": ["up", "at"],
}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": SCHEMA, "x_function": 1}
FIELDS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "tools": [{"type": "function", "function": FUNCTION, "x_tool": 2}, {"function": {**FUNCTION, "name": "see"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "description": "d"}},
        "stop": "END",
        "x_request": {"a": [1]},
    },
    "openai_responses": {
        "tools": [{"type": "function", **FUNCTION, "strict": False}],
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "description": "d", "strict": True}},
        "x_request": {"a": [1]},
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief.", "x_block": 1}],
        "tools": [{"name": "look", "input_schema": SCHEMA, "x_tool": 1, "type": "custom"}],
        "tool_choice": {"type": "auto"},
        "metadata": {"user_id": "u", "x_metadata": 1},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA, "x_format": 1}},
        "x_request": {"a": [1]},
    },
    "gemini": {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be brief.", "x": 1}]},
        "tools": [{"functionDeclarations": [{"name": "look", "parameters": GEMINI_SCHEMA, "behavior": "BLOCKING"}]}],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": GEMINI_SCHEMA, "xConfig": 1},
        "xRequest": {"a": [1]},
    },
    "bedrock": {
        "system": [{"text": "Be brief."}],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}},
                {"systemTool": {"name": "nova_code_interpreter"}},
            ],
        },
        "xRequest": {"a": [1]},
    },
    "cohere": {
        "tools": [{"type": "function", "function": FUNCTION}],
        "response_format": {"type": "json_object", "schema": SCHEMA},
        "x_request": {"a": [1]},
    },
    "ollama": {"tools": [{"type": "function", "function": FUNCTION, "x": 1}], "format": SCHEMA, "keep_alive": 5},
}


@pytest.mark.parametrize("dialect", FIELDS)
def test_the_fields_of_a_request_come_out_as_they_came(dialect: str) -> None:
    body = REQUESTS[dialect] | FIELDS[dialect]
    path = PATHS.get(dialect, "/")
    sent, findings = send(dialect, json.dumps(body).encode(), path)
    assert {name: sent.get(name) for name in FIELDS[dialect]} == FIELDS[dialect]
    assert not any(is_explained(name, findings) for name in FIELDS[dialect])


@pytest.mark.parametrize("dialect", FIELDS)
def test_fields_that_were_changed_are_encoded_anew(dialect: str) -> None:
    served = find_dialect(dialect).read(
        json.dumps(REQUESTS[dialect] | FIELDS[dialect]).encode(), PATHS.get(dialect, "/")
    )
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    assert served.prompt == msgspec.structs.replace(served.prompt, source=None), "it never makes prompts unequal"
    assert "look" not in repr(served.prompt.source)
    changes: dict[str, Any] = {"tools": (Tool("other"),), "system": "Be long.", "output": None, "extra": {}}
    changes |= {"stop": (), "tool_choice": None, "user": None}
    changed = msgspec.structs.replace(served.prompt, **changes)
    without = msgspec.structs.replace(changed, source=None)
    assert find_dialect(dialect).encode(changed, target) == find_dialect(dialect).encode(without, target)


LONG_ID = "call_0_ded1841a-abea-4cec-adfa-f67fa50fdc2c"
LONG_CALL = {"id": LONG_ID, "type": "function", "function": {"name": "look", "arguments": "{}"}}
NATIVE = {"type": "container_upload", "file_id": "file_1"}
ADDITION = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}
HISTORIES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "words of the system inside, and blocks of the provider": (
        "anthropic",
        [
            {"role": "user", "content": [{"type": "text", "text": "Look."}, NATIVE]},
            {"role": "system", "content": [ADDITION]},
            {"role": "assistant", "content": [{"type": "text", "text": "So."}]},
            {"role": "user", "content": "And?"},
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}], "output_config": {"effort": "low"}},
        ],
    ),
    "a history that begins with the model": (
        "anthropic",
        [
            {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            {"role": "user", "content": "Hi."},
        ],
    ),
    "pictures inside a result, blanks, and calls in two turns": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": ""}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}, "id": "1"}}, {"text": ""}]},
            {"role": "model", "parts": [{"functionCall": {"name": "see", "args": {}, "id": "2"}}]},
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "1",
                            "name": "look",
                            "response": {},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}],
                        }
                    },
                    {"functionResponse": {"id": "2", "name": "see", "response": {"a": [1]}}},
                ],
            },
        ],
    ),
    "long ids, and blank content": (
        "openai_chat",
        [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": " ", "tool_calls": [LONG_CALL]},
            {"role": "tool", "tool_call_id": LONG_ID, "content": "blue"},
        ],
    ),
    "ids with other signs": (
        "bedrock",
        [
            {"role": "user", "content": [{"text": "Look."}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "f.look:0", "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "f.look:0", "content": [{"text": "blue"}]}}]},
        ],
    ),
    "no ids": (
        "ollama",
        [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"a": 1}}}]},
            {"role": "tool", "content": "blue", "tool_name": "look"},
        ],
    ),
}


@pytest.mark.parametrize(
    ("provider", "word"),
    [("mistral", "any"), ("openai-compatible", "any"), ("groq", "required"), ("openai", "required")],
)
def test_the_word_any_goes_back_to_a_host_that_has_it(provider: str, word: str) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    body = {"model": "made-up", "messages": [{"role": "user", "content": "?"}], "tools": [tool], "tool_choice": "any"}
    sent, _ = send("openai_chat", json.dumps(body).encode(), "/", provider)
    assert sent["tool_choice"] == word
    sent, _ = send("openai_chat", json.dumps({**body, "tool_choice": "required"}).encode(), "/", provider)
    assert sent["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "?"}], "xNew": False}]}),
        ("anthropic", {"messages": [{"role": "user", "content": "?", "x_new": False}]}),
        ("bedrock", {"messages": [{"role": "user", "content": [{"text": "?"}], "xNew": False}]}),
        (
            "bedrock",
            {
                "messages": [
                    {"role": "user", "content": [{"text": "?"}]},
                    {"role": "assistant", "content": [{"text": "!"}], "xNew": False},
                    {"role": "user", "content": [{"text": "?"}]},
                ]
            },
        ),
        ("openai_chat", {"messages": [{"role": "user", "content": "?", "x_new": False}]}),
        (
            "anthropic",
            {
                "messages": [{"role": "user", "content": "?"}],
                "output_format": {"type": "json_schema", "schema": {"type": "object"}, "x_new": {"a": False}},
            },
        ),
        (
            "gemini",
            {
                "contents": [{"role": "user", "parts": [{"text": "?"}]}],
                "systemInstruction": {"parts": {"text": "Be short.", "xNew": [False]}},
            },
        ),
    ],
    ids=str,
)
def test_unknown_fields_that_are_false_or_beside_known_ones_go_back(dialect: str, fields: dict[str, Any]) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, **fields}
    sent, findings = send(dialect, json.dumps(body).encode(), PATHS.get(dialect, "/"))
    if dialect == "anthropic" and "output_format" not in fields:
        # Its own host refuses fields that it does not know in messages.
        assert any("'x_new' was left out" in finding.words for finding in findings)
    else:
        assert {name: sent.get(name) for name in fields} == fields


def test_a_schema_that_bedrock_accepts_without_following_it_goes_back() -> None:
    structure = {"jsonSchema": {"name": "rating", "schema": '{"type":"object","properties":{}}'}}
    config = {"textFormat": {"type": "json_schema", "structure": structure}}
    body = {"messages": [{"role": "user", "content": [{"text": "?"}]}], "outputConfig": config}
    path = "/model/anthropic.claude-3-sonnet-20240229-v1:0/converse"
    sent, findings = send("bedrock", json.dumps(body).encode(), path)
    assert sent["outputConfig"] == config
    assert not any(finding.code == "schema_not_sent" for finding in findings)


def test_callers_of_a_function_go_back_and_a_field_that_is_lost_is_told() -> None:
    function = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    tools = [function | {"allowed_callers": ["programmatic"], "defer_loading": True}]
    body = {"model": "gpt-5.5", "input": [{"role": "user", "content": "?"}], "tools": tools}
    sent, findings = send("openai_responses", json.dumps(body).encode(), "/", "openai")
    assert sent["tools"] == tools
    assert not any(finding.code == "tool_field_not_sent" for finding in findings)
    lost = tools[0] | {"input_examples": [{}]}
    sent, findings = send("openai_responses", json.dumps({**body, "tools": [lost]}).encode(), "/", "openai")
    assert sent["tools"] == tools
    assert [finding.words for finding in findings if finding.code == "tool_field_not_sent"] == [
        "tools None None a function has no such field here: 'input_examples'"
    ]


@pytest.mark.parametrize("name", HISTORIES)
def test_odd_histories_come_out_as_they_came(name: str) -> None:
    dialect, history = HISTORIES[name]
    field = "contents" if dialect == "gemini" else "messages"
    body = {"model": "made-up", field: history} | {
        name: value for name, value in REQUESTS[dialect].items() if name == "toolConfig"
    }
    provider = "groq" if dialect == "openai_chat" else ""  # OpenAI itself refuses long ids
    sent, findings = send(dialect, json.dumps(body).encode(), PATHS.get(dialect, "/"), provider)
    expected = simplify({field: history}, dialect)[field]
    assert simplify({field: sent[field]}, dialect)[field] == expected
    assert not findings


def test_long_ids_are_shortened_where_they_are_refused_and_where_a_message_was_changed() -> None:
    messages = import_messages(HISTORIES["long ids, and blank content"][1], "openai")
    openai = find_target("openai", "openai_chat", "gpt-4o")
    unknown = Target(plain_row("openai_chat"), "made-up", "http://127.0.0.1:9/v1")
    changed = (*messages[:-1], msgspec.structs.replace(messages[-1], name="look"))
    for target, history in ((openai, messages), (unknown, changed)):
        _, called, answered = encode_messages(history, target)["messages"]
        assert called["tool_calls"][0]["id"] == answered["tool_call_id"]
        assert len(answered["tool_call_id"]) <= 40


def test_ids_of_items_without_reasoning_go_back() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"}
    items = [
        {"role": "user", "content": "Look."},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "blue"},
    ]
    target = find_target("openai", "openai_responses", "gpt-5.5")
    messages = import_messages(items, "responses")
    assert encode_messages(messages, target)["input"] == items, "what they were bound to is not known"
    lost = [
        items[0],
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
        *items[1:],
    ]
    messages = import_messages(lost, "responses")
    called = tuple(part for part in messages[1].parts if isinstance(part, ToolCall))
    sent = encode_messages((messages[0], msgspec.structs.replace(messages[1], parts=called), messages[2]), target)
    assert "id" not in sent["input"][1], "its reasoning was dropped"


RESULT = {"deep": {"blue": [1, 2]}}
RESULTS: dict[str, Any] = {
    "gemini": {"functionResponse": {"id": "c1", "name": "look", "response": RESULT}},
    "bedrock": {"toolResult": {"toolUseId": "c1", "content": [{"json": RESULT}]}},
    "cohere": [{"type": "document", "document": {"data": RESULT}}],
}


def find_results(body: Any, dialect: str) -> list[Any]:
    match dialect:
        case "gemini":
            return [body["contents"][2]["parts"][0]]
        case "bedrock":
            return list(body["messages"][2]["content"])
        case _:
            return [message["content"] for message in body["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("dialect", RESULTS)
@pytest.mark.parametrize("other", ["openai_chat", *RESULTS])
def test_an_object_as_result_stays_one_where_results_can_be_objects(dialect: str, other: str) -> None:
    asked, called = user("Look."), assistant(ToolCall("c1", "look", {}))
    answered = Message("tool", (ToolResult("c1", RESULT, "look"),))
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    body = encode_messages((asked, called, answered), target, tools=(Tool("look"),))
    assert find_results(body, dialect) == [RESULTS[dialect]]
    read = find_dialect(dialect).read(json.dumps(body).encode(), PATHS.get(dialect, "/")).prompt.messages
    saved = from_document(to_document(read)).messages
    found = next(part for part in saved[2].parts if isinstance(part, ToolResult))
    assert found.read_object() in (RESULT, {"data": RESULT})
    assert saved[2].source is None or json.loads(found.text) == found.read_object()
    if other == "openai_chat":
        openai = Target(plain_row(other), "made-up", "http://127.0.0.1:9/v1")
        sent = encode_messages(saved, openai)["messages"][2]["content"]
        assert json.loads(sent) == found.read_object(), "other dialects get its JSON as text"


def test_a_changed_tool_leaves_the_others_as_they_came() -> None:
    body = REQUESTS["openai_chat"] | FIELDS["openai_chat"]
    prompt = find_dialect("openai_chat").read(json.dumps(body).encode()).prompt
    look, see = prompt.tools
    target = Target(plain_row("openai_chat"), "made-up", "http://127.0.0.1:9/v1")
    tools = (Tool("new"), msgspec.structs.replace(look, description="Looks twice."), see)
    request, _ = find_dialect("openai_chat").encode(msgspec.structs.replace(prompt, tools=tools), target)
    sent = json.loads(request.body)["tools"]
    assert [tool["function"].get("x_function") for tool in sent] == [None, None, 1]
    assert sent[1]["function"]["description"] == "Looks twice."


def test_arguments_that_were_changed_in_place_are_sent_as_they_are() -> None:
    asked, called, answered = read_messages("openai_chat")
    call = called.parts[-1]
    assert isinstance(call, ToolCall)
    call.arguments["at"] = "land"
    target = Target(plain_row("openai_chat"), "made-up", "http://127.0.0.1:9/v1")
    planned = plan(Prompt((asked, called, answered)), target)
    request, _ = encode_plan(planned, target, find_dialect("openai_chat"))
    assert json.loads(request.body)["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"at":"land"}'


def test_redacted_thinking_is_not_in_the_source() -> None:
    body = {"role": "assistant", "content": "So.", "reasoning_content": "secret plan", "x_thinking": "secret too"}
    unread = {"role": "assistant", "content": "So.", "x_thinking": "secret plan"}
    messages = import_messages([{"role": "user", "content": "?"}, body, unread], "openai")
    assert all(message.source is not None for message in messages[1:])
    assert b"secret" not in to_document(messages)
    assert "secret" not in json.dumps([message.to_dict() for message in messages])
    kept = from_document(to_document(messages, keep_thinking=True)).messages
    assert kept[1].source is not None
    assert "secret too" in kept[1].source.json


# --- a source says nothing that its message does not say --------------------------------------------------------------

EDITED_SOURCES = {
    "turn with a role": ("anthropic", '[{"type":"text","text":"hi"}]', '{"role":"assistant","content":"other"}'),
    "turn with parts": ("gemini", '[{"text":"hi"}]', '{"role":"model","parts":[{"text":"other"}]}'),
    "turn that is not an object": ("anthropic", '[{"type":"text","text":"hi"}]', "5"),
    "cut turn": ("anthropic", '[{"type":"text","text":"hi"}]', '{"x":'),
    "cut JSON": ("openai_chat", '[{"role":', ""),
    "JSON that is not a list": ("openai_chat", "5", ""),
    "deep JSON": ("openai_chat", '[{"role":"user","content":"hi","x":' + "[" * 5000 + "]" * 5000 + "}]", ""),
    "calls": ("openai_chat", '[{"role":"user","content":"hi","tool_calls":[{"id":"1"}],"function_call":{"a":1}}]', ""),
    "thinking": ("openai_chat", '[{"role":"user","content":"hi","reasoning_content":"x","signature":"y"}]', ""),
    "another role": ("openai_chat", '[{"role":"system","content":"hi"}]', ""),
    "a list for a text": ("gemini", '[{"text":[{"type":"text","text":"hi"}]}]', ""),
}


def encode_messages(messages: tuple[Message, ...], target: Target, **fields: Any) -> Any:
    planned = plan(Prompt(messages, **fields), target, on_conflict="adjust")
    request, _ = encode_plan(planned, target, find_dialect(target.dialect), on_conflict="adjust")
    return json.loads(request.body)


@pytest.mark.parametrize("name", EDITED_SOURCES)
def test_a_source_from_an_edited_file_changes_nothing_that_is_said(name: str) -> None:
    dialect, found, turn = EDITED_SOURCES[name]
    message = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
    source = {"dialect": dialect, "json": found, "turn": turn}
    read = from_document(json.dumps({"asides": 1, "messages": [{**message, "source": source}]})).messages
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    assert encode_messages(read, target) == encode_messages((Message("user", "hi"),), target)


def test_messages_that_json_cannot_hold_lose_their_source() -> None:
    asked, called, _ = read_messages("openai_chat")
    assert msgspec.structs.replace(asked, parts=(Text("\ud800"),)).source is None
    call = called.parts[-1]
    assert isinstance(call, ToolCall)
    call.arguments["itself"] = call.arguments
    assert msgspec.structs.replace(called, stored=None).source is None


def test_strict_hosts_get_no_unknown_fields() -> None:
    asked = REQUESTS["anthropic"]["messages"]
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn", "usage": {"a": 1}}
    answered = {**answer, "content": [{"type": "text", "text": "Blue.", "index": 0}]}
    claude = find_target("anthropic", "anthropic", "claude-opus-4-5")
    sent = encode_messages(import_messages([*asked, answered], "anthropic"), claude)["messages"]
    assert all(turn.keys() == {"role", "content"} for turn in sent)
    assert not any(
        name.startswith("x_") or name == "index" for turn in sent for block in turn["content"] for name in block
    )
    reply = {"role": "assistant", "content": "So.", "annotations": [{"type": "new"}], "reasoning_details": [{"a": 1}]}
    mistral = find_target("mistral", "openai_chat", "mistral-large-latest")
    user = {"role": "user", "content": "?", "x": 1}
    sent = encode_messages(import_messages([user, reply, user], "openai"), mistral)["messages"]
    assert [turn.keys() for turn in sent] == [{"role", "content"}] * 3


def test_ids_that_a_client_made_up_are_not_sent() -> None:
    items = [
        {"role": "user", "content": "Look.", "id": "0b9c7c1e-8f5d-4c1a-9d1c-1f1f3a2b4c5d"},
        {"role": "user", "content": "There.", "id": "msg_1"},
    ]
    target = find_target("openai", "openai_responses", "gpt-5.5")
    sent = encode_messages(import_messages(items, "responses"), target)["input"]
    assert [item.get("id") for item in sent] == [None, "msg_1"]


@pytest.mark.parametrize("format_name", ["openai", "anthropic", "responses"])
def test_thinking_in_unread_fields_stays_with_the_rest_of_it(format_name: str) -> None:
    item = {"type": "message"} if format_name == "responses" else {}
    block = {"type": "output_text" if format_name == "responses" else "text", "text": "So.", "x_thinking": "secret"}
    answer = {**item, "role": "assistant", "content": [block], "x_thoughts": "secret"}
    messages = import_messages([{**item, "role": "user", "content": "?"}, answer], format_name)
    assert messages[1].source is not None
    dialect = messages[1].source.dialect
    target = Target(plain_row(dialect), "made-up", "http://127.0.0.1:9/v1")
    assert "secret" in json.dumps(encode_messages(messages, target)), "it goes back as it came"
    assert "secret" not in json.dumps(encode_messages(messages, target, thinking=Thinking(replay="never")))
    assert "secret" not in json.dumps(export_messages(messages, format_name))


# --- the rulebook -----------------------------------------------------------------------------------------------------

EXTRA: dict[str, Any] = {
    "x_unknown": 1,
    "status": "completed",
    "index": 0,
    "id": "item_1",
    "phase": "commentary",
    "thought": True,
    "reasoning_content": "so",
    "reasoning": "so",
    "thinking": "so",
    "thought_signature": "S",
    "prefix": True,
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}],
    "encrypted_content": "E",
    "signature": "S",
    "tool_calls": [{"id": "call_z", "type": "custom", "custom": {"name": "x", "input": "y"}}],
    "images": ["aGk="],
    "function_call": {"name": "look", "arguments": "{}"},
    "tool_call_id": "call_1",
    "annotations": [{"a": 1}],
    "content": [{"type": "text", "text": "more"}],
    "cache_control": {"type": "ephemeral"},
    "refusal": "no",
}
ROWS = {
    dialect: [row for provider in list_providers() if (row := provider.with_dialect(dialect)) is not None]
    for dialect in REQUESTS
}


def add_fields(node: Any, random: Random) -> Any:
    if isinstance(node, list):
        return [add_fields(item, random) for item in node]
    if not isinstance(node, dict):
        return [{"type": "text", "text": node}] if isinstance(node, str) and random.random() < 0.02 else node
    added = {name: EXTRA[name] for name in random.sample(sorted(EXTRA), 2) if random.random() < 0.2}
    return {**added, **{name: add_fields(value, random) for name, value in node.items()}}


def find_broken(messages: tuple[Message, ...], target: Target, thinking: Thinking, **fields: Any) -> set[str]:
    rules = find_rulebook(target.dialect)
    assert rules is not None
    body = encode_messages(messages, target, thinking=thinking, **fields)
    return {broken.text for broken in rules.check(WireRequest(body), target)}


@pytest.mark.parametrize("dialect", REQUESTS)
@settings(max_examples=60, deadline=None)
@given(st.lists(LIKELY, min_size=1, max_size=6), ASKED, st.randoms(use_true_random=False))
def test_a_source_breaks_no_rule(dialect: str, history: list[Message], thinking: Thinking, random: Random) -> None:
    row = random.choice(ROWS[dialect])
    model = random.choice([rule.models for rule in row.models] or ["made-up"]).replace("*", "") or "made-up"
    target = Target(row, model, "http://127.0.0.1:9/v1", row.rule(model))
    name = {"openai_responses": "input", "gemini_interactions": "input", "gemini": "contents"}.get(dialect, "messages")
    try:
        body = encode_messages(
            (*history, Message("user", "go")), Target(plain_row(dialect), "made-up", "http://127.0.0.1:9")
        )
        body[name] = add_fields(body[name], random)
        prompt = find_dialect(dialect).read(json.dumps(body).encode(), PATHS.get(dialect, "/")).prompt
        messages = prompt.messages
        without = find_broken(tuple(msgspec.structs.replace(each, source=None) for each in messages), target, thinking)
    except AsidesError:
        return
    assert find_broken(messages, target, thinking, source=prompt.source) - without == set()
