"""Decodes responses into events; one decoder for streams and whole bodies.

Theory of operation. A response is a list of items in order. An item emits the same events whether it comes in deltas or
whole: its state (items) emits everything once. So a whole body is a stream in which every item comes whole. The
response object at the end of a stream is read the same way: it adds the parts that the stream lacked. Blocks are
numbered by the item's position, a thousand for each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.input_reports import report_transformations
from asides.dialects.openai_responses.items import (
    CallState,
    Channel,
    ItemIndex,
    ItemState,
    MessageState,
    ReasoningState,
    ServerToolState,
)
from asides.dialects.openai_responses.tool_items import CLIENT_CALLS, SERVER_TOOLS, find_tool_names
from asides.dialects.openai_responses.wire import (
    ANY,
    EVENTS,
    IGNORED_EVENTS,
    ITEMS,
    NOTHING,
    PARTS,
    RESPONSES,
    TERMINAL_EVENTS,
    Entry,
    Item,
    Response,
    StreamEvent,
    build_inner_error,
    find_failure,
    find_lack,
    read_stop,
    read_usage,
)
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import Event, ReplyStarted, StopReason, ThinkingDelta, UsageReported
from asides.values.usage import Usage
from asides.wire.framing import Framing
from asides.wire.lenient import read_any

FIELD_BLOCK = 0


class ResponsesDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "openai_responses"
    reads_past_errors = True
    warning_starts_reply = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        self._usage: Usage | None = None
        self._index = ItemIndex(target)
        self._last_index: int | None = None
        self._last_id: str | None = None
        self._last_message: MessageState | None = None
        self._has_text = False
        self._named_by = False
        """Whether a response object has come: it names the model and the reply."""

    @property
    def done(self) -> bool:
        """Whether nothing follows: the last event shows it, without an end mark."""
        return self.ended or self.stop is not None

    def finish(self) -> list[Event]:
        """Return the last events: no more bytes come. ReplyEnded is the very last, unless there is a failure."""
        events = super().finish()
        if events and not self._started:
            # A reply that failed before it started still gets its first event.
            self.start(events)
            events.insert(0, events.pop())
        return events

    def flush(self, events: list[Event]) -> None:
        """Emit the events that the items hold."""
        for item in self._index.items:
            if not item.done:
                item.flush(events)
        self.truncated_thought = self._is_cut_in_thought()

    def is_complete(self) -> bool:
        """Whether the reply is complete: the response object ends it, the end mark alone does not."""
        return self.stop is not None

    def fail_without_documents(self) -> None:
        """Set the failure of a body without any event."""
        if self.ended:
            self.fail_cut_off()
        elif self._framing.head and not self._framing.looks_like_sse:
            self.fail_unrecognised()
        else:
            self.fail_lost("sent no event")

    # An event that was cut off is left out like any event that is not JSON; every other problem at the end is an error.
    fail_at_end = DocumentDecoder.fail

    def _is_cut_in_thought(self) -> bool:
        # Reasoning without the item that must follow it can be shown, but not sent back.
        cut = self.stop is not None and self.stop.reason in ("length", "content_filter")
        return self._index.has_open_tag() or (cut and self._index.is_last_a_thought())

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one event, or the whole response."""
        if self._framing.form == "json":
            self._decode_body(payload, events)
            return
        try:
            event = self.read(payload, EVENTS, events)
        except ProtocolError:
            # Only one line; its content is repeated at the end of the items.
            self.warn("malformed_event", "an event of the stream is not JSON and was left out", events)
            return
        handle = _HANDLERS.get(event.type or "")
        if handle is None:
            self._decode_other(event, payload, events)
            return
        if not self._started:
            self.start(events)
        handle(self, event, events)

    def _decode_other(self, event: StreamEvent, payload: bytes, events: list[Event]) -> None:
        kind = event.type
        if kind is None or (event.output is not NOTHING and not kind.startswith("response.")):
            self._decode_body(payload, events)
        elif kind == "error":
            if self.failure is None:
                self.failure = build_inner_error(self.read_fields(payload), payload, self.target)
        elif kind in TERMINAL_EVENTS:
            self._decode_end(self._read_response(event, events), kind, payload, events)
        elif kind in IGNORED_EVENTS:
            if event.response is not NOTHING and (not self._started or not self._named_by):
                self._start(self._read_response(event, events), events)
        elif not self._decode_progress(event, events):
            self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _decode_body(self, payload: bytes, events: list[Event]) -> None:
        """Decode a document without a type: the whole response, or an error in its place."""
        response = self.read(payload, RESPONSES, events)
        if response.output is None and response.status is None:
            error = response.error or response.message or response.detail
            if error and not isinstance(error, dict):
                error = {"message": error, "code": response.code}
            if error:
                self.failure = self.failure or build_inner_error(error, payload, self.target)
                return
        if response.object not in (None, "response") or response == Response():
            found = f"an object of type {response.object!r}" if isinstance(response.object, str) else "something else"
            raise ProtocolError(
                f"the answer is {found}, not a response; check that the address serves this endpoint.", payload=payload
            )
        self._start(response, events)
        self._decode_end(response, None, payload, events)

    def _read_response(self, event: StreamEvent, events: list[Event]) -> Response:
        raw = bytes(event.response)
        return Response() if raw == b"null" else self.read(raw, RESPONSES, events)

    def _start(self, response: Response, events: list[Event]) -> None:
        self._index.tool_names |= find_tool_names(response.tools)
        if not self._named_by:
            self._named_by = bool(response.model or response.id)
            stored, model = response.store is True, response.model or self.target.model or None
            self.late_start = ReplyStarted(model, response.id or None, self.origin, stored) if self._started else None
        self.start(events, response.model, response.id, stored=response.store is True)

    # --- events of items --------------------------------------------------------------------------------------------

    def _find_message(self, event: StreamEvent) -> MessageState:
        message = cast("MessageState", self._index.find(event, "message"))
        self._last_message = message
        self._last_index, self._last_id = event.output_index, event.item_id
        return message

    def _begin_item(self, event: StreamEvent, events: list[Event]) -> None:
        item, entry = self._read_item(bytes(event.item), events)
        self._last_message = None
        state = self._index.begin(event.output_index, item)
        self._index.decide_by_name(state, item, events)
        state.begin(item, entry, events)

    def _end_item(self, event: StreamEvent, events: list[Event]) -> None:
        item, entry = self._read_item(bytes(event.item), events)
        self._last_message = None
        self._finish_item(self._index.end(event.output_index, item), item, entry, events)

    def _finish_item(self, state: ItemState, item: Item, entry: Entry, events: list[Event]) -> None:
        state.done = True
        self._index.decide_by_name(state, item, events)
        state.end(item, entry, events)
        if isinstance(state, MessageState) and state.sent:
            self._has_text = True
            self._index.decide_by_answer(state, events)

    def _read_item(self, raw: bytes, events: list[Event]) -> tuple[Item, Entry]:
        try:
            fields = ANY.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raw = self.clean(raw)
            fields = read_any(raw)
        if not isinstance(fields, dict):
            return Item(type="no object"), Entry(raw, {})
        entry = Entry(raw, fields)
        try:
            return msgspec.convert(fields, Item), entry
        except msgspec.ValidationError as problem:
            return self.read_leniently(raw, ITEMS, problem, events), entry

    def _decode_text_delta(self, event: StreamEvent, events: list[Event]) -> None:
        message, text = self._last_message, event.delta
        if message is not None and event.output_index == self._last_index and event.item_id == self._last_id and text:
            message.feed(event.content_index or 0, text, events)
            return
        if (thought := self._index.find_reasoning(event)) is not None:
            thought.feed("summary", event.content_index or 0, event.delta or "", events)
            return
        message = self._find_message(event)
        self._has_text = self._has_text or bool(event.delta)
        self._index.decide_by_answer(message, events)
        message.feed(event.content_index or 0, event.delta or "", events)

    def _decode_whole_text(self, event: StreamEvent, events: list[Event]) -> None:
        kind = event.type or ""
        if (thought := self._index.find_reasoning(event)) is not None:
            thought.feed_whole("summary", event.content_index or 0, event.text or "", events, kind)
            return
        message = self._find_message(event)
        self._has_text = self._has_text or bool(event.text)
        message.feed_whole(event.content_index or 0, event.text or "", events, kind)

    def _decode_refusal_delta(self, event: StreamEvent, events: list[Event]) -> None:
        self._find_message(event).feed_refusal(event.content_index or 0, event.delta or "", events)

    def _decode_whole_refusal(self, event: StreamEvent, events: list[Event]) -> None:
        message = self._find_message(event)
        message.feed_whole(event.content_index or 0, event.refusal or "", events, "refusal")

    def _decode_whole_part(self, event: StreamEvent, events: list[Event]) -> None:
        """Decode a complete part, from servers that send no deltas for it."""
        try:
            part = self.read(bytes(event.part), PARTS, events)
        except ProtocolError:
            return
        if not isinstance(part.text, str) or not part.text:
            return
        whole = msgspec.structs.replace(event, text=part.text)
        match part.type:
            case "output_text" | "text":
                self._decode_whole_text(whole, events)
            case "reasoning_text":
                self._decode_reasoning("raw", whole, events)
            case "summary_text":
                self._decode_reasoning("summary", whole, events)
            case _:
                pass

    def _decode_reasoning(self, channel: Channel, event: StreamEvent, events: list[Event]) -> None:
        state = cast("ReasoningState", self._index.find(event, "reasoning"))
        place = event.summary_index if channel == "summary" else event.content_index
        if event.delta is not None:
            state.feed(channel, place or 0, event.delta, events)
        elif event.text is not None:
            state.feed_whole(channel, place or 0, event.text, events, event.type or "")

    def _decode_summary(self, event: StreamEvent, events: list[Event]) -> None:
        self._decode_reasoning("summary", event, events)

    def _decode_raw_reasoning(self, event: StreamEvent, events: list[Event]) -> None:
        self._decode_reasoning("raw", event, events)

    def _decode_arguments(self, event: StreamEvent, events: list[Event]) -> None:
        custom = "custom" in (event.type or "")
        state = cast("CallState", self._index.find(event, "custom_tool_call" if custom else "function_call"))
        if event.delta is not None:
            state.feed(event.delta, events)
        else:
            state.feed_whole(event.input if custom else event.arguments, events)

    def _decode_progress(self, event: StreamEvent, events: list[Event]) -> bool:
        """Decode an event of a tool that the provider runs (`response.web_search_call.searching`); False for others."""
        kind, _, status = (event.type or "").removeprefix("response.").partition(".")
        tools = SERVER_TOOLS | CLIENT_CALLS
        tool = next((name for name in tools if kind == name or kind.startswith(f"{name}_")), None)
        if tool is None:
            return False
        if kind == tool and status and event.delta is None and status != "partial_image":
            cast("ServerToolState", self._index.find(event, tool)).emit_progress(status, events)
        return True

    # --- the end ----------------------------------------------------------------------------------------------------

    def _decode_end(self, response: Response, kind: str | None, payload: bytes, events: list[Event]) -> None:
        self._check_output(response, kind, payload)
        self._start(response, events)
        if isinstance(response.reasoning, str) and response.reasoning:
            # One server has no reasoning items but the thought as a string.
            events.append(ThinkingDelta(response.reasoning, FIELD_BLOCK, "raw", "field", "reasoning"))
        output = [self._read_item(bytes(raw), events) for raw in response.output or ()]
        for state, item, entry in self._index.match_response(output):
            self._finish_item(state, item, entry, events)
        self._index.decide_rest(events)
        if isinstance(response.output_text, str) and response.output_text and not self._has_text:
            cast("MessageState", self._index.add("message", None, None)).feed(0, response.output_text, events)
        if response.input_transformations:
            report_transformations(response.input_transformations, partial(self.warn, events=events))
        if response.usage is not None:
            usage = read_usage(response.usage, self.target.quirks.output_excludes_thinking, response)
            if usage != self._usage:
                self._usage = usage
                events.append(UsageReported(usage))
        if response.status is None and kind is not None:
            response.status = {"response.done": None}.get(kind, kind.removeprefix("response."))
        if self.failure is None:
            self.failure = find_failure(response, payload, self.target)
        self.stop = self._decode_stop(response, events)

    def _check_output(self, response: Response, kind: str | None, payload: bytes) -> None:
        """Raise if a response is empty although it reports neither an error nor more to come."""
        lack = None if self._index.items else find_lack(response, kind)
        if lack is not None:
            raise ProtocolError(f"the response has no {lack}; try again, or check the base URL.", payload=payload)

    def _decode_stop(self, response: Response, events: list[Event]) -> StopReason:
        has_calls = any(item.is_call for item in self._index.items)
        stop = read_stop(response, has_calls=has_calls)
        if stop.reason == "unknown" and self.failure is None:
            self.warn("unknown_stop_reason", f"the status {stop.raw!r} is not known as a final status", events)
        items = self._index.items
        thought_only = bool(items) and all(isinstance(item, ReasoningState) for item in items)
        if stop.reason == "stop" and thought_only and self.target.quirks.hides_truncation:
            return StopReason("length", stop.raw)
        return stop


