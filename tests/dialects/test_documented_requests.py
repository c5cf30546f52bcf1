"""The stage refuses nothing that the real servers accept: every documented field, block, part and tool passes.

The fields are those of the makers' clients in 2026-11: google-genai 3.1, boto3 1.44, cohere 7.3, ollama 0.6.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides_stage import improvise
from asides_stage.stage.http_requests import Request
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.request_router import Routes

Wire = dict[str, Any]

DATA = "aGVsbG8="
SCHEMA: Wire = {"type": "object", "properties": {"at": {"type": "string"}}}


def assert_accepted(path: str, body: Wire) -> None:
    log = RequestLog()
    routes = Routes(improvise, log, key=None, models=("m",), lenient=True)
    plan = routes.answer(Request("POST", path, "", {}, msgspec.json.encode(body)))
    assert (plan.status, log.requests[0].problem) == (200, None)


# --- gemini -----------------------------------------------------------------------------------------------------------

PERSON: Wire = {"role": "user", "parts": [{"text": "look"}]}
CALL: Wire = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
RESPONSE: Wire = {"functionResponse": {"name": "look", "response": {"output": "fine"}}}

GEMINI_CONFIG: Wire = {
    "audioTimestamp": True,
    "candidateCount": 1,
    "frequencyPenalty": 0.1,
    "imageConfig": {"aspectRatio": "1:1"},
    "logprobs": 2,
    "maxOutputTokens": 100,
    "mediaResolution": "MEDIA_RESOLUTION_LOW",
    "presencePenalty": 0.1,
    "responseLogprobs": True,
    "responseMimeType": "text/plain",
    "responseModalities": ["TEXT", "IMAGE"],
    "routingConfig": {"autoMode": {}},
    "seed": 1,
    "speechConfig": {"languageCode": "de-DE"},
    "stopSequences": ["END"],
    "temperature": 0.5,
    "thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1},
    "topK": 40.0,
    "topP": 0.9,
}
GEMINI_FIELDS: Wire = {
    "cachedContent": "cachedContents/a",
    "labels": {"a": "b"},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "serviceTier": "priority",
    "store": False,
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["look"]}},
    **{f"generationConfig.{name}": value for name, value in GEMINI_CONFIG.items()},
    **{
        f"generationConfig.thinkingConfig {level}": {"thinkingLevel": level}
        for level in ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "high")
    },
    **{
        f"toolConfig {mode}": {"functionCallingConfig": {"mode": mode}, "retrievalConfig": {"languageCode": "de"}}
        for mode in ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE")
    },
}
GEMINI_TOOLS: list[Wire] = [
    *(
        {name: {}}
        for name in "googleSearch googleSearchRetrieval googleMaps codeExecution urlContext retrieval".split()
    ),
    {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
    {"fileSearch": {"fileSearchStoreNames": ["a"]}},
    {"mcpServers": [{"name": "a", "streamableHttpTransport": {"url": "https://example.com"}}]},
    {"functionDeclarations": [{"name": "look"}]},
    {"functionDeclarations": [{"name": "look", "parameters": None, "behavior": "BLOCKING"}]},
    {"functionDeclarations": [{"name": "look", "parameters": {"type": "OBJECT"}, "response": {"type": "STRING"}}]},
    {"functionDeclarations": [{"name": "look", "parametersJsonSchema": SCHEMA, "responseJsonSchema": SCHEMA}]},
    {"functionDeclarations": []},
]
USER_PARTS: list[Wire] = [
    {"text": ""},
    {"inlineData": {"mimeType": "audio/wav", "data": DATA, "displayName": "a"}},
    {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/a"}, "videoMetadata": {"fps": 1}},
    {"fileData": {"fileUri": "https://example.com/a"}},
    {"text": "a", "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
    {"text": "a", "partMetadata": {"a": 1}},
]
MODEL_PARTS: list[Wire] = [
    {"text": "a", "thought": True},
    {"text": "", "thought": True, "thoughtSignature": "skip_thought_signature_validator"},
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"toolCall": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
    {"toolResponse": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
    {"inlineData": {"mimeType": "image/png", "data": DATA}},
]
RESPONSES: list[Wire] = [
    {"name": "look", "response": {"output": {"a": 1}}},
    {"name": "look", "response": {}},
    {"name": "look", "response": {"result": "a"}, "willContinue": False, "scheduling": "SILENT"},
    {"name": "look", "response": {"output": "a"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": DATA}}]},
]


def contents(*more: Wire) -> Wire:
    return {"contents": [PERSON, *more]}


def with_field(body: Wire, name: str, value: Any) -> Wire:
    """The body with a field, "outer.inner" if it is inside another. Words after a space only tell fields apart."""
    outer, _, inner = name.partition(" ")[0].partition(".")
    return {**body, outer: {inner: value} if inner else value}


@pytest.mark.parametrize(
    "body",
    [
        *(with_field(contents(), name, value) for name, value in GEMINI_FIELDS.items()),
        *(contents() | {"tools": [tool]} for tool in GEMINI_TOOLS),
        *(contents({"role": "model", "parts": [{"text": "so"}]}, {"parts": [part]}) for part in USER_PARTS),
        *(contents({"role": "model", "parts": [part]}, PERSON) for part in MODEL_PARTS),
        *(
            contents({"role": "model", "parts": [CALL]}, {"role": role, "parts": [{"functionResponse": response}]})
            for response in RESPONSES
            for role in ("user", "function")
        ),
        contents({"role": "model", "parts": [CALL]}, {"role": "user", "parts": [RESPONSE, {"text": "and?"}]}),
        contents({"role": "model", "parts": []}, PERSON),
        contents(PERSON),
    ],
    ids=lambda body: msgspec.json.encode(body).decode()[60:140],
)
def test_gemini_accepts(body: Wire) -> None:
    assert_accepted("/v1beta/models/gemini-3-pro-preview:generateContent", body)


# --- bedrock ----------------------------------------------------------------------------------------------------------

PICTURE: Wire = {"image": {"format": "png", "source": {"bytes": DATA}}}
CONVERSE_BLOCKS: list[Wire] = [
    PICTURE,
    {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a", "bucketOwner": "b"}}}},
    {"document": {"format": "pdf", "name": "a", "source": {"bytes": DATA}, "citations": {"enabled": True}}},
    {"document": {"format": "txt", "name": "a", "source": {"text": "a"}, "context": "b"}},
    {"document": {"name": "a", "source": {"content": [{"text": "a"}]}}},
    {"video": {"format": "mp4", "source": {"bytes": DATA}}},
    {"audio": {"format": "wav", "source": {"bytes": DATA}}},
    {"guardContent": {"text": {"text": "a", "qualifiers": ["query"]}}},
    {"cachePoint": {"type": "default", "ttl": "1h"}},
    {"searchResult": {"source": "a", "title": "b", "content": [{"text": "c"}], "citations": {"enabled": True}}},
    {"toolAddition": {"tool": {"type": "tool", "name": "look"}}},
    {"toolRemoval": {"tool": {"type": "tool", "name": "look"}}},
]
RESULT_BLOCKS: list[Wire] = [
    {"json": {"a": 1}},
    {"json": [1]},
    {"text": "a"},
    PICTURE,
    {"document": {"format": "txt", "name": "a", "source": {"text": "a"}}},
    {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://a"}}}},
    {"searchResult": {"source": "a", "title": "b", "content": [{"text": "c"}]}},
]
CONVERSE_FIELDS: Wire = {
    "additionalModelRequestFields": {"anthropic_beta": ["a"], "anything": {"else": 1}},
    "additionalModelResponseFieldPaths": ["/delta/stop_sequence"],
    "guardrailConfig": {"guardrailIdentifier": "a", "guardrailVersion": "1", "trace": "enabled"},
    "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
    "outputConfig": {"effort": "high"},
    "performanceConfig": {"latency": "optimized"},
    "promptVariables": {"a": {"text": "b"}},
    "requestMetadata": {"a": "b"},
    "serviceTier": {"type": "flex"},
    "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"guardContent": {"text": {"text": "a"}}}],
}
CONVERSE_TOOLS: list[Wire] = [
    {"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}},
    {"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": SCHEMA}, "strict": True}},
    {"systemTool": {"name": "nova_grounding"}},
    {"cachePoint": {"type": "default"}},
]

CONVERSE_CHOICES: list[Wire] = [{"auto": {}}, {"any": {}}, {"tool": {"name": "look"}}]


def conversation(*more: Wire, **fields: Any) -> Wire:
    return {"messages": [{"role": "user", "content": [{"text": "look"}]}, *more], **fields}


def use(result: Wire) -> Wire:
    call = {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}
    answer = {"toolResult": {"toolUseId": "a", "content": [result], "status": "success"}}
    turns = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return conversation(*turns, toolConfig={"tools": CONVERSE_TOOLS[:1]})


SERVER_TOOL: list[Wire] = [
    {"toolUse": {"toolUseId": "b", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}},
    {"toolResult": {"toolUseId": "b", "content": [{"json": {}}], "type": "nova_grounding_result"}},
    {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "a", "location": {"web": {}}}]}},
]


@pytest.mark.parametrize(
    "body",
    [
        *({"messages": [{"role": "user", "content": [{"text": "a"}, block]}]} for block in CONVERSE_BLOCKS),
        *map(use, RESULT_BLOCKS),
        *(conversation(**{name: value}) for name, value in CONVERSE_FIELDS.items()),
        *(conversation(toolConfig={"tools": [tool]}) for tool in CONVERSE_TOOLS),
        *(conversation(toolConfig={"tools": CONVERSE_TOOLS[:1], "toolChoice": choice}) for choice in CONVERSE_CHOICES),
        conversation(
            {"role": "assistant", "content": SERVER_TOOL},
            {"role": "user", "content": [{"text": "and?"}]},
            toolConfig={"tools": CONVERSE_TOOLS[2:3]},
        ),
        conversation({"role": "system", "content": [{"text": "A note."}]}),
        conversation(
            {"role": "system", "content": [{"text": "A note."}]},
            {"role": "assistant", "content": [{"text": "so"}]},
            {"role": "user", "content": [{"text": "and?"}]},
        ),
    ],
    ids=lambda body: msgspec.json.encode(body).decode()[60:140],
)
def test_bedrock_accepts(body: Wire) -> None:
    assert_accepted("/model/us.amazon.nova-2-lite-v1%3A0/converse", body)


# --- cohere -----------------------------------------------------------------------------------------------------------

COHERE_FIELDS: Wire = {
    "citation_options": {"mode": "ACCURATE"},
    "documents": ["a", {"id": "1", "data": {"text": "b"}}],
    "frequency_penalty": 0.1,
    "k": 3,
    "logprobs": True,
    "max_tokens": 100,
    "p": 0.9,
    "presence_penalty": 0.1,
    "priority": 0,
    "raw_prompting": False,
    "response_format": {"type": "json_object", "json_schema": SCHEMA},
    "response_format text": {"type": "text"},
    "safety_mode": "STRICT",
    "seed": 1,
    "stop_sequences": ["END"],
    "stream": True,
    "strict_tools": True,
    "temperature": 0.3,
    "thinking": {"type": "disabled"},
    "thinking with a budget": {"type": "enabled", "token_budget": 100},
    "tool_choice": "NONE",
    "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
}
CONTENTS: list[Any] = [
    "look",
    [{"type": "text", "text": "look"}],
    [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "auto"}}],
    [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
    [{"type": "document", "document": {"data": {"a": "b"}}}],
]
RESULTS: list[Any] = [
    "fine",
    "",
    [{"type": "text", "text": "fine"}],
    [{"type": "document", "document": {"data": "fine"}}],
    [{"type": "document", "document": {"id": "1", "data": {"a": "b"}}}],
]


def asked(content: Any = "look", *more: Wire, **fields: Any) -> Wire:
    return {"model": "command-a-reasoning-08-2025", "messages": [{"role": "user", "content": content}, *more], **fields}


def called(result: Any, arguments: Any = "{}") -> Wire:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    said = {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call]}
    return asked("look", said, {"role": "tool", "tool_call_id": "a", "content": result})


@pytest.mark.parametrize(
    "body",
    [
        *(with_field(asked(), name, value) for name, value in COHERE_FIELDS.items()),
        *map(asked, CONTENTS),
        *map(called, RESULTS),
        called("fine", '{"at": "x"}'),
        {"model": "m", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "look"}]},
        {"model": "m", "messages": [{"role": "developer", "content": "a"}, {"role": "user", "content": "look"}]},
    ],
    ids=lambda body: msgspec.json.encode(body).decode()[60:140],
)
def test_cohere_accepts(body: Wire) -> None:
    assert_accepted("/v2/chat", body)


# --- ollama -----------------------------------------------------------------------------------------------------------

OLLAMA_FIELDS: Wire = {
    "format": "json",
    "format with a schema": SCHEMA,
    "format of nothing": "",
    "keep_alive": "5m",
    "keep_alive in seconds": -1,
    "logprobs": True,
    "options": {"num_ctx": 4096, "num_predict": -2, "stop": "END", "mirostat": 1, "penalize_newline": True},
    "options of a stop list": {"stop": ["END"], "temperature": 1, "top_k": 40, "seed": 42, "repeat_penalty": 1.1},
    "shift": True,
    "stream": True,
    "think": False,
    "think more": "high",
    "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
    "top_logprobs": 3,
    "truncate": True,
}
OLLAMA_CALL: Wire = {"function": {"name": "look", "arguments": {}}}


@pytest.mark.parametrize(
    "body",
    [
        *(with_field(asked(), name, value) for name, value in OLLAMA_FIELDS.items()),
        {"model": "m", "messages": [{"role": "user", "content": "look", "images": [DATA]}]},
        {"model": "m", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "look"}]},
        {"model": "m", "messages": []},
        {"model": "m"},
        asked(
            "look",
            {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [OLLAMA_CALL]},
            {"role": "tool", "content": "fine"},
        ),
        asked(
            "look",
            {"role": "assistant", "tool_calls": [OLLAMA_CALL, OLLAMA_CALL]},
            {"role": "tool", "content": "fine", "tool_name": "look"},
            {"role": "tool", "content": "fine", "name": "look"},
        ),
    ],
    ids=lambda body: msgspec.json.encode(body).decode()[60:140],
)
def test_ollama_accepts(body: Wire) -> None:
    assert_accepted("/api/chat", body)


@pytest.mark.parametrize(
    "body",
    [
        *(
            with_field({"model": "m", "prompt": "look"}, name, value)
            for name, value in {
                **{name: value for name, value in OLLAMA_FIELDS.items() if name != "tools"},
                "context": [1, 2],
                "images": [DATA],
                "raw": True,
                "suffix": "end",
                "system": "Be brief.",
                "template": "{{ .Prompt }}",
            }.items()
        ),
        {"model": "m"},
        {"model": "m", "prompt": ""},
    ],
    ids=lambda body: msgspec.json.encode(body).decode()[:80],
)
def test_ollama_generates(body: Wire) -> None:
    assert_accepted("/api/generate", body)
