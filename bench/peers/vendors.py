"""The makers' own clients, each in its own dialect: streams and whole bodies, without retries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bench.contestant import Contestant, Mode, Options, Read, Sink, cache_by_profile
from bench.payloads import QUESTION

MESSAGES = [{"role": "user", "content": QUESTION}]
CHAT_REQUEST: Options = {"model": "deepseek-reasoner", "messages": MESSAGES}
RESPONSES_REQUEST: Options = {"model": "gpt-5", "input": QUESTION}
THINKING: Options = {"thinking": {"type": "enabled", "budget_tokens": 4096}}
STREAMED: Options = {"stream": True, "stream_options": {"include_usage": True}}
TIMEOUT_SECONDS = 300

Take = Callable[[Sink, Any], None]
Open = Callable[[str], Any]


def drain(open_stream: Open, take: Take) -> Read:
    def read(profile: str, sink: Sink) -> None:
        for item in open_stream(profile):
            take(sink, item)

    return read


def drain_async(open_stream: Open, take: Take) -> Read:
    async def read(profile: str, sink: Sink) -> None:
        async for item in await open_stream(profile):
            take(sink, item)

    return read


def read_both(mode: Mode, open_stream: Open, take: Take, ask: Open, take_body: Take) -> Read:
    """A reader of streams and, for a profile `body-…`, of whole bodies."""
    stream = (drain_async if mode == "async" else drain)(open_stream, take)

    async def read_async(profile: str, sink: Sink) -> None:
        if profile.startswith("body"):
            take_body(sink, await ask(profile))
        else:
            await stream(profile, sink)  # type: ignore[misc]

    def read(profile: str, sink: Sink) -> None:
        if profile.startswith("body"):
            take_body(sink, ask(profile))
        else:
            stream(profile, sink)

    return read_async if mode == "async" else read


def _write_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ── openai ──


def take_chat_chunk(sink: Sink, chunk: Any) -> None:
    if chunk.choices:
        delta = chunk.choices[0].delta
        if delta.content:
            sink.text(delta.content)
        elif reasoning := getattr(delta, "reasoning_content", None):
            sink.thinking(reasoning)
        elif delta.tool_calls:
            sink.tool_arguments(delta.tool_calls[0].function.arguments or "")


def take_completion(sink: Sink, completion: Any) -> None:
    message = completion.choices[0].message
    sink.thinking(getattr(message, "reasoning_content", None) or "")
    sink.text(message.content)


def take_response_event(sink: Sink, event: Any) -> None:
    kind = event.type
    if kind == "response.output_text.delta":
        sink.text(event.delta)
    elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        sink.thinking(event.delta)
    elif kind == "response.function_call_arguments.delta":
        sink.tool_arguments(event.delta)


def take_response(sink: Sink, response: Any) -> None:
    for item in response.output:
        if item.type == "reasoning":
            for piece in (*item.summary, *(item.content or ())):
                sink.thinking(piece.text)
    sink.text(response.output_text)


def _openai(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        import openai

        kind = openai.AsyncOpenAI if mode == "async" else openai.OpenAI
        client: Any = cache_by_profile(
            lambda profile: kind(
                api_key="x", base_url=f"{base_url}/{profile}/v1", max_retries=0, timeout=TIMEOUT_SECONDS
            )
        )
        if dialect == "responses":
            return read_both(
                mode,
                lambda p: client(p).responses.create(**RESPONSES_REQUEST, stream=True),
                take_response_event,
                lambda p: client(p).responses.create(**RESPONSES_REQUEST),
                take_response,
            )
        return read_both(
            mode,
            lambda p: client(p).chat.completions.create(**CHAT_REQUEST, **STREAMED),
            take_chat_chunk,
            lambda p: client(p).chat.completions.create(**CHAT_REQUEST),
            take_completion,
        )

    return build


# ── anthropic ──


def take_message_event(sink: Sink, event: Any) -> None:
    if event.type == "content_block_delta":
        delta = event.delta
        kind = delta.type
        if kind == "text_delta":
            sink.text(delta.text)
        elif kind == "thinking_delta":
            sink.thinking(delta.thinking)
        elif kind == "input_json_delta":
            sink.tool_arguments(delta.partial_json)


def take_message(sink: Sink, message: Any) -> None:
    for block in message.content:
        if block.type == "thinking":
            sink.thinking(block.thinking)
        elif block.type == "text":
            sink.text(block.text)


def _anthropic(mode: Mode) -> Any:
    def build(base_url: str, _dialect: str) -> Read:
        import anthropic

        kind = anthropic.AsyncAnthropic if mode == "async" else anthropic.Anthropic
        client: Any = cache_by_profile(
            lambda profile: kind(api_key="x", base_url=f"{base_url}/{profile}", max_retries=0, timeout=TIMEOUT_SECONDS)
        )
        request: Options = {"model": "claude-sonnet-4-5", "max_tokens": 8192, "messages": MESSAGES, **THINKING}
        return read_both(
            mode,
            lambda p: client(p).messages.create(**request, stream=True),
            take_message_event,
            lambda p: client(p).messages.create(**request),
            take_message,
        )

    return build


# ── google-genai ──


def take_gemini(sink: Sink, document: Any) -> None:
    for part in document.candidates[0].content.parts or ():
        if part.function_call:
            sink.tool_arguments(_write_json(part.function_call.args))
        elif part.thought:
            sink.thinking(part.text)
        elif part.text:
            sink.text(part.text)


def _google_genai(mode: Mode) -> Any:
    def build(base_url: str, _dialect: str) -> Read:
        from google import genai
        from google.genai import types

        client: Any = cache_by_profile(
            lambda profile: genai.Client(
                api_key="x",
                http_options=types.HttpOptions(base_url=f"{base_url}/{profile}", timeout=TIMEOUT_SECONDS * 1000),
            )
        )
        thoughts = types.ThinkingConfig(include_thoughts=True)
        config = types.GenerateContentConfig(thinking_config=thoughts)
        request: Options = {"model": "gemini-2.5-flash", "contents": QUESTION, "config": config}

        def models(profile: str) -> Any:
            return client(profile).aio.models if mode == "async" else client(profile).models

        return read_both(
            mode,
            lambda p: models(p).generate_content_stream(**request),
            take_gemini,
            lambda p: models(p).generate_content(**request),
            take_gemini,
        )

    return build


# ── cohere ──


def _take_cohere_event(sink: Sink, event: Any) -> None:
    kind = event.type
    if kind == "content-delta":
        content = event.delta.message.content
        if content.text:
            sink.text(content.text)
        elif content.thinking:
            sink.thinking(content.thinking)
    elif kind == "tool-call-delta":
        sink.tool_arguments(event.delta.message.tool_calls.function.arguments)


def take_cohere(sink: Sink, response: Any) -> None:
    take_message(sink, response.message)


def _cohere(mode: Mode) -> Any:
    def build(base_url: str, _dialect: str) -> Read:
        import cohere

        kind: Any = cohere.AsyncClientV2 if mode == "async" else cohere.ClientV2
        client: Any = cache_by_profile(
            lambda profile: kind(api_key="x", base_url=f"{base_url}/{profile}", timeout=TIMEOUT_SECONDS)
        )
        request: Options = {"model": "command-a-reasoning-08-2025", "messages": MESSAGES}

        async def open_async(profile: str) -> Any:
            return client(profile).chat_stream(**request)

        return read_both(
            mode,
            open_async if mode == "async" else lambda p: client(p).chat_stream(**request),
            _take_cohere_event,
            lambda p: client(p).chat(**request),
            take_cohere,
        )

    return build


# ── ollama ──


def take_ollama(sink: Sink, line: Any) -> None:
    message = line.message
    if message.content:
        sink.text(message.content)
    if message.thinking:
        sink.thinking(message.thinking)
    for call in message.tool_calls or ():
        sink.tool_arguments(_write_json(call.function.arguments))


def _ollama(mode: Mode) -> Any:
    def build(base_url: str, _dialect: str) -> Read:
        import ollama

        kind: Any = ollama.AsyncClient if mode == "async" else ollama.Client
        client: Any = cache_by_profile(lambda profile: kind(host=f"{base_url}/{profile}", timeout=TIMEOUT_SECONDS))
        request: Options = {"model": "qwen3:8b", "messages": MESSAGES, "think": True}
        return read_both(
            mode,
            lambda p: client(p).chat(**request, stream=True),
            take_ollama,
            lambda p: client(p).chat(**request),
            take_ollama,
        )

    return build


# ── boto3: it has no async client ──


def _take_converse_event(sink: Sink, event: Any) -> None:
    if "contentBlockDelta" in event:
        delta = event["contentBlockDelta"]["delta"]
        if "text" in delta:
            sink.text(delta["text"])
        elif "reasoningContent" in delta:
            sink.thinking(delta["reasoningContent"].get("text", ""))
        elif "toolUse" in delta:
            sink.tool_arguments(delta["toolUse"]["input"])


def take_converse(sink: Sink, response: Any) -> None:
    for block in response["output"]["message"]["content"]:
        if "reasoningContent" in block:
            sink.thinking(block["reasoningContent"]["reasoningText"]["text"])
        elif "text" in block:
            sink.text(block["text"])


def _boto3(mode: Mode) -> Any:
    def build(base_url: str, _dialect: str) -> Read:
        import boto3
        from botocore.config import Config

        config = Config(retries={"total_max_attempts": 1}, read_timeout=TIMEOUT_SECONDS)
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        client: Any = cache_by_profile(
            lambda profile: boto3.client("bedrock-runtime", endpoint_url=f"{base_url}/{profile}", config=config, **keys)
        )
        messages = [{"role": "user", "content": [{"text": QUESTION}]}]
        request: Options = {"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "messages": messages}
        return read_both(
            mode,
            lambda p: client(p).converse_stream(**request)["stream"],
            _take_converse_event,
            lambda p: client(p).converse(**request),
            take_converse,
        )

    return build


_BOTH: tuple[Mode, ...] = ("sync", "async")
_VENDORS: tuple[tuple[str, str, Callable[[Mode], Any], tuple[str, ...], tuple[Mode, ...]], ...] = (
    ("openai", "openai", _openai, ("chat", "responses"), _BOTH),
    ("anthropic", "anthropic", _anthropic, ("messages",), _BOTH),
    ("google-genai", "google_genai", _google_genai, ("gemini",), _BOTH),
    ("cohere", "cohere", _cohere, ("cohere",), _BOTH),
    ("ollama", "ollama", _ollama, ("ollama",), _BOTH),
    ("boto3", "boto3", _boto3, ("bedrock",), ("sync",)),
)
VENDOR_OF = {dialect: name for name, _, _, dialects, _ in _VENDORS for dialect in dialects}

VENDORS = tuple(
    Contestant(name, mode, environment, make(mode), dialects=dialects)
    for name, environment, make, dialects, modes in _VENDORS
    for mode in modes
)
