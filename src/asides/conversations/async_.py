"""`AsyncConversation`: a conversation that asks without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, Unpack, overload

from asides.aio import AsyncClient, AsyncStream, open_client
from asides.conversations.compact import (
    CompactBy,
    build_compacted_reply,
    check_compact_by,
    replace_compacted,
)
from asides.conversations.core import ConversationCore
from asides.conversations.message_history import Question
from asides.conversations.turn import Turn

# sync: from asides.flows.build_call import CallBuilder
from asides.option_help import describe_options
from asides.options import ModelLike, Options, SharedOptions
from asides.transports.async_ import flatten
from asides.values.events import Event
from asides.values.reply import Output, Output_co, Reply
from asides.values.visibility import Visibility

Result = TypeVar("Result")  # async only


class AsyncConversation(ConversationCore[AsyncClient]):
    """A history that can be sent at any time, and that asks without blocking the event loop.

        chat = AsyncConversation("deepseek:deepseek-flash", system="Be brief.")
        (await chat.ask("Why is the sky blue?")).text
        (await chat.ask("And at night?")).text

    Every option of `ask` may be given here for all questions; an option of a question wins. `client` sends the
    questions; without one, each question opens a client and closes it.

    With `store` and `name` each turn is stored before its answer is returned. `keep_thinking` saves readable thinking
    too (default: the setting keep_thinking, which is false).

    Turns are written in another thread. `AsyncConversation(…)`, `stream` and changes such as `edit` read the store in
    this one; if it is a server and the event loop must not wait for it, use `asyncio.to_thread`.
    """

    @overload
    async def ask(
        self,
        prompt: Question = None,
        *,
        model: ModelLike | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Reply[Output]: ...
    @overload
    async def ask(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]: ...
    async def ask(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]:
        """Ask a question; returns the reply. Both are added to the conversation. Without a question the model continues
        from the last message, such as a tool result. Of several models, each is asked when those before it fail.

        If it raises or is cancelled, the conversation stays unchanged.
        """
        turn, name, given = await run_to_end(
            lambda: self._prepare(prompt, model, options), in_thread=self._waits_for_server
        )
        try:
            turn.begin()
            reply = await self._asking_client.ask(name, turn, **given)
            await run_to_end(lambda: turn.end(reply), in_thread=turn.writes_to_store)
        finally:
            turn.drop()
        return reply

    @overload
    def stream(
        self,
        prompt: Question = None,
        *,
        model: ModelLike | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> AsyncConversationStream[Output]: ...
    @overload
    def stream(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> AsyncConversationStream[Any]: ...
    def stream(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> AsyncConversationStream[Any]:
        """Ask a question; returns the events of the reply. However the stream ends, the question and the answer so far
        are added to the conversation.
        """
        turn, name, given = self._prepare(prompt, model, options)
        return AsyncConversationStream(turn, self._asking_client.stream(name, turn, **given))

    async def compact(
        self,
        over: int = 0,
        *,
        keep_turns: int = 2,
        by: CompactBy = "model",
        model: ModelLike | None = None,
        **options: Unpack[Options],
    ) -> Reply | None:
        """Let a model summarize the older turns, if the conversation costs more than `over` tokens even without the
        seals and thoughts of finished turns. They are left out first, and if that is enough, nothing is summed up.

        The last `keep_turns` stay as they are; the turns before them become one note, marked as such. The model that
        sums up sees no thinking. Returns None, without asking a model, when there is nothing to do.

        `by="provider"` lets the provider of the model compact the whole conversation instead, where it can: what it
        returns takes the place of the messages, and only it can read it.
        """
        with self._history.exclusive():
            if check_compact_by(by) == "provider":
                build = await run_to_end(
                    lambda: self._prepare_provider_compaction(over, model, options), in_thread=self._waits_for_server
                )
                if build is None:
                    return None
                compacted = await self._asking_client.compact(build)
                await run_to_end(lambda: replace_compacted(self._history, compacted), in_thread=self.name is not None)
                return build_compacted_reply(compacted)
            compaction = await run_to_end(
                lambda: self._prepare_compaction(over, keep_turns, model, options), in_thread=self._waits_for_server
            )
            if compaction is None:
                return None
            reply = await self._asking_client.ask(compaction.model, compaction.request, **compaction.options)
            await run_to_end(lambda: compaction.finish(reply), in_thread=self.name is not None)
        return reply

    @property
    def _asking_client(self) -> AsyncClient:
        return open_client() if self._client is None else self._client

    # sync: @property
    # sync: def _asking_builder(self) -> CallBuilder:
    # sync:     # The shared client may have read the settings earlier.
    # sync:     return self._asking_client._call_builder

    @property
    def _waits_for_server(self) -> bool:  # async only
        """True if the store is a server, so that even reading needs a thread."""
        stored = self._history.stored
        return stored is not None and getattr(stored.store, "is_shared", False)


describe_options(AsyncConversation.ask, AsyncConversation.stream)


class AsyncConversationStream(Generic[Output_co]):
    """The events of one answer: those of `AsyncClient.stream`. Leaving its `async with` ends the turn.

    However it ends (at the last event, on an error, when it is closed, when its task is cancelled),
    the question and the answer so far are added to the conversation and its store, once. If no answer has begun,
    nothing is added.
    """

    def __init__(self, turn: Turn, stream: AsyncStream[Output_co]) -> None:
        self._stream = stream
        self._batches = _read_turn(turn, stream)

    @cached_property
    def _events(self) -> AsyncGenerator[Event, None]:
        return flatten(self._batches)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def __anext__(self) -> Event:
        return await anext(self._events)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The events in lists, one for each read of the connection."""
        # Where single events were read, the rest of their batch is there.
        return ([event] async for event in self._events) if "_events" in self.__dict__ else self._batches

    @property
    def visibility(self) -> Visibility | None:
        """Which thinking of these events each place may see; None: the default."""
        return self._stream.visibility

    async def drain(self) -> Reply[Output_co]:
        """Read the rest of the events. Returns the whole reply."""
        async for _ in self._batches:
            pass
        return self._stream.reply

    @property
    def reply(self) -> Reply[Output_co]:  # async only
        """The whole reply, once all events were read; `await drain()` reads them."""
        return self._stream.reply

    @property
    def partial(self) -> Reply[Output_co] | None:
        """The reply so far; None when nothing has arrived."""
        return self._stream.partial

    @property
    def partial_output(self) -> Any:
        """The output so far; see `Stream.partial_output`."""
        return self._stream.partial_output

    async def close(self) -> None:
        """Close the connection immediately, from any task. The answer so far is added to the conversation."""
        await self._stream.close()
        # Another task may be reading; it finds the connection closed and ends the turn itself.
        for generator in (self._events, self._batches):
            with suppress(RuntimeError):
                await generator.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncConversationStream({self._stream!r})"


async def _read_turn(turn: Turn, stream: AsyncStream[Any]) -> AsyncGenerator[list[Event], None]:
    try:
        turn.begin()
        async for batch in stream.batches():
            yield batch
    finally:
        try:
            await run_to_end(lambda: turn.end(stream.partial), in_thread=turn.writes_to_store)
        finally:
            turn.drop()
            await stream.close()


async def run_to_end(work: Callable[[], Result], *, in_thread: bool = True) -> Result:  # async only
    """Do the work, in a thread if it may wait for a disk. Cancelling the task does not cancel the work."""
    if not in_thread:
        return work()
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
