"""Decodes messages into events; one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the position in the list is the block's number. A stream begins
a block, sends its deltas and ends it, each with the block's index. Blocks may overlap: some servers begin the answer
before they end the thought. An index that is used again is another block and gets another number. A whole body is a
list of blocks that begin and end at once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import (
    BLOCK_OF_PLAIN,
    CallBlock,
    OpenBlock,
    RawBlock,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
)
from asides.dialects.anthropic.wire import (
    BLOCKS,
    DOCUMENTS,
    MESSAGES,
    PLAIN_EVENTS,
    Block,
    Delta,
    Document,
    Message,
    PlainEvent,
    StopDetails,
    UsageSoFar,
    WholeMessage,
    WireUsage,
    build_error,
    is_given,
    map_stop_reason,
)
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.tagged_text import SEGMENTS
from asides.providers.provider import Target
from asides.values.errors import ConnectionLost, ProtocolError
from asides.values.events import Event, RefusalDelta, ReplyStarted, StopReason, UsageReported
from asides.values.thinking import ThoughtKind
from asides.wire.framing import Framing
from asides.wire.lenient import read_any, read_legible

# The type of the block that a delta belongs to, for servers that do not begin the block.
_BLOCK_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class MessagesDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "anthropic"
    stop_completes = True
    stores_raw_bytes = True
    plain = PLAIN_EVENTS.decode

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        self._id: str | None = None
        self._usage = UsageSoFar()
        # Where thinking is hidden by default, thinking that is shown is a summary.
        self._kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        self._stride = SEGMENTS if target.facts.tags else 1
        self._places: set[int] = set()
        self._last_place: int | None = None
        self._open: dict[int, OpenBlock] = {}
        self._last: OpenBlock | None = None
        self._truncated = False

    def flush(self, events: list[Event]) -> None:
        """Finish the blocks that the server did not end."""
        for index in list(self._open):
            self._finish_block(index, events)
        self.truncated_thought = self._truncated or self._is_cut_in_thought()

    def _is_cut_in_thought(self) -> bool:
        # A signature ends a thought; without one the token limit cut it.
        last = self._last
        cut = self.stop is not None and self.stop.reason == "length"
        return cut and isinstance(last, ThinkingBlock) and not last.is_signed

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document: an event of a stream, a message or an error."""
        # Most documents are deltas of an open block; so they need no further call.
        try:
            document = DOCUMENTS.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            document = self.read(payload, DOCUMENTS, events)
        if document.type != "content_block_delta":
            self._decode_frame(document, payload, events)
            return
        delta = document.delta
        if delta is None:
            return
        text = delta.text
        if text is not None and (type(text) is not str or delta.type == "thinking_delta"):
            self._move_odd_text(delta, events)
        block = self._open.get(document.index)
        if block is None or not block.feed(delta, payload, events):
            self._begin_by_delta(document.index, delta, payload, events)

    def decode_plain(self, document: PlainEvent, events: list[Event]) -> bool:
        """Emit the event of a plain delta; False, and nothing changed, if it is not one of its block."""
        block = self._open.get(document.index)
        if block is None or type(block) is not BLOCK_OF_PLAIN[type(document.delta)]:
            return False
        return block.feed(document.delta, b"", events)

    def _decode_frame(self, document: Document, payload: bytes, events: list[Event]) -> None:
        """Decode a document that is no delta."""
        match document.type:
            case "content_block_start":
                self._begin_block(document.index, document.content_block, events)
            case "content_block_stop":
                self._finish_block(document.index, events)
            case "ping":
                pass
            case "message_start":
                self._decode_start(document, events)
            case "message_delta":
                self._decode_end(document.delta or Delta(), document.usage, events)
            case "message_stop":
                self.ended = True
            case "message":
                self._decode_message(document, events)
            case kind:
                self._decode_other(kind, document, payload, events)

    def decode_whole(self, payload: bytes, events: list[Event]) -> bool:
        """Decode a whole message in one pass; False for anything that is not exactly as documented."""
        fields = read_legible(payload)
        if not isinstance(fields, dict) or fields.get("type") != "message" or "delta" in fields or "index" in fields:
            return False
        try:
            message = msgspec.convert(fields, WholeMessage)
        except msgspec.ValidationError:
            return False
        self.payloads.append(payload)
        self._start(message, events)
        for block, own in zip(message.content, fields["content"], strict=True):
            self._add_whole_block(block, own, events)
        self._decode_outcome(message, events)
        return True

    def _decode_other(self, kind: str, document: Document, payload: bytes, events: list[Event]) -> None:
        if document.error is not None or kind == "error":
            error: Any = read_any(payload) if document.error is None else document.error
            self.failure = build_error(200, {}, error, payload, self.target)
        elif is_given(document.content):
            self._decode_message(document, events)
        elif not kind and is_given(document.message):
            # One cloud sends errors with nothing but a message.
            self.failure = build_error(200, {}, read_any(payload), payload, self.target)
        else:
            self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _start(self, message: Message | Document | WholeMessage, events: list[Event]) -> None:
        if self._started:
            return
        self._id = message.id
        self.emit_start(ReplyStarted(message.model or self.target.model or None, message.id, self.origin), events)

    def _decode_start(self, document: Document, events: list[Event]) -> None:
        message = self.read(bytes(document.message), MESSAGES, events)
        if self._started and (message.id is None or self._id is None or message.id == self._id):
            self.warn("repeated_start", "the server began the same message twice", events)
            return
        if self._started and (self.ended or self.stop is not None):
            self.warn("second_message", "the server sent more after the end; it is only in metadata['raw']", events)
            return
        if self._started:
            # A proxy lost its upstream and began again on the same stream. Two halves are no reply: the provider would
            # refuse the signed thoughts of both.
            self.failure = ConnectionLost(
                f"{self.target.provider.name} broke off and began another message on the same stream; try again "
                "(.partial has the first part)."
            )
            return
        self._decode_message(message, events)

    def _decode_message(self, message: Message | Document, events: list[Event]) -> None:
        self._start(message, events)
        self._decode_content(message.content, events)
        self._decode_outcome(message, events)

    def _decode_outcome(self, message: Message | Document | WholeMessage, events: list[Event]) -> None:
        if message.usage is not None:
            events.append(UsageReported(self._usage.merge(message.usage)))
        if message.stop_reason is not None:
            self._decode_stop(message.stop_reason, message.stop_details, events)

    def _decode_content(self, content: msgspec.Raw, events: list[Event]) -> None:
        """Decode blocks that come whole: each is begun and finished at once."""
        if not is_given(content):
            return
        raw = bytes(content)
        if raw[:1] == b'"':
            raw = b'[{"type":"text","text":' + raw + b"}]"
        try:
            blocks = msgspec.json.decode(raw, type=list[msgspec.Raw])
        except msgspec.ValidationError:
            self.warn("malformed_field", "content has an unexpected type and was left out", events)
            return
        for block in blocks:
            read = self._read_block(block, events)
            if read is not None:
                self._add_whole_block(read, block, events)

    def _decode_end(self, delta: Delta, usage: WireUsage | None, events: list[Event]) -> None:
        self._start(Message(), events)
        if usage is not None:
            events.append(UsageReported(self._usage.merge(usage)))
        if delta.stop_reason is not None:
            self._decode_stop(delta.stop_reason, delta.stop_details, events)

    def _decode_stop(self, raw: str, details: StopDetails | None, events: list[Event]) -> None:
        self.stop = StopReason(map_stop_reason(raw), raw)
        if self.stop.reason == "unknown":
            self.warn("unknown_stop", f"the stop reason {raw!r} is not known", events)
        if details is not None and details.explanation:
            for index in list(self._open):
                self._finish_block(index, events)
            events.append(RefusalDelta(details.explanation, self._find_free_place() * self._stride))

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _find_free_place(self) -> int:
        """Return the position after all others."""
        return 0 if self._last_place is None else self._last_place + 1

    def _take_place(self, place: int) -> int:
        """Take a position for a block, and return its number."""
        self._places.add(place)
        self._last_place = place if self._last_place is None else max(place, self._last_place)
        return place * self._stride

    def _begin_block(self, index: int, raw: msgspec.Raw, events: list[Event]) -> None:
        self._start(Message(), events)
        if index in self._open:
            self._finish_block(index, events)
        block = self._read_block(raw, events)
        if block is None:
            return
        # The position is the index, or the first free one if the index was used before.
        number = self._take_place(index if index not in self._places else self._find_free_place())
        self._open[index] = self._last = self._open_block(number, block, raw, events)

    def _read_block(self, raw: msgspec.Raw, events: list[Event]) -> Block | None:
        try:
            return self.read(bytes(raw), BLOCKS, events)
        except ProtocolError:
            self.warn("malformed_field", "a block has an unexpected type and was left out", events)
            return None

    def _add_whole_block(self, block: Block, fields: dict[str, Any] | msgspec.Raw, events: list[Event]) -> None:
        """Begin and finish a block that comes whole."""
        number = self._take_place(self._find_free_place())
        self._last = self._open_block(number, block, fields, events, is_whole=True)
        self._close_block(self._last, events)

    def _open_block(
        self,
        number: int,
        block: Block,
        fields: dict[str, Any] | msgspec.Raw,
        events: list[Event],
        *,
        is_whole: bool = False,
    ) -> OpenBlock:
        match block.type:
            case "text":
                if block.text is not None and type(block.text) is not str:
                    self.warn("malformed_field", "text has an unexpected type and was left out", events)
                    block.text = None
                return TextBlock(number, block, self.target, events, is_whole=is_whole)
            case "thinking":
                return ThinkingBlock(number, block, self._kind, self.origin, events)
            case "tool_use":
                return CallBlock(number, block, self.origin, events)
            case "redacted_thinking":
                return RedactedBlock(number, block, self.origin, events)
            case kind:
                read: dict[str, Any] = read_any(fields) if isinstance(fields, msgspec.Raw) else fields
                raw_block = RawBlock(number, read, self.origin, events)
                if not raw_block.is_known:
                    self.warn("unknown_part", f"a block of type {kind!r} is not known; it is stored unchanged", events)
                return raw_block

    def _begin_by_delta(self, index: int, delta: Delta, payload: bytes, events: list[Event]) -> None:
        """Begin the block that a delta shows: it was not begun, or begun with another type."""
        kind = _BLOCK_OF_DELTA.get(delta.type) or ("thinking" if delta.thinking is not None else None)
        if kind is None:
            self.warn("unknown_delta", f"a delta of type {delta.type!r} is only in metadata['raw']", events)
            return
        self._begin_block(index, msgspec.Raw(b'{"type":"%b"}' % kind.encode()), events)
        self._open[index].feed(delta, payload, events)

    def _move_odd_text(self, delta: Delta, events: list[Event]) -> None:
        """Move text that a delta of thinking has under the name of the answer; leave out text that is no string."""
        if delta.type == "thinking_delta":
            delta.thinking = delta.thinking or delta.text
        else:
            self.warn("malformed_field", "delta.text has an unexpected type and was left out", events)
        delta.text = None

    def _finish_block(self, index: int, events: list[Event]) -> None:
        block = self._open.pop(index, None)
        if block is not None:
            self._close_block(block, events)

    def _close_block(self, block: OpenBlock, events: list[Event]) -> None:
        block.finish(events)
        if isinstance(block, TextBlock):
            self._truncated = block.truncated
