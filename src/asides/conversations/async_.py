"""`AsyncConversation`: a history that asks without blocking the loop. `blocking` is its twin; neither decides anything.

Not here: what can be done to a history (transcript), and what a question leaves behind (turn).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, Self, Unpack

from asides import aio
from asides.aio import AsyncClient, AsyncStream
from asides.conversations.compact import Compacting
from asides.conversations.history import Said
from asides.conversations.store.protocol import Store
from asides.conversations.talk import Question, Talk
from asides.conversations.turn import Turn
from asides.options import Options
from asides.values.events import Event
from asides.values.reply import Reply


class AsyncConversation(Talk):
    """A history that is always sendable, and asks without blocking the loop.

        chat = AsyncConversation("deepseek:deepseek-reasoner")
        (await chat.ask("Why is the sky blue?")).text

    Everything is as with `Conversation`; without a `client` each question has one of its own, closed behind it. Turns
    are written to the store by another thread, and are there before their answer is handed out.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        system: str | None = None,
        client: AsyncClient | None = None,
        store: Store | None = None,
        name: str | None = None,
        keep_thinking: bool | None = None,
        messages: Sequence[Said] = (),
        **options: Any,
    ) -> None:
        self._client = client
        if client is not None:
            self._call_builder = client._call_builder
        super().__init__(
            model,
            system=system,
            store=store,
            name=name,
            keep_thinking=keep_thinking,
            messages=messages,
            options=options,
        )

    async def ask(self, prompt: Question = None, *, model: str | None = None, **options: Unpack[Options]) -> Reply:
        """The reply to a question, which is kept with it. Without a question the model goes on from what is there, such
        as the results of its tools.

        When it raises or is cancelled, the conversation is as it was before.
        """
        turn, name, given = self._question(prompt, model, options)
        turn.begin()
        try:
            reply = await (aio if self._client is None else self._client).ask(name, turn, **given)
        except BaseException:
            turn.drop()
            raise
        await _ended(turn, reply)
        return reply

    def stream(
        self, prompt: Question = None, *, model: str | None = None, **options: Unpack[Options]
    ) -> AsyncConversationStream:
        """The events of the reply to a question. However it ends, the question and what came of the answer are kept."""
        turn, name, given = self._question(prompt, model, options)
        events = (aio if self._client is None else self._client).stream(name, turn, **given)
        return AsyncConversationStream(turn, events)

    async def compact(
        self, over: int, *, keep_turns: int = 2, model: str | None = None, **options: Unpack[Options]
    ) -> Reply | None:
        """Have the model sum up the older turns, if what would be sent now is more than so many tokens.

        The last `keep_turns` stay as they are; what was before them becomes one note, marked as such. Thinking is not
        shown to whoever sums up. None when there was nothing to do, and then nobody was asked.
        """
        with self._alone():
            work = Compacting(self, over, keep_turns, model, options)
            if work.request is None:
                return None
            reply = await (aio if self._client is None else self._client).ask(work.model, work.request, **work.options)
            await _apart(lambda: work.finish(reply), self.name is not None)
        return reply


class AsyncConversationStream:
    """The events of one answer: those of `AsyncClient.stream`. Iterate over it in an `async with`; leaving it ends the
    turn.

    At its end, when it breaks, when it is closed and when its task is cancelled, the question and what came of the
    answer are put into the conversation, once, and into its store. When no answer had begun, nothing is.
    """

    def __init__(self, turn: Turn, stream: AsyncStream) -> None:
        self._turn = turn
        self._stream = stream
        self._batches = _kept(turn, stream)
        self._events = _flattened(self._batches)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def __anext__(self) -> Event:
        return await anext(self._events)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The events in the lists in which they came, one for each read."""
        return self._batches

    async def drain(self) -> Reply:
        """Read what has not been read yet; the whole reply."""
        async for _ in self._batches:
            pass
        return self._stream.reply

    @property
    def reply(self) -> Reply:
        """The whole reply, once the events are at their end; `await drain()` brings them there."""
        return self._stream.reply

    @property
    def partial(self) -> Reply | None:
        """What has come so far; None when nothing has."""
        return self._stream.partial

    async def close(self) -> None:
        """Close the connection at once, from any task. What came is kept."""
        await self._stream.close()
        # Another task may be reading at this moment; it finds the connection closed and ends the turn itself.
        for generator in (self._events, self._batches):
            with suppress(RuntimeError):
                await generator.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncConversationStream({self._stream!r})"


async def _kept(turn: Turn, stream: AsyncStream) -> AsyncGenerator[list[Event], None]:
    turn.begin()
    try:
        async for batch in stream.batches():
            yield batch
    finally:
        try:
            await _ended(turn, stream.partial)
        finally:
            await stream.close()


async def _flattened(batches: AsyncIterator[list[Event]]) -> AsyncGenerator[Event, None]:
    async for batch in batches:
        for event in batch:
            yield event


async def _ended(turn: Turn, reply: Reply | None) -> None:
    await _apart(lambda: turn.end(reply), turn.waits_for_disk)


async def _apart(work: Callable[[], None], waits: bool) -> None:
    """Do it, in a thread of its own where it waits for a disk. A task that is cancelled meanwhile sees it through."""
    if not waits:
        work()
        return
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
