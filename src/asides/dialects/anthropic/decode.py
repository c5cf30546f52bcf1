"""Messages in, events out: one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the place in the list is a block's number. A stream begins a
block, sends its deltas and ends it, each with the block's index; blocks may overlap (clones begin the answer before
they end the thought). An index that is used again is another block and gets another number. A whole body is a list of
blocks that begin and end at once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import (
    CallBlock,
    Growing,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
    WholeBlock,
)
from asides.dialects.anthropic.stop_and_errors import build_error, map_stop_reason
from asides.dialects.anthropic.wire import (
    BLOCKS,
    DOCUMENTS,
    MESSAGES,
    Block,
    Delta,
    Document,
    Message,
    StopDetails,
    UsageSoFar,
    WireUsage,
    is_given,
)
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.tagged_text import SEGMENTS, find_tags
from asides.providers.provider import Target
from asides.values.errors import ConnectionLost, ProtocolError
from asides.values.events import Event, RefusalDelta, ReplyStarted, StopReason, UsageReported
from asides.values.thinking import ThoughtKind
from asides.wire.framing import Framing

# The kind of block that a delta belongs to, for servers that forget to begin it.
_BLOCK_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class MessagesDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "anthropic"
    stop_completes = True
    keeps_raw_bytes = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        self._id: str | None = None
        self._usage = UsageSoFar()
        # Where thinking is hidden unless asked for, what is shown is a summary all the same.
        self._kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        self._stride = SEGMENTS if find_tags(target) else 1
        self._places: set[int] = set()
        self._open: dict[int, Growing] = {}
        self._last: Growing | None = None
        self._truncated = False

    def flush(self, events: list[Event]) -> None:
        """Blocks that were never ended."""
        for index in list(self._open):
            self._end_block(index, events)
        self.truncated_thought = self._truncated or self._cut_in_thought()

    def _cut_in_thought(self) -> bool:
        # A signature ends a thought; without one, the limit did.
        last = self._last
        cut = self.stop is not None and self.stop.reason == "length"
        return cut and isinstance(last, ThinkingBlock) and not last.signed

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Read one document: an event of a stream, a message or an error."""
        document = self.read(payload, DOCUMENTS, events)
        match document.type:
            case "content_block_delta":
                self._take_delta(document, payload, events)
            case "content_block_start":
                self._begin_block(document.index, document.content_block, events)
            case "content_block_stop":
                self._end_block(document.index, events)
            case "ping":
                pass
            case "message_start":
                self._take_start(document, events)
            case "message_delta":
                self._take_end(document.delta or Delta(), document.usage, events)
            case "message_stop":
                self.ended = True
            case "message":
                self._take_message(document, events)
            case kind:
                self._take_other(kind, document, payload, events)

    def _take_other(self, kind: str, document: Document, payload: bytes, events: list[Event]) -> None:
        if document.error is not None or kind == "error":
            told: Any = msgspec.json.decode(payload) if document.error is None else document.error
            self.failure = build_error(200, {}, told, payload, self.target)
        elif is_given(document.content):
            self._take_message(document, events)
        elif not kind and is_given(document.message):
            # One cloud tells errors without any other sign.
            self.failure = build_error(200, {}, msgspec.json.decode(payload), payload, self.target)
        else:
            self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _start(self, message: Message, events: list[Event]) -> None:
        if self._started:
            return
        self._id = message.id
        self.emit_start(ReplyStarted(message.model or self.target.model or None, message.id, self.origin), events)

    def _take_start(self, document: Document, events: list[Event]) -> None:
        message = self.read(bytes(document.message), MESSAGES, events)
        if self._started and (message.id is None or self._id is None or message.id == self._id):
            self.warn("repeated_start", "the server began the same message twice", events)
            return
        if self._started and (self.ended or self.stop is not None):
            self.warn("second_message", "what the server sent behind the end is only in metadata['raw']", events)
            return
        if self._started:
            # A go-between lost its upstream and began anew on the same stream. Two halves are no reply: signed thoughts
            # of both would be refused as soon as they went back.
            self.failure = ConnectionLost(
                f"{self.target.provider.name} broke off and began another message on the same stream; try again "
                "(.partial has what came first)."
            )
            return
        self._take_message(message, events)

    def _take_message(self, message: Message, events: list[Event]) -> None:
        self._start(message, events)
        self._take_content(message.content, events)
        if message.usage is not None:
            events.append(UsageReported(self._usage.take(message.usage)))
        if message.stop_reason is not None:
            self._take_stop(message.stop_reason, message.stop_details, events)

    def _take_content(self, content: msgspec.Raw, events: list[Event]) -> None:
        """Blocks that come whole, each begun and ended at once."""
        if not is_given(content):
            return
        told = bytes(content)
        if told[:1] == b'"':
            told = b'[{"type":"text","text":' + told + b"}]"
        try:
            blocks = msgspec.json.decode(told, type=list[msgspec.Raw])
        except msgspec.ValidationError:
            self.warn("malformed_field", "content is of another type than expected and was left out", events)
            return
        for block in blocks:
            index = self._free_place()
            self._begin_block(index, block, events)
            self._end_block(index, events)

    def _take_end(self, delta: Delta, usage: WireUsage | None, events: list[Event]) -> None:
        self._start(Message(), events)
        if usage is not None:
            events.append(UsageReported(self._usage.take(usage)))
        if delta.stop_reason is not None:
            self._take_stop(delta.stop_reason, delta.stop_details, events)

    def _take_stop(self, raw: str, details: StopDetails | None, events: list[Event]) -> None:
        self.stop = StopReason(map_stop_reason(raw), raw)
        if self.stop.reason == "unknown":
            self.warn("unknown_stop", f"the stop reason {raw!r} is not known", events)
        if details is not None and details.explanation:
            for index in list(self._open):
                self._end_block(index, events)
            events.append(RefusalDelta(details.explanation, self._free_place() * self._stride))

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _free_place(self) -> int:
        """Behind all others."""
        return max(self._places, default=-1) + 1

    def _begin_block(self, index: int, raw: msgspec.Raw, events: list[Event]) -> None:
        self._start(Message(), events)
        if index in self._open:
            self._end_block(index, events)
        try:
            block = self.read(bytes(raw), BLOCKS, events)
        except ProtocolError:
            self.warn("malformed_field", "a block is of another type than expected and was left out", events)
            return
        # Its own place where that is free; behind all others where the index was used before.
        place = index if index not in self._places else self._free_place()
        self._places.add(place)
        self._open[index] = self._last = self._growing(place * self._stride, block, raw, events)

    def _growing(self, number: int, block: Block, raw: msgspec.Raw, events: list[Event]) -> Growing:
        match block.type:
            case "text":
                return TextBlock(number, block, self.target, events)
            case "thinking":
                return ThinkingBlock(number, block, self._kind, self.origin, events)
            case "tool_use":
                return CallBlock(number, block, self.origin, events)
            case "redacted_thinking":
                return RedactedBlock(number, block, self.origin, events)
            case kind:
                whole = WholeBlock(number, bytes(raw), self.origin, events)
                if not whole.known:
                    self.warn("unknown_part", f"a block of type {kind!r} is kept as it came", events)
                return whole

    def _take_delta(self, document: Document, payload: bytes, events: list[Event]) -> None:
        delta = document.delta
        if delta is None:
            return
        growing = self._open.get(document.index)
        if growing is not None and growing.take(delta, payload, events):
            return
        kind = _BLOCK_OF_DELTA.get(delta.type)
        if kind is None:
            self.warn("unknown_delta", f"a delta of type {delta.type!r} is only in metadata['raw']", events)
            return
        # The block was never begun, or as one of another kind: the delta says what it is.
        self._begin_block(document.index, msgspec.Raw(b'{"type":"%b"}' % kind.encode()), events)
        self._open[document.index].take(delta, payload, events)

    def _end_block(self, index: int, events: list[Event]) -> None:
        growing = self._open.pop(index, None)
        if growing is None:
            return
        growing.end(events)
        if isinstance(growing, TextBlock):
            self._truncated = growing.truncated
