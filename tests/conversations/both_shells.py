"""One set of functions for both conversations, so that a test of one is a test of both; and the models they ask."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol, TypeAlias

import pytest

from asides.aio import AsyncClient
from asides.client import Client
from asides.conversations.async_ import AsyncConversation
from asides.conversations.sync import Conversation
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.messages import Message
from asides.values.reply import Reply
from asides_stage.stage import Stage

Chat: TypeAlias = Conversation | AsyncConversation
KEY = "sk-canary-3141592653589793"
PLAIN = "openai-compatible:made-up"

# A model of every dialect, as thinking is asked of it.
MODELS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "deepseek:deepseek-reasoner": {},
    "openai-responses:gpt-5": {"thinking": "low"},
    "anthropic:claude-sonnet-4-5": {"thinking": 2000},
    "google:gemini-3-pro-preview": {"thinking": "low"},
    "google-interactions:gemini-3-pro-preview": {"thinking": "low"},
    "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0": {"thinking": 2000},
    "ollama:qwen3:4b": {},
    "cohere:command-a-reasoning-08-2025": {},
}
each_model = pytest.mark.parametrize("model", MODELS)


def options(model: str, stage: Stage) -> dict[str, Any]:
    """What a conversation with this model over a stage is given."""
    return {**MODELS.get(model, {}), "base_url": stage.url, "api_key": KEY, "retries": 0}


class Streamed(NamedTuple):
    """What became of a stream."""

    events: list[Event]
    error: AsidesError | None
    partial: Reply | None


class Shell(Protocol):
    """One way of asking."""

    kind: type[Chat]
    client: type[Client | AsyncClient]

    def ask(self, chat: Any, prompt: Any = None, **options: Any) -> Reply: ...

    def stream(self, chat: Any, prompt: Any = None, *, stop_after: int | None = None, **options: Any) -> Streamed:
        """Read all events, or so many and then leave."""
        ...

    def compact(self, chat: Any, over: int = 0, **options: Any) -> Reply | None: ...


class SyncShell:
    kind: type[Chat] = Conversation
    client: type[Client | AsyncClient] = Client

    def ask(self, chat: Conversation, prompt: Any = None, **options: Any) -> Reply:
        return chat.ask(prompt, **options)

    def stream(
        self, chat: Conversation, prompt: Any = None, *, stop_after: int | None = None, **options: Any
    ) -> Streamed:
        events: list[Event] = []
        with chat.stream(prompt, **options) as stream:
            try:
                while stop_after is None or len(events) < stop_after:
                    events.append(next(stream))
            except StopIteration:
                pass
            except AsidesError as error:
                return Streamed(events, error, stream.partial)
        return Streamed(events, None, stream.partial)

    def compact(self, chat: Conversation, over: int = 0, **options: Any) -> Reply | None:
        return chat.compact(over, **options)

    def __repr__(self) -> str:
        return "sync"


class AsyncShell:
    """Each call in a loop of its own, as scripts do it."""

    kind: type[Chat] = AsyncConversation
    client: type[Client | AsyncClient] = AsyncClient

    def ask(self, chat: AsyncConversation, prompt: Any = None, **options: Any) -> Reply:
        return asyncio.run(chat.ask(prompt, **options))

    def stream(
        self, chat: AsyncConversation, prompt: Any = None, *, stop_after: int | None = None, **options: Any
    ) -> Streamed:
        async def run() -> Streamed:
            events: list[Event] = []
            async with chat.stream(prompt, **options) as stream:
                try:
                    while stop_after is None or len(events) < stop_after:
                        events.append(await anext(stream))
                except StopAsyncIteration:
                    pass
                except AsidesError as error:
                    return Streamed(events, error, stream.partial)
            return Streamed(events, None, stream.partial)

        return asyncio.run(run())

    def compact(self, chat: AsyncConversation, over: int = 0, **options: Any) -> Reply | None:
        return asyncio.run(chat.compact(over, **options))

    def __repr__(self) -> str:
        return "async"


both_shells = pytest.mark.parametrize("shell", [SyncShell(), AsyncShell()], ids=repr)


def dialogue(messages: Any) -> list[tuple[str, str]]:
    """The role and the text of each message."""
    said: tuple[Message, ...] = tuple(messages)
    return [(message.role, message.text) for message in said]
