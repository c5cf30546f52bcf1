"""Decodes v2 chat responses into events; one decoder for streams and whole bodies.

Theory of operation. The content is a list of items, thinking or text, and the position in the list is the item's
number. The calls are a second list and come after it. A stream begins an item, sends its deltas and ends it, each with
the item's index. The plan before calls (`tool_plan`) is neither answer nor thinking: it goes back with the first call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.cohere.wire import (
    CITATIONS,
    DOCUMENTS,
    Call,
    Content,
    Delta,
    Document,
    Message,
    WireUsage,
    build_error,
    is_given,
    map_stop_reason,
    read_usage,
)
from asides.dialects.document_decoder import NO_REPLY, DocumentDecoder, RawItems
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import (
    Event,
    PartArrived,
    StopReason,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.parts import UnknownPart
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing
from asides.wire.lenient import names_thinking, read_thought_text

CALL_BLOCK = 1_000_000
PLAN = "tool_plan"
CITED = "citations"
VIA = "content"


class ChatDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "cohere"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True))
        self._kind: ThoughtKind = "raw" if target.rule.kind == "hidden" else target.rule.kind
        self._texts: dict[int, TaggedText] = {}
        self._thoughts: list[int] = []
        self._thinking_items: set[int] = set()
        """The items that began as thinking."""
        self._calls: list[int] = []
        self._plan: list[str] = []
        self._citations: dict[int | None, list[bytes]] = {}

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document."""
        document = self.read(payload, DOCUMENTS, events)
        match document.type:
            case "content-delta":
                self._decode_content(document, events)
            case "tool-call-delta":
                self._decode_call(document, events)
            case "tool-plan-delta":
                self._decode_plan(document.delta)
            case "message-start":
                self.start(events, None, document.id)
            case "content-start":
                self.start(events)
                self._decode_content_start(document, payload, events)
            case "tool-call-start":
                self.start(events)
                self._decode_call(document, events)
            case "citation-start":
                self._decode_citation(document.delta)
            case "content-end" | "tool-call-end" | "citation-end":
                pass
            case "message-end":
                self._decode_end(document.delta or Delta(), payload, events)
            case None:
                self._decode_whole(document, payload, events)
            case kind:
                self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    # --- events of a stream -----------------------------------------------------------------------------------------

    def _decode_content_start(self, document: Document, payload: bytes, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        content = None if message is None else message.content
        if isinstance(content, Content) and names_thinking(content.type):
            self._thinking_items.add(document.index)
        if isinstance(content, Content) and not _is_known(content.type):
            self._emit_raw(document.index, self.read_fields(payload)["delta"]["message"]["content"], events)
        else:
            self._decode_content(document, events)

    def _decode_content(self, document: Document, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        content = None if message is None else message.content
        if isinstance(content, Content):
            self.start(events)
            self._emit_content(document.index, content, events)

    def _emit_content(self, index: int, content: Content, events: list[Event]) -> None:
        thinking, text = content.thinking, content.text
        if text and (index in self._thinking_items or names_thinking(content.type)):
            # An item that began as thinking has no text of the answer.
            thinking, text = thinking or text, None
        if thinking:
            self._emit_thinking(index, thinking, events)
        if text and type(text) is not str:
            self.warn("malformed_field", "content.text has an unexpected type and was left out", events)
        elif text:
            running = self._texts.get(index)
            if running is None:
                first = not self._texts and not self._thoughts
                # A text after a thought of the same index is another block.
                block = index * SEGMENTS + (index in self._thoughts)
                running = self._texts[index] = TaggedText(block, self.target, self._kind, first=first)
            running.feed(text, events)

    def _emit_thinking(self, index: int, thinking: Any, events: list[Event]) -> None:
        text = thinking if type(thinking) is str else read_thought_text(thinking)
        if not text:
            self.warn("unreadable_thinking", f"thinking holds {type(thinking).__name__}, not text", events)
            return
        if index not in self._thoughts:
            self._thoughts.append(index)
        events.append(ThinkingDelta(text, index * SEGMENTS, self._kind, "block", VIA))

    def _decode_call(self, document: Document, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        if message is not None and isinstance(message.tool_calls, Call):
            self.start(events)
            self._emit_call(document.index, message.tool_calls, events)

    def _decode_plan(self, delta: Delta | None) -> None:
        if delta is not None and delta.message is not None and delta.message.tool_plan:
            self._plan.append(delta.message.tool_plan)

    def _decode_citation(self, delta: Delta | None) -> None:
        if delta is not None and delta.message is not None and is_given(delta.message.citations):
            self._add_citation(delta.message.citations)

    def _decode_end(self, delta: Delta, payload: bytes, events: list[Event]) -> None:
        self.start(events)
        self._end(delta.finish_reason, delta.usage, events)
        self._check_error(delta.error, payload)

    # --- a whole response -------------------------------------------------------------------------------------------

    def _decode_whole(self, document: Document, payload: bytes, events: list[Event]) -> None:
        if document.event_type is not None:
            self._decode_v1_event(document, document.event_type, payload, events)
            return
        if document.text is not None:
            self._decode_v1_response(document, events)
        elif isinstance(document.message, Message):
            self.start(events, None, document.id)
            self._decode_message(document.message, payload, events)
            self._end(document.finish_reason, document.usage, events)
        elif document.message is not None or document.error:
            self.failure = build_error(200, {}, self.read_fields(payload), payload, self.target)
            return
        elif document.finish_reason is None and document.usage is None and document.id is None:
            raise ProtocolError(NO_REPLY.format(dialect=self.dialect), payload=payload)
        else:
            self.start(events, None, document.id)
            self.warn("no_choices", "the server sent no message", events)
            self._end(document.finish_reason, document.usage, events)
        self._check_error(document.error, payload)

    def _decode_message(self, message: Message, payload: bytes, events: list[Event]) -> None:
        if message.tool_plan:
            self._plan.append(message.tool_plan)
        if isinstance(message.content, str):
            self._emit_content(0, Content(text=message.content), events)
        else:
            raw = RawItems(lambda: self.read_fields(payload)["message"]["content"])
            for index, item in enumerate(message.content or ()):
                if _is_known(item.type):
                    self._emit_content(index, item, events)
                else:
                    self._emit_raw(index, raw[index], events)
        for index, call in enumerate(message.tool_calls or ()):
            self._emit_call(index, call, events)
        for citation in message.citations or ():
            self._add_citation(citation)

    def _decode_v1_response(self, document: Document, events: list[Event]) -> None:
        """Decode a response of v1, which older servers still send: text and calls are at the top level."""
        self.start(events, None, document.generation_id or document.id)
        self._emit_content(0, Content(text=document.text), events)
        for index, call in enumerate(document.tool_calls or ()):
            self._emit_call(index, call, events)
        for citation in document.citations or ():
            self._add_citation(citation)
        self._end(document.finish_reason, document.meta, events)

    def _decode_v1_event(self, document: Document, kind: str, payload: bytes, events: list[Event]) -> None:
        """Decode a line of a v1 stream."""
        self.start(events, None, document.generation_id)
        match kind:
            case "stream-start" | "tool-calls-chunk" | "search-queries-generation" | "search-results":
                pass  # whole calls follow their pieces
            case "text-generation":
                self._emit_content(0, Content(text=document.text), events)
            case "tool-calls-generation":
                for index, call in enumerate(document.tool_calls or ()):
                    self._emit_call(index, call, events)
            case "citation-generation":
                for citation in document.citations or ():
                    self._add_citation(citation)
            case "stream-end":
                whole = document.response
                meta = None if whole is None else whole.meta
                reason = document.finish_reason or (None if whole is None else whole.finish_reason)
                self._end(reason, meta, events)
                self._check_error(document.error, payload)
            case _:
                self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    # --- both -------------------------------------------------------------------------------------------------------

    def _emit_raw(self, index: int, item: dict[str, Any], events: list[Event]) -> None:
        kind = str(item["type"])
        self.warn(
            "unknown_content_part", f"a content part of type {kind!r} is not known; it is stored unchanged", events
        )
        part = UnknownPart(msgspec.json.encode(item).decode(), self.origin)
        events.append(PartArrived(part, index * SEGMENTS))

    def _emit_call(self, index: int, call: Call, events: list[Event]) -> None:
        block = CALL_BLOCK + index
        if block not in self._calls:
            self._calls.append(block)
        name, arguments = call.name, ""
        if call.function is not None:
            name, arguments = call.function.name or name, call.function.arguments or ""
        elif is_given(call.parameters):
            arguments = self.compact(call.parameters).decode()
        events.append(ToolCallDelta(block, call.id or None, name or None, arguments))

    def _add_citation(self, citation: msgspec.Raw) -> None:
        # A stream sends them one by one; some servers send several together.
        entry = self.compact(citation)
        entries = msgspec.json.decode(entry, type=list[msgspec.Raw]) if entry.startswith(b"[") else [entry]
        for one in entries:
            try:
                place = CITATIONS.decode(one).content_index
            except msgspec.ValidationError:
                place = None
            self._citations.setdefault(place, []).append(bytes(one))

    def _end(self, finish_reason: str | None, usage: WireUsage | None, events: list[Event]) -> None:
        self.ended = True
        if finish_reason is not None:
            reason = map_stop_reason(finish_reason)
            if reason == "unknown" and finish_reason:
                self.warn("unknown_stop_reason", f"the finish reason {finish_reason!r} is not known", events)
            self.stop = StopReason(reason, finish_reason)
        if usage is not None:
            events.append(UsageReported(read_usage(usage)))

    def _check_error(self, error: object, payload: bytes) -> None:
        raw = self.stop.raw if self.stop is not None and self.stop.reason == "error" else None
        if error or raw:
            self.failure = build_error(200, {}, error or f"the reply ended with {raw}", payload, self.target)

    def flush(self, events: list[Event]) -> None:
        """Emit the held events, and the plan and the citations with their parts: no more documents come."""
        for text in self._texts.values():
            text.finish(events, cut=self.is_cut_off)
            self.truncated_thought = self.truncated_thought or text.truncated
        if self._plan and self._calls:
            entry = msgspec.json.encode("".join(self._plan)).decode()
            events.append(ThoughtSealed(Seal(PLAN, "", self.origin, entry), self._calls[0], source="block"))
        elif self._plan and self.failure is None:
            self.warn("tool_plan_alone", "a plan came without a call; it is only in metadata['raw']", events)
        for place, entries in self._citations.items():
            block = self._find_cited_block(place)
            if block is None:
                self.warn("citation_alone", "a citation came without its text; it is only in metadata['raw']", events)
                continue
            cited = (b"[" + b",".join(entries) + b"]").decode()
            events.append(ThoughtSealed(Seal(CITED, "", self.origin, cited), block, source="block"))
        if self.stop is not None and self.stop.reason == "length" and self._thoughts and not self._texts:
            self.truncated_thought = not self._calls

    def _find_cited_block(self, place: int | None) -> int | None:
        if place is not None and place in self._thoughts:
            return place * SEGMENTS
        text = self._texts.get(place) if place is not None else None
        if text is None:
            text = next(iter(self._texts.values()), None)
        return None if text is None else text.last_text_block


def _is_known(kind: str | None) -> bool:
    """Whether an item of this type is text or thinking."""
    return kind is None or kind == "text" or names_thinking(kind)
