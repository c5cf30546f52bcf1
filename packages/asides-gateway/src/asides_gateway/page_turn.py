"""One turn of a conversation of the page: the question is saved, the model is asked, its events leave as they come.

However it ends, what arrived is in the conversation, with a note about how it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from secrets import token_hex
from typing import Any

import msgspec

from asides.conversations.async_ import AsyncConversation, AsyncConversationStream, run_to_end
from asides.database import StoreError
from asides.history.finish import finish_turn
from asides.intake.files import attach
from asides.options import Options, merge_options
from asides.values.errors import AsidesError, BadRequest, ContentFiltered, ProtocolError
from asides.values.messages import Message
from asides.values.parts import Part, Text
from asides.values.reply import Reply
from asides.values.visibility import Visibility
from asides_gateway import web
from asides_gateway.access.turn_meter import TurnMeter
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.page_events import PING, EventWriter, write_event
from asides_gateway.page_messages import Note, make_note, show_message
from asides_gateway.page_models import ChosenModel
from asides_gateway.page_requests import EVENT_HEADERS, PageError, describe_error
from asides_gateway.page_store import PageStore
from asides_gateway.page_tables import PageConversation
from asides_gateway.report_fault import report_fault
from asides_gateway.watched_turn import WatchedTurn

HOLD_SECONDS = 30.0
"""How long a turn holds its conversation without renewing it: as long as a killed process blocks it."""
GO_ON = "Please go on exactly where you stopped."
"""What is asked to continue an answer that broke off. Every provider takes a question; few take a begun answer."""

_REFUSES_QUESTION = (BadRequest, ContentFiltered)
_FAULT = "the gateway failed to show this answer. Try again; if it fails again, report it with the log."

Write = Callable[[bytes], Awaitable[None]]


class PageTurn:
    """One turn. `open` checks and saves the question; `run` asks and writes; `close` releases the conversation."""

    def __init__(
        self,
        store: PageStore,
        conversation: PageConversation,
        chosen: ChosenModel,
        watched: WatchedTurn,
        visibility: Visibility,
        meter: TurnMeter | None = None,
    ) -> None:
        """`meter`: counts what the turn uses of the limits of its key."""
        self._meter = meter
        self._store = store
        self._about = conversation
        self._chosen = chosen
        self._watched = watched
        self._visibility = visibility
        self._holder = token_hex(8)
        self._held = False
        self._keeper: asyncio.Task[None] | None = None
        self._length = 0
        """How many messages there were when the model was asked."""
        self._has_question = False

    # --- before -------------------------------------------------------------------------------------------------------

    async def open(self, text: str | None, files: tuple[Part, ...] = ()) -> AsyncConversationStream[Any]:
        """Hold the conversation, save the question, and prepare the request. `text`: None to continue the last turn.
        `files`: the parts beside it.

        Raises PageError while another turn is under way. Whatever happens, `close` has to follow.
        """
        await run_to_end(self._hold)
        if not self._held:
            raise PageError(
                "an answer is under way in this conversation, in another tab perhaps. Wait for it, or stop it.",
                "busy",
                409,
            )
        self._keeper = asyncio.create_task(self._keep_holding())
        return await run_to_end(lambda: self._prepare(text, files))

    def _hold(self) -> None:
        self._held = self._store.hold(self._about, self._holder, HOLD_SECONDS)

    def _prepare(self, text: str | None, files: tuple[Part, ...]) -> AsyncConversationStream[Any]:
        chosen = self._chosen
        conversation = self._conversation = AsyncConversation(
            client=self._watched.client, store=self._store, name=self._about.name
        )
        conversation.model = chosen.target
        self._watched.client.asked = chosen.name
        options = chosen.options
        if text is None:
            text = self._choose_continuation(conversation.messages)
            options = merge_options(options, Options(recover=True))
        if text is not None:
            # The question leads: a title is made of the first words.
            others = [part for part in files if not isinstance(part, Text)]
            texts = [part for part in files if isinstance(part, Text)]
            conversation.append(Message("user", attach(others, (Text(text), *texts))) if files else text)
            self._has_question = True
        self._length = len(conversation.messages)
        try:
            return conversation.stream(model=chosen.asked, **options)
        except AsidesError:
            # Nothing is sent, and the error is the answer: the page still has the question.
            self._take_back()
            raise

    def _choose_continuation(self, messages: tuple[Message, ...]) -> str | None:
        """The question that continues a conversation; None if its last message is to be answered."""
        if not messages:
            raise PageError("there is nothing to continue. Ask something.", "nothing_to_continue", 409)
        return GO_ON if messages[-1].role == "assistant" else None

    async def _keep_holding(self) -> None:
        while True:
            await asyncio.sleep(HOLD_SECONDS / 3)
            with suppress(AsidesError):
                await run_to_end(self._hold)

    # --- the reply ----------------------------------------------------------------------------------------------------

    async def run(self, stream: AsyncConversationStream[Any], write: Write) -> None:
        """Ask, and write each batch of events as it comes. A reader that disconnects ends the request immediately."""
        writer = EventWriter(self._visibility)
        error: AsidesError | None = None
        stopped: str | None = None
        try:
            started = {
                "message_id": self._length,
                "question_id": self._length - 1 if self._has_question else None,
                "request_id": self._watched.id,
                "model": self._chosen.name,
            }
            self._watched.begin()
            await write(write_event("started", started))
            if self._meter is not None:
                await self._meter.reserve(self._watched.client.call, lambda: stream.partial)
            async for batch in stream.batches():
                self._watched.see_events(batch)
                if written := writer.write(batch):
                    await write(written)
        except AsidesError as problem:
            error, stopped = problem, "error"
        except (asyncio.CancelledError, ConnectionError):
            await finish(self._end(stream, "stopped", None))
            raise
        except Exception as problem:  # noqa: BLE001 - on any internal error, still end the turn
            report_fault(problem)
            error, stopped = ProtocolError(_FAULT), "error"
        last = await finish(self._end(stream, stopped, error))
        # After the last event the client may send the next question immediately, also to another instance.
        await self._release()
        await write(writer.finish() + last)

    async def _end(self, stream: AsyncConversationStream[Any], stopped: str | None, error: AsidesError | None) -> bytes:
        """Close the request, note how the turn ended, and write the last event."""
        try:
            # Within this the conversation gets what arrived, unless it has it already.
            await stream.close()
        except AsidesError as problem:
            error, stopped = error or problem, "error"
        reply = stream.partial
        if self._meter is not None:
            if error is not None:
                self._meter.note_problem(error)
            await self._meter.settle(reply, has_failed=error is not None, is_cut=stopped is not None)
        self._watched.end("failed" if error else "left" if stopped else "done", reply, error)
        try:
            return await run_to_end(lambda: self._record(reply, stopped, error))
        except AsidesError as problem:
            return write_event("error", describe_error(error or problem))

    def _record(self, reply: Reply | None, stopped: str | None, error: AsidesError | None) -> bytes:
        """Note how the turn ended, at the answer or else at its question."""
        place = self._find_answer()
        if stopped is None and reply is not None:
            stopped = _find_stop(reply)
        problem = None if error is None else describe_error(error)
        note = make_note(reply, self._name_model(reply), stopped, None if problem is None else problem["message"])
        is_kept = place is not None or not isinstance(error, _REFUSES_QUESTION) or not self._take_back()
        if is_kept:
            # Clear the note of an answered question.
            written, question = msgspec.json.encode(note), self._length - 1
            self._store.write_notes(
                self._about, {question: written} if place is None else {question: None, place: written}
            )
        message = self._show_answer(reply, place, note)
        if problem is not None:
            return write_event("error", {**problem, "question_kept": is_kept, "answer": message})
        ended = {
            "message": message,
            "usage": note.usage,
            "cost": note.cost,
            "timing": note.timing,
            "outcome": note.outcome,
        }
        return write_event("ended", ended)

    def _take_back(self) -> bool:
        """Remove the question: a provider that refuses it would refuse each later one with it. Returns whether it is
        gone: another program may have written after it.
        """
        if not self._has_question:
            return False
        try:
            self._conversation.truncate(self._length - 1)
        except StoreError:
            return False
        return True

    def _name_model(self, reply: Reply | None) -> str:
        """The target that answered, as provider:model."""
        origin = None if reply is None else reply.origin
        return self._chosen.name if origin is None else f"{origin.provider}:{origin.model}"

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
        """Release the conversation, for the next turn."""
        if self._meter is not None:
            self._meter.leave()
        await self._release()

    async def _release(self) -> None:
        if self._keeper is not None:
            # It must not hold it again afterwards.
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        if self._held:
            self._held = False
            with suppress(AsidesError):
                await run_to_end(lambda: self._store.release(self._about, self._holder))


async def finish(work: Coroutine[Any, Any, bytes]) -> bytes:
    """Do the work to its end, however often this task is cancelled: a reader that stops is noticed by a failed write
    first, and by the lost connection later.
    """
    running = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as problem:
            cancelled = problem
    if cancelled is not None:
        running.exception()
        raise cancelled
    return running.result()


def _find_stop(reply: Reply) -> str | None:
    """Why an answer is not whole; None if it is."""
    if reply.outcome in ("starved", "unterminated", "unanswered", "refused", "filtered"):
        return reply.outcome
    return "length" if reply.stop.reason == "length" else None


class PageStream:
    """The response of a turn: server-sent events, with a ping whenever nothing was written for some seconds, so that
    proxies do not time out.
    """

    def __init__(self, request: web.Request, settings: GatewaySettings, see_bytes: Callable[[int], None]) -> None:
        """`see_bytes` is called with the number of bytes written."""
        self._see_bytes = see_bytes
        self._request = request
        self._settings = settings
        self.response = web.StreamResponse(headers=EVENT_HEADERS)
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._pinging: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Send the head."""
        await self.response.prepare(self._request)
        self._pinging = asyncio.create_task(self._ping())

    async def write(self, data: bytes) -> None:
        """Write events. Waits for a client that reads slowly."""
        await self.response.write(data)
        self._last = self._loop.time()
        self._see_bytes(len(data))

    async def _ping(self) -> None:
        pause = self._settings.ping_seconds
        while pause > 0:
            rest = self._last + pause - self._loop.time()
            if rest > 0:
                await asyncio.sleep(rest)
            elif not self._request.is_sending:
                try:
                    await self.write(PING)
                except ConnectionError:
                    return
            else:
                await asyncio.sleep(pause)

    async def close(self) -> None:
        """Send no more pings."""
        if self._pinging is not None:
            self._pinging.cancel()
            with suppress(asyncio.CancelledError):
                await self._pinging
