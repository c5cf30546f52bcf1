"""No request, however odd, breaks a server half or the rules of a stage: it is answered, or refused by the dialect."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import pytest

from asides_stage.stage import Say
from asides_stage.stage.http_requests import Request
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.request_router import Routes

Wire = dict[str, Any]

SCHEMA: Wire = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
PICTURE = "aGVsbG8="

GEMINI: Wire = {
    "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
                {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {
                    "functionCall": {"id": "c1", "name": "look", "args": {"at": "x"}},
                    "thoughtSignature": "skip_thought_signature_validator",
                },
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "fine"}}}],
        },
    ],
    "tools": [
        {"functionDeclarations": [{"name": "look", "description": "Looks.", "parametersJsonSchema": SCHEMA}]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    "generationConfig": {
        "temperature": 1,
        "topP": 0.9,
        "maxOutputTokens": 9,
        "stopSequences": ["END"],
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    },
    "safetySettings": [{"category": "X"}],
}

BEDROCK: Wire = {
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"text": "look"},
                {"cachePoint": {"type": "default"}},
                {"image": {"format": "png", "source": {"bytes": PICTURE}}},
                {"document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a"}}}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": PICTURE}},
                {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "a"}]}},
                {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"at": "x"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "c1",
                        "content": [
                            {"text": "fine"},
                            {"json": {"a": 1}},
                            {"image": {"format": "png", "source": {"bytes": PICTURE}}},
                        ],
                        "status": "success",
                    }
                }
            ],
        },
    ],
    "inferenceConfig": {"maxTokens": 4000, "temperature": 1, "topP": 0.9, "stopSequences": ["END"]},
    "toolConfig": {
        "tools": [
            {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": SCHEMA}, "strict": True}},
            {"cachePoint": {"type": "default"}},
        ],
        "toolChoice": {"tool": {"name": "look"}},
    },
    "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}, "top_k": 4},
    "requestMetadata": {"a": "b"},
}
# Without the signatures of another server, which the rules refuse.
UNSIGNED: Wire = {
    **BEDROCK,
    "messages": [
        {**message, "content": [block for block in message["content"] if "reasoningContent" not in block]}
        for message in BEDROCK["messages"]
    ],
    "additionalModelRequestFields": {"output_config": {"effort": "low"}, "reasoningConfig": {"type": "disabled"}},
}

COHERE: Wire = {
    "model": "command-a-reasoning-08-2025",
    "stream": False,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "low"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}],
            "tool_plan": "I look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}}],
            "citations": [{"start": 0, "end": 2, "text": "so", "sources": []}],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [
                {"type": "text", "text": "fine"},
                {"type": "document", "document": {"id": "1", "data": {"text": "a"}}},
            ],
        },
    ],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
    "tool_choice": "REQUIRED",
    "strict_tools": True,
    "response_format": {"type": "json_object", "json_schema": SCHEMA},
    "thinking": {"type": "enabled", "token_budget": 2000},
    "max_tokens": 9,
    "stop_sequences": ["END"],
    "temperature": 0.3,
    "p": 0.9,
    "k": 4,
    "seed": 1,
    "documents": [{"id": "1", "data": {"text": "a"}}],
}

OLLAMA: Wire = {
    "model": "qwen3:8b",
    "stream": False,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look", "images": [PICTURE]},
        {
            "role": "assistant",
            "content": "so",
            "thinking": "hm",
            "tool_calls": [{"id": "c1", "function": {"index": 0, "name": "look", "arguments": {"at": "x"}}}],
        },
        {"role": "tool", "content": "fine", "tool_name": "look", "tool_call_id": "c1"},
    ],
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
    "think": "low",
    "format": SCHEMA,
    "keep_alive": "5m",
    "options": {"temperature": 0.3, "num_predict": 9, "stop": ["END"], "seed": 1, "num_ctx": 4096},
}

GENERATE: Wire = {
    **{name: value for name, value in OLLAMA.items() if name not in ("messages", "tools")},
    "prompt": "look",
    "system": "Be brief.",
    "images": [PICTURE],
    "suffix": "",
    "context": [1, 2],
}

CLAUDE = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
SAMPLES: dict[str, tuple[str, str, Wire]] = {
    "gemini": ("gemini", "/v1beta/models/gemini-3-pro-preview:generateContent", GEMINI),
    "bedrock": ("bedrock", CLAUDE, UNSIGNED),
    "bedrock with thoughts": ("bedrock", CLAUDE, BEDROCK),
    "cohere": ("cohere", "/v2/chat", COHERE),
    "ollama": ("ollama", "/api/chat", OLLAMA),
    "ollama's generate": ("ollama", "/api/generate", GENERATE),
    "gemini's count": ("gemini", "/v1beta/models/m:countTokens", {"generateContentRequest": GEMINI}),
    "bedrock's count": ("bedrock", "/model/m/count-tokens", {"input": {"converse": BEDROCK}}),
}

# Every type of JSON, empty and not, and the values that break a reader of numbers, of base64 or of addresses.
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    3,
    -1,
    0.5,
    1e300,
    2**63,
    "",
    " ",
    "odd",
    "9" * 5_000,
    "data:image/png;base64,%",
    [],
    [3],
    [None],
    ["odd"],
    [{}],
    [[]],
    {},
    {"odd": 3},
    {"type": 3},
    {"text": 3},
    {"name": 3},
)


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a document, and of the document itself."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from list_places(item, (*path, name))


def replace_at(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = replace_at(document[path[0]], path[1:], value)
    return changed


def remove_at(document: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.copy(document)
    if len(path) == 1:
        del changed[path[0]]
    else:
        changed[path[0]] = remove_at(document[path[0]], path[1:])
    return changed


def list_oddities(sample: Wire) -> Iterator[tuple[str, bytes]]:
    """Yield odd requests: each value of the sample replaced by each odd one, removed, or given a neighbour."""
    for path in list_places(sample):
        where = ".".join(map(str, path))
        for odd in ODD:
            yield f"{where} = {odd!r}", msgspec.json.encode(replace_at(sample, path, odd))
        if path:
            yield f"{where} removed", msgspec.json.encode(remove_at(sample, path))


def is_refusal(dialect: str, body: bytes) -> bool:
    """Whether this is an error as the dialect's clients read it."""
    match dialect, msgspec.json.decode(body):
        case "gemini", {"error": {"code": 400, "message": str(), "status": "INVALID_ARGUMENT"}}:
            return True
        case "bedrock" | "cohere", {"message": str()}:
            return True
        case "ollama", {"error": str()}:
            return True
        case _:
            return False


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", SAMPLES)
def test_an_odd_value_anywhere_is_answered_or_refused_by_the_dialect(name: str, step: int) -> None:
    """Every third odd value at a place, another third at the next; all of them with the marker `thorough`."""
    dialect, path, sample = SAMPLES[name]
    log = RequestLog()
    routes = Routes(lambda _: Say("fine"), log, key=None, models=("m",), lenient=True)
    statuses: dict[str, int | None] = {}
    for oddity, body in islice(list_oddities(sample), 0, None, step):
        try:
            plan = routes.answer(Request("POST", path, "", {}, body))
        except Exception as problem:  # noqa: BLE001 - whatever it is, the test names the request
            pytest.fail(f"{oddity[:200]}: {problem!r}")
        statuses[oddity] = plan.status
        assert plan.status in (200, 400), oddity
        body = b"".join(plan.pieces)
        assert plan.status == 200 or is_refusal(dialect, body), oddity
        assert b"a field of the request has an unexpected type" not in body, f"{oddity}: say which field"
    assert log.problems == []
    assert 400 in statuses.values()
    assert 200 in statuses.values(), "a sample is good"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("depth", [40, 400, 5_000])
def test_a_deep_request_is_answered_or_refused_by_the_dialect(name: str, depth: int) -> None:
    dialect, path, sample = SAMPLES[name]
    routes = Routes(lambda _: Say("fine"), RequestLog(), key=None, models=("m",), lenient=True)
    for place in [place for place in list_places(sample) if len(place) < 6]:
        body = msgspec.json.encode(replace_at(sample, place, "@"))
        body = body.replace(b'"@"', b'{"a":[' * depth + b"1" + b"]}" * depth)
        plan = routes.answer(Request("POST", path, "", {}, body))
        assert plan.status == 200 or is_refusal(dialect, b"".join(plan.pieces)), place
