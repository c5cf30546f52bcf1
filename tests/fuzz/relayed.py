"""Fuzzing of the relay: changed requests of callers, and changed responses of providers, without sockets."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.flows.build_call import CallBuilder
from asides.flows.steps import Head
from asides.options import Options, Timeout
from asides.relay.endpoints import find_endpoint
from asides.relay.relay import Relay, RelayConfig
from asides.relay.relay_request import CallerLimits, RelayOutcome, RelayRequest, ResponseStart
from asides.relay.state.envelope import PREFIX, make_envelope, make_reference, wrap_in_base64
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import PartState, TurnState
from asides.relay.streams.relay_stream import RelayStream
from asides.relay.vault.memory_vault import MemoryVault
from asides.settings import Settings
from asides.values.thinking import Origin, Seal
from tests.fuzz.bodies import mutate_body, written_bodies
from tests.fuzz.mutations import mutate_bytes, mutate_document, write_json

Wire = dict[str, Any]

KEY = "sk-planted-key-of-the-operator"
CALLER_KEY = "sk-planted-key-of-the-caller"
KEYS = RelayKeys((b"k" * 32,))
MODELS = (
    "anthropic:claude-opus-4-5",
    "anthropic:claude-opus-5-5",
    "bedrock:anthropic.claude-opus-4-5-20251101-v1:0",
    "cohere:command-a-reasoning-08-2025",
    "gemini:gemini-3-pro-preview",
    "ollama:qwen3:8b",
    "deepseek:deepseek-v4-pro",
    "openai-chat:gpt-5",
    "openai-responses:gpt-5.2",
    "openai-compatible:m",
    "mistral:magistral-medium-latest",
)


def make_token() -> str:
    """An envelope with the seal of a thought."""
    seal = Seal("signature", "c2VhbA==")
    origin = Origin("anthropic", "https://upstream.test", "claude-opus-4-5", "anthropic")
    state = TurnState((PartState(0, "thought", (seal,)),), origin)
    return make_envelope(state, KEYS.find_tenant(""), has_vault=False, reference=make_reference())[0]


TOKEN = make_token()
SCHEMA: Wire = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
PICTURE = "iVBORw0KGgo="


class Seed(NamedTuple):
    """A request that is right."""

    dialect: str
    path: str
    body: Wire
    query: str = ""
    method: str = "POST"


def list_seeds(model: str) -> list[Seed]:
    """Requests with many fields, in every dialect and for every endpoint with a body."""
    chat: Wire = {
        "model": model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": "<think>hm</think>I look.",
                "reasoning_content": "hm",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": TOKEN, "format": "asides"}],
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "call_abc123def",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"at":"a"}'},
                    },
                    {"id": "call_custom_9", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_abc123def", "content": [{"type": "text", "text": "fine"}]},
            {"role": "tool", "tool_call_id": "call_custom_9", "content": "fine"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "d", "parameters": SCHEMA, "strict": True},
            },
            {"type": "custom", "custom": {"name": "shell", "description": "d", "format": {"type": "text"}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}},
        "reasoning_effort": "low",
        "max_completion_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 1,
        "logit_bias": {"1": 2},
        "metadata": {"a": "b"},
        "user": "u",
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "service_tier": "auto",
        "store": False,
        "asides": {"thinking": "low", "visibility": ["summary"], "fallbacks": ["openai-compatible:n"], "timeout": 5},
    }
    responses: Wire = {
        "model": model,
        "instructions": "Be brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "low"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "content": [{"type": "reasoning_text", "text": "hm"}],
                "encrypted_content": TOKEN,
            },
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_abc123def",
                "name": "look",
                "arguments": '{"at":"a"}',
            },
            {"type": "function_call_output", "call_id": "call_abc123def", "output": "fine"},
            {"type": "custom_tool_call", "call_id": "call_x", "name": "shell", "input": "ls"},
            {"type": "custom_tool_call_output", "call_id": "call_x", "output": "fine"},
            {"type": "item_reference", "id": "msg_1"},
        ],
        "tools": [
            {"type": "function", "name": "look", "description": "d", "parameters": SCHEMA, "strict": True},
            {"type": "custom", "name": "shell", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
            {"type": "web_search"},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
        ],
        "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100,
        "truncation": "auto",
        "prompt_cache_key": "k",
        "store": True,
        "stream": True,
        "previous_response_id": None,
        "metadata": {"a": "b"},
        "asides": {"thinking": "low", "extra": {"a": 1}},
    }
    messages: Wire = {
        "model": model,
        "max_tokens": 2048,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": TOKEN},
                    {"type": "redacted_thinking", "data": TOKEN},
                    {"type": "text", "text": "I look.", "citations": None},
                    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "a"}},
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "is_error": False,
                        "content": [{"type": "text", "text": "fine"}],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        "tools": [
            {"name": "look", "description": "d", "input_schema": SCHEMA},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low"},
        "metadata": {"user_id": "u"},
        "stop_sequences": ["END"],
        "temperature": 1,
        "stream": True,
        "asides": {"visibility": "none"},
    }
    gemini: Wire = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "thoughtSignature": wrap_in_base64(TOKEN)},
                    {
                        "functionCall": {"id": "c1", "name": "look", "args": {"at": "a"}},
                        "thoughtSignature": wrap_in_base64(TOKEN),
                    },
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "x"}}}],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "look", "description": "d", "parameters": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        "generationConfig": {
            "maxOutputTokens": 100,
            "temperature": 0.5,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024},
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    }
    bedrock: Wire = {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {
                "role": "user",
                "content": [{"text": "Look."}, {"image": {"format": "png", "source": {"bytes": PICTURE}}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": TOKEN}}},
                    {"reasoningContent": {"redactedContent": wrap_in_base64(TOKEN)}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"at": "a"}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "tooluse_1", "status": "success", "content": [{"json": {"a": 1}}]}}
                ],
            },
        ],
        "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}],
            "toolChoice": {"auto": {}},
        },
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    }
    cohere: Wire = {
        "model": model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {
                "role": "assistant",
                "tool_plan": "hm",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}],
                "tool_calls": [{"id": "look_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "look_1", "content": [{"type": "document", "document": {"data": "x"}}]},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
        "documents": [{"id": "d", "data": {"text": "x"}}],
        "thinking": {"type": "enabled", "token_budget": 100},
        "response_format": {"type": "json_object", "json_schema": SCHEMA},
        "max_tokens": 100,
        "temperature": 0.5,
        "p": 0.9,
        "k": 3,
        "stop_sequences": ["END"],
        "stream": True,
        "safety_mode": "OFF",
        "tool_choice": "REQUIRED",
    }
    ollama: Wire = {
        "model": model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look.", "images": [PICTURE]},
            {
                "role": "assistant",
                "content": "I look.",
                "thinking": "hm",
                "tool_calls": [{"id": "c", "function": {"index": 0, "name": "look", "arguments": {"at": "a"}}}],
            },
            {"role": "tool", "tool_name": "look", "content": "fine"},
        ],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}],
        "think": "low",
        "format": SCHEMA,
        "keep_alive": "5m",
        "stream": True,
        "options": {"num_predict": 100, "temperature": 0.5, "stop": ["END"], "seed": 1, "num_ctx": 2048},
    }
    generate: Wire = {
        "model": model,
        "prompt": "Look.",
        "system": "Be brief.",
        "suffix": "",
        "images": [PICTURE],
        "think": True,
        "format": "json",
        "raw": False,
        "options": {"num_predict": 9},
        "context": [1, 2],
    }
    name = model.replace("/", "%2F")
    return [
        Seed("openai_chat", "/v1/chat/completions", chat),
        Seed("openai_chat", "/v1/chat/completions", {**chat, "stream": False}),
        Seed("openai_responses", "/v1/responses", responses),
        Seed("openai_responses", "/v1/responses", {**responses, "stream": False}),
        Seed("openai_responses", "/v1/responses/input_tokens", responses),
        Seed("openai_responses", "/v1/responses/compact", responses),
        Seed("anthropic", "/v1/messages", messages),
        Seed("anthropic", "/v1/messages", {**messages, "stream": False}, "beta=true"),
        Seed("anthropic", "/v1/messages/count_tokens", messages),
        Seed("gemini", f"/v1beta/models/{name}:generateContent", gemini),
        Seed("gemini", f"/v1beta/models/{name}:streamGenerateContent", gemini, "alt=sse"),
        Seed("gemini", f"/v1beta/models/{name}:streamGenerateContent", gemini),
        Seed("gemini", f"/v1beta/models/{name}:countTokens", {"generateContentRequest": gemini}),
        Seed("bedrock", f"/model/{name}/converse", bedrock),
        Seed("bedrock", f"/model/{name}/converse-stream", bedrock),
        Seed("bedrock", f"/model/{name}/count-tokens", {"input": {"converse": bedrock}}),
        Seed("cohere", "/v2/chat", cohere),
        Seed("cohere", "/v1/tokenize", {"text": "x", "model": model}),
        Seed("ollama", "/api/chat", ollama),
        Seed("ollama", "/api/generate", generate),
        Seed("ollama", "/api/show", {"model": model, "verbose": True}),
        Seed("openai_chat", f"/v1/models/{name}", {}, method="GET"),
        Seed("openai_responses", "/v1/responses/resp_1/input_items", {}, "limit=3&after=x&key=k", method="GET"),
        Seed("openai_responses", "/v1/responses/resp_1", {}, method="DELETE"),
        Seed("anthropic", "/v1/models", {}, "limit=7", method="GET"),
    ]


# --- providers --------------------------------------------------------------------------------------------------------


class FakeResponse:
    """A response that is at hand."""

    def __init__(self, head: Head, pieces: list[bytes]) -> None:
        self._head = head
        self._pieces = iter(pieces)

    def head(self) -> Head:
        return self._head

    def read(self, patience: float | None = None) -> bytes:
        return next(self._pieces, b"")

    def close(self) -> None:
        pass


class FakeProviders:
    """A transport that answers every request, and keeps them."""

    def __init__(self, answer: Callable[[HttpRequest], FakeResponse]) -> None:
        self.requests: list[HttpRequest] = []
        self._answer = answer

    def open(self, request: HttpRequest, timeout: Timeout) -> FakeResponse:
        self.requests.append(request)
        return self._answer(request)

    def close(self) -> None:
        pass


class Relayed(NamedTuple):
    """What became of a request."""

    start: ResponseStart
    body: bytes
    outcome: RelayOutcome | None


def relay(request: RelayRequest, providers: FakeProviders, vault: MemoryVault, **config: Any) -> Relayed:
    options = Options(base_url="https://upstream.test/v1", api_key=KEY, retries=0)
    config = {"keys": KEYS, "state_mode": "memory", "sink": "gateway", **config}
    exchange = Relay(CallBuilder(options, settings=Settings()), RelayConfig(**config)).begin(request)
    stream = RelayStream(exchange, providers, vault)
    start = stream.start()
    return Relayed(start, b"".join(stream), stream.outcome)


# --- the targets ------------------------------------------------------------------------------------------------------


def _draw_seed(rng: random.Random) -> Seed:
    """A request that is right, perhaps with fewer fields."""
    seed = rng.choice(list_seeds(rng.choice(MODELS)))
    fields = {name: value for name, value in seed.body.items() if name in _NEEDED or rng.random() < 0.5}
    return seed._replace(body=fields) if rng.random() < 0.8 else seed


def _answer(request: HttpRequest, change: Callable[[bytes], bytes] = bytes) -> FakeResponse:
    """The response of a provider: a reply of ours in the dialect of the request."""
    address = urlsplit(request.url)
    if request.method != "POST" or any(word in address.path for word in ("count", "tokens", "/responses/")):
        return FakeResponse(Head(404, {}), [b'{"error":{"message":"no"}}'])
    dialect = find_endpoint("POST", address.path, address.query, {}).dialect
    streams = "stream" in address.path or b'"stream":true' in request.body
    found = [body for body in written_bodies() if body.dialect == dialect][0 if streams else 1 :: 2]
    data = change(found[len(request.body) % len(found)].data)
    return FakeResponse(Head(200, {"content-type": "application/json", "x-api-key": KEY}), [data[:50], data[50:]])


def _relay(rng: random.Random, request: RelayRequest, providers: FakeProviders) -> Relayed:
    relayed = relay(
        request, providers, MemoryVault(), trusts_callers=rng.random() < 0.3, home=rng.choice(("", "openai"))
    )
    shown = repr((relayed.start, relayed.body, relayed.outcome))
    if KEY in shown or CALLER_KEY in shown:
        raise AssertionError(f"a key is shown: {request.path}")
    for sent in providers.requests:
        head = "".join([sent.url, *sent.headers, *sent.headers.values()])
        if CALLER_KEY in head or not head.isprintable() or urlsplit(sent.url).hostname != "upstream.test":
            raise AssertionError(f"an odd request to a provider: {sent.url!r}")
    return relayed


_HEADERS = {"authorization": f"Bearer {CALLER_KEY}", "x-api-key": CALLER_KEY, "x-odd": "a\r\nb: c", "cookie": "a=b"}


def fuzz_relayed_requests(rng: random.Random) -> None:
    """A changed request of a caller. It ends in a reply, or in an error of its dialect with a status below 500."""
    seed = _draw_seed(rng)
    body = write_json(mutate_document(rng, seed.body)) if seed.body and rng.random() < 0.8 else write_json(seed.body)
    path = seed.path
    if rng.random() < 0.25:
        body = mutate_bytes(rng, body)
    if rng.random() < 0.1:
        path = rng.choice(
            (f"/v1/..{path}", path.replace("/", "//"), f"{path}%2f..", f"{path}\r\nx: y", path[: len(path) // 2])
        )
    tenant = rng.choice(("", "a"))
    limits = rng.choice((None, CallerLimits(MODELS), CallerLimits(has_token_rate=True))) if tenant else None
    dialect = rng.choice(("", seed.dialect))
    request = RelayRequest(dialect, seed.method, path, seed.query, _HEADERS, body, tenant, limits=limits)
    relayed = _relay(rng, request, FakeProviders(_answer))
    is_fault = relayed.start.status >= 500 and relayed.start.status != 501
    # A provider may answer without a summary, or lack its key here: then it is the provider's side that fails.
    excused = (b"was not compacted", b"provider_key_missing", b"needs an API key")
    if is_fault and not any(words in relayed.body for words in excused):
        raise AssertionError(f"{seed.dialect}: {relayed.start.status} {relayed.body[:200]!r}")
    if relayed.start.status >= 400:
        msgspec.json.decode(relayed.body)


def fuzz_relayed_replies(rng: random.Random) -> None:
    """A changed response of a provider. The caller gets a response that ends."""
    seed = _draw_seed(rng)
    body = write_json(seed.body)
    if rng.random() < 0.5:
        # Without envelopes it may be forwarded.
        body = body.replace(wrap_in_base64(TOKEN).encode(), b"c2VhbA==").replace(TOKEN.encode(), b"c2VhbA==")
    request = RelayRequest("", seed.method, seed.path, seed.query, _HEADERS, body)
    providers = FakeProviders(lambda sent: _answer(sent, lambda data: mutate_body(rng, data)))
    _relay(rng, request, providers)
    if any(PREFIX.encode() in sent.body for sent in providers.requests):
        raise AssertionError(f"a provider sees an envelope: {seed.path}")


_NEEDED = ("model", "messages", "input", "contents", "prompt", "max_tokens", "system")
