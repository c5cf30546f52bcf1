"""A v2 chat in, events out: one decoder for streams and whole bodies.

Theory of operation. The content is a list of items, thinking or text, and the place in the list is an item's number;
the calls are a list of their own and come behind it. A stream begins an item, sends its deltas and ends it, each with
the item's index. The plan before calls (`tool_plan`) is neither answer nor thinking: it goes back with the first call.
"""

from __future__ import annotations

import msgspec

from asides.dialects.cohere.stop_and_errors import build_error, map_stop_reason
from asides.dialects.cohere.wire import (
    CITATIONS,
    CONTENTS,
    DOCUMENTS,
    MESSAGES,
    Call,
    Content,
    Delta,
    Document,
    WireUsage,
    compact,
    is_given,
    read_usage,
)
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import (
    Event,
    PartArrived,
    StopReason,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import UnknownPart
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing

CALL_BLOCK = 1_000_000
PLAN = "tool_plan"
CITED = "citations"
VIA = "content"


class ChatDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "cohere"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True))
        self._kind: ThoughtKind = "raw" if target.rule.kind == "hidden" else target.rule.kind
        self._texts: dict[int, TaggedText] = {}
        self._thoughts: list[int] = []
        self._calls: list[int] = []
        self._plan: list[str] = []
        self._citations: dict[int | None, list[bytes]] = {}

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Read one document."""
        document = self.read(payload, DOCUMENTS, events)
        match document.type:
            case "content-delta":
                self._take_content(document, events)
            case "tool-call-delta":
                self._take_call(document, events)
            case "tool-plan-delta":
                self._take_plan(document.delta)
            case "message-start":
                self.start(events, None, document.id)
            case "content-start":
                self.start(events)
                self._begin_content(document, payload, events)
            case "tool-call-start":
                self.start(events)
                self._take_call(document, events)
            case "citation-start":
                self._take_citation(document.delta)
            case "content-end" | "tool-call-end" | "citation-end":
                pass
            case "message-end":
                self._take_end(document.delta or Delta(), payload, events)
            case None:
                self._take_whole(document, payload, events)
            case kind:
                self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    # --- events of a stream -----------------------------------------------------------------------------------------

    def _begin_content(self, document: Document, payload: bytes, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        content = None if message is None else message.content
        if isinstance(content, Content) and content.type not in (None, "text", "thinking"):
            started = msgspec.json.decode(payload)["delta"]["message"]["content"]
            self._keep(document.index, msgspec.json.encode(started), str(content.type), events)
        else:
            self._take_content(document, events)

    def _take_content(self, document: Document, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        content = None if message is None else message.content
        if isinstance(content, Content):
            self.start(events)
            self._say(document.index, content, events)

    def _say(self, index: int, content: Content, events: list[Event]) -> None:
        if content.thinking:
            if index not in self._thoughts:
                self._thoughts.append(index)
            events.append(ThinkingDelta(content.thinking, index * SEGMENTS, self._kind, "block", VIA))
        if content.text:
            text = self._texts.get(index)
            if text is None:
                first = not self._texts and not self._thoughts
                text = self._texts[index] = TaggedText(index * SEGMENTS, self.target, self._kind, first=first)
            text.feed(content.text, events)

    def _take_call(self, document: Document, events: list[Event]) -> None:
        message = None if document.delta is None else document.delta.message
        if message is not None and isinstance(message.tool_calls, Call):
            self.start(events)
            self._call(document.index, message.tool_calls, events)

    def _take_plan(self, delta: Delta | None) -> None:
        if delta is not None and delta.message is not None and delta.message.tool_plan:
            self._plan.append(delta.message.tool_plan)

    def _take_citation(self, delta: Delta | None) -> None:
        if delta is not None and delta.message is not None and is_given(delta.message.citations):
            self._cite(delta.message.citations)

    def _take_end(self, delta: Delta, payload: bytes, events: list[Event]) -> None:
        self.start(events)
        self._end(delta.finish_reason, delta.usage, events)
        self._check_stop(delta.error, payload)

    # --- a whole response -------------------------------------------------------------------------------------------

    def _take_whole(self, document: Document, payload: bytes, events: list[Event]) -> None:
        if document.event_type is not None:
            self._take_first_event(document, document.event_type, payload, events)
            return
        if document.text is not None:
            self._take_first_version(document, events)
        elif is_given(document.message) and bytes(document.message)[:1] == b"{":
            self.start(events, None, document.id)
            self._take_message(bytes(document.message), events)
            self._end(document.finish_reason, document.usage, events)
        elif is_given(document.message) or document.error:
            self.failure = build_error(200, {}, msgspec.json.decode(payload), payload, self.target)
            return
        else:
            self.start(events, None, document.id)
            self.warn("no_choices", "the server sent no message", events)
            self._end(document.finish_reason, document.usage, events)
        self._check_stop(document.error, payload)

    def _take_message(self, raw: bytes, events: list[Event]) -> None:
        message = self.read(raw, MESSAGES, events)
        if message.tool_plan:
            self._plan.append(message.tool_plan)
        if isinstance(message.content, str):
            self._say(0, Content(text=message.content), events)
        else:
            for index, item in enumerate(message.content or ()):
                self._take_item(index, bytes(item), events)
        for index, call in enumerate(message.tool_calls or ()):
            self._call(index, call, events)
        for citation in message.citations or ():
            self._cite(citation)

    def _take_item(self, index: int, raw: bytes, events: list[Event]) -> None:
        content = self.read(raw, CONTENTS, events)
        if content.type in (None, "text", "thinking"):
            self._say(index, content, events)
        else:
            self._keep(index, compact(raw), content.type, events)

    def _take_first_version(self, document: Document, events: list[Event]) -> None:
        """A response of v1, which older servers still give: the text and the calls stand at the top."""
        self.start(events, None, document.generation_id or document.id)
        self._say(0, Content(text=document.text), events)
        for index, call in enumerate(document.tool_calls or ()):
            self._call(index, call, events)
        for citation in document.citations or ():
            self._cite(citation)
        self._end(document.finish_reason, document.meta, events)

    def _take_first_event(self, document: Document, kind: str, payload: bytes, events: list[Event]) -> None:
        """A line of a stream of v1."""
        self.start(events, None, document.generation_id)
        match kind:
            case "stream-start" | "tool-calls-chunk" | "search-queries-generation" | "search-results":
                pass  # calls come whole behind their pieces
            case "text-generation":
                self._say(0, Content(text=document.text), events)
            case "tool-calls-generation":
                for index, call in enumerate(document.tool_calls or ()):
                    self._call(index, call, events)
            case "citation-generation":
                for citation in document.citations or ():
                    self._cite(citation)
            case "stream-end":
                whole = document.response
                meta = None if whole is None else whole.meta
                reason = document.finish_reason or (None if whole is None else whole.finish_reason)
                self._end(reason, meta, events)
                self._check_stop(document.error, payload)
            case _:
                self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    # --- both -------------------------------------------------------------------------------------------------------

    def _keep(self, index: int, item: bytes, kind: str, events: list[Event]) -> None:
        self.warn("unknown_content_part", f"a content part of type {kind!r} is kept as it came", events)
        events.append(PartArrived(UnknownPart(item.decode(), self.origin), index * SEGMENTS))

    def _call(self, index: int, call: Call, events: list[Event]) -> None:
        block = CALL_BLOCK + index
        if block not in self._calls:
            self._calls.append(block)
        name, arguments = call.name, ""
        if call.function is not None:
            name, arguments = call.function.name or name, call.function.arguments or ""
        elif is_given(call.parameters):
            arguments = compact(call.parameters).decode()
        events.append(ToolCallDelta(block, call.id or None, name or None, arguments))

    def _cite(self, citation: msgspec.Raw) -> None:
        # Told one by one in a stream; some servers tell several at once.
        entry = compact(citation)
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

    def _check_stop(self, error: object, payload: bytes) -> None:
        raw = self.stop.raw if self.stop is not None and self.stop.reason == "error" else None
        if error or raw:
            self.failure = build_error(200, {}, error or f"the reply ended with {raw}", payload, self.target)

    def flush(self, events: list[Event]) -> None:
        """What was held for certainty, now that nothing more comes; the plan and the citations with their parts."""
        for text in self._texts.values():
            text.finish(events, cut=self.is_cut_off)
            self.truncated_thought = self.truncated_thought or text.truncated
        if self._plan and self._calls:
            entry = msgspec.json.encode("".join(self._plan)).decode()
            events.append(ThoughtSealed(Seal(PLAN, "", self.origin, entry), self._calls[0], source="block"))
        elif self._plan and self.failure is None:
            self.warn("tool_plan_alone", "a plan came without a call; it is only in metadata['raw']", events)
        for place, entries in self._citations.items():
            block = self._cited_block(place)
            if block is None:
                self.warn("citation_alone", "a citation came without its text; it is only in metadata['raw']", events)
                continue
            cited = (b"[" + b",".join(entries) + b"]").decode()
            events.append(ThoughtSealed(Seal(CITED, "", self.origin, cited), block, source="block"))
        if self.stop is not None and self.stop.reason == "length" and self._thoughts and not self._texts:
            self.truncated_thought = not self._calls

    def _cited_block(self, place: int | None) -> int | None:
        if place is not None and place in self._thoughts:
            return place * SEGMENTS
        text = self._texts.get(place) if place is not None else None
        if text is None:
            text = next(iter(self._texts.values()), None)
        return None if text is None else text.last_text_block
