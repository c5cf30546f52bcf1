"""Responses in, events out: one decoder for streams and whole bodies.

Theory of operation. A response is a list of items in order, and an item tells the same whether it comes in deltas or
whole: its state (items) says each thing once. So a whole body is a stream in which every item comes whole, and so is
the response object that ends a stream: whatever was not told before is told then. Blocks are numbered by the item's
place, a thousand to each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from asides.dialects.openai_responses.endings import failure_of, stop_of, told_error
from asides.dialects.openai_responses.items import (
    SERVER_TOOLS,
    CallState,
    Channel,
    ItemState,
    MessageState,
    ReasoningState,
    ServerToolState,
)
from asides.dialects.openai_responses.register import Register, block_of, key_of
from asides.dialects.openai_responses.wire import (
    EVENTS,
    IGNORED_EVENTS,
    ITEMS,
    NOTHING,
    PARTS,
    RESPONSES,
    TERMINAL_EVENTS,
    Item,
    Response,
    StreamEvent,
    usage_of,
)
from asides.errors import AsidesError, ConnectionLost, ProtocolError
from asides.events import Event, ReplyEnded, ReplyStarted, Stop, TextDelta, ThinkingDelta, UsageReported, Warned
from asides.notices import Notice
from asides.providers.provider import Target
from asides.usage import Usage
from asides.wire.framing import Framing
from asides.wire.lenient import INVALID_TEXT, Read, legible, read_leniently
from asides.wire.sse import DONE

FIELD_BLOCK = 0


class ResponsesDecoder:
    """Bytes of one response in, events out. Any chunking gives the same events."""

    def __init__(self, target: Target) -> None:
        self.payloads: list[bytes] = []
        self.failure: AsidesError | None = None
        self._target = target
        self._framing = Framing()
        self._started = False
        self._mended = False
        self._done = False
        self._stop: Stop | None = None
        self._usage: Usage | None = None
        self._register = Register(target)
        self._hot_key: int | str | None = None
        self._hot: MessageState | None = None
        self._said_text = False
        self._warned: set[str] = set()

    @property
    def done(self) -> bool:
        """Whether the server said that nothing follows: its last event does, and needs no mark behind it."""
        return self._done or self._stop is not None

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return self._framing.form != "json"

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; return every event they complete."""
        events: list[Event] = []
        if isinstance(self.failure, ProtocolError):
            return events
        try:
            for payload in self._framing.feed(data):
                self._take(payload, events)
        except ProtocolError as problem:
            self._fail(problem)
        return events

    def finish(self) -> list[Event]:
        """The end of the bytes: the last events; ReplyEnded is the very last, unless there is a failure."""
        events: list[Event] = []
        if not isinstance(self.failure, ProtocolError):
            try:
                for payload in self._framing.finish():
                    self._take(payload, events)
            except ProtocolError as problem:
                self._fail(problem)
        for item in self._register.items:
            if not item.done:
                item.flush(events)
        if self.failure is None:
            self._check_whole()
        if self.failure is None:
            self._start(None, events)
            if self._mended:
                self._warn(*INVALID_TEXT, events)
            events.append(ReplyEnded(self._stop or Stop(), self._broke_off_thinking()))
        elif events and not self._started:
            self._start(None, events)
            events.insert(0, events.pop())
        return events

    def _fail(self, problem: ProtocolError) -> None:
        told = f"{self._target.provider.name}: {problem}"
        self.failure = ProtocolError(told, dialect="openai_responses", payload=problem.payload)

    def _check_whole(self) -> None:
        who = self._target.provider.name
        if not self.payloads and not self._done:
            if self._framing.head and not self._framing.begun:
                told = "the body is neither JSON nor a stream of events; check the base URL."
                self._fail(ProtocolError(told, payload=self._framing.head))
            else:
                self.failure = ConnectionLost(f"{who} sent no event; try again, or check the base URL.")
        elif self._stop is None:
            self.failure = ConnectionLost(
                f"the stream from {who} ended before the reply did; try again (.partial has what came)."
            )

    def _broke_off_thinking(self) -> bool:
        # Thought without the item that has to follow it: it can be shown, and not be sent back.
        cut = self._stop is not None and self._stop.reason in ("length", "content_filter")
        return self._register.breaks_off_in_a_tag() or (cut and self._register.ends_with_a_thought())

    # --- one document -----------------------------------------------------------------------------------------------

    def _take(self, payload: bytes, events: list[Event]) -> None:
        if payload == DONE:
            self._done = True
            return
        self.payloads.append(payload)
        readable = legible(payload)
        if readable is not payload:
            payload, self._mended = readable, True
        if not self.streamed:
            self._take_body(payload, events)
            return
        try:
            event = EVENTS.decode(payload)
        except msgspec.ValidationError as problem:
            event = self._read_leniently(payload, EVENTS, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # One line; the items say again at their end what it said.
            self._warn("malformed_event", "an event of the stream is not JSON and was left out", events)
            return
        if not self._started and event.type in _HANDLERS:
            self._start(None, events)
        if event.type == "response.output_text.delta":
            key = event.output_index if event.output_index is not None else event.item_id
            if self._hot is not None and key == self._hot_key and event.delta:
                self._hot.take(event.content_index or 0, event.delta, events)
                return
        handle = _HANDLERS.get(event.type or "")
        if handle is not None:
            handle(self, event, events)
        else:
            self._take_other(event, payload, events)

    def _take_other(self, event: StreamEvent, payload: bytes, events: list[Event]) -> None:
        kind = event.type
        if kind is None or (event.output is not NOTHING and not kind.startswith("response.")):
            self._take_body(payload, events)
        elif kind == "error":
            if self.failure is None:
                self.failure = told_error(msgspec.json.decode(payload), payload, self._target)
        elif kind in TERMINAL_EVENTS:
            self._take_end(self._response(event, events), kind, payload, events)
        elif kind in IGNORED_EVENTS:
            if not self._started and event.response is not NOTHING:
                self._start(self._response(event, events), events)
        elif not self._take_progress(event, events):
            self._warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _take_body(self, payload: bytes, events: list[Event]) -> None:
        """A document without a type: the whole response, or an error in place of one."""
        try:
            response = RESPONSES.decode(payload)
        except msgspec.ValidationError as problem:
            response = self._read_leniently(payload, RESPONSES, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ProtocolError(f"the body is not JSON ({problem}).", payload=payload) from None
        if response.output is None and response.status is None:
            told = response.error or response.message or response.detail
            if told:
                error = told if isinstance(told, dict) else {"message": told, "code": response.code}
                self.failure = self.failure or told_error(error, payload, self._target)
                return
        if response.object not in (None, "response") or (response.output is None and response.status is None):
            what = f"an object of type {response.object!r}" if isinstance(response.object, str) else "something else"
            raise ProtocolError(
                f"the answer is {what}, no response; check that the address serves this endpoint.", payload=payload
            )
        self._start(response, events)
        self._take_end(response, None, payload, events)

    def _response(self, event: StreamEvent, events: list[Event]) -> Response:
        raw = bytes(event.response)
        try:
            return RESPONSES.decode(raw)
        except msgspec.ValidationError as problem:
            return Response() if raw == b"null" else self._read_leniently(raw, RESPONSES, problem, events)

    def _start(self, response: Response | None, events: list[Event]) -> None:
        if self._started:
            return
        self._started = True
        model = (response.model if response is not None else None) or self._target.model or None
        reply_id = response.id if response is not None else None
        stored = response is not None and response.store is True
        events.append(ReplyStarted(model, reply_id or None, self._target.origin, stored))

    # --- events of items --------------------------------------------------------------------------------------------

    def _message_of(self, event: StreamEvent) -> MessageState:
        message = cast("MessageState", self._register.find(event, "message"))
        self._hot = message
        self._hot_key = key_of(event.output_index, event.item_id)
        return message

    def _item_added(self, event: StreamEvent, events: list[Event]) -> None:
        item, raw = self._item(bytes(event.item), events)
        self._hot = None
        self._register.announced(event.output_index, item).begin(item, raw, events)

    def _item_done(self, event: StreamEvent, events: list[Event]) -> None:
        item, raw = self._item(bytes(event.item), events)
        self._hot = None
        self._end_item(self._register.ended(event.output_index, item), item, raw, events)

    def _end_item(self, state: ItemState, item: Item, raw: bytes, events: list[Event]) -> None:
        state.done = True
        before = len(events)
        state.end(item, raw, events)
        if isinstance(state, MessageState):
            self._said_text = self._said_text or any(isinstance(event, TextDelta) for event in events[before:])

    def _item(self, raw: bytes, events: list[Event]) -> tuple[Item, bytes]:
        try:
            return ITEMS.decode(raw), raw
        except msgspec.ValidationError as problem:
            if raw.lstrip()[:1] != b"{":
                return Item(type="no object"), raw
            return self._read_leniently(raw, ITEMS, problem, events), raw

    def _text_delta(self, event: StreamEvent, events: list[Event]) -> None:
        self._said_text = self._said_text or bool(event.delta)
        self._message_of(event).take(event.content_index or 0, event.delta or "", events)

    def _text_done(self, event: StreamEvent, events: list[Event]) -> None:
        message = self._message_of(event)
        self._said_text = self._said_text or bool(event.text)
        message.take_whole(event.content_index or 0, event.text or "", events)

    def _refusal_delta(self, event: StreamEvent, events: list[Event]) -> None:
        self._message_of(event).take_refusal(event.content_index or 0, event.delta or "", events)

    def _refusal_done(self, event: StreamEvent, events: list[Event]) -> None:
        message = self._message_of(event)
        message.take_whole(event.content_index or 0, event.refusal or "", events, refusal=True)

    def _part_done(self, event: StreamEvent, events: list[Event]) -> None:
        """A part that comes whole, from servers that send no deltas of it."""
        try:
            part = PARTS.decode(bytes(event.part))
        except msgspec.ValidationError:
            return
        if not isinstance(part.text, str) or not part.text:
            return
        told = msgspec.structs.replace(event, text=part.text)
        match part.type:
            case "output_text" | "text":
                self._text_done(told, events)
            case "reasoning_text":
                self._reasoning("raw", told, events)
            case "summary_text":
                self._reasoning("summary", told, events)
            case _:
                pass

    def _reasoning(self, channel: Channel, event: StreamEvent, events: list[Event]) -> None:
        state = cast("ReasoningState", self._register.find(event, "reasoning"))
        place = event.summary_index if channel == "summary" else event.content_index
        if event.delta is not None:
            state.take(channel, place or 0, event.delta, events)
        elif event.text is not None:
            state.take_whole(channel, place or 0, event.text, events)

    def _summary(self, event: StreamEvent, events: list[Event]) -> None:
        self._reasoning("summary", event, events)

    def _raw(self, event: StreamEvent, events: list[Event]) -> None:
        self._reasoning("raw", event, events)

    def _arguments(self, event: StreamEvent, events: list[Event]) -> None:
        custom = event.type is not None and "custom" in event.type
        state = cast("CallState", self._register.find(event, "custom_tool_call" if custom else "function_call"))
        if event.delta is not None:
            state.take(event.delta, events)
        else:
            state.take_whole(event.input if custom else event.arguments, events)

    def _take_progress(self, event: StreamEvent, events: list[Event]) -> bool:
        """An event of a tool that the provider runs: `response.web_search_call.searching`."""
        kind, _, status = (event.type or "").removeprefix("response.").partition(".")
        tool = next((name for name in SERVER_TOOLS if kind == name or kind.startswith(f"{name}_")), None)
        if tool is None:
            return False
        if kind == tool and status and event.delta is None and status != "partial_image":
            cast("ServerToolState", self._register.find(event, tool)).progress(status, events)
        return True

    # --- the end ----------------------------------------------------------------------------------------------------

    def _take_end(self, response: Response, kind: str | None, payload: bytes, events: list[Event]) -> None:
        self._start(response, events)
        if isinstance(response.reasoning, str) and response.reasoning:
            # One clone has no reasoning items, and the thought beside them as a string.
            events.append(ThinkingDelta(response.reasoning, FIELD_BLOCK, "raw", "field", "reasoning"))
        known = len(self._register.items)
        for place, raw in enumerate(response.output or ()):
            item, entry = self._item(bytes(raw), events)
            if (state := self._register.untold(place, item, known)) is not None:
                self._end_item(state, item, entry, events)
        if isinstance(response.output_text, str) and response.output_text and not self._said_text:
            events.append(TextDelta(response.output_text, block_of(len(self._register.items))))
        if response.usage is not None:
            usage = usage_of(response.usage, self._target.quirks.output_excludes_thinking)
            if usage != self._usage:
                self._usage = usage
                events.append(UsageReported(usage))
        if response.status is None and kind is not None:
            response.status = {"response.done": None}.get(kind, kind.removeprefix("response."))
        if self.failure is None:
            self.failure = failure_of(response, payload, self._target)
        self._stop = self._settled(response, events)

    def _settled(self, response: Response, events: list[Event]) -> Stop:
        calls = any(isinstance(item, CallState) for item in self._register.items)
        stop = stop_of(response, calls=calls)
        if stop.reason == "unknown" and self.failure is None:
            self._warn("unknown_stop_reason", f"the status {stop.raw!r} is not known as an end", events)
        items = self._register.items
        thought_only = bool(items) and all(isinstance(item, ReasoningState) for item in items)
        if stop.reason == "stop" and thought_only and self._target.quirks.hides_truncation:
            return Stop("length", stop.raw)
        return stop

    # --- what does not fit ------------------------------------------------------------------------------------------

    def _read_leniently(
        self, payload: bytes, decoder: msgspec.json.Decoder[Read], problem: msgspec.ValidationError, events: list[Event]
    ) -> Read:
        read, left_out = read_leniently(payload, decoder, problem)
        for path in left_out:
            self._warn("malformed_field", f"{path} is of another type than expected and was left out", events)
        return read

    def _warn(self, code: str, detail: str, events: list[Event]) -> None:
        if detail not in self._warned:
            self._warned.add(detail)
            self._start(None, events)
            events.append(Warned(Notice(code, detail)))


_HANDLERS: dict[str, Callable[[ResponsesDecoder, StreamEvent, list[Event]], Any]] = {
    "response.output_text.delta": ResponsesDecoder._text_delta,
    "response.output_item.added": ResponsesDecoder._item_added,
    "response.output_item.done": ResponsesDecoder._item_done,
    "response.output_text.done": ResponsesDecoder._text_done,
    "response.refusal.delta": ResponsesDecoder._refusal_delta,
    "response.refusal.done": ResponsesDecoder._refusal_done,
    "response.content_part.done": ResponsesDecoder._part_done,
    "response.reasoning_summary_part.done": ResponsesDecoder._part_done,
    "response.reasoning_summary_text.delta": ResponsesDecoder._summary,
    "response.reasoning_summary_text.done": ResponsesDecoder._summary,
    "response.reasoning_summary.delta": ResponsesDecoder._summary,
    "response.reasoning_summary.done": ResponsesDecoder._summary,
    "response.reasoning_text.delta": ResponsesDecoder._raw,
    "response.reasoning_text.done": ResponsesDecoder._raw,
    "response.reasoning.delta": ResponsesDecoder._raw,
    "response.reasoning.done": ResponsesDecoder._raw,
    "response.function_call_arguments.delta": ResponsesDecoder._arguments,
    "response.function_call_arguments.done": ResponsesDecoder._arguments,
    "response.custom_tool_call_input.delta": ResponsesDecoder._arguments,
    "response.custom_tool_call_input.done": ResponsesDecoder._arguments,
}
