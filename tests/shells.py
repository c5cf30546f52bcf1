"""One function for the sync client and one for the async client, so that a test of a behaviour tests both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

import asides
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.reply import Reply

MODEL = "openai-compatible:made-up"
KEY = "sk-canary-3141592653589793"


class Outcome(NamedTuple):
    """The result of a stream."""

    events: list[Event]
    reply: Reply | None
    error: AsidesError | None
    partial: Reply | None

    @property
    def raised(self) -> AsidesError:
        """The error; fails if there is none."""
        assert self.error is not None, "no error was raised"
        return self.error


Shell: TypeAlias = Callable[..., Outcome]


def stream_sync(url: str, prompt: Any = "?", *, model: str = MODEL, **options: Any) -> Outcome:
    """Stream with a new `Client`."""
    events: list[Event] = []
    with asides.Client() as client, client.stream(model, prompt, base_url=url, api_key=KEY, **options) as stream:
        try:
            for event in stream:
                events.append(event)  # noqa: PERF402 - events before an error count
        except AsidesError as error:
            return Outcome(events, None, error, stream.partial)
        return Outcome(events, stream.reply, None, stream.partial)


def stream_async(url: str, prompt: Any = "?", *, model: str = MODEL, **options: Any) -> Outcome:
    """Stream with a new `AsyncClient` in a new event loop."""

    async def run() -> Outcome:
        events: list[Event] = []
        client = asides.AsyncClient()
        async with client, client.stream(model, prompt, base_url=url, api_key=KEY, **options) as stream:
            try:
                async for event in stream:
                    events.append(event)  # noqa: PERF401 - events before an error count
            except AsidesError as error:
                return Outcome(events, None, error, stream.partial)
            return Outcome(events, stream.reply, None, stream.partial)

    return asyncio.run(run())


both_shells = pytest.mark.parametrize("shell", [stream_sync, stream_async])
