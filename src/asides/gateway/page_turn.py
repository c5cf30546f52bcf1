"""One turn of a conversation of the page: the question is saved, the model is asked, its events leave as they come.

However it ends, what arrived is in the conversation, with a note about how it ended. Not here: the form of the events
(page_events), and who may send (conversations_api).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from secrets import token_hex
from typing import Any

import msgspec

from asides.aio import AsyncClient
from asides.conversations.async_ import AsyncConversation, AsyncConversationStream
from asides.gateway.page_events import PING, EventWriter, write_event
from asides.gateway.page_messages import Note, make_note, show_message
from asides.gateway.page_models import ChosenModel
from asides.gateway.page_requests import PageError, describe_error
from asides.gateway.page_store import PageStore
from asides.gateway.page_tables import PageConversation
from asides.history.pair import finish_turn
from asides.options import Options, merge_options
from asides.values.errors import AsidesError, BadRequest, ContentFiltered
from asides.values.messages import Message
from asides.values.reply import Reply
from asides.values.visibility import Visibility

_log = logging.getLogger("asides")
HOLD_SECONDS = 30.0
"""How long a turn holds its conversation without renewing it: as long as a killed process blocks it."""
GO_ON = "Please go on exactly where you stopped."
"""What is asked to continue an answer that broke off. Every provider takes a question; few take a begun answer."""

Write = Callable[[bytes], Awaitable[None]]


class PageTurn:
    """One turn. `open` checks and saves the question; `run` asks and writes; `close` lets the conversation go."""

    def __init__(
        self,
        store: PageStore,
        conversation: PageConversation,
        chosen: ChosenModel,
        client: AsyncClient,
        visibility: Visibility,
    ) -> None:
        self._store = store
        self._about = conversation
        self._chosen = chosen
        self._client = client
        self._visibility = visibility
        self._holder = token_hex(8)
        self._held = False
        self._keeper: asyncio.Task[None] | None = None
        self._length = 0
        """How many messages there were when the model was asked."""
        self._has_question = False
        self.request_id = f"page_{token_hex(12)}"

    # --- before -------------------------------------------------------------------------------------------------------

    async def open(self, text: str | None) -> AsyncConversationStream[Any]:
        """Hold the conversation, save the question, and prepare the request. `text`: None to continue the last turn.

        Raises PageError while another turn is under way.
        """
        self._held = await asyncio.to_thread(self._store.hold, self._about, self._holder, HOLD_SECONDS)
        if not self._held:
            raise PageError(
                "an answer is under way in this conversation, in another tab perhaps. To do: wait for it, or stop it.",
                "busy",
                409,
            )
        self._keeper = asyncio.create_task(self._keep_holding())
        return await asyncio.to_thread(self._prepare, text)

    def _prepare(self, text: str | None) -> AsyncConversationStream[Any]:
        chosen = self._chosen
        self._conversation = conversation = AsyncConversation(
            client=self._client, store=self._store, name=self._about.name
        )
        conversation.model = chosen.target
        options = chosen.options
        if text is None:
            text = self._choose_continuation(conversation.messages)
            options = merge_options(options, Options(recover=True))
        if text is not None:
            conversation.append(text)
            self._has_question = True
        self._length = len(conversation.messages)
        return conversation.stream(model=chosen.asked, **options)

    def _choose_continuation(self, messages: tuple[Message, ...]) -> str | None:
        """The question that continues a conversation; None if its last message is to be answered."""
        if not messages:
            raise PageError("there is nothing to continue. To do: ask something.", "nothing_to_continue", 409)
        return GO_ON if messages[-1].role == "assistant" else None

    async def _keep_holding(self) -> None:
        while True:
            await asyncio.sleep(HOLD_SECONDS / 3)
            with suppress(AsidesError):
                await asyncio.to_thread(self._store.hold, self._about, self._holder, HOLD_SECONDS)

    # --- the reply ----------------------------------------------------------------------------------------------------

    async def run(self, stream: AsyncConversationStream[Any], write: Write) -> None:
        """Ask, and write each batch of events as it comes. A reader that is gone ends the request at once."""
        chosen, writer = self._chosen, EventWriter(self._visibility)
        error: AsidesError | None = None
        stopped: str | None = None
        try:
            started = {
                "message_id": self._length,
                "question_id": self._length - 1,
                "request_id": self.request_id,
                "model": chosen.name,
            }
            await write(write_event("started", started))
            try:
                async for batch in stream.batches():
                    if written := writer.write(batch):
                        await write(written)
            except AsidesError as problem:
                error, stopped = problem, "error"
        except (asyncio.CancelledError, ConnectionError):
            await asyncio.shield(self._end(stream, "stopped", None))
            raise
        ended = await asyncio.shield(self._end(stream, stopped, error))
        with suppress(ConnectionError):
            await write(writer.finish() + ended)

    async def _end(self, stream: AsyncConversationStream[Any], stopped: str | None, error: AsidesError | None) -> bytes:
        """Close the request, note how the turn ended, and write the last event."""
        with suppress(AsidesError):
            await stream.close()
        reply = stream.partial
        try:
            return await asyncio.to_thread(self._record, reply, stopped, error)
        except AsidesError as problem:
            _log.warning("a turn of the page could not be recorded: %s", type(problem).__name__)
            return write_event("error", describe_error(error or problem))

    def _record(self, reply: Reply | None, stopped: str | None, error: AsidesError | None) -> bytes:
        place = self._find_answer()
        if stopped is None and reply is not None:
            stopped = _find_stop(reply)
        words = None if error is None else str(error)
        note = make_note(
            reply, self._chosen.name if reply is None else reply.model or self._chosen.name, stopped, words
        )
        kept = True
        if place is not None:
            self._store.write_note(self._about, place, msgspec.json.encode(note))
        elif isinstance(error, (BadRequest, ContentFiltered)) and self._has_question:
            # A question that a provider refuses would be refused again with each later one.
            self._conversation.truncate(self._length - 1)
            kept = False
        else:
            self._store.write_note(self._about, self._length - 1, msgspec.json.encode(note))
        message = self._show_answer(reply, place, note)
        if error is not None:
            return write_event("error", {**describe_error(error), "message_kept": kept, "answer": message})
        if reply is None:
            return write_event("error", {"message": "nothing arrived. To do: try again.", "code": "no_answer"})
        ended = {
            "message": message,
            "usage": note.usage,
            "cost": note.cost,
            "timing": note.timing,
            "outcome": reply.outcome,
        }
        return write_event("ended", ended)

    def _find_answer(self) -> int | None:
        """The place of the answer in the conversation; None if there is none."""
        messages = self._conversation.messages
        for place in range(len(messages) - 1, self._length - 1, -1):
            if messages[place].role == "assistant":
                return place
        return None

    def _show_answer(self, reply: Reply | None, place: int | None, note: Note) -> dict[str, Any] | None:
        message = None if reply is None else finish_turn(reply)
        return None if message is None else show_message(message, place, note, self._visibility)

    # --- after --------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Let the conversation go, for the next turn."""
        if self._keeper is not None:
            self._keeper.cancel()
        if self._held:
            self._held = False
            with suppress(AsidesError):
                await asyncio.shield(asyncio.to_thread(self._store.let_go, self._about, self._holder))


def _find_stop(reply: Reply) -> str | None:
    """Why an answer is not whole; None if it is."""
    if reply.outcome in ("starved", "unterminated", "refused", "filtered"):
        return reply.outcome
    return "length" if reply.stop.reason == "length" else None


class Pinger:
    """Writes a comment whenever nothing was written for some seconds, so that nobody on the way gives up."""

    def __init__(self, write: Write, seconds: float) -> None:
        self._write = write
        self._seconds = seconds
        self._last = 0.0
        self._task = asyncio.create_task(self._run())

    async def write(self, data: bytes) -> None:
        """Write, and note when."""
        await self._write(data)
        self._last = asyncio.get_running_loop().time()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        while True:
            rest = self._last + self._seconds - loop.time()
            if rest > 0:
                await asyncio.sleep(rest)
                continue
            try:
                await self.write(PING)
            except ConnectionError:
                return

    def close(self) -> None:
        """Write no more comments."""
        self._task.cancel()
