"""Both shells behind one function each, so that a test of a behaviour is a test of both."""

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
    """What became of a stream."""

    events: list[Event]
    reply: Reply | None
    error: AsidesError | None
    partial: Reply | None

    @property
    def raised(self) -> AsidesError:
        """The error, which there has to be."""
        assert self.error is not None, "it went well"
        return self.error


Shell: TypeAlias = Callable[..., Outcome]


def stream_sync(url: str, prompt: Any = "?", *, model: str = MODEL, **options: Any) -> Outcome:
    """Stream with a `Client` of its own."""
    events: list[Event] = []
    with asides.Client() as client, client.stream(model, prompt, base_url=url, api_key=KEY, **options) as stream:
        try:
            for event in stream:
                events.append(event)  # noqa: PERF402 - what came before an error counts
        except AsidesError as error:
            return Outcome(events, None, error, stream.partial)
        return Outcome(events, stream.reply, None, stream.partial)


def stream_async(url: str, prompt: Any = "?", *, model: str = MODEL, **options: Any) -> Outcome:
    """Stream with an `AsyncClient` of its own, in a loop of its own."""

    async def run() -> Outcome:
        events: list[Event] = []
        client = asides.AsyncClient()
        async with client, client.stream(model, prompt, base_url=url, api_key=KEY, **options) as stream:
            try:
                async for event in stream:
                    events.append(event)  # noqa: PERF401 - what came before an error counts
            except AsidesError as error:
                return Outcome(events, None, error, stream.partial)
            return Outcome(events, stream.reply, None, stream.partial)

    return asyncio.run(run())


both_shells = pytest.mark.parametrize("shell", [stream_sync, stream_async])
