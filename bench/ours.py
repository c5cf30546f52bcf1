"""asides as a contestant, sync and async. It reads every typed event and the folded Reply."""

from __future__ import annotations

from typing import Any

from bench.contestant import Contestant, Mode, Read, Sink
from bench.payloads import DIALECTS, QUESTION

# A host that never puts tags into the answer, and one where they can occur, so that the answer is searched for them.
WITHOUT_TAGS = "deepseek:deepseek-reasoner"
WITH_TAGS = "openai-compatible:deepseek-reasoner"
# dialect → the model, and the end of the base url
TARGETS = {
    "chat": (WITHOUT_TAGS, "/v1"),
    "messages": ("anthropic:claude-sonnet-4-5", "/v1"),
    "responses": ("openai-responses:gpt-5", "/v1"),
    "gemini": ("google:gemini-2.5-flash", "/v1beta"),
    "cohere": ("cohere:command-a-reasoning-08-2025", "/v2"),
    "ollama": ("ollama:qwen3:8b", ""),
    "bedrock": ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", ""),
}


def locate(base_url: str, profile: str, dialect: str) -> dict[str, str]:
    """The options that send a request to the replay server."""
    return {"base_url": f"{base_url}/{profile}{TARGETS[dialect][1]}", "api_key": "x"}


def _push_into(sink: Sink) -> Any:
    import asides

    thinking_delta, text_delta, call_delta = asides.ThinkingDelta, asides.TextDelta, asides.ToolCallDelta
    thinking, text, tool_arguments = sink.thinking, sink.text, sink.tool_arguments

    def push(event: Any) -> None:
        kind = type(event)
        if kind is text_delta:
            text(event.text)
        elif kind is thinking_delta:
            thinking(event.text)
        elif kind is call_delta:
            tool_arguments(event.arguments)

    return push


def _require_reply(reply: Any) -> None:
    if not reply.text:
        raise AssertionError("the folded reply has no text")


def _take_reply(sink: Sink, reply: Any) -> None:
    sink.thinking(reply.thinking.text if reply.thinking else "")
    sink.text(reply.text)


def _asides(chat_model: str, mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        import asides

        model = chat_model if dialect == "chat" else TARGETS[dialect][0]

        if mode == "async":
            clients: list[Any] = []

            async def read_async(profile: str, sink: Sink) -> None:
                if not clients:
                    clients.append(asides.AsyncClient())
                where = locate(base_url, profile, dialect)
                if profile.startswith("body"):
                    _take_reply(sink, await clients[0].ask(model, QUESTION, **where))
                    return
                push = _push_into(sink)
                async with clients[0].stream(model, QUESTION, **where) as events:
                    async for event in events:
                        push(event)
                    _require_reply(events.reply)

            return read_async

        client: Any = asides.Client()

        def read(profile: str, sink: Sink) -> None:
            where = locate(base_url, profile, dialect)
            if profile.startswith("body"):
                _take_reply(sink, client.ask(model, QUESTION, **where))
                return
            push = _push_into(sink)
            with client.stream(model, QUESTION, **where) as events:
                for event in events:
                    push(event)
                _require_reply(events.reply)

        return read

    return build


# Only chat is searched for tags; the other dialects have their own fields for thinking.
OURS = tuple(
    Contestant(name, mode, "asides", _asides(model, mode), "ours", DIALECTS if model == WITHOUT_TAGS else ("chat",))
    for mode in ("sync", "async")
    for name, model in (("asides", WITHOUT_TAGS), ("asides, tags looked for", WITH_TAGS))
)
