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

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.openai_responses.item_index import Register, block_of, key_of
from asides.dialects.openai_responses.items import (
    SERVER_TOOLS,
    CallState,
    Channel,
    ItemState,
    MessageState,
    ReasoningState,
    ServerToolState,
)
from asides.dialects.openai_responses.stop_and_errors import failure_of, stop_of, told_error
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
    read_usage,
)
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import Event, StopReason, TextDelta, ThinkingDelta, UsageReported
from asides.values.usage import Usage
from asides.wire.framing import Framing

FIELD_BLOCK = 0


class ResponsesDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "openai_responses"
    reads_past_errors = True
    warning_starts_reply = True
    keeps_raw_bytes = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        self._usage: Usage | None = None
        self._register = Register(target)
        self._hot_key: int | str | None = None
        self._hot: MessageState | None = None
        self._said_text = False

    @property
    def done(self) -> bool:
        """Whether the server said that nothing follows: its last event does, and needs no mark behind it."""
        return self.ended or self.stop is not None

    def finish(self) -> list[Event]:
        """The end of the bytes: the last events; ReplyEnded is the very last, unless there is a failure."""
        events = super().finish()
        if events and not self._started:
            # Of a reply that failed before it began: who answers comes first all the same.
            self.start(events)
            events.insert(0, events.pop())
        return events

    def flush(self, events: list[Event]) -> None:
        """What the items held for certainty."""
        for item in self._register.items:
            if not item.done:
                item.flush(events)
        self.truncated_thought = self._broke_off_thinking()

    def is_complete(self) -> bool:
        """The mark alone ends nothing: the response object does."""
        return self.stop is not None

    def fail_without_documents(self) -> None:
        """Not one event came."""
        if self.ended:
            self.fail_cut_off()
        elif self._framing.head and not self._framing.looks_like_sse:
            self.fail_unrecognised()
        else:
            self.fail_lost("sent no event")

    # An event that was cut off is left out like any that does not read, so what breaks the end is no cut.
    fail_at_end = DocumentDecoder.fail

    def _broke_off_thinking(self) -> bool:
        # Thought without the item that has to follow it: it can be shown, and not be sent back.
        cut = self.stop is not None and self.stop.reason in ("length", "content_filter")
        return self._register.breaks_off_in_a_tag() or (cut and self._register.ends_with_a_thought())

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Read one event, or the whole response."""
        if not self.streamed:
            self._take_body(payload, events)
            return
        try:
            event = EVENTS.decode(payload)
        except msgspec.ValidationError as problem:
            event = self.read_leniently(payload, EVENTS, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # One line; the items say again at their end what it said.
            self.warn("malformed_event", "an event of the stream is not JSON and was left out", events)
            return
        if not self._started and event.type in _HANDLERS:
            self.start(events)
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
                self.failure = told_error(msgspec.json.decode(payload), payload, self.target)
        elif kind in TERMINAL_EVENTS:
            self._take_end(self._response(event, events), kind, payload, events)
        elif kind in IGNORED_EVENTS:
            if not self._started and event.response is not NOTHING:
                self._start(self._response(event, events), events)
        elif not self._take_progress(event, events):
            self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _take_body(self, payload: bytes, events: list[Event]) -> None:
        """A document without a type: the whole response, or an error in place of one."""
        try:
            response = RESPONSES.decode(payload)
        except msgspec.ValidationError as problem:
            response = self.read_leniently(payload, RESPONSES, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ProtocolError(f"the body is not JSON ({problem}).", payload=payload) from None
        if response.output is None and response.status is None:
            told = response.error or response.message or response.detail
            if told:
                error = told if isinstance(told, dict) else {"message": told, "code": response.code}
                self.failure = self.failure or told_error(error, payload, self.target)
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
            return Response() if raw == b"null" else self.read_leniently(raw, RESPONSES, problem, events)

    def _start(self, response: Response, events: list[Event]) -> None:
        self.start(events, response.model, response.id, stored=response.store is True)

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
            return self.read_leniently(raw, ITEMS, problem, events), raw

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
            usage = read_usage(response.usage, self.target.quirks.output_excludes_thinking)
            if usage != self._usage:
                self._usage = usage
                events.append(UsageReported(usage))
        if response.status is None and kind is not None:
            response.status = {"response.done": None}.get(kind, kind.removeprefix("response."))
        if self.failure is None:
            self.failure = failure_of(response, payload, self.target)
        self.stop = self._settled(response, events)

    def _settled(self, response: Response, events: list[Event]) -> StopReason:
        calls = any(isinstance(item, CallState) for item in self._register.items)
        stop = stop_of(response, calls=calls)
        if stop.reason == "unknown" and self.failure is None:
            self.warn("unknown_stop_reason", f"the status {stop.raw!r} is not known as an end", events)
        items = self._register.items
        thought_only = bool(items) and all(isinstance(item, ReasoningState) for item in items)
        if stop.reason == "stop" and thought_only and self.target.quirks.hides_truncation:
            return StopReason("length", stop.raw)
        return stop


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
