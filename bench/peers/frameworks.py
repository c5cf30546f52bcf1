"""The libraries that call many providers: each called as its documentation shows, without retries. Streams only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.contestant import Contestant, Mode, Options, Read, Sink, cache_by_profile
from bench.payloads import QUESTION
from bench.peers.vendors import (
    CHAT_REQUEST,
    MESSAGES,
    STREAMED,
    THINKING,
    TIMEOUT_SECONDS,
    drain,
    drain_async,
    take_chat_chunk,
    take_response_event,
)

# ── litellm ──

_LITELLM_MODELS = {
    "chat": "openai/deepseek-reasoner",
    "messages": "anthropic/claude-sonnet-4-5",
    "responses": "openai/gpt-5",
    "gemini": "gemini/gemini-2.5-flash",
    "ollama": "ollama_chat/qwen3:8b",
}
_LITELLM_SUFFIXES = {"chat": "/v1", "responses": "/v1", "gemini": "/v1beta/models/gemini-2.5-flash"}


def _take_litellm_chunk(sink: Sink, chunk: Any) -> None:
    delta = chunk.choices[0].delta if chunk.choices else None
    if delta is not None and delta.tool_calls:
        # It writes the arguments of Gemini and Ollama as JSON with spaces; count them as they came.
        sink.tool_arguments((delta.tool_calls[0].function.arguments or "").replace('": "', '":"'))
    else:
        take_chat_chunk(sink, chunk)


def _litellm(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        import litellm

        litellm.suppress_debug_info = True
        litellm.telemetry = False
        suffix = _LITELLM_SUFFIXES.get(dialect, "")

        def request(profile: str) -> Options:
            where = {"api_base": f"{base_url}/{profile}{suffix}", "api_key": "x", "num_retries": 0}
            return {**where, "model": _LITELLM_MODELS[dialect], "timeout": TIMEOUT_SECONDS}

        read_all = drain_async if mode == "async" else drain
        if dialect == "responses":
            respond: Any = litellm.aresponses if mode == "async" else litellm.responses
            return read_all(lambda p: respond(input=QUESTION, stream=True, **request(p)), take_response_event)
        complete: Any = litellm.acompletion if mode == "async" else litellm.completion
        return read_all(lambda p: complete(messages=MESSAGES, **STREAMED, **request(p)), _take_litellm_chunk)

    return build


# ── pydantic-ai: direct model requests, without the agent graph ──


def _pydantic_ai_model(base_url: str, dialect: str) -> Callable[[str], Any]:
    if dialect == "messages":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return cache_by_profile(
            lambda profile: AnthropicModel(
                "claude-sonnet-4-5", provider=AnthropicProvider(api_key="x", base_url=f"{base_url}/{profile}")
            )
        )
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind, name = (OpenAIChatModel, "deepseek-reasoner") if dialect == "chat" else (OpenAIResponsesModel, "gpt-5")
    return cache_by_profile(
        lambda profile: kind(name, provider=OpenAIProvider(api_key="x", base_url=f"{base_url}/{profile}/v1"))
    )


def _take_pydantic_ai_event(sink: Sink, event: Any) -> None:
    if event.event_kind == "part_delta":
        delta = event.delta
        kind = delta.part_delta_kind
        if kind == "text":
            sink.text(delta.content_delta)
        elif kind == "thinking":
            sink.thinking(delta.content_delta or "")
        elif kind == "tool_call":
            sink.tool_arguments(delta.args_delta or "")
    elif event.event_kind == "part_start":
        part = event.part
        kind = part.part_kind
        if kind == "text":
            sink.text(part.content)
        elif kind == "thinking":
            sink.thinking(part.content)
        elif kind == "tool-call" and isinstance(part.args, str):
            sink.tool_arguments(part.args)


def _pydantic_ai(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        from pydantic_ai.direct import model_request_stream, model_request_stream_sync
        from pydantic_ai.messages import ModelRequest

        model = _pydantic_ai_model(base_url, dialect)
        messages: Any = [ModelRequest.user_text_prompt(QUESTION)]

        async def read_async(profile: str, sink: Sink) -> None:
            async with model_request_stream(model(profile), messages) as events:
                async for event in events:
                    _take_pydantic_ai_event(sink, event)

        def read(profile: str, sink: Sink) -> None:
            with model_request_stream_sync(model(profile), messages) as events:
                for event in events:
                    _take_pydantic_ai_event(sink, event)

        return read_async if mode == "async" else read

    return build


# ── langchain ──


def _take_langchain_chunk(sink: Sink, message: Any) -> None:
    content = message.content
    if isinstance(content, str):
        if content:
            sink.text(content)
        elif reasoning := message.additional_kwargs.get("reasoning_content"):
            sink.thinking(reasoning)
    else:
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                sink.text(block.get("text", ""))
            elif kind == "thinking":
                sink.thinking(block.get("thinking", ""))
            elif kind == "reasoning":
                for summary in block.get("summary", ()):
                    sink.thinking(summary.get("text", ""))
    for call in getattr(message, "tool_call_chunks", ()):
        sink.tool_arguments(call.get("args") or "")


def _langchain_model(base_url: str, dialect: str) -> Callable[[str], Any]:
    if dialect == "messages":
        from langchain_anthropic import ChatAnthropic

        claude: Options = {"model": "claude-sonnet-4-5", "api_key": "x", "max_retries": 0, "max_tokens": 8192}
        return cache_by_profile(lambda profile: ChatAnthropic(base_url=f"{base_url}/{profile}", **claude, **THINKING))
    from langchain_openai import ChatOpenAI

    options: Options = {"model": "gpt-5", "api_key": "x", "max_retries": 0, "stream_usage": True}
    if dialect == "responses":
        options |= {"use_responses_api": True, "output_version": "responses/v1"}
    return cache_by_profile(lambda profile: ChatOpenAI(base_url=f"{base_url}/{profile}/v1", **options))


def _langchain(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        model = _langchain_model(base_url, dialect)

        async def read_async(profile: str, sink: Sink) -> None:
            async for chunk in model(profile).astream(QUESTION):
                _take_langchain_chunk(sink, chunk)

        if mode == "async":
            return read_async
        return drain(lambda profile: model(profile).stream(QUESTION), _take_langchain_chunk)

    return build


# ── any-llm ──


def _take_any_llm_chunk(sink: Sink, chunk: Any) -> None:
    if chunk.choices:
        delta = chunk.choices[0].delta
        if delta.content:
            sink.text(delta.content)
        elif delta.tool_calls:
            sink.tool_arguments(delta.tool_calls[0].function.arguments or "")
        else:
            reasoning = getattr(delta, "reasoning", None) or getattr(delta, "reasoning_content", None)
            if reasoning:
                sink.thinking(getattr(reasoning, "content", reasoning))


def _any_llm(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        from any_llm import AnyLLM

        provider, suffix = ("anthropic", "") if dialect == "messages" else ("openai", "/v1")
        client: Any = cache_by_profile(
            lambda profile: AnyLLM.create(provider, api_key="x", api_base=f"{base_url}/{profile}{suffix}")
        )
        read_all = drain_async if mode == "async" else drain
        if dialect == "responses":
            respond = "aresponses" if mode == "async" else "responses"
            request: Options = {"model": "gpt-5", "input_data": QUESTION, "stream": True}
            return read_all(lambda p: getattr(client(p), respond)(**request), take_response_event)
        complete = "acompletion" if mode == "async" else "completion"
        if dialect == "messages":
            request = {"model": "claude-sonnet-4-5", "messages": MESSAGES, "stream": True}
        else:
            request = {**CHAT_REQUEST, **STREAMED}
        return read_all(lambda p: getattr(client(p), complete)(**request), _take_any_llm_chunk)

    return build


# ── mirascope ──


def _take_mirascope_chunk(sink: Sink, chunk: Any) -> None:
    kind = chunk.type
    if kind == "text_chunk":
        sink.text(chunk.delta)
    elif kind == "thought_chunk":
        sink.thinking(chunk.delta)
    elif kind == "tool_call_chunk":
        sink.tool_arguments(chunk.delta)


def _mirascope(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        from mirascope import llm
        from mirascope.llm import providers

        thoughts: Any = {"level": "medium", "include_thoughts": True}
        current: Options = {"profile": None}

        def register(profile: str) -> Any:
            if dialect == "messages":
                anthropic = providers.AnthropicProvider(api_key="x", base_url=f"{base_url}/{profile}")
                llm.register_provider(anthropic, scope="anthropic/")
                return llm.model("anthropic/claude-sonnet-4-5", thinking=thoughts, max_tokens=8192)
            openai = providers.OpenAIProvider(api_key="x", base_url=f"{base_url}/{profile}/v1")
            llm.register_provider(openai, scope="openai/")
            if dialect == "responses":
                return llm.model("openai/gpt-5:responses", thinking=thoughts)
            return llm.model("openai/gpt-5:completions")

        def model(profile: str) -> Any:
            # The registry is global: register again when the profile changes.
            if current["profile"] != profile:
                current.update(profile=profile, model=register(profile))
            return current["model"]

        async def read_async(profile: str, sink: Sink) -> None:
            response = await model(profile).stream_async(QUESTION)
            async for chunk in response.chunk_stream():
                _take_mirascope_chunk(sink, chunk)

        if mode == "async":
            return read_async
        return drain(lambda profile: model(profile).stream(QUESTION).chunk_stream(), _take_mirascope_chunk)

    return build


# ── llm ──


def _take_llm_event(sink: Sink, event: Any) -> None:
    kind = event.type
    if kind == "text":
        sink.text(event.chunk)
    elif kind == "reasoning":
        sink.thinking(event.chunk)
    elif kind == "tool_call_args":
        sink.tool_arguments(event.chunk)


def _llm(mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        from llm.default_plugins import openai_models

        prefix = "Async" if mode == "async" else ""
        kind = getattr(openai_models, prefix + ("Chat" if dialect == "chat" else "Responses"))
        options: Options = {"model_name": "gpt-5", "supports_tools": True}
        if dialect == "responses":
            options["reasoning"] = True
        model: Any = cache_by_profile(
            lambda profile: kind("gpt-5", key="x", api_base=f"{base_url}/{profile}/v1", **options)
        )

        async def read_async(profile: str, sink: Sink) -> None:
            async for event in model(profile).prompt(QUESTION, key="x").astream_events():
                _take_llm_event(sink, event)

        if mode == "async":
            return read_async
        return drain(lambda profile: model(profile).prompt(QUESTION, key="x").stream_events(), _take_llm_event)

    return build


_DIALECTS = ("chat", "messages", "responses")
_FRAMEWORKS: tuple[tuple[str, str, Callable[[Mode], Any], tuple[str, ...]], ...] = (
    ("pydantic-ai", "pydantic_ai", _pydantic_ai, _DIALECTS),
    ("litellm", "litellm", _litellm, (*_DIALECTS, "gemini", "ollama")),
    ("langchain", "langchain", _langchain, _DIALECTS),
    ("any-llm", "any_llm", _any_llm, _DIALECTS),
    ("mirascope", "mirascope", _mirascope, _DIALECTS),
    ("llm", "llm", _llm, ("chat", "responses")),
)

FRAMEWORKS = tuple(
    Contestant(name, mode, environment, make(mode), dialects=dialects, reads_bodies=False)
    for name, environment, make, dialects in _FRAMEWORKS
    for mode in ("sync", "async")
)
