"""asides as a contestant, sync and async. It reads every typed event and the folded Reply."""

from __future__ import annotations

from typing import Any

from bench.contestant import Contestant, Mode, Read, Sink
from bench.payloads import QUESTION

# A host that never puts tags into the answer, and one where they can occur, so that the answer is searched for them.
WITHOUT_TAGS = "deepseek:deepseek-reasoner"
WITH_TAGS = "openai-compatible:deepseek-reasoner"
# The models of the other dialects.
MODELS = {"messages": "anthropic:claude-sonnet-4-5", "responses": "openai-responses:gpt-5"}


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


def _asides(chat_model: str, mode: Mode) -> Any:
    def build(base_url: str, dialect: str) -> Read:
        import asides

        model = MODELS.get(dialect, chat_model)

        def where(profile: str) -> dict[str, str]:
            return {"base_url": f"{base_url}/{profile}/v1", "api_key": "x"}

        if mode == "async":
            clients: list[Any] = []

            async def read_async(profile: str, sink: Sink) -> None:
                if not clients:
                    clients.append(asides.AsyncClient())
                push = _push_into(sink)
                async with clients[0].stream(model, QUESTION, **where(profile)) as events:
                    async for event in events:
                        push(event)
                    _require_reply(events.reply)

            return read_async

        client = asides.Client()

        def read(profile: str, sink: Sink) -> None:
            push = _push_into(sink)
            with client.stream(model, QUESTION, **where(profile)) as events:
                for event in events:
                    push(event)
                _require_reply(events.reply)

        return read

    return build


# Only chat is searched for tags; the other dialects have their own fields for thinking.
OURS = tuple(
    Contestant(
        name,
        mode,
        "asides",
        _asides(model, mode),
        "ours",
        dialects=("chat", *MODELS) if model == WITHOUT_TAGS else ("chat",),
    )
    for mode in ("sync", "async")
    for name, model in (("asides", WITHOUT_TAGS), ("asides, tags looked for", WITH_TAGS))
)