_HANDLERS: dict[str, Callable[[ResponsesDecoder, Any, list[Event]], Any]] = {
    "response.output_text.delta": ResponsesDecoder._decode_text_delta,
    "response.output_item.added": ResponsesDecoder._begin_item,
    "response.output_item.done": ResponsesDecoder._end_item,
    "response.output_text.done": ResponsesDecoder._decode_whole_text,
    "response.refusal.delta": ResponsesDecoder._decode_refusal_delta,
    "response.refusal.done": ResponsesDecoder._decode_whole_refusal,
    "response.content_part.done": ResponsesDecoder._decode_whole_part,
    "response.reasoning_summary_part.done": ResponsesDecoder._decode_whole_part,
    "response.reasoning_summary_text.delta": ResponsesDecoder._decode_summary,
    "response.reasoning_summary_text.done": ResponsesDecoder._decode_summary,
    "response.reasoning_summary.delta": ResponsesDecoder._decode_summary,
    "response.reasoning_summary.done": ResponsesDecoder._decode_summary,
    "response.reasoning_text.delta": ResponsesDecoder._decode_raw_reasoning,
    "response.reasoning_text.done": ResponsesDecoder._decode_raw_reasoning,
    "response.reasoning.delta": ResponsesDecoder._decode_raw_reasoning,
    "response.reasoning.done": ResponsesDecoder._decode_raw_reasoning,
    "response.function_call_arguments.delta": ResponsesDecoder._decode_arguments,
    "response.function_call_arguments.done": ResponsesDecoder._decode_arguments,
    "response.custom_tool_call_input.delta": ResponsesDecoder._decode_arguments,
    "response.custom_tool_call_input.done": ResponsesDecoder._decode_arguments,
}
